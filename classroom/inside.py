"""The student's process: it runs cells, and calls what they define when asked.

    python -I inside.py '{"limits": ..., "files": ..., ...}'

It reads one request a line from stdin and answers with one line: {"run": text} runs a
cell, {"call": name, "args": [...], "kwargs": {...}} calls a function. Only numbers, texts
and arrays cross, as JSON; the process that asks knows what is right, and this one does not.
"""

import base64
import ctypes
import itertools
import json
import linecache
import os
import re
import sys
import traceback

import numpy as np

# linux/mount.h, linux/sched.h, linux/capability.h, linux/prctl.h
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
MNT_DETACH, PIVOT_ROOT = 2, {"x86_64": 155, "aarch64": 41}
LOCKED = {2: 2, 4: 4, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}  # statvfs -> mount
CAPABILITIES, NO_NEW_PRIVILEGES = 0x20080522, 38


# -- walls -----------------------------------------------------------------------------
def new_root(visible, megabytes):
    """See only the folders `visible`, none of them writable, and an empty /tmp."""
    libc = ctypes.CDLL(None, use_errno=True)

    def must(result, what):
        if result:
            raise OSError(ctypes.get_errno(), what)

    def mount(what, where, kind=None, flags=0, data=None):
        done = libc.mount(
            *(None if s is None else str(s).encode() for s in (what, where, kind)),
            ctypes.c_ulong(flags),
            None if data is None else data.encode(),
        )
        must(done, f"mount {where}")

    mount(None, "/", None, MS_REC | MS_PRIVATE)
    root = os.getcwd()
    mount("none", root, "tmpfs", 0, "size=1m")
    os.mkdir(f"{root}/tmp")  # first, as what is visible may lie there, too
    mount("none", root + "/tmp", "tmpfs", 0, f"size={megabytes}m,nr_inodes=4096")
    for path in visible:
        os.makedirs(root + path, exist_ok=True)
        mount(path, root + path, None, MS_BIND | MS_REC)
        flags = os.statvfs(root + path).f_flag
        kept = sum(new for old, new in LOCKED.items() if flags & old)
        mount(None, root + path, None, MS_BIND | MS_REMOUNT | MS_RDONLY | kept)
    for path, target in (("/bin", "usr/bin"), ("/lib", "usr/lib"), ("/lib64", "usr/lib64")):
        if not os.path.lexists(root + path):
            os.symlink(target, root + path)
    for path in ("/proc", "/dev", "/old"):
        os.mkdir(root + path)
    mount("proc", root + "/proc", "proc")
    for name in ("null", "zero", "urandom", "random"):
        open(f"{root}/dev/{name}", "w").close()
        mount(f"/dev/{name}", f"{root}/dev/{name}", None, MS_BIND)
    pivot = ctypes.c_long(PIVOT_ROOT[os.uname().machine])
    must(libc.syscall(pivot, root.encode(), f"{root}/old".encode()), "pivot_root")
    os.chdir("/tmp")
    must(libc.umount2(b"/old", MNT_DETACH), "umount")
    os.rmdir("/old")
    mount(None, "/", None, MS_REMOUNT | MS_RDONLY)


def no_privileges():
    """Whatever the process may do as root of its own name space, it gives away."""
    libc = ctypes.CDLL(None, use_errno=True)
    head, none = (ctypes.c_uint32 * 2)(CAPABILITIES, 0), (ctypes.c_uint32 * 6)()
    if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.capset(head, none):
        raise OSError(ctypes.get_errno(), "capset")


def limit(limits):
    """Limits of the system on memory, processor time, processes and files."""
    import resource  # not on Windows

    for name, value in limits.items():
        number = getattr(resource, f"RLIMIT_{name}")
        most = resource.getrlimit(number)[1]
        value = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(number, (value, value))


# -- what crosses ----------------------------------------------------------------------
def plain(value):
    """A value as JSON can write it; raises TypeError for what must not cross."""
    if isinstance(value, np.generic):
        value = value.item()
    match value:
        case None | bool() | str():
            return value
        case int() | float():
            return {"number": repr(value)} if value != value or abs(value) > 1e300 else value
        case list() | tuple():
            return [plain(v) for v in value]
        case dict():
            return {"dict": {str(k): plain(v) for k, v in value.items()}}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        a = np.ascontiguousarray(value)
        text = base64.b64encode(a.tobytes()).decode()
        return {"array": text, "dtype": a.dtype.str, "shape": list(value.shape)}
    raise TypeError(f"a {type(value).__name__} came back; an array, a number or a text is needed")


def value_of(found, names=None):
    """The value that JSON says; names: what the student's functions are called."""
    if isinstance(found, list):
        return [value_of(v, names) for v in found]
    if not isinstance(found, dict):
        return found
    if "array" in found:
        dtype = np.dtype(str(found["dtype"]))
        if dtype.kind not in "biuf":
            raise ValueError(f"an array of {dtype} came back; numbers are needed")
        data = np.frombuffer(base64.b64decode(found["array"]), dtype)
        return data.reshape([int(n) for n in found["shape"]]).copy()
    if "number" in found:
        return float(found["number"])
    if "name" in found:
        if found["name"] not in names:
            raise NameError(f"{found['name']} is not defined: its cell is empty or has failed")
        return names[found["name"]]
    return {k: value_of(v, names) for k, v in found["dict"].items()}


# -- work ------------------------------------------------------------------------------
CELL, numbers = "<cell", itertools.count()
MAGIC = re.compile(r"^([ \t]*)[%!].*$", re.MULTILINE)


def python(text):
    """A cell without the lines for IPython, such as %pip, if it is no Python with them.

    Its text is kept, each under a name of its own: `cuda.jit` reads a function's source.
    """
    name = f"{CELL} {next(numbers)}>"
    try:
        code = compile(text, name, "exec")
    except SyntaxError:
        text = MAGIC.sub(r"\1pass", text)
        code = compile(text, name, "exec")
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    return code


def said(error):
    """Type and message of an error, and the last line of a cell that it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    line = next(
        (f" (line {f.lineno} of the cell)" for f in frames[::-1] if f.filename.startswith(CELL)), ""
    )
    return f"{type(error).__name__}: {error}"[:1000] + line


def answer(request, names):
    try:
        if "run" in request:
            exec(python(request["run"]), names)
            return {"done": None}
        f = value_of({"name": request["call"]}, names)
        args = [value_of(v, names) for v in request["args"]]
        kwargs = {k: value_of(v, names) for k, v in request["kwargs"].items()}
        return {"done": plain(f(*args, **kwargs))}
    except BaseException as error:  # SystemExit, too, is the student's
        return {"error": said(error)}


def main(settings):
    here, there = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for k in (0, 1, 2):  # what cells print goes nowhere
        os.dup2(null, k)
    if settings["visible"]:
        new_root(settings["visible"], settings["megabytes"])
        no_privileges()
    if settings["limits"]:
        limit(settings["limits"])
    for name, text in settings["files"].items():
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
    sys.path[:0], sys.argv[1:] = [os.getcwd(), *settings["path"]], []
    names = {"__name__": "__main__"}
    for line in os.fdopen(here, encoding="utf-8"):
        text = json.dumps(answer(json.loads(line), names)) + "\n"
        data = text.encode()
        while data:
            data = data[os.write(there, data) :]


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
