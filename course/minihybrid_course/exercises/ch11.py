"""Chapter 11: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

import numpy as np

from minihybrid.core import nd
from minihybrid.core.array import NDArray
from minihybrid.core.op import HybridError
from minihybrid_course.exercises.judging import Exercise, Part, Parts, Refusal, kind, need, tried


def checkpoints(function):
    """Check 11.3: no tape is kept, and the gradient is right for any incoming gradient."""
    runs, data = 0, np.float32([0.5, 1])

    def f(x):
        nonlocal runs
        runs += 1
        return x.tanh() * x.sum()

    x = nd.array(data)
    x.attach_grad()
    x.grad[:] = 7
    result = tried("checkpoint(f, x)", function, f, x)
    need(
        isinstance(result, tuple) and len(result) == 2,
        f"expected a pair of the result and a function, but checkpoint returns {kind(result)}",
    )
    y, gradient = result
    need(isinstance(y, NDArray), f"the result is {kind(y)}, but should be an array")
    need(y.node is None, f"the result has a node, {y.node}, so a tape was kept; don't record")
    need(runs == 1, f"f ran {runs} times before any gradient was requested; once is enough")
    high, flat = np.tanh(data), 1 - np.tanh(data) ** 2
    for g in ([1, 1], [2, -3]):
        slope = g * flat * data.sum() + np.sum(g * high)
        got = tried(f"gradient(nd.array({g}))", gradient, nd.array(g))
        need(isinstance(got, NDArray), f"gradient returns {kind(got)}, but should return an array")
        need(
            np.allclose(got.asnumpy(), slope, rtol=1e-4),
            f"for f(x) = tanh(x) * x.sum(), x = {data.tolist()} and g = {g}, the gradient is "
            f"{got.asnumpy().round(4).tolist()} instead of {slope.round(4).tolist()}: "
            "pass g to backward",
        )
    before = bool((x.grad == 7).asnumpy().all())
    need(before, "the gradient is right, but you overwrote x.grad: use x.detach()")
    return f"f ran {runs} times: no tape is kept in between"


EXERCISES = {
    "11.1": Parts(
        "four numbers: the three of x.grad, and how many gradients were added up",
        "each use of x contributes a gradient, and they add up",
        Part(
            "x.grad[0]",
            "1f4ade6494",
            "evaluate the derivative of the whole expression at the first element",
            {
                2: "that may be the slope of x * x alone; + x also has a slope",
                1: "that may be the slope of + x alone; x * x also has a slope",
                15: "backward computes one gradient per element, not their sum",
            },
        ),
        Part(
            "x.grad[1]",
            "6a8efda02a",
            "evaluate the derivative at the second element",
            {4: "that may be the slope of x * x alone; + x also has a slope"},
        ),
        Part(
            "x.grad[2]",
            "93dbe0ad8d",
            "evaluate the derivative at the last element",
            {6: "that may be the slope of x * x alone; + x also has a slope"},
        ),
        Part(
            "the number of gradients",
            "1f4ade6494",
            "count how often x is an input of a node",
            {
                2: "a product of x with itself reads x twice",
                1: "x is read more than once: look at both operators",
            },
        ),
    ),
    "11.2": Refusal(
        "autograd.grad(y, [b])",
        "the message names the missing call, and when to make it",
        HybridError,
        r"a variable has no place on the tape",
        "this array has a gradient; use one without attach_grad()",
        {r"not on the tape": "y has no tape; compute it inside autograd.record()"},
    ),
    "11.3": Exercise("your function checkpoint(f, x)", checkpoints),
    "11.4": Parts(
        "the step with the smallest error, such as 0.1",
        "a longer step measures the curvature, a shorter one only the last digits",
        Part(
            "the step",
            "3610a41cfb",
            "print the largest error for each of the steps in the starter cell",
            {
                0.1: "such a long step measures the curvature: the error falls with its square",
                0.001: "the error falls with the square of the step, and keeps falling",
                1e-11: "the two values you subtract agree in almost all digits",
                1e-9: "the two values you subtract agree in most of their digits",
                1e-7: "here the rounding error already exceeds that of the curvature",
                5: "that's the exponent; the step is 10.0 to the power of minus that",
            },
        ),
    ),
}
