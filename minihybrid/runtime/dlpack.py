"""DLPack: the C structures for exchanging arrays between libraries.

Defines: `capsule_of`, which exports a device array; `opened`, which imports a capsule;
         `dlpack_device`.

A capsule contains a C structure with the address, shape and dtype, and a deleter that the
consumer calls. The memory of a simulated GPU is exported as the CPU's.
Source:  dlpack.h of DLPack 1.0.
Not supported: arrays that aren't contiguous; dtypes that NumPy lacks.
"""

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minihybrid.core.context import Context
from minihybrid.core.op import AttrError

CPU, CUDA = 1, 2  # device types of DLPack
CODES = {"i": 0, "u": 1, "f": 2, "b": 6}  # NumPy's dtype kinds -> DLPack's type codes
KINDS = {code: kind for kind, code in CODES.items()}


# -- dlpack.h --------------------------------------------------------------------------
class Tensor(ctypes.Structure):
    """DLTensor: address and layout of an array."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    """DLManagedTensor: a tensor with a deleter."""

    _fields_ = [("tensor", Tensor), ("manager", ctypes.c_void_p), ("deleter", Deleter)]
    name = b"dltensor"


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned: since DLPack 1.0; required for writable memory."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]
    name = b"dltensor_versioned"


# Python's C API; a capsule that is being destroyed is passed by address.
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, Deleter)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_SetName", ctypes.pythonapi)
)


# -- export ----------------------------------------------------------------------------
LENT: dict[int, tuple] = {}  # address of a Managed or Versioned -> objects to keep alive


@Deleter
def _take_back(address: int) -> None:
    """Release exported memory, after the consumer's stream has finished."""
    array, stream, *_ = LENT.pop(address)
    if stream is not None:
        array.device.synchronize(stream)


@Deleter
def _drop(capsule: int) -> None:
    """Destroy a capsule; release its tensor unless a consumer took it."""
    for kind in (Managed, Versioned):
        if _is_valid(capsule, kind.name):
            _take_back(_pointer(capsule, kind.name))


for _function in (_take_back, _drop):  # C may call them after this module was unloaded
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_function))


def capsule_of(array: Any, kind: type[Managed | Versioned], stream: Any = None) -> Any:
    """Return a DLPack capsule of a DeviceArray's memory.

    kind:    Managed or Versioned.
    stream:  the consumer's, to synchronize before the memory is reused.
    """
    n = array.ndim
    shape, steps = (
        (ctypes.c_int64 * n)(*array.shape),
        (ctypes.c_int64 * n)(
            *(s // array.dtype.itemsize for s in strides_of(array.shape, array.dtype))
        ),
    )
    place = dlpack_device(array.context)
    tensor = Tensor(
        array.address if array.size else None,
        *place,
        n,
        CODES[array.dtype.kind],
        array.dtype.itemsize * 8,
        1,
        shape,
        steps,
    )
    managed = kind(tensor=tensor, deleter=_take_back)
    if kind is Versioned:
        managed.major = 1
    address = ctypes.addressof(managed)
    LENT[address] = array, stream, managed, shape, steps
    return _new(address, kind.name, _drop)


def dlpack_device(context: Context) -> tuple[int, int]:
    """Return a context as DLPack's (device type, device id)."""
    return (CUDA, context.device_id) if context.device_type == "gpu" else (CPU, 0)


def strides_of(shape: Sequence[int], dtype: np.dtype) -> tuple[int, ...]:
    """Return the strides, in bytes, of a contiguous array.

    >>> import numpy as np
    >>> strides_of((2, 3), np.dtype("float32"))
    (12, 4)
    """
    return tuple(math.prod(shape[i + 1 :]) * dtype.itemsize for i in range(len(shape)))


# -- import ----------------------------------------------------------------------------
USED = {Managed: b"used_dltensor", Versioned: b"used_dltensor_versioned"}


def mark_consumed(capsule: Any, kind: type[Managed | Versioned]) -> None:
    """Mark a capsule as consumed, so that it isn't consumed twice."""
    _rename(id(capsule), USED[kind])


class Producer:
    """Wraps a capsule in an object with `__dlpack__`, which NumPy requires."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        _, managed = opened(self.capsule)
        return managed.tensor.device_type, managed.tensor.device_id


def opened(capsule: Any) -> tuple[int, Managed | Versioned]:
    """Return (address, Managed or Versioned) of a capsule that wasn't consumed yet.

    Raises:  AttrError otherwise.
    """
    for kind in (Managed, Versioned):
        if _is_valid(id(capsule), kind.name):
            address = _pointer(id(capsule), kind.name)
            return address, kind.from_address(address)
    raise AttrError(
        "from_dlpack: the capsule was used already, or is none of "
        "DLPack's; each is used once, so ask for another"
    )
