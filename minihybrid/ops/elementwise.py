"""Chapter 12. Elementwise operators: arithmetic, comparisons and unary functions.

Each definition contains one scalar expression, from which every compiled target generates
loops. A binary operation has up to five names in files (`elemwise_add`, `broadcast_add`,
`_plus_scalar`, ...), all registered by one statement here.
Not supported: complex numbers.
"""

import math
import re
from functools import lru_cache, partial, wraps

import numpy as np

from minihybrid.core.lengths import is_symbolic
from minihybrid.core.op import REQUIRED, AttrError, Spec, dtype, number
from minihybrid.ops.integers import (
    EXACT,
    as_floats,
    clamp,
    fits,
    scalar_like,
    scalar_number,
    whole_div,
    whole_power,
)
from minihybrid.ops.registry import OPS, register
from minihybrid.ops.shapes import (
    as_codes,
    broadcast,
    common_dtype,
    floating,
    known,
    merge,
    same_shape,
)

MIN_ALTERNATIVE = 4096  # elements from which an alternative NumPy implementation may pay off
PIECE = 2**16  # elements per chunk, so that intermediate results stay in cache


def in_pieces(function):
    """Decorate an elementwise function to process large arrays in chunks.

    NumPy's intermediate results then stay in cache. Large ones would be fresh memory each
    time, which the system provides page by page and zeroes.
    """

    @wraps(function)
    def in_turn(data):
        if data.size <= PIECE:
            return function(data)
        flat, out = data.ravel(), np.empty(data.shape, data.dtype)
        results = out.reshape(-1)
        for start in range(0, flat.size, PIECE):
            results[start : start + PIECE] = function(flat[start : start + PIECE])
        return out

    return in_turn


class Ufunc:
    """A NumPy function whose result keeps the first input's dtype, or becomes a float.

    floats:  whether integers are converted to float32 first.
    whole:   the function of integers, if it differs.

    >>> Ufunc(np.greater)(np.float32([1, 3]), np.float32([2, 2]))
    array([0., 1.], dtype=float32)
    """

    def __init__(self, ufunc, floats=False, whole=None):
        self.ufunc, self.floats, self.whole = ufunc, floats, whole or ufunc

    def __call__(self, *arrays):
        """Return the result on NumPy arrays."""
        first, function = arrays[0], self.ufunc
        if first.dtype.kind != "f":
            arrays = list(map(as_floats, arrays)) if self.floats else arrays
            function = self.whole
        out, dtype = function(*arrays), arrays[0].dtype
        return out if out.dtype == dtype else out.astype(dtype)


def of_floats(expr):
    """Return an expression with its operands converted to floats.

    >>> of_floats("{a} / T(3)")
    'T({a}) / T(3)'
    """
    return re.sub(r"\{[ab]\}", r"T(\g<0>)", expr)


def settled(function, first, *others, scalar=None, reverse=False):
    """Return NumPy's bare function if `Ufunc` would add nothing; else `None`.

    first, others: specs of the inputs;  scalar: the second operand, or the first if `reverse`.
    """
    if first.dtype.kind != "f":
        return None
    run = function
    if scalar is not None:
        if isinstance(function, np.ufunc):
            scalar = np.asarray(scalar, first.dtype)  # once, not in every call
        if first.size >= MIN_ALTERNATIVE and function in (np.maximum, np.minimum):
            function = _of_arrays(function)
        run = partial(function, scalar) if reverse else lambda data: function(data, scalar)
    sample = run(*[np.ones(1, s.dtype) for s in (first, *others)])
    return run if sample.dtype == first.dtype else None


def _of_arrays(function):
    """Compute max or min of an array and a scalar via a second array, because NumPy
    vectorizes only the case of two arrays."""

    def run(data, scalar):
        beside = _full(float(scalar), data.dtype)
        return in_pieces(lambda a: function(a, beside[: a.size].reshape(a.shape)))(data)

    return run


@lru_cache(8)
def _full(number, dtype):
    return np.full(PIECE, number, dtype)


