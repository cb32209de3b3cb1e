"""Chapter 10. Run scripts cell by cell and capture each cell's output.

Uses:    a script; a line `# %% topic: a sentence` begins a cell.
Defines: `cells`, its cells; and as a program, `python cells.py SCRIPT LIBRARY REPORT`
         writes the output of each cell to the file REPORT as JSON.

The environments of other libraries run this file directly, so it imports nothing of ours.
Not supported: the value of a cell's last line, pictures.
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

    number:  its position in its topic, from 1.
    key:     a hash of the script up to the end of this cell.
    """

    topic: str
    number: int
    sentence: str
    source: str
    key: str


def cells(text):
    """Return the cells of a script.

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
    """Capture all output in the block, including native code's, as a list of one string."""
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
    """Return a cell's output; its last line is the error, if there is one."""
    name = f"<{cell.topic} {cell.number}>"
    # Libraries read the source of the functions that they compile from here.
    linecache.cache[name] = len(cell.source), None, cell.source.splitlines(keepends=True), name
    with caught() as texts:
        try:
            exec(compile(ast.parse(cell.source, name), name, "exec"), scope)
        except Exception as error:
            print(*traceback.format_exception_only(error), sep="", end="")
    return settled(texts[0])


def settled(text):
    """Remove what depends on the machine or the run from an output."""
    text = re.sub(r"(/[\w.+-]+)+/(site|dist)-packages/", "", text)
    text = re.sub(r"0x[0-9a-f]{6,}", "0x...", text)
    text = re.sub(r"^([IWE])\d{4} [\d:.]+ +\d+ ", r"\1 ", text, flags=re.MULTILINE)  # time, process
    text = text.replace(os.path.realpath(os.getcwd()) + os.sep, "")
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def run(path, library):
    """Return the versions, and key -> output for each cell of a script."""
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
