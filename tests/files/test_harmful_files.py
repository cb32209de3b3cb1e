"""Files that somebody made to harm: a clear error at once, and nothing is run.

What damage by chance does to files is tried in test_serial.py.
"""

import json
import os
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import gluon, nd, sym
from minihybrid.core import params
from minihybrid.core.files import FileError

X = {"op": "null", "name": "x", "inputs": []}
OPENED = '{"nodes": [{"op": "null", "name": "x", "inputs": []}], "heads": [[0, 0, 0]]'


def graph(*nodes, heads=((0, 0, 0),)):
    return json.dumps({"nodes": list(nodes), "heads": [list(h) for h in heads]})


def head(text):
    """A graph with another text for its one output."""
    return graph(X).replace("[0, 0, 0]", text)


def node(op, *inputs, **attrs):
    return {
        "op": op,
        "name": f"{op} of {inputs}",
        "attrs": attrs,
        "inputs": [[i, 0, 0] for i in inputs],
    }


@pytest.mark.parametrize(
    "text, message",
    [
        ('{"nodes": [], "nodes": []}', "is not JSON: an object has a key twice"),
        (graph(X).replace('"x"', "NaN"), "is not JSON: NaN is no number of JSON"),
        (head("[Infinity, 0, 0]"), "Infinity is no number"),
        (head(f"[{'9' * 5000}, 0, 0]"), "is not JSON: Exceeds"),
        (head(f"[{2**70}, 0, 0]"), "is not a node before this one"),
        (head("[false, 0, 0]"), "is not a node before this one"),
        (head("[0.0, 0, 0]"), "is not a node before this one"),
        (head("[0, 0, 0, 0]"), "is not a node before this one"),
        (head("[0]"), "is not a node before this one"),
        (graph({**X, "name": "\ud800"}), "is not JSON: 'utf-8' codec can't encode"),
        (graph(X).encode().replace(b"x", b"\xff"), "is not JSON: 'utf-8' codec can't"),
        (graph(X).encode("utf-16"), "is not JSON"),
        ('{"nodes": ' + "[" * 100_000, "is not JSON"),
        ("[" * 9_000_000, "has 9000000 bytes; a file of JSON may have 8388608"),
        (graph(*[X] * 70_000), "has 70000 nodes with 0 inputs; at most 65536 with 26"),
        (
            graph(X, {**node("add_n"), "inputs": [[0, 0]] * 300_000}),
            "has 2 nodes with 300000 inputs; at most",
        ),
        (graph(X, X, node("elemwise_add", 0, 1), heads=((2, 0, 0),)), "2 variables are called 'x'"),
        (graph(X, node("relu", 1)), "is not a node before this one"),  # itself
        (graph(node("relu", 1), node("relu", 0)), "is not a node before this one"),
        (
            graph(X, node("SliceChannel", 0, num_outputs=str(10**12))),
            "1000000000000 outputs were asked for; 1 to 4096 are possible",
        ),
        (
            graph(X, *[node("SliceChannel", 0, num_outputs="4096")] * 300),
            "here are 65537 outputs; a graph may have 65536 in all",
        ),
        (graph(X, node("_foreach", 0), heads=((1, 2**40, 0),)), "a graph may have 65536"),
        (graph(X, node("add_n")), "add_n needs some inputs, found 0"),
        (
            graph({**X, "attrs": {"__shape__": f"({2**50}, {2**50})"}}),
            "the shape or dtype is not readable: {'__shape__': '(1125899906842624, 1125899",
        ),
        (graph({**X, "attrs": {"__dtype__": "object"}}), "dtype is not readable"),
        (graph({**X, "attrs": {"__dtype__": "9" * 5000}}), "dtype is not readable"),
        (graph(X, node("clip", 0, a_min="0", a_max="9" * 5000 + "j")), "clip: a_max="),
        (graph(X, node("Reshape", 0, shape="(" * 10_000)), "Reshape: shape="),
        (graph(X, node("sum", 0, axis="x" * 1_000_000)), "sum: axis='xxx"),
        (graph(X, node("_npi_mean", 0, initial="2.0")), "initial=2.0 cannot be computed"),
        (OPENED + ', "attrs": {"mxnet_version": 3}}', "the version 3 is not readable"),
        (OPENED + ', "attrs": {"mxnet_version": ["int", true]}}', "is not readable"),
        (OPENED + ', "attrs": 7}', "the version 7 is not readable"),
    ],
)
def test_a_harmful_graph_file_is_an_error_at_once(text, message):
    with pytest.raises(FileError) as caught:
        sym.fromjson(text, "a.json")
    assert message in str(caught.value)
    assert "a.json" in str(caught.value) and len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


def list_of(*bodies, count=None, names=b"\0" * 8):
    return (
        struct.pack("<QQQ", 0x112, 0, len(bodies) if count is None else count)
        + b"".join(bodies)
        + names
    )


