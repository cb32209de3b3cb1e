"""Unary functions: trigonometry, rounding, special functions, leaky activations.

As in `elementwise`, each has a scalar expression and a derivative.

Eager special functions come from SciPy or, without it, from
`minihybrid.codegen.numpy.special`; compiled kernels call
`minihybrid.codegen.cpu.transcendental`, `trig` or `scalar`, or the C library.
Not supported: complex numbers.
"""

import functools
import importlib
import math

import numpy as np

from minihybrid.core.hooks import WITHOUT_SCIPY
from minihybrid.core.op import AttrError, ShapeError, Spec, choice, integer, number
from minihybrid.ops.elementwise import (
    ITSELF,
    MIN_ALTERNATIVE,
    Ufunc,
    binary,
    by_name,
    cast,
    choose,
    clip,
    exp,
    expm1,
    in_pieces,
    literal,
    rsqrt,
    square,
    unary,
    where,
    zeros_like,
)
from minihybrid.ops.filled import make
from minihybrid.ops.integers import whole_function
from minihybrid.ops.neural import SOFTMAX, softmax, wide_of
from minihybrid.ops.registry import OPS, register
from minihybrid.ops.shapes import floating, same_shape

# -- trigonometry and its inverse ------------------------------------------------------
tan = by_name("tan", lambda g, y, a: g * (y * y + 1.0), "The tangent.")
arcsin = by_name(
    "arcsin", lambda g, y, a: g * rsqrt(1.0 - a * a), "The angle whose sine is a.", "asin"
)
arccos = by_name(
    "arccos", lambda g, y, a: -g * rsqrt(1.0 - a * a), "The angle whose cosine is a.", "acos"
)
arctan = by_name(
    "arctan", lambda g, y, a: g / (a * a + 1.0), "The angle whose tangent is a.", "atan"
)
sinh = by_name("sinh", lambda g, y, a: g * cosh(a), "The hyperbolic sine.")
cosh = by_name("cosh", lambda g, y, a: g * sinh(a), "The hyperbolic cosine.")
arcsinh = by_name(
    "arcsinh", lambda g, y, a: g * rsqrt(a * a + 1.0), "The inverse of sinh.", "asinh"
)
arccosh = by_name(
    "arccosh", lambda g, y, a: g * rsqrt(a * a - 1.0), "The inverse of cosh.", "acosh"
)
arctanh = by_name("arctanh", lambda g, y, a: g / (1.0 - a * a), "The inverse of tanh.", "atanh")
degrees = unary(
    "degrees",
    np.degrees,
    f"T({{a}}) * (T(180) / T({math.pi!r}))",
    lambda g, y, a: g * (180 / math.pi),
    "An angle in degrees.",
)
radians = unary(
    "radians",
    np.radians,
    f"T({{a}}) * (T({math.pi!r}) / T(180))",
    lambda g, y, a: g * (math.pi / 180),
    "An angle in radians.",
)

# -- roots and logarithms --------------------------------------------------------------
cbrt = by_name(
    "cbrt", lambda g, y, a: g / (y * y * 3.0), "The cube root; of a negative number, too."
)
rcbrt = unary(
    "rcbrt",
    lambda a: 1 / np.cbrt(a),
    "T(1) / cbrt({a})",
    lambda g, y, a: -g * y / (a * 3.0),
    "One over the cube root.",
)
log2 = by_name("log2", lambda g, y, a: g / (a * math.log(2)), "The logarithm to base 2.")
log10 = by_name("log10", lambda g, y, a: g / (a * math.log(10)), "The logarithm to base 10.")


# -- rounding: all derivatives are 0 ---------------------------------------------------
def rounding(name, function, expr, doc, aliases=()):
    """Register a rounding function."""
    return unary(
        name,
        function,
        expr,
        lambda g, y, a: None,
        doc,
        floats=False,
        aliases=aliases,
        int_expr=ITSELF,
    )


def _round_eager(data):
    low = np.asarray(np.floor(data))
    rest = data - low
    return _raised(low, (rest > 0.5) | (rest == 0.5) & (data >= 0))


def _rint_eager(data):
    low = np.asarray(np.floor(data))
    return _raised(low, data - low > 0.5)


