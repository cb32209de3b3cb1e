"""Whole numbers: every target gives what eager arrays give, at the ends of each dtype.

All pairs of special numbers (the smallest, the largest, 0, -1, 1, ...) go through every
elementwise operator. For the CPU all operators are one kernel, which costs one
compilation a dtype instead of a hundred.

What is left out: floats beyond whole numbers, which processors and GPUs cut in their
own ways (the last lines of smooth_l1 and hypot of 64 bits).
"""

import functools
import math
from importlib import import_module

import numba
import numpy as np
import pytest
from marks import external
from minihybrid.nd import NDArray
from minihybrid.sym import trace
from samples import CASES
from sampling import Case
from test_standalone import answers, build, needs_cc
from traced import FORMULAS, SIBLINGS, apply, assert_close

from minihybrid import HybridError, autograd, cpu, function, nd, simulated_gpu, sym
from minihybrid.codegen.cpu.scalar import OPTIONS
from minihybrid.codegen.cpu.target import IMPORTS, functions
from minihybrid.codegen.source import Kernel
from minihybrid.core.op import AttrError, DTypeError, Node, Spec
from minihybrid.core.placement import copy_to
from minihybrid.core.plan import Plan
from minihybrid.formats.c import c_file, weights_file
from minihybrid.ops import OPS
from minihybrid.ops.elementwise import unary
from minihybrid.ops.integers import limits
from minihybrid.passes import expand
from minihybrid.passes.fuse import FUSED, Fused
from minihybrid.runtime.device import device_of

DTYPES = ("int8", "uint8", "int32", "int64", "uint64", "bool")
BEYOND = {OPS[n] for n in ("smooth_l1", "_hypot", "broadcast_hypot", "_hypot_scalar")}
SCALARS = (-1, 0, 1, 3, 2.5)


