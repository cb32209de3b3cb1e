"""Automatic differentiation under MXNet's names.

Defines: the names of the core's `autograd`; `grad` and `mark_variables`; `get_symbol`, the
         tape as a symbol; and `Function`, a differentiable function with its own gradient.

Not supported: gradients through in-place writes.
"""

from minihybrid.core import hooks, lazy
from minihybrid.core.array import STATE, Leaf, NDArray, arrays, refs_of
from minihybrid.core.backprop import gradient
from minihybrid.core.graph import topological
from minihybrid.core.hooks import own_names
from minihybrid.core.name import Prefix
from minihybrid.core.op import AttrError, HybridError, Node, Op, boolean, checked
from minihybrid.core.sym import Symbol, as_symbol, var
from minihybrid.core.tape import array_of, free, modes, seeds_of
from minihybrid.core.tape import backward as backward
from minihybrid.core.tape import pause as pause
from minihybrid.core.tape import predict_mode as predict_mode
from minihybrid.core.tape import record as record
from minihybrid.core.tape import train_mode as train_mode
from minihybrid.ops import OPS
from minihybrid.ops.elementwise import zeros_like
from minihybrid.ops.random import STREAM


def is_recording():
    """Return whether operators are being recorded."""
    return STATE.recording


def is_training():
    """Return whether the mode is training."""
    return STATE.training


def set_training(train):
    """Set the mode; return the previous one."""
    train = checked("set_training", "train", train, boolean)
    before, STATE.training = STATE.training, train
    STREAM.repeats = STREAM.repeats or train
    return before


def set_recording(recording):
    """Turn recording on or off; return the previous state."""
    recording = checked("set_recording", "recording", recording, boolean)
    before, STATE.recording = STATE.recording, recording
    STREAM.repeats = STREAM.repeats or recording
    return before


def grad(heads, variables, head_grads=None, retain_graph=None, create_graph=False, train_mode=True):
    """Return the gradients of the heads' sum with respect to the variables: a list of arrays.

    `create_graph` records the backward pass, so that the gradients can be
    differentiated again.
    """
    variables = arrays("autograd.grad", variables)
    if not variables:
        raise AttrError(
            "autograd.grad: the list of variables is empty; name the "
            "arrays whose gradients you want"
        )
    heads = heads if isinstance(heads, (list, tuple)) else [heads]
    refs_of(variables)  # rejects stale views of arrays written since
    for v in variables:
        if v.node is None:
            raise HybridError(
                "autograd.grad: a variable has no place on the tape; "
                "call its attach_grad() before record()"
            )
    refs, seeds = seeds_of(heads, head_grads)
    with modes(recording=create_graph, training=train_mode):
        grads = gradient(refs, seeds, [(v.node, v.index) for v in variables], array_of)
        result = [grads.get((v.node, v.index)) for v in variables]
        for k, (g, v) in enumerate(zip(result, variables, strict=True)):
            if g is None or create_graph and g.node is None:
                zeros = zeros_like(v)  # zeros on the tape, so that they're differentiable
                g = zeros if g is None else zeros + g
            result[k] = type(v)(g.data, g.node, g.index)
    if not (create_graph if retain_graph is None else retain_graph):
        free(refs)
    return result


def mark_variables(variables, gradients, grad_reqs="write"):
    """Make arrays variables with the given arrays as gradient buffers."""
    variables = arrays("mark_variables", variables)
    gradients = arrays("mark_variables", gradients)
    reqs = [grad_reqs] * len(variables) if isinstance(grad_reqs, str) else grad_reqs
    if not len(variables) == len(gradients) == len(reqs):
        raise AttrError("mark_variables: as many gradients and grad_reqs as variables are needed")
    for v, g, req in zip(variables, gradients, reqs, strict=True):
        if req not in ("write", "add", "null") or g.shape != v.shape:
            raise AttrError(
                f"mark_variables: a variable of shape {v.shape} got a gradient of shape {g.shape} "
                f"and grad_req={req!r}; needed: one shape, and write, add or null"
            )
        v.node, v.index = Node(None, values=(v.data,), info=Leaf(v.data, req, g)), 0
        v.base and hooks.share(v)


