"""A class of attackers: each keeps what it had, or loses it, is told why, and harms nobody.

All hand in together, are graded at once as `make grade` does, and sit beside honest students.
"""

import json
import re
import tomllib
from html import unescape

import nbformat
import pytest
import small_assignment
from minihybrid_course.grading import grade as grading
from minihybrid_course.grading import sandbox
from minihybrid_course.grading.sources import ROOT, id_of
from small_assignment import WRONG, assignment, cell, handed_in, isolated, text

FILE = ROOT / "tests/classroom/attacks.toml"
ATTACKS = tomllib.loads(FILE.read_text(encoding="utf-8"))["attack"]
NAMES = [a["name"] for a in ATTACKS]
OTHER = "a right one/1_small.ipynb"
HONEST = {"a right one": {}, "one half right": WRONG, "zero right": {"f": "", "g": ""}}
MARKS = {"a right one": 6, "one half right": 3, "zero right": 0}
pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(not isolated(), reason="bubblewrap doesn't run here"),
]


# -- what is done to a notebook ----------------------------------------------------------
def cells(notebook):
    notebook.cells += [cell(f"more{k}", {}, "x = 1") for k in range(10_000)]


def outputs(notebook):
    text = "x" * (200 << 20)
    out = nbformat.v4.new_output("stream", text=text)
    notebook.cells[1].outputs = [out]


def deleted(notebook):
    for one in notebook.cells:
        del one.metadata["nbgrader"]
        one.pop("id", None)


def doubled(notebook):
    notebook.cells.append(notebook.cells[-2])


def points(notebook):
    for one in notebook.cells:
        one.metadata.nbgrader.points = 100


def infinity(notebook):
    notebook.metadata.variant = float("inf")


def brackets(notebook):
    notebook.metadata.x = [{}] * 5_000_000


def renamed(notebook):
    notebook.cells.append(cell("mine", {}, "twice = value = np = 9"))


CHANGES = {
    f.__name__: f for f in (cells, outputs, deleted, doubled, points, infinity, brackets, renamed)
}


def hand_in(attack, folder):
    """Write what one attacker hands in."""
    texts = dict(WRONG)
    if "head" in attack:
        texts["f"] = f"{attack['head']}\n\n\n{WRONG['f']}"
    if "body" in attack:
        body = attack["body"].replace("{TESTS}", small_assignment.__file__)
        body = body.replace("{OTHER}", str(folder / OTHER))
        texts["f"] = f"def f(x):\n    {body}"
    path = folder / attack.get("student", attack["name"]) / "1_small.ipynb"
    path.parent.mkdir()
    change = attack.get("file")
    if change == "link":
        path.symlink_to(folder / OTHER)
    elif change == "broken":
        path.write_text(text(**WRONG)[:-9], "utf-8")
    else:
        notebook = handed_in(**texts)
        if change:
            CHANGES[change](notebook)
        path.write_text(json.dumps(notebook), "utf-8")  # nbformat would mend it


def grade_all(home):
    """Fill a folder with the class's notebooks, pages, and points.json."""
    folder, out = home / "in", home / "out"
    for student, texts in HONEST.items():
        (folder / student).mkdir(parents=True)
        (folder / student / "1_small.ipynb").write_text(text(**texts), "utf-8")
    for attack in ATTACKS:
        hand_in(attack, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grading, "source", lambda name: assignment())
        patch.setattr(grading, "names", lambda: ["1_small"])
        patch.setattr(sandbox, "TEST_S", 10)
        rows = grading.grade(folder, "1", 0, out)
    points = {row["student"]: row["points"] for row in rows}
    (home / "points.json").write_text(json.dumps(points), "utf-8")


@pytest.fixture
def graded(once):
    """{student: (points, their page)}, of all together; graded once for all workers."""
    home = once("hostile-class", grade_all)
    points = json.loads((home / "points.json").read_text("utf-8"))
    pages = {p.stem.rpartition("-")[0]: p for p in (home / "out/feedback").glob("*.html")}
    assert len(pages) == len(points) == len(ATTACKS) + len(HONEST)
    return {s: (points[s], unescape(pages[s].read_text("utf-8"))) for s in points}


def test_before_the_attack_it_is_half(graded):
    assert {s: graded[s][0] for s in HONEST} == MARKS


@pytest.mark.parametrize("attack", ATTACKS, ids=NAMES)
def test_an_attack_gains_nothing_and_is_told_why(attack, graded):
    marks, page = graded[attack.get("student", attack["name"])]
    assert marks == attack.get("marks")
    assert marks is None or marks <= MARKS["one half right"]
    assert ("Not graded" if marks is None else f"{marks} of 6 points") in page
    assert re.search(attack["says"], page), page[page.index("<body>") :][:2000]


def test_all_that_is_named_is_tried():
    assert len(set(NAMES)) == len(ATTACKS) == 66
    assert {a["file"] for a in ATTACKS if "file" in a} == {*CHANGES, "link", "broken"}
    ours = [id_of(c) for c in assignment().cells]
    assert ours[1] == "f" and ours[-2] == "g"
