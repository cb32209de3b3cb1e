"""A room for one submission: a process with limits, which answers or is ended.

Where the system allows it (Linux with user namespaces), the process has no network, sees
no file but Python and its libraries, can write only to a folder in memory, and ends with
all that it started. Elsewhere there are only the limits that the system knows, and the
clock; `isolation` says which.
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

from classroom.inside import plain, value_of
from classroom.sources import NANO, ROOT

CELL_S, TEST_S, ALL_S = 20, 10, 90  # for a cell; for a call; for a submission
ANSWER = 16 << 20  # bytes
LIMITS = {"AS": 4 << 30, "CPU": 120, "FSIZE": 16 << 20, "NOFILE": 128, "NPROC": 32, "CORE": 0}
UNSHARE = (
    "unshare --user --map-root-user --net --pid --ipc --uts --mount --fork --kill-child".split()
)
NOBODY = 65534


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
    """How a process is started so that it is alone: (command, settings); None if it cannot."""
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
    if sys.platform == "win32":
        return [clock, "Windows: no limit on memory and files, and the network is open."]
    limits = (
        f"It has at most {LIMITS['AS'] >> 30} GB of memory, files of {LIMITS['FSIZE'] >> 20} MB, "
        f"and {LIMITS['NPROC']} processes of one user."
    )
    if walls() is None:
        return [
            clock,
            limits,
            "This system gives no user namespaces: the network is open, and the process can read "
            "whatever you can read, hidden tests too. Grade on Linux, or in a container.",
        ]
    return [
        clock,
        limits,
        "It has no network; it sees Python and its libraries, and no file of yours; it writes "
        "to a folder in memory; whatever it started ends with it.",
    ]


class Room:
    """One student's process, until it is closed."""

    def __init__(self, alone=None, deadline=None):
        """alone: what `walls` says; deadline: when, by time.monotonic, all must be over."""
        self.deadline = deadline or time.monotonic() + ALL_S
        self.folder = tempfile.mkdtemp(prefix="room-")
        command, user = alone or ([], None)
        settings = {
            "visible": visible() if alone else None,
            "megabytes": 64,
            "limits": LIMITS if sys.platform != "win32" else None,
            "path": [str(ROOT)],
            "files": {"nano.py": NANO.read_text(encoding="utf-8")},
        }
        inside = [sys.executable, "-I", str(ROOT / "classroom/inside.py"), json.dumps(settings)]
        if user is not None:
            os.chown(self.folder, user, user)
        self.process = subprocess.Popen(
            [*command, *inside],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            env=environment(),
            start_new_session=True,
            **({} if user is None else {"user": user, "group": user, "extra_groups": []}),
        )
        self.rest = bytearray()  # what has come and was not read

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
        self.process.stdin.close()
        self.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def ask(self, request, seconds):
        """What the process answers; raises Failed for its errors, and Gone if it is no more."""
        end = min(time.monotonic() + seconds, self.deadline)
        try:
            self._send(json.dumps(request).encode() + b"\n", end)
            found = json.loads(self._line(end, seconds))
            if "error" in found:
                raise Failed(str(found["error"])[:1100])
            return value_of(found["done"])
        except BrokenPipeError:
            raise Gone("the process ended itself, or memory was used up") from None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Gone("what came back is no answer") from None

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
    return ours | {
        "PYTHONDONTWRITEBYTECODE": "1",
        "MINIHYBRID_WAIT": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "NUMBA_NUM_THREADS": "1",
        "LANG": "C.UTF-8",
    }
