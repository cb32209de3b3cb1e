"""A room for one submission: a process with limits, which answers or is ended.

Where the system allows it (Linux with user namespaces), the process has no network, sees
no file but Python and its libraries, can write only to a folder in memory, and ends with
all that it started. A container does the same (`GRADE_WITH=docker`). Elsewhere there are only
the limits that the system knows, and the clock; `isolation` says which.
"""

import functools
import json
import os
import select
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time

from classroom import container
from classroom.inside import plain, value_of
from classroom.sources import NANO, ROOT, ClassroomError

CELL_S, TEST_S, ALL_S = 20, 10, 90  # for a cell; for a call; for a submission
ANSWER = 16 << 20  # bytes
MEGABYTES = 64  # of files
LIMITS = {"AS": 4 << 30, "CPU": 120, "FSIZE": 16 << 20, "NOFILE": 128, "NPROC": 32, "CORE": 0}
UNSHARE = (
    "unshare --user --map-root-user --net --pid --ipc --uts --mount --fork --kill-child".split()
)
NOBODY = 65534
DOCKER = "docker"
VARIABLES = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "MINIHYBRID_WAIT": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "LANG": "C.UTF-8",
}


class Gone(Exception):
    """The student's process ended, or was ended; the message says why."""


class Failed(Exception):
    """The student's code raised an error; the message is its own."""


class Remote:
    """A name of the student's process: calling it calls there, and brings numbers back."""

    def __init__(self, room, name):
        self._room, self._name = room, name

    def __call__(self, *args, **kwargs):
        request = {
            "call": self._name,
            "args": [self._plain(v) for v in args],
            "kwargs": {k: self._plain(v) for k, v in kwargs.items()},
        }
        return self._room.ask(request, TEST_S)

    @staticmethod
    def _plain(value):
        return {"name": value._name} if isinstance(value, Remote) else plain(value)


def visible():
    """The folders that Python needs."""
    wanted = ["/usr", "/bin", "/lib", "/lib64", "/etc", sys.prefix, sys.base_prefix]
    wanted += [sysconfig.get_paths()["purelib"], str(ROOT / "minihybrid")]
    found = []
    for path in sorted({os.path.realpath(p) for p in wanted if os.path.exists(p)}, key=len):
        if not any(path == p or path.startswith(p + "/") for p in found):
            found.append(path)
    return found


@functools.cache
def walls():
    """How a process is started so that it is alone; None if it cannot be.

    DOCKER, or (command, user), or what the environment variable GRADE_WITH asks for and
    cannot be had, as a ClassroomError: who asks for walls does not get fewer.
    """
    asked = os.environ.get("GRADE_WITH", "")
    if asked == DOCKER:
        container.must_be_ready()
        return DOCKER
    if asked:
        raise ClassroomError(f"GRADE_WITH is {asked!r}; docker, or nothing, is known")
    if not shutil.which("unshare"):
        return None
    for user in (NOBODY, None) if os.getuid() == 0 else (None,):
        try:
            with Room((UNSHARE, user)) as room:
                room.ask({"run": "import numpy"}, CELL_S)
            return UNSHARE, user
        except (Gone, Failed, OSError):
            continue
    return None


def isolation():
    """What keeps students' code apart here, in sentences."""
    clock = f"Each submission has a process of its own, and at most {ALL_S} s; a test {TEST_S} s."
    if sys.platform == "win32" and walls() != DOCKER:
        return [clock, "Windows: no limit on memory and files, and the network is open."]
    limits = (
        f"It has at most {LIMITS['AS'] >> 30} GB of memory, files of {LIMITS['FSIZE'] >> 20} MB, "
        f"and {LIMITS['NPROC']} processes"
    )
    if walls() == DOCKER:
        return [
            clock,
            f"{limits}.",
            "It is in a container of Docker, which has no network; it sees what the image "
            f"{container.IMAGE} has, and the engine, and no file of yours; it writes to a folder "
            "in memory; whatever it started ends with it.",
        ]
    if walls() is None:
        return [
            clock,
            f"{limits} of one user.",
            "This system gives no user namespaces: the network is open, and the process can read "
            "whatever you can read, hidden tests too. Grade on Linux, or with GRADE_WITH=docker.",
        ]
    return [
        clock,
        f"{limits} of one user.",
        "It has no network; it sees Python and its libraries, and no file of yours; it writes "
        "to a folder in memory; whatever it started ends with it.",
    ]


