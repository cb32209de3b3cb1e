"""Branches: which steps of a graph a plan may skip, and when.

Takes:   a graph of primitives, fused or not.
Gives:   `conditions`, from a node to the condition without which nothing reads it.

`cond` and `while_loop` compute both branches and let `where` choose. What only one side of
such a choice reads, directly or through other such steps, needn't run for the other side:

    h = dot(x, w)             if p: h = dot(x, w)
    y = where(p, h, x)        y = where(p, h, x)      (h holds anything, and isn't chosen)

The same holds for gradients, since a gate's gradient is such a choice.
What is left out: a branch in a branch, which is skipped only with the outer one; and what a
forward pass keeps for the backward pass, which is an output, so that it's always computed.
"""

from minihybrid.core.graph import Graph
from minihybrid.core.op import Node
from minihybrid.passes.reduction_schedule import Ref

CHOICE = "{b} if {a} != 0 else {c}"  # the expression of an operator that takes one of two
Condition = tuple[Ref, bool]  # one element, and whether it has to be true


def is_branch(node: Node) -> bool:
    """Whether one element decides which of two arrays a node takes."""
    if node.op is None or node.op.expr != CHOICE:
        return False
    n, i = node.inputs[0]
    return n.specs[i].size == 1 < node.specs[0].size


def conditions(graph: Graph) -> dict[Node, Condition]:
    """node -> the condition under which some step reads its value; others are always read."""
    found: dict[Node, Condition] = {}
    reads: dict[Node, list[tuple[Node, int]]] = {}
    for node in graph.nodes:
        for place, (source, _) in enumerate(node.inputs):
            reads.setdefault(source, []).append((node, place))
    heads = {node for node, _ in graph.heads}
    for node in reversed(graph.nodes):
        wanted = {found.get(n) or _chosen(n, place) for n, place in reads.get(node, ())}
        if node not in heads and len(wanted) == 1 and (condition := wanted.pop()):
            found[node] = condition
    return found


def _chosen(node: Node, place: int) -> Condition | None:
    """When a node needs its input at a place; `None` if always."""
    if is_branch(node):
        return (node.inputs[0], place == 1) if place else None
    inner = node.attrs.get("graph")
    if inner is None:
        return None
    (source, _), sense = conditions(inner).get(inner.variables[place], ((None, 0), False))
    return (
        (node.inputs[inner.variables.index(source)], sense) if source in inner.variables else None
    )
