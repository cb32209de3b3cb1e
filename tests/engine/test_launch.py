"""A plan's kernels are one launch, and a call changes the nodes that it must."""

import threading

import numpy as np
import pytest
from gpu_launches import CHAIN, N, scaled
from minihybrid.context import simulated_gpu

from minihybrid.codegen.bytecode import ARRAY, PARAM, Operand
from minihybrid.core.op import HybridError
from minihybrid.runtime.device import device_of
from minihybrid.runtime.launch import Recorded


@pytest.fixture
def device():
    return device_of(simulated_gpu())


def put(device, array):
    """Numbers in memory of the device."""
    memory = device.alloc(array.nbytes)
    device.upload(memory.address, array)
    return memory


class Call:
    """A plan with arrays for it."""

    def __init__(self, device, steps):
        self.device, self.plan = device, Recorded(device, steps, 512)
        self.x = np.arange(N, dtype=np.float32)
        self.inputs = {name: put(device, self.x + np.float32(n)) for n, name in enumerate("xy")}
        self.param = put(device, np.float32([3]))

    def __call__(self, x="x", out=None, key=5, param=None):
        """The result, and how many nodes the call changed."""
        out, param = out or self.device.alloc(4 * N), param or self.param
        before = self.plan.n_changed
        self.plan([self.inputs[x].address, out.address], [param.address], key)
        actual = self.device.download(out.address, (N,), np.float32)
        return actual, self.plan.n_changed - before


def test_a_call_is_one_launch_whatever_the_plan_has(device):
    for steps, expected in (
        (CHAIN, lambda x: (x * 9 + 5) * 3),
        ([scaled(Operand(ARRAY, 0), Operand(PARAM, 0), Operand(ARRAY, 1))], lambda x: x * 3),
    ):
        call = Call(device, steps)
        for _ in range(3):
            before = device.n_launches
            actual, _ = call()
            assert device.n_launches == before + 1
            np.testing.assert_array_equal(actual, expected(call.x))


def test_a_plan_without_kernels_launches_nothing(device):
    before = device.n_launches
    Recorded(device, [], 0)([], [], 0)
    assert device.n_launches == before


def test_only_nodes_whose_arguments_differ_are_changed(device):
    call = Call(device, CHAIN)
    out, other = (device.alloc(4 * N) for _ in range(2))
    assert call(out=out)[1] == 4  # the first call writes all
    assert call(out=out)[1] == 0
    assert call(out=other)[1] == 1  # the last one writes the output
    actual, changed = call("y", out=other)
    assert changed == 1  # the first one reads the input
    np.testing.assert_array_equal(actual, ((call.x + 1) * 9 + 5) * 3)
    actual, changed = call("y", out=other, key=2**63)
    assert changed == 1
    np.testing.assert_array_equal(actual, ((call.x + 1) * np.float32(9) + np.float32(2**63)) * 3)
    moved = put(device, np.float32([2]))
    actual, changed = call("y", out=other, param=moved, key=5)
    assert changed == 4  # three read the parameter, one the key
    np.testing.assert_array_equal(actual, ((call.x + 1) * 4 + 5) * 2)


def test_two_plans_have_arenas_of_their_own(device):
    one, two = Call(device, CHAIN), Call(device, CHAIN)
    assert one.plan.arena.address != two.plan.arena.address
    np.testing.assert_array_equal(one()[0], two()[0])


def test_threads_share_a_plan(device):
    """Each thread reads its own answer, whoever changed the nodes in between."""
    call, wrong = Call(device, CHAIN), []

    def work(name, shift):
        for _ in range(5):
            actual, _ = call(name)
            if not np.array_equal(actual, ((call.x + shift) * 9 + 5) * 3):
                wrong.append(name)

    threads = [
        threading.Thread(target=work, args=args)
        for args in (("x", 0), ("y", 1), ("x", 0), ("y", 1))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_dropped_plan_gives_its_graph_and_its_arena_back(device):
    call = Call(device, CHAIN)
    executable, address = call.plan.executable, call.plan.arena.address
    del call
    with pytest.raises(HybridError, match="destroyed"):
        device.driver.cuGraphLaunch(executable, device.stream)
    assert device.alloc(512).address == address


def test_an_error_of_the_driver_is_a_sentence(device, monkeypatch):
    call = Call(device, CHAIN)
    monkeypatch.setattr(device.driver, "cuGraphLaunch", lambda graph, stream: (2,), raising=False)
    with pytest.raises(HybridError, match="launching a plan failed with CUDA_ERROR_OUT_OF_MEMORY"):
        call()
