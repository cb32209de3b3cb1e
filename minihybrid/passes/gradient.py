"""Chapter 11. gradient: from a graph to two, one forwards and one backwards.

Takes:   an expanded graph, and the inputs whose gradients are wanted.
Gives:   the forward graph with what must be kept, and the backward graph that reads it.

The gradient is built by `autograd.gradient`, the same walk that reads the tape.
What is left out: computing a value again instead of keeping it.
"""

from minihybrid.autograd import gradient
from minihybrid.graph import Graph, topological
from minihybrid.name import NameManager
from minihybrid.op import Node
from minihybrid.passes.cse import cse
from minihybrid.passes.fold import fold
from minihybrid.sym import Symbol, var
from minihybrid.tracing import Trace, tracing


def seed_names(graph):
    """A name for the incoming gradient of each output, that no variable has yet.

    The gradient of a gradient has both: `head_grad0` and `grad_of_head_grad0`.
    """
    taken, prefix = {n.name for n in graph.variables}, "head_grad"
    while any(name.startswith(prefix) for name in taken):
        prefix = f"grad_of_{prefix}"
    return [f"{prefix}{i}" for i in range(len(graph.outputs))]


def joint_graph(graph, wanted):
    """One graph whose heads are the graph's own, then the gradients of `wanted`.

    The incoming gradients are new variables, named by `seed_names`; a state's new value
    has none.
    """
    names = {n.name: n for n in graph.variables}
    with tracing(Trace(lower=True)) as trace, NameManager():
        trace.nodes += graph.nodes
        trace.known.update(graph.nodes)
        seeds = [var(name, spec=n.specs[j]) for name, (n, j)
                 in zip(seed_names(graph), graph.outputs, strict=True)]
        refs = [(names[name], 0) for name in wanted]
        grads = gradient(graph.outputs, seeds, refs, lambda ref: Symbol([ref]))
        outs = [grads[r] if r in grads else Symbol([r]).zeros_like() for r in refs]
    heads = [*graph.heads, *(s.refs[0] for s in outs)]
    return Graph(trace.nodes, heads, graph.n_streams)


def differentiate(graph, wanted):
    """(forward, backward): two graphs that together give values and gradients.

    forward:  the graph, with the kept values after its outputs.
    backward: variables are the head gradients, the graph's own variables, and `kept0`,
              `kept1`, ..., the outputs of `forward` by number; outputs are the
              gradients of `wanted`.
    """
    n_heads = len(graph.heads)
    joint = cse(fold(joint_graph(graph, wanted), walls=True))
    heads, grads = joint.heads[:n_heads], joint.heads[n_heads:]
    forward_nodes = set(topological(heads)) | set(graph.variables)
    n_outputs, kept, inside = len(graph.outputs), {}, {}
    outputs, states, backward = list(heads[:n_outputs]), heads[n_outputs:], []
    place = {ref: i for i, ref in reversed([*enumerate(outputs)])}  # the first one's

    def source(ref):
        """What stands for a forward value in the backward graph."""
        node, i = ref
        if node not in forward_nodes or node.op is None:
            return inside.get(ref, ref)
        if node.op.view:  # a view costs nothing: make it again of what is kept
            if ref not in inside:
                base = source(node.inputs[0])
                again = Node(node.op, (base,), node.attrs, node.name, node.specs)
                backward.append(again)
                inside[ref] = (again, 0)
            return inside[ref]
        if ref not in kept:
            if ref not in place:
                place[ref] = len(outputs)
                outputs.append(ref)
            kept[ref] = Node(None, name=f"kept{place[ref]}", specs=(node.specs[i],))
            backward.append(kept[ref])
        return kept[ref], 0

    needed = set(topological(grads))
    for node in joint.nodes:
        if node not in needed or node in forward_nodes and node.op is not None:
            continue
        inputs = tuple(source(ref) for ref in node.inputs)
        now = node if inputs == node.inputs else \
            Node(node.op, inputs, node.attrs, node.name, node.specs)
        backward.append(now)
        if now is not node:
            inside.update(((node, i), (now, i)) for i in range(node.n_outputs))
    outs = [source(ref) for ref in grads]
    forward = graph.rebuilt([n for n in joint.nodes if n in forward_nodes],
                            [*outputs, *states])
    return forward.check("gradient"), Graph(backward, outs).check("gradient")
