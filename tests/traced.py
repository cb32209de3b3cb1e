"""Samples of operators as outputs of one graph, so that laws may try many at once."""

import numpy as np
import pytest
from minihybrid.nd import NDArray
from minihybrid.sym import Symbol, trace
from samples import CASES, UNIQUE, cases_of, has_samples
from sampling import Case

from minihybrid import autograd, nd
from minihybrid.core import tracing
from minihybrid.core.op import Spec
from minihybrid.core.plan import Plan
from minihybrid.ops import OPS

DTYPES = ("float32", "float64", "int32", "int64")
NUMPY_ONLY = ("float16", "int8", "uint8")  # too many kernels to compile for "cpu"
# Relative to the larger of 1 and the number; whole numbers must be equal.
TOLERANCE = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-13}
TARGETS = ("numpy", "cpu")


def apply(case, values):
    """The outputs of an operator on arrays or on symbols, as a list."""
    base = type(values[0]) if values else (Symbol if tracing.is_tracing() else NDArray)
    out = base.interpret(case.op, values, case.op.normalize(dict(case.attrs)))
    if isinstance(out, Symbol):
        return [Symbol([ref]) for ref in out.refs]
    return list(out) if isinstance(out, tuple) else [out]


def assert_close(got, expected, what):
    """Equal within the tolerance of the dtype; NaN and infinity at the same places."""
    assert got.shape == expected.shape and got.dtype == expected.dtype, what
    tolerance = TOLERANCE.get(got.dtype.name, 0)
    np.testing.assert_allclose(got, expected, tolerance, tolerance, err_msg=str(what))


class Program:
    """Every case as outputs of one graph, and the values of its variables."""

    def __init__(self, cases, dtype):
        self.cases, self.values, self.special = cases, {}, {}
        for i, case in enumerate(cases):
            rng = np.random.default_rng(0)  # a case's numbers don't depend on the cases beside it
            for j, kind in enumerate(case.inputs):
                values = self.values[f"x{i}_{j}"] = kind.array(np.dtype(dtype), rng)
                self.special[f"x{i}_{j}"] = poisoned(values, kind, rng)
        self.names = [
            [f"x{i}_{j}" for j in range(len(case.inputs))] for i, case in enumerate(cases)
        ]
        specs = {n: Spec(a.shape, a.dtype) for n, a in self.values.items()}
        self.graph, self.result = trace(self.apply_all, specs, training=True)

    def apply_all(self, *values):
        """The outputs of each case, on all values in order."""
        given = dict(zip(self.values, values, strict=True))
        return [
            apply(case, [given[n] for n in names])
            for case, names in zip(self.cases, self.names, strict=True)
        ]

    def eager(self, values):
        """The outputs of each case, by eager arrays."""
        nd.random.seed(7)
        with autograd.train_mode():
            outs = self.apply_all(*map(NDArray, values.values()))
        return [[o.data for o in row] for row in outs]

    def compiled(self, target):
        """values -> the outputs of each case, by one plan."""
        plan = Plan(self.graph, [], training=True, target=target)
        assert plan.target == target, plan.target_note

        def run(values):
            nd.random.seed(7)
            outs = iter(plan([], plan.bind([values[n] for n in plan.params])))
            return [[next(outs) for _ in row] for row in self.result]

        return run


NUMBERS = ("any", "positive", "inside", "above", "like")  # no places, no good matrices


def poisoned(values, kind, rng):
    """The array with special numbers at some places, where any numbers are allowed."""
    if values.dtype.kind != "f" or kind.kind not in NUMBERS:
        return values
    places = rng.random(values.shape) < 0.3
    return np.where(places, rng.choice(SPECIAL, values.shape), values).astype(values.dtype)


SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan]
# Compiling takes a tenth of a second a kernel, so not every sample is tried on "cpu".
# Elementwise operators share their loops: all samples of these stand for all shapes.
ALL_SHAPES = {
    OPS[name] for name in ("elemwise_add", "broadcast_add", "_mul_scalar", "exp", "_where")
}


