"""Chapter 08. Operators that take many numbers and give one: sum, mean, max, argmax.

Takes:   an array and the axes to go over.
Gives:   the records; `reduce` in a record says how a loop starts, goes on and ends.

The rule of Gluon's legacy arrays is kept: there are no arrays without axes, so the sum
of everything has shape (1,).
Long sums are added up in blocks: eagerly here, in loops as `codegen.rows` writes them.
What is left out: the same for products of many numbers.
"""

import math
from typing import NamedTuple

import numpy as np

from minihybrid.op import (
    REQUIRED,
    AttrError,
    ShapeError,
    Spec,
    axes,
    boolean,
    dtype,
    integer,
    optional,
    positive,
    register,
)
from minihybrid.ops.elementwise import (
    abs_,
    cast,
    ones_like,
    sqrt,
    square,
    where,
    zeros_like,
)
from minihybrid.ops.gpuorder import best_place, is_long
from minihybrid.ops.loops import T, each, loops, store
from minihybrid.ops.shapes import as_codes, axes_of, axis_of, floating, forward, known

AXES = {"axis": (axes, None), "keepdims": (boolean, False), "exclude": (boolean, False)}


def reduced_shape(op, shape, axis, keepdims, exclude=False):
    """The shape left over: the axes go, or stay with length 1; never no axis at all."""
    gone = axes_of(op, axis, len(shape), exclude)
    kept = [
        1 if i in gone else n for i, n in enumerate(shape) if keepdims or i not in gone
    ]
    return tuple(kept) or (1,)


def refuse_empty(op, shape, gone):
    """Raise ShapeError where a number is asked for and there is none."""
    if not all(shape[i] for i in gone):
        raise ShapeError(f"{op}: the array of shape {shape} has no number along the "
                         f"axes {tuple(gone)}, but one at least is needed")


class Steps(NamedTuple):
    """How a loop makes one number of many, over {a} and {acc}, the result so far.

    free:    the function that takes in a float, where the order of floats is free;
    rounds:  whether each step rounds, so that many of them lose digits.
    """

    start: str
    combine: str
    free: str | None = None
    rounds: bool = False


def reduction(name, function, reduce, grad, doc, aliases=()):
    """Enter a reduction: NumPy's function, and the scalar steps."""
    def infer(shape, axis, keepdims, exclude):
        if reduce.start in ("LOWEST", "HIGHEST") and -1 not in shape:
            refuse_empty(name, shape, axes_of(name, axis, len(shape), exclude))
        return reduced_shape(name, shape, axis, keepdims, exclude)

    def eager(data, *, axis, keepdims, exclude):
        gone = axes_of(name, axis, data.ndim, exclude)
        out = function(data, axis=gone, keepdims=keepdims)
        return np.asarray(out, data.dtype).reshape(np.shape(out) or (1,))

    return register(name, *aliases, inputs=("data",), attrs=AXES, infer=forward(infer),
                    eager=eager, reduce=reduce, grad=grad, doc=doc)


def _sum_grad(g, out, data, axis, keepdims, exclude):
    return (unreduce(g, data, axis, exclude),)


def _prod_grad(g, out, data, axis, keepdims, exclude):
    """Each number's derivative is the product of the others: the product over itself;
    but of a 0, the product of all that are not 0, if no other is."""
    zero = data == 0
    others = where(zero, ones_like(data), data)
    over = {"axis": axis, "keepdims": keepdims, "exclude": exclude}
    alone = prod(others, **over) * (sum_(zero, **over) == 1)
    grad = where(zero, unreduce(alone, data, axis, exclude),
                 unreduce(out, data, axis, exclude) / others)
    return (unreduce(g, data, axis, exclude) * grad,)


def _extreme_grad(g, out, data, axis, keepdims, exclude):
    hit = data == unreduce(out, data, axis, exclude)
    return (unreduce(g, data, axis, exclude) * hit,)


PART = 32  # floats that are added up one after the other


