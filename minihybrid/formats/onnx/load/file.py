"""The ONNX parser: a validated file as plain Python objects.

Defines: `read_model`, which returns a `Model` of names, arrays and `OnnxNode`s in order.

A file is untrusted data. Each length is checked against the available bytes before memory
is allocated, each name against the earlier ones; nothing is executed.
Source:  the ONNX specification, docs/IR.md and onnx.proto.
Not supported: model-local functions, sparse and quantized tensors.
"""

import math
import os
import stat
from dataclasses import dataclass
from types import NoneType

import numpy as np

from minihybrid.core.files import FileError, read_whole
from minihybrid.core.op import dtype as dtype_kind

# Enum value of an element type in files -> dtype, for the supported ones.
ELEMENTS = {
    1: "float32",
    2: "uint8",
    3: "int8",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    16: "bfloat16",
}
OPSETS = range(7, 27)


@dataclass
class OnnxNode:
    """A node: its operator, the names of its inputs and outputs, and its attributes.

    attrs:   name -> value; a `Model` for a subgraph, `None` for an unsupported type.
    kinds:   name -> the type of an attribute, one of the enum AttributeProto.AttributeType.
    """

    where: str
    op: str
    domain: str
    name: str
    inputs: list
    outputs: list
    attrs: dict
    kinds: dict

    def fail(self, what):
        """Raise a FileError that names this node."""
        raise FileError(f"{self.where}: {what}")

    @property
    def graphs(self):
        """The subgraphs in its attributes."""
        return [value for value in self.attrs.values() if isinstance(value, Model)]

    @property
    def reads(self):
        """The names that it or its subgraphs read."""
        inside = [name for graph in self.graphs for name in graph.reads]
        return [name for name in self.inputs if name] + inside


@dataclass
class Model:
    """A graph; `inputs` and `outputs` are lists of (name, dtype, shape).

    A subgraph is a `Model` whose opset is `None`. In a shape, an `int` is a static length, a
    `str` the name of a dynamic one, `None` a dynamic one without a name. `arrays` holds the
    initializers.
    """

    source: str
    opset: int
    inputs: list
    outputs: list
    arrays: dict
    nodes: list

    @property
    def reads(self):
        """The names that a subgraph reads, including its own."""
        return [name for node in self.nodes for name in node.reads] + [n for n, *_ in self.outputs]


def import_onnx():
    """Return the package `onnx`, which defines the protobuf messages."""
    try:
        import onnx
    except ImportError:
        raise ImportError(
            "ONNX files need the library 'onnx', which is not installed; "
            'pip install "minihybrid[onnx]"'
        ) from None
    return onnx


def read_file(fname):
    """Read the model in a `.onnx` file.

    Raises:  FileError naming the file and the invalid node, value or tensor.
    """
    fname = os.fspath(fname)
    return read_model(read_whole(fname), str(fname), os.path.dirname(fname))


def read_model(data, source="the bytes", folder=None):
    """Parse the model in the bytes of a file; external weights are read from `folder`."""
    onnx = import_onnx()
    from google.protobuf.message import DecodeError

    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
        return _model(proto, source, ExternalData(folder))
    except DecodeError:
        raise FileError(
            f"{source}: its {len(data)} bytes are no ONNX model; the file "
            "is cut off, damaged or of another kind"
        ) from None


def _text(value, where):
    """Return a string of a message; protobuf returns invalid UTF-8 as bytes."""
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        raise FileError(f"{where}: {value[:40]!r} is not UTF-8 text") from None


def _model(proto, source, external):
    opsets = {_text(o.domain, source) or "ai.onnx": o.version for o in proto.opset_import}
    opset = opsets.get("ai.onnx")
    if opset is None:
        raise FileError(
            f"{source}: no version of the operators (opset) of 'ai.onnx' "
            "is told; this is no ONNX model"
        )
    if opset not in OPSETS:
        raise FileError(
            f"{source}: opset {opset} is not supported; needed: {OPSETS[0]} to {OPSETS[-1]}; "
            "export the model again with one of them"
        )
    if proto.functions:
        raise FileError(
            f"{source}: it defines functions of its own, such as {proto.functions[0].name!r:.40}, "
            "which are not supported; write them out with onnx.inliner"
        )
    return _checked(_graph(proto.graph, source, external, opset))


