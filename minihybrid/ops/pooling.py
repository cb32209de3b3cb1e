"""Pooling in one, two or three dimensions.

`Pooling` decomposes into primitives for sums (and means) and for maxima, and for their
gradients.

A maximum's gradient goes to its first occurrence. A window with NaN has the maximum NaN,
as in NumPy; MXNet ignores NaN.
Not supported: channels-last layouts.
"""

from math import prod

import numpy as np

from minihybrid.core.op import (
    AttrError,
    Op,
    ShapeError,
    Spec,
    boolean,
    choice,
    integer,
    optional,
    shape,
)
from minihybrid.ops.convolution import LAYOUTS, Shapes, conv, window
from minihybrid.ops.cpu.imagelanes import Sums, lanes_fit, lanes_loops
from minihybrid.ops.cpu.machine import width
from minihybrid.ops.elementwise import sqrt, square, where_eager, where_set
from minihybrid.ops.reduce import mean, sum_
from minihybrid.ops.registry import register
from minihybrid.ops.shapes import floating, forward, known
from minihybrid.ops.tiling import pad
from minihybrid.ops.windows import (
    MAX_UNROLLED,
    add_best,
    add_sums,
    ask_best,
    ask_sums,
    maxima,
    share_best,
    share_sums,
    sums,
    take_best,
)

IMAGES = 2**18  # bytes of images per pass over the taps
GEOMETRY = {name: (shape, ()) for name in ("size", "kernel", "stride", "pad", "outs")}


def _fits(data, grad, size, kernel, stride, pad, outs, count=None):
    """Check that the shapes of data and outputs are consistent."""
    n = len(size)
    if (
        not 1 <= n <= 3
        or min(*kernel, *stride, *outs) < 1
        or min(*pad, *size) < 0
        or not len(kernel) == len(stride) == len(pad) == len(outs) == n
    ):
        raise ShapeError(
            f"_pool: kernel={kernel}, stride={stride} and pad={pad} are "
            f"no windows over {size} that give {outs}"
        )
    if (data[2:], grad[2:]) != (size, outs) or data[:2] != grad[:2]:
        raise ShapeError(
            f"_pool: data {data} and outputs {grad} do not belong "
            f"together with size={size} and outs={outs}"
        )


def _forward(data, *read, outs, **attrs):
    grad = (*data[:2], *outs)
    for read_shape in (data, *read):
        _fits(read_shape, grad, outs=outs, **attrs)
    return grad


def _back(grad, *read, size, **attrs):
    data = (*grad[:2], *size)
    for read_shape in (data, *read):
        _fits(read_shape, grad, size=size, **attrs)
    return data


def overhang(size, kernel, stride, pad, outs):
    """Return how far the last windows extend beyond the padded data."""
    return [
        max((n - 1) * s + k - (m + 2 * p), 0)
        for n, s, k, m, p in zip(outs, stride, kernel, size, pad, strict=True)
    ]


# -- NumPy: one slice per tap ----------------------------------------------------------
def _places(size, kernel, stride, pad, outs):
    """Return [(outputs, data)] slices per tap, where its windows read inside the data."""
    return [
        ((..., *(slice(*a) for a, _ in axes)), (..., *(slice(*b) for _, b in axes)))
        for tap in np.ndindex(*kernel)
        if all(axes := [*map(_line, tap, size, stride, pad, outs)])
    ]


