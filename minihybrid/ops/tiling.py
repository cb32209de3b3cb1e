"""Operators that repeat, pad, split and rearrange along axes.

Nearly all decompose into reshape, transpose, slice and broadcast_to, which loops read in
place: `tile` and `flip` need no kernels.
Not supported: circular padding.
"""

import numpy as np

from minihybrid.core.convert import check_range
from minihybrid.core.op import (
    REQUIRED,
    AttrError,
    ShapeError,
    Spec,
    boolean,
    choice,
    integer,
    number,
    optional,
    shape,
)
from minihybrid.ops.elementwise import abs_, clip, literal
from minihybrid.ops.filled import arange, make, zeros
from minihybrid.ops.indexing import take
from minihybrid.ops.layout import (
    broadcast_to,
    put_into,
    reshape,
    slice_,
    slice_axis,
    squeeze,
    transpose,
)
from minihybrid.ops.registry import register
from minihybrid.ops.shapes import adds_back, as_codes, axes_of, axis_of, forward, known, row_major


# -- repeating -------------------------------------------------------------------------
def _repeat_rule(old, repeats, axis):
    if repeats < 1:
        raise ShapeError(f"repeat: repeats={repeats}, but at least 1 is needed")
    if axis is None:
        return (int(np.prod(old)) * repeats,)
    axis = axis_of("repeat", axis, len(old))
    return (*old[:axis], old[axis] * repeats, *old[axis + 1 :])


def _repeat_expand(specs, data, repeats, axis):
    old = specs[0].shape if axis is not None else (specs[0].size,)
    at = axis_of("repeat", axis or 0, len(old)) + 1
    lines = reshape(data, shape=as_codes((*old[:at], 1, *old[at:])))
    wide = broadcast_to(lines, shape=(*old[:at], repeats, *old[at:]))
    return reshape(wide, shape=as_codes(_repeat_rule(specs[0].shape, repeats, axis)))


repeat = register(
    "repeat",
    infer=forward(_repeat_rule),
    expand=_repeat_expand,
    attrs={"repeats": (integer, REQUIRED), "axis": (optional(integer), None)},
    doc="Each element `repeats` times; without an axis, of the flattened array.",
)


def _tile_rule(old, reps):
    if min(reps, default=1) < 1:
        raise ShapeError(f"tile: reps={reps}, but each must be at least 1")
    n = max(len(old), len(reps))
    old, reps = (1,) * (n - len(old)) + old, (1,) * (n - len(reps)) + reps
    return tuple(a * b for a, b in zip(old, reps, strict=True))


def _tile_expand(specs, data, reps):
    old = specs[0].shape
    n = max(len(old), len(reps))
    pairs = list(zip((1,) * (n - len(reps)) + reps, (1,) * (n - len(old)) + old, strict=True))
    lines = reshape(data, shape=as_codes([m for _, length in pairs for m in (1, length)]))
    wide = broadcast_to(lines, shape=[m for pair in pairs for m in pair])
    return reshape(wide, shape=as_codes(_tile_rule(old, reps)))


tile = register(
    "tile",
    attrs={"reps": (shape, REQUIRED)},
    infer=forward(_tile_rule),
    expand=_tile_expand,
    doc="The whole array `reps` times along each axis; axes line up from the right.",
)


def _axis_shape(old, axis, size):
    axis, size = (v if isinstance(v, tuple) else (v,) for v in (axis, size))
    if len(axis) != len(size):
        raise AttrError(f"broadcast_axis: axis={axis} and size={size} must be equally many")
    new = list(old)
    for a, n in zip(axis, size, strict=True):
        a = axis_of("broadcast_axis", a, len(old))
        if old[a] != 1:
            raise ShapeError(f"broadcast_axis: axis {a} of {old} has not length 1")
        if n < 1:
            raise ShapeError(f"broadcast_axis: size={size}, but each must be at least 1")
        new[a] = n
    return tuple(new)


