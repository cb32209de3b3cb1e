"""States: an operator gives their new values, and who applied it writes them."""

import numpy as np
import pytest
from minihybrid.sym import fromjson, trace

from minihybrid import autograd, gluon, nd, sym
from minihybrid.core.graph import Graph
from minihybrid.core.op import Op, Spec, number
from minihybrid.core.passes.gradient import differentiate
from minihybrid.core.plan import Plan
from minihybrid.core.serial import tojson
from minihybrid.ops import OPS
from minihybrid.passes import expand

RATE, F32 = 0.25, np.dtype("float32")


def _follow(specs, data, mean, rate, training):
    """The data without the running mean, which moves towards the data's in training."""
    now = data.mean(axis=0)
    out = data.broadcast_sub(now if training else mean)
    return (out, mean * (1 - rate) + now * rate) if training else out


FOLLOW = Op(
    "_follow",
    inputs=("data", "mean"),
    aux=("mean",),
    modal=True,
    attrs={"rate": (number, RATE)},
    expand=_follow,
    doc="A state, to be tried.",
    infer=lambda specs, rate: (
        [specs[0], Spec(specs[0].shape and specs[0].shape[1:], specs[0].dtype)],
        [specs[0]],
    ),
)


@pytest.fixture(autouse=True)
def follow(monkeypatch):
    """The operator is known while these tests run, and then no more."""
    monkeypatch.setitem(OPS, "_follow", FOLLOW)


class Follow(gluon.HybridBlock):
    """A layer around the operator, applied as often as told."""

    def __init__(self, times=1, **kwargs):
        super().__init__(**kwargs)
        self.times = times
        self.scale = self.params.get("scale", shape=(3,), init="ones")
        self.mean = self.params.get("mean", shape=(3,), init="zeros", differentiable=False)

    def hybrid_forward(self, F, x, scale, mean):
        for _ in range(self.times):
            x = FOLLOW(x, mean).broadcast_mul(scale) + 1
        return x


def batches(n, shape=(4, 3)):
    rng = np.random.default_rng(0)
    return [nd.array(rng.normal(2, 1, shape)) for _ in range(n)]


def made(hybridize, times=1, target=None):
    net = Follow(times, prefix="follow_")
    net.initialize()
    if hybridize:
        net.hybridize(backend=target)
    return net


def expected(x, times=1):
    """The running mean after these batches, written out."""
    mean = np.zeros(3)
    for batch in x:
        a = batch.asnumpy()
        for _ in range(times):
            mean = mean * (1 - RATE) + a.mean(0) * RATE
            a = a - a.mean(0) + 1
    return mean


