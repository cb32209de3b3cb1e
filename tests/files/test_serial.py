"""Files: MXNet's own are read to the same answers, ours byte for byte in its form."""

import json
import os
import struct
from pathlib import Path

import ml_dtypes  # noqa: F401, so that NumPy knows bfloat16
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minihybrid as mx
from minihybrid import gluon, nd, sym
from minihybrid.core import params
from minihybrid.core.files import FileError
from minihybrid.gluon import nn

GOLDEN = Path(__file__).parents[1] / "golden"


def golden(name):
    return str(GOLDEN / name)


def mlp():
    """The net that tests/golden/make_golden.py exported."""
    net = nn.HybridSequential(prefix="mlp_")
    with net.name_scope():
        net.add(nn.Dense(4, activation="relu"), nn.Dropout(0.5), nn.Dense(2))
    return net


# -- files that MXNet 1.9.1 wrote ------------------------------------------------------
@pytest.mark.parametrize("backend", [None, "numpy", "cpu"])
def test_a_net_that_mxnet_exported_gives_its_answer(backend):
    net = gluon.SymbolBlock.imports(golden("mlp-symbol.json"), ["data"], golden("mlp-0000.params"))
    recorded = nd.load(golden("mlp-answers.nd"))
    net.hybridize(backend is not None, backend=backend)
    np.testing.assert_allclose(net(recorded["x"]).asnumpy(), recorded["y"].asnumpy(), rtol=1e-6)


def test_parameters_that_mxnet_saved_fit_into_our_net():
    net = mlp()
    net.load_parameters(golden("mlp.parameters"))
    recorded = nd.load(golden("mlp-answers.nd"))
    np.testing.assert_allclose(net(recorded["x"]).asnumpy(), recorded["y"].asnumpy(), rtol=1e-6)


def test_an_exported_file_fits_into_the_net_that_made_it():
    net, recorded = mlp(), nd.load(golden("mlp-answers.nd"))
    net.load_params(golden("mlp-0000.params"))
    np.testing.assert_allclose(net(recorded["x"]).asnumpy(), recorded["y"].asnumpy(), rtol=1e-6)


def test_a_list_that_mxnet_saved():
    arrays = nd.load(golden("list.nd"))
    assert [a.dtype.__name__ for a in arrays] == [
        "float32",
        "float64",
        "float16",
        "uint8",
        "int32",
        "int8",
        "int64",
    ]
    for a in arrays:
        assert a.asnumpy().tolist() == [[1, 2, 3], [4, 5, 6]]


def test_a_dict_that_mxnet_saved():
    arrays = nd.load(golden("dict.nd"))
    assert list(arrays) == ["first", "zweite, größer"]
    assert arrays["first"].asnumpy().tolist() == [1.5]
    assert arrays["zweite, größer"].shape == (1, 2, 1, 3)


