"""Chapter 12. The shape rules that many operators share.

Takes:   specs of the inputs, `None` inside where something is unknown.
Gives:   completed specs of the inputs, and the specs of the outputs.

A rule may learn an input from another input (the weight of a Dense layer), so it
returns the inputs, too.
What is left out: shapes that depend on values.
"""

import numpy as np

from minihybrid.core.op import UNKNOWN, DTypeError, ShapeError, Spec


def common_dtype(op, specs):
    """The one dtype of all inputs; unknown where none is known."""
    dtypes = {s.dtype for s in specs if s.dtype is not None}
    if len(dtypes) > 1:
        names = " and ".join(sorted(map(str, dtypes)))
        raise DTypeError(
            f"{op}: the inputs are {names}, but one dtype is needed; "
            "convert one of them with astype"
        )
    return dtypes.pop() if dtypes else None


def floating(dtype):
    """The dtype of a function that leaves the whole numbers (exp of an int)."""
    return dtype if dtype is None or dtype.kind == "f" else np.dtype("float32")


def merge(op, name, got, wanted):
    """The shape `wanted`, after checking that what is known (`got`) agrees."""
    if got is None:
        return wanted
    if not agree(got, wanted):
        raise ShapeError(f"{op}: {name} has shape {got}, but {wanted} is needed")
    return tuple(map(longer, got, wanted))


def longer(m, n):
    """The larger length; of equal ones the symbolic one, if there is one."""
    return m if m > n or m == n and type(m) is not int else n


def agree(a, b):
    """Whether two shapes can be one: each length is equal, or unknown in one."""
    return len(a) == len(b) and all(m == n or -1 in (m, n) for m, n in zip(a, b, strict=True))


def same_shape(op, specs):
    """All inputs share one shape and one dtype; an unknown one is filled in."""
    dtype = common_dtype(op, specs)
    shape = None
    for s in specs:
        if s.shape is None or shape is None:
            shape = shape if s.shape is None else s.shape
        elif agree(s.shape, shape):
            shape = tuple(map(longer, s.shape, shape))
        else:
            shapes = " and ".join(str(t.shape) for t in specs)
            raise ShapeError(
                f"{op}: the inputs have shapes {shapes}, but one shape is "
                "needed; broadcast_* operators stretch axes of length 1"
            )
    return [Spec(shape, dtype)] * len(specs), [Spec(shape, dtype)]


def broadcast_shapes(*shapes):
    """NumPy's function, but symbolic lengths stay symbolic (core/lengths.py).

    Raises:  ValueError if the shapes do not broadcast.

    >>> broadcast_shapes((4, 1), (3,))
    (4, 3)
    """
    out = list(np.broadcast_shapes(*shapes))
    for shape in shapes:
        for i, n in enumerate(reversed(shape), 1):
            if type(n) is not int and n == out[-i]:
                out[-i] = n
    return tuple(out)


def broadcast(op, specs):
    """NumPy's rule: axes line up from the right, and length 1 stretches."""
    dtype = common_dtype(op, specs)
    if any(s.shape is None or -1 in s.shape for s in specs):
        return [Spec(s.shape, dtype) for s in specs], [Spec(None, dtype)]
    try:
        out = broadcast_shapes(*(s.shape for s in specs))
    except ValueError:
        shapes = " and ".join(str(s.shape) for s in specs)
        raise ShapeError(
            f"{op}: shapes {shapes} do not broadcast; from the right, two lengths must "
            "be equal or one of them 1"
        ) from None
    return specs, [Spec(out, dtype)]


def axis_of(op, axis, ndim):
    """The axis counted from the front, checked."""
    if not -ndim <= axis < ndim:
        raise ShapeError(f"{op}: axis {axis} does not exist in {ndim} dimensions")
    return axis % ndim


def axes_of(op, axis, ndim, exclude=False):
    """All axes that `axis` (None, a number or a tuple) means, in order."""
    if axis is None:
        return tuple(range(ndim))
    axis = axis if isinstance(axis, tuple) else (axis,)
    axes = {axis_of(op, a, ndim) for a in axis}
    if len(axes) < len(axis):
        raise ShapeError(
            f"{op}: axis={axis} names an axis of {ndim} twice; needed: each at most once"
        )
    return tuple(a for a in range(ndim) if (a in axes) != exclude)


def known(specs):
    """Whether every shape among `specs` is fully known."""
    return all(s.shape is not None and -1 not in s.shape for s in specs)


def row_major(shape):
    """The strides, in elements, of a contiguous array.

    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def same_steps(read, shape):
    """Whether (offset, strides) tell the places of a contiguous array in order."""
    offset, strides = read
    return offset == 0 and all(
        n == 1 or a == b for n, a, b in zip(shape, strides, row_major(shape), strict=True)
    )


def as_codes(shape):
    """A known shape for Reshape, where 0 means another thing: -1 for an empty axis."""
    return tuple(-1 if n == 0 else n for n in shape)


def forward(rule, alike=""):
    """Make a shape rule of a function that needs all input shapes and gives the
    output's.

    The function takes the shapes and the attributes; the output has the inputs' dtype
    unless it returns a Spec of its own.
    alike:   the name of an operator whose inputs must have one dtype.
    """

    def infer(specs, **attrs):
        if alike:
            common_dtype(alike, specs)
        if not known(specs):
            return specs, [UNKNOWN]
        out = rule(*(s.shape for s in specs), **attrs)
        return specs, [out if isinstance(out, Spec) else Spec(tuple(out), specs[0].dtype)]

    return infer


def adds_back(op, rule):
    """Make the shape rule of an operator that puts data back to where they were read.

    rule:    the shape that is read from `like` and the other inputs; the data must have
             it, and the output has the shape of `like`, which is the last input.
    """

    def infer(specs, **attrs):
        data, *others, like = specs
        if known(specs):
            merge(
                op, "data", data.shape, tuple(rule(like.shape, *(s.shape for s in others), **attrs))
            )
        return specs, [Spec(like.shape, data.dtype)]

    return infer


def blocks(n, limit):
    """(first, last, step): n in equal steps of at most `limit`, then the rest.

    >>> blocks(10, 4), blocks(6, 4)
    ([(0, 8, 4), (8, 10, 2)], [(0, 6, 3)])
    """
    if not n:
        return []
    step = -(-n // -(-n // max(limit, 1)))
    whole = n - n % step
    return [(0, whole, step)] + [(whole, n, n - whole)] * (whole < n)
