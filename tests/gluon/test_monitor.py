"""Monitor: what it tells of a module's batches, as MXNet 1.9.1 told of the same ones."""

import logging

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import HybridError, nd

X, Y = np.arange(24, dtype="f").reshape(8, 3) / 24, np.array([0, 1] * 4, dtype="f")
# What MXNet 1.9.1 gave, without what it calls `..._backward_output`.
TOLD = """
1 fc1_output 0.08052562
1 act_output 0.08052562
1 fc2_output 0.024157688
1 softmax_output 0.5
1 data 0.2705661
1 fc1_weight 0.1
1 fc1_bias 0.0
1 fc2_weight 0.10000439
1 fc2_bias 4.3870597e-09
1 softmax_label 0.70710677
"""


def module():
    data = mx.sym.Variable("data")
    hidden = mx.sym.FullyConnected(data, num_hidden=3, name="fc1")
    hidden = mx.sym.Activation(hidden, act_type="relu", name="act")
    out = mx.sym.FullyConnected(hidden, num_hidden=2, name="fc2")
    return mx.mod.Module(mx.sym.SoftmaxOutput(out, name="softmax"), context=mx.cpu())


def batches(monitor):
    """What is told of each of two batches."""
    it, net = mx.io.NDArrayIter(X, Y, batch_size=4), module()
    net.bind(it.provide_data, it.provide_label)
    net.init_params(mx.init.Constant(0.1))
    net.init_optimizer(optimizer="sgd", optimizer_params={"learning_rate": 0.1})
    net.install_monitor(monitor)
    for batch in it:
        monitor.tic()
        net.forward_backward(batch)
        net.update()
        yield monitor.toc()


def test_it_tells_what_mxnet_tells_in_its_order():
    first, second = batches(mx.mon.Monitor(2))
    expected = [line.split() for line in TOLD.split("\n") if line]
    assert [(str(step), name) for step, name, _ in first] == [(s, n) for s, n, _ in expected]
    for (_, name, text), (*_, number) in zip(first, expected, strict=True):
        assert text.endswith("\t")
        if name != "fc2_bias":  # a sum of numbers that cancel
            np.testing.assert_allclose(float(text), float(number), rtol=1e-6, err_msg=name)
    assert second == []  # every second batch


def test_a_pattern_says_who_and_sort_in_which_order():
    rows = [*batches(mx.monitor.Monitor(1, pattern=".*weight|.*output", sort=True))]
    names = ["act_output", "fc1_output", "fc1_weight", "fc2_output", "fc2_weight", "softmax_output"]
    assert [[(step, name) for step, name, _ in batch] for batch in rows] == [
        [(step, name) for name in names] for step in (1, 2)
    ]


def test_a_statistic_may_be_several_arrays():
    (first, _) = batches(mx.mon.Monitor(1, lambda x: [x.min(), x.max()], "fc1_(output|weight)"))
    output, weight = (text.split("\t") for *_, text in first)
    assert output[2:] == weight[2:] == [""]
    np.testing.assert_allclose([float(n) for n in output[:2]], [0.0125, 0.125], rtol=1e-5)
    assert weight[:2] == ["0.1", "0.1"]


def test_variables_are_told_of_among_the_outputs():
    x = mx.sym.var("x")
    watch = mx.mon.Monitor(1, lambda a: a.sum(), monitor_all=True)
    executor = mx.sym.relu(x, name="r").bind(mx.cpu(), {"x": nd.array([-1, 3])})
    watch.install(executor)
    watch.tic()
    executor.forward()
    assert watch.toc() == [(1, "x", "2.0\t"), (1, "r_output", "3.0\t"), (1, "x", "2.0\t")]


def test_fit_tells_of_every_batch(monkeypatch):
    lines = []
    monkeypatch.setattr(logging, "info", lambda text, *words: lines.append(text % words))
    batches = mx.io.NDArrayIter(X, Y, batch_size=4)
    module().fit(batches, num_epoch=1, monitor=mx.mon.Monitor(1, pattern="softmax_output"))
    assert [line.split()[:3] for line in lines if "Batch" in line] == [
        ["Batch:", str(n), "softmax_output"] for n in (1, 2)
    ]


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: mx.mon.Monitor(0), "Monitor: interval=0"),
        (lambda: mx.mon.Monitor(1, pattern="*"), "is no regular expression"),
        (lambda: mx.mon.Monitor(1, patern="x"), "did you mean"),
        (lambda: [*batches(mx.mon.Monitor(1, lambda x: 3))], "stat_func gave"),
        (lambda: module().install_monitor(mx.mon.Monitor(1)), "install_monitor"),
    ],
)
def test_mistakes_are_told_in_a_sentence(make, sentence):
    with pytest.raises(HybridError, match=sentence.replace("*", r"\*")):
        make()
