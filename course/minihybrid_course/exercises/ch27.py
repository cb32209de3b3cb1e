"""Chapter 27: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

import math

import numpy as np

from minihybrid.simt.cuda import Kernel
from minihybrid.simt.lockstep import turns
from minihybrid.simt.traffic import traffic
from minihybrid_course.exercises.ch25 import does
from minihybrid_course.exercises.judging import Exercise, equal, expect, need, tried


def turns_round(kernel):
    """Check 27.3: out is a.T, and no access takes more transactions than it must."""
    expect(kernel, Kernel, "a kernel, with @cuda.jit above it")
    a, out = np.arange(4096, dtype="float32").reshape(64, 64), np.zeros((64, 64), "float32")
    with turns(10_000):
        seen = tried("the kernel", lambda: traffic(kernel[(2, 2), (32, 32)], a, out))
    equal(out, a.T, "out", "it must be the transpose of a", rtol=0, atol=0)
    for row in seen.rows:
        why = (
            "adjacent threads should access adjacent elements"
            if row.space == "global"
            else "avoid bank conflicts"
        )
        need(
            row.transactions == row.at_best,
            f"out is right, but the {row.kind}s of {row.name} take {row.transactions} "
            f"transactions, and {row.at_best} are enough: {why}",
        )
    return "reads and writes are coalesced, and there are no bank conflicts"


def product(a, b):
    """The specification of 27.4."""
    return a @ b


def any_shape(kernel):
    """Check 27.4: products of any shape, with shared tiles of 16 by 16."""
    chance = np.random.default_rng(0)
    for m, k, n in ((5, 7, 6), (5, 20, 18)):
        a, b = (chance.integers(-3, 4, s).astype("float32") for s in ((m, k), (k, n)))
        grid = -(-n // 16), -(-m // 16)
        case = f"for {m} by {k} times {k} by {n}"
        does(kernel, case, product, [a, b], grid, (16, 16))
        loads, most = kernel.counts.global_loads, 512 * math.prod(grid) * -(-k // 16)
        need(
            loads <= most,
            f"{case}: out is right, but it loads {loads} elements from global memory; with tiles "
            f"in shared memory, each thread loads one of each tile, at most {most} in all",
        )
    return "elements outside of the matrices are zero, and all threads reach the barriers"


EXERCISES = {
    "27.3": Exercise("your kernel transpose(a, out), for blocks of 32 by 32", turns_round),
    "27.4": Exercise("your kernel of a, b and out, for blocks of 16 by 16", any_shape),
}
