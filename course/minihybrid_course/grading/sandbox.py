"""A sandbox for one submission: a process with limits that answers requests or is ended.

On Linux, bubblewrap builds it from the kernel's namespaces, and a seccomp filter blocks what
namespaces allow: no network, no files except Python and its libraries, only an in-memory
folder is writable, and all child processes are killed at the end. Docker does the same
elsewhere (`GRADE_WITH=docker`). Without either, grading is refused unless `UNSAFE=1`; then
only limits and timeouts remain. `describe_isolation` states which applies.
"""

import functools
import json
import os
import secrets
import select
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from minihybrid_course.grading import container
from minihybrid_course.grading.sources import NANO, ROOT, ClassroomError
from minihybrid_course.grading.text import readable
from minihybrid_course.grading.worker import decode, encode

CELL_S, TEST_S, ALL_S = 20, 10, 90  # timeouts of a cell; a call; a submission
ANSWER = 16 << 20  # maximum bytes of one response
ID = 20  # bytes at its end that contain the request's ID
MEGABYTES = 64  # limit of all files
TOTAL = 4 << 30  # memory limit of all processes in bytes
PROCESSES = 32
FILES = 50_000  # an empty one takes 1 KB of the kernel's memory
LIMITS = {"AS": TOTAL, "CPU": 120, "FSIZE": 16 << 20, "NOFILE": 128, "NPROC": PROCESSES, "CORE": 0}
NOBODY, FIRST_USER = 65534, 0x70000000
DOCKER, BWRAP, UNSAFE = "docker", "bubblewrap", "unsafe"
BWRAP_PROGRAM = "bwrap"
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
POLL_S = 0.25  # interval of checking the memory of all processes
VARIABLES = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "MINIHYBRID_WAIT": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "LANG": "C.UTF-8",
    "IPYTHONDIR": "/tmp/.ipython",
}
# The files in /etc that programs need: no passwords, keys or user configuration.
ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime")

# System calls denied with EPERM: new namespaces, mounts, keys that outlive the sandbox,
# other processes' memory, memory not counted in a process's size, and rare entry points.
DENIED = """
    unshare setns mount umount2 pivot_root chroot move_mount open_tree fsopen fsmount fsconfig
    fspick mount_setattr keyctl add_key request_key ptrace process_vm_readv process_vm_writev
    kcmp pidfd_getfd memfd_create memfd_secret shmget msgget semget modify_ldt bpf
    perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register kexec_load
    kexec_file_load init_module finit_module delete_module reboot swapon swapoff acct quotactl
    syslog iopl ioperm personality open_by_handle_at name_to_handle_at settimeofday
    clock_settime clock_adjtime adjtimex sethostname setdomainname vhangup
""".split()
CLONE_NEWUSER = 0x10000000


class ProcessDied(Exception):
    """The student's process ended or was killed; the message states the reason."""


class StudentError(Exception):
    """The student's code raised an error; the message is that error's."""


class Remote:
    """A name in the student's process: calling it runs there and returns plain values."""

    def __init__(self, sandbox, name):
        self._sandbox, self._name = sandbox, name

    def __call__(self, *args, **kwargs):
        request = {
            "call": self._name,
            "args": [self._encode(v) for v in args],
            "kwargs": {k: self._encode(v) for k, v in kwargs.items()},
        }
        return self._sandbox.ask(request, TEST_S)

    @staticmethod
    def _encode(value):
        return {"name": value._name} if isinstance(value, Remote) else encode(value)


# -- building a sandbox ------------------------------------------------------------------
def visible():
    """Return the folders and files that Python needs."""
    paths = ["/usr", "/bin", "/lib", "/lib64", *(f"/etc/{name}" for name in ETC)]
    paths += [sys.prefix, sys.base_prefix, sysconfig.get_paths()["purelib"]]
    paths += [str(ROOT / "minihybrid"), str(Path(__file__).with_name("worker.py"))]
    shown = []
    for path in sorted({os.path.realpath(p) for p in paths if os.path.exists(p)}, key=len):
        if not any(path == p or path.startswith(p + "/") for p in shown):
            shown.append(path)
    return shown


