"""Chapter 16. The functions of `mx.np` that work on arrays and on symbols alike.

Takes:   values of any level; Python numbers where an operator has a form for them.
Gives:   functions with NumPy's names and arguments, each a call of one record.

A function of numbers alone is NumPy's own.
What is left out: `where=` and `order=` of NumPy's functions.
"""

import functools

import numpy as onp

from minihybrid.op import OPS, AttrError, ShapeError
from minihybrid.ops.infix import Value, is_number
from minihybrid.ops.np import _at_least

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
            raise AttrError(f"np.{function.__name__}: out= must be an array, found "
                            f"{out!r:.60}")
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
        raise ShapeError(f"the Symbol '{a.name}' has no known shape yet, which this "
                         "function needs; trace it with data")
    return a.spec.shape


# -- of one number ---------------------------------------------------------------------
ALIASES = {"absolute": ("abs", "fabs"), "rint": (), "degrees": ("rad2deg",),
           "radians": ("deg2rad",)}


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
    if f"_npi_{_name}" in OPS:
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
            other = _beside(self, other, name)
        return both(self, other)

    def apply_reversed(self, other):
        if not isinstance(other, Value):
            if is_number(other) and from_:
                return scalar(from_, self, other)
            other = _beside(self, other, name)
        return both(other, self)

    return apply, apply_reversed


MIRROR = {"greater", "greater_equal", "less", "less_equal", "hypot", "arctan2"}


def _beside(value, other, name):
    """A number or a NumPy array as a value that stands beside another."""
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
for _name in ("maximum", "minimum", "equal", "not_equal", "greater", "greater_equal",
              "less", "less_equal", "hypot", "arctan2"):
    if f"_npi_{_name}" in OPS:
        _binary(_name)


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
        total = mean(ones_like(a), axis=axis) * (1.0 * a.size / max(found.size, 1)) \
            if returned else None
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


# -- shapes ----------------------------------------------------------------------------
@public
def reshape(a, newshape, reverse=False, order="C"):
    """The same numbers under another shape; one length may be -1."""
    return OPS["_np_reshape"](a, newshape=newshape, order=order)


@public
def ravel(a, order="C"):
    """The same numbers along one axis."""
    return OPS["_np_reshape"](a, newshape=(-1,))


@public
def transpose(a, axes=None):
    """The axes in another order, reversed unless given."""
    return OPS["_np_transpose"](a, axes=axes)


@public
def swapaxes(a, axis1, axis2):
    """Exchange two axes."""
    return OPS["SwapAxis"](a, dim1=axis1, dim2=axis2)


@public
def moveaxis(a, source, destination):
    """Axes moved to other places; the others keep their order."""
    return OPS["_np_moveaxis"](a, source=source, destination=destination)


@public
def squeeze(a, axis=None):
    """Take out axes of length 1, all of them unless told."""
    return OPS["_np_squeeze"](a, axis=axis)


@public
def expand_dims(a, axis):
    """Put in an axis of length 1."""
    return OPS["expand_dims"](a, axis=axis)


@public
def broadcast_to(array, shape):
    """Repeat axes of length 1 up to a shape."""
    return OPS["_npi_broadcast_to"](array, shape=shape)


def _at_least_of(n):
    def call(*arys):
        out = [a if len(lengths(a)) >= n else reshape(a, _at_least(n, lengths(a)))
               for a in arys]
        return out[0] if len(out) == 1 else out
    call.__name__ = f"atleast_{n}d"
    call.__doc__ = f"The arrays with at least {n} axes."
    public(call)


for _n in (1, 2, 3):
    _at_least_of(_n)


# -- joining and cutting ---------------------------------------------------------------
@public
def concatenate(seq, axis=0):
    """Join arrays along an axis; `None` joins them flat."""
    return OPS["_npi_concatenate"](*seq, axis=axis)


@public
def append(arr, values, axis=None):
    """The second array after the first."""
    return OPS["_npi_concatenate"](arr, values, axis=axis)


@public
def stack(arrays, axis=0):
    """Join arrays along a new axis."""
    return OPS["_npi_stack"](*arrays, axis=axis)


def _stacking(name, doc):
    def call(arrays):
        return OPS[f"_npi_{name}"](*arrays)
    call.__name__, call.__doc__ = name, doc
    public(call, names=("row_stack",) if name == "vstack" else ())


for _name in ("vstack", "hstack", "dstack", "column_stack"):
    _stacking(_name, OPS[f"_npi_{_name}"].doc)


def _cuts(n, indices_or_sections, equal, name):
    """Where an axis of length n is cut: (begin, end) pairs."""
    if not isinstance(indices_or_sections, int):
        ends = [slice(0, i).indices(n)[1] for i in indices_or_sections]
        return list(zip([0, *ends], [*ends, n], strict=True))
    parts = indices_or_sections
    if parts < 1 or equal and n % parts:
        raise ShapeError(f"{name}: an axis of length {n} does not divide into {parts} "
                         "equal parts; array_split makes unequal ones")
    sizes = [n // parts + (i < n % parts) for i in range(parts)]
    ends = onp.cumsum(sizes).tolist()
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _split(ary, cuts, axis):
    return [OPS["slice_axis"](ary, axis=axis, begin=a, end=max(a, b)) for a, b in cuts]


@public
def split(ary, indices_or_sections, axis=0):
    """A list of equal parts, or of the parts between places."""
    return _split(ary, _cuts(lengths(ary)[axis], indices_or_sections, True, "split"), axis)


@public
def array_split(ary, indices_or_sections, axis=0):
    """As split; the first parts are longer where the length does not divide."""
    cuts = _cuts(lengths(ary)[axis], indices_or_sections, False, "array_split")
    return _split(ary, cuts, axis)


@public
def vsplit(ary, indices_or_sections):
    """As split, along the first axis."""
    return split(ary, indices_or_sections, 0)


@public
def hsplit(ary, indices_or_sections):
    """As split, along the second axis; of a vector along its only one."""
    return split(ary, indices_or_sections, min(len(lengths(ary)) - 1, 1))


# -- choosing --------------------------------------------------------------------------
@public
def where(condition, x, y):
    """x where the condition is not 0, else y; each may be a number."""
    like = next((v for v in (x, y, condition) if isinstance(v, Value)), None)
    if like is None:
        return onp.where(condition, x, y)
    return OPS["_npi_where"](*(v if isinstance(v, Value) else _beside(like, v, "where")
                               for v in (condition, x, y)))


@public
def clip(a, a_min=None, a_max=None):
    """a, but not below a_min and not above a_max; `None` is no bound."""
    low = -onp.inf if a_min is None else a_min
    return OPS["clip"](a, a_min=low, a_max=onp.inf if a_max is None else a_max)


@public
def zeros_like(a, dtype=None, order="C", ctx=None):
    """Zeros in the shape of a."""
    return full_like(a, 0, dtype)


@public
def ones_like(a, dtype=None, order="C", ctx=None):
    """Ones in the shape of a."""
    return full_like(a, 1, dtype)


@public(names=("empty_like",))
def full_like(a, fill_value=0, dtype=None, order="C", ctx=None):
    """One value in the shape of a."""
    return OPS["_npi_full_like"](a, fill_value=fill_value, dtype=dtype)


@public
def copy(a):
    """The same numbers in memory of their own."""
    return OPS["_np_copy"](a)


@public
def shape(a):
    """The length of each axis."""
    return a.shape


@public
def ndim(a):
    """The number of axes."""
    return a.ndim


@public
def size(a):
    """The number of elements."""
    return a.size
