"""The simulated driver: the functions of cuda.bindings, memory, launches and graphs."""

import inspect

import numpy as np
import pytest

from minihybrid.core.op import HybridError
from minihybrid.simt import BoundsError
from minihybrid.simt.driver import ERRORS, SimulatedDriver

SCALE = """
def scale(a: float32[8], out: float32[8], key: uint64):
    i = cuda.grid(1)
    if i < 8:
        out[i] = a[i] * float32(key)
"""
FOURS = """
def fours(a: float32[8], out: float32[8]):
    store4(out, 0, load4(a, 4))
"""


class Machine:
    """A simulated driver, and what it takes to launch a kernel."""

    def __init__(self, **options):
        self.driver = SimulatedDriver(**options)
        assert self.driver.cuInit(0) == (0,)
        device = self.ok(self.driver.cuDeviceGet(0))
        context = self.ok(self.driver.cuDevicePrimaryCtxRetain(device))
        self.driver.cuCtxSetCurrent(context)
        flag = self.driver.CUstream_flags.CU_STREAM_NON_BLOCKING
        self.stream = self.ok(self.driver.cuStreamCreate(flag))

    def ok(self, result):
        """The values of a call that went well."""
        assert result[0] == 0
        return result[1] if len(result) > 1 else None

    def put(self, array):
        address = self.ok(self.driver.cuMemAlloc(array.nbytes))
        self.ok(
            self.driver.cuMemcpyHtoDAsync(address, array.ctypes.data, array.nbytes, self.stream)
        )
        return address

    def get(self, address, n=8, dtype="float32"):
        out = np.empty(n, dtype)
        self.ok(self.driver.cuMemcpyDtoHAsync(out.ctypes.data, address, out.nbytes, self.stream))
        self.ok(self.driver.cuStreamSynchronize(self.stream))
        return out

    def function(self, text, name):
        library = self.ok(self.driver.cuLibraryLoadData(text.encode(), [], [], 0, [], [], 0))
        kernel = self.ok(self.driver.cuLibraryGetKernel(library, name.encode()))
        return self.ok(self.driver.cuKernelGetFunction(kernel))

    def launch(self, function, *values, block=32):
        packed = Packed(*values)
        return self.driver.cuLaunchKernel(
            function, 1, 1, 1, block, 1, 1, 0, self.stream, packed.address, 0
        )

    def params(self, function, packed):
        params = self.driver.CUDA_KERNEL_NODE_PARAMS()
        params.func, params.kernelParams = function, packed.address
        params.gridDimX, params.gridDimY, params.gridDimZ = 2, 1, 1
        params.blockDimX, params.blockDimY, params.blockDimZ = 4, 1, 1
        return params


class Packed:
    """Arguments as the driver takes them: an address of addresses of 8 bytes each."""

    def __init__(self, *values):
        self.values = np.array(values, "uint64")
        first = self.values.ctypes.data
        self.pointers = np.array([first + 8 * k for k in range(len(values))], "uint64")
        self.address = self.pointers.ctypes.data


@pytest.fixture(params=[False, True], ids=["checked", "fast"])
def machine(request):
    return Machine(fast=request.param)


A = np.arange(8, dtype="float32")


def test_the_interface_is_that_of_the_real_driver():
    real = pytest.importorskip(
        "cuda.bindings.driver",
        reason="cuda-bindings, the real driver's functions for Python, is not installed",
    )
    ours = [name for name in vars(SimulatedDriver) if name.startswith("cu")]
    assert len(ours) > 25
    for name in ours:
        taken = inspect.signature(getattr(real, name)).parameters
        offered = inspect.signature(getattr(SimulatedDriver(), name)).parameters
        assert len(offered) == len(taken), name
    fields = vars(SimulatedDriver.CUDA_KERNEL_NODE_PARAMS())
    assert set(fields) <= set(dir(real.CUDA_KERNEL_NODE_PARAMS))
    for enum in ("CUdevice_attribute", "CUstream_flags"):
        assert set(vars(getattr(SimulatedDriver, enum))) <= set(dir(getattr(real, enum)))
    for code, (name, _) in ERRORS.items():
        assert getattr(real.CUresult, name).value == code


