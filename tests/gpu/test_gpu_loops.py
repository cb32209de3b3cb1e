"""Operators with loops of their own, on a simulated GPU: lines, scatters, factors.

The samples of test_gpu_laws are small. These are as long as it takes for every text:
longer than a block of threads.
"""

import math

import numpy as np
import pytest
from minihybrid.sym import Symbol, trace
from samples import UNIQUE, cases_of
from traced import Program as Traced

from minihybrid import simulated_gpu
from minihybrid.codegen.gpu import kernel as gpukernel
from minihybrid.codegen.gpu.kernel import GpuKernel
from minihybrid.core.op import Node, Spec
from minihybrid.core.placement import copy_to
from minihybrid.core.plan import Plan
from minihybrid.ops import OPS
from minihybrid.ops.gpu import linalg as gpulinalg
from minihybrid.passes import expand
from minihybrid.passes.fuse import is_core
from minihybrid.runtime.device import device_of
from minihybrid.simt import Program


def on_gpu(function, *arrays):
    """(the plan of a function, its outputs on the GPU, the graph)."""
    given = {f"x{i}": a for i, a in enumerate(arrays)}
    graph, _ = trace(function, {n: Spec(a.shape, a.dtype) for n, a in given.items()})
    device = device_of(simulated_gpu())
    plan = Plan(graph, list(given), target=device)
    outs = plan([copy_to(a, device.context) for a in arrays], plan.bind([]))
    return plan, list(map(np.asarray, outs)), expand(graph, False)


def assert_same(function, *arrays, kernels=None, tolerance=0):
    """What the GPU gives is what NumPy gives, by so many kernels."""
    plan, got, graph = on_gpu(function, *arrays)
    expected = graph.evaluate({f"x{i}": a for i, a in enumerate(arrays)}, 0)
    for a, b in zip(got, expected, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, tolerance, tolerance)
    assert kernels in (None, plan.n_kernels), plan.labels


def apply(name, *inputs, **attrs):
    return Symbol.interpret(OPS[name], list(inputs), OPS[name].normalize(attrs))


def lines(shape, kind="float32"):
    """Numbers of which many are equal, and some not a number."""
    rng = np.random.default_rng(0)
    values = rng.integers(-9, 9, shape).astype(kind)
    if kind == "float32":
        values[rng.random(shape) < 0.1] = np.nan
    return values


# -- lines -----------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(
    "shape, axis",
    [
        ((3, 2), 1),
        ((2, 33), 1),
        ((100, 3), 0),
        ((2, 1000), 1),
        ((1, 1024), 1),
        ((1025,), 0),
        ((2, 1030), 1),
        ((2, 3, 5), 1),
    ],
)
@pytest.mark.parametrize("is_ascend", [True, False])
def test_equal_numbers_keep_their_order(shape, axis, is_ascend):
    """By comparing in one block's shared memory, or by counting what comes before."""
    for kind in ("float32", "int32")[: 1 + (shape[-1] < 50)]:
        assert_same(
            lambda x: apply("_order", x, axis=axis, is_ascend=is_ascend),
            lines(shape, kind),
            kernels=1,
        )


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize(
    "shape, axis",
    [
        ((3, 5), 1),
        ((2, 64), 1),
        ((2, 65), 1),
        ((70, 3), 0),
        ((2, 700), 1),
        ((2, 300), 0),
        ((4, 90), None),
    ],
)
def test_place_of_the_first_of_the_best(name, shape, axis):
    plain = np.nan_to_num(lines(shape))  # else each line has NaN, the first of which
    for values in (lines(shape), plain, np.full(shape, np.nan, "float32")):
        assert_same(lambda x: apply(name, x, axis=axis), values, kernels=1)


@pytest.mark.parametrize(
    "shape, axis",
    [((2, 63), 1), ((2, 64), 1), ((2, 256), 1), ((257, 2), 0), ((1000,), 0), ((2, 600, 3), 1)],
)
def test_running_sums(shape, axis):
    values = np.random.default_rng(0).integers(-9, 9, shape)
    for kind in ("int32", "float32"):  # sums of small whole numbers are exact
        assert_same(lambda x: apply("_running_sum", x, axis=axis), values.astype(kind), kernels=1)


