"""Chapter 02: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

import numpy as np

from minihybrid.core.graph import GraphError
from minihybrid.core.op import Spec
from minihybrid.core.passes import cse, dce, optimize
from minihybrid.core.sym import trace
from minihybrid_course.exercises.judging import (
    Exercise,
    NotYet,
    after,
    error_text,
    kind,
    means_the_same,
    need,
)

NUMBERS = {"x": np.float32([2, -1]), "y": np.float32([3, 5])}


def graph_of(function, **shapes):
    """The graph of a function of symbols with these shapes."""
    specs = {name: Spec(shape, np.dtype("float32")) for name, shape in shapes.items()}
    return trace(function, specs)[0]


def of_two(function):
    """The graph of a function of x and y, of two numbers each."""
    return graph_of(function, x=(2,), y=(2,))


PRODUCTS = {  # small ones first
    "x * y": lambda x, y: x * y,
    "x - y": lambda x, y: x - y,
    "y - x": lambda x, y: y - x,
    "x * y + y * x": lambda x, y: x * y + y * x,
    "(y * x) * x + x * (x * y)": lambda x, y: (y * x) * x + x * (x * y),
    "(x * 2) * (x * 3)": lambda x, y: (x * 2) * (x * 3) + y,
}
LEFT = {"x * y + y * x": 2, "(y * x) * x + x * (x * y)": 3}


def sorts_inputs(pass_):
    """Check 2.3: cse finds mirrored products, and the semantics stay."""
    for text, function in PRODUCTS.items():
        graph = of_two(function)
        now = after(pass_, graph, text)
        means_the_same(graph, now, text, NUMBERS)
        count = dce(cse(now)).n_ops
        need(
            count <= LEFT.get(text, count),
            f"after the pass, cse leaves {count} operators of `{text}`, but {LEFT.get(text)} "
            "are enough: two products still have their inputs in different orders",
        )
    return "cse merges x * y with y * x, but not x - y with y - x"


def breaks_the_first(pass_):
    """Check 2.2: the pass drops the first node, and optimize reports it."""
    need(callable(pass_), f"expected a pass, which is a function, but got {kind(pass_)}")
    graph = of_two(lambda x, y: x * y + x)
    try:
        broken = pass_(graph)
    except Exception as error:
        raise NotYet(f"the pass itself fails: {error_text(error)}") from None
    need(broken is not None, "the pass returns None, but it must return a graph")
    need(hasattr(broken, "heads"), f"a pass must return a Graph, but yours returns {kind(broken)}")
    need(
        len(broken.nodes) < len(graph.nodes),
        f"the graph still has all {len(broken.nodes)} nodes; drop the first of graph.nodes",
    )
    need(
        graph.nodes[0] not in broken.nodes,
        f"{graph.nodes[0].name} is still there: the first node is graph.nodes[0]",
    )
    need(
        len(broken.nodes) == len(graph.nodes) - 1,
        f"{len(broken.nodes)} of {len(graph.nodes)} nodes are left; drop only the first",
    )
    return refused(graph, broken)


def refused(graph, broken):
    """The message for a broken graph: the one from optimize."""
    try:
        optimize(graph, (lambda graph: broken,))
    except GraphError as error:
        return f"optimize reports: {error}"
    raise NotYet("optimize accepts this graph, so it isn't broken")


EXERCISES = {
    "2.2": Exercise("your pass, which drops the first node", breaks_the_first),
    "2.3": Exercise("your pass sort_inputs(graph)", sorts_inputs),
}
