"""Constant folding of shape computations in an ONNX graph.

Defines: `fold`, which evaluates a node by NumPy if all its inputs are known.

Exporters write a reshape as a dozen nodes that take a shape apart and reassemble it; these
are all folded. The size of a result is checked before it is computed.
Not supported: operators other than the few that exporters use for shapes.
"""

import numpy as np

from minihybrid.formats.onnx.load.file import ELEMENTS
from minihybrid.formats.onnx.load.values import Value
from minihybrid.ops.integers import whole_power


def fold(call):
    """Return a node's output in both trials; `None` if it can't be folded."""
    rule = FOLDED.get(call.node.op)
    optional = 3 if call.node.op == "Slice" else len(call.inputs)
    inputs = [v for v in call.inputs if v is not None]
    if (
        rule is None
        or not inputs
        or None in call.inputs[:optional]
        or any(v.arrays is None for v in inputs)
    ):
        return None
    call.need(0)
    with np.errstate(all="ignore"):
        first = _evaluated(call, rule, 0)
        same = all(v.fixed is not None for v in inputs)
        trials = first, first if same else _evaluated(call, rule, 1)
    value = Value("", trials, trained=any(v.trained for v in inputs))
    if (
        call.node.op in UNSURE
        and not same
        and value.fixed is not None
        and any(v.fixed is not None and (v.fixed > 1).any() for v in inputs)
    ):
        call.fail(
            "it compares a length that the file leaves open with a number; fix "
            "it when exporting (no dynamic axes)"
        )
    return value


def _evaluated(call, rule, trial):
    arrays = [v and v.arrays[trial] for v in call.inputs]
    call.fits((sum(a.size for a in arrays if a is not None),))
    return rule(call, *arrays)


# Two trials can't decide these for every length: it may be 1 or 10 ** 9.
UNSURE = frozenset(("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min"))


# -- rules -----------------------------------------------------------------------------
def _elementwise(function):
    """Return the rule of a NumPy function that broadcasts its arguments."""

    def rule(call, *arrays):
        for i in range(len(arrays)):
            call.need(i)
        call.fits(np.broadcast_shapes(*(a.shape for a in arrays)))
        if len({a.dtype for a in arrays}) > 1 and call.node.op not in ("Where", "Pow"):
            call.fail(
                f"the inputs are {' and '.join(str(a.dtype) for a in arrays)}, "
                "but one type is needed"
            )
        return np.asarray(function(*arrays))

    return rule


