"""Reductions: sum, mean, max, argmax and others.

The field `reduce` of an operator defines the initial value, update and result of its loop.

As in Gluon's nd arrays, there are no 0-d arrays: the sum of everything has shape (1,).
Long sums accumulate in blocks, here for eager calls and in `codegen.rows` for loops.
Limits: products don't.
"""

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from minihybrid.core.op import AttrError, ShapeError, Spec, axes, boolean, dtype, integer, optional
from minihybrid.ops.elementwise import (
    abs_,
    cast,
    cast_like,
    choose,
    ones_like,
    sign,
    sqrt,
    square,
    squeezed_shape,
    where,
    zeros_like,
)
from minihybrid.ops.gpu.order import best_place, is_long
from minihybrid.ops.loops import T, each, loops, store
from minihybrid.ops.registry import register
from minihybrid.ops.shapes import as_codes, axes_of, axis_of, floating, forward, known

AXES = {"axis": (axes, None), "keepdims": (boolean, False), "exclude": (boolean, False)}


def reduced_shape(op, shape, axis, keepdims, exclude=False):
    """Return the reduced shape, with at least one axis."""
    axes = axes_of(op, axis, len(shape), exclude)
    lengths = [1 if i in axes else n for i, n in enumerate(shape) if keepdims or i not in axes]
    return tuple(lengths) or (1,)


def _shrinks(name, dtype=None):
    """Return the shape rule of a reduction, with this name for its errors."""
    return forward(partial(reduced_shape, name), dtype=dtype)


def refuse_empty(op, shape, axes):
    """Raise ShapeError for a reduction of nothing that has no neutral element."""
    if not all(shape[i] for i in axes):
        raise ShapeError(
            f"{op}: the array of shape {shape} has no number along the "
            f"axes {tuple(axes)}, but one at least is needed"
        )


class Steps(NamedTuple):
    """The scalar code of a reduction, over {a} and the accumulator {acc}.

    free:    the reassociable update for floats, if there is one;
    rounds:  whether updates round, so that errors accumulate.
    """

    start: str
    combine: str
    free: str | None = None
    rounds: bool = False


def reduction(name, function, ufunc, reduce, grad, doc, aliases=(), **more):
    """Register a reduction with its NumPy functions and scalar code.

    ufunc:   reduces floats over the last axes, bit for bit like `function`.
    """

    def infer(shape, axis, keepdims, exclude):
        if reduce.start in ("LOWEST", "HIGHEST"):
            refuse_empty(name, shape, axes_of(name, axis, len(shape), exclude))
        return reduced_shape(name, shape, axis, keepdims, exclude)

    def settled(data, *, axis, keepdims, exclude):
        shape, end = data.shape, len(data.shape)
        axes = axes_of(name, axis, end, exclude)
        n = math.prod([shape[i] for i in axes])
        floats = data.dtype.kind == "f" and data.dtype != np.float16
        if floats and 0 < n <= LONG and {*axes} == {*range(end - len(axes), end)}:
            reduce = ufunc.reduce
            if len(axes) == 1:
                keeps = keepdims or end == 1
                return lambda data: reduce(data, -1, None, None, keeps)
            rows = (*reduced_shape(name, shape, axis, keepdims, exclude), n)
            return lambda data: reduce(data.reshape(rows), -1)

        def run(data):
            out = np.asarray(function(data, axis=axes, keepdims=keepdims), data.dtype, "C")
            return out if out.ndim else out.reshape(1)

        return run

    def eager(data, **over):
        return settled(data, **over)(data)

    return register(
        name,
        *aliases,
        attrs=AXES,
        infer=forward(infer),
        eager=eager,
        settled=settled,
        reduce=reduce,
        grad=grad,
        gives_own=True,
        doc=doc,
        **more,
    )


def _prod_grad(g, out, data, axis, keepdims, exclude):
    """The derivative by an element is the product of the others: the total over it or, for
    a 0, the product of the nonzero elements if there is no other 0; 1 for an element alone."""
    if squeezed_shape(out) == squeezed_shape(data):  # the quotient of infinities is NaN
        return (unreduce(g, data, axis, exclude),)
    zero = data == 0
    others = where(zero, ones_like(data), data)
    over = {"axis": axis, "keepdims": keepdims, "exclude": exclude}
    alone = prod(others, **over) * (sum_(zero, **over) == 1)
    grad = where(
        zero, unreduce(alone, data, axis, exclude), unreduce(out, data, axis, exclude) / others
    )
    return (unreduce(g, data, axis, exclude) * grad,)


def _extreme_grad(g, out, data, axis, keepdims, exclude):
    hit = data == unreduce(out, data, axis, exclude)
    return (unreduce(g, data, axis, exclude) * hit,)


