"""Sphinx extension: the package's docstrings as they are written.

Docstrings are plain text with aligned columns (`Shapes:`, `Units:`, `Raises:`), made to
be read in a terminal. Prose becomes prose; columns and examples stay as they are.
"""

import re


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
            lines += [
                f".. code-block:: {language}",
                "   :class: docstring",
                "",
                *("   " + line for line in paragraph.splitlines()),
                "",
            ]


def setup(app):
    app.connect("autodoc-process-docstring", keep_columns)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
