"""Gather and scatter: take, pick, gather_nd, Embedding.

Indices are arrays; float indices are truncated. Two primitives gather along an axis (with
the same indices for all lines, or other indices per line), and two scatter-add, which are
their gradients.

An index out of range is clipped or wrapped; mode "raise" is an error in eager mode, but
compiled code clips, because a kernel can't raise.
Not supported: data-dependent shapes.
"""

import math

import numpy as np

from minihybrid.core.convert import check_range
from minihybrid.core.op import (
    REQUIRED,
    ShapeError,
    Spec,
    boolean,
    choice,
    dtype,
    integer,
    number,
    shape,
)
from minihybrid.ops.elementwise import cast, choose, where
from minihybrid.ops.filled import arange, full, make, zeros
from minihybrid.ops.layout import expand_dims, reshape, reshape_like, slice_axis, squeeze
from minihybrid.ops.loops import T, atomic_add, each, loops, store, then
from minihybrid.ops.reduce import split_at, sum_
from minihybrid.ops.registry import register
from minihybrid.ops.shapes import adds_back, as_codes, axis_of, forward, known, merge, row_major


# -- one index -------------------------------------------------------------------------
def places(op, index, length, mode):
    """Return indices as integers in [0, length).

    Modes:   clip, wrap, raise, and "signed", where -1 is the last, as in Python.
    Raises:  ShapeError for an index out of range, in the last two modes.
    """
    index = index.astype(np.int64)
    if mode == "clip":
        return np.minimum(np.maximum(index, 0), max(length - 1, 0))
    outside = (index < (-length if mode == "signed" else 0)) | (index >= length)
    if mode != "wrap" and outside.any():
        raise ShapeError(
            f"{op}: index {index[outside][0]} is outside of an axis of length {length}; needed: "
            f"whole numbers from {-length if mode == 'signed' else 0} to {length - 1}"
        )
    return index % max(length, 1)


def place(index, length, wraps):
    """Return one index in [0, length), in loops."""
    return (
        np.int64(index) % max(length, 1)
        if wraps
        else min(max(np.int64(index), 0), max(length - 1, 0))
    )


def _not_empty(op, old, axis, picked):
    if old[axis] == 0 and 0 not in picked:
        raise ShapeError(
            f"{op}: axis {axis} of {old} is empty, so there is nothing to take from it"
        )


# -- scatter-add -----------------------------------------------------------------------
def _put(data, index, like, out, outer, n, inner, m, wraps, alike):
    """Scatter-add elements (outer, m, inner) into zeros (outer, n, inner).

    alike:   whether all lines share m indices; otherwise, each element has its own.
    """
    for i in range(outer * n * inner):
        out[i] = T(0)
    for i in range(outer):
        for p in range(m):
            if alike:
                at = place(index[p], n, wraps)
            for j in range(inner):
                if not alike:
                    at = place(index[(i * m + p) * inner + j], n, wraps)
                out[(i * n + at) * inner + j] += data[(i * m + p) * inner + j]


ATOMIC = 4  # bytes of the narrowest atomic addition on a GPU


def _put_gpu(data, index, like, out, outer, n, inner, m, wraps, alike, in_one_step):
    """Scatter-add on a GPU, with atomic additions.

    Without atomics, two threads that load, add and store the same element could lose an
    update. The order of atomic additions isn't deterministic, so float sums can differ in
    their last digits from call to call.
    """
    for i in each(outer * n * inner):
        out[i] = T(0)
    then()
    if in_one_step:
        for i, p, j in each(outer, m, inner):
            at = place(index[p if alike else (i * m + p) * inner + j], n, wraps)
            atomic_add(out, (i * n + at) * inner + j, data[(i * m + p) * inner + j])
    else:  # one thread per line: no conflicts
        for i, j in each(outer, inner):
            for p in range(m):
                at = place(index[p if alike else (i * m + p) * inner + j], n, wraps)
                out[(i * n + at) * inner + j] += data[(i * m + p) * inner + j]


def _for_gpu(lengths):
    """Extend lengths by whether a GPU has atomic additions for the dtype."""

    def more(data, index, like, out, **attrs):
        return *lengths(data, index, like, out, **attrs), out.dtype.itemsize >= ATOMIC

    return more


# -- the same indices for all lines ----------------------------------------------------
def _take_rule(old, index, axis, mode):
    axis = axis_of("take", axis, len(old))
    new = (*old[:axis], *index, *old[axis + 1 :])
    _not_empty("take", old, axis, index)
    return new


