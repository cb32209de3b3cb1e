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
    summed,
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


def disturbance(step, different):
    """The entry for a step whose harm is seen in others, or `None`.

    found:  what differs in the program that the step belongs to.
    """
    return next(
        (
            i
            for i, known in enumerate(KNOWN)
            if known.kind == "elsewhere"
            and (known.ops is ANY or step.op in known.ops)
            and known.when(step, different)
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
FUNCTIONS = tuple(
    """
    sqrt rsqrt cbrt rcbrt exp expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh
    cosh tanh arcsinh arccosh arctanh degrees radians erf erfinv gamma gammaln sigmoid softsign
    reciprocal mean log_sigmoid mish digamma
""".split()
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
        "`F.softrelu`, `F.broadcast_arctan2` and others don't exist.",
        (
            "Every operator has a public name. MXNet reaches some only through `Activation`"
            " or `mx.np`."
        ),
    ),
    Known(
        FEWER,
        ("BatchNorm_v1",),
        "error",
        mxnet_says("got multiple values"),
        "`BatchNorm_v1` has no moving mean and variance.",
        "It's an alias of `BatchNorm`.",
    ),
    Known(
        FEWER,
        ANY,
        "error",
        lambda d: d.ours is None and empty(d),
        "Arrays without elements are rejected.",
        "A 0 in a shape means 0. In MXNet's `nd`, it means *unknown*.",
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
        "An operator accepts every dtype for which it's defined.",
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
        "Some shapes, negative axes and attributes are rejected.",
        (
            "Negative axes count from the end everywhere, and an operator accepts every "
            "shape for which it's defined."
        ),
    ),
    Known(
        FEWER,
        ANY,
        "error",
        mxnet_says("could not execute a primitive"),
        "oneDNN's kernels raise an error.",
        "MXNet passes shapes to them that they don't support.",
    ),
    Known(
        FEWER,
        ("contrib.MultiBoxTarget",),
        "error",
        mxnet_says("p_label + i * label_width"),
        "A label of class -1 with coordinates other than -1 is rejected.",
        "The class alone marks a row as padding. Its coordinates are ignored.",
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
        "These operators have gradients. The gradient of a label or an index is 0.",
    ),
    Known(
        NO_GRADIENT,
        ANY,
        "error",
        we_say("the array is not on the tape"),
        (
            "`backward` from an array without a differentiable input, such as `argmax(x)`, "
            "gives zeros."
        ),
        "It raises an error, as for any array that isn't on the tape.",
    ),
    Known(
        ZERO,
        ANY,
        "error",
        both(whole, mxnet_says("died with -8")),
        "Dividing an integer by 0 crashes the process (SIGFPE).",
        "The result is 0 on all hardware.",
    ),
    Known(
        ZERO,
        ("/",),
        "value",
        both(whole, only_where(lambda a, b: b == 0), lambda d: (d.ours[d.apart] == 0).all()),
        "Dividing a number by an integer 0 gives the smallest integer.",
        "The result is 0 on all hardware.",
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
        "They're derivatives of constants: 0.",
    ),
    Known(
        ZERO,
        ("/", "broadcast_div", "elemwise_div"),
        "value",
        both(
            gradient,
            only_where(lambda a, b: (abs(b) < 1e-18) | (abs(a) > 1e37) | ~np.isfinite(a * b)),
        ),
        "Gradients of quotients overflow for divisors near 0, and for infinity.",
        (
            "They're computed as `-g * out / x` in IEEE arithmetic. MXNet divides by the "
            "square, which overflows."
        ),
    ),
    Known(
        ZERO,
        ("/", "broadcast_div", "elemwise_div"),
        "value",
        both(gradient, quotients_cancel),
        "Gradients of quotients that cancel, where a small divisor is broadcast.",
        "The sum differs by a rounding of its largest term, in either order.",
    ),
    Known(
        ZERO,
        ("%", "mod", "broadcast_mod", "broadcast_modulo"),
        "value",
        both(first_is("f"), only_where(lambda a, b: (b == 0) | ~np.isfinite(a + b))),
        "`x % 0` is 0, with a gradient of infinity.",
        "It's NaN, as in NumPy and IEEE arithmetic.",
    ),
    Known(
        ZERO,
        ("prod", "nanprod"),
        "value",
        both(gradient, only_where(lambda a: (a == 0) | ~np.isfinite(a))),
        "The gradient of a product at a factor of 0, or of one element that isn't finite, is NaN.",
        ("It's the product of the other factors. MXNet divides the whole product by the factor."),
    ),
    Known(
        ZERO,
        ("norm",),
        "value",
        both(
            gradient,
            only_where(lambda a: a == 0),
            lambda d: not d.ours[d.apart].any() and np.isnan(d.theirs[d.apart]).all(),
        ),
        "The gradient of a norm of zeros is NaN.",
        "It's 0, as in PyTorch.",
    ),
    Known(
        DTYPES,
        FUNCTIONS,
        "dtype",
        both(whole, one_off),
        "Functions and means of integers are truncated to integers.",
        "They're float32: the square root of 2 isn't 1.",
    ),
    Known(
        DTYPES,
        ("mean",),
        "dtype",
        both(
            whole,
            lambda d: abs(arrays(d)[0].astype("float64")).sum() > np.iinfo(d.theirs.dtype).max,
        ),
        "The sum inside a mean of integers wraps around.",
        "It's computed in floats.",
    ),
    Known(
        DTYPES,
        ("argmax", "argmin", "argmax_channel"),
        "dtype",
        lambda d: d.ours.dtype == "float32" and np.array_equal(d.ours, d.theirs),
        "`argmax` has the dtype of its input.",
        "It's float32 for every input, as for float32 in MXNet.",
    ),
    Known(
        DTYPES,
        ("abs", "ceil", "floor", "rint", "round", "trunc", "fix"),
        "value",
        both(whole, only_where(lambda a: abs(a) >= 2**53)),
        "Integers are converted to float64, which has 53 bits.",
        "Integers are returned unchanged.",
    ),
    Known(
        DTYPES,
        ("%", "mod", "broadcast_mod", "broadcast_modulo"),
        "value",
        both(whole, only_where(lambda a, b: np.maximum(abs(a), abs(b)) >= 2**53)),
        "Remainders of integers are computed in float64, which has 53 bits.",
        "They're exact.",
    ),
    Known(
        DTYPES,
        ("smooth_l1",),
        "value",
        both(whole, lambda d: abs(attribute(d, "scalar")) < 1 and not d.theirs.any()),
        (
            "`smooth_l1` of integers truncates the square of a `scalar` below 1 to 0, and "
            "always returns 0."
        ),
        "The formula is computed first, then truncated.",
    ),
    Known(
        DTYPES,
        ("arange",),
        "value",
        by(rows_of_whole_steps),
        "The step of an integer `arange` is truncated first.",
        "The elements are computed first, then truncated.",
    ),
    Known(
        DTYPES,
        ("**", "broadcast_power", "_power"),
        "value",
        both(whole, only_where(lambda a, b: (b < 0) | (abs(b) >= 2**24) | (abs(a) ** b >= 2**24))),
        "Powers of integers are computed in floats.",
        "They're exact, and wrap around as products do.",
    ),
    Known(
        DTYPES,
        SCALAR_SIGNS,
        "value",
        both(whole, lambda d: any(not abs(v) < 2**31 for v in scalars(d))),
        (
            "A scalar operand of an integer array is converted to an integer first, which "
            "is undefined for infinity, NaN or 1e30."
        ),
        "A scalar that the dtype can't represent is compared by its value.",
    ),
    Known(
        ROUNDS,
        ("radians", "degrees", "erf", "erfinv", "gamma", "gammaln", "digamma"),
        "value",
        both(double, near(2e-6)),
        "Constants inside these operators are float32 in float64 programs.",
        "They have full precision.",
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
        "The gradient of `gamma` near -0.504, a zero of digamma, is imprecise.",
        "Digamma has float64 precision.",
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
        "The gradient of `gammaln` near the zeros of digamma is imprecise.",
        "Digamma has float64 precision.",
    ),
    Known(
        ROUNDS,
        ("LeakyReLU",),
        "value",
        both(double, near(2e-6), lambda d: d.step.attrs.get("act_type") == "gelu"),
        "GELU of float64 has float32 precision.",
        "It has full precision.",
    ),
    Known(
        ROUNDS,
        ANY,
        "value",
        both(double, told_in_float32),
        (
            "Attributes and scalar operands are rounded to float32 in float64 programs. "
            "With rounded ones, our answer equals MXNet's."
        ),
        "They're Python floats with full precision.",
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
        (
            "For the gradient, an exponent is rounded to float32 before 1 is subtracted: "
            "the gradient of `x ** 16777217.0` has the wrong sign."
        ),
        "1 is subtracted from the Python float.",
    ),
    Known(
        ROUNDS,
        ("mean", "sum"),
        "value",
        both(lambda d: not gradient(d), sums_cancel),
        "Sums that cancel have different last digits.",
        "The order of additions differs. Both errors are roundings of the largest term.",
    ),
    Known(
        ROUNDS,
        SCALAR_SIGNS,
        "value",
        lambda d: any(0 < abs(v) < 1.2e-38 for v in scalars(d)),
        "Subnormal float32 scalars, such as 1e-45, have few digits.",
        "Their logarithm is that of the Python float.",
    ),
    Known(
        ROUNDS,
        ANY,
        "value",
        both(lambda d: not double(d), less_exact),
        "Differences of almost equal numbers lose digits.",
        "The float64 answer is closer to ours, or at most four times as far away.",
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
        "Their mean is rounded, so the square of a rounding error remains.",
    ),
    Known(
        ROUNDS,
        ("LayerNorm", "InstanceNorm", "GroupNorm"),
        "value",
        lambda d: (
            has_equal_numbers(d)
            and (abs(d.ours - d.theirs) <= 1e-4 * abs(arrays(d)[0]).max() * summed(d)).all()
        ),
        "Equal numbers equal their mean.",
        "Their mean is rounded, and the rounding error is divided by `sqrt(eps)`.",
    ),
    Known(
        ROUNDS,
        ("L2Normalization",),
        "value",
        both(
            gradient, lambda d: (abs(d.ours - d.theirs) <= 1e-6 / abs(arrays(d)[0]))[d.apart].all()
        ),
        "The gradient of a vector of almost equal elements loses digits.",
        "It loses different digits: 1 minus a number that rounds to 1.",
    ),
    Known(
        OTHER,
        ("shuffle",),
        "value",
        lambda d: np.array_equal(
            np.sort(d.ours, axis=None), np.sort(d.theirs, axis=None), equal_nan=True
        ),
        "Random permutations.",
        (
            "The same seed gives a different stream. Other tests compare shapes, dtypes and"
            " distributions."
        ),
    ),
    Known(
        OTHER,
        ("sample_multinomial", "random_uniform", "uniform", "normal"),
        "value",
        lambda d: not gradient(d),
        "Random numbers.",
        (
            "The same seed gives a different stream. Other tests compare shapes, dtypes and"
            " distributions."
        ),
    ),
    Known(
        OTHER,
        ("Dropout",),
        "value",
        both(
            lambda d: d.program.train and attribute(d, "p") > 0,
            lambda d: gradient(d) or only_where(lambda a: a == a)(d),
        ),
        "Random masks.",
        (
            "The same seed gives a different stream. Other tests compare shapes, dtypes and"
            " distributions."
        ),
    ),
    Known(
        OTHER,
        ("Dropout",),
        "elsewhere",
        lambda step, different: (
            step.attrs.get("p", 0.5) > 0 and any(d.program.train for d in different)
        ),
        "Random masks, which may agree by chance.",
        (
            "The same seed gives a different stream. Other tests compare shapes, dtypes and"
            " distributions."
        ),
    ),
    Known(
        OTHER,
        ("BatchNorm", "BatchNorm_v1"),
        "value",
        gamma_is_one,
        "`BatchNorm(fix_gamma=True)` writes 1 into the array gamma.",
        "A fixed gamma is treated as 1, and the array isn't changed.",
    ),
    Known(
        OTHER,
        ("BatchNorm", "BatchNorm_v1"),
        "elsewhere",
        lambda step, different: step.attrs.get("fix_gamma", True),
        "`BatchNorm(fix_gamma=True)` writes 1 into the array gamma.",
        "A fixed gamma is treated as 1, and the array isn't changed.",
    ),
    Known(
        OTHER,
        ("contrib.MultiBoxTarget",),
        "elsewhere",
        lambda step, different: in_gradients(different),
        "The gradients of anchors and labels are uninitialized memory.",
        "They're 0.",
    ),
    Known(
        OTHER,
        ("BatchNorm", "BatchNorm_v1"),
        "elsewhere",
        lambda step, different: any(d.name.startswith("state") for d in different),
        (
            "`BatchNorm` updates its moving mean and variance in `backward`, and only if a "
            "gradient reaches it."
        ),
        "They're updated in the forward pass, in training mode.",
    ),
    Known(
        OTHER,
        ("%", "mod", "broadcast_mod", "broadcast_modulo"),
        "value",
        both(gradient, only_where(lambda a, b: abs(a / b - np.rint(a / b)) < 1e-6 * abs(a / b))),
        (
            "The gradient of a remainder rounds a quotient that is close to an integer to "
            "that integer."
        ),
        "It rounds down, as the remainder does.",
    ),
    Known(
        OTHER,
        ("%",),
        "value",
        both(
            lambda d: not gradient(d) and "scalar" in d.step.attrs,
            only_where(lambda a, b: abs(a / b) > 2.0**50),
        ),
        (
            "A scalar is parsed from text, and may be off by one unit in the last place. "
            "The remainder of a large scalar is then different."
        ),
        "It's the nearest float.",
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
        (
            "`amp_cast` from float32 to integers rounds to the nearest. (That's oneDNN. "
            "With `MXNET_MKLDNN_ENABLED=0` it truncates, as `cast` does.)"
        ),
        "Every cast truncates, as in NumPy and C.",
    ),
    Known(
        OTHER,
        ("Pooling", "Pooling_v1"),
        "value",
        both(gradient, lambda d: d.step.attrs.get("pool_type", "max") == "max", only_where(twice)),
        (
            "If several elements of a window are the largest, the gradient goes to all of "
            "them, or to none."
        ),
        "It goes to the first.",
    ),
    Known(
        OTHER,
        ("Pooling", "Pooling_v1"),
        "value",
        both(gradient, lambda d: d.step.attrs.get("pool_type", "max") == "max", slope),
        (
            "The gradient of max pooling is lost: for global pooling along one axis after "
            "the first `kernel` elements, and for windows that extend beyond the data."
        ),
        "Central differences agree with ours.",
    ),
    Known(
        OTHER,
        ("Pooling", "Pooling_v1"),
        "value",
        both(
            gradient,
            lambda d: d.step.attrs.get("pool_type", "max") == "max" and not d.program.train,
            lambda d: np.isclose(d.ours.sum(), d.theirs.sum()),
        ),
        (
            "After `record(train_mode=False)`, the gradient of max pooling goes to the first "
            "element of each window."
        ),
        "It goes to the largest, as in training.",
    ),
    Known(
        OTHER,
        ("LRN",),
        "value",
        both(gradient, lambda d: not d.program.train, slope),
        "After `record(train_mode=False)`, the gradient of `LRN` is infinite or arbitrary.",
        "Central differences agree with ours.",
    ),
    Known(
        OTHER,
        ("Pooling_v1",),
        "value",
        lambda d: (
            attribute(d, "pool_type") == "avg" and attribute(d, "pooling_convention") == "full"
        ),
        "`Pooling_v1` divides a window's sum by the kernel's size, even beyond the data.",
        "It divides by the number of elements, as `Pooling` does in both.",
    ),
    Known(
        OTHER,
        ("Pooling", "Pooling_v1"),
        "elsewhere",
        lambda step, different: (
            step.attrs.get("pool_type", "max") == "max"
            and in_gradients(different)
            and all(slope(d) for d in different if gradient(d) and d.kind == "value")
        ),
        (
            "The gradient of max pooling is lost in some programs, but not if it's the only"
            " operator."
        ),
        "Central differences agree with ours.",
    ),
    Known(
        OTHER,
        ("Convolution_v1",),
        "value",
        both(gradient, lambda d: set(d.step.attrs.get("dilate", ())) - {1}, slope),
        "The gradient of a dilated `Convolution_v1` goes to adjacent elements.",
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
        "It's the logarithm itself, which is unbounded.",
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
        (
            "For more than two axes, the gradient of `SoftmaxActivation` sums along axis 1,"
            " as with `mode='channel'`."
        ),
        "The forward pass normalizes the last axis, and the gradient matches it.",
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
        ("`MakeLoss(normalization='batch')` divides by the lengths of all axes except the last."),
        ("It divides by the length of the first axis, as MXNet's documentation specifies."),
    ),
    Known(
        NANS,
        ("norm",),
        "value",
        lambda d: not gradient(d) and (np.isinf(d.ours) & np.isnan(d.theirs))[d.apart].all(),
        "The norm of infinity is NaN.",
        "It's infinity.",
    ),
    Known(
        NANS,
        ("contrib.ROIAlign",),
        "value",
        lambda d: (
            not (np.isin(arrays(d)[1][:, 0].astype(int), range(len(arrays(d)[0])))).all()
            and not d.ours[d.apart].any()
        ),
        "A region of an image that isn't in the batch is read from other memory.",
        "It's 0.",
    ),
    Known(
        NANS,
        ("contrib.ROIAlign",),
        "value",
        lambda d: not np.isfinite(arrays(d)[0]).all() and np.isnan(d.theirs[d.apart]).all(),
        "A weight of 0 makes NaN of infinity and NaN.",
        "Elements with a weight of 0 aren't read.",
    ),
    Known(
        NANS,
        ("smooth_l1",),
        "value",
        lambda d: np.isinf(attribute(d, "scalar")) and np.isnan(d.theirs[d.apart]).all(),
        "With `scalar=inf`, 0 becomes NaN.",
        "It's 0: with that scalar, the function is the absolute value.",
    ),
    Known(
        NANS,
        ("norm",),
        "value",
        both(gradient, only_where(np.isnan)),
        "The gradient of a norm at NaN is 0.",
        "It's NaN.",
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
        "For a finite element it's 0, a division by infinity.",
    ),
    Known(
        NANS,
        ("softmax", "log_softmax", "softmin"),
        "value",
        both(
            only_in_rows(lambda a: ~np.isfinite(a)),
            lambda d: not np.isfinite(d.ours[d.apart]).any(),
        ),
        ("The softmax of infinity and NaN, and its gradient, have elements that aren't NaN."),
        "The whole row is NaN.",
    ),
    Known(
        NANS,
        ("SoftmaxOutput", "Softmax"),
        "value",
        both(not_finite, lambda d: not np.isfinite(d.ours[d.apart]).any()),
        ("The outputs and gradients of a loss of infinity and NaN have elements that aren't NaN."),
        "The whole row is NaN.",
    ),
    Known(
        NANS,
        ("sort", "argsort", "topk"),
        "value",
        only_in_rows(np.isnan),
        (
            "NaN may end up anywhere in a sorted row, because it's neither less nor greater"
            " than a number."
        ),
        "It's the largest, as in NumPy.",
    ),
    Known(
        NANS,
        ("sign",),
        "value",
        both(lambda d: not gradient(d), only_where(np.isnan)),
        "The sign of NaN is 0.",
        "It's NaN, as in NumPy.",
    ),
    Known(
        NANS,
        ("square",),
        "value",
        both(gradient, only_where(lambda a: abs(a) > 1e38)),
        "The gradient of a square is infinite if doubling its input overflows.",
        "The incoming gradient is multiplied first.",
    ),
    Known(
        NANS,
        ("linalg.trsm",),
        "value",
        both(not_finite, lambda d: np.isnan(d.theirs[d.apart]).all()),
        "The solution of equations with infinity is NaN.",
        "Columns are infinite where IEEE arithmetic makes them so.",
    ),
    Known(
        NANS,
        ("abs",),
        "value",
        both(gradient, only_where(np.isnan)),
        "The gradient of `abs` at NaN is 0.",
        "It's NaN.",
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
        ("The gradient of a power is NaN if the power, its base or its gradient is infinite."),
        "It's `g * b * a ** (b - 1)` in IEEE arithmetic.",
    ),
    Known(
        NANS,
        ("nansum", "nanprod"),
        "value",
        both(not_finite, lambda d: np.isnan(d.theirs[d.apart]).all()),
        "A sum or product that skips NaN turns infinity into NaN.",
        "It's infinite.",
    ),
    Known(
        NANS,
        ("Pooling", "Pooling_v1", "ROIPooling"),
        "value",
        lambda d: (
            (np.isnan(d.ours) | (d.ours == -np.inf)) & (d.theirs == np.finfo(d.theirs.dtype).min)
        )[d.apart].all(),
        ("The maximum of elements that are all minus infinity is the lowest finite number."),
        "It's minus infinity.",
    ),
    Known(
        NANS,
        ("Activation",),
        "value",
        both(lambda d: attribute(d, "act_type") == "relu", only_where(np.isnan)),
        "`Activation('relu')` of NaN is 0.",
        "It's NaN, as with `relu`.",
    ),
    Known(
        NANS,
        ("clip",),
        "elsewhere",
        lambda step, different: any(
            gradient(d)
            and d.kind == "value"
            and np.isnan(d.ours[d.apart]).all()
            and (d.theirs[d.apart] == 0).all()
            for d in different
        ),
        "An infinite gradient is 0 where `clip` clips.",
        "It's multiplied by 0, which gives NaN.",
    ),
    Known(
        NANS,
        ("clip",),
        "value",
        both(gradient, only_where(np.isnan)),
        "The gradient of `clip` passes at NaN, because NaN isn't beyond either end.",
        "It's 0, because NaN isn't between the ends either.",
    ),
    Known(
        NANS,
        ("relu",),
        "value",
        both(gradient, only_where(np.isnan)),
        "The gradient of `relu` at NaN is NaN.",
        "It's 0, because NaN > 0 is false.",
    ),
    Known(
        NANS,
        ("gammaln", "digamma"),
        "value",
        both(gradient, only_where(lambda a: (a <= 0) & (a == np.rint(a)))),
        "Gradients at the poles are large finite numbers.",
        "They're infinite.",
    ),
    Known(
        NANS,
        ("Convolution", "Convolution_v1", "Deconvolution"),
        "value",
        both(not_finite, lambda d: np.isnan(d.ours[d.apart]).all()),
        "NaN or infinity reaches only the elements it's multiplied by.",
        "Gaps in a dilated window are multiplied by 0, which turns infinity into NaN.",
    ),
    Known(
        NANS,
        ANY,
        "elsewhere",
        lambda step, different: (
            stops_gradients(step)
            and any(
                gradient(d)
                and d.kind == "value"
                and np.isnan(d.theirs[d.apart]).all()
                and np.isfinite(d.ours[d.apart]).all()
                for d in different
            )
        ),
        (
            "Operators without a gradient, such as `x < y`, propagate zeros, and 0 times "
            "infinity becomes NaN in the operator before."
        ),
        "They propagate nothing.",
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
        "It's 0.",
    ),
    Known(
        NANS,
        ("Pooling", "Pooling_v1", "ROIPooling"),
        "value",
        both(not_finite, lambda d: np.isnan(d.ours[d.apart]).all()),
        "The maximum of a window with NaN may be a number.",
        "It's NaN, as in NumPy.",
    ),
    Known(
        NANS,
        ("ROIPooling",),
        "value",
        both(
            gradient, only_where(lambda a, _: np.isnan(a)), lambda d: (d.theirs[d.apart] == 0).all()
        ),
        "A region whose maximum is NaN has no gradient.",
        "It goes to the first NaN.",
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
        "If the exact answer is infinite, the result may be NaN, or vice versa.",
        "Infinities are added in a different order.",
    ),
    Known(
        NANS,
        ("LeakyReLU",),
        "value",
        both(gradient, lambda d: attribute(d, "act_type") == "leaky", only_where(np.isnan)),
        "The gradient of a leaky relu at NaN is that of a positive number.",
        "It's that of the others, because NaN > 0 is false.",
    ),
    Known(
        NANS,
        ("LeakyReLU",),
        "value",
        both(
            gradient,
            lambda d: attribute(d, "act_type") == "elu",
            only_where(lambda x: np.isnan(x) | (0 < x) & (x < 1.2e-38)),
        ),
        "The gradient of ELU at NaN is that above 0, and at a subnormal number that at 0.",
        "It's NaN at NaN, and a subnormal number is positive.",
    ),
    Known(
        NANS,
        ("contrib.AdaptiveAvgPooling2D", "contrib.BilinearResize2D"),
        "value",
        both(not_finite, lambda d: np.isnan(d.ours[d.apart]).all()),
        "NaN and infinity stay in the windows that contain them.",
        "They make whole rows and columns NaN, because means are products with a matrix of shares.",
    ),
    Known(
        NANS,
        ("contrib.box_iou",),
        "value",
        both(not_finite, lambda d: np.isnan(d.ours[d.apart]).all()),
        "The overlap of boxes with NaN is 0.",
        "It's unknown: NaN.",
    ),
    Known(
        NANS,
        ("contrib.box_decode",),
        "value",
        both(
            not_finite, lambda d: not (np.isfinite(d.ours) | np.isfinite(d.theirs))[d.apart].any()
        ),
        "The center of an anchor with an infinite corner is NaN.",
        ("It's the mean of the corners, infinity. MXNet adds half of the height to a corner."),
    ),
    Known(
        NANS,
        ("SVMOutput",),
        "value",
        both(gradient, lambda d: not np.isfinite(d.ours[d.apart]).any()),
        "The gradient of a NaN is 0.",
        "It's NaN.",
    ),
    Known(
        MEMORY,
        ANY,
        "elsewhere",
        lambda step, different: stops_gradients(step) and dies(different),
        (
            "`backward` crashes with a segmentation fault if only operators without a "
            "gradient use a function of a result: `exp(LayerNorm(x)) > 0`."
        ),
        "The gradient is 0.",
    ),
    Known(
        MEMORY,
        ("contrib.ROIAlign",),
        "error",
        both(no_such_image, mxnet_says(*DIED, "died with -11")),
        "A region of a nonexistent image crashes the process.",
        "Such a region is 0 and gets no gradient.",
    ),
    Known(
        MEMORY,
        ("contrib.ROIAlign",),
        "value",
        both(no_such_image, of_missing_images),
        "A region of a nonexistent image contains arbitrary memory.",
        "Such a region is 0 and gets no gradient.",
    ),
    Known(
        MEMORY,
        ("Deconvolution",),
        "elsewhere",
        lambda step, different: dies(different),
        (
            "`backward` crashes the process if the weight has a second use, so that two "
            "gradients have to be added."
        ),
        "The two are added.",
    ),
    Known(
        MEMORY,
        ("SequenceLast",),
        "error",
        both(mxnet_says(*DIED), lambda d: not d.step.attrs.get("use_sequence_length")),
        "`SequenceLast` without lengths crashes the process in `backward`.",
        "The last step gets its gradient.",
    ),
    Known(
        MEMORY,
        ("SequenceLast", "SequenceMask", "SequenceReverse"),
        "elsewhere",
        lambda step, different: step.attrs.get("use_sequence_length") and in_gradients(different),
        "The gradient of lengths is uninitialized memory.",
        "The gradient of lengths is 0.",
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
        "`tile` to four or more axes leaves elements uninitialized.",
        "All elements are written.",
    ),
    Known(
        MEMORY,
        ("Crop",),
        "elsewhere",
        lambda step, different: in_gradients(different),
        "The gradient of cropped elements is uninitialized memory.",
        "It's 0.",
    ),
    Known(
        MEMORY,
        ("SequenceLast",),
        "elsewhere",
        lambda step, different: not step.attrs.get("use_sequence_length"),
        "`SequenceLast` without lengths writes a gradient out of bounds.",
        "The last step gets its gradient.",
    ),
    Known(
        MEMORY,
        ("SequenceLast",),
        "value",
        both(gradient, lambda d: not d.step.attrs.get("use_sequence_length")),
        "`SequenceLast` without lengths has no gradient.",
        "The last step gets its gradient.",
    ),
    Known(
        MEMORY,
        (*REGRESSIONS, "SVMOutput", "SoftmaxOutput", "Softmax"),
        "elsewhere",
        lambda step, different: in_gradients(different),
        (
            "The gradient of a label is uninitialized memory, which is added to the label's"
            " other gradients."
        ),
        "The gradient of a label is 0.",
    ),
    Known(
        OTHER,
        ("make_loss", "MakeLoss"),
        "elsewhere",
        lambda step, different: in_gradients(different),
        (
            "`make_loss` produces a gradient even if only operators without a gradient, "
            "such as `ones_like`, use it."
        ),
        "A value that doesn't influence the result has a gradient of 0.",
    ),
    Known(
        MEMORY,
        REGRESSIONS,
        "value",
        lambda d: gradient(d) and len(d.program.inputs) == 1,
        "Without a label, the gradient is computed from uninitialized memory.",
        "A missing label is 0.",
    ),
    Known(
        MEMORY,
        CTC,
        "value",
        teaches_nothing,
        (
            "If a label sequence needs more steps than there are, its gradient is "
            "uninitialized memory, and `ctc_loss` is 0."
        ),
        "It's 0.",
    ),
    Known(
        MEMORY,
        CTC,
        "elsewhere",
        lambda step, different: in_gradients(different),
        "The gradients of everything before the scores are also uninitialized memory.",
        "They're correct.",
    ),
    Known(
        MEMORY,
        ("all_finite", "multi_all_finite"),
        "value",
        lambda d: not attribute(d, "init_output"),
        "`all_finite(init_output=False)` returns uninitialized memory.",
        "The result is always written.",
    ),
)
