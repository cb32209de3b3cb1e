"""A sandbox in a container, for those who have Docker: `make grade GRADE_WITH=docker ...`.

Each sandbox is a separate container: no network, no capabilities, no host files except the
engine and worker.py, which are read-only; only /tmp is writable, and it's in memory.
"""

import csv
import io
import json
import shutil
import subprocess

from minihybrid_course.grading.sources import ROOT, ClassroomError

IMAGE = "minihybrid-sandbox"
FOLDER = "course/minihybrid_course/grading"
BUILD = f"docker build --tag {IMAGE} {FOLDER}"
THERE = "/given"


def mount(source, target):
    """Return the option for a read-only mount; the path may contain commas."""
    text = io.StringIO()
    parts = ["type=bind", f"source={source}", f"target={target}", "readonly"]
    csv.writer(text, lineterminator="").writerow(parts)
    return f"--mount={text.getvalue()}"


def command(name, settings, variables, user, memory, megabytes, processes):
    """Return the command that starts `worker.py` in a container of this name."""
    return [
        *("docker", "run", "--rm", "--interactive", f"--name={name}", "--pull=never"),
        *("--network=none", "--read-only", "--cap-drop=ALL"),
        *("--security-opt=no-new-privileges", f"--user={user}:{user}"),
        *(f"--memory={memory}", f"--memory-swap={memory}", f"--pids-limit={processes}"),
        *(f"--tmpfs=/tmp:rw,exec,mode=1777,size={megabytes}m", "--workdir=/tmp"),
        *(f"--env={key}={value}" for key, value in variables.items()),
        mount(ROOT / "minihybrid", f"{THERE}/minihybrid"),
        mount(ROOT / FOLDER / "worker.py", f"{THERE}/worker.py"),
        *(IMAGE, "python", "-I", f"{THERE}/worker.py", json.dumps(settings | {"path": [THERE]})),
    ]


def end(name):
    """Kill a container and its processes; killing the `docker` client doesn't."""
    subprocess.run(["docker", "rm", "--force", name], capture_output=True)


def must_be_ready():
    """Raise ClassroomError, with the remedy, if no sandbox can start."""
    if not shutil.which("docker"):
        raise ClassroomError("GRADE_WITH=docker needs the program docker, which is not on the PATH")
    process = subprocess.run(["docker", "image", "inspect", IMAGE], capture_output=True, text=True)
    if process.returncode:
        reason = (process.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ClassroomError(
            f"docker shows no image {IMAGE} ({reason}); start Docker, and make it: {BUILD}"
        )
