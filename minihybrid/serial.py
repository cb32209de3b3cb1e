"""Chapter 13. Files: graphs as JSON, arrays as bytes, in MXNet's formats.

Takes:   symbols and arrays, or files.
Gives:   `tojson`, `fromjson`, `nd.save`, `nd.load`, `sym.load`; the methods
         `Symbol.save` and `Symbol.tojson`.

A file is data: names are looked up among the operators, attributes are parsed as
literals, sizes are checked before memory is taken, and nothing in a file is run.
Source:  MXNet 1.9's nnvm JSON and NDArray list format (magic numbers 0x112,
         0xF993FAC9).
What is left out: sparse arrays, and files written before MXNet 1.0.
"""

import json
import os
import struct
import tempfile

import numpy as np

from minihybrid import nd, sym
from minihybrid.attribute import DTYPES, FLAGS
from minihybrid.graph import Graph, shown_attrs
from minihybrid.nd import NDArray
from minihybrid.op import OPS, AttrError, HybridError, Node, Spec
from minihybrid.sym import Symbol, unknown_lengths
from minihybrid.util import is_np_shape

VERSION = 10901  # the MXNet version whose form is written


class FileError(HybridError, ValueError):
    """A file that is not what it should be: where, what was found, what is needed."""


# -- graphs ----------------------------------------------------------------------------
def tojson(symbol):
    """A symbol's graph as JSON text in MXNet's form.

    >>> json.loads(tojson(sym.relu(sym.var("x"), name="y")))["arg_nodes"]
    [0]
    """
    graph = Graph.of(symbol)
    names = graph.names()
    number = {node: i for i, node in enumerate(graph.nodes)}
    nodes, rows = [], [0]
    for node in graph.nodes:
        if node.op is None and node.values is not None:
            raise FileError(f"tojson: '{node.name}' is a constant array, which has no "
                            "place in a graph file; make it a parameter")
        entry = {"op": node.op.name if node.op else "null", "name": names[node]}
        attrs = file_attrs(node)
        if attrs:
            entry["attrs"] = attrs
        entry["inputs"] = [[number[n], i, 0] for n, i in node.inputs]
        nodes.append(entry)
        rows.append(rows[-1] + node.n_outputs)
    return json.dumps({
        "nodes": nodes,
        "arg_nodes": [i for i, node in enumerate(graph.nodes) if node.op is None],
        "node_row_ptr": rows,
        "heads": [[number[n], i, 0] for n, i in graph.heads],
        "attrs": {"mxnet_version": ["int", VERSION]},
    }, indent=2)


def file_attrs(node):
    """A node's attributes as a file has them: text, only what differs from defaults."""
    if node.op is None:
        return dict(node.info or {})
    attrs = {k: v.name if isinstance(v, np.dtype) else str(v)
             for k, v in shown_attrs(node).items() if k != "stream"}
    if node.op.variadic:
        attrs["num_args"] = str(len(node.inputs))
    return attrs | (node.info or {})


def fromjson(text, source="the JSON text"):
    """The symbol that JSON text describes.

    Raises:  FileError naming the node and what is wrong with it.
    """
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, RecursionError, UnicodeDecodeError) as error:
        raise FileError(f"{source} is not JSON: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("nodes"), list):
        raise FileError(f"{source} has no list 'nodes'; needed: a symbol file")
    made = []
    for i, entry in enumerate(data["nodes"]):
        where = f"{source}, node {i}"
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise FileError(f"{where}: an object with a name is needed")
        where += f" ('{entry['name'][:60]}')"
        made.append(_node(entry, _refs(entry.get("inputs", []), made, where), where))
    heads = data.get("heads", [[len(made) - 1, 0, 0]])
    refs = _refs(heads, made, f"{source}, heads")
    if not refs:
        raise FileError(f"{source} has no heads: nothing is asked for")
    return Symbol(refs)


def _refs(entries, made, where):
    """[[node, output, version], ...] as references to nodes that came before."""
    if not isinstance(entries, list):
        raise FileError(f"{where}: a list of inputs is needed, found {entries!r:.60}")
    refs = []
    for entry in entries:
        good = isinstance(entry, list) and len(entry) in (2, 3) and all(
            type(v) is int for v in entry)
        if not good or not 0 <= entry[0] < len(made):
            raise FileError(f"{where}: input {entry!r:.60} is not a node before this "
                            "one")
        node, i = made[entry[0]], entry[1]
        if not 0 <= i < node.n_outputs:
            raise FileError(f"{where}: input {entry!r:.60} asks for output {i}, but "
                            f"there are {node.n_outputs}")
        refs.append((node, i))
    return refs


def _node(entry, inputs, where):
    attrs = entry.get("attrs", entry.get("attr", entry.get("param", {})))
    if not isinstance(attrs, dict) or not all(
            isinstance(v, str) for kv in attrs.items() for v in kv):
        raise FileError(f"{where}: attributes must be text, found {attrs!r:.80}")
    name, op = entry["name"], entry.get("op")
    if op == "null":
        if inputs:
            raise FileError(f"{where}: a variable has no inputs, found {len(inputs)}")
        return Node(None, name=name, info=attrs or None, specs=(_spec(attrs, where),))
    if op not in OPS:
        raise FileError(f"{where}: the operator {op!r:.60} is unknown here")
    op = OPS[op]
    given = {k: v for k, v in attrs.items() if k in op.attrs}
    info = {k: v for k, v in attrs.items() if k not in op.attrs and k != "num_args"}
    try:
        full = op.normalize(given)
    except AttrError as error:
        raise FileError(f"{where}: {error}") from None
    wanted = None if op.variadic else len(op.input_names(full))
    if wanted is not None and len(inputs) != wanted:
        raise FileError(f"{where}: {op.name} needs {wanted} inputs, found "
                        f"{len(inputs)}")
    return Node(op, tuple(inputs), full, name, info=info or None)


def _spec(info, where):
    """What a variable's attributes say of its shape and dtype."""
    dtype, shape = info.get("__dtype__"), info.get("__shape__")
    try:
        if dtype is not None and dtype.lstrip("-").isdigit():
            dtype = None if int(dtype) < 0 else DTYPES[int(dtype)]
        shape = None if shape is None else OPS["Reshape"].attrs["shape"][0](shape)
        return Spec(unknown_lengths(shape) if shape else None,
                    None if dtype is None else np.dtype(dtype))
    except (ValueError, TypeError, KeyError, SyntaxError):
        raise FileError(f"{where}: the shape or dtype is not readable: "
                        f"{info!r:.80}") from None


def save_symbol(symbol, fname, remove_amp_cast=True):
    """Write a symbol's graph to a JSON file."""
    write_whole(fname, tojson(symbol).encode())


def load_symbol(fname):
    """The symbol in a JSON file."""
    return fromjson(read_whole(fname), fname)


# -- arrays ----------------------------------------------------------------------------
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


# -- whole files -----------------------------------------------------------------------
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


# Arrays and symbols come before files in the reading order; their methods come here.
nd.save, nd.load, nd.load_frombuffer = save, load, load_frombuffer
sym.load, sym.fromjson, sym.load_json = load_symbol, fromjson, fromjson
Symbol.tojson, Symbol.save = tojson, save_symbol
Symbol.__reduce__ = lambda self: (fromjson, (tojson(self),))
NDArray.save = lambda self, fname: save(fname, self)
NDArray.save.__doc__ = "Write this array to a file."

__all__ = ["FileError", "fromjson", "load", "load_frombuffer", "load_symbol", "save",
           "save_symbol", "tojson"]
