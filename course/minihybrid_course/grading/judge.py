"""One submission's marks: the student's cells run in a sandbox, the tests run here.

    python -m minihybrid_course.grading.judge < job.json

The tests of a source are Python with assertions. What they call by a student's name is
called in the sandbox, and only numbers, texts and arrays come back. So nothing that the
student's code does to NumPy, to `assert` or to the engine reaches the tests, and the tests
aren't where the student's code is.

Reading a hostile notebook and testing hostile results can take all memory and time. So the
grader runs this module as a process with limits of its own, one per submission (`graded`).
"""

import builtins
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

from minihybrid_course.grading import container, sandbox
from minihybrid_course.grading.sandbox import (
    DOCKER,
    ProcessDied,
    Remote,
    Sandbox,
    StudentError,
    isolation,
)
from minihybrid_course.grading.sources import (
    CHECK,
    ROOT,
    defined,
    id_of,
    kind,
    names_of,
    points,
    tags,
)
from minihybrid_course.grading.text import readable

MOST_BYTES, MOST_CELLS = 20 << 20, 500
TEXT = 20_000  # characters of a student's code that are compared with classmates'
RETRIES = 4  # how many times a sandbox whose process died is opened again
SECONDS = ("CELL_S", "TEST_S", "ALL_S")  # of the module sandbox, as the grader has them
JUDGE_BYTES, JUDGE_S = 2 << 30, 60  # of this process: memory, and time beside the sandbox's


class Refused(Exception):
    """A submission that is not graded; the message gives the reason."""


def digest(*parts):
    """A short name for what determines a mark: the same parts, the same mark."""
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


# -- reading -----------------------------------------------------------------------------
def read(path, folder):
    """The bytes of a submission in `folder`; raises Refused."""
    path = Path(path)
    if path.is_symlink() or not path.resolve().is_relative_to(Path(folder).resolve()):
        raise Refused("the file is a link to elsewhere; hand in the notebook itself")
    if not path.is_file():
        raise Refused("this is not a file; submit the notebook itself")
    if path.stat().st_size > MOST_BYTES:
        raise Refused(
            f"the file has {path.stat().st_size >> 20} MB, and the limit is {MOST_BYTES >> 20} MB: "
            "clear all outputs, save, and hand in again"
        )
    return path.read_bytes()


def notebook_of(data):
    """The notebook in a file's bytes, as dicts in format 4; raises Refused."""
    try:
        notebook = json.loads(data.decode("utf-8-sig"))
        if notebook["nbformat"] != 4:
            import nbformat  # slow to import, and old formats are rare

            notebook = nbformat.convert(nbformat.from_dict(notebook), 4)
        for cell in notebook["cells"]:
            text = cell["source"]
            cell["source"] = "".join(text) if isinstance(text, list) else text
            if not isinstance(cell["source"], str) or not isinstance(cell["metadata"], dict):
                raise ValueError("a cell without text or metadata")
            cell["cell_type"].encode()
    except Exception as error:  # whatever the JSON of a stranger can raise
        reason = readable(error, 200).partition("\n")[0]
        raise Refused(f"the file is not a notebook that can be read ({reason})") from None
    return notebook


def cells_of(notebook):
    """The code cells of a notebook; raises Refused."""
    cells = [c for c in notebook["cells"] if c["cell_type"] == "code"]
    if len(cells) > MOST_CELLS:
        raise Refused(f"the notebook has {len(cells)} code cells, and the limit is {MOST_CELLS}")
    return cells


def answer_of(notebook, source):
    """What a student wrote into text cells, such as the answer to an open question."""
    known = {c["source"].strip() for c in source["cells"]}
    cells = [c for c in notebook["cells"] if c["cell_type"] == "markdown"]
    texts = [c["source"].strip() for c in cells]
    return readable("\n\n".join(t for t in texts if t not in known), TEXT)


