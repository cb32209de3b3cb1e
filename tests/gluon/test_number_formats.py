"""Loss scaling of float16, and layers of int8."""

import numpy as np
import onnxruntime
import pytest

import minihybrid as mx
from minihybrid import autograd, gluon, nd
from minihybrid.gluon import amp, nn, quantization
from minihybrid.ops import quantize as ops
from minihybrid.passes import int8

MIXED = {"learning_rate": 1.0, "multi_precision": True}


# -- float16 -----------------------------------------------------------------------------
def half(**settings):
    """A float16 layer of one weight, 1, and its Trainer."""
    net = nn.Dense(1, in_units=1, use_bias=False)
    net.initialize("ones")
    net.cast("float16")
    return net, gluon.Trainer(net.collect_params(), "sgd", MIXED | settings)


def step(net, trainer, small, scaled=True):
    """A step whose loss is x * weight * small, so that its gradient is small."""
    with autograd.record():
        loss = net(nd.ones((1, 1), dtype="float16")) * small
        if scaled:
            with amp.scale_loss(loss, trainer) as loss:
                autograd.backward(loss)
        else:
            loss.backward()
    trainer.step(1)
    return net.weight.data().astype("float32").item()


def test_scaled_gradient_does_not_underflow():
    """1e-4 * 1e-4 is 0 in float16; the scale comes in before the product."""
    steps = []
    for scaled in (False, True):
        net, trainer = half(learning_rate=2.0**20)
        amp.init_trainer(trainer)
        trainer._scaler.loss_scale = 2.0**15  # a scale that float16 holds
        with autograd.record():
            y = net(nd.ones((1, 1), dtype="float16")) * 1e-4
            if scaled:
                with amp.scale_loss(y * 1e-4, trainer) as loss:
                    autograd.backward(loss)
            else:
                (y * 1e-4).backward()
        trainer.step(1)
        steps.append(1 - net.weight.data().astype("float32").item())
    assert steps[0] == 0
    assert steps[1] == pytest.approx(2**20 * 1e-8, rel=0.05)


def test_overflow_skips_the_step_and_halves_the_scale():
    net, trainer = half()
    amp.init_trainer(trainer)
    scaler = trainer._scaler
    assert step(net, trainer, 2.0) == 1  # 2 * 65536 is infinite
    assert (scaler.loss_scale, scaler.skipped) == (2.0**15, 1)
    assert step(net, trainer, 2.0) == 1  # 2 * 32768 as well
    assert step(net, trainer, 2.0) == -1
    assert (scaler.loss_scale, scaler.skipped) == (2.0**14, 2)


def test_many_clean_steps_double_the_scale():
    scaler = amp.LossScaler(4.0, window=3)
    grads = [np.ones(2, "f2")]
    assert [scaler.update(grads) and scaler.loss_scale for _ in range(6)] == [4, 4, 8, 8, 8, 16]
    scaler.update([np.float16([np.nan])])
    assert [scaler.update(grads) and scaler.loss_scale for _ in range(3)] == [8, 8, 16]


def test_unscaled_gradients_are_those_of_the_loss():
    net, trainer = half()
    amp.init_trainer(trainer)
    trainer._scaler.loss_scale = 2.0**15
    with autograd.record(), amp.scale_loss(net(nd.ones((1, 1), dtype="f2")) / 8, trainer) as loss:
        loss.backward()
    amp.unscale(trainer)
    assert net.weight.grad().item() == 0.125
    trainer.step(1)
    assert net.weight.data().item() == 0.875


def test_steps_without_scale_loss_are_as_before():
    net, trainer = half()
    amp.init_trainer(trainer)
    assert step(net, trainer, 0.5, scaled=False) == 0.5


