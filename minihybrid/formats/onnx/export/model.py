"""The ONNX writer: from a draft to a file.

Defines: `export_model` (MXNet's mx.onnx.export_model) and `write_onnx`.

Source:  ONNX's IR (onnx.proto) and its operator schemas, version 18.
Not supported: models over 2 GB, the limit of a protobuf message.
"""

import inspect
from functools import partial

import numpy as np

from minihybrid.core import nd
from minihybrid.core.files import write_whole
from minihybrid.core.hooks import FORMATS
from minihybrid.core.nd import NDArray
from minihybrid.core.op import AttrError, HybridError, Spec
from minihybrid.core.pytree import SLOT, flatten
from minihybrid.core.sym import Symbol
from minihybrid.core.sym import load as load_symbol
from minihybrid.formats.onnx.export.draft import Body, Draft, ExportError, all_steps, bodies
from minihybrid.formats.onnx.export.nodes import drafted, with_length
from minihybrid.mxnet.base import __version__

OPSET, IR_VERSION = 18, 8  # of ONNX 1.13, supported by engines since 2023
Argument = inspect.Parameter
BY_PLACE = Argument.POSITIONAL_ONLY, Argument.POSITIONAL_OR_KEYWORD, Argument.VAR_POSITIONAL
LIMIT = 2**31 - 1  # bytes of a protobuf message


# -- the file --------------------------------------------------------------------------
def library():
    """Return the library's modules that build and check messages."""
    try:
        from onnx import checker, helper, numpy_helper
    except ImportError:
        raise HybridError(
            "export to ONNX needs the library onnx, which is not "
            'installed; pip install "minihybrid[onnx]"'
        ) from None
    return checker, helper, numpy_helper


