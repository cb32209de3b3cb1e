"""Every graph that ONNX can say goes to ONNX Runtime, which must give our answer."""

import fnmatch
import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, note, settings
from marks import for_each
from minihybrid.nd import NDArray
from minihybrid.onnx import export_model, write_onnx
from minihybrid.sym import Symbol
from random_nets import few, nets, network
from samples import UNIQUE, cases_of
from traced import poisoned

import minihybrid as mx
from minihybrid import AttrError, HybridError, init, nd, sym
from minihybrid.core.op import ShapeError, Spec
from minihybrid.formats.onnx.export import model as export
from minihybrid.formats.onnx.export.draft import Draft, ExportError, Value, agreed
from minihybrid.formats.onnx.export.scalar import IDIOMS
from minihybrid.gluon import HybridBlock, contrib, nn
from minihybrid.gluon.model_zoo import vision
from minihybrid.ops import OPS

onnx = pytest.importorskip(
    "onnx",
    reason="the library onnx is not installed: no model is checked; pip install 'minihybrid[onnx]'",
)
runtime = pytest.importorskip(
    "onnxruntime", reason="onnxruntime is not installed: no exported model is run"
)

FLOATS = np.dtype("float32")
RANDOM, MISSING = "draws random numbers", "ONNX has no (operator|function)"
# What has no place in ONNX: patterns of operators or of samples -> what is said.
REFUSED = {
    "_random_*": RANDOM,
    "_sample_*": RANDOM,
    "_draw_*": RANDOM,
    "_shuffle": RANDOM,
    "_npi_uniform": RANDOM,
    "_npi_normal": RANDOM,
    "_dropout_mask": RANDOM,
    "Dropout-*-mode=always": RANDOM,
    "erfinv": MISSING,
    "gamma": MISSING,
    "gammaln": MISSING,
    "_polygamma": MISSING,
    "_solve_triangle": MISSING,
    "_linalg_potr[fi]": MISSING,
    "_linalg_inverse": MISSING,
    "_linalg_trsm": MISSING,
    "_attention_grad": MISSING,
    "_log_paths": MISSING,
    "_carried": MISSING,
    "CTCLoss": MISSING,
    "_contrib_ROIAlign": MISSING,
    "_unalign": MISSING,
    "_best_places": MISSING,
    "ROIPooling": MISSING,
    "_contrib_MultiBoxTarget": MISSING,
    "_contrib_MultiBoxDetection": MISSING,
    "_suppressed": MISSING,
    "_contrib_box_nms": MISSING,
    "_matched": MISSING,
    "_int8_dot": MISSING,  # the layers that are made of these two have rules
    "_windows": MISSING,
    "_contrib_bipartite_matching": MISSING,
}

every_op = for_each(UNIQUE)


def session(model):
    """ONNX Runtime with a model whose bytes the checker has read."""
    onnx.checker.check_model(model, full_check=True)
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def exported(tmp_path, symbol, params, specs, **more):
    path = write_onnx(symbol, params, specs, tmp_path / "model.onnx", **more)
    return session(path.read_bytes())


def assert_agree(running, arrays, expected, what):
    """ONNX Runtime's outputs are those wanted, to 1e-5 of the number or of 1; whole
    numbers are equal."""
    read = {i.name for i in running.get_inputs()}
    got = running.run(None, {n: a for n, a in arrays.items() if n in read})
    for mine, its in zip(expected, got, strict=True):
        assert (its.shape, its.dtype) == (mine.shape, mine.data.dtype), what
        near = 1e-5 * (its.dtype.kind == "f")
        np.testing.assert_allclose(its, mine.data, near, near, err_msg=str(what))


def as_list(out):
    return list(out) if isinstance(out, (tuple, list)) else [out]


