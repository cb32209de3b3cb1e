"""Chapter 07. Values that devices and processes share, and training by several processes.

Two ranks are two threads here, with a stand-in for MPI; MPI's own, and MXNet's, elsewhere.
"""

import json
import os
import pickle
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import envs
import numpy as np
import pytest

import minihybrid as mx
from minihybrid import autograd, gluon, kvstore, nd, sym
from minihybrid.core.op import AttrError, HybridError, ShapeError
from minihybrid.gluon import nn

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "elsewhere"


# -- one process -----------------------------------------------------------------------
def test_a_store_adds_up_and_replaces():
    kv = mx.kv.create()
    kv.init(["a", 3], [nd.ones((2, 3)), nd.zeros(2)])
    kv.push("a", [nd.ones((2, 3)), nd.ones((2, 3)) * 4])
    outs = [nd.zeros((2, 3), ctx=mx.cpu(k)) for k in (0, 1)]
    kv.pull("a", out=outs)
    assert [o.asnumpy().tolist() for o in outs] == [[[5] * 3] * 2] * 2
    given = nd.array([1, 2])
    kv.pushpull(3, given, out=(out := nd.zeros(2)))
    kv.push(3, given)
    given[:] = 9  # what is stored is a copy
    kv.pull(3, out)
    assert out.asnumpy().tolist() == [1, 2]
    kv.broadcast("new", nd.ones(2), out)
    assert out.asnumpy().tolist() == [1, 1]


def test_a_store_with_an_optimizer_takes_steps():
    kv = mx.kvstore.create("device")
    kv.init(0, nd.ones(2))
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    kv.push(0, [nd.ones(2), nd.ones(2)])
    kv.pull(0, out := nd.zeros(2))
    assert out.asnumpy().tolist() == [0, 0] and kv.is_capable("optimizer")


def test_a_store_says_what_does_not_fit():
    kv = mx.kv.create()
    kv.init("w", nd.zeros(2))
    for call, message in (
        (lambda: kv.init("w", nd.zeros(2)), "init: the key 'w' has a value already"),
        (lambda: kv.push("v", nd.zeros(2)), r"there is no key 'v'; call init .*\['w'\]"),
        (lambda: kv.push("w", nd.zeros(3)), r"shape \(3,\) for the key 'w', but .* \(2,\)"),
        (lambda: kv.pull("w"), "pull: None .* for the key 'w', but an array"),
        (lambda: kv.push(["w", "v"], [nd.zeros(2)]), "2 keys are given, but"),
        (lambda: kv.push(1.5, nd.zeros(2)), "key=1.5 .*, but a text or a number"),
        (lambda: kv.push("w", 3), "3 .*is given for the key 'w', but an array"),
        (lambda: kv.set_optimizer("sgd"), "optimizer='sgd' .*, but an optimizer is needed"),
        (lambda: kv.puhs("w"), "no attribute 'puhs'"),
    ):
        with pytest.raises((HybridError, AttributeError), match=message):
            call()
    with pytest.warns(UserWarning, match="sent as they are, not compressed"):
        kv.set_gradient_compression({"type": "2bit"})


@pytest.mark.parametrize("make", ["create", "Trainer"])
@pytest.mark.parametrize(
    "name, message",
    [
        ("dist_sinc", r"'dist_sinc' \(did you mean 'dist_sync'\?\); there are 'local'"),
        ("devcie", "did you mean 'device'"),
        ("zzz", "no kvstore 'zzz'; there are"),
        ("dist_async", "'dist_async', whose steps wait for nobody.*'dist_sync' adds up"),
        ("dist_device_sync", "'dist_device_sync', which adds up on GPUs, is not here"),
        ("horovod", "a library that adds up by MPI, too, is not here"),
        (3, "kvstore=3 .*, but a name is needed"),
    ],
)
def test_a_kind_that_is_not_here(make, name, message):
    with pytest.raises(AttrError, match=message):
        if make == "create":
            mx.kv.create(name)
        else:
            gluon.Trainer([], "sgd", kvstore=name)


def test_without_mpi4py_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    kvstore.together.cache_clear()
    with pytest.raises(HybridError, match=r'needs mpi4py .*pip install "minihybrid\[dist\]"'):
        gluon.Trainer([], "sgd", kvstore="dist_sync")


