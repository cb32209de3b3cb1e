"""side_by_side: turn a sum of zero-padded slices into a concatenation.

The gradient of a slice is zero-padded to the full shape, and the gradient of a split is a
sum of these: for an LSTM's four gates, four arrays of full width. A concatenation needs no
zeros.

    put(a, 0:4) + put(b, 4:8)    becomes    concat(a, b)

Negative zeros are preserved, where adding zero would make them positive.
`fuse` runs this first, on a graph of primitives without dead code.
Not supported: slices with gaps or overlaps; sums of very many slices.
"""

from collections.abc import Callable

from minihybrid.core.graph import Graph, apply, the_graph
from minihybrid.core.op import Node
from minihybrid.core.passes.dce import dce
from minihybrid.core.passes.rewrite import rewrite
from minihybrid.passes.reduction_schedule import Ref

MAX_PARTS = 32  # parts of one sum
SUM = "{a} + {b}"


def side_by_side(graph: Graph) -> Graph:
    """Replace sums of zero-padded slices by concatenations."""
    if not any(node.op and node.op.padded_slice for node in the_graph("fuse", graph).nodes):
        return graph
    uses, heads = graph.uses(), set(graph.heads)

    def alone(ref: Ref) -> bool:
        return len(uses.get(ref, ())) == 1 and ref not in heads

    def parts_of(node: Node) -> list[tuple] | None:
        """Return a sum's slices [(axis, begin, end, data, operator, attrs)], or `None`."""
        slices: list[tuple] = []
        todo = [(node, 0)]
        while todo and len(slices) <= MAX_PARTS:
            n, i = todo.pop()
            if n.op is None or (n is not node and not alone((n, i))):
                return None
            if n.op.padded_slice:
                part = n.op.padded_slice(n.specs[0].shape, **n.attrs)
                if part is None:
                    return None
                slices.append((*part[:3], n.inputs[0], *part[3:]))
            elif n.op.expr == SUM and all(m.specs[j] == n.specs[0] for m, j in n.inputs):
                todo += n.inputs
            else:
                return None
        return None if todo else sorted(slices, key=lambda part: part[:3])

    now: dict[Ref, Ref] = {}  # old reference -> new one, for all inputs so far

    def rule(node: Node, inputs: tuple, emit: Callable) -> list | None:
        now.update(zip(node.inputs, inputs, strict=True))
        if node.op is None or node.op.expr != SUM:
            return None
        parts = parts_of(node)
        if not parts or len({axis for axis, *_ in parts}) != 1:
            return None
        axis, *_, operator, attrs = parts[0]
        ends = [0, *(end for _, _, end, *_ in parts)]
        if [begin for _, begin, *_ in parts] != ends[:-1] or ends[-1] != node.specs[0].shape[axis]:
            return None
        refs = tuple(now[ref] for _, _, _, ref, _, _ in parts)
        return [(emit(apply(operator, refs, attrs, node.name)), 0)]

    return dce(rewrite(graph, rule))
