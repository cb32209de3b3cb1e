"""Chapters 26 to 28: checkers of the exercises about fused kernels, tiles and launches.

Takes:   kernels, numbers, and functions that make an error.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
What is left out: times; the simulated GPU counts.
"""

import math

import numpy as np

from minihybrid.simt.cuda import Kernel
from minihybrid.simt.errors import KernelError
from minihybrid.simt.lockstep import turns
from minihybrid.simt.traffic import traffic
from minihybrid_course.exercises.judging import Exercise, Part, Parts, Refusal, kind, need, tried
from minihybrid_course.exercises.kernels import ELSEWHERE, does


def turns_round(kernel):
    """Check 27.3: out is a.T, and no access takes more transactions than it must."""
    need(
        isinstance(kernel, Kernel),
        f"expected a kernel, with @cuda.jit above it, but got {kind(kernel)}",
    )
    a, out = np.arange(4096, dtype="float32").reshape(64, 64), np.zeros((64, 64), "float32")
    with turns(10_000):
        seen = tried("the kernel", lambda: traffic(kernel[(2, 2), (32, 32)], a, out))
    wrong = np.argwhere(out != a.T)
    if len(wrong):
        y, x = (int(i) for i in wrong[0])
        need(
            False,
            f"out[{y}, {x}] is {out[y, x]:g}, but a[{x}, {y}] is {a[x, y]:g}; {len(wrong)} of "
            "4096 elements are wrong",
        )
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
    return "outside of the matrices is zero, and all threads reach the barriers"


EXERCISES = {
    "26.2": Exercise(
        "a function that makes the error, such as `lambda: simt.Program(broken).run(...)`",
        Refusal(
            "the simulator names the line and the thread; a real GPU may never show it",
            KernelError,
            r"no thread of the block has written it|race for",
            lambda found: "the kernel ran: is the first barrier really gone from the text?",
            {
                r"out of bounds|must be a flat": (
                    "the arrays must be NumPy's, flat, with 400 numbers each"
                ),
                r"arguments?\b": "the launch takes a grid, a block and a list of two arrays",
                **ELSEWHERE,
            },
        ),
    ),
    "26.3": Exercise(
        "a pair: the constant of the product, and by how many bits its upper half is shifted",
        Parts(
            "26.3",
            "a product, its upper half and a shift make a quotient, and no division is done",
            Part(
                "the constant",
                "1cf82858fd",
                "it stands at the end of the line with mul.hi",
                {
                    12: "that is the divisor; mul.lo multiplies the quotient with it again",
                    1537228672809129301: "that is 2 to the power of 64, divided by 12",
                    6: "2 to the power of 64 is divided by it, and that is the constant",
                },
            ),
            Part(
                "the number of bits",
                "269c70523c",
                "after mul.hi, which line makes the quotient of it?",
                {
                    63: "that line takes the sign alone",
                    64: "mul.hi has dropped these already",
                    2: "shl by 2 makes bytes of elements, further down",
                },
            ),
        ),
    ),
    "26.4": Exercise(
        "three numbers: a thread's loads in one kernel, in two kernels, and the engine's kernels",
        Parts(
            "26.4",
            "each input is loaded once, by hand and by the engine: its readers share a loop",
            Part(
                "the loads in one kernel",
                "9b6fb15533",
                "what must come from memory, if it is kept in variables?",
                {4: "x and y can be kept: `x, y = a[i], b[i]`", 1: "there are two inputs"},
            ),
            Part(
                "the loads in two kernels",
                "da3e5c9cff",
                "each kernel loads its inputs",
                {2: "the second kernel knows nothing of the first", 3: "each loads both inputs"},
            ),
            Part(
                "the engine's kernels",
                "876c022aae",
                "the plan of the function has n_kernels",
                {
                    2: "both results read the same inputs in the same loop, and neither needs "
                    "the other",
                    4: "loads are not kernels",
                },
            ),
        ),
    ),
    "27.3": Exercise("your kernel transpose(a, out), for blocks of 32 by 32", turns_round),
    "27.4": Exercise("your kernel of a, b and out, for blocks of 16 by 16", any_shape),
    "28.3": Exercise(
        "three numbers: nodes updated in rotation, nodes updated with one array, bytes copied",
        Parts(
            "28.3",
            "either an address is updated, or elements are copied",
            Part(
                "the number of nodes updated in rotation",
                "e7f27b48c8",
                "how many kernels of the network read the batch itself?",
                {
                    0: "each batch has a different address, so the graph must be updated",
                    4: "that's for all batches together; each call updates its own",
                    3: "only the first kernel reads the batch",
                },
            ),
            Part(
                "the number of nodes updated with one array",
                "d81c736e48",
                "does the address change?",
                {
                    1: "only the first call with it updates a node; then the address stays",
                    4: "the address of the array stays the same",
                },
            ),
            Part(
                "the number of bytes copied",
                "4abc863da5",
                "a batch has 4 rows of 32 float32 elements",
                {
                    128: "that's the number of elements; each has four bytes",
                    2048: "that's all four batches; a call copies one",
                    0: "the batch has to be copied into the array",
                },
            ),
        ),
    ),
    "28.4": Exercise(
        "the name of the error, as text",
        Parts(
            "28.4",
            "a dependency must be a node of the same graph",
            Part(
                "the name",
                "fd49679fb4",
                "the first of the two results is the error code; cuGetErrorName translates it",
                {
                    "CUDA_SUCCESS": "then it accepted the node: is it from another graph?",
                    "1": "that's its code; cuGetErrorName returns the name",
                    "CUDA_ERROR_INVALID_HANDLE": "almost: a valid handle, in a different graph",
                },
            ),
        ),
    ),
}
