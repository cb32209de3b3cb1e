"""What students get: an assignment without solutions, outputs and hidden tests.

    python -m classroom.release --variant 7        # into _build/assignments/7
    python -m classroom.release --variant 7 --course course     # as nbgrader hands out

It needs nbgrader, which does the removing, in an environment of its own:
`make assignments VARIANT=7`.
"""

import argparse
import shutil
from pathlib import Path

import nbformat
from nbgrader.preprocessors import (
    CheckCellMetadata,
    ClearHiddenTests,
    ClearOutput,
    ClearSolutions,
    ComputeChecksums,
    LockCells,
)
from traitlets.config import Config

from classroom.sources import NANO, ROOT, chosen, names, source, tags

STEPS = (CheckCellMetadata, LockCells, ClearSolutions, ClearOutput, ClearHiddenTests)
STUB = Config({"ClearSolutions": {"code_stub": {"python": "...  # your lines"}}})
LATER = "# What is asked here is tried when your work is graded."


def released(name, variant):
    """The students' notebook of an assignment."""
    notebook, resources = chosen(source(name), variant), {}
    notebook.cells = [c for c in notebook.cells if "explanation" not in tags(c)]
    for step in STEPS:
        notebook, resources = step(config=STUB).preprocess(notebook, resources)
    for cell in notebook.cells:
        cell.metadata.pop("tags", None)  # which would name what was not drawn
        cell.source = cell.source.strip("\n") or LATER
    return ComputeChecksums().preprocess(notebook, resources)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--variant", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--course", type=Path, help="nbgrader's folder of the course")
    chosen_by = parser.parse_args()
    out = chosen_by.out or ROOT / f"_build/assignments/{chosen_by.variant}"
    for name in names():
        folder = chosen_by.course / "release" / name if chosen_by.course else out
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.ipynb"
        nbformat.write(released(name, chosen_by.variant), path)
        print(path)
        shutil.copy(NANO, folder)


if __name__ == "__main__":
    main()
