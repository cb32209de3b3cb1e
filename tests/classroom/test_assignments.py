"""Every assignment: the reference has full marks, a blank none, a wrong one those it should."""

import ast
import copy
import re
import tomllib

import nbformat
import pytest
from minihybrid_course.grading.judge import judged
from minihybrid_course.grading.sources import (
    FOLDER,
    chosen,
    drawn,
    id_of,
    kind,
    names,
    names_of,
    only,
    points,
    source,
    tags,
)

WRONG = tomllib.loads((FOLDER / "wrong.toml").read_text(encoding="utf-8"))
REFERENCE = "### BEGIN SOLUTION"
RUBRIC = re.compile(r"^\| \d [^|]*\|([^|]*)\| (\d+) \|$", re.MULTILINE)
LINE = re.compile(r"^\|[^|]*\| (\d+) \|$", re.MULTILINE)
SECRET = re.compile(r"### BEGIN HIDDEN TESTS\n.*?### END HIDDEN TESTS", re.DOTALL)


def code(notebook):
    return [copy.deepcopy(c) for c in notebook.cells if c.cell_type == "code"]


def lost(actual):
    """Test -> points, of all that were lost."""
    return {t["id"]: t["of"] - t["points"] for t in actual["tests"] if t["points"] < t["of"]}


def worth(notebook, ids):
    return {id_of(c): points(c) for c in notebook.cells if id_of(c) in ids}


def with_change(cells, wrong):
    for cell in cells:
        if id_of(cell) == wrong["cell"]:
            assert cell.source.count(wrong["old"]) == 1, wrong
            cell.source = cell.source.replace(wrong["old"], wrong["new"])
    return cells


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_the_reference_has_full_marks_with_all_alternatives(name):
    actual = judged(source(name), code(source(name)))
    assert lost(actual) == {} and actual["cells"] == [] and actual["notes"] == []
    assert len(actual["tests"]) >= 6


@pytest.mark.external
@pytest.mark.parametrize("variant", [1, 2, 7])
@pytest.mark.parametrize("name", names())
def test_the_reference_solves_variants(name, variant):
    notebook = chosen(source(name), variant)
    assert lost(judged(notebook, code(notebook))) == {}


@pytest.mark.external
@pytest.mark.parametrize("name", names())
def test_a_blank_has_nothing(name):
    notebook = source(name)
    cells = code(notebook)
    for cell in cells:
        if kind(cell) == "solution":
            assert REFERENCE in cell.source
            cell.source = cell.source.partition("\n" + REFERENCE)[0].partition(REFERENCE)[0]
    actual = judged(notebook, cells)
    assert sum(t["points"] for t in actual["tests"]) == 0
    assert all(t["wrong"] for t in actual["tests"])


@pytest.mark.external
@pytest.mark.parametrize("name", names())
def test_wrong_solutions_lose_what_they_should(name):
    """Those of different cells are tried together: no test asks two of a student's cells."""
    notebook, todo = source(name), list(WRONG[name])
    assert len(todo) >= 3
    while todo:
        now, cells = {}, code(notebook)
        for wrong in todo:
            now.setdefault(wrong["cell"], wrong)
        todo = [w for w in todo if w not in now.values()]
        for wrong in now.values():
            cells = with_change(cells, wrong)
        expected = {id for wrong in now.values() for id in wrong["loses"]}
        for _ in range(3):  # what else runs on the machine may hide that a kernel is slow
            actual = lost(judged(notebook, cells))
            differing = actual.keys() ^ worth(notebook, expected).keys()
            if not differing or not all(id.endswith("_speed") for id in differing):
                break
        assert actual == worth(notebook, expected)


@pytest.mark.external
@pytest.mark.parametrize("variant", [1, 7])
@pytest.mark.parametrize("name", names())
def test_last_years_solutions_do_not_fit(name, variant):
    """All points are lost of what is drawn anew: of every part, if it is the next variant."""
    before, now = chosen(source(name), 0), chosen(source(name), variant)
    kept = set(drawn(source(name), 0).values())
    actual = judged(now, code(before))
    anew = {id_of(c) for c in now.cells if kind(c) == "tests" and set(only(c)) - kept}
    assert anew and anew <= set(lost(actual))
    assert any("is missing" in note for note in actual["notes"])
    assert variant != 1 or not kept & set(drawn(source(name), 1).values())


FAKE = """
class Blended:
    def __getitem__(self, launch):
        def run(a, b, w, out):
            out[...] = a + w * (b - a)
        return run

blended = Blended()
blended.counts = type("Counts", (), {"uses": (), "barriers": 0, "global_stores": 0})()
type(blended.counts).__getitem__ = lambda counts, name: type("Use", (), {"most_stores": 1})
"""


@pytest.mark.slow
def test_an_object_that_acts_like_a_kernel_earns_nothing():
    notebook = chosen(source("6"), 0)
    cells = code(notebook)
    for cell in cells:
        if id_of(cell) == "blended":
            cell.source = FAKE
    actual = judged(notebook, cells)
    assert {t["points"] for t in actual["tests"] if t["id"].startswith("blended")} == {0}
    assert "a kernel is a function under @cuda.jit, not a Blended" in str(actual["tests"])


