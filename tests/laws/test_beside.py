"""The comparison with MXNet sees what is planted, and its page says what it knows."""

import json

import numpy as np
import pytest
from beside import page
from beside.child import answers
from beside.compare import differences, judge
from beside.differences import KNOWN
from programs.run import Input, Program, Step

import minihybrid as mh

PROGRAM = Program(
    (Input((2, 2, 1), "float32", (0.5, 1.0, -2.0, 3.0)), Input((2,), "float32", (1.0, 2.0))),
    (Step("MakeLoss", (0,), {"normalization": "batch"}), Step("*", (2, 1)), Step("tanh", (3,))),
    outputs=(4,),
    train=True,
)


class Twin:
    """In place of MXNet: minihybrid, with one operator's answers changed."""

    def __init__(self, op, change):
        self.op, self.change = op, change

    def answers(self, program):
        actual = answers(mh, program)
        if any(step.op == self.op for step in program.steps):
            self.change(actual)
        return actual


def farther(actual):
    actual["output 0"] = actual["output 0"] + np.float32(0.1)


def steeper(actual):
    actual["gradient 0"] = actual["gradient 0"] * np.float32(1.1)


def halved(actual):
    actual["gradient 0"] = actual["gradient 0"] / np.float32(2)


def wider(actual):
    actual["output 0"] = actual["output 0"].astype("float64")


def longer(actual):
    actual["output 0"] = actual["output 0"][None]


def refuses(actual):
    actual.clear()
    actual["error"] = "MXNetError: no"


def test_two_of_a_kind_agree():
    twin = Twin("none", None)
    assert judge(PROGRAM, twin) == ("same", [])
    assert {"output 0", "gradient 0", "gradient 1"} == answers(mh, PROGRAM).keys()


@pytest.mark.parametrize("op", ["*", "tanh"])
@pytest.mark.parametrize("change", [farther, steeper, wider, longer, refuses])
def test_a_planted_difference_is_seen_at_its_step(op, change):
    twin = Twin(op, change)
    verdict, reasons = judge(PROGRAM, twin)
    assert verdict == "unknown"
    assert {d.step.op for why, d in reasons if why is None} == {op}


def test_a_known_step_gives_way_and_hides_nothing():
    """The gradient of MakeLoss of three axes is in the table."""
    twin = Twin("MakeLoss", halved)
    verdict, reasons = judge(PROGRAM, twin)
    assert verdict == "same but for known steps"
    assert {KNOWN[why].ops for why, _ in reasons} == {("MakeLoss",)}

    def both(actual):
        halved(actual)
        if len(actual) > 2:  # the whole, or the product alone: two inputs
            farther(actual)

    twin.change, twin.op = both, "*"
    assert judge(PROGRAM, twin)[0] == "unknown"


def step(op, *values, of="float32", train=True, shape=(2, 2, 1), **attrs):
    """A program of one step on arrays of one shape."""
    inputs = tuple(Input(shape, of, numbers) for numbers in values)
    n = len(inputs)
    return Program(inputs, (Step(op, tuple(range(n)), attrs),), (n,), train=train)


LOW, ONES = (0.5, -1.5, -0.5, 0.25), (1.0, 2.0, 3.0, 4.0)


@pytest.mark.parametrize(
    "program",
    [
        step("LeakyReLU", LOW, act_type="selu"),
        step("SoftmaxActivation", LOW),
        step("MakeLoss", LOW, normalization="batch"),
        step("/", LOW, ONES),
        step("/", LOW, LOW),
        step("%", LOW, ONES),
        step("%", LOW, scalar=2.0),
        step("**", ONES, LOW),
        step("**", (1, 2, 3, 0), scalar=2, of="int32"),
        step("sqrt", (1, 2, 9, 16), of="int32"),
        step("prod", (1.0, 0.0, 2.0, 3.0)),
        step("argmax", (1, 2, 2, 4), axis=0, of="int32"),
        step("cast", LOW, dtype="int32"),
        step("amp_cast", LOW, dtype="int32"),
        step("Dropout", LOW, train=False),
        step("Dropout", LOW, p=0.0),
        step("*", LOW, scalar=0.1, of="float64"),
        step("erf", LOW, of="float64"),
        step("LeakyReLU", LOW, act_type="elu", slope=0.1, of="float64"),
        step("*", (1, 2, 3, 4), scalar=0.5, of="int32"),
        step("/", (4, 2, 3, 4), scalar=2, of="int32"),
        step("abs", (1.0, -np.inf, np.nan, 2.0)),
        step("softmax", (1.0, np.inf, 0.0, 2.0)),
        step("clip", (1.0, -np.inf, 0.0, 2.0), a_min=-1.0, a_max=1.0),
        step("Pooling", LOW, shape=(1, 1, 4), kernel=(2,), pool_type="max"),
        step("arange", start=0, stop=4.0, step=1.0),
        step("SequenceLast", LOW),
        step("LinearRegressionOutput", LOW, ONES),
    ],
)
def test_an_entry_excuses_no_other_answer(program):
    """Operators that are in the table, whose answers are wrong in another way."""

    def worse(actual):
        for name in actual.keys() - {"error"}:
            array = actual[name]
            actual[name] = (array + np.ones((), array.dtype)) * 3

    assert judge(program, Twin("none", None)) == ("same", [])
    assert judge(program, Twin(program.steps[0].op, worse))[0] == "unknown"


def test_rounding_is_no_difference():
    ours = answers(mh, PROGRAM)
    theirs = {k: np.nextafter(v, np.float32(9)) for k, v in ours.items()}
    assert not list(differences(PROGRAM, ours, theirs))


def test_the_page_is_written_from_the_table():
    """If it is not: cd tests; python -m beside.page"""
    assert page.PAGE.read_text(encoding="utf-8") == page.page()


def test_the_counts_are_those_of_entries_of_the_table():
    results = json.loads(page.RESULTS.read_text(encoding="utf-8"))
    assert sum(results["verdicts"].values()) == results["programs"] > 2000
    assert results["entries"].keys() <= {known.what for known in KNOWN}
    assert results["verdicts"].keys() <= page.VERDICTS.keys()
    assert len({known.what for known in KNOWN}) >= len(KNOWN) - 1
