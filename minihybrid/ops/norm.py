"""Normalization: subtract the mean, divide by the standard deviation, scale and shift.

Uses:    data (N samples, C channels, ...), and gamma and beta, one scalar per channel.
Defines: `BatchNorm`, `LayerNorm`, `GroupNorm`, `InstanceNorm`, `L2Normalization`, `LRN`
         and `moments`, all composed of reductions and one elementwise step.

They differ only in the axes that mean and variance reduce over, so they share the step and
its gradient. Half-precision data is accumulated in float32.
Not supported: statistics across devices.
"""

import math

import numpy as np

from minihybrid.core.op import (
    REQUIRED,
    AttrError,
    ShapeError,
    Spec,
    axes,
    boolean,
    choice,
    count,
    integer,
    not_negative,
    number,
    optional,
    share,
)
from minihybrid.ops.elementwise import (
    block_grad,
    cast,
    ones_like,
    rsqrt,
    sqrt,
    square,
    unbroadcast,
    zeros_like,
)
from minihybrid.ops.loops import T, each, loops, store
from minihybrid.ops.reduce import mean as mean_of
from minihybrid.ops.reduce import reduced_shape, split_at, sum_
from minihybrid.ops.registry import register
from minihybrid.ops.shapes import (
    as_codes,
    axes_of,
    axis_of,
    broadcast,
    floating,
    forward,
    known,
    merge,
    same_shape,
)


# -- the shared elementwise step -------------------------------------------------------
def _normalized_eager(data, mean, scale, gamma, beta, *, count):
    out = np.subtract(data, mean)
    for function, value in ((np.multiply, scale), (np.multiply, gamma), (np.add, beta)):
        same = value.dtype == out.dtype and np.broadcast(out, value).shape == out.shape
        out = function(out, value, out=out if same else None)  # allocating costs more than adding
    return out.astype(data.dtype, copy=False)


def _normalized_grad(g, out, data, mean, scale, gamma, beta, count):
    """Return the total gradient: mean and scale also depend on the data.

    With h = g gamma and z = (data - mean) scale, both sums over the `count` elements of
    one statistic:   dx = (h - sum(h) / count - z sum(h z) / count) scale.

    A difference is written as its negation where another loop computes it, so that no two
    loops share an intermediate array, which would have to be stored.
    """
    if gamma.lines_up(mean):  # one gamma per statistic: the sums are shared
        total = unbroadcast(g, mean)
        moment = unbroadcast(g * (mean - data), mean)
        around = g - total / count + (data - mean) * (moment * scale * scale / count)
        return around * (scale * gamma), None, None, -moment * scale, total
    h = g * gamma
    total, moment = unbroadcast(h, mean), unbroadcast(h * (mean - data), mean)
    around = h - total / count + (data - mean) * (moment * scale * scale / count)
    z = normalized(data, mean, scale, ones_like(gamma), zeros_like(beta), count=count)
    return around * scale, None, None, unbroadcast(g * z, gamma), unbroadcast(g, beta)


normalized = register(
    "_normalized",
    inputs=("data", "mean", "scale", "gamma", "beta"),
    attrs={"count": (integer, REQUIRED)},
    eager=_normalized_eager,
    infer=lambda specs, count: broadcast("_normalized", specs),
    expr="({a} - {b}) * {c} * {d} + {e}",
    grad=_normalized_grad,
    doc="(data - mean) * scale * gamma + beta, where mean and scale are the data's own "
    "over `count` numbers each; its gradient knows that.",
)


def _work(specs, *values):
    """Cast to the dtype to compute in: float64 if any input is, else float32."""
    kinds = [s.dtype for s in specs]
    kind = np.dtype("float64" if np.dtype("float64") in kinds else "float32")
    return [v if k == kind else cast(v, dtype=kind) for v, k in zip(values, kinds, strict=True)]


def _back(value, specs, like=0):
    """Cast a result back to the dtype of one input; for integers it stays float32."""
    dtype, kinds = floating(specs[like].dtype), [s.dtype for s in specs]
    same = dtype == ("float64" if np.dtype("float64") in kinds else "float32")
    return value if same else cast(value, dtype=dtype)


squared_distance = register(
    "_squared_distance",
    inputs=("data", "mean"),
    expr="({a} - {b}) * ({a} - {b})",
    infer=lambda specs: broadcast("_squared_distance", specs),
    eager=lambda data, mean: np.square(apart := data - mean, out=apart),
    grad=lambda g, out, data, mean: (
        unbroadcast(g * (data - mean) * 2.0, data),
        unbroadcast(g * (mean - data) * 2.0, mean),
    ),
    doc="(data - mean)^2, with a node of its own, which other loops do not share.",
)


