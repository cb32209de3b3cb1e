"""Every operator behind others and before others: fused kernels give eager's answers.

What is fused depends on who stands beside whom: an operator that is right alone may be
wrong in company. Kernels run as plain Python (`plain`), where every index and every
unwritten element is checked, and on the simulated GPU. A new operator adds no test
here.
"""

import functools
import itertools

import numpy as np
import pytest
from kernels_as_python import target as plain_target
from minihybrid.nd import NDArray
from minihybrid.sym import trace
from samples import cases_of
from traced import FIRST_OF, SIBLINGS, apply, assert_all, batches

from minihybrid import autograd, nd, simulated_gpu
from minihybrid.core.op import HybridError, Spec
from minihybrid.core.placement import copy_to
from minihybrid.core.plan import Plan
from minihybrid.core.tracing import direct
from minihybrid.ops import OPS
from minihybrid.ops.integers import limits
from minihybrid.runtime.device import device_of


# -- what stands before, and changes no number; what stands behind, and reads it -------
def same(x):
    return x


def twice(x):
    return x * 2 * 0.5


def turned(x):
    return OPS["reverse"](OPS["reverse"](x, axis=(0,)), axis=(0,))


def of_rows(x):
    row = OPS["softmax"](x, axis=-1)
    return x.broadcast_add(row - row)


def of_sums(x):
    total = x.sum(axis=0, keepdims=True)
    return x.broadcast_add(total - total)


def and_more(y):
    return [((y * 2 + 1) * y).T]


def itself_too(y):
    return [y, y.relu() * 3]


def sums(y):
    return [(y * 2).sum(axis=-1), y.max(axis=0)]


def read_backwards(y):
    return [(y * OPS["reverse"](y, axis=(0,))).sum(axis=0)]


def normalized_backwards(y):
    row = OPS["softmax"](y, axis=-1)
    return [(y * OPS["reverse"](row, axis=(-1,))).sum(axis=-1)]


PAIRS = [
    (twice, and_more),
    (same, itself_too),
    (of_rows, sums),
    (turned, read_backwards),
    (of_sums, normalized_backwards),
]


def in_company(case, pair, values):
    """The outputs of an operator whose floats come through one, and go into others."""
    before, behind = pair
    actual = apply(case, [before(v) if has_numbers(v) else v for v in values])
    return [out for y in actual for out in (behind(y) if has_numbers(y) else [y])]


def has_numbers(x):
    """Whether there are floats along some axis."""
    return np.dtype(x.dtype).kind == "f" and x.shape and 0 not in x.shape


def read_once(y):
    name = "_minus_scalar" if kind_of(y) == "b" else "_maximum_scalar"
    return [OPS[name](y, scalar=3)]


def read_often(y):
    return [y, *[OPS["relu"](y)] * (kind_of(y) != "b"), OPS["Cast"](y, dtype="int64")]


def before_whole(case, behind, values):
    """The outputs of an operator of whole numbers, as others read them."""
    return [out for y in apply(case, values) for out in (behind(y) if kind_of(y) in "iub" else [y])]


def kind_of(x):
    return np.dtype(x.dtype).kind


class Company:
    """Cases with all their neighbors as outputs of one graph."""

    def __init__(self, cases):
        rng, self.cases = np.random.default_rng(0), cases
        self.values = [case.arrays("float32", rng) for case in cases for _ in PAIRS]
        self.trace()

    def trace(self):
        """The graph of all values."""
        self.given = {
            f"x{i}_{j}": a for i, row in enumerate(self.values) for j, a in enumerate(row)
        }
        specs = {name: Spec(a.shape, a.dtype) for name, a in self.given.items()}
        self.graph, _ = trace(self.run, specs, training=True)

    def run(self, *values):
        """The outputs of each run, by arrays or symbols."""
        values, runs = iter(values), itertools.product(self.cases, PAIRS)
        with direct():
            return [
                in_company(*run, [next(values) for _ in row])
                for run, row in zip(runs, self.values, strict=True)
            ]

    def eager(self):
        """The outputs of each run, by eager arrays."""
        nd.random.seed(7)
        with autograd.train_mode():
            return [
                [o.asnumpy() for o in row] for row in self.run(*map(NDArray, self.given.values()))
            ]

    def by_plan(self, target):
        """All outputs one after the other, by a plan."""
        plan = Plan(self.graph, list(self.given), training=True, target=target)
        arrays = list(self.given.values())
        if plan.device:
            arrays = [copy_to(a, plan.device.context) for a in arrays]
        else:
            assert plan.target == target, plan.target_note
        nd.random.seed(7)
        return map(np.asarray, plan(arrays, plan.bind([])))


