"""A plan as a side module of a page: its calls, loops, guards and checks, run by Node."""

import json
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import nd
from minihybrid.codegen import side_module
from minihybrid.codegen.bytecode import n_calls
from minihybrid.gluon import nn
from minihybrid.runtime import page_cpu

NODE = shutil.which("node")
PROGRAM = Path(__file__).with_name("run_plan.mjs")
CONTIGUOUS = 0x101
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        NODE is None, reason="NOT CHECKED: there is no node; install Node.js 20 or newer"
    ),
]


def run(folder, plan, arrays, params, until=None, flags=CONTIGUOUS):
    """(what the module answers, the arrays after the call) of a plan."""
    made = plan.made
    scratch = SimpleNamespace(ctypes=SimpleNamespace(data=1024))
    with (
        mock.patch.object(page_cpu, "scratch", lambda nbytes: scratch),
        mock.patch.object(side_module, "id", int, create=True),  # of True and False
    ):
        steps, reasons = page_cpu.compiled(made)
        assert reasons == {}
        (folder / "plan.wasm").write_bytes(side_module.side_module([steps], made.n_arrays))
    job = {
        "module": str(folder / "plan.wasm"),
        "arrays": [[*a.tobytes()] for a in arrays],
        "params": [[*np.ascontiguousarray(p).tobytes()] for p in params],
        "arena": plan.memory.nbytes,
        "until": n_calls(made.launches) if until is None else until,
        "flags": flags,
    }
    (folder / "job.json").write_text(json.dumps(job))
    done = subprocess.run([NODE, PROGRAM, folder / "job.json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    answer, after = json.loads(done.stdout)
    pairs = zip(after, arrays, strict=True)
    return answer, [np.frombuffer(bytes(b), a.dtype).reshape(a.shape) for b, a in pairs]


def called(function, *inputs):
    """(plan, arrays of a call, parameters and constants) of a hybridized function."""
    plan, arrays, bound = function.plan_for(*inputs)
    outs = [np.full(shape, 7).astype(dtype) for shape, dtype in plan.out_specs]
    return plan, [*arrays, *outs], bound[1]


def mlp():
    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation="relu"), nn.Dense(5), nn.HybridLambda("softmax"))
    net.initialize()
    net.hybridize()
    return net


def convolution():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(3, 3, activation="tanh"), nn.MaxPool2D(2), nn.Flatten(), nn.Dense(2))
    net.initialize()
    net.hybridize()
    return net


@mx.function
def loop(x):
    return nd.contrib.foreach(lambda row, s: (row + s[0], [row * s[0]]), x, [x[0] * 0 + 2])[0]


@mx.function
def branch(x):
    return nd.contrib.cond(x.sum() > 0, lambda: nd.exp(x) * 2, lambda: nd.sin(x) - 1)


@mx.function
def copy(x):
    return x, x.astype("float64") ** 0.5


CASES = {
    "an MLP": (mlp, (3, 7)),
    "a convolution": (convolution, (2, 2, 8, 8)),
    "a loop": (lambda: loop, (5, 3)),
    "a branch": (lambda: branch, (4, 4)),
    "a copy": (lambda: copy, (3, 3)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_plan_gives_the_answers_of_eager(name, tmp_path):
    make, shape = CASES[name]
    net, x = make(), nd.array(np.random.default_rng(0).random(shape) + 0.1)
    expected = net(x)
    plan, arrays, params = called(net, x)
    answer, after = run(tmp_path, plan, arrays, params)
    assert answer == 1
    expected = expected if isinstance(expected, (list, tuple)) else [expected]
    for a, b in zip(after[1:], expected, strict=True):
        np.testing.assert_allclose(a, b.asnumpy(), 1e-5, 1e-6)


def test_a_strided_array_is_refused_and_a_call_stops_where_it_is_told(tmp_path):
    net, x = mlp(), nd.ones((3, 7))
    net(x)
    plan, arrays, params = called(net, x)
    for more in ({"flags": 0x102}, {"until": 0}, {"until": plan.n_kernels - 1}):
        answer, after = run(tmp_path, plan, arrays, params, **more)
        assert answer == ("until" in more)
        assert (after[1] == 7).all()  # the last kernel has not run


def test_only_a_page_has_such_objects():
    assert not side_module.is_page() and page_cpu.compiler() is None
