"""One submission's marks: the student's cells run in a room, the tests run here.

The tests of a source are Python with assertions. What they call by a student's name is
called in the room, and only numbers, texts and arrays come back: so nothing that the
student's code does to NumPy, to `assert` or to the engine reaches the tests, and the tests
do not reach the student.
"""

import builtins
import hashlib
import json
import time
from pathlib import Path

import nbformat
import numpy as np

from classroom.room import ALL_S, CELL_S, Failed, Gone, Remote, Room, walls
from classroom.sources import defined, id_of, kind, points, tags, theirs

MOST_BYTES, MOST_CELLS = 20 << 20, 500
FRESH = 4  # how many times a room that ended is opened again


class Refused(Exception):
    """A submission that is not graded; the message says why."""


def digest(*parts):
    """A short name for what goes into a mark: the same parts, the same mark."""
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def read(path, folder):
    """The bytes of a submission that lies in `folder`; raises Refused."""
    path = Path(path)
    if path.is_symlink() or not path.resolve().is_relative_to(Path(folder).resolve()):
        raise Refused("the file is a link to elsewhere; hand in the notebook itself")
    if not path.is_file():
        raise Refused("this is no file; hand in the notebook")
    if path.stat().st_size > MOST_BYTES:
        raise Refused(
            f"the file has {path.stat().st_size >> 20} MB, and {MOST_BYTES >> 20} MB are the "
            "most: clear all outputs, save, and hand in again"
        )
    return path.read_bytes()


def cells_of(data):
    """The code cells of a submission; raises Refused."""
    try:
        # Not nbformat.reads, which also validates: it warns of missing names of cells, and then
        # reads on. What must hold is asked here.
        notebook = nbformat.convert(nbformat.reader.reads(data.decode("utf-8")), 4)
        cells = [c for c in notebook.cells if c.cell_type == "code"]
        if not all(isinstance(c.source, str) for c in cells):
            raise ValueError("a cell without text")
    except Exception as error:  # nbformat raises whatever the JSON makes it stumble over
        reason = str(error).partition("\n")[0][:200]
        raise Refused(f"the file is no notebook that can be read ({reason})") from None
    if len(cells) > MOST_CELLS:
        raise Refused(f"the notebook has {len(cells)} code cells, and {MOST_CELLS} are the most")
    return cells


def program(source, cells):
    """What runs in the room, [(id or None, text)], and what is to be said about it.

    Given cells run as the source has them, tests do not run, and all else is the
    student's. Of two solutions of one name the last counts, as in nbgrader.
    """
    ours = {id_of(c): c for c in source.cells if c.cell_type == "code"}
    last = {id_of(c): k for k, c in enumerate(cells)}
    steps, notes = [], []
    for name, cell in ours.items():
        if name not in last and kind(cell) == "given":
            steps.append((name, cell.source))
        if name not in last and kind(cell) == "solution":
            notes.append(f"The cell {name} is missing, so nothing of it could be judged.")
    for k, cell in enumerate(cells):
        name = id_of(cell)
        if name not in ours:
            steps.append((None, cell.source))
        elif k != last[name]:
            if kind(ours[name]) == "solution":
                notes.append(f"The cell {name} is there more than once; the last one counted.")
        elif kind(ours[name]) == "given":
            steps.append((name, ours[name].source))
        elif kind(ours[name]) == "solution":
            steps.append((name, cell.source))
    return steps, notes


class Bench:
    """The room of one submission, opened again when it has ended, with what ran so far."""

    def __init__(self, steps):
        self.steps, self.errors, self.room, self.opened = steps, {}, None, 0
        self.deadline = time.monotonic() + ALL_S

    def ask(self, request, seconds):
        if self.room is None:
            self.open()
        try:
            return self.room.ask(request, seconds)
        except Gone:
            self.close()
            raise

    def open(self):
        """Run all cells in a new room; one that ends it is left out the next time."""
        while self.room is None:
            if self.opened > FRESH or time.monotonic() > self.deadline:
                raise Gone("the process was ended too often, or its time is over")
            self.opened += 1
            self.room = Room(walls(), self.deadline)
            for k, (_, text) in enumerate(self.steps):
                if isinstance(self.errors.get(k), Gone):
                    continue
                try:
                    self.room.ask({"run": text}, CELL_S)
                except Failed as error:
                    self.errors[k] = error
                except Gone as error:
                    self.errors[k] = error
                    self.close()
                    break

    def close(self):
        if self.room:
            self.room.close()
        self.room = None

    def said(self):
        """What went wrong in cells: [(id or None, text)]."""
        return [(self.steps[k][0], str(error)) for k, error in sorted(self.errors.items())]


def tried(cell, names):
    """Run a cell of tests: what is wrong, or None."""
    try:
        exec(compile(cell.source, id_of(cell), "exec"), names)
    except (AssertionError, Failed) as error:
        return str(error)
    except Gone as error:
        return f"your code did not come back: {error}"
    except Exception as error:
        return (
            "what came back is not of the kind that was asked for "
            f"({type(error).__name__}: {str(error)[:200]})"
        )


@np.errstate(all="ignore")  # students' NaN are wrong, and no warning of ours
def judged(source, cells):
    """Marks for a submission's cells, as `summed` puts them together."""
    steps, notes = program(source, cells)
    bench, tests = Bench(steps), []
    ours = [c for c in source.cells if "apart" in tags(c)]
    apart = Bench([(id_of(c), c.source) for c in ours])  # opened by the first call, if there is one
    names = {"__builtins__": builtins} | {name: Remote(bench, name) for name in theirs(source)}
    names |= {name: Remote(apart, name) for c in ours for name in defined(c)}
    for cell in source.cells:
        if "judge" in tags(cell):
            exec(compile(cell.source, "judge", "exec"), names)
    try:
        bench.open()
    except Gone as error:
        notes.append(f"Your cells could not be run: {error}.")
    try:
        for cell in source.cells:
            if kind(cell) == "tests":
                wrong = tried(cell, dict(names))
                mark = {"id": id_of(cell), "of": points(cell), "wrong": wrong}
                tests.append(mark | {"points": 0 if wrong is not None else points(cell)})
    finally:
        bench.close()
        apart.close()
    return summed(tests, bench.said(), notes)


def summed(tests, cells, notes):
    """What is known of a submission."""
    points, of = (sum(t[k] for t in tests) for k in ("points", "of"))
    return {"tests": tests, "cells": cells, "notes": notes, "points": points, "of": of}


def refused(source, why):
    """The marks of a submission that is not graded."""
    tests = [
        {"id": id_of(c), "of": points(c), "wrong": "not graded", "points": 0}
        for c in source.cells
        if kind(c) == "tests"
    ]
    return summed(tests, [], [f"This was not graded: {why}."]) | {"refused": True}


def graded(source, path, folder):
    """Marks for a file, and how long it took."""
    started = time.monotonic()
    try:
        cells = cells_of(read(path, folder))
        found = judged(source, cells)
    except Refused as error:
        found = refused(source, error)
    found["elapsed_s"] = round(time.monotonic() - started, 2)
    return found


def stamp(source):
    """What a mark depends on beside the submission: the tests, and this program."""
    programs = [p.read_bytes() for p in sorted(Path(__file__).parent.glob("*.py"))]
    cells = json.dumps([c.source for c in source.cells]).encode()
    return digest(cells, *programs)
