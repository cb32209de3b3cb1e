"""Chapter 25. What its ten puzzles ask, and how the kernels are judged.

Takes:   kernels.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`, whose verdicts are drawn.
What is left out: how a kernel is tried, which `minihybrid_course.puzzles` says.
"""

from dataclasses import replace

import numpy as np

from minihybrid_course.exercises.judging import Exercise
from minihybrid_course.exercises.kernels import checked


def windows(a):
    """What 25.5 asks for: sums of three neighbours."""
    return np.array([a[max(i - 2, 0) : i + 1].sum() for i in range(a.size)])


def convolved(a, w):
    """What 25.8 asks for; after the end there are zeros."""
    longer = np.append(a, [0, 0])
    return np.array([longer[i : i + 3] @ w for i in range(a.size)])


def row(n):
    """The numbers from 0 on."""
    return np.arange(n, dtype="float32")


ONE, TABLE, BITS = row(8), row(12).reshape(3, 4), np.float32([1, 0, 2, 0, 1, 3, 0, 1])
COLUMN, SHORT = np.float32([[0], [10], [20], [30]]), np.float32([[1, 2, 3]])
DIGITS = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4])
PUZZLES = {  # number -> what is read, what is wanted, inputs, grid, block, most loads
    "25.1": ("a", lambda a: a + 10, [ONE], 1, 8, None),
    "25.2": ("a, b", lambda a, b: a * b, [row(20), 1 + row(20) / 19], 3, 8, None),
    "25.3": ("a", lambda a: a.T, [TABLE], (2, 1), (3, 3), None),
    "25.4": ("column, row", lambda c, r: c + r, [COLUMN, SHORT], 1, (4, 4), None),
    "25.5": ("a", windows, [ONE], 1, 8, 1),
    "25.6": ("a, b", lambda a, b: [np.dot(a, b)], [ONE, BITS], 1, 8, 1),
    "25.7": ("digits", lambda d: np.bincount(d, minlength=10), [DIGITS], 3, 8, None),
    "25.8": ("a, w", convolved, [row(16), np.float32([1, 10, 100])], 2, 8, 2),
    "25.9": ("a", np.cumsum, [ONE], 1, 8, 1),
    "25.10": ("a", lambda a: a.sum(1), [row(18).reshape(3, 6)], 3, 8, 1),
}


def puzzle(reads, spec, inputs, grid, block, most):
    """The `Exercise` of a puzzle: a kernel that does what a function of NumPy says."""

    def judge(kernel):
        found = checked(kernel, spec, inputs, grid, block, max_loads=most)
        return replace(found, sentence=found.sentence.removeprefix(f"{kernel.name} is "))

    blocks = f"{grid} blocks" if grid != 1 else "one block"
    launch = (
        f"a grid of {grid} and blocks of {block}"
        if isinstance(grid, tuple)
        else f"{blocks} of {block}{' threads' * isinstance(block, int)}"
    )
    return Exercise(f"your kernel of {reads} and out, for {launch}", judge)


EXERCISES = {number: puzzle(*parts) for number, parts in PUZZLES.items()}
