"""bfloat16: each operator computes in float32 and rounds once, eagerly and compiled."""

import sys

import ml_dtypes
import numpy as np
import pytest
from marks import for_each
from minihybrid.nd import NDArray
from samples import UNIQUE, cases_of, has_samples
from traced import Program, apply

import minihybrid as mx
from minihybrid import autograd, gluon, nd
from minihybrid.core.op import DTypeError, HybridError, NumberError
from minihybrid.gluon import nn
from minihybrid.np import array as np_array
from minihybrid.ops import OPS

BF16, BFLOAT16_OF_ONNX = np.dtype(ml_dtypes.bfloat16), 16
SOME = (
    "elemwise_add broadcast_mul relu exp log_softmax sum mean max argmax _where clip transpose "
    "FullyConnected dot Convolution Pooling BatchNorm LayerNorm Embedding take concat sort "
    "_mul_scalar one_hot SequenceMask Dropout Cast"
).split()


def bits(array):
    return np.asarray(array).view(np.uint16)


def narrowed(case):
    """The inputs of a sample: its floats as bfloat16, but for scales of int8."""
    arrays = case.arrays("float32", np.random.default_rng(0))
    return [
        a.astype(BF16) if a.dtype == np.float32 and kind.kind != "scale" else a
        for a, kind in zip(arrays, case.inputs, strict=True)
    ]


def outputs(case, arrays):
    nd.random.seed(3)
    with autograd.train_mode():
        return [o.data for o in apply(case, [NDArray(a.copy()) for a in arrays])]


@for_each(o for o in UNIQUE if has_samples(o))
def test_operator_is_that_of_float32_rounded_once(op):
    for case in cases_of(op):
        arrays = narrowed(case)
        if BF16 not in {a.dtype for a in arrays}:
            continue
        wide = [a.astype(np.float32) if a.dtype == BF16 else a for a in arrays]
        for got, expected in zip(outputs(case, arrays), outputs(case, wide), strict=True):
            expected = expected.astype(got.dtype)
            assert got.tobytes() == expected.tobytes(), case


@pytest.mark.parametrize("target", ["numpy", pytest.param("cpu", marks=pytest.mark.slow)])
def test_target_agrees_with_eager(target):
    """NumPy's plan bit for bit, loops within a step of bfloat16."""
    cases = [c for name in SOME for c in cases_of(OPS[name])[:2]]
    made = Program(cases, "bfloat16")
    for case, got, expected in zip(
        cases, made.compiled(target)(made.values), made.eager(made.values), strict=True
    ):
        for a, b in zip(got, expected, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape, case
            if target == "numpy":
                assert a.tobytes() == b.tobytes(), case
            else:
                a, b = (x.astype(np.float64) for x in (a, b))
                np.testing.assert_allclose(a, b, 2**-7, 1e-6, err_msg=str(case))


# -- rounding ----------------------------------------------------------------------------
UPPER = np.arange(2**16, dtype=np.uint32) << 16
PATTERNS = {"exact": 0, "below the tie": 0x7FFF, "tie": 0x8000, "above": 0x8001, "last": 0xFFFF}


def converted(array, dtype, target):
    if target == "eager":
        return nd.NDArray(array).astype(dtype).data
    net = nn.HybridLambda(lambda F, x: x.astype(dtype))
    net.hybridize(backend=target)
    return net(nd.NDArray(array)).data


@pytest.mark.parametrize("target", ["eager", "numpy", "cpu"])
@pytest.mark.parametrize("lower", PATTERNS.values(), ids=PATTERNS)
def test_rounding_is_to_nearest_even(lower, target):
    """Every bfloat16 and what lies above it: subnormal, infinite and NaN, too."""
    wide = (UPPER | lower).view(np.float32)
    got = bits(converted(wide, "bfloat16", target))
    odd = (UPPER >> 16) & 1
    expected = (UPPER >> 16) + (lower > 0x8000) + (lower == 0x8000) * odd
    is_nan = np.isnan(wide)
    np.testing.assert_array_equal(got[~is_nan], expected[~is_nan])
    np.testing.assert_array_equal(got[is_nan], (UPPER >> 16)[is_nan] & 0x8000 | 0x7FC0)


@pytest.mark.parametrize("target", ["eager", "numpy", "cpu"])
def test_every_bfloat16_is_widened_exactly(target):
    narrow = (UPPER >> 16).astype(np.uint16).view(BF16)
    assert (converted(narrow, "float32", target).view(np.uint32) == UPPER).all()


# -- dtypes of results ---------------------------------------------------------------------
def test_results_have_the_dtypes_of_float16():
    x = np_array([1, 2], dtype="bfloat16")
    assert {np.dtype((x + y).dtype).name for y in (1, 2.5, 70000, np_array([1], "int32"))} == {
        "bfloat16"
    }
    for other in ("float32", "float16"):
        assert (x + np_array([1, 2], dtype=other)).dtype == np.float32
    with pytest.raises(NumberError, match="1e\\+39 does not fit into bfloat16, .* 3.4"):
        x + 1e39
    for other in ("float32", "float16", "int32"):
        with pytest.raises(DTypeError, match=r"bfloat16.*one dtype is needed") as error:
            nd.ones((2,), dtype="bfloat16") + nd.ones((2,), dtype=other)
        assert f" {other} " in str(error.value) or f" {other}," in str(error.value)


def test_without_ml_dtypes_a_sentence_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(HybridError, match="zeros: NumPy has no such dtype, .* ml_dtypes adds"):
        nd.zeros((2,), dtype="bfloat16")


# -- a net -----------------------------------------------------------------------------------
def small_net(seed=0):
    nd.random.seed(seed)
    net = nn.HybridSequential()
    net.add(nn.Dense(8, activation="tanh", in_units=5), nn.LayerNorm(in_channels=8))
    net.add(nn.Dense(3, in_units=8))
    net.initialize()
    return net


def gradients(net, x):
    with autograd.record():
        loss = (net(x).astype("float32") ** 2).sum()
    loss.backward()
    return [
        p.grad().astype("float32").asnumpy()
        for p in net.collect_params().values()
        if p.grad_req != "null"
    ]


@pytest.mark.parametrize("backend", ["numpy", "cpu"])
def test_gradients_of_a_net_are_those_of_float32_rounded(backend):
    x = nd.random.normal(shape=(16, 5)).astype("bfloat16")
    net = small_net()
    net.cast("bfloat16")
    eager = gradients(net, x)
    net.hybridize(backend=backend)
    compiled = gradients(net, x)
    wide = small_net()
    for p, q in zip(wide.collect_params().values(), net.collect_params().values(), strict=True):
        p.set_data(q.data().astype("float32"))
    exact = gradients(wide, x.astype("float32"))
    assert next(iter(net.plans.values())).target == backend
    for a, b, c in zip(eager, compiled, exact, strict=True):
        assert np.abs(a - b).max() <= 2**-7 * np.abs(a).max()
        assert 0 < np.abs(a - c).max() < 0.05 * np.abs(c).max()


def test_training_converges_without_a_loss_scale():
    nd.random.seed(1)
    x = nd.random.normal(shape=(64, 5))
    y = (x.asnumpy() @ np.arange(5) > 0).astype("f4")
    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation="relu", in_units=5), nn.Dense(2, in_units=16))
    net.initialize()
    net.cast("bfloat16")
    net.hybridize()
    settings = {"learning_rate": 0.05, "multi_precision": True}
    trainer = gluon.Trainer(net.collect_params(), "adam", settings)
    loss_fn, x, y = gluon.loss.SoftmaxCELoss(), x.astype("bfloat16"), nd.array(y)
    losses = []
    for _ in range(40):
        with autograd.record():
            loss = loss_fn(net(x).astype("float32"), y)
        loss.backward()
        trainer.step(len(x))
        losses.append(loss.mean().item())
    assert {np.dtype(p.dtype) for p in net.collect_params().values()} == {BF16}
    assert losses[-1] < 0.1 < 0.4 < losses[0]