# -- every operator --------------------------------------------------------------------
class Sample:
    """One sample of an operator, as a symbol and as a function of arrays."""

    def __init__(self, case):
        self.case, self.attrs = case, case.op.normalize(dict(case.attrs))
        self.names = [f"x{i}" for i in range(len(case.inputs))]
        self.symbol = self.applied(Symbol, [sym.var(name) for name in self.names])

    def applied(self, kind, values):
        return kind.interpret(self.case.op, values, self.attrs)

    def arrays(self, dtype, batch=None):
        """name -> array; `batch` replaces the first length of the first input, and of
        all inputs of which it is the first, too."""
        rng, old = np.random.default_rng(0), self.case.inputs[:1]
        shapes = [
            i.shape if batch is None or i.shape[:1] != old[0].shape[:1] else (batch, *i.shape[1:])
            for i in self.case.inputs
        ]
        return {
            name: i._replace(shape=shape).array(np.dtype(dtype), rng)
            for name, i, shape in zip(self.names, self.case.inputs, shapes, strict=True)
        }

    def special(self, arrays):
        """The same arrays with infinity and NaN at some places."""
        rng = np.random.default_rng(0)
        return {
            name: poisoned(array, kind, rng)
            for (name, array), kind in zip(arrays.items(), self.case.inputs, strict=True)
        }

    def answers(self, arrays):
        return as_list(self.applied(NDArray, list(map(NDArray, arrays.values()))))


def specs_of(arrays):
    return {name: Spec(a.shape, a.dtype) for name, a in arrays.items()}


def refusal(case):
    """What the export of a sample has to say, or `None` if it has to work."""
    for pattern, words in REFUSED.items():
        if fnmatch.filter((case.op.name, str(case)), pattern):
            return words
    return None


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@every_op
def test_an_operator_is_exported_or_refused_in_a_sentence(op, dtype, tmp_path):
    for case in cases_of(op):
        sample = Sample(case)
        arrays = sample.arrays(dtype)
        if (words := refusal(case)) is not None:
            with pytest.raises(ExportError, match=words) as caught:
                write_onnx(sample.symbol, {}, specs_of(arrays), tmp_path / "no.onnx", dynamic=False)
            node = sample.symbol.refs[0][0].name
            assert f"{op.name} '{node}'" in str(caught.value)
            assert not (tmp_path / "no.onnx").exists()
        else:
            running = exported(tmp_path, sample.symbol, {}, specs_of(arrays), dynamic=False)
            assert_agree(running, arrays, sample.answers(arrays), case)
            if op.expr:  # not in windows and orders: there it passes over NaN
                special = sample.special(arrays)
                assert_agree(running, special, sample.answers(special), case)


@every_op
def test_a_batch_of_any_length_gives_our_answer_or_no_file(op, tmp_path):
    """Whatever the first axis of the sample means: a wrong model is never written."""
    for case in cases_of(op):
        if (
            not case.inputs or not case.inputs[0].shape or refusal(case) or op.name == "_put_slice"
        ):  # which takes data of wrong shapes and repeats
            continue
        sample = Sample(case)
        try:
            running = exported(tmp_path, sample.symbol, {}, specs_of(sample.arrays("float32")))
        except ExportError as error:
            assert "batch" in str(error) and "dynamic=False" in str(error)
            continue
        for batch in (1, 2, 5):
            arrays = sample.arrays("float32", batch)
            try:
                expected = sample.answers(arrays)
            except ShapeError:  # an index that is outside of such an axis
                continue
            assert_agree(running, arrays, expected, case)


