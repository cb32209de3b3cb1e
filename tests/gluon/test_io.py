"""Iterators of batches, callbacks, downloads and MXNet's helpers for tests."""

import hashlib
import http.server
import json
import logging
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from minihybrid.io import DataBatch, DataDesc, DataIter, MNISTIter, NDArrayIter

import minihybrid as mx
from minihybrid import AttrError, ShapeError, callback, gluon, nd, sym, test_utils
from minihybrid.core.files import FileError
from minihybrid.gluon.utils import check_sha1, download

GOLDEN = Path(__file__).parents[1] / "golden/training"
CASES = json.loads((GOLDEN / "iterators.json").read_text())


@pytest.fixture
def messages():
    """What is logged, as texts."""
    texts, handler, logger = [], logging.Handler(), logging.getLogger()
    handler.emit = lambda record: texts.append(record.getMessage())
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield texts
    logger.setLevel(level)
    logger.removeHandler(handler)


@pytest.fixture
def numpy_only(monkeypatch):
    """Plans run as NumPy code, which takes no time to compile."""
    monkeypatch.setattr("minihybrid.core.targets.best_target", lambda: "numpy")


# -- iterators -------------------------------------------------------------------------
@pytest.mark.parametrize("n, size, handle, described, rounds", CASES)
def test_batches_are_those_of_mxnet(n, size, handle, described, rounds):
    x, y = np.arange(2 * n).reshape(n, 2), -np.arange(n)
    made = NDArrayIter(x, {"b": y, "a": 2 * y}, size, last_batch_handle=handle)
    assert [repr(d) for d in made.provide_data + made.provide_label] == described
    for i, expected in enumerate(rounds):
        actual = [[*(a.asnumpy().tolist() for a in (*b.data, *b.label)), b.pad] for b in made]
        assert actual == expected
        (made.hard_reset if i == 2 else made.reset)()


def test_shuffled_rounds_have_every_sample_with_its_label():
    mx.random.seed(3)
    x = nd.array(np.arange(8), dtype="int32")
    made, orders = NDArrayIter([x, x * 10], x * 2, 4, shuffle=True), []
    for _ in range(2):
        batches = list(made)
        assert all((b.data[1] == b.data[0] * 10).asnumpy().all() for b in batches)
        assert all((b.label[0] == b.data[0] * 2).asnumpy().all() for b in batches)
        orders.append(sum((b.data[0].asnumpy().tolist() for b in batches), []))
        made.reset()
    assert [sorted(order) for order in orders] == [list(range(8))] * 2 and orders[0] != orders[1]
    assert batches[0].data[0].dtype == np.int32
    assert [d.name for d in made.provide_data] == ["_0_data", "_1_data"]
    mx.random.seed(3)
    again = NDArrayIter(x, batch_size=8, shuffle=True)
    assert again.next().data[0].asnumpy().tolist() == orders[0]


def test_samples_may_lie_along_another_axis():
    x = nd.array(np.arange(12).reshape(2, 6))
    made = NDArrayIter({"x": x}, batch_size=4, layout="TN")
    assert made.provide_data[0] == ("x", (2, 4)) and made.provide_data[0].layout == "TN"
    assert [b.data[0].asnumpy()[1].tolist() for b in made] == [[6, 7, 8, 9], [10, 11, 6, 7]]
    assert DataDesc.get_batch_axis(None) == 0 and DataDesc.get_batch_axis("TNC") == 1
    (first,) = DataDesc.get_list([("x", (1,))], [("x", "int8")])
    assert (first.name, first.shape, first.dtype) == ("x", (1,), "int8")


with np.load(GOLDEN.parent / "vision/answers.npz") as stored:
    DIGITS = {name.split()[1]: stored[name].tobytes() for name in stored if "file " in name}


@pytest.fixture
def digits(tmp_path):
    """A folder with five digits to train with, and the same to test."""
    for name, data in DIGITS.items():
        for part in ("train", "t10k"):
            (tmp_path / name.replace("train", part)).write_bytes(data)
    return tmp_path


def test_digits_go_by_in_the_batches_of_mxnet(digits):
    paths = [str(digits / f"train-{kind}-ubyte") for kind in ("images-idx3", "labels-idx1")]
    made = MNISTIter(*paths, 2, shuffle=False)
    assert made.provide_data == [("data", (2, 1, 28, 28))]
    assert made.provide_label == [("softmax_label", (2,))]
    batches = [(b.label[0].asnumpy().tolist(), b.data[0].asnumpy().sum(), b.pad) for b in made]
    assert batches == [([3, 6], 765.99609375, 0), ([5, 6], 770.46875, 0)]
    (batch,) = MNISTIter(*paths, 2, False, True, num_parts=2, part_index=1, data_shape=(784,))
    assert batch.data[0].shape == (2, 784) and batch.label[0].asnumpy().tolist() == [5, 6]
    orders = [MNISTIter(*paths, 5, seed=seed) for seed in (1, 1, 2)]
    first, again, other = (made.next().label[0].asnumpy().tolist() for made in orders)
    assert first == again != other and sorted(first) == sorted(other)
    with pytest.raises(FileError, match=r"bytes \(axes: 3\)"):
        MNISTIter(*paths[::-1])


