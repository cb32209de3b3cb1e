"""Networks from other frameworks: ONNX files become symbols and blocks.

Takes:   a `.onnx` file, such as PyTorch's and TensorFlow's exporters write.
Gives:   `import_model`, `import_to_gluon`, `get_model_metadata`.

Each node is looked up in a table and becomes operators of ours, in the layout in which
our kernels want their weights. The file's float initializers are parameters that can be
trained; a single number without axes is a constant.
Source:  MXNet 1.9's mx.contrib.onnx; the ONNX specification, docs/Operators.md.
What is left out: opsets before 7, quantised networks.
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
    """(symbol, arg_params, aux_params) of an ONNX file.

    The dicts have NDArrays by name, as `model.load_checkpoint` gives them.
    Raises:  FileError naming the node; all operators that are missing, at once.

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
    """A SymbolBlock of an ONNX file, with its parameters, ready to run and to train.

    ctx:     the device of the parameters.

    Inputs that no output needs are left out.
    Raises:  FileError naming the node; all operators that are missing, at once.

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
        # Zeros: random numbers would be drawn for nothing.
        params[name].initialize("zeros", context)
        params[name].set_data(nd.array(array, dtype=array.dtype))
    return SymbolBlock(symbol, scope.inputs, params)


def get_model_metadata(model_file):
    """What an ONNX file takes and gives: lists of (name, shape); 0 is an open length.

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
    """(symbol, scope): each node that the outputs need, in our operators."""
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
    """The nodes, and those of their graphs."""
    for node in nodes:
        yield node
        for graph in node.graphs:
            yield from _all(graph.nodes)


def _walk(graph, scope, inputs):
    """The symbols of a graph's outputs; a subgraph knows the values around it."""
    outer, (nodes, wanted) = scope.values, _needed(graph)
    arrays = {k: Value(k, (a, a), trained=a.dtype.kind == "f") for k, a in graph.arrays.items()}
    names = [name for name, *_ in graph.inputs]
    pairs = zip(names, inputs, strict=True)
    scope.values = outer | arrays | {name: Value(name, symbol=s) for name, s in pairs}
    try:
        for node in nodes:
            _apply(Call(node, scope), wanted)
        return [_head(scope, name) for name, *_ in graph.outputs]
    finally:
        scope.values = outer


def _head(scope, name):
    """The symbol of an output."""
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
    """(the nodes that the outputs need, in order; the names that anybody needs)."""
    wanted, nodes = {name for name, *_ in model.outputs}, []
    for node in reversed(model.nodes):
        if not wanted.isdisjoint(node.outputs):
            nodes.append(node)
            wanted.update(node.reads)
    return nodes[::-1], wanted


def _apply(call, wanted):
    """Give a node's outputs their values."""
    node, scope = call.node, call.scope
    call.check()
    try:
        made = fold(call) or OPERATORS[node.op](call)
        parts = made if isinstance(made, tuple) else (made,)
        for part in parts:
            if isinstance(part, Symbol):
                scope.spec(part)
    except FileError:
        raise
    except HybridError as error:
        node.fail(scope.explained(str(error)))
    except (ValueError, TypeError, IndexError, ArithmeticError) as error:
        # Numbers that do not fit together are the file's fault, whoever finds out.
        node.fail(scope.explained(f"its shapes and numbers do not fit together: {error}"))
    call.check_attributes()
    for i, name in enumerate(node.outputs):
        if i >= len(parts):
            if name in wanted:
                node.fail(f"its output {name!r:.60} is not supported")
        elif isinstance(parts[i], Value):
            scope.values[name] = Value(name, parts[i].arrays, parts[i].symbol, parts[i].trained)
        else:
            scope.values[name] = Value(name, symbol=parts[i])
