"""What happens in Google's Colab: the setup cell changes nothing, and every cell runs."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import envs
import make_setup
import pytest
import wheel_notebooks
from run_notebooks import ROOT

NOTEBOOKS = [
    path
    for folder in ("", "build/", "recipes/")
    for path in sorted(ROOT.glob(f"notebooks/{folder}*.ipynb"))
]
SETS = tomllib.loads((ROOT / "tests/matrix.toml").read_text(encoding="utf-8"))
RUNTIMES = ["july", "august"]
KERNEL = ["ipython==7.34.0", "ipykernel==6.17.1"]  # both runtimes have these

pytestmark = pytest.mark.external


def run(*command):
    """What a command prints; neither the tests' own path nor a cache is used."""
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        command, env=variables, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment(folder, version):
    """A new environment of a Python, or a skip that says which one is not here."""
    try:
        base = envs.base_python(version)
    except envs.NotAvailable as reason:
        pytest.skip(f"no notebook was tried: {reason}")
    run(base, "-m", "venv", folder)
    return folder / "bin/python"


def pack(folder):
    inside = folder / "repository/minihybrid-HEAD"
    for name in ("minihybrid", "course"):
        shutil.copytree(ROOT / name, inside / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, inside)
    shutil.make_archive(folder / "HEAD", "zip", folder / "repository")
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, inside)


@pytest.fixture
def sources(once):
    """A folder with a wheel of ours and the archive of a repository."""
    return once("colab-sources", pack)


@pytest.fixture
def colab(request, sources, once):
    """Python with the packages of a runtime that minihybrid uses, and its wheel."""

    def install(folder):
        versions = dict(SETS[f"colab-{request.param}"])
        python = environment(folder / "env", versions.pop("python"))
        pins = [f"{name}=={version}" for name, version in versions.items() if name != "pytest"]
        run(python, "-m", "pip", "install", "-q", *KERNEL, *pins, *sources.glob("*.whl"))

    return once(f"colab-{request.param}", install) / "env/bin/python"


# Each notebook in one runtime, by turns: both together take twice as long, and the packages
# whose versions differ are NumPy and Numba, which every notebook uses.
@pytest.mark.parametrize(
    "path, colab",
    [(path, RUNTIMES[k % 2]) for k, path in enumerate(NOTEBOOKS)],
    ids=lambda value: f"{value.parent.name}/{value.stem}" if isinstance(value, Path) else value,
    indirect=["colab"],
)
def test_a_notebook_runs_alone(path, colab, tmp_path):
    """And cells of a chapter may run twice in a row, as a reader's may; not those of training."""
    again_s = 0 if path.parent.name == "build" else 1
    assert wheel_notebooks.problems_of(path, colab, tmp_path, again_s) == []


# -- what pip would do -----------------------------------------------------------------
def listed(runtime):
    """name -> version, of all that a runtime has."""
    text = (ROOT / f"tests/colab/{runtime}.txt").read_text(encoding="utf-8")
    return dict(line.split("==") for line in text.splitlines() if not line.startswith("#"))


@pytest.fixture(params=RUNTIMES)
def runtime(request, once):
    """(Python that takes all packages of a runtime for installed, their names)."""
    versions = listed(request.param)
    assert len(versions) > 600

    def claim(folder):
        environment(folder / "env", SETS[f"colab-{request.param}"]["python"])
        (packages,) = folder.glob("env/lib/python*/site-packages")
        for name, version in versions.items():
            if name != "pip":  # is there, and works
                info = packages / f"{re.sub('[-.]', '_', name)}-{version}.dist-info"
                info.mkdir()
                text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
                (info / "METADATA").write_text(text)

    folder = once(f"colab-{request.param}-listed", claim)
    return folder / "env/bin/python", {normal(name) for name in versions}


def normal(name):
    return re.sub("[-_.]+", "-", name).lower()


def changed(python, *expected):
    """name -> address, of what pip would install."""
    report = run(
        python, "-m", "pip", "install", "-q", "--dry-run", "--report", "-", *map(str, expected)
    )
    return {
        normal(entry["metadata"]["name"]): entry["download_info"]["url"]
        for entry in json.loads(report)["install"]
    }


def test_the_archive_changes_nothing(runtime, sources):
    python, names = runtime
    actual = changed(python, make_setup.requirement("03_hybridize").replace(*home(sources)))
    assert list(actual) == ["minihybrid"] and actual["minihybrid"].endswith("HEAD.zip")


def test_the_index_changes_nothing(runtime, sources):
    python, names = runtime
    index = sources / "simple/minihybrid"
    index.mkdir(parents=True, exist_ok=True)
    (wheel,) = sources.glob("*.whl")
    (index / "index.html").write_text(f'<a href="{wheel.as_uri()}">{wheel.name}</a>')
    expected = make_setup.requirement("03_hybridize", on_index=True)
    actual = changed(python, "--isolated", "--index-url", index.parent.as_uri(), expected)
    assert actual == {"minihybrid": wheel.as_uri()}


def test_what_two_chapters_need_changes_nothing(runtime, sources):
    python, names = runtime
    expected = make_setup.requirement("23_other_engines").replace(*home(sources)).strip('"')
    actual = changed(python, expected)
    assert {"minihybrid", "onnx", "onnxruntime"} <= set(actual)
    assert set(actual) & names == set()


def home(sources):
    """The repository's address, and that of the archive here."""
    return f"{make_setup.PROJECT['urls']['Repository']}/archive", Path(sources).as_uri()
