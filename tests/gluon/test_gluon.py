"""Parameters, blocks and layers: Gluon's contract beside the tutorials."""

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import autograd, gluon, nd, sym
from minihybrid.gluon import nn


def ones_net(*layers, **kwargs):
    net = nn.HybridSequential(**kwargs)
    net.add(*layers)
    net.initialize("ones")
    return net


# -- parameters ------------------------------------------------------------------------
def test_a_parameter_from_birth_to_gradient():
    p = gluon.Parameter("w", shape=(2, 3))
    p.initialize(init=mx.init.Constant(3))
    assert p.data().asnumpy().tolist() == [[3] * 3] * 2
    assert p.grad().shape == (2, 3) and p.list_data() == [p.data()]
    assert p.list_ctx() == [mx.cpu()]
    p.set_data(np.zeros((2, 3)))
    assert p.data().asnumpy().sum() == 0
    p.grad()[:] = 5
    p.zero_grad()
    assert p.grad().asnumpy().sum() == 0


def test_initialize_twice_keeps_the_first_numbers():
    net = nn.Dense(1, in_units=1, weight_initializer="ones")
    net.initialize()
    net.initialize("zeros")
    assert net.weight.data().asscalar() == 1
    net.weight.set_data(nd.array([[4]]))
    net.initialize("zeros", force_reinit=True)
    assert net.weight.data().asscalar() == 1  # its own initializer, not the net's


@pytest.mark.parametrize(
    "init, expected",
    [
        ("zeros", 0),
        ("ones", 1),
        (mx.init.Zero(), 0),
        (mx.init.One(), 1),
        (mx.init.Constant(-2), -2),
    ],
)
def test_an_initializer_sets_weights_and_leaves_biases_at_zero(init, expected):
    net = nn.Dense(2, in_units=2)
    net.initialize(init)
    assert set(net.weight.data().asnumpy().ravel()) == {expected}
    assert net.bias.data().asnumpy().tolist() == [0, 0]
    net = nn.Dense(2, in_units=2, bias_initializer=init)
    net.initialize()
    assert net.bias.data().asnumpy().tolist() == [expected] * 2


def test_random_initializers_repeat_with_the_seed_and_keep_their_bounds():
    def weights(init):
        mx.random.seed(2)
        net = nn.Dense(200, in_units=100)
        net.initialize(init)
        return net.weight.data().asnumpy()

    np.testing.assert_array_equal(weights(None), weights(None))
    assert np.abs(weights(mx.init.Uniform(0.5))).max() <= 0.5
    assert 0.06 < np.abs(weights(None)).max() <= 0.07
    assert abs(weights(mx.init.Normal(0.2)).std() - 0.2) < 0.01
    bound = np.sqrt(3 / ((200 + 100) / 2))
    assert 0.99 * bound < np.abs(weights(mx.init.Xavier())).max() <= bound
    gauss = weights(mx.init.Xavier(rnd_type="gaussian", factor_type="in", magnitude=2))
    assert abs(gauss.std() - np.sqrt(2 / 100)) < 0.005


@pytest.mark.parametrize("hybrid", [False, True])
def test_initial_numbers_do_not_depend_on_when_the_shape_is_known(hybrid):
    def weights(in_units, x):
        mx.random.seed(2)
        net = nn.HybridSequential()
        net.add(nn.Dense(4, in_units=in_units), nn.Dense(3, in_units=in_units and 4))
        net.initialize(mx.init.Xavier())
        net.hybridize(hybrid, backend="numpy")
        net(x)
        return [p.data().asnumpy() for p in net.collect_params().values()]

    x = nd.ones((1, 5))
    for early, late in zip(weights(5, x), weights(0, x), strict=True):
        np.testing.assert_array_equal(early, late)


