"""Products and convolutions on a simulated GPU: values, and what each thread reads.

The simulator checks every access on the way: bounds, races, barriers, hidden float64.
"""

import envs
import gpu_kernels
import numpy as np
import pytest
from marks import external
from samples.convolution import SAMPLES
from test_gpu_compile import broken, tried

from minihybrid import simulated_gpu, sym
from minihybrid.core.op import Spec
from minihybrid.core.placement import copy_to
from minihybrid.core.plan import Plan
from minihybrid.ops import OPS
from minihybrid.ops.gpu import products as gpuproducts
from minihybrid.ops.gpu.products import form
from minihybrid.runtime.device import device_of
from minihybrid.simt import watch

TRANSPOSES = [(False, False), (False, True), (True, False), (True, True)]


def plan_of(function, specs):
    """The plan of a function of symbols."""
    kinds = {f"x{i}": spec for i, spec in enumerate(specs)}
    graph, _ = sym.trace(function, kinds)
    return Plan(graph, list(kinds), target=device_of(simulated_gpu()))


def run(function, arrays):
    """A function of symbols on arrays: its outputs, and what each launch did."""
    plan = plan_of(function, [Spec(a.shape, a.dtype) for a in arrays])
    with watch() as seen:
        outs = plan([copy_to(a, simulated_gpu()) for a in arrays], plan.bind([]))
        plan.device.synchronize()
    return [np.asarray(out) for out in outs], [launch.counts for launch in seen]


def numbers(shape, dtype="float32", seed=0):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 2 if dtype.kind == "b" else 5, shape).astype(dtype)


def operands(m, n, depth, transposes, dtype="float32", batch=()):
    shapes = [
        (depth, m) if transposes[0] else (m, depth),
        (n, depth) if transposes[1] else (depth, n),
    ]
    return [numbers((*batch, *s), dtype, seed) for seed, s in enumerate(shapes)]


def close(actual, expected):
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    if expected.dtype.kind != "f":
        return np.testing.assert_array_equal(actual, expected)
    most = np.abs(expected[np.isfinite(expected)]).max(initial=1)
    return np.testing.assert_allclose(actual / most, expected / most, atol=1e-5)


def check(m, n, depth, transposes, dtype="float32", batch=()):
    """A product against `op.eager`; gives the counts of its launches."""
    arrays = operands(m, n, depth, transposes, dtype, batch)
    attrs = dict(zip(("transpose_a", "transpose_b"), transposes, strict=True))
    op = OPS["batch_dot" if batch else "_matmul"]
    (actual,), counts = run(lambda a, b: op(a, b, **attrs), arrays)
    close(actual, op.eager(*arrays, **attrs))
    return counts


# -- values ----------------------------------------------------------------------------
SQUARE = [(16, 16, 16), (17, 31, 15), (9, 33, 1), (40, 20, 33)]
FEWS = [(1, 1, 1), (1, 40, 65), (8, 33, 64), (3, 300, 7), (70, 2, 36), (2, 2, 600)]


@pytest.mark.parametrize("transposes", TRANSPOSES)
@pytest.mark.parametrize("lengths", SQUARE + FEWS)
def test_a_product_of_any_size_is_that_of_numpy(lengths, transposes):
    check(*lengths, transposes)


BLOCKED = [
    (64, 64, 32, 64),
    (65, 70, 21, 64),
    (68, 100, 20, 64),
    (20, 130, 1, 64),
    (128, 128, 8, 128),
    (132, 129, 11, 128),
]


@pytest.mark.parametrize("transposes", [*TRANSPOSES[1:3], *external(*TRANSPOSES[::3])])
@pytest.mark.parametrize(("m", "n", "depth", "side"), BLOCKED)
def test_tiles_of_many_outputs_a_thread(m, n, depth, side, transposes, monkeypatch):
    """They are for large products, which would take minutes here: so from one tile."""
    monkeypatch.setattr(gpuproducts, "ENOUGH", 1 if side == 128 else 4)
    assert form((m, n, depth), 1, np.dtype("float32")) == (side, 1)
    check(m, n, depth, transposes)


