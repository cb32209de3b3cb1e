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


def score(one):
    """The points after the deduction for late days, or None if there is no mark."""
    return None if one["points"] is None else round(one["points"] - one["penalty"], 2)


def number(value):
    """How a table shows points: nothing if there is no mark."""
    return "" if value is None else f"{value:g}"


def comment(one):
    """One line about a result, for a gradebook."""
    if "refused" in one and one["points"] is None:
        return safe(one["notes"][-1])
    lost = [t["id"] for t in one["tests"] if t["points"] < t["of"]]
    comments = [f"{t['id']}: {t['comment']}" for t in one["tests"] if t.get("comment")]
    return "; ".join([f"lost in: {', '.join(lost)}" if lost else "all tests passed", *comments])


def tables(name, results):
    """Kind of table -> its rows; a submission that was not graded has an empty mark."""
    of = number(results[0]["of"])
    rows = {
        "marks": [NBGRADER],
        "moodle": [MOODLE],
        "canvas": [
            ["Student", "ID", "SIS Login ID", "Section", name],
            ["    Points Possible", "", "", "", of],
        ],
    }
    for one in results:
        student, id = safe(one["student"]), one["number"]
        raw, points, penalty = number(one["points"]), number(score(one)), number(one["penalty"])
        last, first = (student, "") if id else ("", "")
        rows["marks"].append(
            [name, "", "", id or student, last, first, "", raw, penalty, points, of]
        )
        participant = f"Participant {id}" if id else ""
        rows["moodle"].append([participant, student, points, of, NEVER, comment(one)])
        rows["canvas"].append([student, id, "" if id else student, "", points])
    return rows


def text_of(rows):
    """A table as CSV."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue()
