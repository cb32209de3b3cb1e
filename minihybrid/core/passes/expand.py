"""expand: decompose composite operators into primitives.

Dropout, for example, disappears in prediction and becomes a random mask in training.
Limits: each operator has one decomposition.
"""

from minihybrid.core.graph import Graph, the_graph
from minihybrid.core.name import Prefix
from minihybrid.core.sym import Symbol
from minihybrid.core.tracing import Trace, tracing


def expand(graph, training=False):
    """Decompose composite operators, in program order.

    Random operators are numbered in this order, so that a compiled net draws the same
    values as in eager mode. Likewise, an operator that reads a state after an update
    reads the new value; the last value becomes a head.
    """
    mapped, states, origins = {}, {}, {}
    with tracing(Trace(lower=True, training=training)) as trace:
        for node in the_graph("expand", graph).nodes:
            if node.op is None:
                trace.add(node)
                origins[node] = graph.origin(node)
                mapped[node, 0] = (node, 0)
                continue
            inputs = [Symbol([mapped[ref]]) for ref in node.inputs]
            primitive = not node.op.is_made([v.spec for v in inputs], node.attrs)
            first = len(trace.nodes)
            with Prefix("" if primitive else f"{node.name}_"):
                out = Symbol.interpret(
                    node.op, inputs, node.attrs, node.name if primitive else None
                )
            origins.update((new, graph.origin(node)) for new in trace.nodes[first:])
            mapped.update(((node, i), ref) for i, ref in enumerate(out.refs[: node.n_outputs]))
            for place, ref in zip(
                node.op.states(node.attrs), out.refs[node.n_outputs :], strict=False
            ):
                state = node.inputs[place]
                mapped[state] = ref
                if state[0].op is None:
                    states[state] = ref
    heads = [mapped[ref] for ref in graph.heads]
    return Graph(
        trace.nodes,
        [*heads, *states.values()],
        trace.n_streams,
        [variable.name for variable, _ in states],
        origins,
    )
