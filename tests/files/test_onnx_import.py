"""ONNX files of other frameworks open here, run, train, and are never trusted.

`golden/onnx/make_*.py` wrote the files and their answers with PyTorch and TensorFlow.
"""

import contextlib
import os
import random
import re
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import autograd, bench, gluon, nd
from minihybrid.core.files import FileError
from minihybrid.formats.onnx.load.file import read_model
from minihybrid.formats.onnx.load.model import OPERATORS, translate
from minihybrid.gluon import nn

onnx = pytest.importorskip(
    "onnx", reason="the library onnx is not installed: no model of another framework can be read"
)
from onnx.reference import ReferenceEvaluator

helper, kinds = onnx.helper, onnx.TensorProto
FOLDER = Path(__file__).parents[1] / "golden/onnx"
FILES = sorted(FOLDER.glob("*-*-*.onnx"))
# One file of some networks is compiled; the others take the quick target, in NumPy.
COMPILED = (
    "torch-mlp-new20",
    "torch-lenet-new20",
    "torch-resnet-old17",
    "torch-attention-old17",
    "tensorflow-mlp-18",
)


def outputs(net, *inputs):
    """What a net gives, as NumPy arrays."""
    actual = net(*(nd.array(x, dtype=x.dtype) for x in inputs))
    actual = actual if isinstance(actual, (list, tuple)) else [actual]
    return [y.asnumpy() for y in actual]


def answers(path):
    """(input, outputs) as the framework itself computed them."""
    with np.load(FOLDER / f"{path.stem.rsplit('-', 1)[0]}.npz") as stored:
        return stored["x"], [stored[k] for k in sorted(stored) if k[0] == "y"]