LIKE_OTHERS = ALL_SHAPES | {OPS["broadcast_mul"], OPS["_power_scalar"]}


def siblings():
    """Operators whose formula or rule another has, too, or has with a second array."""
    seen, actual = set(), set()
    for op in FIRST_OF:
        what = {op.scalar(op.normalize(dict(FIRST_OF[op].attrs))), op.eager} - {None}
        if what & seen or op.expr and op.name.endswith("_scalar"):
            actual.add(op)
        seen |= what
    return actual - LIKE_OTHERS


FIRST_OF = {op: cases_of(op)[0] for op in UNIQUE if has_samples(op)}
SIBLINGS = siblings()
LONG = ("elemwise_add", "_power", "_mod", "clip", "sum", "max", "argmax", "_matmul", "Cast")


def samples_of(op):
    """How many samples of an operator are compiled: all of those with a kernel."""
    if op in SIBLINGS:
        return 0
    if op.expr and op not in ALL_SHAPES or op.name.startswith("_np"):
        return 1
    return 2 if op.expand else 1000


def first_samples(cases):
    """One sample of each operator, and none of siblings."""
    return list({c.op: c for c in reversed(cases) if c.op not in SIBLINGS}.values())


def compiled_cases(dtype):
    """The samples that are compiled for the processor."""
    if dtype == "float32":
        return [c for op in FIRST_OF for c in cases_of(op)[: samples_of(op)]]
    return [c for c in first_samples(CASES) if dtype != "int64" or c.op.name in LONG]


def batches(cases, size=20):
    """Samples in lists, those of an operator in one: what one plan answers at once.

    A plan a sample would compile the same preamble again and again, and one plan for
    all would keep the compiler busy with the square of its length.
    """
    parts = [[]]
    for case in cases:
        if len(parts[-1]) >= size and case.op is not parts[-1][-1].op:
            parts.append([])
        parts[-1].append(case)
    return parts


def batch_params(cases, *values):
    """One parameter a batch: `values` and the samples; the id names all operators."""
    return [
        pytest.param(
            *values,
            part,
            id="-".join(map(str, [*values, *dict.fromkeys(case.op.name for case in part)])),
        )
        for part in batches(cases)
    ]


def together(cases, work):
    """operator -> [(case, what `work` made of it)], or the error that it raises alone.

    Works on all at once; if that fails, on each half, down to the guilty.
    Raises:  AssertionError if operators fail together, but none alone.
    """
    ops = list(dict.fromkeys(case.op for case in cases))
    try:
        made = list(zip(cases, work(cases), strict=True))
        return {op: [pair for pair in made if pair[0].op is op] for op in ops}
    except Exception as error:
        if len(ops) == 1:
            return {ops[0]: error}
        half = ops[: len(ops) // 2]
        actual = together([c for c in cases if c.op in half], work) | together(
            [c for c in cases if c.op not in half], work
        )
        if not any(isinstance(f, Exception) for f in actual.values()):
            names = ", ".join(op.name for op in ops)
            raise AssertionError(f"these fail together, none alone: {names}") from error
        return actual


def assert_all(cases, work, agree):
    """`agree(case, what work made of it)` for every case; a failure names its operator."""
    failures = []
    for op, actual in together(cases, work).items():
        try:
            if isinstance(actual, Exception):
                raise actual
            for case, made in actual:
                agree(case, made)
        except Exception as error:
            error.add_note(f"so {op.name} breaks the law")
            failures.append(error)
    if failures:
        raise ExceptionGroup("operators that break the law", failures)


FORMULAS = [
    Case(op, (), case.attrs)
    for op, case in FIRST_OF.items()
    if op.inputs
    and isinstance(op.inputs, tuple)
    and op.expr
    and not op.random
    and not any(i.kind == "whole" for i in case.inputs)
]
