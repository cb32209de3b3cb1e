"""Chapter 00: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

import math

from minihybrid.core.op import ShapeError
from minihybrid_course.exercises.judging import Exercise, Part, Parts, Refusal, kind, need


def two_losses(answer):
    """Check 0.3: lower with momentum, and not for a trivial reason."""
    need(
        isinstance(answer, (tuple, list)) and len(answer) == 2,
        f"expected two losses, without and with momentum, but got {kind(answer)}",
    )
    numbers = all(isinstance(loss, (int, float)) and math.isfinite(loss) for loss in answer)
    need(numbers, f"a loss is a finite number, but got {answer}")
    plain, moving = answer
    need(
        plain != moving,
        f"both losses are {plain}: the trainer didn't get the momentum, or you passed the same "
        "loss twice",
    )
    need(
        moving < plain,
        f"{moving} with momentum is above {plain} without: they're in the wrong order, or "
        "the second network didn't start from the same seed",
    )
    need(
        plain < 2.5,
        f"{plain} without momentum is worse than guessing, which gives 2.3: divide the summed "
        "loss by the number of images",
    )
    return f"after five epochs the loss is {plain / max(moving, 1e-9):.1f} times lower"


EXERCISES = {
    "0.1": Parts(
        "a pair: the number of parameters and the number of kernels",
        "the new layer adds a matrix, a bias per row, and one product",
        Part(
            "the number of parameters",
            "00adba7af0",
            "for each layer, multiply inputs by outputs, and add one bias per output",
            {
                4810: "that's the original network; add the third layer",
                4160: "that's the new layer alone; add the other two",
                8832: "those are the weights; each output also has a bias",
                8906: "the new layer also has 64 biases",
            },
        ),
        Part(
            "the number of kernels",
            "158c355429",
            "count the products; elementwise operators are fused into them",
            {
                2: "that's the original network; the new product needs its own kernel",
                5: "the two relus run inside the kernels of their products",
                6: "biases and relus run inside the kernels of their products",
            },
        ),
    ),
    "0.2": Refusal(
        "net(...)",
        "the message names the operator, the 49 pixels, and the weight that would fit",
        ShapeError,
        r"\b49\b",
        lambda result: (
            f"the network returned shape {getattr(result, 'shape', None)}: it expects 8 by 8 "
            "pixels, so pass it 7 by 7"
        ),
        {r"\(64, 7\)": "those are 7 images of 7 pixels: the batch axis is missing"},
    ),
    "0.3": Exercise(
        "a pair: the final loss without momentum and the final loss with it", two_losses
    ),
}
