"""Sums of many numbers: at most the error of sums in blocks, on every target.

Added up one after the other, 10^7 times 0.1 is 998 501 in float32, or 1 087 937: from
some size on each number is rounded to a few digits of the sum, always the same way. The
reference is `math.fsum`, or float64.
"""

import math

import numpy as np
import pytest
from test_ieee import CC, Program, answers, run, run_c
from test_scalar import F32, kernels

from minihybrid import autograd, nd, simulated_gpu
from minihybrid.codegen.gpu import rows as gpurows
from minihybrid.core.op import Spec
from minihybrid.gluon import nn
from minihybrid.ops.reduce import LONG, PART, total
from minihybrid.runtime.device import device_of

# A sum of n numbers in blocks is wrong by no more than so many units of the sum of
# their sizes; numbers that are added up one after the other, by up to n.
UNITS = 32
TARGETS = ("eager", "compiled", "numpy", "simulated GPU")
SHAPES = {  # shape, axes that are reduced
    "one row": ((300_000,), None),
    "rows": ((3, 50_000), 1),
    "columns": ((50_000, 3), 0),
    "wide columns": ((1000, 70), 0),
    "ends": ((150, 3, 100), (0, 2)),
    "middle": ((2, 40_000, 2), 1),
    "small": ((70, 7), 1),
}


def found_on(target, function, arrays):
    return run(function, arrays) if target == "eager" else answers(function, arrays, target)


def exact(x, axis):
    """The sums by math.fsum, as a flat array."""
    axes = tuple(range(x.ndim)) if axis is None else np.atleast_1d(axis)
    rows = np.moveaxis(x, axes, range(-len(axes), 0))
    rows = rows.reshape(math.prod(rows.shape[: x.ndim - len(axes)]), -1)
    return np.array([math.fsum(row) for row in rows])


def numbers(shape, dtype, kind):
    rng = np.random.default_rng(0)
    return {
        "equal": np.full(shape, 0.1),
        "signs": rng.standard_normal(shape),
        "near 1e4": 1e4 + rng.random(shape),
    }[kind].astype(dtype)