def test_the_third_version_of_the_array_format():
    arrays = nd.load(golden("np_shape.nd"))
    assert arrays["scalar"].asnumpy().tolist() == [3.5]  # no arrays without axes here
    assert arrays["row"].asnumpy().tolist() == [1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("backend", [None, "numpy", "cpu"])
def test_every_operator_that_mxnet_wrote_gives_its_answer(backend):
    symbol = sym.load(golden("operators-symbol.json"))
    recorded = nd.load(golden("operators-answers.nd"))
    net = gluon.SymbolBlock(symbol, [sym.var(n) for n in "xwi"])
    net.hybridize(backend is not None, backend=backend)
    outs = net(*(recorded[n] for n in "xwi"))
    assert len(outs) == len(recorded) - 3 == 48
    for k, (out, name) in enumerate(zip(outs, symbol.list_outputs(), strict=True)):
        expected = recorded[f"out{k}"]
        assert (out.shape, out.dtype) == (expected.shape, expected.dtype), name
        np.testing.assert_allclose(
            out.asnumpy(), expected.asnumpy(), rtol=1e-5, atol=2e-6, err_msg=name
        )


# -- what we write, byte for byte ------------------------------------------------------
@pytest.mark.parametrize(
    "name",
    [
        "list.nd",
        "dict.nd",
        "mlp-0000.params",
        "mlp.parameters",
        "mlp-answers.nd",
        "operators-answers.nd",
    ],
)
def test_arrays_are_written_byte_for_byte_as_mxnet_does(name, tmp_path):
    nd.save(str(tmp_path / "ours"), nd.load(golden(name)))
    assert (tmp_path / "ours").read_bytes() == (GOLDEN / name).read_bytes()


def test_one_array_by_hand(tmp_path):
    file = tmp_path / "one"
    nd.array([[1, 2]]).save(str(file))
    assert file.read_bytes() == b"".join(
        [
            struct.pack("<QQQ", 0x112, 0, 1),  # mark of a list, reserved, one array
            struct.pack("<Ii", 0xF993FAC9, 0),  # mark of an array, dense
            struct.pack("<iqq", 2, 1, 2),  # two axes, 1 and 2
            struct.pack("<iii", 1, 0, 0),  # on the processor, number 0, float32
            struct.pack("<ff", 1, 2),
            struct.pack("<Q", 0),
        ]
    )  # no names


def test_our_export_of_the_same_net_is_mxnets(tmp_path):
    net = mlp()
    net.load_parameters(golden("mlp.parameters"))
    net.hybridize(backend="numpy")
    net(nd.load(golden("mlp-answers.nd"))["x"])
    symbol, params = net.export(str(tmp_path / "mlp"))
    assert Path(params).read_bytes() == (GOLDEN / "mlp-0000.params").read_bytes()
    ours, theirs = (json.loads(Path(f).read_text()) for f in (symbol, golden("mlp-symbol.json")))
    assert ours.keys() == theirs.keys()
    for key in ("arg_nodes", "heads", "attrs"):  # its Dropout has a second, hidden output
        assert ours[key] == theirs[key], key
    for our, their in zip(ours["nodes"], theirs["nodes"], strict=True):
        for key in ("op", "name", "inputs"):
            assert our[key] == their[key]
        assert (
            our.get("attrs", {}).items()
            <= {
                **their.get("attrs", {}),
                "__shape__": our.get("attrs", {}).get("__shape__"),
            }.items()
        )


def test_the_form_of_a_graph_file():
    x = sym.var("x", shape=(2, 4))
    parts = sym.split(x, num_outputs=2, axis=1, name="parts")
    data = json.loads(sym.Group([sym.relu(parts[1], name="out"), x]).tojson())
    assert data == {
        "nodes": [
            {"op": "null", "name": "x", "attrs": {"__shape__": "(2, 4)"}, "inputs": []},
            {
                "op": "SliceChannel",
                "name": "parts",
                "attrs": {"num_outputs": "2"},
                "inputs": [[0, 0, 0]],
            },
            {"op": "relu", "name": "out", "inputs": [[1, 1, 0]]},
        ],
        "arg_nodes": [0],
        "node_row_ptr": [0, 1, 3, 4],
        "heads": [[2, 0, 0], [0, 0, 0]],
        "attrs": {"mxnet_version": ["int", 10901]},
    }


@pytest.mark.parametrize("name", ["mlp-symbol.json", "operators-symbol.json"])
def test_a_graph_survives_our_writing(name):
    symbol = sym.load(golden(name))
    again = sym.fromjson(symbol.tojson())
    assert again.tojson() == symbol.tojson()
    assert again.list_arguments() == symbol.list_arguments()
    assert again.list_outputs() == symbol.list_outputs()


def test_how_many_arrays_there_are_has_the_name_that_mxnet_gives_it():
    a, b = sym.var("a"), sym.var("b")
    for made, key in (
        (sym.concat(a, b), "num_args"),
        (sym.multi_sum_sq(a, b), "num_arrays"),
        (sym.multi_all_finite(a, b), "num_arrays"),
    ):
        *_, node = json.loads(made.tojson())["nodes"]
        assert node["attrs"][key] == "2"
        assert node["attrs"].keys() & {"num_args", "num_arrays"} == {key}


def test_what_a_variable_says_of_itself_is_kept(tmp_path):
    x = sym.var("x", shape=(0, 3), dtype="float64", lr_mult=2)
    x.save(str(tmp_path / "x.json"))
    again = sym.load(str(tmp_path / "x.json"))
    assert (
        again.attr_dict()
        == x.attr_dict()
        == {"x": {"__shape__": "(0, 3)", "__dtype__": "1", "__lr_mult__": "2", "lr_mult": "2"}}
    )
    assert (again + 1).infer_type()[1] == [np.float64]
    assert (again + again).infer_shape_partial()[0] == [(0, 3)]


dtypes = st.sampled_from(sorted(params.TYPE_FLAGS))
shapes = st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple)


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=8).filter(lambda t: t.isprintable()), st.tuples(dtypes, shapes), max_size=4
    ),
    st.booleans(),
)
def test_arrays_come_back_as_they_went(named, with_names):
    rng = np.random.default_rng(0)
    arrays = {
        name: rng.integers(0, 2, shape).astype(dtype) for name, (dtype, shape) in named.items()
    }
    data = params.pack_arrays(list(arrays.values()), list(arrays) if with_names else ())
    actual, names = params.unpack_arrays(data, "data")
    assert names == (list(arrays) if with_names else [])
    for a, b in zip(arrays.values(), actual, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_array_equal(a, b)


# -- files that are wrong --------------------------------------------------------------
PARAMS = (GOLDEN / "mlp-0000.params").read_bytes()
GRAPH = (GOLDEN / "operators-symbol.json").read_bytes()


@pytest.mark.parametrize("n", range(0, len(PARAMS), 7))
def test_a_file_that_is_cut_off_says_where(n):
    with pytest.raises(
        FileError,
        match=r"a.params, byte \d+: .*but \d+ are left; the file is "
        "cut off or is no parameter file",
    ):
        params.unpack_arrays(PARAMS[:n], "a.params")


@pytest.mark.parametrize(
    "at, form, value, message",
    [
        (0, "Q", 0x1, "the file's mark is 0x1, but 0x112 is needed; this is no parameter file"),
        (16, "Q", 2**60, "arrays need 4611686018427387904 bytes or more, but"),
        (
            24,
            "I",
            0xF993FAC7,
            "the array's mark is 0xf993fac7; needed: 0xf993fac8, 0xf993fac9, "
            "0xf993faca, or a number of axes",
        ),
        (28, "i", 3, "storage type 3 is unknown; needed: 0 (dense), 1 (row_sparse) or 2 (csr)"),
        (32, "i", -1, "an array of -1 axes; at most 32 are allowed"),
        (32, "i", 2**30, "an array of 1073741824 axes"),
        (36, "q", -4, "has a negative length"),
        (36, "q", 2**40, "an array of shape (1099511627776, 3) needs"),
        (36, "q", 2**62, "shape (4611686018427387904, 3) is larger than any memory"),
        (60, "i", 77, "dtype number 77 is unknown; there are 0 to 12"),
    ],
)
def test_a_wrong_number_is_named_with_its_place(at, form, value, message):
    data = bytearray(PARAMS)
    struct.pack_into("<" + form, data, at, value)
    with pytest.raises(FileError, match=r"a.params, byte \d+: ") as caught:
        params.unpack_arrays(bytes(data), "a.params")
    assert message in str(caught.value)


def test_bytes_left_over_and_names_that_repeat():
    with pytest.raises(FileError, match="3 bytes are left over"):
        params.unpack_arrays(PARAMS + b"abc", "a")
    one = [np.zeros(1, np.float32)]
    with pytest.raises(FileError, match="two arrays have one name"):
        params.unpack_arrays(params.pack_arrays(one * 2, ["a", "a"]), "a")
    with pytest.raises(FileError, match="1 names for 2 arrays"):
        params.unpack_arrays(params.pack_arrays(one * 2, ["a"]), "a")
    with pytest.raises(FileError, match="is not UTF-8 text"):
        params.unpack_arrays(params.pack_arrays(one, ["é"]).replace("é".encode(), b"\xff\xfe"), "a")


def test_a_dtype_that_has_no_place_in_a_file():
    with pytest.raises(
        FileError, match="dtype uint16 has no place in the file format; there are float32, float64"
    ):
        nd.save("unused", nd.array([1], dtype="uint16"))
    assert not os.path.exists("unused")
    with pytest.raises(mx.AttrError, match="a list or dict of NDArrays is needed"):
        nd.save("unused", [np.ones(1)])


def graph(*nodes, heads=((0, 0, 0),)):
    return json.dumps({"nodes": list(nodes), "heads": [list(h) for h in heads]})


X = {"op": "null", "name": "x", "inputs": []}


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "has no list 'nodes'; needed: a symbol file"),
        ('{"nodes": 3}', "has no list 'nodes'"),
        (graph(3), "node 0: an object with a name is needed"),
        (graph({"op": "null"}), "node 0: an object with a name is needed"),
        (graph({**X, "inputs": [[0, 0, 0]]}), "is not a node before this one"),
        (
            graph(X, {"op": "relu", "name": "y", "inputs": [[2, 0, 0]]}),
            "node 1 ('y'): input [2, 0, 0] is not a node before this one",
        ),
        (graph(X, {"op": "relu", "name": "y", "inputs": [[-1, 0, 0]]}), "is not a node before"),
        (
            graph(X, {"op": "relu", "name": "y", "inputs": [[0, 1, 0]]}),
            "asks for output 1, but there are 1",
        ),
        (
            graph(X, {"op": "relu", "name": "y", "inputs": [[0, 0, 0]] * 2}),
            "relu needs 1 inputs, found 2",
        ),
        (graph(X, {"op": "relu", "name": "y", "inputs": {"a": 1}}), "a list of inputs is needed"),
        (
            graph(X, {"op": None, "name": "y", "inputs": []}),
            "node 1 ('y'): an operator's name is needed, found None",
        ),
        (graph({**X, "attrs": {"a": 1}}), "attributes must be text"),
        (graph({**X, "attrs": []}), "attributes must be text"),
        (graph({**X, "attrs": {"__shape__": "(2,"}}), "the shape or dtype is not readable"),
        (graph({**X, "attrs": {"__dtype__": "float31"}}), "the shape or dtype is not readable"),
        (
            graph(
                X,
                {
                    "op": "clip",
                    "name": "y",
                    "inputs": [[0, 0, 0]],
                    "attrs": {"a_min": "__import__('os').getcwd()", "a_max": "1"},
                },
            ),
            "clip: a_min=",
        ),
        (
            graph(
                X,
                {
                    "op": "Reshape",
                    "name": "y",
                    "inputs": [[0, 0, 0]],
                    "attrs": {"shape": "(1 for x in (1,))"},
                },
            ),
            "Reshape: shape='(1 for x in (1,))' does not fit",
        ),
        (
            graph(X, {"op": "Reshape", "name": "y", "inputs": [[0, 0, 0]]}),
            "Reshape: the argument 'shape' is missing",
        ),
        (graph(X, heads=()), "has 0 heads, the outputs that are asked for"),
        (graph(X, heads=((5, 0, 0),)), "heads: input [5, 0, 0] is not a node"),
        (graph(), "is not a node before this one"),
    ],
)
def test_a_wrong_graph_file_says_what_is_wrong(text, message):
    with pytest.raises(FileError) as caught:
        sym.fromjson(text, "a.json")
    assert message in str(caught.value)
    assert "a.json" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask")
def test_files_get_the_permissions_of_the_user(tmp_path):
    before = os.umask(0o027)
    try:
        nd.save(str(tmp_path / "a"), nd.array([1]))
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_a_path_may_be_a_path(tmp_path):
    nd.save(tmp_path / "a", {"x": nd.array([1])})
    assert nd.load(tmp_path / "a")["x"].asscalar() == 1
    net = nn.Dense(1, in_units=1)
    net.initialize()
    net.save_parameters(tmp_path / "p")
    net.load_parameters(tmp_path / "p")
    sym.var("x").save(tmp_path / "s")
    assert sym.load(tmp_path / "s").name == "x"
