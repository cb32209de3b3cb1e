"""Cells that run in the page: what they print there is what the page shows."""

import json
import re
import shutil
import subprocess
import sys
import tomllib

import envs
import make_lite
import pyodide_core
import pytest
from nbformat import read
from run_notebooks import ROOT
from test_sanitize import sanitized

CHAPTERS = tomllib.loads((ROOT / "book/in_page.toml").read_text(encoding="utf-8"))
# "27_tiling_a_product": its simulated threads take minutes.
FIRST = ["00_tour", "03_hybridize", "09_export"]  # all run in Pyodide itself, in `make test-all`

# What differs, and what the page's Python says there instead.
ELSE = {
    ("07_training", "c21"): "disabling monitor support",  # tqdm's, which wants a thread
    ("09_export", "c31"): "onnx is left out: export to ONNX needs the library onnx, which is not",
} | {
    (stem, "nano-s"): "nano: Numba is missing, so chains stay operators"
    for stem in (
        "21_the_memory_planner",
        "22_files",
        "26_from_two_kernels_to_one",
        "29_guards_and_shapes",
        "36_effects_and_aliasing",
        "37_many_devices",
    )
}

# What differs in Pyodide, where kernels are WebAssembly.
THERE = {
    ("03_hybridize", "c30"),  # dropout draws its mask in NumPy, and the plan says so
    ("11_arrays_and_autograd", "c80"),  # the last digit of a logarithm
    ("07_training", "c33"),  # NumPy computes a gradient whose kernel transposes vectors
    ("16_trusting_passes", "c60"),  # tqdm's warning, as above
}
# What chapters say is faster: there it is, too.
FASTER = {
    ("00_tour", "a14"): r"about ([\d.]+) times as fast",
    ("03_hybridize", "c85"): r"^5 elements: ([\d.]+) x faster",
    ("10_the_same_idea_elsewhere", "c57"): r"about ([\d.]+) times as fast as eager",
}


def outputs(cell_outputs):
    """What nbval compares: kind -> the texts of that kind; pictures are only counted."""
    actual = {}
    for output in cell_outputs:
        if output["output_type"] == "stream":
            actual.setdefault(output["name"], []).append(output["text"])
        elif output["output_type"] == "error":
            actual.setdefault("error", []).append(f"{output['ename']}: {output['evalue']}")
        else:
            for kind, value in output["data"].items():
                actual.setdefault(kind, []).append("" if kind == "image/png" else value)
    return {kind: [sanitized("".join(t)) for t in texts] for kind, texts in actual.items()}


def printed(stem, *command):
    """What a process prints last: cell id -> its outputs, of each code cell of a chapter."""
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    results = json.loads(done.stdout.splitlines()[-1])
    assert [cell.id for cell in code(stem)] == list(results)
    return results


def code(stem):
    """The code cells of a chapter."""
    cells = read(ROOT / f"notebooks/{stem}.ipynb", as_version=4).cells
    return [cell for cell in cells if cell.cell_type == "code"]


def differing(stem, results):
    """(id, what the page shows, what the cell gives there) of cells where these differ."""
    for cell in code(stem):
        shown, given = outputs(cell.outputs), outputs(results[cell.id])
        if "nbval-ignore-output" in cell.metadata.get("tags", []):  # as in the book: kinds only
            shown, given = set(shown), set(given)
        if shown != given:
            yield cell.id, shown, given


@pytest.mark.slow
@pytest.mark.parametrize("stem", FIRST)
def test_a_chapter_runs_in_the_page(stem):
    page = ROOT / "tests/in_page.py", ROOT / f"notebooks/{stem}.ipynb"
    results = printed(stem, sys.executable, *page, *CHAPTERS[stem]["libraries"])
    actual = list(differing(stem, results))
    for cell, sentence in [(c, s) for (chapter, c), s in ELSE.items() if chapter == stem]:
        (given,) = [given for name, _, given in actual if name == cell]
        assert sentence in str(given)
    assert [case for case in actual if (stem, case[0]) not in ELSE] == []


@pytest.fixture(scope="module")
def pyodide(tmp_path_factory):
    """(node, the folder of Pyodide's distribution, the wheels of the site)."""
    folder = tmp_path_factory.mktemp("pyodide")
    if not (node := shutil.which("node")):
        pytest.skip("NOT CHECKED: there is no node; install Node.js 20 or newer")
    try:
        distribution = pyodide_core.whole(folder)
        pyodide_core.download(folder, "tqdm")
    except envs.NotAvailable as reason:
        pytest.skip(f"NOT CHECKED: Pyodide: {reason}")
    make_lite.wheel(folder)
    return node, distribution, sorted(folder.glob("*.whl"))


@pytest.mark.external
@pytest.mark.parametrize("stem", sorted(CHAPTERS))
def test_a_chapter_runs_in_pyodide(stem, pyodide, tmp_path):
    """As the site has it: its own first cell, the wheel of the engine, kernels in WebAssembly."""
    node, distribution, wheels = pyodide
    path = tmp_path / "chapter.ipynb"
    text = (ROOT / f"notebooks/{stem}.ipynb").read_text(encoding="utf-8")
    path.write_text(make_lite.in_page(text, stem), encoding="utf-8")
    libraries = {"numpy", *CHAPTERS[stem]["libraries"]} - {"tqdm"}
    program = ROOT / "tests/in_pyodide.mjs"
    results = printed(stem, node, program, distribution, path, ",".join(sorted(libraries)), *wheels)
    known = ELSE.keys() | THERE
    assert [case for case in differing(stem, results) if (stem, case[0]) not in known] == []
    shown = {cell.id: cell.outputs for cell in code(stem)}
    for cell in [cell for chapter, cell in FASTER if chapter == stem]:
        for cells in (shown, results):
            text = "".join(output.get("text", "") for output in cells[cell])
            (ratio,) = re.findall(FASTER[stem, cell], text)
            assert float(ratio) > 1


@pytest.mark.slow
def test_what_a_page_lacks_is_missing(tmp_path):
    """The process of these tests has no Numba, no threads and no processes."""
    cells = {
        "numba": "import numba",
        "scipy": "import scipy.special",
        "thread": "import threading; threading.Thread(target=print).start()",
        "process": "import subprocess; subprocess.run(['true'])",
        "fork": "import os; os.fork()",
        "workers": "import multiprocessing; multiprocessing.Pool(1)",
        "cpu": "import os; os.cpu_count()",
    }
    path = tmp_path / "cells.ipynb"
    path.write_text(
        json.dumps(
            {"cells": [{"cell_type": "code", "id": k, "source": [v]} for k, v in cells.items()]}
        )
    )
    done = subprocess.run(
        [sys.executable, ROOT / "tests/in_page.py", path],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    texts = {name: str(outputs(actual)) for name, actual in json.loads(done.stdout).items()}
    assert "No module named 'numba'" in texts["numba"] and "'scipy'" in texts["scipy"]
    assert "can't start new thread" in texts["thread"]
    assert "does not support processes" in texts["process"]
    assert "no attribute 'fork'" in texts["fork"] and "Error" in texts["workers"]
    assert texts["cpu"] == "{'text/plain': ['1']}"