def _take_eager(a, indices, *, axis, mode):
    at = places("take", indices, a.shape[axis], mode).astype(np.intp, copy=False)
    return np.take(a, at, axis=axis)


def _take_lengths(a, indices, out, axis, mode):
    return *split_at(a.shape, axis), indices.size, mode == "wrap"


@loops(_take_lengths)
def _take_cpu(a, indices, out, outer, n, inner, m, wraps):
    for i, p in each(outer, m, work=outer * m * inner):
        at = place(indices[p], n, wraps)
        for j in range(inner):
            store(out, (i * m + p) * inner + j, a[(i * n + at) * inner + j])


@loops(_take_lengths)
def _take_gpu(a, indices, out, outer, n, inner, m, wraps):
    """Use a thread per element, so that loads coalesce."""
    for i, p, j in each(outer, m, inner):
        at = place(indices[p], n, wraps)
        store(out, (i * m + p) * inner + j, a[(i * n + at) * inner + j])


def _put_take_eager(data, indices, like, *, axis, mode):
    outer, n, inner = split_at(like.shape, axis)
    out = np.zeros((outer, n, inner), data.dtype)
    at = places("take", indices, n, mode).ravel()
    np.add.at(out, (slice(None), at), data.reshape(outer, at.size, inner))
    return out.reshape(like.shape)


def _put_take_lengths(data, indices, like, out, axis, mode):
    outer, n, inner = split_at(out.shape, axis)
    return outer, n, inner, indices.size, mode == "wrap", True


MODE = {"mode": (choice("clip", "wrap", "raise"), "clip")}
put_take = register(
    "_put_take",
    inputs=("data", "indices", "like"),
    attrs={"axis": (integer, 0), **MODE},
    infer=adds_back("_put_take", _take_rule),
    eager=_put_take_eager,
    cpu=loops(_put_take_lengths)(_put),
    gpu=loops(_for_gpu(_put_take_lengths))(_put_gpu),
    grad=lambda g, out, data, indices, like, **a: (take(g, indices, **a), None, None),
    doc="Zeros in the shape of `like`, to which the data is added where take reads.",
)

take = register(
    "take",
    inputs=("a", "indices"),
    attrs={"axis": (integer, 0), **MODE},
    infer=forward(_take_rule),
    eager=_take_eager,
    cpu=_take_cpu,
    gpu=_take_gpu,
    stores=True,
    grad=lambda g, out, a, indices, **kw: (put_take(g, indices, a, **kw), None),
    doc="The parts of `a` at given places of one axis; mode clip, wrap or raise.",
)


def _embedding_infer(specs, input_dim, output_dim, dtype, sparse_grad):
    data, weight = specs
    shape = (input_dim, output_dim)
    if min(shape) < 1:
        raise ShapeError(
            f"Embedding: input_dim={input_dim} and output_dim="
            f"{output_dim}, but both must be at least 1"
        )
    merge("Embedding", "weight", weight.shape, shape)
    kind = weight.dtype or dtype
    return [data, Spec(shape, kind)], [
        Spec((*data.shape, output_dim) if known([data]) else None, kind)
    ]


def _embedding_expand(specs, data, weight, input_dim, **_):
    if data.level != 1:
        return take(weight, data, mode="raise")
    for values in data.refs[0][0].values or ():  # a constant
        places("Embedding", values, input_dim, "raise")
    return take(weight, data)


embedding = register(
    "Embedding",
    inputs=("data", "weight"),
    infer=_embedding_infer,
    attrs={
        "input_dim": (integer, REQUIRED),
        "output_dim": (integer, REQUIRED),
        "dtype": (dtype, np.dtype("float32")),
        "sparse_grad": (boolean, False),
    },
    expand=_embedding_expand,
    doc="A row of the weight for each index; the gradient is dense, whatever sparse_grad says. An "
    "index outside of the rows is an error of eager arrays; compiled code and GPUs take the "
    "nearest row, because a kernel cannot raise.",
)


# -- separate indices per line ---------------------------------------------------------
def _along_rule(old, index, axis, mode):
    axis = axis_of("pick", axis, len(old))
    rest = old[:axis] + old[axis + 1 :]
    if index != rest and index[:axis] + index[axis + 1 :] != rest:
        raise ShapeError(
            f"pick: index has shape {index}, but data {old} with axis={axis} needs {rest}"
        )
    _not_empty("pick", old, axis, index)
    return index


