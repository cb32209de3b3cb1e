"""Rules for ONNX: operators that move, gather, scatter, reduce and order.

Takes:   a draft, a node with its attributes and specs, the values of its inputs.
Gives:   `LAYOUT`, operator name -> rule, which gives the value of the output.

A rule may write lengths of the batch into shapes: `agreed` finds them.
What is left out: the place of NaN in an order, which ONNX does not fix.
"""

import numpy as np

from minihybrid.formats.onnx.export.draft import whole
from minihybrid.ops.reduce import split_at
from minihybrid.ops.shapes import axes_of, axis_of, row_major

LARGEST = np.iinfo(np.int64).max


def spec_of(node, place=0):
    """The spec of one of the node's inputs."""
    source, i = node.inputs[place]
    return source.specs[i]


def same(draft, node, data, *_):
    """The input itself."""
    return data


def reshape(draft, node, data):
    """Any operator that gives the same numbers under another shape."""
    return draft.reshape(data, node.specs[0].shape)


def created(draft, node):
    """An array of one number."""
    shape, dtype = node.specs[0]
    value = node.op.eager(**{**node.attrs, "shape": (1,)})
    return draft.add("ConstantOfShape", whole(shape), dtype=dtype, value=value)


def zeros(draft, shape, dtype):
    """An array of zeros."""
    return draft.add("ConstantOfShape", whole(shape), dtype=dtype, value=np.zeros(1, dtype))


def stretched(draft, value, old, new):
    """Axes of length 1 repeated; those that are long enough stay: 1 says so to ONNX."""
    if 0 in new:  # ONNX Runtime does not make 0 of 1
        return zeros(draft, new, value.dtype)
    old = (0,) * (len(new) - len(old)) + tuple(old)
    return draft.add(
        "Expand", value, whole([1 if m == n else n for m, n in zip(old, new, strict=True)])
    )


def broadcast_to(draft, node, data):
    """Axes of length 1 repeated."""
    return stretched(draft, data, spec_of(node).shape, node.specs[0].shape)


def transpose(draft, node, data):
    """Axes in another order."""
    if not node.specs[0].shape:  # ONNX has no empty list
        return data
    ndim = len(node.specs[0].shape)
    axes = [a % ndim for a in node.attrs["axes"]] or list(range(ndim))[::-1]
    return draft.add("Transpose", data, perm=axes)


def slice_(draft, node, data):
    """ONNX's bounds are Python's; the largest number stands for an edge."""
    if not node.specs[0].shape:
        return data
    parts = []
    begin, end, step = (node.attrs[key] for key in ("begin", "end", "step"))
    for i, (start, stop) in enumerate(zip(begin, end, strict=True)):
        by = (step[i] if i < len(step) else None) or 1
        edges = (0, LARGEST) if by > 0 else (LARGEST, -LARGEST)
        parts.append(
            (edges[0] if start is None else start, edges[1] if stop is None else stop, i, by)
        )
    starts, ends, axes, steps = map(whole, zip(*parts, strict=True))
    return draft.add("Slice", data, starts, ends, axes, steps)


def concat(draft, node, *data):
    """Arrays joined along an axis."""
    return draft.add("Concat", *data, axis=node.attrs["dim"])


def frame(draft, node, data):
    """A frame of one value; ONNX has all widths before the array first."""
    width = node.attrs["pad_width"]
    return draft.add(
        "Pad",
        data,
        whole(width[::2] + width[1::2]),
        np.asarray(node.attrs["value"]).astype(data.dtype),
    )


# -- reductions ------------------------------------------------------------------------
def reduction(kind):
    """The rule of a reduction that ONNX calls `kind`."""

    def rule(draft, node, data):
        attrs, out = node.attrs, node.specs[0]
        ndim = len(spec_of(node).shape)
        gone = axes_of(kind, attrs["axis"], ndim, attrs["exclude"])
        value = draft.add(
            kind,
            draft.cast(data, out.dtype),
            whole(gone),
            keepdims=int(attrs["keepdims"]),
            noop_with_empty_axes=1,
        )
        if len(gone) == ndim and not attrs["keepdims"]:  # ours has shape (1,)
            value = draft.reshape(value, out.shape)
        return value

    return rule


def place(kind):
    """The rule of argmax and argmin."""

    def rule(draft, node, data):
        axis, keepdims = node.attrs["axis"], node.attrs["keepdims"]
        if axis is None:
            data, axis = draft.reshape(data, (-1,)), 0
        value = draft.add(kind, data, axis=axis, keepdims=int(keepdims), dtype="int64")
        value = draft.cast(value, node.specs[0].dtype)
        one_left = node.attrs["axis"] is None or len(node.specs[0].shape) == 1
        return draft.reshape(value, node.specs[0].shape) if one_left else value

    return rule