def _raised(low, where):
    """Add one where a mask is set; elsewhere, -0 stays -0, because -0 - 0 is -0."""
    return np.subtract(low, -np.asarray(where).view(np.int8), out=low)


rounding(
    "round",
    _round_eager,
    "floor({a}) if {a} - floor({a}) < 0.5 or {a} < 0 and {a} - floor({a}) == 0.5 "
    "else floor({a}) + T(1)",
    "The nearest whole number; halves go away from 0.",
)
rounding(
    "rint",
    _rint_eager,
    "floor({a}) + T(1) if {a} - floor({a}) > 0.5 else floor({a})",
    "The nearest whole number; halves go down.",
)
trunc = rounding(
    "trunc",
    np.trunc,
    "floor({a}) if {a} > 0 else ceil({a})",
    "The whole part: towards 0.",
    aliases=("fix",),
)


# -- special functions -----------------------------------------------------------------
def special(name):
    """Return a function of `scipy.special`, imported at first use."""

    return lambda data: _scipys(name)(data)


@functools.cache
def _scipys(name):
    """Return SciPy's function or, without SciPy, our slower one."""
    try:
        return getattr(importlib.import_module("scipy.special"), name)
    except ModuleNotFoundError:
        return WITHOUT_SCIPY[name]


# erf(a) = 1 - e**(2 y) for y = a * (this polynomial - 1/2), a >= 0, as in kernels.
LAST = np.float32(4.4)  # its erf rounds to 1
SIGN = np.uint32(1 << 31)  # of a float32
ERF = (-1.991759e-05, 0.00018775949, -0.00061933935, -0.000110304514, 0.009665052, -0.05140829,
       -0.31830814, -0.064189605)  # fmt: skip


def _erf_eager(data):
    is_few = data.dtype != np.float32 or data.size < MIN_ALTERNATIVE
    return special("erf")(data) if is_few else _erf_of_many(data)


@in_pieces
def _erf_of_many(data):
    size = np.abs(np.clip(data, -LAST, LAST))  # `clip` is much faster with both bounds
    y = size * np.float32(ERF[0])
    for coefficient in ERF[1:]:
        np.multiply(np.add(y, np.float32(coefficient), out=y), size, out=y)
    half = np.tanh(np.subtract(y, size / 2, out=y), out=y)  # NumPy's expm1 can be slow
    out = 2 * half / (half - 1)
    out.view(np.uint32)[...] |= data.view(np.uint32) & SIGN
    return out


def _erfinv_eager(data):
    return np.where(data == 0, data, special("erfinv")(data))  # SciPy returns 0 for -0


erf = unary(
    "erf",
    _erf_eager,
    "erf({a})",
    lambda g, y, a: g * exp(-square(a)) * (2 / math.sqrt(math.pi)),
    "The error function: 2 / sqrt(pi) times the integral of exp(-t * t) to a.",
)
erfinv = unary(
    "erfinv",
    _erfinv_eager,
    "T(erfinv({a}))",
    lambda g, y, a: g * exp(square(y)) * (math.sqrt(math.pi) / 2),
    "The inverse of erf, for numbers between -1 and 1.",
)
gamma = unary(
    "gamma",
    special("gamma"),
    "T(gamma({a}))",
    lambda g, y, a: g * y * polygamma(a),
    "The gamma function: (a - 1)! for whole numbers.",
)


def _gammaln_eager(data):
    out = special("gammaln")(data)
    return np.where(data == -np.inf, out.dtype.type(np.inf), out)  # as in C


gammaln = unary(
    "gammaln",
    _gammaln_eager,
    "lgamma({a})",
    lambda g, y, a: g * polygamma(a),
    "The logarithm of |gamma(a)|.",
)


def _polygamma_infer(specs, order):
    if not 0 <= order <= 170:
        raise AttrError(
            f"polygamma: order={order}; 0 to 170 are possible, whose "
            "factorials are numbers of 64 bits"
        )
    return gamma.infer(specs)


def _polygamma_eager(data, *, order):
    if order == 0:
        return Ufunc(special("digamma"), floats=True)(data)
    zeta = _scipys("zeta")
    factor = (-1) ** (order + 1) * math.factorial(order)
    places = np.where(data == -np.inf, np.nan, data)  # SciPy would never return
    return (factor * zeta(order + 1, places)).astype(floating(data.dtype))


