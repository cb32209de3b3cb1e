"""Whatever `export` and `save_parameters` write, `imports` and `load_parameters` read."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from minihybrid.util import np_shape
from random_nets import LAYERS, TwoHeads

from minihybrid import gluon, nd, onnx, sym
from minihybrid.core.arguments import arrays_in, restore
from minihybrid.core.op import AttrError
from minihybrid.gluon import nn, rnn
from minihybrid.gluon.model_zoo import vision

GOLDEN = Path(__file__).parents[1] / "golden"


# -- nets: () -> a new one, the same in each call; and the shapes of its inputs ----------
class Two(gluon.HybridBlock):
    """Two inputs, one of which only is seen by a layer."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.body = nn.Dense(3, in_units=4)

    def hybrid_forward(self, F, left, right):
        return self.body(left) * right


class Nested(Two):
    """An array, and a list of two others."""

    def hybrid_forward(self, F, left, others):
        return self.body(left) * others[0] + others[1]


class Direct(gluon.HybridBlock):
    """A `forward` without F."""

    def __init__(self):
        super().__init__()
        self.body = nn.Dense(3, in_units=4)

    def forward(self, left, right):
        return self.body(left) - right


class Shared(gluon.HybridBlock):
    """Two layers with the same parameters."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.first = nn.Dense(4, in_units=4)
            self.second = nn.Dense(4, in_units=4, params=self.first.params)

    def hybrid_forward(self, F, x):
        return self.second(F.relu(self.first(x)))


class Constant(gluon.HybridBlock):
    """A parameter that is not trained."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.scale = self.params.get_constant("scale", nd.array([[1, 2, 3, 4]]))

    def hybrid_forward(self, F, x, scale):
        return x * scale


class Scaled(gluon.HybridBlock):
    """A parameter without axes, and one of one axis of length 1."""

    def __init__(self):
        super().__init__()
        self.scale = gluon.Parameter("scale", shape=())
        self.shift = gluon.Parameter("shift", shape=(1,))

    def forward(self, x):
        return x * self.scale.data() + self.shift.data()


class Recurrent(gluon.HybridBlock):
    """A recurrent layer, which makes its own first states."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.layer = rnn.LSTM(3, 2, input_size=4)

    def hybrid_forward(self, F, x):
        return self.layer(x)


def graph(stem=""):
    """A symbol of a layer with states, whose parameters' names begin alike or not."""
    x = sym.FullyConnected(sym.var("first"), num_hidden=3, name=f"{stem}fc")
    return sym.BatchNorm(x, name=f"{stem}norm") + sym.var("second")


def symbolic(stem=""):
    return gluon.SymbolBlock(graph(stem), [sym.var("first"), sym.var("second")])


def without_parameters():
    return gluon.SymbolBlock(sym.relu(sym.var("x")), sym.var("x"))


def one_parameter():
    x = sym.FullyConnected(sym.var("x"), num_hidden=3, no_bias=True, name="only")
    return gluon.SymbolBlock(x, sym.var("x"))


