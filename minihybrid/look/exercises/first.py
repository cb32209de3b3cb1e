"""Chapters 00 and 01. What their exercises ask, and how the answers are judged.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
What is left out: exercises that measure; a time is neither right nor wrong.
"""

import math

from minihybrid.core.op import ShapeError
from minihybrid.core.tracing import TraceError
from minihybrid.look.exercises.judging import (
    Exercise,
    NotYet,
    Part,
    Parts,
    Refusal,
    kind,
    need,
    tried,
)


def two_losses(answer):
    """Judge 0.3: lower with momentum, and not for a trivial reason."""
    need(
        isinstance(answer, (tuple, list)) and len(answer) == 2,
        f"two losses are needed, without and with momentum, but {kind(answer)} was handed in",
    )
    numbers = all(isinstance(loss, (int, float)) and math.isfinite(loss) for loss in answer)
    need(numbers, f"a loss is a finite number, but {answer} was handed in")
    plain, moving = answer
    need(
        plain != moving,
        f"both losses are {plain}: the momentum did not reach the trainer, or one loss "
        "was handed in twice",
    )
    need(
        moving < plain,
        f"{moving} with momentum is above {plain} without: the two are in the wrong order, or "
        "the second network did not start from the same seed",
    )
    need(
        plain < 2.5,
        f"{plain} without momentum is more than one guesses by chance, 2.3: divide the summed "
        "loss by the number of images",
    )
    return f"after five epochs the loss is {plain / max(moving, 1e-9):.1f} times lower"


RECIPES = (  # small ones first
    (("y = a",), {"a": 3.0}),
    (("y = a + b",), {"a": 3.0, "b": 4.0}),
    (("s = a + b", "y = s * 2"), {"a": 3.0, "b": 4.0}),
    (("s = a + b", "t = s * s", "y = t * s"), {"a": 3.0, "b": 4.0}),
    (("a1 = a - b", "y = a - a1"), {"a": 3.0, "b": 4.0}),
)


def merged(function):
    """Judge 1.3: one expression means what the lines mean."""
    for lines, values in RECIPES:
        recipe = "; ".join(lines)
        text = tried(f"the recipe `{recipe}`", function, list(lines))
        need(isinstance(text, str), f"for `{recipe}` it gives {kind(text)}, but a text is needed")
        need("=" not in text, f"for `{recipe}` it gives `{text}`: an expression has no `=`")
        exec("\n".join(lines), wanted := dict(values))
        try:
            found = eval(text, dict(values))
        except NameError as error:
            raise NotYet(
                f"for `{recipe}` it gives `{text}`, where {error.name} still stands: put in "
                "what it was made of"
            ) from None
        except SyntaxError:
            raise NotYet(f"for `{recipe}` it gives `{text}`, which is no expression") from None
        need(
            found == wanted["y"],
            f"for `{recipe}` it gives `{text}`, which is {found} and not {wanted['y']}; each "
            "line goes in as a whole, in brackets",
        )
    return "one expression for each of five recipes, with the same result"


EXERCISES = {
    "0.1": Exercise(
        "a pair: the number of parameters and the number of kernels",
        Parts(
            "0.1",
            "the new layer brings a matrix, a bias for each row, and one product",
            Part(
                "the number of numbers to find",
                "00adba7af0",
                "go layer by layer, inputs times outputs, and one bias for each output",
                {
                    4810: "that is what two layers have; the third one comes on top",
                    4160: "that is the new layer alone; add those of the other two",
                    8832: "those are the weights; each output has a bias, too",
                    8906: "the new layer has biases, too, 64 of them",
                },
            ),
            Part(
                "the number of kernels",
                "158c355429",
                "count the products; what is done element by element rides along",
                {
                    2: "that is the network of the chapter; the new product needs one of its own",
                    5: "the two relus run inside the kernels of their products",
                    6: "biases and relus run inside the kernels of their products",
                },
            ),
        ),
    ),
    "0.2": Exercise(
        "a function that makes the error, such as `lambda: net(...)`",
        Refusal(
            "the message names the operator, the 49 pixels, and the weight that would fit",
            ShapeError,
            r"\b49\b",
            lambda found: (
                f"the network answered with shape {getattr(found, 'shape', None)}: 8 by 8 pixels "
                "are what it knows, 7 by 7 are asked for"
            ),
            {
                r"\(64, 7\)": "these are 7 images of 7 pixels: the batch's axis is missing",
                r"is not defined": "this is Python's error; a name is missing, run the cells above",
            },
        ),
    ),
    "0.3": Exercise(
        "a pair: the final loss without momentum and the final loss with it", two_losses
    ),
    "1.1": Exercise(
        "a pair: the number of operators in the first graph and in the second",
        Parts(
            "1.1",
            "a call notes down its operator, however often its result is used",
            Part(
                "the number in `square(x) + square(x)`",
                "68caa96782",
                "each call notes down one operator, and the sum is one",
                {1: "count the products, too, not only the sum", 4: "x is a variable, no operator"},
            ),
            Part(
                "the number in `twice(square(x))`",
                "3e673fb0fd",
                "square is called once; its result is used twice",
                {
                    3: "square is called once here; its result is used twice",
                    1: "twice notes down a sum, and square before it a product",
                },
            ),
            whole={(2, 3): "these two are exchanged: calling twice notes down twice"},
        ),
    ),
    "1.2": Exercise(
        "a function that makes the error, such as `lambda: ...`",
        Refusal(
            "the engine names the array among symbols, and where it should come in instead",
            TraceError,
            "NDArray",
            lambda found: (
                f"a {type(found).__name__} came: one factor must be a symbol and one an array"
            ),
            {
                r"is not defined": "this is Python's error; a name is missing, run the cells above",
                r"shape": "both are arrays here; one factor must be a symbol",
            },
        ),
    ),
    "1.3": Exercise("your function merge_lines(lines)", merged),
    "1.4": Exercise(
        "a pair: the number of calls from Python, for bill and for the compiled function",
        Parts(
            "1.4",
            "so there is less to call from Python, however few numbers there are",
            Part(
                "the number for bill",
                "f1e7445f6e",
                "count the signs between arrays in the three lines",
                {
                    2: "the last line has a sign, too",
                    1: "that is the compiled function; line by line each sign is a call",
                    4: "the assignments call nothing",
                },
            ),
            Part(
                "the number for the compiled function",
                "abb7e3f58b",
                "what does Python know of the operators, once there is a program for all?",
                {
                    3: "the operators are in the program, and Python calls the program",
                    2: "products and sums are in the same program",
                    0: "somebody must call the program",
                },
            ),
        ),
    ),
}