polygamma = register(
    "_polygamma",
    attrs={"order": (integer, 0)},
    infer=_polygamma_infer,
    eager=_polygamma_eager,
    expr=lambda order: f"T(polygamma({order}, float(T({{a}}))))",
    grad=lambda g, y, a, order: (g * polygamma(a, order=order + 1),),
    doc="The derivative of log gamma (digamma), differentiated `order` times more.",
)


# -- binary functions ------------------------------------------------------------------
WHOLE = "int64({}(float64({{a}}), float64({{b}})))"  # for integers
binary(
    "hypot",
    np.hypot,
    "hypot({a}, {b})",
    lambda g, y, a, b: g * choose(y, a / y, zeros_like(y)),
    lambda g, y, a, b: g * choose(y, b / y, zeros_like(y)),
    "sqrt(a * a + b * b), without overflow.",
    int_expr=(WHOLE.format("hypot"), whole_function(np.hypot)),
)
binary(
    "arctan2",
    np.arctan2,
    "atan2({a}, {b})",
    lambda g, y, a, b: g * b / (a * a + b * b),
    lambda g, y, a, b: -g * a / (a * a + b * b),
    "The angle of the point (b, a).",
    rscalar="_rarctan2_scalar",
    files=("_npi_arctan2", "_npi_arctan2_scalar", "_npi_rarctan2_scalar"),
    floats=True,
)
for _name, _test in (
    ("and", "{a} != 0 and {b} != 0"),
    ("or", "{a} != 0 or {b} != 0"),
    ("xor", "({a} != 0) != ({b} != 0)"),
):
    binary(
        f"logical_{_name}",
        getattr(np, f"logical_{_name}"),
        f"T(1) if {_test} else T(0)",
        None,
        None,
        f"1 where a {_name} b is not 0, else 0, in the dtype of a.",
    )


# -- activations -----------------------------------------------------------------------
def _hard_sigmoid_eager(data, *, alpha, beta):
    kind = floating(data.dtype)
    return np.clip(data.astype(kind) * kind.type(alpha) + kind.type(beta), 0, 1)


def _hard_sigmoid_expr(alpha, beta):
    line = f"T({{a}}) * {literal(alpha)} + {literal(beta)}"
    return f"T(0) if {line} < T(0) else T(1) if {line} > T(1) else {line}"


hard_sigmoid = register(
    "hard_sigmoid",
    eager=_hard_sigmoid_eager,
    attrs={"alpha": (number, 0.2), "beta": (number, 0.5)},
    infer=lambda specs, **_: exp.infer(specs),
    expr=_hard_sigmoid_expr,
    grad=lambda g, y, a, alpha, beta: (g * (y > 0) * (y < 1) * alpha,),
    doc="alpha a + beta, but not below 0 and not above 1.",
)


def _smooth_l1_eager(data, *, scalar):
    kind = data.dtype.type if data.dtype.kind == "f" else np.float64
    (half, end, less), x = map(kind, _parabola(scalar)), data.astype(kind)
    size = np.abs(x)
    return np.where(size < end, half * x * x, size - less).astype(data.dtype)


def _parabola(scalar):
    """Return the end of smooth_l1's parabola, and the offset of its linear part."""
    with np.errstate(all="ignore"):  # for scalar 0, all elements are on the parabola
        sigma = np.float64(scalar * scalar)
        return float(0.5 * sigma), float(1 / sigma), float(0.5 / sigma)


def _smooth_l1_expr(scalar):
    half, end, less = _parabola(scalar)
    return (
        f"T(F({half!r}) * F({{a}}) * F({{a}})) if abs(F({{a}})) < F({end!r}) "
        f"else T(abs(F({{a}})) - F({less!r}))"
    )


smooth_l1 = register(
    "smooth_l1",
    attrs={"scalar": (number, 1.0)},
    infer=lambda specs, scalar: same_shape("smooth_l1", specs),
    eager=_smooth_l1_eager,
    expr=_smooth_l1_expr,
    grad=lambda g, y, a, scalar: (g * clip(a * (scalar * scalar), a_min=-1, a_max=1),),
    doc="A parabola (s a)^2 / 2 where |a| < 1 / s^2, else |a| - 1 / (2 s^2).",
)