class Child(gluon.HybridBlock):
    """A SymbolBlock, and a layer after it."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.features, self.output = symbolic("features_"), nn.Dense(2)

    def hybrid_forward(self, F, first, second):
        return self.output(self.features(first, second))


def built(kind, *args, **kwargs):
    """A function that makes a block, initialized."""

    def make():
        net = kind(*args, **kwargs)
        net.initialize()
        return net

    return make


def in_stack(name, shape):
    """(function, shape) of a layer of `random_nets`, with the first numbers that fit."""
    for i, j in np.ndindex(3, 3):
        if LAYERS[name](shape, i, j) is not None:
            return built(LAYERS[name], shape, i, j), shape
    return None


NETS = {
    "two inputs": (built(Two), (2, 4), (2, 3)),
    "direct": (built(Direct), (2, 4), (2, 3)),
    "two outputs": (built(lambda: TwoHeads(nn.Dense(3))), (2, 4)),
    "shared": (built(Shared), (2, 4)),
    "constant": (built(Constant), (2, 4)),
    "SymbolBlock": (built(symbolic), (2, 4), (2, 3)),
    "SymbolBlock of one stem": (built(symbolic, "net_"), (2, 4), (2, 3)),
    "SymbolBlock of one parameter": (built(one_parameter), (2, 4)),
    "SymbolBlock without parameters": (built(without_parameters), (2, 4)),
    "SymbolBlock as a child": (built(Child), (2, 4), (2, 3)),
    "nested inputs": (built(Nested), (2, 4), ((2, 3), (2, 3))),
    "without axes": (built(Scaled), (2, 4)),
    "recurrent": (built(Recurrent), (5, 2, 4)),
    "embedding": (built(nn.Embedding, 5, 3), (2, 4)),
}
for layer in LAYERS:
    for size in (2, 6), (2, 4, 6), (2, 4, 6, 6):
        if case := in_stack(layer, size):
            NETS[f"{layer} {len(size)}"] = case
BIG = {
    name: (built(vision.get_model, name, classes=4), shape)
    for name, shape in [("mobilenet0.25", (1, 3, 32, 32))]
}
ALL = [*NETS, *(pytest.param(name, marks=pytest.mark.slow) for name in BIG)]


def drawn(rng, shape):
    """An array of a shape, or a list of arrays of some."""
    if isinstance(shape[0], tuple):
        return [drawn(rng, part) for part in shape]
    return nd.array(rng.uniform(0, 2, shape))


def draw_parameters(net):
    """Numbers that are neither 0 nor 1, and not negative, since some are variances."""
    rng = np.random.default_rng(1)
    for param in net.collect_params().values():
        param.set_data(nd.array(rng.uniform(0.1, 0.9, param.shape)).reshape(param.shape))


def ready(name):
    """(the function that makes the net, a net with odd parameters, its inputs, its answers)."""
    make, *shapes = (NETS | BIG)[name]
    rng = np.random.default_rng(0)
    inputs = [drawn(rng, shape) for shape in shapes]
    net = make()
    net(*inputs)  # this finds the shapes
    draw_parameters(net)
    return make, net, inputs, answers(net, inputs)


def answers(net, inputs):
    """The outputs of a block as ndarrays."""
    actual = net(*inputs)
    return [out.asnumpy() for out in (actual if isinstance(actual, (list, tuple)) else [actual])]


def check(actual, expected):
    """The same outputs, up to the order of sums."""
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 1e-4 * np.abs(b).max())


@pytest.mark.parametrize("name", ALL)
def test_saved_parameters_are_read(name, tmp_path):
    make, net, inputs, expected = ready(name)
    path = str(tmp_path / "net")
    for write, read in (
        (net.save_parameters, "load_parameters"),
        (lambda file: net.save_parameters(file, deduplicate=True), "load_parameters"),
        (net.save_params, "load_params"),
        (net.save, "load"),
    ):
        own = all(n.startswith(net.prefix) for n in net.collect_params())
        if read == "load_params" and not own:
            continue  # `save_params` refuses names that do not begin with the net's prefix
        write(path)
        for used in False, True:
            other = make()
            if used:  # its shapes are known
                other(*inputs)
            getattr(other, read)(path)
            check(answers(other, inputs), expected)


@pytest.mark.parametrize("name", ALL)
def test_an_exported_net_is_read_and_exported_again(name, tmp_path):
    _, net, inputs, expected = ready(name)
    for turn in range(3):
        net.hybridize(backend="numpy")
        net(*inputs)
        files = net.export(str(tmp_path / f"net{turn}"))
        names = [n for n in sym.load(files[0]).list_inputs() if n not in net.collect_params()]
        net.load_parameters(files[1])
        net, inputs = gluon.SymbolBlock.imports(files[0], names, files[1]), arrays_in(inputs)
        check(answers(net, inputs), expected)


@pytest.mark.parametrize("name", ALL)
def test_an_exported_graph_alone_is_read_and_exported_again(name, tmp_path):
    if name == "without axes":  # outside of np's rules, () is an unknown shape, as in MXNet
        with np_shape():
            read_graph_alone(name, tmp_path)
    else:
        read_graph_alone(name, tmp_path)


def read_graph_alone(name, tmp_path):
    make, _, inputs, _ = ready(name)
    net = make()
    net.hybridize(backend="numpy")  # its first call is traced: no shape is known before
    net(*inputs)
    draw_parameters(net)
    expected = answers(net, inputs)
    for turn in range(2):
        graph, params = net.export(str(tmp_path / f"net{turn}"))
        names = [n for n in sym.load(graph).list_inputs() if n not in net.collect_params()]
        net = gluon.SymbolBlock.imports(graph, names)  # whose parameters come later
        inputs = arrays_in(inputs)
        net.initialize()
        net.hybridize(backend="numpy")
        net(*inputs)
        net.load_parameters(params)
        check(answers(net, inputs), expected)


@pytest.mark.parametrize("name", ALL)
def test_an_exported_program_runs_beside_its_weights(name, tmp_path):
    _, net, inputs, expected = ready(name)
    net.hybridize(backend="numpy")
    net(*inputs)
    for _ in range(2):  # the second time over files of its own
        program, _ = net.export(str(tmp_path / "net"), format="numpy")
    spec = importlib.util.spec_from_file_location("exported", program)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    actual = module.predict(module.load(), *(x.asnumpy() for x in arrays_in(inputs)))
    check(actual if isinstance(actual, tuple) else [actual], expected)


@pytest.mark.parametrize("name", ALL)
def test_a_wrong_input_is_answered_with_the_right_one(name, tmp_path):
    _, net, inputs, _ = ready(name)
    net.hybridize(backend="numpy")
    net(*inputs)
    graph, params = net.export(str(tmp_path / "net"))
    names = [n for n in sym.load(graph).list_inputs() if n not in net.collect_params()]
    for wrong in "input", "zzz":
        with pytest.raises(AttrError, match=f"the symbol has no variable '{wrong}'") as error:
            gluon.SymbolBlock.imports(graph, [wrong], params)
        assert any(f"'{name}'" in str(error.value) for name in names)


@pytest.mark.parametrize("name", sorted(NETS))
@pytest.mark.parametrize("kind", [list, tuple, lambda arrays: dict(enumerate(arrays))])
def test_inputs_in_a_list_are_refused_in_words(name, kind, tmp_path):
    _, net, inputs, _ = ready(name)
    net.hybridize(backend="numpy")
    net(*inputs)
    files, inputs = net.export(str(tmp_path / "net")), arrays_in(inputs)
    names = [n for n in sym.load(files[0]).list_inputs() if n not in net.collect_params()]
    block = gluon.SymbolBlock.imports(files[0], names, files[1])
    for active in False, True:
        block.hybridize(active, backend="numpy")
        with pytest.raises(AttrError, match=rf"found a .*; call net\({', '.join(names)}\)"):
            block(kind(inputs))


# -- a net and its exported graph, cast ---------------------------------------------------
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_casting_an_exported_net_casts_what_casting_the_net_casts(name, dtype, tmp_path):
    if name == "recurrent":
        pytest.skip("the graph has its first states, which are float32")
    _, net, inputs, _ = ready(name)
    net.hybridize(backend="numpy")
    net(*inputs)
    files = net.export(str(tmp_path / "net"))
    for state in sym.load(files[0]).list_auxiliary_states():
        param = net.collect_params()[state]
        param.set_data(param.data() * 1e5)  # more than float16 holds
    files = net.export(str(tmp_path / "net"))
    names = [n for n in sym.load(files[0]).list_inputs() if n not in net.collect_params()]
    other = gluon.SymbolBlock.imports(files[0], names, files[1])
    net.cast(dtype)
    other.cast(dtype)
    params, others = net.collect_params(), other.collect_params()
    assert {n: p.dtype for n, p in params.items()} == {n: p.dtype for n, p in others.items()}
    inputs = [restore(x, (a.astype(dtype) for a in arrays_in([x]))) for x in inputs]
    actual, expected = answers(other, arrays_in(inputs)), answers(net, inputs)
    for a, b in zip(actual, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


# -- what MXNet 1.9.1 wrote of a net with a SymbolBlock inside ----------------------------
def test_the_parameters_of_a_symbol_block_are_called_as_in_mxnet(tmp_path):
    class Child(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            x = sym.FullyConnected(sym.var("data"), num_hidden=3, name="stem_fc")
            x = sym.BatchNorm(x, name="stem_norm", fix_gamma=False)
            self.features = gluon.SymbolBlock(x, [sym.var("data")])
            self.output = nn.Dense(2)

        def hybrid_forward(self, F, x):
            return self.output(self.features(x))

    file, net = str(GOLDEN / "symbol-child.parameters"), Child()
    recorded = nd.load(str(GOLDEN / "symbol-child-answers.nd"))
    net.load_parameters(file)
    check(answers(net, [recorded["x"]]), [recorded["y"].asnumpy()])
    net.save_parameters(str(tmp_path / "ours"))
    assert nd.load(str(tmp_path / "ours")).keys() == nd.load(file).keys()


# -- ONNX, with the inputs' own names -----------------------------------------------------
INPUTS = {  # name of a net -> what its inputs are called in ONNX; of all others: data
    "two inputs": ["left", "right"],
    "direct": ["left", "right"],
    "nested inputs": ["left", "others0", "others1"],
    "SymbolBlock": ["first", "second"],
    "SymbolBlock of one stem": ["first", "second"],
    "SymbolBlock of one parameter": ["x"],
    "SymbolBlock without parameters": ["x"],
    "SymbolBlock as a child": ["first", "second"],
}


@pytest.mark.parametrize("name", ALL)
def test_onnx_is_read_and_names_the_inputs(name, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    if name == "recurrent":
        pytest.skip("a recurrent layer's batch has one length in ONNX")
    _, net, inputs, expected = ready(name)
    for turn in range(2):
        net.hybridize(backend="numpy")
        net(*inputs)
        (file,) = net.export(str(tmp_path / f"net{turn}"), format="onnx")
        actual = [name for name, _ in onnx.get_model_metadata(file)["input_tensor_data"]]
        assert actual == INPUTS.get(name, ["data"])
        net, inputs = onnx.import_to_gluon(file), arrays_in(inputs)
        check(answers(net, inputs), expected)
