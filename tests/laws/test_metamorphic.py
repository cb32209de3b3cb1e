"""Equal programs, equal answers: each rewrite and each way of calling, on random programs.

python -m soak --programs 1000 --seed 7     # more of them, in tests/
"""

import collections
import json
import operator

import numpy as np
import pytest
import soak
from programs import judge, metamorphic
from programs.calls import CALLS, TWINS
from programs.draw import draw
from programs.metamorphic import Case, check, text
from programs.rewrites import TABLE
from programs.run import CONTROL, Input, Program, Step, all_steps

import minihybrid as mh
from minihybrid.core.array import NDArray
from minihybrid.core.backprop import gradient
from minihybrid.core.sym import Symbol
from minihybrid.passes.branches import If

NAMES = sorted(TABLE)


def cases(name, number):
    """Cases in which a rewrite has a place, some of each world."""
    for k in range(100 * number):
        case = metamorphic.case(k, ("nd", "np")[k % 2], name)
        if name in dict(case.rewrites):
            yield case
            number -= 1
        if not number:
            return


def test_one_program_for_each_rewrite():
    for seed, name in enumerate(NAMES):
        case = metamorphic.case(seed, ("nd", "np")[seed % 2], name)
        fault = check(case, ["numpy"])
        assert fault is None, f"{fault}\n{text(case)}"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_rewritten_programs_give_the_same_answers(name):
    actual = list(cases(name, 2))
    assert actual, "no program has a place for it"
    for case in actual:
        fault = check(case, ["numpy"])
        assert fault is None, f"{fault}\n{text(case)}"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 60, 15))
def test_rewritten_programs_in_plain_loops(first):
    for seed in range(first, first + 15):
        case = metamorphic.case(seed, world=("nd", "nd", "np")[seed % 3])
        fault = check(case, ("numpy", "plain"))
        assert fault is None, f"{fault}\n{text(case)}"


@pytest.mark.parametrize("way", sorted({**CALLS, **TWINS}))
def test_each_way_of_calling_gives_the_same_answers(way, monkeypatch):
    monkeypatch.setattr(judge, "REFUSALS", collections.Counter())
    for seed in range(12):
        case = Case(draw(5000 + seed, world=("nd", "nd", "np")[seed % 3]), ())
        fault = check(case, [way])
        assert fault is None, f"{fault}\n{text(case)}"
    assert sum(judge.REFUSALS.values()) < 12


# -- the judge -------------------------------------------------------------------------
def program_of(*steps, values=(1.0, 2.0, 3.0), **more):
    """A program of one float32 input."""
    inputs = (Input((len(values),), "float32", values),)
    return Program(inputs, steps, (sum(step.n_outputs for step in steps),), **more)


def test_a_wrong_rewrite_is_seen_and_shrunk(monkeypatch):
    """One that gives 1 % too much, behind two others."""

    def wrong(e, v):
        return e("*", v, scalar=1.01) if e.kind(v) == "f" else None

    monkeypatch.setitem(TABLE, "minus zero", TABLE["minus zero"]._replace(make=wrong))
    steps = Step("exp", (0,)), Step("tanh", (1,)), Step("*", (2, 0))
    case = Case(
        program_of(*steps, train=True), (("negated twice", 1), ("minus zero", 0), ("times one", 2))
    )
    assert check(case, []) is not None
    small = metamorphic.shrunk(case, lambda c: check(c, []) is not None)
    assert [name for name, _ in small.rewrites] == ["minus zero"]
    assert len(small.program.steps) <= 1


@pytest.mark.parametrize("read_elsewhere", [False, True])
def test_folding_keeps_inputs_of_the_gradient(read_elsewhere):
    """`.grad` of an input that nothing reads any more would keep its old value."""
    steps = Step("BlockGrad", (0,)), Step("*", (2, 1)), Step("+", (3, 0 if read_elsewhere else 1))
    program = program_of(*steps, train=True)
    program = program.but(inputs=program.inputs * 2, outputs=(4,))
    case = Case(program, (("folded by hand", 0),))
    assert metamorphic.fits(case) is read_elsewhere
    assert not read_elsewhere or check(case, []) is None


def test_division_in_place_is_checked_often(monkeypatch):
    """The 400 programs that look for planted faults have to see this one."""

    def multiply(x, y):
        return x._in_place("x /= y", operator.mul, y)

    monkeypatch.setattr(NDArray, "__itruediv__", multiply)
    assert any(
        "in place" in soak.modes_of(seed) and check(soak.case_of(seed), ["in place"])
        for seed in range(400)
    )