def model_of(nodes, inputs, outputs=("y",), weights=None, opset=17):
    """A model with these nodes.

    inputs:  name -> shape, or (element type, shape); weights: name -> array.
    """

    def declared(name, declaration):
        kind, shape = (
            declaration if isinstance(declaration[-1], tuple) else (kinds.FLOAT, declaration)
        )
        return helper.make_tensor_value_info(name, kind, shape)

    graph = helper.make_graph(
        nodes,
        "graph",
        [declared(*item) for item in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [onnx.numpy_helper.from_array(np.asarray(a), k) for k, a in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def save(folder, model):
    path = folder / "net.onnx"
    path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    return str(path)


def node(op, inputs, outputs="y", **attrs):
    return helper.make_node(op, inputs.split(","), outputs.split(","), **attrs)


# -- answers ---------------------------------------------------------------------------
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_networks_of_other_frameworks_give_their_answers(path):
    x, expected = answers(path)
    net = mx.onnx.import_to_gluon(path)
    eager = outputs(net, x)
    net.hybridize(backend=None if path.stem in COMPILED else "numpy")
    for actual in (eager, outputs(net, x)):
        assert len(actual) == len(expected)
        for a, b in zip(actual, expected, strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_batch_of_another_length_needs_no_other_file(path):
    x, expected = answers(path)
    net = mx.onnx.import_to_gluon(path)
    for a, b in zip(outputs(net, np.concatenate([x, x, x])), expected, strict=True):
        np.testing.assert_allclose(a, np.concatenate([b, b, b]), rtol=1e-5, atol=1e-5)


def test_import_model_gives_a_symbol_and_two_dicts():
    path = FOLDER / "torch-training.onnx"
    symbol, args, states = mx.onnx.import_model(path)
    assert set(args) == {"0.weight", "0.bias", "1.weight", "1.bias", "4.weight", "4.bias"}
    assert set(states) == {"1.running_mean", "1.running_var"}
    assert symbol.list_arguments()[0] == "x"
    assert symbol.list_auxiliary_states() == list(states)
    with np.load(FOLDER / "torch-training.npz") as stored:
        x = nd.array(stored["x"])
    (actual,) = symbol.bind(mx.cpu(), {"x": x, **args}, aux_states=states).forward()
    np.testing.assert_allclose(
        actual.asnumpy(),
        outputs(mx.onnx.import_to_gluon(path), x.asnumpy())[0],
        rtol=1e-6,
        atol=1e-6,
    )


def test_metadata_tells_inputs_and_outputs():
    actual = mx.onnx.get_model_metadata(FOLDER / "torch-lenet-old13.onnx")
    assert actual["input_tensor_data"] == [("x", (0, 1, 16, 16))]
    assert [shape for _, shape in actual["output_tensor_data"]] == [(0, 5)]


def test_an_imported_net_becomes_a_gluon_file(tmp_path):
    x, (expected, *_) = answers(FOLDER / "tensorflow-conv-17.onnx")
    net = mx.onnx.import_to_gluon(FOLDER / "tensorflow-conv-17.onnx")
    net.hybridize(backend="numpy")
    outputs(net, x)
    files = net.export(str(tmp_path / "net"))
    again = gluon.SymbolBlock.imports(files[0], "x", files[1])
    np.testing.assert_allclose(outputs(again, x)[0], expected, rtol=1e-5, atol=1e-5)


def test_mxnet_finds_the_functions_in_contrib():
    assert mx.contrib.onnx.import_model is mx.onnx.import_model
    assert mx.contrib.onnx.import_to_gluon is mx.onnx.import_to_gluon


# -- law: ONNX's own tests of its operators --------------------------------------------
# Dropout drops here only under record(); half precision is rounded in other places;
# the greatest of no numbers is refused; stored answers with four digits.
DIFFERENT = ("scan9_scalar", "training_dropout", "fp16", "empty_set", "last_window_starts_on_pad")


def as_network(case):
    """A case's model with all inputs but the first as weights; that input, answers."""

    def arrays(what, values):
        for i in range(len(values)):
            tensor = onnx.TensorProto()
            tensor.ParseFromString((case / f"test_data_set_0/{what}_{i}.pb").read_bytes())
            yield tensor

    model = onnx.load(case / "model.onnx")
    inputs = list(arrays("input", model.graph.input))
    for info, tensor in list(zip(model.graph.input, inputs, strict=True))[1:]:
        tensor.name = info.name
        model.graph.initializer.append(tensor)
    to_array = onnx.numpy_helper.to_array
    return model, to_array(inputs[0]), [to_array(t) for t in arrays("output", model.graph.output)]


CASES = sorted((Path(onnx.__file__).parent / "backend/test/data/node").iterdir())
LIMITS = {  # what is refused: the sentence, and the cases that may hear it
    r"type (U?INT(2|4|16|32|64)|STRING|BFLOAT16|FLOAT\d\w+) are not supported": "",
    r"its output '(\w+)' is not supported": "layer_norm|dropout|training_mode|with_argmax",
    r"opset (1|2[7-9]|3\d) is not supported": "",
    r"select_last_index=1 is not supported": "arg(max|min)",
    r"pooling with dilations or storage_order": "dilations|_strides$",
    r"the scales are \(.*\d\.(?!0[,)]).*, but one whole": "resize",
    r"mode '(cubic|linear)' with": "resize.*(cubic|linear)",
    r"mode 'nearest' with": "resize_upsample_sizes_nearest_(ceil|floor|round)",
    r"exclude_outside=1": "exclude_outside",
    r"no output depends on an input": "shape|size",
    r"(the shape|a bound) must be known when": "window|constantofshape|range",
    r"reduction '(max|min|mul)' is not supported": "scatter",
    r"has shape \(0,\), but an array with numbers": "greater_than_end",
    r"only the last axis is supported": "onehot_with",
    r"broadcast_power: the inputs are float32 and int": "pow_types",
    r"a_min=2.0 and a_max=1.0": "clip_min_greater_than_max",
    r"mode='wrap' does not fit": "wrap_pad",
    r"the largest number of iterations must be known": "loop",
    r"only whole rows of the first axis": "scatternd",
    r"body has 2 inputs, but 3 are needed": "scan_sum",  # opset 8, with lengths of sequences
}


@pytest.mark.parametrize("letter", sorted({case.name[5] for case in CASES} - {*"jqz"}))
def test_the_cases_of_the_library_are_answered_or_beyond_a_limit(letter, tmp_path):
    right = 0
    for case in CASES:
        if case.name[5] != letter:
            continue
        model = onnx.load(case / "model.onnx")
        if (
            not {n.op_type for n in model.graph.node} <= OPERATORS.keys()
            or any(
                info.type.WhichOneof("value") != "tensor_type"
                for info in (*model.graph.input, *model.graph.output)
            )
            or not model.graph.input
            or any(d in case.name for d in DIFFERENT)
        ):
            continue
        model, x, expected = as_network(case)
        try:
            net = mx.onnx.import_to_gluon(save(tmp_path, model))
        except FileError as error:
            assert any(
                re.search(words, str(error)) and re.search(names, case.name)
                for words, names in LIMITS.items()
            ), (case.name, str(error))
            continue
        for a, b in zip(outputs(net, x), expected, strict=True):
            assert a.shape == (b.shape or (1,)) or a.shape == b.shape, case.name
            np.testing.assert_allclose(
                a.astype("float64"), b.astype("float64"), 1e-4, 1e-5, err_msg=case.name
            )
        right += 1
    assert right


# -- law: a node means in each opset what ONNX Runtime says --------------------------
WHOLE = np.array
FORMS = {  # one way to write it, and the constants beside x; in each opset that has it
    "softmax over the rest": (node("Softmax", "x", axis=1), {}),
    "softmax of the last": (node("Softmax", "x", axis=3), {}),
    "log softmax from the end": (node("LogSoftmax", "x", axis=-2), {}),
    "clip": (node("Clip", "x", min=-0.5, max=0.25), {}),
    "clip below": (node("Clip", "x", min=-0.5), {}),
    "slice": (node("Slice", "x", starts=[1, 0], ends=[9, -1], axes=[1, 3]), {}),
    "squeeze": (node("Squeeze", "x", axes=[0]), {}),
    "unsqueeze": (node("Unsqueeze", "x", axes=[0, 3]), {}),
    "sum": (node("ReduceSum", "x", axes=[1, 3], keepdims=0), {}),
    "mean": (node("ReduceMean", "x", axes=[-1]), {}),
    "pad": (node("Pad", "x", pads=[0, 0, 1, 0, 0, 1, 0, 2], value=1.5), {}),
    "pad by a mirror": (node("Pad", "x", pads=[0, 0, 1, 0, 0, 0, 0, 2], mode="reflect"), {}),
    "split": (node("Split", "x", "y,z", axis=3, split=[1, 4]), {}),
    "upsample": (node("Upsample", "x,s"), {"s": np.float32([1, 1, 2, 3])}),
    "upsample by an attribute": (node("Upsample", "x", scales=[1.0, 1.0, 2.0, 2.0]), {}),
    "dropout": (node("Dropout", "x", ratio=0.3), {}),
    "flatten": (node("Flatten", "x", axis=2), {}),
    "flatten all": (node("Flatten", "x", axis=4), {}),
    "slope": (node("PRelu", "x,s"), {"s": np.float32([[[0.1]], [[0.2]], [[0.3]]])}),
    "batch norm": (
        node("BatchNormalization", "x,a,b,c,d", epsilon=0.1),
        {k: np.float32([1, 2, 3]) for k in "abcd"},
    ),
    "transposed, upper": (
        node("ConvTranspose", "x,w", strides=[2, 2], auto_pad="SAME_UPPER"),
        {"w": np.ones((3, 2, 3, 3), "float32")},
    ),
    "same lower": (
        node("Conv", "x,w", strides=[2, 1], auto_pad="SAME_LOWER"),
        {"w": np.ones((2, 3, 2, 2), "float32")},
    ),
    "uneven average": (
        node("AveragePool", "x", kernel_shape=[2, 3], pads=[1, 0, 0, 1], ceil_mode=1),
        {},
    ),
    "uneven maximum": (
        node("MaxPool", "x", kernel_shape=[3, 2], strides=[2, 2], pads=[1, 1, 2, 0]),
        {},
    ),
    "sum of given axes": (node("ReduceSum", "x,a", keepdims=0), {"a": WHOLE([1, 3])}),
    "sum of none": (node("ReduceSum", "x", noop_with_empty_axes=1), {}),
    "mean of given axes": (node("ReduceMean", "x,a"), {"a": WHOLE([-1])}),
    "pad by inputs": (
        node("Pad", "x,p,v"),
        {"p": WHOLE([0, 0, 1, 0, 0, 1, 0, 2]), "v": np.float32(1.5)},
    ),
    "pad two axes": (node("Pad", "x,p,,a"), {"p": WHOLE([1, 0, 2, 3]), "a": WHOLE([3, -2])}),
    "slice by inputs": (
        node("Slice", "x,b,e,a,s"),
        {"b": WHOLE([0, -1]), "e": WHOLE([9, 0]), "a": WHOLE([1, 3]), "s": WHOLE([2, -2])},
    ),
    "squeeze given axes": (node("Squeeze", "x,a"), {"a": WHOLE([0])}),
    "squeeze all": (node("Squeeze", "x"), {}),
    "unsqueeze given axes": (node("Unsqueeze", "x,a"), {"a": WHOLE([0, -1])}),
    "split by an input": (node("Split", "x,n", "y,z", axis=-1), {"n": WHOLE([2, 3])}),
    "split evenly": (node("Split", "x", "y,z", axis=2), {}),
    "split into two": (node("Split", "x", "y,z", axis=3, num_outputs=2), {}),
    "clip by inputs": (node("Clip", "x,a,b"), {"a": np.float32(-0.5), "b": np.float32(0.25)}),
    "clip above": (node("Clip", "x,,b"), {"b": np.float32(0.25)}),
    "dropout by an input": (node("Dropout", "x,r"), {"r": np.float32(0.3)}),
    "resize": (node("Resize", "x,,s", mode="nearest"), {"s": np.float32([1, 1, 2, 3])}),
    "resize to a size": (node("Resize", "x,,,n", mode="nearest"), {"n": WHOLE([1, 3, 8, 10])}),
    "resize two axes": (
        node("Resize", "x,,s", mode="nearest", axes=[3, 2]),
        {"s": np.float32([3, 1])},
    ),
    "resize, old": (node("Resize", "x,s", mode="nearest"), {"s": np.float32([1, 1, 2, 2])}),
    "same, strides beyond the kernel": (
        node("Conv", "x,w", strides=[2, 3], auto_pad="SAME_UPPER"),
        {"w": np.ones((2, 3, 1, 1), "float32")},
    ),
    "flatten from the end": (node("Flatten", "x", axis=-1), {}),
    "layer norm": (
        node("LayerNormalization", "x,g", axis=2, epsilon=0.1),
        {"g": np.float32(np.arange(20).reshape(4, 5))},
    ),
    "layer norm, moved": (
        node("LayerNormalization", "x,g,b", axis=3),
        {"g": np.float32([1, 2, 3, 4, 5]), "b": np.float32([5, 4, 3, 2, 1])},
    ),
    "group norm": (
        node("GroupNormalization", "x,g,b", num_groups=3, epsilon=0.1),
        {"g": np.float32([1, 2, 3]), "b": np.float32([3, 2, 1])},
    ),
    "one slope": (node("PRelu", "x,s"), {"s": np.float32([0.1])}),
    "slopes of columns": (node("PRelu", "x,s"), {"s": np.float32([0.1, 0.2, 0.3, 0.4, 0.5])}),
    "slopes of columns in two axes": (
        node("PRelu", "x,s"),
        {"s": np.float32([[0.1, 0.2, 0.3, 0.4, 0.5]])},
    ),
    "hard swish": (node("HardSwish", "x"), {}),
    "selu": (node("Selu", "x"), {}),
    "selu of another factor": (node("Selu", "x", gamma=2.0), {}),
    "one number of more axes": (node("Add", "x,a"), {"a": np.ones((1,) * 5, "f4")}),
    "one number of as many": (node("Mul", "x,a"), {"a": np.full((1,) * 4, 3, "f4")}),
    "the sum of one": (node("Sum", "x"), {}),
    "the greatest of three": (
        node("Max", "x,a,b"),
        {"a": np.zeros((1, 3, 4, 5), "float32"), "b": np.full(5, 0.5, "float32")},
    ),
}


def opsets_of(op):
    """The first and the last opset of each version that has this form."""
    context, actual = onnx.checker.C.CheckerContext(), {}
    context.ir_version = 8
    for opset in range(7, 23):
        context.opset_imports = {"": opset}
        with contextlib.suppress(onnx.defs.SchemaError, onnx.checker.ValidationError):
            version = onnx.defs.get_schema(op.op_type, opset).since_version
            onnx.checker.check_node(op, context)
            actual.setdefault(version, []).append(opset)
    return sorted({n for same in actual.values() for n in (same[0], same[-1])})


@pytest.mark.parametrize("case", FORMS)
def test_a_node_means_in_each_opset_what_onnx_runtime_says(case, tmp_path):
    runtime = pytest.importorskip(
        "onnxruntime",
        reason="onnxruntime is not installed: there is nobody to ask about other opsets",
    )
    op, weights = FORMS[case]
    model = model_of([op], {"x": (1, 3, 4, 5)}, op.output, weights)
    model.ir_version = 8
    x = np.random.default_rng(0).standard_normal((1, 3, 4, 5)).astype("float32")
    n_checked = 0
    for opset in opsets_of(op):
        model.opset_import[0].version = opset
        try:
            expected = runtime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
        except runtime.capi.onnxruntime_pybind11_state.Fail:
            continue  # that opset does not have this form, says the runtime
        net = mx.onnx.import_to_gluon(save(tmp_path, model))
        for a, b in zip(outputs(net, x), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg=f"opset {opset}")
        n_checked += 1
    assert n_checked


PLACES = WHOLE([[[[1, 0, 0, 2, 1]]]])
MOVES = {  # what copies elements, and the constants beside x
    "transpose": (node("Transpose", "x", perm=[3, 1, 0, 2]), {}),
    "expand": (node("Expand", "x,n"), {"n": WHOLE([2, 3, 4, 5])}),
    "tile": (node("Tile", "x,n"), {"n": WHOLE([2, 1, 1, 2])}),
    "concat": (node("Concat", "x,x", axis=2), {}),
    "pad": (node("Pad", "x,p"), {"p": WHOLE([0, 0, 1, 0, 0, 1, 0, 2])}),
    "slice": (node("Slice", "x,b,e"), {"b": WHOLE([0, 1]), "e": WHOLE([1, 3])}),
    "split": (node("Split", "x", "y,z", axis=2), {}),
    "where": (node("Where", "c,x,a"), {"c": WHOLE([[True], [False]] * 2), "a": np.float32(-0.0)}),
    "gather": (node("Gather", "x,i", axis=3), {"i": WHOLE([[4, 0], [1, 1]])}),
    "gather elements": (node("GatherElements", "x,i", axis=2), {"i": PLACES.repeat(3, 1)}),
    "scatter elements": (
        node("ScatterElements", "x,i,a", axis=2),
        {"i": PLACES.repeat(3, 1), "a": np.full((1, 3, 1, 5), -0.0, "float32")},
    ),
    "scatter rows": (
        node("ScatterND", "a,i,x"),
        {"a": np.full((3, 3, 4, 5), -0.0, "float32"), "i": WHOLE([[1]])},
    ),
    "triangle": (node("Trilu", "x", upper=0), {}),
    "maximum of one": (node("Max", "x"), {}),
}


@pytest.mark.parametrize("case", MOVES)
def test_copied_elements_keep_the_sign_of_zero(case, tmp_path):
    op, weights = MOVES[case]
    model = model_of([op], {"x": (1, 3, 4, 5)}, op.output, weights)
    x = np.where(np.random.default_rng(0).random((1, 3, 4, 5)) < 0.5, -0.0, 0.0).astype("float32")
    expected = ReferenceEvaluator(model).run(None, {"x": x})
    net = mx.onnx.import_to_gluon(save(tmp_path, model))
    for hybridize in (False, True):
        net.hybridize(active=hybridize)
        for a, b in zip(outputs(net, x), expected, strict=True):
            np.testing.assert_array_equal(np.signbit(a), np.signbit(b))


def test_the_factors_of_a_gemm(tmp_path):
    rng = np.random.default_rng(0)
    x, w, c = (rng.normal(size=shape).astype("float32") for shape in ((2, 3), (3, 4), (2, 4)))
    for alpha, beta in ((1.0, 1.0), (0.5, 1.0), (1.0, 2.0), (0.5, 2.0)):
        made = node("Gemm", "x,w,c", alpha=alpha, beta=beta)
        model = model_of([made], {"x": (2, 3)}, weights={"w": w, "c": c})
        (actual,) = outputs(mx.onnx.import_to_gluon(save(tmp_path, model)), x)
        np.testing.assert_allclose(actual, alpha * (x @ w) + beta * c, rtol=1e-5, atol=1e-6)


def test_an_old_softmax_is_over_all_axes_from_its_own(tmp_path):
    model = model_of([node("Softmax", "x", axis=1)], {"x": (3, 2, 2)}, opset=11)
    x = np.arange(12, dtype="float32").reshape(3, 2, 2)
    (actual,) = outputs(mx.onnx.import_to_gluon(save(tmp_path, model)), x)
    np.testing.assert_allclose(actual.sum((1, 2)), np.ones(3), rtol=1e-6)


def test_one_hot_of_places_of_any_axes(tmp_path):
    model = model_of(
        [node("OneHot", "x,d,v")],
        {"x": (kinds.INT64, (2, 3))},
        weights={"d": np.array([4]), "v": np.float32([-1, 2])},
    )
    x = np.array([[0, 1, 3], [2, 2, -1]])
    (actual,) = outputs(mx.onnx.import_to_gluon(save(tmp_path, model)), x)
    np.testing.assert_array_equal(actual, np.where(np.eye(4)[x], 2, -1))


# -- what one does with a net ----------------------------------------------------------
def test_dense_layers_of_a_file_compile_like_our_own():
    """A MatMul and an Add are one layer: as many kernels as a net written here."""
    net = mx.onnx.import_to_gluon(FOLDER / "tensorflow-mlp-18.onnx")
    own = nn.HybridSequential()
    own.add(nn.Dense(12, activation="relu"), nn.Dense(3), nn.HybridLambda("softmax"))
    own.initialize()
    counts = []
    for block in (net, own):
        block.hybridize()
        block(nd.ones((4, 8)))
        (plan,) = block.plans.values()
        counts.append(plan.n_kernels)
    assert counts == [3, 3]


def test_a_net_can_be_explained_and_timed():
    net = mx.onnx.import_to_gluon(FOLDER / "torch-lenet-new20.onnx")
    x, _ = answers(FOLDER / "torch-lenet-new20.onnx")
    net.hybridize()
    text = str(mx.explain(net, nd.array(x), timings=False))
    assert "Convolution" in text and "FullyConnected" in text
    assert bench.measure(net, nd.array(x), repeats=3, min_time_s=0).median_s > 0


def train(net, x, labels, steps, **how):
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "sgd", how)
    losses = []
    for _ in range(steps):
        with autograd.record():
            actual = loss(net(x), labels).mean()
        actual.backward()
        trainer.step(1)
        losses.append(actual.asscalar())
    return losses


@pytest.mark.slow
@pytest.mark.parametrize("hybrid", (False, True))
def test_training_goes_on_as_in_pytorch(hybrid):
    """Five losses of plain SGD, through a BatchNorm, which then uses the batch's."""
    net = mx.onnx.import_to_gluon(FOLDER / "torch-training.onnx")
    before = net.collect_params()["1.running_mean"].data().asnumpy()
    net.hybridize(hybrid)
    with np.load(FOLDER / "torch-training.npz") as stored:
        losses = train(net, nd.array(stored["x"]), nd.array(stored["labels"]), 5, learning_rate=0.1)
        np.testing.assert_allclose(losses, stored["losses"], rtol=1e-5, atol=1e-5)
    assert np.abs(net.collect_params()["1.running_mean"].data().asnumpy() - before).max() > 1e-3


def test_a_net_of_tensorflow_learns():
    net = mx.onnx.import_to_gluon(FOLDER / "tensorflow-mlp-13.onnx")
    net.hybridize()
    x, labels = nd.random.normal(shape=(16, 8)), nd.array(np.arange(16) % 3)
    losses = train(net, x, labels, 60, learning_rate=1.0)
    assert losses[-1] < 0.9 * losses[0]


def test_dropout_drops_under_record_only(tmp_path):
    path = save(
        tmp_path,
        model_of(
            [node("Dropout", "x,r", "y,mask")], {"x": ("n", 50)}, weights={"r": np.float32(0.5)}
        ),
    )
    net = mx.onnx.import_to_gluon(path)
    assert (net(nd.ones((9, 50))).asnumpy() == 1).all()
    with autograd.record():
        assert 0.2 < (net(nd.ones((9, 50))).asnumpy() == 0).mean() < 0.8


def test_numbers_of_the_graph_are_not_trained(tmp_path):
    """Initializers are weights; a Constant, and a number without axes, are not."""
    nodes = [
        helper.make_node(
            "Constant", [], ["c"], value=onnx.numpy_helper.from_array(np.float32([1, 2, 3]))
        ),
        node("Mul", "x,c", "a"),
        node("Mul", "a,half", "b"),
        node("Add", "b,w"),
    ]
    net = mx.onnx.import_to_gluon(
        save(
            tmp_path,
            model_of(
                nodes,
                {"x": ("n", 3)},
                weights={"half": np.float32(0.5), "w": np.float32([0, 0, 1])},
            ),
        )
    )
    assert {p.name: p.grad_req for p in net.collect_params().values()} == {
        "c": "null",
        "w": "write",
    }
    assert outputs(net, np.float32([[2, 2, 2]]))[0].tolist() == [[1, 2, 4]]


def test_a_length_of_0_is_the_one_that_was_there_also_for_constants(tmp_path):
    net = mx.onnx.import_to_gluon(
        save(
            tmp_path,
            model_of(
                [node("Reshape", "w,to", "v"), node("Add", "x,v")],
                {"x": ("n", 2, 3)},
                weights={
                    "w": np.float32([[1, 2, 3, 4, 5, 6]]).reshape(2, 3, 1),
                    "to": np.array([0, -1]),
                },
            ),
        )
    )
    assert outputs(net, np.zeros((1, 2, 3), "float32"))[0].tolist() == [[[1, 2, 3], [4, 5, 6]]]


def test_a_weight_that_is_read_twice_is_one_parameter(tmp_path):
    net = mx.onnx.import_to_gluon(
        save(
            tmp_path,
            model_of(
                [node("MatMul", "x,w", "a"), node("MatMul", "a,w", "b"), node("Add", "b,x")],
                {"x": ("n", 2)},
                weights={"w": np.float32([[1, 2], [3, 4]])},
            ),
        )
    )
    assert {p.name: p.data().asnumpy().tolist() for p in net.collect_params().values()} == {
        "w": [[1, 3], [2, 4]]
    }
    assert outputs(net, np.float32([[1, 0]]))[0].tolist() == [[8, 10]]


def test_states_are_not_shared_with_weights(tmp_path):
    """Exporters store equal arrays once; training must not move the running mean."""
    zeros, ones = np.zeros(2, "float32"), np.ones(2, "float32")
    net = mx.onnx.import_to_gluon(
        save(
            tmp_path,
            model_of(
                [
                    node("BatchNormalization", "x,one,zero,zero,one", "a"),
                    node("BatchNormalization", "a,one,zero,zero,one"),
                ],
                {"x": ("n", 2)},
                weights={"one": ones, "zero": zeros},
            ),
        )
    )
    assert {p.name: p.grad_req for p in net.collect_params().values()} == {
        "one": "write",
        "zero": "write",
        "zero_1": "null",
        "one_1": "null",
        "zero_2": "null",
        "one_2": "null",
    }


# -- open lengths and names ------------------------------------------------------------
def test_two_open_lengths_stay_open(tmp_path):
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s,one", "t", axis=0),
        node("Concat", "minus,four,t", "to", axis=0),
        node("Reshape", "x,to"),
    ]
    path = save(
        tmp_path,
        model_of(
            nodes,
            {"x": ("n", "t", 2, 4)},
            weights={"one": np.array([1]), "minus": np.array([-1]), "four": np.array([4])},
        ),
    )
    with pytest.raises(FileError, match="more than one length is open"):
        mx.onnx.import_to_gluon(path)
    nodes[2] = node("Concat", "zero,t,minus", "to", axis=0)
    path = save(
        tmp_path,
        model_of(
            nodes,
            {"x": ("n", "t", 2, 4)},
            weights={"one": np.array([1]), "minus": np.array([-1]), "zero": np.array([0])},
        ),
    )
    net = mx.onnx.import_to_gluon(path)
    assert net(nd.ones((3, 5, 2, 4))).shape == (3, 5, 8)
    assert net(nd.ones((2, 7, 2, 4))).shape == (2, 7, 8)


def test_what_is_left_beside_an_open_length_is_known(tmp_path):
    nodes = [
        node("Shape", "x", "s"),
        node("Slice", "s,one,two", "t"),
        node("Concat", "t,minus", "to", axis=0),
        node("Reshape", "x,to"),
    ]
    net = mx.onnx.import_to_gluon(
        save(
            tmp_path,
            model_of(
                nodes,
                {"x": (2, "t", 4)},
                weights={"one": np.array([1]), "two": np.array([2]), "minus": np.array([-1])},
            ),
        )
    )
    assert net(nd.ones((2, 5, 4))).shape == (5, 8)
    assert net(nd.ones((2, 3, 4))).shape == (3, 8)


def test_an_open_length_is_not_compared_with_a_number(tmp_path):
    """Two trials cannot tell: at most 512 is 512 for both of them."""
    nodes = [node("Shape", "x", "s"), node("Min", "s,most", "t"), node("Expand", "x,t")]
    path = save(tmp_path, model_of(nodes, {"x": ("n",)}, weights={"most": np.array([512])}))
    with pytest.raises(FileError, match=r"node 1 't' \(Min\): it compares a length"):
        mx.onnx.import_to_gluon(path)


def test_an_error_says_which_length_a_trial_stands_for(tmp_path):
    model = model_of(
        [node("Add", "x,w")], {"x": (2, "time")}, weights={"w": np.ones((2, 3), "float32")}
    )
    refused(
        model,
        tmp_path,
        r"shapes \(2, 1202\) and \(2, 3\) do not broadcast.* "
        r"\(1202 stands for 'time'\)$",
    )


def test_what_needs_a_length_asks_for_it(tmp_path):
    path = save(
        tmp_path,
        model_of(
            [node("MaxPool", "x", kernel_shape=[2], strides=[2], auto_pad="SAME_UPPER")],
            {"x": (1, 1, "n")},
        ),
    )
    with pytest.raises(
        FileError,
        match=r"node 0 'y' \(MaxPool\): auto_pad=SAME_UPPER "
        "follows from a length that the file leaves open",
    ):
        mx.onnx.import_to_gluon(path)


@pytest.mark.parametrize(
    "names",
    [
        ("F", "self", "args"),
        ("x", "x.1", "x 1"),
        ("import os", "\"'\\\n", "λ→ø"),
        ("params", "hybrid_forward", "0"),
    ],
)
def test_names_may_be_any_text(names, tmp_path):
    x, w, y = names
    net = mx.onnx.import_to_gluon(
        save(
            tmp_path,
            model_of(
                [helper.make_node("MatMul", [x, w], ["h"]), helper.make_node("Relu", ["h"], [y])],
                {x: ("n", 2)},
                [y],
                {w: np.float32([[1], [2]])},
            ),
        )
    )
    assert list(net.collect_params()) == [w]
    net.hybridize()
    assert outputs(net, np.float32([[3, 4]]))[0].tolist() == [[11]]
    (plan,) = net.plans.values()
    assert "import os" not in plan.source and "λ" not in plan.source


# -- refusals --------------------------------------------------------------------------
def refused(model, folder, words):
    """The one sentence with which a file is refused."""
    with pytest.raises(FileError) as caught:
        mx.onnx.import_to_gluon(save(folder, model))
    text = str(caught.value)
    assert re.search(words, text), text
    assert text.startswith(str(folder)) and "\n" not in text and len(text) < 600
    return text


def test_all_missing_operators_are_told_at_once(tmp_path):
    nodes = [
        node("LSTM", "x", "a"),
        node("Relu", "a", "b"),
        node("NonZero", "b", "c"),
        helper.make_node("Magic", ["c"], ["y"], domain="com.acme"),
        node("Loop", "x", "unused"),
    ]
    text = refused(model_of(nodes, {"x": (1, 2)}), tmp_path, "LSTM")
    assert "node 0 'a' (LSTM)" in text and "opset 17" in text
    assert "LSTM ('ai.onnx'), Magic ('com.acme'), NonZero ('ai.onnx')" in text


def damaged(**how):
    """A model of one dense layer with something wrong in it."""
    model = model_of(
        [node("Gemm", "x,w,b", transB=1)],
        {"x": ("n", 2)},
        weights={"w": np.ones((3, 2), "float32"), "b": np.zeros(3, "float32")},
    )
    (layer,), graph, weight = model.graph.node, model.graph, model.graph.initializer[0]
    match how:
        case {"dims": dims}:
            weight.dims[:] = dims
        case {"kind": kind}:
            weight.data_type = kind
        case {"reads": name}:
            layer.input[0] = name
        case {"makes": name}:
            layer.output[0] = name
        case {"asks": name}:
            graph.output[0].name = name
        case {"attribute": (name, value)}:
            layer.attribute.append(helper.make_attribute(name, value))
        case {"opset": number}:
            model.opset_import[0].version = number
        case {"beside": fields}:
            weight.ClearField("raw_data")
            weight.data_location = kinds.EXTERNAL
            for key, value in fields.items():
                entry = weight.external_data.add()
                entry.key, entry.value = key, value
    return model


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"dims": [-3, 2]}, r"initializer 'w': the shape \(-3, 2\) does not fit"),
        ({"dims": [2**62, 2**62]}, "does not fit; needed: .* of fewer numbers"),
        ({"dims": [0, 2**62]}, "does not fit; needed: .* of fewer numbers"),
        ({"dims": [2**40]}, "24 bytes, but shape .* needs 4398046511104"),
        ({"dims": [3, 3]}, r"24 bytes, but shape \(3, 3\) of float32 needs 36"),
        ({"dims": [1] * 40}, "at most 32 lengths"),
        ({"kind": kinds.STRING}, "initializer 'w': elements of type STRING are not"),
        ({"kind": 99}, "elements of type 99 are not supported"),
        ({"kind": kinds.FLOAT4E2M1}, "type FLOAT4E2M1"),
        ({"reads": "z"}, r"node 0 'y' \(Gemm\): it reads 'z', which nothing before it"),
        ({"reads": "y"}, "it reads 'y', which nothing before it makes"),
        ({"reads": ""}, "input 0 is missing"),
        ({"makes": "w"}, "it makes 'w', which is there already"),
        ({"asks": "z"}, "the output 'z' is made by no node"),
        ({"attribute": ("beta", [1, 2])}, r"attribute beta is \(1, 2\), but float is"),
        ({"attribute": ("spin", 1)}, "the attribute 'spin' is not supported"),
        ({"attribute": ("transB", 1)}, "the attribute 'transB' is given twice"),
        ({"attribute": ("alpha", model_of([], {}, ()).graph)}, "has no outputs"),
        ({"opset": 6}, "opset 6 is not supported; needed: 7 to"),
        ({"opset": 2**40}, "opset 1099511627776 is not supported"),
    ],
)
def test_a_damaged_model_is_refused_in_one_sentence(how, words, tmp_path):
    refused(damaged(**how), tmp_path, words)


