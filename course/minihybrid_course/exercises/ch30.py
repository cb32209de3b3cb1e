"""Chapter 30: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

import numpy as np

from minihybrid.core import nd
from minihybrid.core.array import NDArray
from minihybrid_course.exercises.judging import Exercise, equal, kind, need, tried

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
            isinstance(result, NDArray),
            f"for `{text}`, it returns {kind(result)}, but one NDArray is needed: choose the "
            "entry of the pullback's tuple, or the second result of mx.jvp",
        )
        expected, numbers = product(X, V), result.asnumpy()
        where = f"for `{text}` at {X.tolist()} with v = {V.tolist()}"
        hint = "it's the derivative of the gradient, not of the function"
        if numbers.shape == expected.shape and np.allclose(numbers, expected, rtol=1e-5):
            hint = (
                "only the first digits are right, as differences of gradients are rounded; take "
                "the gradient's tangent, with mx.jvp"
            )
        equal(numbers, expected, f"{where}, the result", hint, rtol=1e-10, atol=1e-8)
    return "the gradient's tangent is the Hessian times v"


EXERCISES = {"30.3": Exercise("your function curvature(f, x, v)", curves)}
