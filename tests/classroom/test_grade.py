"""A folder of submissions: marks as tables, a page each; graded once, and where it stopped."""

import csv
import json

import nbformat
import pytest
from small_assignment import WRONG, assignment, text

from classroom import grade as grading
from classroom.grade import grade, submission_of
from classroom.sources import ClassroomError

pytestmark = pytest.mark.slow


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
        "Łukasz Żółć": ["3", "6"],
        "山田太郎": ["6", "6"],
        "meier": ["4", "6"],
        "'=HYPERLINK(1)": ["6", "6"],
        "broken": ["0", "6"],
        "nothing": ["0", "6"],
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
    assert "no notebook that can be read" in pages["broken"]
    assert "no notebook was handed in" in pages["nothing"]
    assert all("http" not in page for page in pages.values())


def test_a_submission_is_graded_once_and_again_when_it_changed(folder, tmp_path, monkeypatch):
    asked = []
    real = grading.graded
    monkeypatch.setattr(grading, "graded", lambda *a: asked.append(a[1].name) or real(*a))
    first = grade(folder, "1", 0, tmp_path / "out")
    assert len(asked) == 6
    assert grade(folder, "1", 0, tmp_path / "out") == first and len(asked) == 6
    (folder / "anna/1_small.ipynb").write_text(text(**WRONG))
    again = grade(folder, "1", 0, tmp_path / "out")
    assert len(asked) == 7
    assert [a for a, b in zip(again, first, strict=True) if a != b][0]["student"] == "anna"


def test_it_goes_on_where_it_was_stopped(folder, tmp_path, monkeypatch):
    asked = []
    real = grading.graded

    def stopping(*args):
        asked.append(args[1])
        if len(asked) == 3:
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
    found = submission_of(tmp_path / "anna", "1_small")
    assert found.path is None and "1_small.ipynb" in found.why


def test_a_variant_that_was_forgotten_is_asked_for(folder, tmp_path, monkeypatch, capsys):
    """Who forgets VARIANT=7 would give nobody any marks."""
    for path in folder.rglob("1_small.ipynb"):
        notebook = nbformat.reads(text(), 4)
        notebook.metadata.variant = 7
        nbformat.write(notebook, path)
    asked = grading.options().parse_args([str(folder), "--assignment", "1"])
    with pytest.raises(SystemExit, match="4 of 7 submissions are of variant 7.*VARIANT=7"):
        grading.main(asked)
    assert not (tmp_path / f"{folder.name}-graded").exists()
    asked.variant = 7
    (folder / "Łukasz.zip").touch()
    grading.main(asked)
    said = capsys.readouterr().out
    assert "7 submissions" in said and "neither folder nor notebook: Łukasz.zip\n" in said
    assert "\nbroken: This was not graded: the file is no" in said


def test_words_that_make_leaves_out_are_asked_for(capsys):
    for words, wanted in {
        ("", "--assignment", "1"): "name the folder of submissions",
        ("in", "--assignment", ""): "name one of 1_autograd, ",
    }.items():
        with pytest.raises(SystemExit):
            grading.options().parse_args(words)
        assert wanted in capsys.readouterr().err
