"""Cells of the chapters that run twice in a row, as a reader's may.

These three once failed: a tape that was used up, a folder that was gone, an attribute that
stayed. The other notebooks run twice with Colab's packages (test_colab.py).
"""

import sys

import nbformat
import pytest
import wheel_notebooks
from run_notebooks import ROOT

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("stem", ["03_hybridize", "11_arrays_and_autograd", "22_files"])
def test_each_cell_may_run_twice(stem, tmp_path):
    path = ROOT / f"notebooks/{stem}.ipynb"
    assert wheel_notebooks.problems_of(path, sys.executable, tmp_path, again_s=1) == []


def test_a_cell_that_cannot_run_twice_is_found(tmp_path):
    cells = ["x = [1]", "del x", "#@title Solution 1.1\nx = 1 / 0", "y = 1 / 0"]
    cells = [nbformat.v4.new_code_cell(c, id=f"cell{k}") for k, c in enumerate(cells)]
    cells[3].metadata["tags"] = ["raises-exception"]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "cells.ipynb")
    assert wheel_notebooks.problems_of(
        tmp_path / "cells.ipynb", sys.executable, tmp_path, again_s=600
    ) == [
        ["cell1-again", ["name 'x' is not defined"]],
        ["cell2", ["division by zero"]],
        ["cell2-again", ["division by zero"]],
    ]
