"""pool_early: the largest number first, then what is done to it.

Takes:   a graph of primitives without dead code; `fuse` begins with this.
Gives:   a graph in which a maximum over windows stands right after its convolution, in
         one node with it, and what stood between comes after.

`relu`, and adding a channel's bias, never put a smaller number before a larger one, not
even after rounding: so the maximum of their results is their result for the maximum,
to the last bit, and it takes a quarter of the work for windows of 2 x 2. The output of
the convolution is then no array at all.

    pool(relu(conv(x, w) + b))    becomes    relu(pool_of_conv(x, w) + b)

What is left out: an infinite bias. Against a sum that is infinite the other way it
gives NaN, which a larger number in the window now hides.
"""

from collections.abc import Callable

from minihybrid.core.graph import Graph, apply, the_graph
from minihybrid.core.op import Node
from minihybrid.core.passes.dce import dce
from minihybrid.core.passes.rewrite import rewrite


def pool_early(graph: Graph) -> Graph:
    """Move maxima over windows to the convolutions whose outputs only they read."""
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
    """Whether a node maps numbers one by one, none past another of its channel."""
    if node.op is None or not node.op.rises:
        return False
    shape, (first, *others) = node.specs[0].shape, [n.specs[i].shape for n, i in node.inputs]
    return first == shape and all(s == (1, shape[1], *[1] * (len(shape) - 2)) for s in others)
