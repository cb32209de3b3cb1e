"""Where MXNet 1.9.1 answers otherwise, on purpose or by its own faults, and why.

One table: `beside` asks it about every difference that random programs find, and
`book/mxnet_differences.md` is written from it. An entry stands for as little as can be
said: these operators, this kind of difference, on such numbers.
"""
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from beside_child import answers

import minihybrid as mh

ANY = "any operator"


@dataclass(frozen=True)
class Known:
    """One known difference.

    title:  a heading in the book; several entries may share one.
    ops:    names of operators, or ANY.
    kind:   "error" (one of the two raises), "shape", "dtype", "value", or "elsewhere":
            what the step does is seen where others share its arrays.
    when:   Difference -> whether it is this one; for "elsewhere", of the Step.
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


def disturbance(step):
    """The entry for a step whose harm is seen in others, or `None`."""
    return next((i for i, known in enumerate(KNOWN) if known.kind == "elsewhere" and
                 step.op in known.ops and known.when(step)), None)


# -- what entries ask about a difference -----------------------------------------------
def mxnet_says(*texts):
    """MXNet raises, and its message has one of these parts; we do not raise."""
    return lambda d: d.ours is None and any(t in d.theirs for t in texts)


def we_say(text):
    return lambda d: d.theirs is None and text in d.ours


def arrays(d):
    return [i.array() for i in d.program.inputs]


def scalars(d):
    return [v for step in d.program.steps for v in step.attrs.values()
            if isinstance(v, (int, float))]


def empty(d):
    return any(0 in i.shape for i in d.program.inputs)


def whole(d):
    """The first input is of whole numbers."""
    return d.program.inputs[0].dtype[0] in "iu"


def double(d):
    return d.program.inputs[0].dtype == "float64"


def has_nan(d):
    return any(np.isnan(a).any() for a in arrays(d) if a.dtype.kind == "f")


def not_finite(d):
    """There is infinity or NaN among the inputs or the attributes."""
    return any(not np.isfinite(a).all() for a in arrays(d)) or \
        any(not np.isfinite(v) for v in scalars(d))


def gradient(d):
    return d.name.startswith("gradient")


def state(d):
    return d.name.startswith("state")


def near(share):
    """Where both are finite they differ by at most this share of the largest."""
    def when(d):
        a, b = np.float64(d.ours), np.float64(d.theirs)
        good = np.isfinite(a) & np.isfinite(b)
        size = np.abs(a[good]).max(initial=0.01)
        return np.array_equal(np.isfinite(a), np.isfinite(b)) and \
            np.abs(a[good] - b[good]).max(initial=0) <= share * size
    return when


def less_exact(d):
    """Rounding, and MXNet's answer is the farther one from the answer in float64."""
    if not near(1e-3)(d):
        return False
    inputs = tuple(replace(i, dtype="float64") if i.dtype[0] == "f" else i
                   for i in d.program.inputs)
    exact = answers(mh, d.program.but(inputs=inputs)).get(d.name)
    if exact is None:
        return False
    good = np.isfinite(exact) & np.isfinite(d.ours)
    ours, theirs = (np.abs(v[good] - exact[good]).max(initial=0)
                    for v in (d.ours, d.theirs))
    return ours <= theirs


def ties(d):
    """Numbers occur twice."""
    data = arrays(d)[0]
    return np.unique(data).size < data.size


def gamma_is_one(d):
    return d.name == "state 1" and (d.theirs == 1).all()


def both(*conditions):
    return lambda d: all(condition(d) for condition in conditions)


def always(d):
    return True


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
    "sqrt", "rsqrt", "cbrt", "rcbrt", "exp", "expm1", "log", "log2", "log10", "log1p",
    "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh",
    "arcsinh", "arccosh", "arctanh", "degrees", "radians", "erf", "erfinv", "gamma",
    "gammaln", "sigmoid", "softsign", "reciprocal", "mean", "log_sigmoid", "mish",
    "digamma")

REGRESSIONS = ("LinearRegressionOutput", "LogisticRegressionOutput",
               "MAERegressionOutput")

