"""Names in files are anything: no message or print has more of them than one line."""

import itertools
import json
import unicodedata
import warnings

import numpy as np
import onnx
import pytest
from onnx import helper

import minihybrid as mx
from minihybrid import gluon, nd, sym
from minihybrid.core.op import legible
from minihybrid.core.params import pack_arrays
from minihybrid.gluon import nn

HOSTILE = [
    "\x1b[31m\x1b[2Jred",
    "a\nTraceback: all is well",
    "\r\x08\x08\x07over",
    "\u202egpj.exe",
    "\u2066x\u2069\u200b",
    "\x00\x9b0m",
    "n" * 5000 + "\x1b]0;t",
    "\u2028line\u2029",
    "{0}{name}%s%n",
    "'''\"\\",
    "\ufeff\u00ad",
]
MOST = 3000  # letters of a message, of which some 2 000 are text


def assert_legible(text, n_lines=1):
    """One line, no signs that a terminal obeys or that turn others round."""
    lines = text.split("\n")
    assert len(lines) <= n_lines and len(text) < MOST * n_lines, ascii(text[:300])
    for c in "".join(lines).replace("\t", ""):
        assert unicodedata.category(c)[0] != "C" and unicodedata.category(c) not in ("Zl", "Zp"), (
            ascii(text[:300])
        )


def node(op, name, *inputs, **attrs):
    refs = [[i, 0, 0] for i in inputs]
    return {"op": op, "name": name, "attrs": attrs, "inputs": refs}


def graphs(bad):
    """Symbol files that are refused, or that make what is asked of them refuse."""
    yield [node("null", bad), node(bad, bad, 0, **{bad: bad}), node(bad, bad, 1)]
    yield [node("null", bad), node("null", bad), node("elemwise_add", "y", 0, 1)]
    yield [node("null", bad, __shape__=bad, __dtype__=bad)]
    yield [node("null", bad), node("relu", bad, 0, 5)]
    yield [node("null", bad), node("FullyConnected", bad, 0, num_hidden=bad)]
    yield [node("null", bad), node("Activation", bad, 0, act_type=bad)]
    yield [node("null", bad, __init__=bad), node("softmax", bad, 0, axis="7")]
    yield [
        node("null", bad),
        node("Reshape", bad, 0, shape="(7,)"),
        node("dot", bad, 1, 0),
        node("Concat", bad, 2, 1, dim="9"),
    ]
    yield [node("null", "x"), {"op": bad, "name": bad, "inputs": bad}]
    yield [node("null", "x"), {"op": [bad], "name": bad, "inputs": [[bad, bad, bad]]}]
    yield [{"name": {bad: bad}}, bad]
    yield [node("null", bad), node("Dropout", bad, 0, p=bad, **{f"__{bad}__": bad})]


def models(bad):
    """ONNX files."""
    x = helper.make_tensor_value_info(bad, 1, [2, bad, 3])
    for kind, attrs in (
        (bad, {}),
        ("Relu", {bad: bad}),
        ("Reshape", {}),
        ("Softmax", {"axis": 9}),
        ("Cast", {"to": 99}),
        ("Conv", {"auto_pad": bad}),
    ):
        made = helper.make_node(kind, [bad, "w"][:2], ["y" + bad], name=bad, domain="", **attrs)
        w = helper.make_tensor("w", 1, [2], [1.0, 2.0])
        w.doc_string = bad
        out = helper.make_tensor_value_info("y" + bad, 1, [bad])
        graph = helper.make_graph([made], bad, [x], [out], [w])
        yield helper.make_model(
            graph,
            producer_name=bad,
            opset_imports=[helper.make_opsetid("", 13), helper.make_opsetid(bad, 1)],
        )


def use(symbol, path, bad):
    """What people do with a symbol that they have read."""
    yield lambda: symbol.infer_shape(**{symbol.list_arguments()[0]: (2, 3)})
    yield lambda: symbol.infer_shape()
    yield lambda: symbol.eval(**{symbol.list_arguments()[0]: nd.ones((2, 3))})
    yield lambda: symbol.bind(mx.cpu(), {})
    yield lambda: symbol[bad + "!"]
    yield lambda: symbol(**{bad + "!": symbol})
    yield lambda: symbol.simple_bind(mx.cpu())
    for backend in ("numpy", "cpu"):

        def call(backend=backend):
            net = gluon.SymbolBlock(symbol, sym.var(symbol.list_arguments()[0]))
            net.hybridize(backend=backend)
            net.initialize()
            net(nd.ones((2, 3)))

        yield call


def messages_of(action):
    """The message of an action, and its warnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            action()
        except (mx.base.MXNetError, KeyError, IndexError) as error:
            yield str(error)
    yield from (str(warning.message) for warning in seen)


@pytest.mark.filterwarnings("ignore:.*there is no operator")  # `said` asks for what it says
@pytest.mark.parametrize("bad", HOSTILE, ids=range(len(HOSTILE)))
def test_no_reader_passes_on_what_a_file_says_as_it_is(bad, tmp_path, capsys):
    count, refused = 0, 0
    path = str(tmp_path / "f")
    actions = []
    for nodes in graphs(bad):
        text = json.dumps(
            {
                "nodes": nodes,
                "heads": [[len(nodes) - 1, 0, 0]],
                "attrs": {"mxnet_version": ["int", 10901]},
            }
        )
        (tmp_path / "s.json").write_text(text)
        actions.append(lambda: sym.load(str(tmp_path / "s.json")))
        for message in messages_of(actions.pop()):
            assert_legible(message)
            refused += 1
        try:
            symbol = sym.fromjson(text)
        except mx.base.MXNetError:
            continue
        for action in use(symbol, path, bad):
            for message in messages_of(action):
                assert_legible(message)
                count += 1
        assert_legible(repr(symbol))
        assert_legible(symbol.debug_str(), 100)
        mx.viz.print_summary(symbol)
        assert_legible(capsys.readouterr().out, 100)
        assert_legible(mx.core.graph.Graph.of(symbol).show(), 10)
    assert refused >= 5 and count >= 10
    (tmp_path / "p").write_bytes(
        pack_arrays([np.ones(2, "f"), np.zeros((2, 0), "f")], [f"arg:{bad}", bad])
    )
    net = nn.Dense(2, in_units=2)
    for action in (
        lambda: net.load_parameters(str(tmp_path / "p")),
        lambda: mx.model.load_params(path[:-1] + "p", 0),
        lambda: gluon.Trainer(net.collect_params(), "sgd").load_states(str(tmp_path / "p")),
        lambda: net.collect_params().load(str(tmp_path / "p")),
        lambda: nd.load(str(tmp_path / bad.replace("\x00", "")[:99])),
        lambda: nd.load_frombuffer(b"x", bad),
        lambda: sym.fromjson("{", bad),
    ):
        messages = list(messages_of(action))
        assert messages
        for message in messages:
            assert_legible(message)
    assert_legible(repr(gluon.ParameterDict(bad)), 3)
    n_models = 0
    for model in models(bad):
        onnx.save(model, path)
        for message in messages_of(lambda: mx.onnx.import_model(path)):
            assert_legible(message)
            n_models += 1
    assert n_models >= 3


def test_what_is_legible_stays_as_it_is():
    for text in ("fc1_weight", "größe é 漢字 \U0001f600", "a b"):
        assert legible(text) == text
    for c in map(chr, itertools.chain(range(0x300), range(0x2000, 0x2100))):
        assert_legible(legible(f"a{c}b"))
    assert str(mx.base.MXNetError("a\nb")) == "a\\nb"
