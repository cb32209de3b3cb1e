"""Grade a folder of submissions; a submission is graded once.

    python -m classroom.grade submissions --assignment 1 --variant 7

Writes, beside the folder of submissions, a folder "graded": marks.csv in nbgrader's form,
moodle.csv and canvas.csv, and a page of feedback for each student. Stopped and started
again, it continues where it was: graded/known holds one file per submission.
"""

import argparse
import json
import os
import re
import sys
import unicodedata
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from classroom import marks
from classroom.judge import Refused, digest, graded, read, refused, stamp
from classroom.page import page
from classroom.sandbox import describe_isolation
from classroom.sources import ClassroomError, chosen, names, source
from classroom.text import readable

# How Moodle names folders, and Canvas files: a resubmission's file ends in -1, -2, ...
MOODLE = re.compile(r"(?P<name>.+)_(?P<id>\d+)_assignsubmission_file_?")
CANVAS = re.compile(r"(?P<name>[^_]+)_(?:LATE_)?(?P<id>\d+)_(?P<attempt>\d+)_.+")
VARIANT = re.compile(rb'"variant":\s*(-?\d{1,9})\b')  # in JSON, a quoted text has \"variant\"
FEW = 3  # notebooks that may be last year's copies without a question to the teacher


@dataclass
class Submission:
    """One student's submission: a path, or the reason why there is none."""

    student: str
    number: str  # of the learning platform, or ""
    path: Path | None
    why: str = ""
    attempt: int = 0  # of several, the largest counts
    notes: list = field(default_factory=list)

    @property
    def key(self):
        return digest(self.student.encode("utf-8", "surrogatepass"), self.number.encode())


def hidden(path):
    """Whether a path is not the student's own: checkpoints, and what macOS puts into a zip.

    >>> hidden(Path("__MACOSX/anna/1.ipynb")), hidden(Path("anna/._1.ipynb")), hidden(Path("a/b"))
    (True, True, False)
    """
    return any(part.startswith((".", "__MACOSX")) for part in path.parts)


def is_notebook(path):
    """Whether a file name ends in .ipynb, in any case."""
    return path.suffix.lower() == ".ipynb"


def is_folder(entry):
    return entry.is_dir() and not entry.is_symlink()


def submission_of(entry, name):
    """The submission in a folder or file of the folder of submissions.

    Moodle names folders and Canvas files, so a file named like one of Moodle's folders is
    only a file.
    """
    label = entry.name if is_folder(entry) else re.sub(r"(?i)\.ipynb$", "", entry.name)
    label = readable(unicodedata.normalize("NFC", label), 200)
    match = (MOODLE if is_folder(entry) else CANVAS).fullmatch(label)
    who = (match["name"], match["id"]) if match else (label, "")
    if not is_folder(entry):
        attempt = int(match["attempt"][-18:]) if match else 0
        return Submission(*who, entry, attempt=attempt)
    files = sorted(p for p in entry.rglob("*") if is_notebook(p) and not p.is_dir())
    files = [p for p in files if not hidden(p.relative_to(entry))]
    right = [p for p in files if p.stem == name] or files
    if len(right) == 1:
        return Submission(*who, right[0])
    others = sorted(p.suffix for p in entry.rglob("*") if p.is_file() and not is_notebook(p))
    if right:
        what = f"{len(right)} notebooks were handed in"
    elif ".zip" in others:
        what = "a zip was handed in; unpack it into the same folder"
    else:
        what = "no notebook was handed in"
    return Submission(*who, None, f"{what}; one file, {name}.ipynb, is needed")


def entries_of(folder):
    """(submissions, files of other kinds and hidden folders), in order."""
    entries = sorted(folder.iterdir(), key=lambda e: os.fsencode(e.name))
    right = [e for e in entries if is_notebook(e) or e.is_dir() or e.is_symlink()]
    right = [e for e in right if not hidden(Path(e.name))]
    return right, [e for e in entries if e not in right and e.name != ".DS_Store"]


def submissions(folder, name):
    """All submissions of a folder, in order, one for each student."""
    entries, _ = entries_of(folder)
    if not entries:
        raise ClassroomError(
            f"{folder} has no submissions: a folder or a notebook for each student is needed"
        )
    students = {}
    for one in (submission_of(entry, name) for entry in entries):
        students.setdefault(one.number or one.student, []).append(one)
    return [one_of(several, name) for several in students.values()]


def one_of(several, name):
    """The submission of one student that counts: the last attempt, if known."""
    several.sort(key=lambda one: one.attempt)
    last = several[-1]
    if len(several) > 1 and last.attempt == several[-2].attempt:
        why = f"{len(several)} submissions have this name; one folder or file is needed"
        return Submission(last.student, last.number, None, why)
    if len(several) > 1:
        last.notes.append(f"The last of {len(several)} attempts was graded.")
    return last


def variant_of(submission, folder):
    """The variant that a submission's file names, or None; the file is searched, not parsed."""
    try:
        match = VARIANT.search(read(submission.path, folder)) if submission.path else None
    except (Refused, OSError):
        return None
    return match and int(match[1])


