"""Several threads for one plan, several plans at once."""

import ast
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import nd, sym
from minihybrid.codegen.bytecode import (
    ARRAY,
    BOARD,
    COUNTERS,
    INSIDE,
    NUMBER,
    OWNED,
    Launch,
    Operand,
    numbers_of,
)
from minihybrid.codegen.cpu import target
from minihybrid.codegen.cpu.objects import load_kernels, make_runner
from minihybrid.codegen.cpu.thread_pool import ROOM, team, together
from minihybrid.core.lru_cache import LRUCache
from minihybrid.core.op import Spec
from minihybrid.core.plan import Plan
from minihybrid.ops.cpu import machine

ROOT = Path(mx.__file__).parent.parent
PACKAGE = ROOT / "minihybrid"
MARK = """
from numba import int64
from minihybrid.codegen.cpu.flat import kernel

@kernel(int64[::1], int64, int64, int64)
def mark(out, size, part, parts):
    for i in range(part * size // parts, (part + 1) * size // parts):
        out[i] += 1 + 100 * parts
"""


def program_of(texts, sizes, chunks):
    launches = [
        Launch(text, "mark", [Operand(ARRAY, i), Operand(NUMBER, size)], n)
        for i, (text, size, n) in enumerate(zip(texts, sizes, chunks, strict=True))
    ]
    addresses = load_kernels({text: "mark" for text in [*texts, ""]})
    return make_runner(addresses[""], numbers_of(len(sizes), launches, addresses))


