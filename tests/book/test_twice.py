"""Cells of the chapters that run twice in a row, as a reader's may."""

import copy

import nbformat
import pytest
from marks import external
from nbclient import NotebookClient
from run_notebooks import ROOT
from test_notebooks_static import NOTEBOOKS, RECIPES, code_cells, first_line, tags

# These once failed: a tape that was used up, a folder that was gone, an attribute that stayed.
FIRST = ["03_hybridize", "11_arrays_and_autograd", "22_files"]
OTHERS = [path.stem for path in NOTEBOOKS if path.stem not in FIRST]
OTHERS += [f"recipes/{path.stem}" for path in RECIPES]


def failures(notebook, folder):
    """[(which run, first line, error)] of a notebook whose cells run twice each."""
    runs = []
    for cell in code_cells(notebook):
        for run in ("first", "second"):
            runs.append((run, copy.deepcopy(cell)))
            runs[-1][1].id = f"{cell.id[:50]}-{run}"
    twice = nbformat.v4.new_notebook(cells=[cell for _, cell in runs])
    NotebookClient(
        twice,
        kernel_name="python3",
        timeout=1200,
        startup_timeout=600,
        allow_errors=True,
        resources={"metadata": {"path": str(folder)}},
    ).execute()
    return [
        (run, first_line(cell), f"{output.ename}: {output.evalue}")
        for run, cell in runs
        for output in cell.outputs
        if output.output_type == "error" and "raises-exception" not in tags(cell)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("stem", [*FIRST, *external(*OTHERS)])
def test_each_cell_may_run_twice(stem):
    path = ROOT / f"notebooks/{stem}.ipynb"
    assert failures(nbformat.read(path, as_version=4), path.parent) == []


@pytest.mark.slow
def test_a_cell_that_cannot_run_twice_is_found(tmp_path):
    cells = ["x = [1]", "del x", "#@title Solution 1.1\nx = 1 / 0", "y = 1 / 0"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    notebook.cells[3].metadata["tags"] = ["raises-exception"]
    division = ("#@title Solution 1.1", "ZeroDivisionError: division by zero")
    assert failures(notebook, tmp_path) == [
        ("second", "del x", "NameError: name 'x' is not defined"),
        ("first", *division),
        ("second", *division),
    ]