def running_sum(draft, node, data):
    """The sum of all numbers up to each one."""
    return draft.add("CumSum", data, np.array(node.attrs["axis"]))


def order(draft, node, data):
    """The places of the numbers of each line, in order."""
    axis = node.attrs["axis"]
    count = whole([node.specs[0].shape[axis]])
    return draft.add(
        "TopK",
        data,
        count,
        axis=axis,
        dtype="int64",
        count=2,
        largest=int(not node.attrs["is_ascend"]),
    )[1]


# -- places that are arrays ------------------------------------------------------------
def within(draft, index, length, mode):
    """Indices as whole numbers from 0 to length - 1."""
    index = draft.cast(index, np.int64)
    last = np.array(max(length - 1, 0))
    if mode == "wrap":
        return draft.add("Mod", index, np.array(max(length, 1)))
    return draft.add("Clip", index, np.array(0), last)


def take(draft, node, data, index):
    """The same places for all lines."""
    spec = spec_of(node)
    axis = axis_of("take", node.attrs["axis"], len(spec.shape))
    index = within(draft, index, spec.shape[axis], node.attrs["mode"])
    return draft.add("Gather", data, index, axis=axis)


def put_take(draft, node, data, index, like):
    """Zeros, to which the data is added where `take` reads."""
    shape = node.specs[0].shape
    outer, n, inner = split_at(shape, node.attrs["axis"])
    count = spec_of(node, 1).size
    index = within(draft, index, n, node.attrs["mode"])
    index = draft.reshape(index, (1, count, 1))
    lines = draft.reshape(data, (outer, count, inner))
    index = stretched(draft, index, (1, count, 1), (outer, count, inner))
    return scattered(draft, index, lines, (outer, n, inner), shape)


def scattered(draft, index, data, lines, shape):
    """Zeros in lines along axis 1, to which the data is added; under a shape."""
    out = draft.add(
        "ScatterElements", zeros(draft, lines, data.dtype), index, data, axis=1, reduction="add"
    )
    return draft.reshape(out, shape)


def in_lines(draft, node, index, shape):
    """(the lengths before, at and after the axis, those of the index, and the index)."""
    lines = outer, n, inner = split_at(shape, node.attrs["axis"])
    picked = (outer, spec_of(node, 1).size // max(outer * inner, 1), inner)
    index = within(draft, index, n, node.attrs["mode"])
    return lines, picked, draft.reshape(index, picked)


def take_along(draft, node, data, index):
    """Other places in each line."""
    lines, _, index = in_lines(draft, node, index, spec_of(node).shape)
    out = draft.add("GatherElements", draft.reshape(data, lines), index, axis=1)
    return draft.reshape(out, node.specs[0].shape)


def put_along(draft, node, data, index, like):
    """Zeros, to which the data is added where `take_along` reads."""
    shape = node.specs[0].shape
    lines, picked, index = in_lines(draft, node, index, shape)
    return scattered(draft, index, draft.reshape(data, picked), lines, shape)


def flat_places(draft, node, index):
    """One whole number for each column of indices."""
    rows, *rest = spec_of(node).shape
    column = (rows, *(1 for _ in rest))
    lengths = node.attrs["shape"][:rows]
    index = draft.add(
        "Mod", draft.cast(index, np.int64), whole([max(n, 1) for n in lengths]).reshape(column)
    )
    index = draft.add("Mul", index, whole(row_major(lengths)).reshape(column))
    return draft.add("ReduceSum", index, whole([0]), keepdims=0)


def one_hot(draft, node, index):
    """A line of numbers for each index: on at the index, off elsewhere."""
    attrs, dtype = node.attrs, node.specs[0].dtype
    index = draft.add("Unsqueeze", draft.cast(index, np.int64), whole([-1]))
    hit = draft.add("Equal", index, np.arange(attrs["depth"]), dtype=bool)
    return draft.add(
        "Where",
        hit,
        *(np.array(attrs[key]).astype(dtype) for key in ("on_value", "off_value")),
        dtype=dtype,
    )


# -- places that are known -------------------------------------------------------------
def numbered(shape):
    """The number of each place of an array."""
    return np.arange(int(np.prod(shape))).reshape(shape)


def strided(draft, node, data):
    """Any operator that reads its input at other steps: its places are constants."""
    spec = spec_of(node)
    places = node.op.eager(numbered(spec.shape), **node.attrs)
    return draft.add("Gather", draft.reshape(data, (-1,)), places, axis=0)


def put_strided(reader):
    """The rule of an operator that puts the data where `reader` would read it."""

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
    "shape_array": lambda draft, node, data: draft.add("Shape", data, dtype="int64"),
}
