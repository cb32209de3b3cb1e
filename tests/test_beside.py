"""The comparison with MXNet sees what is planted, and its page says what it knows."""
import json

import beside_page
import numpy as np
import pytest
from beside import differences, judge
from beside_child import answers
from beside_differences import KNOWN
from programs_run import Input, Program, Step

import minihybrid as mh

PROGRAM = Program(
    (Input((2, 2), "float32", (0.5, 1.0, -2.0, 3.0)),
     Input((2,), "float32", (1.0, 2.0))),
    (Step("SoftmaxActivation", (0,)), Step("*", (2, 1)), Step("tanh", (3,))),
    outputs=(4,), train=True)


class Twin:
    """In place of MXNet: minihybrid, with one operator's answers changed."""

    def __init__(self, op, change):
        self.op, self.change = op, change

    def answers(self, program):
        found = answers(mh, program)
        if any(step.op == self.op for step in program.steps):
            self.change(found)
        return found


def farther(found):
    found["output 0"] = found["output 0"] + np.float32(0.1)


def steeper(found):
    found["gradient 0"] = found["gradient 0"] * np.float32(1.1)


def wider(found):
    found["output 0"] = found["output 0"].astype("float64")


def longer(found):
    found["output 0"] = found["output 0"][None]


def refuses(found):
    found.clear()
    found["error"] = "MXNetError: no"


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
    """The gradient of SoftmaxActivation is in the table."""
    twin = Twin("SoftmaxActivation", steeper)
    verdict, reasons = judge(PROGRAM, twin)
    assert verdict == "same but for known steps"
    assert {KNOWN[why].ops for why, _ in reasons} == {("SoftmaxActivation",)}

    def both(found):
        steeper(found)
        if len(found) > 2:  # the whole, or the product alone: two inputs
            farther(found)

    twin.change, twin.op = both, "*"
    assert judge(PROGRAM, twin)[0] == "unknown"


def test_rounding_is_no_difference():
    ours = answers(mh, PROGRAM)
    theirs = {k: np.nextafter(v, np.float32(9)) for k, v in ours.items()}
    assert not list(differences(PROGRAM, ours, theirs))


def test_the_page_is_written_from_the_table():
    """If it is not: python tests/beside_page.py"""
    assert beside_page.PAGE.read_text(encoding="utf-8") == beside_page.page()


def test_the_counts_are_those_of_entries_of_the_table():
    results = json.loads(beside_page.RESULTS.read_text(encoding="utf-8"))
    assert sum(results["verdicts"].values()) == results["programs"] > 2000
    assert results["entries"].keys() <= {known.what for known in KNOWN}
    assert results["verdicts"].keys() <= beside_page.VERDICTS.keys()
    assert len({known.what for known in KNOWN}) >= len(KNOWN) - 1
