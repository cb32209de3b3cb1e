"""Feedback pages in the formats that learning platforms import.

Moodle and Canvas import the zips that the grader writes. nbgrader reads pages from its course
folder:

    nbgrader collect 1_autograd                     # in the course's folder
    python -m minihybrid_course.grading.grade course/submitted --assignment 1 --variant 7
    python -m minihybrid_course.grading.feedback course --assignment 1
    nbgrader release_feedback 1_autograd            # in the course's folder

Students then find the grader's page in JupyterLab, under Assignments.
"""

import argparse
import io
import zipfile
from pathlib import Path

from minihybrid_course.grading import marks
from minihybrid_course.grading.judge import Refused, read
from minihybrid_course.grading.sources import full_name, one_sentence
from minihybrid_course.grading.submissions import submissions

# nbgrader identifies a submission by these files, which are in its copy.
KNOWN_BY = ("timestamp.txt", "submission_secret.txt")


def zips(name, results, pages):
    """Return platform -> a zip of its students' pages, if there are any.

    Moodle identifies students by the second underscore-separated part of a folder's name, the
    participant; Canvas by a file name's first two numeric parts, user and attachment.
    """
    files_of = {}
    for one in results:
        student, number, attachment = one["student"], one["number"], one["attachment"]
        if not number:
            continue
        student = marks.file_name(one).rpartition("-")[0].replace("_", "-")
        if attachment:
            kind, place = "canvas", f"{student}_{number}_{attachment}_{name}.html"
        else:
            kind, place = "moodle", f"{student}_{number}_assignfeedback_file_/{name}.html"
        files_of.setdefault(kind, {})[place] = pages[one["key"]]
    return {kind: _zip(files) for kind, files in files_of.items()}


def _zip(files):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as file:
        for place, text in files.items():
            file.writestr(place, text)
    return data.getvalue()


def lay(course, name, graded):
    """Copy each student's page to nbgrader's folder; return the students without one.

    course: nbgrader's folder, with `submitted`; graded: the grader's output.
    """
    left, submitted = [], course / "submitted"
    for one in submissions(submitted, name):
        out, page = course / "feedback" / one.student / name, f"{marks.file_name(one.who)}.html"
        try:
            files = {f"{name}.html": (graded / "feedback" / page).read_bytes()}
            files |= {f: read(submitted / one.student / name / f, submitted) for f in KNOWN_BY}
        except (Refused, OSError):
            left.append(one.student)
            continue
        out.mkdir(parents=True, exist_ok=True)
        for file, data in files.items():
            (out / file).write_bytes(data)
    return left


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("course", type=Path)
    parser.add_argument("--assignment", required=True, help="its number, such as 1")
    parser.add_argument("--graded", type=Path, help="usually course/submitted-graded")
    args = parser.parse_args()
    graded = args.graded or args.course / "submitted-graded"
    with one_sentence():
        left = lay(args.course, full_name(args.assignment), graded)
    for student in left:
        print(f"{student} has no page, or what was submitted is not from nbgrader")


if __name__ == "__main__":
    main()
