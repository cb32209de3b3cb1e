"""Operators of the NumPy-like interface, composed of the legacy operators.

Uses:    the operators of Gluon's legacy arrays.
Defines: `_npi_add`, `_np_sum`, `_npx_relu`, ...: the names that MXNet saves for `mx.np`
         programs. Most decompose, so they define no gradients or loops.

Differences from the legacy operators: a full reduction has shape (), comparisons return
bool, indices are int64, dtypes are promoted (floats over integers, then the wider one),
and integer division returns float32.
Not supported: sums of small integers aren't promoted to the platform's integer.
"""

import math
from dataclasses import fields
from functools import partial

import numpy as np

from minihybrid.core.convert import check_range
from minihybrid.core.op import (
    REQUIRED,
    AttrError,
    DTypeError,
    NumberError,
    Op,
    Spec,
    axes,
    boolean,
    dtype,
    integer,
    number,
    optional,
)
from minihybrid.ops.elementwise import abs_, block_grad, cast, sqrt, square
from minihybrid.ops.integers import scalar_number
from minihybrid.ops.layout import reshape
from minihybrid.ops.reduce import max_, min_, sum_
from minihybrid.ops.registry import OPS, register
from minihybrid.ops.shapes import as_codes, axes_of, broadcast, floating, forward, known

FIELDS = [f.name for f in fields(Op) if f.init and f.name != "name"]
BOOL, FLOAT, LONG = np.dtype("bool"), np.dtype("float32"), np.dtype("int64")


def renamed(name, op, *aliases, **changes):
    """Register the same operator under the name that np programs use."""
    values = {field: getattr(op, field) for field in FIELDS}
    return register(name, *aliases, **values | changes)


def promoted(*dtypes):
    """Return the promoted dtype: floats take precedence, then the wider one.

    >>> promoted(np.dtype("int64"), np.dtype("float32"))
    dtype('float32')
    """
    if None in [d and d.kind for d in dtypes]:
        return None
    return np.result_type(*([d for d in dtypes if d.kind == "f"] or dtypes))


def to(value, old, new):
    """Cast the value from dtype `old` to `new`, if they differ."""
    return value if old == new else cast(value, dtype=new)


def same(kind):
    """Return the promoted dtype as the result's."""
    return kind


def to_bool(kind):
    """Return bool as the result's dtype."""
    return kind and BOOL


# -- binary operators, also with a scalar ----------------------------------------------
def is_whole(value):
    """Return whether a Python or NumPy scalar has an integer type: `is_int` in files."""
    return not isinstance(value, float) and np.asarray(value).dtype.kind != "f"


def with_number(kind, number, is_int):
    """Return the dtype to compute an array and a scalar in, by NumPy's promotion rules.

    A Python scalar has a kind, but no width (NEP 50): it takes the array's dtype if that is
    of the same or a higher kind, of bool < integer < float, else the default dtype of its
    kind, int64 or float32. As in MXNet, NumPy scalars, such as `numpy.float64(2)`, count as
    Python scalars.
    Unlike here, MXNet 1.9.1 keeps an integer dtype for a fractional scalar.

    >>> with_number(np.dtype("uint8"), 2, True), with_number(np.dtype("uint8"), 0.5, False)
    (dtype('uint8'), dtype('float32'))
    """
    if kind is None or kind.kind == "f":
        return kind
    if not is_int or number != number // 1:
        return FLOAT
    return LONG if kind.kind == "b" else kind


def filling(op, number, kind):
    """Convert a fill value to a dtype: as in NumPy, integer dtypes truncate its fraction.

    Raises:  NumberError if the dtype cannot hold it.
    """
    is_cut = kind is not None and kind.kind in "iu" and math.isfinite(number)
    return fitting(op, int(number) if is_cut else number, kind)


def fitting(op, number, kind):
    """Return a scalar if a dtype can hold it.

    Raises:  NumberError for an integer that would overflow, or a finite value that
             would become infinite.
    """
    check_range(op, number, kind)
    if kind is not None and kind.kind == "f" and math.isfinite(number):
        with np.errstate(over="ignore"):
            is_too_large = np.isinf(np.float64(number).astype(kind))
        if is_too_large:
            wider = "float32" if kind == np.float16 and abs(number) < 3e38 else "float64"
            raise NumberError(
                f"{op}: {number:g} does not fit into {kind}, which holds numbers up to "
                f"{np.finfo(kind).max:g}; convert the array by astype('{wider}')"
            )
    return number