# -- devices and errors ----------------------------------------------------------------
def test_what_the_device_says_of_itself():
    driver = SimulatedDriver()
    assert driver.cuDriverGetVersion()[0] == 0 and driver.cuDeviceGetCount()[1] >= 1
    assert driver.cuDeviceGetName(100, 0) == (0, b"simulated GPU")
    names = driver.CUdevice_attribute

    def says(name):
        return driver.cuDeviceGetAttribute(getattr(names, f"CU_DEVICE_ATTRIBUTE_{name}"), 0)

    assert says("MAX_THREADS_PER_BLOCK") == (0, 1024)
    assert says("MAX_SHARED_MEMORY_PER_BLOCK") == (0, 49152)
    assert says("WARP_SIZE") == (0, 32)
    assert says("COMPUTE_CAPABILITY_MAJOR") == (0, 0)


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda d: d.cuDeviceGet(-1), b"CUDA_ERROR_INVALID_DEVICE"),
        (lambda d: d.cuMemAlloc(0), b"CUDA_ERROR_INVALID_VALUE"),
        (lambda d: d.cuMemAlloc(1001), b"CUDA_ERROR_OUT_OF_MEMORY"),
        (
            lambda d: d.cuLibraryGetKernel(
                d.cuLibraryLoadData(SCALE.encode(), [], [], 0, [], [], 0)[1], b"other"
            ),
            b"CUDA_ERROR_NOT_FOUND",
        ),
        (
            lambda d: d.cuGraphExecKernelNodeSetParams(
                d.cuGraphInstantiate(d.cuGraphCreate(0)[1], 0)[1], 99, None
            ),
            b"CUDA_ERROR_INVALID_VALUE",
        ),
    ],
)
def test_what_a_right_program_may_meet_is_a_code(call, name):
    driver = SimulatedDriver(memory=1000)
    error = call(driver)[0]
    assert error != 0 and driver.cuGetErrorName(error) == (0, name)
    assert driver.cuGetErrorString(error)[1]


# -- memory ----------------------------------------------------------------------------
def test_new_memory_is_nan_and_begins_at_a_multiple_of_256(machine):
    addresses = [machine.ok(machine.driver.cuMemAlloc(32)) for _ in range(5)]
    assert np.isnan(machine.get(addresses[0])).all()
    assert all(address % 256 == 0 for address in addresses)
    assert len(set(addresses)) == 5


def test_copies_and_fills(machine):
    a, out = machine.put(A), machine.put(A * 0)
    machine.ok(machine.driver.cuMemcpyDtoDAsync(out + 8, a, 16, machine.stream))
    assert machine.get(out).tolist() == [0, 0, 0, 1, 2, 3, 0, 0]
    machine.ok(machine.driver.cuMemsetD8Async(out + 4, 255, 8, machine.stream))
    assert np.isnan(machine.get(out)).tolist() == [0, 1, 1, 0, 0, 0, 0, 0]


def test_memory_that_was_given_back_can_be_had_again():
    machine = Machine(memory=64)
    address = machine.ok(machine.driver.cuMemAlloc(64))
    assert machine.driver.cuMemAlloc(1)[0] == 2
    machine.ok(machine.driver.cuMemFree(address))
    machine.ok(machine.driver.cuMemAlloc(64))


