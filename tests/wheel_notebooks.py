"""Notebooks run alone: in an empty folder, by a Python that has a wheel of ours.

    python tests/wheel_notebooks.py NOTEBOOK PYTHON FOLDER SECONDS

prints the id and the errors of each cell that fails, as JSON. A cell that took fewer SECONDS is
run again right after itself, as a reader may. A process of its own ends with its sockets, which
Jupyter's client leaves open.
"""

import copy
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

AGAIN = "-again"
VARIABLES = {"TQDM_DISABLE": "1", "PYTHONWARNINGS": "ignore"}


class Client(NotebookClient):
    """Runs cells, but not again what took `again_s` or longer."""

    took_s = again_s = 0.0

    async def async_execute_cell(self, cell, *args, **kwargs):
        if cell.get("id", "").endswith(AGAIN) and self.took_s >= self.again_s:
            cell.outputs = []
            return cell
        start = time.monotonic()
        try:
            return await super().async_execute_cell(cell, *args, **kwargs)
        finally:
            self.took_s = time.monotonic() - start


def run(notebook, python, folder, again_s):
    """Fill in the outputs of a notebook, by a kernel of `python` in `folder`."""
    spec = Path(folder, ".jupyter/kernels/alone/kernel.json")
    spec.parent.mkdir(parents=True)
    command = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": command, "display_name": "alone", "language": "python"}))
    specs = KernelSpecManager(kernel_dirs=[str(spec.parents[1])])
    client = Client(
        notebook,
        km=AsyncKernelManager(kernel_name="alone", kernel_spec_manager=specs),
        timeout=600,
        allow_errors=True,
        resources={"metadata": {"path": str(folder)}},
    )
    client.again_s = again_s
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    client.execute(env=variables | VARIABLES)


def doubled(notebook):
    """The notebook with each code cell twice; the second one's id ends in AGAIN."""
    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        if cell.cell_type == "code":
            cells.append(copy.deepcopy(cell))
            cells[-1].id = cell.id[:50] + AGAIN
    return nbformat.v4.new_notebook(cells=cells)


def failing(notebook):
    """(id, errors) of each cell that failed, or that was to fail and did not.

    The second run of a cell that is to fail may pass.
    """
    for cell in notebook.cells:
        errors = [o.evalue for o in cell.get("outputs", []) if o.output_type == "error"]
        may_fail = "raises-exception" in cell.metadata.get("tags", [])
        if bool(errors) != may_fail and not (may_fail and cell.id.endswith(AGAIN)):
            yield cell.id, errors


def problems_of(path, python, folder, again_s=0):
    """What `failing` finds in a notebook that a process of its own runs."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, path, python, folder, str(again_s)],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    notebook = nbformat.read(sys.argv[1], as_version=4)
    again_s = float(sys.argv[4])
    if again_s:
        notebook = doubled(notebook)
    run(notebook, *sys.argv[2:4], again_s)
    print(json.dumps(list(failing(notebook))))
