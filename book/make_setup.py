"""Write the cell that all chapters begin with: it brings the engine where it is missing.

Use: python book/make_setup.py      (then `make blank`)

A notebook that is opened in Colab has nothing of ours beside it. Where the package lives
is read from pyproject.toml. Only the source of that one cell is changed.
"""

import json
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ON_INDEX = False  # True, as soon as the package index has it
EXTRAS = {"23_other_engines": "[chapters]", "24_a_file_is_not_a_program": "[chapters]"}

CELL = """\
import importlib.util
import os

if not importlib.util.find_spec("minihybrid"):
    %pip install -q {requirement}

import minihybrid as mx
from minihybrid import autograd, nd, sym
from minihybrid.gluon import nn

os.environ["MINIHYBRID_WAIT"] = "1"  # calls wait for their kernels, see chapter 19"""


def requirement(stem, on_index=ON_INDEX):
    """What pip is asked for: a name, or the archive of the repository.

    >>> requirement("03_hybridize", on_index=True)
    'minihybrid'
    >>> requirement("23_other_engines", on_index=True)
    '"minihybrid[chapters]"'
    """
    name, extra = PROJECT["name"], EXTRAS.get(stem, "")
    archive = f"{PROJECT['urls']['Repository']}/archive/HEAD.zip"
    if on_index:
        return f'"{name}{extra}"' if extra else name
    return f'"{name}{extra} @ {archive}"' if extra else archive


def source(stem):
    """The text of a chapter's first cell."""
    return CELL.format(requirement=requirement(stem))


def with_setup(text, stem):
    """A notebook's file, with the first code cell as it is to be; the rest to the letter."""
    cells = json.loads(text)["cells"]
    old = next(cell["source"] for cell in cells if cell["cell_type"] == "code")
    new = source(stem).splitlines(keepends=True)
    before, after = (json.dumps(s, ensure_ascii=False, indent=1) for s in (old, new))
    before, after = (s.replace("\n", "\n   ") for s in (before, after))
    assert text.count(before) == 1, f"{stem}: the first cell is not alone"
    return text.replace(before, after)


if __name__ == "__main__":
    folder = ROOT / "notebooks"
    for path in sorted(folder.glob("*.ipynb")) + sorted(folder.glob("recipes/*.ipynb")):
        text = path.read_text(encoding="utf-8")
        path.write_text(with_setup(text, path.stem), encoding="utf-8")
