"""Chapter 10: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

import contextlib
import io

import numpy as np

from minihybrid.core import nd
from minihybrid.core.array import NDArray
from minihybrid.core.graph import Graph
from minihybrid.view.viz import plural
from minihybrid_course.exercises.ch03 import calls
from minihybrid_course.exercises.judging import Exercise, equal, need, tried

# -- a loop on data, a printed graph ---------------------------------------------------------
HALVED = (  # x, and how often it is halved, small ones first
    ([[0.5, 1]], 0),
    ([[2, 1]], 1),
    ([[3, 1]], 2),
    ([[8, 2], [1, 4]], 3),
    ([[1000, 16]], 8),
)


def halves(function):
    """Check 10.2: halved as often as the largest element needs, at most eight times."""
    for numbers, turns in HALVED:
        x = np.float32(numbers)
        single = x.copy()
        for _ in range(8):
            single = np.where(single > 1, single / 2, single)
        for active in (False, True):
            actual = calls(function, nd.array(x), active)[0]
            case = f"for x = {x.tolist()}{', hybridized,' if active else ''}"
            hint = f"halve x {plural(turns, 'time')}"
            if np.array_equal(actual, single):
                hint = "here each element decides for itself, but the largest must decide for all"
            equal(actual, x / 2**turns, f"{case} the result", hint, rtol=0, atol=0)
    return "the graph contains eight iterations, and the ones past the end keep x"


def prints_graph(function):
    """Check 10.3: the graph is printed, and nothing is computed."""
    for names in (("x",), ("x", "y"), ("x", "y", "z")):
        seen = []

        def program(*values, seen=seen):
            seen.extend(values)
            return nd.tanh(sum(values[1:], values[0] * 2))

        case = f"for {len(names)} array{'s' * (len(names) > 1)}"
        arrays = [nd.ones((2, 3)) for _ in names]
        with contextlib.redirect_stdout(io.StringIO()) as out:
            (result,) = tried(case, lambda arrays=arrays: (function(program, *arrays),))
        text = out.getvalue()
        need(
            not any(isinstance(value, NDArray) for value in seen),
            f"{case}, the function got arrays, so it computed: trace passes it symbols",
        )
        returned = "; it returns a Graph, so print its show()" * isinstance(result, Graph)
        need(text.strip(), f"{case}, nothing is printed{returned}")
        need(
            "tanh" in text and text.count("elemwise_add") >= len(names) - 1,
            f"{case}, it prints `{text.strip().splitlines()[0]}`, which doesn't show the "
            "operators: print `graph.show()`, which has a line for each",
        )
    return "one line per operator, and nothing was computed"


EXERCISES = {
    "10.2": Exercise("your function halve(F, x), with F.where", halves),
    "10.3": Exercise("your function make_graph(function, *arrays)", prints_graph),
}