class Whole(Company):
    """The same of whole numbers up to the ends of their dtype."""

    def __init__(self, cases, dtype, behind):
        self.cases, self.values, self.behind = [], [], behind
        for case in cases:
            if (values := whole_values(case, dtype, behind)) is not None:
                self.cases.append(case)
                self.values.append(values)
        self.given = {}
        if self.cases:
            self.trace()

    def run(self, *values):
        """The outputs of each case, by arrays or symbols."""
        values = iter(values)
        with direct():
            return [
                before_whole(case, self.behind, [next(values) for _ in row])
                for case, row in zip(self.cases, self.values, strict=True)
            ]


def whole_values(case, dtype, behind):
    """Numbers up to the ends of the dtype, or if there are places among them, those of
    the sample; `None` if eager arrays refuse both, or if floats come of them.
    """
    rng = np.random.default_rng(0)
    given, (low, high) = case.arrays(dtype, rng), limits(np.dtype(dtype))
    wide = [
        rng.integers(low, high, a.shape, endpoint=True).astype(dtype) if a.dtype == dtype else a
        for a in given
    ]
    for values in (wide, given):
        try:
            outs = before_whole(case, behind, list(map(NDArray, values)))
        except HybridError:
            continue
        return values if any(kind_of(out) in "iub" for out in outs) else None
    return None


def answers(target, cases):
    """[[(output of the target, of eager arrays)] of each pair of neighbors] a case."""
    made = Company(cases)
    with plain_target():
        got = made.by_plan(target())
    rows = [[(next(got), expected) for expected in row] for row in made.eager()]
    return [rows[i : i + len(PAIRS)] for i in range(0, len(rows), len(PAIRS))]


def agree(case, actual):
    for (before, behind), pairs in zip(PAIRS, actual, strict=True):
        for got, expected in pairs:
            assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_allclose(
                got,
                expected,
                2e-4,
                2e-5,
                err_msg=(f"{case} behind `{before.__name__}`, before `{behind.__name__}`"),
            )


def batch_params(target, cases):
    return [
        pytest.param(target, part, id=f"{target.__name__}-{part[0].op.name}")
        for part in batches(cases, 30)
    ]


def plain():
    return "plain"


def numpy():
    return "numpy"


def gpu():
    return device_of(simulated_gpu())


def samples(has_loops):
    """Some samples of the operators that have, or have not, loops of their own."""
    actual = [
        op
        for op in FIRST_OF
        if op not in SIBLINGS and bool(op.cpu or op.reduce or op.strides) == has_loops
    ]
    return [c for op in actual for c in cases_of(op)[: 2 if op.cpu else 1]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "target, dtype, has_loops, least",
    [
        (plain, "int8", True, 35),
        (plain, "int8", False, 100),
        (gpu, "int8", True, 35),
        (plain, "int32", True, 35),
        (plain, "bool", True, 30),
        (gpu, "bool", True, 30),
    ],
)
def test_what_stands_behind_whole_numbers_reads_what_their_dtype_keeps(
    target, dtype, has_loops, least
):
    """720 is -48 in int8 also where sums and products have 64 bits on the way."""
    tried = set()
    for part, behind in itertools.product(batches(samples(has_loops), 30), (read_once, read_often)):
        company = Whole(part, dtype, behind)
        tried |= {case.op for case in company.cases}
        with plain_target():
            got = company.by_plan(target()) if company.cases else iter(())
        for case, row in zip(company.cases, company.eager(), strict=True):
            for expected in row:
                one = next(got)
                assert one.dtype == expected.dtype
                np.testing.assert_array_equal(one, expected, str(case))
    assert len(tried) >= least, len(tried)


@pytest.mark.slow
@pytest.mark.parametrize(
    "target, cases",
    [
        *batch_params(plain, samples(True)),
        *batch_params(plain, samples(False)),
        *batch_params(numpy, samples(False)[::4]),
        *batch_params(gpu, [c for c in samples(True) if c in FIRST_OF.values()]),
    ],
)
def test_operator_is_right_in_any_company(target, cases):
    assert_all(cases, functools.partial(answers, target), agree)