def _statistics(data, over, eps):
    """Return (mean, variance, 1 / deviation) over axes, which are kept with length 1."""
    mean = mean_of(data, axis=over, keepdims=True)
    var = mean_of(squared_distance(data, mean), axis=over, keepdims=True)
    return mean, var, rsqrt(var + eps)


def _channels(op, specs, axis, length=None):
    """Return the specs with all inputs but the data as vectors, one scalar per channel."""
    data = specs[0]
    channels = -1 if data.shape is None else length or data.shape[axis]
    kind, completed = floating(data.dtype), [data]
    wide = kind if kind is None or kind.itemsize > 2 else np.dtype("float32")
    for name, spec in zip(("gamma", "beta", "moving_mean", "moving_var"), specs[1:], strict=False):
        shape = spec.shape if channels == -1 else (channels,)
        merge(f"{op}: with data {data.shape}", name, spec.shape, shape)
        completed.append(Spec(shape, spec.dtype or (wide if op == "BatchNorm" else kind)))
    return completed


def _one_axis(shape, axis):
    """Return the shape that broadcasts a vector along one axis of another shape."""
    return as_codes(tuple(n if i == axis else 1 for i, n in enumerate(shape)))


# -- batch norm ------------------------------------------------------------------------
def _batch_infer(specs, axis, output_mean_var, **_):
    shape = specs[0].shape
    if shape is not None:
        axis = axis_of("BatchNorm", axis, len(shape))
    specs = _channels("BatchNorm", specs, axis)  # the dtypes are inferred before the shapes
    out = Spec(shape, floating(specs[0].dtype))
    stats = Spec(specs[1].shape, floating(specs[1].dtype))
    return specs, [out, *[stats] * (2 * output_mean_var)]


def _batch_expand(
    specs,
    data,
    gamma,
    beta,
    moving_mean,
    moving_var,
    eps,
    momentum,
    fix_gamma,
    use_global_stats,
    output_mean_var,
    axis,
    training,
    **_,
):
    shape = specs[0].shape
    axis = axis_of("BatchNorm", axis, len(shape))
    wide = _one_axis(shape, axis)
    over = tuple(i for i in range(len(shape)) if i != axis)
    data, gamma, beta, moving_mean, moving_var = _work(
        specs, data, gamma, beta, block_grad(moving_mean), block_grad(moving_var)
    )
    gamma = (ones_like(gamma) if fix_gamma else gamma).reshape(wide)
    beta, states = beta.reshape(wide), ()
    if training and not use_global_stats:
        mean, var, scale = _statistics(data, over, eps)
        count = math.prod([shape[i] for i in over])
        out = normalized(data, mean, scale, gamma, beta, count=count)
        mean, var = mean.reshape((-1,)), var.reshape((-1,))
        states = (
            moving_mean * momentum + mean * (1 - momentum),
            moving_var * momentum + var * (1 - momentum),
        )
    else:
        mean, scale = moving_mean, rsqrt(moving_var.reshape(wide) + eps)
        out = (data - mean.reshape(wide)) * (scale * gamma) + beta
    stats = [block_grad(mean), block_grad(scale.reshape((-1,)))] if output_mean_var else []
    return (_back(out, specs), *(_back(v, specs, 1) for v in stats), *states)


batch_norm = register(
    "BatchNorm",
    "BatchNorm_v1",
    inputs=("data", "gamma", "beta", "moving_mean", "moving_var"),
    aux=("moving_mean", "moving_var"),
    modal=True,
    attrs={
        "eps": (not_negative, 1e-3),
        "momentum": (share, 0.9),
        "fix_gamma": (boolean, True),
        "use_global_stats": (boolean, False),
        "output_mean_var": (boolean, False),
        "axis": (integer, 1),
        "cudnn_off": (boolean, False),
        "min_calib_range": (optional(number), None),
        "max_calib_range": (optional(number), None),
    },
    infer=_batch_infer,
    expand=_batch_expand,
    n_outputs=lambda attrs: 3 if attrs["output_mean_var"] else 1,
    doc="(x - mean) / sqrt(var + eps) * gamma + beta, for each channel along `axis`: "
    "in training with mean and variance (divided by N) of the batch, towards which "
    "the running ones move; else with the running ones. `fix_gamma` takes gamma as "
    "1, without a gradient; unlike MXNet, gamma itself is not overwritten. "
    "`output_mean_var` gives mean and 1 / deviation, too, without gradients.",
)


