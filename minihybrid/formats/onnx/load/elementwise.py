"""ONNX import rules for elementwise operators and reductions.

Defines: `ELEMENTWISE`: ONNX name -> function of a `Call` that returns the outputs.

Not supported: bit shifts, strings.
"""

import math

import numpy as np

from minihybrid.formats.onnx.load.file import ELEMENTS
from minihybrid.ops import OPS


def renamed(name, fixed=None, **attrs):
    """Return the rule of an operator that only has other names here.

    fixed:   attributes with one value;  attrs: our attribute -> the file's.
    """

    def rule(call):
        inputs = [call.sym(i) for i in range(len(call.inputs))]
        settings = {ours: call.attr(theirs) for ours, theirs in attrs.items()}
        return OPS[name](*inputs, **(fixed or {}), **settings)

    return rule


# -- two inputs ------------------------------------------------------------------------
def single(call, i):
    """Return an input that is a scalar constant; else `None`.

    Weights with axes stay arrays, so they can be trained.
    """
    value, other = call.need(i), call.need(1 - i)
    array = value.fixed
    if (
        array is None
        or array.size != 1
        or other.arrays is not None
        or (array.ndim and (value.trained or array.ndim > call.ndim(1 - i)))
    ):
        return None
    return array.item()


def binary(name, scalar, reverse=None):
    """Return the rule of a binary operator; a scalar constant becomes an attribute."""

    def rule(call):
        right, left = single(call, 1), single(call, 0)
        if right is not None:
            return OPS[scalar](call.sym(0), scalar=right)
        if left is not None:
            return OPS[reverse or scalar](call.sym(1), scalar=left)
        return OPS[name](call.sym(0), call.sym(1))

    return rule


_divided = binary("broadcast_div", "_div_scalar", "_rdiv_scalar")
_raised = binary("broadcast_power", "_power_scalar", "_rpower_scalar")


def _pow(call):
    same = {2.0: "square", -1.0: "reciprocal"}
    base, exponent = call.dtype(0), single(call, 1)
    if base.kind == "f" and exponent in same:
        return OPS[same[exponent]](call.sym(0))
    if base.kind == "f" and exponent is None and call.dtype(1) not in (None, base):
        return OPS["broadcast_power"](call.sym(0), OPS["Cast"](call.sym(1), dtype=base))
    return _raised(call)


def _mod(call):
    """Mod: the remainder has the sign of b, or with `fmod` that of a."""
    if call.attr("fmod"):
        left, right = call.sym(0), call.sym(1)
        size = OPS["broadcast_mod"](OPS["abs"](left), OPS["abs"](right))
        return OPS["broadcast_mul"](OPS["sign"](left), size)
    return binary("_npi_mod", "_npi_mod_scalar", "_npi_rmod_scalar")(call)


def _chain(name, scalar=None):
    """Return the rule of a variadic operator, as a chain of binary ones."""

    def rule(call):
        if scalar and len(call.inputs) == 2:
            return binary(name, scalar)(call)
        out = call.sym(0)
        for i in range(1, len(call.inputs)):
            out = OPS[name](out, call.sym(i))
        return out

    return rule


def _mean(call):
    return _chain("broadcast_add")(call) * (1 / max(len(call.inputs), 1))


# -- limits and types ------------------------------------------------------------------
def _clip(call):
    """Clip; each limit is optional."""
    low, high = (call.setting(name, 11, i, call.scalar) for i, name in enumerate(("min", "max"), 1))
    data = call.sym(0)
    if low is None and high is None:
        return data
    if high is None:
        return OPS["_maximum_scalar"](data, scalar=low)
    if low is None:
        return OPS["_minimum_scalar"](data, scalar=high)
    return OPS["clip"](data, a_min=low, a_max=high)


def _round(call):
    """Round to the nearest integer, half to even."""
    data = call.sym(0)
    low = OPS["floor"](data)
    rest = data - low
    return low + (rest > 0.5) + (rest == 0.5) * OPS["_mod_scalar"](low, scalar=2)


