"""Sorting, running sums and counting: sort, topk, cumsum, histogram.

One primitive computes the sorting permutation of a line; sort and topk gather by it, so
their gradients scatter back.

Sorting is stable, also in descending order; NaN is larger than all other values.
Not supported: sorting by several keys.
"""

import numpy as np

from minihybrid.core.op import (
    REQUIRED,
    AttrError,
    ShapeError,
    Spec,
    boolean,
    choice,
    dtype,
    integer,
    number,
    optional,
)
from minihybrid.ops.elementwise import cast, cast_like, ones_like, zeros_like
from minihybrid.ops.filled import created, make, zeros
from minihybrid.ops.gpu.order import is_long, running_sums
from minihybrid.ops.indexing import put_along, put_take, take_along
from minihybrid.ops.integers import limits
from minihybrid.ops.layout import reshape, slice_axis
from minihybrid.ops.loops import T, each, loops, store
from minihybrid.ops.reduce import split_at, sum_
from minihybrid.ops.registry import register
from minihybrid.ops.shapes import as_codes, axis_of, floating, forward, known
from minihybrid.ops.tiling import reverse

INT64, FLOAT32 = np.dtype("int64"), np.dtype("float32")


# -- the order of a line ---------------------------------------------------------------
def _order_eager(data, *, axis, is_ascend):
    if is_ascend:
        return np.argsort(data, axis=axis, kind="stable")
    back = np.flip(np.argsort(np.flip(data, axis), axis=axis, kind="stable"), axis)
    return data.shape[axis] - 1 - back


def _order_lengths(data, out, axis, is_ascend):
    return *split_at(data.shape, axis), is_ascend


@loops(_order_lengths)
def _order_cpu(data, out, work, outer, n, inner, is_ascend):
    """Sort indices by bottom-up merge sort: merge runs of one, two, four, ..."""
    for i, j in each(outer, inner, work=16 * outer * n * inner):  # assumes lines of 2^16
        at = i * (n * inner) + j
        for p in range(n):
            work[p] = p
        old, new, run = 0, n, 1
        while run < n:
            for start in range(0, n, 2 * run):
                a, b = start, min(start + run, n)
                a_end, b_end = b, min(start + 2 * run, n)
                for p in range(start, b_end):
                    left = b >= b_end
                    if a < a_end and b < b_end:
                        x = data[at + work[old + a] * inner]
                        y = data[at + work[old + b] * inner]
                        left = not (_before(y, x) if is_ascend else _before(x, y))
                    if left:
                        work[new + p] = work[old + a]
                        a += 1
                    else:
                        work[new + p] = work[old + b]
                        b += 1
            old, new, run = new, old, 2 * run
        for p in range(n):
            store(out, at + p * inner, work[old + p])


def _before(x, y):
    """Return whether x < y, where NaN is the largest value."""
    return x < y or (y != y and x == x)


@loops(_order_lengths)
def _order_gpu(data, out, outer, n, inner, is_ascend):
    """Use a thread per element, which counts the elements before it (rank sort). Loads
    coalesce, so up to 1024 elements this needs less traffic than sorting networks."""
    for i, a, j in each(outer, n, inner):
        at = i * (n * inner) + j
        x = data[at + a * inner]
        rank = 0
        for b in range(n):
            y = data[at + b * inner]
            before = _before(y, x) if is_ascend else _before(x, y)
            after = _before(x, y) if is_ascend else _before(y, x)
            if before or (not after and b < a):
                rank += 1
        store(out, at + rank * inner, a)


def _order_infer(specs, axis, is_ascend):
    if known(specs):
        axis_of("argsort", axis, len(specs[0].shape))
    return specs, [Spec(specs[0].shape, INT64)]


order = register(
    "_order",
    infer=_order_infer,
    eager=_order_eager,
    cpu=_order_cpu,
    gpu=_order_gpu,
    stores=True,
    scratch=lambda ins, outs, axis, **_: 2 * ins[0].shape[axis],
    attrs={"axis": (integer, -1), "is_ascend": (boolean, True)},
    grad=lambda g, out, data, **_: (None,),
    doc="The places of the elements of each line, smallest first, as int64.",
)


def _lined_up(specs, data, axis):
    """Return (data, axis); without an axis, the flattened data."""
    if axis is None:
        return reshape(data, shape=(-1,)), 0
    return data, axis


def _ordered_shape(op, old, axis):
    if axis is None:
        return (int(np.prod(old)),)
    axis_of(op, axis, len(old))
    return old


def _sort_expand(specs, data, axis, is_ascend):
    data, axis = _lined_up(specs, data, axis)
    return take_along(data, order(data, axis=axis, is_ascend=is_ascend), axis=axis)


def _places_fit(op, specs, axis, dtype):
    """Raise if a dtype can't represent the indices along an axis."""
    if not known(specs) or dtype is None:
        return
    last = split_at(specs[0].shape, axis)[1] - 1
    if last > 2 ** (np.finfo(dtype).nmant + 1) if dtype.kind == "f" else last > limits(dtype)[1]:
        raise ShapeError(
            f"{op}: {dtype} cannot hold the places of {last + 1} numbers; pass dtype='int64'"
        )


