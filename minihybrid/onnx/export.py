"""Chapter 13. From a graph to an ONNX file.

Takes:   a symbol and its parameters, and the shapes of its inputs.
Gives:   `export_model` (MXNet's mx.onnx.export_model) and `write_onnx`.

Each node is looked up in a table of rules. One that has no rule, but a scalar
expression, is made of that; any other is replaced by the simpler operators that its
record's `expand` is made of, and these are looked up again. So most operators need no
rule of their own.
Source:  the ONNX operator schemas, version 18.
What is left out: models over 2 GB, which protobuf cannot hold.
"""

import numpy as np

from minihybrid import params as param_files
from minihybrid.files import write_whole
from minihybrid.name import Prefix
from minihybrid.nd import NDArray
from minihybrid.onnx.export_draft import Draft, ExportError, Value, agreed
from minihybrid.onnx.export_layers import LAYERS
from minihybrid.onnx.export_layout import LAYOUT
from minihybrid.onnx.export_scalar import elementwise
from minihybrid.op import UNKNOWN, AttrError, HybridError, ShapeError, Spec
from minihybrid.serial import load_symbol
from minihybrid.sym import Symbol, replay, trace
from minihybrid.tracing import Trace, TraceError, tracing

OPSET, IR_VERSION = 18, 8  # of ONNX 1.13: what engines since 2023 read
RULES = LAYOUT | LAYERS
LIMIT = 2**31 - 1  # bytes of a protobuf message


# -- node by node ----------------------------------------------------------------------
class Exporter:
    """Writes the nodes of one traced graph into a draft.

    values:  (node, output index) -> Value, or an ndarray for a constant.
    """

    def __init__(self, graph, taken):
        self.draft, self.values = Draft(taken), {}
        for node in graph.nodes:
            self.add(node)

    def add(self, node):
        """Draft one node, and those that it is made of."""
        if node.op is None:
            self.values[node, 0] = Value(node.name, node.specs[0].dtype) \
                if node.values is None else node.values[0]
            return
        outer = self.draft.name, self.draft.source
        self.draft.name = node.name
        if not self.inside:
            self.draft.source = f"{node.op.name} '{node.name}'"
        outs = self.outputs(node)
        outs = outs if isinstance(outs, (tuple, list)) and not isinstance(
            outs, Value) else [outs]
        self.values.update(((node, i), value) for i, value in enumerate(outs))
        self.draft.name, self.draft.source = outer

    inside = 0  # how many nodes deep we are in a composite one

    def outputs(self, node):
        """The values of a node, by the first way that there is."""
        op, inputs = node.op, [self.values[ref] for ref in node.inputs]
        if op.name in RULES:
            out = RULES[op.name](self.draft, node, *inputs)
            if out is not None:
                return out
        if op.random:
            self.draft.refuse("it draws random numbers, which would not be ours; "
                              "leave it out of the net that is exported")
        if not op.inputs and op.eager:
            return op.eager(**node.attrs)
        if op.expr:
            return elementwise(self.draft, node, inputs)
        rule = op.expand or op.lower
        if rule is None:
            self.draft.refuse("ONNX has no operator for it; compute this part outside "
                              "of the net")
        return self.expanded(node, rule)

    def expanded(self, node, rule):
        """The values of the simpler operators that a node is made of."""
        specs = [source.specs[i] for source, i in node.inputs]
        mode = {"training": False} if node.op.modal else {}
        with tracing(Trace()) as made, Prefix(f"{node.name}_"):
            made.known.update(source for source, _ in node.inputs)
            out = rule(specs, *(Symbol([ref]) for ref in node.inputs), **node.attrs,
                       **mode)
        outs = out if isinstance(out, tuple) else (out,)
        self.inside += 1
        for inner in made.nodes:
            self.add(inner)
        self.inside -= 1
        return [self.values[ref] for s in outs for ref in s.refs][:node.n_outputs]


# -- one graph, several batches --------------------------------------------------------
def draft_of(symbol, specs, names):
    """(draft, the specs of its outputs) for inputs and parameters of some specs.

    names:   of the outputs.
    """
    nodes = {n.name: n for part in symbol._variables() for n in part}
    graph, _ = trace(lambda *values: replay(symbol.refs, dict(
        zip(nodes.values(), values, strict=True))),
        {name: specs.get(name, UNKNOWN) for name in nodes})
    exporter = Exporter(graph, {*nodes, *names})
    heads = [exporter.values[ref] for ref in graph.heads]
    named_heads(exporter.draft, heads, names)
    return exporter.draft, [n.specs[i] for n, i in graph.heads]