# -- layers and nets -------------------------------------------------------------------
IMAGE = (3, 4, 7, 6)
LAYERS = {
    "dense": (nn.Dense(5), IMAGE),
    "dense on each row": (nn.Dense(5, flatten=False, use_bias=False), (3, 4, 6)),
    "dense with relu": (nn.Dense(5, activation="relu"), (3, 4)),
    "embedding": (nn.Embedding(5, 3), (3, 4)),
    "flatten": (nn.Flatten(), IMAGE),
    "identity": (contrib.nn.Identity(), IMAGE),
    "dropout": (nn.Dropout(0.5), IMAGE),
    "leaky": (nn.LeakyReLU(0.1), IMAGE),
    "prelu": (nn.PReLU(), IMAGE),
    "elu": (nn.ELU(0.7), IMAGE),
    "selu": (nn.SELU(), IMAGE),
    "gelu": (nn.GELU(), IMAGE),
    "swish": (nn.Swish(1.5), IMAGE),
    **{
        kind: (nn.Activation(kind), IMAGE)
        for kind in ("relu", "sigmoid", "tanh", "softrelu", "softsign")
    },
    "lambda": (nn.HybridLambda(lambda F, x: F.sqrt(F.abs(x) + 1)), IMAGE),
    "conv 1": (nn.Conv1D(3, 3, padding=1), (2, 4, 9)),
    "conv 2": (nn.Conv2D(6, (3, 2), (2, 1), (1, 0), (1, 2), 2), IMAGE),
    "conv 3": (nn.Conv3D(3, 2, use_bias=False), (2, 2, 4, 5, 4)),
    "transposed 1": (nn.Conv1DTranspose(3, 4, 2, 1), (2, 4, 9)),
    "transposed 2": (nn.Conv2DTranspose(6, (3, 2), 2, (1, 0), (1, 0), groups=2), IMAGE),
    "transposed 3": (nn.Conv3DTranspose(3, 2), (2, 2, 3, 4, 3)),
    "max 1": (nn.MaxPool1D(3, 2), (2, 4, 9)),
    "max 2": (nn.MaxPool2D(3, 2, 1, ceil_mode=True), IMAGE),
    "max 3": (nn.MaxPool3D(2), (2, 2, 5, 4, 4)),
    "avg 1": (nn.AvgPool1D(3, 2, 1), (2, 4, 9)),
    "avg 2": (nn.AvgPool2D(3, 2, 1, ceil_mode=True), IMAGE),
    "avg 2 without padding": (nn.AvgPool2D(3, 2, 1, count_include_pad=False), IMAGE),
    "avg 3": (nn.AvgPool3D(2, ceil_mode=True), (2, 2, 5, 4, 4)),
    "global max 1": (nn.GlobalMaxPool1D(), (2, 4, 9)),
    "global max 2": (nn.GlobalMaxPool2D(), IMAGE),
    "global max 3": (nn.GlobalMaxPool3D(), (2, 2, 5, 4, 4)),
    "global avg 1": (nn.GlobalAvgPool1D(), (2, 4, 9)),
    "global avg 2": (nn.GlobalAvgPool2D(), IMAGE),
    "global avg 3": (nn.GlobalAvgPool3D(), (2, 2, 5, 4, 4)),
    "reflection": (nn.ReflectionPad2D(2), IMAGE),
    "batch norm": (nn.BatchNorm(), IMAGE),
    "batch norm of rows": (nn.BatchNorm(), (3, 4)),
    "batch norm along the last axis": (nn.BatchNorm(axis=-1), IMAGE),
    "batch norm without a scale": (nn.BatchNorm(scale=False), IMAGE),
    "batch norm with relu": (nn.BatchNormReLU(), IMAGE),
    "layer norm": (nn.LayerNorm(), IMAGE),
    "layer norm 1": (nn.LayerNorm(1), IMAGE),
    "group norm": (nn.GroupNorm(2), IMAGE),
    "instance norm": (nn.InstanceNorm(), IMAGE),
    "sync batch norm": (contrib.nn.SyncBatchNorm(), IMAGE),
    "pixel shuffle 1D": (contrib.nn.PixelShuffle1D(2), (3, 4, 3)),
    "pixel shuffle 2D": (contrib.nn.PixelShuffle2D((2, 1)), (3, 4, 2, 3)),
    "pixel shuffle 3D": (contrib.nn.PixelShuffle3D((2, 1, 2)), (3, 4, 2, 3, 1)),
}


def filled(net, *blocks):
    net.add(*blocks)
    return net


LAYERS["beside each other"] = (
    filled(
        contrib.nn.HybridConcurrent(axis=1),
        nn.Conv2D(2, 1),
        contrib.nn.Identity(),
        nn.AvgPool2D(3, 1, 1),
    ),
    IMAGE,
)
MLP = filled(nn.HybridSequential(), nn.Dense(16, activation="relu"), nn.Dropout(0.5), nn.Dense(10))
NARROW = [2, 2, 2, 2], [8, 8, 16, 32, 64]  # a ResNet-18 with an eighth of the channels
NETS = {
    "mlp": (MLP, (4, 12)),
    "lenet": (vision.lenet(), (2, 1, 28, 28)),
    "resnet 18": (vision.ResNetV1(vision.BasicBlockV1, *NARROW), (2, 3, 32, 32)),
    "resnet 18 v2": (vision.ResNetV2(vision.BasicBlockV2, *NARROW), (2, 3, 32, 32)),
    "resnet 50": (vision.ResNetV1(vision.BottleneckV1, [1, 1], [4, 8, 16]), (2, 3, 32, 32)),
    "mobilenet": (vision.mobilenet0_25(classes=10), (2, 3, 32, 32)),
    "mobilenet v2": (vision.mobilenet_v2_0_25(classes=10), (2, 3, 32, 32)),
    "vgg": (vision.VGG([1, 2], [4, 8], batch_norm=True).features[:9], (2, 3, 8, 8)),
    "parts of squeezenet": (vision.chain(vision.fire(2, 3), vision.fire(3, 4)), IMAGE),
}


