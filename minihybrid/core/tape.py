"""Chapter 11. Autograd: the tape is a graph with values.

Defines: `record`, `pause`, `train_mode`, `predict_mode`, `backward`, and the parts of
         the backward pass over the tape: `seeds_of`, `array_of`, `free`.

What is left out: writes that arrays don't see, through NumPy's or other libraries' views.
"""

from minihybrid.core import hooks
from minihybrid.core.array import STATE, Leaf, NDArray, arrays
from minihybrid.core.backprop import gradient
from minihybrid.core.graph import topological
from minihybrid.core.op import AttrError, HybridError, Node, ShapeError
from minihybrid.core.switches import scoped
from minihybrid.ops.elementwise import ones_like, zeros_like
from minihybrid.ops.random import STREAM


def modes(**flags):
    """Set flags of `STATE` inside this `with` block."""
    STREAM.repeats |= any(flags.get(name) is True for name in ("recording", "training"))
    return scoped(STATE, **flags)


def record(train_mode=True):
    """Record operators inside this `with` block, by default in training mode."""
    return modes(recording=True, training=train_mode)


def pause(train_mode=False):
    """Stop recording inside this `with` block."""
    return modes(recording=False, training=train_mode)


def train_mode():
    """Set training mode (Dropout drops) inside this `with` block."""
    return modes(training=True)


def predict_mode():
    """Set prediction mode inside this `with` block."""
    return modes(training=False)


def backward(heads, head_grads=None, retain_graph=False, train_mode=True):
    """Write the gradient of the heads' sum into `.grad` of every variable they depend on.

    Units:   `.grad` has the variable's shape and dtype.
    Raises:  HybridError if a head was not computed under `record()`.
    """
    heads = heads if isinstance(heads, (list, tuple)) else [heads]
    refs, seeds = seeds_of(heads, head_grads)
    nodes = _dependencies(refs)
    leaves = [n for n in nodes if n.op is None and isinstance(n.info, Leaf)]
    with modes(recording=False, training=train_mode, lent=hooks.donatable(nodes, leaves, seeds)):
        grads = gradient(refs, seeds, [(n, 0) for n in leaves], array_of)
        for leaf in leaves:
            info, g = leaf.info, grads.get((leaf, 0))
            if info.req == "null":
                continue
            info.fresh = True
            g = zeros_like(info.grad) if g is None else g  # no gradient arrived: 0
            if g.data is not info.grad.data:  # else a plan wrote it in place
                info.grad[...] = info.grad + g if info.req == "add" else g
    if not retain_graph:
        free(refs)


def seeds_of(heads, head_grads):
    """Return (references to the heads, their incoming gradients)."""
    for head in arrays("backward", heads):
        if head.node is None:
            raise HybridError(
                "backward: the array is not on the tape; compute it inside "
                "`with autograd.record():` from arrays with attach_grad(), by operators that have "
                "a gradient (argmax, for example, has none)"
            )
    head_grads = [None] * len(heads) if head_grads is None else head_grads
    head_grads = head_grads if isinstance(head_grads, (list, tuple)) else [head_grads]
    if len(head_grads) != len(heads):
        raise AttrError(
            f"backward: {len(head_grads)} head gradients are given for "
            f"{len(heads)} heads; give one for each, or None"
        )
    arrays("backward: head gradients", [g for g in head_grads if g is not None])
    for k, (h, g) in enumerate(zip(heads, head_grads, strict=True)):
        if g is not None and g.shape != h.shape:
            raise ShapeError(
                f"backward: head gradient {k} has shape {g.shape}, but "
                f"that of its head, {h.shape}, is needed"
            )
    seeds = [
        (ones_like(h.detach()) if g is None else g).as_nd_ndarray()
        for h, g in zip(heads, head_grads, strict=True)
    ]
    return [(h.node, h.index) for h in heads], seeds


def array_of(ref):
    """Return the array at a tape reference, as it was when it was recorded."""
    node, i = ref
    written = type(node) is not Node and node.snapshot and node.snapshot.values is not None
    return NDArray(hooks.old_values(node) if written else node.values[i], node, i)


def _dependencies(refs):
    """Return the nodes on which these tape references depend, each once."""
    visited, nodes, ahead = set(refs), {}, [*refs]
    while ahead:
        node, i = ahead.pop()
        nodes[node] = None
        if node.inputs:
            new = [r for r in node.op.dependencies(i, node.inputs) if r not in visited]
            visited.update(new)
            ahead += new
    return nodes


def free(refs):
    """Free the tape: drop its arrays; `inputs = None` marks a freed node."""
    for node in topological(refs):
        if node.op is not None:
            node.inputs, node.values = None, None
