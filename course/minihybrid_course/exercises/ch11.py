"""Chapter 11: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

import numpy as np

from minihybrid.core import nd
from minihybrid.core.array import NDArray
from minihybrid_course.exercises.judging import Exercise, equal, expect, need, tried


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
    what = "a pair of the result and a function"
    y, gradient = expect(result, (tuple, list), what, length=2)
    expect(y, NDArray, "an array as the result")
    need(y.node is None, f"the result has a node, {y.node}, so a tape was kept; don't record")
    need(runs == 1, f"f ran {runs} times before any gradient was requested; once is enough")
    high, flat = np.tanh(data), 1 - np.tanh(data) ** 2
    for g in ([1, 1], [2, -3]):
        slope = g * flat * data.sum() + np.sum(g * high)
        got = tried(f"gradient(nd.array({g}))", gradient, nd.array(g))
        got = expect(got, NDArray, "an array from gradient").asnumpy()
        case = f"for f(x) = tanh(x) * x.sum(), x = {data.tolist()} and g = {g}, the gradient"
        equal(got, slope, case, "pass g to backward", atol=1e-8)
    before = bool((x.grad == 7).asnumpy().all())
    need(before, "the gradient is right, but you overwrote x.grad: use x.detach()")
    return f"f ran {runs} times: no tape is kept in between"


EXERCISES = {"11.3": Exercise("your function checkpoint(f, x)", checkpoints)}
