"""Chapter 16: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

from minihybrid_course.exercises.ch02 import of_two, refused
from minihybrid_course.exercises.judging import Exercise, Part, Parts, kind, need, tried


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


EXERCISES = {
    "16.1": Parts(
        "a pair: the numbers of the two rules, counted from 1",
        "the other two hide infinities, zeros and NaN",
        Part(
            "the first rule",
            "448c49a4ff",
            "applying relu twice gives the same as once",
            {2: "infinity minus infinity is NaN", 4: "zero divided by zero is NaN"},
        ),
        Part(
            "the second rule",
            "f61c02d22e",
            "which of the others also holds for infinity and zero?",
            {2: "infinity minus infinity is NaN, not 0", 4: "zero divided by zero is NaN, not 1"},
        ),
        whole={(2, 4): "these are the two that fail on some floats"},
        ordered=False,
    ),
    "16.2": Exercise("your pass, a function from a graph to a graph", turned),
    "16.3": Parts(
        "the smallest number of steps",
        "the same operator on the same input, with two different scalars",
        Part(
            "the number of steps",
            "a2478f4a33",
            "start from one step, and try all two hundred seeds for each number of steps",
            {
                12: "that's the chapter's program; shorter ones also break",
                13: "that's a number of operators, and not for the shortest program",
                1: "with one step, there's nothing to merge",
                3: "one of the seeds already breaks with fewer steps",
            },
        ),
    ),
}
