"""Reductions share loops with what is around them: counts, bytes and values."""

import numpy as np
import pytest
from minihybrid.sym import trace

from minihybrid import autograd, gluon, nd, sym
from minihybrid.codegen.cpu.compiler import UNROLL
from minihybrid.codegen.rows import PIECES
from minihybrid.core.op import ShapeError, Spec
from minihybrid.core.plan import Plan
from minihybrid.gluon import nn
from minihybrid.passes.reduction_schedule import ROW_NBYTES, ReductionDomain


def compiled(function, *arrays, target="cpu"):
    """(plan, its answers) of a function of symbols."""
    names = [f"x{i}" for i in range(len(arrays))]
    graph, _ = trace(
        function, {n: Spec(a.shape, a.dtype) for n, a in zip(names, arrays, strict=True)}
    )
    plan = Plan(graph, names, target=target)
    assert plan.target == target, plan.target_note
    return plan, plan(list(arrays), plan.bind([]))


def assert_compiled_agrees(function, *arrays, tolerance=2e-5):
    """The plan of loops, after its answers were compared with those of NumPy's."""
    plan, got = compiled(function, *arrays)
    _, expected = compiled(function, *arrays, target="numpy")
    for a, b in zip(got, expected, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, tolerance, tolerance)
    return plan


