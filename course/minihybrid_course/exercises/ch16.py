"""Chapter 16: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

from minihybrid_course.exercises.ch02 import of_two, refused
from minihybrid_course.exercises.judging import Exercise, kind, need, tried


def turned(pass_):
    """Check 16.2: a pass that reverses the nodes, and optimize reports it."""
    need(callable(pass_), f"expected a pass, which is a function, but got {kind(pass_)}")
    graph = of_two(lambda x, y: x * y + x)
    new = tried("the pass", pass_, graph)
    need(hasattr(new, "heads"), f"a pass must return a Graph, but yours returns {kind(new)}")
    need(
        len(new.nodes) == len(graph.nodes),
        f"{len(new.nodes)} of {len(graph.nodes)} nodes are left; change only their order",
    )
    need(
        tuple(new.nodes) != tuple(graph.nodes),
        "the nodes have the old order; [::-1] reverses a list",
    )
    need(
        tuple(new.nodes) == tuple(graph.nodes)[::-1],
        f"the order is {', '.join(node.name for node in new.nodes)}, which isn't the reverse",
    )
    return refused(graph, new)


EXERCISES = {"16.2": Exercise("your pass, a function from a graph to a graph", turned)}
