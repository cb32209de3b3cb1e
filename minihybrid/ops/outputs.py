"""Output layers, whose gradient is that of a loss they don't compute.

Defines: `SoftmaxOutput`, the regression outputs, `SVMOutput`, `make_loss`, `MakeLoss`.

They end a symbolic net: the backward pass starts at them, and they ignore an incoming
gradient. Labels have no gradient.
Not supported: sparse labels.
"""

import math

import numpy as np

from minihybrid.core.op import REQUIRED, Spec, boolean, choice, integer, number, optional
from minihybrid.ops.elementwise import cast, ones_like, relu
from minihybrid.ops.filled import arange, make
from minihybrid.ops.neural import softmax
from minihybrid.ops.reduce import sum_
from minihybrid.ops.registry import OPS, register
from minihybrid.ops.shapes import floating, merge

NORMALIZATION = (choice("null", "batch", "valid"), "null")


def _hits(data, label, classes):
    """Return the one-hot label: data (N, classes, S), label (N, 1, S)."""
    places = make(data, arange, start=classes)
    return _to(places, data).reshape((1, -1, 1)).broadcast_equal(_to(label, data))


def _to(value, data):
    return OPS["_cast_like"](value, data)


def _at_least_one(count):
    return OPS["_maximum_scalar"](count, scalar=1.0)


def _floats(specs, data):
    """Convert integer data to floats."""
    kind = floating(specs[0].dtype)
    return data if specs[0].dtype == kind else cast(data, dtype=kind)


def _labeled(op, rule):
    """Make a shape rule that infers the label's shape from the data's.

    rule:    (data shape, **attrs) -> allowed label shapes, the default first.
    """

    def infer(specs, **attrs):
        data, label = specs
        out = Spec(data.shape, floating(data.dtype))
        if data.shape is None or -1 in data.shape:
            return specs, [out]
        allowed = rule(data.shape, **attrs)
        if label.shape not in allowed:
            merge(f"{op}: with data {data.shape}", "label", label.shape, allowed[0])
            label = Spec(allowed[0], label.dtype)
        return [data, Spec(label.shape, label.dtype or data.dtype)], [out]

    return infer


# -- softmax with cross entropy --------------------------------------------------------
def _head_grad(
    g,
    out,
    data,
    label,
    classes,
    divisor,
    grad_scale,
    ignore_label,
    use_ignore,
    valid,
    out_grad,
    smooth_alpha,
):
    """Return softmax(data) minus the label's distribution: the gradient of cross entropy."""
    hit = _hits(out, label, classes) if classes else _to(label, out)
    rest = smooth_alpha / max(classes - 1, 1)
    grad = out - (hit * (1 - smooth_alpha - rest) + rest if smooth_alpha else hit)
    counts = _to(label != ignore_label, out) if use_ignore or valid else None
    grad = (grad * counts if use_ignore else grad) * (grad_scale / divisor)
    if valid:
        grad = grad / _at_least_one(sum_(counts)).reshape((1, 1, 1))
    return grad * g if out_grad else grad, None


SOFTMAX = {
    "grad_scale": (number, 1.0),
    "ignore_label": (number, -1.0),
    "use_ignore": (boolean, False),
    "out_grad": (boolean, False),
    "smooth_alpha": (number, 0.0),
}
softmax_head = register(
    "_softmax_head",
    inputs=("data", "label"),
    grad_barrier=True,
    attrs={"classes": (integer, 0), "divisor": (number, 1.0), "valid": (boolean, False), **SOFTMAX},
    infer=lambda specs, **_: (specs, softmax.infer(specs[:1], axis=1, temperature=None)[1]),
    eager=lambda data, label, **_: softmax.eager(data, axis=1, temperature=None),
    lower=lambda specs, data, label, **_: softmax.lower(specs, data, axis=1, temperature=None),
    grad=_head_grad,
    doc="softmax of (N, classes, S) along axis 1, with the gradient of cross entropy. With "
    "classes=0, labels are distributions themselves.",
)


def _softmax_parts(shape, multi_output, preserve_shape):
    """Return (N, classes, S), where softmax runs over the middle axis."""
    if multi_output:
        return shape[0], shape[1], math.prod(shape[2:])
    if preserve_shape:
        return math.prod(shape[:-1]), shape[-1], 1
    return shape[0], math.prod(shape[1:]), 1


def _softmax_labels(shape, multi_output, preserve_shape, **_):
    if multi_output:
        rest = shape[2:]
        return ((shape[0], math.prod(rest)), (shape[0], *rest), (shape[0], 1, *rest), shape)
    return (shape[:-1] if preserve_shape else shape[:1], shape)


def _softmax_output(specs, data, label, multi_output, preserve_shape, normalization, **attrs):
    n, classes, inner = _softmax_parts(specs[0].shape, multi_output, preserve_shape)
    values = _floats(specs, data).reshape((n, classes, inner))
    if specs[1].shape == specs[0].shape:
        label = label.reshape((n, classes, inner))
        out = softmax_head(values, label, grad_scale=attrs["grad_scale"])
    else:
        positions = {"null": inner, "batch": n * inner, "valid": 1}[normalization]
        out = softmax_head(
            values,
            label.reshape((n, 1, inner)),
            classes=classes,
            divisor=max(positions, 1),
            valid=normalization == "valid",
            **attrs,
        )
    return out.reshape_like(data)


