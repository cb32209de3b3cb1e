"""Operators without inputs: zeros, ones, full, arange; and arange_like.

`make` applies one where a value is an array or a symbol. `linspace` and `eye` are in
`ops/ordering.py`.
"""

import math
from contextlib import nullcontext

import numpy as np

from minihybrid.core.convert import check_range
from minihybrid.core.op import (
    REQUIRED,
    AttrError,
    ShapeError,
    Spec,
    dtype,
    integer,
    number,
    optional,
    shape,
)
from minihybrid.ops.elementwise import literal
from minihybrid.ops.layout import reshape, slice_axis
from minihybrid.ops.loops import T, each, loops, store
from minihybrid.ops.registry import register
from minihybrid.ops.shapes import as_codes, axis_of, forward

CREATE = {"shape": (shape, REQUIRED), "dtype": (dtype, np.dtype("float32"))}


def created(specs, shape, dtype, **_):
    """Apply the shape rule of operators without inputs."""
    if any(n < 0 for n in shape):
        raise ShapeError(f"an array of shape {shape} was asked for; no length is negative")
    return specs, [Spec(shape, np.dtype("float32") if dtype is None else dtype)]


def make(like, op, **attrs):
    """Apply an operator without inputs at the dispatch level and on the device of `like`."""
    with nullcontext() if like.level else like.context:
        return like.interpret(op, [], op.normalize(attrs))


zeros = register(
    "_zeros",
    "zeros",
    inputs=(),
    attrs=CREATE,
    infer=created,
    eager=lambda *, shape, dtype: np.zeros(shape, dtype or np.float32),
    expr=lambda shape, dtype: "T(0)",
    doc="An array of zeros.",
)
ones = register(
    "_ones",
    "ones",
    inputs=(),
    attrs=CREATE,
    infer=created,
    eager=lambda *, shape, dtype: np.ones(shape, dtype or np.float32),
    expr=lambda shape, dtype: "T(1)",
    doc="An array of ones.",
)


def _full_infer(specs, shape, dtype, value):
    check_range("full", value, dtype)
    return created(specs, shape, dtype)


full = register(
    "_full",
    "full",
    inputs=(),
    infer=_full_infer,
    eager=lambda *, shape, dtype, value: np.full(shape, value, dtype or np.float32),
    attrs={
        "shape": (shape, REQUIRED),
        "value": (number, REQUIRED),
        "dtype": (dtype, np.dtype("float32")),
    },
    expr=lambda shape, dtype, value: literal(value),
    doc="An array of one value.",
)


def _arange_eager(*, start, stop, step, repeat, dtype):
    first, last = (0, start) if stop is None else (start, stop)
    return np.repeat(np.arange(first, last, step), repeat).astype(dtype or np.float32)


def _arange_infer(specs, start, stop, step, repeat, dtype):
    first, last = (0.0, start) if stop is None else (start, stop)
    if not step or not np.isfinite([first, last, step]).all() or repeat < 0:
        raise AttrError(
            f"arange: start={first}, stop={last}, step={step}, repeat={repeat}; needed: finite "
            "numbers, a step that is not 0, and no negative repeat"
        )
    if first != last:
        check_range("arange", first, dtype)
    length = max(math.ceil((last - first) / step), 0)
    if length:
        check_range("arange", first + (length - 1) * step, dtype)
    return specs, [Spec((length * repeat,), np.dtype(dtype or np.float32))]


@loops(
    lambda out, start, stop, step, repeat, dtype: (
        out.size,
        0.0 if stop is None else start,
        step,
        repeat,
    )
)
def _arange_cpu(out, n, first, step, repeat):
    for i in each(n):
        store(out, i, T(first + (i // repeat) * step))


arange = register(
    "_arange",
    "arange",
    inputs=(),
    infer=_arange_infer,
    eager=_arange_eager,
    cpu=_arange_cpu,
    stores=True,
    attrs={
        "start": (number, REQUIRED),
        "stop": (optional(number), None),
        "step": (number, 1.0),
        "repeat": (integer, 1),
        "dtype": (dtype, np.dtype("float32")),
    },
    doc="start, start + step, ... below stop; each one `repeat` times.",
)


def _along(old, start, step, repeat, axis):
    """Return the shape of arange_like's output."""
    if repeat < 1 or not math.isfinite(start) or not math.isfinite(step) or step == 0:
        raise AttrError(
            f"arange_like: start={start}, step={step}, repeat={repeat}; needed: finite numbers, "
            "a step that is not 0, and a repeat of at least 1"
        )
    return old if axis is None else (old[axis_of("arange_like", axis, len(old))],)


def _arange_like_expand(specs, data, start, step, repeat, axis):
    old, kind = specs[0]
    new = _along(old, start, step, repeat, axis)
    count, n_values = math.prod(new), -(-math.prod(new) // repeat)
    end = start + (n_values - 0.5) * step if n_values else start
    every = make(data, arange, start=start, stop=end, step=step, repeat=repeat, dtype=kind)
    return reshape(slice_axis(every, axis=0, begin=0, end=count), shape=as_codes(new))


arange_like = register(
    "_contrib_arange_like",
    attrs={
        "start": (number, 0.0),
        "step": (number, 1.0),
        "repeat": (integer, 1),
        "axis": (optional(integer), None),
    },
    infer=forward(_along),
    expand=_arange_like_expand,
    doc="start, start + step, ... in the shape of the data, or one for each place of an axis; "
    "each number `repeat` times.",
)
