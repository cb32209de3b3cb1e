"""Chapter 22. Atomic reading and writing of whole files.

Defines: `read_whole`, `write_whole`, `write_together`, `parsed_json`; `FileError`.
Not supported: files larger than memory.
"""

import contextlib
import os
import stat

from minihybrid.core import hooks
from minihybrid.core.op import HybridError, unfit

MAX_TEXT = 1 << 23  # bytes of JSON; the parsed values take about twenty times as much


class FileError(HybridError, ValueError):
    """An invalid file; the message says where, what it contains and what is needed."""


def read_whole(fname):
    """Return the bytes of a file.

    Raises:  FileError if it can't be read or isn't a regular file: a pipe may never end.
    """
    try:
        with open(path_of(fname), "rb", opener=_open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise FileError(
                    f"cannot read '{fname}': it is a device or a pipe; needed: a regular file"
                )
            return hooks.opened(file.read(), fname)
    except OSError as error:
        raise FileError(f"cannot read '{fname}': {error.strerror}") from None


def _open_at_once(fname, flags):
    """Open without blocking on a pipe that has no writer."""
    return os.open(fname, flags | getattr(os, "O_NONBLOCK", 0))


def path_of(fname):
    """Return a file name.

    Raises:  AttrError unless it is a string or a path.
    """
    if not isinstance(fname, (str, os.PathLike)):
        raise unfit("file name", "", fname, "a text or a path is needed, such as 'net.params'")
    return fname


def write_whole(fname, data, overwrite=False):
    """Write a file atomically: an interruption leaves the old one unchanged."""
    write_together({path_of(fname): data}, overwrite)


def write_together(files, overwrite=False):
    """Write files, name -> bytes; complete all of them before renaming any into place.

    overwrite: also replace a program that wasn't generated here.
    Returns: their names.

    The new files keep the old ones' permissions; symbolic links are followed.
    Raises:  FileError, also if a file to replace isn't a regular file, or is a program
             that wasn't generated here.
    """
    complete = {}
    try:
        for fname, data in files.items():
            target = os.path.realpath(path_of(fname))
            if os.path.exists(target) and not os.path.isfile(target):
                raise FileError(
                    f"cannot write '{fname}': it is a folder, a device or a pipe; "
                    "needed: the name of a regular file"
                )
            if os.path.exists(target) and not overwrite:
                from minihybrid.formats.foreign import replaces

                replaces(target, data)
            temporary = os.path.join(os.path.dirname(target), f"{os.urandom(8).hex()}.tmp")
            complete[temporary] = target
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())  # before the rename, to survive a power failure
            with contextlib.suppress(FileNotFoundError):
                os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
        for temporary, target in complete.items():
            os.replace(temporary, target)
        return tuple(files)
    except BaseException as error:
        for temporary in complete:
            with contextlib.suppress(OSError):  # it may not exist
                os.unlink(temporary)
        if isinstance(error, OSError):
            raise FileError(f"cannot write '{fname}': {error.strerror}") from None
        raise


def parsed_json(text, source):
    """Parse JSON strictly: UTF-8, no duplicate keys, no NaN.

    Raises:  FileError, also if the text is too long or too deeply nested.
    """
    import json  # imported on demand

    def once(pairs):
        entries = dict(pairs)
        if len(entries) < len(pairs):
            raise ValueError("an object has a key twice")
        return entries

    def refuse(constant):
        raise ValueError(f"{constant} is no number of JSON")

    if len(text) > MAX_TEXT:
        raise FileError(
            f"{source} has {len(text)} bytes; a file of JSON may have "
            f"{MAX_TEXT}, which is a graph of some 30 000 nodes"
        )
    try:
        text = text if isinstance(text, str) else bytes(text).decode()
        data = json.loads(text, object_pairs_hook=once, parse_constant=refuse)
        if "\\u" in text or not text.isascii():  # half a surrogate pair?
            json.dumps(data, ensure_ascii=False).encode()
        return data
    except (ValueError, RecursionError) as error:
        raise FileError(f"{source} is not JSON: {str(error)[:200]}") from None
