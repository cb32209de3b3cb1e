"""Reductions on the simulated GPU: their numbers, and what their threads do.

Each step of a graph is run by its kernels alone, with every access of every thread
checked, and compared with NumPy; what the step reads is NumPy's, so that no error
hides another.
"""

import __future__

import linecache
import math

import envs
import gpu_kernels
import numpy as np
import pytest
from minihybrid.sym import trace
from test_gpu_compile import tried
from test_graph_laws import programs

from minihybrid import sym
from minihybrid.codegen.cpu.target import header
from minihybrid.codegen.device_math import IMPORTS
from minihybrid.codegen.gpu.block_shape import EACH, MAX_THREADS, BlockShape
from minihybrid.codegen.gpu.kernel import GpuKernel
from minihybrid.codegen.gpu.rows import SUMS
from minihybrid.core.op import Spec
from minihybrid.core.passes.gradient import joint_graph
from minihybrid.passes import expand, optimize
from minihybrid.passes.fuse import merge
from minihybrid.passes.lower import lower
from minihybrid.passes.reduction_schedule import rows_of
from minihybrid.simt import Program, cuda
from minihybrid.simt.numbers import CONSTRUCTORS
from minihybrid.simt.traffic import traffic

F32 = np.dtype("float32")


def module(text):
    """A kernel's text with its imports."""
    return f"{header(text, '.', IMPORTS)}\n\n{text}\n"


class Launched:
    """A step's kernels after a run on the simulator."""

    def __init__(self, node, ins, key=7):
        body = GpuKernel(node)
        self.node, self.texts = node, body.texts("kernel")
        outs = [np.full(s.size, 77).astype(s.dtype) for s in node.specs]
        work = [np.empty(body.n_work, body.dtype)] * bool(body.scratch)
        args = [
            *(np.ascontiguousarray(a).reshape(-1) for a in ins),
            *outs,
            *work,
            *[np.uint64(key)] * len(body.numbers),
        ]
        self.counts = [
            Program(module(text)).run(grid, block, args) for text, grid, block in self.texts
        ]
        self.outs = [out.reshape(s.shape) for out, s in zip(outs, node.specs, strict=True)]

    def column(self, what):
        """One count of each kernel."""
        return [getattr(counts, what) for counts in self.counts]


def graph_of(function, **arrays):
    specs = {name: Spec(a.shape, a.dtype) for name, a in arrays.items()}
    return expand(trace(function, specs, training=True)[0], True)


def ready(graph):
    """The graph as its kernels are made of it."""
    for passes in ((), (lower, merge)):
        graph = optimize(graph, *[passes] * bool(passes))[-1][1]
    return graph


def launch(graph, **values):
    """What was launched for steps with reductions; each agrees with NumPy.

    Variables that `values` lacks are the incoming gradients: ones and twos.
    """
    actual, launched = {}, []
    for node in ready(graph).nodes:
        if node.op is None:
            given = values.get(node.name)
            if given is None:
                shape, dtype = node.specs[0]
                given = (
                    node.values[0]
                    if node.values
                    else (np.arange(np.prod(shape)).reshape(shape) % 2 + 1).astype(dtype)
                )
            actual[node, 0] = given
            continue
        ins = [actual[ref] for ref in node.inputs]
        key = {"key": 7} if node.op.random else {}
        expected = node.op.eager(*ins, **node.attrs, **key)
        expected = expected if isinstance(expected, tuple | list) else [expected]
        actual |= {(node, i): value for i, value in enumerate(expected)}
        if rows_of(node) and not node.op.view:
            launched.append(Launched(node, ins))
            for a, b in zip(launched[-1].outs, expected, strict=True):
                scale = np.abs(b[np.isfinite(b)]).max(initial=1)
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5 * scale)
    return launched


def launch_both(function, **arrays):
    """The same for a function, and for it with its gradients."""
    graph = graph_of(function, **arrays)
    return launch(graph, **arrays), launch(joint_graph(graph, list(arrays)), **arrays)


def one(function, **arrays):
    """The only step of a function."""
    (launched,) = launch(graph_of(function, **arrays), **arrays)
    return launched


