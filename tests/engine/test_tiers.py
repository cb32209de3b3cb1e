"""NumPy answers until the compiled kernels are ready: when, how exactly, how it ends.

Most other tests wait for the kernels (tests/conftest.py); these do not.
"""

import gc
import io
import os
import subprocess
import sys
import threading
import time
import warnings
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from marks import external

import minihybrid as mx
from minihybrid import autograd, gluon, nd
from minihybrid.codegen import cache
from minihybrid.codegen.cpu import objects
from minihybrid.gluon import nn
from minihybrid.ops.random import STREAM
from minihybrid.runtime import tiers

ROOT = Path(mx.__file__).parent.parent


@pytest.fixture(autouse=True)
def as_a_user(monkeypatch):
    """A program that was not seeded and has not trained."""
    monkeypatch.delenv("MINIHYBRID_WAIT")
    monkeypatch.setattr(STREAM, "repeats", False)


@pytest.fixture
def gate(monkeypatch):
    """An event: until it is set, nothing is compiled or loaded."""
    event, real = threading.Event(), tiers.Plan.load

    def load(plan):
        if plan.target == "cpu":
            assert event.wait(600)
        return real(plan)

    monkeypatch.setattr(tiers.Plan, "load", load)
    yield event
    event.set()


def small_net(**options):
    net = nn.HybridSequential()
    net.add(nn.Dense(5, activation="tanh", in_units=4), nn.Dense(3, in_units=5))
    net.initialize()
    net.hybridize(**options)
    return net