# -- many threads, one place -----------------------------------------------------------
@pytest.mark.parametrize("kind", ["float32", "float64", "int64", "int8", "uint8"])
def test_what_meets_at_one_place_is_added(kind):
    """Bytes, too, of which a GPU adds none in one step."""
    rng = np.random.default_rng(0)
    data = rng.integers(0, 3, (50, 4)).astype(kind)
    places, like = rng.integers(-1, 4, 50), np.zeros((3, 4), kind)
    for mode in ("clip", "wrap"):
        assert_same(
            lambda x, at, like, mode=mode: apply("_put_take", x, at, like, mode=mode),
            data,
            places,
            like,
            kernels=2,
        )
    assert_same(
        lambda x, at, like: apply("_put_along", x, at, like, axis=0),
        data,
        rng.integers(0, 3, (50, 4)),
        like,
        kernels=2,
    )


def test_nothing_to_add_leaves_zeros():
    """Kernels without threads are not launched."""
    data, like = np.zeros((0, 4), "float32"), np.ones((3, 4), "float32")
    assert_same(
        lambda x, at, like: apply("_put_take", x, at, like),
        data,
        np.zeros(0, "int32"),
        like,
        kernels=1,
    )
    assert_same(
        lambda x, like: apply("_put_slice", x, like, begin=(1,), end=(1,)), data, like, kernels=1
    )


@pytest.mark.parametrize(
    "stride, pad, kernel",
    [
        ((1, 1), (1, 1), (3, 3)),
        ((2, 1), (0, 1), (3, 2)),
        ((2, 2), (0, 0), (2, 2)),
        ((3, 2), (1, 0), (2, 2)),
    ],
)
def test_gradients_of_overlapping_windows(stride, pad, kernel):
    """All equal, so that each window's first place counts; and with NaN."""
    size = (6, 7)
    outs = tuple(
        (n + 2 * p - k) // s + 1 for n, p, k, s in zip(size, pad, kernel, stride, strict=True)
    )
    windows = {"size": size, "kernel": kernel, "stride": stride, "pad": pad, "outs": outs}
    grad = np.arange(2 * math.prod(outs), dtype="float32").reshape(1, 2, *outs)
    for data in (np.ones((1, 2, *size), "float32"), np.nan_to_num(lines((1, 2, *size)))):
        assert_same(lambda g, x: apply("_unpool_max", g, x, **windows), grad, data, kernels=1)
    for count in ("none", "padding", "numbers"):
        assert_same(
            lambda g, count=count: apply("_unpool_sum", g, count=count, **windows),
            grad,
            kernels=1,
            tolerance=1e-6,
        )


def test_concat_is_one_kernel():
    parts = [np.full((2, n, 3), n, "float32") for n in (1, 4, 0, 2)]
    assert_same(lambda *x: apply("Concat", *x, dim=1), *parts, kernels=1)


@pytest.mark.parametrize(
    "attrs", [{"start": 3.0}, {"start": 1.0, "stop": 60.0, "step": 0.5, "repeat": 3}]
)
def test_numbers_made_from_nothing(attrs):
    """Plans fold small ones into constants, so this is the kernel alone."""
    op = OPS["_arange"]
    attrs = op.normalize(attrs)
    _, specs = op.infer([], **attrs)
    ((text, grid, block),) = GpuKernel(Node(op, (), attrs, specs=specs)).texts("k")
    out = np.empty(*specs[0])
    Program(text).run(grid, block, [out])
    np.testing.assert_array_equal(out, op.eager(**attrs))


# -- matrices --------------------------------------------------------------------------
@pytest.mark.parametrize("n", [1, 2, 5, 34])
def test_factors_of_matrices(n, monkeypatch):
    """Rows change places; threads have no row and column, or one, or several."""
    monkeypatch.setattr(gpulinalg, "THREADS", 32)  # larger matrices take long
    rng = np.random.default_rng(0)
    some = rng.normal(size=(2, n, n))
    some[0, 0, 0] = 0 if n > 1 else 1
    good = some @ some.swapaxes(1, 2) + n * np.eye(n)
    close = {"kernels": 1, "tolerance": 1e-9}
    assert_same(lambda x: apply("_linalg_inverse", x), some, **close)
    assert_same(lambda x: list(apply("_linalg_slogdet", x)), some, **close)
    assert_same(lambda x: apply("_linalg_potrf", x), good, **close)
    for transpose in (True, False):
        assert_same(
            lambda x, y, t=transpose: apply("_solve_triangle", x, y, transpose=t),
            np.tril(good),
            some,
            **close,
        )