@pytest.mark.parametrize(
    "wrong, words",
    [
        (lambda m, a: m.driver.cuMemFree(a + 4), "no allocation begins there"),
        (lambda m, a: [m.driver.cuMemFree(a), m.driver.cuMemFree(a)], "freed before"),
        (lambda m, a: m.get(a, 9), "uses 36 bytes, but the allocation ends after 32"),
        (lambda m, a: m.get(a + 28, 2), "uses 8 bytes, but the allocation ends after 4"),
        (lambda m, a: m.get(64), "where no memory was allocated"),
        (lambda m, a: [m.driver.cuMemFree(a), m.get(a)], "no memory was allocated, or it"),
        (
            lambda m, a: m.launch(m.function(SCALE, "scale"), a, a + 4, 1),
            "kernel 'scale': out uses 32 bytes, but the allocation ends after 28",
        ),
        (
            lambda m, a: m.launch(m.function(FOURS, "fours"), a, a + 8),
            "kernel 'fours': out begins at address",
        ),
        (
            lambda m, a: m.driver.cuLaunchKernel(12345, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0),
            "12345 is no function",
        ),
    ],
)
def test_what_only_a_wrong_program_does_is_a_sentence(wrong, words):
    machine = Machine()
    with pytest.raises(HybridError) as caught:
        wrong(machine, machine.put(A))
    assert words in str(caught.value)


# -- launches --------------------------------------------------------------------------
@pytest.mark.slow
def test_a_launch(machine):
    a, out = machine.put(A), machine.put(A * 0)
    machine.ok(machine.launch(machine.function(SCALE, "scale"), a, out, 3))
    assert (machine.get(out) == A * 3).all() and machine.driver.n_launches == 1


def test_an_array_may_begin_inside_an_allocation(machine):
    arena = machine.put(np.concatenate([A * 0, A]))
    machine.ok(machine.launch(machine.function(SCALE, "scale"), arena + 32, arena, 2))
    assert (machine.get(arena) == A * 2).all()


def test_a_mistake_in_a_kernel_is_raised_by_its_launch():
    machine = Machine()
    function = machine.function(SCALE.replace("i < 8", "i < 9"), "scale")
    with pytest.raises(BoundsError) as caught:
        machine.launch(function, machine.put(A), machine.put(A), 1)
    assert caught.value.line == 5


# -- graphs ----------------------------------------------------------------------------
def test_a_graph_runs_its_nodes_in_order_and_takes_new_arguments(machine):
    driver, function = machine.driver, machine.function(SCALE, "scale")
    a, middle, out = machine.put(A), machine.put(A * 0), machine.put(A * 0)
    first, second = Packed(a, middle, 2), Packed(middle, out, 5)
    graph = machine.ok(driver.cuGraphCreate(0))
    one = machine.ok(driver.cuGraphAddKernelNode(graph, [], 0, machine.params(function, first)))
    two = machine.ok(driver.cuGraphAddKernelNode(graph, [one], 1, machine.params(function, second)))
    executable = machine.ok(driver.cuGraphInstantiate(graph, 0))
    assert not machine.get(out).any()  # nothing ran yet
    machine.ok(driver.cuGraphLaunch(executable, machine.stream))
    assert (machine.get(out) == A * 10).all() and driver.n_launches == 1

    second.values[2] = 7  # the node has a copy of its arguments
    machine.ok(driver.cuGraphLaunch(executable, machine.stream))
    assert (machine.get(out) == A * 10).all()
    machine.ok(
        driver.cuGraphExecKernelNodeSetParams(executable, two, machine.params(function, second))
    )
    machine.ok(driver.cuGraphLaunch(executable, machine.stream))
    assert (machine.get(out) == A * 14).all() and driver.n_launches == 3

    machine.ok(driver.cuGraphDestroy(graph))
    machine.ok(driver.cuGraphLaunch(executable, machine.stream))
    machine.ok(driver.cuGraphExecDestroy(executable))
    with pytest.raises(HybridError, match="no executable graph"):
        driver.cuGraphLaunch(executable, machine.stream)


def test_a_node_cannot_wait_for_one_that_is_not_there(machine):
    driver, function = machine.driver, machine.function(SCALE, "scale")
    graph = machine.ok(driver.cuGraphCreate(0))
    params = machine.params(function, Packed(1, 2, 3))
    assert driver.cuGraphAddKernelNode(graph, [77], 1, params) == (1, None)
