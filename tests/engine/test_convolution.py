"""Convolution and pooling: MXNet's answers, layers, words, and how many kernels."""

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from minihybrid import autograd, gluon, nd, sym
from minihybrid.core.op import AttrError, ShapeError
from minihybrid.gluon import nn
from minihybrid.ops import OPS, im2col, pooling

GOLDEN = Path(__file__).parents[1] / "golden" / "convolution" / "answers.json"
CASES = json.loads(GOLDEN.read_text(encoding="utf-8"))


def numbers(shape, start):
    """The numbers that the golden answers were made with."""
    count = int(np.prod(shape))
    values = ((np.arange(count) * 37 + start * 11) % 19 - 9) / 8
    return values.reshape(shape).astype("float32")


@pytest.mark.parametrize(
    "case",
    CASES,
    ids=lambda case: "-".join(
        [case["op"], *(f"{k}={v}" for k, v in case["attrs"].items())]
    ).replace(" ", ""),
)
def test_answer_and_gradient_are_those_of_mxnet(case):
    attrs = {k: tuple(v) if isinstance(v, list) else v for k, v in case["attrs"].items()}
    values = [nd.array(numbers(s, i)) for i, s in enumerate(case["shapes"])]
    for value in values:
        value.attach_grad()
    with autograd.record():
        out = getattr(nd, case["op"])(*values, **attrs)
    assert out.shape == tuple(case["shape"])
    out.backward(nd.array(numbers(out.shape, 5)))
    np.testing.assert_allclose(out.asnumpy().ravel(), case["out"], 1e-5, 1e-5)
    for value, expected in zip(values, case["grads"], strict=True):
        np.testing.assert_allclose(value.grad.asnumpy().ravel(), expected, 1e-5, 1e-5)