def get_symbol(x):
    """Return the recorded computation of this array as a symbol.

    Variables and other inputs are named var0, var1, ...
    Raises:  HybridError if the array isn't on the tape.

    >>> from minihybrid import autograd
    >>> from minihybrid.core import nd
    >>> x = nd.ones((2,)); x.attach_grad()
    >>> with autograd.record():
    ...     y = (x * 2).relu()
    >>> autograd.get_symbol(y).get_internals().list_outputs()
    ['var0', 'node_0_output', 'node_1_output']
    """
    arrays("get_symbol", [x])
    if x.node is None:
        raise HybridError(
            "get_symbol: the array is not on the tape; compute it inside "
            "`with autograd.record():` from arrays with attach_grad()"
        )
    symbols, counts = {}, [0, 0]
    for node in topological([(x.node, x.index)]):
        kind = node.op is not None
        name, counts[kind] = f"{('var', 'node_')[kind]}{counts[kind]}", counts[kind] + 1
        if not kind:
            symbols[node] = var(name)
            continue
        if node.inputs is None or OPS.get(node.op.name) is not node.op and node.op.expand is None:
            raise HybridError(
                f"get_symbol: the step {node.op.name} has no symbol: it "
                "is a Function, or an earlier backward freed the tape"
            )
        ins = [Symbol([symbols[n].refs[i]]) for n, i in node.inputs]
        if OPS.get(node.op.name) is node.op:
            symbols[node] = Symbol.interpret(node.op, ins, node.attrs, name)
        else:  # a compiled net: inline its graph
            with Prefix(f"{name}_"):
                symbols[node] = as_symbol(node.op.expand(None, *ins))
    return Symbol([symbols[x.node].refs[x.index]])


class Function:
    """A differentiable function whose gradient you write yourself.

    A subclass defines `forward(*arrays)` and `backward(*head_grads)`, which takes a
    gradient per output of `forward` and returns one per input. Each instance is called
    once. Neither method is recorded, and both may use NumPy.
    Source:  MXNet's mxnet.autograd.Function, also without second derivatives. Here,
             grad_req="add" accumulates, unlike in MXNet 1.9.1.

    >>> from minihybrid.core import nd
    >>> class Straight(Function):
    ...     def forward(self, x):
    ...         return x.round()
    ...     def backward(self, dy):
    ...         return dy
    >>> x = nd.array([1.3, 2.6]); x.attach_grad()
    >>> with record():
    ...     y = Straight()(x)
    >>> y.backward(); x.grad.asnumpy()
    array([1., 1.], dtype=float32)
    """

    def __init__(self):
        self.saved_tensors, self._used = (), False

    def save_for_backward(self, *args):
        """Save arrays in `saved_tensors` for `backward`."""
        self.saved_tensors = args

    def forward(self, *inputs):
        """Compute the outputs; defined by subclasses."""
        raise NotImplementedError(
            f"{type(self).__name__} has no forward method; write def forward(self, x): ..."
        )

    def backward(self, *output_grads):
        """Compute the gradients of the inputs; defined by subclasses."""
        raise NotImplementedError(
            f"{type(self).__name__} has no backward method; write def backward(self, dy): ..."
        )

    def __call__(self, *inputs):
        """Call `forward`, and record it as one operator."""
        name = type(self).__name__
        if getattr(self, "_used", False):
            raise HybridError(
                f"{name}: an instance is called once, since it saves "
                f"what its backward needs; make another: {name}()(x)"
            )
        self._used = True
        if not all(isinstance(v, NDArray) for v in inputs):
            types = ", ".join(type(v).__name__ for v in inputs)
            raise AttrError(
                f"{name}: a Function works on NDArrays, found {types}; "
                "leave a block that uses it imperative"
            )
        with modes(recording=False):
            result = self.forward(*inputs)
        outs = result if isinstance(result, (list, tuple)) else (result,)
        refs = refs_of(inputs) if STATE.recording else ()
        if not refs:
            return result
        outs = [v.copy() if any(v.data is w.data for w in inputs) else v for v in outs]
        fields = {"variadic": True, "infer": None, "grad": self._grad, "n_outputs": len(outs)}
        op = Op(name=name, doc=f"The Function {name}.", **fields)
        node = Node(op, refs, values=tuple(v.data for v in outs))
        outs = [type(v)(v.data, node, i) for i, v in enumerate(outs)]
        return type(result)(outs) if isinstance(result, (list, tuple)) else outs[0]

    def _grad(self, g, out, *inputs):
        """Return the operator's gradient: the validated result of `backward`."""
        name = type(self).__name__
        if STATE.recording:
            raise HybridError(
                f"{name}: the gradient of a gradient through a Function "
                "is unknown; write the step with operators instead"
            )
        gs, outs = (g, out) if isinstance(g, tuple) else ((g,), (out,))
        grads = self.backward(
            *(zeros_like(o) if v is None else v for v, o in zip(gs, outs, strict=True))
        )
        grads = grads if isinstance(grads, (list, tuple)) else (grads,)
        if len(grads) != len(inputs):
            raise HybridError(
                f"{name}.backward returned {len(grads)} gradients, but "
                f"forward has {len(inputs)} inputs"
            )
        for v, x in zip(grads, inputs, strict=True):
            if not isinstance(v, NDArray) or v.shape != x.shape:
                what = getattr(v, "shape", v)
                raise HybridError(
                    f"{name}.backward returned a {type(v).__name__} ({what}), but an NDArray of "
                    f"shape {x.shape} is needed"
                )
        return grads


__getattr__ = lazy.face(globals(), {})  # for errors that suggest a name in place of PyTorch's
__dir__ = own_names(globals(), "backward", "pause", "predict_mode", "record", "train_mode")
__all__ = __dir__()
