"""Chapter 15. The loop shared by all rewriting passes.

A rule maps one node. The old graph isn't changed, and unchanged nodes are shared.
"""

from minihybrid.core.graph import GraphError, are_places, the_graph
from minihybrid.core.op import Node, Op, described


def rewrite(graph, rule):
    """Rebuild a graph node by node.

    rule:    (node, new inputs, emit) -> references that replace the node's outputs, or
             `None` to keep the node. `emit(node)` inserts a new node before it;
             `emit(node, old)` also marks it as the replacement of an older one.
    Raises:  GraphError if the rule returns anything else.
    """
    mapped, nodes, emitted, origins = {}, [], set(), {}

    def emit(node, *replaced):
        if not isinstance(node, Node) or not isinstance(node.op, (Op, type(None))):
            raise GraphError(
                f"rewrite: emit({described(node)}) is no node of an operator; make one "
                "with apply(op, inputs, attrs)"
            )
        nodes.append(node)
        emitted.add(node)
        origins[node] = set().union(*map(graph.origin, replaced))
        return node

    for node in the_graph("rewrite", graph).nodes:
        inputs, first = tuple(mapped[ref] for ref in node.inputs), len(nodes)
        refs = rule(node, inputs, emit)
        if refs is None:
            now = emit(node.reading(inputs))
            refs = [(now, i) for i in range(node.n_outputs)]
        else:
            check_places(node, refs, emitted)
        for new in (*nodes[first:], *(n for n, _ in refs)):
            origins[new] |= graph.origin(node)
        for i, ref in enumerate(refs):
            mapped[node, i] = ref
    origins = graph.origins | origins  # keeps nodes inside fused ones
    return graph.rebuilt(nodes, [mapped[ref] for ref in graph.heads], origins)


def check_places(node, refs, emitted):
    """Raise unless the references can replace a node's outputs."""
    n = node.n_outputs
    fits = are_places(refs) and len(refs) == n
    if not fits or not all(m in emitted for m, _ in refs):
        raise GraphError(
            f"rewrite: in place of {node!r} the rule gave {described(refs)}, but a list of {n} "
            "(node, output index) of nodes that were emitted is needed, one for each output; "
            "None keeps the node"
        )
