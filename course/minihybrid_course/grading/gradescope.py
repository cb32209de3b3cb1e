"""Gradescope support: build its autograder's zip, and write results in its format.

    python -m minihybrid_course.grading.gradescope --assignment 1 --variant 7     # writes the zip

Gradescope unpacks the zip into /autograder/source and runs setup.sh once. For each submission
it starts a container, puts the student's files into /autograder/submission, runs
run_autograder, and reads /autograder/results/results.json.
"""

import argparse
import json
import zipfile
from pathlib import Path

from minihybrid_course.grading.judge import graded, refused
from minihybrid_course.grading.sources import (
    FOLDER,
    NANO,
    ROOT,
    chosen,
    full_name,
    id_of,
    one_sentence,
    source,
)
from minihybrid_course.grading.submissions import submission_of

AUTOGRADER = Path("/autograder")
CONTENTS = (
    "minihybrid/**/*",
    "course/minihybrid_course/**/*",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)
TEMPLATES = Path(__file__).with_name("templates")  # its setup.sh and run_autograder


def results(notebook, result):
    """Convert a result to results.json; hidden tests are visible after the deadline."""
    hidden = {id_of(c) for c in notebook["cells"] if "### BEGIN HIDDEN TESTS" in c["source"]}
    tests = [
        {
            "name": test["id"],
            "score": test["points"],
            "max_score": test["of"],
            "status": "passed" if test["wrong"] is None else "failed",
            "output": "" if test["wrong"] is None else test["wrong"] or "an assertion failed",
            "visibility": "after_due_date" if test["id"] in hidden else "visible",
        }
        for test in result["tests"]
    ]
    cells = [f"{name or 'a cell of your own'}: {text}" for name, text in result["cells"]]
    return {
        "score": result["points"] or 0,
        "execution_time": result.get("elapsed_s", 0),
        "output": "\n".join([*result["notes"], *cells]),
        "output_format": "text",
        "test_output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": tests,
    }


def run(name, variant, home=AUTOGRADER):
    """Grade the submission in a Gradescope container and write results.json."""
    notebook = chosen(source(name), variant)
    one = submission_of(home / "submission", name)
    result = graded(notebook, one.path, home / "submission") if one.path else None
    text = json.dumps(results(notebook, result or refused(notebook, one.why)))
    (home / "results/results.json").write_text(text, encoding="utf-8")


def build(name, variant, path):
    """Write the autograder's zip."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files = [p for pattern in CONTENTS for p in sorted(ROOT.glob(pattern)) if p.is_file()]
    files += [FOLDER / f"{name}.ipynb", NANO]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.write(TEMPLATES / "setup.sh", "setup.sh")
        run = (TEMPLATES / "run_autograder").read_text(encoding="utf-8")
        file.writestr("run_autograder", run.format(name=name, variant=variant))
        for one in files:
            if "__pycache__" not in one.parts:
                file.write(one, one.relative_to(ROOT))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--assignment", required=True, help="its number, such as 1")
    parser.add_argument("--variant", type=int, default=0)
    parser.add_argument("--run", action="store_true", help="grade, in Gradescope's container")
    args = parser.parse_args()
    with one_sentence():
        name = full_name(args.assignment)
    if args.run:
        return run(name, args.variant)
    path = ROOT / f"_build/gradescope/{name}-{args.variant}.zip"
    build(name, args.variant, path)
    print(path)


if __name__ == "__main__":
    main()
