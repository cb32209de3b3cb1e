"""Chapter 19. A plan as numbers: which kernels run, in which order, on what.

Takes:   steps, and where their kernels' machine code begins.
Gives:   `numbers_of`, the program that the driver reads.

A program begins with the numbers of arrays, of steps, and of words in the longest
step, then where in the arena the scratch of helping threads begins, and how many bytes
each of them has. Then comes each step: the kernel's address, its chunks, the number of
words, and each word as three numbers: what it is, which, and so many bytes behind it:

    NUMBER  the number itself              ARRAY   the data of this argument of the call
    ARENA   this byte of the arena         KEY     the key of the random numbers
    PARAM   this parameter's data          WORK    this byte of the arena; for a helper,
                                                   the first one of its own scratch
"""

from typing import NamedTuple

import numpy as np

NUMBER, ARENA, PARAM, ARRAY, KEY, WORK = range(6)


class Step(NamedTuple):
    """One kernel at its place in a plan."""

    kernel: str  # the text of its module
    label: str  # its operators
    words: list  # what it is called with: (what, which, bytes behind it)
    chunks: int = 1  # pieces of its outermost loop that threads may share


def numbers_of(n_arrays, steps, addresses, scratch=(0, 0)):
    """The program of steps, an array of int64.

    addresses:  text of a kernel -> where its machine code begins.
    scratch:    where the scratch of helping threads begins, and bytes for each.

    >>> step = Step("...", "relu", [(ARRAY, 0, 64), (ARRAY, 1, 0), (NUMBER, 8, 0)])
    >>> numbers_of(2, [step], {"...": 4096}).tolist()
    [2, 1, 3, 0, 0, 4096, 1, 3, 3, 0, 64, 3, 1, 0, 0, 8, 0]
    """
    longest = max((len(step.words) for step in steps), default=0)
    numbers = [n_arrays, len(steps), longest, *scratch]
    for step in steps:
        numbers += [addresses[step.kernel], step.chunks, len(step.words)]
        numbers += [number for word in step.words for number in word]
    return np.array(numbers, np.uint64).view(np.int64)
