"""Chapter 04. Checks for nano, the engine that the reader builds.

Uses:    the names that a step has defined in a notebook.
Defines: `check`, which explains in one sentence what's wrong with a step; `stage`, the
         source of nano after a step; `keep`, which writes the reader's cells to a file.

Limits:  style isn't checked. The checks of each step are in `minihybrid_course.steps`.
"""

import ast
import re
import sys

from minihybrid.core.files import write_whole
from minihybrid_course.exercises.ch04 import NANO
from minihybrid_course.exercises.judging import Verdict, judged
from minihybrid_course.steps import STEPS

OWN = re.compile(r"# (?:step \d+|names): ")  # the first line of a cell of nano


def stage(step):
    """Return the source of nano after a step, 1 to 22, from the chapters' cells.

    >>> "class NDArray" in stage(2), "class Symbol" in stage(2)
    (True, False)
    """
    text = NANO.read_text(encoding="utf-8")
    end = text.find(f"# step {step + 1}: ")
    return text if end < 0 else text[:end].rstrip() + "\n"


def keep(cells, path, start=""):
    """Write your cells that begin with `# step` or `# names` to a file.

    cells:   the sources of all cells that were run, as in Jupyter's `In`; of those with the
             same first line, the last one is used.
    start:   the source of earlier steps; its versions of the same cells are replaced.
    Returns: the number of lines of code in the file.
    """
    head, *before = re.split(rf"^(?={OWN.pattern})", start, flags=re.MULTILINE)
    own = {}
    for cell in [*before, *filter(OWN.match, cells)]:
        own[cell.partition("\n")[0]] = cell.rstrip()
    text = "\n\n\n".join([*filter(None, [head.rstrip()]), *own.values()]) + "\n"
    write_whole(path, text.encode())
    return code_lines(text)


def code_lines(text):
    """Count the lines that aren't empty, a comment or a docstring.

    >>> code_lines("x = 1  # one\\n\\n# two\\n")
    1
    """
    lines = {k for k, line in enumerate(text.splitlines(), 1) if line.strip(" )]}")}
    lines -= {k for k in lines if text.splitlines()[k - 1].lstrip().startswith("#")}
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                lines.difference_update(range(node.lineno, node.end_lineno + 1))
    return len(lines)


def check(step):
    """Check a step of nano, as defined in the notebook; report what is missing or wrong.

    >>> check(1)
    not yet: step 1 defines Op, but Op isn't defined; run the cells above
    """
    names = sys._getframe(1).f_globals
    done = names.setdefault("_steps_done", set())
    missing = [k for k in range(step - (step - 1) % 3, step) if k not in done]
    if missing:  # from the same chapter
        verdict = Verdict(False, f"not yet: step {missing[0]} comes first; run check({missing[0]})")
    else:
        verdict = tried(step, names)
    (done.add if verdict.right else done.discard)(step)
    if "get_ipython" in names:
        names["get_ipython"]().register_magic_function(_after(names), "cell", "after")
    return verdict


def _after(names):
    """Register the cell magic `%%after 3`, which runs a cell if step 3 is done."""

    def after(line, cell):
        if int(line) in names.get("_steps_done", ()):
            names["get_ipython"]().run_cell(cell)
        else:
            print(f"this cell needs step {line}: fill its gaps and run its check first")

    return after


def tried(step, names, steps=None):
    """Return the verdict on a step, whatever its code raises; steps: as `STEPS`."""
    needed, trial, praise = (steps or STEPS)[step]
    for name in needed.split():
        if name not in names or of_this_package(names[name]):
            return Verdict(
                False,
                f"not yet: step {step} defines {name}, but {name} isn't defined; run the "
                "cells above",
            )
    if old := outdated(names):
        return Verdict(
            False, f"not yet: {old}; after a change, run all cells from there to here again"
        )
    state = names.get("STATE")
    try:
        return judged(f"step {step} is right", lambda n: (trial(n), praise)[1], _Names(names))
    finally:
        if state is not None:
            state.recording, state.trace = False, []


def of_this_package(thing):
    """Return whether an object is defined by this package, not by the reader."""
    return (getattr(thing, "__module__", None) or "").startswith("minihybrid")


def outdated(names):
    """Describe a name whose class has since been redefined in the notebook."""
    for name in " ".join(needed for needed, *_ in STEPS.values()).split():
        thing = names.get(name)
        for old in thing.__bases__ if isinstance(thing, type) else [type(thing)]:
            now = names.get(old.__name__, old)
            if isinstance(now, type) and now is not old and not of_this_package(now):
                return f"{name} still uses an older {old.__name__}"
    return None


class _Names:
    """The notebook's names as attributes."""

    def __init__(self, names):
        self.__dict__ = names
