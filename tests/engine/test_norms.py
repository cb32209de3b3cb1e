"""Norms, output layers, activations: what MXNet answered, and what layers promise."""

import json
from pathlib import Path

import numpy as np
import pytest

from minihybrid import autograd, gluon, nd, sym
from minihybrid.core.op import HybridError, ShapeError
from minihybrid.gluon import nn

GOLDEN = Path(__file__).parents[1] / "golden" / "norm"
CASES = json.loads((GOLDEN / "operators.json").read_text(encoding="utf-8"))
(RUN,) = json.loads((GOLDEN / "training.json").read_text(encoding="utf-8"))
few_digits = {"rtol": 2e-5, "atol": 2e-6}


# Gradients in which MXNet 1.9 contradicts its documentation or its own outputs.
WRONG = [
    ("SoftmaxOutput", {"out_grad": True}),
    ("LeakyReLU", {"act_type": "selu", "slope": 0.3}),
    ("SoftmaxActivation", {}),
]


def title(case):
    mode = "predict" * (not case["training"])
    attrs = (f"{k}={v}" for k, v in case["attrs"].items())
    return "-".join(filter(None, (case["op"], mode, *attrs)))


@pytest.mark.parametrize("case", CASES, ids=title)
def test_operator_answers_as_mxnet_does(case):
    arrays = [nd.array(x) for x in case["inputs"]]
    for x in arrays:
        x.attach_grad()
    with autograd.record(train_mode=case["training"]):
        outs = getattr(nd, case["op"])(*arrays, **case["attrs"])
    outs = outs if isinstance(outs, tuple) else (outs,)
    for got, expected in zip(outs, case["outputs"], strict=True):
        np.testing.assert_allclose(got.asnumpy(), expected, **few_digits)
    outs[0].backward(nd.array(case["head"]))
    if case["op"] == "BatchNorm" and case["attrs"].get("fix_gamma", True):
        case["grads"][1] = np.zeros(len(case["grads"][1]))
    wrong = (case["op"], case["attrs"]) in WRONG
    for got, expected in zip(arrays[: 1 if wrong else None], case["grads"], strict=False):
        assert np.allclose(got.grad.asnumpy(), expected, **few_digits) != wrong
    n = len(arrays) - len(case["states"])
    for got, expected in zip(arrays[n:], case["states"], strict=True):
        np.testing.assert_allclose(got.asnumpy(), expected, **few_digits)


def test_softmax_output_multiplies_by_the_gradient_from_above_if_told():
    x, g = nd.array([[1, 2, 3]]), nd.array([[2, 0, -1]])
    grads = []
    for out_grad in (False, True):
        x.attach_grad()
        with autograd.record():
            y = nd.SoftmaxOutput(x, nd.array([1]), out_grad=out_grad)
        y.backward(g)
        grads.append(x.grad.asnumpy())
    np.testing.assert_allclose(grads[1], grads[0] * g.asnumpy(), 1e-6)
    np.testing.assert_allclose(grads[0], y.asnumpy() - [[0, 1, 0]], 1e-6)


# -- a net, step by step ---------------------------------------------------------------
def small_net():
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(
            nn.Dense(4),
            nn.BatchNorm(momentum=0.8),
            nn.Activation("relu"),
            nn.BatchNorm(scale=False),
            nn.Dense(3),
            nn.LayerNorm(),
        )
    net.initialize()
    return net


def trained(net, steps=3):
    """(losses of the steps, parameters afterwards) of SGD on the golden data."""
    x, label = nd.array(RUN["x"]), nd.array(RUN["label"])
    net(x)
    for name, param in net.collect_params().items():
        param.set_data(nd.array(RUN["before"][name]))
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    loss_of, losses = gluon.loss.SoftmaxCrossEntropyLoss(), []
    for _ in range(steps):
        with autograd.record():
            loss = loss_of(net(x), label)
        loss.backward()
        trainer.step(8)
        losses.append(loss.asnumpy())
    return losses, {n: p.data().asnumpy() for n, p in net.collect_params().items()}


@pytest.mark.parametrize("target", [None, "cpu", "numpy"])
def test_three_steps_of_training_are_those_of_mxnet(target):
    net = small_net()
    if target:
        net.hybridize(backend=target)
    losses, after = trained(net)
    np.testing.assert_allclose(losses, RUN["losses"], 1e-4, 1e-5)
    assert after.keys() == RUN["after"].keys()
    after["net_batchnorm1_gamma"][:] = 1  # counts as 1: MXNet overwrites it, we do not
    for name, expected in RUN["after"].items():
        np.testing.assert_allclose(after[name], expected, 1e-4, 1e-5, err_msg=name)
    np.testing.assert_allclose(net(nd.array(RUN["x"])).asnumpy(), RUN["prediction"], 1e-4, 1e-5)


