"""What the tutorials of Gluon promise about hybridizing, word for word."""

import re

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import autograd, gluon, nd, sym
from minihybrid.gluon import block, nn


@pytest.fixture(autouse=True)
def fresh_names(monkeypatch):
    """Count blocks from 0, as in a tutorial's fresh notebook."""
    monkeypatch.setattr(block.SCOPE, "counts", {})
    monkeypatch.setattr(mx.name.NameManager.opened, "all", [mx.name.NameManager()])
    mx.random.seed(0)


def mlp(**kwargs):
    net = nn.HybridSequential(**kwargs)
    with net.name_scope():
        net.add(nn.Dense(256, activation="relu"), nn.Dense(128, activation="relu"), nn.Dense(2))
    return net


class Printing(gluon.HybridBlock):
    """The tutorial's block: it prints what F and x are."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.hidden = nn.Dense(10)
            self.output = nn.Dense(2)

    def hybrid_forward(self, F, x):
        print("F:", F.__name__)
        print("x:", x)
        x = F.relu(self.hidden(x))
        print("result:", x)
        return self.output(x)


def same(a, b):
    np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-4, atol=1e-6)


def test_f_prints_as_the_namespaces_that_programs_know(capsys):
    class Show(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            print(F)
            return x

    net = Show()
    net(nd.ones(1))
    net.hybridize()
    net(nd.ones(1))
    lines = capsys.readouterr().out.splitlines()
    assert [re.match(r"<module '([\w.]*)' from '.*\.py'>$", line)[1] for line in lines] == [
        "minihybrid.ndarray",
        "minihybrid.symbol",
    ]


# -- HybridSequential ------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{}, {"backend": "numpy"}, {"static_alloc": True, "static_shape": True}]
)
def test_hybridize_does_not_change_the_answer(options):
    net, x = mlp(), nd.random.normal(shape=(1, 512))
    net.initialize()
    before = net(x)
    net.hybridize(**options)
    for _ in range(3):
        same(net(x), before)
    net.hybridize(active=False)
    np.testing.assert_array_equal(net(x).asnumpy(), before.asnumpy())


def test_a_sequence_prints_like_gluon_before_and_after_its_shapes_are_known():
    net = mlp()
    assert (
        repr(net)
        == """HybridSequential(
  (0): Dense(None -> 256, Activation(relu))
  (1): Dense(None -> 128, Activation(relu))
  (2): Dense(None -> 2, linear)
)"""
    )
    net.initialize()
    net(nd.ones((1, 512)))
    assert (
        repr(net)
        == """HybridSequential(
  (0): Dense(512 -> 256, Activation(relu))
  (1): Dense(256 -> 128, Activation(relu))
  (2): Dense(128 -> 2, linear)
)"""
    )


def test_names_are_those_of_gluon():
    net = mlp()
    net.initialize()
    net(nd.ones((1, 512)))
    assert (net.name, net.prefix) == ("hybridsequential0", "hybridsequential0_")
    assert net[1].name == "hybridsequential0_dense1"
    assert str(net[0].weight) == (
        "Parameter hybridsequential0_dense0_weight (shape=(256, 512), dtype=float32)"
    )
    assert (
        repr(net.collect_params())
        == """hybridsequential0_ (
  Parameter hybridsequential0_dense0_weight (shape=(256, 512), dtype=float32)
  Parameter hybridsequential0_dense0_bias (shape=(256,), dtype=float32)
  Parameter hybridsequential0_dense1_weight (shape=(128, 256), dtype=float32)
  Parameter hybridsequential0_dense1_bias (shape=(128,), dtype=float32)
  Parameter hybridsequential0_dense2_weight (shape=(2, 128), dtype=float32)
  Parameter hybridsequential0_dense2_bias (shape=(2,), dtype=float32)
)"""
    )
    symbol = net(sym.var("data"))
    assert repr(symbol) == "<Symbol hybridsequential0_dense2_fwd>"
    assert symbol.list_arguments() == ["data", *net.collect_params()]
    assert symbol.list_outputs() == ["hybridsequential0_dense2_fwd_output"]
    inner = symbol.get_internals().list_outputs()
    assert inner[3:5] == [
        "hybridsequential0_dense0_fwd_output",
        "hybridsequential0_dense0_relu_fwd_output",
    ]


def test_without_a_name_scope_children_count_for_themselves():
    net = nn.HybridSequential()
    net.add(nn.Dense(3), nn.Dense(1))
    assert list(net.collect_params()) == [
        "dense0_weight",
        "dense0_bias",
        "dense1_weight",
        "dense1_bias",
    ]


def test_a_prefix_replaces_the_counted_name():
    assert list(mlp(prefix="model_").collect_params(".*2_")) == [
        "model_dense2_weight",
        "model_dense2_bias",
    ]


def test_collect_params_selects_by_regular_expression():
    net = mlp(prefix="net_")
    assert list(net.collect_params(".*weight")) == [
        "net_dense0_weight",
        "net_dense1_weight",
        "net_dense2_weight",
    ]
    assert list(net.collect_params("net_dense0_bias|net_dense2_weight")) == [
        "net_dense0_bias",
        "net_dense2_weight",
    ]


def test_a_sequence_is_a_sequence():
    net = mlp()
    assert len(net) == 3
    assert [child.name[-6:] for child in net] == ["dense0", "dense1", "dense2"]
    assert net[-1] is list(net)[2]
    tail = net[1:]
    assert type(tail) is nn.HybridSequential and list(tail) == list(net)[1:]


def test_other_layers_print_like_gluon():
    assert list(
        map(
            repr,
            [
                nn.Dropout(0.5),
                nn.Flatten(),
                nn.Activation("tanh"),
                nn.Lambda("relu"),
                nn.HybridLambda("relu"),
                nn.Dense(3, in_units=2, activation="sigmoid"),
            ],
        )
    ) == [
        "Dropout(p = 0.5, axes=())",
        "Flatten",
        "Activation(tanh)",
        "Lambda(relu)",
        "HybridLambda(relu)",
        "Dense(2 -> 3, Activation(sigmoid))",
    ]


# -- HybridBlock: what vanishes --------------------------------------------------------
def test_eager_sees_nd_and_arrays(capsys):
    net = Printing()
    net.initialize()
    net(nd.ones((1, 4)))
    net(nd.ones((1, 4)))
    lines = capsys.readouterr().out
    assert lines.count("F: minihybrid.core.nd") == 2
    assert lines.count("[[1. 1. 1. 1.]]\n<NDArray 1x4 @cpu(0)>") == 2
    assert "Symbol" not in lines


def test_hybridized_prints_the_symbol_once_and_never_again(capsys):
    net, x = Printing(), nd.ones((1, 4))
    net.initialize()
    eager = net(x)
    net.hybridize(backend="numpy")
    capsys.readouterr()
    same(net(x), eager)
    assert capsys.readouterr().out == (
        "F: minihybrid.core.sym\nx: <Symbol data>\nresult: <Symbol printing0_relu0>\n"
    )
    for _ in range(3):
        same(net(x), eager)
    assert capsys.readouterr().out == ""


def test_hybridized_before_the_shapes_are_known_it_also_runs_once(capsys):
    net = Printing()
    net.initialize()
    net.hybridize(backend="numpy")
    net(nd.ones((1, 4)))
    net(nd.ones((1, 4)))
    assert capsys.readouterr().out.count("x: <Symbol data>") == 1
    assert net.hidden.weight.shape == (10, 4)


def test_a_net_called_with_a_symbol_gives_the_symbol(capsys):
    net = Printing()
    net.initialize()
    y = net(sym.var("data"))
    assert isinstance(y, sym.Symbol)
    assert capsys.readouterr().out.startswith("F: minihybrid.core.sym\nx: <Symbol data>\n")
    assert y.list_arguments() == [
        "data",
        "printing0_dense0_weight",
        "printing0_dense0_bias",
        "printing0_dense1_weight",
        "printing0_dense1_bias",
    ]
    net.hybridize()
    assert net(sym.var("data")).list_arguments() == y.list_arguments()


def test_python_between_operators_happens_while_tracing_only():
    class Counting(gluon.HybridBlock):
        calls = 0

        def hybrid_forward(self, F, x):
            self.calls += 1
            return x * self.calls

    net, x = Counting(), nd.ones((1,))
    assert [net(x).asscalar() for _ in range(3)] == [1, 2, 3]
    net.hybridize(backend="numpy")
    assert [net(x).asscalar() for _ in range(3)] == [4, 4, 4]


def test_retraced_for_a_new_shape_dtype_and_mode_and_listed(capsys):
    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            print("traced")
            return F.Dropout(x, p=0.5) + 1

    def traced():
        return capsys.readouterr().out.count("traced")

    net = Net()
    assert repr(net.plans) == "no plans yet: hybridize, then call with data"
    net.hybridize(backend="numpy")
    one, two = nd.ones((1, 3)), nd.ones((2, 3))
    net(one), net(one)
    assert traced() == 1
    net(two), net(one)
    assert traced() == 1
    net(one.astype("float64"))
    assert traced() == 1
    with autograd.train_mode():
        net(one), net(one)
    assert traced() == 1
    with autograd.record():
        net(one)
    assert traced() == 0  # the mode is training again: only its plan is another
    assert [str(s) for s in net.plans] == [
        "(float32[1x3]) prediction",
        "(float32[2x3]) prediction",
        "(float64[1x3]) prediction",
        "(float32[1x3]) training",
        "(float32[1x3]) training, with gradient",
    ]
    lines = repr(net.plans).splitlines()
    assert len([line for line in lines if line[0] == "("]) == 5
    assert re.fullmatch(
        r"\(float32\[1x3\]\) prediction: \d+ kernels?, \d+ bytes, "
        "target numpy",
        lines[0],
    )
    net.hybridize(backend="numpy")
    assert len(net.plans) == 0


def test_a_gradient_has_plans_of_its_own():
    net, x = nn.Dense(2, in_units=3), nd.ones((1, 3))
    net.initialize()
    net.hybridize(backend="numpy")
    x.attach_grad()
    with autograd.record():
        y = net(x)
    y.backward()
    assert [s.recording for s in net.plans] == [True, True]
    np.testing.assert_allclose(
        x.grad.asnumpy(), net.weight.data().asnumpy().sum(0)[None], rtol=1e-6
    )


def test_dropout_acts_in_training_only_eager_and_hybridized_alike():
    net, x = nn.Dropout(0.5), nd.ones((100,))
    seen = []
    for hybrid in (False, True):
        net.hybridize(hybrid, backend="numpy")
        np.testing.assert_array_equal(net(x).asnumpy(), x.asnumpy())
        mx.random.seed(1)
        with autograd.record():
            seen.append(net(x).asnumpy())
    assert set(seen[0]) == {0.0, 2.0}
    np.testing.assert_array_equal(*seen)


# -- structure -------------------------------------------------------------------------
def test_hybridize_on_a_plain_block_hybridizes_its_children(capsys):
    net = nn.Sequential()
    net.add(Printing(), nn.Lambda(lambda x: x * (2 if x.asnumpy().sum() > 0 else 3)))
    net.initialize()
    before = net(nd.ones((1, 4)))
    net.hybridize(backend="numpy")
    capsys.readouterr()
    same(net(nd.ones((1, 4))), before)  # asnumpy in the Lambda: it stayed imperative
    assert "x: <Symbol data>" in capsys.readouterr().out
    assert len(net[0].plans) == 1
    assert not hasattr(net, "plans")


def test_nested_hybrid_blocks_are_one_plan():
    net = nn.HybridSequential(prefix="outer_")
    with net.name_scope():
        net.add(
            Printing(),
            nn.Flatten(),
            nn.HybridLambda("tanh"),
            nn.HybridLambda(lambda F, x: F.relu(x)),
            nn.Dense(3),
        )
    net.initialize()
    x = nd.random.normal(shape=(2, 4))
    before = net(x)
    net.hybridize(backend="numpy")
    same(net(x), before)
    assert len(net.plans) == 1 and len(net[0].plans) == 0
    assert "outer_printing0_dense1_bias" in net.collect_params()


def test_several_inputs_and_outputs():
    class Both(gluon.HybridBlock):
        def hybrid_forward(self, F, a, b):
            return a + b, F.concat(a, b, dim=1)

    net = Both()
    a, b = nd.ones((2, 3)), nd.zeros((2, 3)) + 2
    for hybrid in (False, True):
        net.hybridize(hybrid, backend="numpy")
        total, joined = net(a, b)
        assert total.asnumpy().tolist() == [[3, 3, 3]] * 2
        assert joined.asnumpy().tolist() == [[1, 1, 1, 2, 2, 2]] * 2
    total, joined = net(sym.var("a"), sym.var("b"))
    assert total.list_arguments() == joined.list_arguments() == ["a", "b"]


def test_nested_lists_of_arrays_and_optional_arguments():
    class Cell(gluon.HybridBlock):
        def hybrid_forward(self, F, x, states, scale=None):
            out = x + states[0] if scale is None else (x + states[0]) * scale
            return out, [out * 2, states[1]]

    net, x = Cell(), nd.ones((1, 2))
    for hybrid in (False, True):
        net.hybridize(hybrid, backend="numpy")
        out, states = net(x, [x, x * 3])
        assert out.asnumpy().tolist() == [[2, 2]]
        assert [s.asnumpy().tolist() for s in states] == [[[4, 4]], [[3, 3]]]
        assert net(x, [x, x], nd.array([[10, 1]]))[0].asnumpy().tolist() == [[20, 2]]
        assert net(x, [x, x], 5)[0].asnumpy().tolist() == [[10, 10]]


def test_a_block_with_a_constant():
    class Scaled(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.scale = self.params.get_constant("scale", [[1, 2, 3]])

        def hybrid_forward(self, F, x, scale):
            return F.broadcast_mul(x, scale)

    net = Scaled()
    net.initialize()
    assert repr(net.scale) == "Constant scaled0_scale (shape=(1, 3), dtype=float32)"
    for hybrid in (False, True):
        net.hybridize(hybrid, backend="numpy")
        assert net(nd.ones((2, 3))).asnumpy().tolist() == [[1, 2, 3]] * 2
    trained = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1})
    with autograd.record():
        loss = net(nd.ones((2, 3))).sum()
    trained.step(1)
    assert loss.asscalar() == 12
    assert net.scale.data().asnumpy().tolist() == [[1, 2, 3]]


def test_shared_parameters():
    first = nn.Dense(2, in_units=2, prefix="first_")
    second = nn.Dense(2, in_units=2, prefix="second_", params=first.params)
    assert second.weight is first.weight
    assert list(second.collect_params()) == ["first_weight", "first_bias"]
    net = nn.HybridSequential()
    net.add(first, second)
    net.initialize()
    assert list(net.collect_params()) == ["first_weight", "first_bias"]
    x = nd.array([[1, 2]])
    before = net(x)
    net.hybridize(backend="numpy")
    same(net(x), before)
    first.weight.set_data(nd.zeros((2, 2)))
    same(net(x), nd.zeros((1, 2)))


def test_new_numbers_of_parameters_are_seen_without_a_new_trace():
    net, x = nn.Dense(1, in_units=2), nd.ones((1, 2))
    net.initialize("ones")
    net.hybridize(backend="numpy")
    assert net(x).asscalar() == 2
    net.weight.set_data(nd.array([[5, 5]]))
    assert net(x).asscalar() == 10
    net.weight.data()[:] = 1
    assert net(x).asscalar() == 2
    net.initialize("zeros", force_reinit=True)
    assert net(x).asscalar() == 0
    assert len(net.plans) == 1


def test_a_child_that_is_added_later_is_part_of_the_net():
    net, x = nn.HybridSequential(), nd.ones((1, 2))
    net.add(nn.Dense(2, weight_initializer="ones"))
    net.initialize()
    net.hybridize(backend="numpy")
    assert net(x).asnumpy().tolist() == [[2, 2]]
    net.add(nn.Dense(1, weight_initializer="ones"))
    net.initialize()
    assert net(x).asnumpy().tolist() == [[4]]


def test_hooks_are_called_hybridized_or_not_until_detached():
    net, seen = mlp(), []
    net.initialize()
    x = nd.ones((1, 3))
    after = net.register_forward_hook(lambda b, ins, out: seen.append((b, ins, out.shape)))
    before = net.register_forward_pre_hook(lambda b, ins: seen.append((b, ins)))
    assert len(net._forward_pre_hooks) == len(net._forward_hooks) == 1
    assert isinstance(after, gluon.utils.HookHandle)
    for hybrid in (False, True):
        net.hybridize(hybrid, backend="numpy")
        net(x)
        assert seen == [(net, (x,)), (net, (x,), (1, 2))]
        seen.clear()
    assert len(net.plans) == 1
    before.detach()
    net(x)
    assert seen == [(net, (x,), (1, 2))]
    after.detach()
    net(x)
    assert len(seen) == 1


def test_apply_visits_children_first():
    seen = []
    mlp().apply(lambda b: seen.append(type(b).__name__))
    assert seen[-1] == "HybridSequential" and seen.count("Dense") == 3


def test_summary_counts_parameters(capsys):
    net = mlp()
    net.initialize()
    net(nd.ones((1, 512)))
    net.summary(nd.ones((1, 512)))
    text = capsys.readouterr().out
    assert re.search(r"Dense \(hybridsequential0_dense0\) +\(1, 256\) +131328\n", text)
    total = 512 * 256 + 256 + 256 * 128 + 128 + 128 * 2 + 2
    assert re.search(rf"Total parameters +{total}\n", text)
    net.hybridize()
    with pytest.raises(mx.HybridError, match="call hybridize\\(active=False\\) first"):
        net.summary(nd.ones((1, 512)))


def test_cast_changes_the_dtype_of_everything():
    net = nn.Dense(2, in_units=3)
    net.initialize()
    net.hybridize(backend="numpy")
    net(nd.ones((1, 3)))
    net.cast("float64")
    assert net(nd.ones((1, 3), dtype="float64")).dtype is np.float64
    assert net.weight.grad().dtype is np.float64


# -- export and load -------------------------------------------------------------------
def test_export_and_imports_without_the_class(tmp_path):
    net, x = Printing(prefix="my_"), nd.random.normal(shape=(1, 4))
    net.initialize()
    net.hybridize(backend="numpy")
    before = net(x)
    files = net.export(str(tmp_path / "my_mlp"), epoch=7)
    assert files == (str(tmp_path / "my_mlp-symbol.json"), str(tmp_path / "my_mlp-0007.params"))
    del net
    loaded = gluon.SymbolBlock.imports(files[0], ["data"], files[1])
    same(loaded(x), before)
    loaded.hybridize(backend="numpy")
    same(loaded(x), before)
    same(loaded(nd.concat(x, x, dim=0))[1:], before)
    assert list(loaded.collect_params()) == [
        "my_dense0_weight",
        "my_dense0_bias",
        "my_dense1_weight",
        "my_dense1_bias",
    ]


def test_an_imported_net_can_be_trained(tmp_path):
    net = nn.Dense(1, in_units=2, prefix="d_")
    net.initialize("ones")
    net.hybridize(backend="numpy")
    net(nd.ones((1, 2)))
    loaded = gluon.SymbolBlock.imports(*_exported(net, tmp_path))
    trainer = gluon.Trainer(loaded.collect_params(), "sgd", {"learning_rate": 0.5})
    with autograd.record():
        loss = loaded(nd.array([[1, 2]]))
    loss.backward()
    trainer.step(1)
    assert loaded.params["d_weight"].data().asnumpy().tolist() == [[0.5, 0]]


def _exported(net, folder):
    symbol, params = net.export(str(folder / "net"))
    return symbol, ["data"], params


@pytest.mark.parametrize(
    "save, load",
    [
        ("save_parameters", "load_parameters"),
        ("save_params", "load_params"),
        ("save_parameters", "load_params"),
        ("save_params", "load_parameters"),
    ],
)
def test_parameters_of_one_net_can_be_loaded_into_another(tmp_path, save, load):
    net, other, x = mlp(), mlp(), nd.ones((1, 6))
    net.initialize()
    before = net(x)
    file = str(tmp_path / "net.params")
    getattr(net, save)(file)
    getattr(other, load)(file)  # no initialize, no shapes: the file has both
    same(other(x), before)


def test_two_kinds_of_names_in_files(tmp_path):
    net = nn.HybridSequential()
    with net.name_scope():
        net.add(nn.Dense(1, in_units=1))
    net.initialize()
    net.save_parameters(str(tmp_path / "new"))
    net.save_params(str(tmp_path / "old"))
    assert list(nd.load(str(tmp_path / "new"))) == ["0.weight", "0.bias"]
    assert list(nd.load(str(tmp_path / "old"))) == ["dense0_weight", "dense0_bias"]


# -- imperative and symbolic -----------------------------------------------------------
def add(a, b):
    return a + b


def fancy_func(a, b, c, d):
    e = add(a, b)
    f = add(c, d)
    return add(e, f)


def test_a_plain_function_of_arrays_is_hybridized():
    calls = []

    def counted(a, b, c, d):
        calls.append(type(a).__name__)
        return fancy_func(a, b, c, d)

    fused = mx.function(counted, target="numpy")
    args = [nd.array([float(i)]) for i in (1, 2, 3, 4)]
    assert counted(*args).asscalar() == 10
    assert fused(*args).asscalar() == fused(*args).asscalar() == 10
    assert calls == ["NDArray", "Symbol"]
    fused(*(nd.ones((2, 2)) for _ in range(4)))
    assert calls == ["NDArray", "Symbol", "Symbol"] and len(fused.plans) == 2
    assert fused.__name__ == "counted"
    assert fused(*map(sym.var, "abcd")).list_arguments() == ["a", "b", "c", "d"]


def test_fancy_func_is_one_kernel():
    fused = mx.function(fancy_func)
    assert fused(*(nd.array([i]) for i in (1, 2, 3, 4))).asscalar() == 10
    (plan,) = fused.plans.values()
    assert plan.target == "cpu" and plan.n_kernels == 1


def test_a_function_has_gradients_and_can_be_a_decorator():
    @mx.function(target="numpy")
    def cube(x):
        return x * x * x

    x = nd.array([2.0])
    x.attach_grad()
    with autograd.record():
        y = cube(x)
    y.backward()
    assert x.grad.asscalar() == 12


def test_training_learns_the_same_eager_and_hybridized():
    def train(hybrid):
        mx.random.seed(3)
        net = nn.HybridSequential()
        net.add(nn.Dense(8, activation="tanh", in_units=2), nn.Dense(1, in_units=8))
        net.initialize(mx.init.Xavier())
        if hybrid:
            net.hybridize(backend="numpy")
        x = nd.array([[0, 0], [0, 1], [1, 0], [1, 1]])
        label = nd.array([[0], [1], [1], [0]])
        loss_of = gluon.loss.L2Loss()
        trainer = gluon.Trainer(
            net.collect_params(), "sgd", {"learning_rate": 0.5, "momentum": 0.9}
        )
        losses = []
        for _ in range(150):
            with autograd.record():
                loss = loss_of(net(x), label)
            loss.backward()
            trainer.step(4)
            losses.append(loss.mean().asscalar())
        return losses

    eager, hybrid = train(False), train(True)
    assert eager[-1] < 0.01 < eager[0]
    np.testing.assert_allclose(hybrid[:20], eager[:20], rtol=1e-3)
    assert hybrid[-1] < 0.01
