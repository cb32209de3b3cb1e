"""Chapter 15. gradient: differentiate a graph into a forward and a backward graph.

The forward graph also outputs the values saved for the backward graph. Both come from
`core.backprop.gradient`, which also reads the tape.
Limits: products are saved, never recomputed (`remat` recomputes elementwise operators).
"""

from minihybrid.core.backprop import gradient
from minihybrid.core.graph import Graph, apply, topological
from minihybrid.core.name import NameManager
from minihybrid.core.op import Node
from minihybrid.core.passes.cse import cse
from minihybrid.core.passes.dce import dce
from minihybrid.core.passes.fold import fold
from minihybrid.core.passes.memory import AGAIN
from minihybrid.core.sym import Symbol, var
from minihybrid.core.tracing import Trace, tracing
from minihybrid.ops.elementwise import nothing_like


def seed_names(graph):
    """Return an unused name for the incoming gradient of each output.

    A second derivative has both `head_grad0` and `grad_of_head_grad0`.
    """
    prefix = _free(graph, "head_grad", "grad_of_")
    return [f"{prefix}{i}" for i in range(len(graph.outputs))]


def kept_name(graph):
    """Return an unused prefix for the names of saved values; the output number follows it."""
    return _free(graph, "kept", "also_")


def _free(graph, prefix, longer):
    """Return a prefix that no variable's name has."""
    names = [n.name for n in graph.variables]
    while any(name.startswith(prefix) for name in names):
        prefix = longer + prefix
    return prefix


def _gradients(graph, wrt, present=None):
    """Return (all nodes, name -> reference to its gradient) for the reachable `wrt`.

    present:  the outputs whose gradients are passed in; by default, all. A missing one
              isn't a gradient of zeros: it doesn't turn infinities into NaN, and it
              doesn't trigger output layers, which ignore their incoming gradient.
    """
    names = {n.name: n for n in graph.variables}
    chosen = range(len(graph.outputs)) if present is None else present
    dtypes = [n.specs[j].dtype for n, j in graph.outputs]
    chosen = [i for i in chosen if dtypes[i].kind != "b"]  # bools have no gradient
    with tracing(Trace(lower=True)) as trace, NameManager():
        trace.nodes += graph.nodes
        trace.known.update(graph.nodes)
        seeds, heads = seed_names(graph), [graph.outputs[i] for i in chosen]
        seeds = [var(seeds[i], spec=n.specs[j]) for i, (n, j) in zip(chosen, heads, strict=True)]
        refs = {name: (names[name], 0) for name in wrt}
        grads = gradient(heads, seeds, refs.values(), lambda ref: Symbol([ref]))
    return trace.nodes, {name: grads[ref].refs[0] for name, ref in refs.items() if ref in grads}


def joint_graph(graph, wrt):
    """Return one graph whose heads are the graph's own, then the gradients of `wrt`.

    The incoming gradients are new variables, named by `seed_names`; new values of states
    have none. Unreachable variables get zeros.
    """
    nodes, grads = _gradients(graph, wrt)
    names = {n.name: n for n in graph.variables}
    for name in wrt:
        if name not in grads:
            nodes.append(apply(*nothing_like((names[name], 0)), f"no_{name}"))
            grads[name] = nodes[-1], 0
    return Graph(nodes, [*graph.heads, *(grads[name] for name in wrt)], graph.n_streams)


def gradient_of(graph, wrt, present, saved):
    """Return (graph, names): the gradients of the reachable `wrt`, for some outputs.

    present:  the outputs whose gradients are passed in.
    saved:    the outputs whose values are passed in, named `kept0` etc. (`kept_name`);
              all other values are recomputed.
    """
    nodes, grads = _gradients(graph, wrt, present)
    saved_vars, name = {}, kept_name(graph)
    for i in saved:
        ref = graph.outputs[i]
        if ref[0].op is not None and ref not in saved_vars:
            saved_vars[ref] = Node(None, name=f"{name}{i}", specs=(ref[0].specs[ref[1]],))
    again = [*saved_vars.values()]
    mapped = {ref: (node, 0) for ref, node in saved_vars.items()}
    for node in nodes:
        now = node.reading(tuple(mapped.get(ref, ref) for ref in node.inputs))
        again.append(now)
        for i in range(node.n_outputs if now is not node else 0):
            mapped.setdefault((node, i), (now, i))
    heads = [mapped.get(ref, ref) for ref in grads.values()]
    return cse(fold(dce(Graph(again, heads)), True, strict=False)), list(grads)


