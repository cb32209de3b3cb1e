"""Chapter 14: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

import numpy as np

from minihybrid.core import nd
from minihybrid.core.block import Block
from minihybrid.gluon import nn
from minihybrid.gluon.transform import vjp
from minihybrid_course.exercises.judging import Exercise, kind, need, tried


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


EXERCISES = {"14.3": Exercise("your class Residual", residual)}