# -- norms over part of one sample -----------------------------------------------------
def _outputs(specs, with_stats, out, mean, var, eps):
    """Return a norm's outputs: the result, plus mean and deviation on request."""
    outs = (out, mean, sqrt(var + eps)) if with_stats else (out,)
    outs = tuple(_back(v, specs) for v in outs)
    return outs if with_stats else outs[0]


def _two_more(attrs):
    return 3 if attrs["output_mean_var"] else 1


def _layer_infer(specs, axis, eps, output_mean_var):
    shape, small = specs[0].shape, None
    if shape is not None:
        axis = axis_of("LayerNorm", axis, len(shape))
        specs = _channels("LayerNorm", specs, axis)
        small = tuple(1 if i == axis else n for i, n in enumerate(shape))
    kind = floating(specs[0].dtype)
    return specs, [Spec(shape, kind), *[Spec(small, kind)] * (2 * output_mean_var)]


def _layer_expand(specs, data, gamma, beta, axis, eps, output_mean_var):
    shape = specs[0].shape
    axis = axis_of("LayerNorm", axis, len(shape))
    data, gamma, beta = _work(specs, data, gamma, beta)
    mean, var, scale = _statistics(data, axis, eps)
    wide = _one_axis(shape, axis)
    out = normalized(data, mean, scale, gamma.reshape(wide), beta.reshape(wide), count=shape[axis])
    return _outputs(specs, output_mean_var, out, mean, var, eps)


layer_norm = register(
    "LayerNorm",
    inputs=("data", "gamma", "beta"),
    infer=_layer_infer,
    attrs={"axis": (integer, -1), "eps": (not_negative, 1e-5), "output_mean_var": (boolean, False)},
    expand=_layer_expand,
    n_outputs=_two_more,
    doc="(x - mean) / sqrt(var + eps) * gamma + beta, with mean and variance along one "
    "axis; mean and deviation keep that axis with length 1.",
)


def _group_infer(specs, num_groups, eps, output_mean_var):
    shape, small = specs[0].shape, None
    if shape is not None and -1 not in shape[:2]:
        if len(shape) < 2 or num_groups < 1 or shape[1] % num_groups:
            raise ShapeError(
                f"GroupNorm: data has shape {shape}, but (N, C, ...) with "
                f"C a multiple of num_groups={num_groups} is needed"
            )
        specs = _channels("GroupNorm", specs, 1, num_groups)
        small = (shape[0], num_groups)
    kind = floating(specs[0].dtype)
    return specs, [Spec(shape, kind), *[Spec(small, kind)] * (2 * output_mean_var)]


def _group_expand(specs, data, gamma, beta, num_groups, eps, output_mean_var):
    shape = specs[0].shape
    values, gamma, beta = _work(specs, data, gamma, beta)
    rows = values.reshape((shape[0], num_groups, -1))
    mean, var, scale = _statistics(rows, 2, eps)
    out = normalized(
        rows,
        mean,
        scale,
        gamma.reshape((1, -1, 1)),
        beta.reshape((1, -1, 1)),
        count=math.prod(shape[1:]) // num_groups,
    )
    mean, var = (v.reshape((0, 0)) for v in (mean, var))
    return _outputs(specs, output_mean_var, out.reshape_like(data), mean, var, eps)


group_norm = register(
    "GroupNorm",
    inputs=("data", "gamma", "beta"),
    infer=_group_infer,
    attrs={
        "num_groups": (count, 1),
        "eps": (not_negative, 1e-5),
        "output_mean_var": (boolean, False),
    },
    expand=_group_expand,
    n_outputs=_two_more,
    doc="LayerNorm over each of num_groups groups of channels of a sample; gamma and "
    "beta have one number for each group.",
)


def _instance_infer(specs, eps):
    shape = specs[0].shape
    if shape is not None:
        if len(shape) < 3:
            raise ShapeError(
                f"InstanceNorm: data has shape {shape}, but at least "
                "three axes (N, C, ...) are needed"
            )
        specs = _channels("InstanceNorm", specs, 1)
    return specs, [Spec(shape, floating(specs[0].dtype))]


def _instance_expand(specs, data, gamma, beta, eps):
    shape = specs[0].shape
    data, gamma, beta = _work(specs, data, gamma, beta)
    mean, _, scale = _statistics(data, tuple(range(2, len(shape))), eps)
    wide = _one_axis(shape, 1)
    return _back(
        normalized(
            data, mean, scale, gamma.reshape(wide), beta.reshape(wide), count=math.prod(shape[2:])
        ),
        specs,
    )


