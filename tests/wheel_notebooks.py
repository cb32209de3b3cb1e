"""Notebooks run alone: in an empty folder, by a Python that has a wheel of ours.

    python tests/wheel_notebooks.py NOTEBOOK PYTHON FOLDER

prints the id and the errors of each cell that fails, as JSON. A process of its own ends
with its sockets, which Jupyter's client leaves open.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

VARIABLES = {"TQDM_DISABLE": "1", "PYTHONWARNINGS": "ignore"}


def run(notebook, python, folder):
    """Fill in the outputs of a notebook, by a kernel of `python` in `folder`."""
    spec = Path(folder, ".jupyter/kernels/alone/kernel.json")
    spec.parent.mkdir(parents=True)
    command = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": command, "display_name": "alone", "language": "python"}))
    specs = KernelSpecManager(kernel_dirs=[str(spec.parents[1])])
    client = NotebookClient(
        notebook,
        km=AsyncKernelManager(kernel_name="alone", kernel_spec_manager=specs),
        timeout=600,
        allow_errors=True,
        resources={"metadata": {"path": str(folder)}},
    )
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    client.execute(env=variables | VARIABLES)


def failing(notebook):
    """(id, errors) of each cell that failed, or that was to fail and did not."""
    for cell in notebook.cells:
        found = [o.evalue for o in cell.get("outputs", []) if o.output_type == "error"]
        if bool(found) != ("raises-exception" in cell.metadata.get("tags", [])):
            yield cell.id, found


def asked(path, python, folder):
    """What `failing` finds in a notebook that a process of its own runs."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, path, python, folder],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    notebook = nbformat.read(sys.argv[1], as_version=4)
    run(notebook, *sys.argv[2:])
    print(json.dumps(list(failing(notebook))))
