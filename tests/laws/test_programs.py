"""Random programs: each plan, device and file gives what eager arrays give.

python -m soak --programs 1000 --seed 7     # more of them, in tests/
"""

import collections
import json
from pathlib import Path

import numpy as np
import pytest
from programs import files, judge, metamorphic, np_rules
from programs.draft import ARRAYS, Draft
from programs.draw import add_step, draw, finished
from programs.judge import Fault, Net, answers, check, difference
from programs.rules import BY_NAME, LEFT_OUT, NAMES, OPERATORS, is_loose, public_names, rule_of
from programs.run import Input, Program, Step, arrays_of, run, source
from programs.shrink import shrunk

from minihybrid import nd
from minihybrid import np as mx_np

PATH = Path(__file__).parents[1] / "programs/regressions.jsonl"  # name, modes, program
REGRESSIONS = [json.loads(line) for line in PATH.read_text().splitlines()]
PLANS, FEW, MANY = ("numpy", "plain"), 15, 45


@pytest.mark.slow
@pytest.mark.parametrize(
    "world, first", [*(("nd", first) for first in range(0, MANY, FEW)), ("np", 0), ("np", FEW)]
)
def test_random_programs(world, first):
    for seed in range(first, first + FEW):
        program = draw(seed, world=world)
        fault = check(program, PLANS)
        assert fault is None, f"{fault}\n{source(program)}"


@pytest.mark.parametrize(
    "mode, seeds",
    [
        ("cpu", range(200, 203)),
        ("gpu", range(300, 310)),
        ("file", range(400, 420)),
        ("alone", range(500, 515)),
        ("onnx", range(600, 615)),
        ("runtime", range(600, 615)),
        pytest.param("c", range(700, 703), marks=pytest.mark.slow),
    ],
)
def test_random_programs_elsewhere(mode, seeds, monkeypatch):
    if mode in ("onnx", "runtime"):
        pytest.importorskip({"onnx": "onnx", "runtime": "onnxruntime"}[mode])
    monkeypatch.setattr(judge, "REFUSALS", collections.Counter())
    for seed in seeds:
        program = draw(seed, world=("nd", "nd", "np")[seed % 3])
        fault = check(program, (mode,))
        assert fault is None, f"{fault}\n{source(program)}"
    if mode != "c" or files.CC:
        assert sum(judge.REFUSALS.values()) < len(seeds) / 2


@pytest.mark.parametrize(
    "find",
    [
        pytest.param(find, id=find["name"], marks=[pytest.mark.slow] * ("c" in find["modes"]))
        for find in REGRESSIONS
    ],
)
def test_what_was_found_stays_mended(find):
    """Shrunk programs that had a wrong answer once, there also compiled."""
    case = metamorphic.from_json(find)
    one, subject = (metamorphic.check, case) if "rewrites" in find else (check, case.program)
    fault = one(subject, (*PLANS, *find["modes"]))
    assert fault is None, f"{fault}\n{metamorphic.text(case)}"


def behind_whole_numbers(name, seed):
    """A program: an operator behind a cast to int32; `None` if it takes none."""
    d = Draft(seed, is_loose)
    d.mood, d.exact, d.wild, d.chain = "float32", False, False, True
    d.new((2, 3), "float32", role="data", kind="positive")
    d.step("cast", [0], {"dtype": "int32"})
    fits = add_step(d, name) and 1 in d.steps[-1][0].inputs
    return finished(d, seed).but(train=True, second=False) if fits else None


def test_gradients_and_names_in_files_of_whole_numbers():
    """A gradient may pass through them; MXNet's name of an operator means the same."""
    passed = 0
    for name in NAMES:
        some = (behind_whole_numbers(name, seed) for seed in range(4))
        program = next(filter(None, some), None)
        if program:
            passed += 1
            fault = (
                check(program, [])
                or BY_NAME[name].mxnet_name
                and check(program.but(train=False), ["file"])
            )
            assert not fault, f"{fault}\n{source(program)}"
    assert passed > 100


# -- the programs ----------------------------------------------------------------------
def test_every_operator_is_drawn_or_there_is_a_reason():
    """An operator that a user can call, whose arguments nobody draws, needs a rule."""
    missing = [
        op.name
        for op in OPERATORS
        if public_names(op) and not rule_of(op) and not op.name.startswith(tuple(LEFT_OUT))
    ]
    assert not missing, "write a rule into tests/programs/rules.py"
    never = [
        name
        for names, world in ((NAMES, "nd"), (np_rules.NAMES, "np"))
        for name in names
        if not any(taken(name, world, k) for k in range(99))
    ]
    assert not never, "the rule draws nothing that the operator takes"


