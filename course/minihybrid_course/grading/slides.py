"""Lecture slides, generated from the chapters: text, programs and outputs.

    python -m minihybrid_course.grading.slides                     # into _build/slides

One self-contained HTML file per chapter. A slide has the first paragraph of a text cell and
the programs below it; the full text is in its notes. A prediction's answer appears at the
next key press. Exercises are on slides, but not their hints and solutions. Without scripts,
the pages scroll; they can also be printed.
"""

import argparse
import re
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from pygments.formatters import HtmlFormatter

from book.make_blank import with_gaps
from minihybrid_course.grading.chapters import COLORS, FOLDED, MARKDOWN, Question, chapters, page
from minihybrid_course.grading.sources import ROOT, tags

MOST_LINES = 16  # of code per slide, unless a single cell has more
QUOTED = re.compile(r"^> \*\*Predict\..*\n?(?:>.*\n?)*", re.MULTILINE)
HEADING = re.compile(r"^(?=##+ )", re.MULTILINE)
SENTENCE = re.compile(r".*?[.:!?](?:\*\*|`|\))?(?=\s|$)", re.DOTALL)
ITEM = re.compile(r"^(?=(?:[-*]|\d+\.) )", re.MULTILINE)
SHOWN = ("bullet_list_open", "ordered_list_open", "table_open", "fence")
STYLES = {"light": "a11y-high-contrast-light", "dark": "a11y-high-contrast-dark"}


@dataclass
class Slide:
    """One slide; texts are Markdown, cells are code cells."""

    title: str
    whole: str = ""
    cells: list = field(default_factory=list)
    question: Question | None = None

    @property
    def text(self):
        """The text on the slide; for an exercise, the whole text."""
        return self.whole if self.title.startswith("Exercise ") else shown(self.whole)

    @property
    def notes(self):
        """The whole text, if it is longer than the slide's."""
        return self.whole if self.whole != self.text else ""

    def has_room_for(self, cell):
        """Return whether a cell fits below the others; a question has only its answers."""
        if self.question:
            return cell in self.question.answers
        lines = sum(n_lines(c) for c in [*self.cells, cell])
        return not self.cells or lines <= MOST_LINES


def n_lines(cell):
    return cell.source.count("\n") + 1


def slides(chapter):
    """Return the slides of a chapter, in order."""
    first, questions = chapter.cells[0], {q.cell.id: q for q in chapter.questions()}
    opening = first.source.partition("\n")[2].strip()
    result = [Slide(f"{chapter.number}. {chapter.title}", opening)]
    setup = next(c for c in chapter.cells if c.cell_type == "code")
    for cell in chapter.cells[1:]:
        if cell.cell_type == "markdown":
            result += of_text(cell, result[-1].title if len(result) > 1 else "", questions)
        elif cell is not setup and not {"hide-cell", "starter"} & set(tags(cell)):
            if not result[-1].has_room_for(cell) or len(result) == 1:
                result.append(Slide(result[-1].title if len(result) > 1 else ""))
            result[-1].cells.append(cell)
    return [s for s in result if s.text or s.question or s.cells]


def of_text(cell, title, questions):
    """Return a text cell's slides: one per heading, and one for a question."""
    result, parts = [], HEADING.split(cell.source)
    for part in parts:
        heading = re.match(r"#+ (.*)\n*", part)
        title, body = (heading[1], part[heading.end() :]) if heading else (title, part)
        question = questions[cell.id] if QUOTED.search(body) else None
        text = FOLDED.sub("", QUOTED.sub("", body)).strip()
        if text or question or (heading and part is parts[-1]):  # also a heading above programs
            result.append(Slide(title, text, question=question))
    return result


def shown(text):
    """Return the slide's part of a text: the first paragraph, and shortened lists."""
    lines, blocks = text.split("\n"), []
    for token in MARKDOWN.parse(text):
        if token.level or token.nesting < 0 or not token.map:
            continue
        block = "\n".join(lines[slice(*token.map)])
        if token.type in SHOWN:
            points = [short(item) for item in ITEM.split(block) if item]
            blocks.append("\n".join(points) if "list" in token.type else block)
        elif token.type == "paragraph_open" and not blocks:
            blocks.append(block)
    return "\n\n".join(blocks)


def short(item):
    """Cut a list item after its first sentence."""
    sentence = SENTENCE.match(item, re.match(r"\d*", item).end() + 1)
    return item[: sentence.end()] if sentence else item.rstrip()


def program(cell):
    """Return a cell's visible source: none if folded, with gaps for the reader's code."""
    if "hide-input" in tags(cell):
        return ""
    return with_gaps(cell.source) if "gap" in tags(cell) else cell.source


def outputs(cell):
    """Return a cell's outputs as HTML."""
    parts, alt = [], cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
    for out in cell.outputs:
        data = out.get("data", {})
        if "text/html" in data:
            parts.append(f'<div class="figure">{data["text/html"]}</div>')
        elif "image/png" in data:
            picture = f'src="data:image/png;base64,{data["image/png"].strip()}" alt="{escape(alt)}"'
            parts.append(f'<div class="figure"><img {picture}></div>')
        else:
            text = f"{out.ename}: {out.evalue}" if out.output_type == "error" else ""
            text = text or out.get("text") or data["text/plain"]
            plain = escape(COLORS.sub("", text).rstrip())
            parts.append(f'<pre class="out" tabindex="0">{plain}</pre>')
    return "\n".join(parts)


def colors():
    """Return the style sheet of programs, for light and dark mode."""
    light, dark = (HtmlFormatter(style=s).get_style_defs("pre.code") for s in STYLES.values())
    return f"{light}\n@media screen and (prefers-color-scheme: dark) {{\n{dark}\n}}"


def write(out):
    """Write all chapters' slides and an index; return {chapter: number of slides}."""
    out.mkdir(parents=True, exist_ok=True)
    decks = {chapter.stem: slides(chapter) for chapter in chapters()}
    for chapter in chapters():
        text = page(
            "slides.html",
            chapter=chapter,
            slides=decks[chapter.stem],
            colors=colors(),
            program=program,
            outputs=outputs,
        )
        (out / f"{chapter.stem}.html").write_text(text, encoding="utf-8")
    index = page("lectures.html", chapters=chapters(), slides=decks)
    (out / "index.html").write_text(index, encoding="utf-8")
    return {stem: len(pages) for stem, pages in decks.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "_build/slides")
    out = parser.parse_args().out
    counts = write(out)
    print(f"{sum(counts.values())} slides of {len(counts)} chapters: {out / 'index.html'}")


if __name__ == "__main__":
    main()
