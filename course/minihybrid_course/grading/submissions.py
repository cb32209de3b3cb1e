"""Find the submissions in a folder, one for each student.

Supports a folder or a notebook per student, or the unpacked zip of Moodle or Canvas.
"""

import os
import re
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path

from minihybrid_course.grading.judge import digest
from minihybrid_course.grading.sources import ClassroomError
from minihybrid_course.grading.text import readable

# Moodle's folder names, Canvas's file names: resubmissions have higher attachment numbers.
MOODLE = re.compile(r"(?P<name>.+)_(?P<id>\d+)_assign(?:submission|feedback)_file_?")
CANVAS = re.compile(r"(?P<name>[^_]+)_(?:LATE_)?(?P<id>\d+)_(?P<attachment>\d+)_.+")

MOST_LEVELS = 20  # of nested folders in a submission


@dataclass
class Submission:
    """One student's submission: a path, or the reason why there isn't one."""

    student: str
    number: str  # the learning platform's ID, or ""
    path: Path | None
    why: str = ""
    attachment: str = ""  # Canvas's attachment number; the largest counts
    variant: int = 0
    notes: list = field(default_factory=list)

    @property
    def key(self):
        return digest(self.student.encode("utf-8", "surrogatepass"), self.number.encode())

    @property
    def who(self):
        """Return the student's identity for a stored result."""
        return {name: getattr(self, name) for name in ("student", "number", "attachment", "key")}


def hidden(path):
    """Return whether a path isn't the student's: checkpoints, and macOS's files in zips.

    >>> hidden(Path("__MACOSX/anna/1.ipynb")), hidden(Path("anna/._1.ipynb")), hidden(Path("a/b"))
    (True, True, False)
    """
    return any(part.startswith((".", "__MACOSX")) for part in path.parts)


def is_notebook(path):
    """Return whether a file name ends in .ipynb, ignoring case."""
    return path.suffix.lower() == ".ipynb"


def is_folder(entry):
    return entry.is_dir() and not entry.is_symlink()


def files_in(folder):
    """Return the files below a folder, in order, at most `MOST_LEVELS` folders deep."""
    paths = []
    for place, folders, names in os.walk(folder):
        if len(Path(place).relative_to(folder).parts) >= MOST_LEVELS:
            folders.clear()
        paths += [Path(place, file) for file in names]
    return sorted(paths)


def submission_of(entry, name):
    """Return the submission in an entry of the folder of submissions.

    Moodle's pattern applies only to folders and Canvas's only to files, so a file named like
    one of Moodle's folders is an ordinary file.
    """
    label = entry.name if is_folder(entry) else re.sub(r"(?i)\.ipynb$", "", entry.name)
    label = re.sub(r"\s", " ", readable(unicodedata.normalize("NFC", label), 200))
    match = (MOODLE if is_folder(entry) else CANVAS).fullmatch(label)
    who = (match["name"], match["id"]) if match else (label, "")
    if not is_folder(entry):
        return Submission(*who, entry, attachment=match["attachment"] if match else "")
    inside = files_in(entry)
    files = [p for p in inside if is_notebook(p) and not hidden(p.relative_to(entry))]
    right = [p for p in files if p.stem == name] or files
    if len(right) == 1:
        return Submission(*who, right[0])
    if right:
        what = f"{len(right)} notebooks were handed in"
    elif any(p.suffix.lower() == ".zip" for p in inside):
        what = "a zip was handed in; unpack it into the same folder"
    elif any(map(is_notebook, inside)):
        what = "the notebook is in a hidden folder or has a hidden name"
    else:
        what = "no notebook was handed in"
    return Submission(*who, None, f"{what}; one file, {name}.ipynb, is needed")


def entries_of(folder):
    """Return (submissions, other files and hidden folders), in order."""
    entries = sorted(folder.iterdir(), key=lambda e: os.fsencode(e.name))
    right = [e for e in entries if is_notebook(e) or e.is_dir() or e.is_symlink()]
    right = [e for e in right if not hidden(Path(e.name))]
    return right, [e for e in entries if e not in right and e.name != ".DS_Store"]


def submissions(folder, name):
    """Return all submissions of a folder, in order, one for each student."""
    entries, _ = entries_of(folder)
    if not entries:
        raise ClassroomError(
            f"{folder} has no submissions: a folder or a notebook for each student is needed"
        )
    students = {}
    for entry in entries:
        try:
            one = submission_of(entry, name)
        except Exception as error:  # untrusted names and links can raise anything
            why = f"the folder can't be read ({type(error).__name__}: {error})"
            one = Submission(readable(entry.name, 200), "", None, why)
        students.setdefault(one.number or one.student, []).append(one)
    return [one_of(several) for several in students.values()]


def one_of(several):
    """Return the submission of a student that counts: the last attempt, if known."""
    several.sort(key=lambda one: int(one.attachment[-18:] or 0))
    last = several[-1]
    if len(several) > 1 and last.attachment == several[-2].attachment:
        why = f"{len(several)} submissions have this name; one folder or file is needed"
        return Submission(last.student, last.number, None, why)
    if len(several) > 1:
        last.notes.append(f"The last of {len(several)} attempts was graded.")
    return last
