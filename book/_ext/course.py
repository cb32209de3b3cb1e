"""Sphinx extension: what a teacher plans with, read from the chapters and the assignments.

    ```{course} 6
    ```

A number: the plan of so many weeks, from `book/course.toml`; `needs`: what each chapter
says that it needs; `contents`: how much each chapter has of what; `lectures`: the topics of
another course; `talks`: chapters that no plan has; `discussion`: questions and answers
of that file; `wrong`: what is wrong in assignments (`notebooks/assignments/wrong.toml`), and
the points that it loses; `exercises`: wrong answers that the checkers of exercises know;
`attacks`: what hostile students hand in (`tests/classroom/attacks.toml`), and what is left of
their points.
"""

import json
import re
import tomllib
from collections import Counter
from functools import cache
from html import escape
from pathlib import Path

from docutils import nodes
from landing import EXERCISE, ROOT, chapters, commas, link, minutes
from lines import count
from minihybrid_course.exercises import TABLE
from minihybrid_course.exercises.judging import Parts
from mistakes import prose
from results import as_table
from sphinx.util.docutils import SphinxDirective

FILE = Path(__file__).resolve().parents[1] / "course.toml"
ASSIGNMENTS = ROOT / "notebooks/assignments"
ATTACKS = ROOT / "tests/classroom/attacks.toml"
CARD = re.compile(  # the second form is older
    r"^\*\*You'll learn to.*?\*\*Needs:\*\*(?P<needs>.*?)\.$"
    r"|^\*[^*\n]*· \d+ minutes ·\s+needs(?P<old>.*?)·\s+opens",
    re.MULTILINE | re.DOTALL,
)
NEEDS = re.compile(r"\*\*Needs\*\* (.*?)[.;]", re.DOTALL)
TIME = re.compile(r"\*\*Time\*\* (.*?)[.;]", re.DOTALL)


def course():
    """The file with the plans and the questions."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def plan(n_weeks):
    """The plan of so many weeks: [(slugs of chapters, numbers of assignments), ...]."""
    chosen = next(p for p in course()["plan"] if len(p["weeks"]) == n_weeks)
    return [(week["chapters"], week.get("assignments", [])) for week in chosen["weeks"]]


def needs(slug):
    """The chapters that a chapter says it needs, as slugs."""
    card = CARD.search(chapters()[slug][2])
    return re.findall(r"\(\d\d_(\w+)\.ipynb", card["needs"] or card["old"] or "")


@cache
def assignments():
    """{number: (title, its first text, {test: points})}."""
    table = {}
    for path in sorted(ASSIGNMENTS.glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "".join(cells[0]["source"])
        graded = [c["metadata"]["nbgrader"] for c in cells if "nbgrader" in c["metadata"]]
        points = {g["grade_id"]: g["points"] for g in graded if g.get("grade")}
        title = re.match(r"# Assignment \d+: (.*)", text)[1]
        table[int(path.stem[0])] = title, text, points
    return table


def needs_of(assignment):
    """The numbers of the chapters that an assignment needs."""
    text = re.sub(r"part \d+", "", NEEDS.search(assignments()[assignment][1])[1])
    spans = [(int(a), int(b or a)) for a, b in re.findall(r"(\d+)(?: to (\d+))?", text)]
    return {n for a, b in spans for n in range(a, b + 1)}


# -- what stands on the page -------------------------------------------------------------
def name_of(slug):
    """A chapter's number and short title; the parts of `Build one` by what follows it."""
    stem, title, text, _ = chapters()[slug]
    shared = sum(title == other for _, other, *_ in chapters().values()) > 1
    return f"{int(stem[:2])}. {re.match('# (.*)', text)[1] if shared else title}"


def linked(slugs):
    return commas([link(chapters()[s][0], name_of(s)) for s in slugs])


def weeks(n_weeks):
    """A plan as a table: week, chapters, their hours, assignments, their hours."""
    rows = [("week", "chapters", "hours", "assignment", "its hours")]
    for k, (slugs, numbers) in enumerate(plan(n_weeks), 1):
        hours = f"{sum(map(minutes, slugs)) / 60:.1f}"
        titles = "; ".join(f"{n}: {assignments()[n][0]}" for n in numbers)
        times = " ".join(TIME.search(assignments()[n][1])[1] for n in numbers)
        rows.append((str(k), linked(slugs), hours, titles, times.replace(" hours", "")))
    return [as_table(rows)]


def needed():
    """What each chapter needs, and how long it takes."""
    rows = [("chapter", "needs", "minutes")]
    for slug in chapters():
        rows.append((linked([slug]), linked(needs(slug)), f"{minutes(slug):.0f}"))
    return [as_table(rows)]


def tagged(cells, tag):
    """The sources of the cells with a tag that matches."""
    return [
        "".join(c["source"])
        for c in cells
        if any(re.fullmatch(tag, t) for t in c["metadata"].get("tags", ()))
    ]


def lines_of_chapters():
    """{"29": lines of code}, of the engine's modules whose first line names the chapter."""
    totals = Counter()
    for path in (ROOT / "minihybrid").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if named := re.match(r'"""Chapter (\d\d)\. ', text):
            totals[named[1]] += count(text)
    return totals


