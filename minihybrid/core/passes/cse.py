"""Chapter 15. cse: common-subexpression elimination.

Afterward, no two nodes apply the same operator to the same inputs. Two random nodes
differ in their `stream` and aren't merged; nor are two output layers (`grad_barrier`),
because each adds a gradient of its own, whatever gradient arrives.
Limits: a + b and b + a stay distinct; equal groups of fused nodes aren't merged.
"""

from minihybrid.core.passes.rewrite import rewrite


def cse(graph):
    """Merge nodes that are equal: same operator, same attributes, same inputs."""
    first = {}  # (operator, attributes, inputs) -> its first node

    def rule(node, inputs, emit):
        if (node.op.grad_barrier if node.op else node.values is None) or "graph" in node.attrs:
            return None  # its text omits the constants inside
        if node.op is None:
            value = node.values[0]
            key = (value.dtype, value.shape, value.tobytes())
        else:
            key = (node.op, repr(node.attrs), inputs)  # repr, because 0.0 == -0.0
        if key not in first:
            first[key] = emit(node.reading(inputs))
        return [(first[key], i) for i in range(node.n_outputs)]

    return rewrite(graph, rule)
