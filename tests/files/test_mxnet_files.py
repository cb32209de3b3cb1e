"""Files of MXNet, from 0.8 to 1.9.1, are read to the answers that MXNet gives."""

import json
from pathlib import Path

import golden_nets
import numpy as np
import pytest

from minihybrid import AttrError, HybridError, cpu, gluon, model, nd, npx, sym, viz
from minihybrid.core import params
from minihybrid.core.files import FileError
from minihybrid.formats import legacy
from minihybrid.gluon import nn
from minihybrid.ops import OPS

FOLDER = Path(__file__).parents[1] / "golden" / "mxnet_files"
OLD = sorted(p.name.removesuffix("-symbol.json") for p in (FOLDER / "old").glob("*-symbol.json"))
ARRAYS = np.array([[1, 2, 3], [0, 5, 6]])


def file(name):
    return str(FOLDER / name)


NETS = {name: getattr(golden_nets, name) for name in ("images", "words", "halves")}


def assert_answers(net, name):
    recorded = nd.load(file(f"{name}.nd"))
    got, expected = net(recorded["x"]), recorded["y"]
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    tolerance = 2e-3 if got.dtype == np.float16 else 1e-5
    np.testing.assert_allclose(got.asnumpy(), expected.asnumpy(), tolerance, tolerance)


# -- what MXNet 1.9.1 writes -----------------------------------------------------------
@pytest.mark.parametrize("backend", [None, "numpy"])
@pytest.mark.parametrize("name", NETS)
def test_an_exported_net(name, backend):
    net = gluon.SymbolBlock.imports(
        file(f"{name}-symbol.json"), ["data"], file(f"{name}-0003.params")
    )
    net.hybridize(backend is not None, backend=backend)
    assert_answers(net, name)


@pytest.mark.parametrize("kind", ["parameters", "prefixed"])
@pytest.mark.parametrize("name", NETS)
def test_saved_parameters_by_structure_and_by_prefix(name, kind):
    net = NETS[name](nn)
    net.load_parameters(file(f"{name}.{kind}"))
    assert_answers(net, name)


@pytest.mark.parametrize("name", NETS)
def test_files_of_parameters_are_written_as_mxnet_writes_them(name, tmp_path):
    net = NETS[name](nn)
    net.load_parameters(file(f"{name}.parameters"))
    net.save_parameters(tmp_path / "ours")
    assert (tmp_path / "ours").read_bytes() == (FOLDER / f"{name}.parameters").read_bytes()
    net.collect_params().save(tmp_path / "ours")
    assert (tmp_path / "ours").read_bytes() == (FOLDER / f"{name}.prefixed").read_bytes()


def test_a_checkpoint_in_both_directions(tmp_path):
    symbol, arguments, states = model.load_checkpoint(file("checkpoint"), 12)
    assert set(arguments) == {"norm_gamma", "norm_beta", "fc_weight", "fc_bias"}
    assert set(states) == {"norm_moving_mean", "norm_moving_var"}
    assert symbol.attr_dict()["fc_weight"]["__lr_mult__"] == "0.1"
    assert symbol.attr_dict()["norm_moving_var"]["__ctx_group__"] == "one"
    recorded = nd.load(file("checkpoint.nd"))
    values = {"data": recorded["data"], "label": recorded["label"], **arguments}
    got = symbol.eval(**values, **states)[0]
    np.testing.assert_allclose(got.asnumpy(), recorded["y"].asnumpy(), 1e-5, 1e-6)
    model.save_checkpoint(str(tmp_path / "ours"), 12, symbol, arguments, states)
    assert (tmp_path / "ours-0012.params").read_bytes() == (
        FOLDER / "checkpoint-0012.params"
    ).read_bytes()
    again, arguments, states = model.load_checkpoint(str(tmp_path / "ours"), 12)
    assert again.tojson() == symbol.tojson()
    assert model.load_params(str(tmp_path / "ours"), 12)[1].keys() == states.keys()


