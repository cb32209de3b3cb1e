"""Chapter 28. One launch for a whole network: a plan's kernels as one CUDA graph.

Defines: `BoundLaunch`, one kernel with its arguments; `Recorded`, all launches of a plan;
         `launch`, which runs a plan.

A launch costs the CPU some microseconds, while many kernels of a small net take the GPU
less. So they are recorded once as a CUDA graph, a chain of kernels, and a call launches
the graph. A call with other arrays updates only the nodes that use them.
Source:  CUDA Driver API, "Graph Management": updating an executable graph affects later
         launches only, so running kernels keep their arguments.
Not supported: concurrent kernels.
"""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from minihybrid.codegen.bytecode import ARENA, ARRAY, KEY, PARAM
from minihybrid.codegen.gpu import target
from minihybrid.codegen.gpu.kernel import scratch_of
from minihybrid.core.fork_safe import ForkSafe
from minihybrid.core.placement import copy_to
from minihybrid.core.plan import ActivePlan, Plan
from minihybrid.core.targets import TARGETS, Target
from minihybrid.ops.random import STREAM
from minihybrid.passes.fuse import merge
from minihybrid.passes.lower import lower
from minihybrid.runtime.device import Device
from minihybrid.runtime.device_array import DeviceArray

VECTOR_BYTES = 16  # bytes of the widest load of a GPU thread, and its alignment


def runner(plan: Plan) -> tuple["Recorded", Callable]:
    """Return (function, run) of a plan on a device."""
    function = Recorded(plan.device, plan.made.launches, plan.memory.nbytes)
    n = plan.graph.n_streams

    def run(arrays: Sequence[DeviceArray], bound: tuple) -> list[DeviceArray]:
        return launch(plan, arrays, bound, STREAM.take(n) if n else 0)

    return function, run


def launch(plan: Plan, arrays: Iterable[DeviceArray], bound: tuple, key: int) -> list[DeviceArray]:
    """Launch a plan; return its outputs on the device.

    key:     of the random stream. The launch is asynchronous.
    """
    arrays = [a if a.address % VECTOR_BYTES == 0 else a.copy() for a in arrays]
    outs = [
        bound[1][plan.into[k]] if k in plan.into else DeviceArray(plan.device, shape, dtype)
        for k, (shape, dtype) in enumerate(plan.out_specs)
    ]
    plan.function([a.address for a in (*arrays, *outs)], bound[0], key)
    return outs


class BoundLaunch:
    """A kernel with its grid, block and arguments, prepared for repeated launches.

    The driver takes an array of pointers to arguments: here they point into `values`,
    where arguments are updated in place.

    function:     from `Device.kernel`.
    grid, block:  numbers of blocks, and of threads per block, along x, y, z.
    values:       8 bytes per argument: an address or a scalar.
    """

    def __init__(
        self, function: Any, grid: Sequence[int], block: Sequence[int], values: Sequence[int]
    ) -> None:
        self.function, self.grid, self.block = function, grid, block
        self.values = np.array(values, np.uint64)
        each = np.arange(0, self.values.nbytes, 8, dtype=np.uint64)
        self.pointers = self.values.ctypes.data + each
        self.address = self.pointers.ctypes.data  # cached: the lookup takes a microsecond

    def __call__(self, driver: Any, stream: Any) -> tuple:
        """Launch the kernel on a stream; return the driver's result."""
        return driver.cuLaunchKernel(
            self.function, *self.grid, *self.block, 0, stream, self.address, 0
        )

    def params(self, driver: Any) -> Any:
        """Return the parameters of a graph node for this launch."""
        params = driver.CUDA_KERNEL_NODE_PARAMS()
        params.func, params.kernelParams = self.function, self.address
        params.gridDimX, params.gridDimY, params.gridDimZ = self.grid
        params.blockDimX, params.blockDimY, params.blockDimZ = self.block
        return params


