"""Compiled kernels on disk: machine code that only its owner may write.

Takes:   texts of kernels, object files.
Gives:   `symbol_of`, the name of a kernel's file; `read`, `write`; `kept`, `clear_cache`.

A kernel's file is named by a hash of all that made it: its text, the modules that its
text uses, the compiler's version, the processor, and what the environment says of that.
So an entry never has to be renewed, and nets that have a kernel in common share it. It
is written whole and then renamed, so two processes cannot see half a file, and begins
with its digest: damaged ones are compiled again.
What is left out: a limit of its size.
"""

import contextlib
import functools
import hashlib
import os
import pathlib
import re
import stat
import sys
import tempfile
import warnings
from importlib.metadata import version

from minihybrid.core.op import HybridError

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # minihybrid/
CLOSED = set()  # folders whose way was found closed: nobody else can open it again


def cache_dir():
    """The folder of kernels: `MINIHYBRID_CACHE_DIR`, or one in the user's cache.

    Gives:   `None` for a user who has no home (`docker run --user 1234`), or one that
             is no whole path: such a folder would be another wherever Python starts,
             and one may have come with a model.
    Raises:  HybridError if the variable is no whole path.
    """
    chosen = os.path.expanduser(os.environ.get("MINIHYBRID_CACHE_DIR", ""))
    if chosen and not os.path.isabs(chosen):
        raise HybridError(
            f"MINIHYBRID_CACHE_DIR is {chosen!r}, which depends on the folder in which Python "
            f"runs; give a whole path, such as {os.path.abspath(chosen)!r}"
        )
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # XDG: a relative one counts as none
        base = os.path.join(os.path.expanduser("~"), ".cache")
    usual = os.path.join(base, "minihybrid") if os.path.isabs(base) else None
    return chosen or usual


def _trusted(info):
    """Whether nobody but this user can have written it: of an `os.stat`."""
    if not hasattr(os, "geteuid"):
        return True  # Windows: the folders of a user are the user's
    return info.st_uid == os.geteuid() and not info.st_mode & 0o022


def _reached(path):
    """Whether nobody else can put another folder, or a link, in a path's place.

    Each folder on the way, and each link, must be this user's or the system's, and
    closed to others, unless all may write there but only to what is their own: /tmp.
    """
    if not hasattr(os, "geteuid") or path == os.path.dirname(path):
        return True
    above, info = os.path.dirname(path), os.lstat(path)
    system = os.stat(os.sep).st_uid  # 0, unless in a container
    good = info.st_uid in (system, 0, os.geteuid()) and _reached(above)
    if good and stat.S_ISLNK(info.st_mode):
        return _reached(os.path.normpath(os.path.join(os.path.realpath(above), os.readlink(path))))
    return good and (not info.st_mode & 0o002 or bool(info.st_mode & stat.S_ISVTX))


def _folder():
    """The folder of kernels, made if there is none; OSError if others can write there.

    What lies in it is run as machine code.
    """
    folder = cache_dir()
    if folder is None:
        _warn("this user has no home folder; set MINIHYBRID_CACHE_DIR")
        raise FileNotFoundError
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if (
        folder not in CLOSED
        and _reached(os.path.normpath(folder))
        and _reached(os.path.realpath(folder))
    ):
        CLOSED.add(folder)
    if not _trusted(os.stat(folder)) or folder not in CLOSED:
        _warn(
            f"the folder {folder!r}, or one above it, belongs to another user, or "
            "others may write there; say `chmod go-w` or set MINIHYBRID_CACHE_DIR"
        )
        raise PermissionError(folder)
    return folder


def _warn(reason):
    """Say why nothing is kept; one place in the text, so it is said once."""
    warnings.warn(
        f"compiled kernels are not kept: {reason} to a folder of your own",
        RuntimeWarning,
        stacklevel=1,
    )


def kept():
    """The files of all compiled kernels on disk, as paths.

    Other files are not among them: somebody may have chosen a folder that has more in it.
    """
    folder, names = cache_dir(), ()
    with contextlib.suppress(OSError):
        names = os.listdir(folder) if folder else ()
    return [os.path.join(folder, n) for n in names if re.fullmatch(r"k[0-9a-f]{40}\.o", n)]


def clear_cache():
    """Delete every compiled kernel on disk; the next first call compiles again."""
    for path in kept():
        with contextlib.suppress(OSError):
            os.unlink(path)


@functools.cache
def processor():
    """What the environment says of the processor that code is for, in Numba's words.

    Read once, so that all compilers of a process have what the names of files tell.
    Other variables of Numba do not reach them (`objects.py`).
    """
    return {
        name: os.environ[name]
        for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")
        if name in os.environ
    }


def versions():
    """Of the packages that turn texts into machine code."""
    return [f"{name} {version(name)}" for name in ("numba", "llvmlite", "numpy")]


def sources():
    """The files of all modules that a compiler may load, in order; in all folders."""
    root = pathlib.Path(ROOT)
    others = (
        "core/__init__ core/hooks core/lazy core/pytree core/op ops/cpu/__init__ ops/cpu/machine"
    )
    names = (*others.split(), "ops/loops")
    return sorted([*root.glob("codegen/**/*.py"), *(root / f"{name}.py" for name in names)])


@functools.cache
def _makers():
    """A digest of what turns texts into machine code here."""
    from llvmlite import binding  # loaded with the first plan

    hasher = hashlib.sha256(
        "\n".join(
            [
                *versions(),
                sys.version,
                repr(sorted(processor().items())),
                binding.get_host_cpu_name(),
                binding.get_host_cpu_features().flatten(),
            ]
        ).encode()
    )
    for file in sources():
        hasher.update(file.read_bytes())
    return hasher.digest()


def symbol_of(text):
    """The name of a kernel's symbol and file."""
    return "k" + hashlib.sha256(_makers() + text.encode()).hexdigest()[:40]


def read(symbol):
    """A kernel's object file from the cache; `None` if there is none, or a damaged."""
    with contextlib.suppress(OSError), open(os.path.join(_folder(), f"{symbol}.o"), "rb") as file:
        digest, code = file.read(32), file.read()
        if hashlib.sha256(code).digest() == digest and _trusted(os.fstat(file.fileno())):
            return code
    return None


def write(symbol, code):
    """Keep an object file, for the owner only; without a folder it is not kept."""
    with contextlib.suppress(OSError):
        folder = _folder()
        handle, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(code).digest() + code)
            os.replace(temporary, os.path.join(folder, f"{symbol}.o"))
        except BaseException:
            os.unlink(temporary)
            raise
