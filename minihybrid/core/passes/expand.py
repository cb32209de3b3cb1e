"""expand: operators made of simpler ones are replaced by those.

Takes:   a traced graph with known shapes, and the mode.
Gives:   a graph of primitives; Dropout is gone in prediction and a mask in training.

What is left out: choosing between several expansions by their speed.
"""

from minihybrid.core.graph import Graph, the_graph
from minihybrid.core.name import Prefix
from minihybrid.core.sym import Symbol
from minihybrid.core.tracing import Trace, tracing


def expand(graph, training=False):
    """Replace composite operators, following the program's order.

    Random operators are numbered here in that order, so that a compiled net draws what
    the eager one draws. Likewise, who reads a state after an operator that renews it
    reads the new value; the last one becomes a head.
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
            primitive, first = node.op.eager is not None, len(trace.nodes)
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
