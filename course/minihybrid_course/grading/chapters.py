"""Chapters as structured data for sheets and slides: questions, cells, texts.

    for chapter in chapters():
        for question in chapter.questions():
            print(question.wording)

Texts are Markdown, which `html` converts to HTML; links are dropped, since they're useless
on paper and in a lecture hall.
"""

import ast
import re
from dataclasses import dataclass, field
from functools import cache

import nbformat
from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from minihybrid_course.grading.page import TEMPLATES
from minihybrid_course.grading.sources import ROOT, defined, tags

QUOTED = re.compile(r"^> ?", re.MULTILINE)
FOLDED = re.compile(r"<details><summary>(.*?)</summary>\n(.*?)</details>\n?", re.DOTALL)
ASSERTED = re.compile(r"^assert .*\n?", re.MULTILINE)
ROLE = re.compile(r"\{(?:term|download)\}(?=`)")
COLORS = re.compile(r"\x1b\[[\d;]*m")


@dataclass
class Question:
    """A prediction: the question, the cells it needs, and its answers."""

    cell: nbformat.NotebookNode
    before: str  # the text above it
    wording: str
    boxes: list  # blanks to fill in: {"label", "answer", perhaps "options"}
    tells: bool  # whether an answering cell's source is part of the answer
    folded: list  # [(title, text)]: the answer or a hint, as the page folds it
    answers: list = field(default_factory=list)  # the cells below whose outputs are the answer
    needs: list = field(default_factory=list)  # cells above that define the names it uses

    def code(self):
        """The sources of the answering cells, unless they reveal the answer."""
        texts = ["" if self.tells else ASSERTED.sub("", c.source) for c in self.answers]
        return [text for text in texts if text.strip()]


@dataclass
class Chapter:
    """A notebook of the book."""

    stem: str
    number: int
    title: str
    cells: list

    def questions(self):
        """The chapter's predictions, in order."""
        result, shown = [], set()
        for cell in self.cells:
            if "predict" in cell.metadata:
                result.append(question(cell))
            elif "answer" in tags(cell):
                result[-1].answers.append(cell)
        for each in result:
            first = each.answers[0] if each.answers else each.cell
            needs = needed(each, self.cells[: self.cells.index(first)])
            each.needs = [c for c in needs if c.id not in shown]
            shown |= {c.id for c in each.needs + each.answers}
        return result


@cache
def chapters():
    """All chapters, in order."""
    return [chapter(path) for path in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))]


def chapter(path):
    """Read one chapter from its file."""
    cells = nbformat.read(path, as_version=4).cells
    title = re.match(r"# (.*)", cells[0].source)[1]
    return Chapter(path.stem, int(path.stem[:2]), title, cells)


def question(cell):
    """Return the question of a cell with the metadata `predict`."""
    before, mark, rest = cell.source.partition("> **Predict.**")
    quoted = re.match(r"(?:^>.*\n?)*", mark + rest, re.MULTILINE)[0]
    text = QUOTED.sub("", quoted)
    wording = FOLDED.sub("", text).strip().removeprefix("**Predict.**").strip()
    folded = [(title, body.strip()) for title, body in FOLDED.findall(text)]
    form = cell.metadata["predict"]
    boxes, tells = form.get("boxes", []), form.get("tells", False)
    return Question(cell, before.strip(), wording, boxes, tells, folded)


# -- dependences of a question -------------------------------------------------------------
def python(cell):
    """Return a cell's syntax tree without IPython's lines; empty if it can't be parsed."""
    lines = ["pass" if s.lstrip()[:1] in ("%", "!") else s for s in cell.source.splitlines()]
    try:
        return ast.parse("\n".join(lines))
    except SyntaxError:
        return ast.Module([], [])


def defines(cell):
    """Return the names that a cell assigns, without imported ones."""
    return defined(ast.unparse(python(cell)), imported=False) - {"_"}


def needed(question, above):
    """Return the cells above that define names used by a question or its answering cells."""
    names = set(re.findall(r"[A-Za-z_]\w*", " ".join(re.findall(r"`([^`]+)`", question.wording))))
    for cell in question.answers:
        names |= {n.id for n in ast.walk(python(cell)) if isinstance(n, ast.Name)}
    cells = []
    for cell in reversed(above):
        if cell.cell_type == "code" and (here := names & defines(cell)):
            names -= here  # only the last assignment of a name counts
            cells += [] if hidden(cell) else [cell]
    return cells[::-1]


def hidden(cell):
    """Return whether the page folds a cell, or it's a part of nano, written by the reader."""
    return any(t.startswith(("hide-", "nano-", "starter")) for t in tags(cell))


# -- as HTML -------------------------------------------------------------------------------
def colored(text, name="", attributes=""):
    """Highlight Python source as HTML; return "" for other languages."""
    is_python = name in ("python", "py", "ipython3")
    return highlight(text, PythonLexer(), HtmlFormatter(nowrap=True)) if is_python else ""


def code(text):
    """Return a block of Python that is scrollable by keyboard."""
    return f'<pre class="code" tabindex="0">{colored(text, "python").rstrip()}</pre>'


MARKDOWN = MarkdownIt("commonmark", {"html": True, "highlight": colored}).enable("table")
for _kind in ("link_open", "link_close"):
    MARKDOWN.add_render_rule(_kind, lambda *arguments: "")


def html(text):
    """Convert Markdown to HTML without links, with headings at level 3."""
    tokens = MARKDOWN.parse(ROLE.sub("", text))
    for token in tokens:
        if token.type.startswith("heading"):
            token.tag = "h3"
    return MARKDOWN.renderer.render(tokens, MARKDOWN.options, {})


def line(text):
    """Convert one line of Markdown, such as a title, to HTML."""
    return MARKDOWN.renderInline(ROLE.sub("", text))


def printed(cell):
    """Return a code cell's output as text."""
    parts = []
    for out in cell.get("outputs", []):
        if out.output_type == "error":
            parts.append(f"{out.ename}: {out.evalue}")
        else:
            parts.append(out.text if out.output_type == "stream" else out.data["text/plain"])
    return COLORS.sub("", "\n".join(p.rstrip("\n") for p in parts))


TEMPLATES.filters |= {"html": html, "line": line, "code": code, "printed": printed}


def page(template, **values):
    """Render a page from a template; the filters' results are HTML."""
    return TEMPLATES.get_template(template).render(**values)
