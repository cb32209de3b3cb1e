"""Chapter 30. Transformations: functions that take a function and return another one.

Defines: `vjp`, `jvp` and `vmap`: reverse mode, forward mode and vectorization.

`vjp` runs the function on the tape and returns the backward pass as a function. Operators'
gradients are written with operators, so that pass is on the tape as well. It's linear in
the cotangent: its own VJP with respect to that is the JVP. `vmap` calls the function once
on values with a hidden axis, which are one more tracer of the same operators: composite
ones are decomposed, primitive ones have a batching rule below.
Limits: if an operator has no rule, or Python reads a value, `vmap` calls the function once
per slice and stacks the results. An output layer, such as `SoftmaxOutput`, has no JVP: its
gradient ignores the cotangent.
Source:  the JVP as the VJP of a VJP: Townsend, A new trick for calculating Jacobian vector
         products, 2017. Batching as an interpreter: JAX's Autodidax.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minihybrid.core.arguments import arrays_in, restore
from minihybrid.core.array import STATE, NDArray, arrays
from minihybrid.core.backprop import gradient
from minihybrid.core.op import AttrError, HybridError, Node, Op, ShapeError, Spec, unfit
from minihybrid.core.sym import Symbol
from minihybrid.core.tape import array_of, modes
from minihybrid.ops import OPS
from minihybrid.ops.elementwise import zeros_like
from minihybrid.ops.infix import Value
from minihybrid.ops.joining import stack
from minihybrid.ops.layout import broadcast_to, expand_dims, reshape, transpose
from minihybrid.ops.neural import batch_dot
from minihybrid.ops.shapes import axes_of, axis_of
from minihybrid.runtime.overwrites import share

__all__ = ["jvp", "vjp", "vmap"]


# -- derivatives -----------------------------------------------------------------------
def vjp(f: Callable, *inputs: NDArray) -> tuple[Any, Callable]:
    """Call `f` and return its outputs and its pullback, for vector-Jacobian products.

    f:       arrays -> an array, or arrays nested in lists, tuples and dicts.
    Returns: (outputs, pullback). `pullback(cotangents)` takes what the outputs look like,
             with their shapes, and returns a tuple with a gradient for each input. It can
             be called several times, and differentiated.

    >>> from minihybrid.core import nd
    >>> y, pullback = vjp(lambda x: x * x, nd.array([1, 2, 3]))
    >>> pullback(nd.array([1, 0, 10]))[0].asnumpy()
    array([ 2.,  0., 60.], dtype=float32)
    """
    with modes(recording=True):
        variables = [_variable(x) for x in arrays("vjp", inputs)]
        outputs = f(*variables)
    heads = arrays_in((outputs,))

    def pullback(cotangents: Any) -> tuple[NDArray, ...]:
        seeds = _like("vjp", "cotangents", heads, arrays_in((cotangents,)))
        grads = _pulled(heads, seeds, variables)
        return tuple(zeros_like(x) if g is None else g for x, g in zip(inputs, grads, strict=True))

    return outputs, pullback


def jvp(f: Callable, inputs: Sequence, tangents: Sequence) -> tuple[Any, Any]:
    """Call `f` and return its outputs and their change per unit of a change of the inputs.

    inputs, tangents:  lists of arrays of the same shapes.
    Returns: (outputs, tangents of the outputs), which look alike: the Jacobian-vector
             product.
    Raises:  HybridError for a gradient that ignores the cotangent.

    >>> from minihybrid.core import nd
    >>> x = nd.array([1, 2, 3])
    >>> y, change = jvp(lambda x: x * x, [x], [nd.array([1, 0, 10])])
    >>> change.asnumpy()
    array([ 2.,  0., 60.], dtype=float32)
    """
    for name, listed in (("inputs", inputs), ("tangents", tangents)):
        if not isinstance(listed, (list, tuple)):
            need = "a list with an array for each input of the function is needed, such as [x]"
            raise unfit("jvp", name, listed, need)
    tangents = _like("jvp", "tangents", arrays("jvp", inputs), arrays("jvp", tangents))
    with modes(recording=True):
        outputs, pullback = vjp(f, *inputs)
        heads = [y.detach() for y in arrays_in((outputs,))]
        seeds = [_variable(zeros_like(y)) for y in heads]
        grads = pullback(restore(outputs, iter(seeds)))  # linear in the seeds
    _refuse_nonzero(grads)  # the seeds are zeros
    out_tangents = _pulled(grads, tangents, seeds)
    changes = [zeros_like(y) if t is None else t for y, t in zip(heads, out_tangents, strict=True)]
    return outputs, restore(outputs, iter(changes))


def _refuse_nonzero(grads: Sequence[NDArray]) -> None:
    """Refuse gradients for cotangents of zeros that aren't zero, or NaN: they aren't linear."""
    if any(((slope != 0) & (slope == slope)).any() for slope in (g.asnumpy() for g in grads)):
        raise HybridError(
            "jvp: the function's gradient ignores the cotangent, as that of an output layer does, "
            "but a JVP needs one that is linear in it; in place of SoftmaxOutput, call softmax"
        )


def _variable(x: NDArray) -> NDArray:
    """Return the array as a new variable, or as a copy if it's already on the tape."""
    if x.node:
        return x.copy()
    variable = x.detach()
    variable.node = Node(None, values=(x.data,))
    share(variable)
    return variable