def dense(*shape, data=b"", ndim=None, flag=0, mark=0xF993FAC9):
    head = struct.pack("<Iii", mark, 0, len(shape) if ndim is None else ndim)
    return head + struct.pack(f"<{len(shape)}q", *shape) + struct.pack("<iii", 1, 0, flag) + data


def sparse(kind, stored, shape, beside, data):
    """A sparse array: `beside` are (flag, shape) of what stands beside the values."""

    def lengths(shape):
        return struct.pack(f"<i{len(shape)}q", len(shape), *shape)

    return (
        struct.pack("<Ii", 0xF993FAC9, kind)
        + lengths(stored)
        + lengths(shape)
        + struct.pack("<iii", 1, 0, 0)
        + b"".join(struct.pack("<i", flag) + lengths(size) for flag, size in beside)
        + data
    )


ROWS = struct.pack("<ff", 1, 2)


@pytest.mark.parametrize(
    "data, message",
    [
        (list_of(count=10**6), "1000000 arrays need 4000000 bytes or more, but 8 are left"),
        (list_of(*[dense(0)] * (2**16 + 1)), "65537 arrays in one file; at most 65536"),
        (list_of(dense(2**60)), "is larger than any memory"),
        (list_of(dense(2**20, 2**20, 2**20)), "is larger than any memory"),
        (list_of(dense(0, 2**62)), "is larger than any memory"),
        (list_of(dense(2**40)), "needs 4398046511104 bytes, but 8 are left"),
        (list_of(dense(ndim=2**31 - 1)), "an array of 2147483647 axes"),
        (list_of(dense(ndim=-1)), "an array of -1 axes"),
        (list_of(dense(-2)), "has a negative length"),
        (list_of(dense()), "an array without a shape has no values"),
        (list_of(struct.pack("<I", 0)), "an array without a shape has no values"),
        (list_of(struct.pack("<Ii", 0xF993FAC8, 0)), "without a shape has no values"),
        (list_of(struct.pack("<33I", 32, *[2**31] * 32)), "is larger than any memory"),
        (list_of(struct.pack("<I", 33)), "the array's mark is 0x21; needed:"),
        (list_of(dense(-1, mark=0xF993FACA)), "has a negative length"),
        (list_of(dense(1, flag=-1, data=b"1234")), "dtype number -1 is unknown"),
        (list_of(names=struct.pack("<Q", 2**60)), "names need 9223372036854775808 bytes"),
        (list_of(dense(0), names=struct.pack("<QQ", 1, 2**40)), "a name needs 1099511627776"),
        (
            list_of(sparse(1, (2, 1), (3, 2**40), [(6, (2,))], ROWS + b"\0" * 16)),
            "a sparse array of shape (3, 1099511627776) takes 13194139533312 bytes",
        ),
        (
            list_of(sparse(1, (2, 1), (3, 1), [(6, (2,))], ROWS + struct.pack("<qq", 0, 3))),
            "their places do not lie in (3, 1)",
        ),
        (
            list_of(sparse(1, (2, 1), (3, 1), [(6, (2,))], ROWS + struct.pack("<qq", -1, 0))),
            "their places do not lie in (3, 1)",
        ),
        (
            list_of(sparse(1, (2, 2), (3, 1), [(6, (2,))], ROWS * 2 + b"\0" * 16)),
            "have shape (2, 2), and their places do not lie in (3, 1)",
        ),
        (list_of(sparse(1, (2, 1), (3, 1), [(0, (2,))], ROWS * 2)), "rows of int32 or int64"),
        (
            list_of(
                sparse(
                    2, (2,), (1, 3), [(6, (2,)), (6, (2,))], ROWS + struct.pack("<4q", 0, 3, 0, 1)
                )
            ),
            "do not lie in (1, 3)",
        ),
        (
            list_of(
                sparse(
                    2, (2,), (1, 3), [(6, (2,)), (6, (2,))], ROWS + struct.pack("<4q", 0, 2, 0, 9)
                )
            ),
            "do not lie in (1, 3)",
        ),
        (
            list_of(
                sparse(
                    2,
                    (2,),
                    (2, 3),
                    [(6, (3,)), (6, (2,))],
                    ROWS + struct.pack("<5q", 0, 2**62, 2, 0, 1),
                )
            ),
            "do not lie in",
        ),
        (
            list_of(sparse(2, (2,), (3,), [(6, (2,)), (6, (2,))], ROWS + b"\0" * 32)),
            "do not lie in (3,)",
        ),
    ],
)
def test_a_harmful_parameter_file_is_an_error_at_once(data, message):
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match=r"a.params, byte \d+: ") as caught:
            params.unpack_arrays(data, "a.params")
        assert message in str(caught.value) and len(str(caught.value)) < 500
        assert tracemalloc.get_traced_memory()[1] < 2**20 + 8 * len(data)
    finally:
        tracemalloc.stop()