def test_loss_scaling_names_what_is_missing():
    _, trainer = half(multi_precision=False)
    with pytest.raises(mx.AttrError, match="'multi_precision': True"):
        amp.init_trainer(trainer)
    with pytest.raises(mx.AttrError, match="call amp.init_trainer"), amp.scale_loss(1, trainer):
        pass
    with pytest.raises(mx.AttrError, match="a gluon.Trainer is needed, found 3"):
        amp.init_trainer(3)


def test_float16_is_added_up_in_float32():
    """100 numbers of 0.1 are a bit less than 10; NumPy's own running sum loses more."""
    x = nd.full((3000, 4), 0.1, dtype="float16")
    wide = np.float16(x.asnumpy().astype("f4").sum(0))
    assert (x.sum(axis=0).asnumpy() == wide).all()
    assert (x.T.sum(axis=1).asnumpy() == wide).all()
    assert (nd.dot(x.T, nd.ones((3000, 1), dtype="f2")).asnumpy()[:, 0] == wide).all()


def test_mxnets_names_lead_here():
    assert mx.contrib.amp.init_trainer is amp.init_trainer
    assert mx.contrib.quantization.quantize_net is quantization.quantize_net


# -- int8 --------------------------------------------------------------------------------
def small_net():
    """Convolutions with padding, stride and groups, a BatchNorm, and dense layers."""
    mx.random.seed(1)
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Conv2D(8, 3, padding=1, activation="relu"), nn.BatchNorm())
        net.add(nn.Conv2D(8, 3, groups=4, strides=2, padding=1, use_bias=False), nn.MaxPool2D())
        net.add(nn.Dense(16, activation="relu"), nn.Dense(10))
    net.initialize(mx.init.Xavier())
    x = nd.random.uniform(-1, 1, shape=(4, 2, 12, 12))
    return net, x, net(x)


def test_int8_products_are_exact():
    rng = np.random.default_rng(0)
    for depth in (7, 1024, 1025, 4000):  # the last ones need more than float32 has
        a, b = (rng.integers(-128, 128, (2, n, depth)).astype("i1") for n in (3, 5))
        a[0, 0], b[0, 0] = -128, -128
        a[0, 0, 0] = b[0, 0, 0] = 1  # 2**24 + 1 for 1,025 products
        out = np.zeros((2, 3, 5), "i4")
        exact = a.astype("i8") @ b.astype("i8").swapaxes(1, 2)
        assert (ops.int8_dot.eager(a, b) == exact).all()
        ops.int8_dot.cpu.run(a.astype("i4"), b.astype("i4"), out)
        assert (out == exact).all()


def test_rounding_to_int8_saturates_and_takes_even_halves():
    x = nd.array([0.5, 1.5, 2.5, -0.5, 400, -400])
    assert nd._internal._quantize(x, scale=1.0).asnumpy().tolist() == [0, 2, 2, 0, 127, -128]


@pytest.mark.parametrize("target", ["numpy", pytest.param("cpu", marks=pytest.mark.slow)])
def test_quantized_net_is_near_the_net(target):
    net, x, y = small_net()
    small = quantization.quantize_net(net, calib_data=[x])
    error = abs(small(x) - y).max().item() / abs(y).max().item()
    assert 0 < error < 0.05
    eager = small(x).asnumpy()
    small.hybridize(backend=target)
    np.testing.assert_array_equal(small(x).asnumpy(), eager)
    assert [*{p.target for p in small.plans.values()}] == [target]


def quantized_ops(net):
    return [n.op.name for n in mx.core.graph.topological(net._outputs.refs) if n.op]


def test_layers_that_are_excluded_stay_float32():
    net, x, _ = small_net()
    whole = quantized_ops(quantization.quantize_net(net, calib_data=[x]))
    assert whole.count("_quantized_convolution") == whole.count("_quantized_fully_connected") == 2
    names = ["net_conv0", "net_dense1"]
    some = quantized_ops(quantization.quantize_net(net, exclude_layers=names, calib_data=[x]))
    assert some.count("Convolution") == some.count("FullyConnected") == 1
    assert some.count("_quantize") == 2