PART = 32  # floats per sequential partial sum
LONG = 2**16  # longer contiguous rows are folded before NumPy's pairwise sum


def total(data, axis, keepdims=False):
    """Sum over axes with an error that grows with the logarithm of their lengths.

    NumPy sums pairwise over the last axis only. Other axes are folded: whole contiguous
    slices are added, which is faster than element by element.

    axis:    a tuple of nonnegative axes.

    >>> tenths = np.float32([[0.1, 0.1]] * 10**5)
    >>> bool(tenths.sum(0)[0] < 9999), bool(abs(total(tenths, (0,)) - 1e4).max() < 0.01)
    (True, True)
    """
    if data.dtype == np.float16:  # round once, at the end
        return total(data.astype(np.float32), axis, keepdims).astype(np.float16)
    if data.size <= PART:
        return np.add.reduce(data, axis, keepdims=keepdims)
    shape, end = data.shape, data.ndim
    while end - 1 in axis:
        end -= 1
    n, others = math.prod(shape[end:]), [i for i in axis if i < end]
    if data.dtype.kind != "f" or n * math.prod([shape[i] for i in others]) <= PART:
        return data.sum(axis=axis, keepdims=keepdims)
    out = np.ascontiguousarray(data)
    if end < data.ndim:
        out = out.reshape(*shape[:end], n)
        out = (_folded(out, end) if n > LONG else out).sum(-1)
    for i in reversed(others):
        while out.shape[i] > PART:
            out = _folded(out, i)
        out = out.sum(i)
    if keepdims:
        return out.reshape([1 if i in axis else n for i, n in enumerate(shape)])
    return out


def _folded(data, axis):
    """Fold an axis: sum groups of PART slices."""
    m, rest = divmod(data.shape[axis], PART)
    front = (slice(None),) * axis
    parts = data[(*front, slice(m * PART))]
    out = parts.reshape(*data.shape[:axis], PART, m, *data.shape[axis + 1 :]).sum(axis)
    if rest:
        out[(*front, 0)] += data[(*front, slice(-rest, None))].sum(axis)
    return out


sum_ = reduction(
    "sum",
    total,
    np.add,
    Steps("T(0)", "{acc} + {a}", "add_up", rounds=True),
    lambda g, out, data, axis, keepdims, exclude: (unreduce(g, data, axis, exclude),),
    "The sum over the axes.",
    aliases=("sum_axis",),
    adds_rows=lambda axis, keepdims, exclude: not exclude and (axis is None or axis in (0, (0,))),
)
prod = reduction(
    "prod",
    np.prod,
    np.multiply,
    Steps("T(1)", "{acc} * {a}", "multiply_up"),
    _prod_grad,
    "The product over the axes.",
)
max_ = reduction(
    "max",
    np.max,
    np.maximum,
    Steps("LOWEST", "{a} if {a} > {acc} or {a} != {a} else {acc}"),
    _extreme_grad,
    "The largest along the axes.",
    aliases=("max_axis",),
)
min_ = reduction(
    "min",
    np.min,
    np.minimum,
    Steps("HIGHEST", "{a} if {a} < {acc} or {a} != {a} else {acc}"),
    _extreme_grad,
    "The smallest along the axes.",
    aliases=("min_axis",),
)


def _mean_expand(specs, data, axis, keepdims, exclude):
    shape, dtype = specs[0]
    count = math.prod([shape[a] for a in axes_of("mean", axis, len(shape), exclude)])
    data = data if dtype.kind == "f" else cast(data, dtype="float32")
    return sum_(data, axis=axis, keepdims=keepdims, exclude=exclude) * (
        1 / count if count else np.nan
    )


mean = register(
    "mean",
    attrs=AXES,
    infer=_shrinks("mean", floating),
    expand=_mean_expand,
    doc="The sum over the axes divided by their length.",
)


# -- the gradient of a reduction: broadcast back ---------------------------------------
def _unreduce_infer(specs, axis, exclude):
    (shape, kind), (target, _) = specs
    if known(specs):
        axes = axes_of("_unreduce", axis, len(target), exclude)
        reduced = [1 if i in axes else n for i, n in enumerate(target)]
        if math.prod(shape) != math.prod(reduced):
            raise ShapeError(f"_unreduce: {shape} is not {target} without the axes {axes}")
    return specs, [Spec(target, kind)]