KNOWN = (
    Known(FEWER, ANY, "error", mxnet_says("AttributeError: module 'mxnet"),
        "`F.softrelu`, `F.broadcast_arctan2` and others are no functions of MXNet.",
        "Every operator here has a public name; MXNet reaches some only through "
        "`Activation` or `mx.np`."),
    Known(FEWER, ("BatchNorm_v1",), "error", mxnet_says("got multiple values"),
        "`BatchNorm_v1` takes no moving mean and variance.",
        "It is `BatchNorm` here, under its old name."),
    Known(FEWER, ANY, "error", lambda d: d.ours is None and empty(d),
        "Arrays without elements are refused.",
        "A 0 in a shape means *unknown* to MXNet's `nd`; here it means 0."),
    Known(FEWER, ANY, "error", mxnet_says(
        "Unsupported data type", "data type do not match",
        "only support floating point",
        "unknown type for MKLDNN", "requires uniform type", "only supports floating",
        "Unknown type enum", "dot only supports", "does not support",
        "not supported for"),
        "Kernels exist for some dtypes only, often not for float64.",
        "Here an operator takes all dtypes for which it has a meaning."),
    Known(FEWER, ANY, "error", mxnet_says(
        "1D convolution not supported", "Input data should be 4D", "At lease 3 dim",
        "at least 3 dimensions", "must be a tensor of square matrices",
        "Cannot transpose vectors", "must be in range [0", "Invalid Parameter format",
        "Cannot find argument", "Out of range value",
        "have a least"),
        "Shapes, negative axes and attributes that are refused.",
        "Axes count from the back everywhere here, and an operator takes every shape "
        "for which it has a meaning."),
    Known(FEWER, ANY, "error", mxnet_says("could not execute a primitive"),
        "oneDNN's kernels refuse to run.",
        "MXNet hands some shapes to them that they do not take."),
    Known(NO_GRADIENT, ANY, "error", mxnet_says(
        "non-differentiable because", "calculate data gradient",
        "Cannot take gradient wrt", "wrong req"),
        "`backward` raises.",
        "Here these operators have gradients, and a label or an index has a gradient "
        "of 0."),
    Known(NO_GRADIENT, ANY, "error", we_say("the array is not on the tape"),
        "`backward` from an array that nothing can be differentiated for, such as "
        "`argmax(x)`, gives zeros.",
        "Here it raises, as from any array that is not on the tape: to ask for it is "
        "a mistake."),
    Known(ZERO, ANY, "error", both(whole, mxnet_says("died with -8")),
        "A whole number divided by 0 ends the process (SIGFPE).",
        "The result here is that of the hardware-independent rule: 0."),
    Known(ZERO, ("/", "broadcast_div", "elemwise_div"), "value",
        lambda d: gradient(d) and (0.0 in scalars(d) or any(
              (abs(a) < 1e-18).any() or not np.isfinite(a).all() for a in arrays(d))),
        "Gradients of quotients by numbers near 0, and of infinity.",
        "Here they are what IEEE arithmetic makes of `-g * out / x`; MXNet divides by "
        "the square, which overflows."),
    Known(ZERO, ("%", "mod", "broadcast_mod", "broadcast_modulo"), "value",
        lambda d: not whole(d) and (0.0 in scalars(d) or any(
              (a == 0).any() or not np.isfinite(a).all() for a in arrays(d))),
        "`x % 0` is 0, with a gradient of infinity.",
        "Here it is NaN, as in NumPy and in IEEE arithmetic."),
    Known(DTYPES, FUNCTIONS, "dtype", whole,
        "Functions and means of whole numbers are whole numbers again, cut off.",
        "Here they are float32: the square root of 2 is not 1."),
    Known(DTYPES, ("argmax", "argmin", "argmax_channel"), "dtype", always,
        "`argmax` has the dtype of its input.",
        "Here it is float32 for every input, as for float32 in MXNet."),
    Known(DTYPES, ("amp_cast",), "dtype", always,
        "`amp_cast` leaves whole numbers as they are.", "Here it is `cast`."),
    Known(DTYPES, ("**", "broadcast_power", "_power"), "value", whole,
        "Powers of whole numbers are computed in floats.",
        "Here they are exact, and wrap around like products."),
    Known(DTYPES, SCALAR_SIGNS, "value", both(
        whole, lambda d: any(isinstance(v, float) for v in scalars(d))),
        "A number beside whole numbers is made a whole number first, which has no "
        "meaning for infinity, NaN or 1e30.",
        "Here a number that the dtype cannot hold is compared as the number that it "
        "is."),
    Known(ROUNDS, (
        "LeakyReLU", "radians", "degrees", "erf", "erfinv", "gamma", "gammaln",
        "hard_sigmoid", "GroupNorm", "InstanceNorm", *REGRESSIONS, "SequenceMask",
        "BatchNorm", "LayerNorm", "MakeLoss", "Softmax", "SoftmaxOutput",
        "digamma", *SCALAR_SIGNS, "clip", "smooth_l1"),
        "value", both(double, near(2e-6)),
        "Constants and attributes of these operators are float32 in float64 programs.",
        "Here they are Python's numbers, with all their digits."),
    Known(ROUNDS, SCALAR_SIGNS, "value", both(
        double, lambda d: any(float(np.float32(v)) != v for v in scalars(d))),
        "A number beside a float64 array is rounded to float32 first.",
        "Here it is Python's number, with all its digits."),
    Known(ROUNDS, SCALAR_SIGNS, "value", lambda d: any(
        0 < abs(v) < 1.2e-38 for v in scalars(d)),
        "Numbers below the smallest normal float32, such as 1e-45, have few digits.",
        "Their logarithm is that of Python's number here."),
    Known(ROUNDS, ANY, "value", both(lambda d: not double(d), less_exact),
        "Differences of almost equal numbers lose digits.",
        "The answer in float64 is nearer to ours."),
    Known(OTHER, (
        "Dropout", "sample_multinomial", "shuffle", "random_uniform", "uniform",
        "normal"), "value", always,
        "Random numbers.",
        "The same seed gives another stream; shapes, dtypes and distributions are "
        "compared in tests of their own."),
    Known(OTHER, ("BatchNorm", "BatchNorm_v1"), "value", gamma_is_one,
        "`BatchNorm(fix_gamma=True)` writes 1 into the array gamma.",
        "Here an input that is called fixed is taken as 1 and left alone."),
    Known(OTHER, ("BatchNorm", "BatchNorm_v1"), "elsewhere",
        lambda step: step.attrs.get("fix_gamma", True),
        "`BatchNorm(fix_gamma=True)` writes 1 into the array gamma.",
        "Here an input that is called fixed is taken as 1 and left alone."),
    Known(OTHER, ("amp_cast", "cast", "Cast"), "value", always,
        "A cast of float32 to whole numbers rounds to the nearest, one of float64 "
        "cuts off.", "Here every cast cuts off, as in NumPy and in C."),
    Known(OTHER, ("Pooling", "Pooling_v1"), "value", both(
        gradient, lambda d: d.step.attrs.get("pool_type", "max") == "max", ties),
        "Where several numbers of a window are the largest, the gradient goes to all "
        "of them, or to none.", "Here it goes to the first."),
    Known(OTHER, ("LeakyReLU",), "value", both(
        gradient, lambda d: d.step.attrs.get("act_type") == "selu"),
        "The gradient of SELU below 0.",
        "MXNet adds its factor once too often; central differences agree with ours."),
    Known(OTHER, ("softmax_cross_entropy",), "value", always,
        "`softmax_cross_entropy` of a class with a probability below 1e-8 is 18.4.",
        "Here it is the logarithm itself, which goes on to any size."),
    Known(OTHER, ("SoftmaxActivation",), "value", gradient,
        "The gradient of `SoftmaxActivation` of more than two axes.",
        "MXNet's forward pass normalises the last axis and its gradient all axes "
        "together; central differences agree with ours."),
    Known(OTHER, ("MakeLoss",), "value", both(
        gradient, lambda d: d.step.attrs.get("normalization") == "batch"),
        "`MakeLoss(normalization='batch')` of more than two axes.",
        "MXNet divides by the lengths of all axes but the last; here by the first, "
        "as its text says."),
    Known(NANS, ("abs", "relu", "LeakyReLU", "Activation", "clip", "softmax",
                 "log_softmax", "softmin", "nansum", "nanprod",
                 "norm", "Pooling", "max", "min", "sort", "argsort", "topk", "sign",
                 "LayerNorm", "InstanceNorm", "BatchNorm", "L2Normalization",
                 "smooth_l1"),
        "value", not_finite,
        "NaN and infinity in comparisons, in gradients of kinks, in norms.",
        "A NaN stays one here, as in NumPy; MXNet loses some and finds others."),
    Known(MEMORY, ("SequenceLast",), "error", mxnet_says("died"),
        "`SequenceLast` without lengths ends the process in `backward`.",
        "The last step gets its gradient here."),
    Known(MEMORY, ("SequenceLast", "SequenceMask", "SequenceReverse"), "elsewhere",
        lambda step: step.attrs.get("use_sequence_length"),
        "The gradient of lengths is memory that nobody wrote.",
        "Lengths have a gradient of 0 here."),
    Known(MEMORY, ("Crop",), "elsewhere", always,
        "The gradient of what `Crop` leaves out is memory that nobody wrote.",
        "It is 0 here."),
    Known(MEMORY, ("SequenceLast",), "elsewhere",
        lambda step: not step.attrs.get("use_sequence_length"),
        "`SequenceLast` without lengths writes a gradient where it should not.",
        "The last step gets its gradient here."),
    Known(MEMORY, ("SequenceLast",), "value", gradient,
        "`SequenceLast` without lengths has no gradient.",
        "The last step gets its gradient here."),
    Known(MEMORY, (*REGRESSIONS, "SVMOutput", "SoftmaxOutput", "Softmax"), "elsewhere",
        always, "The gradient of a label is memory that nobody wrote; it is added to "
        "that of an array which is also used elsewhere.",
        "A label has a gradient of 0 here."),
    Known(OTHER, ("make_loss", "MakeLoss"), "elsewhere", always,
        "`make_loss` gives its gradient also where only functions without a gradient, "
        "such as `ones_like`, read it.",
        "What has no influence on the answer has a gradient of 0 here."),
    Known(MEMORY, REGRESSIONS, "value",
        lambda d: gradient(d) and len(d.program.inputs) == 1,
        "Without a label the gradient comes from memory that nobody wrote.",
        "A label that is not given is 0 here."),
    Known(MEMORY, ("all_finite", "multi_all_finite"), "value", always,
        "`all_finite(init_output=False)` answers with memory that nobody wrote.",
        "The answer is always written here."),
    Known(MEMORY, ("contrib.isfinite", "contrib.isnan", "contrib.isinf"),
        "value", whole,
        "`isfinite` of whole numbers is 0 or 1, changing from call to call.",
        "Whole numbers are finite."),
)