softmax_output = register(
    "SoftmaxOutput",
    "Softmax",
    inputs=("data", "label"),
    attrs={
        "grad_scale": (number, 1.0),
        "ignore_label": (number, -1.0),
        "multi_output": (boolean, False),
        "use_ignore": (boolean, False),
        "preserve_shape": (boolean, False),
        "normalization": NORMALIZATION,
        "out_grad": (boolean, False),
        "smooth_alpha": (number, 0.0),
    },
    infer=_labeled("SoftmaxOutput", _softmax_labels),
    expand=_softmax_output,
    doc="softmax, whose gradient is that of cross entropy with the label's class: "
    "along axis 1 (multi_output), the last axis (preserve_shape), or over all axes but the "
    "first. The gradient is divided by the positions a sample (multi_output), by all positions "
    "(normalization='batch'), or by those whose label is not `ignore_label` ('valid'). Unlike "
    "MXNet, smooth_alpha holds with multi_output, too, data of more than two axes has one label "
    "a sample, and out_grad multiplies by the gradient from above, as documented, not by the "
    "output.",
)


# -- regression ------------------------------------------------------------------------
def _regression(name, doc, eager, expr, slope):
    """Register an output layer with the gradient `slope(out, label)` / row length."""
    head = register(
        f"_{name}",
        inputs=("data", "label"),
        grad_barrier=True,
        attrs={"scale": (number, 1.0)},
        infer=lambda specs, scale: (specs, [Spec(specs[0].shape, floating(specs[0].dtype))]),
        eager=lambda data, label, scale: eager(data).astype(floating(data.dtype)),
        expr=expr,
        grad=lambda g, out, data, label, scale: (slope(out, _to(label, out)) * scale, None),
        doc=f"{doc} `scale` multiplies the gradient.",
    )

    def expand(specs, data, label, grad_scale):
        scale = grad_scale * specs[0].shape[0] / max(specs[0].size, 1)
        return head(_floats(specs, data), label.reshape_like(data), scale=scale)

    def labels(shape, **_):
        flat = (shape[0],), shape
        return flat if math.prod(shape) == shape[0] else (shape,)

    register(
        name,
        inputs=("data", "label"),
        attrs={"grad_scale": (number, 1.0)},
        infer=_labeled(name, labels),
        expand=expand,
        doc=doc,
    )


_regression(
    "LinearRegressionOutput",
    "The data; the gradient is data - label.",
    np.copy,
    "T({a})",
    lambda out, label: out - label,
)
_regression(
    "MAERegressionOutput",
    "The data; the gradient is 1 where the data is larger than the label, else -1.",
    np.copy,
    "T({a})",
    lambda out, label: (out > label) * 2.0 - 1.0,
)
_regression(
    "LogisticRegressionOutput",
    "sigmoid(data); the gradient is sigmoid(data) - label.",
    OPS["sigmoid"].eager,
    OPS["sigmoid"].expr,
    lambda out, label: out - label,
)


# -- margins ---------------------------------------------------------------------------
def _svm_grad(g, out, data, label, classes, margin, regularization_coefficient, use_linear):
    side = 1.0 - _hits(out, label, classes) * 2.0  # -1 at the labeled class
    short = relu(data * side + margin)
    short = short > 0 if use_linear else short * 2.0
    return short * side * regularization_coefficient, None


MARGIN = {
    "margin": (number, 1.0),
    "regularization_coefficient": (number, 1.0),
    "use_linear": (boolean, False),
}
svm_head = register(
    "_svm_head",
    inputs=("data", "label"),
    grad_barrier=True,
    attrs={"classes": (integer, REQUIRED), **MARGIN},
    expr="{a}",
    grad=_svm_grad,
    infer=lambda specs, **_: (specs, [specs[0]]),
    eager=lambda data, label, **_: np.copy(data),
    doc="(N, classes, 1) data, with the gradient of the hinge loss.",
)

svm_output = register(
    "SVMOutput",
    inputs=("data", "label"),
    attrs=MARGIN,
    infer=_labeled("SVMOutput", lambda shape, **_: (shape[:1],)),
    expand=lambda specs, data, label, **attrs: svm_head(
        _floats(specs, data).reshape((0, -1, 1)),
        label.reshape((-1, 1, 1)),
        classes=math.prod(specs[0].shape[1:]),
        **attrs,
    ).reshape_like(data),
    doc="The data; the gradient is that of the squared hinge loss, or of the hinge "
    "loss (use_linear), of each class against the others.",
)


# -- any value as a loss ---------------------------------------------------------------
def _loss_grad(g, out, data, scale, above):
    ones = ones_like(data) * scale
    if above is None:
        return (ones,)
    return (ones.broadcast_div(_at_least_one(sum_(data > above))),)


loss_head = register(
    "_loss_head",
    view=True,
    grad_barrier=True,
    grad=_loss_grad,
    eager=lambda data, **_: np.copy(data),
    attrs={"scale": (number, 1.0), "above": (optional(number), None)},
    infer=lambda specs, **_: (specs, specs),
    doc="The data; the gradient is `scale`, over the count of numbers above `above`.",
)

make_loss = register(
    "make_loss",
    infer=lambda specs: (specs, specs),
    expand=lambda specs, data: loss_head(data),
    doc="The data as a loss: its gradient is 1, whatever comes in from above.",
)


def _make_loss(specs, data, grad_scale, valid_thresh, normalization):
    rows = specs[0].shape[0] if normalization == "batch" else 1
    return loss_head(
        data,
        scale=grad_scale / max(rows, 1),
        above=valid_thresh if normalization == "valid" else None,
    )


register(
    "MakeLoss",
    expand=_make_loss,
    infer=lambda specs, **_: (specs, specs),
    attrs={
        "grad_scale": (number, 1.0),
        "valid_thresh": (number, 0.0),
        "normalization": NORMALIZATION,
    },
    doc="The data as a loss: its gradient is grad_scale, over the batch's length "
    "('batch') or over the count of numbers above valid_thresh ('valid').",
)