def test_an_array_is_overwritten_in_training_only():
    (x,), mean = batches(1), nd.zeros((3,))
    held = mean.data
    FOLLOW(x, mean)
    assert not mean.asnumpy().any()
    with autograd.train_mode():
        out = FOLLOW(x, mean)
    assert mean.data is held and out.shape == (4, 3)
    np.testing.assert_allclose(held, expected([x]), 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("target", [None, "numpy"])
@pytest.mark.parametrize("recording", [False, True])
@pytest.mark.parametrize("times", [1, 2])
def test_a_plan_writes_states_as_eager_arrays_do(recording, times, target):
    x = batches(3)
    for net in (made(False, times), made(True, times, target)):
        held = net.mean.data().data
        for batch in x:
            with autograd.record() if recording else autograd.train_mode():
                out = net(batch)
            if recording:
                out.backward()
        assert net.mean.data().data is held
        np.testing.assert_allclose(held, expected(x, times), 1e-5)
        before = held.copy()
        net(x[0])  # prediction reads the state
        np.testing.assert_array_equal(held, before)


def test_states_that_are_arguments_are_written():
    f = gluon.function(lambda x, mean: FOLLOW(x, mean) * 2)
    (x,), mean = batches(1), nd.zeros((3,))
    with autograd.train_mode():
        f(x, mean)
    np.testing.assert_allclose(mean.asnumpy(), expected([x]), 1e-6)
    with autograd.record():
        f(x, mean)
    np.testing.assert_allclose(mean.asnumpy(), expected([x, x]), 1e-6)


def test_who_reads_a_state_after_its_change_reads_the_new_value():
    def run(x, mean):
        return FOLLOW(x, mean), mean * 1

    (x,) = batches(1)
    with autograd.train_mode():
        _, eager = run(x, nd.zeros((3,)))
        _, compiled = gluon.function(run)(x, nd.zeros((3,)))
    np.testing.assert_allclose(eager.asnumpy(), expected([x]), 1e-6)
    np.testing.assert_allclose(compiled.asnumpy(), expected([x]), 1e-6)


def traced(training=True):
    specs = {"x": Spec((4, 3), F32), "mean": Spec((3,), F32)}
    graph, _ = trace(lambda x, mean: FOLLOW(x, mean, name="f") * 2, specs, training)
    return graph


def test_passes_keep_states_alive_and_gradients_pass_them_by():
    assert traced().states == () and expand(traced()).states == ()
    graph = expand(traced(), training=True)
    assert graph.states == ("mean",) and len(graph.outputs) == 1 < len(graph.heads)
    assert "mean := " in graph.show()
    plan = Plan(traced(), ["x"], training=True)
    assert all(g.states == ("mean",) for _, g in plan.stages[1:])
    assert plan.states == ("mean",) and Plan(traced(), ["x"]).states == ()
    forward, backward = differentiate(graph, ["x"])
    assert forward.states == ("mean",) and forward.heads[-1] != forward.heads[0]
    assert backward.states == () and "mean" not in [n.name for n in backward.variables]


def test_symbols_tell_states_from_arguments():
    s = FOLLOW(sym.var("x") * sym.var("w"), name="f") + 1
    for symbol in (s, fromjson(tojson(s))):
        assert symbol.list_arguments() == ["x", "w"]
        assert symbol.list_auxiliary_states() == ["f_mean"]
        assert symbol.list_inputs() == ["x", "w", "f_mean"]
        assert symbol.infer_shape(x=(2, 3)) == ([(2, 3)] * 2, [(2, 3)], [(3,)])
        assert symbol.infer_type(x="float64")[2] == [np.float64]
        assert Graph.of(symbol).show() == Graph.of(s).show()


def test_states_go_into_files_under_aux_and_come_back(tmp_path):
    net, x = made(True), batches(2)
    with autograd.record():
        net(x[0])
    expected = net(x[1]).asnumpy()
    symbol_file, params_file = net.export(str(tmp_path / "net"))
    assert sorted(nd.load(params_file)) == ["arg:follow_scale", "aux:follow_mean"]
    again = gluon.SymbolBlock.imports(symbol_file, "data", params_file)
    np.testing.assert_array_equal(again(x[1]).asnumpy(), expected)
    state = again.collect_params()["follow_mean"]
    assert state.grad_req == "null"
    again.hybridize()
    for batch in x:
        with autograd.record():
            net(batch), again(batch)
    np.testing.assert_array_equal(state.data().asnumpy(), net.mean.data().asnumpy())
    net.save_parameters(str(tmp_path / "net.params"))
    other = made(False)
    other.load_parameters(str(tmp_path / "net.params"))
    np.testing.assert_array_equal(other.mean.data().asnumpy(), net.mean.data().asnumpy())


def test_a_state_is_never_trained():
    net = made(True)
    net.collect_params().setattr("grad_req", "write")
    assert (net.mean.grad_req, net.scale.grad_req) == ("null", "write")
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1})
    (x,) = batches(1)
    with autograd.record():
        loss = (net(x) ** 2).sum()
    loss.backward()
    trainer.step(1)
    np.testing.assert_allclose(net.mean.data().asnumpy(), expected([x]), 1e-5)
    assert (net.scale.data().asnumpy() != 1).all()
