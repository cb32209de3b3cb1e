"""Chapter 16: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

from functools import partial

from minihybrid_course.exercises.judging import Exercise
from minihybrid_course.exercises.passes import rearranges

EXERCISES = {
    "16.2": Exercise(
        "your pass, a function from a graph to a graph",
        partial(rearranges, lambda nodes: nodes[::-1], "change only the order; [::-1] reverses it"),
    )
}
