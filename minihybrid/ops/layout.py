"""Layout operators, which compute nothing: reshape, transpose, slice, broadcast.

The field `view` marks an alias, which moves no bytes; `strides` gives the position of each
output element in the input, so that loops can load it in place.

Indices that are arrays (take, gather_nd) are in `ops/indexing.py`.
"""

import math

import numpy as np

from minihybrid.core.op import (
    REQUIRED,
    AttrError,
    ShapeError,
    axes,
    boolean,
    bounds,
    integer,
    optional,
    shape,
)
from minihybrid.ops.elementwise import unbroadcast
from minihybrid.ops.registry import OPS, register
from minihybrid.ops.shapes import adds_back, as_codes, axes_of, axis_of, forward, row_major

# A code in a new shape -> its meaning: "drop" takes out an axis of length 1, "join" multiplies
# two lengths, "split" makes the two lengths that follow.
CODES = ((0, "keep"), (-2, "rest"), (-3, "join"), (-4, "split"))
NPX_CODES = ((-2, "keep"), (-3, "drop"), (-4, "rest"), (-5, "join"), (-6, "split"))


def reshaped(old, codes, reverse=False, op="Reshape", known_codes=CODES):
    """Return the new shape given by MXNet's codes; -1 is inferred.

    >>> reshaped((2, 3, 4), (0, -1))
    (2, 12)
    """
    if reverse:
        return tuple(reversed(reshaped(old[::-1], codes[::-1], False, op, known_codes)))
    meanings = dict(known_codes)
    new, i, codes, free, explicit = [], 0, list(codes), [], 1
    while codes:
        code = codes.pop(0)
        meaning = meanings.get(code)
        n_axes = {None: 0, "rest": 0, "join": 2}.get(meaning, 1)
        if n_axes and i + n_axes > len(old):
            raise ShapeError(f"{op}: code {code} needs an axis that {old} has not")
        if meaning is None:
            if code < -1:
                first, last = max(-1, *meanings), min(meanings)
                raise ShapeError(f"{op}: there is no code {code}; {first} to {last} have a meaning")
            new.append(code)
            free += old[i : i + 1]
            explicit *= abs(code)
        elif meaning == "keep":
            new.append(old[i])
        elif meaning == "drop" and old[i] != 1:
            raise ShapeError(
                f"{op}: code {code} takes out an axis of length 1, "
                f"but axis {i} of {old} has length {old[i]}"
            )
        elif meaning == "rest":
            new += old[i:]
        elif meaning == "join":
            new.append(old[i] * old[i + 1])
        elif meaning == "split":
            if len(codes) < 2:
                raise ShapeError(f"{op}: code {code} needs the two lengths after it")
            left, right = codes.pop(0), codes.pop(0)
            left = old[i] // right if left == -1 else left
            right = old[i] // left if right == -1 else right
            new += [left, right]
        i = {"rest": len(old), "join": i + 2}.get(meaning, i + 1)
    if new.count(-1) == 1 and 0 in new and explicit:  # then it is inferred from the other codes
        new[new.index(-1)] = math.prod((*free, *old[i:])) // explicit
    return infer_length(op, old, new)