def test_a_net_exported_by_mxnet_is_read_with_its_states():
    net = gluon.SymbolBlock.imports(
        str(GOLDEN / "net-symbol.json"), "data", str(GOLDEN / "net-0000.params")
    )
    states = net._outputs.list_auxiliary_states()
    assert len(states) == 4 and all("running" in name for name in states)
    for hybridize in (False, True):
        net.hybridize(hybridize)
        np.testing.assert_allclose(net(nd.array(RUN["x"])).asnumpy(), RUN["prediction"], 1e-4, 1e-5)


def test_eager_and_hybridized_training_agree_for_long():
    eager, compiled = small_net(), small_net()
    compiled.hybridize()
    (one, first), (two, second) = trained(eager, 5), trained(compiled, 5)
    np.testing.assert_allclose(one, two, 1e-5, 1e-6)
    for name in first:
        np.testing.assert_allclose(first[name], second[name], 1e-5, 1e-6, err_msg=name)
        assert ("running" in name) <= (first[name] != RUN["before"][name]).any()


# -- layers ----------------------------------------------------------------------------
LAYERS = [
    (
        lambda: nn.BatchNorm(),
        "BatchNorm(axis=1, eps=1e-05, momentum=0.9, "
        "fix_gamma=False, use_global_stats=False, in_channels=None)",
        ["gamma", "beta", "running_mean", "running_var"],
    ),
    (
        lambda: nn.BatchNorm(axis=-1, in_channels=3, scale=False, center=False),
        "BatchNorm(axis=-1, eps=1e-05, momentum=0.9, fix_gamma=True, "
        "use_global_stats=False, in_channels=3)",
        ["gamma", "beta", "running_mean", "running_var"],
    ),
    (
        lambda: nn.LayerNorm(),
        "LayerNorm(eps=1e-05, axis=-1, center=True, scale=True, in_channels=0)",
        ["gamma", "beta"],
    ),
    (
        lambda: nn.GroupNorm(2),
        "GroupNorm(eps=1e-05, num_groups=2, center=True, scale=True)",
        ["gamma", "beta"],
    ),
    (
        lambda: nn.InstanceNorm(in_channels=3),
        "InstanceNorm(eps=1e-05, axis=1, center=True, scale=False, in_channels=3)",
        ["gamma", "beta"],
    ),
    (lambda: nn.LeakyReLU(0.1), "LeakyReLU(0.1)", []),
    (lambda: nn.PReLU(), "PReLU(\n\n)", ["alpha"]),
    (lambda: nn.ELU(), "ELU(\n\n)", []),
]


@pytest.mark.parametrize("make, text, names", LAYERS, ids=lambda v: str(v)[:24])
def test_layers_have_gluon_s_names_and_texts(make, text, names):
    layer = make()
    assert repr(layer) == text
    assert [n.removeprefix(layer.prefix) for n in layer.collect_params()] == names


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.BatchNorm(),
        lambda: nn.BatchNorm(axis=2),
        lambda: nn.BatchNormReLU(),
        lambda: nn.LayerNorm(),
        lambda: nn.LayerNorm(axis=1),
        lambda: nn.GroupNorm(2),
        lambda: nn.InstanceNorm(),
        lambda: nn.InstanceNorm(axis=2, scale=True),
        lambda: nn.LeakyReLU(0.1),
        lambda: nn.PReLU(in_channels=4),
        lambda: nn.ELU(0.5),
        lambda: nn.SELU(),
        lambda: nn.GELU(),
        lambda: nn.Swish(2.0),
    ],
)
def test_layers_hybridize_export_and_come_back(make, tmp_path):
    x = nd.array(np.random.default_rng(0).normal(size=(3, 4, 4)))
    answers, layer = [], make()
    layer.initialize()
    for hybridize in (False, True):
        if hybridize:
            layer.hybridize()
            for param in layer.collect_params().values():
                param.initialize(force_reinit=True)
        x.attach_grad()
        with autograd.record():
            out = layer(x)
        out.backward(x)
        answers.append([out.asnumpy(), x.grad.asnumpy(), layer(x).asnumpy()])
    for eager, compiled in zip(*answers, strict=True):
        np.testing.assert_allclose(eager, compiled, 1e-4, 1e-5)
    again = gluon.SymbolBlock.imports(*_exported(layer, tmp_path))
    np.testing.assert_allclose(again(x).asnumpy(), answers[1][2], 1e-6, 1e-6)