# -- what a source must be -------------------------------------------------------------
@pytest.mark.parametrize("name", names())
def test_variants_are_worth_the_same_and_share_nothing_with_the_next(name):
    notebook = source(name)
    sums = set()
    for variant in range(27):
        now, later = drawn(notebook, variant), drawn(notebook, variant + 1)
        assert not now.items() & later.items()
        cells = chosen(notebook, variant).cells
        sums.add(sum(points(c) for c in cells if kind(c) == "tests"))
        assert any("judge" in tags(c) and f"VARIANT = {variant}\n" in c.source for c in cells)
    assert len(sums) == 1
    options = {o for group in notebook.metadata.variant.values() for o in group}
    assert {o for c in notebook.cells for o in only(c)} == options


def missing(notebook):
    """What an assignment must have, and this one has not."""
    first, rows = notebook.cells[0].source, RUBRIC.findall(notebook.cells[0].source)
    variant = chosen(notebook, 0)
    tests = [c for c in variant.cells if kind(c) == "tests"]
    shown = [SECRET.sub("", c.source).strip() for c in tests]
    total = sum(points(c) for c in tests)
    explained = sum("explanation" in tags(c) for c in variant.cells)
    has = {
        "learning goals": "**You will be able to**" in first,
        "a time": re.search(r"\*\*Time\*\* \w+( to \w+)? hours", first),
        "what it needs": "**Needs** chapter" in first,
        "a rubric of each part": len(rows) >= 3 and sum(int(of) for _, of in rows) == total,
        "partial points": all(partial(row) in (int(of), None) for row, of in rows),
        "tests that are seen": sum(map(bool, shown)) >= 6,
        "tests that are hidden": sum("BEGIN HIDDEN" in c.source for c in tests) >= 6,
        "tests that say what is wrong": all(map(teaches, tests)),
        "a solution": any(REFERENCE in c.source for c in variant.cells),
        "an explanation of each solution": explained >= len(rows),
        "an open question": len(open_questions(notebook)) == 1,
        "three variants": all(len(v) >= 3 for v in notebook.metadata.variant.values()),
    }
    return [what for what, there in has.items() if not there]


def open_questions(notebook):
    """The questions that are graded by hand and whose rubric adds up to the points they state."""
    texts = [c.source for c in notebook.cells if c.source.startswith("## Open question")]
    stated = re.compile(r"by hand, with at most (\d+) points")
    return [t for t in texts if sum(map(int, LINE.findall(t))) == int(stated.search(t)[1])]


def partial(row):
    """The sum of what a row of the rubric gives for its parts; None if it gives each the same."""
    numbers = [part.split()[-1] for part in row.split(",")]
    return None if numbers[-1] == "each" else sum(map(int, numbers))


def teaches(cell):
    """Whether each assertion of a cell has a message."""
    asserted = [n for n in ast.walk(ast.parse(cell.source)) if isinstance(n, ast.Assert)]
    return all(n.msg for n in asserted)


@pytest.mark.parametrize("name", names())
def test_an_assignment_has_all_that_is_needed(name):
    assert missing(source(name)) == []
    assert all(len(w["why"]) > 20 and w["loses"] for w in WRONG[name])
    points_of = {id_of(c): points(c) for c in source(name).cells if kind(c) == "tests"}
    for wrong in WRONG[name]:  # and each has marks of its own
        assert 0 < sum(points_of[i] for i in wrong["loses"]) < sum(points_of.values())


def test_what_is_missing_is_named():
    notebook = source(names()[0])
    notebook.cells[0].source = "# Assignment"
    notebook.cells = [c for c in notebook.cells if kind(c) != "tests"]
    notebook.metadata.variant["reduction"].pop()
    notebook.cells[-2].source = notebook.cells[-2].source.replace("| 1 |", "| 2 |")
    actual = set(missing(notebook))
    assert {"learning goals", "a time", "three variants", "tests that are hidden"} <= actual
    assert "an open question" in actual


@pytest.mark.parametrize("name", names())
def test_no_two_cells_define_the_same(name):
    """All alternatives live together when a source is run whole."""
    seen = {}
    for cell in code(source(name)):
        alone = nbformat.v4.new_notebook(cells=[cell])
        for defined in names_of(alone, "given", "solution"):
            assert seen.setdefault(defined, id_of(cell)) == id_of(cell), defined


@pytest.mark.parametrize("name", names())
def test_a_source_has_names_for_its_cells_and_no_outputs(name):
    cells = code(source(name))
    ids = [id_of(c) for c in cells]
    assert None not in ids and len(set(ids)) == len(ids)
    assert not any(c.outputs or c.execution_count for c in cells)
    assert all(c.metadata.nbgrader.locked for c in cells if kind(c) != "solution")
    assert any("BEGIN HIDDEN TESTS" in c.source for c in cells)