def test_value_that_two_layers_read_is_quantized_once():
    class Two(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Dense(2), nn.Dense(2)

        def hybrid_forward(self, F, x):
            return self.a(x) + self.b(x)

    net, x = Two(), nd.ones((1, 3))
    net.initialize()
    assert quantized_ops(quantization.quantize_net(net, calib_data=[x])).count("_quantize") == 1


def test_calibration_uses_all_batches_or_as_many_as_wanted():
    net = nn.Dense(1, in_units=1, use_bias=False)
    net.initialize("ones")
    data = gluon.data.DataLoader(gluon.data.ArrayDataset(nd.array([[1], [-4], [2]]), [0, 1, 2]), 1)
    for most, largest in ((None, 4), (1, 1), (2, 4)):
        small = quantization.quantize_net(net, calib_data=data, num_calib_examples=most)
        assert small(nd.array([[1000]])).item() == pytest.approx(largest)  # it saturates
        assert small(nd.array([[-1000]])).item() == pytest.approx(-largest * 128 / 127)


def test_weights_have_a_scale_for_each_output():
    numbers, scale = int8.quantized_weight(np.float32([[[1, -2]], [[0.01, 0]], [[0, 0]]]))
    assert numbers.tolist() == [[[64, -127]], [[127, 0]], [[0, 0]]]
    np.testing.assert_allclose(scale, np.float32([2 / 127, 0.01 / 127, 1]))


def test_quantized_net_is_written_and_read(tmp_path):
    net, x, _ = small_net()
    small = quantization.quantize_net(net, calib_data=[x])
    small.hybridize(backend="numpy")
    expected = small(x).asnumpy()
    small.export(f"{tmp_path}/small")
    names = f"{tmp_path}/small-symbol.json", ["data"], f"{tmp_path}/small-0000.params"
    np.testing.assert_array_equal(gluon.SymbolBlock.imports(*names)(x).asnumpy(), expected)
    nbytes = {name: (p.data().size, p.data().dtype) for name, p in small.collect_params().items()}
    assert nbytes["net_dense0_weight_quantize"] == (16 * 8 * 9, np.int8)
    assert "net_dense0_weight" not in nbytes
    small.export(f"{tmp_path}/small", format="onnx")
    plain = onnxruntime.SessionOptions()  # its fused int8 kernels differ by more, on AVX2
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session = onnxruntime.InferenceSession(f"{tmp_path}/small.onnx", plain)
    actual = session.run(None, {"data": x.asnumpy()})[0]
    step = np.abs(expected).max() / 127  # a value between two integers may go to the other one
    assert np.abs(actual - expected).max() < step


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"calib_mode": "entropy"}, "needed: 'int8' and 'naive'"),
        ({"quantized_dtype": "uint8"}, "needed: 'int8' and 'naive'"),
        ({"calib_data": None}, "holds no batch of NDArrays"),
        ({"exclude_layers": ["fc"]}, "no float32 dense layer"),
        ({"calib_data": [nd.array([[np.nan]])]}, "data of 'fc_fwd' is not finite"),
        ({"network": nn.Sequential()}, "a HybridBlock is needed"),
    ],
)
def test_quantization_names_what_does_not_fit(changes, words):
    net = nn.Dense(1, in_units=1, prefix="fc_")
    net.initialize()
    with pytest.raises(mx.HybridError, match=words):
        quantization.quantize_net(**{"network": net, "calib_data": [nd.ones((1, 1))]} | changes)


def test_floats_are_refused_by_layers_of_int8():
    arrays = nd.ones((1, 2)), nd.ones((3, 2)), nd.ones(3), nd.ones(3)
    with pytest.raises(mx.DTypeError, match="data is float32, but int8 is needed"):
        nd._internal._quantized_fully_connected(*arrays, num_hidden=3, data_scale=1.0)
