"""Rooms in containers, with a stand-in for the program docker (stand_in_docker.py)."""

import json
import os
import shlex
import sys
from pathlib import Path

import pytest
from envs import CLASSROOM
from minihybrid_course.grading import container, sandbox
from minihybrid_course.grading import grade as grading
from minihybrid_course.grading.grade import grade
from minihybrid_course.grading.sandbox import ProcessDied, Sandbox, describe_isolation, isolation
from minihybrid_course.grading.sources import ROOT, ClassroomError
from small_assignment import WRONG, assignment, text

HERE = Path(__file__).parent
SERVING = {"distributed", "nbformat", "pyseccomp"}  # for the grader, not for students' cells
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a shell script")


@pytest.fixture
def docker(tmp_path, monkeypatch):
    """What docker was asked, each a list of words; it is asked for."""
    folder = tmp_path / "bin, für Docker"
    folder.mkdir()
    program = folder / "docker"
    words = shlex.join([sys.executable, str(HERE / "stand_in_docker.py")])
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_LOG", str(folder / "log"))
    monkeypatch.setenv("GRADE_WITH", "docker")
    isolation.cache_clear()
    yield lambda: [json.loads(s) for s in (folder / "log").read_text("utf-8").splitlines()]
    isolation.cache_clear()


# What the docker documentation calls a process that can do the least.
SHUT = {
    "--rm",
    "--interactive",
    "--pull=never",
    "--network=none",
    "--read-only",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--user=65534:65534",
    f"--memory={4 << 30}",
    f"--memory-swap={4 << 30}",
    "--pids-limit=32",
    "--tmpfs=/tmp:rw,exec,mode=1777,size=64m",
    "--workdir=/tmp",
}


@pytest.mark.slow
def test_marks_are_the_same_in_a_container_which_is_shut_and_ended(docker, tmp_path, monkeypatch):
    monkeypatch.setattr(grading, "source", lambda name: assignment())
    monkeypatch.setattr(grading, "names", lambda: ["1_small"])
    folder = tmp_path / "in"
    for student, given in {"anna": {}, "otto": WRONG}.items():
        (folder / student).mkdir(parents=True)
        (folder / student / "1_small.ipynb").write_text(text(**given), "utf-8")
    actual = grade(folder, "1", 0, tmp_path / "out")
    assert {f["student"]: f["points"] for f in actual} == {"anna": 6, "otto": 3}
    assert "in a Docker container" in (tmp_path / "out/isolation.txt").read_text()
    commands = docker()
    started = [words for words in commands if words[0] == "run"]
    assert commands[0] == ["image", "inspect", container.IMAGE] and len(started) == 2
    for words in started:
        k = words.index(container.IMAGE)
        options = set(words[1:k])
        named = {o for o in options if o.startswith("--name=minihybrid-")}
        shown = {o for o in options if o.startswith("--mount=")}
        given = {o for o in options if o.startswith("--env=")}
        assert options == SHUT | named | shown | given and len(named) == 1
        assert shown == {
            f"--mount=type=bind,source={ROOT / source},target=/given/{name},readonly"
            for source, name in (
                ("minihybrid", "minihybrid"),
                ("course/minihybrid_course/grading/worker.py", "worker.py"),
            )
        }
        assert given == {
            f"--env={k}={v}" for k, v in (sandbox.VARIABLES | {"HOME": "/tmp"}).items()
        }
        assert words[k + 1 : k + 4] == ["python", "-I", "/given/worker.py"]
        settings = json.loads(words[k + 4])
        assert settings["path"] == ["/given"] and settings["user"] is None
        assert "NPROC" not in settings["limits"] and settings["limits"]["AS"] == 4 << 30
        assert ["rm", "--force", named.pop().partition("=")[2]] in commands


@pytest.mark.slow
def test_a_container_that_does_not_come_back_is_ended(docker):
    with Sandbox(isolation()) as one, pytest.raises(ProcessDied, match="more than 1 s"):
        one.ask({"run": "while True: pass"}, 1)
    name = docker()[-1][-1]
    assert docker()[-1] == ["rm", "--force", name] and name.startswith("minihybrid-")
    pid = int((Path(os.environ["DOCKER_LOG"]).parent / f"{name}.pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.slow
def test_who_asks_for_docker_and_has_none_gets_no_fewer_walls(docker, monkeypatch):
    (Path(os.environ["DOCKER_LOG"]).parent / "no image").touch()
    with pytest.raises(
        ClassroomError, match="No such image.*docker build --tag minihybrid-sandbox"
    ):
        describe_isolation()
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ClassroomError, match="not on the PATH"):
        describe_isolation()
    monkeypatch.setenv("GRADE_WITH", "podman")
    with pytest.raises(ClassroomError, match="'podman'"):
        describe_isolation()


def test_a_path_with_commas_and_quotes_is_one_path():
    actual = container.mount('/a, "b", ü', "/course")
    assert actual == '--mount=type=bind,"source=/a, ""b"", ü",target=/course,readonly'


def test_the_image_has_what_a_worker_of_a_cluster_has():
    dockerfile = (ROOT / container.BUILD.split()[-1] / "Dockerfile").read_text()
    words = dockerfile.split("--no-cache-dir")[1].split()
    ours = {w for w in CLASSROOM["cluster"][1] if w.partition("=")[0] not in SERVING}
    assert set(words) == ours
    page = (ROOT / "book/classroom.md").read_text(encoding="utf-8")
    assert container.BUILD in dockerfile and container.BUILD in page
