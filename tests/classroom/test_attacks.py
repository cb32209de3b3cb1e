"""What students' code may try: it gains nothing, harms nobody, and is told why.

Each attack stands before, or in, a solution that is worth 3 of 6 points without it.
"""

import os
import subprocess
import sys
import time

import pytest
from minihybrid_course.grading import sandbox
from minihybrid_course.grading.judge import (
    MOST_CELLS,
    Refused,
    cells_of,
    graded,
    judged,
    notebook_of,
    read,
)
from minihybrid_course.grading.sandbox import ProcessDied, Sandbox, StudentError, isolation
from minihybrid_course.grading.sources import ROOT
from small_assignment import SECRET, WRONG, assignment, cell, cells, handed_in, isolated, text

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits"),
]
alone = pytest.mark.skipif(not isolated(), reason="bubblewrap doesn't run here")


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Seconds for code that does not end; honest code needs far less on a busy machine."""
    monkeypatch.setattr(sandbox, "TEST_S", 10)
    monkeypatch.setattr(sandbox, "CELL_S", 15)


def points(actual):
    return {t["id"]: t["points"] for t in actual["tests"]}


HONEST = {"f_seen": 1, "f_hidden": 0, "g_seen": 2}


def test_without_an_attack():
    assert points(judged(assignment(), cells(**WRONG))) == HONEST
    assert sum(points(judged(assignment(), cells())).values()) == 6


# -- code that lies --------------------------------------------------------------------
LIES = {
    "NumPy says that all is close": "import numpy as np\nnp.allclose = lambda *a, **k: True",
    "assertions are no errors": "import builtins\nbuiltins.AssertionError = SystemExit",
    "a trace that skips assertions": "import sys\nsys.settrace(lambda *a: None)",
    "the grader is patched": (
        "import sys, gc\n"
        "for m in list(sys.modules.values()):\n"
        "    for n in ('judged', 'tried', 'answer', 'plain'):\n"
        "        if hasattr(m, n): setattr(m, n, lambda *a: {'done': 9})"
    ),
    "the process says that it went well": "import atexit, os\natexit.register(os._exit, 0)",
    "a result is faked": (
        "import json\n"
        "for name in ('marks.csv', 'known.json', '../graded.json'):\n"
        "    try: open(name, 'w').write(json.dumps({'points': 6}))\n"
        "    except OSError: pass"
    ),
    "answers are written ahead": (
        "import os\n"
        "for fd in range(3, 20):\n"
        "    try: os.write(fd, b'{\"done\": 9}\\n' * 9)\n"
        "    except OSError: pass"
    ),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_lies_gain_nothing(lie):
    actual = points(judged(assignment(), cells(**WRONG | {"f": f"{lie}\n{WRONG['f']}"})))
    assert actual["f_hidden"] == 0 and actual.items() <= HONEST.items() | {
        ("g_seen", 0),
        ("f_seen", 0),
    }


def test_an_answer_that_equals_everything_does_not_cross():
    same = "class Same:\n    __eq__ = lambda *a: True\ndef f(x):\n    return Same()"
    actual = judged(assignment(), cells(**WRONG | {"f": same}))
    assert points(actual) == HONEST | {"f_seen": 0}
    assert "the result is a Same" in actual["tests"][0]["wrong"]


# -- code that does not come back ------------------------------------------------------
ENDS = {
    "an endless loop": ("while True: pass", "more than 10 s"),
    "an exit that looks well": ("import os\n    os._exit(0)", "ended itself"),
    "50 GB of memory": ("return bytearray(50 << 30)", "MemoryError"),
    "a fork bomb": ("import os\n    while True:\n        os.fork()", ""),
    "an answer of 40 MB": ("return 'x' * (40 << 20)", "16 MB"),
    "an error": ("raise KeyboardInterrupt('<b>hello</b>')", "KeyboardInterrupt"),
    "a deep list": ("x = []\n    for k in range(99999): x = [x]\n    return x", "Recursion"),
}


@pytest.mark.parametrize("attack", ENDS.values(), ids=ENDS)
def test_who_does_not_come_back_loses_that_test_only(attack):
    body, reason = attack
    actual = judged(assignment(), cells(**WRONG | {"f": f"def f(x):\n    {body}"}))
    assert points(actual) == {"f_seen": 0, "f_hidden": 0, "g_seen": 2}
    assert reason in actual["tests"][0]["wrong"]


def test_a_cell_without_end_is_left_out_and_named():
    actual = judged(assignment(), cells(**WRONG | {"f": "while True: pass"}))
    assert points(actual) == {"f_seen": 0, "f_hidden": 0, "g_seen": 2}
    assert actual["cells"] == [("f", "it took more than 15 s")]


def outcome_of(code):
    """What a text of Python finds out in a room, as its variable `out`."""
    with Sandbox(isolation()) as one:
        one.ask({"run": f"{code}\ndef tell():\n    return out"}, 600)
        return one.ask({"call": "tell", "args": [], "kwargs": {}}, 600)


def test_a_full_disk_is_the_students_own():
    code = """
out = 0
try:
    for k in range(40):
        with open(f"file{k}", "wb") as file:
            out += file.write(bytes(8 << 20))
except OSError:
    pass"""
    assert outcome_of(code) <= 64 << 20 or not isolated()
    with Sandbox(isolation()) as one, pytest.raises(StudentError, match="OSError"):
        one.ask({"run": "open('x', 'wb').write(bytes(64 << 20))"}, 10)


@alone
def test_no_file_of_the_teacher_can_be_seen_or_written(tmp_path):
    (tmp_path / "secret").write_text(SECRET)
    places = [
        ROOT / "notebooks",
        ROOT / "tests",
        ROOT / "course/minihybrid_course/grading/judge.py",
        tmp_path / "secret",
        "/old",
    ]
    code = f"import os\nout = [os.path.exists(p) for p in {list(map(str, places))}]"
    assert outcome_of(code) == [False] * 5
    code = f"""
