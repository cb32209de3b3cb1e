"""The examples for GitHub Classroom and for a hub fit the grader and the repository."""

import json
import os
import re
import runpy
import shlex
import subprocess
from types import SimpleNamespace

import jsonschema
import pytest
import yaml
from minihybrid_course.grading.grade import main, options
from minihybrid_course.grading.sources import ROOT, names

FOLDER = ROOT / "course/minihybrid_course/grading/examples"
SCHEMA = ROOT / "tests/classroom/chart/values.schema.json"
LITTLE = ROOT / "tests/classroom/tljh/config.schema.json"  # tljh/config_schema.py, April 2026
ACTION = re.compile(r"uses: (\S+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$", re.MULTILINE)


@pytest.fixture
def workflow():
    return yaml.safe_load((FOLDER / "github-classroom.yml").read_text(encoding="utf-8"))


def command(workflow):
    """What the job's grading step asks the grader for."""
    steps = {step.get("name"): step for step in workflow["jobs"]["grade"]["steps"]}
    line = steps["Grade"]["run"].replace("\\\n", "").splitlines()[0]
    for name, value in workflow["env"].items():
        line = line.replace(f'"${name}"', value)
    words = shlex.split(line)
    assert words[:3] == ["python", "-m", "minihybrid_course.grading.grade"]
    return options().parse_args(words[3:])


def test_the_workflow_may_read_only_and_uses_the_actions_that_ours_do(workflow):
    text = (FOLDER / "github-classroom.yml").read_text(encoding="utf-8")
    ours = {
        a for p in (ROOT / ".github/workflows").glob("*.yml") for a in ACTION.findall(p.read_text())
    }
    used = ACTION.findall(text)
    assert len(used) == text.count("uses: ") == 4 and set(used) <= ours
    assert workflow["permissions"] == {}
    assert workflow["jobs"]["grade"]["permissions"] == {"contents": "read"}


def test_the_workflow_asks_the_grader_for_what_it_knows(workflow):
    args = command(workflow)
    assert args.assignment in {name.partition("_")[0] for name in names()}
    assert str(args.folder) == "../handed-in" and str(args.out) == "../graded"


@pytest.mark.slow
def test_the_step_of_the_workflow_grades_a_repository(workflow, tmp_path, capsys):
    """The folders are as the job lays them out; the notebook is the source itself."""
    args = command(workflow)
    repository = tmp_path / "handed-in/submission"
    (repository / ".github/workflows").mkdir(parents=True)
    (repository / "README.md").touch()
    source = next(n for n in names() if n.startswith(args.assignment))
    text = (ROOT / f"notebooks/assignments/{source}.ipynb").read_text("utf-8")
    (repository / f"{source}.ipynb").write_text(text, "utf-8")
    args.folder, args.out = tmp_path / "handed-in", tmp_path / "graded"
    main(args)
    assert "1 submissions" in capsys.readouterr().out
    row = (tmp_path / "graded/marks.csv").read_text("utf-8").splitlines()[1].split(",")
    assert row[3] == "submission" and row[-2] == row[-1] != "0"
    assert len(list((tmp_path / "graded/feedback").glob("*.html"))) == 1


def test_the_hub_opens_what_there_is():
    values = yaml.safe_load((FOLDER / "values.yaml").read_text(encoding="utf-8"))
    page = values["singleuser"]["defaultUrl"].removeprefix("/lab/tree/")
    assert (ROOT / page).is_file()
    engine = "\n".join(p.read_text("utf-8") for p in (ROOT / "minihybrid").rglob("*.py"))
    for name in values["singleuser"]["extraEnv"]:
        assert name in engine or name.startswith("NUMBA_"), name


def test_the_hubs_values_fit_the_schema_of_the_chart():
    values = yaml.safe_load((FOLDER / "values.yaml").read_text(encoding="utf-8"))
    chart = jsonschema.Draft7Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    chart.validate(values)
    for wrong in ({"memory": {"limits": "3G"}}, {"networkPolicy": {"enabled": "yes"}}):
        bad = values | {"singleuser": values["singleuser"] | wrong}
        assert len(list(chart.iter_errors(bad))) == 1


def test_the_little_hubs_settings_fit_its_schema():
    """The schema leaves out `auth` and refuses no section, so both are looked at here."""
    schema = json.loads(LITTLE.read_text(encoding="utf-8"))
    schema |= {"additionalProperties": False}
    schema["properties"] |= {"auth": {"type": "object", "required": ["type"]}}
    little = jsonschema.Draft7Validator(schema)
    config = yaml.safe_load((FOLDER / "tljh.yaml").read_text(encoding="utf-8"))
    little.validate(config)
    for wrong in (
        {"limit": config["limits"]},
        {"limits": config["limits"] | {"mem": "3G"}},
        {"services": {"cull": config["services"]["cull"] | {"timeout": "an hour"}}},
        {"auth": {"kind": config["auth"]["type"]}},
        {"user_environment": {"default_app": "lab"}},
    ):
        assert len(list(little.iter_errors(config | wrong))) == 1, wrong


def test_the_hub_of_one_machine_names_files_that_there_are():
    def settings(name):
        actual = SimpleNamespace(
            **{
                k: SimpleNamespace()
                for k in "Authenticator CourseDirectory Exchange Spawner".split()
            }
        )
        runpy.run_path(str(FOLDER / name), {"get_config": lambda: actual})
        return actual

    hub, nbgrader = settings("jupyterhub_config.py"), settings("nbgrader_config.py")
    assert os.path.isfile(hub.Spawner.cmd[-1])
    assert os.path.isfile(hub.Spawner.environment["JUPYTER_CONFIG_PATH"] + "/nbgrader_config.py")
    assert nbgrader.Exchange.root == hub.Spawner.environment["COURSE"] + "/exchange"
    little = yaml.safe_load((FOLDER / "tljh.yaml").read_text(encoding="utf-8"))
    assert set(little["users"]["admin"]) == hub.Authenticator.admin_users
    text = (FOLDER / "tljh.yaml").read_text(encoding="utf-8")
    assert "course/minihybrid_course/grading/examples/jupyterhub_config.py" in text


@pytest.mark.slow
def test_a_student_starts_with_limits_and_copies_of_kernels(tmp_path):
    """The server is a stand-in that tells its limits."""
    name = "k" + 40 * "a" + ".o"
    for folder in ("bin", "course, für alle/kernels", "home"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "course, für alle/kernels" / name).write_bytes(b"machine code")
    (tmp_path / "course, für alle/kernels/notes.txt").touch()
    server = tmp_path / "bin/jupyterhub-singleuser"
    server.write_text('#!/bin/sh\nulimit -v; ulimit -c; echo "$MINIHYBRID_CACHE_DIR"; echo "$@"\n')
    server.chmod(0o755)
    env = {
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
        "COURSE": str(tmp_path / "course, für alle"),
        "MOST_KB": str(4 << 20),
        "MOST_PROCESSES": "400",
    }
    for _ in range(2):
        done = subprocess.run(
            ["sh", FOLDER / "start_student.sh", "--port=1"], env=env, capture_output=True, text=True
        )
        own = tmp_path / "home/.cache/minihybrid"
        assert done.stdout.splitlines() == [str(4 << 20), "0", str(own), "--port=1"], done.stderr
        assert [p.name for p in own.iterdir()] == [name] and own.stat().st_mode & 0o777 == 0o700
        assert not (own / name).stat().st_mode & 0o022