def test_a_parameter_dict_is_a_dict():
    net = ones_net(nn.Dense(2, in_units=3), prefix="net_")
    params = net.collect_params()
    assert len(params) == 2 and list(params) == list(params.keys())
    assert all(params[n] is p and n in params for n, p in params.items())
    params.setattr("grad_req", "null")
    assert [p.grad_req for p in params.values()] == ["null", "null"]
    params.setattr("lr_mult", 0)
    assert net[0].weight.lr_mult == 0
    assert params.list_ctx() == [mx.cpu()]


def test_a_parameter_dict_makes_and_shares():
    shared = gluon.ParameterDict("s_")
    w = shared.get("w", shape=(2, 2))
    assert w.name == "s_w" and shared.get("w") is w
    again = gluon.ParameterDict("s_", shared)
    assert again.get("w") is w
    with pytest.raises(mx.AttrError, match="two different parameters are called 's_w'"):
        other = gluon.ParameterDict("s_")
        other.get("w", shape=(3,))
        shared.update(other)


def test_two_parameters_of_one_name_are_refused_with_cures():
    """Eager calls run: each block sees its own. A graph has one name for both."""

    def layers(**kwargs):
        net = nn.HybridSequential()
        net.add(nn.Dense(2, in_units=2, prefix="same_"))
        net.add(nn.Dense(2, in_units=2, **(kwargs or {"params": net[0].params})))
        for layer in net:
            layer.initialize()
        return net

    net = layers(prefix="same_")
    assert net(nd.ones((1, 2))).shape == (1, 2)
    net.hybridize()
    with pytest.raises(
        mx.AttrError, match="'same_weight'; give .* blocks other prefixes, or share"
    ):
        net(nd.ones((1, 2)))
    for cure in layers(prefix="other_"), layers():
        cure.hybridize()
        assert cure(nd.ones((1, 2))).shape == (1, 2)


@pytest.mark.parametrize("folder_of", ["save", "load"])
def test_a_parameter_dict_saves_and_loads(tmp_path, folder_of):
    net, other = (
        ones_net(nn.Dense(1, in_units=2, prefix="d_")),
        nn.Dense(1, in_units=2, prefix="d_"),
    )
    net.collect_params().save(str(tmp_path / "p"))
    other.collect_params().load(str(tmp_path / "p"))
    assert other.weight.data().asnumpy().tolist() == [[1, 1]]


def test_gradients_add_up_if_asked_to():
    net = ones_net(nn.Dense(1, in_units=2))
    net.collect_params().setattr("grad_req", "add")
    for hybrid in (False, True):
        net.hybridize(hybrid, backend="numpy")
        net.collect_params().zero_grad()
        for _ in range(2):
            with autograd.record():
                y = net(nd.array([[1, 2]]))
            y.backward()
        assert net[0].weight.grad().asnumpy().tolist() == [[2, 4]]


def test_a_frozen_layer_does_not_learn():
    net = ones_net(nn.Dense(2, in_units=2), nn.Dense(1, in_units=2))
    net[0].collect_params().setattr("grad_req", "null")
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    for hybrid in (False, True):
        net.hybridize(hybrid, backend="numpy")
        before = net[1].weight.data().asnumpy()
        with autograd.record():
            y = net(nd.array([[1, 2]]))
        y.backward()
        trainer.step(1)
        assert net[0].weight.data().asnumpy().tolist() == [[1, 1], [1, 1]]
        assert (net[1].weight.data().asnumpy() != before).all()


# -- blocks ----------------------------------------------------------------------------
def test_dense_shapes():
    x = nd.ones((2, 3, 4))
    flat, rows = nn.Dense(5), nn.Dense(5, flatten=False)
    for net, weight, out in ((flat, (5, 12), (2, 5)), (rows, (5, 4), (2, 3, 5))):
        net.initialize()
        assert net(x).shape == out and net.weight.shape == weight
        eager = net(x).asnumpy()
        net.hybridize(backend="numpy")
        np.testing.assert_allclose(net(x).asnumpy(), eager, rtol=1e-5)
    assert list(nn.Dense(5, use_bias=False, prefix="d_").collect_params()) == ["d_weight"]
    assert nn.Flatten()(x).shape == (2, 12)