def infer_length(op, old, new):
    """Replace the single -1 by the length that preserves the number of elements.

    For an empty array, several -1 may mean 0, for which Reshape has no code.
    """
    size = math.prod(old)
    rest = math.prod(n for n in new if n != -1)
    if new.count(-1) > 1 and size:
        raise ShapeError(f"{op}: {tuple(new)} has more than one -1")
    if new.count(-1) > 1:
        new = [max(n, 0) for n in new]
    if -1 in new and rest and size % rest == 0:
        new = [size // rest if n == -1 else n for n in new]
    if -1 in new or math.prod(new) != size:
        raise ShapeError(f"{op}: {old} has {size} elements, which do not fit into {tuple(new)}")
    return tuple(new)


def view(name, *aliases, rule, attrs=None, doc):
    """Register an operator whose output aliases its input under another shape."""

    def eager(data, **attrs):
        return data.reshape(rule(data.shape, **attrs))

    return register(
        name,
        *aliases,
        attrs=attrs or {},
        eager=eager,
        infer=forward(rule),
        view=True,
        doc=doc,
        grad=lambda g, out, data, **attrs: (reshape_like(g, data),),
    )


def squeezed(old, axis):
    """Return the shape without these axes of length 1; `None` means all."""
    axes = (
        [i for i, n in enumerate(old) if n == 1]
        if axis is None
        else axes_of("squeeze", axis, len(old))
    )
    if any(old[i] != 1 for i in axes):
        raise ShapeError(f"squeeze: axis {axis} of {old} has not length 1")
    return tuple(n for i, n in enumerate(old) if i not in axes)


def _expanded(old, axis):
    axis = axis_of("expand_dims", axis, len(old) + 1)
    return (*old[:axis], 1, *old[axis:])


reshape = view(
    "Reshape",
    "reshape",
    rule=lambda old, shape, reverse: reshaped(old, shape, reverse),
    attrs={"shape": (shape, REQUIRED), "reverse": (boolean, False)},
    doc="The same numbers under another shape; codes 0, -1, -2, -3, -4.",
)
flatten = view(
    "Flatten",
    "flatten",
    rule=lambda old: (*old[:1], math.prod(old[1:])),
    doc="(N, a, b, ...) -> (N, a * b * ...).",
)
expand_dims = view(
    "expand_dims",
    rule=_expanded,
    attrs={"axis": (integer, REQUIRED)},
    doc="Put in an axis of length 1.",
)
squeeze = view(
    "squeeze",
    rule=lambda old, axis: squeezed(old, axis) or (1,),
    attrs={"axis": (axes, None)},
    doc="Take out axes of length 1.",
)
RANGES = {
    name: (optional(integer), None) for name in ("lhs_begin", "lhs_end", "rhs_begin", "rhs_end")
}


def _reshaped_like(old, like, lhs_begin, lhs_end, rhs_begin, rhs_end):
    """Return the old shape with a range of axes replaced by a range of `like`'s."""
    first, last, _ = slice(lhs_begin, lhs_end).indices(len(old))
    new = (*old[:first], *like[rhs_begin:rhs_end], *old[last:])
    return infer_length("reshape_like", old, list(new))


def view_as(shape, inputs):
    """Return (operator, inputs, attributes) for a view of an input with a shape."""
    return reshape, inputs, {"shape": as_codes(shape), "reverse": False}


reshape_like = register(
    "reshape_like",
    inputs=("lhs", "rhs"),
    attrs=RANGES,
    infer=forward(_reshaped_like),
    expand=lambda specs, lhs, rhs, **a: reshape(
        lhs, shape=as_codes(_reshaped_like(specs[0].shape, specs[1].shape, **a))
    ),
    doc="The numbers of lhs under the shape of rhs, or with a range of its axes.",
)


# -- outputs that read the input with other strides ------------------------------------
def _axes(old, axes):
    order = tuple(axes) if axes else tuple(reversed(range(len(old))))
    normalized = tuple(axis_of("transpose", a, len(old)) for a in order)
    if sorted(normalized) != list(range(len(old))):
        raise ShapeError(f"transpose: axes {order} are no order of {len(old)} axes")
    return normalized


def _transpose_strides(old, axes):
    steps = row_major(old)
    return 0, tuple(steps[a] for a in _axes(old, axes))


def _transpose_grad(g, out, data, axes):
    back = np.argsort([a % len(axes) for a in axes])
    return (transpose(g, axes=tuple(back.tolist())),)


transpose = register(
    "transpose",
    infer=forward(lambda old, axes: tuple(old[a] for a in _axes(old, axes))),
    strides=_transpose_strides,
    attrs={"axes": (shape, ())},
    eager=lambda data, axes: np.transpose(data, axes or None),
    grad=_transpose_grad,
    doc="The axes in another order; reversed unless given.",
)


def _swap_expand(specs, data, dim1, dim2):
    order = list(range(len(specs[0].shape)))
    order[dim1], order[dim2] = order[dim2], order[dim1]
    return transpose(data, axes=tuple(order))


def _swap_rule(old, dim1, dim2):
    new, (one, two) = list(old), (axis_of("swapaxes", d, len(old)) for d in (dim1, dim2))
    new[one], new[two] = new[two], new[one]
    return new


swapaxes = register(
    "SwapAxis",
    "swapaxes",
    attrs={"dim1": (integer, 0), "dim2": (integer, 0)},
    infer=forward(_swap_rule),
    expand=_swap_expand,
    doc="Exchange two axes.",
)


def stretched(old, shape):
    """Return the shape, after checking that an array broadcasts to it."""
    try:
        fits = np.broadcast_shapes(old, shape) == tuple(shape)
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"broadcast_to: {old} does not stretch to {tuple(shape)}")
    return tuple(shape)


