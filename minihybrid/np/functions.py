"""Chapter 11. The functions of `mx.np` that work on arrays and on symbols alike.

Takes:   values of any level; Python numbers where an operator has a form for them.
Gives:   functions with NumPy's names and arguments, each a call of one record: those of
         one number, of two, sums, products.

A function of numbers alone is NumPy's own.
What is left out: `where=` and `order=` of NumPy's functions.
"""

import functools

import numpy as onp

from minihybrid.core.op import AttrError, ShapeError
from minihybrid.ops import OPS
from minihybrid.ops.infix import Value, is_number

FUNCTIONS = {}  # name -> function, of all that `mx.np` offers for values


def public(function=None, *, names=()):
    """Enter a function under its name, with `out=` added."""
    if function is None:
        return functools.partial(public, names=names)

    @functools.wraps(function)
    def call(*args, out=None, **kwargs):
        result = function(*args, **kwargs)
        if out is None:
            return result
        if not hasattr(out, "copy_from"):
            raise AttrError(f"np.{function.__name__}: out= must be an array, found {out!r:.60}")
        return out.copy_from(result)

    call.__name__ = call.__qualname__ = call.__name__.rstrip("_")
    for name in (call.__name__, *names):
        FUNCTIONS[name] = call
    return call


def lengths(a):
    """The shape of an array, or what a trace knows of a symbol's.

    Raises:  ShapeError for a symbol whose shape nobody has told yet.
    """
    if a.level == 0:
        return a.shape
    if not a.spec.known:
        raise ShapeError(
            f"the Symbol '{a.name}' has no known shape yet, which this "
            "function needs; trace it with data"
        )
    return a.spec.shape


# -- of one number ---------------------------------------------------------------------
ALIASES = {
    "absolute": ("abs", "fabs"),
    "rint": (),
    "degrees": ("rad2deg",),
    "radians": ("deg2rad",),
}


def _unary(name, op):
    plain = getattr(onp, name)

    def call(x, **_):
        return op(x) if isinstance(x, Value) else plain(x)

    call.__name__, call.__doc__ = name, op.doc
    public(call, names=ALIASES.get(name, ()))


for _name in """exp expm1 log log10 log2 log1p sqrt cbrt square reciprocal sin cos tan
        arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh degrees radians sign
        negative floor ceil trunc rint fix absolute logical_not isnan isinf isfinite
        isposinf isneginf""".split():
    _unary(_name, OPS[f"_npi_{_name}"])


# -- of two ----------------------------------------------------------------------------
def pair(name):
    """(apply, apply reversed) of a binary operation; either side may be a number."""
    both = OPS[f"_npi_{name}"]
    by = OPS.get(f"_npi_{name}_scalar")
    from_ = OPS.get(f"_npi_r{name}_scalar", None if name in MIRROR else by)

    def scalar(op, value, other):
        if op is None:
            return None
        is_int = not isinstance(other, (float, onp.floating))
        return op(value, scalar=other, is_int=is_int)

    def apply(self, other):
        if not isinstance(other, Value):
            if is_number(other) and by:
                return scalar(by, self, other)
            other = _as_value(self, other, name)
        return both(self, other)

    def apply_reversed(self, other):
        if not isinstance(other, Value):
            if is_number(other) and from_:
                return scalar(from_, self, other)
            other = _as_value(self, other, name)
        return both(other, self)

    return apply, apply_reversed


MIRROR = {"greater", "greater_equal", "less", "less_equal"}


def _as_value(value, other, name):
    """A number or a NumPy array as a value, where another is."""
    if is_number(other):
        return OPS["_npi_full_like"](value, fill_value=other)
    return value.convert(other, name)


def _binary(name, *names):
    apply, apply_reversed = pair(name)
    plain = getattr(onp, name)

    def call(x1, x2, **_):
        if isinstance(x1, Value):
            return apply(x1, x2)
        return apply_reversed(x2, x1) if isinstance(x2, Value) else plain(x1, x2)

    call.__name__, call.__doc__ = name, OPS[f"_npi_{name}"].doc
    public(call, names=names)


_binary("add")
_binary("subtract")
_binary("multiply")
_binary("true_divide", "divide")
_binary("mod", "remainder")
_binary("power")
_binary("bitwise_and")
_binary("bitwise_or")
_binary("bitwise_xor")
for _name in """maximum minimum equal not_equal greater greater_equal less less_equal
        hypot arctan2""".split():
    _binary(_name)


def _logical(name, bits):
    """Of what is not 0; as an operation on bools, for MXNet 1.9.1 has no other."""
    plain, unequal = getattr(onp, name), FUNCTIONS["not_equal"]

    def call(x1, x2, **_):
        if isinstance(x1, Value) or isinstance(x2, Value):
            return bits(unequal(x1, 0), unequal(x2, 0))
        return plain(x1, x2)

    call.__name__, call.__doc__ = name, OPS[f"broadcast_{name}"].doc
    public(call)


for _name in ("and", "or", "xor"):
    _logical(f"logical_{_name}", FUNCTIONS[f"bitwise_{_name}"])


