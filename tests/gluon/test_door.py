"""How programs come in: modules by MXNet's names, and wrong things where arrays belong."""

import importlib
import inspect
import json
import pickle
import re

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import ALIASES, INSTEAD, ROADS, gluon, nd, sym
from minihybrid.core import lazy
from minihybrid.core.files import FileError
from minihybrid.gluon import loss, nn, rnn


@pytest.mark.parametrize("path", ALIASES)
def test_modules_have_mxnets_names_too(path):
    module = importlib.import_module(f"minihybrid.{path}")
    real = lazy.resolve(ROADS[path]) if path in ROADS else ALIASES[path]
    assert dir(module) == dir(real) or set(dir(module)) < set(dir(real))  # those of its own
    public = [name for name in dir(real) if not name.startswith("_")]
    pairs = [(getattr(module, name), getattr(real, name)) for name in public]
    assert all(mine is yours or mine == yours for mine, yours in pairs)  # nan is not nan
    parent, _, name = path.rpartition(".")
    exec(f"from minihybrid.{parent}".rstrip(".") + f" import {name} as found", found := {})
    assert found["found"] is not None


def test_names_of_base_and_runtime():
    assert isinstance(np.float32(1), mx.base.numeric_types) and isinstance("", mx.base.string_types)
    assert isinstance(3, mx.base.integer_types) and mx.base.py_str(b"a") == "a"
    assert mx.runtime.Features().is_enabled("CUDA") == bool(mx.num_gpus())
    assert all(isinstance(f.enabled, bool) for f in mx.runtime.feature_list())
    with pytest.raises(RuntimeError, match="'NOTHING' is unknown; there are CUDA"):
        mx.runtime.Features().is_enabled("nothing")
    assert nn.SymbolBlock is gluon.SymbolBlock


class Tensor:
    """As much of another library's tensor as may lead astray: it has shapes and sums."""

    shape, dtype, ndim = (2, 3), "torch.float32", 2

    def __len__(self):
        return 2

    def __getitem__(self, key):
        return self

    def __add__(self, other):
        return self

    __mul__ = __radd__ = __rmul__ = __sub__ = __rsub__ = __add__

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: self


STRANGERS = {
    "NumPy": np.ones((2, 3, 8, 8), "float32"),
    "list": [[1.0, 2.0]],
    "empty": [],
    "tensor": Tensor(),
    "float": 1.5,
    "None": None,
}
ARGUMENTS = {
    "Activation": ("relu",),
    "Dense": (2,),
    "Dropout": (0.5,),
    "Embedding": (3, 4),
    "HybridLambda": ("relu",),
    "LeakyReLU": (0.1,),
    "ReflectionPad2D": (1,),
    **dict.fromkeys(("RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"), (2,)),
    "DropoutCell": (0.5,),
    **{f"PixelShuffle{n}D": (2,) for n in (1, 2, 3)},
}
GLOBAL = ("Global", "Max", "Avg")
PARENTS = {"Block", "HybridBlock", "SymbolBlock", "Loss", "RecurrentCell", "HybridRecurrentCell"}
PARENTS |= {"Lambda", "ModifierCell", "BidirectionalCell"}  # a Lambda is user's code


def layers():
    """Class of each layer -> its arguments."""
    arguments = {}
    for module in (nn, loss, rnn, gluon.contrib.nn):
        for name, kind in vars(module).items():
            if not inspect.isclass(kind) or not issubclass(kind, gluon.Block) or name in PARENTS:
                continue
            axes = name.removesuffix("Transpose")[-2:-1]
            usual = (2, (1,) * int(axes)) if axes.isdigit() else ()
            arguments[kind] = ARGUMENTS.get(name, () if name.startswith(GLOBAL) else usual)
    return arguments


def made(kind, args):
    if issubclass(kind, rnn.ModifierCell):
        args = (rnn.GRUCell(2),)
    net = kind(*args)
    if hasattr(net, "add"):
        net.add(rnn.GRUCell(2) if issubclass(kind, rnn.RecurrentCell) else nn.Dense(2))
    return net


def refused(net, *inputs):
    with pytest.raises(mx.MXNetError) as caught:
        net(*inputs)
    message = str(caught.value)
    assert "\n" not in message and len(message) < 400 and type(caught.value) is not mx.TraceError