# -- two ranks, which are threads ------------------------------------------------------
class Done:
    def __init__(self, done):
        self.done = done

    def Test(self):
        return self.done


class World:
    """What `Several` uses of an MPI.Comm, for ranks that are threads."""

    def __init__(self, rank, shared):
        self.rank, self.shared, self.sizes = rank, shared, []

    def Dup(self):
        return self

    def Get_rank(self):
        return self.rank

    def Get_size(self):
        return len(self.shared["given"])

    def _all(self, own):
        if self.shared["left"]:
            return None
        self.shared["given"][self.rank] = own.copy()
        self.shared["here"].wait(600)
        actual = list(self.shared["given"])
        self.shared["here"].wait(600)
        return actual

    def Iallreduce(self, own, total):
        actual = self._all(own)
        self.sizes.append(own.nbytes)
        if actual:
            total[...] = sum(actual)
        return Done(bool(actual))

    def Ibcast(self, buffer, root):
        actual = self._all(buffer)
        if actual:
            buffer[...] = actual[root]
        return Done(bool(actual))

    def Iprobe(self, source, tag):
        return source in self.shared["left"]

    def Recv(self, count, source, tag):
        count[0] = self.shared["left"].pop(source)

    def Isend(self, count, dest, tag):
        self.shared["left"][self.rank] = int(count[0])


def as_ranks(program, n=2):
    """What `program(store)` gives on each rank, or the error; and each one's World."""
    shared = {"given": [None] * n, "here": threading.Barrier(n), "left": {}}
    worlds, actual = [World(rank, shared) for rank in range(n)], [None] * n

    def run(rank):
        try:
            store = kvstore.KVStore("dist_sync", kvstore.Several(worlds[rank]))
            actual[rank] = program(store)
        except threading.BrokenBarrierError:
            pass  # the other has failed
        except HybridError as error:
            actual[rank] = error
            shared["here"].abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return actual, worlds


DATA = np.random.default_rng(7).normal(size=(8, 3)).astype("float32")


def trained(store, value=0.25, n_steps=4, ctx=None, **more):
    net = nn.HybridSequential()
    net.add(nn.Dense(4, in_units=3, activation="tanh"), nn.Dense(1, in_units=4))
    net.initialize(mx.init.Constant(value), ctx=ctx)
    trainer = gluon.Trainer(
        net.collect_params(), "adam", {"learning_rate": 0.1}, kvstore=store, **more
    )
    data = nd.array(DATA[store.rank :: store.num_workers])
    for _ in range(n_steps):
        with autograd.record():
            losses = [
                (net(part) ** 2).sum()
                for part in gluon.utils.split_and_load(data, ctx or [mx.cpu()])
            ]
        for loss in losses:
            loss.backward()
        trainer.step(len(DATA))
    return [p.list_data()[-1].asnumpy() for p in net.collect_params().values()]


@pytest.mark.parametrize("ctx", [None, [mx.cpu(0), mx.cpu(1)]], ids=["one", "two contexts"])
def test_ranks_train_as_one_process_does(ctx):
    """Whatever values the others begin with; a step sends two messages."""
    alone = trained(mx.kv.create())
    (first, second), worlds = as_ranks(lambda kv: trained(kv, 0.25 + kv.rank, ctx=ctx))
    for a, b, c in zip(alone, first, second, strict=True):
        np.testing.assert_array_equal(b, c)
        np.testing.assert_allclose(a, b, atol=1e-6)
    n_parameters = sum(a.size for a in alone)
    assert worlds[0].sizes == [4 * len(alone), 4 * n_parameters] * 4


def trained_module(store):
    x = sym.FullyConnected(sym.var("data"), num_hidden=4, name="first")
    x = sym.FullyConnected(sym.tanh(x), num_hidden=2, name="second")
    n = 4 // store.num_workers  # of each batch of 4
    data = DATA.reshape(2, store.num_workers, n, 3)[:, store.rank].reshape(-1, 3)
    batches = mx.io.NDArrayIter(data, (data.sum(1) > 0).astype("float32"), n)
    made = mx.mod.Module(sym.SoftmaxOutput(x, name="softmax"))
    made.bind(batches.provide_data, batches.provide_label)
    made.init_params(mx.init.Constant(0.1 * store.rank + 0.2))
    settings = {"learning_rate": 0.5, "momentum": 0.9}
    made.fit(batches, kvstore=store, optimizer_params=settings, num_epoch=3, eval_metric="ce")
    return {name: array.asnumpy() for name, array in made.get_params()[0].items()}


