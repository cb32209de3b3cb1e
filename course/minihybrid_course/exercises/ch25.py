"""Chapter 25: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

from dataclasses import replace

import numpy as np

from minihybrid.simt.cuda import Kernel
from minihybrid.simt.lockstep import turns
from minihybrid_course import puzzles
from minihybrid_course.exercises.judging import Exercise, expect, need


def windows(a):
    """What 25.5 asks for: sums of three neighbors."""
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
        verdict = checked(kernel, spec, inputs, grid, block, max_loads=most)
        return replace(verdict, sentence=verdict.sentence.removeprefix(f"{kernel.name} is "))

    blocks = f"{grid} blocks" if grid != 1 else "one block"
    launch = (
        f"a grid of {grid} and blocks of {block}"
        if isinstance(grid, tuple)
        else f"{blocks} of {block}{' threads' * isinstance(block, int)}"
    )
    return Exercise(f"your kernel of {reads} and out, for {launch}", judge)


def checked(kernel, spec, inputs, grid, block, **most):
    """The `Verdict` on a kernel, which may loop for ever, on the simulated GPU."""
    expect(kernel, Kernel, "a kernel, with @cuda.jit above it")
    with turns(10_000):
        return puzzles.check(kernel, spec, inputs, grid, block, **most)


def does(kernel, what, spec, inputs, grid, block, **most):
    """A kernel does what a specification says, on the simulated GPU; `what` is the case."""
    verdict = checked(kernel, spec, inputs, grid, block, **most)
    need(verdict.right, f"{what}: {verdict.sentence.removeprefix('not yet: ')}")


def positive(a):
    """What 25.12 asks for."""
    return np.array([int((a > 0).any())])


def total(a):
    """What 25.13 asks for."""
    return np.array([a.sum()], "float32")


def finds_positive(kernel):
    """Check 25.12: any positive number, written without a race."""
    for a in ([1, 1, 1, 1, 1, 1, 1, 1], [0, -1, 0, 2, 0, 0, 0, -3], [-1] * 8):
        does(kernel, f"for {a}", positive, [np.array(a, "float32")], 2, 4)
    return "an atomic serializes the threads that write the same value"


def adds_up(kernel):
    """Check 25.13: a tree in each block of 32, and one atomic for each."""
    for n in (32, 64, 40, 100):
        blocks = -(-n // 32)
        numbers = (np.arange(n) % 5 + 1).astype("float32")
        does(kernel, f"for {n} elements", total, [numbers], blocks, 32, max_loads=1)
        atomics = kernel.counts.total("atomics")
        need(
            atomics == blocks,
            f"for {n} elements in {blocks} block{'s' * (blocks != 1)}, there are {atomics} atomic "
            "operations: one thread of each block must add the sum of its tree",
        )
    return "one atomic operation per block, not per element"


def adds_rows(kernel):
    """Check 25.10: a tree in each block, whose threads share their sums without atomics."""
    verdict = PUZZLE["25.10"].judge(kernel)
    need(verdict.right, verdict.sentence.removeprefix("not yet: "))
    counts = kernel.counts
    atomics = counts.total("atomics") + counts.total("atomics", "shared")
    need(atomics == 0, f"{atomics} atomic operations add one after another: add with a tree")
    need(
        counts.barriers > 1,
        f"each block has {counts.barriers} barrier{'s' * (counts.barriers != 1)}: a tree needs one "
        "before each of its steps",
    )
    return verdict


PUZZLE = {number: puzzle(*parts) for number, parts in PUZZLES.items()}
EXERCISES = PUZZLE | {
    "25.10": Exercise(PUZZLE["25.10"].asks, adds_rows),
    "25.12": Exercise("your kernel any_positive(a, out)", finds_positive),
    "25.13": Exercise("your kernel of a and out, for blocks of 32 threads", adds_up),
}