@pytest.mark.parametrize("source, kept", [("saved", "float16"), ("current", "float32")])
def test_parameters_of_another_dtype(source, kept):
    net = golden_nets.halves(nn)
    net.cast("float32")
    net.load_parameters(file("halves.parameters"), cast_dtype=True, dtype_source=source)
    assert {p.data().dtype.__name__ for p in net.collect_params().values()} == {kept}
    with pytest.raises(AttrError, match="dtype_source='mine' does not fit; needed"):
        net.load_parameters(file("halves.parameters"), dtype_source="mine")


def test_imports_with_arrays_too_few_and_too_many(tmp_path):
    names = file("images-symbol.json"), ["data"]
    arrays = nd.load(file("images-0003.params"))
    arrays["arg:more"] = arrays.pop("arg:images_dense0_bias")
    nd.save(tmp_path / "other", arrays)
    for allowed, message in (
        ({}, "has no 'images_dense0_bias'"),
        ({"allow_missing": True}, "has 'more', but the net"),
    ):
        with pytest.raises(FileError, match=message):
            gluon.SymbolBlock.imports(*names, tmp_path / "other", **allowed)
    net = gluon.SymbolBlock.imports(
        *names, tmp_path / "other", allow_missing=True, ignore_extra=True
    )
    with pytest.raises(HybridError, match="'images_dense0_bias' has not been init"):
        net(nd.ones((1, 2, 6, 6)))
    assert len(gluon.SymbolBlock.imports(*names).collect_params()) == len(arrays)


@pytest.mark.parametrize(
    "arrays, message",
    [
        ({"w": nd.ones(1)}, "the name 'w' begins with neither 'arg:' nor 'aux:'"),
        ([nd.ones(1)], "holds arrays without names; a checkpoint has names"),
    ],
)
def test_what_is_no_checkpoint(arrays, message, tmp_path):
    nd.save(tmp_path / "net-0001.params", arrays)
    with pytest.raises(FileError, match=message):
        model.load_params(str(tmp_path / "net"), 1)


def test_a_checkpoint_without_parameters(tmp_path):
    model.save_checkpoint(str(tmp_path / "net"), 0, sym.var("x") + 1, {}, {})
    symbol, arguments, states = model.load_checkpoint(str(tmp_path / "net"), 0)
    assert (symbol.list_arguments(), arguments, states) == (["x"], {}, {})


FUNCTIONS = json.loads((FOLDER / "functions.json").read_text())


@pytest.mark.parametrize("number", range(len(FUNCTIONS)))
def test_functions_of_the_np_namespace(number):
    npx.set_np()
    try:
        symbol = sym.fromjson(json.dumps(FUNCTIONS[number]))
        recorded = npx.load(file("functions.nd"))
        net = gluon.SymbolBlock(symbol, sym.var("data"))
        got, expected = net(recorded["x"]), recorded[f"y{number}"]
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(got.asnumpy(), expected.asnumpy(), 1e-5, 1e-5)
    finally:
        npx.reset_np()


def test_layers_of_the_np_world():
    npx.set_np()
    try:
        net = gluon.SymbolBlock.imports(
            file("np_net-symbol.json"), ["data"], file("np_net-0000.params")
        )
        recorded = npx.load(file("np_net.nd"))
        np.testing.assert_allclose(
            net(recorded["x"]).asnumpy(), recorded["y"].asnumpy(), 1e-5, 1e-5
        )
    finally:
        npx.reset_np()


def test_sparse_arrays_are_read_as_dense_ones():
    actual = nd.load(file("sparse.nd"))
    rows = [[0, 0], [1, 2], [0, 0], [3, 4]]
    assert actual["rows"].asnumpy().tolist() == rows == actual["csr"].asnumpy().tolist()
    for name in ("none", "empty"):
        assert actual[name].asnumpy().tolist() == [[0, 0], [0, 0], [0, 0]]


