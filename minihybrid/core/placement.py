"""Chapter 18. Where numbers lie: in the processor's memory, or in a device's.

Takes:   shapes, dtypes, NumPy arrays, devices.
Gives:   `aligned`, `new_array`, `zeros_where` and `placed`, which make memory of
         either kind; `context_of`; `DEVICES`, all that were used.

A NumPy array lies in the processor's memory. One of a device is `Elsewhere`: it says
its `context` and has NumPy's manners as far as they are needed (`minihybrid/device`).
What is left out: memory that both share.
"""

import math
from numbers import Integral

import numpy as np

from minihybrid.core.context import CPU

HERE = {np.ndarray}  # the types of arrays that lie in the processor's memory
DEVICES = {}  # device -> what drives it, of those that were used


class Elsewhere:
    """An array that lies in a device's memory; only a DeviceArray is one."""

    __slots__ = ()


def aligned(shape, dtype, raw=None):
    """Uninitialised memory whose first byte lies at a multiple of 64, a cache line.

    A vector load that crosses two cache lines costs two; weights are read only so.

    raw:     bytes to use, 64 more than needed; new ones if not given.
    """
    dtype = np.dtype(dtype)
    nbytes = math.prod(shape) * dtype.itemsize
    raw = np.empty(nbytes + 64, np.uint8) if raw is None else raw
    start = -raw.ctypes.data % 64
    return raw[start : start + nbytes].view(dtype).reshape(shape)


def is_basic(key):
    """Whether an index is made of whole numbers, slices and `...` only."""
    keys = key if isinstance(key, tuple) else (key,)
    return all(
        isinstance(k, (Integral, slice)) and not isinstance(k, bool) or k is Ellipsis for k in keys
    )


def new_array(shape, dtype, context):
    """Uninitialised memory on a device: a NumPy array or a DeviceArray."""
    if context is CPU:
        return aligned(shape, dtype)
    from minihybrid.runtime.device_array import new_on_device

    return new_on_device(shape, dtype, context)


def zeros_where(array):
    """Zeros of an array's shape and dtype, on its device."""
    if type(array) is np.ndarray:
        return np.zeros(array.shape, array.dtype)
    made = new_array(array.shape, array.dtype, array.context)
    made[...] = 0
    return made


def placed(array, context):
    """The numbers of a NumPy array or a DeviceArray, in new memory on a device."""
    made = new_array(array.shape, array.dtype, context)
    made[...] = array
    return made


def context_of(array):
    """Where an NDArray's numbers are."""
    return CPU if type(array) is np.ndarray else getattr(array, "context", CPU)