def named_heads(draft, heads, names):
    """Give each output its name; an input or a constant is copied to get one."""
    made = {name for step in draft.steps for name in step.outputs}
    new = {}
    for value, name in zip(heads, names, strict=True):
        if getattr(value, "name", None) in made - new.keys():
            new[value.name] = name
        else:
            draft.source = f"the output '{name}'"
            draft.add("Identity", value)
            draft.steps[-1] = draft.steps[-1]._replace(outputs=(name,))

    def renamed(names):
        return tuple(new.get(n, n) if isinstance(n, str) else n for n in names)
    draft.steps = [step._replace(inputs=renamed(step.inputs),
                                 outputs=renamed(step.outputs)) for step in draft.steps]


def output_names(symbol):
    """The names of the outputs; one that an input or another output has gets more."""
    inputs, draft = symbol.list_inputs(), Draft(symbol.list_inputs())
    return [draft.unique(f"{name}_output" if name in inputs else name)
            for name in symbol.list_outputs()]


def drafted(symbol, specs, batch):
    """(steps, the output specs, the output specs for another batch).

    batch:   names of inputs whose first axis may have any length.
    """
    names = output_names(symbol)
    if not batch:
        draft, outs = draft_of(symbol, specs, names)
        return draft.steps, outs, outs
    length = specs[batch[0]].shape[0]
    sizes = list(dict.fromkeys((length, length + 1, 2 * length + 3, 1)))
    drafts, outs = [], []
    for size in sizes:
        other = {name: Spec((size, *spec.shape[1:]), spec.dtype)
                 if name in batch else spec for name, spec in specs.items()}
        try:
            draft, found = draft_of(symbol, other, names)
        except (ShapeError, TraceError) as error:
            if size == length:
                raise
            raise ExportError(
                f"export to ONNX: the net does for a batch of {length}, but not of "
                f"{size} ({error}); fix the length by dynamic=False") from None
        drafts.append(draft)
        outs.append(found)
    return agreed(drafts, sizes, batch[0]), outs[0], outs[1]


# -- the file --------------------------------------------------------------------------
def library():
    """The modules of the library `onnx` that writing needs."""
    try:
        import onnx
        from onnx import helper, numpy_helper
    except ImportError:
        raise HybridError("export to ONNX needs the library onnx, which is not "
                          'installed; pip install "minihybrid[onnx]"') from None
    return onnx, helper, numpy_helper


class Writer:
    """Turns steps into ONNX's messages; equal constants become one initializer."""

    def __init__(self, taken):
        self.onnx, self.helper, self.numpy_helper = library()
        self.initializers, self.constants, self.names = [], {}, Draft(taken)

    def kind(self, dtype):
        """ONNX's number of a dtype."""
        return self.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    def initializer(self, name, array):
        """Enter an array under a name; returns the name."""
        self.initializers.append(self.numpy_helper.from_array(
            np.asarray(array, order="C"), name))
        return name

    def input(self, value):
        """The name of a step's input."""
        if isinstance(value, str):
            return value
        key = value.dtype.str, value.shape, value.tobytes()
        if key not in self.constants:
            self.constants[key] = self.initializer(self.names.unique("constant"), value)
        return self.constants[key]

    def attr(self, value):
        """An attribute in ONNX's form."""
        if isinstance(value, np.dtype):
            return self.kind(value)
        if isinstance(value, np.ndarray):
            return self.numpy_helper.from_array(value)
        return value

    def node(self, step):
        """The message of one step."""
        return self.helper.make_node(
            step.kind, [self.input(v) for v in step.inputs], list(step.outputs),
            name=step.outputs[0], **{k: self.attr(v) for k, v in step.attrs.items()})

    def array(self, name, dtype, lengths):
        """The message that describes an input or an output."""
        return self.helper.make_tensor_value_info(name, self.kind(dtype), lengths)


def lengths_of(spec, other, batch):
    """The lengths of axes in a file: a number, "batch", or `None` if it follows.

    other:   the spec for another batch; batch: the two lengths of the batch.
    """
    return [m if m == n else "batch" if (m, n) == batch else None
            for m, n in zip(spec.shape, other.shape, strict=True)]


def write_onnx(symbol, params, specs, path, dynamic=True):
    """Write a symbol and its parameters to an ONNX file, in prediction mode.

    params:  name -> NDArray or ndarray, states (running means) as well; they become
             initializers under their names.
    specs:   name -> Spec of each other input, in the order wanted.
    dynamic: whether the first axis of inputs may have any length: of those in which it
             is as long as in the first; or the names of these inputs.
    Returns: the path.
    Raises:  ExportError naming the operator and the node that ONNX cannot say.

    Names of inputs and outputs are the symbol's; operator set 18, which every engine
    of the last years reads.

    >>> import os, tempfile
    >>> from minihybrid import sym
    >>> folder = tempfile.TemporaryDirectory()
    >>> spec = Spec((2, 3), np.dtype("float32"))
    >>> os.path.basename(write_onnx(sym.relu(sym.var("x")), {}, {"x": spec},
    ...                             os.path.join(folder.name, "relu.onnx")))
    'relu.onnx'
    >>> folder.cleanup()
    """
    arrays = {name: array.data if isinstance(array, NDArray) else np.asarray(array)
              for name, array in params.items() if name in symbol.list_inputs()}
    if sum(a.nbytes for a in arrays.values()) > LIMIT:
        raise ExportError("export to ONNX: the parameters are more than 2 GB, which one "
                          "file of protobuf cannot hold; use export() to MXNet's files")
    batch = batch_inputs(specs) if dynamic is True else list(dynamic or ())
    known = specs | {n: Spec(a.shape, a.dtype) for n, a in arrays.items()}
    steps, outs, others = drafted(symbol, known, batch)
    write_whole(path, message(symbol, steps, arrays, specs, (outs, others), batch))
    return path


