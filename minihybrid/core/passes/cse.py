"""Chapter 15. cse: what is computed twice is computed once.

Takes:   a graph of primitives.
Gives:   a graph in which no two nodes apply one operator to the same inputs.

Two random nodes differ in their `stream`, so they stay two. So do two output layers, each
of which adds its own gradient, whatever comes from above: one would add it once.
What is left out: seeing that a + b is b + a; merging equal groups of fused nodes.
"""

from minihybrid.core.passes.rewrite import rewrite


def cse(graph):
    """Merge nodes that are equal: same operator, same attributes, same inputs."""
    first = {}  # what is applied to what -> the node that did it first

    def rule(node, inputs, emit):
        if (node.op.grad_barrier if node.op else node.values is None) or "graph" in node.attrs:
            return None  # a group's text tells its operators, not their numbers
        if node.op is None:
            value = node.values[0]
            key = (value.dtype, value.shape, value.tobytes())
        else:
            key = (node.op, repr(node.attrs), inputs)  # 0.0 == -0.0, but not in text
        if key not in first:
            first[key] = emit(node.reading(inputs))
        return [(first[key], i) for i in range(node.n_outputs)]

    return rewrite(graph, rule)
