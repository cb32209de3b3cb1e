"""Chapter 19. A plan as numbers: which kernels run, in which order, on what.

Takes:   steps, and where their kernels' machine code begins.
Gives:   `numbers_of`, the program that the driver reads.

A program begins with the numbers of arrays, of steps, and of words in the longest
step, then where in the arena the scratch of helping threads begins, and how many bytes
each of them has. Then comes each step: the kernel's address, its chunks, the number of
words, how many turns it ends and how far back the first step of a turn begins, its guard, and
each word as four numbers: what it is, which, so many bytes behind it, and so many more in each
turn:

    NUMBER  the number itself              ARRAY   the data of this argument of the call
    ARENA   this byte of the arena         KEY     the key of the random numbers
    PARAM   this parameter's data          WORK    this byte of the arena; for a helper,
                                                   the first one of its own scratch

A guard is 0, or a mask, and the last word is then no argument of the kernel but an address:
the step is skipped if no bit of the mask is set there; of a negative mask, if one is.
"""

from typing import Any, NamedTuple

import numpy as np

from minihybrid.core.op import Spec

NUMBER, ARENA, PARAM, ARRAY, KEY, WORK = range(6)


STEP = 6  # numbers of a step before its words

# What threads share. Of a call: the address of their board, and behind it four counters per
# step: of chunks that are taken, that are done, that were taken in front, and at the end. A
# board: a ticket, which is odd while a program is there; how many helpers are at it; whether
# it is somebody's, in cache lines of their own; and what was put there.
COUNTERS = 16  # bytes before them
INSIDE, OWNED, POSTED, BOARD = 128, 256, 384, 512  # bytes before these, and of a board


class Word(NamedTuple):
    """What a kernel is called with."""

    what: int
    which: int
    after: int = 0
    turn: int = 0

    def behind(self, nbytes):
        """So many bytes behind it."""
        return self._replace(after=self.after + nbytes)


class Step(NamedTuple):
    """One kernel at its place in a plan."""

    kernel: str  # the text of its module
    label: str  # its operators
    words: list  # what it is called with, a `Word` each
    chunks: int = 1  # pieces of its outermost loop that threads may share
    turns: int = 0  # of the last step of a loop: how many turns there are,
    body: int = 0  # and how many steps a turn has
    copied: Any = None  # of a copy: the spec of what it copies
    guard: Any = None  # (the `Word` of a condition, mask): whether it is skipped
    senses: Any = None  # of a flag: (spec, whether it must be true) of both its conditions


def numbers_of(n_arrays, steps, addresses, scratch=(0, 0), longest=0):
    """The program of steps, an array of int64.

    addresses:  text of a kernel -> where its machine code begins.
    scratch:    where the scratch of helping threads begins, and bytes for each.
    longest:    words of a kernel that there is room for, at least.

    >>> step = Step("...", "relu", [Word(ARRAY, 0, 64), Word(ARRAY, 1), Word(NUMBER, 8)])
    >>> numbers_of(2, [step], {"...": 4096}).tolist()
    [2, 1, 4, 0, 0, 4096, 1, 3, 0, 0, 0, 3, 0, 64, 0, 3, 1, 0, 0, 0, 8, 0, 0]
    """
    longest = max([longest, *(len(step.words) + 1 for step in steps)])
    numbers = [n_arrays, n_calls(steps), longest, *scratch]
    begins = []
    for step in steps:
        begins.append(len(numbers))
        back = len(numbers) - begins[-step.body] if step.turns else 0
        guard, mask = ([step.guard[0]], step.guard[1]) if step.guard else ([], 0)
        words = [*step.words, *guard]
        numbers += [addresses[step.kernel], step.chunks, len(words), step.turns, back, mask]
        numbers += [number for word in words for number in word]
    return np.array([int(n) % 2**64 for n in numbers], np.uint64).view(np.int64)


def n_calls(steps):
    """How many kernels a program calls, each turn of a loop its own.

    >>> n_calls([Step("a", "", []), Step("b", "", []), Step("c", "", [], 1, 10, 2)])
    21
    """
    return len(steps) + sum(step.body * (step.turns - 1) for step in steps if step.turns)


def in_turns(steps):
    """(step, number of the turn), as they are called; of no loop, turn 0.

    >>> [turn for _, turn in in_turns([Step("b", "", [], 1, 3, 1), Step("c", "", [])])]
    [0, 1, 2, 0]
    """
    at, turn = 0, 0
    while at < len(steps):
        step = steps[at]
        yield step, turn
        turn = turn + 1 if turn + 1 < step.turns else turn * (step.turns == 0)
        at = at + 1 - step.body * (turn > 0 and step.turns > 0)


def is_taken(step, turn, load):
    """Whether a step runs; `load(word, turn, spec)` gives what lies at a word, an array.

    >>> step = Step("a", "relu", [], guard=(Word(ARENA, 0), -0xFF))
    >>> is_taken(step, 0, lambda *where: np.uint8([1])), is_taken(Step("a", "", []), 0, None)
    (False, True)
    """
    if not step.guard:
        return True
    word, mask = step.guard
    spec = Spec((1,), np.dtype(f"u{(abs(mask).bit_length() + 7) // 8}"))
    return (int(load(word, turn, spec)[0]) & abs(mask) != 0) == (mask > 0)
