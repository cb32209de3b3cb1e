"""Chapter 00: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

import math

from minihybrid_course.exercises.judging import Exercise, expect, need, number, plain


def two_losses(answer):
    """Check 0.3: lower with momentum, and not for a trivial reason."""
    losses = expect(plain(answer), tuple, "two losses, without and with momentum", length=2)
    before, moving = (number(loss, "a loss") for loss in losses)
    need(math.isfinite(before + moving), f"a loss is a finite number, but got {losses}")
    need(
        before != moving,
        f"both losses are {before}: the trainer didn't get the momentum, or you passed the same "
        "loss twice",
    )
    need(
        moving < before,
        f"{moving} with momentum is above {before} without: they're in the wrong order, or "
        "the second network didn't start from the same seed",
    )
    need(
        before < 2.5,
        f"{before} without momentum is worse than guessing, which gives 2.3: divide the summed "
        "loss by the number of images",
    )
    return f"after five epochs the loss is {before / max(moving, 1e-9):.1f} times lower"


EXERCISES = {
    "0.3": Exercise(
        "a pair: the final loss without momentum and the final loss with it", two_losses
    )
}
