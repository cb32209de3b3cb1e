"""ONNX import rules for layers with weights or windows.

Defines: `LAYERS`: ONNX name -> function of a `Call` that returns the outputs.

Weights are converted here, once, to the layout that our kernels read.
Not supported: recurrent layers, attention as one operator, dilated pooling.
"""

import math

import numpy as np

from minihybrid.formats.onnx.load.elementwise import renamed
from minihybrid.formats.onnx.load.images import padded
from minihybrid.formats.onnx.load.values import Value
from minihybrid.ops import OPS


# -- products of matrices --------------------------------------------------------------
def _dense(call, turned, *bias):
    """Return `x W^T + b`; the file's weight is W, or W^T if `turned`."""
    value = call.need(1)
    weight = call.scope.parameter(value, "turned", np.transpose) if turned else call.sym(1)
    return OPS["FullyConnected"](
        call.sym(0),
        weight,
        *bias,
        flatten=False,
        num_hidden=value.fixed.shape[1 if turned else 0],
        no_bias=not bias,
    )


def _gemm(call):
    """Gemm: alpha A B + beta C, A or B transposed; a dense layer if B is a weight."""
    alpha, beta = call.attr("alpha"), call.attr("beta")
    turned = call.attr("transA"), call.attr("transB")
    weight, bias = call.need(1).fixed, call.get(2)
    if alpha == beta == 1 and not turned[0] and weight is not None and weight.ndim == 2:
        row, outputs = bias and bias.fixed, weight.shape[0 if turned[1] else 1]
        if bias is None:
            return _dense(call, not turned[1])
        if row is not None and row.shape in ((outputs,), (1, outputs)):
            return _dense(call, not turned[1], call.scope.parameter(bias, "row", np.ravel))
    out = OPS["dot"](call.sym(0), call.sym(1), transpose_a=turned[0], transpose_b=turned[1])
    out = out if alpha == 1 else OPS["_mul_scalar"](out, scalar=alpha)
    if bias is None:
        return out
    bias = call.sym(2)
    bias = bias if beta == 1 else OPS["_mul_scalar"](bias, scalar=beta)
    return OPS["broadcast_add"](out, bias)


def _matmul(call):
    weight = call.need(1).fixed
    if weight is not None and weight.ndim == 2 and call.ndim(0) > 1:
        return _dense(call, True)
    return OPS["_npi_matmul"](call.sym(0), call.sym(1))


# -- windows ---------------------------------------------------------------------------
def _window(call, kernel):
    """Return (kernel, stride and dilate by name, [(before, after), ...] of the spatial axes)."""
    n = len(kernel)
    strides, dilations = (call.attr(name) or (1,) * n for name in ("strides", "dilations"))
    pads, mode = call.attr("pads") or (0,) * 2 * n, call.attr("auto_pad")
    if not len(strides) == len(dilations) == n == len(pads) / 2 == call.ndim(0) - 2:
        call.fail(
            f"data of {call.ndim(0)} axes, kernel {kernel}, strides {strides}, "
            f"dilations {dilations} and pads {pads} do not go together"
        )
    if min(kernel + strides + dilations, default=0) < 1:
        call.fail(
            f"kernel {kernel}, strides {strides} and dilations {dilations} must be at least 1"
        )
    window = {"kernel": kernel, "stride": strides, "dilate": dilations}
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        sizes = [zip(s[2:], kernel, strides, dilations, strict=True) for s in call.shapes(0)]
        pads = [[_same_pads(*numbers, mode) for numbers in size] for size in sizes]
        return window, call.agreed(f"auto_pad={mode}", pads)
    if mode not in ("NOTSET", "VALID"):
        call.fail(f"auto_pad={mode:.40} is unknown")
    return window, list(zip(pads[:n], pads[n:], strict=True))


