"""Slides: every question, exercise, heading and shown cell of a chapter once, and no other file."""

import re
from collections import Counter
from functools import cache

import pytest
from minihybrid_course.grading.chapters import chapters
from minihybrid_course.grading.slides import (
    MOST_LINES,
    n_lines,
    outputs,
    program,
    short,
    shown,
    slides,
    write,
)
from minihybrid_course.grading.sources import tags
from test_sheets import Page

CHAPTERS = pytest.mark.parametrize("chapter", chapters(), ids=lambda chapter: chapter.stem)


@cache
def pages(folder):
    write(folder)
    return {path.stem: path.read_text("utf-8") for path in folder.glob("*.html")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("slides")


@CHAPTERS
def test_all_of_a_chapter_is_there_once(chapter):
    actual = slides(chapter)
    questions = [q.cell.id for q in chapter.questions()]
    assert [s.question.cell.id for s in actual if s.question] == questions
    text = "\n".join(c.source for c in chapter.cells if c.cell_type == "markdown")
    exercises = re.findall(r"^### (Exercise .*)", text, re.MULTILINE)
    assert [s.title for s in actual if s.title.startswith("Exercise ")] == exercises
    titles = set(re.findall(r"^## (.*)\n+(?![#\n])", text, re.MULTILINE))
    assert titles <= {s.title for s in actual}
    cells = [c for c in chapter.cells if c.cell_type == "code"][1:]
    kept = [c.id for c in cells if not {"hide-cell", "starter"} & set(tags(c))]
    assert [c.id for s in actual for c in s.cells] == kept
    assert len(questions) + len(exercises) < len(actual) < len(chapter.cells)


@CHAPTERS
def test_a_slide_is_not_crowded(chapter):
    for slide in slides(chapter):
        lines = sum(map(n_lines, slide.cells))
        assert lines <= MOST_LINES or len(slide.cells) == 1 or slide.question
        assert slide.text or slide.question or slide.cells, "an empty slide"


def test_pages_need_no_other_file_and_tell_no_solution(folder):
    for stem, text in pages(folder).items():
        page = Page(text)
        assert page.tags[0] == ("html", {"lang": "en"}) and page.count("h1") == 1, stem
        used = [a[k] for _, a in page.tags for k in ("src", "href", "data") if k in a]
        foreign = [u for u in used if not u.startswith(("data:", "#"))]
        assert stem == "index" or not foreign, foreign
        assert not re.search(r"@import|url\((?!#|data:)", text), stem
        assert (
            "#@title" not in text
            and "<summary>Hint" not in text
            and "<summary>Explanation" not in text
        )
        assert all(a.get("alt") for name, a in page.tags if name == "img")
    links = re.findall(r'href="(.*?)"', pages(folder)["index"])
    assert {*links, "index.html"} == {p.name for p in folder.glob("*.html")} and len(links) > 28
    assert all(len(text) < 400_000 for text in pages(folder).values())


def test_what_answers_is_a_step(folder):
    """The outputs of a question's cells, and its folded answer, wait."""
    for chapter in chapters():
        expected = sum(
            len(s.question.folded) + sum(bool(c.outputs) for c in s.cells)
            for s in slides(chapter)
            if s.question
        )
        steps = [a for _, a in Page(pages(folder)[chapter.stem]).tags if "data-step" in a]
        assert len(steps) == expected > 0


def test_students_gaps_stay_gaps():
    kinds = Counter()
    for cell in (c for chapter in chapters() for c in chapter.cells if "gap" in tags(c)):
        kinds["gap"] += 1
        assert "...  # your lines" in program(cell) and program(cell) != cell.source
    assert kinds["gap"] >= 15


def test_what_of_a_text_is_shown():
    assert shown("A b.\nC.\n\nD.\n\n- **E f.** G.\n- H\n  i: j. K\n\n> L.") == (
        "A b.\nC.\n\n- **E f.**\n- H\n  i:"
    )
    assert short("1. A `b.c` d. E\n") == "1. A `b.c` d."
    assert short("- no end\n") == "- no end"


def test_outputs_are_escaped_but_for_pictures():
    cell = next(c for chapter in chapters() for c in chapter.cells if c.get("outputs"))
    cell = cell.copy()
    cell.outputs = [type(cell)(output_type="stream", name="stdout", text="\x1b[31m<b>\x1b[0m\n")]
    assert outputs(cell) == '<pre class="out" tabindex="0">&lt;b&gt;</pre>'
