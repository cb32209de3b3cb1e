"""Chapter 36: checkers of its exercises.

Takes:   numbers, a function that raises an error, and a function of steps.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
What is left out: 36.1, a step of nano, and 36.5, which measures.
"""

from minihybrid_course.exercises.judging import Exercise, kind, need, tried

A, PART, NEW = ("a.0", "mul", "x.0", 2), ("v.0", "part", "a.0", (0, 2)), ("v.1", "add", "v.0", 1)
PUT = ("a.1", "put", "a.0", (0, 2), "v.1")
AGAIN = ("a.2", "put", "a.1", (1, 3), "v.1")
INPUT = ("x.1", "put", "x.0", (0, 2), "v.1")
TWO = ("b.1", "put", "a.0", (1, 3), "v.1")
CASES = [  # what it is about, steps, results, which puts may overwrite
    ("the old version isn't read again", [A, PART, NEW, PUT], ["a.1"], {"a.1"}),
    ("a later step reads a.0", [A, PART, NEW, PUT, ("t.0", "mul", "a.0", 2)], ["t.0"], set()),
    ("a later put reads a.0", [A, PART, NEW, PUT, TWO], ["a.1", "b.1"], {"b.1"}),
    ("a.0 is a result", [A, PART, NEW, PUT], ["a.0", "a.1"], set()),
    ("x.0 is an input", [A, PART, NEW, INPUT], ["x.1"], set()),
    ("each version is read once", [A, PART, NEW, PUT, AGAIN], ["a.2"], {"a.1", "a.2"}),
]


def overwrites(in_place):
    """Check 36.4: exactly the steps whose operand is dead afterwards."""
    for case, steps, results, expected in CASES:
        answer = tried(f"in_place, where {case},", in_place, list(steps), list(results))
        need(
            isinstance(answer, (set, frozenset)), f"expected a set of names, but got {kind(answer)}"
        )
        text = "; ".join(f"{out} = {op}({', '.join(map(str, a))})" for out, op, *a in steps)
        for names, what in (
            (answer - expected, "can't overwrite its operand"),
            (expected - answer, "may overwrite its operand, but it's missing"),
        ):
            first = min(map(str, names), default="")
            need(not names, f"in `{text}` with the results {results}, {first} {what}: {case}")
    return "a dead operand's memory is free for the next version"


EXERCISES = {"36.4": Exercise("your function in_place(steps, results)", overwrites)}
