"""Chapter 01: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

from minihybrid_course.exercises.judging import Exercise, NotYet, expect, need, tried

RECIPES = (  # small ones first
    (("y = a",), {"a": 3.0}),
    (("y = a + b",), {"a": 3.0, "b": 4.0}),
    (("s = a + b", "y = s * 2"), {"a": 3.0, "b": 4.0}),
    (("s = a + b", "t = s * s", "y = t * s"), {"a": 3.0, "b": 4.0}),
    (("a1 = a - b", "y = a - a1"), {"a": 3.0, "b": 4.0}),
    (("s = a + b", "s1 = s * 2", "y = s1 - s"), {"a": 3.0, "b": 4.0}),
)


def merged(function):
    """Check 1.3: one expression means what the lines mean."""
    for lines, values in RECIPES:
        recipe = "; ".join(lines)
        text = tried(f"the recipe `{recipe}`", function, list(lines))
        expect(text, str, "a string", f"for `{recipe}`, ")
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
    return "one expression for each of six recipes, with the same result"


EXERCISES = {"1.3": Exercise("your function merge_lines(lines)", merged)}