def _exported(layer, tmp_path):
    symbol_file, params_file = layer.export(str(tmp_path / "layer"))
    return symbol_file, "data", params_file


def test_what_scale_and_center_turn_off_stands_still():
    layer = nn.BatchNorm(scale=False, center=False, in_channels=2)
    layer.initialize()
    assert {p.grad_req for p in layer.collect_params().values()} == {"null"}
    layer.collect_params().setattr("grad_req", "write")
    assert {p.grad_req for p in layer.collect_params().values()} == {"null"}


def test_half_precision_keeps_statistics_in_float32():
    layer = nn.BatchNorm(in_channels=2)
    layer.initialize()
    layer.cast("float16")
    assert {p.dtype for p in layer.collect_params().values()} == {np.float32}
    x = nd.array([[1000, 1], [1001, -1], [1002, 1], [1003, -1]], dtype="float16")
    with autograd.record():
        out = layer(x)
    assert out.dtype == np.float16
    np.testing.assert_allclose(out.asnumpy()[:, 1], [1, -1, 1, -1], 1e-3)
    np.testing.assert_allclose(layer.running_mean.data().asnumpy(), [100.15, 0], 1e-3)


def test_a_mean_far_from_zero_costs_no_digits():
    x = nd.array(1e4 + np.random.default_rng(0).normal(size=(64, 3)))
    for net in (nn.BatchNorm(), nn.BatchNorm()):
        net.initialize()
        net.hybridize(net is not None)
        with autograd.train_mode():
            out = net(x).asnumpy()
        np.testing.assert_allclose(out.std(0), 1, 1e-2)


def test_a_symbolic_batch_norm_makes_its_variables():
    bn = sym.BatchNorm(sym.var("x"), name="bn")
    assert bn.list_arguments() == ["x", "bn_gamma", "bn_beta"]
    assert bn.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    assert bn.infer_shape(x=(2, 3, 4)) == ([(2, 3, 4), (3,), (3,)], [(2, 3, 4)], [(3,), (3,)])
    head = sym.SoftmaxOutput(sym.var("data"), name="softmax")
    assert head.list_arguments() == ["data", "softmax_label"]
    assert head.infer_shape(data=(4, 3))[0] == [(4, 3), (4,)]


def test_a_training_step_of_batch_norm_is_a_handful_of_kernels():
    """One kernel that reads the data each way, in three passes and two over a channel."""
    layer, x = nn.BatchNorm(), nd.ones((8, 3, 5))
    layer.initialize()
    layer.hybridize()
    x.attach_grad()
    with autograd.record():
        out = layer(x)
    out.backward()
    wide = [
        sum(
            any(n.specs[i].size == x.size for n, i in (*node.inputs, (node, 0)))
            for node in plan.graph.nodes
            if node.op and not node.op.view
        )
        for plan in layer.plans.values()
    ]
    assert wide == [1, 1] and all(p.n_kernels == 1 for p in layer.plans.values())


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda x: nd.InstanceNorm(x, x, x), ShapeError, "InstanceNorm: .*three axes"),
        (lambda x: nd.GroupNorm(x, x[0], x[0], num_groups=2), ShapeError, "num_groups=2"),
        (lambda x: nd.LayerNorm(x, nd.ones((2,)), nd.ones((2,))), ShapeError, "gamma"),
        (lambda x: nd.LRN(x, nsize=2), HybridError, "odd"),
        (lambda x: nd.SoftmaxOutput(x, nd.ones((3,))), ShapeError, "label"),
        (lambda x: nd.LeakyReLU(x, nd.ones((2,)), act_type="prelu"), ShapeError, "gamma"),
        (lambda x: nn.LeakyReLU(-1), HybridError, "at least 0"),
    ],
)
def test_errors_say_what_is_needed(call, error, words):
    with pytest.raises(error, match=words):
        call(nd.ones((2, 3)))


def test_a_parameter_behind_a_block_has_gradient_zero():
    w = nd.array([1, 2])
    w.attach_grad()
    w.grad[:] = 7
    with autograd.record():
        y = nd.BlockGrad(w * 2)
    y.backward()
    assert not w.grad.asnumpy().any()


