"""Mark tables in the formats of nbgrader, Moodle and Canvas."""

import csv
import io
import re

NBGRADER = (
    "assignment duedate timestamp student_id last_name first_name email raw_score "
    "late_submission_penalty score max_score"
).split()

# Moodle's offline grading worksheet; its importer requires a time of grading.
MOODLE = [
    "Identifier",
    "Full name",
    "Grade",
    "Maximum Grade",
    "Last modified (grade)",
    "Feedback comments",
]
NEVER = "-"  # so grades already in Moodle are kept, unless the teacher decides otherwise


def safe(text):
    """Escape a text that a spreadsheet would interpret as a formula.

    >>> safe("=1+1"), safe("Łukasz")
    ("'=1+1", 'Łukasz')
    """
    return f"'{text}" if text[:1] in "=+-@\t\r" and text else text


def file_name(one):
    """Return a portable file name for a student's page; non-ASCII letters are kept."""
    text = re.sub(r'[\x00-\x1f<>:"/\\|?*]', "_", one["student"])
    while len(text.encode()) > 180:  # a file name has at most 255 bytes
        text = text[:-1]
    return f"{text.strip('. ') or 'student'}-{one['key'][:6]}"


def score(one):
    """Return the points minus the late penalty, or None if there is no mark."""
    return None if one["points"] is None else round(one["points"] - one["penalty"], 2)


def number(value):
    """Format points for a table: empty if there is no mark."""
    return "" if value is None else f"{value:g}"


def comment(one):
    """Return a one-line comment on a result, for a gradebook."""
    if "refused" in one and one["points"] is None:
        return safe(one["notes"][-1])
    lost = [t["id"] for t in one["tests"] if t["points"] < t["of"]]
    comments = [f"{t['id']}: {t['comment']}" for t in one["tests"] if t.get("comment")]
    return "; ".join([f"lost in: {', '.join(lost)}" if lost else "all tests passed", *comments])


def tables(name, results):
    """Return type of table -> its rows; ungraded submissions have an empty mark."""
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
    """Return a table as CSV."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue()
