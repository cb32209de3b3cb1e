"""ONNX export rules for neural network layers.

Uses:    a draft, a node with its attributes and specs, and its input values.
Defines: `LAYERS`, operator name -> rule, which returns the output, or `None` if ONNX's
         operator doesn't support the attributes: then the operator's own decomposition
         is exported.

Not supported: training.
"""

import numpy as np

from minihybrid.formats.onnx.export.layout import scattered, spec_of, zeros
from minihybrid.ops.pooling import overhang, window_counts


def in_floats(rule):
    """Extend a rule to integers, which ONNX's operator doesn't accept.

    They are computed in float32, which is exact below 2^24.
    """

    def wrapped(draft, node, *inputs):
        dtype = np.dtype("float32")
        inputs = [v if v.dtype.kind == "f" else draft.cast(v, dtype) for v in inputs]
        out = rule(draft, node, *inputs)
        return out if out is None else draft.cast(out, node.specs[0].dtype)

    return wrapped


# -- products of matrices --------------------------------------------------------------
def swapped(draft, value, ndim, transpose):
    """Swap a value's last two axes, if `transpose`."""
    *lead, m, n = range(ndim)
    return draft.add("Transpose", value, perm=[*lead, n, m]) if transpose else value


def product(draft, node, lhs, rhs):
    """Export a matrix product, or a batch of them."""
    a, b = node.attrs["transpose_a"], node.attrs["transpose_b"]
    return draft.add(
        "MatMul",
        swapped(draft, lhs, len(spec_of(node, 0).shape), a),
        swapped(draft, rhs, len(spec_of(node, 1).shape), b),
    )


def fully_connected(draft, node, data, weight, bias=None):
    """Export x W^T + b."""
    ndim = len(spec_of(node).shape)
    if node.attrs["flatten"] and ndim != 2:
        data, ndim = draft.add("Flatten", data, axis=1), 2
    if ndim == 2 and node.specs[0].dtype.kind == "f":
        return draft.add("Gemm", *(v for v in (data, weight, bias) if v is not None), transB=1)
    out = draft.add("MatMul", data, draft.add("Transpose", weight, perm=[1, 0]))
    return out if bias is None else draft.add("Add", out, bias)


def quantize(draft, node, data):
    """Export `_quantize`; ONNX also rounds half to even."""
    data, scale = draft.cast(data, np.dtype("float32")), np.float32(node.attrs["scale"])
    return draft.add("QuantizeLinear", data, np.array(scale), np.array(0, np.int8))


def quantized(layer):
    """Return the rule of an int8 layer: the float layer applied to dequantized inputs.

    Engines with int8 kernels recognize this pattern.
    """

    def rule(draft, node, data, weight, scale, *bias):
        step = np.array(node.attrs["data_scale"], np.float32)
        data = draft.add("DequantizeLinear", data, step)
        weight = draft.add("DequantizeLinear", weight, scale, axis=0)
        return layer(draft, node, data, weight, *bias)

    return rule


def slogdet(draft, node, data):
    """Export the sign and the log of the absolute value of the determinant."""
    shape, dtype = node.specs[0]
    det = draft.reshape(draft.add("Det", draft.cast(data, dtype)), shape)
    return draft.add("Sign", det), draft.add("Log", draft.add("Abs", det))


# -- convolutions ----------------------------------------------------------------------
def windows(attrs, more=None):
    """Return the window attributes under ONNX's names."""
    n, pad = len(attrs["kernel"]), attrs["pad"]
    pad = list(pad or (0,) * n)
    end = [p + m for p, m in zip(pad, more or (0,) * n, strict=True)]
    return {
        "kernel_shape": list(attrs["kernel"]),
        "pads": pad + end,
        "strides": list(attrs["stride"] or (1,) * n),
    }


def dilated(attrs):
    """Return the window attributes of a convolution."""
    return {
        **windows(attrs),
        "group": attrs["num_group"],
        "dilations": list(attrs["dilate"] or (1,) * len(attrs["kernel"])),
    }


def convolution(draft, node, data, weight, *bias):
    """Export `Convolution` or its primitive, whose attributes match ONNX's."""
    return draft.add("Conv", data, weight, *bias, **dilated(node.attrs))


