"""Run an assignment's visible tests in its notebook, where no other process can start.

Defines: `assignment`, which uses the notebook's file and the names that its cells have
         defined, and reports the points so far and why tests fail.
Not supported: hidden tests, and time limits; see `minihybrid_course.grading.check`.
"""

import json
from pathlib import Path

from minihybrid_course.exercises.judging import Verdict
from minihybrid_course.grading.sources import id_of, kind, points


def assignment(path, names):
    """Return the `Verdict` on a notebook: a line for each failing test, and the points."""
    try:
        cells = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
    except OSError:
        return Verdict(False, f"not yet: {path} isn't in this folder; save your notebook here")
    lines, earned, total = [], 0, 0
    for cell in cells:
        source = "".join(cell["source"])
        if kind(cell) == "tests" and "assert" in source:  # otherwise all of its tests are hidden
            total += points(cell)
            try:
                exec(compile(source, id_of(cell), "exec"), dict(names))
                earned += points(cell)
            except Exception as error:
                message = str(error) if isinstance(error, AssertionError) else repr(error)
                lines.append(f"{id_of(cell)}: 0 of {points(cell)}, {message}")
    lines.append(f"{earned} of {total} points so far; hidden tests are added when it's graded.")
    return Verdict(earned == total, "\n".join(lines))
