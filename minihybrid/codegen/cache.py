"""The disk cache of compiled kernels, which only its owner can write.

Defines: `symbol_of`, the file name of a kernel; `read`, `write`; `kept`, `clear_cache`.

The name is a hash of everything that determines the machine code: source, imported
modules, compiler versions, CPU, and related environment variables. So entries never become
stale, and nets share equal kernels. Files are written atomically and begin with a digest;
a damaged one is recompiled.
Not supported: a limit on its size.
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
CLOSED = set()  # folders already verified as not writable by others


def cache_dir():
    """Return the cache folder: `MINIHYBRID_CACHE_DIR`, or one in the user's cache.

    Returns: `None` for a user without a home (`docker run --user 1234`) or with a relative
             one, which would depend on the working directory and might come with a model.
    Raises:  HybridError if the variable is a relative path.
    """
    chosen = os.path.expanduser(os.environ.get("MINIHYBRID_CACHE_DIR", ""))
    if chosen and not os.path.isabs(chosen):
        raise HybridError(
            f"MINIHYBRID_CACHE_DIR is {chosen!r}, which depends on the folder in which Python "
            f"runs; give a whole path, such as {os.path.abspath(chosen)!r}"
        )
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # by the XDG standard, a relative path is ignored
        base = os.path.join(os.path.expanduser("~"), ".cache")
    usual = os.path.join(base, "minihybrid") if os.path.isabs(base) else None
    return chosen or usual


def _trusted(info):
    """Return whether only this user can write it, given its `os.stat`."""
    if not hasattr(os, "geteuid"):
        return True  # Windows: user folders are private
    return info.st_uid == os.geteuid() and not info.st_mode & 0o022


def _reached(path):
    """Return whether no other user can replace a part of a path.

    Each folder and link on the path must belong to this user or the system and must not be
    writable by others, except for sticky folders such as /tmp.
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
    """Return the cache folder, created if needed; OSError if others can write there.

    Its files are executed as machine code.
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
    """Warn that nothing is cached; from one line, so that the warning appears once."""
    warnings.warn(
        f"compiled kernels are not kept: {reason} to a folder of your own",
        RuntimeWarning,
        stacklevel=1,
    )


def kept():
    """Return the paths of all cached kernels.

    Other files in the folder are ignored.
    """
    folder, names = cache_dir(), ()
    with contextlib.suppress(OSError):
        names = os.listdir(folder) if folder else ()
    return [os.path.join(folder, n) for n in names if re.fullmatch(r"k[0-9a-f]{40}\.o", n)]


def clear_cache():
    """Delete all cached kernels; the next first call recompiles."""
    for path in kept():
        with contextlib.suppress(OSError):
            os.unlink(path)


@functools.cache
def processor():
    """Return Numba's environment variables that choose the CPU.

    They are read once, so that all compilers of a process agree with the file names.
    Numba's other variables aren't passed to compilers (`objects.py`).
    """
    return {
        name: os.environ[name]
        for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")
        if name in os.environ
    }


def versions():
    """Return the versions of the packages that compile kernels."""
    return [f"{name} {version(name)}" for name in ("numba", "llvmlite", "numpy")]


def sources():
    """Return the files of all modules that a compiler may import, in order."""
    root = pathlib.Path(ROOT)
    others = (
        "core/__init__ core/hooks core/lazy core/pytree core/op ops/cpu/__init__ ops/cpu/machine"
    )
    names = (*others.split(), "ops/loops")
    return sorted([*root.glob("codegen/**/*.py"), *(root / f"{name}.py" for name in names)])


@functools.cache
def _makers():
    """Return a digest of everything that compiles kernels here."""
    from llvmlite import binding  # imported with the first plan

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
    """Return the name of a kernel's symbol and file."""
    return "k" + hashlib.sha256(_makers() + text.encode()).hexdigest()[:40]


def read(symbol):
    """Return a kernel's object file from the cache; `None` if it is missing or damaged."""
    with contextlib.suppress(OSError), open(os.path.join(_folder(), f"{symbol}.o"), "rb") as file:
        digest, code = file.read(32), file.read()
        if hashlib.sha256(code).digest() == digest and _trusted(os.fstat(file.fileno())):
            return code
    return None


def write(symbol, code):
    """Store an object file, readable by the owner only; skipped without a folder."""
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
