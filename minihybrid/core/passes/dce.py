"""Chapter 15. dce: what nobody reads is not computed.

Takes:   a graph.
Gives:   the nodes that its outputs need, in the same order.
"""

from minihybrid.core.graph import the_graph, topological


def dce(graph):
    """Drop dead code: nodes from which no output can be reached."""
    alive = set(topological(the_graph("dce", graph).heads))
    return graph.rebuilt([n for n in graph.nodes if n in alive], graph.heads)