@pytest.mark.parametrize(("m", "n", "side"), [(20, 24, 64), (10, 20, 16)])
@pytest.mark.parametrize("transposes", [(True, False), (False, True)])
def test_a_long_depth_is_cut_into_parts(m, n, side, transposes, monkeypatch):
    assert form((m, n, 64 * 128), 1, np.dtype("float32")) == (side, 64)
    monkeypatch.setattr(gpuproducts, "MIN_DEPTH", 20)  # the same with less to simulate
    monkeypatch.setattr(gpuproducts, "ENOUGH", 8)
    assert form((m, n, 58), 1, np.dtype("float32")) == (side, 2)
    parts, total = check(m, n, 58, transposes)
    assert parts["work"].stores == total["work"].loads == 2 * m * n
    assert total["out"].stores == m * n


@pytest.mark.parametrize("transposes", TRANSPOSES)
def test_more_rows_than_a_grid_is_high(transposes, monkeypatch):
    monkeypatch.setattr(gpuproducts, "HIGHEST", 2)
    check(35, 10, 5, transposes)


@pytest.mark.parametrize("dtype", ["float64", "int8", "uint32", "int64", "uint64", "bool"])
@pytest.mark.parametrize("lengths", [(18, 35, 21), (3, 40, 35), (17, 12, 66)])
def test_products_in_other_dtypes(dtype, lengths, monkeypatch):
    monkeypatch.setattr(gpuproducts, "MIN_DEPTH", 32)  # the last one in two parts
    check(*lengths, (False, True), dtype)


@pytest.mark.parametrize("transposes", TRANSPOSES)
@pytest.mark.parametrize("lengths", [(9, 18, 35), (3, 40, 8)])
def test_every_matrix_of_a_batch_is_multiplied(lengths, transposes):
    check(*lengths, transposes, batch=(2, 3))


@pytest.mark.slow
def test_a_batch_in_large_tiles(monkeypatch):
    monkeypatch.setattr(gpuproducts, "ENOUGH", 8)
    assert form((70, 36, 20), 4, np.dtype("float32")) == (64, 1)
    check(70, 36, 20, (False, True), batch=(2, 2))
    check(70, 36, 20, (True, False), batch=(4,))


@pytest.mark.parametrize("lengths", [(0, 3, 4), (3, 0, 4), (3, 4, 0)])
def test_axes_without_elements(lengths):
    check(*lengths, (False, False))
    check(*lengths, (False, True), batch=(2,))
    check(*lengths, (False, False), batch=(0,))


@pytest.mark.slow
@pytest.mark.parametrize("lengths", [(17, 19, 21), (3, 19, 21), (70, 68, 35)])
def test_infinity_and_nan_reach_what_they_belong_to_and_nothing_else(lengths, monkeypatch):
    """Zero times infinity is NaN; what fills a tile must meet neither."""
    monkeypatch.setattr(gpuproducts, "ENOUGH", 4)
    m, n, depth = lengths
    a, b = operands(m, n, depth, (False, False))
    a[m - 1, 0], a[0, 1], b[0, 0], b[-1, -1] = 0, np.inf, np.nan, -np.inf
    (actual,), _ = run(lambda a, b: sym.dot(a, b), [a, b])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(np.isfinite(actual), np.isfinite(a @ b))


# -- what follows a product ------------------------------------------------------------
def layer(x, w, b, z):
    return sym.relu(sym.FullyConnected(x, w, b, num_hidden=37)) + z


