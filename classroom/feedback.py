"""Lay feedback where nbgrader hands it back from: in its folder of a course.

    nbgrader collect 1_autograd                     # in the course's folder
    python -m classroom.grade course/submitted --assignment 1 --variant 7
    python -m classroom.feedback course --assignment 1
    nbgrader release_feedback 1_autograd            # in the course's folder

Students then find the grader's page in JupyterLab, under Assignments.
"""

import argparse
import sys
from pathlib import Path

from classroom import marks
from classroom.grade import submissions
from classroom.judge import Refused, read
from classroom.sources import ClassroomError, full_name

# nbgrader finds a submission again by these files, which its copy has.
KNOWN_BY = ("timestamp.txt", "submission_secret.txt")


def lay(course, name, graded):
    """Copy the page of each student who has one; returns who could not be given his.

    course: nbgrader's folder, with `submitted`; graded: what the grader wrote.
    """
    left, submitted = [], course / "submitted"
    for one in submissions(submitted, name):
        out = course / "feedback" / one.student / name
        try:
            page = (
                graded
                / f"feedback/{marks.file_name({'student': one.student, 'key': one.key})}.html"
            ).read_bytes()
            known = {f: read(submitted / one.student / name / f, submitted) for f in KNOWN_BY}
        except (Refused, OSError):
            left.append(one.student)
            continue
        out.mkdir(parents=True, exist_ok=True)
        for file, data in known.items() | {(f"{name}.html", page)}:
            (out / file).write_bytes(data)
    return left


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("course", type=Path)
    parser.add_argument("--assignment", required=True, help="its number, such as 1")
    parser.add_argument("--graded", type=Path, help="usually course/submitted-graded")
    asked = parser.parse_args()
    graded = asked.graded or asked.course / "submitted-graded"
    try:
        left = lay(asked.course, full_name(asked.assignment), graded)
    except (ClassroomError, OSError) as error:
        sys.exit(f"{error}")
    for student in left:
        print(f"{student} has no page, or what was submitted is not from nbgrader")


if __name__ == "__main__":
    main()
