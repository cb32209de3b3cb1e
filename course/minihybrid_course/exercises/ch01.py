"""Chapter 01: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

from minihybrid.core.tracing import TraceError
from minihybrid_course.exercises.judging import (
    Exercise,
    NotYet,
    Part,
    Parts,
    Refusal,
    kind,
    need,
    tried,
)

RECIPES = (  # small ones first
    (("y = a",), {"a": 3.0}),
    (("y = a + b",), {"a": 3.0, "b": 4.0}),
    (("s = a + b", "y = s * 2"), {"a": 3.0, "b": 4.0}),
    (("s = a + b", "t = s * s", "y = t * s"), {"a": 3.0, "b": 4.0}),
    (("a1 = a - b", "y = a - a1"), {"a": 3.0, "b": 4.0}),
)


def merged(function):
    """Check 1.3: one expression means what the lines mean."""
    for lines, values in RECIPES:
        recipe = "; ".join(lines)
        text = tried(f"the recipe `{recipe}`", function, list(lines))
        need(isinstance(text, str), f"for `{recipe}`, expected a string, but got {kind(text)}")
        need("=" not in text, f"for `{recipe}`, it returns `{text}`: an expression has no `=`")
        exec("\n".join(lines), expected := dict(values))
        try:
            actual = eval(text, dict(values))
        except NameError as error:
            raise NotYet(
                f"for `{recipe}`, it returns `{text}`, which still contains {error.name}: "
                "replace it by its expression"
            ) from None
        except SyntaxError:
            raise NotYet(
                f"for `{recipe}`, it returns `{text}`, which isn't an expression"
            ) from None
        need(
            actual == expected["y"],
            f"for `{recipe}`, it returns `{text}`, which is {actual} rather than {expected['y']}: "
            "put each inserted expression in parentheses",
        )
    return "one expression for each of five recipes, with the same result"


EXERCISES = {
    "1.1": Parts(
        "a pair: the number of operators in the first graph and in the second",
        "each call records an operator, however often its result is used",
        Part(
            "the number for `square(x) + square(x)`",
            "68caa96782",
            "each call records one operator, and the sum is another",
            {1: "also count the products", 4: "x is a variable, not an operator"},
        ),
        Part(
            "the number for `twice(square(x))`",
            "3e673fb0fd",
            "square is called once; its result is used twice",
            {
                3: "square is called once here; its result is used twice",
                1: "square records a product, and then twice records a sum",
            },
        ),
        whole={(2, 3): "you swapped the two: two calls record two operators"},
    ),
    "1.2": Refusal(
        "...",
        "the error names the array among the symbols, and how to pass it instead",
        TraceError,
        "NDArray",
        lambda result: (
            f"it returned a {type(result).__name__}: one factor must be a symbol, one an array"
        ),
        {r"shape": "both factors are arrays here; one must be a symbol"},
    ),
    "1.3": Exercise("your function merge_lines(lines)", merged),
    "1.4": Parts(
        "a pair: the number of calls from Python, for bill and for the compiled function",
        "Python makes fewer calls, however small the arrays are",
        Part(
            "the number for bill",
            "f1e7445f6e",
            "count the infix operators between arrays in the three lines",
            {
                2: "the last line also contains an operator",
                1: "that's the compiled function; in bill, each infix operator is a call",
                4: "an assignment doesn't call an operator",
            },
        ),
        Part(
            "the number for the compiled function",
            "abb7e3f58b",
            "which calls are left once all operators are in one program?",
            {
                3: "the operators are inside the program, and Python calls only that",
                2: "products and sums are in the same program",
                0: "the program itself has to be called",
            },
        ),
    ),
}