def bubblewrap(filter_fd, user):
    """Return the command that starts a program in a bubblewrap sandbox.

    user:    the system user that the program switches to; None: the sandbox is a user
             namespace, in which you appear as nobody.
    """
    words = [BWRAP_PROGRAM, "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if user is None:
        words += ["--unshare-all", "--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY)]
    else:
        words += [f"--unshare-{name}" for name in ("net", "pid", "ipc", "uts", "cgroup-try")]
        words += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    words += ["--hostname", "sandbox", "--clearenv", "--seccomp", str(filter_fd)]
    for name, value in (VARIABLES | {"HOME": "/tmp", "PATH": "/usr/bin:/bin"}).items():
        words += ["--setenv", name, value]
    for path, target in (("/bin", "usr/bin"), ("/lib", "usr/lib"), ("/lib64", "usr/lib64")):
        if os.path.islink(path):
            words += ["--symlink", target, path]
    # /tmp first, as visible files may be in it.
    words += ["--perms", "1777", "--size", str(MEGABYTES << 20), "--tmpfs", "/tmp"]
    shown = visible()
    above = {str(p) for path in shown for p in Path(path).parents} - {"/", "/tmp"}
    for path in sorted(above):
        words += ["--perms", "0755", "--dir", path]
    for path in shown:
        words += ["--ro-bind", path, path]
    words += ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev", "--remount-ro", "/"]
    return [*words, "--chdir", "/tmp"]


@functools.cache
def seccomp_filter():
    """Return the filter as a BPF program in bytes.

    Raises:  ClassroomError if pyseccomp or its library is missing.
    """
    try:
        import pyseccomp as seccomp
    except (ImportError, RuntimeError, OSError) as error:
        raise ClassroomError(
            f"the sandbox needs pyseccomp and libseccomp ({error}); "
            'python -m pip install ".[classroom]", and libseccomp2 with your package manager'
        ) from None
    rules = seccomp.SyscallFilter(seccomp.ALLOW)
    denied = seccomp.ERRNO(1)  # EPERM
    for name in DENIED:
        try:
            rules.add_rule(denied, name)
        except (RuntimeError, ValueError, OSError):  # unknown on this processor or to this library
            continue
    flags = seccomp.Arg(0, seccomp.MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER)
    rules.add_rule(denied, "clone", flags)
    rules.add_rule(seccomp.ERRNO(38), "clone3")  # ENOSYS: libraries then use clone
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()


def scope():
    """Return the command that puts a process in its own cgroup, if systemd is running."""
    if not os.path.isdir("/run/systemd/system") or not shutil.which("systemd-run"):
        return []
    mine = [] if os.getuid() == 0 else ["--user"]
    limits = [f"--property=MemoryMax={TOTAL}", f"--property=TasksMax={PROCESSES}"]
    return ["systemd-run", *mine, "--scope", "--quiet", "--collect", *limits]


@functools.cache
def isolation():
    """Return how students' processes are isolated on this machine.

    Returns: (BWRAP, DOCKER or UNSAFE; whether each runs as a separate user, which needs root).
    Raises:  ClassroomError with a remedy if there is none and UNSAFE=1 isn't set, or if the
             one that GRADE_WITH names isn't available.
    """
    kind = os.environ.get("GRADE_WITH", "")
    if kind == DOCKER:
        container.must_be_ready()
        return DOCKER, False
    if kind:
        raise ClassroomError(f"GRADE_WITH is {kind!r}; set it to docker or unset it")
    reason = "it needs Linux"
    if sys.platform == "linux":
        reason = "the program bwrap is missing; install bubblewrap"
        if shutil.which(BWRAP_PROGRAM):
            prefix, reason = first_that_starts(BWRAP)
            if prefix:
                return prefix
    if os.environ.get("UNSAFE") == "1":
        return first_that_starts(UNSAFE)[0] or (UNSAFE, False)
    raise ClassroomError(
        f"no sandbox for students' code: {reason}. Grade on Linux with bubblewrap, or with "
        "GRADE_WITH=docker. UNSAFE=1 grades without: a cell can then read your files, reach the "
        "network and rewrite classmates' marks"
    )


def first_that_starts(kind):
    """Return ((kind, whether users are separate) or None, why the last one failed)."""
    for own_user in (True, False) if hasattr(os, "getuid") and os.getuid() == 0 else (False,):
        try:
            with Sandbox((kind, own_user)) as one:
                one.ask({"run": "import numpy"}, CELL_S)
            return (kind, own_user), ""
        except (ClassroomError, ProcessDied, StudentError, OSError) as error:
            reason = f"{kind} can't start here ({error})"
    return None, reason


def describe_isolation():
    """Describe in sentences how students' code is isolated here."""
    kind, own_user = isolation()
    can = "everything that all users of this machine can" if own_user else "whatever you can"
    clock = f"Each submission has its own process and at most {ALL_S} s; a test {TEST_S} s."
    if kind == UNSAFE and sys.platform == "win32":
        return [clock, "UNSAFE: no limit on memory and files, and the network is open."]
    limits = (
        f"It has at most {TOTAL >> 30} GB of memory, files of {LIMITS['FSIZE'] >> 20} MB, "
        f"and {PROCESSES} processes."
    )
    if kind == UNSAFE:
        return [
            clock,
            limits,
            f"UNSAFE: the network is open, and the process can read and write {can}: perhaps "
            "hidden tests and other students' marks.",
        ]
    inside = {
        DOCKER: f"the image {container.IMAGE} and the engine",
        BWRAP: "Python and its libraries",
    }[kind]
    return [
        clock,
        limits,
        f"It runs in {'a Docker container' if kind == DOCKER else 'a bubblewrap sandbox'} with no "
        f"network; it sees {inside}, and none of your files; it writes to a folder in memory; "
        "whatever it started ends with it.",
    ]


# -- one sandbox -------------------------------------------------------------------------
class Sandbox:
    """One student's process, until it is closed.

    alone:     the result of `isolation`.
    deadline:  the time.monotonic at which everything must have finished.
    name:      the name of its container, to kill it from outside.
    solutions: the names that the student's cells define (`Notebook`).
    peak_bytes, processor_s: totals of all its processes, when last checked.
    """

    def __init__(self, alone, deadline=None, name=None, solutions=()):
        self.kind, own_user = alone
        # A unique user, so that other sandboxes' processes aren't counted.
        user = FIRST_USER + os.getpid() if own_user else None
        self.deadline = deadline or time.monotonic() + ALL_S
        self.peak_bytes, self.processor_s, self.looked = 0, 0.0, 0.0
        self.container = (name or f"minihybrid-{os.getpid()}") if self.kind == DOCKER else None
        self.folder = tempfile.mkdtemp(prefix="sandbox-") if self.kind == UNSAFE else None
        settings = {
            "limits": LIMITS if sys.platform != "win32" else None,
            "path": [str(ROOT)],
            "files": {"nano.py": NANO.read_text(encoding="utf-8")},
            "solutions": sorted(solutions),
            "user": user,
        }
        if self.kind == DOCKER:
            # Docker's limit is per container; the system's would count all containers.
            settings["limits"] = {k: v for k, v in LIMITS.items() if k != "NPROC"}
            variables = VARIABLES | {"HOME": "/tmp"}
            command = container.command(
                self.container, settings, variables, NOBODY, TOTAL, MEGABYTES, PROCESSES
            )
            self._start(command)
            return
        worker = str(Path(__file__).with_name("worker.py"))
        python = Path(sys.executable)  # possibly a symbolic link, which isn't visible inside
        python = str(python.parent.resolve() / python.name)
        command = [python, "-I", worker, json.dumps(settings)]
        if self.kind == UNSAFE:
            if user is not None:
                os.chown(self.folder, user, user)
            self._start(command, cwd=self.folder, env=environment())
            return
        filter_fd = os.memfd_create("seccomp")
        try:
            os.write(filter_fd, seccomp_filter())
            os.lseek(filter_fd, 0, os.SEEK_SET)
            command = [*scope(), *bubblewrap(filter_fd, user), *command]
            self._start(command, pass_fds=[filter_fd], cwd="/")
        finally:
            os.close(filter_fd)

    def _start(self, command, **options):
        self.rest = bytearray()  # received but not yet read
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            **options,
        )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        """End the process and everything it started."""
        self.look()
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
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def look(self):
        """Add up memory and CPU time of all processes.

        Returns: (bytes in use now, the number of processes and files).
        """
        todo, nbytes, spent_s, count, files = [self.process.pid], 0, 0.0, 0, 0
        while todo:
            place = Path(f"/proc/{todo.pop()}")
            try:
                fields = (place / "stat").read_text().rpartition(")")[2].split()
                nbytes += int(fields[21]) * PAGE
                spent_s += sum(map(int, fields[11:15])) / TICKS
                count += 1
                todo += (place / "task" / place.name / "children").read_text().split()
                if self.kind == BWRAP and not os.path.samefile(place / "root", "/"):
                    disk = os.statvfs(place / "root/tmp")
                    files = disk.f_files - disk.f_ffree
            except (OSError, IndexError):  # it just ended, or the system has no /proc
                continue
        self.looked = time.monotonic()
        self.peak_bytes = max(self.peak_bytes, nbytes)
        self.processor_s = max(self.processor_s, spent_s)
        return nbytes, count, files

    def _check(self):
        nbytes, count, files = self.look()
        if nbytes > TOTAL:
            raise ProcessDied(f"its processes took more than {TOTAL >> 30} GB together")
        if count > PROCESSES + 4:  # bubblewrap's own, and processes that are ending
            raise ProcessDied(f"it started more than {PROCESSES} processes")
        if files > FILES:
            raise ProcessDied(f"it made more than {FILES:,} files")

    def ask(self, request, seconds):
        """Send a request and return its result.

        Raises:  StudentError for the code's errors, ProcessDied if there is no response.
        """
        end = min(time.monotonic() + seconds, self.deadline)
        number = secrets.token_hex(8)  # so lines written in advance, or by a fork, are ignored
        try:
            self._send(json.dumps(request | {"id": number}).encode() + b"\n", end)
            while number.encode() not in (line := self._line(end, seconds))[-ID:]:
                pass
        except BrokenPipeError:
            raise ProcessDied("the process ended itself, or memory was used up") from None
        try:
            data = json.loads(line)
            result = readable(data["error"]) if "error" in data else decode(data["done"])
        except Exception:  # untrusted: the student's code may have written this line
            raise ProcessDied("its output is not an answer") from None
        if "error" in data:
            raise StudentError(result)
        return result

    def _send(self, data, end):
        """Write a request; raise if the process doesn't read it in time."""
        pipe = self.process.stdin.fileno()
        os.set_blocking(pipe, False)
        while data:
            left = max(0, end - time.monotonic())
            if not select.select([], [pipe], [], left)[1]:
                raise ProcessDied("the process no longer reads")
            data = data[os.write(pipe, data[:4096]) :]

    def _line(self, end, seconds):
        """Return the process's next line; enforce the limits of time and memory."""
        data = bytes(self.rest)
        while b"\n" not in data:
            left = end - time.monotonic()
            if left <= 0:
                if time.monotonic() >= self.deadline:
                    raise ProcessDied(f"the {ALL_S} s for the whole submission are over")
                raise ProcessDied(f"it took more than {seconds} s")
            ready = select.select([self.process.stdout], [], [], min(left, POLL_S))[0]
            if time.monotonic() - self.looked > POLL_S:
                self._check()
            if not ready:
                continue
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if not data:
                raise ProcessDied("the process ended itself, or memory was used up")
            self.rest += data
            if len(self.rest) > ANSWER:
                raise ProcessDied(f"its answer has more than {ANSWER >> 20} MB")
        line, _, self.rest = self.rest.partition(b"\n")
        return line


def environment():
    """Return an UNSAFE process's environment: of yours, only the path of programs."""
    mine = {"PATH": os.environ.get("PATH", ""), "HOME": tempfile.gettempdir()}
    if sys.platform == "win32":
        mine["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    return mine | VARIABLES
