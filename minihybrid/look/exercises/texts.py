"""Chapters 17 and 18. What their exercises about kernels' texts ask, and how they are judged.

Takes:   answers; kernels that were written by hand.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
What is left out: the times of chapter 18; here its registers are counted.
"""

import numpy as np

from minihybrid.core.op import ShapeError
from minihybrid.look.exercises.judging import (
    Exercise,
    Part,
    Parts,
    Refusal,
    kind,
    need,
    tried,
    uncounted,
)

ELSEWHERE = {r"is not defined": "this is Python's error; a name is missing, run the cells above"}


def written(kernel, *arrays, size):
    """What a kernel writes, when its text runs as Python, where every index is checked."""
    out = np.full(size, np.nan, "float32")
    tried("the kernel's text, run as Python,", lambda: kernel.py_func(*arrays, out) or out)
    return out


def softsign(kernel):
    """Judge 17.3: y = w x / (1 + |x|) for 2 rows of 3, in float32, as text and compiled."""
    need(
        hasattr(kernel, "py_func"),
        f"a kernel is needed, with @kernel(F, F, F) above it, but {kind(kernel)} was handed in",
    )
    x, w = np.float32([[1, -1, 3], [0, -4, 0.5]]), np.float32([10, 20, 30])
    wanted = w * x / (1 + abs(x))
    found = written(kernel, x.ravel(), w, size=6).reshape(2, 3)
    for i, j in np.ndindex(2, 3):
        one, right = found[i, j], wanted[i, j]
        need(not np.isnan(one), f"nothing was written for row {i}, column {j}")
        need(
            np.isclose(one, right, rtol=1e-5),
            f"in row {i}, column {j} it writes {one:g}, but for x = {x[i, j]:g} and w = {w[j]:g} "
            f"{right:g} is needed",
        )
    x = np.random.default_rng(0).normal(size=(100, 2, 3)).astype("float32")
    single = w * x / (1 + abs(x))
    double = (w.astype("float64") * x / (1.0 + abs(x.astype("float64")))).astype("float32")
    half = (w * x / (1.0 + abs(x.astype("float64")))).astype("float32")
    found = np.full_like(x, np.nan)
    for one, result in zip(x, found, strict=True):
        uncounted(kernel, one.ravel(), w, result.reshape(-1))
    need(
        np.array_equal(found, single)
        or not any(np.array_equal(found, wide) for wide in (double, half)),
        "compiled, it computes in float64, which the last digits show: a literal without a type "
        "makes its neighbours wider",
    )
    return "the same loops as the generator's, and float32 throughout"


def ran(found):
    """What to say when nothing was refused in 17.2."""
    return (
        "the text ran to its end: let the last turn read one element too far, and call py_func; "
        "machine code checks no index"
    )


EXERCISES = {
    "17.1": Exercise(
        'a pair: "rows" or "columns", and how many products with a half (or divisions) are made',
        Parts(
            "17.1",
            "along rows the numbers are neighbours, and the half waits for complete sums",
            Part(
                "the outer loop",
                "335ca82451",
                "which order goes along neighbours inside?",
                {"columns": "then the inner loop jumps from row to row, three places each time"},
            ),
            Part(
                "the number of products",
                "401d7dba6d",
                "look at which loop of plan.kernels[0] it stands in",
                {
                    6: "a number need not be halved before it is added",
                    2: "there is a sum for each column, and not for each row",
                    1: "there is more than one sum",
                    0: "a mean is not a sum; look for `* float32(0.5)`",
                },
            ),
        ),
    ),
    "17.2": Exercise(
        "a function that makes the error, such as `lambda: to_the_front.py_func(...)`",
        Refusal(
            "NumPy checks each index; machine code would have read what lies behind",
            IndexError,
            r"out of bounds",
            ran,
            {
                r"positional argument": "the kernel takes two arrays, a and out",
                r"not subscriptable|has no len|has no attribute": "it takes arrays of NumPy",
                **ELSEWHERE,
            },
        ),
    ),
    "17.3": Exercise("your kernel softsign(x, w, out), for 2 rows and 3 columns", softsign),
    "18.2": Exercise(
        "the number of registers that the largest of the tiles needs",
        Parts(
            "18.2",
            "no processor of these has so many, and what does not fit goes to memory and back",
            Part(
                "the number of registers",
                "585bf65e92",
                "a register for each vector of the tile, and what else? Step 4 counts them",
                {
                    32: "these hold the sums; the row of b and a number of a need some, too",
                    36: "the number of a needs one, too",
                    33: "the row of b needs one for each of its vectors",
                    19: "that is the tile of 8 by 2, which is not the largest",
                    16: "this is what many processors have, not what the tile needs",
                },
            ),
        ),
    ),
    "18.4": Exercise(
        "a function that makes the error, such as `lambda: ...`",
        Refusal(
            "the record infers the shape before there is any plan",
            ShapeError,
            r"the inner lengths \d+ and \d+ must be equal",
            lambda found: f"a product of shape {np.shape(found)} came: these inner lengths agree",
            {
                r"shape|axes|axis": "the shapes are refused, but not for their inner lengths",
                **ELSEWHERE,
            },
        ),
    ),
}