def _graph(graph, source, external, opset=None):
    if graph.sparse_initializer:
        raise FileError(f"{source}: sparse initializers are not supported; store them dense")
    arrays = {}
    for tensor in graph.initializer:
        name = _text(tensor.name, source)
        if not name or name in arrays:
            raise FileError(
                f"{source}: the initializer {name!r:.60} has no name, or that of another"
            )
        arrays[name] = _array(tensor, f"{source}, initializer {name!r:.60}", external)
    inputs = [_declared(v, source) for v in graph.input if v.name not in arrays]
    nodes = [_node(n, i, source, external) for i, n in enumerate(graph.node)]
    outputs = [_declared(v, source) for v in graph.output]
    return Model(source, opset, inputs, outputs, arrays, nodes)


def _declared(value, source):
    """Return (name, dtype or None, shape or None) of an input or output."""
    name = _text(value.name, source)
    where = f"{source}, value {name!r:.60}"
    if not name:
        raise FileError(f"{where}: an input or output has no name")
    kind = value.type.WhichOneof("value")
    if kind not in (None, "tensor_type"):
        raise FileError(f"{where}: it is a {kind}, but a tensor is needed")
    tensor = value.type.tensor_type
    if tensor.elem_type not in (0, *ELEMENTS):
        raise FileError(
            f"{where}: elements of {_type_name(tensor.elem_type)} are not "
            f"supported; there are {', '.join(ELEMENTS.values())}"
        )
    dtype = ELEMENTS.get(tensor.elem_type)
    if not tensor.HasField("shape"):
        return name, dtype, None
    shape = tuple(
        d.dim_value if d.HasField("dim_value") else _text(d.dim_param, where) or None
        for d in tensor.shape.dim
    )
    if len(shape) > 32 or any(n < 0 or n >= 2**31 for n in shape if isinstance(n, int)):
        raise FileError(
            f"{where}: the shape {shape!s:.80} does not fit; needed: at "
            "most 32 lengths from 0 to 2147483647"
        )
    return name, dtype, shape


def _checked(model, outer=frozenset()):
    """Return the model, if every value is defined once (SSA) and before its uses.

    outer:   the names visible to a subgraph.
    """
    defined = {name for name, *_ in model.inputs} | model.arrays.keys() | outer
    if len(defined) != len(model.inputs) + len(model.arrays) + len(outer):
        raise FileError(f"{model.source}: two inputs have one name")
    for node in model.nodes:
        for name in node.inputs:
            if name and name not in defined:
                node.fail(f"it reads {name!r:.60}, which nothing before it makes")
        for graph in node.graphs:
            _checked(graph, frozenset(defined))
        for name in node.outputs:
            if name in defined:
                node.fail(f"it makes {name!r:.60}, which is there already")
            if name:
                defined.add(name)
    for name, *_ in model.outputs:
        if name not in defined:
            raise FileError(f"{model.source}: the output {name!r:.60} is made by no node")
    if not model.outputs:
        raise FileError(f"{model.source}: the graph has no outputs: nothing is asked for")
    return model


# -- nodes -----------------------------------------------------------------------------
def _node(proto, number, source, external):
    where = f"{source}, node {number}"
    op, domain, name = (_text(t, where) for t in (proto.op_type, proto.domain, proto.name))
    inputs, outputs = ([_text(t, where) for t in names] for names in (proto.input, proto.output))
    if not op.isidentifier():
        raise FileError(f"{where}: {op!r:.40} is no name of an operator")
    where += f" {name or ', '.join(outputs)!r:.60} ({op:.40})"
    attrs, kinds = {}, {}
    for attr in proto.attribute:
        key = _text(attr.name, where)
        if key in attrs:
            raise FileError(f"{where}: the attribute {key!r:.40} is given twice")
        attrs[key] = attribute(attr, f"{where}, {key!r:.40}", external)
        kinds[key] = attr.type
    return OnnxNode(where, op, domain, name, inputs, outputs, attrs, kinds)


def attribute(attr, where, external):
    """Return the value of an attribute; `None` if its type isn't supported."""
    kinds = type(attr)
    if attr.type == kinds.TENSOR:
        return _array(attr.t, where, external)
    if attr.type == kinds.GRAPH:
        return _graph(attr.g, where, external)
    if attr.type == kinds.STRING:
        return _text(attr.s, where)
    field = {kinds.FLOAT: "f", kinds.INT: "i", kinds.INTS: "ints", kinds.FLOATS: "floats"}
    value = getattr(attr, field[attr.type]) if attr.type in field else None
    return value if isinstance(value, (int, float, NoneType)) else tuple(value)


# -- tensors ---------------------------------------------------------------------------
def _type_name(number):
    names = {v: k for k, v in import_onnx().TensorProto.DataType.items()}
    return f"type {names.get(number, number)}"


