"""Adjust marks by hand: overridden marks, extra credit, late days, parts graded by hand.

A table lists the changes, one per row:

    student,item,points,comment
    4711,matmul_slope,2,right; the sheet had a wrong sign
    anna,essay,4/5,the bound is right; the proof lacks a case
    anna,extra,1.5,found an error in the sheet
    kim,late,2,
    zoe,total,21,graded in person

`item` is a test whose points are replaced; `total`, which replaces the sum; `late`, with the
number of days; or any other name: `4/5` grades a part by hand, and `1.5` is extra credit. The
table is applied after grading, so it survives regrading.
"""

import copy
import math
from typing import NamedTuple

from minihybrid_course.grading.sources import ClassroomError, table

LATE, TOTAL = "late", "total"


class Change(NamedTuple):
    """One row of the table; `of` is None if the row doesn't state a maximum."""

    student: str
    item: str
    points: float
    of: float | None
    comment: str


def changes(path):
    """Read the rows of a table of changes."""
    rows = []
    for line, row in table(path, "student", "item", "points", "comment"):
        points, slash, of = row["points"].partition("/")
        try:
            numbers = [float(points), float(of) if slash else None]
            if not all(n is None or math.isfinite(n) for n in numbers):
                raise ValueError
        except ValueError:
            raise ClassroomError(
                f"{path}, line {line}: points are a number such as 2 or 4/5, not {row['points']!r}"
            ) from None
        rows.append(Change(row["student"], row["item"], *numbers, row["comment"]))
    return rows


def adjusted(results, rows, late_percent=10, free_days=0):
    """Apply the changes to stored results; warn about each row without a submission.

    A part graded by hand applies to the whole class: students without a row have no mark yet.
    """
    ids = {t["id"] for one in results for t in one["tests"]}
    parts = {row.item: row.of for row in rows if row.of is not None and row.item not in ids}
    todo, new = list(rows), []
    for one in results:
        names = {one["student"], one["number"]} - {""}
        mine = [row for row in todo if row.student in names]
        todo = [row for row in todo if row.student not in names]
        new.append(_changed(one, mine, parts, late_percent, free_days))
    return new, [f"{row.student}: no submission has this ID or name, so {row.item} isn't used"
                 for row in todo]  # fmt: skip


def _changed(result, rows, parts, late_percent, free_days):
    new, days, total = copy.deepcopy(result), 0, None
    tests = {t["id"]: t for t in new["tests"]}
    for row in rows:
        why = f": {row.comment}" if row.comment else ""
        if row.item == LATE:
            days += row.points
        elif row.item == TOTAL:
            total = row.points
            new["notes"].append(f"Your teacher set the total to {total:g} points{why}.")
        else:
            test = tests.setdefault(row.item, {"id": row.item, "of": row.of or 0})
            test |= {"points": row.points, "wrong": None, "comment": row.comment}
    for part in parts.keys() - tests.keys():
        tests[part] = {"id": part, "of": parts[part], "points": 0, "wrong": "not graded yet"}
    new["tests"] = list(tests.values())
    new["of"] = sum(t["of"] for t in new["tests"])
    counts = result["points"] is not None or any(row.item != LATE for row in rows)
    if total is None and counts and parts.keys() <= {row.item for row in rows}:
        total = sum(t["points"] for t in new["tests"])
    late_days = max(0, days - free_days)
    new["points"] = total
    new["penalty"] = round((total or 0) * min(1, late_days * late_percent / 100), 2)
    if late_days:
        new["notes"].append(
            f"{days:g} days late, {min(days, free_days):g} of them free: "
            f"{new['penalty']:g} points are deducted."
        )
    return new