def test_modules_of_two_ranks_train_as_one_does(monkeypatch):
    """By the sum of both gradients, divided by the samples of both; rank 0's values hold."""
    monkeypatch.setattr("minihybrid.executor.best_target", lambda: "numpy")
    monkeypatch.setattr("minihybrid.executor.target_of", lambda array: "numpy")
    alone = trained_module(mx.kv.create())
    (first, second), worlds = as_ranks(trained_module)
    for name in alone:
        np.testing.assert_array_equal(first[name], second[name])
        np.testing.assert_allclose(alone[name], first[name], atol=1e-6)
    n_parameters = sum(a.size for a in alone.values())
    assert worlds[0].sizes == [4 * n_parameters] * 6  # one message a step


def test_each_dtype_is_added_up_in_one_message():
    def program(kv):
        arrays = [nd.ones(n, dtype=d) for n, d in ((2, "float32"), (3, "float64"), (1, "float16"))]
        arrays.append(nd.ones(5) * kv.rank)
        kv.processes.add_up(arrays)
        return [(a.asnumpy().tolist(), np.dtype(a.dtype).name) for a in arrays]

    (first, second), worlds = as_ranks(program)
    assert worlds[0].sizes == [4 * 8, 8 * 3] and first == second
    assert first == [
        ([2, 2], "float32"), ([2, 2, 2], "float64"), ([2], "float16"), ([1] * 5, "float32"),
    ]  # fmt: skip


def test_a_gradient_that_one_rank_lacks_counts_as_zero():
    def program(kv):
        x, y = (gluon.Parameter(name, shape=(1,)) for name in "xy")
        for p in (x, y):
            p.initialize(mx.init.Constant(1))
        trainer = gluon.Trainer([x, y], "sgd", {"learning_rate": 1.0}, kvstore=kv)
        with autograd.record():
            loss = x.data() * 2 + (y.data() if kv.rank else 0)
        loss.backward()
        trainer.step(1, ignore_stale_grad=True)
        return x.data().asscalar(), y.data().asscalar()

    (first, second), _ = as_ranks(program)
    assert first == second == (-3, 0)


def test_ranks_with_other_nets_are_told():
    (first, second), _ = as_ranks(lambda kv: kv.init("w", nd.ones(2 + kv.rank)))
    assert first is None and isinstance(second, ShapeError)
    message = r"rank 1 has arrays of \[\(3, 'float32'\)\], but rank 0 has \[\(2, 'float32'\)\]"
    with pytest.raises(ShapeError, match=message):
        raise second


def test_who_waits_for_a_rank_that_ended_is_told():
    def program(kv):
        trained(kv, n_steps=2)
        if kv.rank:
            kv.processes.leave()
            return None
        while not kv.processes.world.shared["left"]:
            pass
        return trained(kv)

    (first, second), _ = as_ranks(program)
    assert second is None
    with pytest.raises(HybridError, match="rank 1 has ended, while rank 0 of 2 waits for its"):
        raise first


def test_values_that_are_known_late_are_spread_with_a_warning():
    def program(kv):
        net = nn.Dense(1)
        net.initialize(mx.init.Constant(kv.rank + 1))
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.0}, kvstore=kv)
        with autograd.record():
            loss = net(nd.ones((1, 2)))
        loss.backward()
        trainer.step(2)
        return net.weight.data().asnumpy().tolist()

    with pytest.warns(UserWarning, match="weight' was initialized after the Trainer was made"):
        (first, second), _ = as_ranks(program)
    assert first == second == [[1, 1]]


def test_compression_is_refused_with_a_warning():
    with pytest.warns(UserWarning, match="not compressed .*2bit"):
        as_ranks(lambda kv: trained(kv, n_steps=1, compression_params={"type": "2bit"}))
    kv = mx.kv.create()
    trained(kv, n_steps=1, compression_params={"type": "2bit"})  # nothing is sent
    assert pickle.loads(pickle.dumps(kv)).type == "local"


# -- real processes --------------------------------------------------------------------
def python_with(name):
    try:
        return envs.python_of(name)
    except envs.NotAvailable as reason:
        pytest.skip(f"{name}: {reason}")