@cache
def amounts(slug):
    """{column: how much of it a chapter has}."""
    stem, _, text, n_cells = chapters()[slug]
    cells = json.loads((ROOT / f"notebooks/{stem}.ipynb").read_text(encoding="utf-8"))["cells"]
    exercises = [number for number, *_ in EXERCISE.findall(text)]
    steps = {re.search(r"# step \d+", source)[0] for source in tagged(cells, r"nano-\d\d")}
    return {
        "lines of nano": sum(map(count, tagged(cells, r"nano-\d+"))),
        "cells": n_cells,
        "predictions": sum("predict" in c["metadata"] for c in cells),
        "exercises": len(exercises),
        "checked": sum(number in TABLE for number in exercises) + len(steps),
        "timed cells": len(tagged(cells, "timing")),
    }


def contents():
    """A table of these amounts and the engine's lines, with their sums."""
    lines = lines_of_chapters()
    totals = {
        slug: {"lines of the engine": lines[one[0][:2]], **amounts(slug)}
        for slug, one in chapters().items()
    }
    columns = list(totals["tour"])
    rows = [("chapter", *columns)]
    rows += [
        (linked([slug]), *(f"{n:,}" * (n > 0) for n in a.values())) for slug, a in totals.items()
    ]
    rows.append(("all", *(f"{sum(a[c] for a in totals.values()):,}" for c in columns)))
    return [as_table(rows)]


def lectures():
    """A table of the topics of CMU 10-414, and of what no exercise asks for."""
    rows = [("topic", "chapters", "exercises", "checked", "a student can't yet")]
    for one in course()["lecture"]:
        totals = [amounts(slug) for slug in one["chapters"]]
        counts = [str(sum(a[c] for a in totals)) for c in ("exercises", "checked")]
        rows.append((one["topic"], linked(one["chapters"]), *counts, one["missing"]))
    return [as_table(rows)]


def talks():
    """The chapters that the longest plan leaves out."""
    planned = {slug for slugs, _ in plan(12) for slug in slugs}
    return [linked([slug for slug in chapters() if slug not in planned])]


def fold(title, node):
    """A node that the page folds under a title."""
    texts = f"<details><summary>{escape(title)}</summary>", "</details>"
    before, after = (nodes.raw("", text, format="html") for text in texts)
    return [before, node, after]


def discussion():
    """Questions, each with its answer folded below it."""
    result = []
    for one in course()["discussion"]:
        question = prose(one["question"])
        question += [nodes.Text(" ("), *linked([one["chapter"]]).children, nodes.Text(")")]
        result += [question, *fold("Answer", prose(one["answer"]))]
    return result


def wrong():
    """What is wrong in assignments, each with the points that it loses."""
    result = []
    table = tomllib.loads((ASSIGNMENTS / "wrong.toml").read_text(encoding="utf-8"))
    for name, entries in sorted(table.items()):
        title, _, points = assignments()[int(name[0])]
        rows = [("task", "what is wrong", "points lost")]
        for one in entries:
            lost = sum(points[test] for test in one["loses"])
            rows.append((prose(f"`{one['cell']}`"), prose(one["why"]), str(lost)))
        result += [nodes.rubric(text=f"Assignment {name[0]}: {title}"), as_table(rows)]
    return result


def answers():
    """[(exercise, a wrong answer, why it is wrong), ...], as the checkers know them."""
    rows = []
    for number, exercise in TABLE.items():
        if isinstance(exercise, Parts):
            for part in exercise.parts:
                rows += [(number, f"{part.name}: {v}", why) for v, why in part.wrong.items()]
            rows += [(number, str(v), why) for v, why in exercise.whole.items()]
    return rows


def exercises():
    """The wrong answers as tables, one folded for each chapter."""
    result = []
    for slug, (stem, *_) in chapters().items():
        number = int(stem[:2])
        known = [a for a in answers() if int(a[0].partition(".")[0]) == number]
        rows = [("exercise", "the answer", "what was overlooked")]
        for exercise, answer, why in known:
            anchor = f"#exercise-{exercise.replace('.', '-')}"
            rows.append((commas([link(stem, exercise, anchor)]), answer, prose(why)))
        result += fold(name_of(slug), as_table(rows)) if known else []
    return result


def attacks():
    """What was tried against the grader, and the points before and after."""
    rows = [("what is handed in", "points before", "after")]
    for one in tomllib.loads(ATTACKS.read_text(encoding="utf-8"))["attack"]:
        rows.append((one["name"], "3 of 6", str(one.get("marks", "not graded"))))
    return [as_table(rows)]


PARTS = {
    "needs": needed,
    "contents": contents,
    "lectures": lectures,
    "talks": talks,
    "discussion": discussion,
    "wrong": wrong,
    "exercises": exercises,
    "attacks": attacks,
}


class Course(SphinxDirective):
    """One of the parts, or a plan of some weeks."""

    required_arguments = 1

    def run(self):
        for path in [
            FILE,
            ATTACKS,
            ASSIGNMENTS / "wrong.toml",
            *(ROOT / "notebooks").rglob("*.ipynb"),
        ]:
            self.env.note_dependency(str(path))
        part = self.arguments[0]
        return weeks(int(part)) if part.isdecimal() else PARTS[part]()


def setup(app):
    app.add_directive("course", Course)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
