"""ONNX import rules for branches and loops.

Defines: `CONTROL`: ONNX name -> function of a `Call` that returns the outputs.

Not supported: loops without a known maximum trip count, and the scan outputs of a Loop, whose
length is the number of executed iterations.
"""

from minihybrid.core.sym import Symbol
from minihybrid.gluon import control_flow
from minihybrid.ops import OPS
from minihybrid.passes.foreach import row_of

MAX_TRIPS = 1 << 16  # the largest trip count


def _graph(call, name, n_inputs):
    """Return the subgraph in an attribute, with the given number of inputs."""
    graph = call.attr(name)
    if len(graph.inputs) != n_inputs:
        call.fail(f"{name} has {len(graph.inputs)} inputs, but {n_inputs} are needed")
    return graph


def _inside(call, graph, inputs=()):
    """Return the symbols of a graph's outputs, given those of its inputs."""
    return call.scope.walk(graph, call.scope, inputs)


def _tell(call, variables, pairs):
    """Set the specs of variables in both trials."""
    for variable, pair in zip(variables, pairs, strict=True):
        call.scope.specs[variable.refs[0][0]] = [[spec] for spec in pair]


def _scalar(call, array):
    """Return a known scalar as a symbol of shape ()."""
    number = OPS["_full"].applied(
        (), {"shape": (1,), "value": float(array), "dtype": array.dtype}, base=Symbol
    )
    return OPS["_np_reshape"](number, newshape=())


def _outputs(call, results):
    """Return the outputs that the node names, possibly fewer than it has."""
    return tuple(results[: len(call.node.outputs)])


def _if(call):
    """If, as `cond`; a branch with a known condition is resolved now."""
    sides = [_graph(call, f"{name}_branch", 0) for name in ("then", "else")]
    condition = call.need(0).fixed
    if condition is not None:
        return _outputs(call, _inside(call, sides[not condition.item()]))
    then, other = (lambda g=g: _inside(call, g) for g in sides)
    return _outputs(call, control_flow.cond(call.sym(0), then, other))


def _loop(call):
    """Loop, as a `while_loop` over the iteration index, the condition and the variables."""
    if call.get(0) is None:
        call.fail("the largest number of iterations is missing; give it as the first input")
    most = call.fixed(0, "the largest number of iterations").item()
    if not 0 < most <= MAX_TRIPS:
        call.fail(f"at most {most} iterations, but 1 to {MAX_TRIPS} are supported")
    n = len(call.inputs) - 2
    body = _graph(call, "body", n + 2)
    if len(body.outputs) != n + 1:
        call.fail(
            "its stacked outputs have a row for each iteration that runs, so no length that is "
            "known; write the rows into an array that is a variable of the loop"
        )
    going = call.get(1)
    first = _scalar(call, going.fixed) if going and going.fixed is not None else call.sym(1)
    zero = OPS["_zeros"].applied((), {"shape": (1,), "dtype": "int64"}, base=Symbol)
    now = [OPS["_np_reshape"](zero, newshape=()), first, *(call.sym(i + 2) for i in range(n))]
    pairs = [call.scope.spec(x) for x in now]

    def step(iteration, *states):
        _tell(call, [iteration, *states], pairs)
        return [], [iteration + 1, *_inside(call, body, [iteration, *states])]

    _, last = control_flow.while_loop(lambda iteration, going, *_: going, step, now, most)
    return _outputs(call, last[2:])


def _scan(call):
    """Scan, as a `foreach` over the first axis of the last inputs."""
    n = call.attr("num_scan_inputs")
    m = len(call.inputs) - n
    body = _graph(call, "body", len(call.inputs))
    states, rows = [call.sym(i) for i in range(m)], [call.sym(i) for i in range(m, m + n)]
    pairs = [call.scope.spec(x) for x in states]
    pairs += [list(map(row_of, call.scope.spec(x))) for x in rows]
    alone = [len(call.scope.spec(x)[0].shape) == 1 for x in rows]

    def step(row, now):
        _tell(call, [*now, *row], pairs)
        row = [
            OPS["_np_reshape"](x, newshape=()) if a else x for x, a in zip(row, alone, strict=True)
        ]
        outputs = _inside(call, body, [*now, *row])
        return outputs[m:], outputs[:m]

    outs, last = control_flow.foreach(step, rows, states)
    return _outputs(call, [*last, *outs])


CONTROL = {"If": _if, "Loop": _loop, "Scan": _scan}
