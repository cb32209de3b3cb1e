"""Chapter 20. Other libraries read and write our arrays' memory, and we theirs.

Takes:   NDArrays, and arrays of NumPy, PyTorch, CuPy, JAX, Numba.
Gives:   DLPack out (`__dlpack__`) and in (`nd.from_dlpack`), also as MXNet spells it;
         `__cuda_array_interface__`, version 3, out and in.

Nothing is copied. On the processor NumPy speaks DLPack for us. For a device the capsule
is made here: a C structure that says where the numbers are, and a function to call when
nobody needs them any more. The memory of a simulated GPU is the processor's, and told
as that.
Source:  dlpack.h of DLPack 1.0; "CUDA Array Interface (Version 3)", Numba's manual.
What is left out: arrays with gaps, as everywhere; numbers that NumPy has no type for.
"""

import ctypes
import math

import numpy as np

from minihybrid import nd
from minihybrid.array import NDArray, arrays
from minihybrid.context import Context
from minihybrid.device import device_of
from minihybrid.devicearray import DeviceArray, strides_of
from minihybrid.op import AttrError, HybridError

CPU, CUDA = 1, 2  # device types of DLPack
CODES = {"i": 0, "u": 1, "f": 2, "b": 6}  # NumPy's kinds of numbers, in DLPack
KINDS = {code: kind for kind, code in CODES.items()}


