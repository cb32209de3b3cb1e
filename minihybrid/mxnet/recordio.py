"""RecordIO files: sequences of byte records.

Defines: `MXRecordIO`, `MXIndexedRecordIO`; `IRHeader`, `pack`, `unpack`, `pack_img`,
         `unpack_img`, which convert images with labels to bytes and back.

    file     record record ...
    record   magic (32 bits), flag (3), length (29), the bytes, zeros up to a multiple of 4
    index    a line `key TAB offset` for each record, in a separate file

Where the payload contains the magic number at a multiple of 4, the record is split: flag 1
marks the first part, 2 inner parts, 3 the last; 0 a whole record. So a search for the magic
number finds only starts of parts.

Files are untrusted: every length is checked against the file's size before memory is
allocated, and nothing in them is executed.
Source:  MXNet's mxnet.recordio and dmlc-core's recordio.h; the files are byte-identical.
Not supported: remote files.
"""

import contextlib
import io
import numbers
import os
import re
import struct
from collections import namedtuple

import numpy as np

from minihybrid.core.checked_call import CheckedCall
from minihybrid.core.files import FileError, path_of, read_whole
from minihybrid.core.fork_safe import ForkSafe
from minihybrid.core.hooks import own_names
from minihybrid.core.nd import NDArray
from minihybrid.core.op import AttrError, HybridError, checked, described, integer, unfit
from minihybrid.formats.foreign import replaces
from minihybrid.gluon.data.vision.image import import_pillow, pixels

MAGIC = struct.pack("<I", 0xCED7230A)
WHOLE, FIRST, BETWEEN, LAST = range(4)  # the flag: the upper 3 bits of a part's length
BYTES = bytes, bytearray, memoryview
MAX_PART = 1 << 29  # bytes, the first length that exceeds 29 bits


# -- records ---------------------------------------------------------------------------
class MXRecordIO(metaclass=CheckedCall):
    """A RecordIO file, to write ("w") or read ("r") sequentially.

    Records are written to a temporary file next to it until `close`, so an interrupted
    program leaves the old file unchanged.
    Raises:  FileError for an invalid file; AttrError for another flag.

    >>> import tempfile, os
    >>> name = os.path.join(tempfile.mkdtemp(), "words.rec")
    >>> file = MXRecordIO(name, "w"); file.write(b"one"); file.write(b"two"); file.close()
    >>> file = MXRecordIO(name, "r")
    >>> file.read(), file.read(), file.read()
    (b'one', b'two', None)
    """

    def __init__(self, uri, flag):
        self.is_open = False
        self.uri, self.flag = os.fspath(path_of(uri)), flag
        if flag not in ("r", "w"):
            raise unfit(type(self).__name__, "flag", flag, "'r' (read) or 'w' (write) is needed")
        self.writable = flag == "w"
        self._locked = ForkSafe()  # a DataLoader's threads share the file
        self.open()

    def open(self):
        """Open the file at its start, empty for writing."""
        self._opened()
        self.is_open, self.pid = True, os.getpid()

    def _opened(self):
        self._file = _Replaced(self.uri, MAGIC) if self.writable else _to_read(self.uri)

    def close(self):
        """Close the file; a written one replaces the old file."""
        if self.is_open:
            self.is_open = False
            self._closed()

    def _closed(self):
        if self.writable:
            _rename_all([self._file])
        else:
            self._file.close()

    def __del__(self):
        if getattr(self, "is_open", False):
            self.close()

    def __getstate__(self):
        if self.writable:
            raise HybridError(
                f"MXRecordIO: '{self.uri}' is open to write, so it cannot be copied; close it, "
                "and open it to read"
            )
        return {"args": self._args(), "is_open": self.is_open}

    def __setstate__(self, state):
        self.__init__(*state["args"])
        if not state["is_open"]:
            self.close()

    def _args(self):
        return self.uri, self.flag

    def reset(self):
        """Reopen the file at its start, empty for writing."""
        if self.is_open and self.writable:
            self.is_open = False
            self._dropped()
        self.close()
        self.open()

    def _dropped(self):
        self._file.drop()

    def _ready(self, method, writable):
        """Refuse a method that this file isn't open for."""
        name = f"{type(self).__name__}.{method}"
        if not self.is_open:
            raise HybridError(f"{name}: '{self.uri}' is closed; open it with open()")
        if self.writable != writable:
            raise HybridError(
                f"{name}: '{self.uri}' is open to {'write' if self.writable else 'read'} only"
            )

    def write(self, buf):
        """Append a record.

        buf:     bytes, fewer than 2^29.
        """
        self._ready("write", True)
        if not isinstance(buf, BYTES):
            raise unfit("MXRecordIO.write", "buf", buf, "bytes are needed")
        self._file.write(_framed(bytes(buf)))

    def read(self):
        """Return the bytes of the next record; None after the last."""
        self._ready("read", False)
        if self.pid != os.getpid():
            raise HybridError(
                f"{type(self).__name__}.read: '{self.uri}' was opened by another process, which "
                "reads from the same place; open it in this one, by reset()"
            )
        with self._locked.lock:
            return _next_record(self._file, self.uri)


