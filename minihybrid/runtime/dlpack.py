"""DLPack: a C structure that tells other libraries where numbers lie.

Takes:   arrays that have an address, a shape and a device; capsules of others.
Gives:   `capsule_of` and what is in a capsule; `dlpack_device`.

The capsule of a device's array is made here: a C structure that says where the numbers
are, and a function to call when nobody needs them any more. The memory of a simulated
GPU is the processor's, and told as that.
Source:  dlpack.h of DLPack 1.0.
What is left out: arrays with gaps, as everywhere; numbers that NumPy has no type for.
"""

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minihybrid.core.context import Context
from minihybrid.core.op import AttrError

CPU, CUDA = 1, 2  # device types of DLPack
CODES = {"i": 0, "u": 1, "f": 2, "b": 6}  # NumPy's kinds of numbers, in DLPack
KINDS = {code: kind for kind, code in CODES.items()}


# -- dlpack.h --------------------------------------------------------------------------
class Tensor(ctypes.Structure):
    """DLTensor: where the numbers are, and how they lie."""

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
    """DLManagedTensor: a tensor with somebody to tell that it is not needed any more."""

    _fields_ = [("tensor", Tensor), ("manager", ctypes.c_void_p), ("deleter", Deleter)]
    name = b"dltensor"


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned: the same since DLPack 1.0; only such may be written."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]
    name = b"dltensor_versioned"


# Python's own functions; a capsule that is being destroyed goes by its address.
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


# -- out -------------------------------------------------------------------------------
LENT: dict[int, tuple] = {}  # address of a Managed or Versioned -> all that must live as long


@Deleter
def _take_back(address: int) -> None:
    """Nobody needs the memory any more, but kernels on their stream may still run."""
    array, stream, *_ = LENT.pop(address)
    if stream is not None:
        array.device.synchronize(stream)


@Deleter
def _drop(capsule: int) -> None:
    """The end of a capsule; if nobody took the tensor out, it is not needed."""
    for kind in (Managed, Versioned):
        if _is_valid(capsule, kind.name):
            _take_back(_pointer(capsule, kind.name))


for _function in (_take_back, _drop):  # C may call them when this module is gone
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_function))


def capsule_of(array: Any, kind: type[Managed | Versioned], stream: Any = None) -> Any:
    """A DLPack capsule over a DeviceArray's memory.

    kind:    Managed or Versioned.
    stream:  the consumer's, to wait for before the memory is used again.
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
    """(device type, number) of a context, in DLPack's terms."""
    return (CUDA, context.device_id) if context.device_type == "gpu" else (CPU, 0)


def strides_of(shape: Sequence[int], dtype: np.dtype) -> tuple[int, ...]:
    """The bytes from one element of each axis to the next, without gaps.

    >>> import numpy as np
    >>> strides_of((2, 3), np.dtype("float32"))
    (12, 4)
    """
    return tuple(math.prod(shape[i + 1 :]) * dtype.itemsize for i in range(len(shape)))


# -- in --------------------------------------------------------------------------------
USED = {Managed: b"used_dltensor", Versioned: b"used_dltensor_versioned"}


def taken(capsule: Any, kind: type[Managed | Versioned]) -> None:
    """Mark a capsule whose memory somebody has now: another one must not take it."""
    _rename(id(capsule), USED[kind])


class Given:
    """A capsule as an object that can be asked for it, as NumPy wants it."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        _, managed = opened(self.capsule)
        return managed.tensor.device_type, managed.tensor.device_id


def opened(capsule: Any) -> tuple[int, Managed | Versioned]:
    """(address, Managed or Versioned) in a capsule that nobody took it out of.

    Raises:  AttrError if there is none.
    """
    for kind in (Managed, Versioned):
        if _is_valid(id(capsule), kind.name):
            address = _pointer(id(capsule), kind.name)
            return address, kind.from_address(address)
    raise AttrError(
        "from_dlpack: the capsule was used already, or is none of "
        "DLPack's; each is used once, so ask for another"
    )
