"""Products of matrices: every size, transpose and dtype against NumPy in float64."""

import re

import numpy as np
import pytest

from minihybrid import nd, sym
from minihybrid.core.op import Spec
from minihybrid.core.plan import Plan
from minihybrid.ops.cpu import machine
from minihybrid.ops.cpu.products import BLOCK_ROWS, DEPTH, ROWS, _tile_size, product_scratch

TRANSPOSES = [(False, False), (False, True), (True, False), (True, True)]


class Compiled:
    """A function of arrays as one plan of the compiled target, and what it computes."""

    def __init__(self, function, shapes, dtype="float32"):
        pytest.importorskip("numba", reason="Numba compiles the target 'cpu'")
        self.kinds = {f"x{i}": Spec(s, np.dtype(dtype)) for i, s in enumerate(shapes)}
        graph, _ = sym.trace(function, self.kinds)
        self.plan = Plan(graph, list(self.kinds), target="cpu")

    def arrays(self, seed=0):
        rng = np.random.default_rng(seed)
        return [
            rng.standard_normal(s.shape).astype(s.dtype)
            if s.dtype.kind == "f"
            else rng.integers(0, 2 if s.dtype.kind == "b" else 5, s.shape).astype(s.dtype)
            for s in self.kinds.values()
        ]

    def __call__(self, arrays):
        return self.plan(arrays, self.plan.bind([]))[0]


def shapes_of(m, n, depth, transpose_a, transpose_b, batch=()):
    return (
        (*batch, depth, m) if transpose_a else (*batch, m, depth),
        (*batch, n, depth) if transpose_b else (*batch, depth, n),
    )


def reference(a, b, transpose_a, transpose_b):
    a, b = ((v.swapaxes(-1, -2) if t else v) for v, t in ((a, transpose_a), (b, transpose_b)))
    wide = a.dtype if a.dtype.kind != "f" else np.float64
    with np.errstate(invalid="ignore"):
        return np.matmul(a.astype(wide), b.astype(wide))


def check(m, n, depth, transposes, dtype="float32", batch=(), change=lambda a, b: None):
    ta, tb = transposes
    dot = sym.batch_dot if batch else sym.dot
    run = Compiled(
        lambda a, b: dot(a, b, transpose_a=ta, transpose_b=tb),
        shapes_of(m, n, depth, ta, tb, batch),
        dtype,
    )
    arrays = run.arrays(m + n + depth)
    change(*arrays)
    got, expected = run(arrays), reference(*arrays, ta, tb)
    assert got.dtype == np.dtype(dtype)
    if got.dtype.kind == "f":
        eps = np.finfo(dtype).eps
        np.testing.assert_allclose(got, expected, rtol=20 * eps, atol=20 * eps * depth)
    else:
        np.testing.assert_array_equal(got, expected)
    return run


# -- values ----------------------------------------------------------------------------
EDGES = [
    (1, 1, 1),
    (2, 3, 5),
    (7, 15, 17),
    (3, 2, 100),
    (15, 15, DEPTH + 18),
    (33, 255, 1),
    (5, 257, 31),
    (ROWS + 3, 65, 15),
    (BLOCK_ROWS + 1, 33, DEPTH + 1),
]


@pytest.mark.parametrize("transposes", TRANSPOSES)
@pytest.mark.parametrize(("m", "n", "depth"), EDGES)
def test_a_product_of_any_size_is_that_of_numpy(m, n, depth, transposes):
    check(m, n, depth, transposes)


@pytest.mark.parametrize("dtype", ["float64", "int8", "uint32", "int64", "bool"])
@pytest.mark.parametrize("transposes", [(False, True), (True, False)])
def test_products_in_other_dtypes(dtype, transposes):
    check(18, 35, 21, transposes, dtype)


@pytest.mark.parametrize("transposes", TRANSPOSES)
def test_every_matrix_of_a_batch_is_multiplied(transposes):
    check(9, 18, 35, transposes, batch=(2, 3))


@pytest.mark.parametrize(("m", "n", "depth"), [(0, 3, 4), (3, 0, 4), (3, 4, 0)])
def test_axes_without_elements(m, n, depth):
    check(m, n, depth, (False, False))
    check(m, n, depth, (False, True))


@pytest.mark.parametrize("transposes", TRANSPOSES)
@pytest.mark.parametrize(("m", "n", "depth"), [(7, 19, 21), (6, 5, 40), (ROWS + 1, 70, DEPTH + 3)])
def test_infinity_and_nan_reach_what_they_belong_to_and_nothing_else(m, n, depth, transposes):
    """Zero times infinity is NaN; what pads a vector must meet neither."""

    def plant(a, b):
        first = (0, m - 1) if transposes[0] else (m - 1, 0)
        a[first], a.flat[1], b.flat[0], b.flat[-1] = 0, np.inf, np.nan, -np.inf

    check(m, n, depth, transposes, change=plant)


