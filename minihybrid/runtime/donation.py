"""Chapter 20. Memory of large results that nobody holds any more is used again.

Takes:   a result's shape and dtype; the variables whose gradients a plan computes.
Gives:   `Reuse`, called once for each result; `donatable` and `donate`, by which it hands out
         the memory that a large gradient goes to in the end.

The system hands out large memory page by page, each with a fault when it is first
touched and zeros written into it. For a result of 40 MB that takes longer than to
compute it; the memory of the last result has its pages already.
What is left out: sharing between plans.
"""

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from sys import getrefcount
from typing import Any

import numpy as np

from minihybrid.core import hooks
from minihybrid.core.array import STATE, NDArray
from minihybrid.core.compiled import CompiledOp
from minihybrid.core.op import Node, Spec
from minihybrid.core.placement import aligned

LARGE = 2**20  # bytes: below, the C library itself keeps what is given back
KEPT = 2  # in `y = f(y)` one result is read while the next one is written


def _holders(array: np.ndarray) -> int:
    return getrefcount(array.base)


NOBODY = _holders(aligned((1,), "uint8"))  # how many hold memory that no result lies in


class Donated(threading.local):
    """What holds for this thread: which maker shall hand out which memory next."""

    arrays: "dict[Reuse, np.ndarray]" = {}


DONATED = Donated()


class Reuse:
    """Makes arrays of one shape and dtype; those that were given up come back.

    >>> import numpy as np
    >>> made = Reuse((512, 512), np.dtype("float32"))
    >>> first = made()
    >>> where, second = first.ctypes.data, made()
    >>> second.ctypes.data == where
    False
    >>> del first
    >>> made().ctypes.data == where
    True
    """

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.shape, self.dtype = shape, dtype
        self.kept: deque[np.ndarray] = deque()  # whoever takes something out is alone with it

    def __call__(self) -> np.ndarray:
        """An array with any content; nobody else holds its memory, or it was lent."""
        if (array := DONATED.arrays.pop(self, None)) is not None:
            return array
        for _ in range(len(self.kept)):
            try:
                candidate = self.kept.popleft()
            except IndexError:  # other threads hold the rest
                break
            if _holders(candidate) == NOBODY:
                array = candidate
                break
            self.kept.append(candidate)
        array = aligned(self.shape, self.dtype) if array is None else array
        out = array.view()  # holds the memory, and so does whatever is made of it
        if len(self.kept) < KEPT:
            self.kept.append(array)
        return out


@hooks.reuse.implement
def reuse(shape: tuple[int, ...], dtype: np.dtype) -> Reuse | None:
    """What makes a plan's results of this kind; `None` for small ones."""
    return Reuse(shape, dtype) if Spec(shape, dtype).nbytes >= LARGE else None


@hooks.donatable.implement
def donatable(
    nodes: Iterable[Node], variables: Iterable[Node], seeds: Iterable[NDArray]
) -> dict[Node, np.ndarray]:
    """variable -> where its gradient lies, if that is large and nothing reads the old one.

    A gradient that is added to is read; and so is one that stands on the tape, or that the
    walk begins with. All others may be written over before the walk is at its end.
    """
    large = [n for n in variables if n.info.req == "write" and n.info.like.nbytes >= LARGE]
    return _unread(large, nodes, seeds) if large else {}


def _unread(
    variables: Iterable[Node], nodes: Iterable[Node], seeds: Iterable[NDArray]
) -> dict[Node, np.ndarray]:
    read, lent = {_memory(v) for n in nodes for v in n.values or ()}, {}
    read.update(_memory(seed.data) for seed in seeds)
    for variable in variables:
        held = variable.info.grad.data
        if type(held) is np.ndarray and _memory(held) not in read:
            lent[variable] = held
            read.add(_memory(held))  # two variables may share it
    return lent


def _memory(array: Any) -> int:
    """Whose memory it is: views of one array have one owner."""
    return id(array if getattr(array, "base", None) is None else array.base)


@contextmanager
def donate(op: CompiledOp, variables: Iterable[NDArray]) -> Iterator[None]:
    """Let an operator's plan write its outputs into these variables' gradients, once each."""
    lent, arrays = STATE.lent or {}, {}
    for maker, variable in zip(op.plan.makers, variables, strict=True):
        held = lent.get(variable.node)
        if maker and held is not None and (held.shape, held.dtype) == (maker.shape, maker.dtype):
            arrays[maker] = lent.pop(variable.node)
    DONATED.arrays = arrays
    try:
        yield
    finally:
        DONATED.arrays = {}  # what was not asked for: another plan has come to be in force
