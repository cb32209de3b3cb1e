"""Int8 graphs that MXNet 1.9.1 quantized are read, and each node answers as MXNet's does.

`golden/int8/make_golden.py` wrote them on a processor without VNNI, where oneDNN multiplies
differently. `sums` does so too, and then the integers are MXNet's.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from minihybrid import HybridError, gluon, nd, sym
from minihybrid.core.files import FileError
from minihybrid.core.graph import Graph
from minihybrid.core.op import DTypeError

FOLDER = Path(__file__).parents[1] / "golden" / "int8"
NAMES = ("naive", "channels", "dynamic", "operators")
NETS, ACCURACY = NAMES[:3], json.loads((FOLDER / "accuracy.json").read_text())
STEPS = {"int8": 127.5, "uint8": 255.5}
CONVOLUTION = "_sg_mkldnn_conv"
TEXT = {name: (FOLDER / f"{name}-symbol.json").read_text() for name in NAMES}


def values_of(node, stored):
    """What MXNet computed for the outputs of a node."""
    if node.op is None:
        return [stored[node.name].asnumpy()]
    names = [
        ("output", "output0"),
        ("output_min", "min_output", "output1"),
        ("output_max", "max_output", "output2"),
    ]
    return [
        next(stored[key].asnumpy() for n in each if (key := f"{node.name}_{n}") in stored)
        for each in names[: node.n_outputs]
    ]


def nodes_of(name):
    """[node, MXNet's inputs, MXNet's outputs] of a graph."""
    graph, stored = (
        Graph.of(sym.load(FOLDER / f"{name}-symbol.json")),
        nd.load(str(FOLDER / f"{name}.nd")),
    )
    values = {node: values_of(node, stored) for node in graph.nodes}
    return [
        (node, [values[n][i] for n, i in node.inputs], values[node])
        for node in graph.nodes
        if node.op is not None
    ]


def answers(node, inputs):
    first, *rest = (nd.array(x, dtype=x.dtype) for x in inputs)
    outs = first.interpret(node.op, [first, *rest], node.attrs, None)
    return [out.asnumpy() for out in (outs if isinstance(outs, tuple) else (outs,))]


def digits():
    """The test images, as `make_golden.py` has them, and their labels."""
    with np.load(FOLDER.parents[2] / "minihybrid" / "data" / "digits.npz") as file:
        return file["test_x"][:, None].astype("float32") / 16, file["test_y"]


CASES = [(f"{name}: {node.name}", node, *rest) for name in NAMES for node, *rest in nodes_of(name)]


def sums(data, weight, attrs, lossy):
    """Sums of products; without VNNI, oneDNN loses some of them.

    lossy:   for int8 data, the weights are halved; for uint8, two products are added in 16 bits.
    """
    halved = lossy and data.dtype == np.int8
    weight = np.clip(np.rint(weight / 2 if halved else weight), -128, 127)
    data = np.pad(data.astype("float64"), ((0, 0), (0, 0), *((p, p) for p in attrs["pad"])))
    parts = np.lib.stride_tricks.sliding_window_view(data, attrs["kernel"], (2, 3))
    groups = (np.split(each, attrs["num_group"], 1 - i) for i, each in enumerate((parts, weight)))
    outs = []
    for x, w in zip(*groups, strict=True):
        products = x[:, None] * w[None, :, :, None, None]  # (N, filters, C, *out, *kernel)
        if lossy and not halved and w.shape[1] > 1:
            products = np.clip(products[:, :, ::2] + products[:, :, 1::2], -(2**15), 2**15 - 1)
        outs.append(products.sum((2, 5, 6)))
    return np.concatenate(outs, 1) * (2 if halved else 1)


def oracle(node, inputs, as_mxnet):
    """A fused convolution in NumPy, as MXNet's source describes it; or as MXNet computes it."""
    layer, norm, calib = node.op.layer, node.op.norm, node.op.calib
    names = [v.name for v in node.op.body.variables]
    values, ends = dict(zip(names, inputs, strict=False)), inputs[len(names) :]
    data, weight, *bias = (values[v.name] for v, _ in layer.inputs)
    bias = bias[0] if bias else 0
    if norm:
        gamma, beta, mean, var = (values[v.name] for v, _ in norm.inputs[1:])
        factor = (gamma / np.sqrt(var + np.float64(norm.attrs["eps"]))).astype("float32")
        weight, bias = weight * factor[:, None, None, None], beta + factor * (bias - mean)
    scale, *other = (
        STEPS[str(x.dtype)] / max(abs(low), abs(high))
        for x, low, high in zip((data, inputs[len(names) - 1]), ends[::2], ends[1::2], strict=False)
    )
    largest = abs(weight).max((1, 2, 3)) if calib else np.repeat(abs(weight).max(), len(weight))
    own = used = 127.5 / largest
    groups = layer.attrs["num_group"]
    if as_mxnet and calib and groups > 1:  # its reorder takes the scales to be those of groups
        used = np.repeat(own[:groups], len(own) // groups)
    lossy = as_mxnet and not ACCURACY["vnni"]
    out = sums(data, weight * used[:, None, None, None], layer.attrs, lossy)
    out = (out + np.rint(bias * own * scale)[:, None, None]) / (own * scale)[:, None, None]
    summand = inputs[len(names) - 1]
    if other:
        out = out + summand / other[0]
    if node.op.body.heads[0][0].op.name == "Activation":
        out = np.maximum(out, 0)
    if not calib:
        return np.rint(out * (own * scale)[:, None, None])
    kind = node.op.dtype
    bounds = np.iinfo(kind).min, np.iinfo(kind).max
    if as_mxnet and other and summand.dtype == np.int8:  # it writes into the summand's memory
        bounds = np.iinfo("int8").min, np.iinfo("int8").max
    return np.clip(np.rint(out * STEPS[kind.name] / max(map(abs, calib))), *bounds)


CONVOLUTIONS = [case for case in CASES if case[1].op.name == CONVOLUTION]


@pytest.mark.parametrize("name, node, inputs, expected", CASES, ids=[case[0] for case in CASES])
def test_a_node_answers_as_mxnets(name, node, inputs, expected):
    """Integers are MXNet's; oneDNN's convolutions have a test of their own."""
    actual = answers(node, inputs)
    assert [(x.shape, x.dtype) for x in actual] == [(x.shape, x.dtype) for x in expected]
    (out, *ends), (theirs, *their_ends) = actual, expected
    for one, other in zip(ends, their_ends, strict=True):
        np.testing.assert_allclose(one, other, 2e-7)
    if node.op.name != CONVOLUTION:
        gap = {"f": 2e-6}.get(out.dtype.kind, 128 if out.dtype == np.int32 else 0)
        if node.name == "known":  # MXNet rounds the uint8 summand first
            gap = 1
        np.testing.assert_allclose(out, theirs, 0, gap)  # int32: 128 is a rounding at 2**31


@pytest.mark.parametrize(
    "name, node, inputs, expected", CONVOLUTIONS, ids=[case[0] for case in CONVOLUTIONS]
)
def test_a_convolution_does_what_its_source_says(name, node, inputs, expected):
    """So does MXNet, with the faults that the oracle has for it."""
    exact, actual = oracle(node, inputs, as_mxnet=False), answers(node, inputs)[0]
    np.testing.assert_allclose(actual, exact, 0, 1)
    assert (actual != exact).mean() < 0.01  # one weight of BatchNorm's is rounded differently
    np.testing.assert_array_equal(expected[0], oracle(node, inputs, as_mxnet=True))


def test_each_fault_of_mxnets_is_seen():
    gaps = {case[0]: abs(oracle(*case[1:3], False) - case[3][0]).max() for case in CONVOLUTIONS}
    kinds = ("conv_act", "add_act")  # scales of groups; a sum that is written into int8
    assert all(max(gaps[key] for key in gaps if kind in key) > 1 for kind in kinds)
    assert ACCURACY["vnni"] or min(gap for key, gap in gaps.items() if "dynamic" in key) > 1


@pytest.mark.parametrize("backend", [None, "numpy"])
@pytest.mark.parametrize("name", NETS)
def test_a_net_recognizes_as_many_digits_as_mxnets(name, backend):
    x, y = digits()
    net = gluon.SymbolBlock.imports(
        FOLDER / f"{name}-symbol.json", ["data"], FOLDER / f"{name}-0000.params"
    )
    net.hybridize(backend=backend)
    right = int((net(nd.array(x)).argmax(axis=1).asnumpy() == y).sum())
    assert abs(right - ACCURACY[name]) <= 3 and ACCURACY["images"] == len(y) == 359


@pytest.mark.parametrize("name", NAMES)
def test_a_graph_is_written_as_it_was(name):
    symbol = sym.load(FOLDER / f"{name}-symbol.json")
    again = sym.fromjson(symbol.tojson())
    assert again.tojson() == symbol.tojson()
    assert again.list_auxiliary_states() == symbol.list_auxiliary_states()
    before, after = (json.loads(text)["nodes"] for text in (TEXT[name], symbol.tojson()))
    kinds = [sorted(n["op"] for n in nodes) for nodes in (before, after)]
    assert kinds[0] == kinds[1]
    attrs = [{n["name"]: n.get("attrs", {}) for n in nodes} for nodes in (before, after)]
    for key, texts in attrs[0].items():  # a default may be left out
        assert texts.items() - {("out_type", "int8")} <= attrs[1][key].items() | texts.items()


# -- files from strangers --------------------------------------------------------------
def changed(change, name="naive"):
    """The text of a graph after a change of its nodes."""
    graph = json.loads(TEXT[name])
    nodes = {n["name"]: n for n in graph["nodes"]}
    change(nodes)
    return json.dumps(graph)


STEM, LAST = "quantized_sg_mkldnn_conv_bn_act_0", "quantized_sg_mkldnn_fully_connected_1"


def body_of(nodes):
    return nodes[STEM]["subgraphs"][0]


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda n: n[STEM].pop("subgraphs"), "a list 'subgraphs' of 1 are needed"),
        (lambda n: n[STEM]["subgraphs"].append({}), "a list 'subgraphs' of 1 are needed"),
        (lambda n: body_of(n).update(nodes=[]), "has 0 heads|_sg_mkldnn_conv .*: "),
        (lambda n: body_of(n)["nodes"].pop(), "is not a node before this one"),
        (lambda n: body_of(n).update(heads=[[0, 0, 0]]), "its graph needs one Convolution or"),
        (lambda n: n[STEM]["inputs"].pop(), "needs 9 inputs, found 8"),
        (lambda n: n[LAST]["inputs"].pop(), "needs 9 inputs, found 8"),
        (lambda n: n[STEM]["attrs"].update(quantized="maybe"), "quantized.*'maybe'"),
        (lambda n: n[STEM]["attrs"].update(min_calib_range="nan"), "min_calib_range"),
        (lambda n: n["data_quantize"]["attrs"].update(out_type="int4"), "out_type='int4'"),
        (lambda n: n["quantized_digits_concat0"]["attrs"].update(num_args="9" * 9), "num_args"),
    ],
)
def test_a_damaged_graph_gets_a_sentence(change, message):
    with pytest.raises(FileError, match=message) as error:
        sym.fromjson(changed(change))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_graph_gets_a_sentence(share):
    with pytest.raises(FileError):
        sym.fromjson(TEXT["naive"][: int(share * len(TEXT["naive"]))])


def test_a_layer_of_floats_names_the_dtypes():
    def skip(nodes):
        nodes[STEM]["inputs"][0] = [0, 0, 0]  # the image itself

    with pytest.raises(DTypeError, match="sg_mkldnn_conv: the data is float32, but int8 or uint8"):
        sym.fromjson(changed(skip)).infer_type(data="float32")


def test_what_is_not_supported_names_the_operator_and_the_remedy():
    def other(nodes):
        (node,) = (n for n in body_of(nodes)["nodes"] if n["op"] == "Activation")
        node["attrs"]["act_type"] = "tanh"

    with pytest.warns(UserWarning, match="_sg_mkldnn_conv"):
        symbol = sym.fromjson(changed(other))
    with pytest.raises(HybridError, match="_sg_mkldnn_conv.*load the float32 graph and quantize"):
        symbol.infer_shape(data=(1, 1, 8, 8))
