"""Planted faults and judged mutants: each still fits the code that it changes."""

import ast
import re
import tomllib

from reading_order import PACKAGE

TESTS = PACKAGE.parent / "tests"
FAULTS = tomllib.loads((TESTS / "mutation" / "faults.toml").read_text(encoding="utf-8"))["fault"]
SAME = tomllib.loads((TESTS / "mutation" / "judged.toml").read_text(encoding="utf-8"))["same"]


def misfit(fault):
    """Why a fault cannot be planted, or is none; "" if it can."""
    actual = (PACKAGE / fault["module"]).read_text(encoding="utf-8").count(fault["before"])
    if actual != 1:
        return f"{fault['module']}: {fault['before']!r} stands there {actual} times, not once"
    if fault["before"] == fault["after"]:
        return f"{fault['module']}: {fault['before']!r} changes nothing"
    gone = [name for name in fault["tests"].split() if not (TESTS / f"{name}.py").exists()]
    return f"there is no test {', '.join(gone)}" if gone else ""


def test_every_fault_can_be_planted():
    assert len(FAULTS) >= 30
    assert [why for fault in FAULTS if (why := misfit(fault))] == []


def test_a_fault_that_fits_no_more_is_found():
    good = FAULTS[0]
    assert not misfit(good)
    assert "0 times" in misfit(good | {"before": "no such line"})
    assert "times" in misfit(good | {"before": "a"})
    assert "changes nothing" in misfit(good | {"after": good["before"]})
    assert "laws/test_none" in misfit(good | {"tests": "laws/test_none"})


def stale(entry):
    """Whether no line of the module is the one that a judged mutant changes."""
    path = PACKAGE / entry["module"]
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return entry["before"] not in map(str.strip, lines)


def test_every_judged_mutant_fits_a_line():
    assert len(SAME) >= 30
    assert [(entry["module"], entry["before"]) for entry in SAME if stale(entry)] == []
    assert stale(SAME[0] | {"before": "no such line"})
    assert stale(SAME[0] | {"module": "no/such/module.py"})


def test_the_folders_of_mutants_are_there():
    source = (TESTS / "mutation" / "mutants.py").read_text(encoding="utf-8")
    areas = ast.literal_eval(re.search(r"^AREAS = ({.*?^})", source, re.S | re.M)[1])
    assert [p for patterns in areas.values() for p in patterns if not any(PACKAGE.glob(p))] == []