@pytest.mark.parametrize(
    ("nodes", "weights", "words"),
    [
        (
            [node("ConstantOfShape", "n", "c"), node("Add", "x,c")],
            {"n": np.array([2**40, 2**40])},
            "an array of shape .* would be made",
        ),
        (
            [node("Expand", "n,m", "c"), node("Add", "x,c")],
            {"n": np.ones(1, "float32"), "m": np.array([2**31])},
            "would be made",
        ),
        (
            [node("Expand", "n,m", "c"), node("Add", "x,c")],
            {"n": np.ones(1, "float32"), "m": np.array([2**31, 1])},
            "would be made",
        ),
        (
            [node("Range", "a,b,a", "c"), node("Add", "x,c")],
            {"a": np.array(1), "b": np.array(2**60)},
            "would be made",
        ),
        (
            [node("Range", "a,b,a", "c"), node("Add", "x,c")],
            {"a": np.array(0), "b": np.array(2**60)},
            r"\(Range\): .*zero",
        ),
        (
            [node("Tile", "w,n", "c"), node("Add", "x,c")],
            {"w": np.ones(8, "float32"), "n": np.array([2**50])},
            "would be made",
        ),
        (
            [node("Mul", "v,w", "c"), node("Add", "x,c")],
            {"v": np.ones((4096, 1), "f4"), "w": np.ones((1, 4096), "f4")},
            "would be made",
        ),
        (
            [node("Gather", "w,i", "c"), node("Add", "x,c")],
            {"w": np.ones((1, 8192), "f4"), "i": np.zeros(8192, "i8")},
            "would be made",
        ),
        ([node("Reshape", "x,n")], {"n": np.array([-7, 2])}, "negative length"),
        ([node("Reshape", "x,n")], {"n": np.array([5, 5])}, r"node 0 'y' \(Reshape\): "),
        (
            [node("Conv", "x,w", kernel_shape=[2**40, 1])],
            {"w": np.ones((1, 1, 3, 3), "f4")},
            "kernel_shape is",
        ),
        ([node("Transpose", "x", perm=[0, 0])], {}, r"\(Transpose\): "),
        ([node("Concat", "x,x", axis=9)], {}, r"\(Concat\): "),
        ([node("Slice", "x,z,n,z,z")], {"z": np.array([0]), "n": np.array([1])}, "Slice"),
        ([node("Split", "x", "y,z", axis=1, num_outputs=2**50)], {}, "another num_out"),
        (
            [node("ConstantOfShape", "n", f"c{i}") for i in range(9)]
            + [node("Sum", ",".join(f"c{i}" for i in range(9)), "d"), node("Add", "x,d")],
            {"n": np.array([10**6])},
            r"node 4 'c4' .* only 19\d{4} more elements",
        ),
        (
            [node("Add", f"c{i},c0", f"c{i + 1}") for i in range(99)] + [node("Add", "x,c99")],
            {"c0": np.ones(10**5, "f4")},
            r"\(Add\): .* more elements",
        ),
    ],
)
def test_nodes_that_ask_for_the_impossible_are_refused(nodes, weights, words, tmp_path):
    refused(model_of(nodes, {"x": (2, 3)}, weights=weights, opset=18), tmp_path, words)


