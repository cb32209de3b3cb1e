"""Symbols: names, composition, shapes and files as MXNet's `sym` has them."""

import re

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import nd, sym
from minihybrid.core import tracing
from minihybrid.core.graph import Graph
from minihybrid.core.hooks import FACES
from minihybrid.core.op import Spec
from minihybrid.ops.registry import OPS


@pytest.fixture(autouse=True)
def fresh_names():
    """Count unnamed symbols from 0."""
    with mx.name.NameManager():
        yield


def fc(**kwargs):
    return sym.FullyConnected(sym.var("x"), num_hidden=3, name="fc", **kwargs)


# -- names -----------------------------------------------------------------------------
def test_unnamed_symbols_count_up_with_the_names_of_mxnet():
    x, y = sym.var("x"), sym.Variable("y")
    made = [
        x + y,
        x + 1,
        1 - x,
        x * 2,
        x / y,
        x**2,
        x > y,
        x * y,
        sym.relu(x),
        x + y,
        sym.dot(x, y),
        sym.concat(x, y),
        x.sum(),
        x.reshape((0, -1)),
        sym.zeros((2,)),
        sym.arange(3),
        sym.maximum(x, y),
        sym.maximum(x, 2),
    ]
    assert (
        [s.name for s in made]
        == """
        _plus0 _plusscalar0 _rminusscalar0 _mulscalar0 _div0 _powerscalar0 _greater0 _mul0
        relu0 _plus1 dot0 concat0 sum0 reshape0 _zeros0 _arange0 _maximum0 _maximumscalar0
    """.split()
    )


def test_it_prints_its_name():
    x, y = sym.var("x"), sym.var("y")
    assert repr(x) == "<Symbol x>" and repr(sym.relu(x, name="r")) == "<Symbol r>"
    assert repr(sym.Group([x, y])) == "<Symbol group [x, y]>"


def test_missing_inputs_become_variables():
    assert fc().list_arguments() == ["x", "fc_weight", "fc_bias"]
    assert fc(no_bias=True).list_arguments() == ["x", "fc_weight"]
    assert fc().list_outputs() == ["fc_output"]


def test_outputs_and_internals():
    x = sym.var("x")
    parts = sym.split(x, num_outputs=2, name="s")
    assert parts.list_outputs() == ["s_output0", "s_output1"] and len(parts) == 2
    assert [p.list_outputs() for p in parts] == [["s_output0"], ["s_output1"]]
    group = sym.Group([x + 1, parts[1]])
    assert group.list_outputs() == ["_plusscalar0_output", "s_output1"]
    assert group[0].name == "_plusscalar0" and group[-1].list_outputs() == ["s_output1"]
    out = sym.relu(x + parts[0], name="r")
    internals = out.get_internals()
    assert internals.list_outputs() == ["x", "s_output0", "s_output1", "_plus0_output", "r_output"]
    assert internals["_plus0_output"].name == "_plus0"
    assert out.get_children().name == "_plus0" and x.get_children() is None
    with pytest.raises(IndexError, match=re.escape("symbol[2]: there are 2 outputs")):
        group[2]
    with pytest.raises(mx.AttrError, match="0 outputs are called so; there are r_output"):
        out["nope"]


def test_attributes():
    assert fc().attr("num_hidden") == "3" and fc().attr("nope") is None
    assert fc().list_attr() == {"num_hidden": "3"}
    v = sym.var("v", shape=(2, 3), lr_mult=2, attr={"mood": "good"})
    assert v.list_attr() == {
        "__shape__": "(2, 3)",
        "__lr_mult__": "2",
        "mood": "good",
        "lr_mult": "2",
    }
    assert (v + fc()).attr_dict() == {"v": v.list_attr(), "fc": {"num_hidden": "3"}}


