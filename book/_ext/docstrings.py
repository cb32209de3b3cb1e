"""Sphinx extension: the package's docstrings as they are written.

Docstrings are plain text with aligned columns (`Shapes:`, `Units:`, `Raises:`), made to
be read in a terminal. Prose becomes prose, named columns a list; examples and other
columns stay as they are.
"""

import re

PROSE = "What is left out|Not [a-z]+|Limits"  # entries whose text continues without indentation
NAMES = f"Defines|Uses|Input|Output|Takes|Gives|Returns|Raises|Shapes|Units|Source|{PROSE}"
ENTRY = re.compile(rf"({NAMES}|[a-z_]\w*(?:, [a-z_]\w*)*): +(?=\S)")


def escape(line):
    """Escape what reStructuredText would interpret; `code` becomes a literal."""
    parts = re.split(r"`([^`]+)`", line)
    parts[::2] = [re.sub(r"([\\*_|`])", r"\\\1", text) for text in parts[::2]]
    parts[1::2] = [f"``{code}``" for code in parts[1::2]]
    return "".join(parts)


def has_columns(text):
    """Whether the places of words in a line carry meaning."""
    return re.search(r"\S  +\S", text)


def entries(paragraph):
    """[(name, text)] of `name: text` and its indented lines; None of anything else.

    Lines of prose before the first entry have the name None.
    """
    result = []
    for line in paragraph.splitlines():
        entry = ENTRY.match(line)
        rest = line[entry.end() :] if entry else line.strip()
        if has_columns(rest):
            return None
        in_prose = result and result[-1][0] is None
        if entry and (re.fullmatch(NAMES, entry[1]) or has_columns(line) or not in_prose):
            result.append((entry[1], rest))
        elif result and result[-1][0] and (line[0] == " " or re.fullmatch(PROSE, result[-1][0])):
            result[-1] = result[-1][0], result[-1][1] + "\n" + rest
        elif line[0] != " " and (in_prose or not result):
            result.append((None, line))
        else:
            return None
    return result


def as_text(paragraph):
    """A paragraph as lines of reStructuredText."""
    parts = None if paragraph.startswith(">>>") else entries(paragraph)
    if parts is None:
        language = "pycon" if paragraph.startswith(">>>") else "text"
        yield from (f".. code-block:: {language}", "   :class: docstring", "")
        yield from ("   " + line for line in paragraph.splitlines())
        yield ""
        return
    prose = [text for name, text in parts if name is None]
    named = parts[len(prose) :]
    if prose:
        yield from (*map(escape, prose), "")
    if named:
        yield from (".. container:: docstring", "")
        for name, text in named:
            # Code may cross a line's end, so an entry is one line.
            yield from ("   " + escape(name), "      " + escape(text.replace("\n", " ")))
        yield ""


def keep_columns(app, what, name, obj, options, lines):
    """Turn the paragraphs of a docstring, in place, into prose, lists or literal blocks."""
    paragraphs = re.split(r"\n\s*\n", "\n".join(lines).strip("\n"))
    lines[:] = [line for paragraph in paragraphs for line in as_text(paragraph)]


def setup(app):
    app.connect("autodoc-process-docstring", keep_columns)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
