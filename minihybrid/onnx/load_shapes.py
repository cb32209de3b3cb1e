"""Chapter 13. ONNX operators that move numbers without changing them, in ours.

Takes:   one node at a time, as a `Call`.
Gives:   `SHAPES`: ONNX name -> function of the call that gives the outputs.

Shapes in a file are numbers; here they are attributes. A length that the file leaves
open is written as "that of the data" or "what is left".
What is left out: outputs whose shapes depend on values (NonZero, Unique).
"""

import math

import numpy as np

from minihybrid.onnx.load_elementwise import axes_of, label
from minihybrid.onnx.load_values import Value
from minihybrid.op import OPS


# -- constants and shapes --------------------------------------------------------------
def _constant(call):
    found = [call.attr("value", None, np.ndarray)]
    for read, name, dtype in ((call.number, "value_float", "float32"),
                              (call.integer, "value_int", "int64"),
                              (call.integers, "value_ints", "int64")):
        value = read(name)
        found.append(None if value is None else np.array(value, dtype))
    floats = call.attr("value_floats", None, list)
    found.append(None if floats is None else np.array(floats, "float32"))
    arrays = [a for a in found if a is not None]
    if len(arrays) != 1:
        call.fail("one number, list of numbers or tensor is needed as its attribute")
    return Value("", (arrays[0], arrays[0]))


def _shape(call):
    first, last = call.integer("start", 0), call.integer("end")
    return Value("", tuple(np.array(s[first:last], "int64") for s in call.shapes(0)))


def _size(call):
    return Value("", tuple(np.array(math.prod(s)) for s in call.shapes(0)))


def _known_only(call):
    """What only `fold` can make."""
    call.fail("its inputs must be known when the file is read, but they depend on the "
              "data")


def _same(call):
    return call.need(0)


# -- new shapes ------------------------------------------------------------------------
def codes(call, wanted, shapes):
    """A shape for Reshape: of the shapes wanted in both trials, and the data's.

    A length that is open is the data's own in this place (0), or follows (-1).
    """
    found = []
    for i, lengths in enumerate(zip(*wanted, strict=True)):
        own = tuple(s[i] if i < len(s) else None for s in shapes)
        found.append(lengths[0] if lengths[0] == lengths[1] else
                     0 if lengths == own else -1)
    if found.count(-1) > 1:
        call.fail(f"of the shape {tuple(found)} more than one length is open; fix "
                  "lengths when exporting (no dynamic axes)")
    return tuple(found)


def reshaped(call, data, wanted, shapes):
    """The data in a new shape, told in both trials."""
    return OPS["Reshape"](data, shape=codes(call, wanted, shapes), name=label(call))


def _reshape(call):
    """Lengths of 0 are the data's own, unless `allowzero`; one of -1 follows."""
    shapes, keep = call.shapes(0), not call.integer("allowzero", 0)
    targets = call.need(1).arrays or [call.fixed(1, "the shape")]
    if any(t.ndim != 1 or t.dtype.kind != "i" or t.size > 32 for t in targets):
        call.fail("the shape must be at most 32 whole numbers in a row")
    wanted = []
    for target, shape in zip(targets, shapes, strict=True):
        lengths = [int(n) for n in target]
        if 0 in lengths and not keep:
            call.fail("a length of 0 is not supported")
        if min(lengths, default=0) < -1:
            call.fail(f"the shape {tuple(lengths)} has a negative length")
        wanted.append([shape[i] if n == 0 else n for i, n in enumerate(lengths)])
    return reshaped(call, call.sym(0), wanted, shapes)


def _flatten(call):
    shapes, axis = call.shapes(0), call.integer("axis", 1)
    axis = axis if axis == len(shapes[0]) else call.axis(axis, len(shapes[0]))
    if axis == 1:
        return OPS["Flatten"](call.sym(0), name=label(call))
    wanted = [(math.prod(s[:axis]), math.prod(s[axis:])) for s in shapes]
    return reshaped(call, call.sym(0), wanted, shapes)


