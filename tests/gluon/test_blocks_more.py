"""Blocks: outlines beside arrays, hooks on operators, branches, shared names."""

import json

import numpy as np
import pytest

from minihybrid import autograd, init, nd
from minihybrid.core.files import FileError
from minihybrid.gluon import contrib, nn


def two_layers(units=3, **kwargs):
    net = nn.HybridSequential(**kwargs)
    with net.name_scope():
        net.add(nn.Dense(units, activation="relu"), nn.Dense(1))
    return net


def round_weights(net, x):
    """Whole weights: sums of whole numbers have no rounding errors, in any order."""
    net(x)
    for p in net.collect_params().values():
        p.set_data((4 * p.data()).round())


@pytest.mark.slow
def test_save_and_load_a_net_with_its_outline(tmp_path):
    file, x = str(tmp_path / "net"), nd.random.normal(shape=(2, 4)).round()
    net = nn.Sequential()
    net.add(two_layers(), nn.Flatten())
    net.initialize(init.Normal(1))
    round_weights(net, x)
    net[0].hybridize()
    expected = net(x)
    net.save(file)
    again = nn.Sequential()
    again.add(two_layers(), nn.Flatten())
    again.load(file)
    np.testing.assert_array_equal(again(x).asnumpy(), expected.asnumpy())
    assert again.name == net.name and again[0][1].name == net[0][1].name
    assert len(again[0].plans) == 1 and not again[1].plans


def test_an_outline_of_another_net_is_refused(tmp_path):
    file = str(tmp_path / "net")
    net = two_layers()
    net.initialize()
    net(nd.ones((1, 2)))
    net.save(file)
    other = nn.HybridSequential()
    other.add(nn.Dense(3), nn.Dense(1), nn.Dense(1))
    with pytest.raises(
        FileError, match="tells of a HybridSequential with 2 children where this net has .* 3"
    ):
        other.load(file)
    for text in ("[1]", "no json", json.dumps({"class": "HybridSequential"})):
        (tmp_path / "net-model.json").write_text(text)
        with pytest.raises(FileError, match="not the outline of a net|is not JSON"):
            net.load(file)


@pytest.mark.parametrize("monitor_all", [False, True])
def test_an_operator_hook_sees_what_each_operator_gives(monitor_all):
    net, seen = two_layers(prefix="net_"), []
    net.initialize(init.Normal(1))
    x = nd.random.normal(shape=(2, 4)).round()
    round_weights(net, x)
    net.hybridize()
    expected = net(x).asnumpy()
    assert expected.any()
    net.register_op_hook(lambda *what: seen.append(what), monitor_all=monitor_all)
    np.testing.assert_array_equal(net(x).asnumpy(), expected)
    operators = {name: (op, value) for name, op, value in seen if op != "null"}
    assert list(operators) == [
        "net_dense0_fwd_output",
        "net_dense0_relu_fwd_output",
        "net_dense1_fwd_output",
    ]
    assert operators["net_dense0_fwd_output"][0] == "FullyConnected"
    np.testing.assert_array_equal(operators["net_dense1_fwd_output"][1].asnumpy(), expected)
    variables = {name for name, op, _ in seen if op == "null"}
    assert variables == ({"data", *net.collect_params()} if monitor_all else set())


def test_an_operator_hook_does_not_change_the_gradient():
    nd.random.seed(0)
    net, x = two_layers(), nd.random.normal(shape=(2, 4))
    net.initialize(init.Normal(1))
    net.hybridize()
    grads = []
    for _ in range(2):
        with autograd.record():
            net(x).sum().backward()
        grads.append([p.grad().asnumpy() for p in net.collect_params().values()])
        net.register_op_hook(lambda *what: None)
    for a, b in zip(*grads, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)  # of sums that cancel


def test_the_gradients_of_a_parameter_are_listed():
    net = two_layers()
    weight = net[0].weight
    assert weight._grad is None
    net.initialize()
    net(nd.ones((1, 2)))
    assert weight._grad[0].shape == weight.list_grad()[0].shape == (3, 2)
    weight.grad_req = "null"
    assert weight._grad is None


@pytest.mark.parametrize("kind", [contrib.nn.Concurrent, contrib.nn.HybridConcurrent])
def test_branches_are_joined(kind):
    net, x = kind(axis=1), nd.random.normal(shape=(2, 3))
    net.add(nn.Dense(2), contrib.nn.Identity(), nn.Dense(4, activation="relu"))
    net.initialize()
    expected = np.concatenate([net[0](x).asnumpy(), x.asnumpy(), net[2](x).asnumpy()], 1)
    for _ in range(2):
        np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-5, atol=1e-6)
        net.hybridize()


def test_a_block_without_prefix_names_its_children_like_its_holder():
    outer = nn.HybridSequential(prefix="outer_")
    with outer.name_scope():
        first = nn.HybridSequential(prefix="")
        with first.name_scope():
            first.add(nn.Dense(1))
        outer.add(first, nn.Dense(1))
    assert [p for p in outer.collect_params() if p.endswith("weight")] == [
        "outer_dense0_weight",
        "outer_dense1_weight",
    ]