def pairs(dtype):
    """Inputs a, b, c, ...: all pairs of special numbers, and then in other orders."""
    low, high = limits(dtype)
    some = {low, low + 1, high - 1, high, high // 3, *range(-3, 4)}
    some = np.array(sorted(n for n in some if low <= n <= high), dtype)
    a, b = (v.ravel() for v in np.meshgrid(some, some))
    return a, b, *(np.roll(a, n) for n in (3, 5, 6))


def run(cases, values):
    """The output of each case, on the first values."""
    return [apply(case, list(values[: len(case.op.inputs)]))[0] for case in cases]


@functools.cache
def law(name):
    """(cases, inputs, what eager gives) of a dtype; cases that it refuses are gone."""
    dtype, actual = np.dtype(name), []
    arrays, expected = pairs(dtype), []
    for case in FORMULAS:
        if (
            dtype.itemsize == 8
            and case.op in BEYOND
            or dtype.kind == "b"
            and case.op.name in ("_normalized", "_squared_distance")
        ):
            continue
        by_scalar = case.op.name.endswith("_scalar")
        for attrs in [{"scalar": s} for s in SCALARS] if by_scalar else [case.attrs]:
            one = Case(case.op, (), attrs)
            try:
                expected += run([one], list(map(NDArray, arrays)))
            except DTypeError:
                continue
            actual.append(one)
    return actual, arrays, [w.data for w in expected]


def agree(cases, got, expected):
    for case, one, other in zip(cases, got, expected, strict=True):
        assert_close(one, other, case)


def graph_of(cases, arrays):
    """The cases as one graph."""
    specs = {n: Spec(a.shape, a.dtype) for n, a in zip("abcde", arrays, strict=True)}
    graph, _ = trace(lambda *x: run(cases, x), specs)
    return expand(graph, False)


def one_kernel(graph):
    """The whole graph as one compiled function of its variables and its outputs."""
    nodes = [n for n in graph.nodes if n.op]
    node = Node(
        FUSED,
        tuple((v, 0) for v in graph.variables),
        {"graph": Fused([*graph.variables, *nodes], graph.heads, None)},
        "all",
        tuple(n.specs[i] for n, i in graph.heads),
    )
    kernel, scope = Kernel(node, functions), {"np": np, "math": math}
    for module, names in IMPORTS.items():
        scope |= {n: getattr(import_module(module), n) for n in names.split()}
    exec(kernel.text("kernel"), scope)
    return numba.njit(**OPTIONS)(scope["kernel"])


def to_float(case):
    """Whether it gives floats."""
    specs = [Spec((1,), np.dtype("int8"))] * len(case.op.inputs)
    attrs = case.op.normalize(dict(case.attrs))
    return case.op.specs_of(specs, attrs)[1][0].dtype.kind == "f"


def compiled_once(dtype, floats=False):
    """Formulas that scalars or other names share count once; and functions that give
    floats, which begin with a conversion, are tried where asked for."""
    one = 1 if dtype == "bool" else 3
    chosen = [
        (c, w)
        for c, w in zip(*law(dtype)[::2], strict=True)
        if (floats or not to_float(c)) and (c.op not in SIBLINGS or c.attrs.get("scalar") == one)
    ]
    assert len(chosen) > 25
    return zip(*chosen, strict=True)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int8", "uint64", *external("int64")])
def test_compiled_whole_numbers_are_those_of_eager(dtype):
    cases, expected = compiled_once(dtype)
    arrays = law(dtype)[1]
    graph = graph_of(cases, arrays)
    given = dict(zip("abcde", arrays, strict=True))
    outs = [np.empty_like(w) for w in expected]
    one_kernel(graph)(*(given[v.name] for v in graph.variables), *outs, arrays[0].size)
    agree(cases, outs, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("target", ["numpy", "gpu"])
def test_whole_numbers_of_other_targets_are_those_of_eager(dtype, target):
    cases, arrays, expected = law(dtype)
    if target == "gpu":
        kept = [i for i, c in enumerate(cases) if not to_float(c)]
        cases, expected = [cases[i] for i in kept], [expected[i] for i in kept]
        target = device_of(simulated_gpu())
        arrays = [copy_to(a, target.context) for a in arrays]
    plan = Plan(graph_of(cases, law(dtype)[1]), list("abcde"), target=target)
    outs = plan(list(arrays), plan.bind([]))
    agree(cases, map(np.asarray, outs), expected)


@pytest.mark.slow
@needs_cc
@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64", "bool"])
def test_whole_numbers_in_c_are_those_of_eager(dtype, tmp_path):
    cases, expected = compiled_once(dtype, dtype == "int8")
    arrays = law(dtype)[1]
    plan = Plan(graph_of(cases, arrays), list("abcde"))
    weights = [n.values[0] for n in plan.table.constants]
    specs = [Spec(a.shape, a.dtype) for a in arrays]
    (tmp_path / "net.weights").write_bytes(weights_file(weights))
    (tmp_path / "net.c").write_text(
        c_file(plan, specs, [Spec(*s) for s in plan.out_specs], weights)
    )
    build(
        tmp_path, "-fsanitize=undefined", "-fno-sanitize-recover", "-Wno-bool-compare"
    )  # of a clip to 0 and 1
    agree(cases, answers(tmp_path, arrays, expected), expected)


# -- scalars beside them ---------------------------------------------------------------
BESIDE = (np.inf, -np.inf, np.nan, 2**63, 2**62 + 1, 300, -1, 0, 0.5, 2.5)
BY_SCALAR = sorted({op.name for op in OPS.values() if op.binary_form})


def outcome(function):
    """What it gives, or the kind of error that it raises."""
    try:
        return function().tolist()
    except DTypeError as error:
        return type(error)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_scalar_is_refused_by_eager_and_by_traced_calls_or_by_none(dtype):
    """What is left is the answer of NumPy's plan, also on a device."""
    x, device = np.array([1, 0, 1], dtype), device_of(simulated_gpu())
    spec, refused = Spec(x.shape, x.dtype), 0
    for name in BY_SCALAR:
        for scalar in BESIDE[4 * (x.itemsize == 8 and OPS[name] in BEYOND) :]:
            case = Case(OPS[name], (), {"scalar": scalar})

            def planned(case=case):
                graph, _ = trace(lambda a: run([case], [a]), {"a": spec})
                plan = Plan(graph, ["a"], target="numpy")
                return plan([x], plan.bind([]))[0]

            eager = outcome(lambda case=case: run([case], [NDArray(x)])[0].data)
            assert outcome(planned) == eager, case
            far = outcome(
                lambda case=case: run([case], [NDArray(copy_to(x, device.context))])[0].asnumpy()
            )
            assert far == eager, case
            refused += eager is DTypeError
    assert 20 < refused < len(BY_SCALAR) * len(BESIDE)


def test_a_refused_scalar_says_what_to_do():
    x = nd.array([1, 2], dtype="int32")
    with pytest.raises(
        DTypeError,
        match=r"x \+ y: scalar=inf is not a number "
        r"that int32 holds, which are -2147483648 to 2147483647; "
        r"convert the array with astype\('float32'\)",
    ):
        x + np.inf
    with pytest.raises(DTypeError, match="scalar=0.5 is cut to 0, by which int32"):
        x / 0.5
    with pytest.raises(DTypeError, match="x - y: the input is bool, but"):
        x.astype(bool) - x.astype(bool)
    with pytest.raises(AttrError, match="a_min=3.0 and a_max=2.0 are given, but two"):
        x.clip(3, 2)


def test_whole_numbers_beside_scalars_by_value():
    x = nd.array([0, 100, 200, 255], dtype="uint8")
    assert x.clip(-1, 100).asnumpy().tolist() == [0, 100, 100, 100]
    assert (x + -10).asnumpy().tolist() == [246, 90, 190, 245]
    wide = nd.array([5, -7], dtype="int32")
    assert wide.clip(-np.inf, np.inf).asnumpy().tolist() == [5, -7]
    assert (wide**-1).asnumpy().tolist() == [0, 0]
    assert (2**wide).asnumpy().tolist() == [32, 0]
    assert (wide / 2).asnumpy().tolist() == [2, -3]
    assert (nd.array([5], dtype="int64") + (2**53 + 1)).asscalar() == 2**53 + 6


def test_functions_of_small_whole_numbers_are_computed_in_float32():
    """NumPy would compute them in float16."""
    x = nd.array([12, 200], dtype="uint8")
    np.testing.assert_allclose(x.exp().asnumpy()[0], np.exp(12), 1e-6)
    np.testing.assert_allclose(x.sqrt().asnumpy()[1], np.sqrt(200), 1e-6)
    assert {x.exp().dtype, x.sigmoid().dtype, x.rsqrt().dtype} == {np.float32}


@pytest.mark.parametrize("kind", ["float64", "int32", "uint8"])
def test_amp_cast_leaves_what_is_no_low_precision(kind):
    """As MXNet: it only casts float16 and float32."""
    x = nd.array([3, 1], dtype=kind)
    for expected in ("float16", "int8", "float32"):
        assert nd.amp_cast(x, dtype=expected).dtype == x.dtype
        cast = nd.amp_cast(x.astype("float32"), dtype=expected)
        assert np.dtype(cast.dtype) == expected
    graph = sym.amp_cast(sym.var("x"), dtype="float16")
    assert [graph.infer_type(x=k)[1][0] for k in (kind, "float32")] == [x.dtype, np.float16]


def test_the_smallest_number_over_minus_one_does_not_end_the_process():
    x, y = nd.array([-(2**31)], dtype="int32"), nd.array([-1], dtype="int32")
    assert ((x / y).asscalar(), (x % y).asscalar(), (x % -1).asscalar()) == (-(2**31), 0, 0)
    assert ((x / (y * 0)).asscalar(), (x % (y * 0)).asscalar()) == (0, 0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "behind", [lambda y: y.astype("float32"), lambda y: y.sqrt()], ids=["a cast", "sqrt"]
)
def test_gradients_of_whole_numbers_are_whole(behind):
    """What gives floats of whole numbers behind an operator hands whole ones back."""
    tried, both = set(), 0
    for i, case in enumerate(CASES):

        def run(*x, case=case):
            reader = type(x[0]) if x else NDArray
            out = reader.interpret(case.op, [*x], case.op.normalize(dict(case.attrs)))
            return behind(out[0] if isinstance(out, (tuple, list)) else out) * 1.5

        x = [nd.array(a, dtype=a.dtype) for a in case.arrays("int32", np.random.default_rng(0))]
        actual = []
        forms = [run, function(run, target="numpy")][: 1 + (i % 7 == 0)]
        for form in forms:
            for a in x:
                a.attach_grad()
            try:
                nd.random.seed(i)
                with autograd.record():
                    out = form(*x)
            except HybridError:
                continue  # an operator of floats
            if out.node is not None:
                out.backward()
                actual.append([a.grad.asnumpy() for a in x])
                assert [a.grad.dtype for a in x] == [a.dtype for a in x], case
                tried.add(case.op.name)
        if len(actual) == 2 and not case.op.random:
            for eager, plan in zip(*actual, strict=True):
                np.testing.assert_array_equal(eager, plan, str(case))
            both += 1
    assert len(tried) > 250 and both > 100


def test_a_float_function_of_whole_numbers_is_a_cast_and_the_function():
    x = nd.array([1, 4, 9], dtype="int32")
    for f in (nd.sqrt, lambda v: nd.sqrt(v.astype("float32"))):
        for run in (f, function(f, target="numpy")):
            x.attach_grad()
            with autograd.record():
                y = run(x)
            y.backward(nd.array([10, 10, 10]))
            assert x.grad.asnumpy().tolist() == [5, 2, 1]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_function_of_floats_need_not_speak_of_whole_numbers(dtype, monkeypatch):
    """Who enters one writes any Python function and an expression, for floats alone."""
    monkeypatch.setattr("minihybrid.ops.registry.OPS", dict(OPS))
    entered = unary(
        "cut_at_three",
        lambda x: np.clip(x, -3, 3),
        "T(-3) if {a} < T(-3) else T(3) if {a} > T(3) else {a}",
        lambda g, y, a: g * (abs(a) < 3),
        "x, but at least -3 and at most 3.",
    )
    data = np.array([0, 1, 2, 9, 100]).astype(dtype)
    for context in (cpu(), simulated_gpu()):
        out = entered(nd.array(data, ctx=context, dtype=dtype))
        assert out.dtype == np.float32
        assert out.asnumpy().tolist() == np.clip(data.astype(np.float32), -3, 3).tolist()