def literal(value):
    """Return a number in generated source: only digits, or the name of a symbolic length."""
    if is_symbolic(value):
        return f"T({value!r})"
    if value != value:
        return "T(NAN)"
    if value in (np.inf, -np.inf):
        return "T(INF)" if value > 0 else "T(-INF)"
    is_whole = isinstance(value, int) or abs(value) < EXACT and value == int(value)
    return f"T({int(value)})" if is_whole and str(value) != "-0.0" else f"T({float(value)!r})"


# -- two inputs ------------------------------------------------------------------------
def binary(
    name,
    ufunc,
    expr,
    da,
    db,
    doc,
    elemwise=None,
    scalar=None,
    rscalar=None,
    aliases=(),
    neutral=None,
    monotone=False,
    int_expr=None,
    files=(),
    floats=False,
    **rule,
):
    """Register an operation under its elementwise, broadcasting and scalar names, by default
    `_name`, `broadcast_name` and `_name_scalar`.

    `da` and `db` give the gradient of the first and the second input from
    `(g, out, a, b)`; either may be `None`, and `b` may be a Python number.

    neutral: the right-hand scalar that makes it an identity, negative zero included.
    int_expr: (expression, or function from dtype to it; NumPy's function) for integers,
             if they differ.
    files:   MXNet's names for two arrays, for a scalar, and for a scalar first, if they
             differ.
    floats:  whether integers are converted to float32 first.
    rule:    the constraint on dtypes and scalars that `fits` checks.
    """
    elemwise, scalar = elemwise or f"_{name}", scalar or f"_{name}_scalar"
    expr = of_floats(expr) if floats else expr
    whole_expr, function = int_expr or (expr, ufunc)
    eager = Ufunc(ufunc, floats, function)

    def typed(out, v):
        return in_dtype_of(out, v) if floats and hasattr(v, "level") else v

    both = [
        lambda g, out, a, b, d=d: d and d(g, out, typed(out, a), typed(out, b)) for d in (da, db)
    ]

    def elemwise_grad(g, out, a, b):
        return both[0](g, out, a, b), both[1](g, out, a, b)

    def broadcast_grad(g, out, a, b):
        grads = elemwise_grad(g, out, a, b)
        return tuple(
            None if d is None else unbroadcast(d, v) for d, v in zip(grads, (a, b), strict=True)
        )

    def scalar_eager(data, *, scalar):
        data = as_floats(data) if floats else data
        return eager(data, scalar_like(data, scalar))

    def rscalar_eager(data, *, scalar):
        data = as_floats(data) if floats else data
        compute = ufunc if data.dtype.kind == "f" else function
        return compute(scalar_like(data, scalar), data).astype(data.dtype, copy=False)

    def result(outs):
        return [Spec(o.shape, floating(o.dtype)) for o in outs] if floats else outs

    def infer_same(specs):
        specs, outs = same_shape(elemwise, specs)
        fits(elemwise, outs[0].dtype, **pair_rule)
        return specs, result(outs)

    def infer_broadcast(specs):
        specs, outs = broadcast(f"broadcast_{name}", specs)
        fits(f"broadcast_{name}", outs[0].dtype, **pair_rule)
        return specs, result(outs)

    def infer_scalar(op, **rule):
        def infer(specs, scalar):
            if not floats:
                fits(op, specs[0].dtype, scalar, **rule)
            specs, outs = same_shape(op, specs)
            return specs, result(outs)

        return infer

    pair_rule = rule | {"divisor": False}
    mxnet_name, by_scalar, from_scalar = [(n, {}) for n in files] or [None] * 3
    call = f"np.{ufunc.__name__}({{a}}, {{b}}, out={{out}}, casting='unsafe')" * isinstance(
        ufunc, np.ufunc
    )
    family = {
        "doc": doc,
        "expr": expr,
        "numpy": call,
        "monotone": monotone,
        "int_expr": int_expr and whole_expr,
        "mxnet_name": mxnet_name,
        "settled": partial(settled, ufunc),
    }
    register(
        elemwise,
        *aliases,
        **family,
        inputs=("lhs", "rhs"),
        eager=eager,
        infer=infer_same,
        grad=elemwise_grad,
    )
    register(
        f"broadcast_{name}",
        **family,
        inputs=("lhs", "rhs"),
        eager=eager,
        infer=infer_broadcast,
        grad=broadcast_grad,
    )
    one = {"attrs": {"scalar": (scalar_number, REQUIRED)}, "doc": f"{doc} One side is a scalar."}

    def with_number(text, first="{a}", second="{b}"):
        def expr(*dtype, scalar):
            template = text(*dtype) if callable(text) else text
            template = template.replace(second, "{number}").replace(first, "{a}")
            return template.replace("{number}", literal(scalar))

        return expr

    register(
        scalar,
        **one,
        mxnet_name=by_scalar,
        eager=scalar_eager,
        settled=partial(settled, ufunc),
        binary_form=None if floats else (f"broadcast_{name}", False),
        infer=infer_scalar(scalar, **rule),
        numpy=call.replace("{b}", "{scalar}"),
        expr=with_number(expr),
        int_expr=int_expr and with_number(whole_expr),
        is_identity=lambda scalar: scalar == neutral and math.copysign(1, scalar) > 0,
        grad=lambda g, out, a, scalar: (both[0](g, out, a, scalar),),
    )
    if rscalar:
        swap = "{b}", "{a}"
        register(
            rscalar,
            **one,
            mxnet_name=from_scalar,
            eager=rscalar_eager,
            settled=partial(settled, ufunc, reverse=True),
            binary_form=None if floats else (f"broadcast_{name}", True),
            infer=infer_scalar(rscalar, **pair_rule),
            numpy=call.replace("{a}, {b}", "{scalar}, {a}"),
            expr=with_number(expr, *swap),
            int_expr=int_expr and with_number(whole_expr, *swap),
            grad=lambda g, out, a, scalar: (both[1](g, out, scalar, a),),
        )


