"""Sphinx extension: chapters carry the numbers of their files, and folds their own titles.

The title of `03_hybridize.ipynb` is "3. Hybridize: ..." on its page, in the sidebar and in the
search, so "see chapter 3" can be followed; in the notebook the name of the file says it.
A solution is folded under "Solution 3.2", a call under its own text, and the cell that all
chapters begin with under "Setup". Sections have numbers as well, so a teacher can point to
7.2. A page leaves out what only a notebook needs: the call that draws a figure, what an
unfilled exercise prints, and the switch to short errors.
"""

import ast
import json
import re
from html import escape
from pathlib import Path

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode

RECIPES = "notebooks/recipes/"  # without numbers
CHAPTER = re.compile(r"(\d\d)_\w+")
SOLUTION = re.compile(r"#@title (Solution \d+\.\d+)$", re.MULTILINE)
FIGURE = re.compile(r"^figures\.\w+\(", re.MULTILINE)
SHORT_ERRORS = "%xmode Minimal\n"
FOLDED = {"hide-cell", "hide-input", "hide-output"}
ENTRY = re.compile(r"\(\S*references\.md(#ref-[\w-]+)\)")


def numbered(source, number):
    """The Markdown of a chapter's first cell, with the number in the title."""
    return re.sub(r"^# ", f"# {number}. ", source, count=1)


def title_of(source):
    """What a folded cell is called: a solution by its name, others by their last statement."""
    solution = SOLUTION.match(source)
    if solution:
        return solution[1]
    last = ast.parse(source).body[-1]
    line = source.splitlines()[last.lineno - 1]
    return line if last.lineno == last.end_lineno else line + " ..."


def titled(cells):
    """Give every folded cell its title, in the order of the page."""
    titles = set()
    for cell in cells:
        if FOLDED & set(cell["metadata"].get("tags", [])):
            title = cell["metadata"].pop("title", None) or title_of("".join(cell["source"]))
            more = ", continued" if title in titles else ""
            titles.add(title)
            prompts = dict.fromkeys(("code_prompt_show", "code_prompt_hide"), title + more)
            cell["metadata"].setdefault("mystnb", {}).update(prompts)


def only_what_is_read(cells):
    """Leave out calls that draw figures, outputs of unfilled exercises, and `%xmode`."""
    for cell in cells:
        source, tags = "".join(cell["source"]), cell["metadata"].get("tags", [])
        if "hide-input" in tags and FIGURE.search(source):
            cell["metadata"]["tags"] = [t for t in tags if t != "hide-input"] + ["remove-input"]
        elif "starter" in tags:
            cell["outputs"] = []
        elif source.startswith(SHORT_ERRORS):
            cell["source"] = source.removeprefix(SHORT_ERRORS)
            cell["outputs"] = [
                out for out in cell["outputs"] if "Exception reporting" not in str(out.get("text"))
            ]


def number_sections(app, doctree):
    """Number the sections of a chapter, but the one with exercises: 7.1, 7.2 ..."""
    chapter = CHAPTER.fullmatch(Path(app.env.docname).name)
    for page in doctree.children if chapter else ():
        sections = [s for s in page.children if isinstance(s, nodes.section)]
        named = [s for s in sections if s[0].astext() != "Exercises"]
        for i, section in enumerate(named, 1):
            section[0].insert(0, nodes.Text(f"{int(chapter[1])}.{i} "))


def fold_setup(cells):
    """The first cell is made by book/make_setup.py; the first chapter explains it."""
    setup = next(cell for cell in cells if cell["cell_type"] == "code")
    setup["metadata"].update(tags=["hide-input"], title="Setup")


def prepare(app, docname, source):
    """Number and title a notebook's cells, while the page is made."""
    chapter = CHAPTER.fullmatch(Path(docname).name)
    if not chapter and not docname.startswith(RECIPES):
        return
    notebook = json.loads(source[0])
    cells = notebook["cells"]
    if chapter:
        cells[0]["source"] = numbered("".join(cells[0]["source"]), int(chapter[1]))
    fold_setup(cells)
    only_what_is_read(cells)
    titled(cells)
    for cell in cells:
        if cell["cell_type"] == "markdown":  # a label of the book is found by its name alone
            cell["source"] = ENTRY.sub(r"(\1)", "".join(cell["source"]))
    source[0] = json.dumps(notebook)


def open_fold(self, node):
    """One title, which is what a screen reader says, too."""
    classes = " ".join(node["classes"])
    self.body.append(f'<details class="admonition hide {classes}"><summary>')
    self.body.append(f'<p class="admonition-title">{escape(node["prompt_show"])}</p></summary>\n')


def close_fold(self, node):
    self.body.append("</details>\n")


def setup(app):
    app.connect("source-read", prepare)
    app.connect("doctree-read", number_sections, priority=400)  # before titles are collected
    app.add_node(HideCodeCellNode, override=True, html=(open_fold, close_fold))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