class MXIndexedRecordIO(MXRecordIO):
    """A RecordIO file with random access by key; a second file holds the offsets.

    idx_path:  None scans the file, if it is read; keys are then 0, 1, ...
    key_type:  converts the text of a key: int, or str.
    keys:      in the order of the index;  idx: key -> offset.
    Raises:    FileError, also for an index that points outside the file.

    >>> import tempfile
    >>> name = tempfile.mkdtemp() + "/words"
    >>> file = MXIndexedRecordIO(name + ".idx", name + ".rec", "w")
    >>> file.write_idx(7, b"seven"); file.write_idx(3, b"three"); file.close()
    >>> file = MXIndexedRecordIO(name + ".idx", name + ".rec", "r")
    >>> file.keys, file.read_idx(3)
    ([7, 3], b'three')
    """

    def __init__(self, idx_path, uri, flag, key_type=int):
        walks = idx_path is None and flag == "r"
        self.idx_path = None if walks else os.fspath(path_of(idx_path))
        self.key_type = key_type
        super().__init__(uri, flag)

    def _args(self):
        return self.idx_path, self.uri, self.flag, self.key_type

    def _opened(self):
        self.idx, self.keys = {}, []
        super()._opened()
        try:
            if self.writable:
                self._index = _Replaced(self.idx_path, b"")
            elif self.idx_path is None:
                self.idx = dict(enumerate(_places(self._file, self.uri)))
                self.keys = list(self.idx)
            else:
                self._read_index()
        except BaseException:
            self._file.drop() if self.writable else self._file.close()
            raise

    def _read_index(self):
        size = _size_of(self._file)
        for n, line in enumerate(read_whole(self.idx_path).splitlines(), 1):
            if not line:
                continue
            match = re.fullmatch(rb"([^\t]*)\t([0-9]{1,19})\s*", line)
            try:
                key = self.key_type(match[1].decode())
            except (TypeError, ValueError):
                kind = getattr(self.key_type, "__name__", "key_type")
                raise FileError(
                    f"'{self.idx_path}', line {n}: {line[:60]!r} is no key ({kind}), a tab and a "
                    f"place; needed: the index of '{self.uri}'"
                ) from None
            if int(match[2]) >= size:
                raise FileError(
                    f"'{self.idx_path}', line {n}: the record {str(key):.40} is said to begin at "
                    f"byte {int(match[2])}, but '{self.uri}' has {size}; do they belong together?"
                )
            self.idx[key] = int(match[2])
            self.keys.append(key)

    def _closed(self):
        if self.writable:
            _rename_all([self._file, self._index])
        else:
            super()._closed()

    def _dropped(self):
        super()._dropped()
        self._index.drop()

    def seek(self, idx):
        """Seek to the record with this key, which `read` then returns.

        Raises:  AttrError if there is none.
        """
        self._ready("seek", False)
        if idx not in self.idx:
            raise AttrError(
                f"MXIndexedRecordIO: there is no record {described(idx)} in '{self.uri}', but "
                f"{len(self.keys)} others, such as {str(self.keys[:3])[1:-1] or 'none'}"
            )
        with self._locked.lock:
            if self.pid != os.getpid():  # a forked process needs its own file position
                self.reset()
            self._file.seek(self.idx[idx])

    def read_idx(self, idx):
        """Return the bytes of the record with this key."""
        with self._locked.lock:
            self.seek(idx)
            return self.read()

    def tell(self):
        """Return the offset of the next record, in bytes."""
        self._ready("tell", True)
        return self._file.tell()

    def write_idx(self, idx, buf):
        """Append a record under a key."""
        self._ready("write_idx", True)
        try:
            key = self.key_type(idx)
        except (TypeError, ValueError):
            kind = getattr(self.key_type, "__name__", "key_type")
            raise AttrError(
                f"MXIndexedRecordIO.write_idx: idx={described(idx)} is no key ({kind})"
            ) from None
        if len(f"{key}x".splitlines()) > 1 or "\t" in str(key):
            raise AttrError(
                f"MXIndexedRecordIO.write_idx: the key {key!r} has a tab or more than one line"
            )
        place = self.tell()
        self.write(buf)
        self._index.write(f"{key}\t{place}\n".encode())
        self.idx[key] = place
        self.keys.append(key)


