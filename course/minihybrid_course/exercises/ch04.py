"""Chapter 04: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

from types import SimpleNamespace

import numpy as np

from minihybrid_course import HERE
from minihybrid_course.exercises.judging import Exercise, equal, expect, kind, need, tried

NANO = HERE / "data/nano.txt"


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
    return expect(result, n.NDArray, "an NDArray", f"`{text}`: ").data


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
    equal(b.grad.data, [-1, -1], "the gradient of b in `a - b`")
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
    what = "a tuple with one gradient per input (add a comma after a single one)"
    expect(rule, tuple, what, "from the gradient rule, ")
    x.attach_grad()
    with n.record():
        y = op(x) * 3
    tried("y.backward()", lambda: (y.backward(),))
    actual, case = x.grad.data, "the gradient of `exp(x) * 3` at [0, 1, 2]"
    need(
        not np.allclose(actual, once),
        f"{case} equals that of `exp(x)`: the rule doesn't use g, the gradient of the result",
    )
    equal(actual, 3 * once, case, "what is the derivative of exp?", atol=1e-8)
    return "the rule reuses the result, which is already computed"


EXERCISES = {
    "4.1": Exercise("your class NDArray with subtraction", subtracts),
    "4.2": Exercise("your operator exp", exponential),
}
