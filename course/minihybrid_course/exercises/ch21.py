"""Chapter 21: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

from numbers import Integral

from minihybrid.core.passes.memory import first_fit, neighbors
from minihybrid_course.exercises.judging import Exercise, expect, need, same


def splits_the_arena(boxes):
    """Check 21.2: five boxes that first fit, in program order, places badly."""
    expect(boxes, dict, "a dictionary, name: (birth, death, bytes)")
    same(len(boxes), 5, "the number of boxes")
    for name, box in boxes.items():
        need(
            isinstance(box, (tuple, list))
            and len(box) == 3
            and all(isinstance(v, Integral) for v in box),
            f"box {name!r} is {box}, but must be three integers, (birth, death, bytes)",
        )
        birth, death, nbytes = box
        need(birth <= death, f"box {name!r} dies at {death}, before its birth at {birth}")
        need(nbytes > 0, f"box {name!r} has {nbytes} bytes")
        need(
            nbytes % 64 == 0,
            f"box {name!r} has {nbytes} bytes, which isn't a multiple of 64: that loses bytes "
            "by rounding, not by the order",
        )
    births = [birth for birth, _, _ in boxes.values()]
    need(births == sorted(births), f"the boxes are born at {births}: name them in this order")
    size = {name: nbytes for name, (_, _, nbytes) in boxes.items()}
    near, _, bound = neighbors(boxes, size)
    offsets = first_fit(boxes, size, near)
    height = max(offsets[name] + size[name] for name in boxes)
    need(
        height >= 1.5 * bound,
        f"the height is {height} and the bound {bound}, {height / bound:.2f} times as much; "
        "1.5 times is needed: let small boxes live long, between large ones",
    )
    return f"the height is {height}, {height / bound:.2f} times the bound of {bound}"


EXERCISES = {
    "21.2": Exercise("a dictionary of five boxes, name: (birth, death, bytes)", splits_the_arena)
}
