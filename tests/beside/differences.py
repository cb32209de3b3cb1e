"""Where MXNet 1.9.1 answers otherwise, on purpose or by its own faults, and why.

One table: `beside` asks it about every difference that random programs find, and
`book/mxnet_differences.md` is written from it. An entry stands for as little as can be
said: these operators, this kind of difference, on such numbers.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from beside.child import seed
from beside.reasons import (
    DIED,
    arrays,
    attribute,
    both,
    by,
    dies,
    double,
    empty,
    first_is,
    gradient,
    has_equal_numbers,
    in_gradients,
    less_exact,
    mxnet_says,
    near,
    not_finite,
    one_off,
    only_in_rows,
    only_where,
    scalars,
    slope,
    stops_gradients,
    told_in_float32,
    twice,
    we_say,
    whole,
)

ANY = "any operator"


@dataclass(frozen=True)
class Known:
    """One known difference.

    title:  a heading in the book; several entries may share one.
    ops:    names of operators, or ANY.
    kind:   "error" (one of the two raises), "shape", "dtype", "value", or "elsewhere":
            what the step does is seen where others share its arrays.
    when:   Difference -> whether it is this one; for "elsewhere", of the Step and all
            Differences of a program.
    """

    title: str
    ops: tuple | str
    kind: str
    when: Callable
    what: str
    why: str

    def fits(self, d):
        """Whether a Difference is this one; of more than one step, only if of any."""
        named = self.ops is ANY or d.step is not None and d.step.op in self.ops
        return named and self.kind == d.kind and bool(self.when(d))


def reason(d):
    """The number of the entry that explains a difference, or `None`."""
    return next((i for i, known in enumerate(KNOWN) if known.fits(d)), None)


def disturbance(step, found):
    """The entry for a step whose harm is seen in others, or `None`.

    found:  what differs in the program that the step belongs to.
    """
    return next(
        (
            i
            for i, known in enumerate(KNOWN)
            if known.kind == "elsewhere"
            and (known.ops is ANY or step.op in known.ops)
            and known.when(step, found)
        ),
        None,
    )


# -- the table -------------------------------------------------------------------------
FEWER = "MXNet takes fewer shapes, dtypes and attributes"
NO_GRADIENT = "MXNet has no gradient, or none for this input"
DTYPES = "Dtypes"
ROUNDS = "MXNet rounds to float32"
NANS = "NaN and infinity"
ZERO = "Division by zero"
MEMORY = "MXNet reads or writes memory that it should not"
OTHER = "Other answers"

SCALAR_SIGNS = ("+", "-", "*", "/", "%", "**", "==", "!=", "<", "<=", ">", ">=")
FUNCTIONS = (
    "sqrt",
    "rsqrt",
    "cbrt",
    "rcbrt",
    "exp",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "arcsinh",
    "arccosh",
    "arctanh",
    "degrees",
    "radians",
    "erf",
    "erfinv",
    "gamma",
    "gammaln",
    "sigmoid",
    "softsign",
    "reciprocal",
    "mean",
    "log_sigmoid",
    "mish",
    "digamma",
)

REGRESSIONS = ("LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput")


CTC = ("ctc_loss", "CTCLoss", "contrib.ctc_loss", "contrib.CTCLoss")


def teaches_nothing(d):
    """All that differs are gradients of words which have none."""
    if not gradient(d) or d.ours.ndim != 3:
        return False
    taught = np.where(np.isfinite(d.ours), d.ours, 0).any((0, 2))
    return not d.apart[:, taught].any()


def gamma_is_one(d):
    return d.name == "state 1" and (d.theirs == 1).all()


def rows_of_whole_steps(d):
    """`arange` whose step has the dtype of the result."""
    start, step = (np.trunc(d.step.attrs[name]) for name in ("start", "step"))
    return (start + step * np.arange(d.ours.size)).astype(d.ours.dtype)


def selu_gradient(d):
    """What MXNet has instead of `l * a * exp(x)` below 0."""
    x, a, s = arrays(d)[0].astype("float64"), 1.6732632423543772, 1.0507009873554805
    return seed(x.shape) * np.where(x > 0, s, s * (s * a * np.expm1(x) + a))


def bounded_cross_entropy(d):
    """The loss with no probability below 1e-8."""
    data, label = (v.astype("float64") for v in arrays(d))
    p = np.exp(data - data.max(-1, keepdims=True))
    p = (p / p.sum(-1, keepdims=True))[np.arange(len(data)), label.astype(int)]
    return -np.log(np.maximum(p, 1e-8)).sum().reshape(d.ours.shape)


def quotients_cancel(d):
    """The gradient of a divisor differs by a rounding of the terms that are added up."""
    if d.name != "gradient 1" or len(arrays(d)) != 2:
        return False
    a, b = (v.astype("float64") for v in arrays(d))
    with np.errstate(all="ignore"):
        terms = abs(seed(np.broadcast_shapes(a.shape, b.shape)) * a / (b * b))
    unit = np.finfo(d.ours.dtype).eps
    return np.isfinite(terms).all() and (abs(d.ours - d.theirs) <= 4 * unit * terms.max()).all()


def power_gradient(d):
    """x to a number, whose gradient is that of the number in float32."""
    exponent = np.float32(d.step.attrs["scalar"])
    x = arrays(d)[0].astype("float64")
    return seed(x.shape) * exponent * x ** np.float64(exponent - np.float32(1))


def sums_cancel(d):
    """What differs is rounding of the numbers that are added."""
    return (abs(d.ours - d.theirs) <= 1e-6 * abs(arrays(d)[0]).max(initial=0)).all()


def no_such_image(d):
    return missing_images(d).any()


def missing_images(d):
    """Which regions are of an image that does not exist."""
    data, regions = arrays(d)
    return (regions[:, 0] < 0) | (regions[:, 0] >= len(data))


def of_missing_images(d):
    """All that differs is of these regions, or what they send back."""
    return gradient(d) or not d.apart[~missing_images(d)].any()


def softmax_activation_gradient(d):
    """Forward along the last axis, backward along axis 1."""
    data = arrays(d)[0].astype("float64")
    p = np.exp(data - data.max(-1, keepdims=True))
    p, g = p / p.sum(-1, keepdims=True), seed(data.shape)
    return p * (g - (g * p).sum(1, keepdims=True))


KNOWN = (
    Known(
        FEWER,
        ANY,
        "error",
        mxnet_says("AttributeError: module 'mxnet"),
        "`F.softrelu`, `F.broadcast_arctan2` and others are no functions of MXNet.",
        "Every operator here has a public name; MXNet reaches some only through "
        "`Activation` or `mx.np`.",
    ),
    Known(
        FEWER,
        ("BatchNorm_v1",),
        "error",
        mxnet_says("got multiple values"),
        "`BatchNorm_v1` takes no moving mean and variance.",
        "It is `BatchNorm` here, under its old name.",
    ),
    Known(
        FEWER,
        ANY,
        "error",
        lambda d: d.ours is None and empty(d),
        "Arrays without elements are refused.",
        "A 0 in a shape means *unknown* to MXNet's `nd`; here it means 0.",
    ),
    Known(
        FEWER,
        ANY,
        "error",
        mxnet_says(
            "Unsupported data type",
            "data type do not match",
            "only support floating point",
            "unknown type for MKLDNN",
            "requires uniform type",
            "only supports floating",
            "Unknown type enum",
            "dot only supports",
            "does not support",
            "not supported for",
        ),
        "Kernels exist for some dtypes only, often not for float64.",
        "Here an operator takes all dtypes for which it has a meaning.",
    ),
    Known(
        FEWER,
        ANY,
        "error",
        mxnet_says(
            "1D convolution not supported",
            "Input data should be 4D",
            "At lease 3 dim",
            "at least 3 dimensions",
            "must be a tensor of square matrices",
            "Cannot transpose vectors",
            "must be in range [0",
            "Invalid Parameter format",
            "Cannot find argument",
            "Out of range value",
            "have a least",
            "Too many reduction axes",
        ),
        "Shapes, negative axes and attributes that are refused.",
        "Axes count from the back everywhere here, and an operator takes every shape "
        "for which it has a meaning.",
    ),
    Known(
        FEWER,
        ANY,
        "error",
        mxnet_says("could not execute a primitive"),
        "oneDNN's kernels refuse to run.",
        "MXNet hands some shapes to them that they do not take.",
    ),
    Known(
        FEWER,
        ("contrib.MultiBoxTarget",),
        "error",
        mxnet_says("p_label + i * label_width"),
        "A label of class -1 with other coordinates than -1 is refused.",
        "The class alone says here that a row is padding; its coordinates count for nothing.",
    ),
    Known(
        NO_GRADIENT,
        ANY,
        "error",
        mxnet_says(
            "non-differentiable because",
            "calculate data gradient",
            "Cannot take gradient wrt",
            "wrong req",
        ),
        "`backward` raises.",
        "Here these operators have gradients, and a label or an index has a gradient of 0.",
    ),
    Known(
        NO_GRADIENT,
        ANY,
        "error",
        we_say("the array is not on the tape"),
        "`backward` from an array that nothing can be differentiated for, such as "
        "`argmax(x)`, gives zeros.",
        "Here it raises, as from any array that is not on the tape: to ask for it is a mistake.",
    ),
    Known(
        ZERO,
        ANY,
        "error",
        both(whole, mxnet_says("died with -8")),
        "A whole number divided by 0 ends the process (SIGFPE).",
        "The result here is that of the hardware-independent rule: 0.",
    ),
    Known(
        ZERO,
        ("/",),
        "value",
        both(whole, only_where(lambda a, b: b == 0), lambda d: (d.ours[d.apart] == 0).all()),
        "A number divided by a whole 0 is the smallest whole number.",
        "The result here is that of the hardware-independent rule: 0.",
    ),
    Known(
        ZERO,
        ("**", "broadcast_power"),
        "value",
        both(
            gradient,
            only_where(lambda a, b: (abs(a**b) < 1e-38) | (a == 0) & (b == 0)),
            lambda d: np.isfinite(d.ours[d.apart]).all() and np.isnan(d.theirs[d.apart]).all(),
        ),
        "The gradients of `x ** 0` at 0, and of y where `x ** y` is 0, are NaN.",
        "They are the derivatives of constants here: 0.",
    ),
    Known(
        ZERO,
        ("/", "broadcast_div", "elemwise_div"),
        "value",
        both(
            gradient,
            only_where(lambda a, b: (abs(b) < 1e-18) | (abs(a) > 1e37) | ~np.isfinite(a * b)),
        ),
        "Gradients of quotients by numbers near 0, and of infinity.",
        "Here they are what IEEE arithmetic makes of `-g * out / x`; MXNet divides by "
        "the square, which overflows.",
    ),
    Known(
        ZERO,
        ("/", "broadcast_div", "elemwise_div"),
        "value",
        both(gradient, quotients_cancel),
        "Gradients of quotients that cancel where a small number stretches.",
        "Their sum differs by a rounding of its largest term, in either order.",
    ),
    Known(
        ZERO,
        ("%", "mod", "broadcast_mod", "broadcast_modulo"),
        "value",
        both(first_is("f"), only_where(lambda a, b: (b == 0) | ~np.isfinite(a + b))),
        "`x % 0` is 0, with a gradient of infinity.",
        "Here it is NaN, as in NumPy and in IEEE arithmetic.",
    ),
    Known(
        ZERO,
        ("prod", "nanprod"),
        "value",
        both(gradient, only_where(lambda a: a == 0)),
        "The gradient of a product at a factor of 0 is NaN.",
        "MXNet divides the product by the factor; here it is the product of the others.",
    ),
    Known(
        DTYPES,
        FUNCTIONS,
        "dtype",
        both(whole, one_off),
        "Functions and means of whole numbers are whole numbers again, cut off.",
        "Here they are float32: the square root of 2 is not 1.",
    ),
    Known(
        DTYPES,
        ("mean",),
        "dtype",
        both(
            whole,
            lambda d: abs(arrays(d)[0].astype("float64")).sum() > np.iinfo(d.theirs.dtype).max,
        ),
        "The sum inside a mean of whole numbers wraps around.",
        "It is taken in floats here.",
    ),
    Known(
        DTYPES,
        ("argmax", "argmin", "argmax_channel"),
        "dtype",
        lambda d: d.ours.dtype == "float32" and np.array_equal(d.ours, d.theirs),
        "`argmax` has the dtype of its input.",
        "Here it is float32 for every input, as for float32 in MXNet.",
    ),
    Known(
        DTYPES,
        ("abs", "ceil", "floor", "rint", "round", "trunc", "fix"),
        "value",
        both(whole, only_where(lambda a: abs(a) >= 2**53)),
        "Whole numbers go through float64, which has 53 bits.",
        "Whole numbers are left as they are.",
    ),
    Known(
        DTYPES,
        ("%", "mod", "broadcast_mod", "broadcast_modulo"),
        "value",
        both(whole, only_where(lambda a, b: np.maximum(abs(a), abs(b)) >= 2**53)),
        "Remainders of whole numbers go through float64, which has 53 bits.",
        "Here they are exact.",
    ),
    Known(
        DTYPES,
        ("smooth_l1",),
        "value",
        both(whole, lambda d: abs(attribute(d, "scalar")) < 1 and not d.theirs.any()),
        "`smooth_l1` of whole numbers cuts the square of a `scalar` below 1 to 0, and "
        "gives 0 for all.",
        "Here the formula is computed, then cut off.",
    ),
    Known(
        DTYPES,
        ("arange",),
        "value",
        by(rows_of_whole_steps),
        "The step of an `arange` of whole numbers is cut off first.",
        "Here the numbers are computed, then cut off.",
    ),
    Known(
        DTYPES,
        ("**", "broadcast_power", "_power"),
        "value",
        both(whole, only_where(lambda a, b: (b < 0) | (abs(b) >= 2**24) | (abs(a) ** b >= 2**24))),
        "Powers of whole numbers are computed in floats.",
        "Here they are exact, and wrap around like products.",
    ),
    Known(
        DTYPES,
        SCALAR_SIGNS,
        "value",
        both(whole, lambda d: any(not abs(v) < 2**31 for v in scalars(d))),
        "A number beside whole numbers is made a whole number first, which has no "
        "meaning for infinity, NaN or 1e30.",
        "Here a number that the dtype cannot hold is compared as the number that it is.",
    ),
    Known(
        ROUNDS,
        ("radians", "degrees", "erf", "erfinv", "gamma", "gammaln", "digamma"),
        "value",
        both(double, near(2e-6)),
        "Constants inside these operators are float32 in float64 programs.",
        "Here they have all their digits.",
    ),
    Known(
        ROUNDS,
        ("gamma",),
        "value",
        both(
            double,
            gradient,
            lambda d: (
                abs(d.ours - d.theirs)
                <= 2e-7
                * abs(np.reshape([math.gamma(v) for v in arrays(d)[0].ravel()], d.ours.shape))
            ).all(),
        ),
        "The gradient of `gamma` near -0.504, a zero of digamma, has few digits.",
        "Digamma has those of float64 here.",
    ),
    Known(
        ROUNDS,
        ("gammaln",),
        "value",
        both(
            double,
            gradient,
            lambda d: (abs(d.ours - d.theirs) <= 2e-7 * abs(seed(d.ours.shape))).all(),
        ),
        "The gradient of `gammaln` near the zeros of digamma has few digits.",
        "Digamma has those of float64 here.",
    ),
    Known(
        ROUNDS,
        ("LeakyReLU",),
        "value",
        both(double, near(2e-6), lambda d: d.step.attrs.get("act_type") == "gelu"),
        "GELU of float64 has the digits of float32.",
        "Here it has all its digits.",
    ),
    Known(
        ROUNDS,
        ANY,
        "value",
        both(double, told_in_float32),
        "Attributes, and numbers beside an array, are rounded to float32 in float64 "
        "programs: with rounded ones our answer is MXNet's.",
        "Here they are Python's numbers, with all their digits.",
    ),
    Known(
        ROUNDS,
        ("**",),
        "value",
        both(
            gradient,
            lambda d: "scalar" in d.step.attrs and not d.step.attrs.get("reversed"),
            by(power_gradient),
        ),
        "An exponent is rounded to float32 before 1 is taken from it for the gradient: that of "
        "`x ** 16777217.0` has another sign.",
        "1 is taken from Python's number here.",
    ),
    Known(
        ROUNDS,
        ("mean", "sum"),
        "value",
        both(lambda d: not gradient(d), sums_cancel),
        "Sums of numbers that cancel have other last digits.",
        "They are added in another order; both are rounding of the largest number.",
    ),
    Known(
        ROUNDS,
        SCALAR_SIGNS,
        "value",
        lambda d: any(0 < abs(v) < 1.2e-38 for v in scalars(d)),
        "Numbers below the smallest normal float32, such as 1e-45, have few digits.",
        "Their logarithm is that of Python's number here.",
    ),
    Known(
        ROUNDS,
        ANY,
        "value",
        both(lambda d: not double(d), less_exact),
        "Differences of almost equal numbers lose digits.",
        "The answer in float64 is nearer to ours, or four times as far at most.",
    ),
    Known(
        ROUNDS,
        ("moments",),
        "value",
        lambda d: (
            d.name == "output 1"
            and (
                abs(d.ours - d.theirs)
                <= (2 * np.finfo(d.ours.dtype).eps * abs(arrays(d)[0]).max()) ** 2
            ).all()
        ),
        "The variance of equal numbers is 0.",
        "Their mean is rounded here, which leaves the square of a rounding.",
    ),
    Known(
        ROUNDS,
        ("LayerNorm", "InstanceNorm", "GroupNorm"),
        "value",
        lambda d: (
            has_equal_numbers(d)
            and (abs(d.ours - d.theirs) <= 1e-4 * abs(arrays(d)[0]).max()).all()
        ),
        "Equal numbers are their mean.",
        "Their mean is rounded here, and what is left is divided by `sqrt(eps)`.",
    ),
    Known(
        ROUNDS,
        ("L2Normalization",),
        "value",
        both(
            gradient, lambda d: (abs(d.ours - d.theirs) <= 1e-6 / abs(arrays(d)[0]))[d.apart].all()
        ),
        "The gradient of a vector that is almost one number loses digits.",
        "It loses other digits here: 1 minus a number that rounds to 1.",
    ),
    Known(
        OTHER,
        ("shuffle",),
        "value",
        lambda d: np.array_equal(
            np.sort(d.ours, axis=None), np.sort(d.theirs, axis=None), equal_nan=True
        ),
        "Random orders.",
        "The same seed gives another stream; shapes, dtypes and distributions are "
        "compared in tests of their own.",
    ),
    Known(
        OTHER,
        ("sample_multinomial", "random_uniform", "uniform", "normal"),
        "value",
        lambda d: not gradient(d),
        "Random numbers.",
        "The same seed gives another stream; shapes, dtypes and distributions are "
        "compared in tests of their own.",
    ),
    Known(
        OTHER,
        ("Dropout",),
        "value",
        both(lambda d: d.program.train and attribute(d, "p") > 0, only_where(lambda a: a == a)),
        "Random masks.",
        "The same seed gives another stream; shapes, dtypes and distributions are "
        "compared in tests of their own.",
    ),
    Known(
        OTHER,
        ("Dropout",),
        "elsewhere",
        lambda step, found: step.attrs.get("p", 0.5) > 0 and any(d.program.train for d in found),
        "Random masks, which may be the same by chance.",
        "The same seed gives another stream; shapes, dtypes and distributions are "
        "compared in tests of their own.",
    ),
    Known(
        OTHER,
        ("BatchNorm", "BatchNorm_v1"),
        "value",
        gamma_is_one,
        "`BatchNorm(fix_gamma=True)` writes 1 into the array gamma.",
        "Here an input that is called fixed is taken as 1 and left alone.",
    ),
    Known(
        OTHER,
        ("BatchNorm", "BatchNorm_v1"),
        "elsewhere",
        lambda step, found: step.attrs.get("fix_gamma", True),
        "`BatchNorm(fix_gamma=True)` writes 1 into the array gamma.",
        "Here an input that is called fixed is taken as 1 and left alone.",
    ),
    Known(
        OTHER,
        ("BatchNorm", "BatchNorm_v1"),
        "elsewhere",
        lambda step, found: any(d.name.startswith("state") for d in found),
        "`BatchNorm` writes its moving mean and variance in `backward`, and only if a "
        "gradient passes.",
        "They are written in the forward pass of training mode.",
    ),
    Known(
        OTHER,
        ("%", "mod", "broadcast_mod", "broadcast_modulo"),
        "value",
        both(gradient, only_where(lambda a, b: abs(a / b - np.rint(a / b)) < 1e-6 * abs(a / b))),
        "The gradient of a remainder takes a quotient next to a whole number as that number.",
        "It is that of the remainder, which takes the smaller one.",
    ),
    Known(
        OTHER,
        ("%",),
        "value",
        both(
            lambda d: not gradient(d) and "scalar" in d.step.attrs,
            only_where(lambda a, b: abs(a / b) > 2.0**50),
        ),
        "A number of a program is read from text, and may miss the nearest one by a unit; the "
        "remainder of a large one is another one then.",
        "It is the nearest one here.",
    ),
    Known(
        OTHER,
        ("amp_cast",),
        "value",
        both(
            first_is("float32"),
            only_where(lambda a: a != np.trunc(a)),
            lambda d: (d.theirs == np.rint(arrays(d)[0])).all(),
        ),
        "`amp_cast` of float32 to whole numbers rounds to the nearest (by oneDNN; with "
        "`MXNET_MKLDNN_ENABLED=0` it cuts off, as `cast` does).",
        "Here every cast cuts off, as in NumPy and in C.",
    ),
    Known(
        OTHER,
        ("Pooling", "Pooling_v1"),
        "value",
        both(gradient, lambda d: d.step.attrs.get("pool_type", "max") == "max", only_where(twice)),
        "Where several numbers of a window are the largest, the gradient goes to all "
        "of them, or to none.",
        "Here it goes to the first.",
    ),
    Known(
        OTHER,
        ("Pooling", "Pooling_v1"),
        "value",
        both(gradient, lambda d: d.step.attrs.get("pool_type", "max") == "max", slope),
        "The gradient of max pooling is lost: of global pooling along one axis behind "
        "the first `kernel` elements, and with windows that reach beyond the data.",
        "Central differences agree with ours.",
    ),
    Known(
        OTHER,
        ("Pooling", "Pooling_v1"),
        "elsewhere",
        lambda step, found: (
            step.attrs.get("pool_type", "max") == "max"
            and in_gradients(found)
            and all(slope(d) for d in found if gradient(d) and d.kind == "value")
        ),
        "The gradient of max pooling is lost in some programs, though not where it is the only "
        "operator.",
        "Central differences agree with ours.",
    ),
    Known(
        OTHER,
        ("Convolution_v1",),
        "value",
        both(gradient, lambda d: set(d.step.attrs.get("dilate", ())) - {1}, slope),
        "The gradient of a dilated `Convolution_v1` goes to neighbours.",
        "Central differences agree with ours.",
    ),
    Known(
        OTHER,
        ("LeakyReLU",),
        "value",
        both(gradient, lambda d: d.step.attrs.get("act_type") == "selu", by(selu_gradient)),
        "The gradient of SELU below 0 is `l * (y + a)`, with a = 1.673, l = 1.051.",
        "`y = l * a * (exp(x) - 1)` has the derivative `y + l * a`.",
    ),
    Known(
        OTHER,
        ("softmax_cross_entropy",),
        "value",
        both(lambda d: not gradient(d), by(bounded_cross_entropy)),
        "`softmax_cross_entropy` of a class with a probability below 1e-8 is 18.4.",
        "Here it is the logarithm itself, which goes on to any size.",
    ),
    Known(
        OTHER,
        ("SoftmaxActivation",),
        "value",
        both(
            gradient,
            lambda d: arrays(d)[0].ndim > 2 and attribute(d, "mode") == "instance",
            by(softmax_activation_gradient),
        ),
        "The gradient of `SoftmaxActivation` of more than two axes sums along axis 1, "
        "as that of `mode='channel'`.",
        "The forward pass normalises the last axis, and here the gradient is that of "
        "the forward pass.",
    ),
    Known(
        OTHER,
        ("MakeLoss",),
        "value",
        both(
            gradient,
            lambda d: d.step.attrs.get("normalization") == "batch",
            by(lambda d: d.ours * len(d.ours) / np.prod(d.ours.shape[:-1])),
        ),
        "`MakeLoss(normalization='batch')` of more than two axes.",
        "MXNet divides by the lengths of all axes but the last; here by the first, "
        "as its text says.",
    ),
    Known(
        NANS,
        ("norm",),
        "value",
        lambda d: not gradient(d) and (np.isinf(d.ours) & np.isnan(d.theirs))[d.apart].all(),
        "The norm of infinity is NaN.",
        "It is infinity here.",
    ),
    Known(
        NANS,
        ("norm",),
        "value",
        both(gradient, only_where(np.isnan)),
        "The gradient of a norm at NaN is 0.",
        "It is NaN here.",
    ),
    Known(
        NANS,
        ("norm",),
        "value",
        both(
            gradient,
            lambda d: np.isinf(arrays(d)[0]).any() and not d.ours[d.apart].any(),
            lambda d: np.isnan(d.theirs[d.apart]).all(),
        ),
        "The gradient of an infinite norm is NaN everywhere.",
        "A finite number has no share of it here: it is divided by infinity, which is 0.",
    ),
    Known(
        NANS,
        ("softmax", "log_softmax", "softmin"),
        "value",
        both(
            only_in_rows(lambda a: ~np.isfinite(a)),
            lambda d: not np.isfinite(d.ours[d.apart]).any(),
        ),
        "The softmax of infinity and NaN, and its gradient, have places without NaN.",
        "The whole row is NaN here, as its results are.",
    ),
    Known(
        NANS,
        ("SoftmaxOutput", "Softmax"),
        "value",
        both(not_finite, lambda d: not np.isfinite(d.ours[d.apart]).any()),
        "The outputs and gradients of a loss of infinity and NaN have places without NaN.",
        "The whole row is NaN here, as its results are.",
    ),
    Known(
        NANS,
        ("sort", "argsort", "topk"),
        "value",
        only_in_rows(np.isnan),
        "NaN may end up anywhere in a sorted row, because it is neither less nor greater than "
        "a number.",
        "It is the largest here, as in NumPy.",
    ),
    Known(
        NANS,
        ("sign",),
        "value",
        both(lambda d: not gradient(d), only_where(np.isnan)),
        "The sign of NaN is 0.",
        "It is NaN here, as in NumPy.",
    ),
    Known(
        NANS,
        ("square",),
        "value",
        both(gradient, only_where(lambda a: abs(a) > 1e38)),
        "The gradient of a square whose double is infinite is infinite.",
        "The number that comes back is multiplied first here.",
    ),
    Known(
        NANS,
        ("linalg.trsm",),
        "value",
        both(not_finite, lambda d: np.isnan(d.theirs[d.apart]).all()),
        "The solution of equations with infinity is NaN.",
        "Columns are infinite here where the arithmetic says so.",
    ),
    Known(
        NANS,
        ("abs",),
        "value",
        both(gradient, only_where(np.isnan)),
        "The gradient of `abs` at NaN is 0.",
        "It is NaN here.",
    ),
    Known(
        NANS,
        ("**", "broadcast_power"),
        "value",
        both(
            gradient,
            only_where(
                lambda a, b: (
                    ~(np.isfinite(a) & np.isfinite(a**b) & (abs(a ** (b - 1)) < 3e38))
                    | (a == 0)
                    | (abs(a**b) < 1e-38)
                )
            ),
            lambda d: np.isnan(d.theirs[d.apart]).all(),
        ),
        "The gradient of a power of infinity, or that is infinite, is NaN.",
        "It is what IEEE arithmetic makes of `g * b * a ** (b - 1)` here.",
    ),
    Known(
        NANS,
        ("nansum", "nanprod"),
        "value",
        both(not_finite, lambda d: np.isnan(d.theirs[d.apart]).all()),
        "A sum or product that passes over NaN makes NaN of infinity.",
        "It is infinite here.",
    ),
    Known(
        NANS,
        ("Pooling", "Pooling_v1"),
        "value",
        lambda d: (
            (np.isnan(d.ours) | (d.ours == -np.inf)) & (d.theirs == np.finfo(d.theirs.dtype).min)
        )[d.apart].all(),
        "The largest of numbers that are all minus infinity is the lowest number.",
        "It is minus infinity here.",
    ),
    Known(
        NANS,
        ("Activation",),
        "value",
        both(lambda d: attribute(d, "act_type") == "relu", only_where(np.isnan)),
        "`Activation('relu')` of NaN is 0.",
        "It is NaN here, as with `relu`.",
    ),
    Known(
        NANS,
        ("clip",),
        "elsewhere",
        lambda step, found: any(
            gradient(d)
            and d.kind == "value"
            and np.isnan(d.ours[d.apart]).all()
            and (d.theirs[d.apart] == 0).all()
            for d in found
        ),
        "An infinite gradient is 0 where `clip` cuts off.",
        "It is multiplied by 0 here, which is NaN.",
    ),
    Known(
        NANS,
        ("clip",),
        "value",
        both(gradient, only_where(np.isnan)),
        "The gradient of `clip` passes at NaN, which is beyond neither end.",
        "It is 0 here: NaN is not between the ends either.",
    ),
    Known(
        NANS,
        ("relu",),
        "value",
        both(gradient, only_where(np.isnan)),
        "The gradient of `relu` at NaN is NaN.",
        "It is 0 here: NaN > 0 is false.",
    ),
    Known(
        NANS,
        ("gammaln", "digamma"),
        "value",
        both(gradient, only_where(lambda a: (a <= 0) & (a == np.rint(a)))),
        "Gradients at the poles are large numbers.",
        "They are infinite here.",
    ),
    Known(
        NANS,
        ("Convolution", "Convolution_v1", "Deconvolution"),
        "value",
        both(not_finite, lambda d: np.isnan(d.ours[d.apart]).all()),
        "A NaN or infinity reaches only the numbers that it is multiplied by.",
        "Holes between the steps of a window are multiplied by 0 here, which makes a "
        "NaN of infinity.",
    ),
    Known(
        NANS,
        ANY,
        "elsewhere",
        lambda step, found: (
            stops_gradients(step)
            and any(
                gradient(d)
                and d.kind == "value"
                and np.isnan(d.theirs[d.apart]).all()
                and np.isfinite(d.ours[d.apart]).all()
                for d in found
            )
        ),
        "What has no gradient, such as `x < y`, sends back zeros, and the gradient of "
        "an operator before it makes a NaN of 0 times infinity.",
        "Nothing is sent back here.",
    ),
    Known(
        NANS,
        ("broadcast_hypot",),
        "value",
        both(
            gradient,
            only_where(lambda a, b: (a == 0) & (b == 0)),
            lambda d: (d.ours[d.apart] == 0).all(),
        ),
        "The gradient of a hypotenuse of 0 is NaN.",
        "It is 0 here.",
    ),
    Known(
        NANS,
        ("Pooling", "Pooling_v1"),
        "value",
        both(not_finite, lambda d: np.isnan(d.ours[d.apart]).all()),
        "The largest of some numbers and NaN may be a number.",
        "It is NaN here, as in NumPy.",
    ),
    Known(
        NANS,
        ("LayerNorm", "InstanceNorm", "BatchNorm", "GroupNorm", "moments"),
        "value",
        both(
            not_finite,
            lambda d: (
                not np.isfinite(d.ours[d.apart]).any() and not np.isfinite(d.theirs[d.apart]).any()
            ),
        ),
        "Where the exact answer is infinite it may be NaN, or the other way round.",
        "Sums of infinities are taken in another order.",
    ),
    Known(
        NANS,
        ("LeakyReLU",),
        "value",
        both(gradient, lambda d: attribute(d, "act_type") == "leaky", only_where(np.isnan)),
        "The gradient of a leaky relu at NaN is that of a number above 0.",
        "It is that of the others here: NaN > 0 is false.",
    ),
    Known(
        NANS,
        ("contrib.box_iou",),
        "value",
        both(not_finite, lambda d: np.isnan(d.ours[d.apart]).all()),
        "Boxes with NaN share nothing: 0.",
        "What they share is unknown here: NaN.",
    ),
    Known(
        NANS,
        ("contrib.box_decode",),
        "value",
        both(
            not_finite, lambda d: not (np.isfinite(d.ours) | np.isfinite(d.theirs))[d.apart].any()
        ),
        "An anchor with an infinite corner has a centre that is NaN.",
        "It is the mean of the corners here, infinity; MXNet adds half of the height.",
    ),
    Known(
        NANS,
        ("SVMOutput",),
        "value",
        both(gradient, lambda d: not np.isfinite(d.ours[d.apart]).any()),
        "The gradient of a NaN is 0.",
        "It is NaN here.",
    ),
    Known(
        MEMORY,
        ANY,
        "elsewhere",
        lambda step, found: stops_gradients(step) and dies(found),
        "`backward` ends the process (a segmentation fault) where only functions "
        "without a gradient read a function of a result: `exp(LayerNorm(x)) > 0`.",
        "The gradient is 0 here.",
    ),
    Known(
        MEMORY,
        ("contrib.ROIAlign",),
        "error",
        both(no_such_image, mxnet_says(*DIED, "died with -11")),
        "A region of an image that does not exist ends the process.",
        "Such a region is 0 here, and sends nothing back.",
    ),
    Known(
        MEMORY,
        ("contrib.ROIAlign",),
        "value",
        both(no_such_image, of_missing_images),
        "A region of an image that does not exist has the numbers that lie there in memory.",
        "Such a region is 0 here, and sends nothing back.",
    ),
    Known(
        MEMORY,
        ("Deconvolution",),
        "elsewhere",
        lambda step, found: dies(found),
        "`backward` ends the process where the gradient of the weight is added to "
        "another one, because something else reads the weight, too.",
        "The two are added here.",
    ),
    Known(
        MEMORY,
        ("SequenceLast",),
        "error",
        both(mxnet_says(*DIED), lambda d: not d.step.attrs.get("use_sequence_length")),
        "`SequenceLast` without lengths ends the process in `backward`.",
        "The last step gets its gradient here.",
    ),
    Known(
        MEMORY,
        ("SequenceLast", "SequenceMask", "SequenceReverse"),
        "elsewhere",
        lambda step, found: step.attrs.get("use_sequence_length") and in_gradients(found),
        "The gradient of lengths is memory that nobody wrote.",
        "Lengths have a gradient of 0 here.",
    ),
    Known(
        MEMORY,
        ("tile",),
        "value",
        lambda d: (
            not gradient(d)
            and d.ours.ndim > 3
            and np.array_equal(d.ours, np.tile(arrays(d)[0], d.step.attrs["reps"]))
        ),
        "`tile` to four axes and more has places that nobody wrote.",
        "All are written here.",
    ),
    Known(
        MEMORY,
        ("Crop",),
        "elsewhere",
        lambda step, found: in_gradients(found),
        "The gradient of what `Crop` leaves out is memory that nobody wrote.",
        "It is 0 here.",
    ),
    Known(
        MEMORY,
        ("SequenceLast",),
        "elsewhere",
        lambda step, found: not step.attrs.get("use_sequence_length"),
        "`SequenceLast` without lengths writes a gradient where it should not.",
        "The last step gets its gradient here.",
    ),
    Known(
        MEMORY,
        ("SequenceLast",),
        "value",
        both(gradient, lambda d: not d.step.attrs.get("use_sequence_length")),
        "`SequenceLast` without lengths has no gradient.",
        "The last step gets its gradient here.",
    ),
    Known(
        MEMORY,
        (*REGRESSIONS, "SVMOutput", "SoftmaxOutput", "Softmax"),
        "elsewhere",
        lambda step, found: in_gradients(found),
        "The gradient of a label is memory that nobody wrote; it is added to that of "
        "an array which is also used elsewhere.",
        "A label has a gradient of 0 here.",
    ),
    Known(
        OTHER,
        ("make_loss", "MakeLoss"),
        "elsewhere",
        lambda step, found: in_gradients(found),
        "`make_loss` gives its gradient also where only functions without a gradient, "
        "such as `ones_like`, read it.",
        "What has no influence on the answer has a gradient of 0 here.",
    ),
    Known(
        MEMORY,
        REGRESSIONS,
        "value",
        lambda d: gradient(d) and len(d.program.inputs) == 1,
        "Without a label the gradient comes from memory that nobody wrote.",
        "A label that is not given is 0 here.",
    ),
    Known(
        MEMORY,
        CTC,
        "value",
        teaches_nothing,
        "The gradient of a word that needs more steps than there are is memory that nobody "
        "wrote; `ctc_loss` itself is 0 there.",
        "It is 0 here.",
    ),
    Known(
        MEMORY,
        CTC,
        "elsewhere",
        lambda step, found: in_gradients(found),
        "So is, then, the gradient of all that the scores were computed from.",
        "It is right here.",
    ),
    Known(
        MEMORY,
        ("all_finite", "multi_all_finite"),
        "value",
        lambda d: not attribute(d, "init_output"),
        "`all_finite(init_output=False)` answers with memory that nobody wrote.",
        "The answer is always written here.",
    ),
)
