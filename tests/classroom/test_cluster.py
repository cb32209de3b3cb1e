"""On a cluster no mark is lost and nothing graded twice, though three workers are killed."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from envs import NotAvailable, python_of
from minihybrid_course.grading.sources import ROOT
from small_assignment import WRONG, text

pytestmark = pytest.mark.external
HERE = Path(__file__).parent
KILLED = ("before", "middle", "after")


@pytest.fixture
def python():
    try:
        return python_of("cluster")
    except NotAvailable as error:
        pytest.skip(str(error))


def test_a_scheduler_that_is_not_there_is_named(python, tmp_path):
    (tmp_path / "in/anna").mkdir(parents=True)
    command = [
        python,
        "-m",
        "minihybrid_course.grading.cluster",
        tmp_path / "in",
        "--assignment",
        "1",
    ]
    wrong = [*command, "--scheduler", "tcp://127.0.0.1:1"]
    done = subprocess.run(wrong, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "no scheduler answers at tcp://127.0.0.1:1" in done.stderr


def test_a_worker_that_is_killed_loses_no_mark_and_grades_nothing_twice(python, tmp_path):
    folder, log, out = (tmp_path / name for name in ("handed in", "log", "out"))
    log.mkdir()
    slow = "import time\n\ntime.sleep(2)\n\n\ndef g(x):\n    return x + 2"
    given = {f"s{k}": text() for k in range(5)} | dict.fromkeys(KILLED, text(g=slow))
    given["wrong"] = text(**WRONG)
    for student, contents in given.items():
        path = folder / student / "1_small.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(contents, encoding="utf-8")
    done = subprocess.run(
        [python, HERE / "elsewhere/on_cluster.py", folder, out],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "course", HERE)))},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    marks = json.loads(done.stdout.splitlines()[-1])
    assert marks == dict.fromkeys(given, 6) | {"wrong": 3}
    assert sorted(p.name for p in log.glob("died *")) == sorted(f"died {k}" for k in KILLED)
    graded = {p.name.removeprefix("graded "): p.read_text() for p in log.glob("graded *")}
    assert graded == dict.fromkeys(given, "x")
    assert len(list(out.glob("known/*.json"))) == len(given)
    assert "32 processes" in (out / "isolation.txt").read_text()