def test_functions_and_sparse_tensors_are_refused(tmp_path):
    model = damaged()
    model.functions.add().name = "mine"
    refused(model, tmp_path, "functions of its own, such as 'mine'")
    model = damaged()
    model.graph.sparse_initializer.add()
    refused(model, tmp_path, "sparse initializers are not supported")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no version of the operators"),
        (b"not a model", "are no ONNX model"),
        (b"\x3a\x03\x0a\x01\xff" * 9, "ONNX model|version"),
    ],
)
def test_other_files_are_refused(data, words, tmp_path):
    refused(data, tmp_path, words)


def test_names_cannot_forge_a_message(tmp_path):
    model = damaged(reads="z\nall is well")
    refused(model, tmp_path, r"it reads 'z\\nall is well', which")
    model.graph.node[0].op_type = "Relu\n"
    refused(model, tmp_path, r"'Relu\\n' is no name of an operator")


def test_text_that_is_not_utf8_is_refused(tmp_path):
    data = damaged().SerializeToString()
    assert data.count(b"Gemm") == 1
    refused(data.replace(b"Gemm", b"\xff\xfemm"), tmp_path, "is not UTF-8 text")


def test_what_an_opset_does_not_have_is_refused(tmp_path):
    refused(
        model_of([node("Gelu", "x")], {"x": (1,)}, opset=19),
        tmp_path,
        r"node 0 'y' \(Gelu\): opset 19 has no such operator",
    )
    refused(
        model_of([node("Relu", "x,x")], {"x": (1,)}),
        tmp_path,
        "2 inputs, but the operator takes 1$",
    )
    refused(
        model_of([node("Gemm", "x")], {"x": (1,)}),
        tmp_path,
        "1 inputs, but the operator takes 2 to 3$",
    )


