"""A grader with a planted fault, for test_class_benchmark.py: it grades quickly, without a sandbox.

python faulty_grader.py FAULT                        measures a class, prints what was harmed
python faulty_grader.py FAULT FOLDER --assignment 1  grades a folder, as grade.py does
"""

import ctypes
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from minihybrid_course.grading import grade as grading
from minihybrid_course.grading import marks
from minihybrid_course.grading.judge import notebook_of, summed
from minihybrid_course.grading.sources import id_of, kind, points

HOSTILE = "os.fork()"  # in the code of the class's only hostile student
FAULT = sys.argv[1] if __name__ == "__main__" else "none"  # pytest imports it, too


def graded(notebook, path, folder):
    """Full marks for each test, or none if the student's solutions are gone."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE):  # ends with this process
        text = "".join(c["source"] for c in notebook_of(path.read_bytes())["cells"])
    tests = [
        {"id": id_of(c), "of": points(c), "points": points(c) * ("BEGIN" in text), "wrong": None}
        for c in notebook["cells"]
        if kind(c) == "tests"
    ]
    if HOSTILE in text:
        plant(folder)
    return summed(tests, [], []) | {"elapsed_s": 0.1, "text": text}


def plant(folder):
    """What the fault lets a hostile submission do."""
    if FAULT == "marks":
        for stored in folder.with_name("all-graded").glob("known/*.json"):
            stored.write_text(re.sub(r'"points": \d+', '"points": 0', stored.read_text()))
    if FAULT == "process":
        subprocess.Popen(["sleep", "600"], start_new_session=True)
    if FAULT == "folder":
        tempfile.mkdtemp()


def table_without(rows):
    """A table of marks whose second student is missing."""
    return _text_of([rows[0], *rows[2:]])


if __name__ == "__main__" and len(sys.argv) > 2:
    grading.graded, grading.describe_isolation = graded, lambda: []
    _text_of = marks.text_of
    if FAULT == "row":
        marks.text_of = table_without
    grading.main(grading.options().parse_args(sys.argv[2:]))
elif __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    import grading as benchmark

    benchmark.GRADER, benchmark.GRACE_S = [sys.executable, __file__, FAULT], 2
    ctypes.CDLL(None).prctl(benchmark.SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory() as place:
        result = benchmark.measured(Path(place), "1_autograd", number=20)
    print(json.dumps(result["kills"]))
