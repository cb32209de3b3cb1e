"""ONNX export rules for layout, gather, scatter, reduction and sorting operators.

Uses:    a draft, a node with its attributes and specs, and its input values.
Defines: `LAYOUT`, operator name -> rule, which returns the output.

A rule may write batch sizes into shapes: `agreed` finds them.
Limits: ONNX doesn't specify where NaN is sorted.
"""

import numpy as np

from minihybrid.formats.onnx.export.draft import whole
from minihybrid.ops.reduce import split_at
from minihybrid.ops.shapes import axes_of, axis_of, row_major

INT64_MAX = np.iinfo(np.int64).max


def spec_of(node, place=0):
    """Return the spec of one of the node's inputs."""
    source, i = node.inputs[place]
    return source.specs[i]


def same(draft, node, data, *_):
    """Return the input itself."""
    return data


def reshape(draft, node, data):
    """Export any operator that only changes the shape."""
    return draft.reshape(data, node.specs[0].shape)


def created(draft, node):
    """Export a constant array, all elements equal."""
    return draft.filled(node.specs[0].shape, node.op.eager(**{**node.attrs, "shape": (1,)}))


def zeros(draft, shape, dtype):
    """Return an array of zeros."""
    return draft.filled(shape, np.zeros(1, dtype))


def stretched(draft, value, old, new):
    """Broadcast a value; in ONNX, 1 leaves the length of an axis unchanged."""
    if 0 in new:  # ONNX Runtime doesn't broadcast 1 to 0
        return zeros(draft, new, value.dtype)
    old = (0,) * (len(new) - len(old)) + tuple(old)
    lengths = [1 if m == n else n for m, n in zip(old, new, strict=True)]
    return draft.add("Expand", value, lengths)


def broadcast_to(draft, node, data):
    """Export a broadcast to a shape."""
    return stretched(draft, data, spec_of(node).shape, node.specs[0].shape)


def transpose(draft, node, data):
    """Export a transposition."""
    if not node.specs[0].shape:  # ONNX has no empty lists
        return data
    ndim = len(node.specs[0].shape)
    axes = [a % ndim for a in node.attrs["axes"]] or list(range(ndim))[::-1]
    return draft.add("Transpose", data, perm=axes)


def slice_(draft, node, data):
    """Export a slice; ONNX's bounds are Python's, with the largest integer for `None`."""
    parts = []
    begin, end, step = (node.attrs[key] for key in ("begin", "end", "step"))
    for i, (start, stop) in enumerate(zip(begin, end, strict=True)):
        by = (step[i] if i < len(step) else None) or 1
        if not start and stop is None and by == 1:
            continue
        edges = (0, INT64_MAX) if by > 0 else (INT64_MAX, -INT64_MAX)
        parts.append(
            (edges[0] if start is None else start, edges[1] if stop is None else stop, i, by)
        )
    return draft.add("Slice", data, *zip(*parts, strict=True)) if parts else data


def concat(draft, node, *data):
    """Export a concatenation."""
    return draft.add("Concat", *data, axis=node.attrs["dim"])


def frame(draft, node, data):
    """Export constant padding; ONNX lists the widths before all axes, then those after."""
    width = node.attrs["pad_width"]
    value = np.asarray(node.attrs["value"]).astype(data.dtype)
    return draft.add("Pad", data, width[::2] + width[1::2], value)


# -- reductions ------------------------------------------------------------------------
def reduction(kind):
    """Return the rule of a reduction that ONNX calls `kind`."""

    def rule(draft, node, data):
        attrs, out = node.attrs, node.specs[0]
        ndim = len(spec_of(node).shape)
        axes = axes_of(kind, attrs["axis"], ndim, attrs["exclude"])
        value = draft.add(
            kind,
            draft.cast(data, out.dtype),
            axes,
            keepdims=int(attrs["keepdims"]),
            noop_with_empty_axes=1,
        )
        if len(axes) == ndim and not attrs["keepdims"]:  # ours has shape (1,)
            value = draft.reshape(value, out.shape)
        return value

    return rule


def place(kind):
    """Return the rule of argmax or argmin."""

    def rule(draft, node, data):
        axis, keepdims = node.attrs["axis"], node.attrs["keepdims"]
        if axis is None:
            data, axis = draft.reshape(data, (-1,)), 0
        value = draft.add(kind, data, axis=axis, keepdims=int(keepdims))
        value = draft.cast(value, node.specs[0].dtype)
        one_left = node.attrs["axis"] is None or len(node.specs[0].shape) == 1
        return draft.reshape(value, node.specs[0].shape) if one_left else value

    return rule


def running_sum(draft, node, data):
    """Export a cumulative sum."""
    return draft.add("CumSum", data, np.array(node.attrs["axis"]))


def order(draft, node, data):
    """Export argsort along an axis as TopK."""
    axis, largest = node.attrs["axis"], int(not node.attrs["is_ascend"])
    length = (node.specs[0].shape[axis],)
    return draft.add("TopK", data, length, axis=axis, largest=largest, dtype="int64", count=2)[1]


# -- indices in arrays -----------------------------------------------------------------
def within(draft, index, length, mode):
    """Return indices as int64 in [0, length), wrapped or clipped."""
    index = draft.cast(index, np.int64)
    if mode == "wrap":
        return draft.add("Mod", index, max(length, 1))
    return draft.add("Clip", index, 0, max(length - 1, 0))


def take(draft, node, data, index):
    """Export `take` as Gather."""
    spec = spec_of(node)
    axis = axis_of("take", node.attrs["axis"], len(spec.shape))
    index = within(draft, index, spec.shape[axis], node.attrs["mode"])
    return draft.add("Gather", data, index, axis=axis)