instance_norm = register(
    "InstanceNorm",
    inputs=("data", "gamma", "beta"),
    infer=_instance_infer,
    attrs={"eps": (not_negative, 1e-3)},
    expand=_instance_expand,
    doc="(x - mean) / sqrt(var + eps) * gamma + beta, with mean and variance over each "
    "channel of each sample.",
)


# -- lengths and moments ---------------------------------------------------------------
def _floats(op):
    def infer(specs, **_):
        specs, (out,) = same_shape(op, specs)
        return specs, [Spec(out.shape, floating(out.dtype))]

    return infer


def _l2_expand(specs, data, eps, mode):
    n = len(specs[0].shape)
    over = {"instance": range(1, n), "channel": (1,), "spatial": range(2, n)}[mode]
    if n < 2 + (mode == "spatial"):
        raise ShapeError(
            f"L2Normalization: data has shape {specs[0].shape}, which has "
            f"too few axes for mode='{mode}'"
        )
    (values,) = _work(specs, data)
    total = sum_(square(values), axis=tuple(over), keepdims=True)
    return _back(values * rsqrt(total + eps), specs)


l2_normalization = register(
    "L2Normalization",
    infer=_floats("L2Normalization"),
    attrs={
        "eps": (not_negative, 1e-10),
        "mode": (choice("instance", "channel", "spatial"), "instance"),
    },
    expand=_l2_expand,
    doc="x / sqrt(sum(x * x) + eps), the sum over a sample (instance), over the "
    "channels (channel), or over all axes after the channels (spatial).",
)


def _window_eager(data, *, size):
    n = data.shape[1]
    reach = min(size // 2, n)
    wide = np.pad(data, [(0, 0), (reach, reach), *[(0, 0)] * (data.ndim - 2)])
    return sum(wide[:, i : i + n] for i in range(2 * reach + 1)).astype(data.dtype)


@loops(lambda data, out, size: (*split_at(data.shape, 1), size // 2))
def _window_cpu(data, out, outer, n, inner, half):
    for i, c, j in each(outer, n, inner):
        total = T(0)
        for d in range(max(c - half, 0), min(c + half + 1, n)):
            total += data[(i * n + d) * inner + j]
        store(out, (i * n + c) * inner + j, total)


def _window_rule(old, size):
    if size < 1 or size % 2 == 0 or len(old) < 2:
        raise ShapeError(
            f"_window_sum: size={size} over the channels of {old}; an odd "
            "size and data (N, C, ...) are needed"
        )
    return old


window_sum = register(
    "_window_sum",
    attrs={"size": (count, REQUIRED)},
    infer=forward(_window_rule),
    eager=_window_eager,
    cpu=_window_cpu,
    stores=True,
    grad=lambda g, out, data, size: (window_sum(g, size=size),),
    doc="The sum over the `size` channels around each one; `size` is odd.",
)


def _lrn_expand(specs, data, nsize, alpha, beta, knorm):
    if nsize < 1 or nsize % 2 == 0 or len(specs[0].shape) < 2:
        raise AttrError(
            f"LRN: nsize={nsize} with data {specs[0].shape}, but an odd "
            "nsize and data (N, C, ...) are needed"
        )
    (values,) = _work(specs, data)
    total = window_sum(square(values), size=nsize)
    return _back(values * (total * (alpha / nsize) + knorm) ** -beta, specs)


lrn = register(
    "LRN",
    infer=_floats("LRN"),
    expand=_lrn_expand,
    attrs={
        "alpha": (number, 1e-4),
        "beta": (number, 0.75),
        "knorm": (number, 2.0),
        "nsize": (count, REQUIRED),
    },
    doc="x / (knorm + alpha / nsize * s)^beta, where s sums x * x over the nsize "
    "channels around each one (Krizhevsky et al., NeurIPS 2012).",
)


def _moments_infer(specs, axes, keepdims):
    (shape, kind), *_ = specs
    reduced = reduced_shape("moments", shape, axes, keepdims) if known(specs) else None
    return specs, [Spec(reduced, floating(kind))] * 2


def _moments_expand(specs, data, axes, keepdims):
    shape = specs[0].shape
    (values,) = _work(specs, data)
    mean, var, _ = _statistics(values, axes_of("moments", axes, len(shape)), 0.0)
    reduced = as_codes(reduced_shape("moments", shape, axes, keepdims))
    return tuple(_back(v.reshape(reduced), specs) for v in (mean, var))


moments = register(
    "moments",
    attrs={"axes": (axes, None), "keepdims": (boolean, False)},
    infer=_moments_infer,
    expand=_moments_expand,
    n_outputs=2,
    doc="The mean and the variance (divided by N) over the axes; all axes by default.",
)