binary(
    "add",
    np.add,
    "{a} + {b}",
    lambda g, y, a, b: g,
    lambda g, y, a, b: g,
    "y = a + b.",
    "elemwise_add",
    "_plus_scalar",
    aliases=("_plus", "_add"),
    monotone=True,
    wraps=True,
)
binary(
    "sub",
    np.subtract,
    "{a} - {b}",
    lambda g, y, a, b: g,
    lambda g, y, a, b: -g,
    "y = a - b.",
    "elemwise_sub",
    "_minus_scalar",
    "_rminus_scalar",
    ("_minus", "_sub"),
    neutral=0,
    wraps=True,
    bools=False,
)
binary(
    "mul",
    np.multiply,
    "{a} * {b}",
    lambda g, y, a, b: g * b,
    lambda g, y, a, b: g * a,
    "y = a * b, element by element.",
    "elemwise_mul",
    "_mul_scalar",
    aliases=("_mul",),
    neutral=1,
    wraps=True,
)


def _whole_div_expr(dtype):
    """For at most 32 bits, the float64 quotient never rounds up to an integer, and float
    division vectorizes."""
    return (
        "whole_div({a}, {b})"
        if dtype.itemsize > 4
        else "int64(F({a}) / F({b}) if {b} != 0 else F(0))"
    )


binary(
    "div",
    np.divide,
    "{a} / {b}",
    lambda g, y, a, b: g / b,
    lambda g, y, a, b: -g * y / b,
    "y = a / b; of whole numbers cut towards zero, and 0 where b is 0.",
    "elemwise_div",
    "_div_scalar",
    "_rdiv_scalar",
    ("_div",),
    neutral=1,
    int_expr=(_whole_div_expr, whole_div),
    divisor=True,
)
binary(
    "mod",
    np.mod,
    "mod({a}, {b})",
    lambda g, y, a, b: g,
    lambda g, y, a, b: -g * ((a - y) / b),
    "The remainder of a / b, with b's sign.",
    rscalar="_rmod_scalar",
    int_expr=("whole_mod({a}, {b})", np.mod),
    divisor=True,
)


def _power_by_base(g, y, a, b):
    """Return b a^(b - 1); 0 where b is 0, even if a is."""
    if not hasattr(b, "level"):
        return g * b * a ** (b - 1) if b else None
    return g * choose(b, b * a ** (b - 1), zeros_like(b))


def _power_by_exponent(g, y, a, b):
    """Return y log(a); 0 where y is 0, even if the logarithm is infinite."""
    if not hasattr(a, "level") and dtype_of(y).kind != "f":
        a = zeros_like(y) + a
    if hasattr(a, "level"):
        rate = log(a)
        g, y = in_dtype_of(rate, g), in_dtype_of(rate, y)
        return g * choose(y, y * rate, zeros_like(y))
    rate = math.log(a) if a > 0 else -math.inf if a == 0 else math.nan
    return g * choose(y, y * rate, zeros_like(y))


