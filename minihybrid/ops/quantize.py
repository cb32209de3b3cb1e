"""Quantized layers: int8 products that accumulate in int32.

Uses:    data and weights, and the scales that convert their integers to floats.
Defines: `quantize`, and the quantized forms of FullyConnected and Convolution; the
         primitives `windows`, which copies the window of each output, and `int8_dot`.

A float x is stored as round(x / scale). So sum(x * w) is scale * scale_w * sum(integers), and
the sum is exact. Data has one scale per tensor, weights one per output channel.
`formats/onednn.py` reads MXNet's quantized operators, whose ranges are arrays.
Not supported: zero points, and gradients.
"""

from math import prod

import numpy as np

from minihybrid.core.op import REQUIRED, DTypeError, ShapeError, Spec, count, positive, shape
from minihybrid.ops.convolution import convolution, window
from minihybrid.ops.cpu.flatshift import out_size
from minihybrid.ops.elementwise import cast
from minihybrid.ops.layout import flatten as flatten_rows
from minihybrid.ops.layout import reshape, transpose
from minihybrid.ops.loops import T, add_up, each, loops, store
from minihybrid.ops.neural import fully_connected
from minihybrid.ops.registry import register
from minihybrid.ops.shapes import forward, row_major
from minihybrid.ops.tiling import frame

INT8, INT32, FLOAT = np.dtype("int8"), np.dtype("int32"), np.dtype("float32")
HALF = 1.5 * 2.0**23  # adding and subtracting it rounds half to even
EXACT = 2**24 // 2**14  # int8 products whose sum is exact in float32


def _quantize_expand(specs, data, scale):
    """Clip, then round: at HALF's magnitude, float32 has no fraction bits."""
    floats = data if specs[0].dtype == FLOAT else cast(data, dtype="float32")
    return cast((floats / scale).clip(-128.0, 127.0) + HALF - HALF, dtype="int8")


quantize = register(
    "_quantize",
    attrs={"scale": (positive, REQUIRED)},
    infer=lambda specs, scale: (specs, [Spec(specs[0].shape, INT8)]),
    expand=_quantize_expand,
    doc="round(data / scale) as int8; halves go to the even integer, and what int8 can't hold "
    "to its ends.",
)


# -- the primitives --------------------------------------------------------------------
def _windows_shape(old, kernel, stride, dilate, num_group):
    out = out_size(old[2:], kernel, stride, dilate, (0,) * len(kernel))
    return num_group, old[0], *out, old[1] // num_group, *kernel


