"""Chapter 21: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

from minihybrid.core.passes.memory import first_fit, neighbors
from minihybrid_course.exercises.judging import Exercise, Part, Parts, kind, need

OTHER_PLACE = "a value that interferes with the output needs other memory"


def splits_the_arena(boxes):
    """Check 21.2: five boxes that first fit, in program order, places badly."""
    need(
        isinstance(boxes, dict),
        f"expected a dictionary, name: (birth, death, bytes), but got {kind(boxes)}",
    )
    need(len(boxes) == 5, f"expected five boxes, but got {len(boxes)}")
    for name, box in boxes.items():
        need(
            isinstance(box, (tuple, list)) and len(box) == 3 and all(type(v) is int for v in box),
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
    "21.1": Parts(
        "a pair: the bytes of the arena, and those of the output",
        "the product is in the output's memory, and the sum overwrites it",
        Part(
            "the arena's bytes",
            "4dc035fe14",
            "which of the values can't be in the output's memory?",
            {
                2048: "the product can use the output's memory",
                3072: "the output has its own memory, and the product can use it",
                0: f"both the product and the sum read the tanh: {OTHER_PLACE}",
                256: "these are elements; each takes 4 bytes",
            },
        ),
        Part(
            "the output's bytes",
            "4dc035fe14",
            "the output is one value of 16 by 16 elements",
            {
                0: "the output also needs memory, outside the arena",
                256: "these are elements; each takes 4 bytes",
                2048: "there's one output, and it's as large as x",
            },
        ),
    ),
    "21.2": Exercise("a dictionary of five boxes, name: (birth, death, bytes)", splits_the_arena),
    "21.4": Parts(
        "the number of the 200 chains that are above the bound",
        "read from right to left, a chain is a chain again, and this rule is program order",
        Part(
            "the number of chains",
            "83c9377aee",
            "draw the chains as above, with random.Random(1), and count",
            {
                157: "that's program order, which the chapter counted",
                47: "that's largest first, which the chapter counted",
                0: "that's `arrange`; `last_fit` tries only one order",
                40: "that many reach the bound; count the others",
            },
        ),
    ),
}