@pytest.mark.parametrize("rows", [1, 6, 70, ROWS + 2])
def test_bias_and_what_follows_are_added_to_each_number_once(rows):
    """Tiles overlap at the edges: a number that is written twice would show here."""
    run = Compiled(
        lambda x, w, b, z: sym.tanh(sym.FullyConnected(x, w, b, num_hidden=37)) + z,
        [(rows, 21), (37, 21), (37,), (rows, 37)],
    )
    x, w, b, z = arrays = run.arrays()
    assert run.plan.n_kernels == 1
    np.testing.assert_allclose(run(arrays), np.tanh(x @ w.T + b) + z, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n_registers", [16, 32])
@pytest.mark.parametrize(("m", "n"), [(2, 84), (3, 95), (3, 100), (6, 110), (9, 70)])
def test_products_write_nothing_behind_their_rows(m, n, n_registers, monkeypatch):
    """Tiles of five or six columns: where one strip ends, the next tile begins."""
    nbytes, _ = machine.registers()
    monkeypatch.setattr("minihybrid.ops.cpu.products.registers", lambda: (nbytes, n_registers))
    run = Compiled(
        lambda x, w: sym.FullyConnected(x, w, num_hidden=n, no_bias=True), [(m, 40), (n, 40)]
    )
    scope, behind = {}, 64
    exec(run.plan.source, scope)
    x, w = run.arrays()
    memory = np.full(m * n + behind, 7, np.float32)
    scope["plan"](x, w, memory[: m * n], run.plan._new_arena(), [])
    np.testing.assert_allclose(memory[: m * n].reshape(m, n), x @ w.T, rtol=1e-4, atol=1e-4)
    assert (memory[m * n :] == 7).all()


@pytest.mark.slow
def test_processors_with_few_short_registers_get_the_same_answer(monkeypatch):
    """Sizes come from the machine: here AVX2's, or fewer where there are fewer."""
    nbytes, _ = machine.registers()
    monkeypatch.setattr("minihybrid.ops.cpu.products.registers", lambda: (nbytes, 16))
    for transposes in TRANSPOSES:
        check(27, 45, 13, transposes)
        check(ROWS + 1, 45, 13, transposes)


@pytest.mark.parametrize(
    "nbytes, count, tiles",
    [
        (32, 16, [(4, 3), (6, 2), (4, 3), (4, 3), (3, 3), (6, 1)]),
        (64, 32, [(6, 4), (6, 4), (4, 4), (12, 1), (3, 4), (12, 1)]),
    ],
    ids=["avx2", "avx512"],
)
def test_tiles_are_large_even_if_they_do_not_divide_the_product(nbytes, count, tiles, monkeypatch):
    """A few rows or columns computed twice cost less than tiles of half the size."""
    monkeypatch.setattr(machine, "registers", lambda: (nbytes, count))
    monkeypatch.setattr("minihybrid.ops.cpu.products.registers", machine.registers)
    sizes = [(256, 1024), (72, 100), (8, 256), (300, 40), (3, 300), (512, 10)]
    actual = [_tile_size(*size, np.dtype("float32")) for size in sizes]
    assert [(high, wide // (nbytes // 4)) for high, wide in actual] == tiles
    assert all(high * wide + wide + 1 <= count for high, wide in tiles)


# -- the text --------------------------------------------------------------------------
def lines_of(run):
    return [line for line in run.plan.source.splitlines() if re.match(r"    +\S", line)]


def test_the_text_does_not_grow_with_the_size():
    sizes = [(300, 128, 64), (300 * 64, 128 * 4, DEPTH)]
    small, large = (
        len(lines_of(Compiled(lambda a, b: sym.dot(a, b, transpose_b=True), [(m, k), (n, k)])))
        for m, n, k in sizes
    )
    assert small == large


@pytest.mark.parametrize("transposes", TRANSPOSES)
@pytest.mark.parametrize("m, n", [(1, 10), (8, 4), (15, 15)])
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_few_numbers_of_long_sums_are_vectors_on_every_processor(
    m, n, lanes, transposes, monkeypatch
):
    """Ten classes are less than the widest vector; what they are sums of is more."""
    monkeypatch.setattr(machine, "registers", lambda: (4 * lanes, 32))
    ta, tb = transposes
    shapes = shapes_of(m, n, 512, ta, tb)
    run = Compiled(lambda a, b: sym.dot(a, b, transpose_a=ta, transpose_b=tb), shapes)
    assert "s = tile(" in run.plan.source


def test_few_rows_need_no_memory_beside():
    few, many = (
        Compiled(lambda x, w: sym.dot(x, w, transpose_b=True), [(rows, 64), (32, 64)])
        for rows in (ROWS - 1, ROWS)
    )
    assert few.plan.memory.nbytes == 0
    beside = product_scratch(ROWS, 32, 64, np.dtype("float32"), False, True)
    assert many.plan.memory.nbytes == 4 * beside
    columns, rest = divmod(beside, 64 + machine.width(4))  # of a strip, with its rows
    assert rest == 0 and columns in (16, 32)


def test_the_gradients_of_a_dense_layer_copy_no_matrix():
    """Weights (N, K): both gradients read their rows where they lie."""
    x, w, g = (nd.ones(s) for s in ((20, 40), (30, 40), (20, 30)))
    for a, b, flags in ((g, w, {}), (g, x, {"transpose_a": True})):
        run = Compiled(lambda p, q, flags=flags: sym.dot(p, q, **flags), [a.shape, b.shape])
        assert "transpose(" not in run.plan.source
        assert run([a.asnumpy(), b.asnumpy()]).shape == nd.dot(a, b, **flags).shape