def test_the_gpus_that_programs_ask_for_are_those_that_are_here(monkeypatch):
    monkeypatch.setattr(test_utils, "num_gpus", lambda: 2)
    assert test_utils.list_gpus() == [0, 1]


def test_digits_as_arrays_of_numpy(digits):
    actual = test_utils.get_mnist(digits)
    assert actual["train_data"].shape == (5, 1, 28, 28) and actual["train_data"].max() <= 1
    np.testing.assert_array_equal(actual["train_data"] * 255, actual["test_data"] * 255)
    assert actual["train_label"].tolist() == actual["test_label"].tolist() and len(actual) == 4


def test_a_net_learns_digits_as_the_tutorials_teach(digits, numpy_only):
    """Only the import line and the folder are ours."""
    mx.random.seed(0)
    data = gluon.data.vision.MNIST(digits, train=True)
    tensors = data.transform_first(gluon.data.vision.transforms.ToTensor())
    loader = gluon.data.DataLoader(tensors, batch_size=5, shuffle=True)
    net = gluon.nn.HybridSequential()
    with net.name_scope():
        net.add(gluon.nn.Dense(16, activation="relu"), gluon.nn.Dense(10))
    net.initialize(mx.init.Xavier())
    trainer = gluon.Trainer(net.collect_params(), "nadam", {"learning_rate": 0.01})
    loss, metric = gluon.loss.SoftmaxCrossEntropyLoss(), mx.metric.Accuracy()
    for _ in range(30):
        metric.reset()
        for x, y in loader:
            with mx.autograd.record():
                out = net(x)
                error = loss(out, y)
            error.backward()
            trainer.step(len(x))
            metric.update(y, out)
    assert repr(metric) == "Accuracy(accuracy=1)"


def test_a_batch_says_its_shapes_and_own_iterators_work():
    batch = DataBatch([nd.ones((2, 3))], [nd.ones(2)], 0)
    assert str(batch) == "DataBatch: data shapes: [(2, 3)] label shapes: [(2,)]"

    class Count(DataIter):
        n = 0

        def next(self):
            self.n += 1
            if self.n > 2:
                raise StopIteration
            return DataBatch([nd.array([self.n])])

    assert [b.data[0].asscalar() for b in Count(1)] == [1, 2]


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: NDArrayIter("text"), AttrError, "data='text' .*an array, a list"),
        (lambda: NDArrayIter({}), ShapeError, "found none"),
        (lambda: NDArrayIter(nd.ones(3), nd.ones(2)), ShapeError, r"{'data': 3, 'softmax_label'"),
        (lambda: NDArrayIter(nd.ones(3), batch_size=0), AttrError, "batch_size=0 does not fit"),
        (
            lambda: NDArrayIter(nd.ones(3), last_batch_handle="keep"),
            AttrError,
            "discard, roll_over",
        ),
        (
            lambda: NDArrayIter(nd.ones(3), batch_size=4, last_batch_handle="roll_over"),
            ShapeError,
            "no batch is ever full",
        ),
        (lambda: DataBatch(nd.ones(3)), AttrError, "a list of arrays is needed"),
    ],
)
def test_wrong_iterators_are_one_sentence(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_symbol_is_trained_with_iterator_and_callbacks(messages, numpy_only):
    """As programs before Gluon did it."""
    rng = np.random.RandomState(0)
    x = rng.randn(40, 3).astype("float32")
    batches = NDArrayIter(x, (x.sum(1) > 0).astype("float32"), 10)
    net = sym.SoftmaxOutput(sym.FullyConnected(sym.var("data"), num_hidden=2), name="softmax")
    shapes = {d.name: d.shape for d in batches.provide_data + batches.provide_label}
    made = net.simple_bind(mx.cpu(), **shapes)
    update = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=0.1))
    callbacks = [
        callback.Speedometer(10, 2),
        callback.log_train_metric(4),
        callback.ProgressBar(4, 8),
    ]
    for epoch in range(5):
        batches.reset()
        metric, whole = mx.metric.create("acc"), mx.metric.create("acc")
        for nbatch, batch in enumerate(batches, 1):
            made.forward(True, data=batch.data[0], softmax_label=batch.label[0])
            made.backward()
            for i, name in enumerate(net.list_arguments()):
                if name not in shapes:
                    update(i, made.grad_dict[name], made.arg_dict[name])
            for each in (metric, whole):
                each.update(batch.label, made.outputs)
            param = callback.BatchEndParam(epoch, nbatch, metric, None)
            for call in callbacks:
                call(param)
    assert whole.get()[1] > 0.8 and np.isnan(metric.get()[1])  # it began again
    callback.LogValidationMetricsCallback()(param._replace(eval_metric=whole))
    assert len([m for m in messages if "Speed" in m]) == 5 * 2
    assert messages[0] == "[==------] 25%\r" and "[========] 100%\r" in messages
    assert messages[-1].startswith("Epoch[4] Validation-accuracy=")
    assert any(m.startswith("Iter[3] Batch[4] Train-accuracy=") for m in messages)