def _cast(call):
    number = call.attr("to")
    call.attr("saturate")
    if number not in ELEMENTS:
        call.fail(f"type {number} is not supported; there are {', '.join(ELEMENTS.values())}")
    if ELEMENTS[number] == "bool":
        return OPS["_npi_not_equal_scalar"](call.sym(0), scalar=0)
    return OPS["Cast"](call.sym(0), dtype=ELEMENTS[number])


def _dropout(call):
    """Dropout, active in training; the file's `training_mode` is ignored."""
    call.attr("seed")
    ratio = call.setting("ratio", 12, 1, call.scalar)
    return OPS["Dropout"](call.sym(0), p=0.5 if ratio is None else ratio)


# -- activations -----------------------------------------------------------------------
def _prelu(call):
    """PRelu with one slope per channel or a single one; else as max and min."""
    slope, ndim, data = call.need(1).fixed, call.ndim(0), call.sym(0)
    if slope is not None and ndim > 1 and slope.ndim <= ndim:
        wide = (1,) * (ndim - slope.ndim) + slope.shape
        if slope.size == wide[1]:
            gamma = call.scope.parameter(call.need(1), "row", np.ravel)
            return OPS["LeakyReLU"](data, gamma, act_type="prelu")
    low = OPS["broadcast_mul"](OPS["_minimum_scalar"](data, scalar=0), call.sym(1))
    return OPS["broadcast_add"](OPS["relu"](data), low)


def _selu(call):
    """Selu; only the standard constants have an operator."""
    alpha, gamma = call.attr("alpha"), call.attr("gamma")
    if abs(alpha - 1.67326324) < 1e-5 and abs(gamma - 1.05070098) < 1e-5:
        return OPS["LeakyReLU"](call.sym(0), act_type="selu")
    return OPS["LeakyReLU"](call.sym(0), act_type="elu", slope=alpha) * gamma


def _celu(call):
    alpha = call.attr("alpha")
    return OPS["LeakyReLU"](call.sym(0) * (1 / alpha), act_type="elu", slope=1.0) * alpha


def _gelu(call):
    data = call.sym(0)
    if call.attr("approximate") == "none":
        return OPS["LeakyReLU"](data, act_type="gelu")
    inner = (data + data * data * data * 0.044715) * math.sqrt(2 / math.pi)
    return (OPS["tanh"](inner) + 1) * data * 0.5


def gated(gate):
    """Return the rule of x times a function of x and the attribute alpha, if it has one."""

    def rule(call):
        data = call.sym(0)
        return data * gate(data, call.attr("alpha"))

    return rule


def _softmax(name):
    """Return a softmax rule: along an axis, before opset 13 over it and all later axes."""

    def rule(call):
        ndim, data = call.ndim(0), call.sym(0)
        axis = call.axis(call.attr("axis"), ndim)
        rest = call.shape(0)[axis + 1 :]
        if call.opset >= 13 or all(n == 1 for n in rest):
            return OPS[name](data, axis=axis)
        rows = OPS["Reshape"](data, shape=(0,) * axis + (-1,))
        return OPS["reshape_like"](OPS[name](rows, axis=-1), data)

    return rule


# -- sums and extremes -----------------------------------------------------------------
def axes_of(call, since):
    """Return the axes; `None` means all."""
    return call.setting("axes", since, 1, call.numbers)


def _reduction(name, since=18, before=None, after=None):
    def rule(call):
        axes, keep = axes_of(call, since), call.attr("keepdims")
        nothing, data = call.attr("noop_with_empty_axes"), call.sym(0)
        if not axes and nothing:
            return data
        out = OPS[name](OPS[before](data) if before else data, axis=axes or None, keepdims=keep)
        return OPS[after](out) if after else out

    return rule


def _log_sum_exp(call):
    """ReduceLogSumExp, which subtracts the maximum first to avoid overflow."""
    axes, keep = axes_of(call, 18), call.attr("keepdims")
    data = call.sym(0)
    top = OPS["BlockGrad"](OPS["_np_max"](data, axis=axes, keepdims=True))
    total = OPS["_np_sum"](OPS["exp"](OPS["broadcast_sub"](data, top)), axis=axes, keepdims=True)
    out = OPS["log"](total) + top
    return out if keep else OPS["_np_squeeze"](out, axis=axes)


