"""Chapter 15. fold: what does not depend on the inputs is computed once, now.

Takes:   a graph of primitives with known shapes.
Gives:   a graph in which constant parts are numbers, and steps that change nothing
         (times one, the sum of one number, reshape to the same shape) are gone.

What is left out: x + 0, which is not x for negative zero, and the reordering of sums.
"""

from minihybrid.core.graph import apply, evaluate_node
from minihybrid.core.op import Node
from minihybrid.core.passes.rewrite import rewrite
from minihybrid.ops.layout import view_as
from minihybrid.ops.shapes import same_steps

LARGEST = 2**20  # bytes: a larger result is cheaper to compute again than to keep


def fold(graph, walls=False):
    """Compute constants, and drop operators that change nothing.

    walls:   keep what changes nothing but the gradient: there will be another one.
    """
    made_now = {}  # node -> its values, for nodes that depend on no input

    def rule(node, inputs, emit):
        if node.op is None:
            if node.values is not None:
                made_now[node] = node.values
            return None
        if walls and node.op.grad_barrier:
            return None
        if inputs and changes_nothing(node, inputs):
            return [inputs[0]]
        new = simpler(node, inputs)
        if new:
            node, inputs = new, new.inputs
            if inputs and changes_nothing(node, inputs):
                return [inputs[0]]
        creator = not inputs and node.op.scalar(node.attrs) is not None
        constant = not node.op.random and all(n in made_now for n, _ in inputs)
        if not constant or sum(s.nbytes for s in node.specs) > LARGEST:
            return [(emit(new), 0)] if new else None
        values = evaluate_node(node, [made_now[n][i] for n, i in inputs])
        if creator:  # stays an operator: a loop can write a literal, and load nothing
            made_now[node] = values
            return [(emit(new), 0)] if new else None
        folded = [
            emit(Node(None, name=f"{node.name}_value", values=(v,), specs=(s,)))
            for v, s in zip(values, node.specs, strict=True)
        ]
        made_now.update((n, n.values) for n in folded)
        return [(n, 0) for n in folded]

    return rewrite(graph, rule)


def simpler(node, inputs):
    """A node that does the same with less; `None` if there is none."""
    spec = node.specs[0]
    if node.op.from_nothing:
        operator, attrs = node.op.from_nothing(spec)
        return apply(operator, (), attrs, node.name)
    if node.op.reduce and spec.size == inputs[0][0].specs[inputs[0][1]].size:
        return apply(*view_as(spec.shape, inputs), node.name)
    source = inputs[0][0].op if inputs else None
    if node.op.view and source and source.view and not source.grad_barrier:
        first = inputs[0][0].inputs[0]  # the view of a view is one view
        return apply(*view_as(spec.shape, [first]), node.name)
    return None


def changes_nothing(node, inputs):
    """Whether the output is the first input, number by number."""
    spec, op = inputs[0][0].specs[inputs[0][1]], node.op
    if spec != node.specs[0]:
        return False
    if op.strides:
        return same_steps(op.strides(spec.shape, **node.attrs), spec.shape)
    return op.view or op.is_identity is not None and op.is_identity(**node.attrs)