def _stretched(old, shape):
    """Return the shape with MXNet's code 0 replaced by the old length."""
    return stretched(
        old,
        tuple(o if n == 0 else n for o, n in zip(old, shape, strict=True))
        if len(old) == len(shape)
        else shape,
    )


def _stretch_strides(old, shape):
    steps = row_major(old)
    pad = len(shape) - len(old)
    return 0, (0,) * pad + tuple(0 if n == 1 else s for n, s in zip(old, steps, strict=True))


broadcast_to = register(
    "broadcast_to",
    infer=forward(_stretched),
    strides=_stretch_strides,
    eager=lambda data, shape: np.broadcast_to(data, _stretched(data.shape, shape)),
    attrs={"shape": (shape, REQUIRED)},
    doc="Repeat axes of length 1 up to a shape.",
    grad=lambda g, out, data, shape: (unbroadcast(g, data),),
)


def _stretched_like(old, like, lhs_axes=None, rhs_axes=None):
    """Return the shape of `old` with some axes (by default all) as long as `like`'s."""
    if lhs_axes is None and rhs_axes is None:
        return stretched(old, like)
    if not lhs_axes or not rhs_axes or len(lhs_axes) != len(rhs_axes):
        raise AttrError(
            f"broadcast_like: lhs_axes={lhs_axes} and rhs_axes={rhs_axes} "
            "must name equally many axes"
        )
    new = list(old)
    for i, j in zip(lhs_axes, rhs_axes, strict=True):
        new[axis_of("broadcast_like", i, len(old))] = like[axis_of("broadcast_like", j, len(like))]
    return stretched(old, tuple(new))


def _like_expand(specs, lhs, rhs, **a):
    """Decompose broadcast_like; empty axes come first, because 0 keeps an axis in broadcast_to."""
    old, new = specs[0].shape, _stretched_like(specs[0].shape, specs[1].shape, **a)
    for axis, n in enumerate(old):
        if n != new[axis - len(old)] == 0:
            lhs = slice_axis(lhs, axis=axis, begin=0, end=0)
    return broadcast_to(lhs, shape=new)


broadcast_like = register(
    "broadcast_like",
    inputs=("lhs", "rhs"),
    attrs={"lhs_axes": (optional(shape), None), "rhs_axes": (optional(shape), None)},
    infer=forward(_stretched_like),
    expand=_like_expand,
    doc="Repeat axes of length 1 up to the shape of rhs, or only lhs_axes up to rhs_axes.",
)