def _lines(data, index, axis):
    """Return (outer, length, inner) of the data, and of the index, which may lack the axis."""
    outer, n, inner = split_at(data.shape, axis)
    return (outer, n, inner), (outer, index.size // max(outer * inner, 1), inner)


def _along_eager(data, index, *, axis, mode):
    lines, picked = _lines(data, index, axis)
    at = places("pick", index, lines[1], mode).reshape(picked)
    return np.take_along_axis(data.reshape(lines), at, 1).reshape(index.shape)


@loops(
    lambda data, index, out, axis, mode: (
        *_lines(data, index, axis)[0],
        _lines(data, index, axis)[1][1],
        mode == "wrap",
    )
)
def _along_cpu(data, index, out, outer, n, inner, m, wraps):
    for i, p, j in each(outer, m, inner, work=outer * m * inner):
        at = place(index[(i * m + p) * inner + j], n, wraps)
        store(out, (i * m + p) * inner + j, data[(i * n + at) * inner + j])


def _put_along_eager(data, index, like, *, axis, mode):
    lines, picked = _lines(like, index, axis)
    out = np.zeros(lines, data.dtype)
    at = places("pick", index, lines[1], mode).reshape(picked)
    before, _, after = np.ogrid[: picked[0], :1, : picked[2]]
    np.add.at(out, (before, at, after), data.reshape(picked))
    return out.reshape(like.shape)


def _put_along_lengths(data, index, like, out, axis, mode):
    (outer, n, inner), (_, m, _) = _lines(out, index, axis)
    return outer, n, inner, m, mode == "wrap", False


def _one_a_line(specs, shape, index, axis, mode):
    """Return (one-hot of the picked index per line, shape with one element per line).

    A loop over whole lines can compare each index, and so fuse; elsewhere (`lower_if`) a
    direct load is cheaper.
    `None` if several elements of a line are picked, or an index may wrap.
    """
    axis = axis_of("pick", axis, len(shape))
    n, one = shape[axis], as_codes((*shape[:axis], 1, *shape[axis + 1 :]))
    if mode == "wrap" or 0 in shape or specs[1].size * n != math.prod(shape):
        return None
    at = cast(reshape(index, shape=one), dtype="int64")
    at = cast(at.clip(0, n - 1), dtype="int32")
    numbers = make(index, arange, start=n, dtype="int32")
    numbers = reshape(numbers, shape=(-1,) + (1,) * (len(shape) - axis - 1))
    return numbers.broadcast_equal(at), one


def _along_lower(specs, data, index, *, axis, mode):
    if not (lookup := _one_a_line(specs, specs[0].shape, index, axis, mode)):
        return None
    hit, _ = lookup
    nothing = make(data, full, shape=(1,), value=0.0, dtype=specs[0].dtype)
    picked = sum_(choose(hit, data, nothing), axis=axis, keepdims=True)
    return reshape(picked, shape=as_codes(specs[1].shape))


def _put_along_lower(specs, data, index, like, *, axis, mode):
    if not (lookup := _one_a_line(specs, specs[2].shape, index, axis, mode)):
        return None
    hit, one = lookup
    nothing = make(data, full, shape=(1,), value=0.0, dtype=specs[0].dtype)
    return choose(hit, reshape(data, shape=one), nothing)


ALONG = {"axis": (integer, -1), **MODE}
put_along = register(
    "_put_along",
    inputs=("data", "index", "like"),
    attrs=ALONG,
    infer=adds_back("_put_along", _along_rule),
    eager=_put_along_eager,
    cpu=loops(_put_along_lengths)(_put),
    gpu=loops(_for_gpu(_put_along_lengths))(_put_gpu),
    lower=_put_along_lower,
    lower_if=lambda source, readers: any(r.reduce for r in readers),
    grad=lambda g, out, data, index, like, **a: (
        reshape_like(take_along(g, index, **a), data),
        None,
        None,
    ),
    doc="Zeros in the shape of `like`, to which the data is added at the picked places.",
)

take_along = register(
    "_take_along",
    inputs=("data", "index"),
    attrs=ALONG,
    infer=forward(_along_rule),
    eager=_along_eager,
    cpu=_along_cpu,
    stores=True,
    lower=_along_lower,
    lower_if=lambda source, readers: source is not None and source.lower is not None,
    grad=lambda g, out, data, index, **a: (put_along(g, index, data, **a), None),
    doc="Elements of each line along an axis: data[i, index[i, j]].",
)


def _pick_rule(old, index, axis, keepdims, mode):
    axis = axis_of("pick", axis, len(old))
    rest = old[:axis] + old[axis + 1 :]
    with_one = (*old[:axis], 1, *old[axis + 1 :])
    if index not in (rest, with_one, rest or (1,)):
        raise ShapeError(
            f"pick: index has shape {index}, but data {old} with axis={axis} needs {rest}"
        )
    _not_empty("pick", old, axis, rest)
    return with_one if keepdims else rest or (1,)


def _pick_expand(specs, data, index, axis, keepdims, mode):
    shape = _pick_rule(specs[0].shape, specs[1].shape, axis, keepdims, mode)
    picked = take_along(data, index, axis=axis, mode=mode)
    same = specs[1].shape == shape
    return picked if same else reshape(picked, shape=as_codes(shape))


pick = register(
    "pick",
    "choose_element_0index",
    inputs=("data", "index"),
    infer=forward(_pick_rule),
    expand=_pick_expand,
    attrs={"axis": (integer, -1), "keepdims": (boolean, False), **MODE},
    doc="One element of each line along an axis: data[i, index[i]].",
)

batch_take = register(
    "batch_take",
    inputs=("a", "indices"),
    infer=lambda specs: pick.infer(specs, axis=-1, keepdims=False, mode="clip"),
    expand=lambda specs, a, indices: pick(a, indices),
    doc="One element of each row: a[i, indices[i]].",
)


# -- several indices per element -------------------------------------------------------
def _flat_rule(index, shape):
    if len(index) < 2 or index[0] > len(shape):
        raise ShapeError(
            f"gather_nd: indices have shape {index}, but (M, ...) with M at most {len(shape)} and "
            f"an axis more is needed, one row an axis of {shape}"
        )
    return index[1:]


def _flat_eager(indices, *, shape):
    rows = [places("gather_nd", row, n, "signed") for row, n in zip(indices, shape, strict=False)]
    lengths = shape[: len(rows)]
    return sum(
        (row * step for row, step in zip(rows, row_major(lengths), strict=True)),
        np.zeros(indices.shape[1:], np.int64),
    )


def _flat_lengths(indices, out, shape):
    shape = shape[: indices.shape[0]]
    return out.size, len(shape), tuple(max(n, 1) for n in shape), row_major(shape)


@loops(_flat_lengths)
def _flat_cpu(indices, out, n, axes, lengths, steps):
    for i in each(n, work=n * axes):
        at = 0
        for d in range(axes):
            at += np.int64(indices[d * n + i]) % lengths[d] * steps[d]
        store(out, i, at)


flat_places = register(
    "_flat_places",
    inputs=("indices",),
    attrs={"shape": (shape, REQUIRED)},
    infer=forward(_flat_rule, dtype=np.dtype("int64")),
    eager=_flat_eager,
    cpu=_flat_cpu,
    stores=True,
    grad=lambda g, out, indices, shape: (None,),
    doc="One whole number for each column of indices: its place in row-major order.",
)


def _gather_rule(old, index):
    _flat_rule(index, old)
    return index[1:] + old[index[0] :]


def _gather_expand(specs, data, indices):
    old, m = specs[0].shape, specs[1].shape[0]
    flat = flat_places(indices, shape=old)
    rows = (math.prod(old[:m]), *old[m:])
    return take(reshape(data, shape=as_codes(rows)), flat)


gather_nd = register(
    "gather_nd",
    inputs=("data", "indices"),
    infer=forward(_gather_rule),
    expand=_gather_expand,
    doc="data[indices[0], indices[1], ...]: a column of indices tells one place.",
)


def _scatter_expand(specs, data, indices, shape):
    m = specs[1].shape[0]
    flat = flat_places(indices, shape=shape)
    rows = make(data, zeros, shape=(math.prod(shape[:m]), *shape[m:]))
    return reshape(put_take(data, flat, rows), shape=as_codes(shape))


def _scatter_infer(specs, shape):
    if known(specs):
        merge("scatter_nd", "data", specs[0].shape, _gather_rule(shape, specs[1].shape))
    return specs, [Spec(shape, specs[0].dtype)]


scatter_nd = register(
    "scatter_nd",
    inputs=("data", "indices"),
    attrs={"shape": (shape, REQUIRED)},
    infer=_scatter_infer,
    expand=_scatter_expand,
    doc="Zeros, with the data where gather_nd reads; what meets at one place is added.",
)


def _copy_rows_expand(specs, old, index, new):
    """Gather, because a scatter adds to zeros, which makes 0.0 of -0.0."""
    if 0 in specs[2].shape:
        return old
    after = make(index, arange, start=1, stop=specs[1].size + 1, dtype="int32")
    after = put_take(after, index, make(index, zeros, shape=specs[0].shape[:1], dtype="int32"))
    column = (specs[0].shape[0], *(1 for _ in specs[0].shape[1:]))
    return where(reshape(after, shape=column), take(new, after - 1), old)


def _copy_rows_rule(old, index, new):
    merge("index_copy", "new_tensor", new, _take_rule(old, index, axis=0, mode="clip"))
    return old


index_copy = register(
    "_contrib_index_copy",
    inputs=("old_tensor", "index_vector", "new_tensor"),
    infer=forward(_copy_rows_rule),
    expand=_copy_rows_expand,
    doc="The old rows, with new ones at the given places, each of which occurs once.",
)


# -- conversion of indices -------------------------------------------------------------
def _ravel_expand(specs, data, shape):
    total = None
    for d, step in enumerate(row_major(shape)):
        row = squeeze(slice_axis(data, axis=0, begin=d, end=d + 1), axis=0) * step
        total = row if total is None else total + row
    return total


def _ravel_rule(old, shape):
    if old[0] != len(shape):
        raise ShapeError(
            f"ravel_multi_index: data {old} has {old[0]} rows, but one "
            f"for each axis of {shape} is needed"
        )
    return old[1:] or (1,)


ravel_multi_index = register(
    "_ravel_multi_index",
    "ravel_multi_index",
    attrs={"shape": (shape, REQUIRED)},
    infer=forward(_ravel_rule),
    expand=_ravel_expand,
    doc="(axes, N) indices -> (N,) places in row-major order.",
)


def _unravel_rule(old, shape):
    if not shape:
        raise ShapeError("unravel_index: shape=() has no axes; needed: one or more lengths")
    return (len(shape), *old)


def _unravel_expand(specs, data, shape):
    whole = cast(data, dtype="int64")
    rows = []
    for d, (n, step) in enumerate(zip(shape, row_major(shape), strict=True)):
        row = whole / step
        rows.append(expand_dims(row % n if d else row, axis=0))
    joined = rows[0].concat(*rows[1:], dim=0) if len(rows) > 1 else rows[0]
    return cast(joined, dtype=specs[0].dtype)


unravel_index = register(
    "_unravel_index",
    "unravel_index",
    attrs={"shape": (shape, REQUIRED)},
    infer=forward(_unravel_rule),
    expand=_unravel_expand,
    doc="(N,) places in row-major order -> (axes, N) indices.",
)


# -- a row per index -------------------------------------------------------------------
def _one_hot_eager(indices, *, depth, on_value, off_value, dtype):
    hit = np.arange(depth) == indices[..., None].astype(np.int64)
    return np.where(hit, on_value, off_value).astype(dtype or np.float32)


@loops(
    lambda indices, out, depth, on_value, off_value, dtype: (
        indices.size,
        depth,
        on_value,
        off_value,
    )
)
def _one_hot_cpu(indices, out, n, depth, on_value, off_value):
    for i, c in each(n, depth, work=n * depth):
        store(out, i * depth + c, T(on_value) if c == int(indices[i]) else T(off_value))


def _one_hot_infer(specs, depth, on_value, off_value, dtype):
    dtype = dtype or np.dtype("float32")
    for value in (on_value, off_value):
        check_range("one_hot", value, dtype)
    return forward(lambda old: (*old, max(depth, 0)), dtype=dtype)(specs)


one_hot = register(
    "one_hot",
    inputs=("indices",),
    eager=_one_hot_eager,
    cpu=_one_hot_cpu,
    stores=True,
    attrs={
        "depth": (integer, REQUIRED),
        "on_value": (number, 1.0),
        "off_value": (number, 0.0),
        "dtype": (dtype, np.dtype("float32")),
    },
    infer=_one_hot_infer,
    grad=lambda g, out, indices, **_: (None,),
    doc="A line of `depth` numbers for each index: on at the index, off elsewhere.",
)


def _fill_expand(specs, lhs, mhs, rhs):
    hit = one_hot(rhs, depth=specs[0].shape[1], dtype=specs[0].dtype)
    return where(hit, expand_dims(mhs, axis=1), lhs)


def _fill_rule(lhs, mhs, rhs):
    for name, got in (("mhs", mhs), ("rhs", rhs)):
        merge("fill_element_0index", name, got, lhs[:1])
    if len(lhs) != 2:
        raise ShapeError(f"fill_element_0index: lhs has shape {lhs}, but (rows, columns) is needed")
    return lhs


fill_element_0index = register(
    "fill_element_0index",
    inputs=("lhs", "mhs", "rhs"),
    infer=forward(_fill_rule),
    expand=_fill_expand,
    doc="lhs, with mhs[i] at the place rhs[i] of row i.",
)
