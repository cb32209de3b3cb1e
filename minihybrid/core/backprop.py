"""Chapter 11. Reverse-mode differentiation, shared by the tape and the graph compiler.

Defines: `gradient`, which propagates gradients from outputs to inputs.

An operator's gradient is written with operators. On the tape they run eagerly; on a graph
they add nodes, which are optimized and compiled like any others.
"""

from minihybrid.core.graph import topological
from minihybrid.core.op import HybridError, described
from minihybrid.ops.elementwise import dtype_of, in_dtype_of


def gradient(heads, head_grads, wrt, value, note=None):
    """Apply the chain rule backward: return (node, index) -> gradient for the `wrt`.

    heads, wrt:  (node, index) pairs;  head_grads: one value per head.
    value:   (node, index) -> its NDArray or Symbol.
    note:    observer, called with each node, each of its inputs, and the gradient that
             the node propagates to that input.

    An operator may return a function for a costly gradient; it is called only if needed.
    An operator with several outputs gets a tuple, with `None` where no gradient arrived.
    A gradient has the dtype of its value; integer gradients are truncated, as in MXNet.

    Algorithm:  for each node, last to first:
                    for each input: grads[input] += node.op.grad(...)
    """
    order = topological(heads)
    needed = {n for n, _ in wrt}  # nodes that depend on a value in `wrt`
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
        if all(d is not None and d.kind == "b" for d in map(dtype_of, outs)):  # no derivative
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
