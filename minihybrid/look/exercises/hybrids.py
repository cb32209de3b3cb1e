"""Chapter 03. What its exercises ask, and how the answers are judged.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
What is left out: 3.4 and 3.6, which measure.
"""

import numpy as np

from minihybrid.core import nd
from minihybrid.core.block import HybridBlock
from minihybrid.gluon import nn
from minihybrid.look.exercises.judging import Exercise, kind, need, tried


def calls(function, value, active, times=1):
    """The results of calls of a block that was made of a function."""
    need(callable(function), f"a function of F and x is needed, not {kind(function)}")
    block = nn.HybridLambda(function)
    block.hybridize(active, backend="numpy")  # compiles nothing
    how = "hybridized" if active else "line by line"
    return [tried(f"{how}, the block", block, value).asnumpy() for _ in range(times)]


def draws_again(function):
    """Judge 3.1: two calls differ, hybridized, too."""
    x = nd.array([[1, 2], [3, 4]])
    for active in (False, True):
        first, second = calls(function, x, active, 2)
        need(first.shape == x.shape, f"x has shape {x.shape}, but x + ... has {first.shape}")
        if not np.array_equal(first, second):
            continue
        need(
            active,
            f"line by line two calls are equal, both {first.tolist()}: nothing random is added",
        )
        need(
            not active,
            "hybridized, two calls are equal: the number was drawn while the function was "
            "traced, and is a constant of the plan now; an operator draws when the plan runs",
        )
    zero = calls(function, nd.zeros((2, 2)), False)[0]
    far = calls(function, nd.zeros((2, 2)) + 1000, False)[0]
    need(np.all(far - zero > 900), "the result does not grow with x: add the number to x")
    return "a random operator stands in the graph, and draws in each call"


def sums_rows(function):
    """Judge 3.2: the sum of the rows, in both modes."""
    x = np.float32([[1, 2, 3], [10, 20, 30]])
    for active in (False, True):
        found = calls(function, nd.array(x), active)[0]
        wanted = x.sum(0)
        case = f"for x = {x.astype(int).tolist()}"
        need(
            found.size > 1,
            f"{case} one number came, {found.tolist()}: all was summed; x.sum takes an axis",
        )
        need(
            found.shape != (2,),
            f"{case} came {found.tolist()}, a number for each row: this sums along the rows; "
            "the sum of the rows has a number for each column",
        )
        need(
            found.shape == wanted.shape,
            f"{case} the shape is {found.shape}, but a sum of rows has shape {wanted.shape}",
        )
        need(np.allclose(found, wanted), f"{case} came {found.tolist()}, not {wanted.tolist()}")
    return "no loop, so there is one operator for any number of rows"


FLATTENED = ([[1, 0.5]], [[4, 1]], [[2, 1], [-3, 0]], [[1, 8], [2, 4]], [[-8, -1]], [[[3], [6]]])


def mends(function):
    """Judge 3.5: what the function means, in both modes."""
    for numbers in FLATTENED:
        x = np.float32(numbers)
        flat, largest = x.reshape(len(x), -1), x.max()
        for active in (False, True):
            found = calls(function, nd.array(x), active)[0]
            case = f"for x = {x.tolist()}{', hybridized,' if active else ''}"
            need(
                found.shape == flat.shape,
                f"{case} the shape is {found.shape}, but {flat.shape} is right: rows stay, all "
                "other axes join",
            )
            wanted = flat / largest if largest > 2 else flat
            need(
                np.allclose(found, wanted),
                f"{case} came {found.tolist()}, but {wanted.tolist()} is right: the largest number "
                f"is {largest:g}, and {'all are' if largest > 2 else 'nothing is'} divided by it",
            )
    return "the largest number stayed an array, and an operator decides"


class Scaled(HybridBlock):
    """Doubles, and counts how often its code runs."""

    runs = 0

    def hybrid_forward(self, F, x):
        """Twice x."""
        self.runs += 1
        return x * 2


def counts_traces(function):
    """Judge 3.3: the number is that of the runs, for fresh plans."""
    small, wide = nd.ones((1, 2)), nd.ones((1, 3))
    exact, own = nd.ones((1, 2), dtype="float64"), Scaled.hybrid_forward
    cases = {
        "one input": (small,),
        "one input, three times": (small, small, small),
        "inputs of two shapes": (small, wide, small),
        "inputs of two types, float32 and float64": (small, exact),
    }
    block = Scaled()
    for text, inputs in cases.items():
        before = block.runs
        try:
            found = tried(f"with {text}, the function", function, block, *inputs)
        finally:
            changed, Scaled.hybrid_forward = Scaled.hybrid_forward is not own, own
        ran = block.runs - before
        need(
            not changed,
            "the class Scaled has another hybrid_forward now, and so have all its instances; "
            "give the instance one of its own",
        )
        need(
            type(found) is int, f"with {text} it gives {kind(found)}, but a whole number is needed"
        )
        wanted = len({(x.shape, str(x.dtype)) for x in inputs})
        need(
            not (wanted == ran + found == found),
            f"with {text} it says {found}, but the code did not run at all: forget the old plans "
            "first, with block.hybridize()",
        )
        need(
            ran == wanted,
            f"with {text} the code ran {ran} times, but a hybridized block with no old plans "
            f"runs it {wanted} times",
        )
        need(found == ran, f"with {text} it says {found}, but the code ran {ran} times")
    need(
        "hybrid_forward" not in vars(block),
        "the block still counts afterwards: remove its own hybrid_forward",
    )
    return "one trace for each signature, and the class is as it was"


EXERCISES = {
    "3.1": Exercise("a function of F and x whose results always differ", draws_again),
    "3.2": Exercise("a function of F and x that sums the rows", sums_rows),
    "3.3": Exercise("your function n_traces(block, *inputs)", counts_traces),
    "3.5": Exercise("your repaired function of F and x", mends),
}
