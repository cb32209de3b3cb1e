"""Make what part "Build one" hands to its readers, of the chapters' own cells.

Use: python book/make_blank.py

- `notebooks/build/nano.py`: the cells tagged `nano-1` to `nano-9`, one after the other;
  `nano_10.py` and so on, with the upgrades of later chapters; and
  `minihybrid/data/nano.txt`, all of them, for `minihybrid.look.building.stage`.
- `notebooks/build/*.ipynb`, the chapters with gaps: in a cell tagged `gap`, what follows the
  comment `# your lines` in a function is taken out. No output, no answer and no solution is
  left, and a cell tagged `after-3` waits until the check of step 3 is content.
"""

import copy
import re
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = [
    next((ROOT / "notebooks").glob(f"[0-9][0-9]_{name}.ipynb"))
    for name in ("values_and_a_tape", "symbols_and_a_trace", "source_and_hybridize")
]
NANO = ROOT / "minihybrid/data/nano.txt"
BLANK = ROOT / "notebooks/build"
YOURS = "# your lines"
BUILT = 9  # steps of that part; the later ones are upgrades, by exercises of the inside
HEAD = '''"""nano: a hybrid engine, as its reader writes it in the part "Build one" of the book.

Made by book/make_blank.py of cells of the chapters: change those, not this file.
"""
'''
INTRO = """This notebook has gaps: where it says `# your lines`, write yours in place of the
dots. Run the `check` below until it is content; it says what is missing or wrong. If you change
a cell, run those below it again, too. Cells that need a step wait for it. What was to be
predicted is answered in the book's own page of this chapter."""
# What stands in the chapter, and what the reader's own cells are taken by.
OURS = (
    '_ = Path(folder.name, "nano.py").write_text(stage(9))',
    'for path in (f"{folder.name}/nano.py", "my_nano.py"):\n    keep(In, path, start)',
)
HERE = "In the notebook with gaps, `keep` collects", "`keep` collects"
DOTS = re.DOTALL | re.MULTILINE
ANSWER = re.compile(r"^(?:>\n)?>? ?<details><summary>Answer</summary>.*?</details>\n?", DOTS)


def read(path):
    return nbformat.read(path, as_version=4)


def tagged(cell, kind):
    """The step that a cell's tag names, as `nano-3` does, or None."""
    for tag in cell.metadata.get("tags", ()):
        if found := re.fullmatch(rf"{kind}-(\d+)", tag):
            return int(found[1])
    return None


def cells_of_nano():
    """[(step, text), ...] of all chapters; what makes a cell a solution is no part of it."""
    chapters = map(read, sorted((ROOT / "notebooks").glob("*.ipynb")))
    cells = [(tagged(c, "nano"), c.source) for chapter in chapters for c in chapter.cells]
    return [(step, re.sub(r"\A#@title .*\n", "", text).rstrip()) for step, text in cells if step]


def nano(cells, last):
    """The text of nano after a step."""
    return "\n\n\n".join([HEAD.rstrip(), *(t for step, t in cells if step <= last)]) + "\n"


def with_gaps(source):
    """A cell's text without what follows `# your lines` in its functions.

    >>> print(with_gaps("def f(x):\\n    # your lines\\n    return x\\n\\n\\ny = 1"))
    def f(x):
        ...  # your lines
    <BLANKLINE>
    <BLANKLINE>
    y = 1
    """
    kept, margin = [], None  # margin: of the function whose lines are being left out
    for line in source.splitlines():
        inside = len(line) - len(line.lstrip())
        if margin is not None and line.strip() and inside < margin:
            margin = None
        if line.strip() == YOURS:
            kept.append(f"{' ' * inside}...  {YOURS}")
            margin = inside
        elif margin is None or not line.strip():
            kept.append(line)
    return "\n".join(kept)


def removed(source):
    """The lines that `with_gaps` leaves out."""
    left = with_gaps(source).splitlines()
    return [line for line in source.splitlines() if line not in left and line.strip() != YOURS]


def linked(text):
    """A text whose links are followed from the folder below."""
    own = {path.name for path in CHAPTERS}
    return re.sub(r"\]\((\w+\.ipynb)\)", lambda m: m[0] if m[1] in own else f"](../{m[1]})", text)


def blank_cell(cell):
    """A cell as the reader gets it, or None."""
    new, tags = copy.deepcopy(cell), cell.metadata.get("tags", [])
    new.metadata = {}
    if "solved" in tags or cell.source.startswith("#@title"):
        return None  # each exercise has a cell to write into
    if cell.cell_type == "markdown":
        new.source = linked(ANSWER.sub("", cell.source)).strip().replace(*HERE)
        return new if new.source else None
    new.outputs, new.execution_count = [], None
    new.source = re.sub(r"(import check)(?=$|,)", r"\1, keep", cell.source, count=1)
    if "gap" in tags:
        new.source = with_gaps(cell.source)
    elif "keep" in tags:
        first = "stage(3)" in cell.source
        new.source = f'keep(In, "my_nano.py"{"" if first else ", start"})'
    elif (step := tagged(cell, "after")) is not None:
        new.source = f"%%after {step}\n{cell.source.replace(*OURS)}"
    return new


def blank(chapter):
    """A chapter as the reader gets it."""
    new = copy.deepcopy(chapter)
    new.cells = [c for cell in chapter.cells if (c := blank_cell(cell)) is not None]
    new.cells.insert(1, nbformat.v4.new_markdown_cell(INTRO, id="intro"))
    return new


def made():
    """path -> text, of all files that are made."""
    cells = cells_of_nano()
    last = max(step for step, _ in cells)
    files = {NANO: nano(cells, last), BLANK / "nano.py": nano(cells, BUILT)}
    for step in range(BUILT + 1, last + 1):
        files[BLANK / f"nano_{step}.py"] = nano(cells, step)
    for path in CHAPTERS:
        files[BLANK / path.name] = nbformat.writes(blank(read(path))) + "\n"
    return files


if __name__ == "__main__":
    BLANK.mkdir(exist_ok=True)
    for path, text in made().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