def _squeeze(call):
    return OPS["_np_squeeze"](call.sym(0), axis=axes_of(call, 13), name=label(call))


def _unsqueeze(call):
    axes, out = axes_of(call, 13) or (), call.sym(0)
    ndim = call.ndim(0) + len(axes)
    for axis in sorted(call.axis(a, ndim) for a in axes):
        out = OPS["expand_dims"](out, axis=axis)
    return out


def _transpose(call):
    return OPS["transpose"](call.sym(0), axes=call.integers("perm", ()),
                            name=label(call))


def _expand(call):
    """Stretch to a shape, and the shape to the data's, where that is longer."""
    shapes, targets = call.shapes(0), call.need(1).arrays
    if targets is None:
        call.fixed(1, "the shape")
    wanted = [np.broadcast_shapes(s, [int(n) for n in t.ravel()[:32]])
              for s, t in zip(shapes, targets, strict=True)]
    out, added = call.sym(0), len(wanted[0]) - len(shapes[0])
    for _ in range(added):
        out = OPS["expand_dims"](out, axis=0)
    target = codes(call, wanted, [(1,) * added + s for s in shapes])
    if -1 in target:
        call.fail("the shape follows from a length that the file leaves open; fix it "
                  "when exporting (no dynamic axes)")
    return OPS["broadcast_to"](out, shape=target, name=label(call))


def _tile(call):
    return OPS["tile"](call.sym(0), reps=call.numbers(1, "the number of repeats"),
                       name=label(call))


# -- parts -----------------------------------------------------------------------------
def _concat(call):
    symbols = [call.sym(i) for i in range(len(call.inputs))]
    return OPS["Concat"](*symbols, dim=call.integer("axis", 1), name=label(call))


