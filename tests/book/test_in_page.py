"""Cells that run in the page: what they print there is what the page shows."""

import json
import subprocess
import sys
import tomllib

import pytest
from marks import external
from nbformat import read
from run_notebooks import ROOT
from test_sanitize import sanitized

CHAPTERS = tomllib.loads((ROOT / "book/in_page.toml").read_text(encoding="utf-8"))
# "27_tiling_a_product": its simulated threads take minutes.
FIRST = ["00_tour", "03_hybridize", "09_export"]  # the others are for `make test-all`

# What differs, and what the page's Python says there instead.
ELSE = {
    ("07_training", "c21"): "disabling monitor support",  # tqdm's, which wants a thread
    ("09_export", "c31"): "onnx is left out: export to ONNX needs the library onnx, which is not",
} | {
    (stem, "nano-s"): "nano: Numba is missing, so chains stay operators"
    for stem in ("21_the_memory_planner", "22_files", "26_from_two_kernels_to_one")
}


def outputs(cell_outputs):
    """What nbval compares: kind -> the texts of that kind; pictures are only counted."""
    found = {}
    for output in cell_outputs:
        if output["output_type"] == "stream":
            found.setdefault(output["name"], []).append(output["text"])
        elif output["output_type"] == "error":
            found.setdefault("error", []).append(f"{output['ename']}: {output['evalue']}")
        else:
            for kind, value in output["data"].items():
                found.setdefault(kind, []).append("" if kind == "image/png" else value)
    return {kind: [sanitized("".join(t)) for t in texts] for kind, texts in found.items()}


def differing(stem, libraries):
    """(id, what the page shows, what the cell gives there) of cells where these differ."""
    path = ROOT / f"notebooks/{stem}.ipynb"
    done = subprocess.run(
        [sys.executable, ROOT / "tests/in_page.py", path, *libraries],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    cells = [cell for cell in read(path, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.id for cell in cells] == list(told)
    for cell in cells:
        shown, given = outputs(cell.outputs), outputs(told[cell.id])
        if "nbval-ignore-output" in cell.metadata.get("tags", []):  # as in the book: kinds only
            shown, given = set(shown), set(given)
        if shown != given:
            yield cell.id, shown, given


@pytest.mark.slow
@pytest.mark.parametrize("stem", [*FIRST, *external(*sorted(set(CHAPTERS) - {*FIRST}))])
def test_a_chapter_runs_in_the_page(stem):
    found = list(differing(stem, CHAPTERS[stem]["libraries"]))
    for cell, sentence in [(c, s) for (chapter, c), s in ELSE.items() if chapter == stem]:
        (given,) = [given for name, _, given in found if name == cell]
        assert sentence in str(given)
    assert [case for case in found if (stem, case[0]) not in ELSE] == []


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
    told = {name: str(outputs(found)) for name, found in json.loads(done.stdout).items()}
    assert "No module named 'numba'" in told["numba"] and "'scipy'" in told["scipy"]
    assert "can't start new thread" in told["thread"]
    assert "does not support processes" in told["process"]
    assert "no attribute 'fork'" in told["fork"] and "Error" in told["workers"]
    assert told["cpu"] == "{'text/plain': ['1']}"