def test_composition_puts_symbols_in_the_place_of_variables():
    inner = sym.relu(sym.var("x") + sym.var("y"), name="r")
    outer = inner(x=sym.var("a") * 2, y=sym.var("b"))
    assert outer.list_arguments() == ["a", "b"]
    assert inner.list_arguments() == ["x", "y"]
    assert inner(sym.var("c")).list_arguments() == ["c", "y"]
    assert inner(x=sym.var("a"), name="copy").list_outputs() == ["copy_output"]
    assert inner.name == "r" and inner().list_arguments() == ["x", "y"]
    with pytest.raises(mx.AttrError, match="there is no variable z; there are x, y"):
        inner(z=sym.var("a"))
    with pytest.raises(mx.AttrError, match="3 symbols .* there are 2 variables: x, y"):
        inner(*map(sym.var, "abc"))
    with pytest.raises(mx.AttrError, match=r"x is 3 \(an int\), but a Symbol is needed"):
        inner(x=3)
    with pytest.raises(mx.AttrError, match="1 symbols .* there are 0 variables"):
        sym.zeros((2,))(sym.var("a"))
    assert sym.zeros((2,))().infer_shape()[1] == [(2,)]
    twice = sym.var("x") + sym.var("x")
    assert twice(x=sym.var("z")).list_arguments() == ["z"]


# -- shapes and dtypes -----------------------------------------------------------------
def test_shapes_flow_forwards_and_backwards():
    assert fc().infer_shape(x=(2, 5)) == ([(2, 5), (3, 5), (3,)], [(2, 3)], [])
    assert (sym.var("a") + sym.var("b")).infer_shape(a=(2, 3)) == ([(2, 3), (2, 3)], [(2, 3)], [])
    shaped = sym.relu(sym.var("x", shape=(2, 4)))
    assert shaped.infer_shape() == ([(2, 4)], [(2, 4)], [])
    deep = sym.var("x")
    for i in range(5):
        deep = sym.FullyConnected(deep, num_hidden=i + 1, name=f"f{i}")
    assert deep.infer_shape(x=(7, 9))[0][-2:] == [(5, 4), (5,)]


def test_shapes_that_do_not_follow():
    assert fc().infer_shape() == fc().infer_shape(x=(0, 5)) == (None, None, None)
    assert fc().infer_shape_partial()[0][0] == ()
    assert (sym.var("a") + 1).infer_shape_partial(a=(0, 5))[0] == [(0, 5)]
    assert sym.arange(3).infer_shape() == ([], [(3,)], [])
    assert fc().infer_shape_partial(x=(2, 0)) == ([(2, 0), (3, 0), (3,)], [(2, 3)], [])
    norm = sym.BatchNorm(sym.var("x"))
    assert norm.infer_shape_partial(x=(2, 0, 4))[0] == [(2, 0, 4), (), ()]
    assert norm.infer_shape_partial()[0] == [(), (), ()]


def test_shapes_that_contradict_name_the_node():
    with pytest.raises(mx.ShapeError, match=r"\(2, 3\) and \(3, 2\).*\(node 'total'\)"):
        sym.elemwise_add(sym.var("a"), sym.var("b"), name="total").infer_shape(a=(2, 3), b=(3, 2))
    with pytest.raises(
        mx.ShapeError,
        match=r"'fc_weight' has shape \(3, 6\)|"
        r"weight has shape \(3, 6\), but \(3, 5\)",
    ):
        fc().infer_shape(x=(2, 5), fc_weight=(3, 6))


def test_dtypes():
    assert fc().infer_type(x="float64") == ([np.float64] * 3, [np.float64], [])
    assert fc().infer_type() == (None, None, None)
    learnt = sym.LeakyReLU(sym.var("x"), sym.var("gamma"), act_type="prelu")
    assert learnt.infer_type(x="float64") == ([np.float64] * 2, [np.float64], [])
    assert learnt.infer_type(x="float32", gamma="float64") == (
        [np.float32, np.float64],
        [np.float32],
        [],
    )
    assert fc().infer_type_partial() == ([None] * 3, [None], [])
    assert sym.var("x").astype("int32").infer_type(x="float32")[1] == [np.int32]


# -- tracing ---------------------------------------------------------------------------
F32 = np.dtype("float32")


def test_a_trace_is_the_graph_of_what_was_done():
    graph, result = sym.trace(
        lambda x, y: sym.relu(x * y) + 1, {"x": Spec((2, 3), F32), "y": Spec((1, 3), F32)}
    )
    assert isinstance(result, sym.Symbol) and not tracing.is_tracing()
    assert (
        graph.check().show()
        == """\
x               = variable                 float32[2x3]
y               = variable                 float32[1x3]
broadcast_mul0  = broadcast_mul(x, y)      float32[2x3]
relu0           = relu(broadcast_mul0)     float32[2x3]
_plusscalar0    = _plus_scalar(relu0; scalar=1.0) float32[2x3]
return _plusscalar0"""
    )


