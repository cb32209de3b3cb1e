"""Run every notebook from top to bottom in a fresh kernel, and save what it shows.

Use: python book/run_notebooks.py [notebook ...]      (without a name: all of them)

What is saved does not depend on who ran it: no timestamps, no versions, and no folder
of this machine in the tracebacks.
"""

import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

# Whether a progress bar shows, and for how long NumPy answers, depends on the time.
os.environ |= {"TQDM_DISABLE": "1", "MINIHYBRID_WAIT": "1"}

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
CELL_METADATA = {"tags", "mystnb", "cellView", "jupyter", "predict"}  # the only keys kept


def run(path):
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=1200,
        startup_timeout=600,
        record_timing=False,
        coalesce_streams=True,  # what was printed together is shown together
        resources={"metadata": {"path": str(path.parent)}},
    )
    client.execute()
    clean(notebook)
    nbformat.write(notebook, path)


def clean(notebook):
    """Drop from `notebook`, in place, what belongs to this machine or this run."""
    notebook.metadata = nbformat.from_dict(NOTEBOOK_METADATA)
    for cell in notebook.cells:
        for key in set(cell.metadata) - CELL_METADATA:
            del cell.metadata[key]
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                output.traceback = [without_folders(t) for t in output.traceback]


def without_folders(text):
    """Name files from the repository's root; IPython writes `~` for the home folder."""
    text = text.replace(f"{ROOT}/", "")
    if ROOT.is_relative_to(Path.home()):
        text = text.replace(f"~/{ROOT.relative_to(Path.home()).as_posix()}/", "")
    return text


if __name__ == "__main__":
    chosen = [Path(name).resolve() for name in sys.argv[1:]]
    folder = ROOT / "notebooks"
    for path in chosen or sorted(folder.glob("*.ipynb")) + sorted(folder.glob("recipes/*.ipynb")):
        print(path.name, flush=True)
        run(path)
