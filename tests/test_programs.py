"""Random programs: each plan, device and file gives what eager arrays give.

    python -m soak --programs 1000 --seed 7     # more of them, in tests/
"""

import json
from pathlib import Path

import numpy as np
import programs_judge
import pytest
from programs import add_step, draw
from programs_draft import Draft
from programs_judge import Fault, check, difference
from programs_rules import (
    LEFT_OUT,
    NAMES,
    OPERATORS,
    is_loose,
    public_names,
    rule_of,
)
from programs_run import Input, Program, Step, arrays_of, run, source
from programs_shrink import shrunk

from minihybrid import nd

FOUND = Path(__file__).parent / "programs_found.jsonl"  # name, modes, program
FINDS = [json.loads(line) for line in FOUND.read_text().splitlines()]
PLANS, FEW, MANY = ("numpy", "plain"), 15, 75


@pytest.mark.parametrize("first", range(0, MANY, FEW))
def test_random_programs(first):
    for seed in range(first, first + FEW):
        program = draw(seed)
        fault = check(program, PLANS)
        assert fault is None, f"{fault}\n{source(program)}"


@pytest.mark.parametrize("mode, seeds", [
    ("cpu", [200]), ("gpu", range(300, 310)), ("file", range(400, 420))])
def test_random_programs_elsewhere(mode, seeds):
    for seed in seeds:
        program = draw(seed)
        fault = check(program, (mode,))
        assert fault is None, f"{fault}\n{source(program)}"


@pytest.mark.parametrize("find", FINDS, ids=[find["name"] for find in FINDS])
def test_what_was_found_stays_mended(find):
    """Shrunk programs that had a wrong answer once, there also compiled."""
    program = Program.from_json(json.dumps(find["program"]))
    fault = check(program, (*PLANS, *find["modes"]))
    assert fault is None, f"{fault}\n{source(program)}"


# -- the programs ----------------------------------------------------------------------
def test_every_operator_is_drawn_or_there_is_a_reason():
    """An operator that a user can call, whose arguments nobody draws, needs a rule."""
    missing = [op.name for op in OPERATORS if public_names(op) and not rule_of(op)
               and not op.name.startswith(tuple(LEFT_OUT))]
    assert not missing, "write a rule into tests/programs_rules.py"
    never = [name for name in NAMES if not any(taken(name, seed) for seed in range(99))]
    assert not never, "the rule draws nothing that the operator takes"


def taken(name, seed):
    """Whether an operator takes what its rule draws behind two others."""
    d = Draft(seed, is_loose)
    d.exact = False
    d.new(d.shape(), role="data")
    return add_step(d, "+") and add_step(d, "reshape") and add_step(d, name)


def test_a_seed_gives_one_program_and_text_gives_it_back():
    for seed in range(40):
        program = draw(seed)
        text = program.to_json()
        assert draw(seed).to_json() == Program.from_json(text).to_json() == text
        if not any(step.op == "Dropout" for step in program.steps):
            scope = {}
            exec(source(program), scope)
            by_text = scope["f"](nd, *(nd.array(a, dtype=a.dtype)
                                       for a in scope["arrays"]))
            by_steps = run(nd, program, [nd.array(a, dtype=a.dtype)
                                         for a in arrays_of(program)])
            for a, b in zip(by_text, by_steps, strict=True):
                assert a.dtype == b.dtype
                np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


# -- the judge -------------------------------------------------------------------------
def program_of(*steps, values=(1.0, 2.0, 3.0), **more):
    """A program of one float32 input."""
    inputs = (Input((len(values),), "float32", values),)
    return Program(inputs, steps, (sum(step.n_outputs for step in steps),), **more)


def test_what_is_exact_has_the_same_bits_and_what_rounds_may_round():
    one = np.float32([1, 2])
    next_ = np.nextafter(one, np.float32(9))
    assert difference(next_, one, [], exact=True)
    assert difference(-np.float32([0]), np.float32([0]), [], exact=True)
    assert not difference(next_, one, [], exact=False)
    assert difference(one * np.float32(1.001), one, [], exact=False)
    assert not difference(one * np.float32(1.001), one, [one * 1.01], exact=False)
    assert difference(np.float32([1, np.nan]), one, [], exact=False)
    assert difference(one.astype("f8"), one, [], exact=False)
    assert difference(np.int32([3]), np.int32([4]), [], exact=False)
    assert not difference(np.int32([3]), np.int32([4]), [np.int32([3])], exact=False)


def test_what_is_ill_conditioned_is_not_asked_for():
    """cos of 1e6 x depends on the last digits of x's square root; cos of x does not."""
    for scale, ill in ((1e7, True), (1.0, False)):
        program = program_of(Step("sqrt", (0,)), Step("exp", (1,)),
                             Step("*", (2,), {"scalar": scale}), Step("cos", (3,)))
        runs = [o["output 0"] for o in programs_judge.disturbed(program, range(3))]
        spread = np.ptp(runs, axis=0).max()
        assert (spread > 0.1) == ill


@pytest.fixture
def planted(monkeypatch):
    """A plan that answers 1 % too much for each hyperbolic tangent."""
    def mode(program):
        wrong = any(step.op == "tanh" for step in program.steps)
        found = programs_judge.by_plan("numpy")(program)
        return {name: a * (1.01 if wrong else 1) for name, a in found.items()}
    monkeypatch.setitem(programs_judge.MODES, "planted", mode)


def test_a_planted_fault_is_found_and_shrunk(planted):
    program = program_of(Step("exp", (0,)), Step("tanh", (1,)), Step("*", (2, 0)),
                         Step("sum", (3,), {"keepdims": True}), train=True)
    small = shrunk(program, lambda p: check(p, ["planted"]) is not None)
    assert [step.op for step in small.steps] == ["tanh"], source(small)
    assert isinstance(check(small, ["planted"]), Fault)
    assert check(small, ["numpy"]) is None
