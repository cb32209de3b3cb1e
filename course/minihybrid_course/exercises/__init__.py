"""Interactive exercises: `mx.check`, `mx.hint` and `mx.exercises`.

They take an exercise's number, such as "02.3", and an answer, and show a sentence that
explains what's wrong with it, or confirms it; hints, one at a time; and a table of
completed exercises, stored in a small file in the user's cache.
Limits:  nothing is sent anywhere, and no marks are given.
"""

import contextlib
import functools
import json
import sys
import tomllib
from html import escape
from importlib import import_module
from pathlib import Path

from minihybrid.codegen.cache import cache_dir
from minihybrid.core.files import write_whole
from minihybrid.core.op import HybridError
from minihybrid_course import HERE
from minihybrid_course.exercises.assignment import assignment
from minihybrid_course.exercises.judging import Parts, Refusal, Verdict


def of_chapters():
    """Yield (number, exercise) of every chapter's files: ch03.toml, and ch03.py for functions."""
    folder = Path(__file__).parent
    for file in folder.glob("ch[0-9][0-9].toml"):
        for number, fields in tomllib.loads(file.read_text(encoding="utf-8")).items():
            yield number, (Parts if "part" in fields else Refusal)(**fields)
    for file in folder.glob("ch[0-9][0-9].py"):
        yield from import_module(f"{__name__}.{file.stem}").EXERCISES.items()


TABLE = dict(sorted(of_chapters(), key=lambda item: [int(n) for n in item[0].split(".")]))
for _number, _exercise in TABLE.items():
    _exercise.number = _number
_shown = {}  # exercise -> the number of hints shown


@functools.cache
def hints():
    """Return exercise -> its hints, from the chapters."""
    return json.loads((HERE / "data/hints.json").read_text(encoding="utf-8"))


def _key(text, known, what):
    """Return the number of an exercise, without leading zeros."""
    chapter, _, rest = str(text).strip().partition(".")
    number = f"{chapter.lstrip('0') or '0'}.{rest}"
    if number not in known:
        same = [n for n in known if n.partition(".")[0] == number.partition(".")[0]]
        there = f"chapter {chapter} has {', '.join(same)}" if same else "no such chapter has any"
        raise HybridError(f'{what}("{text}"): there is no such exercise here; {there}')
    return number


def check(number, answer=None, *more):
    """Explain what's wrong with the answer to an exercise, or confirm that it's right.

    number:  as "02.3": the third exercise of chapter 02. The file of an assignment, as
             "1_autograd.ipynb": its visible tests run with what you have defined.
    answer:  your answer; without one, the check says what it needs. Several are a tuple.
    Returns: a `Verdict`, whose text is a sentence.

    >>> check("02.1", 24)
    not yet: the number of bytes is not 24: that's the arena; the output also needs memory
    """
    if str(number).endswith(".ipynb"):
        return assignment(number, sys._getframe(1).f_globals)
    key = _key(number, TABLE, "check")
    verdict = TABLE[key]((answer, *more) if more else answer)
    if verdict.right:
        exercises.note(key)
    return verdict


def hint(number):
    """Show the next hint of an exercise; after the last one, the first again.

    >>> hint("02.1")
    hint 1 of 3: When `q` is written, is that the last time `p` is read?
    """
    key = _key(number, hints(), "hint")
    steps = hints()[key]
    k = _shown.get(key, 0) % len(steps)
    _shown[key] = k + 1
    return Verdict(False, f"hint {k + 1} of {len(steps)}: {steps[k]}")


class Exercises:
    """The exercises that can be checked, and which of them are done, as a table.

    It's kept in a small file in the user's cache, or in memory if that can't be written.
    """

    def __init__(self):
        self._done = set()

    def _file(self):
        folder = cache_dir()
        return None if folder is None else Path(folder) / "exercises.json"

    @property
    def done(self):
        """Return the numbers of the completed exercises."""
        with contextlib.suppress(OSError, ValueError, HybridError, TypeError):
            if file := self._file():
                self._done |= set(json.loads(file.read_text(encoding="utf-8")))
        return [number for number in TABLE if number in self._done]

    def note(self, number):
        """Record that an exercise is completed."""
        if number in self.done:
            return
        self._done.add(number)
        with contextlib.suppress(OSError, HybridError):
            if file := self._file():
                file.parent.mkdir(parents=True, exist_ok=True)
                write_whole(file, json.dumps(self.done).encode())

    def _rows(self):
        done, chapters = self.done, {}
        for number in TABLE:
            chapters.setdefault(number.partition(".")[0], []).append(number)
        for chapter, numbers in chapters.items():
            yield f"{int(chapter):02}", [(n, n in done) for n in numbers]

    def __call__(self):
        """Return the table itself."""
        return self

    def __repr__(self):
        lines = [
            f"{chapter}  "
            + "  ".join(f"{number} {'done' if there else '-'}" for number, there in row)
            for chapter, row in self._rows()
        ]
        return "\n".join([*lines, f"{len(self.done)} of {len(TABLE)} are done"])

    def _repr_html_(self):
        rows = "".join(
            f"<tr><th scope='row'>{escape(chapter)}</th>"
            + "".join(f"<td>{n} {'done' if there else '–'}</td>" for n, there in row)
            + "</tr>"
            for chapter, row in self._rows()
        )
        return (
            f"<table><caption>Exercises: {len(self.done)} of {len(TABLE)} are done</caption>"
            f"{rows}</table>"
        )


exercises = Exercises()
