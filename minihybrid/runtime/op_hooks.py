"""Operator hooks: run a hybridized net operator by operator, to observe every value.

Defines: `watched`, which implements `Block.register_op_hook`.

It runs the graph instead of the plan, where most of these values are never stored.
"""

from collections.abc import Callable
from typing import Any

from minihybrid.core.arguments import arrays_in
from minihybrid.core.hybrid import Hybrid
from minihybrid.core.sym import Symbol, replay


def watched(hybrid: Hybrid, args: tuple, callback: Callable, monitor_all: bool) -> Any:
    """Run a call and return its result; pass every intermediate value to `callback`."""
    entry = hybrid.entry_for(args)
    bindings = entry.bindings(arrays_in(args))
    inside = Symbol(entry.graph.outputs).get_internals()
    outs = replay(
        [*inside.refs, *entry.graph.outputs], {n: bindings[n.name] for n in entry.graph.variables}
    )
    if entry.kind.is_np:
        outs = [out.as_np_ndarray() for out in outs]
    for (node, _), name, out in zip(inside.refs, inside.list_outputs(), outs, strict=False):
        if monitor_all or node.op is not None:
            callback(name, "null" if node.op is None else node.op.name, out)
    return entry.result(outs[len(inside.refs) :])