def _pulled(heads: Sequence, seeds: Sequence, variables: Sequence) -> list:
    """Return the gradients of the variables, `None` for unused ones."""
    taped = [(h, s) for h, s in zip(heads, seeds, strict=True) if h.node]
    refs = [(v.node, v.index) for v in variables]
    grads = gradient([(h.node, h.index) for h, _ in taped], [s for _, s in taped], refs, array_of)
    return [grads.get(ref) for ref in refs]


def _like(who: str, what: str, expected: Sequence, actual: Sequence) -> Sequence:
    shapes = [[x.shape for x in each] for each in (expected, actual)]
    if shapes[0] != shapes[1]:
        raise ShapeError(
            f"{who}: {what} have shapes {shapes[1]}, but {shapes[0]} are needed; pass an array "
            f"like each of the {'outputs' if who == 'vjp' else 'inputs'}"
        )
    return actual


# -- a batch axis ----------------------------------------------------------------------
class Depth(threading.local):
    level = 1  # of the innermost vmap; symbols have level 1


DEPTH = Depth()


def vmap(f: Callable, in_axes: Any = 0, out_axes: int = 0) -> Callable:
    """Return a function that maps `f` over an axis of its inputs.

    in_axes: the mapped axis of each input, one for all or a tuple; `None`: not mapped.
    out_axes: the position of the new axis in the outputs.
    Shapes:  `f` gets inputs without that axis. As everywhere in nd, an element of a vector
             is an array of shape (1,).

    `f` is called once for all slices if each operator has a rule: elementwise operators,
    reductions, reshapes, transpose, slices, concat, stack, dot, Dense and softmax, and
    composites of those. Otherwise it's called once per slice.

    >>> from minihybrid.core import nd
    >>> x, w = nd.arange(6).reshape((2, 3)), nd.ones((3,))
    >>> vmap(lambda x, w: (x * w).sum(), in_axes=(0, None))(x, w).asnumpy()
    array([[ 3.],
           [12.]], dtype=float32)
    """

    def mapped(*inputs: Any) -> Any:
        places = in_axes if isinstance(in_axes, (tuple, list)) else [in_axes] * len(inputs)
        if len(places) != len(inputs) or all(p is None for p in places):
            raise AttrError(
                f"vmap: in_axes={in_axes} for {len(inputs)} inputs; an axis or None is needed for "
                "each, and an axis at least once"
            )
        moved = _where_mapped(
            lambda x, p: _moved(x, axis_of("vmap", p, len(_shape(x))), 0), inputs, places
        )
        lengths = {_shape(x)[0] for x, p in zip(moved, places, strict=True) if p is not None}
        if len(lengths) > 1:
            raise ShapeError(f"vmap: the mapped axes have lengths {sorted(lengths)}; make them one")
        (n,) = lengths
        try:
            out = _at_once(f, moved, places, n)
        except (HybridError, TypeError, AttributeError):  # no rule, or Python reads values
            out = _one_by_one(f, moved, places, n)
        results = [_moved(y, 0, out_axes % len(_shape(y))) for y in arrays_in((out,))]
        return restore(out, iter(results))

    return mapped


