"""Chapters 25 to 28. What their exercises ask, and how the answers are judged.

Takes:   kernels, numbers, and functions that make an error.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
What is left out: the ten puzzles, which stand in `threads`, and exercises that measure.
"""

import numpy as np

from minihybrid.core.op import HybridError
from minihybrid.simt.cuda import Kernel
from minihybrid.simt.errors import RaceError
from minihybrid.simt.lockstep import turns
from minihybrid_course import puzzles
from minihybrid_course.exercises.judging import Exercise, Part, Parts, Refusal, kind, need

ELSEWHERE = {r"is not defined": "this is Python's error; a name is missing, run the cells above"}


def checked(kernel, spec, inputs, grid, block, **most):
    """The `Verdict` on a kernel, which may loop for ever, on the simulated GPU."""
    need(
        isinstance(kernel, Kernel),
        f"a kernel is needed, with @cuda.jit above it, but {kind(kernel)} was handed in",
    )
    with turns(10_000):
        return puzzles.check(kernel, spec, inputs, grid, block, **most)


def does(kernel, what, spec, inputs, grid, block, **most):
    """A kernel does what a specification says, on the simulated GPU; `what` is the case."""
    found = checked(kernel, spec, inputs, grid, block, **most)
    need(found.right, f"{what}: {found.sentence.removeprefix('not yet: ')}")


def positive(a):
    """What 25.12 asks for."""
    return np.array([int((a > 0).any())])


def total(a):
    """What 25.13 asks for."""
    return np.array([a.sum()], "float32")


def finds_positive(kernel):
    """Judge 25.12: any positive number, written without a race."""
    for a in ([1, 1, 1, 1, 1, 1, 1, 1], [0, -1, 0, 2, 0, 0, 0, -3], [-1] * 8):
        does(kernel, f"for {a}", positive, [np.array(a, "float32")], 2, 4)
    return "an atomic orders the threads that write the same number"


def adds_up(kernel):
    """Judge 25.13: a tree in each block of 32, and one atomic for each."""
    for n in (32, 64, 40, 100):
        blocks = -(-n // 32)
        numbers = (np.arange(n) % 5 + 1).astype("float32")
        does(kernel, f"for {n} numbers", total, [numbers], blocks, 32, max_loads=1)
        atomics = kernel.counts.total("atomics")
        need(
            atomics == blocks,
            f"for {n} numbers in {blocks} block{'s' * (blocks != 1)} there are {atomics} atomic "
            "operations: one thread of a block adds what its tree found",
        )
    return "one atomic operation for each block, and not for each number"


EXERCISES = {
    "25.11": Exercise(
        "a pair: the barriers that the block meets, and the loads from shared memory",
        Parts(
            "25.11",
            "one barrier for each step of the tree and one before, two loads an addition and one",
            Part(
                "the number of barriers",
                "1289258680",
                "how often is 32 halved, and what comes before the first step?",
                {
                    5: "the numbers must be there before the first step, too",
                    31: "a step makes many additions at once",
                    32: "a step makes many additions at once",
                },
            ),
            Part(
                "the number of loads",
                "b26306fe5b",
                "count the additions, two loads each, and the thread that writes the result",
                {
                    62: "who writes the result loads it, too",
                    31: "these are the additions; each takes two loads",
                    32: "an addition takes two loads",
                    64: "one number less is added than there are",
                },
            ),
        ),
    ),
    "25.12": Exercise("your kernel any_positive(a, out)", finds_positive),
    "25.13": Exercise("your kernel of a and out, for blocks of 32 threads", adds_up),
    "26.1": Exercise(
        "two pairs, eager and fused: ((loads, stores), (loads, stores))",
        Parts(
            "26.1",
            "fused, each input is loaded once, and nothing is written but the result",
            Part(
                "the eager pair",
                "9a22091c1f",
                "go through the four operators: each loads its inputs and stores its result",
                {
                    (5, 3): "eagerly nobody sees that both tanh are the same",
                    (2, 1): "eagerly each operator is a kernel of its own",
                    (4, 4): "an operator of two inputs loads both",
                },
            ),
            Part(
                "the fused pair",
                "5176ecbafe",
                "what does one kernel have to load and to store?",
                {
                    (3, 1): "a is loaded once: the optimiser finds that both tanh are the same",
                    (2, 2): "what lies between the operators is not stored",
                    (6, 4): "one kernel keeps in registers what lies between",
                },
            ),
        ),
    ),
    "27.1": Exercise(
        "a pair: loads from global memory for one multiply-add, and from shared memory",
        Parts(
            "27.1",
            "a smaller tile shares less",
            Part(
                "the number of global loads",
                "ae726b5873",
                "each element of a tile serves as many multiply-adds as the tile has rows",
                {
                    0.125: "that's for tiles of 16, or you forgot one of the two arrays",
                    2: "that's without tiles",
                    0.03125: "an element serves one row of the tile, not all 64 threads",
                },
            ),
            Part(
                "the number of shared loads",
                "7db3a4acec",
                "what does one multiply-add read?",
                {
                    1: "it reads an element of each tile",
                    0.25: "shared memory is read for each multiply-add, whatever the tile",
                    16: "that's for one step of k, not for one multiply-add",
                },
            ),
        ),
    ),
    "27.2": Exercise(
        "a function that makes the error, such as `lambda: broken[(4, 4), (16, 16)](a, b, out)`",
        Refusal(
            "a thread writes the next element into a tile that others are still reading",
            RaceError,
            r"race for s\w*\[",
            lambda found: "the kernel ran without a race, so it still alternates between two tiles",
            {
                r"race for": "this race isn't in a tile in shared memory",
                r"out of bounds": "the launch has too many threads for these arrays",
                **ELSEWHERE,
            },
        ),
    ),
    "28.1": Exercise(
        "for 20 layers: eager launches, hybridized launches, hybridized kernels",
        Parts(
            "28.1",
            "a product and a relu per layer, or one kernel per layer and one launch for all",
            Part(
                "the number of eager launches",
                "9efbc67f60",
                "each operator is a launch",
                {
                    20: "in eager mode, the activation is an operator of its own",
                    60: "the kernel of the product adds the bias",
                    1: "in eager mode, there's no graph, so each kernel is a launch",
                },
            ),
            Part(
                "the number of hybridized launches",
                "60cc54f6b4",
                "what does the graph do?",
                {
                    20: "those are kernels; the graph launches all of them at once",
                    0: "the graph itself has to be launched",
                    40: "that's the eager call",
                },
            ),
            Part(
                "the number of hybridized kernels",
                "0be0d7a225",
                "where does a layer's relu run?",
                {40: "relu runs inside the kernel of its product", 1: "one launch, many kernels"},
            ),
        ),
    ),
    "28.2": Exercise(
        "a function that makes the error, such as `lambda: victim(x)`",
        Refusal(
            "the simulated driver tracks every allocation; a real GPU might raise no error",
            HybridError,
            r"no memory was allocated, or it was freed",
            lambda found: "the network ran: did you free the arena of its own plan?",
            {
                r"freed before": "cuMemFree itself failed: this address has already been freed",
                **ELSEWHERE,
            },
        ),
    ),
}
