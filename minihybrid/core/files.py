"""Chapter 22. Whole files: read at once, and replaced at once.

Takes:   names of files, bytes.
Gives:   `read_whole`, `write_whole`, `write_together`, `parsed_json`; `FileError`.
What is left out: files larger than memory.
"""

import contextlib
import os
import stat

from minihybrid.core import hooks
from minihybrid.core.op import AttrError, HybridError, described

MAX_TEXT = 1 << 23  # bytes of JSON; Python's values take some twenty times as much


class FileError(HybridError, ValueError):
    """A file that is not what it should be: where, what was found, what is needed."""


def read_whole(fname):
    """The bytes of a file; an error says which file and why.

    Raises:  FileError, also for what is no regular file: a pipe may never end.
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
    """Open without waiting for somebody to write into a pipe."""
    return os.open(fname, flags | getattr(os, "O_NONBLOCK", 0))


def path_of(fname):
    """A file's name.

    Raises:  AttrError for what is neither a text nor a path.
    """
    if not isinstance(fname, (str, os.PathLike)):
        raise AttrError(
            f"file name: {described(fname)} is none; needed: a text or a path, such as 'net.params'"
        )
    return fname


def write_whole(fname, data, overwrite=False):
    """Replace a file at once: an interrupted write leaves the old one as it was."""
    write_together({fname: data}, overwrite)


def write_together(files, overwrite=False):
    """Replace files, name -> bytes, of which each is complete before any gets its name.

    overwrite: even a program that a user wrote.
    Returns: their names.

    The new files have the permissions of the old ones; a link still points to its file.
    Raises:  FileError, also for what is no regular file, which would be replaced, and for
             a program that was not generated here.
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
                os.fsync(file.fileno())  # before the new name: after a power cut, too
            with contextlib.suppress(FileNotFoundError):
                os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
        for temporary, target in complete.items():
            os.replace(temporary, target)
        return tuple(files)
    except BaseException as error:
        for temporary in complete:
            with contextlib.suppress(OSError):  # there may be none
                os.unlink(temporary)
        if isinstance(error, OSError):
            raise FileError(f"cannot write '{fname}': {error.strerror}") from None
        raise


def parsed_json(text, source):
    """What JSON text says, as Python's values: UTF-8, no key twice, no NaN.

    Raises:  FileError, also for a text that is too long or too deeply nested.
    """
    import json  # only who reads a graph waits for it

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