def test_every_function_of_np_is_drawn_or_there_is_a_reason():
    named = {name for names in np_rules.LEFT_OUT.values() for name in names.split()}
    drawn = {name.removeprefix("np.") for name in np_rules.NAMES}
    public = {n for n in dir(mx_np) if n[0] != "_" and callable(getattr(mx_np, n))} - {"Space"}
    assert not public - named - drawn, "write a rule into tests/programs/np_rules.py"
    assert not named & drawn and not named - public


def taken(name, world, seed):
    """Whether an operator takes what its rule draws behind two others."""
    d = Draft(seed, is_loose, world)
    d.exact = False
    d.new(d.shape(), role="data")
    return add_step(d, "+") and add_step(d, "reshape") and add_step(d, name)


def test_a_seed_gives_one_program_and_text_gives_it_back():
    for seed in range(60):
        world = "nd" if seed < 40 else "np"
        program = draw(seed, world=world)
        text = program.to_json()
        again = draw(seed, world=world).to_json()
        assert again == Program.from_json(text).to_json() == text
        if not any(step.op == "Dropout" for step in program.steps):
            scope = {}
            exec(source(program), scope)
            kind = ARRAYS[world]
            by_text = scope["f"](nd, *map(kind, scope["arrays"]))
            by_steps = run(nd, program, [kind(a) for a in arrays_of(program)])
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
        program = program_of(
            Step("sqrt", (0,)),
            Step("exp", (1,)),
            Step("*", (2,), {"scalar": scale}),
            Step("cos", (3,)),
        )
        runs = [o["output 0"] for o in judge.disturbed(program, range(3))]
        spread = np.ptp(runs, axis=0).max()
        assert (spread > 0.1) == ill


@pytest.mark.slow
def test_gradients_of_gradients_are_asked_for():
    """Most programs that ask have one that is not 0; one that is wrong is seen."""
    programs = [p for p in map(draw, range(120)) if p.second]
    results = [answers(Net(p), p) for p in map(judge.eagerly, programs) for p in [p[0]] if p.second]
    some = [any(a.any() for name, a in f.items() if name.startswith("second")) for f in results]
    assert len(programs) > 12 and sum(some) > len(some) / 3
    program = program_of(Step("exp", (0,)), train=True, second=True)
    right = answers(Net(program), program)
    wrong = right | {
        "second gradient of input 0": right["second gradient of input 0"] * np.float32(1.01)
    }
    name, _ = judge.compared(program, right, wrong, [], "numpy")
    assert name == "second gradient of input 0"


def test_a_gradient_that_overflows_on_its_way_is_not_asked_for():
    """3e38 times nine numbers of both signs: infinite or NaN, by the order."""
    program = program_of(
        Step("tile", (0,), {"reps": (1, 3, 3)}),
        Step("*", (1,), {"scalar": 3e38}),
        values=(0.0,) * 5,
        train=True,
    )
    assert check(program, ["numpy", "plain"]) is None
    ill, fine = (np.float32([x]) for x in (np.nan, 2))
    assert difference(np.float32([np.inf]), ill, [fine], exact=False) is None
    assert difference(np.float32([np.inf]), ill, [ill], exact=False)


@pytest.fixture
def planted(monkeypatch):
    """A plan that answers 1 % too much for each hyperbolic tangent."""

    def mode(program):
        wrong = any(step.op == "tanh" for step in program.steps)
        values = judge.by_plan("numpy")(program)
        return {name: a * (1.01 if wrong else 1) for name, a in values.items()}

    monkeypatch.setitem(judge.MODES, "planted", mode)


def test_a_planted_fault_is_found_and_shrunk(planted):
    program = program_of(
        Step("exp", (0,)),
        Step("tanh", (1,)),
        Step("*", (2, 0)),
        Step("sum", (3,), {"keepdims": True}),
        train=True,
    )
    small = shrunk(program, lambda p: check(p, ["planted"]) is not None)
    assert [step.op for step in small.steps] == ["tanh"], source(small)
    assert isinstance(check(small, ["planted"]), Fault)
    assert check(small, ["numpy"]) is None