broadcast_axis = register(
    "broadcast_axis",
    "broadcast_axes",
    infer=forward(_axis_shape),
    attrs={"axis": (shape, ()), "size": (shape, ())},
    expand=lambda specs, data, axis, size: broadcast_to(
        data, shape=_axis_shape(specs[0].shape, axis, size)
    ),
    doc="Repeat axes of length 1 up to sizes.",
)


# -- padding ---------------------------------------------------------------------------
def _widths(old, pad_width):
    """Return [(before, after), ...], one pair per axis."""
    if len(pad_width) != 2 * len(old):
        raise ShapeError(
            f"Pad: pad_width has {len(pad_width)} numbers, but {old} "
            f"needs {2 * len(old)}: before and after each axis"
        )
    pairs = list(zip(pad_width[::2], pad_width[1::2], strict=True))
    if min(pad_width, default=0) < 0:
        raise ShapeError(
            f"Pad: pad_width={pad_width}, but no width may be negative; cut with slice"
        )
    return pairs


def _pad_rule(old, pad_width, mode="constant", constant_value=0):
    pairs = _widths(old, pad_width)
    for n, pair in zip(old, pairs, strict=True):
        if any(pair) and n <= (max(pair) if mode == "reflect" else 0) and mode != "constant":
            raise ShapeError(
                f"Pad: mode='{mode}' cannot add {pair} to an axis of "
                f"length {n}: there is too little to repeat"
            )
    return tuple(n + sum(pair) for n, pair in zip(old, pairs, strict=True))


def _inside(old, pad_width):
    """Return the slice of the padded array that contains the old one."""
    pairs = _widths(old, pad_width)
    return {
        "begin": tuple(a for a, _ in pairs),
        "step": (),
        "end": tuple(a + n for n, (a, _) in zip(old, pairs, strict=True)),
    }


def _frame_eager(data, *, pad_width, value):
    return np.pad(
        data, _widths(data.shape, pad_width), constant_values=np.asarray(value).astype(data.dtype)
    )


def _frame_cpu(k, data, out, *, pad_width, value):
    steps = row_major(out.shape)
    first = sum(a * s for (a, _), s in zip(_widths(data.shape, pad_width), steps, strict=True))
    put_into(k, data, data.shape, out, (first, steps), literal(value))


frame = register(
    "_frame",
    infer=forward(lambda old, pad_width, value: _pad_rule(old, pad_width)),
    eager=_frame_eager,
    cpu=_frame_cpu,
    grad=lambda g, out, data, pad_width, value: (cut_frame(g, data, pad_width=pad_width),),
    attrs={"pad_width": (shape, REQUIRED), "value": (number, 0.0)},
    doc="The array within a frame of one value.",
)
cut_frame = register(
    "_cut_frame",
    inputs=("data", "like"),
    attrs={"pad_width": (shape, REQUIRED)},
    infer=adds_back("_cut_frame", _pad_rule),
    expand=lambda specs, data, like, pad_width: slice_(data, **_inside(specs[1].shape, pad_width)),
    doc="The array without its frame, in the shape of `like`.",
)


_pad_shape = forward(_pad_rule)


def _pad_expand(specs, data, mode, pad_width, constant_value):
    old = specs[0].shape
    if mode == "constant":
        return frame(data, pad_width=pad_width, value=constant_value)
    for axis, (n, (before, after)) in enumerate(zip(old, _widths(old, pad_width), strict=True)):
        if before or after:
            index = make(data, arange, start=-before, stop=n + after, dtype="int64")
            if mode == "edge":
                index = clip(index, a_min=0, a_max=n - 1)
            else:  # reflected at 0 and at n - 1
                index = (n - 1) - abs_((n - 1) - abs_(index))
            data = take(data, index, axis=axis)
    return data


