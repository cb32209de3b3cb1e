"""Chapter 00: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

import math

from minihybrid_course.exercises.judging import Exercise, kind, need


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
    "0.3": Exercise(
        "a pair: the final loss without momentum and the final loss with it", two_losses
    )
}
