"""Chapter 19. Bytecode: a plan as an array of integers for the interpreter.

Defines: `numbers_of`, which encodes launches and the addresses of their kernels.

The header contains the numbers of arrays, of launches, and of operands of the longest
launch; then the offset in the arena of the worker threads' scratch memory, and its size
per worker. Each launch follows: the kernel's address, its chunks, the number of operands,
the trip count of a loop that it ends, the distance back to the loop's first launch, its
guard, and four integers per operand: kind, index, byte offset, and byte stride per
iteration of the loop:

    NUMBER  the number itself              ARRAY   the data of this argument of the call
    ARENA   this byte of the arena         KEY     the key of the random stream
    PARAM   this parameter's data          WORK    this byte of the arena; for a worker,
                                                   the start of its own scratch memory

A guard is 0 or a mask; with a mask, the last operand isn't passed to the kernel but is an
address: the launch is skipped if (value & mask) is zero or, for a negative mask, nonzero.
"""

from typing import Any, NamedTuple

import numpy as np

from minihybrid.core.op import Spec

NUMBER, ARENA, PARAM, ARRAY, KEY, WORK = range(6)


HEADER = 6  # integers of a launch before its operands

# Memory that threads share. Per call: the address of the work queue ("board"), then four
# counters per launch: chunks taken, chunks done, taken from the front, taken from the back.
# The queue, in separate cache lines: a ticket, odd while it contains a program; the number of
# workers that run it; whether a call owns it; and the posted program.
COUNTERS = 16  # bytes before the counters
INSIDE, OWNED, POSTED, BOARD = 128, 256, 384, 512  # byte offsets in a queue, and its size


class Operand(NamedTuple):
    """An argument of a kernel."""

    what: int
    which: int
    after: int = 0
    turn: int = 0

    def behind(self, nbytes):
        """Return the operand at a further offset of `nbytes`."""
        return self._replace(after=self.after + nbytes)


class Launch(NamedTuple):
    """One kernel call of a plan."""

    kernel: str  # source of its module
    label: str  # its operators
    operands: list  # one `Operand` per argument
    chunks: int = 1  # chunks of its outermost loop that threads may share
    turns: int = 0  # for the last launch of a loop: its trip count,
    body: int = 0  # and its number of launches
    guard: Any = None  # (`Operand` of a condition, mask): when to skip it
    node: Any = None  # what it computes


def numbers_of(n_arrays, launches, addresses, scratch=(0, 0), longest=0):
    """Encode launches as an int64 array.

    addresses:  source of a kernel -> address of its machine code.
    scratch:    (offset of the workers' scratch memory, bytes per worker).
    longest:    least number of operands to reserve space for.

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
    """Return the number of kernel calls, with all iterations of loops.

    >>> n_calls([Launch("a", "", []), Launch("b", "", []), Launch("c", "", [], 1, 10, 2)])
    21
    """
    return len(launches) + sum(
        launch.body * (launch.turns - 1) for launch in launches if launch.turns
    )


def in_turns(launches):
    """Yield (launch, iteration) in execution order; 0 outside of loops.

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
    """Return whether a launch's guard holds; `load(operand, turn, spec)` reads an operand.

    >>> launch = Launch("a", "relu", [], guard=(Operand(ARENA, 0), -0xFF))
    >>> is_taken(launch, 0, lambda *where: np.uint8([1])), is_taken(Launch("a", "", []), 0, None)
    (False, True)
    """
    if not launch.guard:
        return True
    operand, mask = launch.guard
    spec = Spec((1,), np.dtype(f"u{(abs(mask).bit_length() + 7) // 8}"))
    return (int(load(operand, turn, spec)[0]) & abs(mask) != 0) == (mask > 0)