def total(data, axis, keepdims=False):
    """The sum over some axes, whose error grows with the logarithm of their lengths.

    NumPy adds pairwise along the last axis; along others here, part by part.

    axis:    a tuple of axes, counted from the front.

    >>> tenths = np.float32([[0.1, 0.1]] * 10**5)
    >>> bool(tenths.sum(0)[0] < 9999), bool(abs(total(tenths, (0,)) - 1e4).max() < 0.01)
    (True, True)
    """
    n = math.prod(data.shape[i] for i in axis)
    if data.dtype.kind != "f" or n <= PART or not data.size:
        return data.sum(axis=axis, keepdims=keepdims)
    out, end = np.ascontiguousarray(data), data.ndim
    while end - 1 in axis:
        end -= 1
    if end < data.ndim:
        out = out.reshape(*data.shape[:end], -1).sum(-1).reshape(
            *data.shape[:end], *[1] * (data.ndim - end))
    for i in axis:
        while (n := out.shape[i]) > PART:
            most = n - n % PART
            parts, rest = np.split(out, [most], axis=i)
            parts = parts.reshape(*out.shape[:i], -1, PART, *out.shape[i + 1:])
            sums = [parts.sum(i + 1), rest.sum(i, keepdims=True)]
            out = np.concatenate(sums[:1 + (most < n)], axis=i)
        out = out.sum(i, keepdims=True)
    return out if keepdims else out.squeeze(axis)


sum_ = reduction("sum", total, Steps("T(0)", "{acc} + {a}", "add_up", rounds=True),
                 _sum_grad, "The sum over the axes.", aliases=("sum_axis",))
prod = reduction("prod", np.prod, Steps("T(1)", "{acc} * {a}", "multiply_up"),
                 _prod_grad, "The product over the axes.")
max_ = reduction("max", np.max,
                 Steps("LOWEST", "{a} if {a} > {acc} or {a} != {a} else {acc}"),
                 _extreme_grad, "The largest along the axes.", aliases=("max_axis",))
min_ = reduction("min", np.min,
                 Steps("HIGHEST", "{a} if {a} < {acc} or {a} != {a} else {acc}"),
                 _extreme_grad, "The smallest along the axes.", aliases=("min_axis",))


def _mean_expand(specs, data, axis, keepdims, exclude):
    shape, dtype = specs[0]
    count = np.prod([shape[a] for a in axes_of("mean", axis, len(shape), exclude)])
    data = data if dtype.kind == "f" else cast(data, dtype="float32")
    return sum_(data, axis=axis, keepdims=keepdims, exclude=exclude) * (
        1 / count if count else np.nan)


def _mean_infer(specs, exclude=False, **attrs):
    specs, (out,) = sum_.infer(specs, exclude=exclude, **attrs)
    return specs, [Spec(out.shape, floating(out.dtype))]


mean = register(
    "mean",
    inputs=("data",),
    attrs=AXES,
    infer=_mean_infer,
    expand=_mean_expand,
    doc="The sum over the axes divided by their length.",
)


# -- the gradient of a reduction: one number goes back to the many it came from --------
def _unreduce_infer(specs, axis, exclude):
    (shape, kind), (wanted, _) = specs
    if known(specs):
        gone = axes_of("_unreduce", axis, len(wanted), exclude)
        kept = [1 if i in gone else n for i, n in enumerate(wanted)]
        if math.prod(shape) != math.prod(kept):
            raise ShapeError(f"_unreduce: {shape} is not {wanted} without the axes "
                             f"{gone}")
    return specs, [Spec(wanted, kind)]


def _unreduce_expand(specs, data, like, axis, exclude):
    shape = specs[1].shape
    gone = axes_of("_unreduce", axis, len(shape), exclude)
    if 0 in shape:  # for broadcast_to, 0 means another thing
        return cast(zeros_like(like), dtype=specs[0].dtype)
    kept = tuple(1 if i in gone else n for i, n in enumerate(shape))
    return data.reshape(as_codes(kept)).broadcast_to(shape)


