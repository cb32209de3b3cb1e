"""Symbols beside arrays: attributes, your own gradients, tapes as symbols, tables."""

import pickle
import re

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import AttrError, HybridError, autograd, gluon, nd, sym
from minihybrid.core.op import Spec
from minihybrid.core.sym import trace


@pytest.fixture(autouse=True)
def fresh_names():
    """Count unnamed symbols from 0."""
    with mx.name.NameManager():
        yield


# -- errors have the name that MXNet programs catch ------------------------------------
def test_every_error_is_an_mxnet_error():
    assert mx.MXNetError is mx.base.MXNetError is HybridError
    with pytest.raises(mx.base.MXNetError):
        nd.ones((2, 3)) + nd.ones((4,))
    assert mx.base.mx_real_t is np.float32


# -- names and attributes --------------------------------------------------------------
def test_a_subclass_of_the_name_manager_chooses_names():
    class Loud(mx.name.NameManager):
        def get(self, name, hint):
            return super().get(name, hint).upper()

    with Loud():
        assert sym.relu(sym.var("x")).name == "RELU0"
    assert sym.relu(sym.var("x")).name == "relu0"


def test_attributes_survive_files_composition_and_export(tmp_path):
    with mx.AttrScope(__group__="4"):
        net = sym.FullyConnected(sym.var("x"), num_hidden=3, name="fc", lr_mult=2)
    expected = {"num_hidden": "3", "__group__": "4", "__lr_mult__": "2", "lr_mult": "2"}
    for s in (
        net,
        sym.fromjson(net.tojson()),
        pickle.loads(pickle.dumps(net)),
        net(x=sym.var("y") * 2),
    ):
        inner = s.get_internals()
        assert inner["fc_output"].list_attr() == expected
        assert inner["fc_bias"].attr("__group__") == "4"
    assert (net + 1).attr("__group__") is None
    block = gluon.nn.Dense(2)
    block.initialize()
    block.hybridize()
    with mx.AttrScope(__stage__="1"):
        block(nd.ones((1, 3)))
    symbol_file, _ = block.export(str(tmp_path / "net"))
    assert sym.load(symbol_file).attr("__stage__") == "1"


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: mx.AttrScope(a=1), "a=1 (an int), but attributes are text; write '1'"),
        (lambda: sym.var("x", attr={"a": 1}), "a=1 (an int), but attributes are"),
        (lambda: sym.var("x", mood="1"), "written __mood__"),
        (lambda: sym.var(3), "the name is 3, but a string is needed"),
        (lambda: sym.relu(sym.var("x"), mood="1"), "relu: no argument is called 'mood'"),
        (lambda: sym.var("x").infer_shape(x=3), "a shape is 3 (an int)"),
        (lambda: sym.var("x").infer_shape((2,), (3,)), "2 values are given"),
        (lambda: sym.var("x").infer_type(y="int32"), "no argument is called 'y'; it takes x"),
        (lambda: mx.viz.print_summary(3), "found 3 (an int), but a Symbol is needed"),
        (
            lambda: mx.viz.print_summary(sym.var("x") + 1, {"x": (0, 3)}),
            "the shapes of all layers do not follow from x",
        ),
    ],
)
def test_errors_of_symbols_are_one_sentence(call, words):
    with pytest.raises(HybridError, match=re.escape(words)) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_shapes_flow_backwards_through_elementwise_steps():
    a, b = sym.var("a"), sym.var("b")
    total = sym.relu(sym.exp(a) * 2) + b
    assert total.infer_shape(b=(2, 3))[0] == [(2, 3), (2, 3)]
    assert total.infer_type(b="float64")[0] == [np.float64, np.float64]
    stretched = sym.broadcast_add(sym.relu(a), b) + sym.var("c")
    assert stretched.infer_shape_partial(c=(2, 3))[0] == [(), (), (2, 3)]
    cast = a.astype("float64") + b
    assert cast.infer_type_partial(b="float64")[0] == [None, np.float64]


