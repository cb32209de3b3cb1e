"""Other libraries read and write our arrays' memory, and we theirs.

Takes:   NDArrays, and arrays of NumPy, PyTorch, CuPy, JAX, Numba.
Gives:   `nd.from_dlpack`, which also reads the CUDA Array Interface, version 3; and
         `to_dlpack_for_read` and `to_dlpack_for_write`, as MXNet spells the way out.

Nothing is copied. The way out are methods of NDArray.
Source:  "CUDA Array Interface (Version 3)", Numba's manual.
What is left out: arrays with gaps, as everywhere; numbers that NumPy has no type for.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minihybrid.core.array import NDArray, arrays
from minihybrid.core.context import Context
from minihybrid.core.hooks import FACES, own_names
from minihybrid.core.op import AttrError, HybridError
from minihybrid.runtime.device import Device, device_of
from minihybrid.runtime.device_array import DeviceArray
from minihybrid.runtime.dlpack import CUDA, KINDS, Given, opened, strides_of, taken


class Borrowed:
    """Somebody else's memory: dropped, it is theirs again when our work is done."""

    def __init__(self, device: Device, give_back: Callable[[], object]) -> None:
        self.device, self.give_back = device, give_back

    def __del__(self) -> None:
        self.device.synchronize()
        self.give_back()


def from_dlpack(x: Any) -> NDArray:
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
        raise AttrError(
            f"from_dlpack: a {type(x).__name__} has no __dlpack__ method; "
            "make an array of it with nd.array(...)"
        )
    kind, number = x.__dlpack_device__()
    if kind == CUDA:
        return NDArray(_from_capsule(x, number))
    array = np.from_dlpack(x)
    _check_dense(array.shape, array.strides, array.dtype)
    return NDArray(array)


def _from_capsule(x: Any, number: int) -> DeviceArray:
    device = device_of(Context("gpu", number))
    capsule = x.__dlpack__(stream=int(device.stream))  # they see to the order of work
    address, managed = opened(capsule)
    tensor = managed.tensor
    shape = tuple(tensor.shape[: tensor.ndim])
    if tensor.code not in KINDS or tensor.lanes != 1:
        raise HybridError(
            f"from_dlpack: numbers of DLPack's type {tensor.code} with {tensor.bits} bits are "
            "unknown here; make them float32 first"
        )
    dtype = np.dtype(f"{KINDS[tensor.code]}{tensor.bits // 8}")
    if tensor.strides:
        steps = (s * dtype.itemsize for s in tensor.strides[: tensor.ndim])
        _check_dense(shape, tuple(steps), dtype)
    taken(capsule, type(managed))

    def give_back() -> None:
        if managed.deleter:
            managed.deleter(address)

    return DeviceArray(
        device, shape, dtype, (tensor.data or 0) + tensor.byte_offset, Borrowed(device, give_back)
    )


def _from_cuda(x: Any, interface: dict[str, Any]) -> DeviceArray:
    """A DeviceArray over what `__cuda_array_interface__` tells; `x` owns the memory."""
    address, shape, dtype = interface["data"][0], interface["shape"], np.dtype(interface["typestr"])
    if interface.get("strides"):
        _check_dense(shape, interface["strides"], dtype)
    first = device_of(Context("gpu", 0))
    driver, number = first.driver, 0
    if address:
        kind = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        number = first.check(
            driver.cuPointerGetAttribute(kind, address), "asking where an address is"
        )
    device = device_of(Context("gpu", number))
    if interface.get("stream"):  # what was asked for there comes first
        device.synchronize(interface["stream"])
    owner = [x]
    return DeviceArray(device, shape, dtype, address, Borrowed(device, owner.clear))


def _check_dense(shape: Sequence[int], strides: Sequence[int], dtype: np.dtype) -> None:
    """Raise an error if strides, in bytes, leave gaps; those of length 1 do not count."""
    wanted = strides_of(shape, dtype)
    if math.prod(shape) and any(
        n > 1 and a != b for n, a, b in zip(shape, strides, wanted, strict=True)
    ):
        raise HybridError(
            f"from_dlpack: the array of shape {tuple(shape)} has strides of {tuple(strides)} "
            f"bytes, but {wanted} are needed; make it contiguous first"
        )


def capsule(
    array: NDArray,
    stream: Any,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """The memory of an array as a DLPack capsule; with copy=True, a copy's."""
    if dl_device not in (None, array.__dlpack_device__()):
        raise BufferError(
            f"__dlpack__: the array is on {array.context}, but the device {tuple(dl_device)} is "
            "asked for; move it there first, by x.as_in_context(...)"
        )
    data = array.detach().copy().data if copy else array.data
    known = {} if max_version is None else {"max_version": max_version}
    if type(data) is DeviceArray:
        known["stream"] = stream
    return data.__dlpack__(**known)


def to_dlpack_for_read(data: NDArray) -> Any:
    """A DLPack capsule over an array's memory, whose numbers are there."""
    return arrays("to_dlpack_for_read", [data])[0].to_dlpack_for_read()


def to_dlpack_for_write(data: NDArray) -> Any:
    """A DLPack capsule over an array's memory, to be written."""
    return arrays("to_dlpack_for_write", [data])[0].to_dlpack_for_write()


FACES["nd"].update(
    from_dlpack=from_dlpack,
    to_dlpack_for_read=to_dlpack_for_read,
    to_dlpack_for_write=to_dlpack_for_write,
)


def __dir__() -> list[str]:
    return own_names(globals())
