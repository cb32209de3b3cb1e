"""Self-check for students: run a notebook's visible tests and count the points so far.

    python -m minihybrid_course.grading.check 1_autograd.ipynb

The notebook runs from top to bottom on the student's machine, without a sandbox. Hidden tests
aren't in it, so the mark can be lower.
"""

import copy
import sys
from pathlib import Path

from IPython.core.inputtransformer2 import TransformerManager

from minihybrid_course.grading.judge import Refused, judged, notebook_of
from minihybrid_course.grading.sandbox import UNSAFE
from minihybrid_course.grading.sources import id_of


def check(path):
    """Return lines with each visible test's points, the errors of cells, and the sum."""
    notebook = notebook_of(Path(path).read_bytes())
    code = [c for c in notebook["cells"] if c["cell_type"] == "code"]
    source = copy.deepcopy({"cells": [c for c in code if id_of(c)]})
    for cell in source["cells"]:
        cell["source"] = TransformerManager().transform_cell(cell["source"])  # magics
        if "assert" not in cell["source"]:  # its tests are all hidden
            cell["metadata"]["nbgrader"]["grade"] = False
    result = judged(source, code, (UNSAFE, False))
    lines = [f"{name or 'a cell of your own'}: {text}" for name, text in result["cells"]]
    for test in result["tests"]:
        reason = "" if test["wrong"] is None else f", {test['wrong'] or 'an assertion failed'}"
        lines.append(f"{test['id']}: {test['points']} of {test['of']}{reason}")
    return [
        *lines,
        f"{result['points']} of {result['of']} points so far; hidden tests are added when your "
        "work is graded.",
    ]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("name your notebook (make: NOTEBOOK=1_autograd.ipynb)")
    try:
        print(*check(sys.argv[1]), sep="\n")
    except (OSError, Refused) as error:
        sys.exit(str(error))
