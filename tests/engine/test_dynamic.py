"""Symbolic lengths: `hybridize(dynamic=...)`, whose kernels take lengths as arguments."""

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import autograd, gluon, nd
from minihybrid.codegen.cpu import objects
from minihybrid.core.lengths import Length, marks_of, symbolic
from minihybrid.core.op import AttrError
from minihybrid.gluon import nn, rnn

SIZES = [64, 63, 61, 60, 58, 55, 51, 50, 49, 47, 44, 40, 37, 33, 32, 29, 21]  # of an epoch


def mlp():
    net = nn.HybridSequential()
    net.add(nn.Dense(24, activation="relu", in_units=20), nn.Dense(5, in_units=24))
    return net


class Words(gluon.HybridBlock):
    """Characters in, scores of the next one out."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, 8)
        self.body = rnn.LSTM(6, layout="NTC", input_size=8)
        self.head = nn.Dense(11, flatten=False, in_units=6)

    def hybrid_forward(self, F, x):
        return self.head(self.body(self.table(x)))


class Attends(gluon.HybridBlock):
    """Each character looks at all others."""

    def __init__(self):
        super().__init__()
        self.table, self.norm = nn.Embedding(11, 8), nn.LayerNorm(in_channels=8)
        self.key = nn.Dense(8, flatten=False, in_units=8)

    def hybrid_forward(self, F, x):
        x = self.table(x)
        weights = F.softmax(F.batch_dot(self.key(x), x, transpose_b=True))
        return self.norm(x + F.batch_dot(weights, x))


def lenet():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, activation="relu", in_channels=1), nn.MaxPool2D(2))
    net.add(nn.BatchNorm(in_channels=4), nn.Dense(5, in_units=4 * 5 * 5))
    return net


def images(n):
    return nd.array(np.random.RandomState(n).rand(n, 1, 12, 12))


def rows(n):
    return nd.array(np.random.RandomState(n).rand(n, 20))


def words(n, batch=2):
    return nd.array(np.random.RandomState(n).randint(0, 11, (batch, n)))


NETS = {
    "mlp": (mlp, rows, "batch"),
    "lenet": (lenet, images, "batch"),
    "words": (Words, words, {0: "n", 1: "t"}),
    "attends": (Attends, words, {0: "n", 1: "t"}),
}


def twins(name, backend, make=None):
    """A net with marked axes, and the same net without."""
    make, data, dynamic = NETS[name]
    nets = make(), make()
    for net in nets:
        net.initialize()
    for mine, own in zip(*(net.collect_params().values() for net in nets), strict=True):
        own.set_data(mine.data())
    nets[0].hybridize(backend=backend, dynamic=dynamic, wait=True)
    nets[1].hybridize(False)
    return (*nets, data)


def answers(net, x):
    """The prediction, the outputs of a training step and the gradients."""
    params = [p for p in net.collect_params().values() if p.grad_req != "null"]
    predicted = net(x)
    with autograd.record():
        out = net(x)
        loss = (out * out).sum()
    loss.backward()
    return [a.asnumpy().copy() for a in (predicted, out, *(p.grad() for p in params))]


def assert_close(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * max(1, np.abs(b).max(initial=0)))


@pytest.fixture
def compiled(monkeypatch):
    """The texts that were loaded for the first time: those that would be compiled."""
    texts, load = set(), []
    real = objects.load_kernels

    def loading(names):
        load.append(set(names) - texts - {""})
        texts.update(names)
        return real(names)

    monkeypatch.setattr("minihybrid.codegen.cpu.target.load_kernels", loading)
    return load


# -- the same answers ------------------------------------------------------------------
@pytest.mark.parametrize("name", NETS)
def test_numpy_answers_as_eager_does_for_all_lengths(name):
    net, eager, data = twins(name, "numpy")
    for n in (9, 4, 1, 13):
        assert_close(answers(net, data(n)), answers(eager, data(n)))
    assert len(net.plans) == 3  # prediction, forward, backward


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, sizes",
    [("mlp", SIZES), ("words", range(7, 36)), ("attends", range(16, 32)), ("lenet", SIZES[1:6:3])],
)
def test_one_compilation_serves_all_lengths(name, sizes, compiled):
    net, eager, data = twins(name, "cpu")
    anew = {}
    for n in sizes:
        assert_close(answers(net, data(n)), answers(eager, data(n)))
        anew[n] = len(set().union(*compiled))
        compiled.clear()
    assert anew.pop(sizes[0])
    if name == "words":  # a slice that begins at a cache line is no copy: other products then
        assert anew.pop(8) <= 2 and not any(anew.values()), anew
        return
    assert not any(anew.values()), anew
    assert len(net.plans) == 3
    for key, (_, calls) in net.plans.uses.items():
        assert key.lengths[-1][1] == tuple(sizes)
        assert calls == len(sizes)


# -- lengths ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    "of, text",
    [
        (lambda n: n * 64, "(n * 64)"),
        (lambda n: 3 + n, "(n + 3)"),
        (lambda n: 5 - 2 * n, "(- n * 2 + 5)"),
        (lambda n: n * 6 // 3, "(n * 2)"),
        (lambda n: n * n // n, "n"),
        (lambda n: (n + 1) // 2, "((n + 1) // 2)"),
        (lambda n: -(-n // 8) * 8, "(- ((- n) // 8) * 8)"),
        (lambda n: n % 4, "(- (n // 4) * 4 + n)"),
        (lambda n: 100 // n, "(100 // n)"),
        (lambda n: n - n, "0"),
    ],
)
def test_the_text_of_a_length_has_its_value(of, text):
    for value in (1, 2, 7, 36, 100):
        with symbolic():
            assert f"{of(Length.of('n', value))}" == text
        assert eval(text, {"n": value}) == of(value) == of(Length.of("n", value))


def test_a_length_is_an_int_elsewhere():
    n = Length.of("n", 7)
    assert (str(n), repr((n,)), f"{n:03d}", {7: 1}[n]) == ("7", "(7,)", "007", 1)
    assert type(n * 0) is int and n * 1.5 == 10.5


@pytest.mark.parametrize("dynamic", ["sequence", {0: 1}, {"0": "n"}, {0: "a b"}, 3, [3]])
def test_other_marks_are_refused(dynamic):
    with pytest.raises(AttrError, match="a dict of axes and names"):
        marks_of(dynamic)


# -- guards ----------------------------------------------------------------------------
def test_equal_symbols_need_equal_lengths():
    add = mx.function(lambda a, b: a.sum() + b.sum(), target="numpy", dynamic="batch")
    with pytest.raises(AttrError, match=r"'batch' is 3 in data0.shape\[0\] and 2 in data1"):
        add(nd.ones((3, 2)), nd.ones((2, 3)))
    each = mx.function(lambda a, b: a.sum() + b.sum(), target="numpy", dynamic=[{0: "n"}, {1: "n"}])
    assert each(nd.ones((3, 2)), nd.ones((2, 3))).item() == 12


@pytest.mark.parametrize("target", ["numpy", pytest.param("cpu", marks=pytest.mark.slow)])
def test_lengths_zero_and_one_have_answers(target):
    double = mx.function(lambda x: (x * 2 + x).sum(axis=1), target=target, dynamic="batch")
    for n in (5, 1, 0, 8):
        assert double(nd.ones((n, 2))).asnumpy().tolist() == [6.0] * n


def test_plans_print_their_lengths_and_why():
    double = mx.function(lambda x: x * 2, target="numpy", dynamic={0: "n"})
    for n in (5, 7, 5):
        double(nd.ones((n, 2)))
    double(nd.ones((5, 3)))
    assert double.plans.reasons == ["first call", "len_n is 7", "data.shape[1] is 3, not 2"]
    first, second = map(str, double.plans)
    assert first == "(float32[len_n x 2]) prediction, len_n = 5, 7"
    assert second == "(float32[len_n x 3]) prediction, len_n = 5"
    assert [calls for _, calls in double.plans.uses.values()] == [3, 1]
    assert "data: float32 (len_n, 2)" in double.plans.show()


def test_a_marked_axis_has_no_warning(recwarn):
    double = mx.function(lambda x: x * 2, target="numpy", dynamic={0: "n"})
    for n in range(1, 15):
        double(nd.ones((n, 2)))
    assert not recwarn.list
    for n in range(1, 15):
        double(nd.ones((3, n)))
    assert "mark the axis, hybridize(dynamic={1: 'n'})" in str(recwarn.pop(RuntimeWarning).message)


def test_a_kernel_text_of_plain_numbers_is_seen(monkeypatch):
    """A planted fault: without its symbol, each length has a text of its own."""
    texts = {}
    for fault in (False, True):
        if fault:
            monkeypatch.setattr(Length, "__format__", lambda self, spec: format(int(self), spec))
        net = mlp()
        net.initialize()
        net.hybridize(backend="cpu", dynamic="batch", wait=True)
        plans = [net.plan_for(rows(n))[0].texts for n in (37, 43)]
        texts[fault] = plans[0] == plans[1]
    assert texts == {False: True, True: False}