def _pad_infer(specs, constant_value, **attrs):
    if attrs["mode"] == "constant":
        check_range("Pad", constant_value, specs[0].dtype)
    return _pad_shape(specs, constant_value=constant_value, **attrs)


pad = register(
    "Pad",
    "pad",
    expand=_pad_expand,
    infer=_pad_infer,
    attrs={
        "mode": (choice("constant", "edge", "reflect"), REQUIRED),
        "pad_width": (shape, REQUIRED),
        "constant_value": (number, 0.0),
    },
    doc="More at the ends of axes: one value, the edge's, or the inside mirrored.",
)


# -- splitting -------------------------------------------------------------------------
def _like_bounds(old, target, axes):
    if not axes and len(old) != len(target):
        raise ShapeError(
            f"slice_like: {old} and {target} have different numbers of "
            "axes; name those to cut by axes="
        )
    end = [None] * len(old)
    for a in axes or range(len(old)):
        i, j = axis_of("slice_like", a, len(old)), axis_of("slice_like", a, len(target))
        if target[j] > old[i]:
            raise ShapeError(
                f"slice_like: axis {a} of {old} is shorter than in "
                f"{target}, so it cannot be cut to that"
            )
        end[i] = target[j]
    return {"begin": (None,) * len(old), "end": tuple(end), "step": ()}


def _slice_like_infer(specs, axes):
    (old, kind), (target, _) = specs
    if not known(specs):
        return specs, [Spec(None, kind)]
    end = _like_bounds(old, target, axes)["end"]
    return specs, [Spec(tuple(n if e is None else e for n, e in zip(old, end, strict=True)), kind)]


slice_like = register(
    "slice_like",
    inputs=("data", "shape_like"),
    attrs={"axes": (shape, ())},
    infer=_slice_like_infer,
    expand=lambda specs, data, like, axes: slice_(
        data, **_like_bounds(specs[0].shape, specs[1].shape, axes)
    ),
    doc="The first part of each axis, as long as in `shape_like`.",
)


