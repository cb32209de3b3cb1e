"""Chapter 13: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

from minihybrid.core import nd
from minihybrid.core.op import HybridError
from minihybrid_course.exercises.judging import Exercise, Part, Parts, Refusal, kind, need, tried

COUNTED = {  # small ones first
    "x + x": (lambda x: x + x, {"elemwise_add": 1}),
    "x * x * x": (lambda x: x * x * x, {"elemwise_mul": 2}),
    "tanh(x) + tanh(x)": (lambda x: nd.tanh(x) + nd.tanh(x), {"tanh": 2, "elemwise_add": 1}),
}


def counts(function):
    """Check 13.3: operators by name, with the number of calls."""
    for text, (traced, expected) in COUNTED.items():
        result = tried(f"count_operators of `{text}`", function, traced, (3,))
        need(
            hasattr(result, "items"),
            f"for `{text}`, expected names and counts, but got {kind(result)}",
        )
        names = dict(result)
        need(
            None not in names and "null" not in names,
            f"for `{text}`, variables are counted as well: their `op` is None",
        )
        need(names == expected, f"for `{text}`, it returns {names} instead of {expected}")
    result = tried("with two shapes it", function, lambda x, y: x * y, (3,), (3,))
    need(dict(result) == {"elemwise_mul": 1}, f"for `x * y`, it returns {dict(result)}")
    return "each operator with its number of calls"


EXERCISES = {
    "13.1": Parts(
        "a pair: the number of operators, and the name of the first, as graph.show() prints it",
        "0 + x is an operator, and it comes first",
        Part(
            "the number of operators",
            "e128d0365b",
            "sum starts from an initial value",
            {
                2: "sum starts from 0, and 0 + x is an operator on an array and a scalar",
                1: "each + is an operator; Python's sum is a loop",
                4: "x is a variable, not an operator",
            },
        ),
        Part(
            "the first one",
            "4feccad1c0",
            "look at the first line of graph.show() that isn't a variable, after the =",
            {
                "elemwise_add": "the first + adds a scalar to an array",
                "_plusscalar0": "that's the name of the node; the operator comes after the =",
                "sum": "Python's sum is a loop, and the tracer sees only its operators",
            },
        ),
    ),
    "13.2": Refusal(
        "...",
        "a traced function must return symbols computed from its inputs",
        HybridError,
        r"must return|returns? ",
        lambda result: f"it returned {kind(result)}: make the function return a Python number",
    ),
    "13.3": Exercise("your function count_operators(function, *shapes)", counts),
}