@pytest.mark.parametrize(("rows", "depth"), [(1, 21), (6, 20), (20, 21), (70, 36), (20, 80)])
def test_bias_and_what_follows_are_computed_where_the_sum_is(rows, depth, monkeypatch):
    """Each reads its own inputs, and stores each number once."""
    monkeypatch.setattr(gpuproducts, "ENOUGH", 4)
    monkeypatch.setattr(gpuproducts, "MIN_DEPTH", 40)
    x, w, b, z = arrays = [
        numbers(s, seed=i) for i, s in enumerate([(rows, depth), (37, depth), (37,), (rows, 37)])
    ]
    (actual,), counts = run(layer, arrays)
    close(actual, np.maximum(x @ w.T + b, 0) + z)
    assert len(counts) == 1 + (depth == 80)
    for name in ("a2", "a3"):
        assert sum(c[name].loads for c in counts) == rows * 37
    assert sum(c["out"].stores for c in counts) == rows * 37


# -- what threads read -----------------------------------------------------------------
@pytest.mark.parametrize("transposes", TRANSPOSES)
def test_a_tile_is_read_once_by_a_block(transposes):
    """32 x 32 x 32 in tiles of 16 x 16: each number is brought 32 / 16 times."""
    (counts,) = check(32, 32, 32, transposes)
    assert counts["a0"].loads == counts["a1"].loads == 32 * 32 * 32 // 16
    assert counts["out"].stores == 32 * 32
    assert counts["sa"].loads == counts["sb"].loads == 32**3
    assert counts.barriers == 2 * 32 // 16


@pytest.mark.parametrize("transposes", TRANSPOSES)
def test_large_tiles_read_four_numbers_at_once(transposes, monkeypatch):
    """64 x 64 x 32: 16 products for two reads of shared memory, one barrier a tile."""
    monkeypatch.setattr(gpuproducts, "ENOUGH", 4)
    (counts,) = check(64, 64, 32, transposes)
    for name in ("a0", "a1"):
        assert counts[name].loads == counts[name].load4 == 64 * 32 // 4
    assert counts["sb"].load4 == 64 * 64 * 32 // 16
    assert counts.barriers == 1 + 32 // 16 + 7


def test_few_rows_read_a_weight_once():
    (counts,) = check(8, 40, 64, (False, True))
    assert counts["a1"].load4 == 40 * 64 // 4
    (counts,) = check(8, 64, 40, (False, False))
    assert counts["a1"].loads == 64 * 40


