"""Chapters 23 and 24. Cells that need a library which a reader may lack.

Takes:   cells that begin with `#@needs onnx`, after `%load_ext minihybrid_course.needs`.
Gives:   the cell as it is; where the library is missing, one sentence in its place, and
         the notebook goes on.

What is left out: versions of libraries.
"""

import re
from importlib.util import find_spec

NEEDS = re.compile(r"#@needs (.+)")


def kept(lines):
    """A cell's lines, or one that says what is missing.

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
    """What `%load_ext` calls."""
    shell.input_transformers_cleanup.append(kept)