def _cuts(old, indices, axis, squeeze_axis, sections):
    """Return [(begin, end), ...] of the parts; `indices` begin each part, as in files."""
    axis = axis_of("split", axis, len(old))
    n = old[axis]
    if sections:
        if n % sections:
            raise ShapeError(
                f"split: axis {axis} of {old} does not divide into {sections} equal parts"
            )
        indices = [i * (n // sections) for i in range(sections)]
    places = [*(min(i, n) for i in indices), n]
    if min(places) < 0:
        raise ShapeError(f"split: indices={tuple(indices)}, but parts begin at 0 or later")
    cuts = [(a, max(a, b)) for a, b in zip(places, places[1:], strict=False)]
    if squeeze_axis and any(b - a != 1 for a, b in cuts):
        raise ShapeError(
            f"split: squeeze_axis needs parts of length 1, but axis "
            f"{axis} of {old} is cut at {places}"
        )
    return cuts


def _cut_infer(specs, axis, squeeze_axis, **a):
    old, kind = specs[0]
    count = len(a["indices"]) if not a["sections"] else a["sections"]
    if not known(specs):
        return specs, [Spec(None, kind)] * count
    cuts = _cuts(old, axis=axis, squeeze_axis=squeeze_axis, **a)
    axis = axis % len(old)
    return specs, [
        Spec((*old[:axis], *(() if squeeze_axis else (e - b,)), *old[axis + 1 :]) or (1,), kind)
        for b, e in cuts
    ]


def _cut_expand(specs, data, axis, squeeze_axis, **a):
    parts = [
        slice_axis(data, axis=axis, begin=b, end=e)
        for b, e in _cuts(specs[0].shape, axis=axis, squeeze_axis=squeeze_axis, **a)
    ]
    parts = [squeeze(p, axis=axis) if squeeze_axis else p for p in parts]
    return tuple(parts) if len(parts) > 1 else parts[0]


cut = register(
    "_split_v2",
    infer=_cut_infer,
    expand=_cut_expand,
    attrs={
        "indices": (shape, ()),
        "axis": (integer, 1),
        "squeeze_axis": (boolean, False),
        "sections": (integer, 0),
    },
    n_outputs=lambda attrs: attrs["sections"] or len(attrs["indices"]),
    doc="Cut an axis into equal sections, or into parts that begin at indices.",
)


split = register(
    "SliceChannel",
    "split",
    attrs={
        "num_outputs": (integer, REQUIRED),
        "axis": (integer, 1),
        "squeeze_axis": (boolean, False),
    },
    n_outputs=lambda attrs: attrs["num_outputs"],
    infer=lambda specs, num_outputs, **a: _cut_infer(specs, indices=(), sections=num_outputs, **a),
    expand=lambda specs, data, num_outputs, **a: _cut_expand(
        specs, data, indices=(), sections=num_outputs, **a
    ),
    doc="Cut an axis into equal parts.",
)


def split_v2(ary, indices_or_sections, axis=0, squeeze_axis=False, name=None):
    """Split an axis into equal parts (an integer), or at indices (a tuple).

    >>> from minihybrid.core import nd
    >>> [part.shape for part in nd.split_v2(nd.arange(6), (2, 3))]
    [(2,), (1,), (3,)]
    """
    if isinstance(indices_or_sections, (tuple, list)):
        where = {"indices": (0, *indices_or_sections)}
    else:
        where = {"sections": indices_or_sections}
    return cut(ary, axis=axis, squeeze_axis=squeeze_axis, name=name, **where)


def _crop_window(specs, offset, h_w, center_crop):
    """Return (top, left, height, width) of the crop."""
    old = specs[0].shape
    size = specs[1].shape[2:] if len(specs) > 1 else h_w
    if len(size) != 2 or len(offset) != 2:
        raise ShapeError(
            f"Crop: {len(size)} lengths at {len(offset)} offsets, but height and width are needed; "
            "give h_w=(height, width) and offset=(y, x), or a second input (N, C, H, W)"
        )
    if len(old) == 4 and center_crop:
        offset = [(m - n) // 2 for n, m in zip(size, old[2:], strict=True)]
    if len(old) != 4 or any(
        o < 0 or n < 0 or o + n > m for o, n, m in zip(offset, size, old[2:], strict=True)
    ):
        raise ShapeError(
            f"Crop: {tuple(size)} at {tuple(offset)} cannot be cut out of "
            f"{old}, which must be (N, C, H, W)"
        )
    return (*offset, *size)


def _crop_infer(specs, **a):
    if not known(specs):
        return specs, [Spec(None, specs[0].dtype)]
    return specs, [Spec((*specs[0].shape[:2], *_crop_window(specs, **a)[2:]), specs[0].dtype)]


def _crop_expand(specs, data, *like, **a):
    top, left, height, width = _crop_window(specs, **a)
    return slice_(data, begin=(None, None, top, left), end=(None, None, top + height, left + width))


crop = register(
    "Crop",
    variadic=True,
    infer=_crop_infer,
    expand=_crop_expand,
    attrs={"offset": (shape, (0, 0)), "h_w": (shape, (0, 0)), "center_crop": (boolean, False)},
    doc="A window of pictures (N, C, H, W), as large as h_w or as a second input.",
)


# -- another order ---------------------------------------------------------------------
def _reversed(specs, data, axis):
    step = [1] * len(specs[0].shape)
    for a in axes_of("reverse", axis, len(step)):
        step[a] = -1
    none = (None,) * len(step)
    return slice_(data, begin=none, end=none, step=tuple(step))


def _reverse_infer(specs, axis):
    if known(specs):
        axes_of("reverse", axis, len(specs[0].shape))
    return specs, specs


reverse = register(
    "reverse",
    "flip",
    attrs={"axis": (shape, REQUIRED)},
    infer=_reverse_infer,
    expand=_reversed,
    doc="Axes read from back to front.",
)


def _moved(n, source, destination):
    source, destination = ([axis_of("moveaxis", a, n) for a in v] for v in (source, destination))
    if len(set(source)) != len(source) or len(source) != len(destination):
        raise AttrError(
            f"moveaxis: source={source} and destination={destination} must "
            "be equally many different axes"
        )
    order = [a for a in range(n) if a not in source]
    for to, a in sorted(zip(destination, source, strict=True)):
        order.insert(to, a)
    return tuple(order)


moveaxis = register(
    "_np_moveaxis",
    "moveaxis",
    inputs=("a",),
    attrs={"source": (shape, REQUIRED), "destination": (shape, REQUIRED)},
    infer=forward(lambda old, **m: [old[i] for i in _moved(len(old), **m)]),
    expand=lambda specs, data, **m: transpose(data, axes=_moved(len(specs[0].shape), **m)),
    doc="Axes moved to other places; the rest stay in order.",
)


def _depth_rule(old, block_size):
    b = block_size
    if len(old) != 4 or b < 1 or old[1] % (b * b):
        raise ShapeError(
            f"depth_to_space: {old} with block_size={b} does not fit: (N, C, H, W) is needed, "
            "with C a multiple of block_size squared"
        )
    return old[0], old[1] // (b * b), old[2] * b, old[3] * b


def _space_rule(old, block_size):
    b = block_size
    if len(old) != 4 or b < 1 or old[2] % b or old[3] % b:
        raise ShapeError(
            f"space_to_depth: {old} with block_size={b} does not fit: "
            "(N, C, H, W) is needed, with H and W multiples of block_size"
        )
    return old[0], old[1] * b * b, old[2] // b, old[3] // b


def _depth_expand(specs, data, block_size):
    (n, c, h, w), b = specs[0].shape, block_size
    blocks = reshape(data, shape=as_codes((n, b, b, c // (b * b), h, w)))
    return reshape(
        transpose(blocks, axes=(0, 3, 4, 1, 5, 2)), shape=as_codes(_depth_rule(specs[0].shape, b))
    )


def _space_expand(specs, data, block_size):
    (n, c, h, w), b = specs[0].shape, block_size
    blocks = reshape(data, shape=as_codes((n, c, h // b, b, w // b, b)))
    return reshape(
        transpose(blocks, axes=(0, 3, 5, 1, 2, 4)), shape=as_codes(_space_rule(specs[0].shape, b))
    )


BLOCK = {"block_size": (integer, REQUIRED)}
depth_to_space = register(
    "depth_to_space",
    attrs=BLOCK,
    infer=forward(_depth_rule),
    expand=_depth_expand,
    doc="(N, C b b, H, W) -> (N, C, H b, W b): channels become blocks of pixels.",
)
space_to_depth = register(
    "space_to_depth",
    attrs=BLOCK,
    infer=forward(_space_rule),
    expand=_space_expand,
    doc="(N, C, H b, W b) -> (N, C b b, H, W): blocks of pixels become channels.",
)


# -- diagonals -------------------------------------------------------------------------
def _diagonal(old, offset, axis1, axis2):
    """Return (shape, offset, strides) of a diagonal, which becomes the last axis."""
    a, b = axis_of("diagonal", axis1, len(old)), axis_of("diag", axis2, len(old))
    n = min(old[a] + min(offset, 0), old[b] - max(offset, 0))
    if n <= 0 or a == b:
        raise ShapeError(
            f"diagonal: {old} has no diagonal {offset} along the axes {axis1} and {axis2}"
        )
    steps = row_major(old)
    rest = [i for i in range(len(old)) if i not in (a, b)]
    first = max(-offset, 0) * steps[a] + max(offset, 0) * steps[b]
    return ((*(old[i] for i in rest), n), first, (*(steps[i] for i in rest), steps[a] + steps[b]))


DIAGONAL = {"offset": (integer, 0), "axis1": (integer, 0), "axis2": (integer, 1)}
diagonal = register(
    "_diagonal",
    attrs=DIAGONAL,
    infer=forward(lambda old, **d: _diagonal(old, **d)[0]),
    strides=lambda old, **d: _diagonal(old, **d)[1:],
    eager=lambda data, **d: np.diagonal(data, **d),
    grad=lambda g, out, data, **d: (put_diagonal(g, data, **d),),
    doc="A diagonal of matrices that lie along two axes; it becomes the last axis.",
)


def _put_diagonal_eager(data, like, **d):
    shape, first, steps = _diagonal(like.shape, **d)
    out = np.zeros(like.shape, data.dtype)
    at = sum((i * s for i, s in zip(np.ogrid[tuple(map(slice, shape))], steps, strict=True)), first)
    out.reshape(-1)[at] = data
    return out


def _put_diagonal_cpu(k, data, like, out, **d):
    shape, *places = _diagonal(out.shape, **d)
    put_into(k, data, shape, out, places)


put_diagonal = register(
    "_put_diagonal",
    inputs=("data", "like"),
    attrs=DIAGONAL,
    infer=adds_back("_put_diagonal", lambda old, **d: _diagonal(old, **d)[0]),
    eager=_put_diagonal_eager,
    cpu=_put_diagonal_cpu,
    grad=lambda g, out, data, like, **d: (diagonal(g, **d), None),
    doc="Zeros in the shape of `like`, with the data on a diagonal.",
)


def square_of(data, specs, offset):
    """Return square matrices with the last axis of the data on a diagonal."""
    *rest, n = specs[0].shape
    size = n + abs(offset)
    like = make(data, zeros, shape=(*rest, size, size), dtype=specs[0].dtype)
    return put_diagonal(data, like, offset=offset, axis1=-2, axis2=-1)


def _diag_rule(old, k, axis1, axis2):
    if len(old) == 1:
        return (old[0] + abs(k),) * 2
    return _diagonal(old, k, axis1, axis2)[0]


diag = register(
    "diag",
    infer=forward(_diag_rule),
    attrs={"k": (integer, 0), "axis1": (integer, 0), "axis2": (integer, 1)},
    expand=lambda specs, data, k, axis1, axis2: (
        square_of(data, specs, k)
        if len(specs[0].shape) == 1
        else diagonal(data, offset=k, axis1=axis1, axis2=axis2)
    ),
    doc="The diagonal k of a matrix, or a matrix with a vector on its diagonal k.",
)


# -- shapes as arrays ------------------------------------------------------------------
def _shape_cpu(k, data, out):
    for i, n in enumerate(data.shape):
        k.store(str(i), str(n))


shape_array = register(
    "shape_array",
    infer=forward(lambda old: (len(old),), dtype=np.dtype("int64")),
    eager=lambda data: np.array(data.shape, np.int64),
    cpu=_shape_cpu,
    stores=True,
    grad=lambda g, out, data: (None,),
    doc="The length of each axis, as int64.",
)
size_array = register(
    "size_array",
    infer=forward(lambda old: (1,), dtype=np.dtype("int64")),
    expand=lambda specs, data: shape_array(data).prod(),
    doc="The number of elements, as int64.",
)


# -- identities ------------------------------------------------------------------------
def _same_infer(specs):
    shape = next((s.shape for s in specs if known([s])), specs[0].shape)
    return [Spec(shape, s.dtype) for s in specs], [Spec(shape, specs[0].dtype)]


same = register(
    "_identity_with_attr_like_rhs",
    inputs=("lhs", "rhs"),
    infer=_same_infer,
    expand=lambda specs, lhs, rhs: lhs,
    doc="lhs; its shape is that of rhs, where it is not known yet.",
)
