"""Marks as tables: nbgrader's, Moodle's and Canvas's."""

import csv
import io
import re

NBGRADER = (
    "assignment duedate timestamp student_id last_name first_name email raw_score "
    "late_submission_penalty score max_score"
).split()

# Moodle's offline grading worksheet; its importer refuses a file without a time of grading.
MOODLE = [
    "Identifier",
    "Full name",
    "Grade",
    "Maximum Grade",
    "Last modified (grade)",
    "Feedback comments",
]
NEVER = "-"  # so a grade that Moodle has already is kept, unless the teacher says otherwise


def safe(text):
    """A text that no spreadsheet takes for a formula.

    >>> safe("=1+1"), safe("Łukasz")
    ("'=1+1", 'Łukasz')
    """
    return f"'{text}" if text[:1] in "=+-@\t\r" and text else text


def file_name(one):
    """A file name for a student's page that is valid on every system; keeps the alphabet."""
    text = re.sub(r'[\x00-\x1f<>:"/\\|?*]', "_", one["student"])
    while len(text.encode()) > 180:  # a file name has at most 255 bytes
        text = text[:-1]
    return f"{text.strip('. ') or 'student'}-{one['key'][:6]}"


def tables(name, results):
    """Kind of table -> its text; a submission that was not graded has an empty mark."""
    of = results[0]["of"]
    rows = {
        "marks": [NBGRADER],
        "moodle": [MOODLE],
        "canvas": [
            ["Student", "ID", "SIS Login ID", "Section", name],
            ["    Points Possible", "", "", "", of],
        ],
    }
    for one in results:
        student, number = safe(one["student"]), one["number"]
        points = "" if one["points"] is None else one["points"]
        lost = [t["id"] for t in one["tests"] if t["points"] < t["of"]]
        last, first = (student, "") if number else ("", "")
        rows["marks"].append(
            [name, "", "", number or student, last, first, "", points, 0, points, of]
        )
        comment = "lost in: " + ", ".join(lost) if lost else "all tests passed"
        comment = safe(one["notes"][-1]) if "refused" in one else comment
        participant = f"Participant {number}" if number else ""
        rows["moodle"].append([participant, student, points, of, NEVER, comment])
        rows["canvas"].append([student, number, "" if number else student, "", points])
    return {kind: _text(lines) for kind, lines in rows.items()}


def _text(rows):
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue()
