"""Chapters 23 and 24. Cells that need an optional library.

Cells that begin with `#@needs onnx`, after `%load_ext minihybrid_course.needs`, run
unchanged if the library is installed. Otherwise they print one sentence instead, and the
notebook continues.
Not supported: versions of libraries.
"""

import re
from importlib.util import find_spec

NEEDS = re.compile(r"#@needs (.+)")


def kept(lines):
    """Return a cell's lines, or one that prints what is missing.

    >>> kept(["#@needs re ast\\n", "1 + 1"])
    ['#@needs re ast\\n', '1 + 1']
    >>> exec(*kept(["#@needs re xyz\\n", "1 + 1"]))
    this cell is left out, because xyz is not installed: `pip install xyz`
    """
    needs = NEEDS.match(lines[0]) if lines else None
    missing = [name for name in needs[1].split() if not find_spec(name)] if needs else []
    if not missing:
        return lines
    names, verb = " and ".join(missing), "are" if missing[1:] else "is"
    sentence = f"because {names} {verb} not installed: `pip install {' '.join(missing)}`"
    return [f"print({f'this cell is left out, {sentence}'!r})\n"]


def load_ipython_extension(shell):
    """Install the transformation; called by `%load_ext`."""
    shell.input_transformers_cleanup.append(kept)