def slices(old, begin, end, step):
    """Return Python slices as (first, last, step, length); `None` is the edge."""
    if len(begin) > len(old):
        raise ShapeError(f"slice: {len(begin)} ranges for the {len(old)} axes of {old}")
    if not len(begin) == len(end) == len(step or end):
        raise ShapeError(
            f"slice: begin={begin}, end={end} and step={step} have different lengths; give each a "
            "value per axis, or None for the edge"
        )
    if 0 in (step or ()):
        raise ShapeError(f"slice: step={step} contains 0; a step is positive or negative")
    parts = []
    for i, n in enumerate(old):
        at = slice(*(part[i] if i < len(part) else None for part in (begin, end, step)))
        start, stop, by = at.indices(n)
        count = len(range(start, stop, by))
        if type(n) is not int and abs(by) == 1 and count:  # stays symbolic
            ends = [n, n - 1, *[e for e in (at.start, at.stop) if e is not None]]
            start, stop = (next((e for e in ends if e == m), m) for m in (start, stop))
            count = (stop - start) * by
        parts.append((start, by, count))
    return parts


def _slice_rule(old, begin, end, step):
    return tuple(n for _, _, n in slices(old, begin, end, step))


def _slice_strides(old, begin, end, step):
    steps, parts = row_major(old), slices(old, begin, end, step)
    return (
        sum(s * start for s, (start, _, _) in zip(steps, parts, strict=True)),
        tuple(s * by for s, (_, by, _) in zip(steps, parts, strict=True)),
    )


def _slice_eager(data, *, begin, end, step):
    step = step or (None,) * len(begin)
    return data[tuple(map(slice, begin, end, step))]


slice_ = register(
    "slice",
    infer=forward(_slice_rule),
    strides=_slice_strides,
    eager=_slice_eager,
    attrs={"begin": (bounds, REQUIRED), "end": (bounds, REQUIRED), "step": (bounds, ())},
    grad=lambda g, out, data, **a: (put_slice(g, data, **a),),
    doc="The part between begin and end, one range for each axis; None is the edge.",
)


def _put_slice_eager(data, like, *, begin, end, step):
    out = np.zeros(like.shape, data.dtype)
    step = step or (None,) * len(begin)
    out[tuple(map(slice, begin, end, step))] = data
    return out


def put_into(k, data, shape, out, places, value="T(0)"):
    """Fill the result with a value, then store data at (offset, strides)."""
    with k.each(("i", out.size)):
        k(f"{out}[i] = {value}")
    k.then()
    k.copy(data, shape, (0, row_major(shape)), out, places)


def _put_slice_cpu(k, data, like, out, *, begin, end, step):
    put_into(k, data, data.shape, out, _slice_strides(out.shape, begin, end, step))


def _put_slice_part(shape, begin, end, step):
    """Return (axis, begin, end, operator, attrs) if the slice is along one axis and dense."""
    parts = slices(shape, begin, end, step)
    cut = [i for i, (n, part) in enumerate(zip(shape, parts, strict=True)) if part != (0, 1, n)]
    if len(cut) != 1 or parts[cut[0]][1] != 1:
        return None
    first, _, length = parts[cut[0]]
    return cut[0], first, first + length, OPS["Concat"], {"dim": cut[0]}


put_slice = register(
    "_put_slice",
    inputs=("data", "like"),
    padded_slice=_put_slice_part,
    eager=_put_slice_eager,
    cpu=_put_slice_cpu,
    attrs=slice_.attrs,
    infer=adds_back("_put_slice", _slice_rule),
    grad=lambda g, out, data, like, **a: (slice_(g, **a), None),
    doc="Zeros in the shape of `like`, with the data at a slice.",
)


def _slice_axis_bounds(ndim, axis, begin, end):
    axis = axis_of("slice_axis", axis, ndim)
    none = (None,) * axis
    return {"begin": (*none, begin), "end": (*none, end), "step": ()}


slice_axis = register(
    "slice_axis",
    attrs={
        "axis": (integer, REQUIRED),
        "begin": (integer, REQUIRED),
        "end": (optional(integer), REQUIRED),
    },
    infer=forward(
        lambda old, axis, begin, end: [
            n for _, _, n in slices(old, **_slice_axis_bounds(len(old), axis, begin, end))
        ]
    ),
    expand=lambda specs, data, axis, begin, end: slice_(
        data, **_slice_axis_bounds(len(specs[0].shape), axis, begin, end)
    ),
    doc="The part between begin and end of one axis.",
)