def started(n, *program, timeout=600):
    """What `mpiexec -n N python ...` says when it has ended."""
    python = python_with("mpi")
    return subprocess.run(
        [python.parent / "mpiexec", "-n", str(n), python, *map(str, program)],
        capture_output=True, text=True, timeout=timeout,
        env=os.environ | {"PYTHONPATH": str(ROOT), "MINIHYBRID_WAIT": "1", "TQDM_DISABLE": "1"},
    )  # fmt: skip


def answers(folder, n):
    return [json.loads((folder / f"rank{k}.json").read_text("utf-8")) for k in range(n)]


WORK = {
    "store": [],
    "sgd": ['{"learning_rate": 0.1, "momentum": 0.9}'],
    "adam": ['{"learning_rate": 0.1}'],
}


def ours(tmp_path):
    text = (PROGRAMS / "several_processes.py").read_text("utf-8")
    text = text.replace("mxnet as", "minihybrid as").replace("from mxnet", "from minihybrid")
    (tmp_path / "ours.py").write_text(text, "utf-8")
    return tmp_path / "ours.py"


@pytest.mark.external
@pytest.mark.parametrize("work", ["sgd", "adam"])
def test_processes_train_as_one_does(work, tmp_path):
    program, actual = ours(tmp_path), {}
    for n in (1, 2, 4):
        done = started(n, program, tmp_path, work, *WORK[work])
        assert done.returncode == 0, done.stderr
        actual[n] = answers(tmp_path, n)
        assert all(rank == actual[n][0] for rank in actual[n])
        assert actual[n][0]["kind"] == ["dist_sync", n]
    for n in (2, 4):
        for a, b in zip(actual[1][0][work], actual[n][0][work], strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.external
@pytest.mark.parametrize("work", WORK)
def test_processes_find_what_those_of_mxnet_find(work, tmp_path):
    """MXNet starts a scheduler and a server beside the two that train."""
    python, program = python_with("mxnet"), ours(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    theirs = tmp_path / "mxnet"
    theirs.mkdir()
    running = []
    for role in ("scheduler", "server", "worker", "worker"):
        settings = {"ROLE": role, "PS_ROOT_URI": "127.0.0.1", "PS_ROOT_PORT": str(port)}
        settings |= {"NUM_SERVER": "1", "NUM_WORKER": "2"}
        command = [PROGRAMS / "several_processes.py", theirs, work, *WORK[work]]
        running.append(
            subprocess.Popen(
                [python, *(command if role == "worker" else ["-c", "import mxnet"])],
                env=os.environ | {f"DMLC_{key}": value for key, value in settings.items()},
            )
        )
    try:
        assert [process.wait(600) for process in running] == [0] * 4
    finally:
        for process in running:
            process.kill()
    done = started(2, program, tmp_path, work, *WORK[work])
    assert done.returncode == 0, done.stderr
    for a, b in zip(answers(theirs, 2), answers(tmp_path, 2), strict=True):
        assert a.keys() == b.keys()
        for name in a:
            if name == "kind":
                assert a[name] == b[name]
            else:
                for x, y in zip(a[name], b[name], strict=True):
                    np.testing.assert_allclose(x, y, atol=1e-5)


ENDED = "rank 1 has ended, while rank [023] of 4 waits for its gradients"


@pytest.mark.external
@pytest.mark.parametrize(
    "end, messages",
    [
        ("1 / 0", ["ZeroDivisionError", ENDED]),
        ("sys.exit(0)", [ENDED]),
        ("os.kill(os.getpid(), 9)", ["(?i)killed"]),
    ],
    ids=["an error", "too few steps", "killed"],
)
def test_a_process_that_ends_ends_the_others(end, messages, tmp_path):
    program = ours(tmp_path)
    text = program.read_text("utf-8")
    step = "        trainer.step(N)\n"
    assert text.count(step) == 1
    ending = f"        if kv.rank == 1 and kv.num_workers == 4:\n            {end}\n"
    program.write_text(text.replace(step, step + ending), "utf-8")
    done = started(4, program, tmp_path, "sgd", *WORK["sgd"])
    assert done.returncode != 0
    for words in messages:  # in any order: mpiexec hands on what each process writes as it comes
        assert re.search(words, done.stdout + done.stderr)
