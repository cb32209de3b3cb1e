"""Chapter 04. What the exercises of nano ask, and how the answers are judged.

Takes:   answers that are written with nano, the reader's own engine, or ours.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`; `NANO`, the file with nano.
What is left out: the nine steps, which `look.steps` judges.
"""

from pathlib import Path
from types import SimpleNamespace

import numpy as np

from minihybrid.look.exercises.judging import Exercise, Part, Parts, kind, need, tried

NANO = Path(__file__).parents[2] / "data/nano.txt"
REPLACED = "a second backward replaces x.grad, and does not add to it"
KEPT = "nobody threw the tape away, as long as y lives"


def engine(function):
    """The nano that a function was written with: its notebook's names, or else ours."""
    names = getattr(function, "__globals__", {})
    if "mul_number" not in names:
        text = NANO.read_text(encoding="utf-8").partition("# step 10: ")[0]  # of these chapters
        exec(text, names := {})
    return SimpleNamespace(**names)


def numbers_of(n, text, function, *args):
    """The numbers of a result, which must be a value of nano."""
    found = tried(f"`{text}`", function, *args)
    need(isinstance(found, n.NDArray), f"`{text}` gives {kind(found)}, but no NDArray")
    return found.data


# -- values and a tape -------------------------------------------------------------------
SIGNS = {  # for a = [5, 6] and b = [1, 2]
    "-a": (lambda a, b: -a, [-5, -6]),
    "a - b": (lambda a, b: a - b, [4, 4]),
    "a - 3": (lambda a, b: a - 3, [2, 3]),
}


def subtracts(arrays):
    """Judge 4.1: numbers, and the tape, of the old operators."""
    n = engine(getattr(arrays, "interpret", None))
    a, b = (tried(f"NDArray({numbers})", arrays, numbers) for numbers in ([5, 6], [1, 2]))
    what = f"{kind(a)} came of it" if isinstance(arrays, type) else f"{kind(arrays)} was handed in"
    need(isinstance(a, n.NDArray), f"the class NDArray is needed, but {what}")
    for text, (sign, wanted) in SIGNS.items():
        found = numbers_of(n, text, sign, a, b)
        need(
            np.array_equal(found, wanted),
            f"for a = [5, 6] and b = [1, 2], `{text}` is {found.tolist()}, but {wanted} is needed",
        )
    a.attach_grad()
    b.attach_grad()
    with n.record():
        y = a - b
    need(
        y.op in (None, n.add, n.add_number, n.mul, n.mul_number),
        f"`a - b` is a new operator, {getattr(y.op, 'name', '')}: a sum and a product will do",
    )
    y.backward()
    need(
        np.any(b.grad.data),
        "the numbers are right, but the gradient of b in `a - b` stays 0: nothing is on the "
        "tape, since no operator was applied to the values themselves",
    )
    found = b.grad.data.tolist()
    need(found == [-1, -1], f"the gradient of b in `a - b` is {found}, but -1 each is right")
    return "a sum and a product, which have their gradients already"


def exponential(op):
    """Judge 4.2: the numbers of exp, and its gradient in a chain."""
    n = engine(vars(type(op)).get("__call__"))
    record = f"an Op is needed, with its gradient rule, not {kind(op)}"
    need(not isinstance(op, np.ufunc), record)
    need(
        ... not in getattr(op, "__dict__", {}).values(),
        "the dots are still there: what it computes, and its gradient rule",
    )
    x, once = n.NDArray([0, 1, 2]), np.exp(np.float32([0, 1, 2]))
    found = numbers_of(n, "exp([0, 1, 2])", op, x)
    need(np.allclose(found, once), f"exp of [0, 1, 2] is {found.tolist()}, not {once.tolist()}")
    need(isinstance(op, n.Op), record)
    rule = tried("the gradient rule", op.grad, n.NDArray([1, 1, 1]), op(x), x)
    need(
        isinstance(rule, tuple),
        f"the gradient rule gives {kind(rule)}, but a tuple is needed, with one gradient for "
        "each input: a comma behind a single entry makes one",
    )
    x.attach_grad()
    with n.record():
        y = op(x) * 3
    tried("y.backward()", lambda: (y.backward(),))
    found, case = x.grad.data, "the gradient of `exp(x) * 3` at [0, 1, 2]"
    need(
        not np.allclose(found, once),
        f"{case} came out as that of `exp(x)`: the rule forgets g, what comes back to exp",
    )
    need(
        np.allclose(found, 3 * once, rtol=1e-4),
        f"{case} is {found.tolist()}, but {(3 * once).tolist()} is right: how fast does exp grow?",
    )
    return "the rule has use for the result, which is computed already"


EXERCISES = {
    "4.1": Exercise("your class NDArray with subtraction", subtracts),
    "4.2": Exercise("your operator exp", exponential),
    "4.3": Exercise(
        "the three elements of x.grad after both calls",
        Parts(
            "4.3",
            "y holds the tape, and a second walk finds the same",
            *(
                Part(
                    f"x.grad[{k}]",
                    right,
                    "try it: two calls in a cell, then x.grad",
                    {twice: REPLACED, 0: KEPT},
                )
                for k, (right, twice) in enumerate(
                    (("a39e03cfc7", 6), ("be4ead74db", 24), ("584db518a5", 54))
                )
            ),
            whole={(1, 4, 9): "that is not the gradient; the power brings a factor"},
        ),
    ),
    "4.4": Exercise(
        "a pair: the number of values that behind returns, and how many of them have an op",
        Parts(
            "4.4",
            "the tape is the values, and each of them but x was made by somebody",
            Part(
                "the number of values",
                "99c1ce55d2",
                "count x, each sign, and what `sum` of a Value is made of",
                {
                    4: "`sum` applies two operators: look at how step 1 writes it",
                    6: "x is one value, however often it is used",
                    3: "x and the results in between are values, too",
                },
            ),
            Part(
                "the number of those with an op",
                "3ac275a35b",
                "who made x?",
                {
                    5: "nobody made x: its numbers were given",
                    3: "`sum` applies two operators: look at how step 1 writes it",
                    1: "the tape is all of them: each result keeps who made it",
                },
            ),
        ),
    ),
    "4.5": Exercise(
        "a pair: the bytes of all values that behind returns, with recording and without",
        Parts(
            "4.5",
            "a tape keeps what was computed, until nobody holds its end",
            Part(
                "the number of bytes, recorded",
                "db55646992",
                "add up `v.data.nbytes` for all that behind finds",
                {
                    400_000: "x itself is found, too, and lies in memory",
                    808_000: "a number of nano's has four bytes, not eight",
                    4000: "that is the last value alone; y knows those before it",
                    101_000: "these are numbers; each has four bytes",
                },
            ),
            Part(
                "the number of bytes, not recorded",
                "11587359e0",
                "outside of record(), what does a result know of its inputs?",
                {
                    404_000: "outside of record() a result keeps no inputs, so behind finds one",
                    0: "y itself lies in memory",
                    8000: "x is not found: y does not know it",
                    1000: "these are numbers; each has four bytes",
                },
            ),
        ),
    ),
}
