"""Chapter 14: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

import numpy as np

from minihybrid.core import nd
from minihybrid.core.array import NDArray
from minihybrid.core.block import Block
from minihybrid.gluon import nn
from minihybrid.gluon.transform import vjp
from minihybrid_course.exercises.judging import Exercise, equal, expect, same, tried


def residual(make):
    """Check 14.3: the inner block's output plus the input, eager and hybridized."""
    inner = nn.Dense(3)
    block = tried("Residual(nn.Dense(3))", make, inner)
    expect(block, Block, "a block")
    hint = "assign the inner block to an attribute, which makes it a child"
    same(len(block.collect_params()), 2, "the number of the block's parameters", hint)
    block.initialize()
    x = nd.array([[1, 2, 3], [4, 5, -6]])
    for how in ("", " after hybridize()"):
        actual = tried(f"the block{how}", block, x)
        actual = expect(actual, NDArray, "an array", f"from the block{how}, ").asnumpy()
        hint = "return the input plus the inner block's output"
        if np.array_equal(actual, inner(x).asnumpy()):
            hint = "this is the inner block's output, without the input"
        equal(actual, (x + inner(x)).asnumpy(), f"the result of the block{how}", hint, 1e-5)
        block.hybridize()
    functions = block, lambda x: x + inner(x)
    actual, expected = (vjp(f, x)[1](x.ones_like())[0].asnumpy() for f in functions)
    hint = "both the input and the inner block lead back to it"
    equal(actual, expected, "the gradient of the input", hint, 1e-5)
    return "the input bypasses the inner block, and shapes are inferred from the data"


EXERCISES = {"14.3": Exercise("your class Residual", residual)}
