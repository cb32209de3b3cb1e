"""Chapter 11. pool_early: the largest number first, then what is done to it.

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

from minihybrid.graph import apply
from minihybrid.op import OPS
from minihybrid.ops.convolution import conv
from minihybrid.ops.pooling import conv_pool, pool_max, pools_on_the_way
from minihybrid.passes.dce import dce
from minihybrid.passes.rewrite import rewrite


def pool_early(graph):
    """Move maxima over windows to the convolutions whose outputs only they read."""
    if not any(node.op is pool_max for node in graph.nodes):
        return graph
    uses, heads = graph.uses(), set(graph.heads)

    def rule(node, inputs, emit):
        if node.op is not pool_max:
            return None
        (old, _), (new, _) = node.inputs[0], inputs[0]
        between = []
        while len(uses[old, 0]) == 1 and (old, 0) not in heads and _keeps_order(old):
            between.append(new)
            (old, _), (new, _) = old.inputs[0], new.inputs[0]
        if old.op is not conv or len(uses[old, 0]) > 1 or (old, 0) in heads or \
                not pools_on_the_way(*(n.specs[i] for n, i in new.inputs), new.attrs,
                                     node.attrs):
            return None
        now = emit(apply(conv_pool, new.inputs,
                         {"conv": new.attrs, "pool": node.attrs}, node.name))
        for n in reversed(between):
            now = emit(apply(n.op, ((now, 0), *n.inputs[1:]), n.attrs, n.name))
        return [(now, 0)]

    return dce(rewrite(graph, rule))


def _keeps_order(node):
    """Whether a node maps numbers one by one, none past another of its channel."""
    if node.op is OPS["broadcast_add"]:
        (n, i), shape = node.inputs[1], node.specs[0].shape
        return n.specs[i].shape == (1, shape[1], *[1] * (len(shape) - 2)) and \
            node.inputs[0][0].specs[node.inputs[0][1]].shape == shape
    return node.op is OPS["relu"]
