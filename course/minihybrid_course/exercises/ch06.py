"""Chapter 06: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

from functools import partial

from minihybrid_course.exercises.ch05 import improves
from minihybrid_course.exercises.judging import Exercise

TURNED = {
    "transpose(x)": (lambda n, x: n.transpose(x), 1),
    "transpose(transpose(x))": (lambda n, x: n.transpose(n.transpose(x)), 0),
    "relu(transpose(x))": (lambda n, x: n.relu(n.transpose(x)), 2),
    "transpose(transpose(x)) * 2": (lambda n, x: n.transpose(n.transpose(x)) * 2, 1),
    "transpose, three times": (lambda n, x: n.transpose(n.transpose(n.transpose(x))), 1),
}


EXERCISES = {
    "6.2": Exercise(
        "your pass untwist(graph)",
        partial(
            improves,
            TURNED,
            "the result of transposing twice already exists",
            "two that cancel are removed, and a single one stays",
        ),
    )
}
