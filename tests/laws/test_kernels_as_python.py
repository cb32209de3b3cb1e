"""Kernels in plain Python: all give eager's answers, and the executor sees faults."""

import kernels_as_python
import numpy as np
import pytest
from minihybrid.sym import trace
from samples import CASES
from traced import Program, assert_close, batches

from minihybrid import nd
from minihybrid.core.op import Op, Spec
from minihybrid.core.plan import Plan

LOOPS = [case for case in CASES if case.op.cpu]
PARTS = [
    (dtype, part)
    for dtype, cases in (("float32", CASES), ("int32", LOOPS))
    for part in batches(cases, 60)
]


@pytest.mark.per_op
@pytest.mark.parametrize(
    "dtype, cases", PARTS, ids=[f"{dtype}-{part[0].op.name}" for dtype, part in PARTS]
)
def test_kernels_of_all_samples_stay_in_their_arrays(dtype, cases):
    """No index is outside, nothing is read that nobody wrote, no element left out."""
    program = Program(cases, dtype)
    with kernels_as_python.target():
        made = Plan(program.graph, [], training=True, target="plain")
        assert made.target == "plain", made.target_note
        nd.random.seed(7)
        outs = iter(made([], made.bind([program.values[n] for n in made.params])))
    for case, row in zip(cases, program.eager(program.values), strict=True):
        for expected in row:
            assert_close(next(outs), expected, case)


# -- planted faults --------------------------------------------------------------------
def beyond(k, a, out):
    with k.each(("i", 6)):
        k(f"{out}[i] = {a}[i + 1]")


def before(k, a, out):
    with k.each(("i", 6)):
        k(f"{out}[i] = {a}[i - 1]")


def unfinished(k, a, out):
    with k.each(("i", 5)):
        k(f"{out}[i] = {a}[i]")


def unwritten(k, a, out):
    with k.each(("i", 6)):
        k(f"{out}[i] = {out}[i] + {a}[i]")


def unwritten_beside(k, a, out):
    with k.each(("i", 6)):
        k(f"{out}[i] = work[i] + {a}[i]")


def over_the_input(k, a, out):
    with k.each(("i", 6)):
        k(f"{out}[i] = {a}[i]")
        k(f"{a}[i] = T(0)")


def both_write(k, a, out):
    with k.each(("i", 6), work=6):
        k(f"{out}[i] = {a}[i]")
        k(f"{out}[0] = {a}[i]")


def reads_of_others(k, a, out):
    with k.each(("i", 6), work=6):
        k(f"{out}[i] = {a}[i]")
        k(f"if i == 0: {out}[0] += {out}[5]")


def vector_beyond(k, a, out):
    k("for i in range(0, 6, 4):")
    k(f"    store({out}, i, load({a}, i))")


FAULTS = [
    (beyond, "reads element 6 of input 0, which has 6"),
    (before, "reads element -1 of input 0"),
    (unfinished, r"leaves \[5\] of output 0 unwritten"),
    (unwritten, "reads element 0 of output 0, which nobody has written"),
    (unwritten_beside, "reads element 0 of the arena, which nobody"),
    (over_the_input, "writes into input 0"),
    (both_write, "two parts of a shared loop meet in element 0 of output 0"),
    (reads_of_others, "shared loop reads element 5 of output 0, which another"),
    (vector_beyond, "reads element 6 of input 0, which has 6"),
]


@pytest.mark.parametrize("loops, words", FAULTS, ids=[f.__name__ for f, _ in FAULTS])
def test_a_planted_fault_is_seen(loops, words):
    op = Op(
        "_planted",
        inputs=("data",),
        infer=lambda ins: (ins, ins),
        doc="A fault.",
        eager=lambda data: data,
        cpu=loops,
        scratch=lambda ins, outs: 8,
    )
    spec = Spec((6,), np.dtype("float32"))
    graph, _ = trace(lambda x: op(x), {"x": spec})
    with kernels_as_python.target(), pytest.raises(kernels_as_python.PlainError, match=words):
        made = Plan(graph, ["x"], target="plain")
        made([np.arange(6, dtype="f4")], made.bind([]))
