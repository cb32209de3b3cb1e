"""Chapter 12. Shape rules shared by many operators.

A rule maps the inputs' specs, which may be incomplete, to completed specs of the inputs
and the specs of the outputs. It returns the inputs because one may be inferred from
another, such as the weight of a Dense layer from the data.
Not supported: data-dependent shapes.
"""

import numpy as np

from minihybrid.core.op import AttrError, DTypeError, ShapeError, Spec, described


def common_dtype(op, specs):
    """Return the common dtype of all inputs; unknown if none is known."""
    dtypes = {s.dtype for s in specs if s.dtype is not None}
    if len(dtypes) > 1:
        names = " and ".join(sorted(map(str, dtypes)))
        raise DTypeError(
            f"{op}: the inputs are {names}, but one dtype is needed; "
            "convert one of them with astype"
        )
    return dtypes.pop() if dtypes else None


def floating(dtype):
    """Return the result dtype of a function with float results (exp of an int)."""
    return dtype if dtype is None or dtype.kind == "f" else np.dtype("float32")


def merge(op, name, got, expected):
    """Return the shape `expected`, after checking that the known part `got` agrees."""
    if got is None:
        return expected
    if not agree(got, expected):
        raise ShapeError(f"{op}: {name} has shape {got}, but {expected} is needed")
    return tuple(map(longer, got, expected))


def longer(m, n):
    """Return the larger length; of equal ones, the symbolic one."""
    return m if m > n or m == n and type(m) is not int else n


def agree(a, b):
    """Return whether two shapes are compatible: lengths are equal, or unknown in one."""
    return len(a) == len(b) and all(m == n or -1 in (m, n) for m, n in zip(a, b, strict=True))


def same_shape(op, specs):
    """Require one shape and dtype of all inputs; infer unknown ones."""
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
    """Broadcast shapes like NumPy, but keep symbolic lengths (core/lengths.py).

    Raises:  ValueError if the shapes don't broadcast.

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
    """Apply NumPy's broadcasting rule."""
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
    """Return a checked, nonnegative axis."""
    if not isinstance(axis, (int, np.integer)):
        raise AttrError(f"{op}: axis={described(axis)} does not fit; needed: a whole number")
    if not -ndim <= axis < ndim:
        raise ShapeError(f"{op}: axis {axis} does not exist in {ndim} dimensions")
    return axis % ndim


def axes_of(op, axis, ndim, exclude=False):
    """Return the axes given by `axis` (None, an integer or a tuple), in order."""
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
    """Return whether every shape among `specs` is fully known."""
    return all(s.shape is not None and -1 not in s.shape for s in specs)


def row_major(shape):
    """Return the strides, in elements, of a contiguous array.

    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def same_steps(read, shape):
    """Return whether (offset, strides) describe a contiguous array."""
    offset, strides = read
    return offset == 0 and all(
        n == 1 or a == b for n, a, b in zip(shape, strides, row_major(shape), strict=True)
    )


def as_codes(shape):
    """Return a shape for Reshape, where 0 has another meaning: -1 for an empty axis."""
    return tuple(-1 if n == 0 else n for n in shape)


def forward(rule, alike="", dtype=None):
    """Make a shape rule from a function from input shapes to the output shape.

    The function takes the shapes and the attributes.
    alike:   the name of an operator whose inputs must have one dtype.
    dtype:   of the output: a dtype, or a function of the first input's; by default the same.
    """

    def infer(specs, **attrs):
        first = common_dtype(alike, specs) if alike else specs[0].dtype
        kind = dtype(first) if callable(dtype) else dtype or first
        shape = tuple(rule(*(s.shape for s in specs), **attrs)) if known(specs) else None
        return specs, [Spec(shape, kind)]

    return infer


def adds_back(op, rule):
    """Make the shape rule of a scatter, the gradient of a gather.

    rule:    the shape gathered from `like` and the other inputs, which the data must have;
             the output has the shape of `like`, the last input.
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
    """Split n into (first, last, step): equal steps of at most `limit`, then the rest.

    >>> blocks(10, 4), blocks(6, 4)
    ([(0, 8, 4), (8, 10, 2)], [(0, 6, 3)])
    """
    if not n:
        return []
    step = -(-n // -(-n // max(limit, 1)))
    whole = n - n % step
    return [(0, whole, step)] + [(whole, n, n - whole)] * (whole < n)
