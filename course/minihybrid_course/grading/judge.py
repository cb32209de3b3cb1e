"""Grade one submission: run the student's cells in a sandbox, and the tests here.

    python -m minihybrid_course.grading.judge < job.json

The tests of a source are Python with assertions. Calls of the student's functions run in the
sandbox, and only numbers, strings and arrays are returned. So nothing that the student's code
does to NumPy, to `assert` or to the engine affects the tests, and the student's code can't
access them.

Parsing a hostile notebook and testing hostile results can exhaust memory and time. So the
grader runs this module in a separate process with limits for each submission (`graded`).
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
RETRIES = 4  # how often a sandbox is reopened after its process died
SECONDS = ("CELL_S", "TEST_S", "ALL_S")  # of the module sandbox, with the grader's values
JUDGE_BYTES, JUDGE_S = 2 << 30, 60  # of this process: memory, and time in addition to the sandbox's


class Refused(Exception):
    """A submission that is not graded; the message gives the reason."""


def digest(*parts):
    """Hash the inputs that determine a mark, as a cache key."""
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


# -- reading -----------------------------------------------------------------------------
def read(path, folder):
    """Return the bytes of a submission in `folder`; raise Refused."""
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
    """Parse a notebook from bytes, as dicts in format 4; raise Refused."""
    try:
        notebook = json.loads(data.decode("utf-8-sig"))
        if notebook["nbformat"] != 4:
            import nbformat  # slow to import, and only needed for old formats

            notebook = nbformat.convert(nbformat.from_dict(notebook), 4)
        for cell in notebook["cells"]:
            if not isinstance(cell, dict) or not {"source", "metadata", "cell_type"} <= cell.keys():
                raise ValueError("a cell without text or metadata")
            text = cell["source"]
            cell["source"] = "".join(text) if isinstance(text, list) else text
            if not isinstance(cell["source"], str) or not isinstance(cell["metadata"], dict):
                raise ValueError("a cell without text or metadata")
            cell["cell_type"].encode()
    except Exception as error:  # untrusted JSON can raise anything
        reason = readable(error, 200).partition("\n")[0]
        raise Refused(f"the file is not a notebook that can be read ({reason})") from None
    return notebook


def cells_of(notebook):
    """Return the code cells of a notebook; raise Refused."""
    cells = [c for c in notebook["cells"] if c["cell_type"] == "code"]
    if len(cells) > MOST_CELLS:
        raise Refused(f"the notebook has {len(cells)} code cells, and the limit is {MOST_CELLS}")
    return cells


def answer_of(notebook, source):
    """Return a student's text cells, such as the answer to an open question."""
    known = {c["source"].strip() for c in source["cells"]}
    cells = [c for c in notebook["cells"] if c["cell_type"] == "markdown"]
    texts = [c["source"].strip() for c in cells]
    return readable("\n\n".join(t for t in texts if t not in known), TEXT)


