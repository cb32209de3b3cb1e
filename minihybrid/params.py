"""Chapter 13. Arrays as bytes, in MXNet's format.

Takes:   arrays and their names, or files.
Gives:   `nd.save`, `nd.load`, `nd.load_frombuffer`, and `NDArray.save`.

Sizes are checked before memory is taken.
Source:  MXNet 1.9's NDArray list format (magic numbers 0x112, 0xF993FAC9).
What is left out: sparse arrays, and files written before MXNet 1.0.
"""

import struct

import numpy as np

from minihybrid import nd
from minihybrid.attribute import DTYPES, FLAGS
from minihybrid.files import FileError, read_whole, write_whole
from minihybrid.nd import NDArray
from minihybrid.op import AttrError
from minihybrid.util import is_np_shape

LIST_MAGIC, ARRAY_MAGICS = 0x112, {0xF993FAC9: "V2", 0xF993FACA: "V3"}


def pack_arrays(arrays, names=()):
    """Arrays and their names as bytes in MXNet's list format."""
    parts = [struct.pack("<QQQ", LIST_MAGIC, 0, len(arrays))]
    # To MXNet no axes, or a length of 0, mean "unknown", unless the mark is np's.
    np_shapes = is_np_shape() or not all(a.shape and a.size for a in arrays)
    mark = 0xF993FACA if np_shapes else 0xF993FAC9
    for array in arrays:
        data = np.asarray(array, order="C")
        if data.dtype.name not in FLAGS:
            raise FileError(f"save: dtype {data.dtype} has no place in the file "
                            f"format; there are {', '.join(FLAGS)}")
        parts += [struct.pack("<IiI", mark, 0, data.ndim),
                  struct.pack(f"<{data.ndim}q", *data.shape),
                  struct.pack("<iii", 1, 0, FLAGS[data.dtype.name]), data.tobytes()]
    parts.append(struct.pack("<Q", len(names)))
    for name in names:
        raw = name.encode()
        parts += [struct.pack("<Q", len(raw)), raw]
    return b"".join(parts)


class Reader:
    """Reads numbers off bytes, and says where, when they end too early."""

    def __init__(self, data, source):
        self.data, self.source, self.at = memoryview(data), source, 0

    def fail(self, what):
        """Raise a FileError at the present byte."""
        raise FileError(f"{self.source}, byte {self.at}: {what}")

    def take(self, nbytes, what):
        """The next bytes."""
        if nbytes > len(self.data) - self.at:
            self.fail(f"{what} needs {nbytes} bytes, but {len(self.data) - self.at} "
                      "are left; the file is cut off or is no parameter file")
        self.at += nbytes
        return self.data[self.at - nbytes:self.at]

    def number(self, form, what):
        """The next number, in a form of the struct module."""
        return struct.unpack("<" + form, self.take(struct.calcsize(form), what))[0]


def unpack_arrays(data, source):
    """(arrays, names) of bytes in MXNet's list format; names may be empty.

    Raises:  FileError with the byte offset, before any memory is taken for a bad size.
    """
    reader = Reader(data, source)
    magic = reader.number("Q", "the file's mark")
    if magic != LIST_MAGIC:
        reader.at = 0
        reader.fail(f"the file's mark is {magic:#x}, but {LIST_MAGIC:#x} is needed; "
                    "this is no parameter file")
    reader.number("Q", "a reserved number")
    count = reader.number("Q", "the number of arrays")
    if count > len(data):
        reader.fail(f"{count} arrays are announced in a file of {len(data)} bytes")
    arrays = [_unpack_array(reader) for _ in range(count)]
    n_names = reader.number("Q", "the number of names")
    if n_names not in (0, count):
        reader.fail(f"{n_names} names for {count} arrays")
    names = []
    for _ in range(n_names):
        raw = bytes(reader.take(reader.number("Q", "a name's length"), "a name"))
        try:
            names.append(raw.decode())
        except UnicodeDecodeError:
            reader.fail(f"the name {raw[:40]!r} is not UTF-8 text")
    if len(set(names)) != len(names):
        reader.fail("two arrays have one name")
    if reader.at != len(data):
        reader.fail(f"{len(data) - reader.at} bytes are left over")
    return arrays, names


def _unpack_array(reader):
    magic = reader.number("I", "an array's mark")
    if magic not in ARRAY_MAGICS:
        reader.fail(f"the array's mark is {magic:#x}; needed: "
                    f"{' or '.join(map(hex, ARRAY_MAGICS))}")
    kind = reader.number("i", "the storage type")
    if kind != 0:
        reader.fail(f"storage type {kind} (sparse) is not supported; needed: 0, dense")
    ndim = reader.number("i", "the number of axes")
    if not 0 <= ndim <= 32:
        reader.fail(f"an array of {ndim} axes; at most 32 are allowed")
    shape = tuple(reader.number("q", "an axis") for _ in range(ndim))
    if any(n < 0 for n in shape):
        reader.fail(f"shape {shape} has a negative length")
    reader.number("i", "the device")
    reader.number("i", "the device's number")
    flag = reader.number("i", "the dtype")
    if flag not in DTYPES:
        reader.fail(f"dtype number {flag} is unknown; there are 0 to {max(DTYPES)}")
    dtype, size = np.dtype(DTYPES[flag]), 1
    for n in shape:
        size *= n
    raw = reader.take(size * dtype.itemsize, f"an array of shape {shape}")
    return np.frombuffer(raw, dtype).reshape(shape)


def save(fname, data):
    """Write an array, a list of arrays, or a dict of names and arrays to a file."""
    data = [data] if isinstance(data, NDArray) else data
    names = list(data) if isinstance(data, dict) else []
    arrays = list(data.values()) if isinstance(data, dict) else list(data)
    if not all(isinstance(a, NDArray) for a in arrays):
        raise AttrError("save: an NDArray, or a list or dict of NDArrays is needed")
    write_whole(fname, pack_arrays([a.data for a in arrays], names))


def load(fname):
    """The arrays in a file: a dict if they have names, else a list."""
    return load_frombuffer(read_whole(fname), fname)


def load_frombuffer(buf, source="the buffer"):
    """The arrays in the bytes of a file: a dict if they have names, else a list."""
    arrays, names = unpack_arrays(bytes(buf), source)
    made = [NDArray(a.copy()) if is_np_shape() and not a.shape else
            nd.array(a, dtype=a.dtype) for a in arrays]
    return dict(zip(names, made, strict=True)) if names else made


# Arrays come before files in the reading order; their methods come here.
nd.save, nd.load, nd.load_frombuffer = save, load, load_frombuffer
NDArray.save = lambda self, fname: save(fname, self)
NDArray.save.__doc__ = "Write this array to a file."
