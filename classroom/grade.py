"""Grade a folder of submissions; a submission is graded once.

    python -m classroom.grade submissions --assignment 1 --variant 7

Writes, beside the folder of submissions, a folder "graded": marks.csv in nbgrader's form,
moodle.csv and canvas.csv, and a page of feedback for each student. Stopped and started
again, it goes on where it was: what is known of a submission stands in graded/known.
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
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from classroom import marks
from classroom.judge import Refused, digest, graded, read, refused, stamp
from classroom.page import page
from classroom.room import isolation
from classroom.sources import ClassroomError, chosen, names, source

# How Moodle names folders, and Canvas files.
MOODLE = re.compile(r"(?P<name>.+)_(?P<id>\d+)_assignsubmission_file_?")
CANVAS = re.compile(r"(?P<name>[^_]+)_(?:LATE_)?(?P<id>\d+)_\d+_.+")


@dataclass
class Submission:
    """What one student handed in: a path, or why there is none."""

    student: str
    number: str  # of the learning platform, or ""
    path: Path | None
    why: str = ""

    @property
    def key(self):
        return digest(self.student.encode("utf-8", "surrogatepass"), self.number.encode())


def hidden(path):
    """Whether a path is not the student's own: checkpoints, and what macOS puts into a zip.

    >>> hidden(Path("__MACOSX/anna/1.ipynb")), hidden(Path("anna/._1.ipynb")), hidden(Path("a/b"))
    (True, True, False)
    """
    return any(part.startswith((".", "__MACOSX")) for part in path.parts)


def submission_of(entry, name):
    """The submission that lies at a folder or file of the folder of submissions."""
    label = unicodedata.normalize("NFC", entry.stem if entry.suffix == ".ipynb" else entry.name)
    found = MOODLE.fullmatch(label) or CANVAS.fullmatch(label)
    who = (found["name"], found["id"]) if found else (label, "")
    if entry.is_symlink() or entry.is_file():
        return Submission(*who, entry)
    files = sorted(p for p in entry.rglob("*.ipynb") if not hidden(p.relative_to(entry)))
    right = [p for p in files if p.stem == name] or files
    if len(right) == 1:
        return Submission(*who, right[0])
    what = f"{len(right)} notebooks were handed in" if right else "no notebook was handed in"
    return Submission(*who, None, f"{what}; one file, {name}.ipynb, is needed")


def entries_of(folder):
    """(what is a submission, what is another kind of file), in order; without hidden files."""
    entries = [e for e in sorted(folder.iterdir()) if not hidden(Path(e.name))]
    right = [e for e in entries if e.suffix == ".ipynb" or e.is_dir() or e.is_symlink()]
    return right, [e for e in entries if e not in right]


def submissions(folder, name):
    """All submissions of a folder, in order."""
    entries, _ = entries_of(folder)
    if not entries:
        raise ClassroomError(
            f"{folder} has no submissions: a folder or a notebook for each student is needed"
        )
    return [submission_of(entry, name) for entry in entries]


def variant_of(submission, folder):
    """The variant that a submission's file names, or None: a student can change that, too."""
    try:
        return int(json.loads(read(submission.path, folder))["metadata"]["variant"])
    except (Refused, OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def must_be_of(variant, todo, folder):
    """Raise ClassroomError where most submissions are of another variant: a word forgotten."""
    said = Counter(variant_of(s, folder) for s in todo if s.path)
    most, number = said.most_common(1)[0] if said else (None, 0)
    if most not in (None, variant) and number > len(todo) / 2:
        raise ClassroomError(
            f"{number} of {len(todo)} submissions are of variant {most}, and {variant} is asked "
            f"for, whose tests they would not pass: say --variant {most} (make: VARIANT={most})"
        )


def write(path, text):
    """Write a file whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def mark(submission, folder, notebook, known, version):
    """What is known of a submission; graded now, if it was not before."""
    path = known / f"{submission.key}.json"
    try:
        if submission.path is None:
            raise Refused(submission.why)
        contents = digest(read(submission.path, folder))
    except (Refused, OSError) as error:
        contents = digest(str(error).encode())
    now = digest(version.encode(), contents.encode())
    if path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        if before["of_what"] == now:
            return before
    if submission.path is None:
        found = refused(notebook, submission.why)
    else:
        found = graded(notebook, submission.path, folder)
    found |= {"of_what": now, "student": submission.student, "number": submission.number}
    write(path, json.dumps(found))
    return found


@contextmanager
def here(jobs):
    """(a pool of threads, what keeps students' code apart on this machine)."""
    with ThreadPoolExecutor(jobs) as pool:
        yield pool, isolation()


def grade(folder, name, variant, out, place=None):
    """Grade all submissions of a folder; returns what is known of each.

    place: where the work is done, `here` or on a cluster (classroom/cluster.py).
    """
    notebook = chosen(source(name), variant)
    name = next(n for n in names() if name in (n, n.partition("_")[0]))
    todo, version = submissions(folder, name), stamp(notebook)
    must_be_of(variant, todo, folder)
    known, pages = out / "known", out / "feedback"
    for path in (known, pages):
        path.mkdir(parents=True, exist_ok=True)
    with place or here(2) as (pool, walls):
        print("\n".join(walls))
        futures = [pool.submit(mark, s, folder, notebook, known, version) for s in todo]
        try:
            for _ in tqdm(as_completed(futures), total=len(todo), unit="submission", disable=None):
                pass
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            print("Stopped; the same command goes on from here.")
            raise
        found = [f.result() for f in futures]
    for submission, marked in zip(todo, found, strict=True):
        write(pages / f"{marks.file_name(submission)}.html", page(name, marked))
    for kind, text in marks.tables(name, found).items():
        write(out / f"{kind}.csv", text)
    write(out / "isolation.txt", "\n".join(walls) + "\n")
    return found


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
        found = grade(folder, asked.assignment, asked.variant, out, place or here(asked.jobs))
    except (ClassroomError, FileNotFoundError, NotADirectoryError) as error:
        sys.exit(f"{error}")
    spent = sum(f["elapsed_s"] for f in found if "elapsed_s" in f)
    print(f"{len(found)} submissions, {spent / len(found):.1f} s each; marks in {out}")
    for one in found:
        if "refused" in one:
            print(f"{one['student']}: {one['notes'][0]}")
    if others := entries_of(folder)[1]:
        print(f"Left out, as neither folder nor notebook: {', '.join(e.name for e in others)}")


if __name__ == "__main__":
    main(options().parse_args())
