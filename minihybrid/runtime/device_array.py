"""Arrays in a device's memory, with NumPy's manners.

Takes:   a device, shapes, dtypes, NumPy arrays.
Gives:   `DeviceArray`, which an NDArray holds where it would hold a NumPy array.

Only memory without gaps: a part that has none shares the memory, another one is not
made here. No arithmetic: kernels do that.
What is left out: views with gaps; copies from one GPU to another but through the
processor.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from minihybrid.core.context import Context
from minihybrid.core.op import HybridError
from minihybrid.core.placement import Elsewhere, aligned, copy_to, is_basic
from minihybrid.runtime.device import Device, device_of
from minihybrid.runtime.dlpack import Managed, Versioned, capsule_of, dlpack_device, strides_of
from minihybrid.runtime.numbered_cpus import on


class DeviceArray(Elsewhere):
    """Numbers in a device's memory, C-contiguous.

    owner:   what keeps the memory: a Memory, or whatever lends it.

    >>> from minihybrid.core.context import simulated_gpu
    >>> x = copy_to(np.arange(6).reshape(2, 3), simulated_gpu())
    >>> x[1] = 7
    >>> np.asarray(x).tolist()
    [[0, 1, 2], [7, 7, 7]]
    """

    __slots__ = ("device", "shape", "dtype", "address", "owner", "__weakref__")

    def __init__(
        self,
        device: Device,
        shape: Iterable[int],
        dtype: Any,
        address: int = 0,
        owner: object = None,
    ) -> None:
        self.device, self.shape, self.dtype = device, tuple(shape), np.dtype(dtype)
        if owner is None:
            owner = device.alloc(self.nbytes)
            address = owner.address
        self.address, self.owner = address, owner

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        return self.size * self.dtype.itemsize

    @property
    def context(self) -> Context:
        """Where it is."""
        return self.device.context

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<DeviceArray {self.dtype}{list(self.shape)} @{self.context}>"

    # -- the same memory
    def reshape(self, *shape: Any) -> "DeviceArray":
        """The same memory under another shape; one length may be -1."""
        lengths: Any = shape[0] if len(shape) == 1 and np.iterable(shape[0]) else shape
        nowhere = np.broadcast_to(np.int8(0), self.shape)  # NumPy knows the rules
        return self.view(nowhere.reshape(lengths).shape)

    def __getitem__(self, key: Any) -> "DeviceArray":
        """A part in the same memory.

        Raises:  HybridError if it has gaps; operators gather such parts.
        """
        part = self.part(key)
        if part is None:
            raise HybridError(
                f"x[{key!r}]: this part of a {self} has gaps or is "
                "gathered; take it from the NDArray"
            )
        return part

    def view(self, shape: Iterable[int], dtype: Any = None, offset: int = 0) -> "DeviceArray":
        """The same memory, from a byte on, under another shape and dtype."""
        return DeviceArray(
            self.device, shape, dtype or self.dtype, self.address + offset, self.owner
        )

    def part(self, key: Any) -> "DeviceArray | None":
        """`self[key]` in the same memory; `None` if that has gaps.

        For whole numbers, slices and `...`, NumPy says where the part lies: on an array
        of this shape, whose elements nobody reads.

        Raises:  IndexError as NumPy does.
        """
        if not is_basic(key):
            return None
        nowhere = np.lib.stride_tricks.as_strided(
            np.empty(1, self.dtype), self.shape, strides_of(self.shape, self.dtype)
        )
        keys = key if isinstance(key, tuple) else (key,)
        dots = any(k is Ellipsis for k in keys)  # with them, no element is read
        part = nowhere[keys if dots else (*keys, ...)]
        if not part.flags.c_contiguous:
            return None
        return self.view(part.shape, offset=part.ctypes.data - nowhere.ctypes.data)

    # -- copies
    def copy(self) -> "DeviceArray":
        """The same numbers in other memory of the same device."""
        result = DeviceArray(self.device, self.shape, self.dtype)
        self.device.copy(result.address, self.address, self.nbytes)
        return result

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The numbers in the processor's memory, after all work of the device."""
        array = self.device.download(self.address, self.shape, self.dtype)
        return array if dtype is None else array.astype(dtype, copy=False)

    def __reduce__(self) -> tuple:
        return copy_to, (np.asarray(self), self.context)

    # -- to other libraries
    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack_device(self.context)

    def __dlpack__(self, stream: Any = None, max_version: tuple[int, int] | None = None) -> Any:
        """The same memory as a DLPack capsule.

        stream:  the consumer's; all work is done when this returns, unless it is -1.
        """
        if stream == -1:  # they wait themselves
            stream = None
        else:
            self.device.synchronize()
        kind = Versioned if max_version and max_version[0] > 0 else Managed
        return capsule_of(self, kind, stream)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The address of the numbers, as CUDA libraries ask for it."""
        if self.context.device_type != "gpu":
            raise AttributeError(
                f"__cuda_array_interface__: the array is on {self.context}, not on a GPU"
            )
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "strides": None,
            "data": (self.address if self.size else 0, False),
            "version": 3,
            "stream": int(self.device.stream),
        }

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write numbers, a NumPy array, or another array, as NumPy would broadcast."""
        part = self if key is Ellipsis else self.part(key)
        if part is not None:
            return part.write(value)
        # A region with gaps takes the way through the processor: the whole array
        # there, NumPy's assignment, and back.
        host = np.asarray(self)
        host[key] = np.asarray(value)
        self.device.upload(self.address, host)

    def write(self, value: Any) -> None:
        """Overwrite all numbers.

        An array of another shape, dtype or device takes the way through the processor.
        """
        if (
            isinstance(value, DeviceArray)
            and value.device is self.device
            and (value.shape, value.dtype) == (self.shape, self.dtype)
        ):
            return self.device.copy(self.address, value.address, self.nbytes)
        if np.ndim(value) == 0 and not isinstance(value, DeviceArray):
            one = set(np.asarray(value).astype(self.dtype).tobytes())
            if len(one) == 1:  # all bytes are the same, as those of 0 are
                return self.device.fill(self.address, one.pop(), self.nbytes)
        host = np.asarray(value, order="C")
        if (host.shape, host.dtype) != (self.shape, self.dtype):
            source, host = host, np.empty(self.shape, self.dtype)
            host[...] = source
        self.device.upload(self.address, host)


def new_on_device(shape: tuple[int, ...], dtype: Any, context: Context) -> np.ndarray | DeviceArray:
    """Uninitialized memory of a device that is not `cpu(0)`."""
    if context.device_type == "cpu":
        return on(aligned(shape, dtype), context)
    return DeviceArray(device_of(context), shape, dtype)
