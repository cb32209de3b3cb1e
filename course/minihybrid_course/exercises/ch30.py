"""Chapter 30: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

import numpy as np

from minihybrid.core import nd
from minihybrid.core.op import ShapeError
from minihybrid_course.exercises.judging import Exercise, Part, Parts, Refusal, need, tried

FUNCTIONS = {  # text -> (function, Hessian-vector product); small ones first
    "(x * x).sum()": (lambda x: (x * x).sum(), lambda x, v: 2 * v),
    "(x * x * x).sum()": (lambda x: (x * x * x).sum(), lambda x, v: 6 * x * v),
    "x.exp().sum()": (lambda x: x.exp().sum(), lambda x, v: np.exp(x) * v),
    "x.sum() * x.sum()": (lambda x: x.sum() * x.sum(), lambda x, v: 2 * v.sum() + 0 * x),
}
X, V = np.array([1.0, 2.0, 4.0]), np.array([3.0, 0.0, -1.0])


def curves(curvature):
    """Check 30.3: the Hessian times a vector."""
    for text, (f, product) in FUNCTIONS.items():
        args = [nd.array(a, dtype="float64") for a in (X, V)]
        result = tried(f"curvature of `{text}`", curvature, f, *args)
        need(
            hasattr(result, "asnumpy"),
            f"for `{text}`, it returns a {type(result).__name__}, but one array is needed: choose "
            "the entry of the pullback's tuple, or the second result of mx.jvp",
        )
        expected, numbers = product(X, V), result.asnumpy()
        where = f"for `{text}` at {X.tolist()} with v = {V.tolist()}"
        need(
            numbers.shape == expected.shape,
            f"{where}, the result has shape {numbers.shape}, but that of x, {expected.shape}, is "
            "needed: differentiate the gradient, not the function",
        )
        need(
            np.allclose(numbers, expected, rtol=1e-10)
            or not np.allclose(numbers, expected, rtol=1e-5),
            f"{where}, only the first digits are right: differences of gradients are rounded, so "
            "take the gradient's tangent, with mx.jvp",
        )
        need(
            np.allclose(numbers, expected, rtol=1e-10),
            f"{where}, the product is {expected.tolist()}, but yours is {numbers.tolist()}",
        )
    return "the gradient's tangent is the Hessian times v"


EXERCISES = {
    "30.1": Parts(
        "three numbers: JVPs for the Jacobian, VJPs for the Jacobian, and VJPs for the "
        "gradient of the loss",
        "a column per input, a row per output, and the loss is one output",
        Part(
            "the number of JVPs",
            "b54c74d195",
            "a JVP gives one column of the Jacobian: how many are there?",
            {10: "that's the number of rows; a JVP gives a column", 7840: "count columns"},
        ),
        Part(
            "the number of VJPs",
            "27a6177259",
            "a VJP gives one row of the Jacobian: how many are there?",
            {784: "that's the number of columns; a VJP gives a row", 1: "there are ten scores"},
        ),
        Part(
            "the number for the loss",
            "294019f4d4",
            "how many outputs does the loss have?",
            {10: "the loss is one number, whatever the number of scores is"},
        ),
        whole={(10, 784, 1): "a JVP gives a column, and there's a column for each input"},
    ),
    "30.2": Refusal(
        "mx.vjp(...)",
        "a cotangent has the shape of the output",
        ShapeError,
        r"vjp: cotangents have shapes",
        lambda result: (
            "mx.vjp only returns the pullback"
            if isinstance(result, tuple) and callable(result[-1])
            else "the cotangent has the shape of the output; use a function that changes it"
        ),
        {
            r"do not go together|elemwise": "the function itself must run; only the pullback "
            "gets the wrong shape"
        },
    ),
    "30.3": Exercise("your function curvature(f, x, v)", curves),
}