def data_for(net, shape):
    """Random data that a net takes: whole numbers below its rows for an Embedding."""
    if isinstance(net, nn.Embedding):
        return nd.array(np.random.randint(0, 5, shape))
    return nd.random.normal(shape=shape)


def parts_of(net, shape):
    """(symbol, name -> parameter's array, name -> Spec of the input) of a net that has
    seen data of a shape."""
    net.collect_params().initialize(init.Xavier(), force_reinit=True)
    net(data_for(net, shape))
    for name, param in net.collect_params().items():
        if name.endswith(("running_mean", "running_var", "gamma", "beta")):
            param.set_data(nd.random.uniform(0.5, 1.5, param.shape))
    params = {name: p.data() for name, p in net.collect_params().items()}
    return net(sym.var("data")), params, {"data": Spec(shape, FLOATS)}


@pytest.mark.parametrize("name", [*LAYERS, *NETS])
def test_a_net_gives_our_answer_for_every_batch(name, tmp_path):
    for_every_batch(name, tmp_path)


def test_a_dense_layer_reads_a_picture_as_a_row(tmp_path):
    """One of the above that `make quick` tries, too."""
    for_every_batch("dense", tmp_path)


def for_every_batch(name, tmp_path):
    net, shape = (LAYERS | NETS)[name]
    running = exported(tmp_path, *parts_of(net, shape))
    assert running.get_inputs()[0].shape == ["batch", *shape[1:]]
    assert {out.shape[0] for out in running.get_outputs()} == {"batch"}
    for batch in (shape[0], 1, 5):
        x = data_for(net, (batch, *shape[1:]))
        assert_agree(running, {"data": x.asnumpy()}, as_list(net(x)), name)


def test_every_layer_is_among_them():
    used = {type(block) for net, _ in (LAYERS | NETS).values() for block in net._walk()}
    layers = {
        kind
        for kind in (*vars(nn).values(), *vars(contrib.nn).values())
        if isinstance(kind, type) and issubclass(kind, HybridBlock)
    }
    assert layers - used == {HybridBlock, nn.SymbolBlock}


@pytest.mark.parametrize("convention", ["valid", "full", "same"])
@pytest.mark.parametrize(
    "how",
    [
        {"pool_type": "max"},
        {"pool_type": "sum"},
        {"pool_type": "avg"},
        {"pool_type": "avg", "count_include_pad": False},
    ],
    ids=str,
)
def test_windows_of_all_kinds(how, convention, tmp_path):
    """Also those that hang over the padding, and those that see nothing but padding."""
    x = nd.random.normal(shape=(2, 3, 7))
    for kernel, stride, pad in itertools.product((1, 2, 3), (1, 2, 3), (0, 1, 2)):
        if pad < kernel:
            window = {
                "kernel": (kernel,),
                "stride": (stride,),
                "pad": (pad,),
                **how,
                "pooling_convention": convention,
            }
            running = exported(
                tmp_path, sym.Pooling(sym.var("x"), **window), {}, {"x": Spec(x.shape, FLOATS)}
            )
            assert_agree(running, {"x": x.asnumpy()}, [nd.Pooling(x, **window)], window)


@pytest.mark.slow
@settings(max_examples=40, **few)
@given(nets(5))
def test_random_nets_give_our_answer(tmp_path_factory, net):
    start, _, two_heads, drawn = net
    block, x, _ = network((start, "float32", two_heads, drawn))
    note(repr(block))
    params = {name: p.data() for name, p in block.collect_params().items()}
    running = exported(
        tmp_path_factory.mktemp("net"),
        sym.Group(as_list(block(sym.var("data")))),
        params,
        {"data": Spec(x.shape, FLOATS)},
    )
    for batch in (x.shape[0], 4):
        x = nd.array(np.resize(x.asnumpy(), (batch, *x.shape[1:])))
        assert_agree(running, {"data": x.asnumpy()}, as_list(block(x)), net)