def conv_data(draft, node, data, weight):
    """Export the data gradient of a convolution; `output_padding` gives its exact size."""
    attrs, at = node.attrs, spec_of(node).shape[2:]
    more = [
        n - ((m - 1) * s + d * (k - 1) + 1 - 2 * p)
        for n, m, k, s, d, p in zip(
            attrs["size"],
            at,
            attrs["kernel"],
            attrs["stride"],
            attrs["dilate"],
            attrs["pad"],
            strict=True,
        )
    ]
    return draft.add("ConvTranspose", data, weight, output_padding=more, **dilated(attrs))


def conv_weight(draft, node, data, grad):
    """Export the weight gradient: a convolution whose kernel is the output gradient."""
    attrs, groups = node.attrs, node.attrs["num_group"]
    if not spec_of(node).size:  # ONNX Runtime never returns for zero channels
        return zeros(draft, *node.specs[0])
    axes = [1, 0, *range(2, len(spec_of(node).shape))]
    data, grad = (draft.add("Transpose", v, perm=axes) for v in (data, grad))
    ends = attrs["kernel"]
    parts = []
    for g in range(groups):
        images, kernel = (
            _group(draft, v, spec_of(node, i).shape[1] // groups, g)
            for i, v in enumerate((data, grad))
        )
        part = draft.add(
            "Conv",
            images,
            kernel,
            strides=list(attrs["dilate"]),
            dilations=list(attrs["stride"]),
            pads=list(attrs["pad"]) * 2,
        )
        part = draft.add("Slice", part, (0,) * len(ends), ends, axes[2:])
        parts.append(draft.add("Transpose", part, perm=axes))
    return draft.add("Concat", *parts, axis=0)


def _group(draft, value, n, number):
    """Slice group `number`, of length n, from the first axis."""
    return draft.add("Slice", value, (number * n,), (number * n + n,))


# -- pooling ---------------------------------------------------------------------------
def geometry(attrs):
    """Return the window attributes, and how far the last windows extend past the data."""
    numbers = {key: attrs[key] for key in ("size", "kernel", "stride", "pad", "outs")}
    return numbers, overhang(**numbers)


def pooled(draft, kind, data, attrs, nothing, **more):
    """Export pooling; in ONNX, each window must contain an element.

    nothing: the result of windows that lie entirely in the padding.
    """
    sizes = [attrs[key] for key in ("size", "kernel", "stride", "pad", "outs")]
    outs = [min(m, (n - 1 + p) // s + 1) for n, _, s, p, m in zip(*sizes, strict=True)]
    ends = [
        max((m - 1) * s + k - n - p, 0) for n, k, s, p, m in zip(*sizes[:-1], outs, strict=True)
    ]
    numbers = windows(attrs) | {"pads": [*attrs["pad"], *ends]}
    data = draft.add(kind, data, **numbers, **more)
    rest = [m - n for m, n in zip(attrs["outs"], outs, strict=True)]
    if not any(rest):
        return data
    return draft.add("Pad", data, [0] * (len(rest) + 4) + rest, nothing)


def pool_max(draft, node, data):
    """Export the maximum of each window."""
    return pooled(draft, "MaxPool", data, node.attrs, -np.inf)


def pool_sum(draft, node, data):
    """Export window sums as ONNX's means times the number of elements counted."""
    attrs, dtype = node.attrs, node.specs[0].dtype
    data = draft.cast(data, dtype if dtype.kind == "f" else np.dtype("float32"))
    if attrs["count"] == "numbers" and dtype.kind == "f":
        return pooled(draft, "AveragePool", data, attrs, 0)
    total = pooled(draft, "AveragePool", data, attrs, 0, count_include_pad=1)
    numbers, _ = geometry(attrs)
    size, counts = np.prod(attrs["kernel"]), window_counts(attrs["count"], **numbers)
    if dtype.kind != "f":
        total = draft.add("Mul", total, int(size))
        total = draft.cast(draft.add("Round", total), dtype)
        return total if attrs["count"] == "none" else draft.add("Div", total, counts.astype(dtype))
    factor = size / counts if attrs["count"] != "none" else size
    return total if np.all(factor == 1) else draft.add("Mul", total, np.asarray(factor, dtype))


def unpool_sum(draft, node, grad):
    """Export as a transposed convolution of each channel with a kernel of ones."""
    attrs, dtype = node.attrs, node.specs[0].dtype
    numbers, hang = geometry(attrs)
    if attrs["count"] != "none":
        counts = window_counts(attrs["count"], **numbers)
        grad = draft.add("Div", grad, counts.astype(dtype))
    lines = draft.reshape(grad, (-1, 1, *attrs["outs"]))
    lines = draft.cast(lines, dtype if dtype.kind == "f" else np.dtype("float32"))
    more = [
        n + 2 * p + h - ((m - 1) * s + k)
        for n, m, k, s, p, h in zip(
            *(attrs[key] for key in ("size", "outs", "kernel", "stride", "pad")), hang, strict=True
        )
    ]
    ones = np.ones((1, 1, *attrs["kernel"]), lines.dtype)
    out = draft.add("ConvTranspose", lines, ones, output_padding=more, **windows(attrs, hang))
    return draft.cast(draft.reshape(out, node.specs[0].shape), dtype)


def first_maxima(draft, node, data):
    """Return the flat index in `data` of each window's first maximum."""
    _, more = geometry(node.attrs)
    return draft.add("MaxPool", data, count=2, dtype="int64", **windows(node.attrs, more))[1]


def unpool_max(draft, node, grad, data):
    """Export the gradient of max pooling: add each element at its window's maximum."""
    shape, size = node.specs[0].shape, node.specs[0].size
    places = draft.reshape(first_maxima(draft, node, data), (1, -1))
    return scattered(draft, places, draft.reshape(grad, (1, -1)), (1, size), shape)


def repool_max(draft, node, values, data):
    """Gather `values` at the positions of each window's maximum in `data`."""
    return draft.add(
        "Gather", draft.reshape(values, (-1,)), first_maxima(draft, node, data), axis=0
    )


def pooling(draft, node, data):
    """Export global pooling, for which ONNX has separate operators."""
    kinds = {"max": "GlobalMaxPool", "avg": "GlobalAveragePool"}
    attrs, floats = node.attrs, node.specs[0].dtype.kind == "f"
    if not attrs["global_pool"] or attrs["pool_type"] not in kinds or not floats:
        return None
    return draft.add(kinds[attrs["pool_type"]], data)


# -- normalization ---------------------------------------------------------------------
def batch_norm(draft, node, data, gamma, beta, mean, var):
    """Export batch normalization with running statistics."""
    attrs, dtype = node.attrs, node.specs[0].dtype
    if (
        attrs["axis"] != 1
        or attrs["output_mean_var"]
        or any(v.dtype != dtype for v in (data, gamma, beta, mean, var))
    ):
        return None
    if attrs["fix_gamma"]:
        gamma = np.ones(spec_of(node, 1).shape, dtype)
    return draft.add("BatchNormalization", data, gamma, beta, mean, var, epsilon=attrs["eps"])


def layer_norm(draft, node, data, gamma, beta):
    """Export layer normalization along the last axis."""
    attrs, last = node.attrs, len(spec_of(node).shape) - 1
    if (
        attrs["axis"] not in (-1, last)
        or attrs["output_mean_var"]
        or any(v.dtype != node.specs[0].dtype for v in (data, gamma, beta))
    ):
        return None
    return draft.add("LayerNormalization", data, gamma, beta, axis=-1, epsilon=attrs["eps"])


def instance_norm(draft, node, data, gamma, beta):
    """Export instance normalization."""
    if any(v.dtype != node.specs[0].dtype for v in (data, gamma, beta)):
        return None
    return draft.add("InstanceNormalization", data, gamma, beta, epsilon=node.attrs["eps"])


def window_sum(draft, node, data):
    """Export the sum over a window of channels, centered at each."""
    reach, shape = node.attrs["size"] // 2, node.specs[0].shape
    ends = [reach if i == 1 else 0 for i in range(len(shape))]
    wide, reach = draft.add("Pad", data, ends + ends), range(node.attrs["size"])
    parts = (draft.add("Slice", wide, (i,), (i + shape[1],), (1,)) for i in reach)
    return draft.add("Sum", *parts)


# -- activations -----------------------------------------------------------------------
def leaky_relu(draft, node, data, gamma=None):
    """Export the kinds that ONNX has; Gelu came with a later opset."""
    attrs, shape = node.attrs, node.specs[0].shape
    kind, slope = attrs["act_type"], {"alpha": attrs["slope"]}
    kinds = {"leaky": ("LeakyRelu", slope), "elu": ("Elu", slope), "selu": ("Selu", {})}
    if data.dtype.kind != "f":
        return None
    if kind == "prelu" and gamma.dtype == data.dtype:
        column = (-1, *(1 for _ in shape[2:]))
        return draft.add("PRelu", data, draft.reshape(gamma, column))
    if kind not in kinds:
        return None
    name, slope = kinds[kind]
    return draft.add(name, data, **slope)


def softmax(kind):
    """Return the rule of softmax or log-softmax."""

    def rule(draft, node, data, *_):
        attrs, dtype = node.attrs, node.specs[0].dtype
        if attrs.get("use_length"):
            return None
        wide = np.promote_types(data.dtype, dtype) if data.dtype.kind == "f" else dtype
        data = draft.cast(data, wide)
        if attrs.get("temperature") is not None:
            data = draft.add("Div", data, attrs["temperature"])
        return draft.cast(draft.add(kind, data, axis=attrs.get("axis", 1)), dtype)

    return rule


def attention(draft, node, query, key, value, *mask):
    """Export as matrix products and a softmax, which store the scores; ONNX Runtime fuses them."""
    dtype, attrs = node.specs[0].dtype, node.attrs
    rows, columns = (spec_of(node, i).shape[1] for i in (0, 1))
    query, key, value = (draft.cast(v, dtype) for v in (query, key, value))
    scores = draft.add("MatMul", query, swapped(draft, key, 3, True))
    scores = draft.add("Mul", scores, attrs["scale"])
    hidden = [np.arange(columns) > np.arange(rows)[:, None]] if attrs["causal"] else []
    hidden += [draft.add("Equal", m, 0) for m in mask]
    for some in hidden:
        scores = draft.add("Where", some, -np.inf, scores)
    lse = draft.add("ReduceLogSumExp", scores, (2,), keepdims=0)
    weights = draft.add("Softmax", scores, axis=2)
    if mask:  # handles fully masked queries
        lse = draft.add("Where", draft.add("Equal", lse, -np.inf), np.inf, lse)
        weights = draft.add("Where", draft.add("IsNaN", weights), 0, weights)
    return draft.add("MatMul", weights, value), lse


def clip(draft, node, data):
    """Export clip of floats; an integer dtype might not represent the bounds."""
    if data.dtype.kind != "f":
        return None
    return draft.add("Clip", data, node.attrs["a_min"], node.attrs["a_max"])


LAYERS = {
    **dict.fromkeys(("_matmul", "batch_dot"), product),
    **dict.fromkeys(("Convolution", "_conv"), in_floats(convolution)),
    **dict.fromkeys(("softmax", "_softmax_head"), softmax("Softmax")),
    "log_softmax": softmax("LogSoftmax"),
    "_attention": attention,
    "FullyConnected": fully_connected,
    "_quantize": quantize,
    "_quantized_convolution": quantized(convolution),
    "_quantized_fully_connected": quantized(fully_connected),
    "_linalg_slogdet": slogdet,
    "_conv_data": in_floats(conv_data),
    "_conv_weight": in_floats(conv_weight),
    "Pooling": pooling,
    "_pool_max": in_floats(pool_max),
    "_unpool_max": in_floats(unpool_max),
    "_repool_max": in_floats(repool_max),
    "_pool_sum": pool_sum,
    "_unpool_sum": unpool_sum,
    "BatchNorm": batch_norm,
    "LayerNorm": layer_norm,
    "InstanceNorm": instance_norm,
    "_window_sum": in_floats(window_sum),
    "LeakyReLU": leaky_relu,
    "clip": clip,
}