@pytest.mark.parametrize("kind", layers(), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("hybridized", [False, True])
def test_what_is_no_array_gets_one_sentence(kind, hybridized):
    args = layers()[kind]
    for initialized in (False, True):
        for stranger in STRANGERS.values():
            for count in (1, 2):
                net = made(kind, args)
                if initialized:
                    net.initialize()
                if hybridized:
                    net.hybridize()
                refused(net, *[stranger] * count)


def test_the_law_has_seen_all_layers():
    assert len(layers()) > 50


@pytest.mark.parametrize("name", ["zeros", "ones", "full", "eye", "arange", "linspace"])
@pytest.mark.parametrize("F", [nd, sym], ids=["nd", "sym"])
def test_misspelt_arguments_are_refused_where_arrays_are_made(F, name):
    args = {"full": ((2,), 1), "linspace": (0, 1, 3), "arange": (3,), "eye": (2,)}.get(
        name, ((2,),)
    )
    with pytest.raises(mx.AttrError, match=r"'dtyp' \(did you mean 'dtype'\?\)"):
        getattr(F, name)(*args, dtyp="int32")


@pytest.mark.parametrize(
    ("wrong", "meant"), [("stride", "strides"), ("pad", "padding"), ("kernel", "kernel_size")]
)
def test_misspelt_arguments_of_layers_are_refused(wrong, meant):
    with pytest.raises(mx.AttrError, match=rf"'{wrong}' \(did you mean '{meant}'\?\)"):
        nn.Conv2D(8, 3, **{wrong: 2})


def test_none_is_an_input_that_may_be_left_out():
    class Masked(nn.HybridBlock):
        def hybrid_forward(self, F, x, mask=None):
            return x if mask is None else x * mask

    for hybridized in (False, True):
        net = Masked()
        net.hybridize(hybridized)
        assert net(nd.ones((2,)), None).asnumpy().tolist() == [1, 1]
        assert net(nd.ones((2,)), nd.zeros((2,))).asnumpy().tolist() == [0, 0]


# -- files -----------------------------------------------------------------------------
def unknown():
    """The text of a graph with operators that nobody has."""
    x = sym.sin(sym.cos(sym.cos(sym.var("x"), name="c0"), name="c1"), name="s0")
    return x.tojson().replace('"cos"', '"Strange"').replace('"sin"', '"stranger"')


def test_unknown_operators_are_told_when_a_graph_is_loaded(tmp_path):
    (tmp_path / "net-symbol.json").write_text(unknown())
    for load in (sym.load, lambda path: gluon.SymbolBlock.imports(path, ["x"])):
        with pytest.warns(UserWarning, match=r"nodes of Strange \(2\), stranger \(1\)") as warned:
            load(str(tmp_path / "net-symbol.json"))
        assert len(warned) == 1


def test_shapes_through_an_unknown_operator_are_refused():
    with pytest.warns(UserWarning, match="Strange"):
        graph = sym.fromjson(unknown())
    assert graph.infer_shape_partial(x=(2, 3)) == ([(2, 3)], [()], [])
    for ask in (graph.infer_shape, lambda x: mx.viz.print_summary(graph, {"x": x})):
        with pytest.raises(mx.HybridError, match="there is no operator 'Strange' here"):
            ask(x=(2, 3))


def test_a_pointer_of_git_lfs_is_named(tmp_path):
    path = tmp_path / "net.params"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 7\n")
    for load in (nd.load, nn.Dense(1).load_parameters, sym.load):
        with pytest.raises(FileError, match="net.params' is a pointer of Git LFS.*git lfs pull"):
            load(str(path))


@pytest.mark.parametrize("protocol", range(2, 6))
def test_a_pickle_is_named_and_not_read(tmp_path, protocol):
    """As MXNet's Trainer and Module write their states."""
    path = str(tmp_path / "some.states")
    with open(path, "wb") as file:
        pickle.dump({0: None, 1: print}, file, protocol)
    trainer = gluon.Trainer(nn.Dense(2, in_units=2).collect_params(), "sgd")
    for read in (trainer.load_states, nd.load):
        with pytest.raises(FileError, match="some.states' is a pickle, which is not read"):
            read(path)


@pytest.mark.parametrize("name", INSTEAD)
def test_what_is_left_out_of_mxnet_says_what_to_use(name):
    with pytest.raises(AttributeError, match=f"no '{name}'; {re.escape(INSTEAD[name])}"):
        getattr(mx, name)


def test_files_name_initializers_as_mxnet_does():
    net = nn.HybridSequential()
    net.add(nn.Dense(2, bias_initializer="ones"), nn.PReLU())
    net.add(nn.Dense(2, weight_initializer=mx.init.Normal(0.5), bias_initializer=mx.init.One()))
    net.initialize()
    net.hybridize()
    net(nd.ones((1, 2)))
    nodes = json.loads(net(sym.var("x")).tojson())["nodes"]
    initializers = [n["attrs"].get("__init__") for n in nodes if n["op"] == "null" and "attrs" in n]
    assert initializers == [  # seen in the files of MXNet 1.9.1
        None,
        "ones",
        '["constant", {"value": 0.25}]',
        '["normal", {"sigma": 0.5}]',
        '["one", {}]',
    ]
    values = mx.init.Constant(nd.array([1, 2]))
    assert values.dumps() == '["constant", {"value": [1.0, 2.0]}]'


def test_symbols_of_np_say_so():
    a = sym.var("a").as_np_ndarray()
    assert (repr(a), repr(sym.var("a"))) == ("<_Symbol a>", "<Symbol a>")
