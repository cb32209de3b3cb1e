"""Chapter 11. The chain rule: one walk that the tape and the graph compiler share.

Takes:   nodes of a tape or of a graph, and the gradients of its outputs.
Gives:   `gradient`, the gradients of what is wanted.

An operator's gradient is written with operators. On the tape they compute; on a graph
they build, and what they build is optimised and compiled like everything else.
What is left out: computing a value again instead of keeping it.
"""

from minihybrid.core.graph import topological
from minihybrid.core.op import HybridError, described
from minihybrid.ops.elementwise import dtype_of, in_dtype_of


def gradient(heads, head_grads, wanted, value, note=None):
    """(node, index) -> its gradient, for those `wanted`: the chain rule, outputs first.

    heads, wanted:  (node, index) pairs;  head_grads: one value a head.
    value:   (node, index) -> the NDArray or Symbol that stands for it.
    note:    for those who want to watch: called with each node, each of its inputs,
             and the gradient that the node hands to it.

    A costly gradient may be a function, which is called only if its input's is needed.
    An operator with several outputs gets a tuple, with `None` where nothing came back.
    A gradient has the dtype of its value: that of whole numbers is cut to whole ones,
    as in MXNet.

    In loops:   for each node, last to first:
                    for each input: grads[input] += node.op.grad(...)
    """
    order = topological(heads)
    needed = {n for n, _ in wanted}  # the nodes on a path from something wanted
    for node in order:
        if node.inputs is None:
            raise HybridError(
                "backward: a part of this tape was freed by an earlier "
                "backward; pass retain_graph=True there to keep it"
            )
        if any(n in needed for n, _ in node.inputs):
            needed.add(node)
    grads = {}
    for ref, g in zip(heads, head_grads, strict=True):
        g = in_dtype_of(value(ref), g)
        grads[ref] = grads[ref] + g if ref in grads else g
    for node in reversed(order):
        refs = [(node, i) for i in range(node.n_outputs)]
        if not (node.op and node.op.grad) or node not in needed or grads.keys().isdisjoint(refs):
            continue
        outs = [value(r) for r in refs]
        if all(d is not None and d.kind == "b" for d in map(dtype_of, outs)):  # it does not slope
            continue
        gs = [grads.get(r) for r in refs]
        g, out = (gs[0], outs[0]) if len(refs) == 1 else (tuple(gs), tuple(outs))
        inputs = [value(r) for r in node.inputs]
        g_ins = node.op.grad(g, out, *inputs, **node.attrs)
        if not isinstance(g_ins, (tuple, list)) or [
            g is None or hasattr(g, "level") or callable(g) for g in g_ins
        ] != [True] * len(inputs):
            raise HybridError(
                f"{node.op.name}: its grad gave {described(g_ins)}, but a tuple is needed that has "
                f"an array or a symbol, or None, for each of its inputs, which are {len(inputs)}"
            )
        for ref, v, g_in in zip(node.inputs, inputs, g_ins, strict=True):
            if g_in is not None and ref[0] in needed:
                g_in = in_dtype_of(v, g_in if hasattr(g_in, "level") else g_in())
                grads[ref] = grads[ref] + g_in if ref in grads else g_in
                if note:
                    note(node, ref, g_in)
    return grads