@pytest.mark.parametrize("hybridize", [False, True])
def test_a_block_stops_the_second_derivative_too(hybridize):
    def run(w, x):
        space = sym if isinstance(x, sym.Symbol) else nd
        return space.BlockGrad(w) * x * x

    w, x = nd.array([3]), nd.array([2])
    for v in (w, x):
        v.attach_grad()
    f = gluon.function(run) if hybridize else run
    with autograd.record():
        (dx,) = autograd.grad(f(w, x), [x], create_graph=True)
    dx.backward()
    assert (w.grad.asscalar(), x.grad.asscalar()) == (0, 6)


def test_functions_take_numbers_on_either_side():
    x = nd.array([3, 0])
    np.testing.assert_allclose(nd.hypot(x, 4).asnumpy(), [5, 4])
    np.testing.assert_allclose(nd.hypot(4, x).asnumpy(), [5, 4])
    assert nd.hypot(3, 4) == 5 and nd.logical_xor(2, 0) == 1
    np.testing.assert_array_equal(nd.logical_and(x, 1).asnumpy(), [1, 0])
    np.testing.assert_array_equal(nd.logical_or(0, x).asnumpy(), [1, 0])
    np.testing.assert_array_equal(nd.logical_xor(x, nd.array([1, 1])).asnumpy(), [0, 1])


def test_random_slopes_lie_between_their_bounds():
    x = -nd.ones((1000,))
    with autograd.train_mode():
        slopes = -nd.LeakyReLU(x, act_type="rrelu", lower_bound=0.2, upper_bound=0.4)
    assert 0.2 <= slopes.asnumpy().min() < 0.22 and 0.38 < slopes.asnumpy().max() <= 0.4
    still = nd.LeakyReLU(x, act_type="rrelu", lower_bound=0.2, upper_bound=0.4)
    np.testing.assert_allclose(still.asnumpy(), -0.3, 1e-6)


def test_an_input_off_the_tape_costs_no_gradient():
    net, x = nn.Dense(3, in_units=4), nd.ones((2, 4))
    net.initialize()
    net.hybridize()
    counts = []
    for attach in (False, True, False):
        x = nd.ones((2, 4))
        if attach:
            x.attach_grad()
        with autograd.record():
            net(x).backward()
        counts.append(list(net.plans.values())[-1].n_kernels)
    assert counts[0] == counts[2] < counts[1]
    np.testing.assert_allclose(net.weight.grad().asnumpy(), 2)


def test_an_output_that_is_kept_serves_the_second_derivative():
    """The gradient's own inputs are called kept0, too: names must not be mixed up."""

    def run(x, w):
        return (sym if isinstance(x, sym.Symbol) else nd).tanh(x * w)

    answers = []
    for f in (run, gluon.function(run)):
        x, w = nd.array([0.3, -0.7]), nd.array([1.5, 0.4])
        for v in (x, w):
            v.attach_grad()
        with autograd.record():
            (dx,) = autograd.grad(f(x, w), [x], create_graph=True)
        dx.backward()
        answers.append([x.grad.asnumpy(), w.grad.asnumpy()])
    np.testing.assert_allclose(*answers, 1e-5)


def test_a_parameter_may_be_called_as_what_is_kept():
    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__(prefix="")
            with self.name_scope():
                self.kept0 = self.params.get("kept0", shape=(2,), init="ones")

        def hybrid_forward(self, F, x, kept0):
            return F.tanh(F.exp(x * kept0))

    actual = []
    for hybrid in (False, True):
        net, x = Net(), nd.array([0.3, -0.7])
        net.initialize()
        if hybrid:
            net.hybridize()
        x.attach_grad()
        with autograd.record():
            y = net(x)
        y.backward()
        actual.append([x.grad.asnumpy(), net.kept0.grad().asnumpy()])
    np.testing.assert_allclose(*actual, 1e-5)


def test_what_is_infinite_above_0_teaches_prelu_nothing():
    """Infinity times a slope of 0 was no number."""
    x, gamma = nd.array([[np.inf, -2.0], [-3.0, 1.0]]), nd.array([0.5, 0.25])
    x.attach_grad()
    gamma.attach_grad()
    with autograd.record():
        y = nd.LeakyReLU(x, gamma, act_type="prelu")
    y.backward()
    np.testing.assert_array_equal(gamma.grad.asnumpy(), [-3, -2])
    np.testing.assert_array_equal(x.grad.asnumpy(), [[1, 0.25], [0.5, 1]])


@pytest.mark.parametrize("data, label", [((2, 3), (2, 1)), ((2, 3, 4, 5), (2, 20))])
def test_labels_of_several_places_are_flat_as_in_mxnet(data, label):
    net = sym.SoftmaxOutput(sym.var("data"), multi_output=True, name="softmax")
    assert net.infer_shape(data=data)[0] == [data, label]
