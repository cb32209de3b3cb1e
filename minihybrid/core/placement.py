"""Chapter 18. Memory of arrays, on the CPU or on a device.

Defines: `aligned`, `new_array`, `zeros_where` and `copy_to`, which allocate memory;
         `context_of`, the device of an array; `DEVICES`, all devices in use.

A NumPy array is in the CPU's memory. A device array is an `Elsewhere`, which has a
`context` and implements the part of NumPy's interface that the core uses.
Not supported: unified memory.
"""

import math
from numbers import Integral

import numpy as np

from minihybrid.core.context import CPU

HERE = {np.ndarray}  # types of arrays in the CPU's memory
DEVICES = {}  # context -> driver, for devices in use


class Elsewhere:
    """Base class of arrays in device memory; its only subclass is DeviceArray."""

    __slots__ = ()


def aligned(shape, dtype, raw=None):
    """Return an uninitialized array aligned to 64 bytes, a cache line.

    A vector load that crosses a cache line costs two; kernels assume aligned weights.

    raw:     buffer to use, with 64 spare bytes; by default, a new one.
    """
    dtype = np.dtype(dtype)
    nbytes = math.prod(shape) * dtype.itemsize
    raw = np.empty(nbytes + 64, np.uint8) if raw is None else raw
    start = -raw.ctypes.data % 64
    return raw[start : start + nbytes].view(dtype).reshape(shape)


def is_basic(key):
    """Return whether an index consists of integers, slices and `...` only."""
    keys = key if isinstance(key, tuple) else (key,)
    return all(
        isinstance(k, (Integral, slice)) and not isinstance(k, bool) or k is Ellipsis for k in keys
    )


def new_array(shape, dtype, context):
    """Allocate an uninitialized NumPy array or DeviceArray."""
    if context is CPU:
        return aligned(shape, dtype)
    from minihybrid.runtime.device_array import new_on_device

    return new_on_device(shape, dtype, context)


def zeros_where(array):
    """Return zeros of an array's shape and dtype, on its device."""
    if type(array) is np.ndarray:
        return np.zeros(array.shape, array.dtype)
    zeros = new_array(array.shape, array.dtype, array.context)
    zeros[...] = 0
    return zeros


def copy_to(array, context):
    """Copy a NumPy array or a DeviceArray into new memory on a device."""
    copy = new_array(array.shape, array.dtype, context)
    copy[...] = array
    return copy


def context_of(array):
    """Return the device of an array."""
    return CPU if type(array) is np.ndarray else getattr(array, "context", CPU)
