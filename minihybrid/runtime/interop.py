"""Zero-copy exchange of arrays with NumPy, PyTorch, CuPy, JAX and Numba.

Defines: `nd.from_dlpack`, which also accepts the CUDA Array Interface, version 3;
         `to_dlpack_for_read` and `to_dlpack_for_write`, MXNet's names for the export,
         which is implemented by methods of NDArray.

Source:  "CUDA Array Interface (Version 3)", Numba's manual.
Not supported: arrays that aren't contiguous; dtypes that NumPy lacks.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minihybrid.core.array import NDArray, arrays
from minihybrid.core.context import Context
from minihybrid.core.hooks import own_names
from minihybrid.core.op import AttrError, HybridError, described
from minihybrid.runtime.device import Device, device_of
from minihybrid.runtime.device_array import DeviceArray
from minihybrid.runtime.dlpack import CUDA, KINDS, Producer, mark_consumed, opened, strides_of


class Borrowed:
    """Another library's memory, released after a synchronization when it is dropped."""

    def __init__(self, device: Device, give_back: Callable[[], object]) -> None:
        self.device, self.give_back = device, give_back

    def __del__(self) -> None:
        self.device.synchronize()
        self.give_back()


def from_dlpack(x: Any) -> NDArray:
    """Return an NDArray that shares memory with another library's array or DLPack capsule.

    Raises:  HybridError if it isn't contiguous.

    >>> theirs = np.zeros(2, "float32")
    >>> ours = from_dlpack(theirs); ours[1] = 5
    >>> theirs
    array([0., 5.], dtype=float32)
    """
    if type(x).__name__ == "PyCapsule":
        x = Producer(x)
    if isinstance(x, type) or not hasattr(x, "__dlpack__"):
        if not isinstance(x, type) and hasattr(x, "__cuda_array_interface__"):
            return NDArray(_from_cuda(x, x.__cuda_array_interface__))
        raise AttrError(
            f"from_dlpack: {described(x)} has no __dlpack__ method; "
            "make an array of it with nd.array(...)"
        )
    kind, number = x.__dlpack_device__()
    if kind == CUDA:
        return NDArray(_from_capsule(x, number))
    try:
        array = np.from_dlpack(x)
    except (BufferError, TypeError):
        raise AttrError(f"from_dlpack: {described(x)} is no array of numbers") from None
    _check_dense(array.shape, array.strides, array.dtype)
    return NDArray(array)


def _from_capsule(x: Any, number: int) -> DeviceArray:
    device = device_of(Context("gpu", number))
    capsule = x.__dlpack__(stream=int(device.stream))  # the producer synchronizes
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
    mark_consumed(capsule, type(managed))

    def give_back() -> None:
        if managed.deleter:
            managed.deleter(address)

    return DeviceArray(
        device, shape, dtype, (tensor.data or 0) + tensor.byte_offset, Borrowed(device, give_back)
    )


def _from_cuda(x: Any, interface: dict[str, Any]) -> DeviceArray:
    """Return a DeviceArray for a `__cuda_array_interface__`; `x` owns the memory."""
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
    if interface.get("stream"):  # finish the producer's work first
        device.synchronize(interface["stream"])
    owner = [x]
    return DeviceArray(device, shape, dtype, address, Borrowed(device, owner.clear))


def _check_dense(shape: Sequence[int], strides: Sequence[int], dtype: np.dtype) -> None:
    """Raise unless strides, in bytes, are contiguous; axes of length 1 don't matter."""
    contiguous = strides_of(shape, dtype)
    if math.prod(shape) and any(
        n > 1 and a != b for n, a, b in zip(shape, strides, contiguous, strict=True)
    ):
        raise HybridError(
            f"from_dlpack: the array of shape {tuple(shape)} has strides of {tuple(strides)} "
            f"bytes, but {contiguous} are needed; make it contiguous first"
        )


def capsule(
    array: NDArray,
    stream: Any,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """Return the memory of an array, or a copy if copy=True, as a DLPack capsule."""
    if dl_device not in (None, array.__dlpack_device__()):
        raise BufferError(
            f"__dlpack__: the array is on {array.context}, but the device {tuple(dl_device)} is "
            "asked for; move it there first, by x.as_in_context(...)"
        )
    if np.dtype(array.dtype).kind == "V":
        raise BufferError(
            "__dlpack__: NumPy lends no bfloat16; convert the array by astype('float32')"
        )
    data = array.detach().copy().data if copy else array.data
    kwargs = {} if max_version is None else {"max_version": max_version}
    if type(data) is DeviceArray:
        kwargs["stream"] = stream
    return data.__dlpack__(**kwargs)


def to_dlpack_for_read(data: NDArray) -> Any:
    """Return a DLPack capsule of an array's memory, to read."""
    return arrays("to_dlpack_for_read", [data])[0].to_dlpack_for_read()


def to_dlpack_for_write(data: NDArray) -> Any:
    """Return a DLPack capsule of an array's memory, to write."""
    return arrays("to_dlpack_for_write", [data])[0].to_dlpack_for_write()


__dir__ = own_names(globals())