class Recorded(ForkSafe):
    """The launches of a plan, recorded so that each call is one driver launch.

    device:    the `Device` that runs it.
    launches:  the launches in order, from `minihybrid.codegen.gpu.target`.
    nbytes:    of the arena, which all calls share, because they are on one stream.
    n_changed: node updates since the plan was recorded.
    """

    def __init__(self, device: Device, launches: Sequence, nbytes: int) -> None:
        super().__init__()
        self.device, self.n_changed = device, 0
        self.arena = device.alloc(nbytes) if nbytes else None
        start = self.arena.address if self.arena else 0  # for empty arrays
        self.launches: list[BoundLaunch] = []
        self.users: dict[tuple, list] = {}  # operand -> [(number of a launch, argument, after)]
        for n, launch in enumerate(launches):
            values = [0] * len(launch.operands)
            for k, (what, which, after, _) in enumerate(launch.operands):
                if what == ARENA:
                    values[k] = start + which + after
                else:
                    self.users.setdefault((what, which), []).append((n, k, after))
            self.launches.append(
                BoundLaunch(
                    device.kernel(launch.kernel, launch.name), launch.grid, launch.block, values
                )
            )
        self.last: tuple[list, list, list] = [], [], []  # addresses, bound and key of the last call
        self.graph: Any = None
        self.executable: Any = None
        if len(self.launches) > 1:
            self._record()

    def _record(self) -> None:
        device, driver = self.device, self.device.driver
        device.enter()
        self.graph = device.check(driver.cuGraphCreate(0), "making a graph")
        self.nodes: list[tuple] = []
        before: list = []
        for launch in self.launches:
            params = launch.params(driver)
            node = device.check(
                driver.cuGraphAddKernelNode(self.graph, before, len(before), params),
                "recording a kernel",
            )
            self.nodes.append((node, params))
            before = [node]
        self.executable = device.check(
            driver.cuGraphInstantiate(self.graph, 0), "preparing a graph"
        )

    def __call__(self, addresses: list[int], bound: list[int], key: int) -> None:
        """Launch all kernels asynchronously.

        addresses: of this call's arrays, inputs and then outputs.
        bound:     addresses of parameters and constants.
        key:       of the random numbers.

        Raises:  HybridError with the driver's reason.
        """
        if not self.launches:
            return
        device = self.device
        with self.lock:
            device.enter()
            if (addresses, bound, [key]) != self.last:
                self._change(addresses, bound, [key])
            if self.executable is None:
                result = self.launches[0](device.driver, device.stream)
            else:
                result = device.driver.cuGraphLaunch(self.executable, device.stream)
            device.check(result, "launching a plan")
            device.n_launches += 1

    def _change(self, addresses: list[int], bound: list[int], key: list[int]) -> None:
        """Update the arguments that differ from the last call's; `key` is a list."""
        changed = {}  # numbers of launches, in the order of the operands
        now = addresses, bound, key
        for what, values, before in zip((ARRAY, PARAM, KEY), now, self.last, strict=True):
            if values == before:
                continue
            for which, (new, old) in enumerate(zip_longest(values, before)):
                for n, k, after in self.users.get((what, which), ()) if new != old else ():
                    self.launches[n].values[k] = new + after
                    changed[n] = True
        for n in changed if self.executable is not None else ():
            self.device.check(
                self.device.driver.cuGraphExecKernelNodeSetParams(self.executable, *self.nodes[n]),
                "changing a kernel's arguments",
            )
        self.n_changed += len(changed)
        self.last = list(addresses), list(bound), key

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # at interpreter shutdown, modules may be gone
            driver = self.device.driver
            if self.executable is not None:
                self.device.enter()
                driver.cuGraphExecDestroy(self.executable)
                driver.cuGraphDestroy(self.graph)


def bound(
    arrays: Sequence[DeviceArray], constants: Iterable[np.ndarray], device: Device
) -> tuple[list[int], list[DeviceArray]]:
    """Copy constants to the device; return (addresses, arrays)."""
    arrays = [*arrays, *(copy_to(each, device.context) for each in constants)]
    return [a.address for a in arrays], arrays


TARGETS["gpu"] = GPU = Target(
    target.generate,
    None,
    None,
    bound,
    ActivePlan,
    target.unsupported,
    (lower, merge),
    scratch_of,
    here=False,
    runner=runner,
)
