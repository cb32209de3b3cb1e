"""Student versions of assignments, without solutions, outputs and hidden tests.

    python -m minihybrid_course.grading.release --variant 7   # into _build/assignments/7
    python -m minihybrid_course.grading.release --variant 7 --course course   # as nbgrader does
    python -m minihybrid_course.grading.release --roster roster.csv   # a folder for each student

It needs nbgrader, which removes them, in a separate environment:
`make assignments VARIANT=7`.
"""

import argparse
import functools
import itertools
import re
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

from minihybrid_course.grading.sources import (
    CHECK,
    NANO,
    ROOT,
    chosen,
    full_name,
    names,
    one_sentence,
    roster,
    source,
    tags,
)

STEPS = (CheckCellMetadata, LockCells, ClearSolutions, ClearOutput, ClearHiddenTests)
STUB = Config({"ClearSolutions": {"code_stub": {"python": "...  # your lines"}}})
HIDDEN = "# What is asked here is tried when your work is graded."

# The first cell, for Colab and other places without our packages. The installation is the same
# as in the chapters (book/make_setup.py).
CHAPTER = ROOT / "notebooks/00_tour.ipynb"
SETUP = """\
import importlib.util
import os

if not importlib.util.find_spec("minihybrid"):
{install}
os.environ["MINIHYBRID_WAIT"] = "1"  # calls wait for their kernels, see chapter 19"""
BESIDE = """
if not os.path.exists("nano.py"):
    print("nano.py is missing: put it beside this notebook (in Colab: Files, on the left)")"""


def setup(notebook):
    """Return the cell that installs the engine if it's missing, and looks for nano.py."""
    text = "\n".join(c.source for c in nbformat.read(CHAPTER, as_version=4).cells)
    install = re.search(r"^ +%pip install .*$", text, re.MULTILINE)[0]
    needs_nano = any("from nano import" in c.source for c in notebook.cells)
    text = SETUP.format(install=install) + BESIDE * needs_nano
    return nbformat.v4.new_code_cell(text, id="setup")


def check(name):
    """Return the last cell, which the grader skips."""
    text = f'import minihybrid as mx\n\nmx.check("{name}.ipynb")  # your points so far'
    return nbformat.v4.new_code_cell(text, id=CHECK)


def released(name, variant):
    """Return the student version of an assignment."""
    notebook, resources = chosen(source(name), variant), {}
    notebook.cells = [c for c in notebook.cells if not {"explanation", "hidden"} & set(tags(c))]
    for step in STEPS:
        notebook, resources = step(config=STUB).preprocess(notebook, resources)
    for cell in notebook.cells:
        # Tags reveal the other variants, but the check of visible tests needs these two.
        if not (needed := [tag for tag in tags(cell) if tag in ("judge", "apart")]):
            cell.metadata.pop("tags", None)
        cell.metadata.update({"tags": needed} if needed else {})
        cell.source = cell.source.strip("\n") or HIDDEN
    notebook.cells.insert(1, setup(notebook))
    notebook.cells.append(check(full_name(name)))
    return ComputeChecksums().preprocess(notebook, resources)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--variant", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--course", type=Path, help="nbgrader's folder of the course")
    parser.add_argument("--roster", help="a table: student[, variant]; each gets a folder")
    args = parser.parse_args()
    out = args.out or ROOT / "_build/assignments"
    folders = {out if args.out else out / str(args.variant): args.variant}
    if args.roster:
        with one_sentence():
            folders = {out / s: v for s, v in roster(args.roster, args.variant).items()}
    text_of = functools.cache(lambda *which: nbformat.writes(released(*which)))
    for name, (place, variant) in itertools.product(names(), folders.items()):
        folder = args.course / "release" / name if args.course else place
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.ipynb").write_text(text_of(name, variant), encoding="utf-8")
        shutil.copy(NANO, folder)
        print(folder / f"{name}.ipynb")


if __name__ == "__main__":
    main()
