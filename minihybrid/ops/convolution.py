"""Convolutions in one, two or three dimensions.

Data is (N, C, *size), weights are (O, C / num_group, *kernel). `Convolution`,
`Deconvolution` and `UpSampling` decompose into three primitives: the output, and the
gradients of data and weights. The gradients of each are the other two, so higher
derivatives need nothing else.
Not supported: channels-last layouts.
"""

from functools import partial

from minihybrid.core.op import (
    REQUIRED,
    AttrError,
    ShapeError,
    Spec,
    boolean,
    choice,
    integer,
    optional,
    shape,
)
from minihybrid.ops.cpu.flatshift import (
    Shapes,
    data_loops,
    data_scratch,
    forward_loops,
    forward_scratch,
    out_size,
    weight_loops,
    weight_scratch,
)
from minihybrid.ops.cpu.imagelanes import (
    Sums,
    lanes_fit,
    lanes_loops,
    lanes_weight_loops,
    lanes_weight_scratch,
)
from minihybrid.ops.cpu.imagepoints import points_fit, points_loops, points_scratch
from minihybrid.ops.cpu.machine import width
from minihybrid.ops.gpu.images import (
    data_product,
    data_work,
    forward_lengths,
    forward_product,
    weight_lengths,
    weight_product,
)
from minihybrid.ops.gpu.products import product_work
from minihybrid.ops.im2col import convolved, convolved_back, weight_sums
from minihybrid.ops.joining import add_n, concat
from minihybrid.ops.registry import register
from minihybrid.ops.shapes import as_codes, common_dtype, forward, known, merge

# -- the three primitives --------------------------------------------------------------
GEOMETRY = {
    "size": (shape, REQUIRED),
    "kernel": (shape, REQUIRED),
    "stride": (shape, REQUIRED),
    "dilate": (shape, REQUIRED),
    "pad": (shape, REQUIRED),
    "num_group": (integer, 1),
}