def test_deep_nesting_is_refused(tmp_path):
    data = b""
    for field in (0x32, 0x2A, 0x0A) * 3000 + (0x3A,):  # graphs in attributes of nodes
        size, length = len(data), b""
        while size > 127:
            length, size = length + bytes([size & 127 | 128]), size >> 7
        data = bytes([field]) + length + bytes([size]) + data
    refused(data, tmp_path, "are no ONNX model")


# -- weights beside the model ----------------------------------------------------------
def test_weights_in_a_file_beside_the_model_are_read():
    net = mx.onnx.import_to_gluon(FOLDER / "torch-beside.onnx")
    assert {p.name: p.shape for p in net.collect_params().values()} == {
        "weight": (2, 3),
        "bias": (2,),
    }
    assert np.abs(net.collect_params()["weight"].data().asnumpy()).min() > 0


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ({"location": "../w.bin"}, "a plain name of a file beside the model"),
        ({"location": "/etc/passwd"}, "a plain name of a file beside the model"),
        ({"location": "C:w.bin"}, "a plain name of a file beside the model"),
        ({"location": ".."}, "a plain name of a file beside the model"),
        ({}, "a plain name of a file beside the model"),
        ({"location": "none.bin"}, "'none.bin', which cannot be read: No such file"),
        ({"location": "folder"}, "a link, a folder or a device"),
        ({"location": "link.bin"}, "a link, a folder or a device"),
        ({"location": "w.bin", "offset": "9"}, "24 bytes from byte 9 of 'w.bin'"),
        ({"location": "w.bin", "offset": "-4"}, "24 bytes from byte -4 of 'w.bin'"),
        ({"location": "w.bin", "length": "99999999999"}, "but 24 bytes are needed"),
        ({"location": "w.bin", "offset": "four"}, "'four' .* is no number"),
    ],
)
def test_weights_elsewhere_are_refused(location, words, tmp_path):
    (tmp_path / "w.bin").write_bytes(bytes(30))
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.bin").symlink_to("w.bin")
    refused(damaged(beside=location), tmp_path, words)