def _framed(data):
    """Return a record's bytes in the file, split where it contains the magic number."""
    if len(data) >= MAX_PART:
        raise AttrError(
            f"MXRecordIO.write: a record of {len(data)} bytes; at most {MAX_PART - 1} fit"
        )
    words = np.frombuffer(data, "<u4", len(data) // 4)
    begins = [0, *(4 * (np.flatnonzero(words == 0xCED7230A) + 1)).tolist()]
    ends = [begin - 4 for begin in begins[1:]] + [len(data)]
    flags = [FIRST, *[BETWEEN] * (len(ends) - 2), LAST] if len(ends) > 1 else [WHOLE]
    parts = []
    for flag, begin, end in zip(flags, begins, ends, strict=True):
        parts += [MAGIC, struct.pack("<I", flag << 29 | end - begin), data[begin:end]]
    return b"".join(parts) + bytes(-len(data) % 4)


def _next_record(file, name):
    """Return the bytes of the record at the file position; None at the end."""
    parts, size = [], _size_of(file)
    for n in _lengths(file, name, size):
        parts.append(file.read(n))
        file.seek(-n % 4, io.SEEK_CUR)
    return MAGIC.join(parts) if parts else None


def _places(file, name):
    """Return the offset of each record, without reading its payload."""
    places, size = [], _size_of(file)
    while (place := file.tell()) < size:
        for n in _lengths(file, name, size):
            file.seek(n + -n % 4, io.SEEK_CUR)
        places.append(place)
    file.seek(0)
    return places


def _lengths(file, name, size):
    """Yield the length of each part of the next record, with the file positioned at it."""
    flags = WHOLE, FIRST
    while True:
        place = file.tell()
        head = file.read(8)
        if not head and FIRST in flags:
            return
        flag, n = divmod(struct.unpack("<I", head[4:])[0], MAX_PART) if len(head) == 8 else (9, 0)
        if head[:4] != MAGIC or flag not in flags:
            raise FileError(
                f"'{name}': at byte {place} no record begins ({head.hex() or 'nothing'}); needed: "
                f"{MAGIC.hex()}, then a flag of {' or '.join(map(str, flags))} and a length; is "
                "it a file of records, and was it cut off, or is the index another's?"
            )
        if place + 8 + n > size:
            raise FileError(
                f"'{name}': the record at byte {place} says that it has {n} bytes, but "
                f"{size - place - 8} follow; was the file cut off?"
            )
        yield n
        if flag in (WHOLE, LAST):
            return
        flags = BETWEEN, LAST


def _to_read(name):
    """Open a regular file for reading."""
    if os.path.exists(name) and not os.path.isfile(name):
        raise FileError(f"cannot read '{name}': it is no regular file")
    try:
        return open(name, "rb")
    except OSError as error:
        raise FileError(f"cannot read '{name}': {error.strerror}") from None


def _size_of(file):
    return os.fstat(file.fileno()).st_size


class _Replaced:
    """A temporary file that replaces the old one at the end, by `_rename_all`."""

    def __init__(self, name, start):
        """Create it; start: the first bytes to be written."""
        self.target = os.path.realpath(name)
        if os.path.exists(self.target) and not os.path.isfile(self.target):
            raise FileError(f"cannot write '{name}': it is no regular file")
        if os.path.exists(self.target):
            replaces(self.target, start)
        self.temporary = f"{self.target}.{os.urandom(8).hex()}.tmp"
        with self._file_errors():
            self.file = open(self.temporary, "xb")

    @contextlib.contextmanager
    def _file_errors(self):
        try:
            yield
        except OSError as error:
            self.drop()
            raise FileError(f"cannot write '{self.target}': {error.strerror}") from None

    def write(self, data):
        with self._file_errors():
            self.file.write(data)

    def tell(self):
        return self.file.tell()

    def complete(self):
        """Flush buffers to disk; the file is still temporary."""
        self.file.flush()
        os.fsync(self.file.fileno())  # before renaming, to survive a power failure
        self.file.close()
        with contextlib.suppress(FileNotFoundError):
            os.chmod(self.temporary, os.stat(self.target).st_mode & 0o7777)

    def drop(self):
        with contextlib.suppress(AttributeError, OSError):
            self.file.close()
        with contextlib.suppress(OSError):
            os.unlink(self.temporary)


def _rename_all(files):
    """Rename files after all are complete; after an error, delete the temporary ones."""
    try:
        for file in files:
            file.complete()
        for file in files:
            os.replace(file.temporary, file.target)
    except BaseException as error:
        for file in files:
            file.drop()
        if isinstance(error, OSError):
            raise FileError(f"cannot write '{file.target}': {error.strerror}") from None
        raise


# -- images with labels ----------------------------------------------------------------
IRHeader = namedtuple("HEADER", ["flag", "label", "id", "id2"])
HEADER = struct.Struct("<IfQQ")  # flag: number of labels that follow; 0: a single one here


def pack(header, s):
    """Return the bytes of a record: a header, then bytes such as those of an image file.

    header:  `IRHeader(flag, label, id, id2)`; label is a scalar, or several as float32.

    >>> unpack(pack(IRHeader(0, [1, 2], 7, 0), b"picture"))
    (HEADER(flag=2, label=array([1., 2.], dtype=float32), id=7, id2=0), b'picture')
    """
    try:
        _, label, *ids = header
        if isinstance(label, numbers.Number):
            return HEADER.pack(0, label, *ids) + s
        label = label.asnumpy() if isinstance(label, NDArray) else label
        labels = np.asarray(label, "<f4")
        return HEADER.pack(labels.size, 0, *ids) + labels.tobytes() + s
    except (TypeError, ValueError, OverflowError, struct.error):
        raise AttrError(
            f"pack: {described(header)} with {described(s)} does not fit; needed: "
            "IRHeader(flag, label, id, id2) with one label or some, and two whole numbers of 64 "
            "bits from 0 on; then bytes"
        ) from None


def unpack(s):
    """Return (header, the bytes after it) of a record; the label is as it was packed.

    Raises:  FileError if the record is too short.
    """
    if not isinstance(s, BYTES):
        raise AttrError(f"unpack: {described(s)} is given, but the bytes of a record are needed")
    if len(s) < HEADER.size:
        raise FileError(
            f"unpack: a record of {len(s)} bytes; needed: {HEADER.size} of a header, or more"
        )
    header, rest = IRHeader(*HEADER.unpack_from(s)), s[HEADER.size :]
    if not header.flag:
        return header, rest
    if 4 * header.flag > len(rest):
        raise FileError(
            f"unpack: the header says that {header.flag} labels of 4 bytes follow, but there are "
            f"{len(rest)} bytes"
        )
    header = header._replace(label=np.frombuffer(rest, "<f4", header.flag))
    return header, rest[4 * header.flag :]


def pack_img(header, img, quality=95, img_fmt=".jpg"):
    """Encode an image; return the bytes of a record.

    img:     uint8, of shape (height, width) or (height, width, channels) in BGR order.
    quality: for .jpg, 1 to 100; for .png, the compression level, 1 to 9.
    """
    values = img.asnumpy() if isinstance(img, NDArray) else np.asarray(img)
    values = values[:, :, 0] if values.ndim == 3 and values.shape[2] == 1 else values
    if values.dtype != np.uint8 or values.ndim != 2 and values.shape[2:] not in ((3,), (4,)):
        raise AttrError(
            f"pack_img: img of shape {values.shape} and {values.dtype}; needed: uint8, of shape "
            "(height, width), or with 3 or 4 channels"
        )
    quality = checked("pack_img", "quality", quality, integer)
    how = {
        ".jpg": ("JPEG", {"quality": min(max(quality, 1), 100)}),
        ".png": ("PNG", {"compress_level": min(max(quality, 0), 9)}),
    }
    kind = str(img_fmt).lower().replace(".jpeg", ".jpg")
    if kind not in how:
        raise AttrError(f"pack_img: img_fmt={img_fmt!r}, but .jpg, .jpeg or .png is needed")
    file, (name, more) = io.BytesIO(), how[kind]
    try:
        import_pillow().fromarray(np.ascontiguousarray(_swapped(values))).save(file, name, **more)
    except (OSError, ValueError) as error:
        raise AttrError(
            f"pack_img: no {kind} can be made of shape {values.shape}: {error}"
        ) from None
    return pack(header, file.getvalue())


def unpack_img(s, iscolor=-1):
    """Return (header, image) of a record: a uint8 ndarray in BGR order, as from OpenCV.

    iscolor: 1 for (height, width, 3), 0 for gray, (height, width); -1 for that of the file,
             possibly with 4 channels.
    """
    header, data = unpack(s)
    if checked("unpack_img", "iscolor", iscolor, integer) not in (-1, 0, 1):
        raise AttrError(
            f"unpack_img: iscolor={iscolor}, but 1 (colors), 0 (grey) or -1 (as it is) is needed"
        )
    values = pixels(bytes(data), "the picture of a record", iscolor)
    return header, values[:, :, 0] if values.shape[2] == 1 else _swapped(values)


def _swapped(values):
    """Swap red and blue, between RGB and BGR; other channels are unchanged."""
    return values if values.ndim == 2 else values[:, :, [2, 1, 0, 3][: values.shape[2]]]


__dir__ = own_names(globals(), "IRHeader")
