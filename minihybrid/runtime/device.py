"""Chapter 28. A device: its driver, its stream of work, and its memory.

Takes:   a context.
Gives:   `device_of(context)`, the `Device`: blocks of memory, copies from and to the
         processor's, kernels. A simulated GPU has a driver with the same functions.

All work of a device goes through one stream, one piece after the other. So a block of
memory may be used again as soon as Python has dropped it: whatever still reads it was
asked for earlier, and comes first.
What is left out: copies beside kernels, for which a second stream would be needed.
"""

from contextlib import suppress
from typing import Any

import numpy as np

from minihybrid.core.context import Context
from minihybrid.core.fork_safe import ForkSafe
from minihybrid.core.op import HybridError
from minihybrid.core.placement import DEVICES

ALIGNED = 256  # bytes: what cuMemAlloc promises; vector loads need 16
OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
STARTING = ForkSafe()


def device_of(context: Context) -> "Device":
    """The one Device of a GPU or a simulated GPU; started when it is first asked for.

    >>> from minihybrid.core.context import simulated_gpu
    >>> device_of(simulated_gpu()) is device_of(simulated_gpu())
    True
    """
    with STARTING.lock:
        if context not in DEVICES:
            DEVICES[context] = Device(context, driver_of(context))
        return DEVICES[context]


def driver_of(context: Context) -> Any:
    """The functions of a driver: CUDA's own, or those of a simulated one."""
    if context.device_type == "gpu":
        from cuda.bindings import driver

        return driver
    from minihybrid.simt.driver import SimulatedDriver

    return SimulatedDriver(context.fast)


def count_gpus() -> int:
    """How many GPUs the driver of CUDA counts; 0 also where it cannot be called."""
    try:
        from cuda.bindings import driver

        driver.cuInit(0)
        error, count = driver.cuDeviceGetCount()
    except Exception:  # not installed, or damaged: for us, there is no GPU
        return 0
    return 0 if error else count


class Memory:
    """A block of a device's memory; its bytes are free again when it is dropped."""

    __slots__ = ("device", "address", "nbytes")

    def __init__(self, device: "Device", address: int, nbytes: int) -> None:
        self.device, self.address, self.nbytes = device, address, nbytes

    def __del__(self) -> None:
        self.device.free.setdefault(self.nbytes, []).append(self.address)


class Device:
    """What runs kernels and holds arrays.

    driver:      the functions of cuda.bindings.driver, real or simulated.
    stream:      where all work is queued; its own, and non-blocking.
    free:        nbytes -> addresses of blocks that nobody uses.
    n_launches, n_allocations:  how often kernels or graphs were launched, and how often
                 the driver was asked for memory.
    """

    target = "gpu"  # whose kernels it runs

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
        )  # also PyTorch's and CuPy's
        self.enter()
        self.stream = self.check(
            cu.cuStreamCreate(cu.CUstream_flags.CU_STREAM_NON_BLOCKING), "making a stream"
        )

    def __repr__(self) -> str:
        return f"<Device {self.context}>"

    def enter(self) -> None:
        """Make the device current in this thread, as the driver's functions need it.

        Always done: other libraries, too, change what is current.
        """
        self.check(self.driver.cuCtxSetCurrent(self.primary), "using the device")

    def check(self, result: tuple, doing: str) -> Any:
        """What a function of the driver gave, without its error code.

        Raises:  HybridError with the driver's own name of the error.
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
        """A block of at least so many bytes; its address is a multiple of 256.

        Raises:  HybridError if the device has no more, also after it got back all
                 blocks that nobody uses.
        """
        size = bucket(nbytes)
        try:
            return Memory(self, self.free[size].pop(), size)
        except (KeyError, IndexError):  # there is none, or a thread was faster
            pass
        self.enter()
        error, address = self.driver.cuMemAlloc(size)
        if error == OUT_OF_MEMORY:
            given = self.give_back()
            error, address = self.driver.cuMemAlloc(size)
            if error == OUT_OF_MEMORY:
                raise HybridError(
                    f"{self.context}: {size} bytes of memory are needed, but the "
                    f"device has no more, even with {given} unused bytes given back; "
                    "use smaller batches, or drop arrays"
                )
        self.check((error,), f"allocating {size} bytes")
        self.n_allocations += 1
        return Memory(self, int(address), size)

    def give_back(self) -> int:
        """Hand all blocks that nobody uses back to the driver; returns their bytes."""
        blocks = []
        for size, addresses in list(self.free.items()):
            with suppress(IndexError):  # pop until there is none: others may pop, too
                while True:
                    blocks.append((size, addresses.pop()))
        self.synchronize()  # kernels that were asked for may still read them
        for _, address in blocks:
            self.check(self.driver.cuMemFree(address), "giving memory back")
        return sum(size for size, _ in blocks)

    def upload(self, address: int, array: np.ndarray) -> None:
        """Copy a NumPy array, C-contiguous, to an address; done on return."""
        if array.nbytes:
            self.enter()
            self.check(
                self.driver.cuMemcpyHtoDAsync(
                    address, array.ctypes.data, array.nbytes, self.stream
                ),
                f"copying {array.nbytes} bytes to the device",
            )
            self.synchronize()  # the driver may read them later; Python may free them

    def download(self, address: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """The numbers from an address on as a new NumPy array, after all work."""
        array = np.empty(shape, dtype)
        if array.nbytes:
            self.enter()
            self.check(
                self.driver.cuMemcpyDtoHAsync(
                    array.ctypes.data, address, array.nbytes, self.stream
                ),
                f"copying {array.nbytes} bytes from the device",
            )
            self.synchronize()
        return array

    def copy(self, to: int, source: int, nbytes: int) -> None:
        """Copy bytes from one address of this device to another."""
        if nbytes:
            self.enter()
            self.check(
                self.driver.cuMemcpyDtoDAsync(to, source, nbytes, self.stream),
                f"copying {nbytes} bytes on the device",
            )

    def fill(self, address: int, byte: int, nbytes: int) -> None:
        """Write one byte to every place of a region."""
        if nbytes:
            self.enter()
            self.check(
                self.driver.cuMemsetD8Async(address, byte, nbytes, self.stream),
                f"filling {nbytes} bytes",
            )

    def synchronize(self, stream: Any = None) -> None:
        """Return when all work of this device is done, or that of another's stream.

        Raises:  HybridError for what went wrong since the last time.
        """
        self.enter()
        stream = self.stream if stream is None else stream
        self.check(self.driver.cuStreamSynchronize(stream), "the queued work")

    # -- kernels
    def kernel(self, text: str, name: str) -> Any:
        """The function in a kernel's text, ready to be launched; loaded once."""
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
        """What the driver loads: machine code; the simulated one reads the text."""
        if self.is_simulated:
            return text.encode()
        from minihybrid.codegen.gpu.cuda import build

        return build(text, self.capability)[0]

    @property
    def capability(self) -> tuple[int, ...]:
        """The device's generation, such as (7, 5)."""
        kinds = self.driver.CUdevice_attribute
        return tuple(
            self.check(self.driver.cuDeviceGetAttribute(kind, self.handle), "asking the device")
            for kind in (
                kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            )
        )


def bucket(nbytes: int) -> int:
    """The size of the block for so many bytes: at most an eighth more, or 256.

    Few sizes let a block serve again for an array that is a little smaller.

    >>> bucket(1), bucket(257), bucket(100_000)
    (256, 512, 106496)
    """
    step = max(ALIGNED, 1 << max(nbytes - 1, 1).bit_length() >> 4)
    return max(-(-nbytes // step) * step, ALIGNED)


def _text(name: object) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)
