"""A folder of submissions: marks as tables, a page each; graded once, and where it stopped."""

import copy
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import pytest
from minihybrid_course.grading import grade as grading
from minihybrid_course.grading.grade import grade
from minihybrid_course.grading.judge import Refused, judged, notebook_of
from minihybrid_course.grading.sources import ROOT, ClassroomError, chosen, kind, source
from minihybrid_course.grading.submissions import submission_of
from small_assignment import WRONG, assignment, cell, text

pytestmark = pytest.mark.slow

GRADE = [sys.executable, "-m", "minihybrid_course.grading.grade"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(grading, "source", lambda name: assignment())
    monkeypatch.setattr(grading, "names", lambda: ["1_small"])
    folder = tmp_path / "handed in, Übung 1"
    for place, contents in {
        "anna/1_small.ipynb": text(),
        "Łukasz Żółć_4711_assignsubmission_file_/1_small.ipynb": text(**WRONG),
        "山田太郎/1_small/1_small.ipynb": text(),
        "meier_12_99_1_small.ipynb": text(g=""),
        "=HYPERLINK(1)/1_small.ipynb": text(),
        "broken.ipynb": "{",
        "__MACOSX/anna/._1_small.ipynb": "what macOS puts into a zip",
        "anna/._1_small.ipynb": "the same",
    }.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(contents, encoding="utf-8")
    (folder / "nothing").mkdir()
    return folder


def table(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_marks_and_pages(folder, tmp_path):
    out = tmp_path / "out"
    grade(folder, "1", 0, out)
    head, *rows = table(out / "marks.csv")
    marks = {dict(zip(head, r, strict=True))["student_id"]: r[9:] for r in rows}
    assert marks == {
        "anna": ["6", "6"],
        "4711": ["3", "6"],
        "山田太郎": ["6", "6"],
        "12": ["4", "6"],
        "'=HYPERLINK(1)": ["6", "6"],
        "broken": ["", "6"],
        "nothing": ["", "6"],
    }
    moodle = {row[1]: row for row in table(out / "moodle.csv")}
    assert moodle["Łukasz Żółć"][0] == "Participant 4711"
    assert moodle["Łukasz Żółć"][2:] == ["3", "6", "-", "lost in: f_hidden"]
    assert {"Identifier", "Grade", "Last modified (grade)"} <= set(moodle["Full name"])
    assert moodle["nothing"][5].startswith("This was not graded: no notebook was handed in")
    canvas = {row[0]: row for row in table(out / "canvas.csv")}
    assert canvas["meier"][1] == "12" and canvas["    Points Possible"][-1] == "6"
    pages = {p.name.rpartition("-")[0]: p.read_text("utf-8") for p in out.glob("feedback/*.html")}
    assert len(pages) == 7
    assert "3 of 6 points" in pages["Łukasz Żółć"]
    assert "the squares of four numbers are wanted" in pages["Łukasz Żółć"]
    assert "not a notebook that can be read" in pages["broken"]
    assert "no notebook was handed in" in pages["nothing"]
    assert all("http" not in page for page in pages.values())


@pytest.mark.parametrize("cell", [None, 3, {}, {"cell_type": "code"}, {"source": {}}])
def test_a_cell_that_is_none_is_named(cell):
    notebook = {"nbformat": 4, "cells": [cell]}
    with pytest.raises(Refused, match="a cell without text or metadata"):
        notebook_of(json.dumps(notebook).encode())


def test_a_submission_is_graded_once_and_again_when_it_changed(folder, tmp_path, monkeypatch):
    graded = []
    real = grading.graded
    monkeypatch.setattr(grading, "graded", lambda *a: graded.append(a[1].name) or real(*a))
    first = grade(folder, "1", 0, tmp_path / "out")
    assert len(graded) == 6
    assert grade(folder, "1", 0, tmp_path / "out") == first and len(graded) == 6
    (folder / "anna/1_small.ipynb").write_text(text(**WRONG))
    again = grade(folder, "1", 0, tmp_path / "out")
    assert len(graded) == 7
    assert [a for a, b in zip(again, first, strict=True) if a != b][0]["student"] == "anna"


def test_it_goes_on_where_it_was_stopped(folder, tmp_path, monkeypatch):
    graded = []
    real = grading.graded

    def stopping(*args):
        graded.append(args[1])
        if len(graded) == 3:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(grading, "graded", stopping)
    with pytest.raises(KeyboardInterrupt):
        grade(folder, "1", 0, tmp_path / "out", grading.here(1))
    known = [json.loads(p.read_text()) for p in tmp_path.glob("out/known/*.json")]
    assert len(known) >= 2
    monkeypatch.setattr(grading, "graded", real)
    assert len(grade(folder, "1", 0, tmp_path / "out")) == 7


def test_a_folder_without_submissions_says_what_is_needed(tmp_path, monkeypatch):
    monkeypatch.setattr(grading, "source", lambda name: assignment())
    monkeypatch.setattr(grading, "names", lambda: ["1_small"])
    with pytest.raises(ClassroomError, match="a folder or a notebook for each student"):
        (tmp_path / "in").mkdir()
        grade(tmp_path / "in", "1", 0, tmp_path / "out")


def test_two_notebooks_of_one_student_are_not_guessed_between(tmp_path):
    for name in ("a.ipynb", "b.ipynb"):
        (tmp_path / "anna").mkdir(exist_ok=True)
        (tmp_path / "anna" / name).write_text("{}")
    actual = submission_of(tmp_path / "anna", "1_small")
    assert actual.path is None and "1_small.ipynb" in actual.why


def test_a_variant_that_was_forgotten_is_asked_for(folder, tmp_path, monkeypatch, capsys):
    """Who forgets VARIANT=7 would give nobody any marks."""
    for path in folder.rglob("1_small.ipynb"):
        notebook = nbformat.reads(text(), 4)
        notebook.metadata.variant = 7
        nbformat.write(notebook, path)
    args = grading.options().parse_args([str(folder), "--assignment", "1"])
    with pytest.raises(SystemExit, match="all 4 notebooks are of variant 7.*VARIANT=7"):
        grading.main(args)
    assert not (tmp_path / f"{folder.name}-graded").exists()
    args.variant = 7
    (folder / "Łukasz.zip").touch()
    grading.main(args)
    printed = capsys.readouterr().out
    assert "7 submissions" in printed
    assert "Left out (not a notebook, or hidden): __MACOSX, Łukasz.zip\n" in printed
    assert "\nbroken: This was not graded: the file is not a notebook" in printed


def test_words_that_make_leaves_out_are_asked_for(capsys):
    for words, expected in {
        ("", "--assignment", "1"): "name the folder of submissions",
        ("in", "--assignment", ""): "name one of 1_autograd, ",
    }.items():
        with pytest.raises(SystemExit):
            grading.options().parse_args(words)
        assert expected in capsys.readouterr().err


# -- one submission is nobody else's affair ----------------------------------------------
def hand_in(folder, files):
    for place, contents in files.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents.encode() if isinstance(contents, str) else contents)


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.setattr(grading, "source", lambda name: assignment())
    monkeypatch.setattr(grading, "names", lambda: ["1_small"])
    return tmp_path / "in"


def test_a_fault_of_the_grader_itself_leaves_the_others_their_marks(small, tmp_path, monkeypatch):
    hand_in(small, {"anna/1_small.ipynb": text(), "otto/1_small.ipynb": text()})
    real = grading.graded

    def graded(notebook, path, folder):
        if "otto" in str(path):
            raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
        return real(notebook, path, folder)

    monkeypatch.setattr(grading, "graded", graded)
    actual = {f["student"]: f for f in grade(small, "1", 0, tmp_path / "out")}
    assert actual["anna"]["points"] == 6 and actual["otto"]["points"] is None
    assert "the grader stopped with UnicodeEncodeError" in actual["otto"]["notes"][-1]
    assert len(list((tmp_path / "out/feedback").glob("*.html"))) == 2
    assert not list((tmp_path / "out/known").glob("*otto*"))  # tried again the next time


def test_names_and_texts_that_cannot_be_written_are_escaped(small, tmp_path):
    hand_in(small, {"anna/1_small.ipynb": text()})
    odd = os.fsdecode(b"M\xfcller")  # a zip's Latin-1 name, unpacked on Linux
    bad = text(f="raise ValueError('\\ud800\\x1b[2J')")
    hand_in(small, {f"{odd}/1_small.ipynb": bad, "a\x1b[2Jb\nc/1_small.ipynb": text()})
    grading.main(grading.options().parse_args([str(small), "--assignment", "1"]))
    out = tmp_path / "in-graded"
    rows = {row[3]: row[9] for row in table(out / "marks.csv")[1:]}
    assert rows == {"anna": "6", r"M\udcfcller": "2", r"a\x1b[2Jb c": "6"}
    pages = [p.read_text("utf-8") for p in (out / "feedback").glob("*.html")]
    assert sum("ValueError: \\ud800\\x1b[2J" in page for page in pages) == 1


@pytest.mark.skipif(os.name == "nt", reason="no FIFOs")
def test_a_folder_whose_paths_are_too_long_stops_nobody(small, tmp_path, monkeypatch):
    """A zip can hold folders deeper than the system's longest path."""
    hand_in(small, {"anna/1_small.ipynb": text(), "otto/1_small.ipynb": text()})
    monkeypatch.chdir(small / "otto")
    for _ in range(500):
        os.mkdir("folder---")
        os.chdir("folder---")
    monkeypatch.chdir(tmp_path)
    os.mkfifo(small / "kim.ipynb")
    actual = {f["student"]: f["points"] for f in grade(small, "1", 0, tmp_path / "out")}
    subprocess.run(["rm", "-r", small / "otto"], check=True)  # shutil.rmtree gives up
    assert actual == {"anna": 6, "otto": 6, "kim": None}


def test_what_names_a_student_depends_on_the_kind_of_entry(small):
    hand_in(
        small,
        {
            "meier_12_99_otto_55_assignsubmission_file_.ipynb": text(),  # of Canvas, a file
            "otto_55_assignsubmission_file_/a.ipynb": text(),  # of Moodle, a folder
            "meier_12_100_1_small-1.ipynb": text(),  # handed in again
            "kim_77_1_a.ipynb": text(),
            "kim_78_1_a.ipynb": text(),  # another student of the same name
            "Zoe\u0308/1.ipynb": text(),
            "Zo\u00eb/1.ipynb": text(),
            "capital/1_SMALL.IPYNB": text(),
            "zipped/work.zip": b"PK",
        },
    )
    actual = {(s.number or s.student): s for s in grading.submissions(small, "1_small")}
    assert actual.keys() == {"12", "55", "77", "78", "Zoë", "capital", "zipped"}
    assert actual["12"].path.name == "meier_12_100_1_small-1.ipynb"
    assert actual["55"].path.parent.name == "otto_55_assignsubmission_file_"
    assert actual["77"].student == actual["78"].student == "kim"
    assert actual["77"].key != actual["78"].key
    assert actual["Zoë"].path is None and "2 submissions have this name" in actual["Zoë"].why
    assert actual["capital"].path.name == "1_SMALL.IPYNB"
    assert "a zip was handed in; unpack it" in actual["zipped"].why


def test_a_copy_of_an_earlier_variant_is_named_and_the_others_are_graded(small, tmp_path, capsys):
    old = text().replace('"variant": {}', '"variant": 3')
    assert old != text()
    hand_in(small, {"anna/1_small.ipynb": text(), "otto/1_small.ipynb": old})
    actual = {f["student"]: f["points"] for f in grade(small, "1", 0, tmp_path / "out")}
    assert actual == {"anna": 6, "otto": 6}  # the small assignment has no variants
    printed = capsys.readouterr().out
    assert "otto: the notebook is of variant 3, perhaps a copy of an earlier year's" in printed
    assert "anna:" not in printed


def test_a_byte_order_mark_and_a_cell_split_in_two_are_read(small, tmp_path):
    notebook = nbformat.reads(text(), 4)
    place = next(k for k, c in enumerate(notebook.cells) if c.metadata.nbgrader.grade_id == "f")
    second = nbformat.from_dict(notebook.cells[place])  # as JupyterLab splits a cell
    second.id = "more"
    notebook.cells[place].source = "def square(x):\n    return x * x"
    second.source = "def f(x):\n    return square(x)"
    notebook.cells.insert(place + 1, second)
    marked = b"\xef\xbb\xbf" + nbformat.writes(notebook).encode()
    hand_in(small, {"anna/1_small.ipynb": marked})
    (actual,) = grade(small, "1", 0, tmp_path / "out")
    assert actual["points"] == 6 and "all of them ran, in order" in actual["notes"][0]


GIVEN = "from operator import pos\ndef value(f, x):\n    return pos(f(x))"
FROM_NANO = "from nano import Op\ndef value(f, x):\n    return Op('f', f, None).eager(x)"
REWRITE = """
def rewritten(lines):
    return ["def value(f, x): return x * x"] if "def value" in "".join(lines) else lines
get_ipython().input_transformers_post.append(rewritten)"""
FAKE = """
class Op:
    def __init__(self, *arguments):
        self.eager = lambda x: x * x
"""


@pytest.mark.parametrize(
    ("given", "first", "last"),
    [
        (GIVEN, "", "value = 9"),
        (GIVEN, "", "def value(f, x):\n    return x * x"),
        (GIVEN, "", "value.__globals__['value'] = lambda f, x: x * x"),
        (GIVEN, "", "value.__code__ = (lambda f, x: x * x).__code__"),
        (GIVEN, "", "k = iter([9, 16])\nvalue.__globals__['pos'] = lambda y: next(k)"),
        (GIVEN, REWRITE, ""),
        (FROM_NANO, f"import nano\n{FAKE}\nnano.Op = Op", ""),
        (FROM_NANO, f"open('nano.py', 'w').write({FAKE!r})", ""),
        (FROM_NANO, f"import sys\n{FAKE}\nsys.modules['nano'] = type('M', (), {{'Op': Op}})", ""),
    ],
)  # fmt: skip
def test_given_helpers_keep_their_meaning(given, first, last):
    """A student's cell can neither break a helper of the tests nor replace it."""
    source = assignment()
    source.cells.insert(1, cell("helper", {"locked": True}, given))
    source.cells[-1].source = "assert value(f, 3) == 9 and value(f, 4) == 16"
    first, last = cell("first", {}, first), cell("last", {}, last)
    theirs = [first, *source.cells, last]
    right = judged(source, theirs)
    assert right["tests"][-1]["points"] == 2, right
    wrong = [first] + [c for c in source.cells if c.metadata.nbgrader.grade_id != "f"]
    wrong += [cell("f", {"solution": True}, "def f(x):\n    return 1"), last]
    assert judged(source, wrong)["tests"][-1]["points"] == 0


@pytest.mark.skipif(os.name == "nt", reason="no signals")
def test_a_grader_killed_twice_changes_no_mark(tmp_path):
    """Killed in the middle and started again, it gives the marks of an undisturbed run."""
    right = chosen(source("1"), 0)
    blank = copy.deepcopy(right)
    for one in blank.cells:
        if kind(one) == "solution":
            one.source = "pass"
    endless = copy.deepcopy(right)
    endless.cells.append(cell("mine", {}, "import os\nos.kill(os.getppid(), 9)\nos._exit(0)"))
    marks = []
    texts = [nbformat.writes(one) for one in (right, blank, endless)]
    for place in ("killed", "undisturbed"):
        hand_in(tmp_path / place, {f"{k}/1_autograd.ipynb": texts[k % 3] for k in range(6)})
        command = [
            sys.executable,
            "-m",
            "minihybrid_course.grading.grade",
            tmp_path / place,
            "--assignment",
            "1",
        ]
        for stop in (2, 4) if place == "killed" else ():
            grader = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
            while len(list((tmp_path / f"{place}-graded/known").glob("*.json"))) < stop:
                assert grader.poll() is None
                time.sleep(0.02)
            grader.kill()
            grader.wait()
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        rows = table(tmp_path / f"{place}-graded/marks.csv")
        marks.append([(row[3], row[9]) for row in rows[1:]])
    assert marks[0] == marks[1] == [(str(k), ("21", "0", "21")[k % 3]) for k in range(6)]


@pytest.mark.skipif(os.name == "nt", reason="no signals")
def test_a_killed_grader_leaves_no_process_and_no_folder(small, tmp_path):
    slow = f"import time\nname = 'left-{os.getpid()}'\ntime.sleep(50)"
    hand_in(small, {"anna/1_autograd.ipynb": text(f=slow)})
    before = set(os.listdir(tempfile.gettempdir()))
    command = [
        sys.executable,
        "-m",
        "minihybrid_course.grading.grade",
        str(small),
        "--assignment",
        "1",
    ]
    grader = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def workers():
        actual = []
        for place in Path("/proc").iterdir():
            try:
                words = (place / "cmdline").read_bytes() if place.name.isdigit() else b""
            except OSError:
                continue
            if b"worker.py" in words or b"minihybrid_course.grading.judge" in words:
                actual.append(place.name)
        return set(actual)

    others = workers()
    while not (new := workers() - others):
        assert grader.poll() is None, grader.stdout.read()
        time.sleep(0.05)
    grader.kill()
    grader.wait()
    while new & workers():  # a hang here is the failure
        time.sleep(0.05)
    assert {n for n in set(os.listdir(tempfile.gettempdir())) - before if "sandbox" in n} == set()
    grader.stdout.close()