def put_take(draft, node, data, index, like):
    """Export the gradient of `take`: add the data into zeros at the indices."""
    shape = node.specs[0].shape
    outer, n, inner = split_at(shape, node.attrs["axis"])
    count = spec_of(node, 1).size
    index = within(draft, index, n, node.attrs["mode"])
    index = draft.reshape(index, (1, count, 1))
    lines = draft.reshape(data, (outer, count, inner))
    index = stretched(draft, index, (1, count, 1), (outer, count, inner))
    return scattered(draft, index, lines, (outer, n, inner), shape)


def scattered(draft, index, data, lines, shape):
    """Add data into zeros of shape `lines` at indices along axis 1; reshape the sum."""
    out = draft.add(
        "ScatterElements", zeros(draft, lines, data.dtype), index, data, axis=1, reduction="add"
    )
    return draft.reshape(out, shape)


def in_lines(draft, node, index, shape):
    """Return (the shape with axes before and after the axis merged, the index's, the index)."""
    lines = outer, n, inner = split_at(shape, node.attrs["axis"])
    picked = (outer, spec_of(node, 1).size // max(outer * inner, 1), inner)
    index = within(draft, index, n, node.attrs["mode"])
    return lines, picked, draft.reshape(index, picked)


def take_along(draft, node, data, index):
    """Export `_take_along` as GatherElements."""
    lines, _, index = in_lines(draft, node, index, spec_of(node).shape)
    out = draft.add("GatherElements", draft.reshape(data, lines), index, axis=1)
    return draft.reshape(out, node.specs[0].shape)


def put_along(draft, node, data, index, like):
    """Export the gradient of `take_along`: add the data into zeros at the indices."""
    shape = node.specs[0].shape
    lines, picked, index = in_lines(draft, node, index, shape)
    return scattered(draft, index, draft.reshape(data, picked), lines, shape)


def flat_places(draft, node, index):
    """Export the flattening of multi-indices, one per column."""
    rows, *rest = spec_of(node).shape
    column = (rows, *(1 for _ in rest))
    lengths = node.attrs["shape"][:rows]
    index = draft.add(
        "Mod", draft.cast(index, np.int64), whole([max(n, 1) for n in lengths]).reshape(column)
    )
    index = draft.add("Mul", index, whole(row_major(lengths)).reshape(column))
    return draft.add("ReduceSum", index, (0,), keepdims=0)


def one_hot(draft, node, index):
    """Export one-hot vectors with the values `on_value` and `off_value`."""
    attrs, dtype = node.attrs, node.specs[0].dtype
    index = draft.add("Unsqueeze", draft.cast(index, np.int64), (-1,))
    on, off = (np.array(attrs[key]).astype(dtype) for key in ("on_value", "off_value"))
    return draft.add("Where", draft.add("Equal", index, np.arange(attrs["depth"])), on, off)


# -- constant indices ------------------------------------------------------------------
def numbered(shape):
    """Return an array of the flat index of each element."""
    return np.arange(int(np.prod(shape))).reshape(shape)


def strided(draft, node, data):
    """Export any strided view as a Gather with constant indices."""
    spec = spec_of(node)
    places = node.op.eager(numbered(spec.shape), **node.attrs)
    return draft.add("Gather", draft.reshape(data, (-1,)), places, axis=0)


def put_strided(reader):
    """Return the rule of an operator that writes the data where `reader` would read it."""

    def rule(draft, node, data, like):
        shape = node.specs[0].shape
        places = reader(numbered(shape), node.attrs).reshape(1, -1)
        return scattered(
            draft, places, draft.reshape(data, (1, -1)), (1, int(np.prod(shape))), shape
        )

    return rule


def _sliced(places, attrs):
    step = attrs["step"] or (None,) * len(attrs["begin"])
    return places[tuple(map(slice, attrs["begin"], attrs["end"], step))]


def _diagonal(places, attrs):
    return np.diagonal(places, attrs["offset"], attrs["axis1"], attrs["axis2"])


LAYOUT = {
    **dict.fromkeys(("_copy", "BlockGrad", "_detach", "_np_copy", "_loss_head"), same),
    **dict.fromkeys(
        ("Reshape", "expand_dims", "squeeze", "_np_reshape", "_npx_reshape", "_np_squeeze"), reshape
    ),
    **dict.fromkeys(("_zeros", "_ones", "_full", "_npi_zeros", "_npi_ones"), created),
    **dict.fromkeys(("broadcast_to", "_npi_broadcast_to"), broadcast_to),
    **dict.fromkeys(("_diagonal", "_np_diagonal"), strided),
    "Flatten": lambda draft, node, data: draft.add("Flatten", data, axis=1),
    "transpose": transpose,
    "slice": slice_,
    "Concat": concat,
    "_frame": frame,
    "_put_slice": put_strided(_sliced),
    "_put_diagonal": put_strided(_diagonal),
    "sum": reduction("ReduceSum"),
    "prod": reduction("ReduceProd"),
    "max": reduction("ReduceMax"),
    "min": reduction("ReduceMin"),
    "mean": reduction("ReduceMean"),
    "argmax": place("ArgMax"),
    "_long_argmax": place("ArgMax"),
    "_long_argmin": place("ArgMin"),
    "argmin": place("ArgMin"),
    "_running_sum": running_sum,
    "_order": order,
    "take": take,
    "_put_take": put_take,
    "_take_along": take_along,
    "_put_along": put_along,
    "_flat_places": flat_places,
    "one_hot": one_hot,
    "shape_array": lambda draft, node, data: draft.add("Shape", data),
}
