"""The functions of `mx.np` that work on both arrays and symbols.

Defines: functions with NumPy's names and arguments, each a call of one operator: unary and
         binary functions, reductions, products.

An operand may be a Python scalar if the operator has a form for it. For scalars alone,
NumPy's own functions are used.
Not supported: NumPy's `where=`.
"""

import math

import numpy as onp

from minihybrid.core.op import ShapeError
from minihybrid.np.operands import beside, in_dtype, pair, promote
from minihybrid.np.public import FUNCTIONS, kind_of, lengths, public, publish
from minihybrid.ops import OPS
from minihybrid.ops.infix import Value, is_number
from minihybrid.ops.shapes import axes_of
from minihybrid.ops.signatures import Called


# -- unary -----------------------------------------------------------------------------
def _unary(name, op):
    plain = getattr(onp, name)

    def call(x, dtype=None):
        if not isinstance(x, Value):
            return plain(x) if dtype is None else plain(x, dtype=dtype)
        return op.applied((x,), {}) if dtype is None else in_dtype(name, op, dtype, x)

    public(call, name, op.doc)


for _name in """exp expm1 log log10 log2 log1p sqrt cbrt square reciprocal sin cos tan
        arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh degrees radians sign
        negative floor ceil trunc rint fix absolute logical_not isnan isinf isfinite
        isposinf isneginf""".split():
    _unary(_name, OPS[f"_npi_{_name}"])


# -- binary ----------------------------------------------------------------------------
def _binary(name):
    apply, apply_reversed = pair(name)
    plain = getattr(onp, name)

    def both(x1, x2):
        return apply(x1, x2) if isinstance(x1, Value) else apply_reversed(x2, x1)

    def call(x1, x2, dtype=None):
        if not isinstance(x1, Value) and not isinstance(x2, Value):
            return plain(x1, x2) if dtype is None else plain(x1, x2, dtype=dtype)
        return both(x1, x2) if dtype is None else in_dtype(name, both, dtype, x1, x2)

    public(call, name, OPS[f"_npi_{name}"].doc)


for _name in """add subtract multiply true_divide mod power bitwise_and bitwise_or
        bitwise_xor maximum minimum equal not_equal greater greater_equal less less_equal
        hypot arctan2""".split():
    _binary(_name)


def _logical(name, bits):
    """Define a logical function as a bool operation, the only form in MXNet 1.9.1."""
    plain, unequal = getattr(onp, name), FUNCTIONS["not_equal"]

    def call(x1, x2):
        if isinstance(x1, Value) or isinstance(x2, Value):
            return bits(unequal(x1, 0), unequal(x2, 0))
        return plain(x1, x2)

    public(call, name, OPS[f"broadcast_{name}"].doc)


for _name in ("and", "or", "xor"):
    _logical(f"logical_{_name}", FUNCTIONS[f"bitwise_{_name}"])


# -- the operator itself ---------------------------------------------------------------
def _operator(name, op):
    """Define a function with the operator's own arguments."""

    def call(*args, **kwargs):
        return op.applied(args, kwargs)

    call.__wrapped__ = Called(op, more=())
    public(call, name, op.doc)


for _name in "sum prod max min any all dot cumsum".split():
    _operator(_name, OPS[f"_np_{_name}"])
for _name in "mean matmul".split():
    _operator(_name, OPS[f"_npi_{_name}"])
_dot, _mean = FUNCTIONS["dot"], FUNCTIONS["mean"]


# -- reductions ------------------------------------------------------------------------
def var(a, axis=None, dtype=None, ddof=0, keepdims=False):
    """Return the variance over the axes."""
    return OPS["_npi_var"](a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims)


def std(a, axis=None, dtype=None, ddof=0, keepdims=False):
    """Return the standard deviation over the axes."""
    return OPS["_npi_std"](a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims)


def argmax(a, axis=None, keepdims=False):
    """Return the index of the largest element, int64, by default in the flattened array."""
    return OPS["_npi_argmax"](a, axis=axis, keepdims=keepdims)


def argmin(a, axis=None, keepdims=False):
    """Return the index of the smallest element, int64, by default in the flattened array."""
    return OPS["_npi_argmin"](a, axis=axis, keepdims=keepdims)


def average(a, axis=None, weights=None, returned=False):
    """Return the mean, weighted per element or along one axis. `returned` adds their sum."""
    old = lengths(a)
    axes_of("average", axis, len(old))
    if weights is None:
        out = _mean(a, axis=axis)
        if not returned:
            return out
        ones = FUNCTIONS["full_like"](a, 1, dtype=kind_of(out))
        return out, FUNCTIONS["sum"](ones, axis=axis)
    if lengths(weights) != old:
        weights = _along(axis, weights, old)
    weights = broadcast_to(weights, old)
    total = FUNCTIONS["sum"](weights, axis=axis)
    out = FUNCTIONS["sum"](a * weights, axis=axis) / total
    return (out, promote(total, 1.0)) if returned else out