# -- what stands in the file -----------------------------------------------------------
def model_of(path):
    return onnx.load(str(path))


def kinds_of(model):
    return [node.op_type for node in model.graph.node]


@pytest.mark.parametrize(
    "name, kinds",
    [
        ("mlp", "Gemm Relu Gemm"),
        ("lenet", "Conv Relu MaxPool Conv Relu MaxPool Flatten Gemm Relu Gemm"),
        ("gelu", "Mul Erf Add Mul Mul"),
        ("layer norm", "LayerNormalization"),
        ("batch norm with relu", "BatchNormalization Relu"),
        ("global avg 2", "GlobalAveragePool"),
        ("flatten", "Flatten"),
    ],
)
def test_a_net_is_said_in_onnxs_own_operators(name, kinds, tmp_path):
    """A layer is one step where ONNX has it, and Dropout none: this is prediction."""
    path = write_onnx(*parts_of(*(LAYERS | NETS)[name]), tmp_path / "net.onnx")
    assert kinds_of(model_of(path)) == kinds.split()


def test_names_and_header_are_ours(tmp_path):
    net, shape = LAYERS["batch norm with relu"]
    symbol, params, specs = parts_of(net, shape)
    model = model_of(write_onnx(symbol, params, specs, tmp_path / "net.onnx"))
    assert (model.producer_name, model.producer_version) == ("minihybrid", mx.__version__)
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 18)]
    assert model.ir_version == 8
    assert [i.name for i in model.graph.input] == ["data"]
    assert [o.name for o in model.graph.output] == symbol.list_outputs()
    assert {i.name for i in model.graph.initializer} == set(params)
    for tensor in model.graph.initializer:
        np.testing.assert_array_equal(
            onnx.numpy_helper.to_array(tensor), params[tensor.name].asnumpy()
        )


def test_inputs_and_outputs_that_are_one_value_get_names_of_their_own(tmp_path):
    x = sym.var("x")
    y = sym.exp(x, name="y")
    both = sym.Group([x, y, y])
    running = exported(tmp_path, both, {}, {"x": Spec((2,), FLOATS)})
    assert [o.name for o in running.get_outputs()] == ["x_output", "y_output", "y_output1"]
    data = np.float32([1, 2, 3])
    assert_agree(
        running, {"x": data}, [nd.array(v) for v in (data, np.exp(data), np.exp(data))], "twice"
    )


WRITES = """
import sys
import numpy as np
from minihybrid import sym
from minihybrid.onnx import write_onnx
from minihybrid.core.op import Spec
x = sym.var("x")
y = sym.gelu(sym.FullyConnected(x, sym.var("w"), sym.var("b"), num_hidden=3, name="fc"))
y = sym.Group([sym.softmax(y, name="out"), sym.tile(y, reps=(2, 3), name="more")])
params = {"w": np.ones((3, 4), "f4"), "b": np.ones(3, "f4")}
write_onnx(y, params, {"x": Spec((2, 4), np.dtype("float32"))}, sys.argv[1])
"""


@pytest.mark.slow
def test_the_same_net_gives_the_same_bytes(tmp_path, monkeypatch):
    """Also in another process, whose sets have another order."""
    for number in (1, 2):
        monkeypatch.setenv("PYTHONHASHSEED", str(number))
        subprocess.run(
            [
                sys.executable,
                "-c",
                WRITES.replace("sym.gelu", "sym.exp"),
                str(tmp_path / f"{number}.onnx"),
            ],
            check=True,
        )
    assert (tmp_path / "1.onnx").read_bytes() == (tmp_path / "2.onnx").read_bytes()


def test_constants_that_are_equal_are_stored_once(tmp_path):
    x = sym.var("x")
    symbol = (x + 2) * 2 - 2
    model = model_of(write_onnx(symbol, {}, {"x": Spec((2,), FLOATS)}, tmp_path / "net.onnx"))
    assert len(model.graph.initializer) == 1