# -- along all axes --------------------------------------------------------------------
AXES = [None, 0, 1, 2, (0, 1), (0, 2), (1, 2), (0, 1, 2)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("axis", AXES, ids=str)
def test_reductions_of_one_array_are_one_kernel(rng, axis, dtype):
    x = rng.uniform(1, 3, (3, 4, 5)).astype(dtype)
    y = rng.uniform(1, 3, (5, 4, 3)).astype(dtype)

    def run(x, y):
        x = sym.broadcast_mul(x + y.transpose(), x) - 1  # read at other strides
        return [
            f(x, axis=axis, keepdims=keep) * 2
            for f, keep in ((sym.sum, False), (sym.prod, True), (sym.max, False), (sym.min, True))
        ]

    plan = assert_compiled_agrees(run, x, y, tolerance=1e-4)
    assert plan.n_kernels == 1


@pytest.mark.parametrize("shape", [(40, 300), (7, 1000), (3, 2, 700)])
def test_tiles_of_rows_that_lie_across_cover_all(rng, shape):
    """More columns than a tile has, with a rest."""
    x = rng.standard_normal(shape).astype("f4")
    plan = assert_compiled_agrees(lambda x: [sym.softmax(x, axis=-2), x.sum(axis=-2)], x)
    assert plan.n_kernels == 1


@pytest.mark.parametrize(
    "shape, axis", [((0, 3), 0), ((0, 3), 1), ((3, 0), 1), ((1, 1), 0), ((4, 1), 1)]
)
def test_sums_over_nothing_and_over_one_number(shape, axis):
    x = np.ones(shape, "f4")
    assert_compiled_agrees(lambda x: [sym.sum(x, axis=axis), sym.softmax(x)], x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("axis", [0, 1])
def test_extremes_keep_nan_as_numpy_does(axis, dtype):
    nan, inf = np.nan, np.inf
    rows = [
        [1, nan, 3],
        [-nan, 2, 1],
        [nan, nan, nan],
        [-inf, -inf, -inf],
        [1, inf, 2],
        [-0.0, -1, -2],
        [-5, -3, -4],
        [5, 3, 4],
        [1e-42, 2e-42, -1e-42],
    ]
    x = np.array(rows, dtype)
    x = np.ascontiguousarray(x if axis else x.T)
    _, (top, low) = compiled(lambda x: [sym.max(x, axis=axis), sym.min(x, axis=axis)], x)
    np.testing.assert_array_equal(top, x.max(axis=axis))
    np.testing.assert_array_equal(low, x.min(axis=axis))


# -- one kernel, one read and one write ------------------------------------------------
def rms_norm(x, gamma):
    mean = sym.mean(sym.square(x), axis=-1, keepdims=True)
    return x.broadcast_mul(sym.rsqrt(mean + 1e-5)).broadcast_mul(gamma)


def softmax_gradient(y, g):
    return y * g.broadcast_sub(sym.sum(y * g, axis=-1, keepdims=True))


def standard(x):
    mean = x.mean(axis=0)  # lines up without keepdims
    return x.broadcast_sub(mean) / x.sum()


ROWS = {  # name -> (function, shapes, arrays of (6, 40) that are read and written)
    "softmax": (sym.softmax, [(6, 40)], 2),
    "log_softmax": (sym.log_softmax, [(6, 40)], 2),
    "softmin": (sym.softmin, [(6, 40)], 2),
    "softmax across": (lambda x: sym.softmax(x, axis=0), [(6, 40)], 2),
    "softmax between": (lambda x: sym.softmax(sym.relu(x) * 2) * 3, [(6, 40)], 2),
    "gradient of softmax": (softmax_gradient, [(6, 40), (6, 40)], 3),
    "root mean square": (rms_norm, [(6, 40), (40,)], 2 + 1 / 6),
    "LayerNorm": (sym.LayerNorm, [(6, 40), (40,), (40,)], 2 + 2 / 6),
    "InstanceNorm": (lambda *a: sym.InstanceNorm(*a), [(2, 3, 40), (3,), (3,)], 2 + 2 / 80),
    "log of sum of exp": (lambda x: sym.log(sym.exp(x).sum(axis=1)) + 1, [(6, 40)], 1 + 1 / 40),
    "centered": (lambda x: x.broadcast_sub(x.mean(axis=0)), [(6, 40)], 2),
    "two statistics": (lambda x: [x.sum(axis=1), sym.square(x).sum(axis=1)], [(6, 40)], 1 + 2 / 40),
    "scaled by all": (lambda x: x.broadcast_div(x.max()), [(6, 40)], 2),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_are_read_once_and_written_once(rng, name):
    function, shapes, arrays = ROWS[name]
    values = [rng.standard_normal(s).astype("f4") for s in shapes]
    plan = assert_compiled_agrees(function, *values)
    assert (plan.n_kernels, plan.nbytes_moved) == (1, round(arrays * 6 * 40 * 4))


def test_what_waits_for_the_last_pass_waits_in_its_output(rng):
    """An output has room for one value; the `exp` of a second one needs memory."""
    x = rng.standard_normal((6, 40)).astype("f4")

    def two(x, y):
        return sym.softmax(x) + sym.softmax(y)

    assert assert_compiled_agrees(sym.softmax, x).memory.nbytes == 0
    assert assert_compiled_agrees(two, x, x[::-1].copy()).memory.nbytes == 40 * 4


def test_a_masked_softmax_is_one_kernel(rng):
    x, length = rng.standard_normal((5, 6)).astype("f4"), np.int32([0, 1, 6, 9, 3])
    plan = assert_compiled_agrees(lambda x, n: sym.softmax(x, n, use_length=True), x, length)
    assert plan.n_kernels == 1


def test_special_values_pass_through_a_softmax_as_through_numpy_s():
    x = np.float32([[1, 2, np.nan], [np.inf, 0, 1], [-np.inf, 0, 1], [-np.inf] * 3])
    for f in (sym.softmax, sym.log_softmax):
        assert_compiled_agrees(f, x)


@pytest.mark.parametrize("size", [0.1, 10, 79.9, 80.1, 1000])
def test_an_eager_softmax_of_few_columns_is_as_precise_at_any_size(rng, size):
    """It skips the maximum of small elements, whose squares add up to less than 80 squared."""
    x = rng.standard_normal((4, 7))
    x = (x * size / np.sqrt((x * x).sum())).astype("f4")
    shifted = x - x.max(1, keepdims=True).astype("f8")
    expected = np.exp(shifted) / np.exp(shifted).sum(1, keepdims=True)
    apart = abs(nd.softmax(nd.array(x)).asnumpy() - expected)
    bound = (4 - shifted) * np.finfo("f4").eps * expected + 1e-40  # exp makes absolute relative
    assert (apart <= bound).all()


def test_two_sums_along_different_axes_are_two_kernels(rng):
    x = rng.standard_normal((6, 40)).astype("f4")
    plan = assert_compiled_agrees(lambda x: [x.sum(axis=0), x.sum(axis=1)], x)
    assert plan.n_kernels == 2


def test_a_single_row_longer_than_the_cache_is_read_by_two_kernels(rng):
    n = ROW_NBYTES // 4
    x = rng.standard_normal(n + 8).astype("f4")
    kernels = [
        assert_compiled_agrees(lambda x: x.broadcast_div(x.max()), v).n_kernels for v in (x, x[:n])
    ]
    assert kernels == [2, 1]


def test_what_runs_between_two_sums_keeps_them_apart(rng):
    """The second sum needs an order that only a kernel of its own finds."""
    x = rng.standard_normal((6, 40)).astype("f4")

    def run(x):
        first = x.sum(axis=1, keepdims=True)
        return first, x.broadcast_mul(sym.sort(first, axis=0)).sum(axis=1)

    plan = assert_compiled_agrees(run, x)
    assert plan.n_kernels == 4  # two of them sort


def test_a_sum_that_lines_up_with_the_wrong_axis_is_not_taken_for_the_row_s():
    x = np.arange(9, dtype="f4").reshape(3, 3)
    plan = assert_compiled_agrees(lambda x: x.broadcast_sub(x.sum(axis=1)), x)
    assert plan.n_kernels == 2


def test_frames_tell_rows_from_columns():
    assert not ReductionDomain((2, 3), frozenset({1})).across
    assert ReductionDomain((2, 3), frozenset({0})).across
    assert not ReductionDomain((2, 3, 1), frozenset({1})).across


# -- layers and losses -----------------------------------------------------------------
def plans_of_a_step(block, *arrays):
    """The kernels of a training step, forwards and backwards."""
    block.initialize()
    block.hybridize()
    arrays = [nd.array(a) for a in arrays]
    arrays[0].attach_grad()
    with autograd.record():
        out = block(*arrays)
    out.backward()
    return [plan.n_kernels for plan in block.plans.values()]


STEPS = {  # name -> (layer, kernels forwards and backwards)
    "LayerNorm": (lambda: nn.LayerNorm(), [1, 2]),
    "BatchNorm": (lambda: nn.BatchNorm(), [1, 1]),
    "GroupNorm": (lambda: nn.GroupNorm(2), [1, 2]),
    "InstanceNorm": (lambda: nn.InstanceNorm(in_channels=4), [1, 2]),
    "softmax": (lambda: nn.HybridLambda("softmax"), [1, 1]),
    "log_softmax": (lambda: nn.HybridLambda("log_softmax"), [1, 1]),
}


@pytest.mark.parametrize("name", STEPS)
def test_kernels_of_a_training_step(rng, name):
    """Backwards, gamma and beta are summed along other axes than the data."""
    make, kernels = STEPS[name]
    assert plans_of_a_step(make(), rng.standard_normal((3, 4, 5))) == kernels


def test_cross_entropy_is_one_kernel_each_way(rng):
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    x, labels = rng.standard_normal((6, 10)), rng.integers(0, 10, 6)
    assert plans_of_a_step(loss, x, labels) == [1, 1]


@pytest.mark.parametrize("labels", [[0, 9, 3, 3], [-4, 12, 2.7, 9.9]])
def test_cross_entropy_agrees_with_eager(rng, labels):
    loss, answers = gluon.loss.SoftmaxCrossEntropyLoss(), []
    values = rng.standard_normal((4, 10))
    for hybridize in (False, True):
        loss.hybridize(hybridize)
        x, y = nd.array(values), nd.array(np.clip(labels, 0, 9.5))
        x.attach_grad()
        with autograd.record():
            out = loss(x, y)
        out.backward()
        answers.append((out.asnumpy(), x.grad.asnumpy()))
    for got, expected in zip(*answers, strict=True):
        np.testing.assert_allclose(got, expected, 1e-5, 1e-6)


@pytest.mark.parametrize("make", [nn.LayerNorm, nn.BatchNorm], ids=["Layer", "Batch"])
def test_a_small_deviation_around_a_large_mean_is_found(rng, make):
    """The mean is subtracted before squares are taken: no digits cancel.

    Squares near a million, 0.06 apart in 32 bits, would hide a variance of 0.0001. The
    sum of 64 numbers near 1000 is known to 0.004 or so, the mean to 0.0001.
    """
    x = (1e3 + 1e-2 * rng.standard_normal((64, 256))).astype("f4")
    layer = make(epsilon=1e-12)
    layer.initialize()
    layer.hybridize()
    with autograd.train_mode():
        got = layer(nd.array(x)).asnumpy()
    exact, axis = x.astype("f8"), 1 if make is nn.LayerNorm else 0
    expected = (exact - exact.mean(axis, keepdims=True)) / exact.std(axis, keepdims=True)
    np.testing.assert_allclose(got, expected, atol=0.1)
    np.testing.assert_allclose(got.std(axis), 1, atol=0.01)


def test_no_loop_in_a_loop_is_written_out():
    """Both of few turns, the compiler wrote all of them: a minute, and 60 kB."""
    x = np.random.default_rng(0).random((64, 16, 9, 9), dtype="f4")
    plan = assert_compiled_agrees(lambda x: sym.sum(x, axis=(0, 2, 3)), x)
    assert "for b in range(0, 64, 5):" in plan.source
    assert UNROLL.endswith(f"={PIECES - 1}")


@pytest.mark.parametrize("name", ["sum", "mean", "max", "norm", "nansum", "nanprod"])
def test_a_wrong_axis_is_told_by_the_operator_that_was_called(name):
    """Also if it is made of others."""
    for _ in range(3):
        with pytest.raises(ShapeError, match=f"^{name}: axis 5 does not exist in 2 dimensions"):
            getattr(nd, name)(nd.ones((2, 3)), axis=5)
