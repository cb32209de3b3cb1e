"""Control flow: loops and branches for arrays and symbols.

Defines: `foreach`, `while_loop`, `cond`, `boolean_mask`, and `isnan`, `isinf`,
         `isfinite`, in `nd.contrib`, `sym.contrib`, `F.contrib`.

With arrays, they run Python's own loop or branch, and the tape records the operators. With
symbols, each function is traced once, and the loop or branch is one node with subgraphs
(`passes/foreach.py`, `passes/control.py`). Only the branch that is taken runs, in the backward
pass as well. GPUs and WebAssembly files compute both branches and select one.
Not supported: in eager mode, checking the branch that isn't taken.
"""

import numpy as np

from minihybrid.core import lazy
from minihybrid.core.arguments import arrays_in, restore
from minihybrid.core.array import NDArray, arrays
from minihybrid.core.attribute import AttrScope
from minihybrid.core.graph import Graph, topological
from minihybrid.core.hooks import own_names
from minihybrid.core.name import NameManager
from minihybrid.core.nd import array
from minihybrid.core.op import AttrError, HybridError, Node, Spec, unfit
from minihybrid.core.placement import copy_to
from minihybrid.core.sym import Symbol, opened, var
from minihybrid.core.tape import modes
from minihybrid.core.tracing import CURRENT, TraceError, is_tracing
from minihybrid.ops import OPS
from minihybrid.ops.infix import Value
from minihybrid.ops.shapes import axis_of
from minihybrid.passes.control import Cond, While, is_true
from minihybrid.passes.foreach import Foreach, agreed, row_of
from minihybrid.passes.scan import captured


def foreach(body, data, init_states, name=None):
    """Run `body` over the first axis of `data` and stack its outputs.

    body:    (slice of data, states) -> (output, new states).
    data, init_states: an array or a (nested) list of arrays; so are the results.
    name:    of the node, with symbols: the body is traced once, and the loop is one node.
             A loop is unrolled if its body updates states of layers, such as BatchNorm's
             running mean, or if its states change shape.
    Returns: (outputs, stacked along a new first axis; the last states).

    >>> from minihybrid.core import nd
    >>> outs, total = foreach(lambda x, s: (x + s, x + s), nd.arange(4), nd.zeros(1))
    >>> outs.asnumpy().ravel(), total.asnumpy()
    (array([0., 1., 3., 6.], dtype=float32), array([6.], dtype=float32))
    """
    if any(isinstance(x, Symbol) for x in arrays_in((data, init_states))):
        results = traced(body, data, init_states, name)
        if results is not None:
            return results
    arrays = arrays_in((data,))
    if arrays and all(isinstance(x, NDArray) and x.ndim and not len(x) for x in arrays):
        return _no_rows(body, data, init_states), init_states
    rows = [_rows(x) for x in arrays_in((data,))]
    if len({len(r) for r in rows}) != 1:
        raise AttrError(
            "foreach: data must be arrays of one common length, found "
            f"{', '.join(str(len(r)) for r in rows) or 'none'}"
        )
    states, steps, seen = init_states, [], None
    for parts in zip(*rows, strict=True):
        out, states = body(restore(data, iter(parts)), states)
        steps.append(out)
        seen = _same_variables("foreach", len(steps), seen, out, states)
    return _stacked("foreach", steps), states


def while_loop(cond, func, loop_vars, max_iterations=None, name=None):
    """Run `func` while `cond` is true, for at most `max_iterations` iterations.

    cond:    (*loop_vars) -> a single element, true or false.
    func:    (*loop_vars) -> (output, new loop_vars).
    Returns: (outputs, stacked; the last loop_vars). The stack has `max_iterations`
             rows: those of iterations that didn't run are 0, while MXNet leaves them
             uninitialized. If none ran, the outputs are `[]` for arrays, zeros for
             symbols.

    >>> from minihybrid.core import nd
    >>> powers, last = while_loop(lambda x: x < 5, lambda x: (x, x * 2), nd.ones(1), 5)
    >>> powers.asnumpy().ravel(), last.asnumpy()
    (array([1., 2., 4., 0., 0.], dtype=float32), array([8.], dtype=float32))
    """
    if max_iterations is None or int(max_iterations) < 1:
        raise AttrError(
            f"while_loop: max_iterations={max_iterations}, but a whole "
            "number of at least 1 is needed"
        )
    single = not isinstance(loop_vars, (list, tuple))
    now = [loop_vars] if single else list(loop_vars)
    if not now:
        raise AttrError("while_loop: loop_vars is empty; one array at least is needed")
    if all(isinstance(x, Symbol) and len(x.refs) == 1 for x in now):
        results = _traced_while(cond, func, now, int(max_iterations), name)
        if results is not None:
            outs, now = results
            return outs, now[0] if single else now
    steps, seen = [], None
    while len(steps) < max_iterations and is_true("while_loop: cond", cond(*now)):
        out, now = _step(func, now)
        steps.append(out)
        seen = _same_variables("while_loop", len(steps), seen, out, now)
    outs = _stacked("while_loop", steps, int(max_iterations) - len(steps))
    return outs, now[0] if single else now


