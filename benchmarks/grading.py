"""What grading a class costs: 200 made-up submissions of one assignment, on two cores.

    python benchmarks/grading.py                       # about five minutes
    python benchmarks/grading.py --number 20

Of ten submissions six are right, two blank, one is wrong, and one hostile. Writes
`results/grading.json`: for each kind the seconds and the processor seconds of a submission,
and the peak of memory of the student's process and of the grader.
"""

import argparse
import copy
import json
import resource
import statistics
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import nbformat  # noqa: E402
from machine import describe  # noqa: E402
from minihybrid_course.grading import grade as grading  # noqa: E402
from minihybrid_course.grading.sandbox import isolation  # noqa: E402
from minihybrid_course.grading.sources import FOLDER, chosen, full_name, id_of, kind, source  # noqa: E402

RESULTS = Path(__file__).parent / "results"
NUMBER, VARIANT, JOBS = 200, 7, 2
HOSTILE = {
    "an endless loop": "while True: pass",
    "all memory": "x = bytearray(50 << 30)",
    "an exit": "import os\nos._exit(0)",
    "processes": "import subprocess\nps = [subprocess.Popen(['sleep', '99']) for k in range(99)]",
}
PATTERN = ["right"] * 6 + ["blank"] * 2 + ["wrong", "hostile"]


def handed_in(notebook, k, wrongs):
    """(kind, notebook) of submission k."""
    new, what = copy.deepcopy(notebook), PATTERN[k % len(PATTERN)]
    attack = list(HOSTILE.values())[k // len(PATTERN) % len(HOSTILE)]
    wrong = wrongs[k // len(PATTERN) % len(wrongs)]
    solutions = [c for c in new.cells if kind(c) == "solution"]
    for cell in solutions:
        if what == "blank":
            cell.source = cell.source.partition("### BEGIN SOLUTION")[0] + "..."
        if what == "wrong" and id_of(cell) == wrong["cell"]:
            cell.source = cell.source.replace(wrong["old"], wrong["new"])
    if what == "hostile":
        solutions[0].source = attack
    return what, new


def measured(name, notebook, number, wrongs):
    """(seconds of all, [what is known of a submission, with its kind and processor seconds])."""
    with tempfile.TemporaryDirectory() as place:
        folder, kinds = Path(place) / "handed-in", {}
        for k in range(number):
            what, new = handed_in(notebook, k, wrongs)
            student = f"s{k:03}"
            kinds[student] = what
            (folder / student).mkdir(parents=True)
            nbformat.write(new, folder / student / f"{name}.ipynb")
        started = time.monotonic()
        found = grading.grade(folder, name, VARIANT, Path(place) / "out", grading.here(JOBS))
        wall_s = time.monotonic() - started
    return wall_s, [f | {"kind": kinds[f["student"]]} for f in found]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--assignment", default="1")
    parser.add_argument("--number", type=int, default=NUMBER)
    asked = parser.parse_args()
    name = full_name(asked.assignment)
    notebook = chosen(source(name), VARIANT)
    there = {id_of(c) for c in notebook.cells}
    wrongs = tomllib.loads((FOLDER / "wrong.toml").read_text("utf-8"))[name]
    isolation()  # which tries a sandbox
    wall_s, found = measured(
        name, notebook, asked.number, [w for w in wrongs if w["cell"] in there]
    )
    students_s = sum(f.get("processor_s", 0) for f in found)
    student_bytes = max(f.get("peak_bytes", 0) for f in found)
    whole = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    # What a killed sandbox took is in no parent's account, so nothing is counted twice.
    grader_s = sum(used.ru_utime + used.ru_stime for used in whole)
    grader_bytes = max(used.ru_maxrss for used in whole) * 1024
    result = {
        "machine": describe(),
        "assignment": name,
        "number": asked.number,
        "jobs": JOBS,
        "wall_s": wall_s,
        "students_s": students_s,
        "grader_s": grader_s,
        "peak_bytes": {"student": student_bytes, "grader": grader_bytes},
        "kinds": {
            what: {
                "number": len(some),
                "median_s": statistics.median(f["elapsed_s"] for f in some),
                "most_s": max(f["elapsed_s"] for f in some),
                "points": sorted({f["points"] or 0 for f in some}),
            }
            for what in dict.fromkeys(PATTERN)
            if (some := [f for f in found if f["kind"] == what])
        },
        "of": found[0]["of"],
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "grading.json").write_text(json.dumps(result, indent=1) + "\n")
    each = (students_s + grader_s) / asked.number
    print(f"{wall_s / asked.number:.2f} s and {each:.2f} processor seconds each; "
          f"{student_bytes / 1e6:.0f} MB at most in a student's process, "
          f"{grader_bytes / 1e6:.0f} in the grader")  # fmt: skip
    for what, row in result["kinds"].items():
        print(what, row)


if __name__ == "__main__":
    main()
