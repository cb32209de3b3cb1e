"""Chapters 26 to 28. Exercises about fused kernels, tiles and launches, and their judges.

Takes:   kernels, numbers, and functions that make an error.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
What is left out: times; the simulated GPU counts.
"""

import numpy as np

from minihybrid.look.exercises.judging import Exercise, Part, Parts, Refusal, kind, need, tried
from minihybrid.look.exercises.kernels import ELSEWHERE, does
from minihybrid.simt.cuda import Kernel
from minihybrid.simt.errors import KernelError
from minihybrid.simt.lockstep import turns
from minihybrid.simt.traffic import traffic


def turns_round(kernel):
    """Judge 27.3: out is a.T, and no use of memory takes more pieces than it must."""
    need(
        isinstance(kernel, Kernel),
        f"a kernel is needed, with @cuda.jit above it, but {kind(kernel)} was handed in",
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
            "4096 numbers are wrong",
        )
    for row in seen.rows:
        why = (
            "neighbouring threads should use neighbours"
            if row.space == "global"
            else "mind the banks"
        )
        need(
            row.transactions == row.at_best,
            f"out is right, but the {row.kind}s of {row.name} take {row.transactions} "
            f"transactions, and {row.at_best} are enough: {why}",
        )
    return "rows are read, rows are written, and no bank is met twice"


def product(a, b):
    """What 27.4 asks for."""
    return a @ b


def any_shape(kernel):
    """Judge 27.4: products of any shape, with tiles of 16 by 16."""
    chance = np.random.default_rng(0)
    for m, k, n in ((5, 7, 6), (5, 20, 18)):
        a, b = (chance.integers(-3, 4, s).astype("float32") for s in ((m, k), (k, n)))
        grid = -(-n // 16), -(-m // 16)
        does(kernel, f"for {m} by {k} times {k} by {n}", product, [a, b], grid, (16, 16))
    return "what is not there counts as zero, and all threads meet at the barriers"


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
        "three numbers: nodes changed in turn, nodes changed with one array, bytes copied",
        Parts(
            "28.3",
            "an address is told, or numbers are moved",
            Part(
                "the nodes changed in turn",
                "e7f27b48c8",
                "how many kernels of the net read the batch itself?",
                {
                    0: "each batch lies at another address, which the graph must be told",
                    4: "that is all batches together; a call changes its own",
                    3: "only the first kernel reads the batch",
                },
            ),
            Part(
                "the nodes changed with one array",
                "d81c736e48",
                "does the address change?",
                {
                    1: "after the first call with it, the array stays where it is",
                    4: "the array stays where it is",
                },
            ),
            Part(
                "the bytes copied",
                "4abc863da5",
                "a batch is 4 rows of 32 numbers of float32",
                {
                    128: "these are numbers; each has four bytes",
                    2048: "that is all four batches; a call copies one",
                    0: "the batch must get into the one array",
                },
            ),
        ),
    ),
    "28.4": Exercise(
        "the name of the error, as text",
        Parts(
            "28.4",
            "a node of another graph is none of this one's",
            Part(
                "the name",
                "fd49679fb4",
                "the first of the two results is the error's number; cuGetErrorName knows it",
                {
                    "CUDA_SUCCESS": "then it took the node: was it one of another graph?",
                    "1": "that is its number; cuGetErrorName gives the name",
                    "CUDA_ERROR_INVALID_HANDLE": "nearly: a handle it is, but of a wrong graph",
                },
            ),
        ),
    ),
}
