"""Chapter 04: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

from types import SimpleNamespace

import numpy as np

from minihybrid_course import HERE
from minihybrid_course.exercises.judging import Exercise, Part, Parts, equal, kind, need, tried

NANO = HERE / "data/nano.txt"
REPLACED = "a second backward replaces x.grad instead of adding to it"
KEPT = "nothing frees the tape while y exists"


def engine(function):
    """The nano that a function uses: its notebook's names, or ours."""
    names = getattr(function, "__globals__", {})
    if "mul_number" not in names:
        text = NANO.read_text(encoding="utf-8").partition("# step 10: ")[0]  # of these chapters
        exec(text, names := {})
    return SimpleNamespace(**names)


def numbers_of(n, text, function, *args):
    """The data of a result, which must be a value of nano."""
    result = tried(f"`{text}`", function, *args)
    need(
        isinstance(result, n.NDArray),
        f"`{text}` must return an NDArray, but it returns {kind(result)}",
    )
    return result.data


# -- values and a tape -------------------------------------------------------------------
SIGNS = {  # for a = [5, 6] and b = [1, 2]
    "-a": (lambda a, b: -a, [-5, -6]),
    "a - b": (lambda a, b: a - b, [4, 4]),
    "a - 3": (lambda a, b: a - 3, [2, 3]),
}


def subtracts(arrays):
    """Check 4.1: values and tape, with the existing operators."""
    n = engine(getattr(arrays, "interpret", None))
    a, b = (tried(f"NDArray({numbers})", arrays, numbers) for numbers in ([5, 6], [1, 2]))
    what = f"it creates {kind(a)}" if isinstance(arrays, type) else f"you passed {kind(arrays)}"
    need(isinstance(a, n.NDArray), f"pass your class NDArray: {what}")
    for text, (sign, expected) in SIGNS.items():
        actual = numbers_of(n, text, sign, a, b)
        equal(actual, expected, f"for a = [5, 6] and b = [1, 2], `{text}`")
    a.attach_grad()
    b.attach_grad()
    with n.record():
        y = a - b
    need(
        y.op in (None, n.add, n.add_number, n.mul, n.mul_number),
        f"`a - b` is a new operator, {getattr(y.op, 'name', '')}: a sum and a product are enough",
    )
    y.backward()
    need(
        np.any(b.grad.data),
        "the values are right, but the gradient of b in `a - b` stays 0: nothing is on the "
        "tape, because no operator is applied to the NDArrays themselves",
    )
    actual = b.grad.data.tolist()
    need(
        actual == [-1, -1],
        f"the gradient of b in `a - b` is {actual} instead of -1 for each element",
    )
    return "a sum and a product, which already have gradients"


def exponential(op):
    """Check 4.2: the values of exp, and its gradient in a chain."""
    n = engine(vars(type(op)).get("__call__"))
    record = f"pass an Op with its gradient rule instead of {kind(op)}"
    need(not isinstance(op, np.ufunc), record)
    need(
        ... not in getattr(op, "__dict__", {}).values(),
        "the dots are still there: replace them with the function and its gradient rule",
    )
    x, once = n.NDArray([0, 1, 2]), np.exp(np.float32([0, 1, 2]))
    actual = numbers_of(n, "exp([0, 1, 2])", op, x)
    equal(actual, once, "exp of [0, 1, 2]")
    need(isinstance(op, n.Op), record)
    rule = tried("the gradient rule", op.grad, n.NDArray([1, 1, 1]), op(x), x)
    need(
        isinstance(rule, tuple),
        f"the gradient rule must return a tuple with one gradient per input, but it returns "
        f"{kind(rule)}: add a comma after a single element",
    )
    x.attach_grad()
    with n.record():
        y = op(x) * 3
    tried("y.backward()", lambda: (y.backward(),))
    actual, case = x.grad.data, "the gradient of `exp(x) * 3` at [0, 1, 2]"
    need(
        not np.allclose(actual, once),
        f"{case} equals that of `exp(x)`: the rule doesn't use g, the gradient of the result",
    )
    need(
        np.allclose(actual, 3 * once, rtol=1e-4),
        f"{case} is {actual.tolist()} instead of {(3 * once).tolist()}: what is the derivative "
        "of exp?",
    )
    return "the rule reuses the result, which is already computed"


EXERCISES = {
    "4.1": Exercise("your class NDArray with subtraction", subtracts),
    "4.2": Exercise("your operator exp", exponential),
    "4.3": Parts(
        "the three elements of x.grad after both calls",
        "y keeps the tape alive, and a second backward pass gives the same",
        *(
            Part(
                f"x.grad[{k}]",
                right,
                "try it: call backward twice, then print x.grad",
                {twice: REPLACED, 0: KEPT},
            )
            for k, (right, twice) in enumerate(
                (("a39e03cfc7", 6), ("be4ead74db", 24), ("584db518a5", 54))
            )
        ),
        whole={(1, 4, 9): "that isn't the gradient: the derivative of a power has a factor"},
    ),
    "4.4": Parts(
        "a pair: the number of values that behind returns, and how many of them have an op",
        "the tape consists of the values, and each one except x has an operator",
        Part(
            "the number of values",
            "99c1ce55d2",
            "count x, each `*` and `+`, and the operators in `Value.sum`",
            {
                4: "`sum` applies two operators: look at its definition in step 1",
                6: "x is one value, no matter how often it's used",
                3: "x and the intermediate results are values as well",
            },
        ),
        Part(
            "the number of those with an op",
            "3ac275a35b",
            "which operator created x?",
            {
                5: "no operator created x",
                3: "`sum` applies two operators: look at its definition in step 1",
                1: "the tape contains all of them: each result remembers its operator",
            },
        ),
    ),
    "4.5": Parts(
        "a pair: the bytes of all values that behind returns, with recording and without",
        "a tape keeps every result alive as long as its end is alive",
        Part(
            "the number of bytes, recorded",
            "db55646992",
            "add `v.data.nbytes` for all values that behind returns",
            {
                400_000: "behind also returns x itself, which needs memory",
                808_000: "an element in nano has four bytes, not eight",
                4000: "that's only the last value, but y depends on those before it",
                101_000: "these are elements, and each has four bytes",
            },
        ),
        Part(
            "the number of bytes, not recorded",
            "11587359e0",
            "outside of record(), does a result remember its inputs?",
            {
                404_000: "outside of record(), a result remembers no inputs, so behind "
                "returns one value",
                0: "y itself needs memory",
                8000: "behind doesn't return x, because y doesn't remember it",
                1000: "these are elements, and each has four bytes",
            },
        ),
    ),
}