def test_a_file_beside_the_model_is_not_read_again_and_again(tmp_path):
    """A thousand tensors of one large file would be a thousand times its size."""
    (tmp_path / "w.bin").write_bytes(bytes(40))
    model = damaged(beside={"location": "w.bin"})
    again = model.graph.initializer.add()
    again.CopyFrom(model.graph.initializer[0])
    again.name = "v"
    refused(
        model,
        tmp_path,
        "initializer 'v': with its 24 bytes the tensors in 'w.bin' are longer than the file of 40",
    )


# -- chance ----------------------------------------------------------------------------
@pytest.mark.slow
def test_cut_and_flipped_files_open_or_are_refused():
    """Thousands of changed files: an answer or a FileError, in little memory."""
    chance = random.Random(7)
    files = [p.read_bytes() for p in FILES if p.stat().st_size < 6000]
    opened = 0
    tracemalloc.start()
    for _ in range(2000):
        data = bytearray(chance.choice(files))
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(data))
            match chance.randrange(4):
                case 0:
                    data[place] ^= 1 << chance.randrange(8)
                case 1:
                    data[place] = chance.choice((0, 127, 128, 255))
                case 2:
                    del data[place : place + chance.randint(1, 20)]
                case 3:
                    del data[max(place, 1) :]
        try:
            translate(read_model(bytes(data), "the bytes"))
            opened += 1
        except FileError as error:
            assert str(error).startswith("the bytes")
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()
    assert 100 < opened < 1900


# -- an optional part ------------------------------------------------------------------
def test_without_the_library_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r'pip install "minihybrid\[onnx\]"'):
        mx.onnx.import_to_gluon(FOLDER / "torch-mlp-old13.onnx")


def test_opening_a_file_that_is_not_there():
    with pytest.raises(FileError, match=re.escape(os.strerror(2))):
        mx.onnx.import_model("nowhere.onnx")
