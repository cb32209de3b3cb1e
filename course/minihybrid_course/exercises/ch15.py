"""Chapter 15: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

from functools import partial

from minihybrid.core import nd
from minihybrid_course.exercises.judging import Exercise
from minihybrid_course.exercises.passes import shrinks


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


def product_of_three(a, b, c):
    """The chain of 15.4."""
    return nd.dot(nd.dot(a, b), c)


def product_read_twice(a, b, c):
    """A chain whose inner product is also a result."""
    inner = nd.dot(a, b)
    return nd.dot(inner, c), inner


CHAINS = {  # the function, how many multiplications are enough, and the shapes
    "dot(a, b)": (lambda a, b: nd.dot(a, b), 12, ((2, 3), (3, 2))),
    "dot(dot(a, b), c)": (product_of_three, 18, ((3, 3), (3, 3), (3, 1))),
    "dot(dot(a, b), c), where a is a row": (product_of_three, 18, ((1, 3), (3, 3), (3, 3))),
    "dot(dot(a, b), c), and dot(a, b) again": (product_read_twice, 36, ((3, 3), (3, 3), (3, 1))),
    "dot(dot(a, b, transpose_a=True), c)": (
        lambda a, b, c: nd.dot(nd.dot(a, b, transpose_a=True), c),
        27,
        ((2, 3), (2, 3), (3, 1)),
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


EXERCISES = {
    "15.3": Exercise(
        "your pass double_negative(graph)",
        partial(
            shrinks,
            SIGNS,
            lambda graph: graph.n_ops,
            "there are still two consecutive signs: {text} has {count} operators",
            "pairs of signs are removed, single ones stay",
        ),
    ),
    "15.4": Exercise(
        "your pass reassociate(graph)",
        partial(
            shrinks,
            CHAINS,
            multiplications,
            "{text} takes {count} multiplications",
            "it picks the cheaper order, and leaves a product with other users alone",
        ),
    ),
}