def _unreduce_expand(specs, data, like, axis, exclude):
    shape = specs[1].shape
    axes = axes_of("_unreduce", axis, len(shape), exclude)
    if 0 in shape:  # 0 has another meaning in broadcast_to
        return cast(zeros_like(like), dtype=specs[0].dtype)
    reduced = tuple(1 if i in axes else n for i, n in enumerate(shape))
    return data.reshape(as_codes(reduced)).broadcast_to(shape)


_unreduce = register(
    "_unreduce",
    inputs=("data", "like"),
    attrs={"axis": (axes, None), "exclude": (boolean, False)},
    infer=_unreduce_infer,
    expand=_unreduce_expand,
    doc="The inverse of a reduction's shape: repeat along the axes.",
)


def unreduce(data, like, axis, exclude=False):
    """Broadcast a reduction's result along the reduced axes."""
    return _unreduce(data, like, axis=axis, exclude=exclude)


# -- indices of extrema ----------------------------------------------------------------
EXACT32 = 2**24  # beyond it, float32 can't represent all integers


def _places(data, out, outer, n, inner, is_largest):
    for i, j in each(outer, inner, work=outer * n * inner):
        best = data[i * (n * inner) + j]
        at = 0
        for p in range(1, n):
            v = data[i * (n * inner) + p * inner + j]
            if (v > best if is_largest else v < best) or (v != v and best == best):
                best = v
                at = p
        store(out, i * inner + j, T(at))


def _arg(name, ufunc, sign, kind, words):
    def rule(shape, axis, keepdims):
        if axis is not None and not isinstance(axis, int):
            raise AttrError(f"{name}: axis={axis} is given, but one axis is needed")
        refuse_empty(name, shape, axes_of(name, axis, len(shape)))
        if kind.kind == "f" and split_at(shape, axis)[1] > EXACT32:
            raise ShapeError(
                f"{name}: the axis has more than 2**24 numbers, whose places float32 cannot hold; "
                f"use mx.np.{name}, which gives int64"
            )
        return reduced_shape(name, shape, axis, keepdims)

    def eager(data, *, axis, keepdims):
        out = kind.type(ufunc(data, axis=axis, keepdims=keepdims))
        return np.asarray(out).reshape(np.shape(out) or (1,))

    cpu = loops(lambda data, out, axis, keepdims: (*split_at(data.shape, axis), sign == ">"))(
        _places
    )

    def gpu(k, data, out, *, axis, keepdims):
        lengths = split_at(data.shape, axis)
        if is_long(lengths):
            return best_place(k, data, lengths, sign)
        cpu(k, data, out, axis=axis, keepdims=keepdims)

    return register(
        name,
        infer=forward(rule, dtype=kind),
        eager=eager,
        cpu=cpu,
        gpu=gpu,
        stores=True,
        attrs={"axis": (optional(integer), None), "keepdims": (boolean, False)},
        doc=f"The place of the {words} along one axis, as {kind}.",
    )


def split_at(shape, axis):
    """Return (lengths before, at and after an axis); `None` means one flat axis.

    >>> split_at((2, 3, 4, 5), 1)
    (2, 3, 20)
    """
    if axis is None:
        return 1, math.prod(shape), 1
    axis = axis_of("split_at", axis, len(shape))
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


for _name, _kind in (("", "float32"), ("_long_", "int64")):
    _arg(f"{_name}argmax", np.argmax, ">", np.dtype(_kind), "maximum")
    _arg(f"{_name}argmin", np.argmin, "<", np.dtype(_kind), "minimum")


def _norm_dtype(kind, out_dtype):
    return out_dtype or floating(kind)


def _norm_infer(specs, ord, axis, out_dtype, keepdims):
    if ord not in (1, 2):
        raise AttrError(
            f"norm: ord={ord} is given, but 1 (sum of absolute values) or "
            "2 (root of the sum of squares) is needed"
        )
    kind = _norm_dtype(specs[0].dtype, out_dtype)
    return _shrinks("norm", kind)(specs, axis=axis, keepdims=keepdims)


def _norm_wide(kind, ord):
    """Return the dtype to compute in; in half precision, 256 squared overflows."""
    return kind if ord == 1 else np.promote_types(kind, "float32")


def _norm_eager(data, *, ord, axis, out_dtype, keepdims):
    kind, axes = _norm_dtype(data.dtype, out_dtype), axes_of("norm", axis, data.ndim)
    data = data.astype(_norm_wide(kind, ord), copy=False)
    if ord == 1:
        out = total(np.abs(data), axes, keepdims)
    else:
        squares = total(np.square(data), axes, keepdims)
        out, least = np.sqrt(squares), _least_sum(data.size, data.dtype)
        if not np.logical_and(squares > least, squares < np.inf).all():
            out = _norm_of_any(data, axes, keepdims)
    return np.asarray(out, kind).reshape(np.shape(out) or (1,))


