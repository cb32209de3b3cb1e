"""Import of ONNX files, such as those exported by PyTorch or TensorFlow.

Defines: `import_model`, `import_to_gluon`, `get_model_metadata`.

Each node is looked up in a table and translated to our operators, with weights in the
layout that our kernels need. The file's float initializers become trainable parameters;
scalars are constants.
Source:  MXNet 1.9's mx.contrib.onnx; the ONNX specification, docs/Operators.md.
Not supported: opsets before 7, quantized networks.
"""

from minihybrid.core import nd
from minihybrid.core.block import SymbolBlock
from minihybrid.core.context import check_context
from minihybrid.core.files import FileError
from minihybrid.core.name import NameManager
from minihybrid.core.op import HybridError
from minihybrid.core.parameter import Parameter
from minihybrid.core.sym import Group, Symbol
from minihybrid.formats.onnx.load.control import CONTROL
from minihybrid.formats.onnx.load.elementwise import ELEMENTWISE
from minihybrid.formats.onnx.load.file import read_file
from minihybrid.formats.onnx.load.fold import fold
from minihybrid.formats.onnx.load.images import IMAGES
from minihybrid.formats.onnx.load.layers import LAYERS
from minihybrid.formats.onnx.load.parts import PARTS
from minihybrid.formats.onnx.load.shapes import SHAPES
from minihybrid.formats.onnx.load.values import Call, Scope, Value

OPERATORS = {**ELEMENTWISE, **SHAPES, **PARTS, **IMAGES, **LAYERS, **CONTROL}


def import_model(model_file):
    """Return (symbol, arg_params, aux_params) of an ONNX file.

    The dicts map names to NDArrays, as those of `model.load_checkpoint`.
    Raises:  FileError naming the node, or listing all unsupported operators.

    >>> import os, tempfile
    >>> from minihybrid.core import sym
    >>> from minihybrid.formats.onnx import export_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = export_model(sym.relu(sym.var("x"), name="y"), {}, [(2, 3)],
    ...                         onnx_file_path=os.path.join(folder, "relu.onnx"))
    ...     import_model(path)
    (<Symbol y_output>, {}, {})
    """
    symbol, scope = translate(read_file(model_file))
    states = set(symbol.list_auxiliary_states())
    arrays = {name: nd.array(a, dtype=a.dtype) for name, a in scope.arrays.items()}
    return (
        symbol,
        {k: v for k, v in arrays.items() if k not in states},
        {k: v for k, v in arrays.items() if k in states},
    )


def import_to_gluon(model_file, ctx=None):
    """Return a SymbolBlock of an ONNX file with its parameters, ready to run and train.

    ctx:     the device of the parameters.

    Inputs that no output depends on are dropped.
    Raises:  FileError naming the node, or listing all unsupported operators.

    >>> import os, tempfile
    >>> from minihybrid.core import sym
    >>> from minihybrid.formats.onnx import export_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = export_model(sym.relu(sym.var("x"), name="y"), {}, [(2, 3)],
    ...                         onnx_file_path=os.path.join(folder, "relu.onnx"))
    ...     import_to_gluon(path)(nd.array([[-1, 2]])).asnumpy()
    array([[0., 2.]], dtype=float32)
    """
    context = check_context(ctx)
    symbol, scope = translate(read_file(model_file))
    states = set(symbol.list_auxiliary_states())
    params = {}
    for name, array in scope.arrays.items():
        params[name] = Parameter(
            name,
            shape=array.shape,
            dtype=array.dtype,
            differentiable=name not in states | scope.frozen,
        )
        # Zeros, as initial random values would be overwritten.
        params[name].initialize("zeros", context)
        params[name].set_data(nd.array(array, dtype=array.dtype))
    return SymbolBlock(symbol, scope.inputs, params)


def get_model_metadata(model_file):
    """Return an ONNX file's inputs and outputs: lists of (name, shape); 0 is an unknown length.

    The keys are `input_tensor_data` and `output_tensor_data`, as in MXNet.

    >>> import os, tempfile
    >>> from minihybrid.core import sym
    >>> from minihybrid.formats.onnx import export_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = export_model(sym.relu(sym.var("x"), name="y"), {}, [(2, 3)],
    ...                         onnx_file_path=os.path.join(folder, "relu.onnx"))
    ...     get_model_metadata(path)["input_tensor_data"]
    [('x', (2, 3))]
    """
    model = read_file(model_file)

    def described(values):
        return [
            (name, tuple(n if isinstance(n, int) else 0 for n in shape or ()))
            for name, _, shape in values
        ]

    return {
        "input_tensor_data": described(model.inputs),
        "output_tensor_data": described(model.outputs),
    }