class Room:
    """One student's process, until it is closed."""

    def __init__(self, alone=None, deadline=None):
        """alone: what `walls` says; deadline: when, by time.monotonic, all must be over."""
        self.deadline = deadline or time.monotonic() + ALL_S
        self.folder = tempfile.mkdtemp(prefix="room-")
        self.container = os.path.basename(self.folder) if alone == DOCKER else None
        settings = {
            "visible": visible() if alone and not self.container else None,
            "megabytes": MEGABYTES,
            "limits": LIMITS if sys.platform != "win32" else None,
            "path": [str(ROOT)],
            "files": {"nano.py": NANO.read_text(encoding="utf-8")},
        }
        if self.container:
            # Its own limit counts the processes; the system's would count all containers'.
            settings["limits"] = {k: v for k, v in LIMITS.items() if k != "NPROC"}
            command, user, variables = self._contained(settings), None, None
        else:
            command, user = alone or ([], None)
            inside = str(ROOT / "classroom/inside.py")
            command = [*command, sys.executable, "-I", inside, json.dumps(settings)]
            variables = environment()
        if user is not None:
            os.chown(self.folder, user, user)
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            env=variables,
            start_new_session=True,
            **({} if user is None else {"user": user, "group": user, "extra_groups": []}),
        )
        self.rest = bytearray()  # what has come and was not read

    def _contained(self, settings):
        variables, most = VARIABLES | {"HOME": "/tmp"}, LIMITS["NPROC"]
        return container.command(
            self.container, settings, variables, NOBODY, LIMITS["AS"], MEGABYTES, most
        )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        """End the process, whatever it does."""
        if hasattr(os, "killpg"):
            try:
                os.killpg(self.process.pid, 9)
            except ProcessLookupError:
                pass
        self.process.kill()
        self.process.wait()
        if self.container:
            container.end(self.container)
        self.process.stdin.close()
        self.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def ask(self, request, seconds):
        """What the process answers; raises Failed for its errors, and Gone if it is no more."""
        end = min(time.monotonic() + seconds, self.deadline)
        try:
            self._send(json.dumps(request).encode() + b"\n", end)
            line = self._line(end, seconds)
        except BrokenPipeError:
            raise Gone("the process ended itself, or memory was used up") from None
        try:
            found = json.loads(line)
            done = str(found["error"])[:1100] if "error" in found else value_of(found["done"])
        except Exception:  # whatever a line that the student's code has written can raise
            raise Gone("what came back is no answer") from None
        if "error" in found:
            raise Failed(done)
        return done

    def _send(self, data, end):
        """Write a request; a process that does not read it is no more."""
        pipe = self.process.stdin.fileno()
        os.set_blocking(pipe, False)
        while data:
            left = max(0, end - time.monotonic())
            if not select.select([], [pipe], [], left)[1]:
                raise Gone("the process reads no more")
            data = data[os.write(pipe, data[:4096]) :]

    def _line(self, end, seconds):
        data = bytes(self.rest)
        while b"\n" not in data:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                if time.monotonic() >= self.deadline:
                    raise Gone(f"the {ALL_S} s for the whole submission are over")
                raise Gone(f"it took more than {seconds} s")
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if not data:
                raise Gone("the process ended itself, or memory was used up")
            self.rest += data
            if len(self.rest) > ANSWER:
                raise Gone(f"more than {ANSWER >> 20} MB came back")
        line, _, self.rest = self.rest.partition(b"\n")
        return line


def environment():
    """The variables of a room: nothing of yours but where programs are."""
    ours = {"PATH": os.environ.get("PATH", ""), "HOME": tempfile.gettempdir()}
    if sys.platform == "win32":
        ours["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    return ours | VARIABLES