def pair(name, both, scalar=None, rscalar=None, inside=same, result=same):
    """Register `_npi_name` and its scalar variants, from the legacy operators.

    inside:  promoted dtype -> the dtype to compute in;  result: -> the result's dtype.
    """
    both, doc = OPS[both], OPS[both].doc

    def infer(specs):
        kind = inside(promoted(*(s.dtype for s in specs)))
        if name == "subtract" and kind == BOOL:
            raise DTypeError("subtract: bools have no difference; convert one by astype('int32')")
        _, (out,) = broadcast(name, [Spec(s.shape, kind) for s in specs])
        return specs, [Spec(out.shape, result(kind))]

    def expand(specs, lhs, rhs):
        kind = inside(promoted(*(s.dtype for s in specs)))
        out = both(to(lhs, specs[0].dtype, kind), to(rhs, specs[1].dtype, kind))
        return to(out, kind, result(kind))

    register(f"_npi_{name}", inputs=("lhs", "rhs"), infer=infer, expand=expand, doc=doc)
    for prefix, op in (("", scalar), ("r", rscalar)):
        if op:
            _pair_scalar(f"_npi_{prefix}{name}_scalar", name, OPS[op], inside, result)


def _beyond(kind, number):
    """Return -1 or 1 if a scalar is below or above an integer dtype's range, else 0."""
    if kind is None or kind.kind not in "iu":
        return 0
    ends = np.iinfo(kind)
    return (number > ends.max) - (number < ends.min)


def _pair_scalar(name, public_name, op, inside, result):
    def infer(specs, scalar, is_int):
        kind = inside(with_number(specs[0].dtype, scalar, is_int))
        if result is not to_bool:
            fitting(public_name, scalar, kind)
        return specs, [Spec(specs[0].shape, result(kind))]

    def expand(specs, data, scalar, is_int):
        kind = inside(with_number(specs[0].dtype, scalar, is_int))
        data = to(data, specs[0].dtype, kind)
        if result is to_bool and _beyond(kind, scalar):  # the same result for all elements
            zeros = OPS["zeros_like"](cast(data, dtype=FLOAT))
            return cast(op(zeros, scalar=_beyond(kind, scalar)), dtype=BOOL)
        return to(op(data, scalar=scalar), kind, result(kind))

    register(
        name,
        infer=infer,
        expand=expand,
        doc=op.doc,
        attrs={"scalar": (scalar_number, REQUIRED), "is_int": (boolean, True)},
    )


pair("add", "broadcast_add", "_plus_scalar")
pair("subtract", "broadcast_sub", "_minus_scalar", "_rminus_scalar")
pair("multiply", "broadcast_mul", "_mul_scalar")
pair("true_divide", "broadcast_div", "_div_scalar", "_rdiv_scalar", inside=floating)
pair("mod", "broadcast_mod", "_mod_scalar", "_rmod_scalar")
pair("power", "broadcast_power", "_power_scalar", "_rpower_scalar")
pair("maximum", "broadcast_maximum", "_maximum_scalar")
pair("minimum", "broadcast_minimum", "_minimum_scalar")
for _name, _old in (
    ("equal", "equal"),
    ("not_equal", "not_equal"),
    ("greater", "greater"),
    ("greater_equal", "greater_equal"),
    ("less", "lesser"),
    ("less_equal", "lesser_equal"),
):
    pair(_name, f"broadcast_{_old}", f"_{_old}_scalar", result=to_bool)
pair("hypot", "broadcast_hypot", "_hypot_scalar", inside=floating)
pair("arctan2", "broadcast_arctan2", "_arctan2_scalar", "_rarctan2_scalar", inside=floating)


