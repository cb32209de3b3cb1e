"""Chapter 28. A simulated GPU's driver: the interface of `cuda.bindings.driver`.

Takes:   calls as the run time makes them for a real GPU.
Gives:   `SimulatedDriver`, an object with the same functions: memory is the host's,
         kernels are run by the simulator, and everything is done when a call returns.

A correct program may run out of memory or ask for a kernel that is not there: it gets
the real driver's error codes. What only a wrong program does (a pointer to nothing, a
copy beyond an allocation) raises an error of one sentence here.
What is left out: streams at work at the same time, events, several contexts.
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
    """The program of a kernel's text, made once."""
    return (FastProgram if fast else Program)(text)


class SimulatedDriver:
    """A driver of simulated GPUs; all its functions are named as in CUDA.

    fast:   whether kernels are compiled by Numba and run without checks;
    memory: how many bytes there are.

    >>> driver = SimulatedDriver()
    >>> driver.cuDeviceGetName(64, 0)
    (0, b'simulated GPU')
    >>> error, address = driver.cuMemAlloc(100)
    >>> error, driver.cuMemFree(address)
    (0, (0,))
    """

    # The real enums, as far as they are used; the numbers are this driver's own.
    CUdevice_attribute = SimpleNamespace(
        **{f"CU_DEVICE_ATTRIBUTE_{name}": name for name in ATTRIBUTES}
    )
    CUstream_flags = SimpleNamespace(CU_STREAM_DEFAULT=0, CU_STREAM_NON_BLOCKING=1)

    class CUDA_KERNEL_NODE_PARAMS:
        """What a kernel node of a graph runs; fields as in CUDA."""

        def __init__(self) -> None:
            self.func = self.kernelParams = self.extra = 0
            self.gridDimX = self.gridDimY = self.gridDimZ = 1
            self.blockDimX = self.blockDimY = self.blockDimZ = 1
            self.sharedMemBytes = 0

    def __init__(self, fast: bool = False, memory: int = 1 << 36) -> None:
        self.fast, self.heap = fast, Heap(memory)
        self.handles: dict[int, Any] = {}
        self.numbers = count(1)  # number -> the value it names
        self.n_launches = 0

    def keep(self, thing: Any) -> int:
        """A new handle: a number that stands for a thing."""
        number = next(self.numbers)
        self.handles[number] = thing
        return number

    def find(self, handle: int, what: str) -> Any:
        """What a handle stands for."""
        try:
            return self.handles[int(handle)]
        except KeyError:
            raise HybridError(
                f"simulated GPU: {handle} is no {what}, or one that was destroyed"
            ) from None

    # -- errors and devices ------------------------------------------------------------
    def cuGetErrorName(self, error: int) -> tuple:
        """The name of an error code."""
        return SUCCESS, ERRORS[int(error)][0].encode()

    def cuGetErrorString(self, error: int) -> tuple:
        """An error code in words."""
        return SUCCESS, ERRORS[int(error)][1].encode()

    def cuInit(self, flags: int) -> tuple:
        """Nothing has to be prepared."""
        return (SUCCESS,)

    def cuDriverGetVersion(self) -> tuple:
        """The version of CUDA whose functions these are."""
        return SUCCESS, VERSION

    def cuDeviceGetCount(self) -> tuple:
        """How many devices there are."""
        return SUCCESS, N_DEVICES

    def cuDeviceGet(self, ordinal: int) -> tuple:
        """A device by its number."""
        known = 0 <= ordinal < N_DEVICES
        return (SUCCESS, ordinal) if known else (INVALID_DEVICE, None)

    def cuDeviceGetName(self, length: int, device: int) -> tuple:
        """The name of a device."""
        return SUCCESS, b"simulated GPU"[:length]

    def cuDeviceGetAttribute(self, attribute: str, device: int) -> tuple:
        """A property of a device."""
        return SUCCESS, ATTRIBUTES[attribute]

    def cuDevicePrimaryCtxRetain(self, device: int) -> tuple:
        """The context of a device."""
        return SUCCESS, self.keep("context")

    def cuCtxSetCurrent(self, context: int) -> tuple:
        """There is one context for all."""
        return (SUCCESS,)

    def cuStreamCreate(self, flags: int) -> tuple:
        """A stream, whose work is done at once."""
        return SUCCESS, self.keep("stream")

    def cuStreamSynchronize(self, stream: int) -> tuple:
        """Everything is done already."""
        return (SUCCESS,)

    # -- memory ------------------------------------------------------------------------
    def cuMemAlloc(self, nbytes: int) -> tuple:
        """The address of new memory, full of bytes of 255, which as floats are NaN."""
        if nbytes <= 0:
            return INVALID_VALUE, None
        if nbytes > self.heap.free:
            return OUT_OF_MEMORY, None
        return SUCCESS, self.heap.take(nbytes)

    def cuMemFree(self, address: int) -> tuple:
        """Give memory back."""
        self.heap.give(int(address))
        return (SUCCESS,)

    def cuMemsetD8Async(self, address: int, value: int, nbytes: int, stream: int) -> tuple:
        """Fill memory with one byte."""
        self.heap.bytes(address, nbytes)[:] = value
        return (SUCCESS,)

    def cuMemcpyHtoDAsync(self, address: int, host: int, nbytes: int, stream: int) -> tuple:
        """Copy from the host's memory to the device's."""
        ctypes.memmove(self.heap.bytes(address, nbytes).ctypes.data, int(host), nbytes)
        return (SUCCESS,)

    def cuMemcpyDtoHAsync(self, host: int, address: int, nbytes: int, stream: int) -> tuple:
        """Copy from the device's memory to the host's."""
        ctypes.memmove(int(host), self.heap.bytes(address, nbytes).ctypes.data, nbytes)
        return (SUCCESS,)

    def cuMemcpyDtoDAsync(self, to: int, source: int, nbytes: int, stream: int) -> tuple:
        """Copy inside the device's memory."""
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
        """A library from a kernel's text, where the real driver takes machine code."""
        return SUCCESS, self.keep(program_of(bytes(code).decode(), self.fast))

    def cuLibraryGetKernel(self, library: int, name: bytes) -> tuple:
        """The kernel of a library."""
        program = self.find(library, "library")
        if program.name != name.decode():
            return NOT_FOUND, None
        return SUCCESS, self.keep(program)

    def cuKernelGetFunction(self, kernel: int) -> tuple:
        """A kernel as something to launch."""
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
        """Run a program with 8-byte values: addresses, or numbers."""
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
        """A new graph, without nodes."""
        return SUCCESS, self.keep([])

    def cuGraphAddKernelNode(
        self, graph: int, dependencies: list, n_dependencies: int, params: Any
    ) -> tuple:
        """Add a launch to a graph; its arguments are copied."""
        node = self.keep(None)
        nodes = self.find(graph, "graph")
        known = [number for number, _ in nodes]
        if any(int(before) not in known for before in dependencies or ()):
            return INVALID_VALUE, None
        nodes.append((node, self.copied(params)))
        return SUCCESS, node

    def copied(self, params: Any) -> tuple:
        """What a node runs, independent of the memory where it was described."""
        program = self.find(params.func, "function")
        return (
            program,
            (params.gridDimX, params.gridDimY, params.gridDimZ),
            (params.blockDimX, params.blockDimY, params.blockDimZ),
            read_values(params.kernelParams, len(program.params)),
        )

    def cuGraphInstantiate(self, graph: int, flags: int) -> tuple:
        """A graph that can be launched; later changes of the graph do not matter."""
        return SUCCESS, self.keep(dict(self.find(graph, "graph")))

    def cuGraphExecKernelNodeSetParams(self, executable: int, node: int, params: Any) -> tuple:
        """Change what a node of a graph to be launched runs."""
        nodes = self.find(executable, "executable graph")
        if int(node) not in nodes:
            return (INVALID_VALUE,)
        self.find(node, "node")
        nodes[int(node)] = self.copied(params)
        return (SUCCESS,)

    def cuGraphLaunch(self, executable: int, stream: int) -> tuple:
        """Run the nodes of a graph, in the order in which they were added."""
        self.n_launches += 1
        for node in self.find(executable, "executable graph").values():
            self.start(*node)
        return (SUCCESS,)

    def cuGraphExecDestroy(self, executable: int) -> tuple:
        """Forget a graph that can be launched."""
        self.find(executable, "executable graph")
        del self.handles[int(executable)]
        return (SUCCESS,)

    def cuGraphDestroy(self, graph: int) -> tuple:
        """Forget a graph."""
        for node, _ in self.find(graph, "graph"):
            del self.handles[node]
        del self.handles[int(graph)]
        return (SUCCESS,)


def read_values(address: int, n: int) -> list:
    """The 8-byte values at n addresses, which stand one after the other."""
    pointers = (ctypes.c_uint64 * n).from_address(int(address)) if n else ()
    return [np.frombuffer(ctypes.string_at(pointer, 8), "uint64") for pointer in pointers]
