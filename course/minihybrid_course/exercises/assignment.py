"""An assignment's visible tests, run in its notebook, where no process of its own can start.

Takes:   the notebook's file, and the names that its cells have defined.
Gives:   the points so far, and why tests fail.
What is left out: hidden tests, and limits on time; `minihybrid_course.grading.check` has them.
"""

import json
from pathlib import Path

from minihybrid_course.exercises.judging import Verdict
from minihybrid_course.grading.sources import id_of, kind, points


def assignment(path, names):
    """The `Verdict` on an assignment's notebook: a line for each failing test, and the points."""
    try:
        cells = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
    except OSError:
        return Verdict(False, f"not yet: {path} isn't in this folder; save your notebook here")
    lines, earned, total = [], 0, 0
    for cell in cells:
        source = "".join(cell["source"])
        if kind(cell) == "tests" and "assert" in source:  # or all of its tests are hidden
            total += points(cell)
            try:
                exec(compile(source, id_of(cell), "exec"), dict(names))
                earned += points(cell)
            except Exception as error:
                told = str(error) if isinstance(error, AssertionError) else repr(error)
                lines.append(f"{id_of(cell)}: 0 of {points(cell)}, {told}")
    lines.append(f"{earned} of {total} points so far; hidden tests are added when it's graded.")
    return Verdict(earned == total, "\n".join(lines))
