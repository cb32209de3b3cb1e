"""Source notebooks of assignments: their cells, points and variants.

A source has solutions, hidden tests, and several alternatives of each task. A variant, a
number, keeps one alternative of each: cells tagged `only-cumsum` are kept where the variant
draws `cumsum`. Its numbers are drawn from the line `VARIANT = 0` of the cell tagged `judge`.

The type of a cell is stored in nbgrader's metadata:

- given:    locked, without points; run for everybody as in the source;
- given, tagged `apart`: its functions are called in a separate process, without the
            student's code;
- solution: the student's code is run;
- hidden:   locked, tagged `judge` and `hidden`; used only by hidden tests;
- tests:    locked, and worth points. The lines between `### BEGIN HIDDEN TESTS` and
            `### END HIDDEN TESTS` are removed from the students' version.
"""

import copy
import csv
import hashlib
import re
import sys
import unicodedata
from contextlib import contextmanager
from pathlib import Path
from symtable import symtable

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "notebooks/assignments"
NANO = ROOT / "notebooks/build/nano.py"
CHECK = "check"  # the cell of a release that runs the visible tests
NUMBER = re.compile(r"^VARIANT = \d+$", re.MULTILINE)


class ClassroomError(Exception):
    """A teacher's request can't be fulfilled; the message suggests a remedy."""


@contextmanager
def one_sentence():
    """End the program with the sentence of a teacher's mistake instead of a traceback."""
    try:
        yield
    except (ClassroomError, OSError) as error:
        sys.exit(f"{error}")


def table(path, *columns):
    """Read a CSV table with these columns, as dicts: [(line number, row), ...].

    Raises:  ClassroomError if there is no such table, or a column is missing.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, restval="")
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeError, csv.Error) as error:
        raise ClassroomError(f"{path} can't be read as a CSV table in UTF-8: {error}") from None
    if missing := set(columns) - set(reader.fieldnames or ()):
        raise ClassroomError(f"{path} has no column {', '.join(sorted(missing))}; add it")
    return [(k, {c: unicodedata.normalize("NFC", str(v)).strip() for c, v in row.items()})
            for k, row in rows]  # fmt: skip


def roster(path, variant):
    """Return student (ID or name) -> variant: the column `variant`, or derived from the ID."""
    students = {}
    for line, row in table(path, "student"):
        stated, drawn_from = row.get("variant", ""), hashlib.sha256(row["student"].encode())
        if stated and not stated.isdecimal():
            raise ClassroomError(f"{path}, line {line}: {stated!r} is no variant; use 0, 1, 2, ...")
        students[row["student"]] = int(stated or variant + int(drawn_from.hexdigest(), 16) % 27)
    return students


def names():
    """Return the names of all assignments, such as 1_autograd."""
    return sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def full_name(name, choices=None):
    """Return the full name of an assignment, from its name or number."""
    choices = choices or names()
    matches = [n for n in choices if str(name) in (n, n.partition("_")[0])]
    if not matches:
        raise ClassroomError(f"there is no assignment {name}; choose from {', '.join(choices)}")
    return matches[0]


def source(name):
    """Return the source of an assignment, from its name or number."""
    import nbformat  # slow to import; the processes of submissions don't need it

    return nbformat.read(FOLDER / f"{full_name(name)}.ipynb", as_version=4)


def drawn(notebook, variant):
    """Return task -> its alternative; consecutive variants share none.

    >>> import nbformat
    >>> notebook = nbformat.v4.new_notebook()
    >>> notebook.metadata.variant = {"one": ["a", "b", "c"], "two": ["d", "e", "f"]}
    >>> drawn(notebook, 2), drawn(notebook, 3)
    ({'one': 'c', 'two': 'f'}, {'one': 'a', 'two': 'e'})
    """
    chosen = {}
    for k, (task, options) in enumerate(notebook.metadata.variant.items()):
        n = len(options)
        chosen[task] = options[(variant + (variant // n**k if k else 0)) % n]
    return chosen


def chosen(notebook, variant):
    """Return a notebook with the cells of one variant."""
    new, alternatives = copy.deepcopy(notebook), set(drawn(notebook, variant).values())
    new.cells = [c for c in new.cells if alternatives.issuperset(only(c))]
    for cell in new.cells:
        if "judge" in tags(cell):
            cell.source = NUMBER.sub(f"VARIANT = {variant}", cell.source)
    new.metadata.variant = variant
    return new


def tags(cell):
    return cell["metadata"].get("tags", [])


def only(cell):
    """Return the alternatives that a cell belongs to."""
    return [tag.removeprefix("only-") for tag in tags(cell) if tag.startswith("only-")]


def kind(cell):
    """Return the type of a source cell: "text", "given", "solution" or "tests"."""
    known = cell["metadata"].get("nbgrader", {})
    if cell["cell_type"] != "code":
        return "text"
    return "tests" if known.get("grade") else "solution" if known.get("solution") else "given"


def id_of(cell):
    """Return a cell's ID, which students can't change in Jupyter, or None."""
    known = cell["metadata"].get("nbgrader")
    name = known.get("grade_id") if isinstance(known, dict) else None
    return name if isinstance(name, str) else None


def points(cell):
    return cell["metadata"]["nbgrader"]["points"]


def defined(source, imported=True):
    """Return the names that Python source defines, or imports; none if it isn't valid."""
    try:
        symbols = symtable(source, "cell", "exec").get_symbols()
    except (SyntaxError, ValueError, RecursionError):
        return set()
    return {s.get_name() for s in symbols if s.is_assigned() or imported and s.is_imported()}


def names_of(notebook, *kinds):
    """Return the names that cells of these types define in the student's process."""
    cells = [c for c in notebook["cells"] if kind(c) in kinds and "judge" not in tags(c)]
    return set().union(*(defined(c["source"]) for c in cells))