def _line(tap, size, stride, pad, n_outs):
    """Return the bounds of outputs, and of the data they read, on one axis; or `None`."""
    start = tap - pad
    low, high = max(-(start // stride), 0), min(-((start - size) // stride), n_outs)
    first = start + stride * low
    source = (first, first + stride * (high - low - 1) + 1, stride)
    return ((low, high), source) if low < high else None


def _images(data):
    """Yield slices of images that stay in cache while all taps read them."""
    step = max(IMAGES // max(data[:1].nbytes, 1), 1)
    return [slice(i, i + step) for i in range(0, len(data), step)]


def _bounds(size, kernel, stride, pad, count):
    """Return the edges between which a window's elements count for the mean."""
    return [(-p, n + p) if count == "padding" else (0, n) for n, p in zip(size, pad, strict=True)]


def window_counts(count, size, kernel, stride, pad, outs):
    """Return the number of elements per window, the divisor of the mean."""
    total = np.ones((), np.int64)
    for n, (low, high), k, s, p in zip(
        outs, _bounds(size, kernel, stride, pad, count), kernel, stride, pad, strict=True
    ):
        start = np.arange(n) * s - p
        length = np.minimum(start + k, high) - np.maximum(start, low)
        total = total[..., None] * np.maximum(length, 0)
    return np.maximum(total, 1)


def _divided(data, count, g, dtype):
    if count != "none":
        data = data / window_counts(count, **g)
    return data.astype(dtype, copy=False)


def _sum_eager(data, *, count, **g):
    small = data.dtype.kind in "iub" and data.dtype.itemsize < 8  # sums could overflow
    total = np.zeros((*data.shape[:2], *g["outs"]), np.int64 if small else data.dtype)
    for images in _images(data):
        part, read = total[images], data[images]
        for at, source in _places(**g):
            part[at] += read[source]
    return _divided(total, count, g, data.dtype)


def _unsum_eager(grad, *, count, **g):
    grad = _divided(grad, count, g, grad.dtype)
    back = np.zeros((*grad.shape[:2], *g["size"]), grad.dtype)
    for images in _images(back):
        part, part_grad = back[images], grad[images]
        for at, source in _places(**g):
            part[source] += part_grad[at]
    return back


def _lowest(dtype):
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _max_eager(data, **g):
    out = np.full((*data.shape[:2], *g["outs"]), _lowest(data.dtype), data.dtype)
    for images in _images(data):
        part, read = out[images], data[images]
        for at, source in _places(**g):
            np.maximum(part[at], read[source], out=part[at])
    return out


def _hits(data, g):
    """Yield (outputs, data, mask of windows whose first maximum is at this tap) per tap."""
    places = _places(**g)
    best = _max_eager(data, **g)
    if np.isnan(best).any():  # only elements after the last NaN count, as in loops
        best[...] = _lowest(data.dtype)
        for at, source in places:
            best[at] = where_eager(best[at] > data[source], best[at], data[source])
    free = np.ones(best.shape, bool)
    for at, source in places:
        hit = data[source] == best[at]
        hit &= free[at]
        free[at] ^= hit
        yield at, source, hit


def _unmax_eager(grad, data, **g):
    back = np.zeros_like(data, grad.dtype)
    for images in _images(data):
        part, part_grad = back[images], grad[images]
        for at, source, hit in _hits(data[images], g):
            part[source] += where_set(hit, part_grad[at])
    return back


def _remax_eager(values, data, **g):
    out = np.zeros((*data.shape[:2], *g["outs"]), values.dtype)
    for images in _images(data):
        part, read = out[images], values[images]
        for at, source, hit in _hits(data[images], g):
            part[at] += where_set(hit, read[source])
    return out


# -- loops -----------------------------------------------------------------------------
def tiles(size, kernel, stride, pad, outs, **_):
    """Return whether windows tile the data: each element is in exactly one."""
    return (
        stride == kernel
        and not any(pad)
        and prod(kernel) <= MAX_UNROLLED
        and all(n * k == m for n, k, m in zip(outs, kernel, size, strict=True))
    )


def _either(shared, others):
    """Choose between loops for tiling windows and for others."""
    return lambda k, *arrays, **a: (shared if tiles(**a) else others)(k, *arrays, **a)


# -- the primitives --------------------------------------------------------------------
COUNT = {"count": (choice("none", "padding", "numbers"), "none")}
pool_sum = register(
    "_pool_sum",
    attrs=GEOMETRY | COUNT,
    infer=forward(_forward),
    eager=_sum_eager,
    cpu=sums,
    stores=True,
    grad=lambda g, out, data, **a: (unpool_sum(g, **a),),
    doc="The sum of each window, over how many numbers it has if `count` says so.",
)
unpool_sum = register(
    "_unpool_sum",
    inputs=("grad",),
    attrs=GEOMETRY | COUNT,
    infer=forward(_back),
    eager=_unsum_eager,
    cpu=_either(share_sums, add_sums),
    gpu=_either(share_sums, ask_sums),
    stores=tiles,
    grad=lambda g, out, grad, **a: (pool_sum(g, **a),),
    doc="The gradient of `_pool_sum`: each number is added to its whole window.",
)
pool_max = register(
    "_pool_max",
    attrs=GEOMETRY,
    infer=forward(_forward),
    eager=_max_eager,
    cpu=maxima,
    stores=True,
    peak=lambda before, attrs: _with_conv(before, attrs),
    grad=lambda g, out, data, **a: (unpool_max(g, data, **a),),
    doc="The largest number of each window.",
)
unpool_max = register(
    "_unpool_max",
    inputs=("grad", "data"),
    attrs=GEOMETRY,
    infer=forward(_back),
    eager=_unmax_eager,
    cpu=_either(share_best, add_best),
    gpu=_either(share_best, ask_best),
    stores=tiles,
    grad=lambda g, out, grad, data, **a: (repool_max(g, data, **a), None),
    doc="The gradient of `_pool_max`: each number is added where the data have the "
    "window's first maximum.",
)
repool_max = register(
    "_repool_max",
    inputs=("values", "data"),
    attrs=GEOMETRY,
    infer=forward(_forward),
    eager=_remax_eager,
    cpu=take_best,
    stores=True,
    grad=lambda g, out, values, data, **a: (unpool_max(g, data, **a), None),
    doc="The values where the data have each window's first maximum.",
)


# -- max pooling of a convolution's output ---------------------------------------------
def _shapes(data, weight, conv):
    return Shapes(*data.shape[:2], weight.shape[0], **conv)


def _with_conv(node, pool):
    """Return the combined convolution and max pooling operator, if it applies."""
    if node.op is not conv:
        return None
    data, weight = (n.specs[i] for n, i in node.inputs)
    s = _shapes(data, weight, node.attrs)
    fits = (
        lanes_fit(s, data.dtype.itemsize)
        and not any(pool["pad"])
        and prod(pool["kernel"]) <= 16
        and all(
            n <= step and (m - 1) * step + n <= size
            for n, step, m, size in zip(
                pool["kernel"], pool["stride"], pool["outs"], s.out, strict=True
            )
        )
    )
    return (conv_pool, {"conv": node.attrs, "pool": pool}) if fits else None


def _conv_pool_cpu(k, data, weight, out, conv, pool):
    s = _shapes(data, weight, conv)
    lanes_loops(k, data, weight, out, Sums(s), s.n, pool)


conv_pool = Op(
    name="_conv_pool",
    inputs=("data", "weight"),
    cpu=_conv_pool_cpu,
    stores=True,
    attrs={"conv": (None, None), "pool": (None, None)},
    infer=forward(lambda data, weight, conv, pool: (data[0], weight[0], *pool["outs"])),
    eager=lambda data, weight, **a: _max_eager(conv.eager(data, weight, **a["conv"]), **a["pool"]),
    scratch=lambda ins, outs, conv, pool: Sums(_shapes(*ins, conv)).numbers(
        width(outs[0].dtype.itemsize), pool
    ),
    doc="`_pool_max` of `_conv` in one kernel.",
)


# -- MXNet's operator ------------------------------------------------------------------
def _geometry(data, kernel, global_pool, pooling_convention, stride, pad, layout):
    """Return the checked geometry of the windows."""
    if global_pool:
        kernel, stride, pad = data[2:], (), ()
        layouts = [layout] if layout else list(LAYOUTS.values())
        if len(data) not in map(len, layouts):
            raise ShapeError(
                f"Pooling: data has shape {data}, but the layout {' or '.join(layouts)} is needed"
                + "; a single image becomes a batch of one by x.expand_dims(0)"
                * (len(data) == len(layouts[0]) - 1)
            )
    if not kernel:
        raise AttrError(
            "Pooling: kernel is missing; give a length for each axis after "
            "the channels, or global_pool=True"
        )
    stride, _, pad = window("Pooling", data, kernel, stride, (), pad, layout)
    size = data[2:]
    if any(p >= k for p, k in zip(pad, kernel, strict=True)):
        raise AttrError(
            f"Pooling: pad={pad} does not fit; needed: less than "
            f"kernel={kernel}, or windows see padding only"
        )
    if any(k > n + 2 * p for k, n, p in zip(kernel, size, pad, strict=True)):
        raise ShapeError(
            f"Pooling: kernel={kernel} does not fit into data {data} with "
            f"pad={pad}; use a smaller kernel, or pool over all places"
        )
    less = {"valid": lambda s: 0, "full": lambda s: s - 1}
    outs = tuple(
        -(-(n + 2 * p) // s)
        if pooling_convention == "same"
        else (n + 2 * p - k + less[pooling_convention](s)) // s + 1
        for n, k, s, p in zip(size, kernel, stride, pad, strict=True)
    )
    return {"size": size, "kernel": kernel, "stride": stride, "pad": pad, "outs": outs}


def _pool_infer(specs, pool_type, p_value, cudnn_off, count_include_pad, **attrs):
    if not known(specs):
        return specs, [Spec(None, specs[0].dtype)]
    if pool_type == "lp" and p_value not in (1, 2):
        raise AttrError(
            f"Pooling: p_value={p_value} does not fit; needed: 1 or 2 for pool_type='lp'"
        )
    data, kind = specs[0]
    kind = floating(kind) if pool_type == "lp" and p_value == 2 else kind
    return specs, [Spec((*data[:2], *_geometry(data, **attrs)["outs"]), kind)]


def _with_outside(pool_max, data, dtype, g):
    """Compute maxima; windows entirely outside the data get the lowest value, as in MXNet.

    These are the last ones of the convention "full", if they start beyond the data.
    """
    inside = tuple(
        min(out, -(-(n + p) // s))
        for out, n, s, p in zip(
            *(g[name] for name in ("outs", "size", "stride", "pad")), strict=True
        )
    )
    if inside == g["outs"]:
        return pool_max(data, **g)
    lowest = (np.finfo if dtype.kind == "f" else np.iinfo)(dtype).min
    more = [(0, out - n) for out, n in zip(g["outs"], inside, strict=True)]
    return pad(
        pool_max(data, **g | {"outs": inside}),
        mode="constant",
        pad_width=(0, 0, 0, 0, *sum(more, ())),
        constant_value=float(lowest),
    )


def _pool_expand(
    specs, data, pool_type, p_value, cudnn_off, count_include_pad, global_pool, **attrs
):
    shape, dtype = specs[0]
    g = _geometry(shape, global_pool=global_pool, **attrs)
    if pool_type == "max":
        return _with_outside(pool_max, data, dtype, g)
    if global_pool and dtype.kind == "f":  # reductions over whole axes are faster

        def total(data):
            return sum_(data, axis=tuple(range(2, len(shape))), keepdims=True)

        if pool_type == "avg":
            return mean(data, axis=tuple(range(2, len(shape))), keepdims=True)
    else:

        def total(data):
            return pool_sum(data, **g)

    if pool_type == "avg":
        inner = count_include_pad in (None, True)
        return pool_sum(data, count="padding" if inner else "numbers", **g)
    if pool_type == "lp" and p_value == 2:
        return sqrt(total(square(data)))
    return total(data)


pooling = register(
    "Pooling",
    "Pooling_v1",
    infer=_pool_infer,
    expand=_pool_expand,
    attrs={
        "kernel": (shape, ()),
        "pool_type": (choice("max", "avg", "sum", "lp"), "max"),
        "global_pool": (boolean, False),
        "cudnn_off": (boolean, False),
        "pooling_convention": (choice("valid", "full", "same"), "valid"),
        "stride": (shape, ()),
        "pad": (shape, ()),
        "p_value": (optional(integer), None),
        "count_include_pad": (optional(boolean), None),
        "layout": (optional(choice(*LAYOUTS.values())), None),
    },
    doc="The maximum, mean, sum or p-norm of each window; (N, C, *size) -> (N, C, *out).",
)
