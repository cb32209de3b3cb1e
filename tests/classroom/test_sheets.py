"""Sheets ask every prediction of the book, show no answer, and need no other file."""

import re
from functools import cache
from html.parser import HTMLParser

import nbformat
import pytest
from minihybrid_course.grading.chapters import chapters, html, needed, page, printed, question
from minihybrid_course.grading.sheets import NO_PDF, write, write_pdf


class Page(HTMLParser):
    """A page's elements: [(tag, attributes)], the texts between them, and its sections."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.texts.append(data)

    def count(self, tag):
        return sum(name == tag for name, _ in self.tags)

    @property
    def text(self):
        return "".join(self.texts)


@cache
def sheets():
    return [(c, Page(page("sheet.html", chapter=c, kind="questions"))) for c in chapters()]


def test_every_prediction_is_asked_once_and_answered():
    for chapter, sheet in sheets():
        predictions = [c for c in chapter.cells if "predict" in c.metadata]
        answers = Page(page("sheet.html", chapter=chapter, kind="answers"))
        assert sheet.count("section") == answers.count("section") == len(predictions) >= 3
        for cell, one in zip(predictions, chapter.questions(), strict=True):
            assert (
                one.cell is cell
                and one.wording
                and one.wording in cell.source.replace("\n> ", "\n")
            )
            assert one.folded or one.boxes or one.answers
    assert sum(len(c.questions()) for c in chapters()) > 180


def test_sheets_show_no_answer():
    """No output, no fold, and no number that is asked for, but where the question says it."""
    tried = 0
    for chapter, sheet in sheets():
        for one in chapter.questions():
            known = f"{one.before} {one.wording} {' '.join(c.source for c in one.needs)}"
            known = known.replace(",", "")  # 1,024 is 1024
            shown = "\n".join(one.code())
            for box in one.boxes:
                if "options" not in box and len(str(box["answer"])) > 2:
                    tried += 1
                    answer = str(box["answer"])
                    assert not re.search(rf"\b{re.escape(answer)}\b", shown) or answer in known, (
                        answer
                    )
        assert not {"details", "summary"} & {name for name, _ in sheet.tags}
        for out in (printed(c) for one in chapter.questions() for c in one.answers):
            assert len(out) < 40 or out not in sheet.text
    assert tried > 30


def test_pages_need_no_other_file_and_say_what_they_are():
    for _, sheet in [*sheets(), (None, Page(page("sheets.html", chapters=chapters())))]:
        assert sheet.tags[0] == ("html", {"lang": "en"}) and sheet.count("title") == 1
        names = {name for name, _ in sheet.tags}
        assert not names & {"script", "link", "img", "iframe"}
        links = [a["href"] for name, a in sheet.tags if name == "a"]
        assert all(re.fullmatch(r"\w+-(questions|answers)\.html", link) for link in links)
        levels = [int(name[1]) for name, _ in sheet.tags if re.fullmatch(r"h\d", name)]
        assert levels[0] == 1 and all(b - a <= 1 for a, b in zip(levels, levels[1:], strict=False))


# -- what a question needs -------------------------------------------------------------
def cells(*sources, tag=None):
    actual = [nbformat.v4.new_code_cell(source) for source in sources]
    for cell in actual:
        cell.metadata["tags"] = [tag] if tag else []
    return actual


@pytest.fixture
def example():
    text = "Above.\n\n> **Predict.** What is\n> `f(x)`?\n>\n> <details><summary>Answer</summary>\n>"
    cell = nbformat.v4.new_markdown_cell(f"{text}\n> No.\n>\n> </details>")
    cell.metadata["predict"] = {"boxes": [{"answer": 1, "label": "Numbers"}], "hint": "count"}
    return question(cell)


def test_a_question_is_taken_apart(example):
    assert (example.before, example.wording) == ("Above.", "What is\n`f(x)`?")
    assert example.folded == [("Answer", "No.")]


def test_a_question_needs_the_last_cells_that_define_what_it_says(example):
    above = cells("f = 0", "import g", "def f(x):\n    return x", "x = 3", "y = 4")
    example.answers = cells("%time g(f(x))")
    assert needed(example, above) == above[2:4]
    assert needed(example, cells("x = 3", tag="hide-input") + cells("f = 1", tag="nano-3")) == []


def test_what_says_the_answer_is_left_out(example):
    example.answers = cells("n = 2\nassert n == 2\nn", "assert n == 2")
    assert example.code() == ["n = 2\nn"]
    example.tells = True
    assert example.code() == []


def test_markdown_without_links_and_below_the_headings_of_a_page():
    assert html("## A [b](c.md) {term}`d`") == "<h3>A b <code>d</code></h3>\n"
    assert html("```python\n# A\n```").count("# A") == 1


@pytest.mark.slow
def test_a_pdf_of_a_sheet(tmp_path):
    first = write(tmp_path)[0]
    if not write_pdf([first]):
        pytest.skip(NO_PDF)
    assert first.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    assert len(list(tmp_path.glob("*.html"))) == 2 * len(chapters()) + 1