# -- running -----------------------------------------------------------------------------
def program(source, cells):
    """What runs in the sandbox, and notes on it.

    Given cells run as the source has them, tests don't run, and everything else is the
    student's, in the notebook's order, as Jupyter runs it.
    Gives:   [(id or None, text, whether it is given)], notes
    """
    code = [c for c in source["cells"] if c["cell_type"] == "code" and "hidden" not in tags(c)]
    ours = {id_of(c): c for c in code}
    handed_in = [id_of(c) for c in cells]
    steps, notes, done = [], [], set()
    for name, cell in ours.items():
        if name not in handed_in and kind(cell) == "given":
            steps.append((name, cell["source"], True))
        if name not in handed_in and kind(cell) == "solution":
            notes.append(f"The cell {name} is missing, so its part could not be judged.")
        if handed_in.count(name) > 1 and kind(cell) == "solution":
            notes.append(f"The cell {name} is there more than once; all of them ran, in order.")
    for cell, name in zip(cells, handed_in, strict=True):
        if name not in ours:
            if cell.get("id") != CHECK:
                steps.append((None, cell["source"], False))
        elif kind(ours[name]) == "given" and name not in done:
            steps.append((name, ours[name]["source"], True))
            done.add(name)
        elif kind(ours[name]) == "solution":
            steps.append((name, cell["source"], False))
    return steps, notes


class Runner:
    """The sandbox of one submission; opened again after its process died, with all cells."""

    opened_here = 0  # how many sandboxes this process has opened: containers need names

    def __init__(self, steps, alone, solutions=()):
        self.steps, self.alone, self.solutions, self.errors = steps, alone, solutions, {}
        self.sandbox, self.opened = None, 0
        self.deadline = time.monotonic() + sandbox.ALL_S
        self.peak_bytes, self.processor_s = 0, 0.0

    def ask(self, request, seconds):
        """What `Sandbox.ask` gives; the next call opens a new one if the process died."""
        if self.sandbox is None:
            self.open()
        try:
            return self.sandbox.ask(request, seconds)
        except ProcessDied:
            self.close()
            raise

    def open(self):
        """Run all cells in a new sandbox, without those that ended one before."""
        while self.sandbox is None:
            if self.opened > RETRIES or time.monotonic() > self.deadline:
                raise ProcessDied("the process was ended too often, or it ran out of time")
            self.opened += 1
            Runner.opened_here += 1
            name = container_name(os.getpid(), Runner.opened_here)
            self.sandbox = Sandbox(self.alone, self.deadline, name, self.solutions)
            for k, (_, text, given) in enumerate(self.steps):
                if isinstance(self.errors.get(k), ProcessDied):
                    continue
                try:
                    self.sandbox.ask({"run": text, "given": given}, sandbox.CELL_S)
                except StudentError as error:
                    self.errors[k] = error
                except ProcessDied as error:
                    self.errors[k] = error
                    self.close()
                    break

    def close(self):
        """End the process; what it took is added up."""
        if self.sandbox:
            self.sandbox.close()
            self.peak_bytes = max(self.peak_bytes, self.sandbox.peak_bytes)
            self.processor_s += self.sandbox.processor_s
        self.sandbox = None

    def messages(self):
        """The errors of cells: [(id or None, text)]."""
        return [(self.steps[k][0], readable(error)) for k, error in sorted(self.errors.items())]


def container_name(pid, number):
    """The names of a judging process's containers."""
    return f"minihybrid-{pid}-{number}"


def run_test(cell, names):
    """Run a cell of tests: the reason why it failed, or None."""
    try:
        exec(compile(cell["source"], id_of(cell), "exec"), names)
    except (AssertionError, StudentError) as error:
        return readable(error)
    except ProcessDied as error:
        return f"your code gave no answer: {error}"
    except MemoryError:
        return "the result is too large to check"
    except Exception as error:
        kind = type(error).__name__
        return f"the result is not of the kind that is needed ({kind}: {readable(error, 200)})"


@np.errstate(all="ignore")  # students' NaN are wrong, and no warning of ours
def judged(source, cells, alone=None):
    """The marks of a submission's cells, as `summed` puts them together.

    alone:   what `isolation` returns.
    """
    (steps, notes), tests = program(source, cells), []
    alone = alone or isolation()
    runner = Runner(steps, alone, names_of(source, "solution"))
    own = [c for c in source["cells"] if "apart" in tags(c)]
    apart = Runner([(id_of(c), c["source"], False) for c in own], alone)  # opened by its first call
    names = {"__builtins__": builtins}
    names |= {name: Remote(runner, name) for name in names_of(source, "given", "solution")}
    names |= {name: Remote(apart, name) for c in own for name in defined(c)}
    for cell in source["cells"]:
        if "judge" in tags(cell):
            exec(compile(cell["source"], "judge", "exec"), names)
    try:
        runner.open()
    except ProcessDied as error:
        notes.append(f"Your cells could not be run: {error}.")
    try:
        for cell in source["cells"]:
            if kind(cell) == "tests":
                wrong = run_test(cell, dict(names))
                mark = {"id": id_of(cell), "of": points(cell), "wrong": wrong}
                tests.append(mark | {"points": 0 if wrong is not None else points(cell)})
    finally:
        runner.close()
        apart.close()
    used = {"peak_bytes": runner.peak_bytes, "processor_s": runner.processor_s}
    text = "\n\n".join(text for _, text, given in steps if not given)
    return summed(tests, runner.messages(), notes) | used | {"text": readable(text, TEXT)}