def _least_sum(count, kind):
    """Return the least sum of squares that is accurate even if some squares underflow."""
    info = np.finfo(kind)
    return float(count * info.tiny / info.eps)


def _norm_of_any(data, axes, keepdims):
    """Return the 2-norm of elements whose squares may overflow or underflow."""
    _, power = np.frexp(np.abs(data).max(axis=axes, keepdims=True, initial=0))
    root = np.sqrt(total(np.square(np.ldexp(data, -power)), axes, keepdims))
    return np.ldexp(root, power.reshape(root.shape))


def _norm_lower(specs, data, ord, axis, out_dtype, keepdims):
    """Lower the 2-norm: squares of 16- or 32-bit floats fit into floats of twice the bits.

    For float64, one loop sums the squares unscaled and scaled by two powers of two, one of
    which suits elements whose squares overflow or underflow.
    """
    kind = _norm_dtype(specs[0].dtype, out_dtype)
    wide = _norm_wide(kind, ord)
    if ord == 2 and wide == np.float32:
        wide = np.dtype("float64" if specs[0].dtype.itemsize >= 4 else "float32")
    data = data if specs[0].dtype == wide else cast(data, dtype=wide)

    def root(scale):
        return sqrt(added(square(data * scale))) * (1 / scale)

    def added(numbers):
        return sum_(numbers, axis=axis, keepdims=keepdims)

    if ord == 1:
        out = added(abs_(data))
    elif specs[0].dtype != np.float64:
        out = sqrt(added(square(data)))
    else:
        squares, scale = added(square(data)), 2.0 ** (np.finfo(wide).maxexp * 3 // 4)
        least = _least_sum(math.prod(specs[0].shape), wide)
        out = choose(squares > least, sqrt(squares), root(scale))
        out = choose(squares == np.inf, root(1 / scale), out)
    return out if kind == wide else cast(out, dtype=kind)


def _norm_grad(g, out, data, ord, axis, out_dtype, keepdims):
    numbers, divisor = cast_like(data, out), choose(out, out, ones_like(out))  # 0 at 0
    way = sign(numbers) if ord == 1 else numbers / unreduce(divisor, data, axis)
    return (cast_like(unreduce(g, data, axis) * way, data),)


norm = register(
    "norm",
    infer=_norm_infer,
    eager=_norm_eager,
    lower=_norm_lower,
    grad=_norm_grad,
    attrs={
        "ord": (integer, 2),
        "axis": (axes, None),
        "out_dtype": (optional(dtype), None),
        "keepdims": (boolean, False),
    },
    doc="The root of the sum of squares along the axes, or with ord=1 the sum of absolute values.",
)


# -- ignoring NaN ----------------------------------------------------------------------
def _without_nan(name, reduction, neutral):
    """Register a reduction that ignores NaN."""

    def expand(specs, data, **attrs):
        return reduction(where(data == data, data, neutral(data)), **attrs)

    return register(
        name,
        attrs=AXES,
        infer=_shrinks(name),
        expand=expand,
        doc=f"{reduction.doc} NaN is left out.",
    )


nansum = _without_nan("nansum", sum_, zeros_like)
nanprod = _without_nan("nanprod", prod, ones_like)


# -- tests of several arrays -----------------------------------------------------------
def _all_finite(data):
    bad = [sum_(cast(d - d != 0, dtype="float32")) for d in data]  # inf - inf is NaN
    return sum(bad[1:], bad[0]) == 0


def _finite(name, **fields):
    """Register an operator that tests whether all elements are finite."""
    return register(
        name,
        **fields,
        infer=lambda specs, **_: (specs, [Spec((1,), np.dtype("float32"))]),
        expand=lambda specs, *data, **_: _all_finite(data),
        doc="1 if no number is infinite or NaN, else 0.",
    )


INIT = {"init_output": (boolean, True)}
COUNT = {"num_arrays": (integer, 0)}  # older programs pass it; ignored
all_finite = _finite("all_finite", attrs=INIT)
multi_all_finite = _finite("multi_all_finite", attrs=COUNT | INIT, variadic=True)


def _sums_of_squares(specs, *data, num_arrays):
    sums = [sum_(square(cast(d, dtype="float32"))) for d in data]
    return sums[0].concat(*sums[1:], dim=0) if len(sums) > 1 else sums[0]


multi_sum_sq = register(
    "multi_sum_sq",
    variadic=True,
    expand=_sums_of_squares,
    attrs=COUNT,
    infer=lambda specs, num_arrays: (specs, [Spec((len(specs),), np.dtype("float32"))]),
    doc="The sum of squares of each array, as float32.",
)