# -- dlpack.h --------------------------------------------------------------------------
class Tensor(ctypes.Structure):
    """DLTensor: where the numbers are, and how they lie."""

    _fields_ = [("data", ctypes.c_void_p),
                ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    """DLManagedTensor: a tensor with somebody to tell that it is not needed any more.
    """

    _fields_ = [("tensor", Tensor), ("manager", ctypes.c_void_p), ("deleter", Deleter)]
    name = b"dltensor"


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned: the same since DLPack 1.0; only such may be written."""

    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("manager", ctypes.c_void_p), ("deleter", Deleter),
                ("flags", ctypes.c_uint64), ("tensor", Tensor)]
    name = b"dltensor_versioned"


# Python's own functions; a capsule that is being destroyed goes by its address.
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, Deleter)(
    ("PyCapsule_New", ctypes.pythonapi))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_SetName", ctypes.pythonapi))


# -- out -------------------------------------------------------------------------------
LENT = {}  # address of a Managed or Versioned -> all that must live as long


@Deleter
def _take_back(address):
    """Nobody needs the memory any more, but kernels on their stream may still run."""
    array, stream, *_ = LENT.pop(address)
    if stream is not None:
        array.device.synchronize(stream)


@Deleter
def _drop(capsule):
    """The end of a capsule; if nobody took the tensor out, it is not needed."""
    for kind in (Managed, Versioned):
        if _is_valid(capsule, kind.name):
            _take_back(_pointer(capsule, kind.name))


for _function in (_take_back, _drop):  # C may call them when this module is gone
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_function))


def capsule_of(array, kind, stream=None):
    """A DLPack capsule over a DeviceArray's memory.

    kind:    Managed or Versioned.
    stream:  the consumer's, to wait for before the memory is used again.
    """
    n = array.ndim
    shape, steps = (ctypes.c_int64 * n)(*array.shape), (ctypes.c_int64 * n)(
        *(s // array.dtype.itemsize for s in strides_of(array.shape, array.dtype)))
    place = dlpack_device(array.context)
    tensor = Tensor(array.address if array.size else None, *place, n,
                    CODES[array.dtype.kind], array.dtype.itemsize * 8, 1, shape, steps)
    managed = kind(tensor=tensor, deleter=_take_back)
    if kind is Versioned:
        managed.major = 1
    address = ctypes.addressof(managed)
    LENT[address] = array, stream, managed, shape, steps
    return _new(address, kind.name, _drop)


def dlpack_device(context):
    """(device type, number) of a context, in DLPack's terms."""
    return (CUDA, context.device_id) if context.device_type == "gpu" else (CPU, 0)


def _dlpack_device(self):
    """Where the numbers are, in DLPack's terms: (type, number)."""
    return dlpack_device(self.context)


def _dlpack(self, stream=None, max_version=None, dl_device=None, copy=None):
    """The same memory as a DLPack capsule; with copy=True, a copy's.

    stream:  the consumer's; all work is done when this returns, unless it is -1.
    Raises:  BufferError for another device than the array's.
    """
    if dl_device not in (None, self.__dlpack_device__()):
        raise BufferError(f"__dlpack__: the array is on {self.context}, but the device "
                          f"{tuple(dl_device)} is asked for; move it there first, by "
                          "x.as_in_context(...)")
    array = self.detach().copy() if copy else self
    if type(array.data) is np.ndarray:
        known = {} if max_version is None else {"max_version": max_version}
        return array.data.__dlpack__(**known)
    if stream == -1:  # they wait themselves
        stream = None
    else:
        array.wait_to_read()
    kind = Versioned if max_version and max_version[0] > 0 else Managed
    return capsule_of(array.data, kind, stream)


def _cuda_array_interface(self):
    """The address of the numbers, as CUDA libraries ask for it; on real GPUs only."""
    if self.context.device_type != "gpu":
        raise AttributeError("__cuda_array_interface__: the array is on "
                             f"{self.context}, not on a GPU")
    data = self.data
    return {"shape": data.shape, "typestr": data.dtype.str, "strides": None,
            "data": (data.address if data.size else 0, False), "version": 3,
            "stream": int(data.device.stream)}


# -- in --------------------------------------------------------------------------------
class Borrowed:
    """Somebody else's memory: dropped, it is theirs again when our work is done."""

    def __init__(self, device, give_back):
        self.device, self.give_back = device, give_back

    def __del__(self):
        self.device.synchronize()
        self.give_back()


USED = {Managed: b"used_dltensor", Versioned: b"used_dltensor_versioned"}


class Given:
    """A capsule as an object that can be asked for it, as NumPy wants it."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        _, managed = opened(self.capsule)
        return managed.tensor.device_type, managed.tensor.device_id


def opened(capsule):
    """(address, Managed or Versioned) in a capsule that nobody took it out of.

    Raises:  AttrError if there is none.
    """
    for kind in (Managed, Versioned):
        if _is_valid(id(capsule), kind.name):
            address = _pointer(id(capsule), kind.name)
            return address, kind.from_address(address)
    raise AttrError("from_dlpack: the capsule was used already, or is none of "
                    "DLPack's; each is used once, so ask for another")


def from_dlpack(x):
    """An array over the memory of another library's array, or of a DLPack capsule.

    Raises:  HybridError if there are gaps between its numbers.

    >>> theirs = np.zeros(2, "float32")
    >>> ours = from_dlpack(theirs); ours[1] = 5
    >>> theirs
    array([0., 5.], dtype=float32)
    """
    if type(x).__name__ == "PyCapsule":
        x = Given(x)
    if not hasattr(x, "__dlpack__") and hasattr(x, "__cuda_array_interface__"):
        return NDArray(_from_cuda(x, x.__cuda_array_interface__))
    if not hasattr(x, "__dlpack__"):
        raise AttrError(f"from_dlpack: a {type(x).__name__} has no __dlpack__ method; "
                        "make an array of it with nd.array(...)")
    kind, number = x.__dlpack_device__()
    if kind == CUDA:
        return NDArray(_from_capsule(x, number))
    array = np.from_dlpack(x)
    _check_dense(array.shape, array.strides, array.dtype)
    return NDArray(array)


def _from_capsule(x, number):
    device = device_of(Context("gpu", number))
    capsule = x.__dlpack__(stream=int(device.stream))  # they see to the order of work
    address, managed = opened(capsule)
    tensor = managed.tensor
    shape = tuple(tensor.shape[:tensor.ndim])
    if tensor.code not in KINDS or tensor.lanes != 1:
        raise HybridError(f"from_dlpack: numbers of DLPack's type {tensor.code} with "
                          f"{tensor.bits} bits are unknown here; make them float32 "
                          "first")
    dtype = np.dtype(f"{KINDS[tensor.code]}{tensor.bits // 8}")
    if tensor.strides:
        steps = (s * dtype.itemsize for s in tensor.strides[:tensor.ndim])
        _check_dense(shape, tuple(steps), dtype)
    _rename(id(capsule), USED[type(managed)])

    def give_back():
        if managed.deleter:
            managed.deleter(address)

    return DeviceArray(device, shape, dtype, (tensor.data or 0) + tensor.byte_offset,
                       Borrowed(device, give_back))


def _from_cuda(x, told):
    """A DeviceArray over what `__cuda_array_interface__` tells; `x` owns the memory."""
    address, shape, dtype = told["data"][0], told["shape"], np.dtype(told["typestr"])
    if told.get("strides"):
        _check_dense(shape, told["strides"], dtype)
    first = device_of(Context("gpu", 0))
    driver, number = first.driver, 0
    if address:
        kind = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        number = first.check(driver.cuPointerGetAttribute(kind, address),
                             "asking where an address is")
    device = device_of(Context("gpu", number))
    if told.get("stream"):  # what was asked for there comes first
        device.synchronize(told["stream"])
    owner = [x]
    return DeviceArray(device, shape, dtype, address, Borrowed(device, owner.clear))


def _check_dense(shape, strides, dtype):
    """Raise an error if strides, in bytes, leave gaps; those of length 1 do not count.
    """
    wanted = strides_of(shape, dtype)
    if math.prod(shape) and any(n > 1 and a != b for n, a, b
                                in zip(shape, strides, wanted, strict=True)):
        raise HybridError(f"from_dlpack: the array of shape {tuple(shape)} has strides "
                          f"of {tuple(strides)} bytes, but {wanted} are needed; make "
                          "it contiguous first")


def to_dlpack_for_read(data):
    """A DLPack capsule over an array's memory, whose numbers are there."""
    return arrays("to_dlpack_for_read", [data])[0].__dlpack__()


def to_dlpack_for_write(data):
    """A DLPack capsule over an array's memory, to be written."""
    return arrays("to_dlpack_for_write", [data])[0].__dlpack__(max_version=(1, 0))


# Arrays come before their neighbours in the reading order; their methods come here.
NDArray.__dlpack__, NDArray.__dlpack_device__ = _dlpack, _dlpack_device
NDArray.__cuda_array_interface__ = property(_cuda_array_interface)
NDArray.to_dlpack_for_read = to_dlpack_for_read
NDArray.to_dlpack_for_write = to_dlpack_for_write
nd.from_dlpack, nd.to_dlpack_for_read = from_dlpack, to_dlpack_for_read
nd.to_dlpack_for_write = to_dlpack_for_write