def _shape(x: Any) -> tuple:
    if not isinstance(x, Value):
        need = "an NDArray is needed; make one with nd.array(...), or pass in_axes=None for it"
        raise unfit("vmap", "", x, need)
    return x.spec.shape if isinstance(x, Symbol) else x.shape


def _moved(x: Any, old: int, new: int) -> Any:
    """Move an axis to another position."""
    order = [i for i in range(len(_shape(x))) if i != old]
    order.insert(new, old)
    return x if old == new else transpose(x, axes=tuple(order))


def _where_mapped(change: Callable, inputs: Sequence, places: Sequence) -> list:
    """Return the inputs, with those changed that have a mapped axis."""
    return [x if p is None else change(x, p) for x, p in zip(inputs, places, strict=True)]


def _at_once(f: Callable, inputs: Sequence, places: Sequence, n: int) -> Any:
    before, DEPTH.level = DEPTH.level, DEPTH.level + 1
    try:
        out = f(*_where_mapped(lambda x, p: Batched(x, DEPTH.level), inputs, places))
        results = arrays_in((out,))
        return restore(out, iter([_with_axis(y, DEPTH.level, n, _shape(y)) for y in results]))
    finally:
        DEPTH.level = before


def _one_by_one(f: Callable, inputs: Sequence, places: Sequence, n: int) -> Any:
    """Call `f` on each slice, and stack the results."""
    outs = [f(*_where_mapped(lambda x, p, i=i: x[i], inputs, places)) for i in range(n)]
    columns = zip(*(arrays_in((out,)) for out in outs), strict=True)
    return restore(outs[0], iter([stack(*column, axis=0) for column in columns]))


def _with_axis(x: Any, level: int, n: int, shape: tuple) -> Any:
    """Return the underlying value with the batch axis first, broadcast to a slice shape."""
    if x.level == level:
        padded = (1,) * (len(shape) - len(x.shape)) + x.shape
        x = x.value if padded == x.shape else reshape(x.value, shape=(n, *padded))
        return x if padded == shape else broadcast_to(x, shape=(n, *shape))
    x = reshape(x, shape=(1,) * (len(shape) + 1 - len(_shape(x))) + _shape(x))
    return broadcast_to(x, shape=(n, *shape))


class Batched(Value):
    """A batched value: `shape` is that of one slice; `value` has the batch axis first."""

    __slots__ = ("value", "level")

    def __init__(self, value: Any, level: int) -> None:
        if value.is_np:
            raise HybridError("vmap: np arrays are mapped one by one")
        one = len(_shape(value)) == 1
        self.value, self.level = reshape(value, shape=(-1, 1)) if one else value, level

    shape = property(lambda self: _shape(self.value)[1:])
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: int(np.prod(self.shape)))
    dtype = property(lambda self: self.spec.dtype)
    context = ctx = property(lambda self: self.value.context)

    @property
    def spec(self) -> Spec:
        value = self.value
        return Spec(self.shape, np.dtype(getattr(value, "spec", value).dtype))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"vmap: a batched value has no {name}")

    def __bool__(self) -> bool:
        raise HybridError("vmap: Python asks for the values of all slices at once")

    def lines_up(self, other: Any) -> bool:
        """Return whether elementwise operators need no broadcasting."""
        return self.shape == _shape(other)

    def convert(self, other: Any, op: str) -> Any:
        """Convert a NumPy operand to an unbatched array."""
        return NDArray(np.asarray(other, self.dtype))

    def __getitem__(self, key: Any) -> Any:
        return self.part(key, self.shape)

    def interpret(self, op: Op, inputs: Sequence, attrs: dict, name: str | None = None) -> Any:
        """Apply an operator to all slices at once."""
        specs = [Spec(_shape(x), np.dtype(getattr(x, "spec", x).dtype)) for x in inputs]
        if op.is_made(specs, attrs):
            return op.expanded(specs, inputs, attrs, STATE.training)
        outs = op.specs_of(specs, attrs)[1]
        rule = RULES.get(op.name) or (_elementwise if op.expr else _view if op.view else None)
        if rule is None or op.random:
            raise HybridError(f"vmap: {op.name} has no rule")
        results = rule(op, Slices(inputs, specs, outs, self), **attrs)
        results = results if isinstance(results, tuple) else (results,)
        shapes = [(_shape(self.value)[0], *spec.shape) for spec in outs]
        batched = [
            Batched(y if _shape(y) == shape else reshape(y, shape=shape), self.level)
            for y, shape in zip(results, shapes, strict=True)
        ]
        return tuple(batched) if len(batched) > 1 else batched[0]


