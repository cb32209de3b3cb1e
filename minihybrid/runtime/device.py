"""Chapter 28. A GPU: its driver, stream and memory.

Defines: `device_of(context)`, which returns the `Device`: memory allocation, copies from
         and to the host, kernels. A simulated GPU has a driver with the same functions.

All work of a device is queued on one stream and runs in order. So a block of memory may be
reused as soon as Python drops it: kernels that still read it run first.
Not supported: copies concurrent with kernels, which would need a second stream.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from minihybrid.core.context import Context
from minihybrid.core.fork_safe import ForkSafe
from minihybrid.core.op import HybridError
from minihybrid.core.placement import DEVICES

ALIGNED = 256  # bytes: cuMemAlloc's alignment; vector loads need 16
OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
STARTING = ForkSafe()


def device_of(context: Context) -> "Device":
    """Return the Device of a GPU or a simulated GPU; initialize it at first use.

    >>> from minihybrid.core.context import simulated_gpu
    >>> device_of(simulated_gpu()) is device_of(simulated_gpu())
    True
    """
    with STARTING.lock:
        if context not in DEVICES:
            DEVICES[context] = Device(context, driver_of(context))
        return DEVICES[context]


def driver_of(context: Context) -> Any:
    """Return the driver's functions: CUDA's or the simulator's."""
    if context.device_type == "gpu":
        from cuda.bindings import driver

        return driver
    from minihybrid.simt.driver import SimulatedDriver

    return SimulatedDriver(context.fast)


def count_gpus() -> int:
    """Return the number of CUDA GPUs; 0 if the driver can't be loaded."""
    try:
        from cuda.bindings import driver

        driver.cuInit(0)
        error, count = driver.cuDeviceGetCount()
    except Exception:  # not installed, or broken: no GPU
        return 0
    return 0 if error else count


class Memory:
    """A block of device memory, returned to the free list when it is dropped."""

    __slots__ = ("device", "address", "nbytes")

    def __init__(self, device: "Device", address: int, nbytes: int) -> None:
        self.device, self.address, self.nbytes = device, address, nbytes

    def __del__(self) -> None:
        self.device.free.setdefault(self.nbytes, []).append(self.address)


