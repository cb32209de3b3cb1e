"""What grading a class costs, and whether hostile classmates or kills change a mark.

    python benchmarks/grading.py                       # 200 submissions, two at a time
    python benchmarks/grading.py --number 40

Of 20 made-up submissions, 17 are honest (10 right, 4 partly wrong, 3 blank), 2 are odd and 1 is
hostile. First, all but the hostile ones are graded. Then the whole class is graded. Its grader
is killed in the middle (`kill -9`) and started again, twice. `results/grading.json` records the
time, the memory, and under `kills` how many marks changed and what was lost or left behind. If
anything was, the program exits with an error.
"""

import argparse
import csv
import ctypes
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from machine import describe
from minihybrid_course.grading.sources import full_name
from students import VARIANT, hand_in

RESULTS = Path(__file__).parent / "results"
NUMBER, JOBS, KILLS = 200, 2, 2
GRACE_S = 60  # for the processes of a killed grader to end
SUBREAPER = 36  # of prctl: orphaned descendants become children of this process
GRADER = [sys.executable, "-m", "minihybrid_course.grading.grade"]


def below(process):
    """The processes that a process started, and those that they started."""
    descendants = []
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            direct = [int(word) for word in file.read_text().split()]
        except OSError:  # it has just ended
            continue
        descendants += [*direct, *(p for one in direct for p in below(one))]
    return descendants


def left_behind(temporary):
    """How many processes and temporary files a grader has left; they are removed."""
    end, processes = time.monotonic() + GRACE_S, [0]
    while processes and time.monotonic() < end:
        time.sleep(0.05)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            processes = below(os.getpid())
        except ChildProcessError:
            processes = []
    for process in processes:
        os.kill(process, signal.SIGKILL)
    files = os.listdir(temporary)
    shutil.rmtree(temporary)
    return len(processes), len(files)


def run(folder, name, stop=None):
    """(resources, what it left) of a grader, which is killed once it has stored `stop` marks."""
    out, temporary = folder.with_name(f"{folder.name}-graded"), folder.with_name("temporary")
    temporary.mkdir()
    words = [*GRADER, folder, "--assignment", name, "--out", out]
    command = [*words, f"--variant={VARIANT}", f"--jobs={JOBS}"]
    with tempfile.TemporaryFile("w+") as log:
        there = os.environ | {"TMPDIR": str(temporary)}
        grader = subprocess.Popen(command, cwd=ROOT, env=there, stdout=log, stderr=log)
        ended = 0
        while not ended:
            time.sleep(0.05)
            if stop and len(list(out.glob("known/*.json"))) >= stop:
                os.kill(grader.pid, signal.SIGKILL)  # that process alone, as in a crash
            ended, status, used = os.wait4(grader.pid, os.WNOHANG)
        grader.returncode = os.waitstatus_to_exitcode(status)
        if grader.returncode != (-signal.SIGKILL if stop else 0):
            log.seek(0)
            sys.exit(f"the grader ended with {grader.returncode}: {log.read()}")
    return used, left_behind(temporary)


def marks(folder):
    """Student's number -> (score in the table of marks, points of each test, stored result)."""
    out, table = folder.with_name(f"{folder.name}-graded"), {}
    stored = [json.loads(path.read_text("utf-8")) for path in out.glob("known/*.json")]
    results = {one["number"] or one["student"]: one for one in stored}
    with open(out / "marks.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            one = results.get(row["student_id"], {})
            points = [t["points"] for t in one.get("tests", ())]
            table[re.search(r"\d{3}", row["student_id"])[0]] = row["score"], points, one
    return table


def harm(alone, together, kinds):
    """How many marks differ from those without hostile classmates; how many rows are missing."""
    honest = [s for s, what in kinds.items() if what != "hostile"]
    differ = [s for s in honest if s in together and alone.get(s, ())[:2] != together[s][:2]]
    return {"marks_changed": len(differ), "submissions_lost": len(kinds.keys() - together.keys())}


def row(some):
    """What submissions of one kind took."""
    times_s = [one.get("elapsed_s", 0) for one in some]
    return {
        "number": len(some),
        "median_s": statistics.median(times_s),
        "most_s": max(times_s),
        "points": sorted({one.get("points") or 0 for one in some}),
        "peak_bytes": max(one.get("peak_bytes", 0) for one in some),
    }


def measured(place, name, number):
    """The result of a class, as the file has it."""
    whole, others = place / "all", place / "others"
    kinds = hand_in(place, name, number)
    run(others, name)
    started = time.monotonic()
    stops = [number * k // (KILLS + 1) for k in range(1, KILLS + 1)]
    runs = [run(whole, name, stop) for stop in (*stops, None)]
    wall_s = time.monotonic() - started
    together = marks(whole)
    results = {student: one for student, (_, _, one) in together.items()}
    rows = {
        what: row([results.get(s, {}) for s in kinds if kinds[s] == what])
        for what in ("right", "wrong", "blank", "odd", "hostile")
        if what in kinds.values()
    }
    peaks = {what: one["peak_bytes"] for what, one in rows.items()}
    # What a killed sandbox took is in no parent's account, so nothing is counted twice.
    return {
        "assignment": name,
        "number": number,
        "jobs": JOBS,
        "wall_s": wall_s,
        "students_s": sum(one.get("processor_s", 0) for one in results.values()),
        "grader_s": sum(used.ru_utime + used.ru_stime for used, _ in runs),
        "peak_bytes": {
            "student": max(peak for what, peak in peaks.items() if what != "hostile"),
            "hostile": peaks.get("hostile", 0),
            "grader": max(used.ru_maxrss for used, _ in runs) * 1024,
        },
        "kinds": rows,
        "of": max(one.get("of", 0) for one in results.values()),
        "kills": {
            "number": KILLS,
            **harm(marks(others), together, kinds),
            "processes_left": sum(processes for _, (processes, _) in runs),
            "folders_left": sum(files for _, (_, files) in runs),
        },
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--assignment", default="1")
    parser.add_argument("--number", type=int, default=NUMBER)
    arguments = parser.parse_args()
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory() as place:
        result = measured(Path(place), full_name(arguments.assignment), arguments.number)
    result = {"machine": describe()} | result
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "grading.json").write_text(json.dumps(result, indent=1) + "\n")
    for key in ("wall_s", "students_s", "grader_s", "peak_bytes", "kills"):
        print(key, result[key])
    for what, one in result["kinds"].items():
        print(what, one)
    if any(count for what, count in result["kills"].items() if what != "number"):
        sys.exit("a mark changed, or something was lost or left behind")


if __name__ == "__main__":
    main()
