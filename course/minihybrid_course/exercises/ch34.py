"""Chapter 34: checkers of its exercises.

Takes:   numbers, functions that raise an error, and functions that schedule loops.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
What is left out: 34.1, a step of nano, and 34.5, which measures.
"""

import numpy as np

from minihybrid.codegen.check import verify
from minihybrid.codegen.evaluate import evaluate
from minihybrid.codegen.ir import Buffer, Kernel
from minihybrid.codegen.read import read
from minihybrid.codegen.schedule import Loops
from minihybrid_course.exercises.judging import Exercise, kind, need, tried, uncounted

MOST_LOADS, STORES = 1300, 128
DEPTHWISE = """
def depthwise(image, weight, out):
    for c in range(8):
        for y in range(8):
            for x in range(16):
                out[c * 128 + y * 16 + x] = float32(0)
                for p in range(3):
                    for q in range(3):
                        term = image[c * 180 + (y + p) * 18 + x + q] * weight[c * 9 + p * 3 + q]
                        out[c * 128 + y * 16 + x] = add_up(out[c * 128 + y * 16 + x], term)
"""


def depthwise() -> Kernel:
    """The kernel of 34.4."""
    sizes = ("image", 1440, "in"), ("weight", 72, "in"), ("out", 1024, "out")
    buffers = tuple(Buffer(name, "float32", (size,), space) for name, size, space in sizes)
    return read("depthwise", DEPTHWISE, buffers)


def result(kernel):
    """What a kernel gives for small whole numbers."""
    rng, arrays = np.random.default_rng(0), []
    for buffer in kernel.buffers:
        size = buffer.shape[0] if isinstance(buffer.shape[0], int) else buffer.shape[0].value
        is_input = buffer.space == "in"
        arrays.append(
            (rng.integers(-4, 5, size) if is_input else np.full(size, np.nan)).astype("f4")
        )
    evaluate(kernel, *arrays)
    return arrays[2]


def schedules(steps):
    """Check 34.4: few loads and stores, and the same result."""
    before = depthwise()
    loops = tried("steps", steps, Loops(before))
    need(isinstance(loops, Loops), f"steps must return the loops, but it returns {kind(loops)}")
    kernel = loops.kernel
    counts = kernel.counts()
    need(
        counts.stores <= STORES,
        f"the kernel has {counts.stores} stores, and {STORES} are enough: hold the element of out "
        "during the loop over p, and store vectors of 8",
    )
    need(
        counts.loads <= MOST_LOADS,
        f"the kernel has {counts.loads} loads, and {MOST_LOADS} are enough: let the vectors of a "
        "row, and several rows, share each weight",
    )
    verify(kernel)
    same = np.array_equal(uncounted(result, kernel), uncounted(result, before))
    need(same, "the result is different")
    return f"{counts.loads} loads and {counts.stores} stores, and the same result"


EXERCISES = {"34.4": Exercise("your function steps(loops)", schedules)}