# -- convolutions ----------------------------------------------------------------------
CONVOLUTIONS = [
    (name, i) for name in ("_conv", "_conv_data", "_conv_weight") for i in range(len(SAMPLES[name]))
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize(("name", "number"), CONVOLUTIONS)
def test_samples_of_convolutions_and_their_gradients(name, number, dtype):
    inputs, attrs, _ = SAMPLES[name][number]
    arrays = [numbers(i.shape, dtype, seed) for seed, i in enumerate(inputs)]
    attrs = OPS[name].normalize(dict(attrs))
    (actual,), _ = run(lambda a, b: OPS[name](a, b, **attrs), arrays)
    close(actual, OPS[name].eager(*arrays, **attrs))


def image(n, c, o, size, kernel, stride=1, pad=0, dilate=1, groups=1):
    axes = len(size)
    return (n, c, o), {
        "size": size,
        "kernel": kernel,
        "stride": (stride,) * axes,
        "dilate": (dilate,) * axes,
        "pad": (pad,) * axes,
        "num_group": groups,
    }


IMAGES = {
    "3x3": image(2, 5, 20, (7, 9), (3, 3), pad=1),
    "strided": image(2, 3, 18, (9, 8), (3, 2), stride=2, pad=1),
    "dilated": image(1, 4, 17, (9, 10), (3, 3), dilate=2, pad=2),
    "pointwise": image(3, 20, 24, (4, 4), (1, 1)),
    "pointwise of one image": image(1, 20, 24, (5, 3), (1, 1)),
    "grouped": image(2, 10, 36, (5, 4), (3, 3), pad=1, groups=2),
    "pointwise groups": image(2, 24, 36, (4, 6), (1, 1), groups=2),
    "depthwise": image(2, 6, 6, (7, 6), (3, 3), stride=2, pad=1, groups=6),
    "depthwise, two filters": image(2, 4, 8, (6, 5), (3, 3), pad=1, groups=4),
    "line": image(3, 4, 20, (19,), (5,), stride=3, pad=2),
    "volume": image(1, 3, 20, (4, 5, 6), (2, 3, 2), stride=2, pad=1),
    "many places": image(3, 2, 18, (9, 10), (3, 3), pad=1),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", IMAGES)
def test_convolutions_and_gradients_in_large_tiles(name, monkeypatch):
    monkeypatch.setattr(gpuproducts, "ENOUGH", 4)
    (n, c, o), attrs = IMAGES[name]
    conv, conv_data, conv_weight = (OPS[f"_conv{part}"] for part in ("", "_data", "_weight"))
    data = numbers((n, c, *attrs["size"]))
    weight = numbers((o, c // attrs["num_group"], *attrs["kernel"]), seed=1)
    expected = conv.eager(data, weight, **attrs)
    grad = numbers(expected.shape, seed=2)
    for op, arrays in (
        (conv, [data, weight]),
        (conv_data, [grad, weight]),
        (conv_weight, [data, grad]),
    ):
        (actual,), _ = run(lambda a, b, op=op: op(a, b, **attrs), arrays)
        close(actual, op.eager(*arrays, **attrs))


def test_bias_and_residual_follow_a_convolution_in_one_kernel():
    arrays = [
        numbers(s, seed=i)
        for i, s in enumerate([(2, 3, 6, 7), (20, 3, 3, 3), (20,), (2, 20, 6, 7)])
    ]

    def block(x, w, b, z):
        return sym.relu(sym.Convolution(x, w, b, kernel=(3, 3), pad=(1, 1), num_filter=20) + z)

    (actual,), (counts,) = run(block, arrays)
    x, w, b, z = arrays
    _, attrs = image(2, 3, 20, (6, 7), (3, 3), pad=1)
    expected = OPS["_conv"].eager(x, w, **attrs) + b.reshape(1, -1, 1, 1) + z
    close(actual, np.maximum(expected, 0))
    for name, loads in (("a2", z.size), ("a3", z.size)):
        assert counts[name].loads == loads
    assert counts["out"].stores == z.size


# -- machine code ----------------------------------------------------------------------
def window(op, **more):
    _, attrs = image(8, 64, 64, (28, 28), (3, 3), pad=1, **more)
    return lambda a, b: OPS[op](a, b, **attrs)


PLACES, TAPS = (8, 64, 28, 28), (64, 64, 3, 3)
BUILT = {  # name -> (function, shapes, what is promised of its first kernel)
    "rows times rows": (
        lambda x, w: sym.dot(x, w, transpose_b=True),
        [(2048, 512), (2048, 512)],
        {"loads": {4: 4}, "shared_bytes": 16896},
    ),
    "odd": (lambda x, w: sym.dot(x, w), [(2047, 99), (99, 2001)], {}),
    "few": (lambda x, w: sym.dot(x, w, transpose_b=True), [(8, 512), (512, 512)], {}),
    "gradient of data": (window("_conv_data"), [PLACES, TAPS], {}),
    "gradient of weights": (window("_conv_weight"), [PLACES, PLACES], {}),
}


@pytest.mark.slow
@pytest.mark.external
@pytest.mark.parametrize("environment", envs.TOOLCHAINS)
def test_large_tiles_stay_in_registers(environment):
    """No float64, nothing in the slow memory of a thread, at least two blocks at once.

    A multiprocessor has 65536 registers: 128 for each thread of two blocks.
    """
    promised = {}  # text -> name, figures
    for name, (function, shapes, figures) in BUILT.items():
        specs = [Spec(shape, np.dtype("float32")) for shape in shapes]
        promised[plan_of(function, specs).made.launches[0].kernel] = name, figures
    wrong = {}
    for text, capability, actual in tried(
        gpu_kernels.compiled, environment, promised, [(7, 5), (9, 0)]
    ):
        name, figures = promised[text]
        what = broken(actual, capability, f64=0, local=0, **figures)
        if what or actual["registers"] > 128:
            wrong[name, capability] = what or actual
    assert wrong == {}