# -- out of the engine -------------------------------------------------------------------
def test_parameters_keep_their_bits_in_a_file(tmp_path):
    net = small_net()
    net.cast("bfloat16")
    x = nd.ones((2, 5), dtype="bfloat16")
    expected = bits(net(x).data)
    net.save_parameters(str(tmp_path / "net.params"))
    other = small_net(1)
    with pytest.raises(HybridError, match="is bfloat16, but the net has float32; cast_dtype"):
        other.load_parameters(str(tmp_path / "net.params"))
    other.cast("bfloat16")
    other.load_parameters(str(tmp_path / "net.params"))
    assert (bits(other(x).data) == expected).all()
    net.hybridize(backend="numpy")
    net(x)
    files = net.export(str(tmp_path / "net"))
    block = gluon.SymbolBlock.imports(files[0], ["data"], files[1])
    assert (bits(block(x).data) == expected).all()


@pytest.mark.parametrize("format", ["c", "numpy", "wasm"])
def test_programs_without_the_engine_refuse_it_by_name(format, tmp_path):
    net = small_net()
    net.cast("bfloat16")
    net.hybridize(backend="cpu")
    net(nd.ones((2, 5), dtype="bfloat16"))
    with pytest.raises(HybridError, match="'data' is bfloat16, which .*; cast .* float32"):
        net.export(str(tmp_path / "net"), format=format)
    assert not list(tmp_path.iterdir())


@pytest.mark.external
def test_onnx_computes_the_same_bits(tmp_path):
    """In ONNX Runtime, and in the net that is read back."""
    import onnxruntime

    net = small_net()
    net.cast("bfloat16")
    net.hybridize(backend="numpy")
    x = nd.random.normal(shape=(2, 5)).astype("bfloat16")
    expected = bits(net(x).data)
    (file,) = net.export(str(tmp_path / "net"), format="onnx")
    assert (bits(mx.onnx.import_to_gluon(file)(x).data) == expected).all()
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    call, made = session.io_binding(), np.zeros_like(expected)
    for bind, value, array in (
        (call.bind_ortvalue_input, session.get_inputs()[0], bits(x.data)),
        (call.bind_ortvalue_output, session.get_outputs()[0], made),
    ):
        of_bits = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type
        bind(value.name, of_bits(array, BFLOAT16_OF_ONNX))
    session.run_with_iobinding(call)
    steps = np.abs(made.astype(int) - expected.astype(int))
    assert steps.max() <= 1 and steps.mean() < 0.5


def test_dlpack_and_gpus_refuse_it_by_name():
    x = nd.ones((2,), dtype="bfloat16")
    with pytest.raises(BufferError, match="NumPy lends no bfloat16; convert"):
        x.__dlpack__()
    with pytest.raises(HybridError, match="is bfloat16, which has no GPU kernels; move"):
        x.as_in_context(mx.simulated_gpu()) * 2