def test_matrix_without_factors():
    """Kernels cannot raise: the determinant is 0, and a root not a number."""
    singular = np.float64([[[1, 2], [2, 4]], [[0, 0], [0, 0]]])
    assert_same(lambda x: list(apply("_linalg_slogdet", x)), singular)
    good, bad = [[1, 2], [2, 5]], [[1, 2], [2, 1]]
    _, (got,), _ = on_gpu(lambda x: apply("_linalg_potrf", x), np.float64([good, bad]))
    np.testing.assert_array_equal(got, [[[1, 0], [2, 1]], [[1, 0], [2, np.nan]]])


# -- what follows is computed on the way -----------------------------------------------
OWN_LOOPS = [op for op in UNIQUE if op.cpu or op.gpu]


@pytest.mark.parametrize(
    "op",
    [op for op in OWN_LOOPS if op.n_outputs == 1 and op.inputs and not op.random],
    ids=lambda op: op.name,
)
def test_what_follows_is_computed_on_the_way(op):
    """With one number a place of the last axis, and with another array.

    Where elements are not written once, at the end, it is a kernel of its own.
    """
    case = next(c for c in cases_of(op) if all(0 not in i.shape for i in c.inputs))
    arrays = case.arrays("float32", np.random.default_rng(0))

    def alone(*x):
        return apply(op.name, *x, **case.attrs)

    def followed(*x):
        *x, last, all_ = x
        return alone(*x).broadcast_mul(last) + all_

    plan, (out,), _ = on_gpu(alone, *arrays)
    more = [
        np.asarray(np.arange(1, math.prod(shape) + 1).reshape(shape), out.dtype)
        for shape in (out.shape[-1:], out.shape)
    ]
    node = plan.graph.nodes[-1]
    assert_same(
        followed, *arrays, *more, tolerance=1e-5, kernels=plan.n_kernels + (not is_core(node))
    )


# -- no operator is left to one thread -------------------------------------------------
FEW = {"shape_array"}  # a few numbers, that are known before


@pytest.mark.parametrize("op", OWN_LOOPS, ids=lambda op: op.name)
def test_threads_share_the_work(op):
    """A template without `each` or `threads` is run by one thread: right, but slow."""
    for case in cases_of(op):
        graph = expand(Traced([case], "float32").graph, True)
        for node in graph.nodes:
            if node.op is op and node.specs[0].size and op.name not in FEW:
                for text, _, block in GpuKernel(node).texts("k"):
                    assert math.prod(block) > 1, f"{case}:\n{text}"


# -- very many elements: four neighbors a thread --------------------------------------
@pytest.mark.parametrize(
    "shape, other, kind, is_wide",
    [
        ((4, 300), (1, 1), "float32", True),
        ((4, 301), (1, 1), "float32", True),
        ((3, 301), (1, 1), "float32", False),  # no whole number of fours
        ((4, 300), (4, 1), "float32", False),  # a number for each row
        ((4, 300), (1, 1), "float64", False),  # of 64 bits
        ((4, 256), (1, 1), "float32", False),  # too few
    ],
)
def test_very_many_elements_are_computed_by_fours(shape, other, kind, is_wide, monkeypatch):
    assert gpukernel.WIDE_FROM == 1 << 18  # fewer would not keep a GPU busy
    monkeypatch.setattr(gpukernel, "WIDE_FROM", 1025)
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(s).astype(kind) for s in (shape, shape, other))

    plan, got, graph = on_gpu(
        lambda a, b, c: apply("tanh", apply("broadcast_mul", a, c) + b), a, b, c
    )
    expected = graph.evaluate({"x0": a, "x1": b, "x2": c}, 0)
    np.testing.assert_allclose(got[0], expected[0], 1e-6, 1e-6)
    counts = [plan.source.count(word) for word in ("load4(", "store4(")]
    assert (plan.n_kernels, counts) == (1, [2, 1] if is_wide else [0, 0])