def test_noise_of_a_wrong_program_excuses_nothing():
    """What noise moves is measured from the same program's answers without it."""
    expected, base = {"output 0": np.float32([1, 2])}, {"output 0": np.float32([1.5, 2])}
    program = program_of(Step("exp", (0,)), values=(0.0, 0.7))
    noisy = metamorphic.shaken(
        expected, (program, metamorphic.answers(judge.Net(program), program))
    )
    moved = noisy(program, range(3))
    assert all(np.abs(m["output 0"] - expected["output 0"]).max() < 1e-4 for m in moved)
    words = judge.compared(program, expected, base, [], "eager", noisy)
    assert words[0] == "output 0"


def test_float64_is_the_oracle(monkeypatch):
    """float32 that is wrong in both forms of a program differs from float64."""
    right = judge.answers

    def wrong(net, program):
        return {
            name: a * a.dtype.type(1 + a.itemsize % 8) for name, a in right(net, program).items()
        }

    for module in (judge, metamorphic):
        monkeypatch.setattr(module, "answers", wrong)
    fault = check(Case(program_of(Step("exp", (0,))), ()), [])
    assert fault.mode == "oracle"


def test_a_seed_gives_one_case_and_text_gives_it_back():

    for seed in range(20):
        case = metamorphic.case(seed, world=("nd", "np")[seed % 2])
        line = metamorphic.to_json(case)
        assert metamorphic.to_json(metamorphic.case(seed, world=("nd", "np")[seed % 2])) == line
        assert metamorphic.from_json(json.loads(line)) == case
        assert all(name in TABLE for name, _ in case.rewrites)


@pytest.mark.parametrize("first", range(0, 32, 8))
def test_branches_loops_and_transformations(first):
    """Programs of `python -m soak --control`."""
    for seed in range(first, first + 8):
        case = soak.case_of(seed, control=True)
        fault = check(case, [m for m in soak.modes_of(seed, control=True) if m not in soak.SELDOM])
        assert fault is None, f"{fault}\n{text(case)}"


@pytest.mark.slow
@pytest.mark.parametrize("first", [100, 104])
def test_branches_and_loops_are_compiled(first):
    for seed in range(first, first + 4):
        case = soak.case_of(seed, control=True)
        fault = check(case, ["cpu"])
        assert fault is None, f"{fault}\n{text(case)}"


@pytest.mark.parametrize("fault", ["sides of a value", "sides of a gradient", "both sides"])
def test_control_programs_see_faults_of_branches(monkeypatch, fault):
    """Each seed is checked until one of them sees the fault."""
    if fault == "sides of a value":
        eager = If.eager
        monkeypatch.setattr(
            If,
            "eager",
            lambda op, predicate, *inputs, **more: eager(
                op, (predicate == 0).astype(predicate.dtype), *inputs, **more
            ),
        )
    elif fault == "sides of a gradient":
        backward = If._backward

        def swapped(self, *args):
            op, *rest = backward(self, *args)
            return op and If(op.graphs[::-1], op.places[::-1]), *rest

        monkeypatch.setattr(If, "_backward", swapped)
    else:  # what `where` between two computed branches does to gradients

        def leaks(self, g, out, *inputs, **_):
            values = self.lower(None, *inputs)
            gs = g if isinstance(g, tuple) else (g,)
            pairs = [(ref, x) for ref, x in zip(values.refs, gs, strict=True) if x is not None]
            heads, gs = zip(*pairs, strict=True)
            refs = [x.refs[0] for x in inputs]
            actual = gradient(list(heads), list(gs), refs, lambda ref: Symbol([ref]))
            return tuple(actual.get(ref) for ref in refs)

        monkeypatch.setattr(If, "grad", leaks)
    assert any(check(soak.case_of(seed, control=True), ["numpy"]) for seed in range(200))


def test_control_programs_have_branches_and_loops_inside_of_each_other():
    programs = [soak.case_of(seed, control=True).program for seed in range(40)]
    steps = [step for program in programs for step in program.steps]
    inner = [s for step in steps for b in step.attrs.get("bodies", ()) for s in all_steps(b)]
    for name in CONTROL:
        assert sum(s.op == name for s in steps) > 5 and any(s.op == name for s in inner)
    for program in programs:
        assert Program.from_json(program.to_json()) == program


def test_central_differences_see_a_wrong_gradient(monkeypatch):
    right = mh.vjp

    def wrong(*args):
        outs, pullback = right(*args)
        return outs, lambda seeds: [g * 1.01 for g in pullback(seeds)]

    program = program_of(Step("exp", (0,)), train=True)
    assert check(Case(program, ()), ["differences", "vjp"]) is None
    monkeypatch.setattr(mh, "vjp", wrong)
    assert check(Case(program, ()), ["differences"]).mode == "differences"
    assert check(Case(program, ()), ["vjp"]).mode == "vjp"