def until(condition, seconds=600):
    """Wait for another thread; a test that waits in vain fails."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.01)


def target(net):
    (plan,) = net.plans.values()
    return plan.target


# -- one tier, then the other ----------------------------------------------------------
def test_numpy_answers_until_the_kernels_are_ready(gate):
    net, x = small_net(), nd.random.normal(shape=(2, 4))
    expected = net[1](net[0](x)).asnumpy()
    for _ in range(3):
        np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-6, atol=1e-7)
        assert target(net) == "numpy"
    assert f"target numpy ({tiers.FIRST})" in repr(net.plans)
    gate.set()
    until(lambda: (net(x), target(net))[1] == "cpu")
    assert "until" not in repr(net.plans)
    np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-6, atol=1e-7)


def test_the_first_answers_are_the_eager_ones_bit_by_bit(gate):
    net, x = small_net(active=False), nd.random.normal(shape=(2, 4))
    expected = net(x).asnumpy()
    net.hybridize()
    np.testing.assert_array_equal(net(x).asnumpy(), expected)


@pytest.mark.parametrize("how", ["argument", "environment"])
def test_who_waits_gets_the_kernels_from_the_start(how, monkeypatch):
    if how == "environment":
        monkeypatch.setenv("MINIHYBRID_WAIT", "1")
    net = small_net(wait=True if how == "argument" else None)
    first = net(nd.ones((2, 4))).asnumpy()
    assert target(net) == "cpu"
    f = mx.function(lambda a: a * 2, wait=True if how == "argument" else None)
    f(nd.ones(3))
    assert target(f) == "cpu"
    again = net(nd.ones((2, 4))).asnumpy()
    np.testing.assert_array_equal(first, again)


def test_the_argument_is_stronger_than_the_environment(gate, monkeypatch):
    monkeypatch.setenv("MINIHYBRID_WAIT", "1")
    net = small_net(wait=False)
    net(nd.ones((2, 4)))
    assert target(net) == "numpy"


def recorded(f):
    x = nd.ones(3)
    x.attach_grad()
    with autograd.record(train_mode=False):
        f(x).sum().backward()


REPEATING = {  # what tells the engine that a program must repeat bit for bit
    "seed": lambda: mx.random.seed(1),
    "np.random.seed": lambda: mx.np.random.seed(1),
    "record": lambda: recorded(lambda x: x * 2),
    "a recorded plan": lambda: recorded(mx.function(lambda x: nd.tanh(x) * 2)),
    "train_mode": lambda: autograd.train_mode(),
    "set_training": lambda: autograd.set_training(autograd.set_training(True)),
    "set_recording": lambda: autograd.set_recording(autograd.set_recording(True)),
    "an executor": lambda: (
        mx.sym.relu(mx.sym.var("x"))
        .simple_bind(mx.cpu(), x=(2,), grad_req="null")
        .forward(is_train=True, x=nd.ones(2))
    ),
}


@pytest.mark.parametrize("kind", REPEATING)
def test_a_program_that_is_seeded_or_trains_never_runs_numpys_plan(kind):
    """Neither of functions that are new, nor of those that NumPy answered until then."""
    old, new = (mx.function(lambda a: nd.tanh(a) * 2) for _ in range(2))
    old(nd.ones(3))
    assert target(old) == "numpy"
    REPEATING[kind]()
    for f in (old, new):
        f(nd.ones(3))
        assert target(f) == "cpu"


@pytest.mark.parametrize("how", ["argument", "environment"])
def test_a_seeded_program_may_ask_not_to_wait(how, gate, monkeypatch):
    if how == "environment":
        monkeypatch.setenv("MINIHYBRID_WAIT", "0")
    mx.random.seed(1)
    f = mx.function(lambda a: a * 2, wait=False if how == "argument" else None)
    f(nd.ones(3))
    assert target(f) == "numpy"


def test_predicting_alone_does_not_wait(gate):
    """Neither making arrays and nets, nor `pause` and `predict_mode`, are training."""
    net = small_net()
    with autograd.pause(), autograd.predict_mode():
        net(nd.random.normal(shape=(2, 4)))
    assert target(net) == "numpy"


def test_a_wrong_word_in_the_environment_is_named(monkeypatch):
    monkeypatch.setenv("MINIHYBRID_WAIT", "yes")
    with pytest.raises(mx.AttrError, match="MINIHYBRID_WAIT is 'yes', but 1"):
        small_net()(nd.ones((2, 4)))


def test_numpy_that_was_asked_for_stays(gate):
    net = small_net(backend="numpy")
    net(nd.ones((2, 4)))
    (plan,) = net.plans.values()
    assert (plan.target, plan.target_note) == ("numpy", "")
    assert not [t for t in threading.enumerate() if t.name == "minihybrid compiles"]


def test_explain_shows_the_plan_that_stays(gate):
    net, x = small_net(), nd.ones((2, 4))
    net(x)
    assert target(net) == "numpy"
    shown = mx.explain(net, x, timings=False)
    assert shown.plan.target == "cpu" and shown.counts()[-1][2] == "2"
    assert f"target cpu ({tiers.LAST})" in shown.title


def test_new_parameters_are_seen_in_both_tiers(gate):
    net, x = small_net(), nd.ones((1, 4))
    net(x)
    for step in range(2):
        for p in net.collect_params().values():
            p.set_data(nd.ones(p.shape) * (step + 1))
        expected = (step + 1) * (5 * np.tanh((step + 1) * 5.0) + 1)
        np.testing.assert_allclose(net(x).asnumpy(), [[expected] * 3], rtol=1e-5)
        gate.set()
        until(lambda: (net(x), target(net))[1] == "cpu")
    np.testing.assert_allclose(net(x).asnumpy(), [[expected] * 3], rtol=1e-5)


@pytest.mark.slow
def test_training_through_both_tiers_is_training(gate, monkeypatch):
    """Forward, backward and the update change tiers in between; states stay whole."""
    monkeypatch.setenv("MINIHYBRID_WAIT", "0")

    def losses(wait, steps=12):
        mx.random.seed(7)
        net = nn.HybridSequential()
        net.add(
            nn.Dense(6, in_units=4, use_bias=False),
            nn.BatchNorm(in_channels=6),
            nn.Activation("relu"),
            nn.Dropout(0.3),
            nn.Dense(2, in_units=6),
        )
        net.initialize(mx.init.Xavier())
        net.hybridize(wait=wait)
        trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.05})
        x = nd.array(np.random.default_rng(0).normal(size=(8, 4)))
        y = nd.array([0, 1] * 4)
        loss, actual = gluon.loss.SoftmaxCrossEntropyLoss(), []
        for step in range(steps):
            with autograd.record():
                value = loss(net(x), y)
            value.backward()
            trainer.step(8)
            actual.append(value.mean().item())
            if not wait and step == steps // 2:
                assert {p.target for p in net.plans.values()} == {"numpy"}
                gate.set()
                waiting = [
                    t
                    for t in gc.get_objects()
                    if type(t) is tiers.Tiers and t.preparer and not t.settled
                ]
                assert len(waiting) >= 3  # forward, backward, update
                until(lambda waiting=waiting: all(t.ready for t in waiting))
        assert {p.target for p in net.plans.values()} == {"cpu"}
        running = net[1].running_mean.data().asnumpy()
        return actual, running

    quick, quick_mean = losses(False)
    exact, exact_mean = losses(True)
    np.testing.assert_allclose(quick, exact, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(quick_mean, exact_mean, rtol=1e-4, atol=1e-5)


def test_random_numbers_do_not_depend_on_the_tier(gate):
    f = mx.function(lambda x: nd.Dropout(x, p=0.5, mode="always"), wait=False)
    x = nd.ones((50,))
    mx.random.seed(3)
    quick = [f(x).asnumpy() for _ in range(2)]
    gate.set()
    until(lambda: (f(x), target(f))[1] == "cpu")
    mx.random.seed(3)
    for expected in quick:
        np.testing.assert_array_equal(f(x).asnumpy(), expected)


def test_threads_that_call_while_the_tiers_change_get_right_answers(gate):
    net = small_net()
    inputs = [nd.random.normal(shape=(2, 4)) for _ in range(4)]
    expected = [net(x).asnumpy() for x in inputs]
    wrong, stop = [], threading.Event()

    def work(x, right):
        while not stop.is_set():
            if not np.allclose(net(x).asnumpy(), right, rtol=1e-5, atol=1e-6):
                wrong.append(x)

    threads = [
        threading.Thread(target=work, args=pair) for pair in zip(inputs, expected, strict=True)
    ]
    for thread in threads:
        thread.start()
    gate.set()
    until(lambda: target(net) == "cpu")
    time.sleep(0.05)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_net_that_is_dropped_is_not_compiled(monkeypatch):
    dropped, prepared = threading.Event(), []
    clock = SimpleNamespace(monotonic=lambda: 0, sleep=lambda _: dropped.wait(600))
    monkeypatch.setattr(tiers, "time", clock)  # the thread sleeps until then
    monkeypatch.setattr(tiers, "PREPARER", tiers.BackgroundCompiler())  # with no other work
    monkeypatch.setattr(tiers.Tiers, "prepare", lambda self: prepared.append(self.title))
    net = small_net()
    net(nd.ones((2, 4)))
    last = weakref.ref(net)
    del net
    gc.collect()
    assert last() is None
    kept = small_net()
    kept(nd.ones((2, 4)))
    dropped.set()
    until(lambda: prepared)
    assert prepared == [kept.name]


# -- when compiling fails --------------------------------------------------------------
@pytest.mark.parametrize("is_seeded", [False, True])
def test_a_failure_is_told_once_and_numpy_goes_on(is_seeded, monkeypatch):
    monkeypatch.setattr(STREAM, "repeats", is_seeded)

    def broken(plan):
        if plan.target == "cpu":
            raise mx.base.MXNetError("the kernels did not compile: no reason")
        return real(plan)

    real = tiers.Plan.load
    monkeypatch.setattr(tiers.Plan, "load", broken)
    net, x = small_net(active=False), nd.ones((2, 4))
    expected = net(x).asnumpy()
    net.hybridize()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        until(lambda: (net(x), warned)[1])
        np.testing.assert_array_equal(net(x).asnumpy(), expected)
    (warning,) = warned
    assert str(warning.message) == (
        f"{net.name}: the kernels did not compile: no reason; NumPy goes on answering"
    )
    assert warning.filename == __file__
    assert "target numpy (the kernels did not compile: no reason)" in repr(net.plans)


def test_a_failure_is_raised_once_where_warnings_are_errors(monkeypatch):
    monkeypatch.setattr(tiers.Tiers, "last", lambda self: 1 / 0)
    net, x = small_net(), nd.ones((2, 4))
    expected = net(x).asnumpy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="division by zero; NumPy goes on"):
            until(lambda: net(x) is None)
        np.testing.assert_array_equal(net(x).asnumpy(), expected)


# -- what is said ----------------------------------------------------------------------
@pytest.fixture
def at_once(monkeypatch, tmp_path):
    """An empty cache, nothing said yet, and no moment is too short to be told of."""
    monkeypatch.setenv("MINIHYBRID_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TQDM_DISABLE")
    monkeypatch.setattr(objects, "UNTOLD", [True])
    monkeypatch.setattr(objects, "SOON_S", 0)
    monkeypatch.setattr(objects, "ADDRESSES", {})


@pytest.mark.parametrize("is_quiet", [False, True])
def test_that_numpy_answers_is_said_once(is_quiet, at_once, monkeypatch, capsys):
    """Of two nets one says so, however often it is called; reports of progress may be off."""
    if is_quiet:
        monkeypatch.setenv("TQDM_DISABLE", "1")
    real, begin = objects.compile_text, threading.Event()
    monkeypatch.setattr(objects, "compile_text", lambda *args: begin.wait(600) and real(*args))
    nets, x = [small_net(), small_net()], nd.ones((2, 4))
    for net in nets:
        net(x)
    until(lambda: objects.BACKGROUND)
    for net in 3 * nets:
        net(x)
    begin.set()
    until(lambda: {(net(x), target(net))[1] for net in nets} == {"cpu"})
    message = "compiling 2 kernels in the background; NumPy answers until then\n"
    assert capsys.readouterr().err == ("" if is_quiet else message)
    assert not objects.BACKGROUND


def test_of_kernels_on_disk_nothing_is_said(at_once, monkeypatch, capsys):
    small_net(wait=True)(nd.ones((2, 4)))
    monkeypatch.setattr(objects, "ADDRESSES", {})
    monkeypatch.setattr(objects, "compile_text", None)  # none is compiled
    objects.ALIVE.append(objects._engine())
    objects._engine.cache_clear()
    net = small_net()
    until(lambda: (net(nd.ones((2, 4))), target(net))[1] == "cpu")
    assert capsys.readouterr().err == ""


def test_who_waits_sees_a_bar_on_a_terminal_only(at_once, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for screen, is_bar in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", screen)
        monkeypatch.setattr(objects, "ADDRESSES", {})
        objects.ALIVE.append(objects._engine())
        objects._engine.cache_clear()
        cache.clear_cache()
        small_net(wait=True)(nd.ones((2, 4)))
        assert ("compiling" in screen.getvalue()) == is_bar


# -- processes -------------------------------------------------------------------------
HEAD = """
import os, sys, time
import minihybrid as mx
from minihybrid import nd
f = mx.function(lambda a, b: nd.tanh(nd.dot(a, b)) * 3 + 2)
x = nd.ones((4, 4))
f(x, x)
(plan,) = f.plans.values()
print(plan.target, flush=True)
"""


def run(folder, code, **environment):
    """What a new process prints; on its error channel there is nothing."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", HEAD + code],
        cwd=ROOT,
        text=True,
        capture_output=True,
        timeout=600,
        env={**os.environ, "MINIHYBRID_CACHE_DIR": str(folder), **environment},
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize("pause", [0.15, *external(0, 0.02, 0.3, 0.8)])
def test_the_end_of_the_program_waits_for_nobody(pause, tmp_path):
    """It ends before, while, and after a compiler starts; none is left running."""
    code = (
        f"time.sleep({pause})\nfrom minihybrid.codegen.cpu import objects\n"
        "import atexit\n"
        "atexit.register(lambda: print(*[c.process.poll() is None for c in RUN]))\n"
        "RUN = objects.RUNNING\n"
    )
    code += "import threading\nprint(*[t.daemon for t in threading.enumerate()[1:]])"
    words = run(tmp_path, code)
    assert words[0] == "numpy" and set(words[1:]) <= {"True"}


