"""Chapter 10. Scripts in cells, run one after the other, and what each of them prints.

Takes:   a script; a line `# %% topic: a sentence` begins a cell.
Gives:   `cells`, its cells; and as a program, `python cells.py SCRIPT LIBRARY REPORT`,
         what each cell prints, written to the file REPORT as JSON.

The environments of other libraries run this file as it is: it needs nothing of ours.
What is left out: values of a cell's last line, pictures.
"""

import ast
import hashlib
import json
import linecache
import os
import re
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from contextlib import contextmanager
from typing import NamedTuple

MARK = re.compile(r"^# %% (\w+): (.*)\n", re.MULTILINE)


class Cell(NamedTuple):
    """A part of a script.

    number:  counts the cells of its topic.
    key:     belongs to the text of the script up to the end of this cell.
    """

    topic: str
    number: int
    sentence: str
    source: str
    key: str


def cells(text):
    """The cells of a script.

    >>> cells("# %% sum: Two numbers.\\nprint(1 + 1)\\n")
    [Cell(topic='sum', number=1, sentence='Two numbers.', source='print(1 + 1)', key='...')]
    """
    marks, counts = [*MARK.finditer(text)], Counter()
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    result = []
    for mark, end in zip(marks, ends, strict=True):
        topic, sentence = mark.groups()
        counts[topic] += 1
        source = text[mark.end() : end].strip()
        key = hashlib.sha256(text[:end].strip().encode()).hexdigest()[:16]
        result.append(Cell(topic, counts[topic], sentence, source, key))
    return result


@contextmanager
def caught():
    """All that is printed meanwhile, also by what is not Python; a list of one text."""
    texts, streams = [], (sys.stdout, sys.stderr)
    with tempfile.TemporaryFile() as file:
        saved = [os.dup(stream.fileno()) for stream in streams]
        for stream in streams:
            stream.flush()
            os.dup2(file.fileno(), stream.fileno())
        try:
            yield texts
        finally:
            for stream, old in zip(streams, saved, strict=True):
                stream.flush()
                os.dup2(old, stream.fileno())
                os.close(old)
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))


def run_cell(cell, scope):
    """What a cell prints; its last line is the error, if there is one."""
    name = f"<{cell.topic} {cell.number}>"
    # From here libraries read the text of the functions that they compile.
    linecache.cache[name] = len(cell.source), None, cell.source.splitlines(keepends=True), name
    with caught() as texts:
        try:
            exec(compile(ast.parse(cell.source, name), name, "exec"), scope)
        except Exception as error:
            print(*traceback.format_exception_only(error), sep="", end="")
    return settled(texts[0])


def settled(text):
    """A text without what belongs to this machine or this run."""
    text = re.sub(r"(/[\w.+-]+)+/(site|dist)-packages/", "", text)
    text = re.sub(r"0x[0-9a-f]{6,}", "0x...", text)
    text = re.sub(r"^([IWE])\d{4} [\d:.]+ +\d+ ", r"\1 ", text, flags=re.MULTILINE)  # when, who
    text = text.replace(os.path.realpath(os.getcwd()) + os.sep, "")
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def run(path, library):
    """The versions, and key -> what that cell prints, of each cell of a script."""
    with open(path, encoding="utf-8") as file:
        script = cells(file.read())
    sys.stdout.reconfigure(line_buffering=True)
    warnings.formatwarning = lambda message, kind, *_: f"{kind.__name__}: {message}\n"
    scope, home = {"__name__": "__main__"}, os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        printed = {cell.key: run_cell(cell, scope).splitlines() for cell in script}
        os.chdir(home)
    return {
        "version": getattr(sys.modules.get(library), "__version__", "unknown"),
        "python": ".".join(map(str, sys.version_info[:3])),
        "printed": printed,
    }


if __name__ == "__main__":
    script, library, report = sys.argv[1:]
    printed = run(script, library)
    with open(report, "w", encoding="utf-8") as file:
        json.dump(printed, file)