def _bitwise(name, sign):
    """Register a bitwise operation on integers, or logical on bools."""
    function = getattr(np, f"bitwise_{name}")

    def infer(specs):
        kind = promoted(*(s.dtype for s in specs))
        if kind is not None and kind.kind == "f":
            raise DTypeError(
                f"bitwise_{name}: whole numbers or bools are needed, "
                f"found {kind}; convert with astype"
            )
        _, (out,) = broadcast(name, [Spec(s.shape, kind) for s in specs])
        return specs, [Spec(out.shape, kind)]

    register(
        f"_npi_bitwise_{name}",
        inputs=("lhs", "rhs"),
        infer=infer,
        eager=function,
        expr=f"{{a}} {sign} {{b}}",
        grad=lambda g, out, a, b: (None, None),
        doc=f"The bits of a {name} b; of bools, true or false.",
    )


for _name, _sign in (("and", "&"), ("or", "|"), ("xor", "^")):
    _bitwise(_name, _sign)


# -- unary operators -------------------------------------------------------------------
SAME_NAME = """exp expm1 log log10 log2 log1p sqrt cbrt square reciprocal sin cos tan
    arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh degrees radians sign
    negative floor ceil trunc rint fix""".split()
for _name in SAME_NAME:
    renamed(f"_npi_{_name}", OPS[_name])
renamed("_npi_absolute", OPS["abs"], "_npi_abs")
renamed("_npx_relu", OPS["relu"])
renamed("_npx_sigmoid", OPS["sigmoid"])
renamed("_np_copy", OPS["_copy"])


def _tested(name, expand, doc):
    """Register an elementwise test with a bool result."""

    def test(specs, data):
        data = to(data, specs[0].dtype, floating(specs[0].dtype))
        return cast(expand(data), dtype=BOOL)

    register(
        f"_npi_{name}",
        doc=doc,
        expand=test,
        infer=lambda specs: (specs, [Spec(specs[0].shape, BOOL)]),
    )


_tested("logical_not", OPS["logical_not"], "True where the number is 0.")
_tested("isnan", lambda a: OPS["_not_equal"](a, a), "True where it is not a number.")
_tested(
    "isinf",
    lambda a: OPS["_equal_scalar"](OPS["abs"](a), scalar=np.inf),
    "True where it is infinite.",
)
_tested(
    "isfinite",
    lambda a: OPS["_lesser_scalar"](OPS["abs"](a), scalar=np.inf),
    "True where it is a number and not infinite.",
)
_tested(
    "isposinf",
    lambda a: OPS["_equal_scalar"](a, scalar=np.inf),
    "True where it is positive infinity.",
)
_tested(
    "isneginf",
    lambda a: OPS["_equal_scalar"](a, scalar=-np.inf),
    "True where it is negative infinity.",
)


# -- reductions ------------------------------------------------------------------------
def left_over(op, old, axis, keepdims):
    """Return the shape after a reduction; () for all axes."""
    axes = axes_of(op, axis, len(old))
    return tuple(1 if i in axes else n for i, n in enumerate(old) if keepdims or i not in axes)


def reduction(name, compute, kind, doc, dtypes=True, **more):
    """Register a reduction under np's rules for shapes and dtypes.

    compute: (data, its Spec, axes, keepdims, more attributes) -> the legacy result.
    kind:    dtype of the data -> default dtype of the result.
    """

    public_name = name.rpartition("_")[2]  # its name in np

    def result_dtype(spec, dtype):
        return dtype or spec.dtype and kind(spec.dtype)

    def infer(specs, axis, keepdims, dtype=None, initial=None, **more):
        new = None
        if initial is not None:
            filling(public_name, initial, result_dtype(specs[0], dtype))
        if known(specs):
            new = left_over(public_name, specs[0].shape, axis, keepdims)
        return specs, [Spec(new, result_dtype(specs[0], dtype))]

    def expand(specs, data, axis, keepdims, dtype=None, **more):
        (old, had), gives = specs[0], result_dtype(specs[0], dtype)
        axes = axes_of(public_name, axis, len(old))
        out = compute(
            to(data, had, gives if dtypes else had), Spec(old, gives), axes, keepdims, **more
        )
        new = left_over(public_name, old, axis, keepdims)
        return out if new else reshape(out, shape=())

    register(
        name,
        inputs=("a",),
        infer=infer,
        expand=expand,
        doc=doc,
        attrs={
            "axis": (axes, None),
            **({"dtype": (dtype, None)} if dtypes else {}),
            "keepdims": (boolean, False),
            **more,
        },
    )


