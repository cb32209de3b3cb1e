"""An assignment of two questions, for tests of the grader; one of its tests is hidden."""

import nbformat
from minihybrid_course.grading.sandbox import BWRAP, isolation
from minihybrid_course.grading.sources import ClassroomError
from nbformat.v4 import new_code_cell, new_notebook

SECRET = "the squares of four numbers are wanted"
CELLS = [
    ("judge", {"locked": True}, "import numpy as np\n\nVARIANT = 0", ["judge"]),
    ("f", {"solution": True}, "### BEGIN SOLUTION\ndef f(x):\n    return x * x\n### END SOLUTION"),
    ("f_seen", {"grade": True, "points": 1}, "assert f(3) == 9"),
    (
        "f_hidden",
        {"grade": True, "points": 3},
        "### BEGIN HIDDEN TESTS\nx = np.arange(4.0)\n"
        f"assert np.allclose(f(x), x**2), '{SECRET}'\n### END HIDDEN TESTS",
    ),
    ("g", {"solution": True}, "### BEGIN SOLUTION\ndef g(x):\n    return x + 2\n### END SOLUTION"),
    ("g_seen", {"grade": True, "points": 2}, "assert g(2) == 4, 'g(2) is 4'"),
]
WRONG = {"f": "def f(x):\n    return 9", "g": "def g(x):\n    return x + 2"}  # 3 of 6 points


def isolated():
    """Whether bubblewrap isolates students' code here."""
    try:
        return isolation()[0] == BWRAP
    except ClassroomError:
        return False


def cell(name, known, text, tags=()):
    meta = {"grade": False, "solution": False, "locked": False, "schema_version": 3, "task": False}
    new = new_code_cell(text, id=name.replace("_", "-"))
    new.metadata = {"nbgrader": meta | {"grade_id": name} | known, "tags": list(tags)}
    return new


def assignment():
    notebook = new_notebook(cells=[cell(*c) for c in CELLS])
    notebook.metadata.update(variant={}, kernelspec={"name": "python3"})
    return notebook


def handed_in(**texts):
    """A submission whose solutions are `texts`."""
    notebook = assignment()
    for one in notebook.cells:
        one.source = texts.get(one.metadata.nbgrader.grade_id, one.source)
    return notebook


def cells(**texts):
    return [c for c in handed_in(**texts).cells if c.cell_type == "code"]


def text(**texts):
    return nbformat.writes(handed_in(**texts))
