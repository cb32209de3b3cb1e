"""The wheel and the source distribution: checked, and tried where nothing else is."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ["build==1.6.1", "twine==7.0.0", "check-wheel-contents==0.6.3"]
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", ".nox", "_build", "build", "dist", "*.egg-info", "__pycache__", "envs"
)

pytestmark = pytest.mark.external


def run(*command, **settings):
    """What a command prints; the tests' own path is not its path."""
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        command, env=variables, capture_output=True, text=True, check=False, **settings
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment(folder, *packages):
    """Python of a new environment."""
    run(sys.executable, "-m", "venv", folder)
    run(python_in(folder), "-m", "pip", "install", "--quiet", *packages)
    return python_in(folder)


def python_in(folder):
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def build(folder):
    """Fill a folder with an environment of the tools and the two distributions."""
    shutil.copytree(ROOT, folder / "sources", ignore=LEFT_OUT)
    python = environment(folder / "tools", *TOOLS)
    run(python, "-m", "build", "--outdir", folder / "dist", folder / "sources")


@pytest.fixture
def built(once):
    """(Python with the tools, wheel, source distribution)."""
    folder = once("packaging", build)
    (wheel,), (sdist,) = (folder.glob(f"dist/*{end}") for end in (".whl", ".tar.gz"))
    return python_in(folder / "tools"), wheel, sdist


def test_the_tools_find_nothing(built):
    python, wheel, sdist = built
    output = run(python, "-m", "twine", "check", "--strict", wheel, sdist)
    assert output.count("PASSED") == 2
    check = (python, "-m", "check_wheel_contents", "--toplevel", "minihybrid,minihybrid_course")
    assert run(*check, wheel).endswith("OK\n")


def test_the_wheel_is_the_package_and_nothing_else(built):
    names = {name for name in zipfile.ZipFile(built[1]).namelist() if ".dist-info/" not in name}
    expected = {
        path.relative_to(root).as_posix()
        for root, package in ((ROOT, "minihybrid"), (ROOT / "course", "minihybrid_course"))
        for path in (root / package).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert names == expected and len(names) > 200


def test_tests_run_from_the_source_distribution(built, tmp_path):
    with tarfile.open(built[2]) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    inside = {path.relative_to(folder / "tests") for path in (folder / "tests").rglob("*.py")}
    assert inside == {path.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("*.py")}
    tests = ["tests/engine/test_nd.py", "tests/book/test_matrix.py"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    assert " passed" in run(*command, *tests, cwd=folder)


def test_the_wheel_runs_in_an_empty_environment(built, tmp_path):
    python = environment(tmp_path / "empty", built[1])
    output = run(python, "-m", "minihybrid", cwd=tmp_path)
    assert f"in {tmp_path}" in output and "missing; " not in output