def _extreme(name):
    def rule(call):
        if call.attr("select_last_index"):
            call.fail("select_last_index=1 is not supported; needed: 0")
        return renamed(name, axis="axis", keepdims="keepdims")(call)

    return rule


# Operators that only have other names here: in lower case, and those of NumPy.
SAME = """Abs Ceil Cos Cosh Erf Exp Floor Log Reciprocal Relu Sigmoid Sign Sin Sinh Softsign Sqrt
    Tan Tanh""".split()
NAMES = {
    **{name: name.lower() for name in SAME},
    **{name: f"arc{name[1:].lower()}" for name in "Acos Acosh Asin Asinh Atan Atanh".split()},
    "And": "_npi_bitwise_and",
    "BitwiseAnd": "_npi_bitwise_and",
    "BitwiseOr": "_npi_bitwise_or",
    "BitwiseXor": "_npi_bitwise_xor",
    "Det": "_linalg_det",
    "IsNaN": "_npi_isnan",
    "Neg": "negative",
    "Not": "_npi_logical_not",
    "Or": "_npi_bitwise_or",
    "Softplus": "softrelu",
    "Where": "_npi_where",
    "Xor": "_npi_bitwise_xor",
}
ELEMENTWISE = {
    **{name: renamed(ours) for name, ours in NAMES.items()},
    "Add": binary("broadcast_add", "_plus_scalar"),
    "Sub": binary("broadcast_sub", "_minus_scalar", "_rminus_scalar"),
    "Mul": binary("broadcast_mul", "_mul_scalar"),
    "Div": _divided,
    "Pow": _pow,
    "Mod": _mod,
    "Equal": binary("_npi_equal", "_npi_equal_scalar"),
    "Greater": binary("_npi_greater", "_npi_greater_scalar", "_npi_less_scalar"),
    "Less": binary("_npi_less", "_npi_less_scalar", "_npi_greater_scalar"),
    "GreaterOrEqual": binary(
        "_npi_greater_equal", "_npi_greater_equal_scalar", "_npi_less_equal_scalar"
    ),
    "LessOrEqual": binary("_npi_less_equal", "_npi_less_equal_scalar", "_npi_greater_equal_scalar"),
    "Sum": _chain("broadcast_add"),
    "Mean": _mean,
    "Max": _chain("broadcast_maximum", "_maximum_scalar"),
    "Min": _chain("broadcast_minimum", "_minimum_scalar"),
    "Clip": _clip,
    "Round": _round,
    "Cast": _cast,
    "Dropout": _dropout,
    "LeakyRelu": renamed("LeakyReLU", {"act_type": "leaky"}, slope="alpha"),
    "Elu": renamed("LeakyReLU", {"act_type": "elu"}, slope="alpha"),
    "PRelu": _prelu,
    "Selu": _selu,
    "Celu": _celu,
    "Gelu": _gelu,
    "HardSigmoid": renamed("hard_sigmoid", alpha="alpha", beta="beta"),
    "HardSwish": gated(lambda x, _: OPS["hard_sigmoid"](x, alpha=1 / 6, beta=0.5)),
    "Swish": gated(lambda x, alpha: OPS["sigmoid"](x * alpha)),
    "ThresholdedRelu": gated(lambda x, alpha: x > alpha),
    "Mish": gated(lambda x, _: OPS["tanh"](OPS["softrelu"](x))),
    "Softmax": _softmax("softmax"),
    "LogSoftmax": _softmax("log_softmax"),
    "ReduceSum": _reduction("_np_sum", since=13),
    "ReduceMean": _reduction("_npi_mean"),
    "ReduceMax": _reduction("_np_max"),
    "ReduceMin": _reduction("_np_min"),
    "ReduceProd": _reduction("_np_prod"),
    "ReduceSumSquare": _reduction("_np_sum", before="square"),
    "ReduceL1": _reduction("_np_sum", before="abs"),
    "ReduceL2": _reduction("_np_sum", before="square", after="sqrt"),
    "ReduceLogSumExp": _log_sum_exp,
    "ArgMax": _extreme("_npi_argmax"),
    "ArgMin": _extreme("_npi_argmin"),
}
