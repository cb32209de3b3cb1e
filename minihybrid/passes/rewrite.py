"""Chapter 11. The loop that every rewriting pass shares.

Takes:   a graph and a rule for one node.
Gives:   the new graph; the old one is untouched, and unchanged nodes are shared.
"""

from minihybrid.op import Node


def rewrite(graph, rule):
    """Build a graph anew, node by node.

    rule:    (node, new inputs, emit) -> references that take the place of the node's
             outputs, or `None` to keep the node. `emit(node)` puts a new node before
             it.
    """
    mapped, nodes = {}, []

    def emit(node):
        nodes.append(node)
        return node

    for node in graph.nodes:
        inputs = tuple(mapped[ref] for ref in node.inputs)
        refs = rule(node, inputs, emit)
        if refs is None:
            if inputs != node.inputs:
                node_now = Node(node.op, inputs, node.attrs, node.name, node.specs)
            else:
                node_now = node
            emit(node_now)
            refs = [(node_now, i) for i in range(node.n_outputs)]
        for i, ref in enumerate(refs):
            mapped[node, i] = ref
    return graph.rebuilt(nodes, [mapped[ref] for ref in graph.heads])