def batch_inputs(specs):
    """The names of inputs whose first axis is as long as that of the first input."""
    first = next((s.shape[:1] for s in specs.values()), ())
    return [name for name, s in specs.items() if first and s.shape[:1] == first]


def message(symbol, steps, arrays, specs, outs, batch):
    """The bytes of the model."""
    names = output_names(symbol)
    taken = {*arrays, *specs, *(n for step in steps for n in step.outputs)}
    writer, helper = Writer(taken), library()[1]
    nodes = [writer.node(step) for step in steps]
    read = {n for step in steps for n in step.inputs if isinstance(n, str)}
    for name, array in arrays.items():
        if name in read:
            writer.initializer(name, array)
    length = specs[batch[0]].shape[0] if batch else None
    inputs = [writer.array(name, spec.dtype, [
        "batch" if name in batch and i == 0 else n for i, n in enumerate(spec.shape)])
        for name, spec in specs.items()]
    outputs = [writer.array(name, spec.dtype, lengths_of(
        spec, other, (length, length and length + 1)))
        for name, spec, other in zip(names, *outs, strict=True)]
    graph = helper.make_graph(nodes, "minihybrid", inputs, outputs, writer.initializers)
    return helper.make_model(
        graph, producer_name="minihybrid", ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)]).SerializeToString(
            deterministic=True)


# -- MXNet's function ------------------------------------------------------------------
def export_model(sym, params, in_shapes, in_types=np.float32,
                 onnx_file_path="model.onnx", dynamic=False,
                 dynamic_input_shapes=None):
    """Write a symbol and its parameters to an ONNX file; returns the path.

    sym:     a Symbol, or the name of a symbol file.
    params:  name -> NDArray, with or without arg: and aux:, or the name of a file.
    in_shapes, in_types: one of each input that is no parameter, in the order of
             `list_inputs()`; labels of output layers may be left out. One dtype does
             for all.
    dynamic: let the first axis have any length: of all inputs, or, with
             `dynamic_input_shapes`, of those whose first length there is a name or
             `None`.
    Raises:  ExportError naming the operator and the node that ONNX cannot say.

    Unlike MXNet there is no `verbose`, and shapes are always inferred.

    >>> import os, tempfile
    >>> from minihybrid import sym
    >>> folder = tempfile.TemporaryDirectory()
    >>> os.path.basename(export_model(sym.exp(sym.var("x")), {}, [(2, 3)],
    ...                  onnx_file_path=os.path.join(folder.name, "exp.onnx")))
    'exp.onnx'
    >>> folder.cleanup()
    """
    symbol = sym if isinstance(sym, Symbol) else load_symbol(sym)
    arrays = params if isinstance(params, dict) else param_files.load(params)
    arrays = {name.removeprefix("arg:").removeprefix("aux:"): array
              for name, array in arrays.items()}
    names = [n for n in symbol.list_inputs() if n not in arrays]
    if len(names) > len(in_shapes):
        names = [n for n in names if not n.endswith("label")]
    if len(names) != len(in_shapes):
        raise AttrError(f"export_model: {len(in_shapes)} shapes are given, but the "
                        f"inputs that are no parameters are {', '.join(names)}")
    types = in_types if isinstance(in_types, (list, tuple)) else [in_types] * len(names)
    specs = {name: Spec(tuple(shape), np.dtype(kind)) for name, shape, kind
             in zip(names, in_shapes, types, strict=True)}
    free = dynamic
    if dynamic and dynamic_input_shapes is not None:
        free = [name for name, shape in zip(names, dynamic_input_shapes, strict=True)
                if free_first(name, shape)]
    return write_onnx(symbol, arrays, specs, onnx_file_path, free)


def free_first(name, shape):
    """Whether the first length is free; no other may be."""
    free = [not isinstance(n, int) for n in shape]
    if any(free[1:]):
        raise AttrError(f"export_model: dynamic_input_shapes says {tuple(shape)} of "
                        f"'{name}', but only the first axis may be of any length")
    return any(free)