def test_the_speed_is_that_of_the_last_batches(messages, monkeypatch):
    times = iter([100.0, 102.0, 102.0, 103.0, 103.0])
    monkeypatch.setattr(callback, "time", SimpleNamespace(time=lambda: next(times)))
    call = callback.Speedometer(10, frequent=2, auto_reset=False)
    metric = mx.metric.Loss()
    metric.update(None, [nd.array([3.0])])
    for nbatch in range(4):
        call(callback.BatchEndParam(1, nbatch, metric if nbatch < 3 else None, None))
    call(callback.BatchEndParam(1, 4, None, None))
    assert messages == [
        "Epoch[1] Batch [0-2]\tSpeed: 10.00 samples/sec\tloss=3.000000",
        "Iter[1] Batch [4]\tSpeed: 20.00 samples/sec",
    ]


def test_checkpoints_after_some_rounds(tmp_path):
    prefix, seen = str(tmp_path / "net"), []
    save = callback.do_checkpoint(prefix, 2)
    for i in range(4):
        save(i, sym.var("x") * sym.var("w"), {"w": nd.ones(2) * i}, {})
    assert sorted(p.name for p in tmp_path.glob("*.params")) == [
        "net-0002.params",
        "net-0004.params",
    ]
    assert mx.model.load_checkpoint(prefix, 4)[1]["w"].asnumpy().tolist() == [3, 3]

    class Module:
        def save_checkpoint(self, *args):
            seen.append(args)

    for i in range(2):
        callback.module_checkpoint(Module(), "net", save_optimizer_states=True)(i)
    assert seen == [("net", 1, True), ("net", 2, True)]
    with pytest.raises(AttrError, match="frequent=0 does not fit"):
        callback.Speedometer(1, 0)


# -- downloads -------------------------------------------------------------------------
DATA = b"some bytes"
SHA1 = hashlib.sha1(DATA).hexdigest()


@pytest.fixture
def server():
    """An address here that answers with DATA, and counts how often it was asked."""

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            server.n_requests += 1
            self.send_response(200 if self.path.startswith("/data") else 404)
            self.send_header("Content-Length", str(len(DATA)))
            self.end_headers()
            self.wfile.write(DATA)

        def log_message(self, *args):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Answers)
    server.n_requests, server.url = 0, f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_file_is_fetched_once_and_checked(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert download(f"{server.url}/data.bin?a=1") == "data.bin"
    path = download(f"{server.url}/data.bin", tmp_path / "new" / "x.bin", sha1_hash=SHA1.upper())
    assert Path(path).read_bytes() == DATA and check_sha1(path, SHA1) and server.n_requests == 2
    assert download(f"{server.url}/data.bin", path) == path and server.n_requests == 2
    Path(path).write_bytes(b"other")
    assert download(f"{server.url}/data.bin", path) == path and server.n_requests == 2
    download(f"{server.url}/data.bin", path, sha1_hash=SHA1)
    assert Path(path).read_bytes() == DATA and server.n_requests == 3
    download(f"{server.url}/data.bin", str(tmp_path), overwrite=True)
    assert server.n_requests == 4


def test_a_wrong_checksum_writes_nothing(server, tmp_path):
    with pytest.raises(FileError, match=f"10 bytes with the checksum {SHA1}, but 00ff is needed"):
        download(f"{server.url}/data", tmp_path, sha1_hash="00ff")
    with pytest.raises(FileError, match=r"can't be downloaded \(Not Found\)"):
        download(f"{server.url}/other", tmp_path, retries=1)
    assert server.n_requests == 3 and not list(tmp_path.iterdir())


def test_without_a_network_one_sentence_says_what_to_do(tmp_path):
    """Port 9 has nobody who answers."""
    path = str(tmp_path / "x")
    with pytest.raises(FileError) as caught:
        download("http://127.0.0.1:9/x", path, retries=0)
    assert f"or the file itself at '{path}'" in str(caught.value)
    for url in ("file:///etc/hosts", 3, "x"):
        with pytest.raises(AttrError, match="http:// or https:// is needed"):
            download(url)
    with pytest.raises(AttrError, match="ends with no file's name"):
        download("http://127.0.0.1:9/", str(tmp_path))
