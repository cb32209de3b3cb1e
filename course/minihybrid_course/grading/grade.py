"""Grade a folder of submissions; a submission is graded once.

    python -m minihybrid_course.grading.grade submissions --assignment 1 --variant 7

Writes, beside the folder of submissions, a folder "graded": marks.csv in nbgrader's form,
moodle.csv and canvas.csv, a page of feedback for each student, the same pages as zips for
Moodle and Canvas, tests.csv, answers.csv and similar.csv. It can be interrupted and resumed:
graded/known holds one file per submission.
"""

import argparse
import functools
import json
import os
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

from tqdm import tqdm

from minihybrid_course.grading import adjust, feedback, marks, report
from minihybrid_course.grading.judge import Refused, digest, graded, read, refused, stamp
from minihybrid_course.grading.page import page
from minihybrid_course.grading.sandbox import describe_isolation
from minihybrid_course.grading.sources import (
    ClassroomError,
    chosen,
    full_name,
    names,
    one_sentence,
    roster,
    source,
)
from minihybrid_course.grading.submissions import entries_of, submissions
from minihybrid_course.grading.text import readable

VARIANT = re.compile(rb'"variant":\s*(-?\d{1,9})\b')  # in JSON, a quoted text has \"variant\"
MAX_COPIES = 3  # notebooks that may be last year's copies without a question to the teacher


def variant_of(submission, folder):
    """Return the variant in a submission's file, or None; searches without parsing."""
    try:
        match = VARIANT.search(read(submission.path, folder)) if submission.path else None
    except (Refused, OSError):
        return None
    return match and int(match[1])


def check_variants(variant, todo, folder):
    """Return a warning for each submission with a different variant than its own.

    Raises:  ClassroomError if all of them share another one: an option was forgotten.
    """
    stated = [(s, v) for s in todo if (v := variant_of(s, folder)) is not None]
    others = Counter(v for s, v in stated if v != s.variant)
    if len(others) == 1 and others.total() == len(stated) > MAX_COPIES:
        other = next(iter(others))
        raise ClassroomError(
            f"all {len(stated)} notebooks are of variant {other}, whose solutions don't pass the "
            f"tests of variant {variant}: if you handed out variant {other}, say --variant {other} "
            f"(make: VARIANT={other})"
        )
    return [
        f"{s.student}: the notebook is of variant {number}, perhaps a copy of an earlier year's "
        f"or of a classmate's; it is graded as {s.variant}"
        for s, number in stated
        if number != s.variant
    ]


def write(path, data):
    """Write a file atomically."""
    part = path.with_name(path.name + ".part")
    part.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)
    os.replace(part, path)


def mark(submission, folder, notebook, known, version):
    """Return the stored result of a submission, grading it if necessary.

    Errors affect only this submission, which is not graded; the others are.
    """
    try:
        return stored(submission, folder, notebook, known, version)
    except Exception as error:
        reason = f"the grader stopped with {type(error).__name__}: {error}; please report this"
        return refused(notebook, reason) | submission.who


def stored(submission, folder, notebook, known, version):
    """Return the result of `mark`, or the error that grading raised."""
    path = known / f"{submission.key}.json"
    try:
        if submission.path is None:
            raise Refused(submission.why)
        contents = digest(read(submission.path, folder))
    except (Refused, OSError) as error:
        contents = digest(str(error).encode("utf-8", "surrogatepass"))
    now = digest(version.encode(), contents.encode())
    if path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        if before["of_what"] == now:
            return before
    if submission.path is None:
        result = refused(notebook, submission.why)
    else:
        result = graded(notebook, submission.path, folder)
    result["notes"] = submission.notes + result["notes"]
    result |= submission.who | {"of_what": now}
    write(path, json.dumps(result))
    return result


@contextmanager
def here(jobs):
    """Return (a thread pool, the isolation of students' code on this machine)."""
    with ThreadPoolExecutor(jobs) as pool:
        yield pool, describe_isolation()