def _windows_strides(old, kernel, stride, dilate, num_group):
    batch, channel, *steps = row_major(old)
    moves = [s * n for s, n in zip(steps, stride, strict=True)]
    taps = [s * n for s, n in zip(steps, dilate, strict=True)]
    return 0, (channel * (old[1] // num_group), batch, *moves, channel, *taps)


def _windows_eager(data, **attrs):
    data = np.ascontiguousarray(data)
    steps = [s * data.itemsize for s in _windows_strides(data.shape, **attrs)[1]]
    view = np.lib.stride_tricks.as_strided(data, _windows_shape(data.shape, **attrs), steps)
    return view.copy()


windows = register(
    "_windows",
    infer=forward(_windows_shape),
    strides=_windows_strides,
    eager=_windows_eager,
    attrs=dict.fromkeys(("kernel", "stride", "dilate"), (shape, REQUIRED))
    | {"num_group": (count, 1)},
    doc="The window of each output: (N, C, *size) -> (G, N, *out, C / G, *kernel).",
)


def _dot_infer(specs):
    for spec in specs:
        if spec.dtype not in (None, INT8):
            raise DTypeError(f"_int8_dot: an input is {spec.dtype}, but int8 is needed")
    return forward(_dot_shape, dtype=INT32)(specs)


def _dot_shape(data, weight):
    if len(data) != 3 or len(weight) != 3 or (data[0], data[2]) != (weight[0], weight[2]):
        raise ShapeError(
            f"_int8_dot: data {data} and weights {weight} do not go together; needed: (G, M, K) "
            "and (G, N, K)"
        )
    return *data[:2], weight[1]


@loops(lambda data, weight, out: (*out.shape, out.shape[2] // 4 * 4, data.shape[2]))
def _dot_loops(data, weight, out, groups, m, n, fours, depth):
    """Process four rows of weights at once, which share each load of data."""
    for g, i in each(groups, m, work=groups * m * n * depth):
        row = (g * m + i) * depth
        at = (g * m + i) * n
        for j in range(0, fours, 4):
            w = (g * n + j) * depth
            a, b, c, d = T(0), T(0), T(0), T(0)
            for k in range(depth):
                x = T(data[row + k])
                a = add_up(a, x * T(weight[w + k]))
                b = add_up(b, x * T(weight[w + depth + k]))
                c = add_up(c, x * T(weight[w + 2 * depth + k]))
                d = add_up(d, x * T(weight[w + 3 * depth + k]))
            store(out, at + j, a)
            store(out, at + j + 1, b)
            store(out, at + j + 2, c)
            store(out, at + j + 3, d)
        for j in range(fours, n):
            w = (g * n + j) * depth
            a = T(0)
            for k in range(depth):
                a = add_up(a, T(data[row + k]) * T(weight[w + k]))
            store(out, at + j, a)


def _dot_eager(data, weight):
    """Multiply in a float dtype that holds the sums exactly: NumPy's fast path."""
    wide = np.float32 if data.shape[2] <= EXACT else np.float64
    return np.matmul(data.astype(wide), weight.astype(wide).swapaxes(1, 2)).astype(np.int32)


int8_dot = register(
    "_int8_dot",
    inputs=("data", "weight"),
    infer=_dot_infer,
    eager=_dot_eager,
    cpu=_dot_loops,
    stores=True,
    doc="Sums of products of int8 in int32: (G, M, K) and (G, N, K) -> (G, M, N).",
)


# -- the layers ------------------------------------------------------------------------
def _inputs(attrs):
    without = attrs and attrs["no_bias"]
    return ("data", "weight", "scale") if without else ("data", "weight", "scale", "bias")


def _like(layer):
    """Return the shape rule of a layer, adapted to int8 inputs and float32 outputs."""

    def infer(specs, data_scale, **attrs):
        (data, weight, _, *bias), kinds = specs, (INT8, INT8, FLOAT, FLOAT)
        for name, spec, kind in zip(_inputs(attrs), specs, kinds, strict=False):
            if spec.dtype not in (None, kind):
                raise DTypeError(
                    f"quantized {layer.name}: {name} is {spec.dtype}, but {kind} is needed; "
                    "mx.contrib.quantization.quantize_net makes both"
                )
        floats = [Spec(s.shape, FLOAT) for s in (data, weight, *bias)]
        (data, weight, *bias), (out,) = layer.infer(floats, **attrs)
        scales = None if weight.shape is None else weight.shape[:1]
        shapes = data.shape, weight.shape, scales, *(b.shape for b in bias)
        return [*map(Spec, shapes, kinds)], [out]

    return infer


def _scaled(sums, scale, data_scale, bias, axes=()):
    """Dequantize integer sums and add the bias of each output."""
    column = (1, -1, *(1 for _ in axes))
    out = cast(sums, dtype="float32").broadcast_mul(reshape(scale * data_scale, shape=column))
    return out.broadcast_add(reshape(bias[0], shape=column)) if bias else out


def _fc_expand(specs, data, weight, scale, *bias, data_scale, num_hidden, no_bias, flatten):
    rows = flatten_rows(data) if flatten else reshape(data, shape=(-1, 0), reverse=True)
    sums = int8_dot(rows.expand_dims(axis=0), weight.expand_dims(axis=0))
    out = _scaled(reshape(sums, shape=(-1, num_hidden)), scale, data_scale, bias)
    return out if flatten else reshape(out, shape=(*specs[0].shape[:-1], num_hidden))


quantized_fully_connected = register(
    "_quantized_fully_connected",
    inputs=_inputs,
    attrs={"data_scale": (positive, REQUIRED), **fully_connected.attrs},
    infer=_like(fully_connected),
    expand=_fc_expand,
    doc="FullyConnected of int8 data and weights; `scale` is that of each row of weights.",
)


def _conv_expand(
    specs, data, weight, scale, *bias, data_scale, kernel, stride, dilate, pad, **attrs
):
    (n, channels, *size), groups, filters = specs[0].shape, attrs["num_group"], attrs["num_filter"]
    stride, dilate, pad = window(
        "Convolution", specs[0].shape, kernel, stride, dilate, pad, attrs["layout"]
    )
    out, depth = out_size(size, kernel, stride, dilate, pad), channels // groups * prod(kernel)
    if any(pad):
        widths = (0, 0, 0, 0, *(p for each in pad for p in (each, each)))
        data = frame(data, pad_width=widths, value=0.0)
    parts = windows(data, kernel=kernel, stride=stride, dilate=dilate, num_group=groups)
    sums = int8_dot(
        reshape(parts, shape=(groups, n * prod(out), depth)),
        reshape(weight, shape=(groups, filters // groups, depth)),
    )
    sums = transpose(
        reshape(sums, shape=(groups, n, prod(out), filters // groups)), axes=(1, 0, 3, 2)
    )
    return _scaled(reshape(sums, shape=(n, filters, *out)), scale, data_scale, bias, out)


quantized_convolution = register(
    "_quantized_convolution",
    inputs=_inputs,
    attrs={"data_scale": (positive, REQUIRED), **convolution.attrs},
    infer=_like(convolution),
    expand=_conv_expand,
    doc="Convolution of int8 data and weights; `scale` is that of each filter.",
)


SUFFIX = "_quantize"  # marks quantized values and parameters, as in MXNet

# For the quantization pass: each layer's quantized form, and the operator for its data.
INT8_FORMS = {
    "data": quantize,
    "FullyConnected": quantized_fully_connected,
    "Convolution": quantized_convolution,
}