# -- blocks ----------------------------------------------------------------------------
def drawn_geometry(rng):
    """(shape of the data, shape of the weights, geometry) of a random convolution."""
    n_axes, groups = rng.integers(1, 4), int(rng.choice([1, 1, 2, 3]))
    kernel, stride, dilate, pad = (
        tuple(rng.integers(low, high, n_axes).tolist())
        for low, high in ((1, 5), (1, 4), (1, 3), (0, 4))
    )
    least = [d * (k - 1) + 1 - 2 * p for k, d, p in zip(kernel, dilate, pad, strict=True)]
    size = tuple(max(n, 1) + int(rng.integers(0, 7)) for n in least)
    channels, filters = groups * int(rng.integers(1, 4)), groups * int(rng.choice([1, 2, 13]))
    geometry = dict(size=size, kernel=kernel, stride=stride, dilate=dilate, pad=pad)
    shape = (int(rng.integers(0, 6)), channels, *size)
    return shape, (filters, channels // groups, *kernel), geometry | {"num_group": groups}


def sums_of_taps(data, weight, *, size, kernel, stride, dilate, pad, num_group):
    """The definition, one tap after another."""
    data, n = np.pad(data, [(0, 0), (0, 0), *((p, p) for p in pad)]), len(data)
    out = [
        (m - d * (k - 1) - 1) // s + 1
        for m, k, s, d in zip(data.shape[2:], kernel, stride, dilate, strict=True)
    ]
    total = np.zeros((n, num_group, len(weight) // num_group, *out))
    places = zip(np.ndindex(*kernel), im2col.taps(kernel, stride, dilate, out), strict=True)
    for tap, at in places:
        seen = data[at].reshape(n, num_group, data.shape[1] // num_group, *out)
        rows = weight[(..., *tap)].reshape(num_group, len(weight) // num_group, -1)
        total += np.einsum("goc,ngc...->ngo...", rows, seen)
    return total.reshape(n, len(weight), *out)


@pytest.mark.parametrize("block", [1, 2**10, 2**21])
@pytest.mark.parametrize("small", [1, 256])
@pytest.mark.parametrize("pays", [im2col.pays, lambda weight, n_shifts, n: n_shifts > 1])
def test_eager_sums_do_not_depend_on_the_blocks(monkeypatch, block, small, pays):
    """Forward as defined; both gradients by <conv(x, w), g> = <x, back> = <w, weight_sums>."""
    sizes = dict.fromkeys(("SMALL", "LONG", "THIN", "WIDE"), small)
    for name, value in (*sizes.items(), ("BLOCK_BYTES", block), ("pays", pays)):
        monkeypatch.setattr(im2col, name, value)
    rng = np.random.default_rng(block + small)
    for _ in range(30):
        shape, weights, geometry = drawn_geometry(rng)
        data, weight = rng.standard_normal(shape), rng.standard_normal(weights)
        out = im2col.convolved(data, weight, **geometry)
        np.testing.assert_allclose(out, sums_of_taps(data, weight, **geometry), 1e-9, 1e-9)
        grad = rng.standard_normal(out.shape)
        back = im2col.convolved_back(grad, weight, **geometry)
        sums = im2col.weight_sums(data, grad, **geometry)
        assert (back.shape, sums.shape) == (shape, weights), geometry
        product = (out * grad).sum()
        assert (back * data).sum() == pytest.approx(product, 1e-9, 1e-9), geometry
        assert (sums * weight).sum() == pytest.approx(product, 1e-9, 1e-9), geometry


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("name", ["convolved", "convolved_back", "weight_sums"])
@pytest.mark.parametrize("infinite", [0, 1])
def test_zeros_of_the_padding_times_infinity_are_nan(monkeypatch, name, infinite):
    """Whether columns are shared or not."""
    three = (3, 3)
    geometry = dict(size=(4, 4), kernel=three, stride=(1, 1), dilate=(1, 1), pad=(1, 1))
    arrays = [np.ones((2, 2, 4, 4)), np.ones((2, 2, *(three if name != "weight_sums" else (4, 4))))]
    arrays[infinite][0, 0, 0, 0] = np.inf
    results = []
    for value in (True, False):
        monkeypatch.setattr(im2col, "pays", lambda *_, value=value: value)
        results.append(getattr(im2col, name)(*arrays, **geometry, num_group=1))
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int32"])
def test_eager_sums_keep_the_dtype(dtype):
    rng = np.random.default_rng(0)
    for _ in range(20):
        shape, weights, geometry = drawn_geometry(rng)
        data = rng.integers(-2, 3, shape).astype(dtype)
        weight = rng.integers(-1, 2, weights).astype(dtype)
        out = im2col.convolved(data, weight, **geometry)
        back = im2col.convolved_back(out, weight, **geometry)
        sums = im2col.weight_sums(data, out, **geometry)
        assert {out.dtype, back.dtype, sums.dtype} == {np.dtype(dtype)}
        right = sums_of_taps(*(np.float64(v) for v in (data, weight)), **geometry)
        np.testing.assert_array_equal(out, right.astype(np.int64).astype(dtype))


@pytest.mark.parametrize("kernel", [(1, 1), (3, 3)])
def test_eager_convolutions_copy_a_block_at_a_time(monkeypatch, kernel):
    """Memory beside the result does not grow with the batch: at most a few blocks."""
    for name, value in (("BLOCK_BYTES", 2**17), ("SMALL", 64), ("LONG", 64)):
        monkeypatch.setattr(im2col, name, value)
    geometry = dict(size=(28, 28), kernel=kernel, stride=(1, 1), dilate=(1, 1))
    geometry |= {"pad": tuple(k // 2 for k in kernel), "num_group": 1}
    data, weight = np.ones((16, 16, 28, 28), "f4"), np.ones((16, 16, *kernel), "f4")
    for function, first, second in (
        (im2col.convolved, data, weight),
        (im2col.convolved_back, data, weight),
        (im2col.weight_sums, data, data),
    ):
        tracemalloc.start()
        try:
            result = function(first, second, **geometry)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak - result.nbytes < 4 * im2col.BLOCK_BYTES < data.nbytes, function.__name__


@pytest.mark.parametrize("name", ["_max", "_unmax", "_remax", "_sum", "_unsum"])
def test_eager_pooling_does_not_depend_on_the_images_at_once(monkeypatch, name):
    function = getattr(pooling, f"{name}_eager")
    rng = np.random.default_rng(0)
    geometry = dict(size=(7, 6), kernel=(3, 2), stride=(2, 1), pad=(1, 0), outs=(4, 5))
    data, outs = rng.standard_normal((5, 2, 7, 6)), rng.standard_normal((5, 2, 4, 5))
    given = {"_max": [data], "_unmax": [outs, data], "_remax": [data, data], "_unsum": [outs]}
    more = {"count": "numbers"} if "sum" in name else {}
    together = function(*given.get(name, [data]), **geometry, **more)
    monkeypatch.setattr(pooling, "IMAGES", 1)
    alone = function(*given.get(name, [data]), **geometry, **more)
    np.testing.assert_array_equal(together, alone)


# -- gradients -------------------------------------------------------------------------
def test_gradient_of_a_tie_goes_to_the_first_maximum():
    x = nd.zeros((1, 1, 3, 3))
    x.attach_grad()
    with autograd.record():
        y = nd.Pooling(x, kernel=(2, 2))
    y.backward(nd.array(np.float32([[[[1, 2], [3, 4]]]])))
    assert x.grad.asnumpy().tolist() == [[[[1, 2, 0], [3, 4, 0], [0, 0, 0]]]]


def lenet():
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(6, 5, padding=2, activation="relu"),
        nn.MaxPool2D(2, 2),
        nn.Conv2D(16, 5, activation="relu"),
        nn.AvgPool2D(2, 2),
        nn.Dense(10),
    )
    net.initialize()
    return net


def test_infinity_beside_a_row_end_does_not_spoil_the_weights_gradient():
    """A plane's rows follow each other in memory: the end must not see the start."""
    net = nn.Conv2D(1, (1, 2), use_bias=False, in_channels=1)
    net.initialize()
    x = np.zeros((1, 1, 2, 3), "float32")
    x[0, 0, 1, 0] = np.inf  # only the left weight ever sees this number
    actual = []
    for is_hybrid in (False, True):
        net.hybridize(is_hybrid)
        with autograd.record():
            y = net(nd.array(x))
        y.backward(nd.ones(y.shape))
        actual.append(net.weight.grad().asnumpy().ravel().tolist())
    assert actual == [[np.inf, 0], [np.inf, 0]]


@pytest.mark.slow
def test_training_step_is_the_same_hybridized():
    net, loss = lenet(), gluon.loss.SoftmaxCrossEntropyLoss()
    x = nd.array(numbers((4, 1, 28, 28), 0))
    label = nd.array(np.float32([1, 2, 3, 4]))
    net(x)
    answers = []
    for is_hybrid in (False, True):
        net.hybridize(is_hybrid)
        with autograd.record():
            value = loss(net(x), label)
        value.backward()
        grads = [p.grad().asnumpy() for p in net.collect_params().values()]
        answers.append([value.asnumpy(), *grads])
    for eager, hybridized in zip(*answers, strict=True):
        np.testing.assert_allclose(eager, hybridized, 2e-5, 2e-5)


# -- kernels ---------------------------------------------------------------------------
def test_bias_and_activation_are_computed_in_the_kernel_of_the_convolution():
    net = lenet()
    net.hybridize()
    net(nd.array(numbers((2, 1, 28, 28), 0)))
    (plan,) = net.plans.values()
    assert plan.n_kernels == 5
    assert plan.source.count("conv_broadcast_add_relu(") == 2 * 2  # made, and called


def test_scratch_lies_in_the_arena_and_is_used_again():
    x = sym.var("x", shape=(1, 2, 8, 8))
    one = nn.Conv2D(2, 3, padding=1, in_channels=2)
    two = nn.HybridSequential()
    two.add(one, nn.Conv2D(2, 3, padding=1, in_channels=2))
    sizes = []
    for net in (one, two):
        net.initialize()
        net.hybridize()
        net(nd.zeros(x.infer_shape()[1][0]))
        (plan,) = net.plans.values()
        assert "scratch" in plan.memory.show()
        sizes.append(plan.memory.nbytes)
    assert sizes[1] == sizes[0] + 1 * 2 * 8 * 8 * 4  # the value between the two


# -- layers ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    "layer, text",
    [
        (
            nn.Conv2D(6, 5, activation="relu"),
            "Conv2D(None -> 6, kernel_size=(5, 5), stride=(1, 1), Activation(relu))",
        ),
        (
            nn.Conv1D(3, 2, strides=2, padding=1, dilation=2, use_bias=False),
            "Conv1D(None -> 3, kernel_size=(2,), stride=(2,), padding=(1,), dilation=(2,), "
            "bias=False)",
        ),
        (
            nn.Conv2D(4, (3, 3), groups=2, in_channels=2),
            "Conv2D(1 -> 4, kernel_size=(3, 3), stride=(1, 1), groups=2)",
        ),
        (
            nn.Conv2DTranspose(3, 4, in_channels=5),
            "Conv2DTranspose(3 -> 5, kernel_size=(4, 4), stride=(1, 1))",
        ),
        (
            nn.MaxPool2D(3, 2, 1, ceil_mode=True),
            "MaxPool2D(size=(3, 3), stride=(2, 2), "
            "padding=(1, 1), ceil_mode=True, global_pool=False, pool_type=max, layout=NCHW)",
        ),
        (
            nn.GlobalAvgPool1D(),
            "GlobalAvgPool1D(size=(1,), stride=(1,), padding=(0,), "
            "ceil_mode=True, global_pool=True, pool_type=avg, layout=NCW)",
        ),
    ],
)
def test_layer_prints_as_in_mxnet(layer, text):
    assert repr(layer) == text


def test_names_are_those_of_mxnet():
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Conv2D(6, 5, activation="relu"), nn.MaxPool2D(), nn.Conv2DTranspose(3, 3))
    assert list(net.collect_params()) == [
        "net_conv0_weight",
        "net_conv0_bias",
        "net_conv1_weight",
        "net_conv1_bias",
    ]
    outputs = net(sym.var("data")).get_internals().list_outputs()
    assert [name for name in outputs if name.endswith("output")] == [
        "net_conv0_fwd_output",
        "net_conv0_relu_fwd_output",
        "net_pool0_fwd_output",
        "net_conv1_fwd_output",
    ]


@pytest.mark.parametrize(
    "layer, shape, expected",
    [
        (nn.Conv3D(2, 2, strides=(1, 2, 1)), (1, 3, 3, 4, 3), (1, 2, 2, 2, 2)),
        (nn.Conv1DTranspose(2, 3, strides=2, output_padding=1), (1, 3, 4), (1, 2, 10)),
        (nn.Conv3DTranspose(2, 2), (1, 3, 2, 2, 2), (1, 2, 3, 3, 3)),
        (nn.MaxPool1D(3), (1, 2, 8), (1, 2, 2)),
        (nn.MaxPool3D(), (1, 2, 4, 5, 6), (1, 2, 2, 2, 3)),
        (nn.AvgPool3D(2, 1, ceil_mode=True), (1, 2, 3, 3, 3), (1, 2, 2, 2, 2)),
        (nn.GlobalMaxPool3D(), (1, 2, 3, 3, 3), (1, 2, 1, 1, 1)),
        (nn.ReflectionPad2D(1), (1, 2, 3, 3), (1, 2, 5, 5)),
    ],
)
def test_shape_of_a_layers_output(layer, shape, expected):
    layer.initialize()
    assert layer(nd.zeros(shape)).shape == expected


# -- errors ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    "run, error, words",
    [
        (
            lambda: nd.Pooling(nd.zeros((1, 1, 3, 3)), kernel=(4, 4)),
            ShapeError,
            r"kernel=\(4, 4\) does not fit into data \(1, 1, 3, 3\).*smaller kernel",
        ),
        (lambda: nd.Pooling(nd.zeros((1, 1, 3, 3))), AttrError, "kernel is missing"),
        (
            lambda: OPS["_pool_sum"](
                nd.zeros((1, 1, 4)), size=(4,), kernel=(2,), stride=(1,), pad=(-1,), outs=(1,)
            ),
            ShapeError,
            r"pad=\(-1,\) are no windows over \(4,\)",
        ),
        (
            lambda: nd.Pooling(nd.zeros((1, 1, 3, 3)), kernel=(2, 2), pad=(2, 2)),
            AttrError,
            "windows see padding only",
        ),
        (
            lambda: nd.Convolution(
                nd.zeros((1, 3, 3)),
                nd.zeros((1, 3, 2, 2)),
                kernel=(2, 2),
                num_filter=1,
                no_bias=True,
            ),
            ShapeError,
            r"data has shape \(1, 3, 3\), but kernel=\(2, 2\) needs \(N, C, size, size\)",
        ),
        (
            lambda: nd.Convolution(
                nd.zeros((1, 3, 5, 5)),
                nd.zeros((4, 3, 2, 2)),
                kernel=(3, 3),
                num_filter=4,
                no_bias=True,
            ),
            ShapeError,
            r"weight has shape \(4, 3, 2, 2\), but \(4, 3, 3, 3\) is needed",
        ),
        (
            lambda: nd.Convolution(
                nd.zeros((1, 3, 5, 5)),
                nd.zeros((4, 3, 3, 3)),
                num_group=2,
                kernel=(3, 3),
                num_filter=4,
                no_bias=True,
            ),
            ShapeError,
            "3 channels to num_filter=4 do not divide into num_group=2",
        ),
        (lambda: nn.Conv2D(4, (3, 3, 3)), AttrError, r"kernel_size=\(3, 3, 3\)"),
        (lambda: nn.Conv2D(4, 3, layout="NHWC"), AttrError, "needed: 'NCHW'"),
        (lambda: nn.Conv2D(4, 3, groups=3), AttrError, "divisible by groups=3"),
        (
            lambda: nd.Deconvolution(
                nd.zeros((1, 1, 3, 3)),
                nd.zeros((1, 1, 3, 3)),
                kernel=(3, 3),
                adj=(1, 1),
                num_filter=1,
            ),
            AttrError,
            r"adj=\(1, 1\) does not fit.*below the stride",
        ),
        (
            lambda: nd.UpSampling(nd.zeros((1, 1, 3, 3)), scale=0, sample_type="nearest"),
            ShapeError,
            "a scale of at least 1",
        ),
    ],
)
def test_error_says_what_is_needed(run, error, words):
    with pytest.raises(error, match=words):
        run()