# -- what older versions wrote ---------------------------------------------------------
@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_arrays_of_all_versions_and_dtypes(version, device):
    actual = nd.load(file(f"old/v{version}_{device}.params"))
    assert list(actual) == [n for n in params.TYPE_FLAGS if n != "bfloat16"]  # newer than these
    for dtype, array in actual.items():
        assert array.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(array.asnumpy(), ARRAYS.astype(dtype))


@pytest.mark.parametrize(
    ("attrs", "shape"),
    [
        ({"target_shape": "(2, 0)"}, (2, 12)),
        ({"target_shape": "(0, 6)", "shape": "()"}, (4, 6)),
        ({"target_shape": "(9, 0)", "keep_highest": "True"}, (4, 6)),
        ({"target_shape": "(9, 3, 2)", "keep_highest": "1"}, (4, 3, 2)),
        ({"target_shape": "(2, 12)", "shape": "(3, -1)"}, (3, 8)),
    ],
)
def test_a_reshape_that_names_its_target(attrs, shape):
    """Of 2015: in it 0 is the length to be found; the first one may be kept."""
    symbol = sym.fromjson(old_graph("Reshape", attrs, 800))
    x = np.arange(24, dtype="float32").reshape(4, 3, 2)
    actual = symbol.eval(x=nd.array(x))[0].asnumpy()
    assert actual.shape == shape and (actual.ravel() == x.ravel()).all()


@pytest.mark.parametrize("kind", ["argmax", "argmin"])
def test_the_last_axis_was_all_axes_before_0_9_5(kind):
    """MXNet's own upgrade (src/nnvm/legacy_json_util.cc) says so of files."""
    x = nd.array([[1, 5, 3], [9, 0, 6]])
    for version, expected in ((904, getattr(nd, kind)(x)), (905, getattr(nd, kind)(x, axis=-1))):
        actual = sym.fromjson(old_graph(kind, {"axis": "-1"}, version)).eval(x=x)[0]
        assert actual.shape == expected.shape
        assert (actual.asnumpy() == expected.asnumpy()).all()


def old_graph(kind, attrs, version):
    """A file of one operator."""
    return json.dumps(
        {
            "nodes": [
                {"op": "null", "name": "x", "inputs": []},
                {"op": kind, "name": "y", "attrs": attrs, "inputs": [[0, 0, 0]]},
            ],
            "arg_nodes": [0],
            "heads": [[1, 0, 0]],
            "attrs": {"mxnet_version": ["int", version]},
        }
    )


# np's operators mix dtypes; in MXNet 1.9 these few are still the legacy ones.
MIXED = {
    "_npi_hypot_scalar",
    "_npi_maximum",
    "_npi_maximum_scalar",
    "_npi_minimum",
    "_npi_minimum_scalar",
    "_npi_reshape",
}