# -- the walk --------------------------------------------------------------------------
def translate(model):
    """Translate the nodes that the outputs need; return (symbol, scope)."""
    nodes, _ = _needed(model)
    missing = [n for n in _all(nodes) if n.domain not in ("", "ai.onnx") or n.op not in OPERATORS]
    if missing:
        names = sorted({f"{n.op:.40} ({n.domain or 'ai.onnx'!r:.40})" for n in missing})
        more = f" and {len(names) - 50} others" * (len(names) > 50)
        missing[0].fail(
            f"not supported here, of opset {model.opset}: {', '.join(names[:50])}{more}; export "
            "the network with other operators"
        )
    with NameManager():
        scope = Scope(model, _walk)
        symbol = Group(_walk(model, scope, scope.inputs))
    read = set(symbol.list_inputs())
    scope.inputs = [s for s in scope.inputs if s.name in read]
    if not scope.inputs:
        raise FileError(f"{model.source}: no output depends on an input: there is nothing to run")
    return symbol, scope


def _all(nodes):
    """Yield the nodes, and those of their subgraphs."""
    for node in nodes:
        yield node
        for graph in node.graphs:
            yield from _all(graph.nodes)


def _walk(graph, scope, inputs):
    """Return the symbols of a graph's outputs; a subgraph can read outer values."""
    outer, (nodes, needed) = scope.values, _needed(graph)
    arrays = {k: Value(k, (a, a), trained=a.dtype.kind == "f") for k, a in graph.arrays.items()}
    names = [name for name, *_ in graph.inputs]
    pairs = zip(names, inputs, strict=True)
    scope.values = outer | arrays | {name: Value(name, symbol=s) for name, s in pairs}
    try:
        for node in nodes:
            _apply(Call(node, scope), needed)
        return [_head(scope, name) for name, *_ in graph.outputs]
    finally:
        scope.values = outer


def _head(scope, name):
    """Return the symbol of an output."""
    value = scope.values[name]
    if value.arrays is None:
        return value.symbol
    if value.fixed is None:
        raise FileError(
            f"{scope.model.source}: the output {name!r:.60} follows from a "
            "length that the file leaves open, not from data"
        )
    return scope.parameter(value)


def _needed(model):
    """Return (the live nodes in order, the live names)."""
    needed, nodes = {name for name, *_ in model.outputs}, []
    for node in reversed(model.nodes):
        if not needed.isdisjoint(node.outputs):
            nodes.append(node)
            needed.update(node.reads)
    return nodes[::-1], needed


def _apply(call, needed):
    """Apply a node and store the values of its outputs."""
    node, scope = call.node, call.scope
    try:
        rule = OPERATORS[node.op]
        result = fold(call, rule) or rule(call)
        parts = result if isinstance(result, tuple) else (result,)
        symbols = [part for part in parts if isinstance(part, Symbol)]
        for last in dict.fromkeys(s.refs[0][0] for s in symbols):
            if last not in scope.specs:  # it is new
                last.name = scope.unique(node.outputs[0])  # as the file calls the result
        for symbol in symbols:
            scope.spec(symbol)
    except FileError:
        raise
    except HybridError as error:
        node.fail(scope.explained(str(error)))
    except (ValueError, TypeError, IndexError, ArithmeticError) as error:
        # Inconsistent values are the file's fault, whatever code detects them.
        node.fail(scope.explained(f"its shapes and numbers do not fit together: {error}"))
    call.check_attributes()
    for i, name in enumerate(node.outputs):
        if i >= len(parts):
            if name in needed:
                node.fail(f"its output {name!r:.60} is not supported")
        elif isinstance(parts[i], Value):
            scope.values[name] = Value(name, parts[i].arrays, parts[i].symbol, parts[i].trained)
        else:
            scope.values[name] = Value(name, symbol=parts[i])