class Device:
    """A GPU that runs kernels and holds arrays.

    driver:      the functions of cuda.bindings.driver, real or simulated.
    stream:      the non-blocking stream on which all work is queued.
    free:        nbytes -> addresses of free blocks.
    n_launches, n_allocations:  numbers of launches of kernels or graphs, and of
                 allocations from the driver.
    """

    target = "gpu"  # the key in TARGETS

    def __init__(self, context: Context, driver: Any) -> None:
        self.context, self.driver = context, driver
        self.is_simulated = context.device_type != "gpu"
        self.free: dict[int, list[int]] = {}
        self.kernels: dict[tuple[str, str], Any] = {}
        self.n_launches = self.n_allocations = 0
        cu, number = self.driver, 0 if self.is_simulated else context.device_id
        self.check(cu.cuInit(0), "starting the driver")
        self.handle = self.check(cu.cuDeviceGet(number), "finding the device")
        self.primary = self.check(
            cu.cuDevicePrimaryCtxRetain(self.handle), "using the device"
        )  # shared with PyTorch and CuPy
        self.enter()
        self.stream = self.check(
            cu.cuStreamCreate(cu.CUstream_flags.CU_STREAM_NON_BLOCKING), "making a stream"
        )

    def __repr__(self) -> str:
        return f"<Device {self.context}>"

    def enter(self) -> None:
        """Make the device current in this thread, as the driver requires.

        Always called, because other libraries may change it.
        """
        self.check(self.driver.cuCtxSetCurrent(self.primary), "using the device")

    def check(self, result: tuple, doing: str) -> Any:
        """Return a driver function's result without the error code.

        Raises:  HybridError with the driver's name for the error.
        """
        error, *values = result
        if error:
            _, name = self.driver.cuGetErrorName(error)
            _, text = self.driver.cuGetErrorString(error)
            raise HybridError(
                f"{self.context}: {doing} failed with {_text(name)} ({_text(text)}); if a kernel "
                "wrote outside of its arrays, mx.simulated_gpu() shows where"
            )
        return values[0] if len(values) == 1 else values

    # -- memory
    def alloc(self, nbytes: int) -> Memory:
        """Allocate at least `nbytes` bytes, aligned to 256.

        Raises:  HybridError if the device is out of memory even after all free blocks
                 were returned to the driver.
        """
        size = bucket(nbytes)
        try:
            return Memory(self, self.free[size].pop(), size)
        except (KeyError, IndexError):  # none, or another thread took it
            pass
        self.enter()
        error, address = self.driver.cuMemAlloc(size)
        if error == OUT_OF_MEMORY:
            released = self.give_back()
            error, address = self.driver.cuMemAlloc(size)
            if error == OUT_OF_MEMORY:
                raise HybridError(
                    f"{self.context}: {size} bytes of memory are needed, but the "
                    f"device has no more, even with {released} unused bytes given back; "
                    "use smaller batches, or drop arrays"
                )
        self.check((error,), f"allocating {size} bytes")
        self.n_allocations += 1
        return Memory(self, int(address), size)

    def give_back(self) -> int:
        """Return all free blocks to the driver; return their size in bytes."""
        blocks = []
        for size, addresses in list(self.free.items()):
            with suppress(IndexError):  # until it is empty: other threads may pop, too
                while True:
                    blocks.append((size, addresses.pop()))
        self.synchronize()  # queued kernels may still read them
        for _, address in blocks:
            self.check(self.driver.cuMemFree(address), "giving memory back")
        return sum(size for size, _ in blocks)

    def _queue(self, doing: str, function: Callable, to: int, source: int, nbytes: int) -> None:
        """Queue a copy of bytes, or a fill with one, unless there are none."""
        if nbytes:
            self.enter()
            self.check(function(to, source, nbytes, self.stream), doing.format(nbytes))

    def upload(self, address: int, array: np.ndarray) -> None:
        """Copy a contiguous NumPy array to an address, synchronously."""
        copy, source = self.driver.cuMemcpyHtoDAsync, array.ctypes.data
        self._queue("copying {} bytes to the device", copy, address, source, array.nbytes)
        self.synchronize()  # or Python might free the array before the copy

    def download(self, address: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Synchronize, and copy from an address into a new NumPy array."""
        array = np.empty(shape, dtype)
        copy, to = self.driver.cuMemcpyDtoHAsync, array.ctypes.data
        self._queue("copying {} bytes from the device", copy, to, address, array.nbytes)
        self.synchronize()
        return array

    def copy(self, to: int, source: int, nbytes: int) -> None:
        """Copy bytes from one address of this device to another."""
        copy = self.driver.cuMemcpyDtoDAsync
        self._queue("copying {} bytes on the device", copy, to, source, nbytes)

    def fill(self, address: int, byte: int, nbytes: int) -> None:
        """Fill a region with one byte value."""
        self._queue("filling {} bytes", self.driver.cuMemsetD8Async, address, byte, nbytes)

    def synchronize(self, stream: Any = None) -> None:
        """Block until this device's stream, or the given one, has finished.

        Raises:  HybridError for errors since the last synchronization.
        """
        self.enter()
        stream = self.stream if stream is None else stream
        self.check(self.driver.cuStreamSynchronize(stream), "the queued work")

    # -- kernels
    def kernel(self, text: str, name: str) -> Any:
        """Return the function of a kernel's source, compiled and loaded once."""
        if (text, name) not in self.kernels:
            self.enter()
            image = self._image(text)
            library = self.check(
                self.driver.cuLibraryLoadData(image, [], [], 0, [], [], 0),
                f"loading the kernel {name}",
            )
            handle = self.check(
                self.driver.cuLibraryGetKernel(library, name.encode()), f"finding the kernel {name}"
            )
            self.kernels[text, name] = self.check(
                self.driver.cuKernelGetFunction(handle), f"loading the kernel {name}"
            )
        return self.kernels[text, name]

    def _image(self, text: str) -> bytes:
        """Return the image that the driver loads: machine code, or source for the simulator."""
        if self.is_simulated:
            return text.encode()
        from minihybrid.codegen.gpu.cuda import build

        return build(text, self.capability)[0]

    @property
    def capability(self) -> tuple[int, ...]:
        """The compute capability, such as (7, 5)."""
        kinds = self.driver.CUdevice_attribute
        return tuple(
            self.check(self.driver.cuDeviceGetAttribute(kind, self.handle), "asking the device")
            for kind in (
                kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            )
        )


def bucket(nbytes: int) -> int:
    """Return the size class of an allocation: at most an eighth more, or 256.

    Few size classes let a block be reused for slightly smaller arrays.

    >>> bucket(1), bucket(257), bucket(100_000)
    (256, 512, 106496)
    """
    step = max(ALIGNED, 1 << max(nbytes - 1, 1).bit_length() >> 4)
    return max(-(-nbytes // step) * step, ALIGNED)


def _text(name: object) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)
