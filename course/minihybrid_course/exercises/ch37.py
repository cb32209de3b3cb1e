"""Chapter 37: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
What is left out: 37.1, a step of nano, and 37.5, which measures.
"""

import numpy as np

from minihybrid_course.exercises.judging import Exercise, expect, need, tried


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
        what = f"a list of {n} arrays, one per device"
        expect(answer, (list, tuple), what, f"{case}: ", length=n)
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


EXERCISES = {"37.4": Exercise("your function doubling(arrays, links)", doubles)}