@pytest.mark.parametrize(
    "body",
    [
        lambda F, x: F.split(x, num_outputs=3, axis=1),
        lambda F, x: F.split(x, num_outputs=3, axis=1)[1],
        lambda F, x: list(F.split(x, num_outputs=3, axis=1))[::-1],
        lambda F, x: F.split(x, num_outputs=3, axis=1)[1:],
        lambda F, x: F.concat(*F.split(x, num_outputs=3, axis=1)[:2], dim=0),
        lambda F, x: [x + 1, (x, [x * 2])],
        lambda F, x: (F.split(x, num_outputs=3, axis=1), x),
        lambda F, x: x[0],
        lambda F, x: x[0, 1],
        lambda F, x: x[:, -1],
        lambda F, x: x[..., 1:],
        lambda F, x: x[::-1, ::2],
        lambda F, x: x.T + F.ones((3, 2)),
        lambda F, x: F.zeros((2,)) + x[:, 0] + F.arange(2),
        lambda F, x: F.full((2, 3), 3) * x,
        lambda F, x: F.maximum(x, 2) - F.minimum(3, x),
        lambda F, x: F.add(x, 1) * F.subtract(1, x) / F.power(x, 2),
        lambda F, x: F.greater(x, 2) + F.not_equal(x, x),
        lambda F, x: x.reshape((-1,)) if F is nd else x.reshape((0, -1)).reshape((-1,)),
    ],
)
@pytest.mark.parametrize("target", ["numpy", "cpu"])
def test_what_is_traced_is_what_eager_computes(body, target):
    x = nd.array([[1, 2, 3], [4, 5, 6]])
    eager = body(nd, x)
    traced = mx.function(lambda x: body(sym, x), target=target)(x)

    def plain(value):
        if isinstance(value, (list, tuple)):
            return [plain(v) for v in value]
        return value.shape, value.dtype, value.asnumpy().tolist()

    assert plain(traced) == plain(eager)


def test_random_numbers_of_a_traced_function_are_those_of_eager():
    def noisy(F, x):
        return x + F.random.normal(0, 1, shape=(2, 3)) * F.random.uniform(shape=(2, 3))

    x = nd.zeros((2, 3))
    mx.random.seed(1)
    eager = [noisy(nd, x).asnumpy() for _ in range(2)]
    hybrid = mx.function(lambda x: noisy(sym, x), target="numpy")
    mx.random.seed(1)
    for expected in eager:
        np.testing.assert_allclose(hybrid(x).asnumpy(), expected, rtol=1e-6)


@pytest.mark.slow
def test_a_graph_of_ten_thousand_nodes():
    x = sym.var("x")
    for _ in range(10_000):
        x = x + 1
    assert x.infer_shape(x=(3,))[1] == [(3,)]
    assert Graph.of(x).n_ops == 10_000
    assert sym.fromjson(x.tojson()).list_arguments() == ["x"]


def test_float64_is_learnt_like_any_dtype():  # NumPy says: float64 == None
    b = sym.var("b")
    total = sym.elemwise_add(sym.var("a"), sym.relu(b))
    assert total.infer_type(a="float64")[0] == [np.float64, np.float64]


@pytest.mark.parametrize("face", ["nd", "sym"])
def test_what_is_entered_into_a_face_is_what_its_name_gives(face):
    """Also where an operator has the name: its arguments have others than MXNet's."""
    module = {"nd": nd, "sym": sym}[face]
    assert len(FACES[face]) > 5
    assert all(getattr(module, name) is FACES[face][name] for name in FACES[face])
    assert sym.full((2,), val=2.0).list_arguments() == []


@pytest.mark.parametrize("space", [mx.nd, mx.sym], ids=["nd", "sym"])
def test_no_import_hides_an_operator(space):
    """As `from pytree import flatten` in the module `sym` once hid `F.flatten`."""
    homes = {
        name: value.__module__
        for name, value in vars(space).items()
        if name in OPS and not name.startswith("_")
    }
    own = {"core.nd", "ops.infix", "mxnet.nd_extras", "mxnet.sym_extras"}
    assert {*homes.values()} <= {f"minihybrid.{module}" for module in own}, homes


def test_flatten_is_the_operator_in_both_readings():
    block = mx.gluon.nn.HybridLambda(lambda F, x, y: (F.flatten(x), y))
    for hybridize in (False, True):
        block.hybridize(hybridize)
        assert block(nd.ones((2, 1, 3)), nd.ones((1,)))[0].shape == (2, 3)