def assert_close(actual, expected, size, dtype, what, units=UNITS):
    """Off by at most so many units of the sum of sizes."""
    away = abs(actual.ravel().astype(float) - expected) / (np.finfo(dtype).eps / 2 * size)
    assert actual.size == expected.size and away.max() < units, f"{what}: {away.max():.0f}"


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", SHAPES)
def test_a_long_sum_has_the_error_of_blocks(name, target, dtype):
    shape, axis = SHAPES[name]
    if target == "simulated GPU":  # slow
        shape = tuple(n // 10 if n > 10_000 else n for n in shape)
    how = {} if axis is None else {"axis": axis}
    count = np.prod([shape[i] for i in np.atleast_1d(range(len(shape)) if axis is None else axis)])

    def function(F, x):
        return F.sum(x, **how), F.mean(x, **how), F.nansum(x, **how), F.norm(x, ord=1, **how)

    for kind in ("equal", "signs", "near 1e4"):
        x = numbers(shape, dtype, kind)
        expected, size = exact(x, axis), exact(abs(x), axis)
        sums = [expected, expected / count, expected, size]
        sizes = [size, size / count, size, size]
        for y, z, s in zip(found_on(target, function, [x]), sums, sizes, strict=True):
            assert_close(y, z, s, dtype, kind)


def test_sums_of_ten_million_numbers():
    x, y = np.full(10**7, 0.1, "float32"), np.full(10**7, 9999.9, "float32")
    for target in ("eager", "compiled"):
        (a, b) = found_on(target, lambda F, x, y: (F.sum(x), F.mean(y)), [x, y])
        assert abs(a[0] - 1e6) < 1 and abs(b[0] - 9999.9) < 0.01


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape, axes", [((4, 30_000), (1,)), ((30_000, 4), (0,))])
@pytest.mark.parametrize("mean", (1e4, 1e6))
def test_a_variance_far_from_zero_is_that_of_numpy(mean, shape, axes, target):
    x = (mean + np.random.default_rng(0).standard_normal(shape) * 10).astype("float32")
    m, v = found_on(target, lambda F, x: F.moments(x, axes=axes), [x])
    np.testing.assert_allclose(m, x.mean(axes, dtype="d"), rtol=3e-6)
    np.testing.assert_allclose(v, x.astype("d").var(axes), rtol=1e-3)


@pytest.mark.parametrize("target", ("eager", "compiled", "numpy"))
def test_softmax_and_losses_of_many_numbers(target):
    x = np.random.default_rng(0).random((2, 100_000)).astype("float32")
    e = np.exp(x.astype("d"))
    expected = e / e.sum(1, keepdims=True)
    for axis, data in ((1, x), (0, np.ascontiguousarray(x.T))):
        y, z = found_on(
            target,
            lambda F, x, axis=axis: (F.softmax(x, axis=axis), F.log_softmax(x, axis=axis)),
            [data],
        )
        good = expected if axis else expected.T
        np.testing.assert_allclose(y, good, rtol=3e-6)
        np.testing.assert_allclose(z, np.log(good), rtol=1e-6)


@pytest.mark.parametrize("hybrid", (False, True))
def test_the_gradient_of_broadcasting_and_running_statistics(hybrid):
    """What is stretched over a long batch gets a long sum back."""
    x = np.full((40_000, 3), 0.1, "float32")
    norm, bias = nn.BatchNorm(momentum=0.0, in_channels=3), nd.zeros((3,))
    net = Program(lambda F, x, b: x.broadcast_add(b) * 0.1)
    for block in (norm, net):
        block.initialize()
        if hybrid:
            block.hybridize()
    bias.attach_grad()
    with autograd.record():
        y = net(nd.array(x), bias)
        norm(nd.array(x + 1e4))
    y.backward()
    np.testing.assert_allclose(bias.grad.asnumpy(), 4000, rtol=3e-6)
    np.testing.assert_allclose(norm.running_mean.data().asnumpy(), 10000.1, rtol=3e-6)


def test_eager_sums_take_any_layout():
    x = np.random.default_rng(0).random((300, 2, 257)).astype("float32")
    for data in (x, x.T, x[::2], x[:, :, ::-3], (x / 64).astype("float16"), x[:, :0]):
        for axis in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)):
            for keepdims in (False, True):
                actual = total(data, axis, keepdims)
                expected = data.sum(axis, keepdims=keepdims, dtype="d")
                assert (actual.dtype, np.shape(actual)) == (data.dtype, expected.shape)
                np.testing.assert_allclose(actual, expected, rtol=UNITS * np.finfo(data.dtype).eps)
    assert PART < 300


