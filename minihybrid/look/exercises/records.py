"""Chapters 12, 14 and 16. Exercises about records and passes, and how they are judged.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
What is left out: how fast something is; these judge what is counted beside the times.
"""

import numpy as np

from minihybrid.core import autograd, nd
from minihybrid.core.context import simulated_gpu
from minihybrid.core.op import Op
from minihybrid.gluon.function import function
from minihybrid.look.exercises.judging import Exercise, Part, Parts, kind, need, tried


def same(what, found, wanted, x):
    """The first number of an array that is wrong, with the x that it belongs to."""
    found = found.asnumpy()
    need(found.shape == x.shape, f"{what} has shape {found.shape}, but x has {x.shape}")
    for one, right, at in zip(found, wanted, x, strict=True):
        need(
            np.isclose(one, right, rtol=1e-4, atol=1e-6),
            f"{what} is {one:.4g} for x = {at:g}, but {right:.4g} is needed",
        )


def slope_of(op, x, slope):
    """The gradient that an operator's record gives."""
    x = nd.array(x)
    x.attach_grad()
    with autograd.record():
        y = op(x, slope=slope)
    y.backward()
    return x.grad


def steps_softly(op):
    """Judge 12.3: its three laws, for two slopes: numbers, gradient, and compiled numbers."""
    need(isinstance(op, Op), f"an operator is needed, as register gives it, but not {kind(op)}")
    need("slope" in op.attrs, 'it has no attribute slope; attrs={"slope": (number, 1.0)}')
    default = op.attrs["slope"][1]
    need(default == 1, f"the slope is {default} unless it is given, but must be 1")
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
            "line by line each operator is a call, compiled they share a loop",
            Part(
                "the number of operators",
                "59c2dc917f",
                "count each sign and each call; a number is no operator, what is done with it is",
                {
                    4: "a product, a sum with 4, a root, a sum and a half: none may be forgotten",
                    3: "the product and the root are operators, too",
                    6: "each sign is one operator, also if one of its sides is a number",
                    1: "that is the record; the function is made of others",
                },
            ),
            Part(
                "the number of kernels",
                "32b943b34f",
                "which of them need more than one element of their inputs?",
                {
                    5: "that is line by line; compiled, what is elementwise shares a loop",
                    2: "the root is elementwise as well",
                },
            ),
        ),
    ),
    "14.4": Exercise(
        "a pair: how often one layer's code runs in the first call, and in the second",
        Parts(
            "14.4",
            "a layer that does not know its shape runs once more, to learn it",
            Part(
                "the number in the first call",
                "4ee275c2a2",
                "add a line to a layer's hybrid_forward that counts",
                {
                    1: "before it computes, a layer with a deferred shape is traced",
                    10: "that is all layers; and each is traced before it computes",
                    20: "these are the runs of all ten layers; one of them is asked for",
                },
            ),
            Part(
                "the number in the second call",
                "598300f576",
                "the net is not hybridized; what must run, if all shapes are known?",
                {
                    0: "it is not hybridized, so the code runs in each call",
                    2: "the shapes are known by now",
                    10: "these are the runs of all ten layers; one of them is asked for",
                },
            ),
        ),
    ),
    "16.3": Exercise(
        "the smallest number of steps",
        Parts(
            "16.3",
            "the same operator on the same input, with two different numbers",
            Part(
                "the number of steps",
                "a2478f4a33",
                "go up from one step, and try all two hundred seeds for each number",
                {
                    12: "that is the number of the chapter's program; shorter ones break, too",
                    13: "these are operators, and not of the shortest program",
                    1: "with one step there is nothing that could be merged with it",
                    3: "with fewer steps one of the seeds is broken already",
                },
            ),
        ),
    ),
}
