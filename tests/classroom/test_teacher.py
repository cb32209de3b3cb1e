"""What a teacher does after grading: changes marks, reads about the class, hands back."""

import csv
import json
import os
import subprocess
import sys
import zipfile

import nbformat
import pytest
from minihybrid_course.grading import adjust, feedback, gradescope, report, sandbox
from minihybrid_course.grading import grade as grading
from minihybrid_course.grading.check import check
from minihybrid_course.grading.grade import grade
from minihybrid_course.grading.judge import program
from minihybrid_course.grading.sandbox import UNSAFE, isolation
from minihybrid_course.grading.sources import (
    CHECK,
    ROOT,
    ClassroomError,
    chosen,
    kind,
    roster,
    source,
)
from small_assignment import WRONG, assignment, isolated, text

pytestmark = pytest.mark.slow
FOLDERS = {
    "Anna_4711_assignsubmission_file_/1_small.ipynb": text(),
    "Łukasz Żółć_4712_assignsubmission_file_/1_small.ipynb": text(**WRONG),
    "meier_LATE_12_99_1_small.ipynb": text(g=""),
    "kim/1_small.ipynb": text(),
    "broken.ipynb": "{",
}


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.setattr(grading, "source", lambda name: assignment())
    monkeypatch.setattr(grading, "names", lambda: ["1_small"])
    folder = tmp_path / "in"
    for place, contents in FOLDERS.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(contents, encoding="utf-8")
    return folder


def run(folder, *words):
    """Grade from the command line; returns student -> row of marks.csv."""
    grading.main(grading.options().parse_args([str(folder), "--assignment", "1", *words]))
    with open(f"{folder}-graded/marks.csv", encoding="utf-8", newline="") as file:
        return {row["student_id"]: row for row in csv.DictReader(file)}


CHANGES = """\
student,item,points,comment
4712,f_hidden,2,right up to a sign
4711,essay,3/4,<b>a case</b> is missing
4712,essay,4/4,
12,essay,0/4,
kim,essay,4/4,
kim,extra,1.5,found an error
kim,late,3,
broken,total,5,graded in person
Zoë,extra,1,
"""


def test_changed_marks_survive_regrading(small, tmp_path, capsys):
    (tmp_path / "changes.csv").write_text("\ufeff" + CHANGES, encoding="utf-8")
    words = ["--adjust", str(tmp_path / "changes.csv"), "--late", "20", "--free-days", "1"]
    rows = run(small, *words)
    columns = ("raw_score", "late_submission_penalty", "score", "max_score")
    marks = {student: tuple(row[c] for c in columns) for student, row in rows.items()}
    assert marks == {
        "4711": ("9", "0", "9", "10"),
        "4712": ("9", "0", "9", "10"),  # 3 before, 2 for f_hidden, 4 by hand
        "12": ("4", "0", "4", "10"),
        "kim": ("11.5", "4.6", "6.9", "10"),  # two of three days cost 20 % each
        "broken": ("5", "0", "5", "10"),
    }
    assert "Zoë: no submission has this ID or name, so extra isn't used" in capsys.readouterr().out
    (page,) = (tmp_path / "in-graded/feedback").glob("Anna*.html")
    assert "3 of 4 points<br>&lt;b&gt;a case&lt;/b&gt; is missing" in page.read_text("utf-8")
    (small / "kim/1_small.ipynb").write_text(text(**WRONG), encoding="utf-8")
    again = run(small, *words)
    assert again.pop("kim")["raw_score"] == "8.5" and again.items() <= rows.items()
    with open(tmp_path / "in-graded/moodle.csv", encoding="utf-8", newline="") as file:
        comments = {row["Identifier"]: row["Feedback comments"] for row in csv.DictReader(file)}
    assert comments["Participant 4712"] == "lost in: f_hidden; f_hidden: right up to a sign"


def test_a_part_not_yet_graded_by_hand_leaves_the_mark_open(small, tmp_path):
    (tmp_path / "changes.csv").write_text("student,item,points,comment\nkim,essay,4/4,\n")
    rows = run(small, "--adjust", str(tmp_path / "changes.csv"))
    assert {student: row["score"] for student, row in rows.items()} == {
        "4711": "", "4712": "", "12": "", "kim": "10", "broken": "",
    }  # fmt: skip
    (page,) = (tmp_path / "in-graded/feedback").glob("Anna*.html")
    assert "not graded yet" in page.read_text("utf-8")


@pytest.mark.parametrize("points", ["", "many", "nan", "inf", "1/x", "1/"])
def test_points_that_are_no_number_are_named(points, tmp_path):
    path = tmp_path / "changes.csv"
    path.write_text(f"student,item,points,comment\nkim,extra,1,\nkim,extra,{points},\n")
    with pytest.raises(ClassroomError, match="line 3: points are a number such as 2 or 4/5"):
        adjust.changes(path)
    path.write_text("student,points\nkim,1\n")
    with pytest.raises(ClassroomError, match="no column comment, item"):
        adjust.changes(path)


