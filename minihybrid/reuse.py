"""Chapter 12. Memory of large results that nobody holds any more is used again.

Takes:   a result's shape and dtype.
Gives:   `Reuse`, called once for each result.

The system hands out large memory page by page, each with a fault when it is first
touched and zeros written into it. For a result of 40 MB that takes longer than to
compute it; the memory of the last result has its pages already.
What is left out: sharing between plans.
"""

from collections import deque
from sys import getrefcount

from minihybrid.nd import aligned

LARGE = 2**17  # bytes: from here on the C library, too, asks the system each time
KEPT = 2       # in `y = f(y)` one result is read while the next one is written


def _count():
    found = object()
    return getrefcount(found)


NOBODY = _count()  # what is counted for an object that only this function knows


class Reuse:
    """Makes arrays of one shape and dtype; those that were given up come back.

    >>> import numpy as np
    >>> made = Reuse((256, 256), np.dtype("float32"))
    >>> first = made()
    >>> where, second = first.ctypes.data, made()
    >>> second.ctypes.data == where
    False
    >>> del first
    >>> made().ctypes.data == where
    True
    """

    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, dtype
        self.kept = deque()  # bytes; whoever takes some out is alone with them

    def __call__(self):
        """An array with any content; nobody else holds its memory."""
        raw = None
        for _ in range(len(self.kept)):
            try:
                found = self.kept.popleft()
            except IndexError:  # other threads hold the rest
                break
            if getrefcount(found) == NOBODY:
                raw = found
                break
            self.kept.append(found)
        out = aligned(self.shape, self.dtype, raw)
        if len(self.kept) < KEPT:
            self.kept.append(out.base)  # the bytes; `out` holds them, too
        return out
