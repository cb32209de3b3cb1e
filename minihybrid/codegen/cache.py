"""Chapter 16. Compiled kernels on disk: machine code that only its owner may write.

Takes:   texts of kernels, object files.
Gives:   `symbol_of`, the name of a kernel's file; `read`, `write`; `clear_cache`.

A kernel's file is named by a hash of all that made it: its text, the modules that its
text uses, the compiler's version, the processor. So an entry never has to be renewed,
and nets that have a kernel in common share it. It is written whole and then renamed, so
two processes cannot see half a file, and begins with its digest: damaged ones are
compiled again.
What is left out: a limit of its size.
"""

import contextlib
import functools
import hashlib
import os
import re
import sys
import tempfile
import warnings
from importlib.metadata import version

import numpy as np

from minihybrid.op import HybridError

FOLDER = os.path.dirname(os.path.abspath(__file__))


def cache_dir():
    """The folder of kernels: `MINIHYBRID_CACHE_DIR`, or one in the user's cache.

    Raises:  HybridError for a relative one: it would be another in every folder in
             which Python starts, and one may have come with a model.
    """
    chosen = os.path.expanduser(os.environ.get("MINIHYBRID_CACHE_DIR", ""))
    if chosen and not os.path.isabs(chosen):
        raise HybridError(f"MINIHYBRID_CACHE_DIR is {chosen!r}, which depends on the "
                          "folder in which Python runs; give a whole path, such as "
                          f"{os.path.abspath(chosen)!r}")
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # XDG: a relative one counts as none
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return chosen or os.path.join(base, "minihybrid")


def _trusted(found):
    """Whether nobody but this user can have written it: of an `os.stat`."""
    if not hasattr(os, "geteuid"):
        return True  # Windows: the folders of a user are the user's
    return found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _folder():
    """The folder of kernels, made if there is none; OSError if others can write there.

    What lies in it is run as machine code.
    """
    folder = cache_dir()
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if not _trusted(os.stat(folder)):
        warnings.warn(f"compiled kernels are not kept: the folder {folder!r} belongs "
                      "to another user, or others may write there; say "
                      "`chmod go-w` or set MINIHYBRID_CACHE_DIR to a folder of your "
                      "own", RuntimeWarning, stacklevel=1)  # so once
        raise PermissionError(folder)
    return folder


def clear_cache():
    """Delete every compiled kernel on disk; the next first call compiles again.

    Other files stay: somebody may have chosen a folder that has more in it.
    """
    with contextlib.suppress(OSError):
        for name in os.listdir(cache_dir()):
            if re.fullmatch(r"k[0-9a-f]{40}\.o", name):
                os.unlink(os.path.join(cache_dir(), name))


@functools.cache
def _makers():
    """A digest of what turns texts into machine code here."""
    from llvmlite import binding  # loaded with the first plan
    found = hashlib.sha256("\n".join([
        version("numba"), version("llvmlite"), np.__version__, sys.version,
        binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    ]).encode())
    for name in sorted(name for name in os.listdir(FOLDER) if name.endswith(".py")):
        with open(os.path.join(FOLDER, name), "rb") as file:
            found.update(file.read())
    return found.digest()


def symbol_of(text):
    """The name of a kernel's symbol and file."""
    return "k" + hashlib.sha256(_makers() + text.encode()).hexdigest()[:40]


def read(symbol):
    """A kernel's object file from the cache; `None` if there is none, or a damaged."""
    with contextlib.suppress(OSError), \
            open(os.path.join(_folder(), f"{symbol}.o"), "rb") as file:
        digest, code = file.read(32), file.read()
        if (hashlib.sha256(code).digest() == digest
                and _trusted(os.fstat(file.fileno()))):
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
