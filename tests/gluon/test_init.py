"""Initializers fill arrays as promised, and the same seed fills them the same."""

import json

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import AttrError, ShapeError, gluon, init, nd
from minihybrid.core.hooks import INITIALIZERS

# One object of each class that needs nothing but a shape.
EXAMPLES = [
    init.Constant(0.5),
    init.Zero(),
    init.One(),
    init.Uniform(),
    init.Normal(),
    init.Xavier(),
    init.Xavier("gaussian", "in", 2),
    init.MSRAPrelu(),
    init.Orthogonal(),
    init.Orthogonal(rand_type="normal"),
    init.Bilinear(),
    init.LSTMBias(),
]
every_example = pytest.mark.parametrize("example", EXAMPLES, ids=repr)


def filled(example, shape, name="weight", seed=0):
    mx.random.seed(seed)
    array = nd.full(shape, np.nan)
    example(name, array)
    return array.asnumpy()


def test_every_initializer_has_an_example():
    classes = {
        c for c in vars(init).values() if isinstance(c, type) and issubclass(c, init.Initializer)
    }
    assert {type(e) for e in EXAMPLES} == classes - {init.Initializer, init.Mixed, init.Load}


@every_example
def test_the_same_seed_fills_the_same_and_fills_all(example):
    first = filled(example, (4, 1, 5, 5))
    np.testing.assert_array_equal(first, filled(example, (4, 1, 5, 5)))
    assert np.isfinite(first).all()


@every_example
@pytest.mark.parametrize(
    "name, value", [("fc_bias", 0), ("bn_gamma", 1), ("bn_beta", 0), ("bn_running_var", 1)]
)
def test_biases_and_scales_start_at_0_and_1(example, name, value):
    assert (filled(example, (3,), name) == value).all()


@every_example
def test_text_form_names_the_class_and_its_arguments(example):
    name, settings = json.loads(example.dumps())
    again = INITIALIZERS[name](**settings)
    assert again == example
    assert filled(again, (2, 1, 3, 3)) == pytest.approx(filled(example, (2, 1, 3, 3)))


@pytest.mark.parametrize("shape", [(3, 8), (8, 3), (4, 2, 3)])
@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_orthogonal_rows_or_columns_have_one_length(shape, kind):
    matrix = filled(init.Orthogonal(2.0, kind), shape).reshape(shape[0], -1)
    matrix = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    np.testing.assert_allclose(matrix @ matrix.T, 4 * np.eye(len(matrix)), atol=1e-5)


@pytest.mark.parametrize("factor, fan", [("in", 60), ("out", 40), ("avg", 50)])
def test_xavier_fills_up_to_the_bound_of_glorot(factor, fan):
    """Of a convolution: 20 and 30 channels, seen through two places."""
    bound = (3 / fan) ** 0.5
    largest = np.abs(filled(init.Xavier(factor_type=factor), (20, 30, 2))).max()
    assert 0.98 * bound < largest < bound * (1 + 1e-6)


def test_msraprelu_has_the_variance_of_he():
    weight = filled(init.MSRAPrelu("in", slope=0.5), (400, 300))
    assert weight.std() == pytest.approx((2 / 1.25 / 300) ** 0.5, rel=0.02)


def test_bilinear_is_mxnets_tent():
    # mx.init.Bilinear() of MXNet 1.9.1 on (1, 1, 4, 4): the outer square of this line
    line = np.array([0.25, 0.75, 0.75, 0.25])
    weight = filled(init.Bilinear(), (2, 1, 4, 4))
    np.testing.assert_allclose(weight[1, 0], np.outer(line, line), rtol=1e-6)
    with pytest.raises(AttrError, match="the four axes"):
        filled(init.Bilinear(), (4, 4))


def test_mixed_initializes_a_net_by_its_names():
    net = gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(
            gluon.nn.Dense(2, in_units=3, prefix="first_"),
            gluon.nn.Dense(2, in_units=2, prefix="second_"),
        )
    net.initialize(init.Mixed(["net_first", ".*"], [init.One(), init.Constant(3)]))
    params = {n: p.data().asnumpy() for n, p in net.collect_params().items()}
    assert (params["net_first_weight"] == 1).all()
    assert (params["net_first_bias"] == 0).all()
    assert (params["net_second_weight"] == 3).all()
    with pytest.raises(AttrError, match="no pattern fits 'weight'; add"):
        init.Mixed(["bias"], ["ones"])("weight", nd.zeros((1,)))
    with pytest.raises(AttrError, match="1 patterns for 0 initializers"):
        init.Mixed(["bias"], [])


def test_load_takes_arrays_from_a_file(tmp_path):
    nd.save(str(tmp_path / "a.params"), {"arg:weight": nd.array([1, 2])})
    loaded = init.Load(str(tmp_path / "a.params"), default_init="ones")
    assert filled(loaded, (2,)).tolist() == [1, 2]
    assert filled(loaded, (3, 1), "other_weight").tolist() == [[1], [1], [1]]
    with pytest.raises(ShapeError, match=r"'weight' has shape \(3,\), .* has \(2,\)"):
        filled(loaded, (3,))
    with pytest.raises(AttrError, match="no array 'bias', and no default_init"):
        init.Load({})("bias", nd.zeros((1,)))


@pytest.mark.parametrize("name", ["bias", "gamma", "running_var", "noise"])
def test_a_parameter_without_an_initializer_gets_that_of_its_net(name):
    """Whatever it is called, as in MXNet's Gluon; layers give their biases one of their own."""
    net = gluon.nn.Dense(2, in_units=3)
    added = net.params.get(name + "_of_ours", shape=(2, 2))
    own = net.params.get("own_" + name, shape=(2, 2), init="ones")
    net.initialize(mx.init.Constant(7))
    assert (added.data().asnumpy() == 7).all() and (own.data().asnumpy() == 1).all()
    assert (net.bias.data().asnumpy() == 0).all() and (net.weight.data().asnumpy() == 7).all()
    same = gluon.Parameter("x_" + name, shape=(2, 2))
    same.initialize(default_init=mx.init.Constant(7))
    assert (same.data().asnumpy() == 7).all()
