"""pool_early: move max pooling to the convolution, ahead of monotone operators.

`relu` and the addition of a channel's bias are monotone, rounding included. So the maximum
of their results equals their result for the maximum, bit for bit, and for 2 x 2 windows
they do a quarter of the work. The convolution's output is never stored.

    pool(relu(conv(x, w) + b))    becomes    relu(pool_of_conv(x, w) + b)

`fuse` runs this first, on a graph of primitives without dead code.
Limits: an infinite bias plus an infinite sum of the opposite sign is NaN, which a larger
element in the window now hides.
"""

from collections.abc import Callable

from minihybrid.core.graph import Graph, apply, the_graph
from minihybrid.core.op import Node
from minihybrid.core.passes.dce import dce
from minihybrid.core.passes.rewrite import rewrite


def pool_early(graph: Graph) -> Graph:
    """Move max pooling to the convolution if it is the only user."""
    if not any(node.op and node.op.peak for node in the_graph("fuse", graph).nodes):
        return graph
    uses, heads = graph.uses(), set(graph.heads)

    def rule(node: Node, inputs: tuple, emit: Callable) -> list | None:
        if node.op is None or not node.op.peak:
            return None
        (old, _), (new, _) = node.inputs[0], inputs[0]
        between = []
        while len(uses[old, 0]) == 1 and (old, 0) not in heads and _keeps_order(old):
            between.append((old, new))
            (old, _), (new, _) = old.inputs[0], new.inputs[0]
        both = len(uses[old, 0]) == 1 and (old, 0) not in heads and node.op.peak(new, node.attrs)
        if not both:
            return None
        operator, attrs = both
        now = emit(apply(operator, new.inputs, attrs, node.name), old)
        for old, n in reversed(between):
            now = emit(apply(n.op, ((now, 0), *n.inputs[1:]), n.attrs, n.name), old)
        return [(now, 0)]

    return dce(rewrite(graph, rule))


def _keeps_order(node: Node) -> bool:
    """Return whether a node is elementwise and monotone within each channel."""
    if node.op is None or not node.op.monotone:
        return False
    shape, (first, *others) = node.specs[0].shape, [n.specs[i].shape for n, i in node.inputs]
    return first == shape and all(s == (1, shape[1], *[1] * (len(shape) - 2)) for s in others)
