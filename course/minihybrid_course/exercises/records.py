"""Chapters 12, 14 and 16: checkers of the exercises about definitions and passes.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
What is left out: how fast something is; these judge what is counted beside the times.
"""

import numpy as np

from minihybrid.core import nd, tape
from minihybrid.core.context import simulated_gpu
from minihybrid.core.op import Op
from minihybrid.gluon.function import function
from minihybrid_course.exercises.judging import Exercise, Part, Parts, kind, need, tried


def same(what, found, wanted, x):
    """Report the first wrong element of an array, with its x."""
    found = found.asnumpy()
    need(found.shape == x.shape, f"{what} has shape {found.shape}, but x has {x.shape}")
    for one, right, at in zip(found, wanted, x, strict=True):
        need(
            np.isclose(one, right, rtol=1e-4, atol=1e-6),
            f"{what} is {one:.4g} instead of {right:.4g} for x = {at:g}",
        )


def slope_of(op, x, slope):
    """The gradient according to an operator's definition."""
    x = nd.array(x)
    x.attach_grad()
    with tape.record():
        y = op(x, slope=slope)
    y.backward()
    return x.grad


def steps_softly(op):
    """Check 12.3: three properties for two slopes: values, gradient, compiled values."""
    need(isinstance(op, Op), f"expected an operator, as register returns it, but got {kind(op)}")
    need("slope" in op.attrs, 'it has no attribute slope: pass attrs={"slope": (number, 1.0)}')
    default = op.attrs["slope"][1]
    need(default == 1, f"the default of slope is {default}, but should be 1")
    x = np.float32([0, 0.5, -0.5, 4])
    for slope in (1, 3):
        name, size = f"softstep(x, slope={slope})", 1 + abs(x * slope)
        found = tried(name, op, nd.array(x), slope=slope)
        same(name, found, x * slope / size, x)
        found = tried(f"the gradient of {name}", slope_of, op, x, slope)
        same(f"the gradient of {name}", found, slope / size**2, x)
        compiled = function(lambda x, slope=slope: op(x, slope=slope))  # for a GPU: at once
        found = tried(f"compiled, {name}", compiled, nd.array(x, ctx=simulated_gpu()))
        same(f"compiled from expr, {name}", found, x * slope / size, x)
    return "eager, grad and expr agree, for each slope"


EXERCISES = {
    "12.3": Exercise("your operator softstep, as register gives it", steps_softly),
    "12.4": Exercise(
        "a pair: the operators of the function, and the kernels when it is compiled",
        Parts(
            "12.4",
            "in eager mode, each operator is a call; compiled, they share a loop",
            Part(
                "the number of operators",
                "59c2dc917f",
                "count each infix operator and each call, including those with a scalar",
                {
                    4: "count them all: a product, a sum with 4, a root, a sum and a half",
                    3: "the product and the root are also operators",
                    6: "each infix operator counts once, even if one operand is a scalar",
                    1: "that's the new operator; the function is composed of others",
                },
            ),
            Part(
                "the number of kernels",
                "32b943b34f",
                "which of them need more than one element of their inputs?",
                {
                    5: "that's in eager mode; compiled, elementwise operators share a loop",
                    2: "the root is elementwise as well",
                },
            ),
        ),
    ),
    "14.4": Exercise(
        "a pair: how often one layer's code runs in the first call, and in the second",
        Parts(
            "14.4",
            "a layer without a known shape runs once more, to infer it",
            Part(
                "the number in the first call",
                "4ee275c2a2",
                "add a line to a layer's hybrid_forward that counts",
                {
                    1: "a layer with a deferred shape is traced before it computes",
                    10: "that's all layers, and each is also traced before it computes",
                    20: "those are the runs of all ten layers; count those of one",
                },
            ),
            Part(
                "the number in the second call",
                "598300f576",
                "the network isn't hybridized; what has to run if all shapes are known?",
                {
                    0: "it isn't hybridized, so the code runs in each call",
                    2: "the shapes are known by now",
                    10: "those are the runs of all ten layers; count those of one",
                },
            ),
        ),
    ),
    "16.3": Exercise(
        "the smallest number of steps",
        Parts(
            "16.3",
            "the same operator on the same input, with two different scalars",
            Part(
                "the number of steps",
                "a2478f4a33",
                "start from one step, and try all two hundred seeds for each number of steps",
                {
                    12: "that's the chapter's program; shorter ones also break",
                    13: "that's a number of operators, and not for the shortest program",
                    1: "with one step, there's nothing to merge",
                    3: "one of the seeds already breaks with fewer steps",
                },
            ),
        ),
    ),
}
