"""Sphinx extension: the output of cells is highlighted as what it is.

Listings of the engine, kernels and differences of graphs are highlighted. Text in columns
keeps its lines where there is room for them; running text is broken at any width.
"""

import ast
import re

from docutils import nodes

SHOWN = re.compile(r"# \S+\.py(: [\w.<>]+)?$", re.MULTILINE)  # the first line of `mx.show`
PROGRAM = re.compile(r"(@kernel|@cuda|def|import|from)\b")
SIGNS = {"  ", "+ ", "- "}  # of lines in a difference
COLUMNS = re.compile(r"\S {2,}\S|^ {2,}\S|\[\[", re.MULTILINE)
WIDEST = 98  # columns that fit a page


def is_python(text):
    try:
        return bool(PROGRAM.match(text) and ast.parse(text))
    except SyntaxError:
        return False


def language_of(text):
    """The language of an output, or `None` where it is plain text."""
    if SHOWN.match(text) or is_python(text):
        return "python"
    starts = {line[:2] for line in text.splitlines()}
    return "diff" if starts <= SIGNS and starts != {"  "} and text else None


def color(app, doctree):
    """Find the languages of a page's outputs, and how the lines of its blocks may be broken."""
    for block in doctree.findall(nodes.literal_block):
        text, classes = block.astext(), block["classes"]
        width = max(map(len, text.splitlines()), default=0)
        language = block.get("language")
        if "output" in classes and "traceback" not in classes:
            language = language_of(text)
            block["language"] = language or block["language"]
        aligned = language not in (None, "text") or COLUMNS.search(text)
        fits = aligned and width <= WIDEST and "traceback" not in classes
        classes.append("columns" if fits else "prose")


def setup(app):
    app.connect("doctree-read", color)
    app.add_js_file("scroll_hint.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
