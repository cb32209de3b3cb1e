"""Chapter 03: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

import numpy as np

from minihybrid.core import nd
from minihybrid.core.array import NDArray
from minihybrid.core.block import HybridBlock
from minihybrid.gluon import nn
from minihybrid_course.exercises.judging import Exercise, equal, kind, need, number, same, tried


def calls(function, value, active, times=1):
    """The results of calling a block that wraps a function."""
    need(callable(function), f"expected a function of F and x, but got {kind(function)}")
    block = nn.HybridLambda(function)
    block.hybridize(active, backend="numpy")  # compiles nothing
    how = "hybridized" if active else "eager"
    results = [tried(f"{how}, the block", block, value) for _ in range(times)]
    for y in results:
        need(isinstance(y, NDArray), f"{how}, it must return an NDArray, but it returns {kind(y)}")
    return [y.asnumpy() for y in results]


def draws_again(function):
    """Check 3.1: two calls differ, eager and hybridized."""
    x = nd.array([[1, 2], [3, 4]])
    for active in (False, True):
        first, second = calls(function, x, active, 2)
        need(
            first.shape == x.shape, f"x has shape {x.shape}, but the result has shape {first.shape}"
        )
        if not np.array_equal(first, second):
            continue
        need(active, f"two eager calls are equal, both {first.tolist()}: nothing random is added")
        need(
            not active,
            "hybridized, two calls are equal: the number was drawn during tracing and is now a "
            "constant of the plan; use an operator, which draws when the plan runs",
        )
    zero = calls(function, nd.zeros((2, 2)), False)[0]
    far = calls(function, nd.zeros((2, 2)) + 1000, False)[0]
    need(np.all(far - zero > 900), "the result doesn't depend on x: add the random number to x")
    return "the graph contains a random operator, which draws in each call"


def sums_rows(function):
    """Check 3.2: the sum of the rows, in both modes."""
    x = np.float32([[1, 2, 3], [10, 20, 30]])
    for active in (False, True):
        actual = calls(function, nd.array(x), active)[0]
        expected = x.sum(0)
        case = f"for x = {x.astype(int).tolist()}"
        need(
            actual.size > 1,
            f"{case}, the result is {actual.tolist()}, a single sum: pass an axis to x.sum",
        )
        need(
            actual.shape != (2,),
            f"{case}, the result is {actual.tolist()}, one element per row; the sum of the rows "
            "has one element per column",
        )
        equal(actual, expected, f"{case}, the result")
    return "without a loop, one operator handles any number of rows"


FLATTENED = ([[1, 0.5]], [[4, 1]], [[2, 1], [-3, 0]], [[1, 8], [2, 4]], [[-8, -1]], [[[3], [6]]])


def mends(function):
    """Check 3.5: the function's results, in both modes."""
    for numbers in FLATTENED:
        x = np.float32(numbers)
        flat, largest = x.reshape(len(x), -1), x.max()
        for active in (False, True):
            actual = calls(function, nd.array(x), active)[0]
            case = f"for x = {x.tolist()}{', hybridized,' if active else ''} the result"
            same(actual.shape, flat.shape, f"{case}'s shape", "merge all axes but the first")
            divided = "all are" if largest > 2 else "nothing is"
            hint = f"the maximum is {largest:g}, so {divided} divided by it"
            equal(actual, flat / largest if largest > 2 else flat, case, hint, 1e-5, 1e-8)
    return "the maximum stayed an array, and an operator decides"


class Scaled(HybridBlock):
    """Doubles, and counts how often its code runs."""

    runs = 0

    def hybrid_forward(self, F, x):
        """Twice x."""
        self.runs += 1
        return x * 2


def counts_traces(function):
    """Check 3.3: the number of traces, for fresh plans."""
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
            count = tried(f"with {text}, the function", function, block, *inputs)
        finally:
            changed, Scaled.hybrid_forward = Scaled.hybrid_forward is not own, own
        ran = block.runs - before
        need(
            not changed,
            "you replaced hybrid_forward of the class Scaled, for all of its instances; "
            "set it on the instance instead",
        )
        count = number(count, f"with {text}, the result")
        expected = len({(x.shape, str(x.dtype)) for x in inputs})
        need(
            not (expected == ran + count == count),
            f"with {text}, it returns {count}, but the code didn't run at all: discard the old "
            "plans first, with block.hybridize()",
        )
        need(
            ran == expected,
            f"with {text}, the code ran {ran} times, but a hybridized block without old plans "
            f"runs it {expected} times",
        )
        need(count == ran, f"with {text}, it returns {count}, but the code ran {ran} times")
    need(
        "hybrid_forward" not in vars(block),
        "the block still counts afterward: remove its own hybrid_forward",
    )
    return "one trace per cache key, and the class is unchanged"


EXERCISES = {
    "3.1": Exercise("a function of F and x whose results always differ", draws_again),
    "3.2": Exercise("a function of F and x that sums the rows", sums_rows),
    "3.3": Exercise("your function n_traces(block, *inputs)", counts_traces),
    "3.5": Exercise("your repaired function of F and x", mends),
}