def differentiate(graph, wrt):
    """Return (forward, backward): graphs that compute values and gradients.

    forward:  the graph, with the saved values after its outputs.
    backward: reads the head gradients, the graph's own variables, and `kept0`, `kept1`,
              ..., the outputs of `forward` by number; outputs the gradients of `wrt`.
    """
    return split(graph, joint_graph(graph, wrt))


def forward_backward(graph, wrt, remat=None):
    """Return (forward, backward, names), like `differentiate`, for reachable variables.

    remat:   a budget for the saved values (`passes/remat.py`).
    """
    nodes, grads = _gradients(graph, wrt)
    joint = Graph(nodes, [*graph.heads, *grads.values()], graph.n_streams)
    return *split(graph, joint, remat), list(grads)


def split(graph, joint, remat=None):
    """Split a graph's joint graph into (forward, backward)."""
    n_heads = len(graph.heads)
    joint = cse(fold(joint, walls=True))
    heads, grads = joint.heads[:n_heads], joint.heads[n_heads:]
    forward_nodes = set(topological(heads)) | set(graph.variables)
    again = ()
    if remat is not None:
        from minihybrid.passes.remat import chosen

        again = chosen(graph, joint, remat)
    n_outputs, saved, inside = len(graph.outputs), {}, {}
    outputs, states, backward = list(heads[:n_outputs]), heads[n_outputs:], []
    place = {ref: i for i, ref in reversed([*enumerate(outputs)])}  # first occurrence
    name = kept_name(graph)

    def is_again(node):
        return node in again or node.op.view and not node.op.grad_barrier  # a view costs nothing

    def compute_again(node):
        """Enter a node, and before it those that it reads; a loop with a stack of its own."""
        stack = [node]
        while stack:
            node = stack[-1]
            first = [
                n
                for n, i in node.inputs
                if n.op is not None and is_again(n) and (n, i) not in inside
            ]
            stack += first
            if not first:
                stack.pop()
                if (node, 0) not in inside:
                    name = node.name if node.op.view else f"{node.name}{AGAIN}"
                    ins = tuple(map(source, node.inputs))
                    backward.append(Node(node.op, ins, node.attrs, name, node.specs))
                    inside.update(((node, i), (backward[-1], i)) for i in range(node.n_outputs))

    def source(ref):
        """Return the backward graph's reference to a forward value."""
        node, i = ref
        if node not in forward_nodes or node.op is None:
            return inside.get(ref, ref)
        if is_again(node):
            if ref not in inside:
                compute_again(node)
            return inside[ref]
        if ref not in saved:
            if ref not in place:
                place[ref] = len(outputs)
                outputs.append(ref)
            saved[ref] = Node(None, name=f"{name}{place[ref]}", specs=(node.specs[i],))
            backward.append(saved[ref])
        return saved[ref], 0

    needed = set(topological(grads))
    for node in joint.nodes:
        if node not in needed or node in forward_nodes and node.op is not None:
            continue
        now = node.reading(tuple(source(ref) for ref in node.inputs))
        backward.append(now)
        if now is not node:
            inside.update(((node, i), (now, i)) for i in range(node.n_outputs))
    outs = [source(ref) for ref in grads]
    forward = graph.rebuilt([n for n in joint.nodes if n in forward_nodes], [*outputs, *states])
    return forward.check("gradient"), Graph(backward, outs).check("gradient")