def _along(axis, weights, old):
    """Reshape the weights of one axis, so that they broadcast."""
    one = lengths(weights)
    if not isinstance(axis, int) or len(one) != 1 or not -len(old) <= axis < len(old):
        raise ShapeError(
            f"average: weights of shape {one} for an array of shape {old} and axis={axis}; they "
            "must have the array's shape, or be a vector for axis="
        )
    if one[0] != old[axis]:
        raise ShapeError(
            f"average: {one[0]} weights for axis {axis} of length {old[axis]}; needed: one each"
        )
    return weights.reshape([n if i == axis % len(old) else 1 for i, n in enumerate(old)])


def broadcast_to(array, shape):
    """Broadcast an array to a shape."""
    return OPS["_npi_broadcast_to"](array, shape=shape)


# -- products --------------------------------------------------------------------------
def tensordot(a, b, axes=2):
    """Contract pairs of axes: the last `axes` of a and the first of b, or two lists."""
    old_a, old_b = lengths(a), lengths(b)
    na, nb = len(old_a), len(old_b)
    if isinstance(axes, int):
        axes = range(na - axes, na), range(axes)
    left, right = ([x] if isinstance(x, int) else list(x) for x in axes)
    left, right = [i % na for i in left], [i % nb for i in right]
    kept_a = [i for i in range(na) if i not in left]
    kept_b = [i for i in range(nb) if i not in right]
    inner = math.prod([old_a[i] for i in left])
    rows, cols = [old_a[i] for i in kept_a], [old_b[i] for i in kept_b]
    one = a.transpose(*kept_a, *left).reshape(math.prod(rows), inner)
    two = b.transpose(*right, *kept_b).reshape(inner, math.prod(cols))
    return _dot(one, two).reshape((*rows, *cols))


def outer(a, b):
    """Return the outer product of two flattened arrays."""
    return a.reshape(-1, 1) * b.reshape(1, -1)


def inner(a, b):
    """Return the inner product over the last axes, or the product with a scalar."""
    if () in (lengths(a), lengths(b)):
        return _dot(a, b)
    return tensordot(a, b, axes=([-1], [-1]))


def vdot(a, b):
    """Return the inner product of two flattened arrays."""
    return _dot(a.reshape(-1), b.reshape(-1))


def einsum(subscripts, *operands, optimize=False):
    """Sum products in Einstein notation: 'ij,jk->ik' is a matrix product.

    `...` means axes that broadcast, as in '...ij,...jk->...ik'.
    """
    return OPS["_npi_einsum"](*operands, subscripts=subscripts, optimize=int(optimize))


def around(x, decimals=0):
    """Round to `decimals` decimal places, with halves to even.

    Integers are unchanged unless `decimals` is negative.
    """
    kind = kind_of(x)
    if kind is not None and kind.kind in "iu" and decimals >= 0:
        return OPS["_np_copy"](x)
    scale = 10.0**decimals
    scaled = x * scale if decimals else x
    low = FUNCTIONS["floor"](scaled)
    rest = scaled - low
    near = FUNCTIONS["where"](rest == 0.5, low + low % 2, low + (rest > 0.5))
    near = near / scale if decimals else near
    return OPS["Cast"](near, dtype=kind) if kind is not None and kind.kind in "iu" else near


def copysign(x1, x2):
    """Return |x1| with the sign of x2 (zeros are signed); integers become floats."""
    if not isinstance(x2, Value):
        size = FUNCTIONS["absolute"](promote(x1, 1.0)) if isinstance(x1, Value) else x1
        if size is x1 or not is_number(x2):
            return onp.copysign(x1, x2) if size is x1 else copysign(x1, x1.convert(x2, "copysign"))
        return -size if onp.signbit(x2) else size
    x2 = promote(x2, 1.0)
    x1 = promote(x1, 1.0) if isinstance(x1, Value) else beside(x2, x1, "copysign")
    size = FUNCTIONS["absolute"](x1) * FUNCTIONS["ones_like"](x2)
    is_below = (x2 < 0) | (FUNCTIONS["reciprocal"](x2) < 0)  # 1 / -0 is negative
    return FUNCTIONS["where"](is_below, -size, size)


def ldexp(x1, x2):
    """Return x1 * 2 ** x2."""
    return x1 * 2.0**x2


publish(globals())