def _argsort_infer(specs, axis, dtype, is_ascend):
    inferred = forward(lambda old: _ordered_shape("argsort", old, axis), dtype=dtype)(specs)
    _places_fit("argsort", specs, axis, dtype)
    return inferred


def _argsort_expand(specs, data, axis, is_ascend, dtype):
    data, axis = _lined_up(specs, data, axis)
    return cast(order(data, axis=axis, is_ascend=is_ascend), dtype=dtype)


AXIS = {"axis": (optional(integer), -1)}
sort = register(
    "sort",
    attrs={**AXIS, "is_ascend": (boolean, True)},
    infer=forward(lambda old, axis, is_ascend: _ordered_shape("sort", old, axis)),
    expand=_sort_expand,
    doc="The numbers of each line in order; without an axis, of the flattened array.",
)
argsort = register(
    "argsort",
    expand=_argsort_expand,
    attrs={**AXIS, "is_ascend": (boolean, True), "dtype": (dtype, FLOAT32)},
    infer=_argsort_infer,
    doc="The places of the numbers of each line in order, as float32 unless told.",
)


def _top_shape(old, axis, k, ret_typ, **_):
    lines = _ordered_shape("topk", old, axis)
    at = axis_of("topk", axis or 0, len(lines))
    if not 0 <= k <= lines[at]:
        raise ShapeError(f"topk: k={k} is asked for, but the axis has length {lines[at]}")
    if ret_typ == "mask":
        return old
    return (*lines[:at], k or lines[at], *lines[at + 1 :])


def _top_infer(specs, dtype, **a):
    kind = specs[0].dtype
    if a["ret_typ"] in ("indices", "both"):
        _places_fit("topk", specs, a["axis"], dtype)
    new = _top_shape(specs[0].shape, **a) if known(specs) else None
    values, places = Spec(new, kind), Spec(new, dtype)
    return specs, {
        "value": [values],
        "indices": [places],
        "mask": [values],
        "both": [values, places],
    }[a["ret_typ"]]


def _top_expand(specs, data, axis, k, ret_typ, is_ascend, dtype):
    old = specs[0].shape
    lines, axis = _lined_up(specs, data, axis)
    places = order(lines, axis=axis, is_ascend=is_ascend)
    places = slice_axis(places, axis=axis, begin=0, end=k or None)
    if ret_typ == "mask":
        chosen = ones_like(take_along(lines, places, axis=axis))
        return reshape(put_along(chosen, places, lines, axis=axis), shape=as_codes(old))
    values = take_along(lines, places, axis=axis)
    return {
        "value": values,
        "indices": cast(places, dtype=dtype),
        "both": (values, cast(places, dtype=dtype)),
    }[ret_typ]


topk = register(
    "topk",
    infer=_top_infer,
    expand=_top_expand,
    attrs={
        **AXIS,
        "k": (integer, 1),
        "ret_typ": (choice("value", "indices", "mask", "both"), "indices"),
        "is_ascend": (boolean, False),
        "dtype": (dtype, FLOAT32),
    },
    n_outputs=lambda attrs: 2 if attrs["ret_typ"] == "both" else 1,
    doc="The k largest of each line (0 means all), or smallest: their places, their "
    "values, both, or ones where they stand.",
)


argmax_channel = register(
    "argmax_channel",
    expand=lambda specs, data: data.argmax(axis=1),
    infer=forward(lambda old: (*old[:1], *old[2:]) or (1,), dtype=FLOAT32),
    doc="The place of the largest along axis 1, as float32.",
)


# -- running sums ----------------------------------------------------------------------
@loops(lambda data, out, axis: split_at(data.shape, axis))
def _running_cpu(data, out, outer, n, inner):
    for i, j in each(outer, inner, work=outer * n * inner):
        total = T(0)
        for p in range(n):
            total += data[(i * n + p) * inner + j]
            store(out, (i * n + p) * inner + j, total)


def _running_gpu(k, data, out, *, axis):
    lengths = split_at(data.shape, axis)
    if is_long(lengths) and data.dtype.kind != "b":  # Numba's `boolean` isn't `bool`
        return running_sums(k, data, lengths)
    _running_cpu(k, data, out, axis=axis)


def _running_infer(specs, axis):
    if known(specs):
        axis_of("cumsum", axis, len(specs[0].shape))
    return specs, specs


running_sum = register(
    "_running_sum",
    attrs={"axis": (integer, 0)},
    infer=_running_infer,
    cpu=_running_cpu,
    gpu=_running_gpu,
    stores=True,
    eager=lambda data, *, axis: np.cumsum(data, axis=axis, dtype=data.dtype),
    grad=lambda g, out, data, axis: (
        reverse(running_sum(reverse(g, axis=axis), axis=axis), axis=axis),
    ),
    doc="The sum of all numbers up to each one, along an axis.",
)


