"""Chapter 28. A simulated CUDA driver: the interface of `cuda.bindings.driver`.

Uses:    the driver calls that the runtime makes for a real GPU.
Defines: `SimulatedDriver`, an object with the same functions: memory is host memory,
         kernels run in the simulator, and every call is synchronous.

Errors of correct programs (out of memory, no such kernel) return the real driver's error
codes. Errors of faulty programs (an invalid pointer, a copy beyond an allocation) raise
an exception with a one-sentence message.
Not supported: concurrent streams, events, multiple contexts.
"""

import ctypes
from functools import cache
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np

from minihybrid.core.op import HybridError
from minihybrid.simt.fast import FastProgram
from minihybrid.simt.heap import Heap
from minihybrid.simt.lockstep import MAX_SHARED, MAX_THREADS, WARP
from minihybrid.simt.program import Program

ERRORS = {
    0: ("CUDA_SUCCESS", "no error"),
    1: ("CUDA_ERROR_INVALID_VALUE", "invalid argument"),
    2: ("CUDA_ERROR_OUT_OF_MEMORY", "out of memory"),
    101: ("CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"),
    500: ("CUDA_ERROR_NOT_FOUND", "named symbol not found"),
}
SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, INVALID_DEVICE, NOT_FOUND = ERRORS
VERSION, N_DEVICES = 13000, 8
ATTRIBUTES = {
    "MAX_THREADS_PER_BLOCK": MAX_THREADS,
    "MAX_SHARED_MEMORY_PER_BLOCK": MAX_SHARED,
    "WARP_SIZE": WARP,
    "MULTIPROCESSOR_COUNT": 1,
    "COMPUTE_CAPABILITY_MAJOR": 0,
    "COMPUTE_CAPABILITY_MINOR": 0,
}


@cache
def program_of(text: str, fast: bool) -> FastProgram | Program:
    """Return the program of a kernel's source, cached."""
    return (FastProgram if fast else Program)(text)