# -- the length of the batch -----------------------------------------------------------
def test_a_length_of_the_batch_is_computed_where_it_is_needed(tmp_path):
    """Reshape finds one length itself; a broadcast needs the shape of the input."""
    x = sym.var("x")
    model = model_of(
        write_onnx(x.reshape((-1, 2)), {}, {"x": Spec((4, 6), FLOATS)}, tmp_path / "net.onnx")
    )
    assert kinds_of(model) == ["Reshape"]
    tiled = sym.tile(x, reps=(3, 1), name="tiled")
    path = write_onnx(tiled, {}, {"x": Spec((4, 6), FLOATS)}, tmp_path / "net.onnx")
    assert "Shape" not in kinds_of(model_of(path))[1:]
    data = np.arange(12, dtype="f4").reshape(2, 6)
    assert_agree(session(path.read_bytes()), {"x": data}, [nd.tile(nd.array(data), (3, 1))], "tile")


def test_a_fixed_batch_stands_in_the_file(tmp_path):
    symbol, params, specs = parts_of(*NETS["mlp"])
    running = exported(tmp_path, symbol, params, specs, dynamic=False)
    assert running.get_inputs()[0].shape == [4, 12]
    assert running.get_outputs()[0].shape == [4, 10]


@pytest.mark.parametrize(
    "made, words",
    [
        (lambda x: x.reshape((4, 3, 2)), "does for a batch of 4, but not of 5 "),
        (
            lambda x: sym.squeeze(x, name="s"),
            r"squeeze 's' .* length of the batch \(compared: 4, 5, 11, 1\)",
        ),
        (lambda x: sym.diag(x, name="d"), "diag 'd' .* with dynamic=False writes"),
    ],
)
def test_a_net_for_one_batch_says_so(made, words, tmp_path):
    symbol, specs = made(sym.var("x")), {"x": Spec((4, 6), FLOATS)}
    with pytest.raises(ExportError, match=words):
        write_onnx(symbol, {}, specs, tmp_path / "net.onnx")
    x = nd.random.normal(shape=(4, 6))
    running = exported(tmp_path, symbol, {}, specs, dynamic=False)
    assert_agree(running, {"x": x.asnumpy()}, [symbol.eval(x=x)[0]], "fixed")


def drafts_of(write, sizes=(4, 5, 11, 1)):
    """What `write(draft, x, size)` drafts for batches of several lengths."""
    drafts = [Draft({"x"}) for _ in sizes]
    for draft, size in zip(drafts, sizes, strict=True):
        draft.name, draft.source = "y", "planted 'y'"
        write(draft, Value("x", FLOATS), size)
    return agreed(drafts, sizes, "x")