def _no_rows(body, data, states):
    """Return the outputs of a loop over no rows, by running the body on rows of zeros.

    Outputs that depend on arrays on the tape are on it as well, with zero gradients.
    """
    rows = []
    for x in arrays_in((data,)):
        row = type(x)(copy_to(np.zeros(x.shape[1:] or (1,), x.dtype), x.context))
        rows.append(row + x.sum().astype(x.dtype) if x.node else row)  # an empty sum: 0
    with modes(training=False):  # updates no running statistics
        out, _ = body(restore(data, iter(rows)), states)
    stacks = [OPS["stack"](OPS["zeros_like"](x), axis=0) for x in arrays_in((out,))]
    return restore(out, iter([OPS["slice_axis"](x, axis=0, begin=0, end=0) for x in stacks]))


def _traced_while(cond, func, now, max_iterations, name):
    """Return (outputs, last values) of one node; `None` if `cond` returns no symbol."""
    name = NameManager.current().get(name, "_while_loop")
    _, test = _side(cond, f"{name}_cond", now)
    if not test:
        return None
    (out, new), body = _side(lambda *now: _step(func, now), f"{name}_func", now)
    inputs = [x.refs[0] for x in now]
    graphs, locs = _joined([test, body], inputs, len(now))
    op = While(graphs, locs, range(len(now)), max_iterations)
    outs = arrays_in((out,))
    results = _applied(op, inputs, name, [*outs, *new])
    return restore(out, iter(results)), results[len(outs) :]


def _step(func, now):
    """Run one iteration; return (output, list of new values), validated."""
    out, new = func(*now)
    new = list(new) if isinstance(new, (list, tuple)) else [new]
    if len(new) != len(now):
        raise AttrError(
            f"while_loop: func gave {len(new)} new loop_vars, but {len(now)} are needed"
        )
    for j, (x, y) in enumerate(zip(now, new, strict=True)):
        if isinstance(x, NDArray) and isinstance(y, NDArray):
            old, now = Spec(x.shape, x.data.dtype), Spec(y.shape, y.data.dtype)
            agreed(f"while_loop: loop variable {j}", old, now)
    return [] if out is None else out, new


def cond(pred, then_func, else_func, name=None):
    """Return `then_func()` if `pred` is true, else `else_func()`.

    pred:    an array of one element.
    Symbols: both branches are traced, and their results must agree in shape and dtype. Only the
             branch that is taken runs.

    >>> from minihybrid.core import nd
    >>> x = nd.array([-3]); cond(x < 0, lambda: -x, lambda: x).asnumpy()
    array([3.], dtype=float32)
    """
    if not isinstance(pred, Symbol):
        return then_func() if is_true("cond: pred", pred) else else_func()
    name = NameManager.current().get(name, "_cond")
    then, first = _side(then_func, f"{name}_then")
    other, second = _side(else_func, f"{name}_else")
    pairs = arrays_in((then,)), arrays_in((other,))
    if len(pairs[0]) != len(pairs[1]):
        raise AttrError(
            f"cond: one branch gives {len(pairs[0])} values, the other "
            f"{len(pairs[1])}; both must give the same number"
        )
    if not (first and second):
        raise AttrError(
            "cond: a branch gives no symbols, but pred is one; compute what it gives with F's "
            "operators"
        )
    inputs = [pred.one_ref(Cond)]
    holds = Node(None, name="pred")
    graphs, locs = _joined([first, second], inputs, 0)
    op = Cond([Graph([holds], [(holds, 0)]), *graphs], [[0], *locs])
    return restore(then, iter(_applied(op, inputs, name, pairs[0])))


def _applied(op, inputs, name, like):
    """Return the outputs of one node, as symbols of the classes of these."""
    node = Symbol.interpret(op, [Symbol([ref]) for ref in inputs], {}, name)
    return [type(x)([ref]) for x, ref in zip(like, node.refs, strict=True)]


