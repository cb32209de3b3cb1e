"""Chapter 19. Buffer reuse and donation for large results.

Defines: `Reuse`, an allocator for one output of a plan, which reuses dropped results;
         `donatable` and `donate`, which let a backward plan write into gradient buffers.

The system provides large memory page by page, with a page fault and zeroing at the first
access. For a result of 40 MB that takes longer than computing it; the buffer of an earlier
result already has its pages.
Not supported: sharing between plans.
"""

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from sys import getrefcount
from typing import Any

import numpy as np

from minihybrid.core.array import STATE, NDArray
from minihybrid.core.compiled import CompiledOp
from minihybrid.core.op import Node, Spec
from minihybrid.core.placement import aligned

LARGE = 2**20  # bytes: smaller blocks are recycled by malloc
BUFFERS = 2  # `y = f(y)` reads one result while writing the next


def _holders(array: np.ndarray) -> int:
    return getrefcount(array.base)


NOBODY = _holders(aligned((1,), "uint8"))  # reference count of unused memory


class Donated(threading.local):
    """Per thread: the buffer that each allocator returns next."""

    arrays: "dict[Reuse, np.ndarray]" = {}


DONATED = Donated()


class Reuse:
    """Allocates arrays of one shape and dtype, reusing dropped ones.

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
        self.buffers: deque[np.ndarray] = deque()  # popleft is atomic

    def __call__(self) -> np.ndarray:
        """Return an uninitialized array, in unused or donated memory."""
        if (array := DONATED.arrays.pop(self, None)) is not None:
            return array
        for _ in range(len(self.buffers)):
            try:
                candidate = self.buffers.popleft()
            except IndexError:  # other threads took the rest
                break
            if _holders(candidate) == NOBODY:
                array = candidate
                break
            self.buffers.append(candidate)
        array = aligned(self.shape, self.dtype) if array is None else array
        out = array.view()  # keeps the memory alive, as its views do
        if len(self.buffers) < BUFFERS:
            self.buffers.append(array)
        return out


def reuse(shape: tuple[int, ...], dtype: np.dtype) -> Reuse | None:
    """Return the allocator of a plan's large output; `None` for a small one."""
    return Reuse(shape, dtype) if Spec(shape, dtype).nbytes >= LARGE else None


def donatable(
    nodes: Iterable[Node], variables: Iterable[Node], seeds: Iterable[NDArray]
) -> dict[Node, np.ndarray]:
    """Return variable -> gradient buffer, if it is large and its old value has no use.

    The old value is used if the gradient accumulates, is on the tape, or is an incoming
    gradient. Other buffers may be overwritten before the backward pass ends.
    """
    large = [n for n in variables if n.info.req == "write" and n.info.like.nbytes >= LARGE]
    return _unread(large, nodes, seeds) if large else {}


def _unread(
    variables: Iterable[Node], nodes: Iterable[Node], seeds: Iterable[NDArray]
) -> dict[Node, np.ndarray]:
    read, lent = {_memory(v) for n in nodes for v in n.values or ()}, {}
    read.update(_memory(seed.data) for seed in seeds)
    for variable in variables:
        grad = variable.info.grad.data
        if type(grad) is np.ndarray and _memory(grad) not in read:
            variable.info.grad._preserve()
            lent[variable] = grad
            read.add(_memory(grad))  # shared by another variable
    return lent


def _memory(array: Any) -> int:
    """Return the identity of an array's owner, which its views share."""
    return id(array if getattr(array, "base", None) is None else array.base)


@contextmanager
def donate(op: CompiledOp, variables: Iterable[NDArray]) -> Iterator[None]:
    """Let an operator's plan write its outputs into these variables' gradients, once each."""
    lent, arrays = STATE.lent or {}, {}
    for maker, variable in zip(op.plan.makers, variables, strict=True):
        grad = lent.get(variable.node)
        if maker and grad is not None and (grad.shape, grad.dtype) == (maker.shape, maker.dtype):
            arrays[maker] = lent.pop(variable.node)
    DONATED.arrays = arrays
    try:
        yield
    finally:
        DONATED.arrays = {}  # unused if another plan became active