def _power_eager(a, b):
    """Return NumPy's power, corrected for exponent 0.5, where it takes square roots."""
    out = np.power(a, b)
    if isinstance(b, float) and b != 0.5:
        return out
    if out.dtype.kind == "f" and np.any(np.equal(b, 0.5)):
        root = np.where(np.equal(a, -np.inf), np.inf, out + 0)  # the root of -0 must be 0
        out = np.where(np.equal(b, 0.5), root, out).astype(out.dtype)
    return out


binary(
    "power",
    _power_eager,
    "power({a}, {b})",
    _power_by_base,
    _power_by_exponent,
    "y = a to the power b.",
    rscalar="_rpower_scalar",
    aliases=("_Power",),
    neutral=1,
    int_expr=("whole_power(U({a}), {b})", whole_power),
)
binary(
    "maximum",
    np.maximum,
    "{a} if {a} >= {b} or {a} != {a} else {b}",
    lambda g, y, a, b: g * (a >= b),
    lambda g, y, a, b: g * (b > a),
    "The larger of a and b; NaN if either is.",
)
binary(
    "minimum",
    np.minimum,
    "{a} if {a} <= {b} or {a} != {a} else {b}",
    lambda g, y, a, b: g * (a <= b),
    lambda g, y, a, b: g * (b < a),
    "The smaller of a and b; NaN if either is.",
)

for _name, _ufunc, _sign in (
    ("equal", np.equal, "=="),
    ("not_equal", np.not_equal, "!="),
    ("greater", np.greater, ">"),
    ("greater_equal", np.greater_equal, ">="),
    ("lesser", np.less, "<"),
    ("lesser_equal", np.less_equal, "<="),
):
    binary(
        _name,
        _ufunc,
        f"T(1) if {{a}} {_sign} {{b}} else T(0)",
        None,
        None,
        f"1 where a {_sign} b, else 0, in the dtype of a.",
    )


# -- one input -------------------------------------------------------------------------
def unary(
    name,
    ufunc,
    expr,
    grad,
    doc,
    floats=True,
    aliases=(),
    numpy=None,
    int_expr=None,
    bools=True,
    monotone=False,
    mxnet_name=None,
    alone=None,
):
    """Register a unary function; `floats` converts integers to float32.

    ufunc:   the function on NumPy arrays, which are floats if `floats`; its results are
             converted to their dtype.
    int_expr: (expression, NumPy's function) for integers, if they differ.
    bools:   whether it accepts booleans.
    alone:   the result of `settled`, if `ufunc` isn't a NumPy function.
    """

    def infer(specs):
        specs, (out,) = same_shape(name, specs)
        fits(name, out.dtype, bools=bools)
        return specs, [Spec(out.shape, floating(out.dtype) if floats else out.dtype)]

    whole_expr, function = int_expr or (None, None)
    is_ufunc = isinstance(ufunc, np.ufunc)
    return register(
        name,
        *aliases,
        infer=infer,
        expr=of_floats(expr) if floats else expr,
        int_expr=whole_expr,
        mxnet_name=mxnet_name,
        eager=Ufunc(ufunc, floats, function),
        settled=alone or partial(settled, ufunc),
        monotone=monotone,
        numpy=f"np.{ufunc.__name__}({{a}}, out={{out}}, casting='unsafe')" if is_ufunc else numpy,
        grad=lambda g, out, a: (grad(g, out, in_dtype_of(out, a) if floats else a),),
        doc=doc,
    )


def in_dtype_of(out, a):
    """Convert an array to another's dtype, for gradients of mixed formulas."""
    kind = dtype_of(out)
    return a if kind == dtype_of(a) else a.astype(kind)


def dtype_of(a):
    """Return the dtype of an array or of a symbol with known spec."""
    return a.spec.dtype if a.level else a.data.dtype


def squeezed_shape(a):
    """Return the lengths other than 1 of an array or of a symbol with known spec."""
    return [n for n in (a.spec.shape if a.level else a.data.shape) if n != 1]


