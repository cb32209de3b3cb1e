"""Chapter 19. A plan as numbers: which kernels run, in which order, on what.

Takes:   launches, and where their kernels' machine code begins.
Gives:   `numbers_of`, the program that the driver reads.

A program begins with the numbers of arrays, of launches, and of operands in the longest
launch, then where in the arena the scratch of helping threads begins, and how many bytes
each of them has. Then comes each launch: the kernel's address, its chunks, the number of
operands, how many turns it ends and how far back the first launch of a turn begins, its guard, and
each operand as four numbers: what it is, which, so many bytes behind it, and so many more in each
turn:

    NUMBER  the number itself              ARRAY   the data of this argument of the call
    ARENA   this byte of the arena         KEY     the key of the random numbers
    PARAM   this parameter's data          WORK    this byte of the arena; for a helper,
                                                   the first one of its own scratch

A guard is 0, or a mask, and the last operand is then no argument of the kernel but an address:
the launch is skipped if no bit of the mask is set there; of a negative mask, if one is.
"""

from typing import Any, NamedTuple

import numpy as np

from minihybrid.core.op import Spec

NUMBER, ARENA, PARAM, ARRAY, KEY, WORK = range(6)


HEADER = 6  # numbers of a launch before its operands

# What threads share. Of a call: the address of their board, and behind it four counters per
# launch: of chunks that are taken, that are done, that were taken in front, and at the end. A
# board: a ticket, which is odd while a program is there; how many helpers are at it; whether
# it is somebody's, in cache lines of their own; and what was put there.
COUNTERS = 16  # bytes before them
INSIDE, OWNED, POSTED, BOARD = 128, 256, 384, 512  # bytes before these, and of a board


class Operand(NamedTuple):
    """What a kernel is called with."""

    what: int
    which: int
    after: int = 0
    turn: int = 0

    def behind(self, nbytes):
        """So many bytes behind it."""
        return self._replace(after=self.after + nbytes)


class Launch(NamedTuple):
    """One kernel at its place in a plan."""

    kernel: str  # the text of its module
    label: str  # its operators
    operands: list  # what it is called with, an `Operand` each
    chunks: int = 1  # pieces of its outermost loop that threads may share
    turns: int = 0  # of the last launch of a loop: how many turns there are,
    body: int = 0  # and how many launches a turn has
    copied: Any = None  # of a copy: the spec of what it copies
    guard: Any = None  # (the `Operand` of a condition, mask): whether it is skipped
    senses: Any = None  # of a flag: (spec, whether it must be true) of both its conditions


def numbers_of(n_arrays, launches, addresses, scratch=(0, 0), longest=0):
    """The program of launches, an array of int64.

    addresses:  text of a kernel -> where its machine code begins.
    scratch:    where the scratch of helping threads begins, and bytes for each.
    longest:    operands of a kernel that there is room for, at least.

    >>> operands = [Operand(ARRAY, 0, 64), Operand(ARRAY, 1), Operand(NUMBER, 8)]
    >>> launch = Launch("...", "relu", operands)
    >>> numbers_of(2, [launch], {"...": 4096}).tolist()
    [2, 1, 4, 0, 0, 4096, 1, 3, 0, 0, 0, 3, 0, 64, 0, 3, 1, 0, 0, 0, 8, 0, 0]
    """
    longest = max([longest, *(len(launch.operands) + 1 for launch in launches)])
    numbers = [n_arrays, n_calls(launches), longest, *scratch]
    begins = []
    for launch in launches:
        begins.append(len(numbers))
        back = len(numbers) - begins[-launch.body] if launch.turns else 0
        guard, mask = ([launch.guard[0]], launch.guard[1]) if launch.guard else ([], 0)
        operands = [*launch.operands, *guard]
        numbers += [addresses[launch.kernel], launch.chunks, len(operands)]
        numbers += [launch.turns, back, mask]
        numbers += [number for operand in operands for number in operand]
    return np.array([int(n) % 2**64 for n in numbers], np.uint64).view(np.int64)


def n_calls(launches):
    """How many kernels a program calls, each turn of a loop its own.

    >>> n_calls([Launch("a", "", []), Launch("b", "", []), Launch("c", "", [], 1, 10, 2)])
    21
    """
    return len(launches) + sum(
        launch.body * (launch.turns - 1) for launch in launches if launch.turns
    )


def in_turns(launches):
    """(launch, number of the turn), as they are called; of no loop, turn 0.

    >>> [turn for _, turn in in_turns([Launch("b", "", [], 1, 3, 1), Launch("c", "", [])])]
    [0, 1, 2, 0]
    """
    at, turn = 0, 0
    while at < len(launches):
        launch = launches[at]
        yield launch, turn
        turn = turn + 1 if turn + 1 < launch.turns else turn * (launch.turns == 0)
        at = at + 1 - launch.body * (turn > 0 and launch.turns > 0)


def is_taken(launch, turn, load):
    """Whether a launch runs; `load(operand, turn, spec)` gives what lies at an operand, an array.

    >>> launch = Launch("a", "relu", [], guard=(Operand(ARENA, 0), -0xFF))
    >>> is_taken(launch, 0, lambda *where: np.uint8([1])), is_taken(Launch("a", "", []), 0, None)
    (False, True)
    """
    if not launch.guard:
        return True
    operand, mask = launch.guard
    spec = Spec((1,), np.dtype(f"u{(abs(mask).bit_length() + 7) // 8}"))
    return (int(load(operand, turn, spec)[0]) & abs(mask) != 0) == (mask > 0)