_unreduce = register(
    "_unreduce", inputs=("data", "like"),
    attrs={"axis": (axes, None), "exclude": (boolean, False)},
    infer=_unreduce_infer, expand=_unreduce_expand,
    doc="The inverse of a reduction's shape: repeat along the axes.")


def unreduce(data, like, axis, exclude=False):
    """Repeat a reduction's result along the axes that it went over."""
    return _unreduce(data, like, axis=axis, exclude=exclude)


# -- places ----------------------------------------------------------------------------
EXACT32 = 2**24  # beyond it, float32 leaves whole numbers out


def _places(data, out, outer, n, inner, is_largest):
    for i, j in each(outer, inner):
        best = data[i * (n * inner) + j]
        at = 0
        for p in range(1, n):
            v = data[i * (n * inner) + p * inner + j]
            if (v > best if is_largest else v < best) or (v != v and best == best):
                best = v
                at = p
        store(out, i * inner + j, T(at))


def _arg(name, ufunc, sign, kind, words):
    def infer(specs, axis, keepdims):
        def rule(shape, axis, keepdims):
            if axis is not None and not isinstance(axis, int):
                raise AttrError(f"{name}: axis={axis} is given, but one axis is needed")
            if -1 not in shape:
                refuse_empty(name, shape, axes_of(name, axis, len(shape)))
            return reduced_shape(name, shape, axis, keepdims)
        specs, (out,) = forward(rule)(specs, axis=axis, keepdims=keepdims)
        if kind.kind == "f" and known(specs) and \
                split_at(specs[0].shape, axis)[1] > EXACT32:
            raise ShapeError(f"{name}: the axis has more than 2**24 numbers, whose "
                             f"places float32 cannot hold; use mx.np.{name}, which "
                             "gives int64")
        return specs, [Spec(out.shape, kind)]

    def eager(data, *, axis, keepdims):
        out = kind.type(ufunc(data, axis=axis, keepdims=keepdims))
        return np.asarray(out).reshape(np.shape(out) or (1,))

    cpu = loops(lambda data, out, axis, keepdims: (
        *split_at(data.shape, axis), sign == ">"))(_places)

    def gpu(k, data, out, *, axis, keepdims):
        lengths = split_at(data.shape, axis)
        if is_long(lengths):
            return best_place(k, data, lengths, sign)
        cpu(k, data, out, axis=axis, keepdims=keepdims)

    return register(
        name,
        inputs=("data",),
        infer=infer,
        eager=eager,
        cpu=cpu,
        gpu=gpu,
        stores=True,
        attrs={"axis": (optional(integer), None), "keepdims": (boolean, False)},
        doc=f"The place of the {words} along one axis, as {kind}.",
    )


def split_at(shape, axis):
    """(lengths before, at and after an axis); `None` means one flat axis.

    >>> split_at((2, 3, 4, 5), 1)
    (2, 3, 20)
    """
    if axis is None:
        return 1, int(np.prod(shape)), 1
    axis = axis_of("split_at", axis, len(shape))
    return (int(np.prod(shape[:axis], dtype=int)), shape[axis],
            int(np.prod(shape[axis + 1:], dtype=int)))


for _name, _kind in (("", "float32"), ("_long_", "int64")):
    _arg(f"{_name}argmax", np.argmax, ">", np.dtype(_kind), "maximum")
    _arg(f"{_name}argmin", np.argmin, "<", np.dtype(_kind), "minimum")


def _norm_dtype(kind, out_dtype):
    return out_dtype or floating(kind)


def _norm_infer(specs, ord, axis, out_dtype, keepdims):
    if ord not in (1, 2):
        raise AttrError(f"norm: ord={ord} is given, but 1 (sum of absolute values) or "
                        "2 (root of the sum of squares) is needed")
    specs, (out,) = sum_.infer(specs, axis=axis, keepdims=keepdims, exclude=False)
    return specs, [Spec(out.shape, _norm_dtype(out.dtype, out_dtype))]