def _side(func, name, arguments=()):
    """Trace a function; return (its results, (graph, captured values)), or (results, None) if
    they aren't symbols.

    arguments: symbols that the trace replaces by variables.
    """
    variables = [_variable(x, f"var{j}", x.spec) for j, x in enumerate(arguments)]
    with AttrScope(**{OWNER: name}):
        out = opened(func(*variables))
    refs = [ref for x in arrays_in((out,)) if isinstance(x, Symbol) for ref in x.refs]
    inside = _taken(refs, name, variables)
    if not refs:
        return out, None
    own = [x.refs[0] for x in variables]
    graph, _, others = captured(inside, own, refs, _unmarked, lambda ref: None)
    return out, (graph, others)


def _taken(refs, name, variables):
    """Remove the nodes of a function from the trace, and return them."""
    mine = {x.refs[0][0] for x in variables}
    inside = [n for n in topological(refs) if n.op and (n.info or {}).get(OWNER) == name]
    if trace := CURRENT.trace:
        mine.update(n for n in trace.nodes if n.op and (n.info or {}).get(OWNER) == name)
        trace.nodes[:] = [n for n in trace.nodes if n not in mine]
        trace.known -= mine
    return inside


def _joined(sides, inputs, first):
    """Return (graphs, input indices of each graph's variables); append captures to `inputs`.

    first:   the number of leading inputs, which every graph shares.
    """
    locs = []
    for _, others in sides:
        inputs += [ref for ref in others if ref not in inputs[first:]]
        locs.append([*range(first), *(first + inputs[first:].index(ref) for ref in others)])
    return [graph for graph, _ in sides], locs


# -- loops as one node -----------------------------------------------------------------
def traced(body, data, init_states, name):
    """Return the results of `foreach` for symbols, or `None` if it must be unrolled.

    The body is traced once, on variables for a row and for the states. Its nodes, marked
    by an attribute as in MXNet, form the subgraph; other values it reads become inputs of
    the loop.
    """
    arrays, init = arrays_in((data,)), arrays_in((init_states,))
    if not arrays or not all(isinstance(x, Symbol) and len(x.refs) == 1 for x in (*arrays, *init)):
        return None
    name = NameManager.current().get(name, "_foreach")
    rows = [_variable(x, f"row{i}", row_of(x.spec)) for i, x in enumerate(arrays)]
    states = [_variable(x, f"state{j}", x.spec) for j, x in enumerate(init)]
    with AttrScope(__subgraph_name__=name):
        out, new = body(restore(data, iter(rows)), restore(init_states, iter(states)))
    out, new = opened(out), opened(new)
    outs, news = arrays_in((out,)), arrays_in((new,))
    refs = [ref for x in (*outs, *news) if isinstance(x, Symbol) for ref in x.refs]
    inside = _taken(refs, name, (*rows, *states))
    if (
        len(refs) != len(outs) + len(news)
        or len(news) != len(init)
        or not refs
        or any(n.op.states(n.attrs) for n in inside)
        or any(
            a.spec.known and b.spec.known and a.spec != b.spec
            for a, b in zip(init, news, strict=True)
        )
    ):
        return None
    variables = [x.refs[0] for x in (*rows, *states)]
    graph, ins, others = captured(inside, variables, refs, _unmarked, lambda ref: None)
    op = Foreach(graph, ins, len(rows), len(states))
    results = _applied(op, [x.refs[0] for x in (*arrays, *init)] + others, name, [*outs, *news])
    if all(x.spec.known and not x.spec.shape[0] for x in arrays):  # no rows: the loop doesn't run
        results = [OPS["zeros_like"](x) for x in results[: len(outs)]] + init
    return restore(out, iter(results)), restore(new, iter(results[len(outs) :]))


OWNER = "__subgraph_name__"


def _variable(like, name, spec):
    return type(like)(var(name, spec=spec).refs)


def _unmarked(node, inputs):
    """Copy a node of a body, without shapes, which are inferred from the loop's inputs."""
    info = {k: v for k, v in node.info.items() if k != OWNER}
    return Node(node.op, inputs, node.attrs, node.name, info=info or None)


