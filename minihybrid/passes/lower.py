"""lower: replace operators such as softmax by reductions and elementwise steps.

This runs after differentiation: such an operator has its own gradient, which is shorter
or numerically safer than that of its parts, but its parts fuse with their neighbors.
Limits: each operator has one lowering.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from minihybrid.core.graph import Graph
from minihybrid.core.name import Prefix
from minihybrid.core.op import Node, Op
from minihybrid.core.passes.dce import dce
from minihybrid.core.passes.fold import fold
from minihybrid.core.passes.rewrite import rewrite
from minihybrid.core.sym import Symbol, as_symbol
from minihybrid.core.tracing import Trace, tracing


def recorded(node: Node, inputs: tuple, emit: Callable, apply: Callable, lower: bool = True) -> Any:
    """Emit, in place of a node, the operators that `apply` applies to symbols of its inputs.

    lower:   whether to decompose composite operators.
    Returns: references to the results; `None`, and nothing is emitted, if `apply` gives none.
    """
    with tracing(Trace(lower=lower)) as trace, Prefix(f"{node.name}_"):
        trace.known.update(n for n, _ in inputs)
        out = apply(*(Symbol([ref]) for ref in inputs))
    if out is None:
        return None
    for new in trace.nodes:
        emit(new)
    return as_symbol(out).refs


def lower(graph: Graph, which: Callable[[Op], bool] = lambda op: True) -> Graph:
    """Replace operators by the result of their `lower` rule.

    which:   operator -> whether to lower it; by default, all.
    """
    uses = graph.uses()

    def rule(node: Node, inputs: tuple, emit: Callable) -> list | None:
        if node.op is None or node.op.lower is None or not which(node.op):
            return None
        readers = [r.op for r in uses.get((node, 0), ())]
        if node.op.lower_if and not node.op.lower_if(node.inputs[0][0].op, readers):
            return None
        specs = [n.specs[i] for n, i in inputs]
        return recorded(node, inputs, emit, partial(node.op.lower, specs, **node.attrs))

    if all(n.op is None or n.op.lower is None for n in graph.nodes):
        return graph
    again = any(getattr(n.op, "nested", False) and which(n.op) for n in graph.nodes)
    graph = dce(fold(rewrite(graph, rule), strict=False))
    return lower(graph, which) if again else graph  # what was inside a branch or a loop