def grade(folder, name, variant, out, place=None, variants=None, adjustment=None):
    """Grade all submissions of a folder; return the result of each.

    place:      where the work runs: `here` or on a cluster (cluster.py).
    variants:   student -> variant, where it isn't `variant` (`sources.roster`).
    adjustment: a teacher's changes, as keywords of `adjust.adjusted`.
    """
    whole, name = source(name), full_name(name, names())
    notebook_of = functools.cache(lambda variant: chosen(whole, variant))
    version_of = functools.cache(lambda variant: stamp(notebook_of(variant)))
    todo, variants = submissions(folder, name), variants or {}
    for one in todo:
        one.variant = variants.get(one.number, variants.get(one.student, variant))
    known, pages = out / "known", out / "feedback"
    warnings = check_variants(variant, todo, folder)
    if variants:
        missing = [s.student for s in todo if not {s.number, s.student} & variants.keys()]
        warnings += [f"{s}: not in the roster, so graded as variant {variant}" for s in missing]
    with place or here(2) as (pool, sentences):
        print("\n".join([*sentences, *warnings]))
        for path in (known, pages):
            path.mkdir(parents=True, exist_ok=True)
        arguments = [(folder, notebook_of(s.variant), known, version_of(s.variant)) for s in todo]
        futures = [pool.submit(mark, s, *a) for s, a in zip(todo, arguments, strict=True)]
        try:
            for _ in tqdm(as_completed(futures), total=len(todo), unit="submission", disable=None):
                pass
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            print("Stopped; the same command continues from here.")
            raise
        results = [f.result() for f in futures]
    tables = {"tests": report.by_test(name, whole, results), "answers": report.answers(results)}
    if (pairs := report.similar(whole, results)) is None:
        print("similar.csv isn't written: it needs copydetect (python -m pip install copydetect)")
    else:
        tables["similar"] = pairs
    results, unused = adjust.adjusted(results, **{"rows": []} | (adjustment or {}))
    print(*unused, sep="\n", end="\n" if unused else "")
    texts = {one["key"]: page(name, one) for one in results}
    for one in results:
        write(pages / f"{marks.file_name(one)}.html", texts[one["key"]])
    for kind, rows in (tables | marks.tables(name, results)).items():
        write(out / f"{kind}.csv", marks.text_of(rows))
    for kind, data in feedback.zips(name, results, texts).items():
        write(out / f"feedback-{kind}.zip", data)
    write(out / "isolation.txt", "\n".join(sentences) + "\n")
    return results


def folder(text):
    """Parse a path; make passes "" for a missing variable, which would mean its folder."""
    if not text:
        raise argparse.ArgumentTypeError("name the folder of submissions (make: SUBMISSIONS=...)")
    return Path(text)


def jobs(text):
    """Parse a number of processes."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on (make: JOBS=2)")
    return int(text)


def assignment(text):
    """Parse an assignment; make passes "" for a missing variable."""
    if not text:
        raise argparse.ArgumentTypeError(f"name one of {', '.join(names())} (make: ASSIGNMENT=1)")
    return text


def options():
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=folder)
    parser.add_argument(
        "--assignment", type=assignment, required=True, help="its number, such as 1"
    )
    parser.add_argument("--variant", type=int, default=0)
    parser.add_argument("--roster", help="a table: student[, variant]; each has a variant")
    parser.add_argument("--adjust", help="a table: student, item, points, comment")
    parser.add_argument("--late", type=float, default=10, help="percent off per day")
    parser.add_argument("--free-days", type=float, default=0, help="late days that cost nothing")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--jobs", type=jobs, default=2)
    return parser


def main(args, place=None):
    folder = args.folder.resolve()
    out = (args.out or folder.parent / f"{folder.name}-graded").resolve()
    place = place or here(args.jobs)
    with one_sentence():
        if not folder.is_dir():
            raise ClassroomError(f"there is no folder {folder}")
        variants = roster(args.roster, args.variant) if args.roster else None
        rows = adjust.changes(args.adjust) if args.adjust else []
        changes = {"rows": rows, "late_percent": args.late, "free_days": args.free_days}
        results = grade(folder, args.assignment, args.variant, out, place, variants, changes)
    elapsed_s = sum(one.get("elapsed_s", 0) for one in results)
    print(f"{len(results)} submissions, {elapsed_s / len(results):.1f} s each; marks in {out}")
    for one in results:
        if "refused" in one:
            print(f"{one['student']}: {one['notes'][-1]}")
    if others := [readable(e.name, 200) for e in entries_of(folder)[1]]:
        print(f"Left out (not a notebook, or hidden): {', '.join(others)}")


if __name__ == "__main__":
    main(options().parse_args())