@pytest.mark.slow
def test_processes_that_end_at_once_leave_no_compiler_behind(tmp_path):
    code = (
        "from minihybrid.codegen.cpu import objects\n"
        "while not objects.RUNNING:\n    time.sleep(0.01)\n"
        "print(*[c.process.pid for c in objects.RUNNING])"
    )
    words = run(tmp_path, code)
    assert words[1:]  # a compiler was at work
    for pid in map(int, words[1:]):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.external
def test_a_second_process_goes_on_where_the_first_was_ended(tmp_path):
    run(tmp_path, "time.sleep(0.4)")
    code = (
        "while plan.target == 'numpy':\n"
        "    time.sleep(0.02); f(x, x); (plan,) = f.plans.values()\n"
        "print(plan.target, f(x, x).asnumpy().sum().round(3))"
    )
    expected = [str(np.float32(16 * (np.tanh(4) * 3 + 2)).round(3))]
    assert run(tmp_path, code) == ["numpy", "cpu", *expected]
    assert run(tmp_path, code) == ["numpy", "cpu", *expected]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("pause", [0.12, *external(0, 0.3)])
def test_a_forked_process_compiles_what_its_parent_was_asked_for(pause, tmp_path):
    code = f"""
time.sleep({pause})
pid = os.fork()
while plan.target == "numpy":
    time.sleep(0.02)
    f(x, x)
    (plan,) = f.plans.values()
os.write(1, f"{{'parent' if pid else 'child'}} {{plan.target}}\\n".encode())  # at once
if pid:
    assert os.waitpid(pid, 0)[1] == 0
"""
    words = run(tmp_path, code)
    assert sorted(zip(words[1::2], words[2::2], strict=True)) == [
        ("child", "cpu"),
        ("parent", "cpu"),
    ]


@pytest.mark.slow
def test_the_first_answer_needs_no_compiler_at_all(tmp_path):
    code = "print(*{'numba', 'llvmlite', 'scipy'} & sys.modules.keys())"
    assert run(tmp_path, code) == ["numpy"]


def test_compilers_are_ended_on_demand():
    objects.compile_text(
        "from numba import float32\nfrom minihybrid.codegen.cpu.flat import kernel\n"
        "@kernel(float32[::1])\ndef k(out):\n    out[0] = float32(1)\n",
        "k0",
    )
    compilers = list(objects.RUNNING)
    assert compilers
    objects.end_compilers()
    assert all(c.process.returncode is not None for c in compilers)
    assert not objects.RUNNING