def _split(call):
    """Equal parts, or parts of given lengths: an attribute, since opset 13 an input."""
    axis = call.axis(call.integer("axis", 0), call.ndim(0))
    count = call.integer("num_outputs", len(call.node.outputs))
    if call.opset < 13:
        lengths = call.integers("split")
    else:
        lengths = None if call.get(1) is None else call.numbers(1, "the lengths")
    total = call.shape(0)[axis]
    if lengths is None and total % count:
        whole = -(-total // count)
        lengths = [whole] * (count - 1) + [total - whole * (count - 1)]
    if count == 1:
        return call.need(0)
    if lengths is None or len(set(lengths)) == 1:
        out = OPS["SliceChannel"](call.sym(0), num_outputs=count, axis=axis,
                                  name=label(call))
    else:
        if sum(lengths) != total or min(lengths) < 0:
            call.fail(f"the lengths {tuple(lengths)} do not add up to {total}")
        places = tuple(sum(lengths[:i]) for i in range(len(lengths)))
        out = OPS["_split_v2"](call.sym(0), indices=places, axis=axis, name=label(call))
    return tuple(out[i] for i in range(len(out)))


def _edges(call, i, lengths):
    """Where slices begin or end; `None` where that is the edge in both trials."""
    value = call.get(i)
    if value is None:
        return None
    if value.arrays is None:
        call.fixed(i, "where slices begin and end")
    pairs = zip(*(a.ravel()[:32].tolist() for a in value.arrays), strict=True)
    return [a if a == b else None if (a, b) == length else call.fail(
        "where a slice begins or ends follows from a length that the file leaves open")
        for (a, b), length in zip(pairs, lengths, strict=True)]


def _slice(call):
    """Parts of axes: attributes, since opset 10 inputs."""
    ndim, pairs = call.ndim(0), list(zip(*call.shapes(0), strict=True))
    if call.opset < 10:
        begins, ends = call.integers("starts", ()), call.integers("ends", ())
        axes, steps = call.integers("axes", tuple(range(len(begins)))), None
    else:
        count = len(call.need(1).arrays[0]) if call.need(1).arrays else 0
        axes = range(count) if call.get(3) is None else call.numbers(3, "the axes")
        steps = None if call.get(4) is None else call.numbers(4, "the steps")
        lengths = [pairs[call.axis(a, ndim)] for a in axes]
        begins, ends = _edges(call, 1, lengths), _edges(call, 2, lengths)
    cut = [[None] * ndim, [None] * ndim, [1] * ndim]
    for axis, *part in zip(axes, begins, ends, steps or [1] * len(begins), strict=True):
        for numbers, number in zip(cut, part, strict=True):
            numbers[call.axis(axis, ndim)] = number
    return OPS["slice"](call.sym(0), begin=tuple(cut[0]), end=tuple(cut[1]),
                        step=tuple(cut[2]), name=label(call))


def _gather(call):
    """Rows by their numbers: one row, an embedding, or along any axis."""
    ndim = call.ndim(0)
    axis, where = call.axis(call.integer("axis", 0), ndim), call.need(1)
    if where.fixed is not None and where.fixed.size == 1:
        at = int(where.fixed.ravel()[0])
        part = OPS["slice_axis"](call.sym(0), axis=axis, begin=at,
                                 end=None if at == -1 else at + 1)
        if where.fixed.ndim == 1:
            return part
        return OPS["_np_squeeze"](part, axis=axis, name=label(call))
    if where.arrays is None and call.need(0).arrays is not None and (ndim, axis) == (
            2, 0):
        rows, width = call.shape(0)
        return OPS["Embedding"](call.sym(1), call.sym(0), input_dim=rows,
                                output_dim=width, name=label(call))
    return OPS["take"](call.sym(0), call.sym(1), axis=axis, mode="wrap",
                       name=label(call))


# -- images ----------------------------------------------------------------------------
def padded(call, data, widths, mode="constant", value=0.0):
    """The data with more at the ends of its axes; negative widths cut."""
    if any(w < 0 for pair in widths for w in pair):
        data = OPS["slice"](data, begin=tuple(max(-a, 0) for a, _ in widths), end=tuple(
            b if b < 0 else None for _, b in widths))
    pad_width = tuple(max(w, 0) for pair in widths for w in pair)
    if not any(pad_width):
        return data
    return OPS["Pad"](data, mode=mode, pad_width=pad_width, constant_value=value)


def _pad(call):
    """More at the ends of axes: attributes, since opset 11 inputs."""
    ndim, mode = call.ndim(0), call.text("mode", "constant")
    axes = range(ndim)
    if call.opset < 11:
        pads, value = call.integers("pads", ()), call.number("value", 0.0)
    else:
        pads, value = call.numbers(1, "the widths"), 0.0
        if call.get(2) is not None:
            value = float(call.fixed(2, "the value").ravel()[0])
        if call.get(3) is not None:
            axes = call.numbers(3, "the axes")
    if len(pads) != 2 * len(axes):
        call.fail(f"{len(pads)} widths for {len(axes)} axes; two an axis are needed")
    widths = [(0, 0)] * ndim
    for i, axis in enumerate(axes):
        widths[call.axis(axis, ndim)] = pads[i], pads[i + len(axes)]
    return padded(call, call.sym(0), widths, mode, value)


def _scales(call):
    """How often each axis is repeated, by whole numbers."""
    ndim = call.ndim(0)
    axes = [call.axis(a, ndim) for a in call.integers("axes", tuple(range(ndim)))]
    if call.node.op == "Upsample" and call.opset < 9:
        scales = call.attr("scales", [], list)
    elif call.get(3) is not None:
        sizes = call.need(3).arrays or [call.fixed(3, "the size")]
        found = {tuple(int(n) / max(old[a], 1) for n, a in zip(size, axes, strict=True))
                 for size, old in zip(sizes, call.shapes(0), strict=True)}
        scales = found.pop() if len(found) == 1 else ()
    else:
        place = 1 if call.opset < 11 else 2
        scales = call.fixed(place, "the scale").ravel().tolist()
    if len(scales) != len(axes) or any(s < 1 or s != int(s) for s in scales):
        call.fail(f"the scales are {tuple(scales)!s:.60}, but one whole number for "
                  "each axis is needed")
    found = dict(zip(axes, scales, strict=True))
    return [int(found.get(axis, 1)) for axis in range(ndim)]


def _resize(call):
    """Repeat rows and columns; places between them (linear, cubic) are not computed."""
    mode, scales = call.text("mode", "nearest"), _scales(call)
    start = "asymmetric" if call.opset < 11 else "half_pixel"
    place = call.text("coordinate_transformation_mode", start)
    rounding = call.text("nearest_mode", "floor" if call.opset < 11
                         else "round_prefer_floor")
    centred = place in ("half_pixel", "pytorch_half_pixel")
    repeats = rounding in ("round_prefer_floor", "round_prefer_ceil") if centred else \
        place == "asymmetric" and (rounding == "floor" or (
            rounding == "round_prefer_floor" and max(scales) == 2))
    for unused in ("cubic_coeff_a", "extrapolation_value"):
        call.number(unused)
    for name in ("exclude_outside", "antialias"):
        if call.integer(name, 0):
            call.fail(f"{name}=1 is not supported; needed: 0")
    if call.text("keep_aspect_ratio_policy", "stretch") != "stretch":
        call.fail("keep_aspect_ratio_policy must be stretch")
    if mode != "nearest" or not repeats:
        call.fail(f"mode '{mode:.20}' with '{place:.40}' and '{rounding:.40}' is not "
                  "supported; needed: nearest, which repeats rows and columns")
    data = call.sym(0)
    if len(scales) == 4 and scales[:2] == [1, 1] and scales[2] == scales[3]:
        return OPS["UpSampling"](data, scale=scales[2], sample_type="nearest",
                                 name=label(call))
    for axis, scale in enumerate(scales):
        if scale > 1:
            data = OPS["repeat"](data, repeats=scale, axis=axis)
    return data


def _depth_to_space(call):
    """DCR is MXNet's order; CRD, PyTorch's PixelShuffle, is three steps."""
    size, data = call.integer("blocksize", 1), call.sym(0)
    if call.text("mode", "DCR") == "DCR":
        return OPS["depth_to_space"](data, block_size=size, name=label(call))
    shapes = call.shapes(0)
    split = [(n, c // size ** 2, size, size, h, w) for n, c, h, w in shapes]
    out = OPS["Reshape"](data, shape=codes(call, split, shapes))
    out = OPS["transpose"](out, axes=(0, 1, 4, 2, 5, 3))
    turned = [(n, c, h, size, w, size) for n, c, _, _, h, w in split]
    wanted = [(n, c, h * size, w * size) for n, c, h, _, w, _ in turned]
    return reshaped(call, out, wanted, turned)


def _space_to_depth(call):
    return OPS["space_to_depth"](call.sym(0), block_size=call.integer("blocksize", 1),
                                 name=label(call))


def _one_hot(call):
    if call.axis(call.integer("axis", -1), call.ndim(0) + 1) != call.ndim(0):
        call.fail("only the last axis is supported")
    off, on = call.fixed(2, "the pair of values").ravel().tolist()
    depth, places = int(call.fixed(1, "the depth").ravel()[0]), call.sym(0)
    places = OPS["where"](places < 0, places + depth, places)  # -1 is the last
    return OPS["one_hot"](places, depth=depth, on_value=on, off_value=off,
                          dtype=call.dtype(2), name=label(call))


SHAPES = {
    "Constant": _constant, "Shape": _shape, "Size": _size, "Identity": _same,
    "ConstantOfShape": _known_only, "Range": _known_only, "Reshape": _reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze, "Unsqueeze": _unsqueeze, "Transpose": _transpose,
    "Expand": _expand, "Tile": _tile, "Concat": _concat, "Split": _split,
    "Slice": _slice, "Gather": _gather, "Pad": _pad, "Resize": _resize,
    "Upsample": _resize, "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth, "OneHot": _one_hot,
}