def summed(tests, cells, notes):
    """The stored result of a submission."""
    points, of = (sum(t[k] for t in tests) for k in ("points", "of"))
    return {"tests": tests, "cells": cells, "notes": notes, "points": points, "of": of}


def refused(source, why):
    """The stored result of a submission that is not graded: its points are None."""
    tests = [
        {"id": id_of(c), "of": points(c), "wrong": "not graded", "points": 0}
        for c in source["cells"]
        if kind(c) == "tests"
    ]
    notes = [f"This was not graded: {readable(why)}."]
    return summed(tests, [], notes) | {"points": None, "refused": True}


def stamp(source):
    """The other inputs of a mark: the tests, and this program."""
    programs = [p.read_bytes() for p in sorted(Path(__file__).parent.glob("*.py"))]
    cells = json.dumps([c["source"] for c in source["cells"]]).encode()
    return digest(cells, *programs)


# -- one process per submission ------------------------------------------------------------
def graded(source, path, folder):
    """The marks of a file, from a process of its own with limits on memory and time."""
    started = time.monotonic()
    job = {
        "source": source,
        "path": str(path),
        "folder": str(folder),
        "seconds": {name: getattr(sandbox, name) for name in SECONDS},
        "isolation": isolation(),
    }
    result = run_job(source, json.dumps(job).encode())
    return result | {"elapsed_s": round(time.monotonic() - started, 2)}


def run_job(source, job):
    """What a judging process prints for a job; refused if it doesn't come to an end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "minihybrid_course.grading.judge"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        start_new_session=hasattr(os, "setsid"),
    )
    try:
        process.stdin.write(job + b"\n")
        process.stdin.flush()  # and left open: its end tells the process that we are gone
        timer = threading.Timer(sandbox.ALL_S + JUDGE_S, process.kill)
        timer.start()
        output = process.stdout.read()
        timer.cancel()
        if process.wait() == 0:
            return json.loads(output)
    except (BrokenPipeError, ValueError):
        pass
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
        if process.returncode and isolation()[0] == DOCKER:
            end_containers(process.pid)
    return refused(
        source,
        f"judging it took more than {JUDGE_BYTES >> 30} GB of memory or {JUDGE_S} s; "
        "clear all outputs and the notebook's metadata, and hand in again",
    )


def end_containers(pid):
    """End the containers that a judging process left behind."""
    for number in range(1, 2 * (RETRIES + 1) + 1):
        container.end(container_name(pid, number))


def die_with_grader(kind):
    """End this process, and so its sandbox, when the grader's end of the pipe closes."""
    while os.read(0, 1):
        pass
    if kind == DOCKER:
        end_containers(os.getpid())
    os._exit(1)


def main():
    job, output = json.loads(sys.stdin.buffer.readline()), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # tests may print
    for name, seconds in job["seconds"].items():
        setattr(sandbox, name, seconds)
    alone = tuple(job["isolation"])
    threading.Thread(target=die_with_grader, args=alone[:1], daemon=True).start()
    if sys.platform != "win32":
        import resource

        # The soft limits alone: the sandbox's own processes set theirs.
        for limit, value in ((resource.RLIMIT_AS, JUDGE_BYTES), (resource.RLIMIT_CPU, JUDGE_S)):
            resource.setrlimit(limit, (value, resource.getrlimit(limit)[1]))
    source = job["source"]
    try:
        notebook = notebook_of(read(job["path"], job["folder"]))
        result = judged(source, cells_of(notebook), alone)
        result["answer"] = answer_of(notebook, source)
    except Refused as error:
        result = refused(source, error)
    with os.fdopen(output, "w", encoding="utf-8") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main()
