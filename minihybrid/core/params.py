"""Chapter 22. MXNet's binary format of arrays.

Defines: `pack_arrays`, `unpack_arrays`; `read_arrays`, for a file.

All four versions of the format can be read, sparse arrays as dense ones; version 2 is
written, or 3 for shapes that only np semantics allow. Sizes are validated before memory
is allocated.
Source:  MXNet's NDArray::Load and its LegacyLoad, of versions 0.8 to 1.9.
What is left out: writing sparse arrays.
"""

import math
import struct

import numpy as np

from minihybrid.core.attribute import DTYPES, TYPE_FLAGS
from minihybrid.core.files import FileError, read_whole
from minihybrid.core.op import DEEPEST, MAX_ELEMENTS
from minihybrid.core.op import dtype as dtype_kind
from minihybrid.core.switches import is_np_shape

LIST_MAGIC = 0x112
V1, V2, V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
BOOL = 7
# Numbers of dtypes in files; MXNet 1.9 itself has none of 8 to 11, later ones do.
READABLE = {**DTYPES, 8: "int16", 9: "uint16", 10: "uint32", 11: "uint64"}
DENSE, ROW_SPARSE, CSR = 0, 1, 2
CUT_OFF = "the file is cut off or is no parameter file"
# Bytes that sparse arrays may become as dense ones, however small their file is.
SPARSE_BYTES = 1 << 26
MAX_ARRAYS = 1 << 16


def pack_arrays(arrays, names=()):
    """Encode arrays and their names in MXNet's list format."""
    parts = [struct.pack("<QQQ", LIST_MAGIC, 0, len(arrays))]
    # Without np semantics, MXNet reads no axes or a length of 0 as "unknown".
    np_shapes = is_np_shape() or not all(a.shape and a.size for a in arrays)
    for array in arrays:
        data = np.asarray(array, order="C")
        if data.dtype.name not in TYPE_FLAGS:
            raise FileError(
                f"save: dtype {data.dtype} has no place in the file "
                f"format; there are {', '.join(TYPE_FLAGS)}"
            )
        parts += [
            struct.pack("<IiI", V3 if np_shapes else V2, DENSE, data.ndim),
            struct.pack(f"<{data.ndim}q", *data.shape),
            struct.pack("<iii", 1, 0, TYPE_FLAGS[data.dtype.name]),
            data.tobytes(),
        ]
    parts.append(struct.pack("<Q", len(names)))
    for name in names:
        raw = name.encode()
        parts += [struct.pack("<Q", len(raw)), raw]
    return b"".join(parts)


class Reader:
    """Decodes fields from bytes; reports the offset if they end early."""

    def __init__(self, data, source):
        self.data, self.source, self.at = memoryview(data), source, 0
        self.sparse_left = max(SPARSE_BYTES, 4 * len(data))

    @property
    def left(self):
        """The number of bytes that remain."""
        return len(self.data) - self.at

    def fail(self, what):
        """Raise a FileError at the current offset."""
        raise FileError(f"{self.source}, byte {self.at}: {what}")

    def take(self, nbytes, what):
        """Read the next bytes."""
        if nbytes > self.left:
            self.fail(f"{what} needs {nbytes} bytes, but {self.left} are left; {CUT_OFF}")
        self.at += nbytes
        return self.data[self.at - nbytes : self.at]

    def number(self, form, what):
        """Read a number in a format of the struct module."""
        return struct.unpack("<" + form, self.take(struct.calcsize(form), what))[0]

    def count(self, what, nbytes):
        """Read a count of items that take at least `nbytes` bytes each."""
        count = self.number("Q", f"the number of {what}")
        if count > self.left // nbytes:
            self.fail(
                f"{count} {what} need {count * nbytes} bytes or more, but "
                f"{self.left} are left; {CUT_OFF}"
            )
        return count

    def shape(self, form="q", ndim=None):
        """Read a shape: the number of axes, unless it is known, and the lengths."""
        ndim = self.number("i", "the number of axes") if ndim is None else ndim
        if not 0 <= ndim <= DEEPEST:
            self.fail(f"an array of {ndim} axes; at most {DEEPEST} are allowed")
        shape = tuple(self.number(form, "an axis") for _ in range(ndim))
        if any(n < 0 for n in shape):
            self.fail(f"shape {shape} has a negative length")
        if math.prod(n for n in shape if n) > MAX_ELEMENTS // 8:  # NumPy counts bytes so
            self.fail(f"shape {shape} is larger than any memory")
        return shape

    def dtype(self):
        """Read the code of a dtype."""
        flag = self.number("i", "the dtype")
        if flag not in READABLE:
            self.fail(f"dtype number {flag} is unknown; there are 0 to {max(READABLE)}")
        return flag

    def values(self, shape, flag):
        """Read the elements of an array."""
        dtype = dtype_kind(READABLE[flag])
        raw = self.take(math.prod(shape) * dtype.itemsize, f"an array of shape {shape}")
        array = np.frombuffer(raw, dtype).reshape(shape)
        return array.view(np.uint8) != 0 if flag == BOOL else array


def unpack_arrays(data, source):
    """Decode MXNet's list format: return (arrays, names); names may be empty.

    Raises:  FileError with the byte offset, before allocating memory for an invalid size.
    """
    reader = Reader(data, source)
    magic = reader.number("Q", "the file's mark")
    if magic != LIST_MAGIC:
        reader.at = 0
        reader.fail(
            f"the file's mark is {magic:#x}, but {LIST_MAGIC:#x} is needed; "
            "this is no parameter file"
        )
    reader.number("Q", "a reserved number")
    count = reader.count("arrays", 4)
    if count > MAX_ARRAYS:
        reader.fail(f"{count} arrays in one file; at most {MAX_ARRAYS} are allowed")
    arrays = [_unpack_array(reader) for _ in range(count)]
    n_names = reader.count("names", 8)
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
    if reader.left:
        reader.fail(f"{reader.left} bytes are left over")
    return arrays, names


def _unpack_array(reader):
    """Read one array; its layout depends on the version, which comes first."""
    magic = reader.number("I", "an array's mark")
    kind = DENSE
    if magic in (V2, V3):
        kind = reader.number("i", "the storage type")
        if kind not in (DENSE, ROW_SPARSE, CSR):
            reader.fail(
                f"storage type {kind} is unknown; needed: 0 (dense), 1 (row_sparse) or 2 (csr)"
            )
        stored = reader.shape() if kind != DENSE else None
        shape = reader.shape()
    elif magic == V1:
        shape = reader.shape()
    elif magic <= DEEPEST:  # version 0 has no magic: this is the number of axes
        shape = reader.shape("I", magic)
    else:
        reader.fail(
            f"the array's mark is {magic:#x}; needed: "
            f"{', '.join(map(hex, (V1, V2, V3)))}, or a number of axes"
        )
    if not shape and (magic != V3 or kind != DENSE):
        reader.fail(
            "an array without a shape has no values; it was saved before it was initialized"
        )
    reader.number("i", "the device")  # ignored: arrays are read into CPU memory
    reader.number("i", "the device's number")
    flag = reader.dtype()
    if kind == DENSE:
        return reader.values(shape, flag)
    from minihybrid.formats.sparse import unpack_sparse

    return unpack_sparse(reader, kind, stored, shape, flag)


def read_arrays(fname):
    """Read a file: return (arrays, names); names may be empty."""
    return unpack_arrays(read_whole(fname), fname)
