"""Chapter 15. dce: dead-code elimination."""

from minihybrid.core.graph import the_graph, topological


def dce(graph):
    """Remove nodes on which no output depends; keep the order of the others."""
    alive = set(topological(the_graph("dce", graph).heads))
    return graph.rebuilt([n for n in graph.nodes if n in alive], graph.heads)