SELU = 1.6732632423543772, 1.0507009873554805  # alpha and lambda of Klambauer et al.


def _leaky_inputs(attrs):
    learnt = attrs is None or attrs["act_type"] == "prelu"
    return ("data", "gamma") if learnt else ("data",)


def _leaky_infer(specs, act_type, **_):
    (shape, kind), *learnt = specs
    out = Spec(shape, floating(kind))
    if learnt:
        gamma_shape, dtype = learnt[0]
        if shape is None:
            return [specs[0], Spec(gamma_shape, dtype or kind)], [out]
        if not shape:
            raise ShapeError("LeakyReLU: data has shape (), but prelu needs an axis of channels")
        channels = shape[1 if len(shape) > 1 else 0]
        if gamma_shape is not None and channels != -1 and gamma_shape not in ((1,), (channels,)):
            raise ShapeError(
                f"LeakyReLU: gamma has shape {gamma_shape}, but prelu on data "
                f"{shape} needs ({channels},) or (1,)"
            )
        resolved = (channels,) if gamma_shape is None or gamma_shape == (-1,) else gamma_shape
        return [specs[0], Spec(resolved, dtype or kind)], [out]
    return specs, [out]


def _leaky_expand(specs, data, gamma=None, *, act_type, slope, lower_bound, upper_bound, training):
    (shape, kind), *_ = specs
    data = data if kind == floating(kind) else cast(data, dtype=floating(kind))
    if act_type == "gelu":
        return data * (erf(data * math.sqrt(0.5)) + 1.0) * 0.5
    if act_type in ("elu", "selu"):  # exp of negative values only, to avoid overflow
        factor, scale = SELU if act_type == "selu" else (slope, 1.0)
        below = expm1(OPS["_minimum_scalar"](data, scalar=0)) * (factor * scale)
        return where(data > 0, data if scale == 1 else data * scale, below)
    if act_type == "prelu":
        gamma = cast(gamma, dtype=floating(kind)) if specs[1].dtype != floating(kind) else gamma
        axis = 1 if len(shape) > 1 else 0
        slope = gamma.reshape((-1,) + (1,) * (len(shape) - axis - 1))
        # Infinite values above 0 don't contribute to gamma's gradient.
        return where(data > 0, data, OPS["_minimum_scalar"](data, scalar=0) * slope)
    elif act_type == "rrelu" and training:
        span = {"low": lower_bound, "high": upper_bound}
        slope = make(data, OPS["_random_uniform"], **span, shape=shape, dtype=floating(kind))
    elif act_type == "rrelu":
        slope = (lower_bound + upper_bound) / 2
    return where(data > 0, data, data * slope)


leaky_relu = register(
    "LeakyReLU",
    inputs=_leaky_inputs,
    infer=_leaky_infer,
    expand=_leaky_expand,
    modal=True,
    attrs={
        "act_type": (choice("leaky", "prelu", "elu", "selu", "gelu", "rrelu"), "leaky"),
        "slope": (number, 0.25),
        "lower_bound": (number, 0.125),
        "upper_bound": (number, 0.334),
    },
    doc="a where it is positive, else `slope` a (leaky), gamma a with one gamma a "
    "channel (prelu), slope (e^a - 1) (elu), the same with fixed factors (selu), or a times a "
    "random slope in training and the mean slope otherwise (rrelu); or a Phi(a) with the normal "
    "distribution's Phi (gelu). MXNet 1.9's gradient of selu is wrong below 0; this one is not.",
)


def _softmin(specs, data, dtype, **attrs):
    wide = wide_of(specs[0].dtype, dtype)
    data = data if wide == specs[0].dtype else cast(data, dtype=wide)
    return softmax(-data, dtype=dtype, **attrs)


softmin = register(
    "softmin",
    attrs=SOFTMAX,
    infer=softmax.infer,
    expand=_softmin,
    doc="softmax of -a along an axis.",
)


softmax_activation = register(
    "SoftmaxActivation",
    attrs={"mode": (choice("instance", "channel"), "instance")},
    infer=lambda specs, mode: exp.infer(specs),
    expand=lambda specs, data, mode: softmax(data, axis=1 if mode == "channel" else -1),
    doc="softmax along the last axis (instance) or along axis 1 (channel).",
)
