"""Chapter 13. Whole files: read at once, and replaced at once.

Takes:   names of files, bytes.
Gives:   `read_whole`, `write_whole`; `FileError`.
What is left out: files larger than memory.
"""

import os
import tempfile

from minihybrid.op import HybridError


class FileError(HybridError, ValueError):
    """A file that is not what it should be: where, what was found, what is needed."""


def read_whole(fname):
    """The bytes of a file; an error says which file and why."""
    try:
        with open(fname, "rb") as file:
            return file.read()
    except OSError as error:
        raise FileError(f"cannot read '{fname}': {error.strerror}") from None


def write_whole(fname, data):
    """Replace a file at once: an interrupted write leaves the old one as it was."""
    folder = os.path.dirname(os.path.abspath(fname))
    try:
        handle, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp")
    except OSError as error:
        raise FileError(f"cannot write '{fname}': {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, fname)
    except BaseException:
        os.unlink(temporary)
        raise