def by_name(name, grad, doc, inside=None, **more):
    """Register a unary function that has this name in NumPy and, by default, in kernels."""
    return unary(name, getattr(np, name), f"{inside or name}({{a}})", grad, doc, **more)


ITSELF = "{a}", np.copy  # rounding is the identity on integers


def _sigmoid_eager(data):
    limit = 11 if data.itemsize == 2 else 40
    # Beyond the limit it is 1; far below 0, its tail matters, as in a logarithm.
    usual = data.size > MIN_ALTERNATIVE and data.max() < limit  # faster than an extra array
    power = np.asarray(np.exp(data if usual else np.minimum(data, limit)))
    return np.divide(power, power + 1, out=power)


def _softrelu_eager(data):
    tail = np.log1p(np.exp(-np.abs(data)))  # logaddexp is twice as slow
    return np.maximum(data, 0) + tail


exp = by_name("exp", lambda g, y, a: g * y, "y = e to the power a.")
log = by_name("log", lambda g, y, a: g / a, "The natural logarithm.")
expm1 = by_name(
    "expm1", lambda g, y, a: g * (y + 1), "e to the power a, minus 1, exact for small a."
)
log1p = by_name("log1p", lambda g, y, a: g / (a + 1), "The logarithm of 1 + a, exact for small a.")
sqrt = by_name("sqrt", lambda g, y, a: g * 0.5 / y, "The square root.")
rsqrt = unary(
    "rsqrt",
    lambda a: 1 / np.sqrt(a),
    "T(1) / sqrt({a})",
    lambda g, y, a: g * -0.5 * y / a,
    "One over the square root.",
)
square = unary(
    "square", np.square, "{a} * {a}", lambda g, y, a: g * a * 2.0, "y = a * a.", floats=False
)
reciprocal = unary(
    "reciprocal",
    lambda a: 1 / a,
    "T(1) / {a}",
    lambda g, y, a: -g * y * y,
    "y = 1 / a.",
    numpy="np.divide(1, {a}, out={out}, casting='unsafe')",
)
sin = by_name("sin", lambda g, y, a: g * cos(a), "The sine.")
cos = by_name("cos", lambda g, y, a: -g * sin(a), "The cosine.")
tanh = unary(
    "tanh", np.tanh, "tanh({a})", lambda g, y, a: g * (1.0 - y * y), "The hyperbolic tangent."
)
sigmoid = unary(
    "sigmoid",
    _sigmoid_eager,
    "sigmoid({a})",
    lambda g, y, a: g * y * (1.0 - y),
    "y = 1 / (1 + exp(-a)).",
)
relu = unary(
    "relu",
    lambda a: np.maximum(a, 0),
    "T(0) if {a} <= 0 else {a}",
    lambda g, y, a: g * (y > 0),
    "y = max(a, 0); NaN stays NaN.",
    floats=False,
    numpy="np.maximum({a}, 0, out={out}, casting='unsafe')",
    monotone=True,
    alone=partial(settled, np.maximum, scalar=0),
)
softrelu = unary(
    "softrelu",
    _softrelu_eager,
    "({a} if {a} > 0 else T(0)) + log1p(exp(-abs({a})))",
    lambda g, y, a: g * sigmoid(a),
    "y = log(1 + exp(a)), without overflow.",
    mxnet_name=("Activation", {"act_type": "softrelu"}),
)
softsign = unary(
    "softsign",
    lambda a: a / (1 + np.abs(a)),
    "{a} / (T(1) + abs({a}))",
    lambda g, y, a: g / square(abs_(a) + 1.0),
    "y = a / (1 + |a|).",
)
abs_ = by_name("abs", lambda g, y, a: g * sign(a), "The absolute value.", floats=False)
sign = unary(
    "sign",
    np.sign,
    "T(1) if {a} > 0 else (T(-1) if {a} < 0 else {a} + T(0))",
    lambda g, y, a: None,
    "-1, 0 or 1; NaN stays NaN.",
    floats=False,
    bools=False,
)
negative = unary(
    "negative",
    np.negative,
    "-{a}",
    lambda g, y, a: -g,
    "y = -a.",
    floats=False,
    aliases=("_np_negative",),
    bools=False,
)
floor = by_name(
    "floor", lambda g, y, a: None, "The next whole number below.", floats=False, int_expr=ITSELF
)
ceil = by_name(
    "ceil", lambda g, y, a: None, "The next whole number above.", floats=False, int_expr=ITSELF
)
logical_not = unary(
    "logical_not",
    np.logical_not,
    "T(1) if {a} == 0 else T(0)",
    lambda g, y, a: None,
    "1 where a is 0, else 0.",
    floats=False,
)