# -- many to one -----------------------------------------------------------------------
def _reduction(name, op, *names, typed=True):
    def call(a, axis=None, dtype=None, keepdims=False, **more):
        given = {"dtype": dtype} if typed else {}
        return op(a, axis=axis, keepdims=keepdims, **given, **more)

    call.__name__, call.__doc__ = name, op.doc
    public(call, names=names)


_reduction("sum", OPS["_np_sum"])
_reduction("prod", OPS["_np_prod"])
_reduction("mean", OPS["_npi_mean"])
for _name, *_names in (("max", "amax"), ("min", "amin"), ("any",), ("all",)):
    _reduction(_name, OPS[f"_np_{_name}"], *_names, typed=False)


@public
def var(a, axis=None, dtype=None, ddof=0, keepdims=False):
    """The mean square distance from the mean, over the axes."""
    return OPS["_npi_var"](a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims)


@public
def std(a, axis=None, dtype=None, ddof=0, keepdims=False):
    """The square root of the variance, over the axes."""
    return OPS["_npi_std"](a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims)


@public
def argmax(a, axis=None, keepdims=False):
    """The place of the largest number, as int64; of the flat array without an axis."""
    return OPS["_npi_argmax"](a, axis=axis, keepdims=keepdims)


@public
def argmin(a, axis=None, keepdims=False):
    """The place of the smallest number, as int64; of the flat array without an axis."""
    return OPS["_npi_argmin"](a, axis=axis, keepdims=keepdims)


@public
def average(a, axis=None, weights=None, returned=False):
    """The mean, with weights; `returned` adds the sum of the weights."""
    if weights is None:
        found = mean(a, axis=axis)
        total = (
            mean(FUNCTIONS["ones_like"](a), axis=axis) * (a.size // found.size)
            if returned
            else None
        )
    else:
        total = FUNCTIONS["sum"](weights, axis=axis)
        found = FUNCTIONS["sum"](a * weights, axis=axis) / total
    return (found, total) if returned else found


mean = FUNCTIONS["mean"]


# -- products --------------------------------------------------------------------------
@public
def dot(a, b):
    """Vectors: their inner product; else over a's last and b's last but one axis."""
    return OPS["_np_dot"](a, b)


@public
def matmul(a, b):
    """Products of the matrices in the last two axes; the others broadcast."""
    return OPS["_npi_matmul"](a, b)


@public
def tensordot(a, b, axes=2):
    """Sum over pairs of axes: the last `axes` of a and the first of b, or two lists."""
    old_a, old_b = lengths(a), lengths(b)
    na, nb = len(old_a), len(old_b)
    if isinstance(axes, int):
        left, right = list(range(na - axes, na)), list(range(axes))
    else:
        left, right = ([x] if isinstance(x, int) else list(x) for x in axes)
    left, right = [i % na for i in left], [i % nb for i in right]
    kept_a = [i for i in range(na) if i not in left]
    kept_b = [i for i in range(nb) if i not in right]
    shape = tuple([old_a[i] for i in kept_a] + [old_b[i] for i in kept_b])
    inner = int(onp.prod([old_a[i] for i in left], dtype=int))
    rows = int(onp.prod([old_a[i] for i in kept_a], dtype=int))
    cols = int(onp.prod([old_b[i] for i in kept_b], dtype=int))
    one = a.transpose(*kept_a, *left).reshape(rows, inner)
    two = b.transpose(*right, *kept_b).reshape(inner, cols)
    return dot(one, two).reshape(shape)


@public
def outer(a, b):
    """The products of all pairs of two arrays, laid out flat."""
    return a.reshape(-1, 1) * b.reshape(1, -1)


@public
def inner(a, b):
    """The sums of products over the last axes."""
    return tensordot(a, b, axes=([-1], [-1]))


@public
def vdot(a, b):
    """The inner product of two arrays, laid out flat."""
    return dot(a.reshape(-1), b.reshape(-1))


@public
def einsum(subscripts, *operands, optimize=False):
    """Sums of products over letters: 'ij,jk->ik' is a product of matrices."""
    return OPS["_npi_einsum"](*operands, subscripts=subscripts, optimize=int(optimize))


@public
def cumsum(a, axis=None, dtype=None):
    """The sum of all numbers up to each one; without an axis, laid out flat."""
    return OPS["_np_cumsum"](a, axis=axis, dtype=dtype)


@public(names=("round", "round_"))
def around(x, decimals=0):
    """The nearest number with so many decimals; a half goes to the even one."""
    scale = 10.0**decimals
    scaled = x * scale if decimals else x
    low = FUNCTIONS["floor"](scaled)
    rest = scaled - low
    near = FUNCTIONS["where"](rest == 0.5, low + low % 2, low + (rest > 0.5))
    return near / scale if decimals else near


@public
def copysign(x1, x2):
    """The size of x1 with the sign of x2; negative zero counts as positive."""
    below = FUNCTIONS["less"](x2, 0)
    size = FUNCTIONS["absolute"](x1)
    return FUNCTIONS["where"](below, -size, size)


@public
def ldexp(x1, x2):
    """x1 times 2 to the power x2."""
    return x1 * 2.0**x2
