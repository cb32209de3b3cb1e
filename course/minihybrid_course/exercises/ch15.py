"""Chapter 15: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

import numpy as np

from minihybrid.core import nd
from minihybrid.core.passes import dce
from minihybrid_course.exercises.ch02 import NUMBERS, graph_of
from minihybrid_course.exercises.judging import Exercise, after, means_the_same, need


def minus(x, times):
    """X with so many minus signs before it."""
    for _ in range(times):
        x = -x
    return x


SIGNS = {  # small ones first: the function, and how many operators are left
    "-x": (lambda x, y: -x, 1),
    "-(-x)": (lambda x, y: minus(x, 2), 0),
    "-(x + -x)": (lambda x, y: -(x + -x), 3),
    "-(-x) * -y": (lambda x, y: minus(x, 2) * -y, 2),
    "-(-(-x))": (lambda x, y: minus(x, 3), 1),
    "-(-(-(-x)))": (lambda x, y: minus(x, 4), 0),
}


def drops_signs(pass_):
    """Check 15.3: pairs of minus signs go, and the semantics stay."""
    for text, (function, expected) in SIGNS.items():
        graph = dce(graph_of(function, x=(2,), y=(2,)))
        now = after(pass_, graph, text)
        means_the_same(graph, now, text, NUMBERS)
        count = dce(now).n_ops
        need(
            count == expected,
            f"after the pass and dce, `{text}` has {count} operators, but {expected} are "
            "enough: there are still two consecutive signs",
        )
    return "pairs of signs are removed, single ones stay"


def product_of_three(a, b, c):
    """The chain of 15.4."""
    return nd.dot(nd.dot(a, b), c)


def product_read_twice(a, b, c):
    """A chain whose inner product is also a result."""
    inner = nd.dot(a, b)
    return nd.dot(inner, c), inner


CHAINS = {  # the function, the shapes, and how many multiplications are enough
    "dot(a, b)": (lambda a, b: nd.dot(a, b), ((2, 3), (3, 2)), 12),
    "dot(dot(a, b), c)": (product_of_three, ((3, 3), (3, 3), (3, 1)), 18),
    "dot(dot(a, b), c), where a is a row": (product_of_three, ((1, 3), (3, 3), (3, 3)), 18),
    "dot(dot(a, b), c), and dot(a, b) again": (product_read_twice, ((3, 3), (3, 3), (3, 1)), 36),
    "dot(dot(a, b, transpose_a=True), c)": (
        lambda a, b, c: nd.dot(nd.dot(a, b, transpose_a=True), c),
        ((2, 3), (2, 3), (3, 1)),
        27,
    ),
}


def multiplications(graph):
    """How many a graph's products take: n k m for (n, k) by (k, m)."""
    count = 0
    for node in graph.nodes:
        if node.op and node.op.name == "dot":
            (left, i), _ = node.inputs
            count += node.specs[0].size * left.specs[i].shape[not node.attrs["transpose_a"]]
    return count


def reassociates(pass_):
    """Check 15.4: the semantics stay, and no product takes more than it must."""
    for text, (function, shapes, enough) in CHAINS.items():
        shapes = dict(zip("abc", shapes, strict=False))
        graph = graph_of(function, **shapes)
        now = after(pass_, graph, text)
        values = {
            name: np.arange(1, 1 + np.prod(shape), dtype="float32").reshape(shape)
            for name, shape in shapes.items()
        }
        means_the_same(graph, now, text, values)
        count = multiplications(dce(now))
        need(
            count <= enough,
            f"with shapes {', '.join(map(str, shapes.values()))}, `{text}` takes {count} "
            f"multiplications after the pass, but {enough} are enough",
        )
    return "it picks the cheaper order, and leaves a product with other users alone"


EXERCISES = {
    "15.3": Exercise("your pass double_negative(graph)", drops_signs),
    "15.4": Exercise("your pass reassociate(graph)", reassociates),
}