def test_lengths_of_zero_can_be_bound_under_np_shape():
    total = sym.var("a") + sym.var("b")
    with mx.np_shape():
        exe = total.simple_bind(mx.cpu(), a=(0, 3))
        exe.forward(is_train=True)
        exe.backward(nd.ones((0, 3)))
        assert exe.outputs[0].shape == exe.grad_dict["b"].shape == (0, 3)
        assert total.simple_bind(mx.cpu(), b=()).forward()[0].shape == ()
    with pytest.raises(mx.ShapeError, match="the shapes of a, b do not follow from a"):
        total.simple_bind(mx.cpu(), a=())


# -- gradients of your own -------------------------------------------------------------
class Halves(autograd.Function):
    """The number and its half, with gradients that are told apart."""

    def forward(self, x):
        return [x, x / 2]

    def backward(self, whole, half):
        return whole * 10 + half


@pytest.mark.parametrize("req, expected", [("write", 102), ("add", 204), ("null", None)])
def test_a_function_honours_grad_req(req, expected):
    x = nd.ones((2,))
    x.attach_grad(req)
    for _ in range(2):
        with autograd.record():
            whole, half = Halves()(x)
            loss = whole * 10 + half * 2
        if req != "null":
            loss.backward()
    if expected is None:
        assert x.grad is None
    else:
        assert x.grad.asnumpy().tolist() == [expected, expected]


def test_a_function_may_return_its_input_and_keeps_the_kind_of_array():
    class Same(autograd.Function):
        def forward(self, x):
            return x

        def backward(self, dy):
            return dy * 7

    for x in (nd.ones((2,)), mx.np.ones((2,))):
        x.attach_grad()
        with autograd.record():
            y = Same()(x)
            z = (y * 2).sum()
        z.backward()
        assert type(y) is type(x) and y.data is not x.data
        assert x.grad.asnumpy().tolist() == [14, 14]


def test_a_function_stands_between_hybridized_blocks():
    net = gluon.nn.Dense(3)
    net.initialize()
    net.hybridize()
    x = nd.ones((1, 2))
    with autograd.record():
        net(Halves()(net(x).slice_axis(axis=1, begin=0, end=2))[0]).backward()
    assert net.bias.grad().asnumpy().tolist() != [1, 1, 1]


class Wrong(Halves):
    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def backward(self, *_):
        return self.answer


def of_wrong(answer):
    x = nd.ones((2,))
    x.attach_grad()
    with autograd.record():
        y = Wrong(answer)(x)[0]
    y.backward()


def twice():
    half = Halves()
    half(nd.ones((1,)))
    half(nd.ones((1,)))


def of_gradient():
    x = nd.ones((2,))
    x.attach_grad()
    with autograd.record():
        autograd.grad(Halves()(x)[0], x, create_graph=True)


def tape_of(make):
    x = nd.ones((2,))
    x.attach_grad()
    with autograd.record():
        y = make(x)
    return y


def freed():
    y = tape_of(lambda x: x * 2)
    y.backward()
    autograd.get_symbol(y)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: of_wrong([nd.ones((2,))] * 2), "returned 2 gradients, but forward has 1"),
        (lambda: of_wrong(np.ones(2)), "a ndarray ((2,)), but an NDArray of shape (2,)"),
        (lambda: of_wrong(nd.ones((3,))), "a NDArray ((3,)), but an NDArray of shape (2,)"),
        (twice, "Halves: an instance is called once"),
        (of_gradient, "Halves: the gradient of a gradient through a Function is unknown"),
        (lambda: Halves()(sym.var("x")), "Halves: a Function works on NDArrays, found Sym"),
        (lambda: autograd.get_symbol(nd.ones((2,))), "the array is not on the tape"),
        (lambda: autograd.get_symbol(tape_of(lambda x: Halves()(x)[0])), "Halves has no"),
        (freed, "an earlier backward freed the tape"),
        (lambda: autograd.grad(nd.ones((1,)), []), "the list of variables is empty"),
        (lambda: autograd.backward([nd.ones((1,))] * 2, [None]), "is not on the tape"),
        (lambda: autograd.mark_variables([nd.ones((1,))], [nd.ones((2,))]), "one shape"),
        (lambda: autograd.mark_variables(nd.ones((1,)), nd.ones((1,)), "sum"), "grad_req='sum'"),
    ],
)
def test_errors_of_gradients_are_one_sentence(call, words):
    with pytest.raises(HybridError, match=re.escape(words)) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_head_gradients_are_counted():
    y = tape_of(lambda x: x * 2)
    with pytest.raises(AttrError, match="2 head gradients are given for 1 heads"):
        autograd.backward([y], [None, None])