def _divide(a, b):
    """Divide; integer division truncates, as in C."""
    if a.dtype.kind == "f":
        return a / b
    if not np.all(b):
        raise ZeroDivisionError("whole numbers are divided by 0")
    return (np.sign(a) * np.sign(b) * (abs(a) // abs(b))).astype(a.dtype)


def _power(a, b):
    """Raise a to b in the dtype of a; integers allow negative exponents, as our operator does."""
    if a.dtype.kind in "iu" and b.dtype.kind in "iu":
        return whole_power(a, b.astype(a.dtype))
    return np.power(a, b, dtype=a.dtype, casting="unsafe")


def _mod(call, a, b):
    """Return the remainder, with the sign of b, or with `fmod` that of a."""
    return _elementwise(np.fmod if call.integer("fmod", 0) else np.mod)(call, a, b)


def _cast(call, data):
    number = call.integer("to", 1)
    call.integer("saturate")
    if number not in ELEMENTS:
        call.fail(f"type {number} is not supported; there are {', '.join(ELEMENTS.values())}")
    return data.astype(ELEMENTS[number])


def _gather(call, data, indices):
    axis = call.axis(call.integer("axis", 0), data.ndim)
    call.fits((*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]))
    if indices.dtype.kind not in "iu":
        call.fail(f"the indices are {indices.dtype}, but whole numbers are needed")
    return np.asarray(np.take(data, indices, axis))


def _reshape(call, data, shape):
    zero = call.integer("allowzero", 0)
    return data.reshape(
        [
            data.shape[i] if n == 0 and not zero else n
            for i, n in enumerate(call.whole(shape, "the shape"))
        ]
    )


def _transpose(call, data):
    axes = call.integers("perm")
    return np.transpose(data, axes)


def _axes(call, axes):
    """Return the axes of Squeeze or Unsqueeze: an attribute, since opset 13 an input."""
    if call.opset < 13:
        return call.integers("axes")
    return None if axes is None else call.whole(axes, "the list of axes")


def _squeeze(call, data, axes=None):
    return np.squeeze(data, _axes(call, axes))


def _unsqueeze(call, data, axes=None):
    return np.expand_dims(data, _axes(call, axes) or ())


def _slice(call, data, *bounds):
    if call.opset < 10:
        begins, ends = call.integers("starts", ()), call.integers("ends", ())
        axes, steps = call.integers("axes"), None
    else:
        begins, ends, axes, steps = (
            None if g is None else call.whole(g, "a place") for g in (*bounds, None, None)[:4]
        )
    axes = range(len(begins)) if axes is None else axes
    steps = [1] * len(begins) if steps is None else steps
    cut = [slice(None)] * data.ndim
    for axis, *places in zip(axes, begins, ends, steps, strict=True):
        cut[call.axis(axis, data.ndim)] = slice(*places)
    return data[tuple(cut)]


def _concat(call, *arrays):
    return np.concatenate(arrays, call.integer("axis", 0))


def _filled(call, shape):
    """Evaluate ConstantOfShape."""
    value = call.attr("value", np.zeros(1, "float32"), np.ndarray)
    if value.size != 1:
        call.fail(f"the attribute value has shape {value.shape}; one number is needed")
    return np.full(call.fits(call.whole(shape, "the shape")), value.ravel()[0])


def _expand(call, data, shape):
    shape = np.broadcast_shapes(call.whole(shape, "the shape"), data.shape)
    return np.broadcast_to(data, call.fits(shape))


def _tile(call, data, repeats):
    repeats = call.whole(repeats, "the number of repeats")
    call.fits([n * r for n, r in zip(data.shape, repeats, strict=True)])
    return np.tile(data, repeats)


def _range(call, start, limit, step):
    start, limit, step = (a.ravel()[0] for a in (start, limit, step))
    count = int(np.ceil((float(limit) - float(start)) / float(step)))
    call.fits((max(count, 0),))
    return np.arange(start, limit, step, np.asarray(start).dtype)


def _product(call, data, axes=None):
    axes = call.integers("axes") if axes is None else call.whole(axes, "the axes")
    keep = bool(call.integer("keepdims", 1))
    if call.integer("noop_with_empty_axes", 0) and not axes:
        return data
    return np.asarray(np.prod(data, axes, data.dtype, keepdims=keep))


FOLDED = {
    **{
        name: _elementwise(function)
        for name, function in {
            "Add": np.add,
            "Sub": np.subtract,
            "Mul": np.multiply,
            "Div": _divide,
            "Max": lambda *a: np.max(np.broadcast_arrays(*a), 0),
            "Min": lambda *a: np.min(np.broadcast_arrays(*a), 0),
            "Pow": _power,
            "Equal": np.equal,
            "Greater": np.greater,
            "Less": np.less,
            "Not": np.logical_not,
            "And": np.logical_and,
            "Or": np.logical_or,
            "Where": np.where,
            "Abs": np.abs,
            "Neg": np.negative,
            "Floor": np.floor,
            "Ceil": np.ceil,
            "Sqrt": np.sqrt,
            "Reciprocal": lambda a: 1 / a,
            "Exp": np.exp,
            "Xor": np.logical_xor,
            "GreaterOrEqual": np.greater_equal,
            "LessOrEqual": np.less_equal,
        }.items()
    },
    "Cast": _cast,
    "Gather": _gather,
    "Reshape": _reshape,
    "Transpose": _transpose,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Slice": _slice,
    "Concat": _concat,
    "ConstantOfShape": _filled,
    "Expand": _expand,
    "Tile": _tile,
    "Range": _range,
    "ReduceProd": _product,
    "Mod": _mod,
}