def _same_pads(length, kernel, stride, dilation, mode):
    """Return the padding for an output of length / stride elements, rounded up."""
    outs = -(-length // stride)
    total = max((outs - 1) * stride + dilation * (kernel - 1) + 1 - length, 0)
    small, large = total // 2, total - total // 2
    return (small, large) if mode == "SAME_UPPER" else (large, small)


def _even(call, data, pads, value=0.0):
    """Return (data, pad); asymmetric padding becomes a Pad of the data."""
    if all(a == b >= 0 for a, b in pads):
        return data, tuple(a for a, _ in pads)
    return padded(call, data, [(0, 0), (0, 0), *pads], value=value), (0,) * len(pads)


def _conv(call):
    weight = call.shape(1)
    kernel = call.attr("kernel_shape") or weight[2:]
    if kernel != weight[2:]:
        call.fail(f"kernel_shape is {kernel}, but the weights have shape {weight}")
    window, pads = _window(call, kernel)
    data, pad = _even(call, call.sym(0), pads)
    groups = call.attr("group")
    return _with_bias(call, "Convolution", data, weight[0], groups, **window, pad=pad)


def _with_bias(call, name, data, num_filter, num_group, **attrs):
    """Return a convolution with the weights and the optional bias of the node."""
    bias = [] if call.get(2) is None else [call.sym(2)]
    attrs |= {"num_filter": num_filter, "num_group": num_group, "no_bias": not bias}
    return OPS[name](data, call.sym(1), *bias, **attrs)


def _deconv(call):
    """ConvTranspose; asymmetric padding is cropped from an unpadded output."""
    weight, groups = call.shape(1), call.attr("group")
    kernel = call.attr("kernel_shape") or weight[2:]
    window, pads = _window(call, kernel)
    more = call.attr("output_padding") or (0,) * len(kernel)
    mode, output_shape = call.attr("auto_pad"), call.attr("output_shape")
    if output_shape is not None or mode[:4] == "SAME":
        pads = _cuts(call, window, more, output_shape, mode)
    even = all(a == b >= 0 for a, b in pads)
    cuts = [(0, 0) if even else (a, b - m) for (a, b), m in zip(pads, more, strict=True)]
    out = _with_bias(
        call,
        "Deconvolution",
        call.sym(0),
        weight[1] * groups,
        groups,
        **window,
        pad=tuple(a for a, _ in pads) if even else (),
        adj=more if even else tuple(max(-b, 0) for _, b in cuts),
    )
    if even:
        return out
    return OPS["slice"](
        out,
        begin=(None, None, *(a or None for a, _ in cuts)),
        end=(None, None, *(-max(b, 0) or None for _, b in cuts)),
    )


def _cuts(call, window, more, output_shape, mode):
    """Return the crops for a given output size, or for `stride` times the input size."""
    cuts = []
    for shape in call.shapes(0):
        sizes = output_shape or [n * s for n, s in zip(shape[2:], window["stride"], strict=True)]
        axes = zip(shape[2:], *window.values(), more, sizes, strict=True)
        totals = [s * (n - 1) + m + d * (k - 1) + 1 - size for n, k, s, d, m, size in axes]
        halves = [(t // 2, t - t // 2) for t in totals]
        cuts.append(halves if mode == "SAME_UPPER" else [half[::-1] for half in halves])
    return call.agreed("output_shape", cuts)


def _pool(kind):
    def rule(call):
        kernel = call.attr("kernel_shape")
        window, pads = _window(call, kernel)
        if set(window.pop("dilate")) != {1} or call.attr("storage_order"):
            call.fail("pooling with dilations or storage_order is not supported")
        up = bool(call.attr("ceil_mode"))
        inner = kind == "avg" and bool(call.attr("count_include_pad"))
        more = {**window, "pool_type": kind, "pooling_convention": "full" if up else "valid"}
        if kind == "avg":
            more["count_include_pad"] = inner
        data = call.sym(0)
        source, more["pad"] = _even(call, data, pads, -math.inf if kind == "max" else 0)
        out = OPS["Pooling"](source, **more)
        if kind == "avg" and not inner and source is not data:
            # The means count the padding: divide by the fraction of each window that isn't.
            ones, _ = _even(call, OPS["ones_like"](data), pads)
            out = OPS["broadcast_div"](out, OPS["Pooling"](ones, **more))
        return _started_inside(call, out, kernel, window["stride"], pads) if up else out

    return rule


def _started_inside(call, out, kernel, strides, pads):
    """Drop windows that start in the end padding, as ceil_mode requires."""
    drops = []
    for shape in call.shapes(0):
        outs = [
            -(-(n + a + b - k) // s) + 1
            for n, k, s, (a, b) in zip(shape[2:], kernel, strides, pads, strict=True)
        ]
        drops.append(
            [
                (o - 1) * s >= n + a
                for o, n, s, (a, _) in zip(outs, shape[2:], strides, pads, strict=True)
            ]
        )
    for axis, drop in enumerate(call.agreed("the shape with ceil_mode", drops), start=2):
        if drop:
            out = OPS["slice_axis"](out, axis=axis, begin=0, end=-1)
    return out


def _global_pool(kind):
    def rule(call):
        return OPS["Pooling"](
            call.sym(0), kernel=(1,) * (call.ndim(0) - 2), global_pool=True, pool_type=kind
        )

    return rule


# -- normalization ---------------------------------------------------------------------
def _batch_norm(call):
    """BatchNormalization; running statistics are separate states, even if the file shares them."""
    call.attr("training_mode")  # the caller decides
    if call.attr("spatial") == 0:
        call.fail("spatial=0 is not supported; needed: 1")
    weights = [call.sym(i) for i in range(3)]
    states = [
        call.sym(i)
        if call.need(i).fixed is None
        else call.scope.parameter(call.need(i), f"state {i} of {call.node.outputs[0]}")
        for i in (3, 4)
    ]
    return OPS["BatchNorm"](
        *weights, *states, fix_gamma=False, eps=call.attr("epsilon"), momentum=call.attr("momentum")
    )


def _constant(call, like, numbers):
    """Return a parameter that isn't in the file, named after a value."""
    array = np.asarray(numbers, "float32")
    return call.scope.parameter(Value(like.name, (array, array)))


def _layer_norm(call):
    """LayerNormalization over the last axes, which are merged."""
    ndim, data = call.ndim(0), call.sym(0)
    axis = call.axis(call.attr("axis"), ndim)
    call.attr("stash_type")
    scale = call.shape(1)
    if scale != call.shape(0)[axis:]:
        call.fail(f"the scale has shape {scale}, but {call.shape(0)[axis:]} is needed")
    gamma, beta = (
        call.sym(1),
        _constant(call, call.need(1), np.zeros(scale)) if call.get(2) is None else call.sym(2),
    )
    gamma, beta = (v if len(scale) == 1 else OPS["Reshape"](v, shape=(-1,)) for v in (gamma, beta))
    more = {"eps": call.attr("epsilon"), "axis": -1}
    if axis == ndim - 1:
        return OPS["LayerNorm"](data, gamma, beta, **more)
    rows = OPS["Reshape"](data, shape=(0,) * axis + (-1,))
    return OPS["reshape_like"](OPS["LayerNorm"](rows, gamma, beta, **more), data)


def _group_norm(call):
    """GroupNormalization; scale and bias are per group, since opset 21 per channel."""
    groups, eps = call.attr("num_groups"), call.attr("epsilon")
    call.attr("stash_type")
    if call.opset < 21:
        return OPS["GroupNorm"](call.sym(0), call.sym(1), call.sym(2), eps=eps, num_groups=groups)
    if not 1 <= groups <= call.shape(0)[1]:
        call.fail(f"num_groups={groups} does not fit {call.shape(0)[1]} channels")
    one, zero = (_constant(call, call.need(i), np.full(groups, 2.0 - i)) for i in (1, 2))
    out = OPS["GroupNorm"](call.sym(0), one, zero, num_groups=groups, eps=eps)
    wide = (1, -1) + (1,) * (call.ndim(0) - 2)
    gamma, beta = (OPS["Reshape"](call.sym(i), shape=wide) for i in (1, 2))
    return OPS["broadcast_add"](OPS["broadcast_mul"](out, gamma), beta)


LAYERS = {
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Conv": _conv,
    "ConvTranspose": _deconv,
    "MaxPool": _pool("max"),
    "AveragePool": _pool("avg"),
    "GlobalMaxPool": _global_pool("max"),
    "GlobalAveragePool": _global_pool("avg"),
    "BatchNormalization": _batch_norm,
    "LayerNormalization": _layer_norm,
    "InstanceNormalization": renamed("InstanceNorm", eps="epsilon"),
    "GroupNormalization": _group_norm,
    "LRN": renamed("LRN", nsize="size", alpha="alpha", beta="beta", knorm="bias"),
}
