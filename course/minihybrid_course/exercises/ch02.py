"""Chapter 02: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

from functools import partial

from minihybrid.core.passes import cse, dce
from minihybrid_course.exercises.judging import Exercise
from minihybrid_course.exercises.passes import rearranges, shrinks

PRODUCTS = {  # small ones first: the function, and how many operators are left after cse
    "x * y": (lambda x, y: x * y, 1),
    "x - y": (lambda x, y: x - y, 1),
    "y - x": (lambda x, y: y - x, 1),
    "x * y + y * x": (lambda x, y: x * y + y * x, 2),
    "(y * x) * x + x * (x * y)": (lambda x, y: (y * x) * x + x * (x * y), 3),
    "(x * 2) * (x * 3) + y": (lambda x, y: (x * 2) * (x * 3) + y, 4),
}
EXERCISES = {
    "2.2": Exercise(
        "your pass, which drops the first node",
        partial(rearranges, lambda nodes: nodes[1:], "drop only graph.nodes[0]"),
    ),
    "2.3": Exercise(
        "your pass sort_inputs(graph)",
        partial(
            shrinks,
            PRODUCTS,
            lambda graph: dce(cse(graph)).n_ops,
            "two products still have their inputs in different orders: cse leaves {count} "
            "operators of {text}",
            "cse merges x * y with y * x, but not x - y with y - x",
        ),
    ),
}
