"""Chapter 07. expand: operators made of simpler ones are replaced by those.

Takes:   a traced graph with known shapes, and the mode.
Gives:   a graph of primitives; Dropout is gone in prediction and a mask in training.

What is left out: choosing between several expansions by their speed.
"""

from minihybrid.graph import Graph
from minihybrid.sym import NameManager, Symbol, Trace, tracing


def expand(graph, training=False):
    """Replace composite operators, following the program's order.

    Random operators are numbered here in that order, so that a compiled net draws what
    the eager one draws.
    """
    mapped = {}
    with tracing(Trace(lower=True, training=training)) as trace:
        for node in graph.nodes:
            if node.op is None:
                trace.add(node)
                mapped[node, 0] = (node, 0)
                continue
            inputs = [Symbol([mapped[ref]]) for ref in node.inputs]
            primitive = node.op.eager is not None
            with NameManager(prefix="" if primitive else f"{node.name}_"):
                out = Symbol.interpret(node.op, inputs, node.attrs,
                                       node.name if primitive else None)
            for i, ref in enumerate(out.refs):
                mapped[node, i] = ref
    heads = [mapped[ref] for ref in graph.heads]
    return Graph(trace.nodes, heads, trace.n_streams)