def test_a_layer_used_twice_has_one_set_of_parameters():
    class Twice(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            with self.name_scope():
                self.dense = nn.Dense(2, in_units=2, weight_initializer="ones")

        def hybrid_forward(self, F, x):
            return self.dense(self.dense(x))

    net, x = Twice(prefix="t_"), nd.ones((1, 2))
    net.initialize()
    assert net(sym.var("data")).list_arguments() == ["data", "t_dense0_weight", "t_dense0_bias"]
    for hybrid in (False, True):
        net.hybridize(hybrid, backend="numpy")
        with autograd.record():
            y = net(x)
        y.backward()
        assert y.asnumpy().tolist() == [[4, 4]]
        assert net.dense.weight.grad().asnumpy().tolist() == [[4, 4], [4, 4]]


def test_a_block_in_a_list_is_registered_by_hand():
    class Listed(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Dense(2), nn.Dense(1)]
            for layer in self.layers:
                self.register_child(layer)

        def hybrid_forward(self, F, x):
            for layer in self.layers:
                x = layer(x)
            return x

    net = Listed()
    assert len(net.collect_params()) == 4
    net.initialize()
    assert net(nd.ones((1, 3))).shape == (1, 1)
    assert list(net._children) == ["0", "1"]


def test_a_hybrid_child_of_a_plain_block_is_compiled_alone():
    class Plain(gluon.Block):
        def __init__(self):
            super().__init__()
            self.a = nn.Dense(2, in_units=2, weight_initializer="ones")

        def forward(self, x):
            return self.a(x) if x.sum().asscalar() > 0 else x

    net = Plain()
    net.initialize()
    net.hybridize(backend="numpy")
    assert net(nd.ones((1, 2))).asnumpy().tolist() == [[2, 2]]
    assert net(-nd.ones((1, 2))).asnumpy().tolist() == [[-1, -1]]
    assert len(net.a.plans) == 1


def test_a_child_with_lists_inside_a_hybridized_parent():
    class Add(gluon.HybridBlock):
        def hybrid_forward(self, F, xs, scale):
            return (xs[0] + xs[1]) * scale

    class Outer(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.add = Add()

        def hybrid_forward(self, F, x):
            return self.add([x, x * 2], 3)

    net = Outer()
    for hybrid in (False, True):
        net.hybridize(hybrid, backend="numpy")
        assert net(nd.ones((1,))).asscalar() == 9


def test_lambda_blocks():
    x = nd.array([[-1, 2]])
    for block in (
        nn.Lambda("relu"),
        nn.Lambda(lambda x: nd.relu(x)),
        nn.HybridLambda("relu"),
        nn.HybridLambda(lambda F, x: F.relu(x)),
    ):
        block.hybridize(backend="numpy")
        assert block(x).asnumpy().tolist() == [[0, 2]]


def test_a_sequence_passes_several_values_on():
    net = nn.HybridSequential()
    net.add(
        nn.HybridLambda(lambda F, x: (x, x * 2)),
        nn.HybridLambda(lambda F, a, b: (b, a)),
        nn.HybridLambda(lambda F, a, b: a - b),
    )
    for hybrid in (False, True):
        net.hybridize(hybrid, backend="numpy")
        assert net(nd.ones((1,))).asscalar() == 1


# -- symbol blocks ---------------------------------------------------------------------
def test_a_symbol_block_with_parameters_from_a_net():
    net = ones_net(nn.Dense(2, in_units=3), nn.Dense(1, in_units=2))
    x = nd.ones((1, 3))
    inner = net(sym.var("data")).get_internals()
    first = gluon.SymbolBlock(
        inner[net[0].name + "_fwd_output"], sym.var("data"), params=net.collect_params()
    )
    assert first(x).asnumpy().tolist() == [[3, 3]]
    net[0].weight.set_data(nd.zeros((2, 3)))
    assert first(x).asnumpy().tolist() == [[0, 0]]  # they are the same parameters


def test_a_symbol_block_with_several_inputs_and_outputs():
    a, b = sym.var("a"), sym.var("b")
    net = gluon.SymbolBlock([a + b, a * b], [a, b])
    for hybrid in (False, True):
        net.hybridize(hybrid, backend="numpy")
        total, product = net(nd.array([3]), nd.array([4]))
        assert (total.asscalar(), product.asscalar()) == (7, 12)


def test_export_of_several_inputs_and_an_unused_parameter(tmp_path):
    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__(prefix="n_")
            self.used = self.params.get("used", shape=(1,), init="ones")
            self.unused = self.params.get("unused", shape=(1,))

        def hybrid_forward(self, F, a, b, used, unused):
            return F.broadcast_add(a - b, used)

    net = Net()
    net.initialize()
    net.hybridize(backend="numpy")
    assert net(nd.array([5]), nd.array([2])).asscalar() == 4
    symbol, params = net.export(str(tmp_path / "n"))
    assert list(nd.load(params)) == ["arg:n_used"]
    assert sym.load(symbol).list_arguments() == ["data0", "data1", "n_used"]
    loaded = gluon.SymbolBlock.imports(symbol, ["data0", "data1"], params)
    assert loaded(nd.array([5]), nd.array([2])).asscalar() == 4
    again = gluon.SymbolBlock.imports(symbol, ["data1", "data0"], params)  # in another order
    assert again(nd.array([5]), nd.array([2])).asscalar() == -2


# -- known bugs: each test says what should hold ---------------------------------------
@pytest.mark.parametrize("backend", ["cpu"])
def test_a_cast_parameter_is_not_read_as_the_old_dtype(backend):
    net = ones_net(nn.Dense(2, in_units=2))
    net.hybridize(backend=backend)
    x = nd.ones((1, 2))
    net(x)
    net[0].cast("float64")
    with pytest.raises(mx.DTypeError):
        net(x)


def test_a_list_of_one_array_is_not_an_array():
    first = mx.function(lambda xs: xs[0] * 2, target="numpy")
    x = nd.ones((2, 3))
    assert (first(x).shape, first([x]).shape) == ((3,), (2, 3))


def test_arguments_that_are_equal_but_not_the_same():
    f = mx.function(lambda x, flag: x * 2 if flag is True else x, target="numpy")
    x = nd.ones((1,))
    assert [f(x, 1).asscalar(), f(x, True).asscalar()] == [1, 2]


def test_a_child_that_is_replaced_is_gone():
    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.layer = nn.Dense(2, in_units=2)

    net = Net()
    try:
        net.layer = None
    except mx.HybridError:  # Gluon refuses to change the kind of an attribute
        return
    assert len(net.collect_params()) == 0


def test_a_summary_before_the_first_call(capsys):
    net = nn.HybridSequential()
    net.add(nn.Dense(2, activation="relu"))
    net.initialize()
    net.summary(nd.ones((1, 3)))
    assert "8" in capsys.readouterr().out


def test_shared_parameters_are_saved_once_if_asked_to(tmp_path):
    first = nn.Dense(2, in_units=2)
    net = ones_net(first, nn.Dense(2, in_units=2, params=first.params))
    net.save_parameters(str(tmp_path / "p"), deduplicate=True)
    assert len(nd.load(str(tmp_path / "p"))) == 2
    net.load_parameters(str(tmp_path / "p"))


def test_an_activation_is_named_after_its_function():
    assert nn.Activation("tanh").name.startswith("tanh")


def test_a_symbol_block_prints_like_gluon():
    x = sym.var("a")
    assert (
        repr(gluon.SymbolBlock(sym.relu(x, name="out"), x))
        == "SymbolBlock(\n<Symbol out> : 1 -> 1\n)"
    )


def test_infer_shape_before_initialize():
    net = nn.Dense(2)
    net.infer_shape(nd.ones((1, 3)))
    assert net.weight.shape == (2, 3)
