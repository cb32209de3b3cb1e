"""Chapter 37: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
What is left out: 37.1, a step of nano, and 37.5, which measures.
"""

import numpy as np

from minihybrid.core.op import ShapeError
from minihybrid_course.exercises.judging import Exercise, Part, Parts, Refusal, kind, need, tried


class Links:
    """The chapter's links, which also count messages."""

    def __init__(self, n):
        self.sent, self.messages = [0] * n, [0] * n

    def send(self, source, target, data):
        """A copy for the target."""
        self.sent[source] += data.nbytes
        self.messages[source] += 1
        return data.copy()


def doubles(doubling):
    """Check 37.4: an all-reduce with log2(n) messages per device."""
    for n in (2, 4, 8):
        arrays = [np.arange(5, dtype="float32") * 3**i for i in range(n)]
        total, links, case = sum(arrays), Links(n), f"for {n} devices"
        answer = tried(f"doubling {case}", doubling, [a.copy() for a in arrays], links)
        need(
            isinstance(answer, (list, tuple)) and len(answer) == n,
            f"{case}: expected a list of {n} arrays, one per device, but got {kind(answer)}",
        )
        for i, array in enumerate(answer):
            array = np.asarray(array).tolist()
            wrong = f"{case}, device {i} has {array}, but the sum is {total.tolist()}"
            need(array == total.tolist(), wrong)
        steps, who = n.bit_length() - 1, [f"{case}, device {i}" for i in range(n)]
        for device, sent, count in zip(who, links.sent, links.messages, strict=True):
            need(count, f"{device} sent nothing: its array gets elsewhere only by links.send")
            need(count <= steps, f"{device} sends {count} messages, and {steps} are enough")
            short = f"{device} sends {sent} bytes in {count} messages: send whole arrays"
            need(sent == steps * total.nbytes, short)
    return "each device sends log2(n) messages, so the latency grows slowly with n"


EXERCISES = {
    "37.2": Parts(
        "three numbers: megabytes sent by device 0 in naive, by each device in ring, and by "
        "each device in reduce_scatter",
        "a ring sends the same from every device, and each half of it sends half",
        Part(
            "the number for naive",
            "a21dd1879c",
            "device 0 sends the whole sum; to how many devices?",
            {1024: "device 0 doesn't send to itself", 64: "that's what the others send"},
        ),
        Part(
            "the number for ring",
            "7e5000cf87",
            "multiply a chunk by the number of steps, in both halves",
            {128: "there is one step less than devices", 4: "that's one chunk"},
        ),
        Part(
            "the number for reduce_scatter",
            "13520aad53",
            "it's one of the two halves of the ring",
            {64: "there is one step less than devices", 120: "those are both halves"},
        ),
    ),
    "37.3": Refusal(
        "utils.split_and_load(...)",
        "parts of a batch have equal sizes, unless you allow others",
        ShapeError,
        r"split_data: .* can't be split",
        lambda answer: (
            "even_split=False allows parts of different sizes"
            if len({len(part) for part in answer}) > 1
            else f"the batch was divided into {len(answer)} equal parts"
        ),
        {r"a list of devices": "the second argument is a list of devices"},
    ),
    "37.4": Exercise("your function doubling(arrays, links)", doubles),
}