@pytest.mark.parametrize(
    "write",
    [
        lambda draft, x, n: draft.add("Relu" if n == 11 else "Exp", x),
        lambda draft, x, n: draft.add("Concat", x, x, axis=int(n > 4)),
        lambda draft, x, n: draft.add("Mul", x, np.float32(1 / n).reshape(1)),
        lambda draft, x, n: draft.add("Expand", x, np.array([n // 2, 3])),
        lambda draft, x, n: draft.add("Expand", x, np.array([n] * (1 + (n == 1)))),
        lambda draft, x, n: [draft.add("Exp", x) for _ in range(1 + (n == 5))],
        lambda draft, x, n: draft.add("Sum", *[x] * (1 + (n == 5))),
    ],
    ids=["kind", "attribute", "fraction", "half", "axes", "steps", "inputs"],
)
def test_a_planted_difference_between_batches_is_found(write):
    with pytest.raises(ExportError, match=r"planted 'y' .* \(compared: 4, 5, 11, 1\)"):
        drafts_of(write)


def test_lengths_that_grow_evenly_are_computed():
    steps = drafts_of(lambda draft, x, n: draft.add("Expand", x, np.array([3 * n + 1, 2])))
    assert [step.kind for step in steps] == ["Shape", "Mul", "Add", "Expand"]
    np.testing.assert_array_equal([steps[1].inputs[1], steps[2].inputs[1]], [[3, 0], [1, 2]])
    (step,) = drafts_of(lambda draft, x, n: draft.reshape(x, (2, 3 * n)))
    np.testing.assert_array_equal(step.inputs[1], [2, -1])


class Flat(HybridBlock):
    """Writes the length of the batch into the graph as a number."""

    def forward(self, x):
        return x.reshape((x.shape[0], -1)).sum(axis=1)


class Mean(HybridBlock):
    """Divides by the length of the batch, as a number."""

    def forward(self, x):
        return x / x.shape[0]


def called(net, x):
    net.initialize()
    net.hybridize(backend="numpy")
    net(x)
    return net


def test_lengths_that_python_wrote_are_found_by_tracing_again(tmp_path):
    """As a symbol, the net would sum over other numbers for another batch."""
    x = nd.random.normal(shape=(4, 3, 2))
    (path,) = called(Flat(), x).export(str(tmp_path / "net"), format="onnx")
    assert path == str(tmp_path / "net.onnx")
    x = nd.random.normal(shape=(6, 3, 2))
    assert_agree(
        session(onnx.load(path).SerializeToString()), {"data": x.asnumpy()}, [Flat()(x)], "flat"
    )
    with pytest.raises(ExportError, match="_div_scalar .* length of the batch"):
        called(Mean(), x).export(str(tmp_path / "net"), format="onnx")


class Numpys(HybridBlock):
    """Written with np's functions and shapes."""

    def forward(self, x):
        mean = mx.np.mean(x, axis=1, keepdims=True)
        both = mx.np.concatenate([mx.npx.relu(x), mean], axis=1)
        return both[:, 1:], x.reshape((x.shape[0], 2, -1)).transpose((0, 2, 1))


def test_a_net_of_np_functions_is_exported(tmp_path):
    (path,) = called(Numpys(), mx.np.ones((4, 6))).export(str(tmp_path / "net"), format="onnx")
    x = mx.np.array(np.random.default_rng(0).normal(size=(3, 6)).astype("f4"))
    assert_agree(
        session(onnx.load(path).SerializeToString()), {"data": x.asnumpy()}, Numpys()(x), "np"
    )


class Cell(HybridBlock):
    """Two inputs, of which the second is a list."""

    def hybrid_forward(self, F, x, states):
        h = F.tanh(
            F.FullyConnected(
                F.concat(x, states[0], dim=1), F.ones((3, 5)), no_bias=True, num_hidden=3
            )
        )
        return h, [h + states[0]]


def test_a_net_of_nested_inputs_is_exported(tmp_path):
    x, h = nd.random.normal(shape=(4, 2)), nd.random.normal(shape=(4, 3))
    net = Cell()
    net.hybridize(backend="numpy")
    net(x, [h])
    (path,) = net.export(str(tmp_path / "cell"), format="onnx")
    running = session(onnx.load(path).SerializeToString())
    assert [i.name for i in running.get_inputs()] == ["x", "states0"]
    x, h = nd.random.normal(shape=(2, 2)), nd.random.normal(shape=(2, 3))
    out, (state,) = net(x, [h])
    assert_agree(running, {"x": x.asnumpy(), "states0": h.asnumpy()}, [out, state], "cell")


# -- what is refused -------------------------------------------------------------------
def test_a_failed_export_leaves_the_old_file(tmp_path):
    path = tmp_path / "net.onnx"
    path.write_bytes(b"old")
    with pytest.raises(ExportError, match="gamma 'g' to ONNX: ONNX has no function"):
        write_onnx(sym.gamma(sym.var("x"), name="g"), {}, {"x": Spec((2,), FLOATS)}, path)
    assert path.read_bytes() == b"old"


def test_what_is_missing_is_named(tmp_path):
    symbol, params, specs = parts_of(*NETS["mlp"])
    name = next(iter(params))
    with pytest.raises(AttrError, match=f"reads '{name}', which is neither among"):
        write_onnx(
            symbol, {n: a for n, a in params.items() if n != name}, specs, tmp_path / "net.onnx"
        )
    with pytest.raises(ExportError, match="two variables are called 'x'"):
        write_onnx(
            sym.var("x") + sym.var("x"), {}, {"x": Spec((2,), FLOATS)}, tmp_path / "net.onnx"
        )


def test_more_than_a_file_holds_is_refused(tmp_path, monkeypatch):
    symbol, params, specs = parts_of(*NETS["mlp"])
    nbytes = sum(a.asnumpy().nbytes for a in params.values())
    monkeypatch.setattr(export, "LIMIT", nbytes - 1)
    with pytest.raises(ExportError, match=f"take {nbytes} bytes, but a file holds "):
        write_onnx(symbol, params, specs, tmp_path / "net.onnx")


def test_a_dtype_that_onnx_does_not_take_is_refused(tmp_path):
    with pytest.raises(ExportError, match="ReduceSum.* unsupported type: .*int8"):
        write_onnx(
            sym.sum(sym.var("x")), {}, {"x": Spec((2,), np.dtype("int8"))}, tmp_path / "net.onnx"
        )


def test_without_the_library_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(HybridError, match=r'pip install "minihybrid\[onnx\]"'):
        write_onnx(sym.exp(sym.var("x")), {}, {"x": Spec((2,), FLOATS)}, tmp_path / "net.onnx")


# -- MXNet's function ------------------------------------------------------------------
def test_export_model_reads_mxnets_files(tmp_path):
    """A symbol file and a parameter file; the label of the output layer is left out."""
    symbol, params, specs = parts_of(*NETS["mlp"])
    symbol = sym.SoftmaxOutput(symbol, name="softmax")
    symbol.save(str(tmp_path / "net-symbol.json"))
    nd.save(
        str(tmp_path / "net-0000.params"), {f"arg:{name}": array for name, array in params.items()}
    )
    path = mx.onnx.export_model(
        str(tmp_path / "net-symbol.json"),
        str(tmp_path / "net-0000.params"),
        [(4, 12)],
        np.float32,
        str(tmp_path / "net.onnx"),
        dynamic=True,
        dynamic_input_shapes=[("batch", 12)],
    )
    running = session(onnx.load(path).SerializeToString())
    assert [i.name for i in running.get_inputs()] == ["data"]
    x = nd.random.normal(shape=(7, 12))
    assert_agree(running, {"data": x.asnumpy()}, [nd.softmax(NETS["mlp"][0](x))], "mlp")


def test_export_model_takes_what_load_checkpoint_gives(tmp_path):
    net, shape = LAYERS["batch norm"]
    symbol, params, _ = parts_of(net, shape)
    states = {n: params.pop(n) for n in symbol.list_auxiliary_states()}
    mx.model.save_checkpoint(str(tmp_path / "net"), 3, symbol, params, states)
    symbol, *params = mx.model.load_checkpoint(str(tmp_path / "net"), 3)
    path = export_model(symbol, params, [shape], FLOATS, str(tmp_path / "net.onnx"))
    x = nd.random.normal(shape=shape)
    assert_agree(
        session(onnx.load(path).SerializeToString()), {"data": x.asnumpy()}, [net(x)], "checkpoint"
    )


def test_export_model_takes_a_dtype_for_each_input(tmp_path):
    weight = nd.random.normal(shape=(5, 3))
    symbol = sym.Embedding(sym.var("words"), sym.var("w"), input_dim=5, output_dim=3) + sym.var(
        "more"
    )
    path = export_model(
        symbol,
        {"arg:w": weight},
        [(2, 4), (2, 4, 3)],
        [np.int32, np.float32],
        str(tmp_path / "net.onnx"),
    )
    arrays = {"words": np.int32([[0, 1, 2, 3], [4, 0, 0, 2]]), "more": np.ones((2, 4, 3), "f4")}
    expected = nd.array(weight.asnumpy()[arrays["words"]] + 1)
    running = session(onnx.load(path).SerializeToString())
    assert_agree(running, arrays, [expected], "words")


@pytest.mark.parametrize(
    "more, words",
    [
        ({"in_shapes": []}, "0 shapes are given, but the inputs .* are x, y"),
        (
            {
                "in_shapes": [(2, 3), (2, 3)],
                "dynamic": True,
                "dynamic_input_shapes": [(None, None), (2, 3)],
            },
            "'x', but only the first axis may be of any length",
        ),
    ],
)
def test_wrong_calls_are_sentences(more, words, tmp_path):
    with pytest.raises(AttrError, match=words):
        export_model(
            sym.var("x") + sym.var("y"), {}, **more, onnx_file_path=str(tmp_path / "net.onnx")
        )


@pytest.mark.parametrize("idiom", IDIOMS)
def test_each_idiom_is_the_expression_of_an_operator(idiom):
    assert any(idiom == op.expr for op in OPS.values())