# -- about the class ---------------------------------------------------------------------
def test_a_table_per_test_names_typical_wrong_answers(small, tmp_path, monkeypatch):
    wrong = '[[1_small]]\nwhy = "f is a constant."\ncell = "f"\nold = "x"\nnew = "9"\n'
    (tmp_path / "wrong.toml").write_text(wrong + 'loses = ["f_hidden"]\n')
    monkeypatch.setattr(report, "FOLDER", tmp_path)
    run(small)
    with open(tmp_path / "in-graded/tests.csv", encoding="utf-8", newline="") as file:
        rows = {row.pop("test"): tuple(row.values()) for row in csv.DictReader(file)}
    assert rows == {
        "f_seen": ("1", "4", "0", ""),
        "f_hidden": ("3", "3", "1", "1 x f is a constant."),
        "g_seen": ("2", "3", "1", ""),
    }


def test_answers_in_text_cells_are_listed_for_grading_by_hand(small, tmp_path):
    notebook = nbformat.reads(text(), 4)
    notebook.cells.append(nbformat.v4.new_markdown_cell("=<b>because</b>\ud800"))
    (small / "kim/1_small.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    run(small)
    with open(tmp_path / "in-graded/answers.csv", encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [["student", "answer"], ["kim", "'=<b>because</b>\\ud800"]]
    (page,) = (tmp_path / "in-graded/feedback").glob("kim*.html")
    assert "<pre>=&lt;b&gt;because&lt;/b&gt;\\ud800</pre>" in page.read_text("utf-8")


COPY = """\
def f(x):
    result = 0
    for step in range(10):
        if step % 2 == 0:
            result = result + x * x / 5
        elif step == 99:
            result = [result - 1, {"no": (1, 2, 3)}, lambda k: k ** 2 + 17][0]
    return result if result is not None else sorted(abs(k) for k in range(3))
"""


def test_copies_are_listed_although_names_and_comments_changed(small, tmp_path):
    pytest.importorskip("copydetect", reason="copydetect isn't installed")
    copied = (
        COPY.replace("result", "r")
        .replace("step", "k_")
        .replace("    return", "    # !\n    return")
    )
    for student, f in {"anna": COPY, "=otto": copied, "zoe": "def f(x):\n    return x * x"}.items():
        (small / student).mkdir()
        (small / student / "1_small.ipynb").write_text(text(f=f), encoding="utf-8")
    marks = run(small)
    assert marks["anna"]["score"] == marks["'=otto"]["score"] == "6"
    with open(tmp_path / "in-graded/similar.csv", encoding="utf-8", newline="") as file:
        _, *pairs = csv.reader(file)
    assert [set(pair[:2]) for pair in pairs] == [{"anna", "'=otto"}]  # no formula


# -- handing back ------------------------------------------------------------------------
def moodle_student(place):
    """(participant, plugin, file), as mod/assign/feedback/file/importziplib.php reads a path."""
    _, participant, kind, plugin, *rest = place.partition("/")[0].split("_", 4)
    return participant, (kind, plugin), "/".join([*rest, place.partition("/")[2]]).strip("/")


def canvas_student(place):
    """[user, attachment], as Canvas's infer_comment_context_from_filename reads a file name."""
    return [part for part in place.split("_") if part.isdecimal()][:2]


def test_zips_of_feedback_fit_what_moodle_and_canvas_read(small, tmp_path):
    run(small)
    with zipfile.ZipFile(tmp_path / "in-graded/feedback-moodle.zip") as file:
        places = file.namelist()
        assert "6 of 6 points" in file.read(places[0]).decode()
    plugin = ("assignfeedback", "file")
    assert sorted(map(moodle_student, places)) == [
        ("4711", plugin, "1_small.html"),
        ("4712", plugin, "1_small.html"),
    ]
    with zipfile.ZipFile(tmp_path / "in-graded/feedback-canvas.zip") as file:
        assert list(map(canvas_student, file.namelist())) == [["12", "99"]]
        assert "Not graded" not in file.read(file.namelist()[0]).decode()


# -- variants per student ----------------------------------------------------------------
def test_each_student_is_graded_as_the_variant_of_the_roster(tmp_path, capsys):
    table = tmp_path / "roster.csv"
    table.write_text("student,variant\n4711,\nkim,3\nZoe\u0308,4\n", encoding="utf-8")
    variants = roster(table, 100)
    assert variants["kim"] == 3 and variants["Zoë"] == 4 and 100 <= variants["4711"] < 127
    assert roster(table, 0)["4711"] == variants["4711"] - 100
    folder = tmp_path / "in"
    for student, variant in {"Anna_4711_assignsubmission_file_": variants["4711"], "kim": 3,
                             "Zoë": 3, "otto": 0}.items():  # fmt: skip
        (folder / student).mkdir(parents=True)
        notebook = chosen(source("1"), variant)
        nbformat.write(notebook, folder / student / "1_autograd.ipynb")
    results = grade(folder, "1", 0, tmp_path / "out", variants=variants)
    assert {r["student"]: r["points"] == r["of"] for r in results} == {
        "Anna": True, "kim": True, "Zoë": False, "otto": True,
    }  # fmt: skip
    printed = capsys.readouterr().out
    assert "Zoë: the notebook is of variant 3" in printed and "graded as 4" in printed
    assert "otto: not in the roster, so graded as variant 0" in printed


@pytest.mark.parametrize("contents", ["name\nkim\n", "student,variant\nkim,seven\n", b"\xff"])
def test_a_roster_that_cannot_be_used_is_named(contents, tmp_path):
    path = tmp_path / "roster.csv"
    path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
    with pytest.raises(ClassroomError, match="no column student|line 2: 'seven'|can't be read"):
        roster(path, 0)


def graded():
    grading.main(grading.options().parse_args())


@pytest.mark.parametrize(
    "main, words, sentence",
    [
        (graded, "no --assignment 1", "no folder"),
        (graded, ". --jobs 0", "'0' is no whole num"),
        (
            lambda: grading.main(grading.options().parse_args()),
            ". --assignment 9",
            "no assignment 9",
        ),
        (gradescope.main, "--assignment 9", "there is no assignment 9"),
        (feedback.main, "nowhere --assignment 9", "there is no assignment 9"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_sentence(main, words, sentence, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["program", *words.split()])
    with pytest.raises(SystemExit) as ended:
        main()
    last = capsys.readouterr().err or str(ended.value)
    assert sentence in last.splitlines()[-1] and ended.value.code not in (0, None)


# -- a student's own check ---------------------------------------------------------------
def visible(**texts):
    """The small assignment without its hidden test, as students get it."""
    notebook = nbformat.reads(text(**texts), 4)
    notebook.cells[3].source = "# What is asked here is tried when your work is graded."
    notebook.cells.insert(0, nbformat.v4.new_code_cell("import os"))
    return notebook


@pytest.mark.parametrize(
    ("texts", "points"),
    [({}, "3 of 3"), (WRONG, "3 of 3"), ({"g": ""}, "1 of 3"), ({"g": "def g(:"}, "1 of 3"),
     ({"g": "%time\ndef g(x):\n    return x + 2"}, "3 of 3")],
)  # fmt: skip
def test_a_student_sees_the_points_so_far(texts, points, tmp_path):
    nbformat.write(visible(**texts), tmp_path / "my.ipynb")
    *lines, last = check(tmp_path / "my.ipynb")
    assert last.startswith(f"{points} points so far; hidden tests are added")
    assert not any("f_hidden" in line for line in lines)
    if points != "3 of 3":
        assert (
            "g_seen: 0 of 2, NameError: g is not defined: its cell is empty or has failed" in lines
        )


@pytest.mark.parametrize(("g", "points"), [("def g(x):\n    return x + 2", 3), ("", 1)])
def test_a_notebook_counts_its_own_points(g, points, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    notebook, names = visible(g=g), {}
    exec('import minihybrid as mx\ndef points():\n    return mx.check("my.ipynb")', names)
    assert "my.ipynb isn't in this folder" in names["points"]().sentence
    nbformat.write(notebook, "my.ipynb")
    for cell in notebook.cells:
        if kind(cell) != "tests":
            exec(cell.source, names)
    verdict = names["points"]()
    assert verdict.right == (points == 3)
    assert f"{points} of 3 points so far" in verdict.sentence
    assert ("g_seen: 0 of 2, NameError" in verdict.sentence) == (points == 1)


def test_the_grader_skips_the_cell_that_counts_points():
    own, counts = (nbformat.v4.new_code_cell("1 / 0", id=name) for name in ("own", CHECK))
    steps, _ = program(assignment(), [own, counts])
    assert [text for name, text, _ in steps if name is None] == ["1 / 0"]


def test_checking_nothing_says_what_is_needed():
    command = [sys.executable, "-m", "minihybrid_course.grading.check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode and "name your notebook (make: NOTEBOOK=" in done.stderr


# -- Gradescope --------------------------------------------------------------------------
# https://gradescope-autograders.readthedocs.io/en/latest/specs: what results.json may hold.
VISIBLE = {"hidden", "after_due_date", "after_published", "visible"}
FORMATS = {"text", "html", "simple_format", "md", "ansi"}
SPECS = {
    "score": float, "execution_time": float, "output": str, "output_format": FORMATS,
    "test_output_format": FORMATS, "test_name_format": FORMATS, "visibility": VISIBLE,
    "stdout_visibility": VISIBLE, "extra_data": dict, "tests": list, "leaderboard": list,
}  # fmt: skip
TEST_SPECS = {
    "score": float, "max_score": float, "status": {"passed", "failed"}, "name": str,
    "name_format": FORMATS, "number": str, "output": str, "output_format": FORMATS,
    "tags": list, "visibility": VISIBLE, "extra_data": dict,
}  # fmt: skip


def fits(value, specs):
    """Whether each entry of a dict is one that the specification has."""
    for name, entry in value.items():
        spec = specs[name]
        if not (entry in spec if isinstance(spec, set) else
                isinstance(entry, (int, float) if spec is float else spec)):  # fmt: skip
            return False
    return True


@pytest.mark.parametrize(
    ("files", "score"),
    [({"1_small.ipynb": text()}, 6), ({"1_small.ipynb": text(**WRONG)}, 3), ({}, 0)],
)
def test_results_fit_the_specification_of_gradescope(files, score, tmp_path, monkeypatch):
    monkeypatch.setattr(gradescope, "source", lambda name: assignment())
    for folder in ("submission", "results"):
        (tmp_path / folder).mkdir()
    for name, contents in files.items():
        (tmp_path / "submission" / name).write_text(contents, encoding="utf-8")
    gradescope.run("1_small", 0, tmp_path)
    actual = json.loads((tmp_path / "results/results.json").read_text())
    assert fits(actual, SPECS) and all(fits(t, TEST_SPECS) for t in actual["tests"])
    assert actual["score"] == sum(t["score"] for t in actual["tests"]) == score
    shown = {t["name"]: t["visibility"] for t in actual["tests"]}
    assert shown == {"f_seen": "visible", "f_hidden": "after_due_date", "g_seen": "visible"}
    assert bool(files) or "no notebook was handed in" in actual["output"]


def test_the_zip_for_gradescope_grades_on_its_own(tmp_path):
    """Unpacked elsewhere, and without the repository, it grades a right submission."""
    gradescope.build("1_autograd", 7, tmp_path / "auto.zip")
    home = tmp_path / "autograder"
    for folder in ("submission", "results"):
        (home / folder).mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "auto.zip") as file:
        assert {"setup.sh", "run_autograder"} <= set(file.namelist())
        file.extractall(home / "source")
    nbformat.write(chosen(source("1"), 7), home / "submission/1_autograd.ipynb")
    code = f"from pathlib import Path; from minihybrid_course.grading import gradescope as g; " \
           f"assert Path(g.__file__).is_relative_to({str(home)!r}); " \
           f"g.run('1_autograd', 7, Path({str(home)!r}))"  # fmt: skip
    path = os.pathsep.join([str(home / "source"), str(home / "source/course")])
    env = os.environ | {"PYTHONPATH": path, "UNSAFE": "1"}
    subprocess.run([sys.executable, "-c", code], cwd=home / "source", env=env, check=True)
    actual = json.loads((home / "results/results.json").read_text())
    assert actual["score"] == 21, actual
    for script in ("setup.sh", "run_autograder"):
        subprocess.run(["bash", "-n", home / "source" / script], check=True)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="root alone can do this")
def test_without_a_sandbox_roots_files_stay_closed(tmp_path, monkeypatch):
    """As in Gradescope's container: the student's code is another user."""
    monkeypatch.setattr(sandbox, "BWRAP_PROGRAM", "no-such-program")
    monkeypatch.setenv("UNSAFE", "1")
    isolation.cache_clear()
    try:
        if isolation() != (UNSAFE, True):
            pytest.skip("other users can't run this Python")
        (tmp_path / "secret").write_text("the tests")
        (tmp_path / "secret").chmod(0o600)
        with sandbox.Sandbox(isolation()) as one:
            one.ask({"run": "open('mine', 'w').write('x')"}, 60)
            with pytest.raises(sandbox.StudentError, match="Permission denied"):
                one.ask({"run": f"open({str(tmp_path / 'secret')!r})"}, 60)
    finally:
        isolation.cache_clear()


def test_without_seccomp_unsafe_is_still_a_choice(monkeypatch):
    """A missing library refused to grade, even where UNSAFE=1 was set."""

    def missing():
        raise ClassroomError("the sandbox needs pyseccomp")

    monkeypatch.setattr(sandbox, "seccomp_filter", missing)
    isolation.cache_clear()
    try:
        if isolated():
            pytest.fail("the filter isn't used")
        monkeypatch.setenv("UNSAFE", "1")
        assert isolation()[0] == UNSAFE
    finally:
        isolation.cache_clear()
