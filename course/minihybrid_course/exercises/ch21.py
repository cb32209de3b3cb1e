"""Chapter 21: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

from minihybrid.core.passes.memory import first_fit, neighbours
from minihybrid_course.exercises.judging import Exercise, Part, Parts, kind, need

OTHER_PLACE = "a value that is alive together with the output needs another place"


def splits_the_arena(boxes):
    """Judge 21.2: five boxes that first fit, in the order of birth, places badly."""
    need(
        isinstance(boxes, dict),
        f"a dictionary is needed, name: (birth, death, bytes), but {kind(boxes)} was handed in",
    )
    need(len(boxes) == 5, f"five boxes are needed, but these are {len(boxes)}")
    for name, box in boxes.items():
        need(
            isinstance(box, (tuple, list)) and len(box) == 3 and all(type(v) is int for v in box),
            f"box {name!r} is {box}, but (birth, death, bytes) of whole numbers is needed",
        )
        birth, death, nbytes = box
        need(birth <= death, f"box {name!r} dies at {death}, before its birth at {birth}")
        need(nbytes > 0, f"box {name!r} has {nbytes} bytes")
        need(
            nbytes % 64 == 0,
            f"box {name!r} has {nbytes} bytes, no multiple of 64: what is lost then is lost by "
            "rounding, not by the order",
        )
    births = [birth for birth, _, _ in boxes.values()]
    need(births == sorted(births), f"the boxes are born at {births}: name them in this order")
    size = {name: nbytes for name, (_, _, nbytes) in boxes.items()}
    near, _, bound = neighbours(boxes, size)
    offsets = first_fit(boxes, size, near)
    height = max(offsets[name] + size[name] for name in boxes)
    need(
        height >= 1.5 * bound,
        f"the height is {height} and the bound {bound}, {height / bound:.2f} times as much; "
        "1.5 times is needed: let small boxes live long, between large ones",
    )
    return f"the height is {height}, {height / bound:.2f} times the bound of {bound}"


EXERCISES = {
    "21.1": Exercise(
        "a pair: the bytes of the arena, and those of the output",
        Parts(
            "21.1",
            "the product lies where the sum will, and the sum overwrites it",
            Part(
                "the arena's bytes",
                "4dc035fe14",
                "which of the values cannot lie in the memory of the output?",
                {
                    2048: "the product may lie in the memory of the output",
                    3072: "the output has memory of its own, and the product may lie there",
                    0: f"the product reads the tanh, and the sum does, too: {OTHER_PLACE}",
                    256: "these are elements; each takes 4 bytes",
                },
            ),
            Part(
                "the output's bytes",
                "4dc035fe14",
                "the output is one value of 16 by 16 numbers",
                {
                    0: "the output needs memory, too, if not in the arena",
                    256: "these are elements; each takes 4 bytes",
                    2048: "there is one output, and it is as large as x",
                },
            ),
        ),
    ),
    "21.2": Exercise("a dictionary of five boxes, name: (birth, death, bytes)", splits_the_arena),
    "21.4": Exercise(
        "the number of the 200 chains that are above the bound",
        Parts(
            "21.4",
            "read from right to left a chain is a chain again, and the order that of birth",
            Part(
                "the number of chains",
                "83c9377aee",
                "draw the chains as above, with random.Random(1), and count",
                {
                    157: "that is the order of birth, as the chapter counted it",
                    47: "that is largest first, as the chapter counted it",
                    0: "that is arrange; last fit places in one order only",
                    40: "these reach the bound; the others are above it",
                },
            ),
        ),
    ),
}