class Slices:
    """The inputs of an operator, some of them batched, for its rule.

    specs, outs:  of the inputs and outputs of one slice;  n: the number of slices.
    """

    def __init__(self, inputs: Sequence, specs: Sequence, outs: Sequence, like: Batched) -> None:
        self.inputs, self.specs, self.outs, self.level = inputs, specs, outs, like.level
        self.n = _shape(like.value)[0]
        self.mapped = [x.level == like.level for x in inputs]

    def all(self, shape: tuple | None = None) -> list:
        """Return the inputs with the batch axis first, optionally broadcast to one shape."""
        return [
            _with_axis(x, self.level, self.n, shape or spec.shape)
            for x, spec in zip(self.inputs, self.specs, strict=True)
        ]


# -- batching rules: (operator, slices, **attributes) -> result, batch axis first ------
def _elementwise(op: Op, s: Slices, **attrs: Any) -> Any:
    return op(*s.all(s.outs[0].shape), **attrs)


def _view(op: Op, s: Slices, **attrs: Any) -> Any:
    return op(*s.all()) if op.name in ("_copy", "BlockGrad") else s.all()[0]  # reshaped later


def _reduction(op: Op, s: Slices, axis: Any, exclude: bool = False, **attrs: Any) -> Any:
    axes = axes_of(op.name, axis, len(s.specs[0].shape), exclude)
    return op(*s.all(), axis=tuple(a + 1 for a in axes), **attrs)


def _along(op: Op, s: Slices, **attrs: Any) -> Any:
    key = "dim" if "dim" in attrs else "axis"
    if attrs[key] is None:  # argmax over all elements
        return op(reshape(s.all()[0], shape=(s.n, -1)), **attrs | {key: 1})
    attrs[key] = axis_of(op.name, attrs[key], len(s.specs[0].shape)) + 1
    return op(*s.all(), **attrs)


def _transpose(op: Op, s: Slices, axes: tuple) -> Any:
    rank = len(s.specs[0].shape)
    return op(*s.all(), axes=(0, *(a % rank + 1 for a in axes or reversed(range(rank)))))


def _slice(op: Op, s: Slices, begin: tuple, end: tuple, step: tuple) -> Any:
    return op(*s.all(), begin=(None, *begin), end=(None, *end), step=step and (None, *step))


def _product(op: Op, s: Slices, **attrs: Any) -> Any:
    return batch_dot(*s.all(), **attrs)


def _dense(op: Op, s: Slices, num_hidden: int, no_bias: bool, flatten: bool) -> Any:
    x, weight, *bias = s.all()
    k = s.specs[1].shape[1]
    if s.mapped == [True] + [False] * (len(s.mapped) - 1):  # batch as rows of a product
        rows = reshape(x, shape=(-1, k))
        return op(rows, *s.inputs[1:], num_hidden=num_hidden, no_bias=no_bias)
    out = batch_dot(reshape(x, shape=(s.n, -1, k)), weight, transpose_b=True)
    return OPS["broadcast_add"](out, expand_dims(bias[0], axis=1)) if bias else out


RULES: dict[str, Callable] = {
    **dict.fromkeys(("sum", "prod", "max", "min", "norm"), _reduction),
    **dict.fromkeys(("softmax", "log_softmax", "Concat", "argmax", "argmin", "_order"), _along),
    "transpose": _transpose,
    "slice": _slice,
    "broadcast_to": lambda op, s, shape: s.all(s.outs[0].shape)[0],
    "_matmul": _product,
    "batch_dot": _product,
    "FullyConnected": _dense,
}