class Writer:
    """Converts steps to protobuf messages; equal constants share one initializer.

    length:  the batch size, if it's free.
    """

    def __init__(self, used, length):
        self.checker, self.helper, self.numpy_helper = library()
        self.length = length
        self.initializers, self.constants, self.names = [], {}, Draft(used)

    def kind(self, dtype):
        """Return ONNX's enum value of a dtype."""
        return self.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    def initializer(self, name, array):
        """Add an array as an initializer; return its name."""
        self.initializers.append(self.numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def input(self, value):
        """Return the name of a step's input."""
        if isinstance(value, str):
            return value
        key = value.dtype.str, value.shape, value.tobytes()
        if key not in self.constants:
            name = self.names.unique("constant")
            self.constants[key] = self.initializer(name, value)
        return self.constants[key]

    def attr(self, value):
        """Convert an attribute to ONNX's form."""
        if isinstance(value, np.dtype):
            return self.kind(value)
        if isinstance(value, np.ndarray):
            return self.numpy_helper.from_array(value)
        return self.body(value) if isinstance(value, Body) else value

    def body(self, body):
        """Return the message of a subgraph; its constants are initializers of the outer graph."""
        info = self.helper.make_tensor_value_info
        inputs = [
            info(v.name, self.kind(v.dtype), () if k < body.scalars else None)
            for k, v in enumerate(body.inputs)
        ]
        outputs = [
            info(v.name, self.kind(v.dtype), shape)
            for v, shape in zip(body.outputs, body.shapes, strict=True)
        ]
        return self.helper.make_graph(list(map(self.node, body.steps)), "body", inputs, outputs)

    def node(self, step):
        """Return the message of one step."""
        return self.helper.make_node(
            step.kind,
            [self.input(v) for v in step.inputs],
            list(step.outputs),
            name=step.outputs[0],
            **{k: self.attr(v) for k, v in step.attrs.items()},
        )

    def array(self, name, spec, other):
        """Return the message that describes an input or an output.

        other:   its spec for a batch with one more sample.

        A constant length is an integer, the batch size a symbolic name, and any other
        length is unspecified.
        """
        grows = self.length, self.length and self.length + 1
        lengths = [
            m if m == n else "batch" if (m, n) == grows else None
            for m, n in zip(spec.shape, other.shape, strict=True)
        ]
        return self.helper.make_tensor_value_info(name, self.kind(spec.dtype), lengths)

    def model(self, nodes, inputs, outputs):
        """Return the bytes of the model, checked by the library.

        Raises:  ExportError if an operator doesn't support a dtype, such as int8.
        """
        graph = self.helper.make_graph(nodes, "minihybrid", inputs, outputs, self.initializers)
        model = self.helper.make_model(
            graph,
            producer_name="minihybrid",
            producer_version=__version__,
            ir_version=IR_VERSION,
            opset_imports=[self.helper.make_opsetid("", OPSET)],
        )
        try:
            self.checker.check_model(model, full_check=True)
        except Exception as error:  # the library's errors have no common base class
            raise ExportError(
                f"export to ONNX: its checker says {error}; use dtypes that the operator takes"
            ) from None
        return model.SerializeToString(deterministic=True)


def write_onnx(symbol, params, specs, path, dynamic=True):
    """Write a net in prediction mode to an ONNX file; return the path.

    symbol:  a Symbol; or a function that traces the net for another batch size, from
             name -> Spec of all variables to a Symbol, because Python code may write
             the batch size into a graph as a constant (x.shape[0]).
    params:  name -> NDArray or ndarray, including states (running means); they become
             initializers under their names.
    specs:   name -> Spec of each other input, in order.
    dynamic: whether the first axis may have any length, for all inputs where it is as
             long as in the first input; or the names of these inputs.
    Raises:  ExportError naming the operator and the node that ONNX can't express.

    Inputs and outputs keep the symbol's names; an output that is also an input gets the
    suffix `_output`. The opset is 18.

    Example: params = {n: p.data() for n, p in net.collect_params().items()}
             write_onnx(net(sym.var("data")), params,
                        {"data": Spec((1, 64), np.dtype("float32"))}, "digits.onnx")
    """
    arrays = {
        name: np.asarray(array.data if isinstance(array, NDArray) else array)
        for name, array in params.items()
    }
    batch = batch_inputs(specs) if dynamic is True else list(dynamic or ())
    input_specs = specs | {n: Spec(a.shape, a.dtype) for n, a in arrays.items()}
    traced = (lambda _: symbol) if isinstance(symbol, Symbol) else symbol
    program = drafted(traced, input_specs, batch)
    steps = list(all_steps(program.steps))
    read = {n for step in steps for n in step.inputs if isinstance(n, str)}
    defined = {n for step in steps for n in step.outputs}
    defined |= {v.name for step in steps for body in bodies(step) for v in body.inputs}
    missing = sorted(read - defined - input_specs.keys() - {""})
    if missing:
        raise AttrError(
            f"export to ONNX: the net reads '{missing[0]}', which is neither among the parameters "
            "nor among the inputs; pass its array or its spec"
        )
    arrays = {name: array for name, array in arrays.items() if name in read}
    check_size(arrays)
    writer = Writer({*input_specs, *defined}, specs[batch[0]].shape[0] if batch else None)
    nodes = [writer.node(step) for step in program.steps]
    for name, array in arrays.items():
        writer.initializer(name, array)
    inputs = [
        writer.array(name, spec, with_length(spec, spec.shape[0] + 1) if name in batch else spec)
        for name, spec in specs.items()
    ]
    outputs = [
        writer.array(*parts)
        for parts in zip(program.outputs, program.specs, program.others, strict=True)
    ]
    write_whole(path, writer.model(nodes, inputs, outputs))
    return path


def batch_inputs(specs):
    """Return the names of inputs whose first axis is as long as the first input's.

    >>> batch_inputs({"x": Spec((4, 2), "f4"), "w": Spec((3,), "f4")})
    ['x']
    """
    first = next((s.shape[:1] for s in specs.values()), ())
    return [name for name, s in specs.items() if first and s.shape[:1] == first]


def check_size(arrays):
    """Raise ExportError for more bytes than a file can hold."""
    nbytes = sum(a.nbytes for a in arrays.values())
    if nbytes > LIMIT:
        raise ExportError(
            f"export to ONNX: the parameters take {nbytes} bytes, but a file holds {LIMIT} at "
            "most; export() to MXNet's files has no limit"
        )


# -- MXNet's function ------------------------------------------------------------------
def export_model(
    sym,
    params,
    in_shapes,
    in_types=np.float32,
    onnx_file_path="model.onnx",
    dynamic=False,
    dynamic_input_shapes=None,
):
    """Write a symbol and its parameters to an ONNX file; return the path.

    sym:     a Symbol, or the name of a symbol file.
    params:  name -> NDArray, with or without arg: and aux:, a list of two such dicts
             (arguments and states), or the name of a parameter file.
    in_shapes, in_types: one per input that isn't a parameter, in the order of
             `list_inputs()`; labels of output layers may be omitted. A single dtype
             applies to all.
    dynamic: let the first axis have any length: for all inputs where it is as long as
             in the first one, or, with `dynamic_input_shapes`, for those whose first
             length there is a name or `None`.
    Raises:  ExportError naming the operator and the node that ONNX can't express.

    MXNet's `verbose`, `run_shape_inference` and `large_model` are not supported: nothing
    is logged, shapes are always inferred, and files over 2 GB are not written.
    Source:  mxnet.onnx.export_model of MXNet 1.9.

    Example: export_model("digits-symbol.json", "digits-0000.params", [(1, 64)],
             onnx_file_path="digits.onnx", dynamic=True)
    """
    symbol = sym if isinstance(sym, Symbol) else load_symbol(sym)
    if not isinstance(params, (dict, list, tuple)):
        params = nd.load(params)
    parts = [params] if isinstance(params, dict) else params
    arrays = {
        name.removeprefix("arg:").removeprefix("aux:"): array
        for part in parts
        for name, array in part.items()
    }
    names = [n for n in symbol.list_inputs() if n not in arrays]
    if len(names) > len(in_shapes):
        names = [n for n in names if not n.endswith("label")]
    if len(names) != len(in_shapes):
        raise AttrError(
            f"export_model: {len(in_shapes)} shapes are given, but the "
            f"inputs that are no parameters are {', '.join(names)}"
        )
    types = in_types if isinstance(in_types, (list, tuple)) else [in_types] * len(names)
    specs = {
        name: Spec(tuple(shape), np.dtype(kind))
        for name, shape, kind in zip(names, in_shapes, types, strict=True)
    }
    free = dynamic
    if dynamic and dynamic_input_shapes is not None:
        free = [
            name
            for name, shape in zip(names, dynamic_input_shapes, strict=True)
            if free_first(name, shape)
        ]
    return write_onnx(symbol, arrays, specs, onnx_file_path, free)


def free_first(name, shape):
    """Return whether the first length is free; no other may be."""
    free = [not isinstance(n, int) for n in shape]
    if any(free[1:]):
        raise AttrError(
            f"export_model: dynamic_input_shapes says {tuple(shape)} of "
            f"'{name}', but only the first axis may be of any length"
        )
    return any(free)


def write_net(entry, path, _, net):
    """Write `path.onnx`, for any batch size: the format "onnx" of `net.export`."""
    var_specs = {n.name: n.specs[0] for n in entry.graph.variables}
    names = input_names(entry, net)

    def traced(specs):
        return Symbol(entry.again({name: specs[name] for name in names}).heads)

    return (
        write_onnx(
            traced,
            {name: p.data() for name, p in entry.params.items()},
            {name: var_specs[var] for name, var in zip(names, entry.names, strict=True)},
            f"{path}.onnx",
        ),
    )


def input_names(entry, net):
    """Return the names of a call's inputs: the parameter names if there are several.

    A single one is called data, and those of a SymbolBlock keep their names. Arrays in a list
    are numbered.
    """
    if len(entry.names) == 1 or net._inputs:
        return entry.names
    function = net.forward if net._direct else partial(net.hybrid_forward, None)
    params = [p for p in inspect.signature(function).parameters.values() if p.kind in BY_PLACE]
    if params[-1].kind is Argument.VAR_POSITIONAL:
        rest = params.pop()
        params += [rest.replace(name=f"{rest.name}{i}") for i in range(len(entry.args))]
    names = []
    for param, arg in zip(params, entry.args, strict=False):
        names += numbered(param.name, arg)
    return entry.names if entry.params.keys() & names else names


def numbered(name, arg):
    """Return a name for each array of an argument.

    >>> numbered("states", [SLOT, [SLOT], None]), numbered("x", SLOT)
    (['states0', 'states10'], ['x'])
    """
    if arg is SLOT:
        return [name]
    parts = enumerate(flatten(arg) or ())
    return [label for i, part in parts for label in numbered(f"{name}{i}", part)]


FORMATS["onnx"] = write_net
