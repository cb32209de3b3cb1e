"""Chapter 12. Arrays that are made from nothing: zeros, ones, one number, and ranges.

Takes:   shapes, numbers and a dtype, as attributes.
Gives:   the records `zeros`, `ones`, `full`, `arange`; `made`, which applies such a one
         beside a value.

What is left out: numbers at equal distances, and diagonals (`ordering`); random ones.
"""

import math

import numpy as np

from minihybrid.core.given import holds
from minihybrid.core.op import (
    REQUIRED,
    AttrError,
    ShapeError,
    Spec,
    dtype,
    integer,
    number,
    optional,
    register,
    shape,
)
from minihybrid.ops.elementwise import literal
from minihybrid.ops.loops import T, each, loops, store

CREATE = {"shape": (shape, REQUIRED), "dtype": (dtype, np.dtype("float32"))}


def created(specs, shape, dtype, **_):
    """The shape rule of operators without inputs."""
    if any(n < 0 for n in shape):
        raise ShapeError(f"an array of shape {shape} was asked for; no length is negative")
    return specs, [Spec(shape, np.dtype("float32") if dtype is None else dtype)]


def made(like, op, **attrs):
    """The output of an operator without inputs, read by whoever reads `like`."""
    return like.interpret(op, [], op.normalize(attrs))


def _full_eager(*, shape, dtype, value):
    return np.full(shape, value, dtype or np.float32)


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
    holds("full", value, dtype)
    return created(specs, shape, dtype)


full = register(
    "_full",
    "full",
    inputs=(),
    infer=_full_infer,
    eager=_full_eager,
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
        holds("arange", first, dtype)
    length = max(math.ceil((last - first) / step), 0)
    if length:
        holds("arange", first + (length - 1) * step, dtype)
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