def _sums_in(kind, dtype):
    """Return the dtype of running sums: the requested one; booleans are counted."""
    return dtype or (INT64 if kind is not None and kind.kind == "b" else kind)


def _cumsum_infer(specs, axis, dtype):
    kind = _sums_in(specs[0].dtype, dtype)
    return forward(lambda old: _ordered_shape("cumsum", old, axis), dtype=kind)(specs)


def _cumsum_expand(specs, a, axis, dtype):
    a, axis = _lined_up(specs, a, axis)
    kind = _sums_in(specs[0].dtype, dtype)
    return running_sum(a if kind == specs[0].dtype else cast(a, dtype=kind), axis=axis)


cumsum = register(
    "_np_cumsum",
    "cumsum",
    inputs=("a",),
    expand=_cumsum_expand,
    attrs={"axis": (optional(integer), None), "dtype": (dtype, None)},
    infer=_cumsum_infer,
    doc="The sum of all numbers up to each one; without an axis, of the flattened array.",
)


# -- counting --------------------------------------------------------------------------
def _bounds(bins):
    """A pair of numbers: the minimum and the maximum."""
    low, high = map(number, bins)
    return low, high


def _histogram_inputs(attrs):
    return ("data",) if attrs and attrs["bin_cnt"] is not None else ("data", "bins")


def _histogram_infer(specs, bin_cnt, range):
    if not known(specs):
        return specs, [Spec(None, INT64), Spec(None, specs[-1].dtype)]
    if bin_cnt is not None and (range is None or range[0] >= range[1] or bin_cnt < 1):
        raise AttrError(
            f"histogram: bins={bin_cnt} with range={range}, but at least "
            "one bin and range=(low, high) with low < high are needed"
        )
    count = specs[1].shape[0] - 1 if bin_cnt is None else bin_cnt
    if count < 0:
        raise ShapeError("histogram: bins has shape (0,), but at least one edge is needed")
    kind = floating(specs[0].dtype) if bin_cnt is not None else specs[1].dtype
    return specs, [Spec((count,), INT64), Spec((count + 1,), kind)]


def _histogram_expand(specs, data, *bins, bin_cnt, range):
    if bin_cnt is None:
        (edges,) = bins
        count = specs[1].shape[0] - 1
    else:
        count, (low, high) = bin_cnt, range
        edges = make(
            data, linspace, start=low, stop=high, num=count + 1, dtype=floating(specs[0].dtype)
        )
    column = cast_like(reshape(data, shape=(-1, 1)), edges)
    # The last edge belongs to the last bin; values out of range go to an extra bin.
    at = sum_(cast(column.broadcast_greater_equal(edges), dtype="int64"), axis=1)
    last = slice_axis(edges, axis=0, begin=count, end=None)
    at = at - cast(reshape(column, shape=(-1,)).broadcast_equal(last), dtype="int64")
    counts = put_take(ones_like(at), at, make(data, zeros, shape=count + 2, dtype="int64"))
    return slice_axis(counts, axis=0, begin=1, end=count + 1), edges + zeros_like(edges)


histogram = register(
    "_histogram",
    inputs=_histogram_inputs,
    infer=_histogram_infer,
    expand=_histogram_expand,
    n_outputs=2,
    attrs={"bin_cnt": (optional(integer), None), "range": (optional(_bounds), None)},
    doc="How many numbers lie in each bin, as int64, and the edges of the bins.",
)


# -- without inputs --------------------------------------------------------------------
def _linspace_eager(*, start, stop, num, endpoint, dtype):
    return (start + np.arange(num) * _step(start, stop, num, endpoint)).astype(dtype)


def _step(start, stop, num, endpoint):
    return (stop - start) / max(num - 1 if endpoint else num, 1)


linspace = register(
    "_linspace",
    inputs=(),
    eager=_linspace_eager,
    attrs={
        "start": (number, REQUIRED),
        "stop": (number, REQUIRED),
        "num": (integer, REQUIRED),
        "endpoint": (boolean, True),
        "dtype": (dtype, FLOAT32),
    },
    infer=lambda specs, num, dtype, **_: created(specs, (num,), dtype),
    expr=lambda start, dtype, **a: f"T({start!r} + {{i}} * {_step(start, **a)!r})",
    doc="Numbers at equal distances from start to stop.",
)


eye = register(
    "_eye",
    inputs=(),
    eager=lambda *, N, M, k, dtype: np.eye(N, M or N, k, dtype),
    attrs={
        "N": (integer, REQUIRED),
        "M": (integer, 0),
        "k": (integer, 0),
        "dtype": (dtype, FLOAT32),
    },
    infer=lambda specs, N, M, k, dtype: created(specs, (N, M or N), dtype),
    expr=lambda N, M, k, dtype: (
        f"T(1) if {{i}} % {max(M or N, 1)} == {{i}} // {max(M or N, 1)} + {k} else T(0)"
    ),
    doc="Ones on the diagonal k, zeros elsewhere.",
)
