"""ONNX import rules for slices, indexing and sorting.

Defines: `PARTS`: ONNX name -> function of a `Call` that returns the outputs.

Not supported: outputs whose shapes depend on values (NonZero, Unique), and indices into
several axes (GatherND).
"""

from functools import partial

from minihybrid.formats.onnx.load.elementwise import renamed
from minihybrid.ops import OPS


# -- slices ----------------------------------------------------------------------------
def _split(call):
    """Split into equal parts or given lengths."""
    axis = call.axis(call.attr("axis"), call.ndim(0))
    count = len(call.node.outputs)
    if call.attr("num_outputs") not in (None, count):
        call.fail(f"it has {count} outputs, but another num_outputs")
    lengths = call.setting("split", 13, 1, call.numbers)
    total = call.shape(0)[axis]
    if lengths is None and total % count:
        whole = -(-total // count)
        lengths = [whole] * (count - 1) + [total - whole * (count - 1)]
    if count == 1:
        return call.need(0)
    if lengths is None or len(set(lengths)) == 1:
        out = OPS["SliceChannel"](call.sym(0), num_outputs=count, axis=axis)
    else:
        if sum(lengths) != total or min(lengths) < 0:
            call.fail(f"the lengths {tuple(lengths)} do not add up to {total}")
        places = tuple(sum(lengths[:i]) for i in range(len(lengths)))
        out = OPS["_split_v2"](call.sym(0), indices=places, axis=axis)
    return tuple(out[i] for i in range(len(out)))


def _edges(call, i, lengths):
    """Return the bounds of slices; `None` for the end of the axis in both trials."""
    pairs = zip(*call.trials(i, "where slices begin and end"), strict=True)
    return [
        a
        if a == b
        else None
        if (a, b) == length
        else call.fail(
            "where a slice begins or ends follows from a length that the file leaves open"
        )
        for (a, b), length in zip(pairs, lengths, strict=True)
    ]


def _slice(call):
    """Slice: the bounds are attributes, since opset 10 inputs."""
    ndim, pairs = call.ndim(0), list(zip(*call.shapes(0), strict=True))
    if call.opset < 10:
        begins, ends = call.attr("starts"), call.attr("ends")
        axes, steps = call.attr("axes") or tuple(range(len(begins))), None
    else:
        count = len(call.trials(1, "where slices begin")[0])
        axes = range(count) if call.get(3) is None else call.numbers(3, "the axes")
        steps = None if call.get(4) is None else call.numbers(4, "the steps")
        lengths = [pairs[call.axis(a, ndim)] for a in axes]
        begins, ends = _edges(call, 1, lengths), _edges(call, 2, lengths)
    cut = [[None] * ndim, [None] * ndim, [1] * ndim]
    for axis, *part in zip(axes, begins, ends, steps or [1] * len(begins), strict=True):
        for numbers, number in zip(cut, part, strict=True):
            numbers[call.axis(axis, ndim)] = number
    return OPS["slice"](call.sym(0), begin=tuple(cut[0]), end=tuple(cut[1]), step=tuple(cut[2]))


# -- indexing --------------------------------------------------------------------------
def _gather(call):
    """Gather, as a slice, an embedding, or `take` along any axis."""
    ndim = call.ndim(0)
    axis, where = call.axis(call.attr("axis"), ndim), call.need(1)
    if where.fixed is not None and where.fixed.shape in ((), (1,)):
        at = where.fixed.item()
        part = OPS["slice_axis"](call.sym(0), axis=axis, begin=at, end=None if at == -1 else at + 1)
        if where.fixed.ndim == 1:
            return part
        return OPS["_np_squeeze"](part, axis=axis)
    if where.arrays is None and call.need(0).arrays is not None and (ndim, axis) == (2, 0):
        rows, width = call.shape(0)
        return OPS["Embedding"](call.sym(1), call.sym(0), input_dim=rows, output_dim=width)
    return OPS["take"](call.sym(0), call.sym(1), axis=axis, mode="wrap")


def _scatter_elements(call):
    """ScatterElements: write or add updates at the indices."""
    data, index, updates = (call.sym(i) for i in range(3))
    more = {"axis": call.axis(call.attr("axis"), call.ndim(0)), "mode": "wrap"}
    match call.attr("reduction"):
        case "add":
            return OPS["elemwise_add"](data, OPS["_put_along"](updates, index, data, **more))
        case None | "none":  # gather, because a scatter adds to zeros, which makes 0.0 of -0.0
            after = OPS["_np_cumsum"](OPS["ones_like"](index), axis=more["axis"])
            after = OPS["_put_along"](after, index, data, **more)
            return OPS["where"](after, OPS["_take_along"](updates, after - 1, **more), data)
        case other:
            call.fail(f"reduction {other!r:.40} is not supported; needed: none or add")


def _scatter_nd(call):
    """ScatterND of whole rows: write them at the indices."""
    shape = call.shape(1)
    if call.attr("reduction") not in (None, "none") or len(shape) != 2 or shape[1] != 1:
        call.fail("only whole rows of the first axis are supported, without a reduction")
    places = OPS["Reshape"](call.sym(1), shape=(-1,))
    return OPS["_contrib_index_copy"](call.sym(0), places, call.sym(2))


def _one_hot(call):
    if call.axis(call.attr("axis"), call.ndim(0) + 1) != call.ndim(0):
        call.fail("only the last axis is supported")
    off, on = call.fixed(2, "the pair of values").ravel().tolist()
    depth, places = int(call.fixed(1, "the depth").ravel()[0]), call.sym(0)
    places = OPS["where"](places < 0, places + depth, places)  # -1 means the last
    return OPS["one_hot"](places, depth=depth, on_value=on, off_value=off, dtype=call.dtype(2))


def _top_k(call):
    call.attr("sorted")  # ours is always sorted
    count = call.numbers(1, "the number of elements")
    out = OPS["topk"](
        call.sym(0),
        k=count[0],
        axis=call.attr("axis"),
        ret_typ="both",
        is_ascend=not call.attr("largest"),
        dtype="int64",
    )
    return tuple(out[i] for i in (0, 1))


def _running_sum(call):
    (axis,), data = call.numbers(1, "the axis"), call.sym(0)
    axis = call.axis(axis, call.ndim(0))
    source = OPS["reverse"](data, axis=axis) if call.attr("reverse") else data
    out = OPS["_np_cumsum"](source, axis=axis)
    out = out if source is data else OPS["reverse"](out, axis=axis)
    return out - data if call.attr("exclusive") else out


def _triangle(call):
    k = 0 if call.get(1) is None else call.numbers(1, "the diagonal")[0]
    tril, turned = OPS["_npi_tril"], partial(OPS["SwapAxis"], dim1=-1, dim2=-2)
    if not call.attr("upper"):
        return tril(call.sym(0), k=k)
    return turned(tril(turned(call.sym(0)), k=-k))


PARTS = {
    "Split": _split,
    "Slice": _slice,
    "Gather": _gather,
    "OneHot": _one_hot,
    "GatherElements": renamed("_take_along", {"mode": "wrap"}, axis="axis"),
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "TopK": _top_k,
    "CumSum": _running_sum,
    "Trilu": _triangle,
}