def _fits(data, weight, grad, size, kernel, stride, dilate, pad, num_group):
    """Check that the shapes of data, weight and outputs are consistent."""
    n = len(size)
    numbers = (*kernel, *stride, *dilate)
    if (
        not 1 <= n <= 3
        or min(*numbers, num_group) < 1
        or min(pad) < 0
        or not len(kernel) == len(stride) == len(dilate) == len(pad) == n
    ):
        raise ShapeError(
            f"_conv: kernel={kernel}, stride={stride}, dilate={dilate} "
            f"and pad={pad} are no window over {size}"
        )
    out = out_size(size, kernel, stride, dilate, pad)
    expected = (
        (data[0], data[1], *size),
        (weight[0], data[1] // num_group, *kernel),
        (data[0], weight[0], *out),
    )
    if (
        min(out) < 1
        or data[1] % num_group
        or weight[0] % num_group
        or (data, weight, grad) != expected
    ):
        raise ShapeError(
            f"_conv: data {data}, weights {weight} and outputs {grad} do not belong together with "
            f"size={size}, kernel={kernel} and num_group={num_group}"
        )


def _conv_shapes(data, weight, size, **a):
    out = (data[0], weight[0], *out_size(size, **{k: v for k, v in a.items() if k != "num_group"}))
    _fits(data, weight, out, size, **a)
    return out


def _data_shapes(grad, weight, size, num_group, **a):
    data = (grad[0], weight[1] * num_group, *size)
    _fits(data, weight, grad, size, num_group=num_group, **a)
    return data


def _weight_shapes(data, grad, size, kernel, num_group, **a):
    weight = (grad[1], data[1] // num_group, *kernel)
    _fits(data, weight, grad, size, kernel, num_group=num_group, **a)
    return weight


def _numbers(data, out, attrs):
    """Return the `Shapes` of specs or arrays: data (N, C, ...) and outputs (N, O, ...)."""
    return Shapes(data.shape[0], data.shape[1], out.shape[1], **attrs)


def _data_numbers(grad, weight, attrs):
    return Shapes(grad.shape[0], weight.shape[1] * attrs["num_group"], grad.shape[1], **attrs)


def _form(s, spec):
    """Choose the forward algorithm: (loops, scratch elements).

    All of them pay off. Measured with 512-bit vectors: without lanes, batches of 16 and
    32 take up to 1.8 times as long; without points, outputs of 2 x 2 take 2.2 times. With
    256-bit vectors, pointwise layers take up to 1.6 times as long without points.
    """
    if lanes_fit(s, spec.dtype.itemsize):  # many images
        sums = Sums(s)
        return partial(lanes_loops, s=sums, n=s.n), sums.numbers(width(spec.dtype.itemsize))
    if points_fit(s, spec.dtype.itemsize):  # pointwise; or copied windows with many filters
        return partial(points_loops, s=s), points_scratch(s, spec.dtype.itemsize)
    return partial(forward_loops, s=s), forward_scratch(s, spec.dtype.itemsize)


def _data_form(s, spec):
    """Choose the algorithm of the data's gradient."""
    if lanes_fit(s, spec.dtype.itemsize) and set(s.stride) == {1}:
        sums = Sums(s, back=True)
        return partial(lanes_loops, s=sums, n=s.n), sums.numbers(width(spec.dtype.itemsize))
    return partial(data_loops, s=s), data_scratch(s, spec.dtype.itemsize)


def _weight_form(s, spec):
    """Choose the algorithm of the weights' gradient."""
    if lanes_fit(s, spec.dtype.itemsize):
        return partial(lanes_weight_loops, s=s), lanes_weight_scratch(s, width(spec.dtype.itemsize))
    return partial(weight_loops, s=s), weight_scratch(s)


conv = register(
    "_conv",
    inputs=("data", "weight"),
    attrs=GEOMETRY,
    infer=forward(_conv_shapes),
    eager=convolved,
    stores=True,
    cpu=lambda k, data, weight, out, **a: _form(_numbers(data, out, a), out)[0](
        k, data, weight, out
    ),
    scratch=lambda ins, outs, **a: _form(_numbers(ins[0], outs[0], a), outs[0])[1],
    gpu=lambda k, data, weight, out, **a: forward_product(
        k, data, weight, out, _numbers(data, out, a)
    ),
    gpu_scratch=lambda ins, outs, **a: product_work(
        forward_lengths(_numbers(ins[0], outs[0], a)), a["num_group"], outs[0].dtype
    ),
    grad=lambda g, out, data, weight, **a: (
        lambda: conv_data(g, weight, **a),
        lambda: conv_weight(data, g, **a),
    ),
    doc="Sums of windows of the data (N, C, *size) times weights (O, C / G, *kernel).",
)

conv_data = register(
    "_conv_data",
    inputs=("grad", "weight"),
    attrs=GEOMETRY,
    eager=convolved_back,
    infer=forward(_data_shapes),
    stores=True,
    cpu=lambda k, grad, weight, out, **a: _data_form(_data_numbers(grad, weight, a), out)[0](
        k, grad, weight, out
    ),
    scratch=lambda ins, outs, **a: _data_form(_data_numbers(*ins, a), outs[0])[1],
    gpu=lambda k, grad, weight, out, **a: data_product(
        k, grad, weight, out, _data_numbers(grad, weight, a)
    ),
    gpu_scratch=lambda ins, outs, **a: data_work(_data_numbers(*ins, a), outs[0].dtype),
    grad=lambda g, out, grad, weight, **a: (
        lambda: conv(g, weight, **a),
        lambda: conv_weight(g, grad, **a),
    ),
    doc="The gradient of `_conv` with respect to the data: each output's number goes "
    "back to its window, times the weights.",
)

conv_weight = register(
    "_conv_weight",
    inputs=("data", "grad"),
    attrs=GEOMETRY,
    eager=weight_sums,
    infer=forward(_weight_shapes),
    adds_rows=lambda **attrs: True,
    cpu=lambda k, data, grad, out, **a: _weight_form(_numbers(data, grad, a), out)[0](
        k, data, grad, out
    ),
    scratch=lambda ins, outs, **a: _weight_form(_numbers(*ins, a), outs[0])[1],
    gpu=lambda k, data, grad, out, **a: weight_product(k, data, grad, out, _numbers(data, grad, a)),
    gpu_scratch=lambda ins, outs, **a: product_work(
        weight_lengths(_numbers(*ins, a)), a["num_group"], outs[0].dtype
    ),
    grad=lambda g, out, data, grad, **a: (
        lambda: conv_data(grad, g, **a),
        lambda: conv(data, g, **a),
    ),
    doc="The gradient of `_conv` with respect to the weights.",
)


# -- MXNet's operators -----------------------------------------------------------------
LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
WINDOW = {
    "kernel": (shape, REQUIRED),
    "stride": (shape, ()),
    "dilate": (shape, ()),
    "pad": (shape, ()),
}
REST = {
    "cudnn_tune": (optional(choice("fastest", "limited_workspace", "off")), None),
    "cudnn_off": (boolean, False),
    "layout": (optional(choice(*LAYOUTS.values())), None),
}


def _inputs(attrs):
    without = attrs and attrs["no_bias"]
    return ("data", "weight") if without else ("data", "weight", "bias")


def window(op, data, kernel, stride, dilate, pad, layout):
    """Return checked (stride, dilate, pad), one value per axis."""
    n = len(kernel)
    if n not in LAYOUTS:
        raise AttrError(
            f"{op}: kernel={kernel} does not fit; needed: 1, 2 or 3 numbers, one for each axis "
            "after the channels"
        )
    if len(data) != n + 2:
        raise ShapeError(
            f"{op}: data has shape {data}, but kernel={kernel} needs (N, C{', size' * n})"
            + "; a single image becomes a batch of one by x.expand_dims(0)" * (len(data) == n + 1)
        )
    settings = {"stride": stride, "dilate": dilate, "pad": pad}
    for name, value in settings.items():
        lowest = 0 if name == "pad" else 1
        if value and len(value) != n or any(v < lowest for v in value):
            raise AttrError(
                f"{op}: {name}={value} does not fit; needed: {n} numbers "
                f"of at least {lowest}, as kernel={kernel} has"
            )
    if any(k < 1 for k in kernel):
        raise AttrError(f"{op}: kernel={kernel} does not fit; each length must be at least 1")
    if layout not in (None, LAYOUTS[n]):
        raise AttrError(
            f"{op}: layout='{layout}' does not fit kernel={kernel}; needed: '{LAYOUTS[n]}'"
        )
    return stride or (1,) * n, dilate or (1,) * n, pad or (0,) * n


def _complete(op, specs, weight, filters, kind):
    """Return the specs of weight and bias, after checking their known parts."""
    data, shapes = specs[0].shape, {"weight": weight, "bias": (filters,)}
    for (name, expected), spec in zip(shapes.items(), specs[1:], strict=False):
        merge(f"{op}: with data {data} and num_filter={filters}", name, spec.shape, expected)
    return [Spec(s, kind) for s in (data, *shapes.values())[: len(specs)]]


def _check_groups(op, channels, num_filter, num_group):
    if num_filter < 1 or num_group < 1 or channels % num_group or num_filter % num_group:
        raise ShapeError(
            f"{op}: {channels} channels to num_filter={num_filter} do not "
            f"divide into num_group={num_group} equal groups"
        )


def _conv_infer(specs, kernel, stride, dilate, pad, num_filter, num_group, layout, **_):
    kind, data = common_dtype("Convolution", specs), specs[0].shape
    if data is None or -1 in data:
        return [Spec(s.shape, kind) for s in specs], [Spec(None, kind)]
    stride, dilate, pad = window("Convolution", data, kernel, stride, dilate, pad, layout)
    _check_groups("Convolution", data[1], num_filter, num_group)
    out = out_size(data[2:], kernel, stride, dilate, pad)
    if min(out) < 1:
        raise ShapeError(
            f"Convolution: kernel={kernel} with dilate={dilate} does not fit into data {data} "
            f"with pad={pad}; use a smaller kernel or more padding"
        )
    weight = (num_filter, data[1] // num_group, *kernel)
    return _complete("Convolution", specs, weight, num_filter, kind), [
        Spec((data[0], num_filter, *out), kind)
    ]


def _with_bias(out, bias, n):
    """Add each channel's bias."""
    return out.broadcast_add(bias[0].reshape((1, -1, *(1,) * n))) if bias else out


def _conv_expand(specs, data, weight, *bias, kernel, stride, dilate, pad, num_group, layout, **_):
    shape = specs[0].shape
    stride, dilate, pad = window("Convolution", shape, kernel, stride, dilate, pad, layout)
    out = conv(
        data,
        weight,
        size=shape[2:],
        kernel=kernel,
        stride=stride,
        dilate=dilate,
        pad=pad,
        num_group=num_group,
    )
    return _with_bias(out, bias, len(kernel))


convolution = register(
    "Convolution",
    "Convolution_v1",
    inputs=_inputs,
    infer=_conv_infer,
    expand=_conv_expand,
    attrs={
        **WINDOW,
        "num_filter": (integer, REQUIRED),
        "num_group": (integer, 1),
        "workspace": (integer, 1024),
        "no_bias": (boolean, False),
        **REST,
    },
    doc="Each output is a window of the data times the weights of a filter, plus bias; "
    "(N, C, *size) -> (N, num_filter, *out).",
)


def _deconv_size(data, kernel, stride, dilate, pad, adj, target_shape):
    """Return (size, pad) of the output: the size that a convolution maps to the data's,
    plus `adj`, or a target size with the padding that yields it.
    """
    full = [
        (n - 1) * s + d * (k - 1) + 1
        for n, k, s, d in zip(data[2:], kernel, stride, dilate, strict=True)
    ]
    if not target_shape:
        return tuple(
            f - 2 * p + a for f, p, a in zip(full, pad, adj or (0,) * len(full), strict=True)
        ), pad
    size = tuple(t or f for t, f in zip(target_shape, full, strict=True))
    return size, tuple(-(-(f - n) // 2) for f, n in zip(full, size, strict=True))


def _deconv_geometry(data, kernel, stride, dilate, pad, adj, target_shape, layout):
    stride, dilate, pad = window("Deconvolution", data, kernel, stride, dilate, pad, layout)
    for name, value, most in (("adj", adj, stride), ("target_shape", target_shape, ())):
        if value and (
            len(value) != len(kernel)
            or min(value) < 0
            or any(v >= m for v, m in zip(value, most, strict=False))
        ):
            raise AttrError(
                f"Deconvolution: {name}={value} does not fit; needed: "
                f"{len(kernel)} numbers" + f", each below the stride {stride}" * bool(most)
            )
    size, pad = _deconv_size(data, kernel, stride, dilate, pad, adj, target_shape)
    if (
        min(pad) < 0
        or min(size) < 1
        or out_size(size, kernel, stride, dilate, pad) != tuple(data[2:])
    ):
        raise ShapeError(
            f"Deconvolution: data {data} with kernel={kernel}, "
            f"stride={stride} cannot give the size {size}"
        )
    return {"size": size, "kernel": kernel, "stride": stride, "dilate": dilate, "pad": pad}


def _deconv_infer(
    specs, kernel, stride, dilate, pad, adj, target_shape, num_filter, num_group, layout, **_
):
    kind, data = common_dtype("Deconvolution", specs), specs[0].shape
    if data is None or -1 in data:
        return [Spec(s.shape, kind) for s in specs], [Spec(None, kind)]
    geometry = _deconv_geometry(data, kernel, stride, dilate, pad, adj, target_shape, layout)
    _check_groups("Deconvolution", data[1], num_filter, num_group)
    weight = (data[1], num_filter // num_group, *kernel)
    return _complete("Deconvolution", specs, weight, num_filter, kind), [
        Spec((data[0], num_filter, *geometry["size"]), kind)
    ]


def _deconv_expand(
    specs,
    data,
    weight,
    *bias,
    kernel,
    stride,
    dilate,
    pad,
    adj,
    target_shape,
    num_group,
    layout,
    **_,
):
    geometry = _deconv_geometry(
        specs[0].shape, kernel, stride, dilate, pad, adj, target_shape, layout
    )
    out = conv_data(data, weight, num_group=num_group, **geometry)
    return _with_bias(out, bias, len(kernel))


deconvolution = register(
    "Deconvolution",
    inputs=_inputs,
    infer=_deconv_infer,
    expand=_deconv_expand,
    attrs={
        **WINDOW,
        "adj": (shape, ()),
        "target_shape": (shape, ()),
        "num_filter": (integer, REQUIRED),
        "num_group": (integer, 1),
        "workspace": (integer, 512),
        "no_bias": (boolean, True),
        **REST,
    },
    doc="The gradient of a convolution as a layer: each number of the data, times the "
    "weights of a filter, is added to a window; (N, C, *size) -> (N, num_filter, *out).",
)


# -- UpSampling ------------------------------------------------------------------------
def _scales(shapes, scale):
    """Return (the output's lengths, the scale of each input)."""
    if scale < 1 or any(len(s) != 4 for s in shapes):
        raise ShapeError(
            "UpSampling: images (N, C, H, W) and a scale of at least 1 are needed, got "
            f"{' and '.join(map(str, shapes))} and scale={scale}"
        )
    high, wide = (n * scale for n in shapes[0][2:])
    scales = [high // max(s[2], 1) for s in shapes]
    if any(
        (s[2] * by, s[3] * by) != (high, wide) or s[0] != shapes[0][0]
        for s, by in zip(shapes, scales, strict=True)
    ):
        raise ShapeError(
            f"UpSampling: {' and '.join(map(str, shapes))} cannot all be "
            f"repeated to {high} x {wide}"
        )
    return (high, wide), scales


def _up_infer(specs, scale, sample_type, multi_input_mode, **_):
    kind, shapes = common_dtype("UpSampling", specs), [s.shape for s in specs]
    if shapes[0] is None or -1 in shapes[0]:
        return specs, [Spec(None, kind)]
    if sample_type == "bilinear":
        (n, c, *_), k = shapes[0], 2 * scale - scale % 2
        size, _ = _scales(shapes[:1], scale)
        if len(specs) != 2:
            raise AttrError(
                f"UpSampling: {len(specs)} inputs were given, but "
                "sample_type='bilinear' needs data and a weight"
            )
        merge("UpSampling", "weight", shapes[1], (c, 1, k, k))
        return [Spec(shapes[0], kind), Spec((c, 1, k, k), kind)], [Spec((n, c, *size), kind)]
    if not known(specs):
        return specs, [Spec(None, kind)]
    size, _ = _scales(shapes, scale)
    channels = sum(s[1] for s in shapes)
    if multi_input_mode == "sum":
        channels = shapes[0][1]
        if any(s[1] != channels for s in shapes):
            raise ShapeError(
                "UpSampling: multi_input_mode='sum' needs inputs of as "
                f"many channels, found {' and '.join(map(str, shapes))}"
            )
    return specs, [Spec((shapes[0][0], channels, *size), kind)]


def _up_expand(specs, *data, scale, sample_type, multi_input_mode, **_):
    if sample_type == "bilinear":
        channels = specs[0].shape[1]
        return deconvolution(
            *data,
            kernel=(2 * scale - scale % 2,) * 2,
            stride=(scale,) * 2,
            pad=(scale // 2,) * 2,
            num_filter=channels,
            num_group=channels,
        )
    parts = []
    _, scales = _scales([s.shape for s in specs], scale)
    for value, spec, by in zip(data, specs, scales, strict=True):
        n, c, h, w = spec.shape
        value = value.reshape(as_codes((n, c, h, 1, w, 1)))
        value = value.broadcast_to((n, c, h, by, w, by))
        parts.append(value.reshape(as_codes((n, c, h * by, w * by))))
    if len(parts) == 1:
        return parts[0]
    return add_n(*parts) if multi_input_mode == "sum" else concat(*parts, dim=1)


upsampling = register(
    "UpSampling",
    inputs=("data",),
    variadic=True,
    infer=_up_infer,
    expand=_up_expand,
    attrs={
        "scale": (integer, REQUIRED),
        "num_filter": (integer, 0),
        "sample_type": (choice("nearest", "bilinear"), REQUIRED),
        "multi_input_mode": (choice("concat", "sum"), "concat"),
        "workspace": (integer, 512),
    },
    doc="Images made larger: each number repeated, or a Deconvolution whose weights "
    "(a second input) mix neighbors; (N, C, H, W) -> (N, C, scale H, scale W).",
)