out = []
for path in ("/usr/x", "/etc/x", "/x", {str(ROOT / "minihybrid/x")!r}):
    try:
        open(path, "w")
        out.append(path)
    except OSError:
        pass"""
    assert outcome_of(code) == []
    assert SECRET not in outcome_of(
        "out = repr(dict(globals())) + open('/proc/self/cmdline').read()"
    )


@alone
def test_what_python_needs_may_lie_in_the_folder_for_temporary_files(tmp_path, monkeypatch):
    (tmp_path / "für alle").touch()
    (tmp_path.parent / "secret").touch()
    tmp_path.chmod(0o755)  # the sandbox may be another user
    seen = sandbox.visible()
    monkeypatch.setattr(sandbox, "visible", lambda: [*seen, str(tmp_path)])
    code = "import os\nout = [os.path.exists(p) for p in {}]"
    places = [str(tmp_path / "für alle"), str(tmp_path.parent / "secret")]
    assert outcome_of(code.format(places)) == [True, False]


@alone
def test_no_network_and_no_way_back():
    code = """
import ctypes, socket
out = []
for where in (("127.0.0.1", 22), ("8.8.8.8", 53)):
    try:
        socket.create_connection(where, 1)
        out.append(where)
    except OSError as error:
        out.append(error.errno)
out.append(ctypes.CDLL(None).umount2(b"/proc", 2))"""
    assert outcome_of(code) == [111, 101, -1]  # its own loopback, where nothing listens


@alone
def test_what_was_started_ends_with_the_room():
    mark = f"left-{os.getpid()}"
    with Sandbox(isolation()) as one:
        start = f"import subprocess\nsubprocess.Popen(['sh', '-c', 'sleep 6000; : {mark}'])"
        one.ask({"run": start}, 600)
    end = time.monotonic() + 600
    while mark in subprocess.run(["ps", "axww"], capture_output=True, text=True).stdout:
        assert time.monotonic() < end, "it is still running"
        time.sleep(0.1)


def test_a_process_that_reads_no_more_is_given_up():
    with Sandbox(isolation()) as one, pytest.raises(ProcessDied):
        one.ask({"run": "import time\ntime.sleep(60)"}, 1)


# -- files -----------------------------------------------------------------------------
def test_links_to_elsewhere_are_not_followed(tmp_path):
    outside = tmp_path / "secret.ipynb"
    outside.write_text(text())
    folder = tmp_path / "in"
    (folder / "anna").mkdir(parents=True)
    (folder / "anna/1.ipynb").symlink_to(outside)
    (folder / "otto").symlink_to(tmp_path)
    for path in (folder / "anna/1.ipynb", folder / "otto/secret.ipynb", folder / "../secret.ipynb"):
        actual = graded(assignment(), path, folder)
        assert actual["points"] is None and "link to elsewhere" in actual["notes"][0]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"cells": [', "not a notebook"),
        (b"\xff\xfe", "not a notebook"),
        (b"[" * 100_000, "not a notebook"),
        (b'{"cells": 3, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}', "not a notebook"),
        (b'{"cells": [3], "nbformat": 4, "nbformat_minor": 5, "metadata": {}}', "not a notebook"),
        (text().replace('"cell_type"', '"kind"').encode(), "not a notebook"),
        (
            text().replace('"metadata": {\n    "nbgrader"', '"metadata": 3, "x": {\n"y"').encode(),
            "not a notebook",
        ),
        (text().replace('"nbformat": 4', '"nbformat": 99').encode(), "not a notebook"),
        (b"[]", "not a notebook"),
        (b"null", "not a notebook"),
    ],
)
def test_a_file_that_is_no_notebook_is_refused(data, message):
    with pytest.raises(Refused, match=message):
        cells_of(notebook_of(data))


def test_too_many_cells_and_too_large_outputs_are_refused(tmp_path):
    notebook = handed_in()
    notebook.cells += [cell(f"more{k}", {}, "x = 1") for k in range(MOST_CELLS)]
    with pytest.raises(Refused, match="code cells"):
        cells_of(notebook)
    path = tmp_path / "1.ipynb"
    with open(path, "wb") as file:
        file.truncate(200 << 20)
    with pytest.raises(Refused, match="200 MB.*clear all outputs"):
        read(path, tmp_path)


def test_deleted_and_doubled_cells_are_named():
    ours = cells()
    without = [c for c in ours if c.metadata.nbgrader.grade_id != "g"]
    actual = judged(assignment(), without)
    assert points(actual) == {"f_seen": 1, "f_hidden": 3, "g_seen": 0}
    assert actual["notes"] == ["The cell g is missing, so its part could not be judged."]
    again = cell("g", {"solution": True}, "def g(x):\n    return 0")
    actual = judged(assignment(), [*ours, again])
    assert points(actual)["g_seen"] == 0 and "more than once" in actual["notes"][0]


def test_tests_that_a_student_changed_or_deleted_are_asked_all_the_same():
    ours = cells(**WRONG)
    for one in ours:
        if one.metadata.nbgrader.grade:
            one.source, one.metadata.nbgrader.points = "pass", 100
    assert points(judged(assignment(), ours)) == HONEST
    kept = [c for c in ours if not c.metadata.nbgrader.grade]
    assert points(judged(assignment(), kept)) == HONEST
