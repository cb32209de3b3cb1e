"""Every graph that ONNX can say goes to ONNX Runtime, which must give our answer."""
import fnmatch

import numpy as np
import pytest
from samples import UNIQUE, cases_of

from minihybrid import init, nd, sym
from minihybrid.gluon import contrib, nn
from minihybrid.gluon.model_zoo import vision
from minihybrid.nd import NDArray
from minihybrid.onnx.export import ExportError, export_model, write_onnx
from minihybrid.op import ShapeError, Spec
from minihybrid.sym import Symbol

onnx = pytest.importorskip("onnx", reason="the library onnx is not installed: no model "
                           "is checked; pip install 'minihybrid[onnx]'")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: no "
                              "exported model is run")

RANDOM, MISSING = "draws random numbers", "ONNX has no (operator|function)"
# What has no place in ONNX: patterns of operators or of samples -> what is said.
REFUSED = {
    "_random_*": RANDOM, "_sample_*": RANDOM, "_draw_*": RANDOM, "_shuffle": RANDOM,
    "_npi_uniform": RANDOM, "_npi_normal": RANDOM, "_dropout_mask": RANDOM,
    "Dropout-*-mode=always": RANDOM,
    "erfinv": MISSING, "gamma": MISSING, "gammaln": MISSING, "_polygamma": MISSING,
    "_cholesky": MISSING, "_inverse": MISSING, "_solve_triangle": MISSING,
    "_linalg_potr[fi]": MISSING, "_linalg_inverse": MISSING, "_linalg_trsm": MISSING,
}

every_op = pytest.mark.parametrize("op", UNIQUE, ids=lambda op: op.name)


def session(model):
    """ONNX Runtime with a model whose bytes the checker has read."""
    onnx.checker.check_model(model, full_check=True)
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def exported(tmp_path, symbol, params, specs, **more):
    path = write_onnx(symbol, params, specs, tmp_path / "model.onnx", **more)
    return session(path.read_bytes())


def assert_agree(running, arrays, wanted, what):
    """ONNX Runtime's outputs are those wanted, to 1e-5 of the number or of 1."""
    read = {i.name for i in running.get_inputs()}
    got = running.run(None, {n: a for n, a in arrays.items() if n in read})
    for mine, its in zip(wanted, got, strict=True):
        assert (its.shape, its.dtype) == (mine.shape, mine.data.dtype), what
        np.testing.assert_allclose(its, mine.data, 1e-5, 1e-5, err_msg=str(what))


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
        shapes = [i.shape if batch is None or i.shape[:1] != old[0].shape[:1]
                  else (batch, *i.shape[1:]) for i in self.case.inputs]
        return {name: i._replace(shape=shape).array(np.dtype(dtype), rng)
                for name, i, shape in zip(self.names, self.case.inputs, shapes,
                                          strict=True)}

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
                write_onnx(sample.symbol, {}, specs_of(arrays), tmp_path / "no.onnx",
                           dynamic=False)
            node = sample.symbol.refs[0][0].name
            assert f"{op.name} '{node}'" in str(caught.value)
            assert not (tmp_path / "no.onnx").exists()
        else:
            running = exported(tmp_path, sample.symbol, {}, specs_of(arrays),
                               dynamic=False)
            assert_agree(running, arrays, sample.answers(arrays), case)


@every_op
def test_a_batch_of_any_length_gives_our_answer_or_no_file(op, tmp_path):
    """Whatever the first axis of the sample means: a wrong model is never written."""
    for case in cases_of(op):
        if not case.inputs or not case.inputs[0].shape or refusal(case) or \
                op.name == "_put_slice":  # which takes data of wrong shapes and repeats
            continue
        sample = Sample(case)
        try:
            running = exported(tmp_path, sample.symbol, {},
                               specs_of(sample.arrays("float32")))
        except ExportError as error:
            assert "batch" in str(error) and "dynamic=False" in str(error)
            continue
        for batch in (1, 2, 5):
            arrays = sample.arrays("float32", batch)
            try:
                wanted = sample.answers(arrays)
            except ShapeError:  # an index that is outside of such an axis
                continue
            assert_agree(running, arrays, wanted, case)