def _array(tensor, where, external):
    """Return a tensor as a NumPy array; its size is checked before it is read."""
    dtype = ELEMENTS.get(tensor.data_type)
    if dtype is None:
        raise FileError(
            f"{where}: elements of {_type_name(tensor.data_type)} are not "
            f"supported; there are {', '.join(ELEMENTS.values())}"
        )
    shape, dtype = tuple(tensor.dims), dtype_kind(dtype)
    if len(shape) > 32 or any(n < 0 for n in shape) or math.prod(n for n in shape if n) > 2**59:
        raise FileError(
            f"{where}: the shape {shape!s:.80} does not fit; needed: at "
            "most 32 lengths, none negative, of fewer numbers"
        )
    if tensor.HasField("segment"):
        raise FileError(f"{where}: tensors in segments are not supported")
    count = math.prod(shape)
    if tensor.data_location == tensor.EXTERNAL:
        entries = {
            _text(entry.key, where): _text(entry.value, where) for entry in tensor.external_data
        }
        raw = external.read(entries, count * dtype.itemsize, where)
    elif tensor.HasField("raw_data"):
        raw = tensor.raw_data
    else:
        return _listed(tensor, shape, dtype, where)
    if len(raw) != count * dtype.itemsize:
        raise FileError(
            f"{where}: {len(raw)} bytes, but shape {shape} of {dtype} "
            f"needs {count * dtype.itemsize}"
        )
    if dtype.kind == "b":  # any nonzero byte is true
        return (np.frombuffer(raw, "uint8") != 0).reshape(shape)
    return np.frombuffer(raw, dtype.newbyteorder("<")).astype(dtype).reshape(shape)


def _listed(tensor, shape, dtype, where):
    """Return the array of a tensor whose elements are in a typed list."""
    field = import_onnx().helper.tensor_dtype_to_field(tensor.data_type)
    numbers = getattr(tensor, field)
    if len(numbers) != math.prod(shape):
        raise FileError(
            f"{where}: {len(numbers)} numbers in {field}, but shape "
            f"{shape!s:.80} needs {math.prod(shape)}"
        )
    if dtype.name in ("float16", "bfloat16"):  # bit patterns stored as integers
        return np.array(numbers, "int32").astype("uint16").view(dtype).reshape(shape)
    wide = {"i": "int64", "u": "int64", "b": "int64"}.get(dtype.kind, dtype)
    return np.array(numbers, wide).astype(dtype).reshape(shape)


class ExternalData:
    """ONNX's "external data": files next to a model with its tensors' elements.

    Only plain names of regular files are followed, never paths or links: a model can't
    read outside its folder, nor past the end of a file.
    """

    def __init__(self, folder):
        self.folder, self.left = folder, {}

    def read(self, entries, nbytes, where):
        """Return the bytes of a tensor; `entries` has a file name, optionally offset and length."""
        name = entries.get("location", "")
        if (
            self.folder is None
            or not name
            or name in (".", "..")
            or any(c in name for c in "/\\:\0")
        ):
            raise FileError(
                f"{where}: its numbers are in the file {name!r:.60}; "
                "needed: a plain name of a file beside the model"
            )
        try:
            offset, length = (
                int(entries.get(key, default))
                for key, default in (("offset", 0), ("length", nbytes))
            )
        except ValueError:
            raise FileError(
                f"{where}: offset {entries.get('offset')!r:.40} or length "
                f"{entries.get('length')!r:.40} is no number"
            ) from None
        path = os.path.join(self.folder, name)
        size = self._size(path, name, where)
        if offset < 0 or length != nbytes or offset + length > size:
            raise FileError(
                f"{where}: {length} bytes from byte {offset} of {name!r:.60}, which has {size}, "
                f"but {nbytes} bytes are needed"
            )
        self.left[name] = self.left.get(name, size) - length
        if self.left[name] < 0:
            raise FileError(
                f"{where}: with its {length} bytes the tensors in "
                f"{name!r:.60} are longer than the file of {size}"
            )
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read(length)

    @staticmethod
    def _size(path, name, where):
        try:
            info = os.lstat(path)
        except OSError as error:
            raise FileError(
                f"{where}: its numbers are in {name!r:.60}, which cannot be read: {error.strerror}"
            ) from None
        if not stat.S_ISREG(info.st_mode):
            raise FileError(
                f"{where}: {name!r:.60} is a link, a folder or a device; "
                "needed: a regular file beside the model"
            )
        return info.st_size
