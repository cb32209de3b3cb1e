"""Make the files of part "Build one" from the chapters' cells.

Use: python book/make_blank.py

- `notebooks/build/nano.py`: the cells tagged `nano-1` to `nano-9`, one after the other;
  `nano_10.py` and so on, with the upgrades of later chapters; and
  `course/minihybrid_course/data/nano.txt`, all of them, for `minihybrid_course.building.stage`.
- `notebooks/build/*.ipynb`, the chapters with gaps: in a cell tagged `gap`, what follows the
  comment `# your lines` in a function is taken out. Outputs, answers and solutions are removed.
  A cell tagged `after-3` doesn't run until the check of step 3 succeeds. If it's tagged `goal-2`
  as well, it's shown with its output above the second gap of that step.
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
NANO = ROOT / "course/minihybrid_course/data/nano.txt"
BLANK = ROOT / "notebooks/build"
YOURS = "# your lines"
BUILT = 9  # steps of that part; the later ones are upgrades, by exercises of the inside
HEAD = '''"""nano: a hybrid engine, as its reader writes it in the part "Build one" of the book.

Made by book/make_blank.py of cells of the chapters: change those, not this file.
"""
'''
INTRO = """This notebook has gaps. Wherever you see `# your lines`, replace the dots with your code.
Above each gap you'll find cells and their output, as they look when your code works. Run the
`check` after the gap until it reports that the step is right. If you change a cell, run the ones
below it again. Cells that need a step don't run until its check succeeds. The book's page for
this chapter answers the predictions."""
GOAL = """With the gap below filled in, this cell:

```python
{}
```

prints

```text
{}
```"""
# A cell of the chapter, and the one that takes its place in the notebook with gaps.
OURS = (
    '_ = Path(folder.name, "nano.py").write_text(stage(9))',
    'for path in (f"{folder.name}/nano.py", "my_nano.py"):\n    keep(In, path, start)',
)
HERE = "In the notebook with gaps, `keep` writes", "`keep` writes"
DOTS = re.DOTALL | re.MULTILINE
ANSWER = re.compile(r"^(?:>\n)?>? ?<details><summary>Answer</summary>.*?</details>\n?", DOTS)


def read(path):
    return nbformat.read(path, as_version=4)


def tagged(cell, kind):
    """The step that a cell's tag names, as `nano-3` does, or None."""
    for tag in cell.metadata.get("tags", ()):
        if match := re.fullmatch(rf"{kind}-(\d+)", tag):
            return int(match[1])
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
    lines, margin = [], None  # margin: of the function whose lines are being left out
    for line in source.splitlines():
        inside = len(line) - len(line.lstrip())
        if margin is not None and line.strip() and inside < margin:
            margin = None
        if line.strip() == YOURS:
            lines.append(f"{' ' * inside}...  {YOURS}")
            margin = inside
        elif margin is None or not line.strip():
            lines.append(line)
    return "\n".join(lines)


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


def printed(cell):
    """What a cell's outputs look like as text."""
    texts = (o.get("text") or o.data["text/plain"] for o in cell.outputs)
    return "\n".join(text.strip("\n") for text in texts)


def goals(cells, step, k):
    """What the k-th gap of a step must lead to: the cells tagged `goal-k`, with their output."""
    return [
        nbformat.v4.new_markdown_cell(GOAL.format(c.source, printed(c)), id=f"goal-{c.id}")
        for c in cells
        if tagged(c, "after") == step and tagged(c, "goal") == k
    ]


def blank(chapter):
    """A chapter as the reader gets it."""
    new, gaps = copy.deepcopy(chapter), []  # gaps: the step of each
    new.cells = []
    for cell in chapter.cells:
        if "gap" in cell.metadata.get("tags", []):
            step = tagged(cell, "nano")
            gaps.append(step)
            new.cells += goals(chapter.cells, step, gaps.count(step))
        if left := blank_cell(cell):
            new.cells.append(left)
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
