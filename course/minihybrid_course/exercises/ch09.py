"""Chapter 09: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

import numpy as np

from minihybrid.core import nd
from minihybrid.gluon import nn
from minihybrid_course.exercises.judging import Exercise, need, tried, yes_or_no


# -- the same, to the last bit -------------------------------------------------------------
def dense(rows):
    """A dense layer with these weights, without a bias."""
    layer = nn.Dense(len(rows), in_units=2, use_bias=False, weight_initializer="zeros")
    layer.initialize()
    layer.weight.set_data(nd.array(np.float32(rows)))
    return layer


NEARLY_1 = np.nextafter(np.float32(1), np.float32(2))
WEIGHTS = {  # what is compared on [[1, 0]] -> the weights of two layers, the same answers?
    "two equal layers": ([[1, 2]], [[1, 2]], True),
    "layers of weights 1 and 3": ([[1, 2]], [[3, 2]], False),
    "layers whose outputs differ in the last bit": ([[1, 2]], [[NEARLY_1, 2]], False),
    "layers whose second outputs differ": ([[1, 2], [1, 2]], [[1, 2], [4, 2]], False),
    "layers of one and two outputs": ([[1, 2]], [[1, 2], [1, 2]], False),
    "layers that differ where x is 0": ([[1, 2]], [[1, 5]], True),
}


def compares(function):
    """Check 9.3: the same outputs, bit for bit."""
    x = nd.array([[1, 0]])
    for text, (*weights, expected) in WEIGHTS.items():
        block, other = map(dense, weights)
        answer = tried(f"for {text}, the function", function, block, other, x)
        answer = yes_or_no(answer, f"for {text}, the result")
        need(
            answer == expected,
            f"for {text}, it returns {answer}, but their outputs for x are "
            f"{block(x).asnumpy().tolist()} and {other(x).asnumpy().tolist()}, which are "
            f"{'the same' if expected else 'different'}",
        )
    return "it compares the outputs, bit for bit, and nothing else"


EXERCISES = {"9.3": Exercise("your function same(block, other, x)", compares)}
