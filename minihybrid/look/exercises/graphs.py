"""Chapter 02. What its exercises ask, and how the answers are judged.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
What is left out: 2.4, which measures.
"""

import numpy as np

from minihybrid.core.graph import GraphError
from minihybrid.core.op import Spec
from minihybrid.core.passes import cse, dce, optimise
from minihybrid.core.sym import trace
from minihybrid.look.exercises.judging import (
    Exercise,
    NotYet,
    Part,
    Parts,
    after,
    kind,
    means_the_same,
    need,
    told,
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
    """Judge 2.3: cse finds mirrored products, and every meaning stays."""
    for text, function in PRODUCTS.items():
        graph = of_two(function)
        now = after(pass_, graph, text)
        means_the_same(graph, now, text, NUMBERS)
        count = dce(cse(now)).n_ops
        need(
            count <= LEFT.get(text, count),
            f"after the pass, cse leaves {count} operators of `{text}`, but {LEFT.get(text)} "
            "are enough: two products still read their inputs in different orders",
        )
    return "cse sees that x * y is y * x, and x - y is still not y - x"


def breaks_the_first(pass_):
    """Judge 2.2: the pass forgets the first node, and optimise says so."""
    need(callable(pass_), f"a pass is a function, but {kind(pass_)} was handed in")
    graph = of_two(lambda x, y: x * y + x)
    try:
        found = pass_(graph)
    except Exception as error:
        raise NotYet(f"the pass itself fails: {told(error)}") from None
    need(found is not None, "the pass gives None; it must return a graph")
    need(hasattr(found, "heads"), f"a pass gives a Graph, but it gave {kind(found)}")
    need(
        len(found.nodes) < len(graph.nodes),
        f"the graph still has its {len(found.nodes)} nodes; leave out the first of graph.nodes",
    )
    need(
        graph.nodes[0] not in found.nodes,
        f"{graph.nodes[0].name} is still there: the first node is graph.nodes[0]",
    )
    need(
        len(found.nodes) == len(graph.nodes) - 1,
        f"{len(found.nodes)} nodes of {len(graph.nodes)} are left; leave out only the first",
    )
    return refused(graph, found)


def refused(graph, found):
    """Praise a graph that is broken, with what optimise says of it."""
    try:
        optimise(graph, (lambda graph: found,))
    except GraphError as error:
        return f"optimise says: {error}"
    raise NotYet("optimise takes this graph, so nothing in it is broken")


EXERCISES = {
    "2.1": Exercise(
        "the number of bytes",
        Parts(
            "2.1",
            "two values live at the same time, and the third takes the second one's place",
            Part(
                "the number of bytes",
                "77082928b4",
                "draw the lifetimes: who is alive when the second value is written?",
                {
                    24: "that is the arena; the output was forgotten, which needs memory, too",
                    72: "r may take the place of q, which it reads for the last time",
                    64: "a place begins at a multiple of 64, but the arena ends with its last byte",
                    88: "a place begins at a multiple of 64, but the output lies elsewhere",
                    128: "a place begins at a multiple of 64, but nothing is rounded up at the end",
                    96: "the inputs do not count",
                },
            ),
        ),
    ),
    "2.2": Exercise("your pass, which drops the first node", breaks_the_first),
    "2.3": Exercise("your pass sort_inputs(graph)", sorts_inputs),
}