def check_variants(variant, todo, folder):
    """A warning for each submission that names another variant.

    Raises:  ClassroomError if all of them name one other: a word was forgotten.
    """
    stated = {s.key: (s.student, v) for s in todo if (v := variant_of(s, folder)) is not None}
    others = Counter(v for _, v in stated.values() if v != variant)
    if len(others) == 1 and others.total() == len(stated) > FEW:
        other = next(iter(others))
        raise ClassroomError(
            f"all {len(stated)} notebooks are of variant {other}, whose solutions don't pass the "
            f"tests of variant {variant}: if you handed out variant {other}, say --variant {other} "
            f"(make: VARIANT={other})"
        )
    return [
        f"{student}: the notebook is of variant {number}, perhaps a copy of an earlier year's; "
        f"it is graded as {variant}"
        for student, number in stated.values()
        if number != variant
    ]


def write(path, text):
    """Write a file whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def mark(submission, folder, notebook, known, version):
    """What is stored of a submission; graded now, if it was not before.

    Whatever goes wrong is this submission's alone: it is not graded, and the others are.
    """
    try:
        return stored(submission, folder, notebook, known, version)
    except Exception as error:
        reason = f"the grader stopped with {type(error).__name__}: {error}; please report this"
        who = {"student": submission.student, "number": submission.number}
        return refused(notebook, reason) | who | {"key": submission.key}


def stored(submission, folder, notebook, known, version):
    """The result of `mark`, or the error that grading raised."""
    path = known / f"{submission.key}.json"
    try:
        if submission.path is None:
            raise Refused(submission.why)
        contents = digest(read(submission.path, folder))
    except (Refused, OSError) as error:
        contents = digest(str(error).encode("utf-8", "surrogatepass"))
    now = digest(version.encode(), contents.encode())
    if path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        if before["of_what"] == now:
            return before
    if submission.path is None:
        result = refused(notebook, submission.why)
    else:
        result = graded(notebook, submission.path, folder)
    result["notes"] = submission.notes + result["notes"]
    who = {"student": submission.student, "number": submission.number, "key": submission.key}
    result |= who | {"of_what": now}
    write(path, json.dumps(result))
    return result


@contextmanager
def here(jobs):
    """(a pool of threads, what isolates students' code on this machine)."""
    with ThreadPoolExecutor(jobs) as pool:
        yield pool, describe_isolation()


def grade(folder, name, variant, out, place=None):
    """Grade all submissions of a folder; returns what is stored of each.

    place: where the work is done, `here` or on a cluster (classroom/cluster.py).
    """
    notebook = chosen(source(name), variant)
    name = next(n for n in names() if name in (n, n.partition("_")[0]))
    todo, version = submissions(folder, name), stamp(notebook)
    known, pages = out / "known", out / "feedback"
    warnings = check_variants(variant, todo, folder)
    with place or here(2) as (pool, sentences):
        print("\n".join([*sentences, *warnings]))
        for path in (known, pages):
            path.mkdir(parents=True, exist_ok=True)
        futures = [pool.submit(mark, s, folder, notebook, known, version) for s in todo]
        try:
            for _ in tqdm(as_completed(futures), total=len(todo), unit="submission", disable=None):
                pass
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            print("Stopped; the same command continues from here.")
            raise
        results = [f.result() for f in futures]
    for one in results:
        write(pages / f"{marks.file_name(one)}.html", page(name, one))
    for kind, text in marks.tables(name, results).items():
        write(out / f"{kind}.csv", text)
    write(out / "isolation.txt", "\n".join(sentences) + "\n")
    return results


def folder(text):
    """A path; make says "" where its variable is missing, which would be the folder it is in."""
    if not text:
        raise argparse.ArgumentTypeError("name the folder of submissions (make: SUBMISSIONS=...)")
    return Path(text)


def assignment(text):
    """An assignment; make says "" where its variable is missing."""
    if not text:
        raise argparse.ArgumentTypeError(f"name one of {', '.join(names())} (make: ASSIGNMENT=1)")
    return text


def options():
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=folder)
    parser.add_argument(
        "--assignment", type=assignment, required=True, help="its number, such as 1"
    )
    parser.add_argument("--variant", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    return parser


def main(asked, place=None):
    folder = asked.folder.resolve()
    out = (asked.out or folder.parent / f"{folder.name}-graded").resolve()
    try:
        results = grade(folder, asked.assignment, asked.variant, out, place or here(asked.jobs))
    except (ClassroomError, FileNotFoundError, NotADirectoryError) as error:
        sys.exit(f"{error}")
    elapsed_s = sum(one.get("elapsed_s", 0) for one in results)
    print(f"{len(results)} submissions, {elapsed_s / len(results):.1f} s each; marks in {out}")
    for one in results:
        if "refused" in one:
            print(f"{one['student']}: {one['notes'][-1]}")
    if others := [readable(e.name, 200) for e in entries_of(folder)[1]]:
        print(f"Left out, as neither folder nor notebook: {', '.join(others)}")


if __name__ == "__main__":
    main(options().parse_args())
