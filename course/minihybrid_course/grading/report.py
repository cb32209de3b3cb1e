"""Class reports for teachers: statistics per test, and similar submissions."""

import io
import itertools
import tomllib
from collections import Counter

from minihybrid_course.grading.marks import safe
from minihybrid_course.grading.sources import FOLDER, id_of, kind

K = 25  # characters of tokens that count as a match
LEAST, SHARE = 100, 0.8  # minimum tokens, and fraction, that must match to be listed


def by_test(name, notebook, results):
    """Return rows: test, points, number of passes and failures, typical wrong answers.

    A wrong answer of wrong.toml is recognized by the tests it fails: all of those, and none
    of the other tests of its cell.
    """
    wrongs = tomllib.loads((FOLDER / "wrong.toml").read_text(encoding="utf-8")).get(name, [])
    tests_of, cell = {}, None
    for one in notebook["cells"]:
        cell = id_of(one) if kind(one) == "solution" else cell
        if kind(one) == "tests":
            tests_of.setdefault(cell, set()).add(id_of(one))
    of, passed, failed, typical = {}, Counter(), Counter(), {}
    for result in results:
        if "refused" in result:
            continue
        lost = {t["id"] for t in result["tests"] if t["wrong"] is not None}
        for test in result["tests"]:
            of[test["id"]] = test["of"]
            (failed if test["id"] in lost else passed)[test["id"]] += 1
        for wrong in wrongs:
            if lost & tests_of.get(wrong["cell"], set()) == set(wrong["loses"]):
                for test in wrong["loses"]:
                    typical.setdefault(test, Counter())[wrong["why"]] += 1
    rows = [["test", "points", "passed", "failed", "typical wrong answers"]]
    for test, points in of.items():
        why = "; ".join(f"{n} x {text}" for text, n in typical.get(test, Counter()).most_common(3))
        rows.append([test, points, passed[test], failed[test], why])
    return rows


def answers(results):
    """Return rows: student, and the student's text, for grading by hand."""
    rows = [[one["number"] or one["student"], one.get("answer", "")] for one in results]
    return [["student", "answer"], *([safe(text) for text in row] for row in rows if row[1])]


def similar(notebook, results):
    """Return rows: two students and the fraction of matching code; None without copydetect.

    Code from the assignment itself doesn't count.
    """
    try:
        from copydetect import CodeFingerprint, compare_files
    except ImportError:
        return None

    def prints(text, boilerplate=()):
        return CodeFingerprint(
            "cell.py", K, 1, list(boilerplate), language="python", fp=io.StringIO(text)
        )

    stubs = [c["source"] for c in notebook["cells"] if kind(c) in ("given", "solution")]
    common = prints("\n".join(s.partition("### BEGIN SOLUTION")[0] for s in stubs)).hashes
    texts = {safe(one["number"] or one["student"]): one.get("text", "") for one in results}
    codes = [(student, prints(text, common)) for student, text in texts.items() if text]
    rows, hashes = [], {student: set(code.hashes) for student, code in codes}
    for (one, first), (other, second) in itertools.combinations(codes, 2):
        least = min(len(hashes[one]), len(hashes[other]))
        if len(hashes[one] & hashes[other]) < least * SHARE / 2:
            continue  # so a large class takes seconds
        tokens, shares, _ = compare_files(first, second)
        if tokens >= LEAST and max(shares) >= SHARE:
            rows.append([one, other, round(max(shares), 2)])
    return [["student", "other", "share"], *sorted(rows, key=lambda row: -row[2])]