# -- layers and nets -------------------------------------------------------------------
IMAGE = (3, 4, 7, 6)
LAYERS = {
    "dense": (nn.Dense(5), IMAGE),
    "dense on each row": (nn.Dense(5, flatten=False, use_bias=False), (3, 4, 6)),
    "dense with relu": (nn.Dense(5, activation="relu"), (3, 4)),
    "flatten": (nn.Flatten(), IMAGE), "identity": (contrib.nn.Identity(), IMAGE),
    "dropout": (nn.Dropout(0.5), IMAGE),
    "leaky": (nn.LeakyReLU(0.1), IMAGE), "prelu": (nn.PReLU(), IMAGE),
    "elu": (nn.ELU(0.7), IMAGE), "selu": (nn.SELU(), IMAGE), "gelu": (nn.GELU(), IMAGE),
    "swish": (nn.Swish(1.5), IMAGE),
    **{kind: (nn.Activation(kind), IMAGE)
       for kind in ("relu", "sigmoid", "tanh", "softrelu", "softsign")},
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
    "layer norm": (nn.LayerNorm(), IMAGE), "layer norm 1": (nn.LayerNorm(1), IMAGE),
    "group norm": (nn.GroupNorm(2), IMAGE), "instance norm": (nn.InstanceNorm(), IMAGE),
}


def filled(net, *blocks):
    net.add(*blocks)
    return net


LAYERS["beside each other"] = filled(
    contrib.nn.HybridConcurrent(axis=1), nn.Conv2D(2, 1), contrib.nn.Identity(),
    nn.AvgPool2D(3, 1, 1)), IMAGE
MLP = filled(nn.HybridSequential(), nn.Dense(16, activation="relu"), nn.Dropout(0.5),
             nn.Dense(10))
NETS = {
    "mlp": (MLP, (4, 12)), "lenet": (vision.lenet(), (2, 1, 28, 28)),
    "resnet 18": (vision.resnet18_v1(classes=10, thumbnail=True), (2, 3, 16, 16)),
    "resnet 18 v2": (vision.resnet18_v2(classes=10, thumbnail=True), (2, 3, 16, 16)),
    "resnet 50": (vision.ResNetV1(vision.BottleneckV1, [1, 1], [4, 8, 16]),
                  (2, 3, 32, 32)),
    "mobilenet": (vision.mobilenet0_25(classes=10), (2, 3, 32, 32)),
    "mobilenet v2": (vision.mobilenet_v2_0_25(classes=10), (2, 3, 32, 32)),
    "vgg": (vision.VGG([1, 2], [4, 8], batch_norm=True), (2, 3, 8, 8)),
    "parts of squeezenet": (vision.chain(vision.fire(2, 3), vision.fire(3, 4)), IMAGE),
}


def parts_of(net, shape):
    """(symbol, name -> parameter's array, name -> Spec of the input) of a net that has
    seen data of a shape."""
    net.collect_params().initialize(init.Xavier(), force_reinit=True)
    net(nd.random.normal(shape=shape))
    for name, param in net.collect_params().items():
        if name.endswith(("running_mean", "running_var", "gamma", "beta")):
            param.set_data(nd.random.uniform(0.5, 1.5, param.shape))
    params = {name: p.data() for name, p in net.collect_params().items()}
    return net(sym.var("data")), params, {"data": Spec(shape, np.dtype("float32"))}


@pytest.mark.parametrize("name", [*LAYERS, *NETS])
def test_a_net_gives_our_answer_for_every_batch(name, tmp_path):
    net, shape = (LAYERS | NETS)[name]
    running = exported(tmp_path, *parts_of(net, shape))
    assert running.get_inputs()[0].shape == ["batch", *shape[1:]]
    assert {out.shape[0] for out in running.get_outputs()} == {"batch"}
    for batch in (shape[0], 1, 5):
        x = nd.random.normal(shape=(batch, *shape[1:]))
        assert_agree(running, {"data": x.asnumpy()}, as_list(net(x)), name)
