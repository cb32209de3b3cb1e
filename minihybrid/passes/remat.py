"""remat: which forward values the backward pass computes again instead of reading.

Takes:   a graph, its joint graph with gradients, and a budget.
Gives:   `chosen`, the nodes to compute again; `kept_refs`, the values that are still kept.

Elementwise steps are cheap, and compiled plans fuse them into the kernels that read them. That
is activations, dropout and the elementwise parts of normalization, whose reductions stay.
Source:  Chen and others, Training Deep Nets with Sublinear Memory Cost, 2016, for the idea.
What is left out: products and reductions, which cost more than a load; random numbers, of which
the backward plan has no seed.
"""

from collections.abc import Collection

from minihybrid.core.graph import Graph, topological
from minihybrid.core.op import Node
from minihybrid.passes.reduction_schedule import Ref


def is_cheap(node: Node) -> bool:
    """Whether a node may be computed again: elementwise, or a view, and not random."""
    op = node.op
    if op is None or op.random or op.grad_barrier:
        return False
    return op.view or op.scalar(node.attrs, node.specs[0].dtype) is not None


def kept_refs(graph: Graph, joint: Graph, again: Collection[Node]) -> dict[Ref, int]:
    """value -> its bytes, of what the backward pass reads if it computes the nodes `again`."""
    heads, grads = joint.heads[: len(graph.heads)], joint.heads[len(graph.heads) :]
    forward = {n for n in topological(heads) if n.op is not None}
    todo = [ref for n in topological(grads) if n not in forward for ref in n.inputs]
    kept: dict[Ref, int] = {}
    seen: set[Ref] = set()
    todo += grads
    while todo:
        ref = todo.pop()
        if ref in seen or ref[0] not in forward:
            continue
        seen.add(ref)
        if ref[0] in again or ref[0].op.view and not ref[0].op.grad_barrier:
            todo += ref[0].inputs
        else:
            kept[ref] = ref[0].specs[ref[1]].nbytes
    return kept


def chosen(graph: Graph, joint: Graph, budget: float) -> frozenset[Node]:
    """The nodes to compute again, so that the forward pass keeps no more bytes than the budget.

    budget:  bytes, or up to 1.0 a share of those kept without a budget. What exceeds it although
             all cheap values are computed again is kept.

    At first each cheap node is computed again. Then each is kept, largest work first, if what is
    kept does not become more than the budget allows: no node is computed again in vain.
    """
    outputs = {*graph.outputs}  # in the caller's memory anyway

    def nbytes(again: Collection[Node]) -> int:
        return sum(n for ref, n in kept_refs(graph, joint, again).items() if ref not in outputs)

    limit = budget * nbytes(frozenset()) if budget <= 1 else budget
    cheap = [n for n in topological(joint.heads[: len(graph.heads)]) if is_cheap(n)]
    again = set(cheap)
    now = nbytes(again)
    for node in sorted(cheap, key=lambda n: -n.specs[0].size):
        less = nbytes(again - {node})
        if less <= max(limit, now):
            again.remove(node)
            now = less
    return frozenset(again)
