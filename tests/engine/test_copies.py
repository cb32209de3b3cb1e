"""Pickles and copies: of arrays on the tape, of nets that are compiled, of all else."""

import copy
import multiprocessing
import pickle

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import autograd, gluon, nd, sym
from minihybrid.gluon import nn

WAYS = {
    "deepcopy": copy.deepcopy,
    **{
        f"pickle {n}": lambda value, n=n: pickle.loads(pickle.dumps(value, n))
        for n in range(2, pickle.HIGHEST_PROTOCOL + 1)
    },
}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@mx.function
def doubled(x):
    return x * 2


def arrays():
    """name -> an array, in every relation to the tape."""
    x = nd.array([[1, 2, 3]])
    leaf, adds, taped = (nd.array([[1, 2, 3]]) for _ in range(3))
    leaf.attach_grad()
    adds.attach_grad("add")
    for _ in range(2):
        with autograd.record():
            y = (leaf * 2 + adds.exp()).sum() * taped
        y.backward()
    with autograd.record():
        on_tape = leaf * adds
        compiled = doubled(leaf)
    return {
        "plain": x,
        "leaf": leaf,
        "adding": adds,
        "taped": on_tape,
        "compiled": compiled,
        "np": mx.np.array([1, 2]),
        "empty": nd.zeros((0, 2)),
        "number": mx.np.array(3.0),
        "whole": nd.array([1, 2], dtype="uint8"),
        "device": nd.ones((2, 2), ctx=mx.simulated_gpu()),
    }


@ways
def test_an_array_keeps_its_numbers_and_its_gradient_but_not_the_tape(way):
    for name, x in arrays().items():
        y = way(x)
        assert (type(y), y.dtype, y.context) == (type(x), x.dtype, x.context), name
        np.testing.assert_array_equal(y.asnumpy(), x.asnumpy())
        assert (y.grad is None) == (x.grad is None)
        if x.grad is not None:
            np.testing.assert_array_equal(y.grad.asnumpy(), x.grad.asnumpy())
        assert y.node is None or y.node.op is None
        if y.size:
            y[...] = 7  # memory of its own
            assert not (x.asnumpy() == 7).any()
    leaf, adds = (way(arrays()[name]) for name in ("leaf", "adding"))
    before = adds.grad.asnumpy()
    with autograd.record():
        y = (leaf * 3 + adds).sum()
    y.backward()
    assert leaf.grad.asnumpy().tolist() == [[3, 3, 3]]
    np.testing.assert_allclose(adds.grad.asnumpy(), before + 1)


def made():
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(2, 3, activation="relu"),
        nn.BatchNorm(),
        nn.Flatten(),
        nn.Dense(4, activation="tanh"),
        nn.Dropout(0.5),
        nn.Dense(2),
    )
    return net


def trained(net, trainer, steps=2):
    """The weights after some steps."""
    mx.random.seed(5)
    for _ in range(steps):
        with autograd.record():
            loss = (net(nd.ones((3, 1, 5, 5))) ** 2).mean()
        loss.backward()
        trainer.step(1)
    return [p.data().asnumpy() for p in trainer._params]


@pytest.mark.slow
@ways
@pytest.mark.parametrize("backend", [None, "numpy", "cpu"])
def test_a_net_and_its_trainer_go_on_as_before(way, backend):
    x = nd.random.normal(shape=(2, 1, 5, 5))
    net = way(made())
    net.initialize()
    net = way(net)  # its shapes are not known yet
    expected = net(x).asnumpy()
    if backend:
        net.hybridize(backend=backend)
    net = way(net)
    np.testing.assert_allclose(net(x).asnumpy(), expected, 1e-5)
    assert len(net.plans) == bool(backend)
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})
    trained(net, trainer)
    other, taught = way((net, trainer))
    assert len(other.plans) == 0 and way(net[0]).weight.shape == (2, 1, 3, 3)
    np.testing.assert_allclose(other(x).asnumpy(), net(x).asnumpy(), 1e-5)
    assert len(other.plans) == bool(backend)
    before = net(x).asnumpy()
    actual = trained(other, taught)
    np.testing.assert_array_equal(net(x).asnumpy(), before)
    for a, b in zip(actual, trained(net, trainer), strict=True):
        np.testing.assert_allclose(a, b, 1e-5, 1e-7)


def others():
    """All else that programs keep."""
    x, y = sym.var("x", shape=(2,)), sym.relu(sym.var("x")) + 1
    block = gluon.SymbolBlock(y, sym.var("x"))
    block.hybridize()
    block(nd.ones(2))
    executor = y.bind(mx.cpu(), {"x": nd.array([1, -1])})
    executor.forward()
    metric = mx.metric.Accuracy()
    metric.update(nd.array([1]), nd.array([[0, 1]]))
    op = nd.CachedOp(y)
    op(nd.ones(2))
    doubled(nd.ones(2))
    dataset = gluon.data.ArrayDataset(nd.ones((4, 2)), nd.zeros(4))
    return [
        x,
        y,
        block,
        executor,
        metric,
        op,
        doubled,
        dataset,
        mx.cpu(1),
        gluon.data.DataLoader(dataset, 2),
        mx.simulated_gpu(),
        mx.init.Xavier(),
        mx.init.Mixed([".*"], [mx.init.Zero()]),
        gluon.loss.L2Loss(),
        mx.optimizer.create("adam", learning_rate=0.5),
        nn.Dense(2).weight,
        mx.lr_scheduler.FactorScheduler(10),
        mx.ops.OPS["relu"],
        made().collect_params(),
        mx.base.MXNetError("a sentence"),
    ]


@ways
def test_what_else_programs_keep_can_be_kept(way):
    for value in others():
        actual = way(value)
        assert type(actual) is type(value)
    actual = way(others())
    assert actual[3].outputs[0].asnumpy().tolist() == [2, 1]
    assert actual[3].forward(x=nd.array([2, 2]))[0].asnumpy().tolist() == [3, 3]
    for call in (actual[2], actual[5]):
        assert call(nd.array([3, -3])).asnumpy().tolist() == [4, 1]
    assert actual[4].get() == ("accuracy", 1.0) and actual[6] is doubled
    assert actual[17] is mx.ops.OPS["relu"] and way(mx.cpu()) is nd.ones(1).context
    inner = mx.function(np.sqrt) if way is copy.deepcopy else mx.function(arrays)
    assert way(inner).__wrapped__ is inner.__wrapped__


def test_a_copy_of_a_hybridized_net_has_plans_of_its_own():
    net = made()
    net.initialize()
    net.hybridize(backend="numpy")
    x = nd.ones((1, 1, 5, 5))
    expected, other = net(x), copy.copy(net)
    assert len(other.plans) == 0 and other[0] is net[0]
    assert other(x).asnumpy().tolist() == expected.asnumpy().tolist()
    assert (len(other.plans), other.hybrid is net.hybrid) == (1, False)


def predict(net, x):
    return net(x).asnumpy()


def test_a_net_reaches_a_process_that_begins_anew():
    net = nn.Dense(2, in_units=3)
    net.initialize()
    net.hybridize(backend="numpy")
    x = nd.random.normal(shape=(4, 3))
    expected = predict(net, x)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        np.testing.assert_array_equal(pool.apply(predict, (net, x)), expected)
