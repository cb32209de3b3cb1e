"""Chapter 13: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

from collections.abc import Mapping

from minihybrid.core import nd
from minihybrid_course.exercises.judging import Exercise, expect, need, tried

COUNTED = {  # small ones first
    "x + x": (lambda x: x + x, {"elemwise_add": 1}),
    "x * x * x": (lambda x: x * x * x, {"elemwise_mul": 2}),
    "tanh(x) + tanh(x)": (lambda x: nd.tanh(x) + nd.tanh(x), {"tanh": 2, "elemwise_add": 1}),
}


def counts(function):
    """Check 13.3: operators by name, with the number of calls."""
    for text, (traced, expected) in COUNTED.items():
        result = tried(f"count_operators of `{text}`", function, traced, (3,))
        names = dict(expect(result, Mapping, "names and counts", f"for `{text}`, "))
        need(
            None not in names and "null" not in names,
            f"for `{text}`, variables are counted as well: their `op` is None",
        )
        need(names == expected, f"for `{text}`, it returns {names} instead of {expected}")
    result = tried("with two shapes it", function, lambda x, y: x * y, (3,), (3,))
    need(dict(result) == {"elemwise_mul": 1}, f"for `x * y`, it returns {dict(result)}")
    return "each operator with its number of calls"


EXERCISES = {"13.3": Exercise("your function count_operators(function, *shapes)", counts)}
