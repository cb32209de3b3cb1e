"""Chapter 05: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

from functools import partial

import numpy as np

from minihybrid_course.exercises.ch04 import engine
from minihybrid_course.exercises.judging import Exercise, need
from minihybrid_course.exercises.passes import after, means_the_same

SCALED = {  # program -> (what it does, operators that are enough), small ones first
    "x + 2": (lambda n, x: x + 2, 1),
    "x * 2 * 3": (lambda n, x: x * 2 * 3, 1),
    "x * 2 * 3 * 4": (lambda n, x: x * 2 * 3 * 4, 1),
    "x * 2 + 3": (lambda n, x: x * 2 + 3, 2),
    "x + 2 + 3": (lambda n, x: x + 2 + 3, 2),
    "(x + 2) * 3 * 4": (lambda n, x: (x + 2) * 3 * 4, 2),
    "x * 2 * x * 3": (lambda n, x: x * 2 * x * 3, 3),
}


def improves(programs, advice, praise, pass_):
    """Check 5.2 and 6.2: a pass of nano keeps the semantics and shrinks programs."""
    n, x = engine(pass_), np.float32([[1, 2], [-3, 4]])

    def run(graph, values):
        return [n.run(graph, n.NDArray(values["x"]))[0].data]

    for text, (function, enough) in programs.items():
        graph = n.trace(partial(function, n), x=x.shape)
        now = after(pass_, graph, text)
        means_the_same(graph, now, text, {"x": x}, run, rtol=0, atol=0)
        alive = n.behind(now.heads)
        dead = [node.name for node in now.nodes if node.op and node not in alive]
        need(
            not dead,
            f"after the pass, {', '.join(dead)} of `{text}` is still computed, but it's dead code: "
            "dce removes it",
        )
        count = sum(node.op is not None for node in now.nodes)
        need(
            count <= enough,
            f"after the pass, `{text}` has {count} operators, but {enough} are enough: {advice}",
        )
    return praise


EXERCISES = {
    "5.2": Exercise(
        "your pass fold_numbers(graph)",
        partial(
            improves,
            SCALED,
            "look at the new input, which may already be a product",
            "any chain of products becomes one, and sums are left alone",
        ),
    )
}