# -- with attributes, or more inputs ---------------------------------------------------
def _clip_infer(specs, a_min, a_max):
    if not a_min <= a_max:
        raise AttrError(
            f"clip: a_min={a_min} and a_max={a_max} are given, but two "
            "numbers in this order are needed"
        )
    return same_shape("clip", specs)


def _clip_eager(data, *, a_min, a_max):
    if data.dtype.kind != "f":
        a_min, a_max = clamp(a_min, data.dtype), clamp(a_max, data.dtype)
    return np.clip(data, a_min, a_max).astype(data.dtype, copy=False)


def _clip_grad(g, out, a, a_min, a_max):
    kind = dtype_of(a)
    if kind.kind != "f":
        a_min, a_max = clamp(a_min, kind), clamp(a_max, kind)
    return (g * (a >= a_min) * (a <= a_max),)


def _clip_expr(a_min, a_max):
    low, high = literal(a_min), literal(a_max)
    return f"{low} if {{a}} < {low} else ({high} if {{a}} > {high} else {{a}})"


clip = register(
    "clip",
    attrs={"a_min": (number, REQUIRED), "a_max": (number, REQUIRED)},
    infer=_clip_infer,
    eager=_clip_eager,
    expr=_clip_expr,
    int_expr=lambda dtype, a_min, a_max: _clip_expr(clamp(a_min, dtype), clamp(a_max, dtype)),
    grad=_clip_grad,
    doc="a, but not below a_min and not above a_max.",
)


def _where_infer(specs):
    cond, x, y = specs
    kind = common_dtype("where", [x, y])
    shapes, (out,) = broadcast("where", [Spec(s.shape, kind) for s in specs])
    return [Spec(shapes[0].shape, cond.dtype), *shapes[1:]], [out]


def where_set(chosen, x):
    """Return x where `chosen`, a boolean array of its shape, is true; else zeros.

    NumPy's `where` branches on each condition; a bit mask has no mispredictions, and is up
    to ten times as fast with random conditions.
    """
    bits = f"i{x.itemsize}"
    mask = np.negative(chosen.view("i1"), dtype=bits)  # all bits of an element, or none
    return (x.view(bits) & mask).view(x.dtype)


def where_eager(condition, x, y):
    """Return x where the condition is nonzero, else y."""
    chosen = condition != 0
    if chosen.size < 4096 or x.dtype != y.dtype:
        return np.where(chosen, x, y)
    bits = f"i{x.itemsize}"
    apart = (x.view(bits) ^ y.view(bits)).view(x.dtype)
    return (where_set(chosen, apart).view(bits) ^ y.view(bits)).view(x.dtype)


choose = register(
    "_where",
    inputs=("condition", "x", "y"),
    infer=_where_infer,
    eager=where_eager,
    expr="{b} if {a} != 0 else {c}",
    grad=lambda g, out, c, x, y: (
        None,
        unbroadcast(choose(c, g, zeros_like(g)), x),
        unbroadcast(choose(c, zeros_like(g), g), y),
    ),
    doc="x where the condition is not 0, else y; the three broadcast.",
)


def _rows(specs):
    """Return the specs, with a vector of row conditions reshaped to a column."""
    cond, x = specs[0], specs[1].shape
    if not known(specs) or len(cond.shape) != 1 or len(x) < 2 or cond.shape != x[:1]:
        return specs
    return [Spec((*cond.shape, *(1 for _ in x[1:])), cond.dtype), *specs[1:]]


def _where_rows_infer(specs):
    row_specs, outs = _where_infer(_rows(specs))
    return [Spec(specs[0].shape, row_specs[0].dtype), *row_specs[1:]], outs


def _where_expand(specs, condition, x, y):
    upright = _rows(specs)[0].shape
    if upright != specs[0].shape:
        condition = condition.reshape(as_codes(upright))
    return choose(condition, x, y)


