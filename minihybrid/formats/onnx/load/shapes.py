"""ONNX import rules for operators that change shapes.

Defines: `SHAPES`: ONNX name -> function of a `Call` that returns the outputs.

Shapes in a file are tensors; here they are attributes. A length that depends on a dynamic
axis is encoded as copied from the data (0) or inferred (-1).
Not supported: Reshape with two such lengths to infer.
"""

import math

import numpy as np

from minihybrid.formats.onnx.load.elementwise import axes_of, renamed
from minihybrid.formats.onnx.load.values import Value
from minihybrid.ops import OPS


# -- constants and shapes --------------------------------------------------------------
def _constant(call):
    arrays = [call.attr("value")]
    for name, dtype in (
        ("value_float", "float32"),
        ("value_floats", "float32"),
        ("value_int", "int64"),
        ("value_ints", "int64"),
    ):
        value = call.attr(name)
        arrays.append(None if value is None else np.array(value, dtype))
    arrays = [a for a in arrays if a is not None]
    if len(arrays) != 1:
        call.fail("one number, list of numbers or tensor is needed as its attribute")
    return Value("", (arrays[0], arrays[0]))


def _shape(call):
    first, last = call.attr("start"), call.attr("end")
    return Value("", tuple(np.array(s[first:last], "int64") for s in call.shapes(0)))


def _size(call):
    return Value("", tuple(np.array(math.prod(s)) for s in call.shapes(0)))


def _filled(call):
    """Evaluate ConstantOfShape."""
    value = call.attr("value")
    value = np.zeros(1, "float32") if value is None else value
    if value.size != 1:
        call.fail(f"the attribute value has shape {value.shape}; one number is needed")
    shape = call.scope.fits(call.numbers(0, "the shape"))
    return call.scope.known(np.full(shape, value.ravel()[0]))


def _range(call):
    """Evaluate Range."""
    start, limit, step = (call.fixed(i, "a bound").ravel()[0] for i in range(3))
    count = int(np.ceil((float(limit) - float(start)) / float(step)))
    call.scope.fits((max(count, 0),))
    return call.scope.known(np.arange(start, limit, step, start.dtype))


def _same(call):
    """Identity: exporters use it to give shared weights several names."""
    return call.need(0)


# -- new shapes ------------------------------------------------------------------------
def codes(call, new_shapes, shapes):
    """Return the `shape` of a Reshape, from the new and old shapes in both trials.

    A dynamic length is copied from the data's axis of this index (0), or inferred (-1).
    """
    target = []
    for i, lengths in enumerate(zip(*new_shapes, strict=True)):
        old = tuple(s[i] if i < len(s) else None for s in shapes)
        target.append(lengths[0] if lengths[0] == lengths[1] else 0 if lengths == old else -1)
    if target.count(-1) > 1 and -1 in new_shapes[0]:  # the inferred length may be static
        return codes(
            call,
            [
                [n if n >= 0 else math.prod(s) // max(-math.prod(w), 1) for n in w]
                for w, s in zip(new_shapes, shapes, strict=True)
            ],
            shapes,
        )
    if target.count(-1) > 1:
        call.fail(
            f"of the shape {tuple(target)} more than one length is open; fix "
            "lengths when exporting (no dynamic axes)"
        )
    return tuple(target)


def reshaped(call, data, new_shapes, shapes):
    """Reshape the data to the shape given for both trials."""
    return OPS["Reshape"](data, shape=codes(call, new_shapes, shapes))


def _reshape(call):
    """Reshape: 0 copies the data's length unless `allowzero` is set; -1 is inferred."""
    shapes, keep = call.shapes(0), not call.attr("allowzero")
    new_shapes = []
    for lengths, shape in zip(call.trials(1, "the shape"), shapes, strict=True):
        if 0 in lengths and not keep:  # in MXNet's encoding, 0 copies a length
            fixed = call.numbers(1, "the shape")
            return OPS["_np_reshape"](call.sym(0), newshape=fixed)
        if min(lengths, default=0) < -1:
            call.fail(f"the shape {lengths} has a negative length")
        new_shapes.append([shape[i] if n == 0 else n for i, n in enumerate(lengths)])
    return reshaped(call, call.sym(0), new_shapes, shapes)


def _flatten(call):
    shapes, axis = call.shapes(0), call.attr("axis")
    axis = axis if axis == len(shapes[0]) else call.axis(axis, len(shapes[0]))
    if axis == 1:
        return OPS["Flatten"](call.sym(0))
    new_shapes = [(math.prod(s[:axis]), math.prod(s[axis:])) for s in shapes]
    return reshaped(call, call.sym(0), new_shapes, shapes)


def _squeeze(call):
    return OPS["_np_squeeze"](call.sym(0), axis=axes_of(call, 13))


def _unsqueeze(call):
    axes, out = axes_of(call, 13) or (), call.sym(0)
    ndim = call.ndim(0) + len(axes)
    if ndim > 32:
        call.fail(f"{ndim} axes; at most 32 are allowed")
    for axis in sorted(call.axis(a, ndim) for a in axes):
        out = OPS["expand_dims"](out, axis=axis)
    return out


def _transpose(call):
    return OPS["transpose"](call.sym(0), axes=call.attr("perm") or ())


def _expand(call):
    """Expand: broadcast the data and the shape to their common shape."""
    shapes = call.shapes(0)
    new_shapes = [
        np.broadcast_shapes(s, t) for s, t in zip(shapes, call.trials(1, "the shape"), strict=True)
    ]
    out, added = call.sym(0), len(new_shapes[0]) - len(shapes[0])
    for _ in range(added):
        out = OPS["expand_dims"](out, axis=0)
    target = codes(call, new_shapes, [(1,) * added + s for s in shapes])
    if -1 in target:
        call.fail(
            "the shape follows from a length that the file leaves open; fix it "
            "when exporting (no dynamic axes)"
        )
    return OPS["broadcast_to"](out, shape=target)


def _tile(call):
    return OPS["tile"](call.sym(0), reps=call.numbers(1, "the number of repeats"))


SHAPES = {
    "Constant": _constant,
    "Shape": _shape,
    "Size": _size,
    "Identity": _same,
    "ConstantOfShape": _filled,
    "Range": _range,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Transpose": _transpose,
    "Expand": _expand,
    "Tile": _tile,
    "Concat": renamed("Concat", dim="axis"),
}