def test_what_later_versions_of_the_format_know():
    """Four dtypes came after MXNet 1.9; bfloat16 is the upper half of a float32."""
    values = np.array([[1.5, -2.0]], np.float32)
    upper = (values.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    actual, _ = params.unpack_arrays(
        list_of(
            dense(1, 2, flag=12, data=upper),
            dense(2, flag=8, data=b"\xff\xff\x02\0"),
            dense(1, flag=11, data=b"\xff" * 8),
            dense(3, flag=7, data=b"\0\1\xff"),
        ),
        "a",
    )
    assert [a.dtype.name for a in actual] == ["bfloat16", "int16", "uint64", "bool"]
    assert actual[0].tolist() == values.tolist() and actual[1].tolist() == [-1, 2]
    assert actual[3].view(np.uint8).tolist() == [0, 1, 1]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
def test_what_is_no_file_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(FileError, match="it is a device or a pipe; needed: a reg"):
            nd.load(name)
    with pytest.raises(FileError, match="Is a directory"):
        sym.load(tmp_path)


def test_shapes_that_explode_are_refused_by_name():
    """Each node doubles the array: a file of some kB asks for 2**200 elements."""
    doubled = [node("Concat", i, i, dim="0") for i in range(200)]
    symbol = sym.fromjson(graph(X, *doubled, heads=((200, 0, 0),)))
    assert len(symbol.debug_str()) < 50_000 and symbol.list_arguments() == ["x"]
    with pytest.raises(mx.ShapeError, match=r"too large.*node 'Concat of \(57, 57\)'"):
        symbol.infer_shape(x=(3, 2))
    with pytest.raises(mx.ShapeError, match="is too large; at most"):
        symbol.eval(x=nd.ones((3, 2)))


@pytest.mark.parametrize(
    "old, new, message",
    [
        ('"class": "Dense"', '"class": ["Dense"]', r"tells of a \['Dense'\] with 0 child"),
        ('"name": "a_', '"name": 3, "x": "a_', "is not the outline of a net"),
        ('"children": {}', '"children": "ab"', "tells of a Dense with 2 children"),
        ('"children": {}', '"children": ""', "is not the outline of a net"),
        ('"hybridized": false', '"hybridized": NaN', "is not JSON: NaN"),
        ('"hybridized": false', '"hybridized": ' + "[" * 10_000, "is not JSON"),
    ],
)
def test_a_harmful_outline_changes_nothing(old, new, message, tmp_path):
    net = gluon.nn.HybridSequential(prefix="a_")
    with net.name_scope():
        net.add(gluon.nn.Dense(2, in_units=2))
    net.initialize()
    net.save(str(tmp_path / "net"))
    file = tmp_path / "net-model.json"
    text = file.read_text().replace('"a"', '"b"')
    assert old in text
    file.write_text(text.replace(old, new))
    with pytest.raises(FileError, match=message):
        net.load(str(tmp_path / "net"))
    assert net.name == "a"
    file.write_text(text)
    net.load(str(tmp_path / "net"))
    assert net.name == "b"


HOSTILE = [
    "self",
    "F",
    "x",
    "name",
    "import os",
    "a\nimport os",
    "'''\"\\",
    "{a}",
    "%s",
    "__class__",
    "lambda: 0",
    "#",
    "",
    " ",
    "T(0)",
    "*/",
    "é\u202e",
]


@pytest.mark.parametrize("backend", ["numpy", "cpu"])
def test_names_and_texts_of_a_file_never_reach_generated_source(backend, tmp_path):
    """Nodes, variables and user attributes may be called anything."""
    nodes, last = [], 0
    for i, name in enumerate(HOSTILE):
        nodes.append({"op": "null", "name": name, "inputs": [], "attrs": {name: name}})
        nodes.append(
            {
                "op": "elemwise_add" if i else "relu",
                "name": name,
                "attrs": {f"__{name}__": name, name: name},
                "inputs": [[last, 0, 0], [2 * i, 0, 0]] if i else [[0, 0, 0]],
            }
        )
        last = 2 * i + 1
    text = json.dumps(
        {"nodes": nodes, "heads": [[last, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}}
    )
    symbol = sym.fromjson(text)
    assert symbol.list_arguments() == HOSTILE
    again = json.loads(symbol.tojson())["nodes"]
    assert [n["name"] for n in again if n["op"] == "null"] == HOSTILE
    assert again[4]["attrs"] == nodes[4]["attrs"] == {"x": "x"}
    net = gluon.SymbolBlock(symbol, sym.var("x"))
    for param in net.collect_params().values():
        param.shape = (2,)
    net.initialize(mx.init.One())
    net.hybridize(backend=backend)
    assert net(nd.array([1, 2])).asnumpy().tolist() == [17, 18]
    [plan] = net.plans.values()
    path, *_ = net.export(str(tmp_path / "net"), format={"cpu": "c"}.get(backend, backend))
    for text in plan.source + plan.caller, Path(path).read_text("utf-8"):
        for name in HOSTILE[5:]:
            assert len(name) < 4 or name not in text
        assert "import os" not in text