@pytest.mark.parametrize(
    "target, dtype",
    [("eager", "float16"), *((t, d) for t in TARGETS for d in ("float32", "float64"))],
)
def test_a_norm_is_finite_where_squares_are_not(target, dtype):
    info = np.finfo(dtype)
    sizes = [
        1,
        info.max / 4,
        info.smallest_subnormal * 8,
        np.sqrt(float(info.max)) * 3,
        np.sqrt(float(info.tiny)) / 3,
        np.inf,
        np.nan,
        0,
    ]
    x = np.array([[3 * s, 0, -4 * s] for s in sizes]).astype(dtype)
    x[1] = x[1] / 4

    def function(F, x):
        return F.norm(x, axis=1), F.norm(x, axis=1, keepdims=True), F.norm(x)

    rows, kept, whole = found_on(target, function, [x])
    assert rows.dtype == dtype and kept.shape == (8, 1) and np.isnan(whole).all()
    np.testing.assert_array_equal(rows, kept.ravel())
    wide = x.astype(np.longdouble)
    np.testing.assert_allclose(rows, np.sqrt((wide * wide).sum(1)).astype(dtype), rtol=4 * info.eps)


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("target", TARGETS)
def test_a_norm_has_its_digits_at_any_size(target, dtype):
    """Also where one way to add up squares gives way to another."""
    info = np.finfo(dtype)
    least = round(np.log2(np.longdouble(info.smallest_subnormal)))
    powers = np.arange(least, info.maxexp - 3, (info.maxexp - least) // 90)
    x = np.random.default_rng(0).uniform(1, 2, (len(powers), 7))
    x[:, 3] /= 1000  # squares that are lost in one row and count in none
    x = np.ldexp(x, powers[:, None]).astype(dtype)
    (actual,) = found_on(target, lambda F, x: (F.norm(x, axis=1),), [x])
    expected = np.sqrt((x.astype(np.longdouble) ** 2).sum(1))
    assert (
        abs(actual - expected) <= 2 * info.eps * expected + info.smallest_subnormal
    ).all() and len(powers) > 80


@pytest.mark.parametrize("n", (PART, PART + 1, PART**2 - 1, PART**2 + PART, LONG + 7))
def test_each_number_is_in_a_folded_sum_once(n):
    for shape, axes in (
        ((n,), (0,)),
        ((n, 2), (0,)),
        ((2, n, 3), (1,)),
        ((2, n), (1,)),
        ((n, 3, 2), (0, 2)),
        ((3, n, 2), (0, 1)),
    ):
        x = np.random.default_rng(n).integers(0, 9, shape).astype("float32")
        for keepdims in (False, True):
            np.testing.assert_array_equal(
                total(x, axes, keepdims), x.sum(axes, "float64", keepdims=keepdims)
            )


@pytest.mark.parametrize("hybrid", (False, True))
def test_the_gradient_of_a_norm_is_the_direction(hybrid):
    net = Program(lambda F, x: F.norm(x, axis=1))
    if hybrid:
        net.hybridize()
    x = nd.array([[3e20, 4e20], [3e-30, -4e-30], [3, 4]])
    x.attach_grad()
    with autograd.record():
        y = net(x)
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), [[0.6, 0.8], [0.6, -0.8], [0.6, 0.8]], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.skipif(CC is None, reason="no C compiler (gcc, cc, clang) here")
def test_files_in_c_have_the_error_of_blocks(tmp_path):
    for name in ("one row", "columns", "ends"):
        shape, axis = SHAPES[name]
        x = numbers(shape, "float32", "equal")
        (actual,) = run_c(lambda F, x, axis=axis: F.sum(x, axis=axis), [x], tmp_path / name)
        assert_close(actual, exact(x, axis), exact(x, axis), "float32", name)


@pytest.mark.parametrize("n, blocks", [(1024, 0), (1025, 1)])
def test_short_sums_have_no_blocks(n, blocks):
    (kernel,) = kernels(lambda x: x.sum(axis=1), Spec((3, n), F32))
    assert kernel.text("k").count("for b in") == blocks


@pytest.mark.parametrize(
    "shape, axis", [((3, 2000), 1), ((2000, 3), 0), ((40, 3, 50), (0, 2)), ((40, 2, 25, 2), (0, 2))]
)
def test_threads_with_many_numbers_add_up_in_blocks(shape, axis, monkeypatch):
    """As on a GPU with millions of them: here a block is of 2 numbers a thread."""
    monkeypatch.setattr(gpurows, "PARTIAL", 2)
    x = np.random.default_rng(0).standard_normal(shape).astype("float32")
    net = Program(
        lambda F, x: (
            F.sum(x, axis=axis),
            F.softmax(x, axis=axis) if isinstance(axis, int) else F.exp(x),
        )
    )
    net.hybridize(wait=True)
    actual, _ = net(nd.array(x, ctx=simulated_gpu(6)))
    texts = [text for text, _ in device_of(simulated_gpu(6)).kernels]
    assert any("lost32(" in text for text in texts)
    assert_close(actual.asnumpy(), exact(x, axis), exact(abs(x), axis), "float32", "sum")