# -- tapes as symbols ------------------------------------------------------------------
@pytest.mark.parametrize("hybrid", [False, True])
def test_the_symbol_of_a_tape_computes_what_the_tape_did(hybrid):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(4, activation="tanh"), gluon.nn.Dense(2))
    net.initialize(mx.init.Xavier())
    x = nd.array(np.random.default_rng(0).normal(size=(3, 5)))
    net(x)
    if hybrid:
        net.hybridize()
    with autograd.record():
        y = (net(x) * 3).relu()
    s = autograd.get_symbol(y)
    arrays = [x, *(p.data() for p in net.collect_params().values())]
    shapes, outs, _ = s.infer_shape(var0=x.shape)
    assert outs == [y.shape] and s.list_arguments() == [f"var{i}" for i in range(5)]
    if not hybrid:  # in the order in which the net reads them
        assert shapes == [a.shape for a in arrays]
    given = {
        name: next(a for a in arrays if a.shape == shape)
        for name, shape in zip(s.list_arguments(), shapes, strict=True)
    }
    np.testing.assert_allclose(s.eval(**given)[0].asnumpy(), y.asnumpy(), rtol=1e-5)
    assert sym.fromjson(s.tojson()).list_arguments() == s.list_arguments()


# -- hybrid blocks ---------------------------------------------------------------------
@pytest.mark.parametrize("n_inputs", [1, 2])
def test_a_parameter_may_have_the_name_of_an_input(n_inputs):
    class Scale(gluon.HybridBlock):
        def __init__(self):
            super().__init__(prefix="")
            self.data = self.params.get("data", shape=(3,), init="ones")
            self.data1 = self.params.get("data1", shape=(3,), init="ones")

        def hybrid_forward(self, F, x, *more, data, data1):
            return F.broadcast_mul(x, data * 2 + data1)

    net = Scale()
    net.initialize()
    x = [nd.array([[1, 2, 3]])] * n_inputs
    expected = net(*x).asnumpy()
    net.hybridize()
    np.testing.assert_array_equal(net(*x).asnumpy(), expected)
    with autograd.record():
        y = net(*x)
    y.backward()
    assert net.data.grad().asnumpy().tolist() == [2, 4, 6]


# -- tables ----------------------------------------------------------------------------
def test_a_summary_counts_every_parameter_once(capsys):
    weight = sym.var("shared")
    net = sym.FullyConnected(sym.var("data"), weight, num_hidden=4, no_bias=True, name="one")
    net = sym.LayerNorm(sym.FullyConnected(net, weight, num_hidden=4, name="two"), name="norm")
    mx.viz.print_summary(net, {"data": (2, 4)})
    text = capsys.readouterr().out
    assert [
        int(line.split()[2]) for line in text.splitlines() if "(" in line and "type" not in line
    ] == [0, 16, 4, 8]
    assert "Total params: 28\n" in text
    mx.viz.print_summary(net)
    text = capsys.readouterr().out
    assert "two(FullyConnected)" in text and "Total params: 0\n" in text


# -- devices ---------------------------------------------------------------------------
def test_a_device_holds_inside_its_block():
    assert mx.current_context() == mx.cpu() == mx.context.Context("cpu", 0)
    with mx.cpu(1) as device:
        assert mx.current_context() is device and device.device_id == 1
        assert nd.ones((1,)).context == device
    assert mx.current_context() == mx.cpu(0)
    with mx.gpu(9), pytest.raises(HybridError, match=r"gpu\(9\) is not available"):
        nd.ones((1,))


def test_a_trace_inside_a_trace_leaves_the_outer_one_as_it_was():
    """What nobody reads behind the inner trace is still in the outer graph."""
    spec = Spec((2,), np.dtype("float32"))

    def outer(x):
        trace(sym.exp, {"y": spec})
        sym.tanh(x)
        return x * 2

    graph, _ = trace(outer, {"x": spec})
    assert [n.op.name for n in graph.nodes if n.op] == ["tanh", "_mul_scalar"]
