"""What students get holds no solution, no hidden test and no output (needs nbgrader)."""

import re
import subprocess
import sys

import nbformat
import pytest
from envs import NotAvailable, python_of
from minihybrid_course.grading.sources import ROOT, chosen, id_of, kind, names, only, source, tags

pytestmark = pytest.mark.external
SECRETS = re.compile(r"### BEGIN (?:SOLUTION|HIDDEN TESTS)\n(.*?)### END", re.DOTALL)


def lines(text):
    """The lines that say something: longer than `for j in range(8):`."""
    return {s.strip() for s in text.splitlines() if len(s.strip()) > 18}


@pytest.fixture(scope="module", params=[0, 7])
def release(request, tmp_path_factory):
    try:
        python = python_of("nbgrader")
    except NotAvailable as error:
        pytest.skip(str(error))
    out = tmp_path_factory.mktemp("release")
    command = [
        python,
        "-m",
        "minihybrid_course.grading.release",
        "--variant",
        str(request.param),
        "--out",
        out,
    ]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return request.param, {p.stem: nbformat.read(p, 4) for p in out.glob("*.ipynb")}


def test_nothing_leaks(release):
    variant, notebooks = release
    assert sorted(notebooks) == names()
    for name, notebook in notebooks.items():
        ours = source(name)
        kept = "\n".join(c.source for c in notebook.cells)
        secret = set().union(*(lines(s) for c in ours.cells for s in SECRETS.findall(c.source)))
        explained = [c.source for c in ours.cells if "explanation" in tags(c)]
        secret |= set().union(*map(lines, explained)) - {"<details><summary>Explanation</summary>"}
        open_text = "\n".join(SECRETS.sub("", c.source) for c in ours.cells)
        secret -= lines(open_text)
        assert len(secret) > 20 and not secret & lines(kept)
        assert "BEGIN" not in kept and "Explanation" not in kept
        assert not any(c.get("outputs") for c in notebook.cells)


def test_only_what_was_drawn_is_there(release):
    variant, notebooks = release
    for name, notebook in notebooks.items():
        cells = [c for c in chosen(source(name), variant).cells if "hidden" not in tags(c)]
        expected = [id_of(c) for c in cells if id_of(c)]
        assert [id_of(c) for c in notebook.cells if id_of(c)] == expected
        assert {tag for c in notebook.cells for tag in tags(c)} <= {"judge", "apart"}
        others = {o for c in source(name).cells for o in only(c)} - set(expected)
        assert len(others) >= 2


def test_the_book_prints_no_solution(release):
    """Nor do the book's own solutions stand in what students get."""
    book = "\n".join(
        c.source
        for path in (ROOT / "notebooks").glob("*.ipynb")
        for c in nbformat.read(path, 4).cells
        if c.cell_type == "code"
    )
    published = re.findall(r"#@title Solution.*?(?=#@title|\Z)", book, re.DOTALL)
    assert len(published) > 50
    for name in release[1]:
        solutions = [c for c in source(name).cells if kind(c) == "solution"]
        ours = set().union(*(lines(s) for c in solutions for s in SECRETS.findall(c.source)))
        ours = {line for line in ours if not line.startswith("def ")}  # every block has forward
        assert len(ours) > 5 and not ours & lines(book)


def test_a_blank_release_is_worth_nothing(release):
    from minihybrid_course.grading.judge import judged

    variant, notebooks = release
    for name, notebook in notebooks.items():
        cells = [c for c in notebook.cells if c.cell_type == "code"]
        actual = judged(chosen(source(name), variant), cells)
        assert sum(t["points"] for t in actual["tests"]) == 0


def test_the_grader_needs_no_nbgrader():
    code = "import sys, minihybrid_course.grading.grade; sys.exit('nbgrader' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