class SimulatedDriver:
    """A driver for a simulated GPU; its functions are named as in CUDA.

    fast:   whether kernels are compiled by Numba and run without checks;
    memory: the size of device memory in bytes.

    >>> driver = SimulatedDriver()
    >>> driver.cuDeviceGetName(64, 0)
    (0, b'simulated GPU')
    >>> error, address = driver.cuMemAlloc(100)
    >>> error, driver.cuMemFree(address)
    (0, (0,))
    """

    # The real enums, as far as they're used; the values are this driver's.
    CUdevice_attribute = SimpleNamespace(
        **{f"CU_DEVICE_ATTRIBUTE_{name}": name for name in ATTRIBUTES}
    )
    CUstream_flags = SimpleNamespace(CU_STREAM_DEFAULT=0, CU_STREAM_NON_BLOCKING=1)

    class CUDA_KERNEL_NODE_PARAMS:
        """The launch of a graph's kernel node; fields as in CUDA."""

        def __init__(self) -> None:
            self.func = self.kernelParams = self.extra = 0
            self.gridDimX = self.gridDimY = self.gridDimZ = 1
            self.blockDimX = self.blockDimY = self.blockDimZ = 1
            self.sharedMemBytes = 0

    def __init__(self, fast: bool = False, memory: int = 1 << 36) -> None:
        self.fast, self.heap = fast, Heap(memory)
        self.handles: dict[int, Any] = {}
        self.numbers = count(1)  # the next handle
        self.n_launches = 0

    def keep(self, thing: Any) -> int:
        """Return a new integer handle for an object."""
        number = next(self.numbers)
        self.handles[number] = thing
        return number

    def find(self, handle: int, what: str) -> Any:
        """Return the object of a handle."""
        try:
            return self.handles[int(handle)]
        except KeyError:
            raise HybridError(
                f"simulated GPU: {handle} is no {what}, or one that was destroyed"
            ) from None

    # -- errors and devices ------------------------------------------------------------
    def cuGetErrorName(self, error: int) -> tuple:
        """Return the name of an error code."""
        return SUCCESS, ERRORS[int(error)][0].encode()

    def cuGetErrorString(self, error: int) -> tuple:
        """Return the description of an error code."""
        return SUCCESS, ERRORS[int(error)][1].encode()

    def done(self, *_: int) -> tuple:
        """Do nothing: there is one context, and all work is complete."""
        return (SUCCESS,)

    cuInit = cuCtxSetCurrent = cuStreamSynchronize = done

    def cuDriverGetVersion(self) -> tuple:
        """Return the CUDA version that this driver implements."""
        return SUCCESS, VERSION

    def cuDeviceGetCount(self) -> tuple:
        """Return the number of devices."""
        return SUCCESS, N_DEVICES

    def cuDeviceGet(self, ordinal: int) -> tuple:
        """Return a device by its index."""
        exists = 0 <= ordinal < N_DEVICES
        return (SUCCESS, ordinal) if exists else (INVALID_DEVICE, None)

    def cuDeviceGetName(self, length: int, device: int) -> tuple:
        """Return the name of a device."""
        return SUCCESS, b"simulated GPU"[:length]

    def cuDeviceGetAttribute(self, attribute: str, device: int) -> tuple:
        """Return a property of a device."""
        return SUCCESS, ATTRIBUTES[attribute]

    def cuDevicePrimaryCtxRetain(self, device: int) -> tuple:
        """Return the context of a device."""
        return SUCCESS, self.keep("context")

    def cuStreamCreate(self, flags: int) -> tuple:
        """Return a stream; its work is synchronous."""
        return SUCCESS, self.keep("stream")

    # -- memory ------------------------------------------------------------------------
    def cuMemAlloc(self, nbytes: int) -> tuple:
        """Return the address of new memory, filled with bytes of 255: NaN as floats."""
        if nbytes <= 0:
            return INVALID_VALUE, None
        if nbytes > self.heap.free:
            return OUT_OF_MEMORY, None
        return SUCCESS, self.heap.take(nbytes)

    def cuMemFree(self, address: int) -> tuple:
        """Free memory."""
        self.heap.give(int(address))
        return (SUCCESS,)

    def cuMemsetD8Async(self, address: int, value: int, nbytes: int, stream: int) -> tuple:
        """Fill memory with a byte value."""
        self.heap.bytes(address, nbytes)[:] = value
        return (SUCCESS,)

    def cuMemcpyHtoDAsync(self, address: int, host: int, nbytes: int, stream: int) -> tuple:
        """Copy from host to device memory."""
        ctypes.memmove(self.heap.bytes(address, nbytes).ctypes.data, int(host), nbytes)
        return (SUCCESS,)

    def cuMemcpyDtoHAsync(self, host: int, address: int, nbytes: int, stream: int) -> tuple:
        """Copy from device to host memory."""
        ctypes.memmove(int(host), self.heap.bytes(address, nbytes).ctypes.data, nbytes)
        return (SUCCESS,)

    def cuMemcpyDtoDAsync(self, to: int, source: int, nbytes: int, stream: int) -> tuple:
        """Copy within device memory."""
        self.heap.bytes(to, nbytes)[:] = self.heap.bytes(source, nbytes)
        return (SUCCESS,)

    # -- kernels -----------------------------------------------------------------------
    def cuLibraryLoadData(
        self,
        code: bytes,
        options: list,
        option_values: list,
        n_options: int,
        library_options: list,
        library_values: list,
        n_library_options: int,
    ) -> tuple:
        """Load a library from a kernel's source; the real driver takes machine code."""
        return SUCCESS, self.keep(program_of(bytes(code).decode(), self.fast))

    def cuLibraryGetKernel(self, library: int, name: bytes) -> tuple:
        """Return a kernel of a library by name."""
        program = self.find(library, "library")
        if program.name != name.decode():
            return NOT_FOUND, None
        return SUCCESS, self.keep(program)

    def cuKernelGetFunction(self, kernel: int) -> tuple:
        """Return a kernel's launchable function."""
        return SUCCESS, kernel

    def cuLaunchKernel(
        self,
        function: int,
        grid_x: int,
        grid_y: int,
        grid_z: int,
        block_x: int,
        block_y: int,
        block_z: int,
        shared_nbytes: int,
        stream: int,
        arguments: int,
        extra: int,
    ) -> tuple:
        """Run a kernel for all threads of a grid."""
        self.n_launches += 1
        program = self.find(function, "function")
        self.start(
            program,
            (grid_x, grid_y, grid_z),
            (block_x, block_y, block_z),
            read_values(arguments, len(program.params)),
        )
        return (SUCCESS,)

    def start(
        self, program: FastProgram | Program, grid: tuple, block: tuple, values: list
    ) -> None:
        """Run a program with 8-byte arguments: addresses or scalars."""
        args = []
        for value, (name, dtype, size) in zip(values, program.params, strict=True):
            if size is None:
                args.append(value.view(dtype)[0])
            else:
                args.append(
                    self.heap.array(
                        int(value[0]),
                        dtype,
                        size,
                        f"kernel '{program.name}': {name}",
                        min(16, dtype.itemsize * (4 if name in program.vectors else 1)),
                    )
                )
        program.run(grid, block, args)

    # -- graphs ------------------------------------------------------------------------
    def cuGraphCreate(self, flags: int) -> tuple:
        """Create an empty graph."""
        return SUCCESS, self.keep([])

    def cuGraphAddKernelNode(
        self, graph: int, dependencies: list, n_dependencies: int, params: Any
    ) -> tuple:
        """Add a launch to a graph; its arguments are copied."""
        node = self.keep(None)
        nodes = self.find(graph, "graph")
        handles = [number for number, _ in nodes]
        if any(int(before) not in handles for before in dependencies or ()):
            return INVALID_VALUE, None
        nodes.append((node, self.copied(params)))
        return SUCCESS, node

    def copied(self, params: Any) -> tuple:
        """Copy a node's launch, independent of the caller's parameter memory."""
        program = self.find(params.func, "function")
        return (
            program,
            (params.gridDimX, params.gridDimY, params.gridDimZ),
            (params.blockDimX, params.blockDimY, params.blockDimZ),
            read_values(params.kernelParams, len(program.params)),
        )

    def cuGraphInstantiate(self, graph: int, flags: int) -> tuple:
        """Instantiate a graph for launching; later changes to the graph have no effect."""
        return SUCCESS, self.keep(dict(self.find(graph, "graph")))

    def cuGraphExecKernelNodeSetParams(self, executable: int, node: int, params: Any) -> tuple:
        """Update a node of an executable graph."""
        nodes = self.find(executable, "executable graph")
        if int(node) not in nodes:
            return (INVALID_VALUE,)
        self.find(node, "node")
        nodes[int(node)] = self.copied(params)
        return (SUCCESS,)

    def cuGraphLaunch(self, executable: int, stream: int) -> tuple:
        """Run the nodes of a graph in insertion order."""
        self.n_launches += 1
        for node in self.find(executable, "executable graph").values():
            self.start(*node)
        return (SUCCESS,)

    def cuGraphExecDestroy(self, executable: int) -> tuple:
        """Destroy an executable graph."""
        self.find(executable, "executable graph")
        del self.handles[int(executable)]
        return (SUCCESS,)

    def cuGraphDestroy(self, graph: int) -> tuple:
        """Destroy a graph."""
        for node, _ in self.find(graph, "graph"):
            del self.handles[node]
        del self.handles[int(graph)]
        return (SUCCESS,)


def read_values(address: int, n: int) -> list:
    """Return the 8-byte values behind an array of n pointers."""
    pointers = (ctypes.c_uint64 * n).from_address(int(address)) if n else ()
    return [np.frombuffer(ctypes.string_at(pointer, 8), "uint64") for pointer in pointers]
