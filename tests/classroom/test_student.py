"""As a student works: in a folder with an odd name, with Colab's versions, without a GPU.

What is handed out is filled in with the reference, run by the student's Python, saved, and
handed in: every visible test passes there, and the grader gives full marks.
"""

import json
import os
import shutil
import subprocess

import nbclient
import nbformat
import pytest
from envs import TOOLCHAINS, NotAvailable, python_of
from minihybrid_course.grading.judge import graded
from minihybrid_course.grading.sources import ROOT, chosen, id_of, kind, names, source

pytestmark = pytest.mark.external
ELSEWHERE = ROOT / "tests/classroom/elsewhere"
VARIANT = 7
FOLDER = "Übungen für Zoë, Teil 1 (neu)"


def python(name):
    try:
        return python_of(name)
    except NotAvailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """The student's folder with what was handed out."""
    folder = tmp_path_factory.mktemp("home") / FOLDER
    command = [
        "-m",
        "minihybrid_course.grading.release",
        "--variant",
        str(VARIANT),
        "--out",
        folder,
    ]
    subprocess.run([python("nbgrader"), *command], cwd=ROOT, check=True, capture_output=True)
    return folder


def solve(desk, name, place):
    """Fill in a copy of what was handed out, in a folder of its own; returns its path."""
    texts = {id_of(c): c.source for c in chosen(source(name), VARIANT).cells}
    notebook = nbformat.read(desk / f"{name}.ipynb", 4)
    for cell in notebook.cells:
        if kind(cell) == "solution":
            cell.source = texts[id_of(cell)]
    folder = place / FOLDER / name
    folder.mkdir(parents=True)
    shutil.copy(desk / "nano.py", folder)
    nbformat.write(notebook, folder / f"{name}.ipynb")
    return folder / f"{name}.ipynb"


def ran(interpreter, path):
    """What as_student.py prints for a notebook."""
    env = os.environ | {
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'course'}",
        "CUDA_VISIBLE_DEVICES": "",
    }
    command = [interpreter, ELSEWHERE / "as_student.py", path.name]
    done = subprocess.run(command, cwd=path.parent, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", names())
def test_with_the_versions_of_colab(name, desk, tmp_path):
    path = solve(desk, name, tmp_path)
    *warnings, last = ran(python("colab"), path)
    actual = json.loads(last)
    assert actual["failed"] == [] and warnings == []
    for package in ("numpy", "numba"):
        assert f"{package}=={actual[package]}" in TOOLCHAINS["colab"][1]
    marks = graded(chosen(source(name), VARIANT), path, tmp_path)
    assert marks["points"] == marks["of"] and marks["notes"] == []


@pytest.mark.parametrize("name", ["1_autograd", "6_kernels"])
def test_in_a_kernel_of_jupyter(name, desk, tmp_path):
    path = solve(desk, name, tmp_path)
    notebook = nbformat.read(path, 4)
    client = nbclient.NotebookClient(
        notebook,
        timeout=600,
        startup_timeout=600,
        resources={"metadata": {"path": str(path.parent)}},
    )
    client.execute()
    nbformat.write(notebook, path)
    marks = graded(chosen(source(name), VARIANT), path, tmp_path)
    assert marks["points"] == marks["of"] and marks["cells"] == []


@pytest.mark.parametrize("name", names())
def test_what_is_handed_out_says_what_is_missing(name, desk):
    """Nothing but tests and cells that need a solution fails, and tests say why in words."""
    *_, last = ran(python("colab"), desk / f"{name}.ipynb")
    kinds = {id_of(c): kind(c) for c in source(name).cells}
    failed = dict(json.loads(last)["failed"])
    assert failed and {kinds[k] for k in failed} <= {"tests"}
    assert all(len(text) > 20 for text in failed.values())


def test_without_nano_a_student_is_told_where_it_goes(desk, tmp_path):
    shutil.copy(desk / "1_autograd.ipynb", tmp_path)
    first, *_ = ran(python("colab"), tmp_path / "1_autograd.ipynb")
    assert first.startswith("nano.py is missing: put it beside this notebook (in Colab")
