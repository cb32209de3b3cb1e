"""Cells that run in the page: what they print there is what the page shows."""

import json
import shutil
import subprocess
import sys

import envs
import make_lite
import pyodide_core
import pytest
from page_outputs import (
    CHAPTERS,
    ELSE,
    code,
    differing,
    differing_on_purpose,
    outputs,
    reversed_claims,
)
from run_notebooks import ROOT

# "27_tiling_a_product": its simulated threads take minutes.
FIRST = ["00_tour", "03_hybridize", "09_export"]  # all run in Pyodide itself, in `make test-all`


def printed(stem, *command):
    """What a process prints last: cell id -> its outputs, of each code cell of a chapter."""
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    results = json.loads(done.stdout.splitlines()[-1])
    assert [cell.id for cell in code(stem)] == list(results)
    return results


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

    def run():
        names = ",".join(sorted(libraries))
        return printed(stem, node, program, distribution, path, names, *wheels)

    results = run()
    assert [c for c in differing(stem, results) if c[0] not in differing_on_purpose(stem)] == []
    claims = {claim[:2] for claim in reversed_claims(stem, results)}
    for _ in range(2):  # on a busy machine, one run may reverse a ratio
        claims = claims and claims & {claim[:2] for claim in reversed_claims(stem, run())}
    assert claims == set()


def test_a_claim_that_is_reversed_is_found():
    cells = {cell.id: cell.outputs for cell in code("10_the_same_idea_elsewhere")}
    assert list(reversed_claims("10_the_same_idea_elsewhere", cells)) == []
    slower = [{"output_type": "stream", "text": "hybridized: about 0.9 times as fast as eager"}]
    (claim,) = reversed_claims("10_the_same_idea_elsewhere", cells | {"c57": slower})
    assert claim[0] == "c57" and claim[2] == 0.9


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
