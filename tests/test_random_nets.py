"""Random networks: eager, hybridized and exported, they are one function."""

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from minihybrid import autograd, nd
from minihybrid.gluon import HybridBlock, SymbolBlock, nn

few = {"deadline": None, "database": None, "derandomize": True}
close = {"rtol": 1e-4, "atol": 1e-5}


class Residual(HybridBlock):
    """x + body(x)."""

    def __init__(self, body, **kwargs):
        super().__init__(**kwargs)
        self.body = body

    def hybrid_forward(self, F, x):
        return x + self.body(x)


class TwoHeads(HybridBlock):
    """Two outputs, one made of the other."""

    def __init__(self, body, **kwargs):
        super().__init__(**kwargs)
        self.body = body

    def hybrid_forward(self, F, x):
        y = self.body(x)
        return y, F.tanh(y) * 2


activations = st.sampled_from(["relu", "sigmoid", "tanh", "softrelu", "softsign"])
layers = st.one_of(
    st.tuples(st.just("dense"), st.integers(1, 6), st.none() | activations,
              st.booleans()),
    st.tuples(st.just("activation"), activations),
    st.tuples(st.just("dropout"), st.sampled_from([0.0, 0.3, 0.5])),
    st.tuples(st.just("flatten")),
    st.tuples(st.just("lambda"), st.sampled_from(["square", "tanh", "negative"])),
    st.tuples(st.just("scale"), st.floats(-2, 2).map(lambda v: round(v, 2))),
    st.tuples(st.just("residual"), activations))
nets = st.tuples(st.lists(layers, min_size=1, max_size=6), st.booleans(),
                 st.sampled_from([(2, 3), (1, 5), (4, 2, 3)]))


def layer(kind, *how):
    """The block of one drawn layer."""
    if kind == "dense":
        units, activation, bias = how
        return nn.Dense(units, activation=activation, use_bias=bias,
                        bias_initializer="ones")
    if kind == "scale":
        return nn.HybridLambda(lambda F, x: x * how[0] + 0.5)
    if kind == "residual":
        body = nn.HybridSequential(prefix="")
        body.add(nn.Activation(how[0]), nn.Dropout(0.5))
        return Residual(body)
    return {"activation": nn.Activation, "dropout": nn.Dropout, "flatten": nn.Flatten,
            "lambda": nn.HybridLambda}[kind](*how)


def network(net):
    """(initialised block, input) of a drawn network."""
    kinds, two_heads, shape = net
    body = nn.HybridSequential()
    with body.name_scope():
        body.add(*(layer(*kind) for kind in kinds))
    block = TwoHeads(body) if two_heads else body
    nd.random.seed(1)
    np.random.seed(1)
    block.initialize()
    x = nd.array(np.random.default_rng(0).uniform(-1, 1, shape))
    block(x)  # the shapes of the parameters
    return block, x


def results(block, x):
    """Outputs in prediction, then outputs and all gradients in training."""
    def outputs():
        out = block(x)
        return list(out) if isinstance(out, (list, tuple)) else [out]

    predicted = [o.asnumpy() for o in outputs()]
    x.attach_grad()
    nd.random.seed(5)
    with autograd.record():
        outs = outputs()
        loss = sum((o * o).mean() for o in outs)
    loss.backward()
    params = block.collect_params().values()
    return [*predicted, *(o.asnumpy() for o in outs), x.grad.asnumpy(),
            *(p.grad().asnumpy() for p in params)]


def assert_all_close(got, wanted):
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, **close)


def check(net, backend):
    block, x = network(net)
    wanted = results(block, x)
    block.hybridize(backend=backend)
    assert_all_close(results(block, x), wanted)
    assert_all_close(results(block, x), wanted)  # from the plans, with used memory
    assert block.plans and all(p.target == backend for p in block.plans.values())


@settings(max_examples=40, **few)
@given(nets)
def test_hybridized_agrees_with_eager_on_numpy(net):
    check(net, "numpy")


@settings(max_examples=10, phases=[Phase.generate], **few)  # smaller ones compile, too
@given(nets)
def test_hybridized_agrees_with_eager_compiled(net):
    check(net, "cpu")


@settings(max_examples=30, **few)
@given(nets)
def test_exported_agrees_with_eager(tmp_path_factory, net):
    block, x = network(net)
    assume(block.collect_params().keys())
    assert_export_agrees(block, x, tmp_path_factory.mktemp("net"))


def test_net_without_parameters_is_exported(tmp_path):
    assert_export_agrees(*network(([("flatten",)], False, (4, 2, 3))), tmp_path)


def assert_export_agrees(block, x, folder):
    wanted = results(block, x)
    block.hybridize(backend="numpy")
    block(x)
    files = block.export(str(folder / "net"))
    again = SymbolBlock.imports(files[0], ["data"], files[1])
    assert_all_close(results(again, x), wanted)
    again.hybridize(backend="numpy")
    assert_all_close(results(again, x), wanted)


@pytest.mark.parametrize("backend", ("numpy", "cpu"))
def test_dropout_masks_depend_on_the_seed_alone(backend):
    block = nn.HybridSequential()
    block.add(nn.Dropout(0.5), nn.Dropout(0.5, axes=(0,)))
    x = nd.ones((8, 9))
    masks = []
    for seed in (3, 4):
        for active in (False, True):
            block.hybridize(active, backend=backend)
            nd.random.seed(seed)
            with autograd.record():
                masks.append(block(x).asnumpy())
    np.testing.assert_array_equal(masks[0], masks[1])
    np.testing.assert_array_equal(masks[2], masks[3])
    assert (masks[0] != masks[2]).any()
