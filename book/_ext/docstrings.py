"""Sphinx extension: the package's docstrings as they are written, and its operators.

Docstrings are plain text with aligned columns (`Shapes:`, `Units:`, `Raises:`), made to
be read in a terminal. Prose becomes prose; columns and examples stay as they are.
"""
import re

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from minihybrid.ops import OPS


def escape(line):
    """Escape what reStructuredText would interpret; `code` becomes a literal."""
    parts = re.split(r"`([^`]+)`", line)
    parts[::2] = [re.sub(r"([\\*_|`])", r"\\\1", text) for text in parts[::2]]
    parts[1::2] = [f"``{code}``" for code in parts[1::2]]
    return "".join(parts)


def is_prose(paragraph):
    """Tell running text from examples and from lines whose columns carry meaning."""
    in_columns = re.search(r"^ |\S  +\S", paragraph, re.MULTILINE)
    return not (in_columns or paragraph.startswith(">>>"))


def keep_columns(app, what, name, obj, options, lines):
    """Turn the paragraphs of a docstring, in place, into prose or literal blocks."""
    paragraphs = re.split(r"\n\s*\n", "\n".join(lines).strip("\n"))
    lines.clear()
    for paragraph in paragraphs:
        if is_prose(paragraph):
            lines += [*map(escape, paragraph.splitlines()), ""]
        else:
            language = "pycon" if paragraph.startswith(">>>") else "text"
            lines += [f".. code-block:: {language}", "   :class: docstring", "",
                      *("   " + line for line in paragraph.splitlines()), ""]


class Operators(SphinxDirective):
    """List every public operator under all its names, with the text of its record."""

    def run(self):
        names = {}   # Op -> its public names
        for name, op in OPS.items():
            if not name.startswith("_"):
                names.setdefault(op, []).append(name)
        items = []
        for op, aliases in names.items():
            term = nodes.term()
            for i, name in enumerate(aliases):
                term += [nodes.Text(", ")] * (i > 0) + [nodes.literal(text=name)]
            text = nodes.paragraph(text=op.doc)
            items.append(nodes.definition_list_item(
                "", term, nodes.definition("", text)))
        return [nodes.definition_list("", *items)]


def setup(app):
    app.connect("autodoc-process-docstring", keep_columns)
    app.add_directive("operators", Operators)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