where = register(
    "where",
    inputs=("condition", "x", "y"),
    infer=_where_rows_infer,
    expand=_where_expand,
    doc="x where the condition is not 0, else y; a vector of conditions chooses rows.",
)


def element_type(value):
    """A NumPy element type of numbers, or its name."""
    if (kind := dtype(value)) is None:
        raise ValueError
    return kind


cast = register(
    "Cast",
    "cast",
    attrs={"dtype": (element_type, REQUIRED)},
    infer=lambda specs, dtype: (specs, [Spec(specs[0].shape, dtype)]),
    eager=lambda data, dtype: data.astype(dtype),
    expr=lambda dtype: "T({a})",
    is_identity=lambda dtype: True,  # given equal specs
    any_dtype=True,
    grad=lambda g, out, a, dtype: (cast_like(g, a),),
    doc="The same numbers in a dtype.",
)

cast_like = register(
    "_cast_like",
    inputs=("data", "like"),
    infer=lambda specs: (specs, [Spec(specs[0].shape, specs[1].dtype)]),
    expand=lambda specs, data, like: cast(data, dtype=specs[1].dtype),
    any_dtype=True,
    doc="The same numbers in the dtype of `like`.",
)

identity = register(
    "_copy",
    "identity",
    view=True,
    infer=lambda specs: same_shape("_copy", specs),
    eager=np.copy,
    grad=lambda g, out, a: (g,),
    doc="The same values in memory of their own.",
)

LOW_PRECISION = (np.dtype("float16"), np.dtype("float32"))  # dtypes that amp_cast converts


def _amp_infer(specs, dtype):
    kind = specs[0].dtype
    return specs, [Spec(specs[0].shape, dtype if kind in LOW_PRECISION else kind)]


register(
    "amp_cast",
    attrs={"dtype": (dtype, REQUIRED)},
    infer=_amp_infer,
    expand=lambda specs, data, dtype: (
        cast(data, dtype=dtype) if specs[0].dtype in LOW_PRECISION else identity(data)
    ),
    doc="The same numbers in a dtype if they are float16 or float32; others stay.",
)

block_grad = register(
    "BlockGrad",
    "stop_gradient",
    view=True,
    grad_barrier=True,
    infer=lambda specs: same_shape("BlockGrad", specs),
    eager=np.copy,
    grad=lambda g, out, a: (None,),
    doc="The same values; no gradient passes.",
)

detached = register(
    "_detach",
    mxnet_name=("BlockGrad", {}),
    view=True,
    grad_barrier=True,
    infer=lambda specs: same_shape("detach", specs),
    eager=np.copy,
    doc="The same values, off the tape: backward doesn't reach the input at all.",
)


def _like(name, value):
    return register(
        name,
        infer=lambda specs: same_shape(name, specs),
        eager=np.zeros_like if value == 0 else np.ones_like,
        expr=f"T({value})",
        grad=lambda g, out, a: (None,),
        from_nothing=lambda spec: (
            OPS["_ones" if value else "_zeros"],
            {"shape": spec.shape, "dtype": spec.dtype},
        ),
        doc=f"An array of {value} in the shape and dtype of the input.",
    )


zeros_like, ones_like = _like("zeros_like", 0), _like("ones_like", 1)


def nothing_like(ref):
    """Return (operator, inputs, attributes) for zeros like a value."""
    return zeros_like, [ref], {}


# -- the gradient of broadcasting ------------------------------------------------------
def _unbroadcast_infer(specs):
    (shape, kind), (target, _) = specs
    if known(specs):
        fits = np.broadcast_shapes(shape, target) == shape
        merge("_unbroadcast", "data", shape, shape if fits else target)
    return specs, [Spec(target, kind)]


def _unbroadcast_expand(specs, data, like):
    (shape, _), (target, _) = specs
    extra = len(shape) - len(target)
    stretched = tuple(i for i in range(len(shape)) if i < extra or target[i - extra] != shape[i])
    if not stretched:
        return data
    return data.sum(axis=stretched).reshape_like(like)


unbroadcast = register(
    "_unbroadcast",
    inputs=("data", "like"),
    infer=_unbroadcast_infer,
    expand=_unbroadcast_expand,
    doc="Sum over the axes along which `like` was stretched to the shape of the data.",
)
