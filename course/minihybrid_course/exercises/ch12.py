"""Chapter 12: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

import numpy as np

from minihybrid.core import nd
from minihybrid.core.context import simulated_gpu
from minihybrid.core.op import Op
from minihybrid.gluon.function import function
from minihybrid.gluon.transform import vjp
from minihybrid_course.exercises.judging import Exercise, kind, need, tried


def same(what, actual, expected, x):
    """Report the first wrong element of an array, with its x."""
    actual = actual.asnumpy()
    need(actual.shape == x.shape, f"{what} has shape {actual.shape}, but x has {x.shape}")
    for one, right, at in zip(actual, expected, x, strict=True):
        need(
            np.isclose(one, right, rtol=1e-4, atol=1e-6),
            f"{what} is {one:.4g} instead of {right:.4g} for x = {at:g}",
        )


def slope_of(op, x, slope):
    """The gradient according to an operator's definition."""
    y, pullback = vjp(lambda x: op(x, slope=slope), nd.array(x))
    return pullback(y.ones_like())[0]


def steps_softly(op):
    """Check 12.3: three properties for two slopes: values, gradient, compiled values."""
    need(isinstance(op, Op), f"expected an operator, as register returns it, but got {kind(op)}")
    need("slope" in op.attrs, 'it has no attribute slope: pass attrs={"slope": (number, 1.0)}')
    default = op.attrs["slope"][1]
    need(default == 1, f"the default of slope is {default}, but should be 1")
    x = np.float32([0, 0.5, -0.5, 4])
    for slope in (1, 3):
        name, size = f"softstep(x, slope={slope})", 1 + abs(x * slope)
        actual = tried(name, op, nd.array(x), slope=slope)
        same(name, actual, x * slope / size, x)
        actual = tried(f"the gradient of {name}", slope_of, op, x, slope)
        same(f"the gradient of {name}", actual, slope / size**2, x)
        compiled = function(lambda x, slope=slope: op(x, slope=slope))  # for a GPU: at once
        actual = tried(f"compiled, {name}", compiled, nd.array(x, ctx=simulated_gpu()))
        same(f"compiled from expr, {name}", actual, x * slope / size, x)
    return "eager, grad and expr agree, for each slope"


EXERCISES = {"12.3": Exercise("your operator softstep, as register returns it", steps_softly)}
