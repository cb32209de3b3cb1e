"""Chapter 15. fold: constant folding, and removal of identities.

Values that don't depend on inputs are computed at compile time. Multiplication by one,
the sum of one element and reshaping to the same shape are removed.
Not simplified: x + 0, which isn't x for negative zero, and anything that reorders sums.
"""

from contextlib import suppress

from minihybrid.core.graph import apply, evaluate_node, the_graph
from minihybrid.core.op import HybridError, Node
from minihybrid.core.passes.rewrite import rewrite
from minihybrid.ops.layout import view_as
from minihybrid.ops.shapes import same_steps

MAX_FOLDED = 2**20  # bytes: a larger constant is cheaper to recompute than to store


def fold(graph, walls=False, strict=True):
    """Fold constants and remove identities.

    walls:   keep gradient barriers, because the graph will be differentiated again.
    strict:  let an error of an operator out. If not, its node stays: in a branch that isn't
             taken, a wrong index is no error.
    """
    constants = {n: n.values for n in the_graph("fold", graph).nodes if not n.op and n.values}

    def rule(node, inputs, emit):
        if node.op is None or walls and node.op.grad_barrier:
            return None
        if inputs and changes_nothing(node, inputs):
            return [inputs[0]]
        new = simpler(node, inputs)
        if new:
            node, inputs = new, new.inputs
            if inputs and changes_nothing(node, inputs):
                return [inputs[0]]
        creator = not inputs and node.op.scalar(node.attrs) is not None
        constant = not node.op.random and all(n in constants for n, _ in inputs)
        values = None
        if constant and sum(s.nbytes for s in node.specs) <= MAX_FOLDED:
            with suppress(() if strict else HybridError):
                values = evaluate_node(node, [constants[n][i] for n, i in inputs])
        if creator and values:
            constants[node] = values
        if creator or not values:  # a creator stays: loops inline it as a literal
            return [(emit(new), 0)] if new else None
        folded = [
            emit(Node(None, name=f"{node.name}_value", values=(v,), specs=(s,)))
            for v, s in zip(values, node.specs, strict=True)
        ]
        constants.update((n, n.values) for n in folded)
        return [(n, 0) for n in folded]

    return rewrite(graph, rule)


def simpler(node, inputs):
    """Return a cheaper node that computes the same, or `None`."""
    spec = node.specs[0]
    if node.op.from_nothing:
        operator, attrs = node.op.from_nothing(spec)
        return apply(operator, (), attrs, node.name)
    if node.op.reduce and spec.size == inputs[0][0].specs[inputs[0][1]].size:
        return apply(*view_as(spec.shape, inputs), node.name)
    source = inputs[0][0].op if inputs else None
    if node.op.view and source and source.view and not source.grad_barrier:
        first = inputs[0][0].inputs[0]  # merge consecutive views
        return apply(*view_as(spec.shape, [first]), node.name)
    return None


def changes_nothing(node, inputs):
    """Return whether the output equals the first input, element by element."""
    spec, op = inputs[0][0].specs[inputs[0][1]], node.op
    if spec != node.specs[0]:
        return False
    if op.strides:
        return same_steps(op.strides(spec.shape, **node.attrs), spec.shape)
    return op.view or op.is_identity is not None and op.is_identity(**node.attrs)