def _norm_expand(specs, data, ord, axis, out_dtype, keepdims):
    kind = _norm_dtype(specs[0].dtype, out_dtype)
    wide = kind if ord == 1 else \
        np.promote_types(kind, "float32")  # in half precision, 256 has no square
    data = data if specs[0].dtype == wide else cast(data, dtype=wide)
    if ord == 1:
        return sum_(abs_(data), axis=axis, keepdims=keepdims)
    if 0 in specs[0].shape:
        return sum_(data, axis=axis, keepdims=keepdims)
    half = np.finfo(wide).maxexp // 2  # a square of 2**half is infinite
    scale = square_scale(max_(abs_(data), axis=axis, keepdims=True),
                         limit=2.0 ** (half - half // 3))
    root = sqrt(sum_(square(data * scale), axis=axis, keepdims=True)) / scale
    if not keepdims:
        kept = reduced_shape("norm", specs[0].shape, axis, keepdims)
        root = root.reshape(as_codes(kept))
    return root if kind == wide else cast(root, dtype=kind)


def _square_scale_eager(data, *, limit):
    with np.errstate(invalid="ignore"):  # NaN is on neither side
        found = np.where(data < 1 / limit, limit * limit, 1)
        return np.where(data > limit, 1 / limit / limit, found).astype(data.dtype)


square_scale = register(
    "_square_scale", inputs=("data",), attrs={"limit": (positive, REQUIRED)},
    infer=lambda specs, limit: (specs, specs), eager=_square_scale_eager,
    expr=lambda limit: f"T({1 / limit / limit}) if {{a}} > T({limit}) else "
                       f"T({limit * limit}) if {{a}} < T({1 / limit}) else T(1)",
    doc="What numbers of this size are multiplied by before they are squared: 1, or a "
        "power of two where the square would be infinite, or lose its digits.")


norm = register(
    "norm", inputs=("data",), infer=_norm_infer, expand=_norm_expand,
    attrs={"ord": (integer, 2), "axis": (axes, None), "out_dtype": (optional(dtype),
                                                                    None),
           "keepdims": (boolean, False)},
    doc="The root of the sum of squares along the axes, or with ord=1 the sum of "
        "absolute values.")


# -- NaN counts as nothing -------------------------------------------------------------
def _without_nan(name, reduction, neutral):
    """Enter a reduction that leaves NaN out."""
    def expand(specs, data, **attrs):
        return reduction(where(data == data, data, neutral(data)), **attrs)

    return register(name, inputs=("data",), attrs=AXES, infer=reduction.infer,
                    expand=expand, doc=f"{reduction.doc} NaN is left out.")


nansum = _without_nan("nansum", sum_, zeros_like)
nanprod = _without_nan("nanprod", prod, ones_like)


# -- questions about many arrays -------------------------------------------------------
def _all_finite(data):
    bad = [sum_(cast(d - d != 0, dtype="float32")) for d in data]  # inf - inf is NaN
    return sum(bad[1:], bad[0]) == 0


def _finite(name, **fields):
    """Enter a name of the question whether all numbers are finite."""
    return register(
        name, inputs=("data",), **fields,
        infer=lambda specs, **_: (specs, [Spec((1,), np.dtype("float32"))]),
        expand=lambda specs, *data, **_: _all_finite(data),
        doc="1 if no number is infinite or NaN, else 0.")


INIT = {"init_output": (boolean, True)}
COUNT = {"num_arrays": (integer, 0)}  # older programs say it; the inputs are counted
all_finite = _finite("all_finite", attrs=INIT)
multi_all_finite = _finite("multi_all_finite", attrs=COUNT | INIT, variadic=True)


def _sums_of_squares(specs, *data, num_arrays):
    sums = [sum_(square(cast(d, dtype="float32"))) for d in data]
    return sums[0].concat(*sums[1:], dim=0) if len(sums) > 1 else sums[0]


multi_sum_sq = register(
    "multi_sum_sq", inputs=("data",), variadic=True, expand=_sums_of_squares,
    attrs=COUNT,
    infer=lambda specs, num_arrays: (specs, [Spec((len(specs),),
                                                  np.dtype("float32"))]),
    doc="The sum of squares of each array, as float32.")