def test_operators_have_all_of_mxnets_names():
    names = json.loads((FOLDER / "names.json").read_text())
    assert len(names) == 281
    for other, name in names.items():
        op = legacy.operator_of(name, OPS)
        if other not in MIXED:
            assert legacy.operator_of(other, OPS) is op, (other, name)
        else:
            assert op is not legacy.operator_of(other, OPS) is not None
    for other, name in legacy.NAMES.items():
        assert other not in OPS and name in OPS, (other, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", OLD)
def test_graphs_of_old_versions_are_upgraded_as_mxnet_does(name):
    symbol = sym.load(file(f"old/{name}-symbol.json"))
    recorded = json.loads((FOLDER / "old" / f"{name}-answers.json").read_text())
    assert symbol.list_arguments() == recorded["arguments"]
    assert symbol.list_auxiliary_states() == recorded["states"]
    assert symbol.list_outputs() == recorded["outputs"]
    hidden = {
        name: {k: v for k, v in attrs.items() if k.startswith("__")}
        for name, attrs in symbol.attr_dict().items()
    }
    assert {n: a for n, a in hidden.items() if a} == {
        n: a for n, a in recorded["attributes"].items() if a
    }
    outs = symbol.eval(**{n: nd.array(v) for n, v in recorded["inputs"].items()})
    for out, expected in zip(outs, recorded["answers"], strict=True):
        np.testing.assert_allclose(out.asnumpy(), expected, 1e-5, 1e-6)
    assert sym.fromjson(symbol.tojson()).tojson() == symbol.tojson()


# -- a loop ----------------------------------------------------------------------------
FOREACH = (FOLDER / "foreach-symbol.json").read_text()


def test_a_loop_of_mxnets_runs_and_is_written_as_it_was():
    symbol = sym.fromjson(FOREACH)
    assert json.loads(symbol.tojson()) == json.loads(FOREACH)
    assert symbol.infer_shape(x=(3, 2))[:2] == ([(3, 2), (2,)], [(3, 2)])
    x, s = np.float32([[1, -2], [3, 4], [5, 6]]), np.float32([1, 2])
    (got,) = symbol.bind(cpu(), {"x": nd.array(x), "s": nd.array(s)}).forward()
    expected = []
    for row in x:
        expected.append(np.maximum(row + s, 0))
        s = row * s
    np.testing.assert_array_equal(got.asnumpy(), expected)


# -- operators that are not here -------------------------------------------------------
STRANGE = FOREACH.replace('"op": "_foreach"', '"op": "_strange"')
UNKNOWN = pytest.mark.filterwarnings("ignore:.*there is no operator")  # told in test_door


@UNKNOWN
def test_a_graph_with_an_unknown_operator_is_shown_and_written_as_it_was():
    symbol = sym.fromjson(STRANGE)
    assert symbol.list_arguments() == ["x", "s"]
    assert symbol.get_internals().list_outputs() == [
        "x",
        "s",
        "_foreach0_output0",
        "_foreach0_output1",
        "out_output",
    ]
    assert "Op:_strange, Name=_foreach0" in symbol.debug_str()
    assert "_strange(x, s)" in repr(viz.draw(symbol))
    assert symbol.infer_shape_partial(x=(2, 3), s=(3,))[1] == [()]
    assert json.loads(symbol.tojson()) == json.loads(STRANGE)


@UNKNOWN
@pytest.mark.parametrize("rows", [{}, {"node_row_ptr": [0, 1, 4, 5, 6]}])
def test_who_reads_an_unknown_operator_tells_how_many_outputs_it_has(rows):
    """A file does not say it, but for the rows of its nodes, which it need not have."""
    graph = {
        "nodes": [
            {"op": "null", "name": "x", "inputs": []},
            {"op": "Strange", "name": "s", "inputs": [[0, 0, 0]]},
            {"op": "relu", "name": "a", "inputs": [[1, 1, 0]]},
            {"op": "relu", "name": "b", "inputs": [[1, 0, 0]]},
        ],
        "arg_nodes": [0],
        "heads": [[2, 0, 0], [3, 0, 0]],
        **rows,
    }
    symbol = sym.fromjson(json.dumps(graph))
    n_outputs = 3 if rows else 2
    assert symbol.get_internals().list_outputs() == [
        "x",
        *(f"s_output{i}" for i in range(n_outputs)),
        "a_output",
        "b_output",
    ]


def block(symbol):
    return gluon.SymbolBlock(symbol, [sym.var("x"), sym.var("s")])


def hybridized(net):
    net.hybridize()
    return net


@UNKNOWN
@pytest.mark.parametrize(
    "run",
    [
        lambda s, values: s.eval(**values),
        lambda s, values: s.bind(cpu(), values).forward(),
        lambda s, values: s.simple_bind(cpu(), x=(2, 3), s=(3,)).forward(),
        lambda s, values: block(s)(*values.values()),
        lambda s, values: hybridized(block(s))(*values.values()),
    ],
)
def test_running_it_names_the_operator_and_the_node(run):
    with pytest.raises(
        HybridError,
        match="_strange '_foreach0': there is no operator "
        "'_strange' here, so the graph can be shown and saved",
    ):
        run(sym.fromjson(STRANGE), {"x": nd.ones((2, 3)), "s": nd.ones((3,))})