# -- running -----------------------------------------------------------------------------
def program(source, cells):
    """Return the cells that run in the sandbox, and notes on them.

    Given cells run as in the source, tests don't run, and everything else is the
    student's, in the notebook's order, as in Jupyter.
    Returns: [(id or None, source, whether it is given)], notes
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
    """The sandbox of one submission; if its process dies, reopen it and rerun all cells."""

    opened_here = 0  # sandboxes opened by this process, for unique container names

    def __init__(self, steps, alone, solutions=()):
        self.steps, self.alone, self.solutions, self.errors = steps, alone, solutions, {}
        self.sandbox, self.opened = None, 0
        self.deadline = time.monotonic() + sandbox.ALL_S
        self.peak_bytes, self.processor_s = 0, 0.0

    def ask(self, request, seconds):
        """Call `Sandbox.ask`; if the process died, the next call opens a new one."""
        if self.sandbox is None:
            self.open()
        try:
            return self.sandbox.ask(request, seconds)
        except ProcessDied:
            self.close()
            raise

    def open(self):
        """Run all cells in a new sandbox, except those that killed an earlier one."""
        while self.sandbox is None:
            if self.opened > RETRIES or time.monotonic() > self.deadline:
                raise ProcessDied("the process was ended too often, or it ran out of time")
            self.opened += 1
            Runner.opened_here += 1
            name = container_name(os.getpid(), Runner.opened_here)
            self.sandbox = Sandbox(self.alone, self.deadline, name, self.solutions)
            for k, (_, text, is_given) in enumerate(self.steps):
                if isinstance(self.errors.get(k), ProcessDied):
                    continue
                try:
                    self.sandbox.ask({"run": text, "given": is_given}, sandbox.CELL_S)
                except StudentError as error:
                    self.errors[k] = error
                except ProcessDied as error:
                    self.errors[k] = error
                    self.close()
                    break

    def close(self):
        """End the process and add up its resource usage."""
        if self.sandbox:
            self.sandbox.close()
            self.peak_bytes = max(self.peak_bytes, self.sandbox.peak_bytes)
            self.processor_s += self.sandbox.processor_s
        self.sandbox = None

    def messages(self):
        """Return the errors of cells: [(id or None, text)]."""
        return [(self.steps[k][0], readable(error)) for k, error in sorted(self.errors.items())]


def container_name(pid, number):
    """Return the name of a container of a judging process."""
    return f"minihybrid-{pid}-{number}"


def run_test(cell, names):
    """Run a test cell; return why it failed, or None."""
    try:
        exec(compile(cell["source"], id_of(cell), "exec"), names)
    except (AssertionError, StudentError) as error:
        return readable(error)
    except ProcessDied as error:
        return f"your code gave no answer: {error}"
    except MemoryError:
        return "the result is too large to check"
    except NameError as error:  # in a student's own check, which lacks the solutions' names
        return f"NameError: {error.name} is not defined: its cell is empty or has failed"
    except Exception as error:
        kind = type(error).__name__
        return f"the result is not of the kind that is needed ({kind}: {readable(error, 200)})"


@np.errstate(all="ignore")  # NaN in a student's result is an error, not a warning
def judged(source, cells, alone=None):
    """Grade a submission's cells; return the result of `summed`.

    alone:   the result of `isolation`.
    """
    (steps, notes), tests = program(source, cells), []
    alone = alone or isolation()
    runner = Runner(steps, alone, names_of(source, "solution"))
    own = [c for c in source["cells"] if "apart" in tags(c)]
    apart = Runner([(id_of(c), c["source"], False) for c in own], alone)  # opened by its first call
    names = {"__builtins__": builtins}
    names |= {name: Remote(runner, name) for name in names_of(source, "given", "solution")}
    names |= {name: Remote(apart, name) for c in own for name in defined(c["source"])}
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
    text = "\n\n".join(text for _, text, is_given in steps if not is_given)
    return summed(tests, runner.messages(), notes) | used | {"text": readable(text, TEXT)}


def summed(tests, cells, notes):
    """Return the result of a submission in the stored format."""
    points, of = (sum(t[k] for t in tests) for k in ("points", "of"))
    return {"tests": tests, "cells": cells, "notes": notes, "points": points, "of": of}


def refused(source, why):
    """Return the result of a submission that isn't graded: its points are None."""
    tests = [
        {"id": id_of(c), "of": points(c), "wrong": "not graded", "points": 0}
        for c in source["cells"]
        if kind(c) == "tests"
    ]
    notes = [f"This was not graded: {readable(why)}."]
    return summed(tests, [], notes) | {"points": None, "refused": True}


def stamp(source):
    """Return a mark's other inputs, for the cache key: the tests, and this program."""
    programs = [p.read_bytes() for p in sorted(Path(__file__).parent.glob("*.py"))]
    cells = json.dumps([c["source"] for c in source["cells"]]).encode()
    return digest(cells, *programs)


# -- one process per submission ------------------------------------------------------------
def graded(source, path, folder):
    """Grade a file in a separate process with limits on memory and time."""
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
    """Return a judging process's output for a job; refuse the job if it doesn't finish."""
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
        process.stdin.flush()  # keep it open: EOF notifies the process that we ended
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
    """Kill the containers that a judging process left behind."""
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

        # Only the soft limits: the sandbox's processes set their own.
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