@pytest.mark.parametrize("n_threads", [1, 2, 3, 5])
def test_every_piece_of_every_step_is_done_once(n_threads):
    """Whoever comes when: threads of different speed, and one that comes too late."""
    run = program_of([MARK] * 3, [1000, 7, 1], [8, 3, 1])
    for late in range(n_threads):
        outs = [np.zeros(n, np.int64) for n in (1000, 7, 1)]
        shared = np.zeros(COUNTERS // 8 + 12, np.int64)
        args = (*outs, np.zeros(1, np.uint8), np.zeros(1, np.int64), 0, 3, shared.ctypes.data)
        others = [
            threading.Thread(target=run, args=(*args, i)) for i in range(n_threads) if i != late
        ]
        for thread in others:
            thread.start()
        for thread in others:
            thread.join()
        assert run(*args, late) is True
        assert [set(out) for out in outs] == [{801}, {301}, {101}]
        taken, finished, front, back = shared[COUNTERS // 8 :].reshape(-1, 4).T
        assert finished.tolist() == [8, 3, 1]
        assert (taken == finished + n_threads).all()  # one in vain
        assert (front + back == finished).all()


def test_one_thread_does_each_step_in_one_piece():
    run = program_of([MARK], [1000], [8])
    out = np.zeros(1000, np.int64)
    assert run(out, np.zeros(1, np.uint8), np.zeros(1, np.int64), 0, 1, 0, 0) is True
    assert set(out) == {101}


def given(out):
    """The arguments of a call that writes one array."""
    return out, np.zeros(1, np.uint8), np.zeros(1, np.int64), 0


def test_two_threads_take_pieces_from_either_end():
    """A thread finds in its caches what it had there, turn after turn."""
    run = program_of([MARK], [1000], [8])
    for thread, places in ((0, (0, 249)), (1, (750, 999))):
        out, shared = np.zeros(1000, np.int64), np.zeros(COUNTERS // 8 + 4, np.int64)
        shared[COUNTERS // 8 :][:2] = 6  # of eight pieces others have done six
        assert run(*given(out), 1, shared.ctypes.data, thread) is True
        done = np.flatnonzero(out)
        assert (done.min(), done.max(), len(done)) == (*places, 250)


def test_a_call_leaves_nothing_with_its_helpers():
    """Else the memory of a result could not be used again for the next one."""
    assert len(team().helpers) == machine.threads() - 1
    run = program_of([MARK], [1000], [8])
    for _ in range(50):
        out = np.zeros(1000, np.int64)
        together(run, given(out), 1)
        assert set(out) == {801}
        assert sys.getrefcount(out) == 2


MEET = """
from numba import int64
from minihybrid.codegen.cpu.flat import kernel
from minihybrid.codegen.cpu.interpreter import add, look, rest

@kernel(int64[::1], int64, int64, int64)
def meet(out, where, part, parts):
    add(where, 1)
    for i in range(100_000):
        if look(where) == parts:
            out[part] = 1
            break
        rest()
"""


def meeting(longest=0):
    """(program of one launch, what its threads count): its parts wait for each other."""
    arrived = np.zeros(1, np.int64)
    launches = [Launch(MEET, "meet", [Operand(ARRAY, 0), Operand(NUMBER, arrived.ctypes.data)], 2)]
    addresses = load_kernels({MEET: "meet", "": "the driver"})
    return make_runner(addresses[""], numbers_of(1, launches, addresses, longest=longest)), arrived


@pytest.mark.parametrize("pause", [0.0, 0.01], ids=["awake", "asleep"])
def test_helpers_come_whether_they_look_or_sleep(pause):
    if machine.threads() < 2:
        pytest.skip("there is one thread only")
    run, arrived = meeting()
    end, out = time.monotonic() + 600, np.zeros(2, np.int64)
    while out.tolist() != [1, 1]:
        assert time.monotonic() < end, "no helper came"
        time.sleep(pause)
        out, arrived[0] = np.zeros(2, np.int64), 0
        together(run, given(out), 1)


def test_a_helper_without_room_for_the_words_stays_away():
    run, arrived = meeting(longest=ROOM + 1)
    out = np.zeros(2, np.int64)
    together(run, given(out), 1)
    assert arrived[0] == 2 and out.tolist() == [0, 1]  # one after the other, by one thread


def test_a_call_waits_for_helpers_that_are_still_at_it():
    run, board = program_of([MARK], [1000], [8]), np.zeros(BOARD // 8, np.int64)
    shared, out = np.array([board.ctypes.data, 0, 0, 0, 0, 0]), np.zeros(1000, np.int64)
    board[INSIDE // 8] = 1  # somebody is, and reads what is the caller's
    caller = threading.Thread(target=run, args=(*given(out), 1, shared.ctypes.data, 0))
    caller.start()
    end = time.monotonic() + 600
    while board[0] != 2:  # until the call has done its own part
        assert time.monotonic() < end and caller.is_alive()
        time.sleep(0.01)
    caller.join(timeout=0.2)
    assert caller.is_alive() and set(out) == {801}
    board[INSIDE // 8] = 0
    caller.join(timeout=600)
    assert not caller.is_alive() and board[OWNED // 8] == 0


def test_a_call_while_the_board_is_somebodys_is_done_alone():
    run, board = program_of([MARK], [1000], [8]), np.zeros(BOARD // 8, np.int64)
    shared, out = np.array([board.ctypes.data, 0, 0, 0, 0, 0]), np.zeros(1000, np.int64)
    board[OWNED // 8] = 1
    assert run(*given(out), 1, shared.ctypes.data, 0) is True
    assert set(out) == {101} and board[OWNED // 8] == 1 and board[0] == 0


STRESS = """
import random, threading
import numpy as np
from engine.test_threads import MARK, given, program_of, team, together
from minihybrid.codegen.bytecode import INSIDE, OWNED

N = [1 << 16, 7, 64] * 20
runs = [(program_of([MARK] * k, N[:k], ([8, 3, 5] * 20)[:k]), k) for k in (60, 3, 30, 1)]
wrong = []

def call(seed):
    rng = random.Random(seed)
    for _ in range(150):
        run, k = rng.choice(runs)
        outs = [np.zeros(n, np.int64) for n in N[:k]]
        together(run, (*outs, *given(None)[1:]), k)
        found = [set(out.tolist()) for out in outs]
        helped, alone = [{100 * n + 1} for n in ([8, 3, 5] * 20)[:k]], [{101}] * k
        if found not in (helped, alone):
            wrong.append(found)

callers = [threading.Thread(target=call, args=(i,)) for i in range(4)]
for caller in callers:
    caller.start()
for caller in callers:
    caller.join()
board = team().board
print(len(team().helpers), wrong, board[0] % 2, board[INSIDE // 8], board[OWNED // 8])
"""


@pytest.mark.slow
def test_calls_at_once_have_one_board_and_right_answers():
    done = subprocess.run(
        [sys.executable, "-c", STRESS],
        cwd=ROOT / "tests",
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
        env={**os.environ, "MINIHYBRID_NUM_THREADS": "4", "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout == "3 [] 0 0 0\n", done.stderr


@pytest.mark.slow
def test_helpers_go_home_when_the_process_ends():
    code = """
import threading, time
from minihybrid.codegen.cpu.thread_pool import team
helpers = team().helpers
time.sleep(0.05)
team().end()
print(len(helpers), [t.is_alive() for t in helpers])
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
        env={**os.environ, "MINIHYBRID_NUM_THREADS": "3"},
    )
    assert done.stdout == "2 [False, False]\n", done.stderr


PROGRAM = """
import numpy as np, minihybrid as mx
from minihybrid import nd
from minihybrid.gluon import nn
rng = np.random.default_rng(0)
f = mx.function(lambda a, b: nd.tanh(a * b + 1).sum(axis=1))
net = nn.HybridSequential()
net.add(nn.Dense(300, activation="relu"), nn.Dense(200))
mx.random.seed(3)
net.initialize()
net.hybridize()
x = nd.array(rng.standard_normal((1024, 700)))
outs = [f(x, x + 1), net(x)]
plans = [*f.plans.values(), *net.plans.values()]

deep = nn.HybridSequential()  # images that fill vectors, and some that do not
deep.add(nn.Conv2D(8, 5, padding=2, activation="relu"), nn.MaxPool2D(2),
         nn.Conv2D(16, 3, strides=2), {norm} nn.AvgPool2D(3, 2), nn.Dense(10))
deep.initialize()
deep.hybridize()
for batch in {batches}:
    images = nd.array(rng.standard_normal((batch, 3, 40, 40)))
    with mx.autograd.record():
        y = deep(images)
    y.backward()
    outs += [y, deep(images), *(p.grad() for p in deep.collect_params().values()
                                if p.grad_req != "null")]
few = nn.Conv2D(512, 3, padding=1)  # few places, many channels
few.initialize()
few.hybridize()
outs.append(few(nd.array(rng.standard_normal((1, 512, 2, 2)))))
lines = mx.function(lambda a, i: (nd.sort(a), nd.topk(a, k=3), nd.argmax(a, axis=1),
    nd.cumsum(a, axis=1), nd.take(a, i), nd.pick(a, i), nd.one_hot(i, 700), nd.concat(a, a)))
outs += lines(nd.array(rng.standard_normal((2001, 700))), nd.array(rng.integers(0, 700, 2001)))
print([sum(launch.chunks > 1 for launch in plan.made.launches)
       for plan in [*deep.plans.values(), *few.plans.values()]])
np.save({path!r}, np.concatenate([out.asnumpy().ravel() for out in outs]))
print([[launch.chunks > 1 for launch in plan.made.launches] for plan in plans])
print([launch.chunks for plan in deep.plans.values()
       for label, launch in zip(plan.labels, plan.made.launches) if "conv_weight" in label])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "numbers, batches, norm",
    [
        ("12", [37], ""),
        pytest.param("123", [64, 37], "nn.BatchNorm(),", marks=pytest.mark.external),
    ],
    ids=["some", "all"],
)
def test_the_number_of_threads_does_not_change_the_answers(numbers, batches, norm, tmp_path):
    answers = []
    for n in numbers:
        path = str(tmp_path / f"{n}.npy")
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM.format(path=path, batches=batches, norm=norm)],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "MINIHYBRID_NUM_THREADS": n},
        )
        deep, wide, weights = done.stdout.strip().split("\n")
        counts = ast.literal_eval(deep)  # of each plan, in prediction and in training
        assert len(counts) == 3 * len(batches) + 1
        assert all((count > 0) == (n != "1") for count in counts)
        assert wide == str([[n != "1"], [n != "1"] * 2])
        # Of 8 and of 16 filters: as many equal parts as there are threads, or fewer.
        assert weights == str([1 if n == "1" else 2] * 2 * len(batches))
        answers.append(np.load(path))
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer, answers[0])


def test_two_nets_run_at_once():
    """A kernel that waits for another: both calls must be in compiled code together."""
    text = """
from numba import int64
from minihybrid.codegen.cpu.flat import kernel
from minihybrid.codegen.cpu.interpreter import add, look, rest

@kernel(int64[::1], int64)
def meet(out, where):
    add(where, 1)
    while look(where) < 2:
        rest()
    out[0] = 1
"""
    shared = np.zeros(1, np.int64)
    launches = [Launch(text, "meet", [Operand(ARRAY, 0), Operand(NUMBER, shared.ctypes.data)])]
    addresses = load_kernels({text: "meet", "": "the driver"})
    runs = [make_runner(addresses[""], numbers_of(1, launches, addresses)) for _ in range(2)]
    outs = [np.zeros(1, np.int64) for _ in range(2)]
    threads = [
        threading.Thread(
            target=run,
            args=(out, np.zeros(1, np.uint8), np.zeros(1, np.int64), 0, 1, 0, 0),
            daemon=True,
        )
        for run, out in zip(runs, outs, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=600)
    assert [out[0] for out in outs] == [1, 1]


LARGE = {
    "products": [
        (
            lambda x, w: sym.FullyConnected(x, w, num_hidden=1024, no_bias=True),
            (m, 2048),
            (1024, 2048),
        )
        for m in (1, 31, 33, 50, 100, 192, 193, 300)
    ],
    "points": [
        (
            lambda x, w, stride=stride: sym.Convolution(
                x, w, kernel=(1, 1), stride=stride, num_filter=512, no_bias=True
            ),
            (1, 512, *size),
            (512, 512, 1, 1),
        )
        for stride in ((1, 1), (2, 2))
        for size in ((7, 7), (14, 14), (28, 28))
    ],
    "windows": [
        (
            lambda x, w, stride=stride: sym.Convolution(
                x, w, kernel=(3, 3), pad=(1, 1), stride=stride, num_filter=256, no_bias=True
            ),
            (1, 64, *size),
            (256, 64, 3, 3),
        )
        for stride, size in (((1, 1), (7, 7)), ((2, 2), (14, 14)), ((1, 1), (8, 8)))
    ],
    "lines": [
        (f, (2001, 1001))
        for f in (
            lambda x: sym.sort(x),
            lambda x: sym.argmax(x, axis=1),
            lambda x: sym.argmin(x, axis=0),
            lambda x: sym.cumsum(x, axis=1),
            lambda x: sym.softmax(x),
            lambda x: sym.sum(x, axis=0),
            lambda x: sym.transpose(x),
            lambda x: sym.concat(x, x, dim=1),
            lambda x: sym.tanh(x),
        )
    ],
    "half a megabyte that moves": [
        (lambda x: sym.relu(x), (2**17,)),
        (lambda x: sym.concat(x, x, dim=1), (2, 2**15)),
        (lambda x: sym.sum(x, axis=1), (2**9, 2**8)),
    ],
    "places": [
        (lambda x, i: sym.take(x, i), (1000, 512), (100, 100)),
        (lambda x, i: sym.pick(x, i, axis=1, keepdims=True), (2**20, 3), (2**20,)),
        (lambda i: sym.one_hot(i, 1000), (2001,)),
    ],
}


@pytest.mark.parametrize("kind", LARGE)
def test_large_work_is_shared(kind, monkeypatch):
    """Also where the outermost loop turns once, or rows do not fill the tiles."""
    monkeypatch.setattr(target, "threads", lambda: 2)
    for f, *shapes in LARGE[kind]:
        specs = {f"x{i}": Spec(shape, np.dtype("float32")) for i, shape in enumerate(shapes)}
        plan = Plan(sym.trace(f, specs)[0], list(specs), target="cpu")
        assert all(launch.chunks > 1 for launch in plan.made.launches), (plan.labels, shapes)


LARGE_SUMS = [
    (lambda x: sym.sum(x), (301, 1001)),
    (lambda x: sym.mean(x, axis=1), (301, 1001)),
    (lambda x: sym.norm(x), (301, 1001)),
    (lambda x, g, b: sym.LayerNorm(x, g, b), (301, 1001), (1001,), (1001,)),
    (lambda x, y: sym.batch_dot(x, y), (7, 65, 129), (7, 129, 33)),
    (lambda x, y: sym.dot(x, y, transpose_a=True), (513, 129), (513, 77)),
    (lambda x: sym.tanh(x * x + 1).sum(axis=(0, 2)), (33, 65, 129)),
    (lambda x: sym.softmax(x * 2).sum(axis=0), (301, 1001)),
    (lambda x: sym.Pooling(x, kernel=(3, 3), pool_type="avg"), (5, 7, 61, 61)),
]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*LARGE, "sums"])
def test_answers_do_not_depend_on_how_loops_are_cut_into_pieces(kind, monkeypatch):
    """A call while the helpers are with another one does each launch in one piece."""
    monkeypatch.setattr(target, "threads", lambda: 3)
    monkeypatch.setattr(machine, "threads", lambda: 3)
    rng = np.random.default_rng(0)
    for f, *shapes in LARGE.get(kind, LARGE_SUMS):
        specs = {f"x{i}": Spec(shape, np.dtype("float32")) for i, shape in enumerate(shapes)}
        plan = Plan(sym.trace(f, specs)[0], list(specs), target="cpu")
        plan.load()
        table = plan.bind([])[0]
        arrays = [rng.uniform(0, 3, shape).astype("float32") for shape in shapes]
        launches, answers = plan.made.launches, []
        for cut in (False, True):
            outs = [np.full(*spec[:1], np.nan, spec[1]) for spec in plan.out_specs]
            shared = np.zeros(COUNTERS // 8 + 4 * len(launches), np.int64)
            address = shared.ctypes.data if cut else 0
            args = (*arrays, *outs, plan._new_arena(), table, 0, len(launches), address, 0)
            assert plan.function(*args) is True
            answers.append([out.tobytes() for out in outs])
        assert answers[0] == answers[1], (plan.labels, shapes)
        assert kind == "sums" or any(launch.chunks > 1 for launch in launches)


def test_what_each_part_begins_with_is_done_once_a_thread(monkeypatch):
    """Planes are filled before filters are shared: two parts; points have eight."""
    monkeypatch.setattr(target, "threads", lambda: 2)
    chunks = []
    for side in (1, 3):

        def f(x, w, side=side):
            return sym.Convolution(
                x, w, kernel=(side, side), pad=(side // 2,) * 2, num_filter=64, no_bias=True
            )

        specs = {
            "x": Spec((1, 64, 56, 56), np.dtype("float32")),
            "w": Spec((64, 64, side, side), np.dtype("float32")),
        }
        plan = Plan(sym.trace(f, specs)[0], list(specs), target="cpu")
        chunks += [launch.chunks for launch in plan.made.launches]
    assert chunks == [8, 2]


def test_numbers_of_rows_are_little_work(monkeypatch):
    """What is computed of means alone has their length, however long the rows are."""
    monkeypatch.setattr(target, "threads", lambda: 2)
    spec = Spec((64, 128, 16, 16), np.dtype("float32"))

    def f(x):
        mean = sym.mean(x, axis=(0, 2, 3))
        return sym.dot(mean, mean), sym.reshape(mean, shape=(1, 128, 1, 1)) * 0.9 + 1

    plan = Plan(sym.trace(f, {"x": spec})[0], ["x"], target="cpu")
    chunks = {
        label: launch.chunks for label, launch in zip(plan.labels, plan.made.launches, strict=True)
    }
    assert chunks == {"sum_mul_scalar": 8, "matmul": 1, "reshape_mul_scalar_plus_scalar": 1}


@pytest.mark.parametrize(("rows", "chunks"), [(2048, 8), (8, 1)])
def test_helpers_who_are_awake_share_what_is_not_worth_waking_them(rows, chunks, monkeypatch):
    """2,048 numbers of five functions, beside a product that is large, or is not."""
    monkeypatch.setattr(target, "threads", lambda: 2)
    shapes = {"x": (rows, 64), "w": (64, 64), "y": (2048,)}
    specs = {name: Spec(shape, np.dtype("float32")) for name, shape in shapes.items()}

    def f(x, w, y):
        return sym.dot(x, w), sym.log(sym.exp(sym.cos(sym.tanh(sym.sigmoid(y)))))

    plan = Plan(sym.trace(f, specs)[0], list(specs), target="cpu")
    assert len(plan.made.launches) == 2
    assert {launch.chunks for launch in plan.made.launches} == {chunks}


def test_small_work_is_not_shared():
    f = mx.function(lambda a: a * 2 + 1)
    f(nd.ones(100))
    (plan,) = f.plans.values()
    assert "part" not in plan.source
    assert [launch.chunks for launch in plan.made.launches] == [1]


@pytest.mark.slow
def test_a_forked_process_has_helpers_of_its_own():
    if not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    code = """
import os
import numpy as np, minihybrid as mx
f = mx.function(lambda a: mx.nd.exp(a) * 2)
x = mx.nd.zeros(1 << 21)
assert (f(x).asnumpy() == 2).all()
pid = os.fork()
for _ in range(20):
    assert (f(x).asnumpy() == 2).all()
if pid:
    assert os.waitpid(pid, 0)[1] == 0
    print("both")
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
        env={**os.environ, "MINIHYBRID_NUM_THREADS": "2"},
    )
    assert done.stdout.strip() == "both"


@pytest.mark.slow
@pytest.mark.parametrize("wait", ["0", "1"])
def test_where_no_thread_can_be_started_the_answer_comes_all_the_same(wait, tmp_path):
    code = """
import threading, minihybrid as mx

def refuse(_):
    raise RuntimeError("can't start new thread")

threading.Thread.start = refuse
f = mx.function(lambda a: mx.nd.tanh(a) * 3 + 1)
print([float(f(mx.nd.zeros(1 << 20)).asnumpy().max()) for _ in range(3)],
      *(p.target for p in f.plans.values()))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "MINIHYBRID_WAIT": wait,
            "MINIHYBRID_NUM_THREADS": "2",
            "MINIHYBRID_CACHE_DIR": str(tmp_path),
        },
    )
    target, n_warnings = ("numpy", 1) if wait == "0" else ("cpu", 0)
    assert done.stdout == f"[1.0, 1.0, 1.0] {target}\n", done.stderr
    assert done.stderr.count("can't start new thread; NumPy goes on") == n_warnings


FORKS = """
import os, random, signal, sys, threading, time
import minihybrid as mx
from minihybrid import autograd, gluon, nd
from minihybrid.core import fork_safe
from minihybrid.gluon import nn

def made():
    net = nn.HybridSequential()
    net.add(nn.Dense(8, activation="tanh"), nn.Dropout(0.5), nn.Dense(8))
    net.initialize()
    net.hybridize()
    return net

def use(net, batch):
    with autograd.record():
        y = net(nd.ones((batch, 8))).sum()
    y.backward()
    net(nd.random.normal(shape=(batch, 8)))

def is_fine(child):
    until = time.monotonic() + 600
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)

nets = [made()]
use(nets[0], 1)
stop = threading.Event()

def busy(seed):
    batch = 0
    while not stop.is_set():
        batch += 1
        nets[0] = net = made()
        use(net, batch % 50 + 1)

class Held(gluon.HybridBlock):  # a trace that lasts until the forks are over
    def hybrid_forward(self, F, x):
        if threading.current_thread().name == "slow":
            begun.set()
            stop.wait()
        return x * 2

held, begun = Held(), threading.Event()
held.hybridize()
slow = threading.Thread(target=held, args=(nd.ones(3),), name="slow")
slow.start()
begun.wait()
others = [threading.Thread(target=busy, args=(i,)) for i in range(2)]
for other in others:
    other.start()
rng, fine = random.Random(0), []
for k in range(12):
    time.sleep(rng.random() * 0.02)
    if k == 11:  # and once with every lock held
        for each in list(fork_safe.EVERY):
            threading.Thread(target=each.lock.acquire, daemon=True).start()
            time.sleep(0.001)
    child = os.fork()
    if not child:
        try:
            assert held(nd.ones(3)).asnumpy().tolist() == [2, 2, 2]
            use(nets[0], k + 1)
            use(made(), 3)
        finally:
            os._exit(sys.exc_info()[0] is not None)
    fine.append(is_fine(child))
print(fine == [True] * 12 or fine, flush=True)
os._exit(0)
"""


@pytest.mark.slow
def test_a_fork_at_any_moment_leaves_a_child_that_works():
    """Other threads trace, compile, initialize and draw, and hold what locks there are."""
    if not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=1800,
        env={**os.environ, "MINIHYBRID_WAIT": "0"},
    )
    assert done.stdout == "True\n", done.stderr[-2000:]


@pytest.mark.slow
def test_no_lock_but_those_that_a_fork_opens():
    """Each lock or queue between threads is a `ForkSafe`, or made anew after a fork."""
    made = {
        (path.relative_to(PACKAGE).as_posix(), node.func.attr)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and getattr(node.func.value, "id", "") in ("threading", "queue")
    }
    assert made - {(file, "Thread") for file, _ in made} == {
        ("ops/random.py", "local"),
        ("core/fork_safe.py", "RLock"),
        ("runtime/tiers.py", "Lock"),
        ("runtime/tiers.py", "SimpleQueue"),  # a new BackgroundCompiler
        ("codegen/cpu/objects.py", "RLock"),  # STILL: a fork waits
        ("codegen/cpu/objects.py", "SimpleQueue"),  # of idle compilers
        ("codegen/cpu/objects.py", "current_thread"),
        ("codegen/cpu/thread_pool.py", "SimpleQueue"),  # of new helpers
        ("mxnet/profiler.py", "setprofile"),  # none of these three waits
        ("mxnet/profiler.py", "get_ident"),
        ("mxnet/profiler.py", "current_thread"),
    }
    assert "register_at_fork" in (PACKAGE / "codegen/cpu/thread_pool.py").read_text()


@pytest.mark.parametrize("text", ["two", "0", "-1", "1.5"])
def test_a_number_of_threads_that_is_none_is_refused(text, monkeypatch):
    monkeypatch.setenv("MINIHYBRID_NUM_THREADS", text)
    with pytest.raises(mx.base.MXNetError, match=f"'{text}', but a whole number"):
        machine.threads.__wrapped__()


def test_threads_share_a_full_cache():
    cache, before = LRUCache(2), sys.getswitchinterval()

    def use(first):
        for i in range(60_000):
            key = first * i % 5
            assert cache.lookup(key) in (None, key) and cache.put(key, key) == key

    sys.setswitchinterval(1e-7)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert [*pool.map(use, range(1, 9))] == [None] * 8
    finally:
        sys.setswitchinterval(before)
