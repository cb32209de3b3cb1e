"""Chapter 14: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

import numpy as np

from minihybrid.core import nd
from minihybrid.core.block import Block
from minihybrid.core.op import ShapeError
from minihybrid.gluon import nn
from minihybrid.gluon.transform import vjp
from minihybrid_course.exercises.judging import Exercise, Part, Parts, Refusal, kind, need, tried


def residual(make):
    """Check 14.3: the inner block's output plus the input, eager and hybridized."""
    inner = nn.Dense(3)
    block = tried("Residual(nn.Dense(3))", make, inner)
    need(isinstance(block, Block), f"expected a block, but got {kind(block)}")
    need(
        len(block.collect_params()) == 2,
        f"the block has {len(block.collect_params())} parameters instead of 2: assign the inner "
        "block to an attribute, which makes it a child",
    )
    block.initialize()
    x = nd.array([[1, 2, 3], [4, 5, -6]])
    for how in ("", " after hybridize()"):
        actual = tried(f"the block{how}", block, x)
        expected, name = (x + inner(x)).asnumpy(), f"the block{how}"
        need(
            np.shape(actual) == expected.shape,
            f"{name} returns shape {np.shape(actual)}, not (2, 3)",
        )
        actual = actual.asnumpy()
        need(
            not np.allclose(actual, inner(x).asnumpy()),
            f"{name} returns the inner block's output, without the input",
        )
        need(
            np.allclose(actual, expected, atol=1e-5),
            f"{name} returns {actual.tolist()}, but the input plus the inner block's output is "
            f"{expected.tolist()}",
        )
        block.hybridize()
    functions = block, lambda x: x + inner(x)
    actual, expected = (vjp(f, x)[1](x.ones_like())[0].asnumpy() for f in functions)
    need(
        np.allclose(actual, expected, atol=1e-5),
        f"the block gives the input the gradient {actual.tolist()}, but both the input and the "
        f"inner block lead back to it: {expected.tolist()}",
    )
    return "the input bypasses the inner block, and shapes are inferred from the data"


EXERCISES = {
    "14.1": Parts(
        "four shapes: the weight and the output of the first layer, and those of the second",
        "one layer merges the axes, the other keeps them",
        Part(
            "the first weight",
            "a75b37e4ee",
            "outputs by inputs; how many inputs does a sample have?",
            {(15, 4): "a weight is outputs by inputs", (4, 5): "all axes but the first are merged"},
        ),
        Part(
            "the first output",
            "02c1ba9d66",
            "one row per sample",
            {(2, 3, 4): "the axes were merged", (4, 2): "samples come first"},
        ),
        Part(
            "the second weight",
            "14ef65efca",
            "without flattening, the layer works on the last axis",
            {(4, 15): "without flattening, only the last axis counts", (5, 4): "outputs by inputs"},
        ),
        Part(
            "the second output",
            "33d10c3452",
            "all axes but the last stay",
            {(2, 4): "the other axes stay", (6, 4): "the other axes aren't merged"},
        ),
    ),
    "14.2": Refusal(
        "net(...)",
        "the message names the operator, the shape it got and the shape it needs",
        ShapeError,
        r"\(\d+, 6\)",
        lambda result: f"it returned shape {np.shape(result)}: it knows 5 columns, so pass it 6",
        {r"shape": "the shapes don't match, but not because of 6 columns"},
    ),
    "14.3": Exercise("your class Residual", residual),
    "14.4": Parts(
        "a pair: how often one layer's code runs in the first call, and in the second",
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
}
