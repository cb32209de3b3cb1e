"""remat: choose the forward values that the backward pass recomputes.

Defines: `chosen`, the nodes to recompute; `kept_refs`, the values that are still saved.

Elementwise steps are cheap, and fuse into the kernels that use them: activations, dropout
and the elementwise parts of normalizations, whose reductions are saved.
Source:  Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016, for the idea.
Not recomputed: products and reductions, which cost more than a load; random numbers, for
which the backward plan has no seed.
"""

from collections.abc import Collection

from minihybrid.core.graph import Graph, topological
from minihybrid.core.op import Node
from minihybrid.passes.reduction_schedule import Ref


def is_cheap(node: Node) -> bool:
    """Return whether a node may be recomputed: elementwise or a view, and not random."""
    op = node.op
    if op is None or op.random or op.grad_barrier:
        return False
    return op.view or op.scalar(node.attrs, node.specs[0].dtype) is not None


def kept_refs(graph: Graph, joint: Graph, again: Collection[Node]) -> dict[Ref, int]:
    """Return saved value -> nbytes, if the backward pass recomputes the nodes `again`."""
    heads, grads = joint.heads[: len(graph.heads)], joint.heads[len(graph.heads) :]
    forward = {n for n in topological(heads) if n.op is not None}
    todo = [ref for n in topological(grads) if n not in forward for ref in n.inputs]
    saved: dict[Ref, int] = {}
    visited: set[Ref] = set()
    todo += grads
    while todo:
        ref = todo.pop()
        if ref in visited or ref[0] not in forward:
            continue
        visited.add(ref)
        if ref[0] in again or ref[0].op.view and not ref[0].op.grad_barrier:
            todo += ref[0].inputs
        else:
            saved[ref] = ref[0].specs[ref[1]].nbytes
    return saved


def chosen(graph: Graph, joint: Graph, budget: float) -> frozenset[Node]:
    """Return the nodes to recompute so that the saved values fit the budget.

    budget:  bytes, or a fraction up to 1.0 of those saved without a budget. It is exceeded
             if even recomputing all cheap values doesn't suffice.

    Initially, every cheap node is recomputed. Then, largest first, a node is saved instead
    if the budget still holds, so that nothing is recomputed unnecessarily.
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