# -- the numbers -----------------------------------------------------------------------
def centered(x, axis):
    return sym.broadcast_sub(x, sym.mean(x, axis=axis, keepdims=True))


def standard(x, axis):
    x = centered(x, axis)
    spread = sym.mean(sym.square(x), axis=axis, keepdims=True)
    return sym.broadcast_mul(x, sym.rsqrt(spread + 1e-3))


FORMS = {
    "sum": lambda x, axis: sym.sum(sym.tanh(x), axis=axis),
    "mean": lambda x, axis: sym.mean(x, axis=axis, keepdims=True),
    "max": lambda x, axis: sym.max(x, axis=axis),
    "min": lambda x, axis: sym.min(-x, axis=axis) * 2,
    "prod": lambda x, axis: sym.prod(1 + x / 64, axis=axis),
    "norm": lambda x, axis: sym.sqrt(sym.sum(sym.square(x), axis=axis) + 1),
    "standard": standard,
}
SOFT = {
    "softmax": lambda x, axis: sym.softmax(x, axis=axis),
    "log_softmax": lambda x, axis: sym.log_softmax(x, axis=axis),
}
SHAPES = [(1, 1), (3, 2), (33, 31), (1, 32), (3, 33), (33, 257), (3, 1000), (1, 5000), (1000, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("form", FORMS | SOFT)
def test_along_one_axis(form, axis, rng):
    for shape in SHAPES:
        x = rng.uniform(-1, 1, shape[::-1] if axis == 0 else shape).astype(F32)
        launch_both(lambda x: (FORMS | SOFT)[form](x, axis), x=x)


@pytest.mark.parametrize("axis", [None, (0, 2, 3), (1, 3), (0, 2), (0, 1), 1])
@pytest.mark.parametrize("form", FORMS)
def test_along_several_axes(form, axis, rng):
    for shape in ((4, 3, 5, 6), (2, 33, 9, 7), (2, 1, 40, 40)):
        x = rng.uniform(-1, 1, shape).astype(F32)
        launch_both(lambda x: FORMS[form](x, axis), x=x)


LAYERS = {
    "layer_norm": (lambda x, g, b: sym.LayerNorm(x, g, b), (5, 70), 70),
    "layer_norm_axis_1": (lambda x, g, b: sym.LayerNorm(x, g, b, axis=1), (5, 7, 6), 7),
    "batch_norm": (
        lambda x, g, b, mean, var: sym.BatchNorm(x, g, b, mean, var, fix_gamma=False),
        (4, 3, 5, 5),
        3,
    ),
    "batch_norm_last": (
        lambda x, g, b, mean, var: sym.BatchNorm(x, g, b, mean, var, fix_gamma=False, axis=-1),
        (4, 5, 5, 40),
        40,
    ),
    "instance_norm": (lambda x, g, b: sym.InstanceNorm(x, g, b), (4, 3, 9, 5), 3),
    "l2": (lambda x: sym.L2Normalization(x), (5, 70), None),
    "l2_channel": (lambda x: sym.L2Normalization(x, mode="channel"), (4, 3, 5), None),
    "cross_entropy": (
        lambda x: -sym.pick(sym.log_softmax(x), sym.arange(5) % 3, axis=1),
        (5, 10),
        None,
    ),
    "absolute": (lambda x: sym.mean(sym.abs(x)), (33, 40), None),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, rng):
    function, shape, n = LAYERS[name]
    names = function.__code__.co_varnames[1:]
    arrays = {"x": rng.normal(size=shape).astype(F32)}
    arrays |= {v: rng.uniform(1, 2, n).astype(F32) for v in names}
    forward, both = launch_both(function, **arrays)
    assert forward and both


KINDS = ["float64", "int8", "int32", "int64", "uint8", "uint64", "bool"]


@pytest.mark.parametrize("axis, shape", [(1, (3, 70)), (0, (70, 40)), (None, (1, 33_000))])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_other_kinds_of_numbers(name, kind, axis, shape, rng):
    x = rng.uniform(0, 3, shape).astype(kind) if kind != "float64" else rng.uniform(0.9, 1.1, shape)
    assert one(lambda x: getattr(sym, name)(x, axis=axis), x=x)


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("at", [0, 1, 37, 69])
def test_nan_is_kept_wherever_it_is(name, at):
    x = np.linspace(-1, 1, 70, dtype=F32)[None] * np.ones((3, 1), F32)
    x[1, at] = np.nan
    got = one(lambda x: getattr(sym, name)(x, axis=1), x=x).outs[0]
    np.testing.assert_array_equal(np.isnan(got), [False, True, False])


@pytest.mark.parametrize("kind", ["float32", *KINDS])
def test_what_no_number_is_reduced_to(kind):
    x = np.empty((3, 0), kind)
    assert one(lambda x: sym.sum(x, axis=1), x=x).outs[0].tolist() == [0, 0, 0]
    assert one(lambda x: sym.prod(x, axis=1), x=x).outs[0].tolist() == [1, 1, 1]


def test_the_largest_of_infinities():
    x = np.full((2, 5), -np.inf, F32)
    assert one(lambda x: sym.max(x, axis=1), x=x).outs[0].tolist() == [-np.inf] * 2


def test_random_numbers_are_drawn_again_in_each_pass(rng):
    """Two passes over the row, which must see the same dropped elements."""
    x = rng.random((3, 70), dtype=F32)
    launched = one(lambda x: standard(sym.Dropout(x, p=0.5), 1), x=x)
    assert launched.texts[0][0].count("bits24(") == 3


def test_an_output_is_read_again_by_the_thread_that_wrote_it(rng):
    def function(x):
        y = sym.exp(x)
        return [y, sym.broadcast_div(y, sym.sum(y, axis=1, keepdims=True))]

    x = rng.random((3, 70), dtype=F32)
    (counts,) = one(function, x=x).counts
    assert counts["a0"].loads == x.size and counts["out0"].loads == x.size


def test_rows_read_in_other_orders(rng):
    x = rng.random((9, 70), dtype=F32)
    for function in (
        lambda x: sym.softmax(x.transpose(), axis=1),
        lambda x: sym.sum(sym.slice_axis(x, axis=1, begin=3, end=60), axis=1),
        lambda x: sym.max(sym.slice(x, begin=(None,), end=(None,), step=(-1,)), axis=0),
    ):
        launch(graph_of(function, x=x), x=x)


# -- what the threads do ---------------------------------------------------------------
@pytest.mark.parametrize("n", [2, 4, 5, 31, 32, 33, 257, 1000, 5000])
@pytest.mark.parametrize("n_rows", [1, 3, 65])
def test_softmax_loads_an_element_once_a_pass(n_rows, n, rng):
    if n * n_rows > 20_000:
        n_rows = 2
    launched = one(sym.softmax, x=rng.random((n_rows, n), dtype=F32))
    (counts,), along = launched.counts, BlockShape.of(n, n_rows, False).along
    assert counts.global_loads == 3 * n_rows * n
    assert counts.global_stores == counts["out"].stores == n_rows * n
    # Two trees: partial results are written, added level by level; then all read one.
    assert counts.barriers == (2 * along.bit_length() if along > 1 else 0)


def test_a_thread_has_about_four_elements_and_a_block_256_threads():
    for n in range(1, 3000, 7):
        for n_rows in (1, 2, 3, 40, 1000):
            for across in (False, True):
                team = BlockShape.of(n, n_rows, across)
                threads = team.along * team.rows
                assert threads <= MAX_THREADS and team.rows < 2 * n_rows
                assert team.along < n or team.along == 1
                assert 4 * team.along >= n or threads >= MAX_THREADS
                assert threads >= 256 or team.rows >= n_rows


def traffic_of(launched, *arrays):
    """What the warps of a step's only kernel ask of memory."""
    ((text, grid, block),) = launched.texts
    file, scope = (
        "<a kernel of rows>",
        CONSTRUCTORS | {"__name__": "rows", "cuda": cuda, "math": math, "INF": math.inf},
    )
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    exec(compile(text, file, "exec", __future__.annotations.compiler_flag), scope, names := {})
    return traffic(cuda.jit(names["kernel"])[grid, block], *(a.reshape(-1) for a in arrays))


@pytest.mark.parametrize(
    "axis, shape, block",
    [
        pytest.param(1, (64, 1000), (256, 1, 1), marks=pytest.mark.external),
        (1, (64, 32), (8, 32, 1)),
        (0, (1000, 64), (32, 16, 1)),
        (0, (3, 640), (256, 1, 1)),
        (1, (4, 10, 8, 8), (64, 4, 1)),
    ],
)
@pytest.mark.slow
def test_a_warp_asks_for_neighbors(axis, shape, block, rng):
    """No piece of memory is asked for that is not used whole, and none twice; nor do
    threads wait for each other in shared memory."""
    x = rng.random(shape, dtype=F32)
    launched = one(lambda x: sym.log_softmax(x, axis=axis), x=x)
    assert launched.texts[0][2] == block
    rows = traffic_of(launched, x, np.empty_like(x)).rows
    assert {row.name for row in rows if row.space == "global"} == {"a0", "out"}
    for row in rows:
        assert row.transactions == row.at_best, row


def test_a_long_row_is_summed_up_by_many_blocks(rng):
    n = 100_000
    launched = one(lambda x: sym.sum(sym.square(x)), x=rng.random(n, dtype=F32))
    (_, grid, block), (_, last, _) = launched.texts
    parts = BlockShape.of(n, 1, False).parts
    assert grid == (1, parts, 1) and last == (1, 1, 1) and parts == 12
    assert launched.column("global_loads") == [n, parts]
    assert launched.column("global_stores") == [parts, 1]
    assert launched.column("barriers") == [block[0].bit_length()] * 2


@pytest.mark.slow
def test_long_rows_take_a_kernel_for_each_pass(rng):
    n, n_rows = 40_000, 2
    launched = one(sym.softmax, x=rng.random((n_rows, n), dtype=F32))
    parts = BlockShape.of(n, n_rows, False).parts
    assert [grid for _, grid, _ in launched.texts] == [(n_rows, parts, 1)] * 3
    everyone = n_rows * parts * parts  # each block reads what all of its row have left
    assert launched.column("global_loads") == [
        n * n_rows,
        n * n_rows + everyone,
        n * n_rows + 2 * everyone,
    ]
    assert launched.column("global_stores") == [n_rows * parts] * 2 + [n_rows * n]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["max", "norm", "softmax"])
def test_long_columns_are_cut_too(form, rng):
    """40 columns are 2 blocks, the second not full, and each is cut into 7."""
    x = rng.uniform(-1, 1, (2000, 40)).astype(F32)
    forward, _ = launch_both(lambda x: (FORMS | SOFT)[form](x, 0), x=x)
    (_, grid, block), *others = forward[0].texts
    assert (grid, block, bool(others)) == ((2, 7, 1), (32, 16, 1), True)


@pytest.mark.slow
def test_a_pass_reads_only_those_sums_of_the_last_one_that_it_needs(rng):
    """The maximum is written by the second kernel; the third has no use for it."""

    def function(x):
        y = sym.sin(x)
        return [sym.max(y, axis=1), standard(y, 1)]

    x = rng.random((1, 40_000), dtype=F32)
    *_, last = launch(graph_of(function, x=x), x=x)
    assert [text.count("work[") for text, _, _ in last.texts] == [2, 3, 2]


def test_rows_without_sums_have_many_blocks_and_one_kernel(rng):
    """A product reads the maximum, too, so a kernel of its own finds it."""

    def function(x):
        top = sym.max(x, axis=1, keepdims=True)
        return [sym.dot(top, top), sym.broadcast_mul(x, 1 / top)]

    x = rng.random((1, 40_000), dtype=F32)
    _, last = launch(graph_of(function, x=x), x=x)
    ((_, grid, _),), (counts,) = last.texts, last.counts
    assert grid == (1, 40_000 // (MAX_THREADS * EACH), 1)
    assert (counts.barriers, counts["out"].stores) == (0, x.size)


def test_numbers_of_rows_alone_have_a_thread_each():
    """A part of the gradient of BatchNorm, which has no loop over a row."""
    function, shape, n = LAYERS["batch_norm"]
    made = kernels(function, True, x=shape, g=(n,), b=(n,), mean=(n,), var=(n,))
    alone = [launch for text, *launch in made if "while" not in text]
    assert alone and all(launch == [(1, 1, 1), (4, 1, 1)] for launch in alone)


def test_sums_of_one_pass_share_its_loop_and_its_tree(rng):
    def function(x):
        return [sym.sum(x, axis=1), sym.max(x, axis=1), sym.sum(sym.square(x), axis=1)]

    x = rng.random((3, 100), dtype=F32)
    (counts,) = one(function, x=x).counts
    assert counts.barriers == 6 and counts.global_loads == x.size


def test_many_sums_take_little_shared_memory(rng, monkeypatch):
    monkeypatch.setitem(merge.__globals__, "MAX_REDUCTIONS", 2 * SUMS + 1)  # one kernel

    def function(x):
        return [sym.sum(x * float(i), axis=1) for i in range(2 * SUMS + 1)]

    x = rng.random((3, 2000), dtype=F32)
    launched = one(function, x=x)
    assert launched.texts[0][0].count("cuda.shared.array") == 2 * SUMS
    assert launched.counts[0].barriers == 3 * 10


def test_sums_of_several_dtypes_are_not_cut(rng):
    def function(x):
        n = sym.sum(sym.cast(x > 0, dtype="int64"), axis=1)
        return sym.sum(x, axis=1) / sym.cast(n, dtype="float32")

    x = rng.normal(size=(2, 40_000)).astype(F32)
    assert len(one(function, x=x).texts) == 1


# -- random graphs ---------------------------------------------------------------------
@pytest.mark.slow
def test_random_graphs_and_their_gradients():
    n_launched = 0
    with np.errstate(all="ignore"):
        for graph, values in programs():
            n_launched += len(launch(graph, **values))
            n_launched += len(launch(joint_graph(graph, list(values)), **values))
    assert n_launched > 100


# -- machine code ----------------------------------------------------------------------
def kernels(function, gradient=False, **shapes):
    """The kernels of a function's reductions: (text, grid, block)."""
    specs = {n: Spec(shape, F32) for n, shape in shapes.items()}
    graph = expand(trace(function, specs, training=True)[0], True)
    if gradient:
        graph = joint_graph(graph, list(shapes))
    return [
        made
        for node in ready(graph).nodes
        if node.op and rows_of(node)
        for made in GpuKernel(node).texts("kernel")
    ]


def compiled_ones():
    """Kernels of each kind: short rows, long ones, across; cut; of many sums."""
    norm, batch_norm = LAYERS["layer_norm"][0], LAYERS["batch_norm"][0]
    return [
        *kernels(sym.softmax, x=(64, 1000)),
        *kernels(sym.softmax, True, x=(70, 10)),
        *kernels(sym.softmax, x=(1, 100_000)),
        *kernels(norm, True, x=(100, 768), g=(768,), b=(768,)),
        *kernels(batch_norm, True, x=(8, 64, 28, 28), g=(64,), b=(64,), mean=(64,), var=(64,)),
        *kernels(lambda x: [sym.sum(x * float(i), axis=1) for i in range(30)], x=(64, 5000)),
        *kernels(lambda x: sym.sum(sym.cast(x, dtype="bool"), axis=1), x=(64, 1000)),
        *kernels(lambda x: sym.max(sym.cast(x, dtype="int8"), axis=0), x=(64, 1000)),
    ]


@pytest.mark.slow
@pytest.mark.external
@pytest.mark.parametrize("environment", envs.TOOLCHAINS)
def test_machine_code_has_no_float64_and_fits_a_multiprocessor(environment):
    """A multiprocessor has 65536 registers and 48 KB of shared memory for a block."""
    blocks = {module(text): math.prod(block) for text, _, block in compiled_ones()}
    for text, capability, actual in tried(
        gpu_kernels.compiled, environment, blocks, [(7, 5), (9, 0)]
    ):
        assert isinstance(actual, dict), actual
        assert (actual["f64"], actual["spilled_bytes"]) == (0, 0), (text, capability)
        assert actual["registers"] * blocks[text] <= 65536, (text, capability)
        assert actual["shared_bytes"] <= 48 * 1024, (text, capability)