def _wide(kind):
    return LONG if kind.kind == "b" else kind


def _legacy(name):
    op = OPS[name]
    return lambda data, spec, axes, keepdims, **_: op(data, axis=axes or None, keepdims=keepdims)


INITIAL = {"initial": (optional(number), None)}


def _with_initial(name, join):
    start = _legacy(name)

    def compute(data, spec, axes, keepdims, initial):
        out = start(data, spec, axes, keepdims)
        return out if initial is None else OPS[join](out, scalar=initial)

    return compute


reduction(
    "_np_sum", _with_initial("sum", "_plus_scalar"), _wide, "The sum over the axes.", **INITIAL
)
reduction(
    "_np_prod", _with_initial("prod", "_mul_scalar"), _wide, "The product over the axes.", **INITIAL
)
reduction("_np_max", _legacy("max"), same, "The largest over the axes.", dtypes=False)
reduction("_np_min", _legacy("min"), same, "The smallest over the axes.", dtypes=False)
reduction("_npi_mean", _legacy("mean"), floating, "The mean over the axes.")


def _variance(data, spec, axes, keepdims, ddof):
    count = int(np.prod([spec.shape[a] for a in axes], dtype=np.int64))
    mean = OPS["mean"](data, axis=axes or None, keepdims=True)
    off = square(data.broadcast_sub(mean) if spec.shape else data - data)
    factor = 1 / (count - ddof) if count > ddof else np.nan
    return sum_(off, axis=axes or None, keepdims=keepdims) * factor


DDOF = {"ddof": (integer, 0)}
reduction("_npi_var", _variance, floating, "The mean square distance from the mean.", **DDOF)
reduction(
    "_npi_std",
    lambda *args, **more: sqrt(_variance(*args, **more)),
    floating,
    "The square root of the variance.",
    **DDOF,
)


def _logical(name):
    def compute(data, spec, axes, keepdims):
        bits = cast(cast(block_grad(data), dtype=BOOL), dtype=LONG)
        return cast(OPS[name](bits, axis=axes or None, keepdims=keepdims), dtype=BOOL)

    return compute


reduction("_np_any", _logical("sum"), to_bool, "Whether any is not 0.", dtypes=False)
reduction("_np_all", _logical("prod"), to_bool, "Whether all are not 0.", dtypes=False)


def _places(name):
    """Register argmax or argmin with int64 indices."""

    def expand(specs, data, axis, keepdims):
        out = OPS[f"_long_{name}"](data, axis=axis, keepdims=keepdims)
        new = left_over(name, specs[0].shape, axis, keepdims)
        return reshape(out, shape=as_codes(new))

    register(
        f"_npi_{name}",
        infer=forward(partial(left_over, name), dtype=LONG),
        expand=expand,
        attrs={"axis": (optional(integer), None), "keepdims": (boolean, False)},
        doc=f"{OPS[name].doc.removesuffix('float32.')}int64.",
    )


def _norm(data, spec, axes, keepdims, ord, flag):
    over = {"axis": axes or None, "keepdims": keepdims}
    # In files, -2 and 1 mark the 2-norm of the flattened array.
    if ord is None or flag in (-2, 1) or ord == 2 and len(axes) == 1:
        return sqrt(sum_(square(data), **over))
    if len(axes) != 1:
        raise AttrError(
            f"norm: ord={ord} of a matrix is not supported; there are None "
            "and 'fro', the root of the sum of squares"
        )
    if ord in (np.inf, -np.inf):
        return (max_ if ord > 0 else min_)(abs_(data), **over)
    if ord == 1:
        return sum_(abs_(data), **over)
    return sum_(abs_(data) ** ord, **over) ** (1 / ord)


def order_of_norm(value):
    """Parse a nonzero number, `inf`, or `fro` for the Frobenius norm."""
    order = None if value in ("fro", "None", None) else number(value)
    if order == 0:
        raise ValueError  # the count of nonzero elements isn't a norm
    return order


reduction(
    "_npi_norm",
    _norm,
    floating,
    "The length of a vector, or of a matrix.",
    ord=(order_of_norm, None),
    flag=(integer, 0),
)
_places("argmax")
_places("argmin")