# -- iterations and stacks -------------------------------------------------------------
def _rows(x):
    """Return the slices of an array or symbol along its first axis."""
    shape = x.shape if not isinstance(x, Symbol) else x.spec.shape
    if shape is None or -1 in shape:
        (shape,) = x.infer_shape_partial()[1]
    if not shape or not shape[0]:
        raise HybridError(
            "foreach: the first axis of the data has length 0 or an unknown one; tell it by "
            "sym.var(name, shape=...), or hybridize a block, which learns it from its input"
        )
    parts = OPS["SliceChannel"](x, num_outputs=shape[0], axis=0, squeeze_axis=len(shape) > 1)
    return [parts] if shape[0] == 1 else list(parts)


def _stacked(what, steps, missing=0):
    """Stack each output over all iterations; append `missing` rows of zeros."""
    flat = [arrays_in((out,)) for out in steps]
    if len({len(outs) for outs in flat}) > 1:
        raise AttrError(
            f"{what}: each step must give the same number of outputs, "
            f"found {', '.join(str(len(outs)) for outs in flat)}"
        )
    columns = [
        [*column] + [OPS["zeros_like"](column[0])] * missing for column in zip(*flat, strict=True)
    ]
    stacks = iter([OPS["stack"](*column, axis=0) for column in columns])
    return restore(steps[0], stacks) if steps else []


def _same_variables(what, step, seen, *results):
    """Reject a body that creates new variables, not shared weights, in its second iteration.

    Returns: the variables that the results of the first iteration depend on.
    """
    symbols = [s for s in arrays_in(results) if isinstance(s, Symbol)]
    if step > 2 or not symbols or is_tracing():
        return seen
    variables = {n for n in topological([ref for s in symbols for ref in s.refs]) if n.op is None}
    if step == 2 and variables - seen:
        raise TraceError(
            f"{what}: its body makes the variable '{min(n.name for n in variables - seen)}' anew "
            "in each step; make it once before the loop, with sym.var, and pass it to the operator"
        )
    return variables


def boolean_mask(data, index, axis=0):
    """Select the slices of `data` along an axis where the vector `index` isn't 0.

    Raises:  TraceError for symbols, including hybridized calls: the result's shape is
             data-dependent, and a graph is traced without data.
    Source:  MXNet's contrib.boolean_mask.

    >>> from minihybrid.core import nd
    >>> boolean_mask(nd.array([[1, 2], [3, 4], [5, 6]]), nd.array([0, 1, 1])).shape
    (2, 2)
    """
    if isinstance(data, Symbol) or isinstance(index, Symbol):
        raise TraceError(
            "boolean_mask: the shape of its result depends on values, so it works on arrays "
            "alone; leave the block that calls it without hybridize(), or keep the shape and "
            "write zeros by F.where"
        )
    data, index = arrays("contrib.boolean_mask", [data, index])
    axis = axis_of("contrib.boolean_mask", axis, data.ndim)
    if index.shape != (data.shape[axis],):
        raise AttrError(
            f"contrib.boolean_mask: index has shape {index.shape}, but axis {axis} of data "
            f"{data.shape} needs {(data.shape[axis],)}"
        )
    (places,) = index.asnumpy().nonzero()
    return OPS["take"](data, array(places, ctx=data.ctx, dtype="int64"), axis=axis)


def isnan(data):
    """Return 1 where an element is NaN, else 0.

    >>> from minihybrid.core import nd
    >>> isnan(nd.array([1, float("nan"), float("inf")])).asnumpy()
    array([0., 1., 0.], dtype=float32)
    """
    return _of_value("isnan", data) != data


def _of_value(name, data):
    """Return an array or a symbol; raise an AttrError for others."""
    if not isinstance(data, Value):
        need = "an NDArray or a Symbol is needed; wrap it in nd.array(...)"
        raise unfit(f"contrib.{name}", "", data, need)
    return data


def isinf(data):
    """Return 1 where an element is infinite, else 0.

    >>> from minihybrid.core import nd
    >>> isinf(nd.array([1, float("nan"), float("inf")])).asnumpy()
    array([0., 0., 1.], dtype=float32)
    """
    return (_of_value("isinf", data) - data != 0) * (data == data)  # inf - inf is NaN


def isfinite(data):
    """Return 1 where an element is finite, else 0.

    >>> from minihybrid.core import nd
    >>> isfinite(nd.array([1, float("nan"), float("inf")])).asnumpy()
    array([1., 0., 0.], dtype=float32)
    """
    return _of_value("isfinite", data) - data == 0


# as in MXNet
LATER = {"amp": "gluon.amp", "onnx": "formats.onnx", "quantization": "gluon.quantization"}
__getattr__ = lazy.face(globals(), LATER)

__dir__ = own_names(globals(), *LATER)
