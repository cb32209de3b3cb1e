"""Chapter 12. Images in other sizes, whole or by regions: detection and segmentation.

Takes:   images (N, C, H, W); for regions also (R, 5) rows of a batch index, x1, y1, x2, y2.
Gives:   `AdaptiveAvgPooling2D`, `BilinearResize2D`, `ROIAlign`, `ROIPooling`.

Means and bilinear resizing mix rows, then columns, each by a matrix that depends on the
lengths alone: two products, and their gradients with them. A region has a matrix of its
own, of which almost all is 0, so that loops add up the few numbers that are not.
No gradient goes to the regions, as in MXNet.
What is left out: position-sensitive regions; resizing that skips the zeros.
"""

import numpy as np

from minihybrid.core.op import (
    REQUIRED,
    AttrError,
    ShapeError,
    Spec,
    boolean,
    choice,
    integer,
    length,
    not_negative,
    optional,
    positive,
    register,
    shape,
)
from minihybrid.ops.elementwise import cast, where
from minihybrid.ops.filled import arange, full, made
from minihybrid.ops.indexing import take
from minihybrid.ops.layout import reshape, swapaxes
from minihybrid.ops.loops import T, each, loops, store
from minihybrid.ops.neural import fully_connected
from minihybrid.ops.shapes import adds_back, floating, forward, known

INT64, FLOAT64 = np.dtype("int64"), np.dtype("float64")


# -- whole images ----------------------------------------------------------------------
def _resized(op, specs, size):
    """The shape rule: images (N, C, *size) of floats, as far as the inputs are known."""
    kind = floating(specs[0].dtype)
    if not known(specs):
        return specs, [Spec(None, kind)]
    shapes = [s.shape for s in specs]
    for old in shapes:
        if len(old) != 4:
            raise ShapeError(f"{op}: data has shape {old}, but images (N, C, H, W) are needed")
    size = size(shapes)
    if min(*size, *shapes[0][2:]) < 1:
        raise ShapeError(
            f"{op}: {shapes[0]} cannot become {size[0]} x {size[1]}; height and width must be at "
            "least 1"
        )
    return specs, [Spec((*shapes[0][:2], *size), kind)]


def _mixed(data, spec, size, weights):
    """Columns, then rows, mixed by `weights(places of outputs, of inputs, n, m)`."""
    kind = floating(spec.dtype)
    data = cast(data, dtype=kind)
    for n, m in zip(size[::-1], spec.shape[:1:-1], strict=True):
        to = reshape(made(data, arange, start=0, stop=n, dtype="float64"), shape=(-1, 1))
        at = reshape(made(data, arange, start=0, stop=m, dtype="float64"), shape=(1, -1))
        matrix = cast(weights(to, at, n, m), dtype=kind)
        data = fully_connected(data, matrix, num_hidden=n, no_bias=True, flatten=False)
        data = swapaxes(data, dim1=2, dim2=3)
    return data


def _mean_weights(to, at, n, m):
    """1 / count where the window of an output, floor(i m / n) to ceil((i + 1) m / n), is."""
    low, high = (to * m / n).floor(), ((to + 1) * m / n).ceil()
    inside = at.broadcast_greater_equal(low) * at.broadcast_lesser(high)
    return inside.broadcast_div(high - low)


def _pooled_size(output_size):
    if len(output_size) > 2 or min(output_size, default=1) < 1:
        raise AttrError(
            f"AdaptiveAvgPooling2D: output_size={output_size}, but one or two whole numbers of "
            "at least 1 are needed"
        )
    return (*output_size, *output_size)[:2] or (1, 1)


adaptive_avg_pooling = register(
    "_contrib_AdaptiveAvgPooling2D",
    inputs=("data",),
    attrs={"output_size": (shape, ())},
    infer=lambda specs, output_size: _resized(
        "AdaptiveAvgPooling2D", specs, lambda _: _pooled_size(output_size)
    ),
    expand=lambda specs, data, output_size: _mixed(
        data, specs[0], _pooled_size(output_size), _mean_weights
    ),
    doc="Means of windows that share an image out, (N, C, H, W) -> (N, C, *output_size); "
    "one number stands for both lengths, none for 1.",
)

EVEN = {"to_even_down": (0, -1), "to_even_up": (0, 1), "to_odd_down": (1, -1), "to_odd_up": (1, 1)}
MODES = ("size", "odd_scale", "like", *EVEN)


def _new_length(old, given, scale, mode):
    """The new length of an axis, as MXNet's modes say it."""
    if mode in EVEN:
        parity, step = EVEN[mode]
        return old + step * (old % 2 != parity)
    if mode == "odd_scale" and scale is None:
        raise AttrError(
            "BilinearResize2D: mode='odd_scale' needs scale_height and scale_width, found None"
        )
    odd = mode == "odd_scale" and old % 2
    return given if scale is None else int((old - odd) * scale) + odd


def _new_size(shapes, height, width, scale_height, scale_width, mode, align_corners):
    if mode == "like":
        return shapes[1][2:]
    wanted = zip(shapes[0][2:], (height, width), (scale_height, scale_width), strict=True)
    return tuple(_new_length(*each_axis, mode) for each_axis in wanted)


def _resize_infer(specs, mode, **attrs):
    return _resized("BilinearResize2D", specs, lambda s: _new_size(s, mode=mode, **attrs))


def _resize_expand(specs, data, *like, align_corners, **attrs):
    def weights(to, at, n, m):
        """What two neighbours give to a number that lies between them: 1 - distance."""
        if align_corners:
            place = to * ((m - 1) / max(n - 1, 1))
        else:
            place = ((to + 0.5) * (m / n) - 0.5).clip(0, m - 1)
        return (1 - at.broadcast_sub(place).abs()).relu()

    size = _new_size([s.shape for s in specs], align_corners=align_corners, **attrs)
    return _mixed(data, specs[0], size, weights)


bilinear_resize = register(
    "_contrib_BilinearResize2D",
    inputs=lambda attrs: ("data",) if attrs and attrs["mode"] != "like" else ("data", "like"),
    attrs={
        "height": (length, 1),
        "width": (length, 1),
        "scale_height": (optional(positive), None),
        "scale_width": (optional(positive), None),
        "mode": (choice(*MODES), "size"),
        "align_corners": (boolean, True),
    },
    infer=_resize_infer,
    expand=_resize_expand,
    doc="Images of another height and width; a new number lies between four old ones.",
)


# -- regions ---------------------------------------------------------------------------
def _regions(op, data, rois, pooled_size):
    """The shape of all regions' outputs (R, C, *pooled_size)."""
    if len(data) != 4 or len(rois) != 2 or rois[1] != 5 or 0 in data[2:]:
        raise ShapeError(
            f"{op}: data {data} and rois {rois}, but images (N, C, H, W) and one row "
            "(batch index, x1, y1, x2, y2) a region are needed"
        )
    if len(pooled_size) not in (1, 2) or min(pooled_size) < 1:
        raise AttrError(f"{op}: pooled_size={pooled_size}, but (height, width) is needed")
    return (rois[0], data[1], pooled_size[0], pooled_size[-1])


MOST = 64  # numbers an axis of a cell that are averaged, however large the region is


def _as_floats(infer):
    """The same shape rule; a mean of whole numbers is a float."""

    def rule(specs, **attrs):
        specs, (out,) = infer(specs, **attrs)
        return specs, [Spec(out.shape, floating(specs[0].dtype))]

    return rule


def _align_rule(data, rois, pooled_size, position_sensitive, **_):
    if position_sensitive:
        raise AttrError(
            "ROIAlign: position_sensitive=True is left out; give each region all channels"
        )
    return _regions("ROIAlign", data, rois, pooled_size)


def _sampled(first, last, n, m, samples, aligned):
    """Where the n cells of one region read an axis of m: (places before, behind, share of
    those behind, whether the axis reaches so far), each a cell after the other."""
    long = last - first if aligned else max(last - first, 1.0)
    count = samples if samples > 0 else int(np.ceil(min(max(long / n, 0), MOST)))
    at = first + (np.arange(n)[:, None] + (np.arange(count) + 0.5) / max(count, 1)) * (long / n)
    at, within = at.ravel(), np.clip(at.ravel(), 0, m - 1)
    low = within.astype(np.int64)
    return low, np.minimum(low + 1, m - 1), within - low, (at >= -1) & (at <= m)


def _each_region(shape, rois, pooled_size, spatial_scale, sample_ratio, aligned, **_):
    """(its number, that of its image, which reads are inside, four times places and weights)."""
    edges = rois[:, 1:].astype("f8") * spatial_scale - 0.5 * aligned
    for r, (x1, y1, x2, y2) in enumerate(edges):
        if 0 <= rois[r, 0] < shape[0] and np.isfinite(edges[r]).all():
            *y, fy, y_in = _sampled(y1, y2, pooled_size[0], shape[2], sample_ratio, aligned)
            *x, fx, x_in = _sampled(x1, x2, pooled_size[-1], shape[3], sample_ratio, aligned)
            reads = [
                ((slice(None), rows[:, None], columns), a[:, None] * b)
                for rows, a in zip(y, (1 - fy, fy), strict=True)
                for columns, b in zip(x, (1 - fx, fx), strict=True)
            ]
            if y_in.size and x_in.size:
                yield r, int(rois[r, 0]), y_in[:, None] & x_in, reads


def _align_eager(data, rois, *, pooled_size, **attrs):
    shape = _regions("ROIAlign", data.shape, rois.shape, pooled_size)
    out, (_, c, ph, pw) = np.zeros(shape, floating(data.dtype)), shape
    for r, n, inside, reads in _each_region(data.shape, rois, pooled_size, **attrs):
        seen = np.where(inside, sum(data[n][at] * part for at, part in reads), 0)
        out[r] = seen.reshape(c, ph, len(inside) // ph, pw, -1).mean((2, 4))
    return out


def _unalign_eager(grad, rois, like, **attrs):
    out, (ph, pw) = np.zeros(like.shape, floating(grad.dtype)), grad.shape[2:]
    for r, n, inside, reads in _each_region(like.shape, rois, **attrs):
        rows, columns = (m // k for m, k in zip(inside.shape, (ph, pw), strict=True))
        given = grad[r].repeat(rows, 1).repeat(columns, 2) / (rows * columns)
        for at, part in reads:
            np.add.at(out[n], at, np.where(inside, given * part, 0))
    return out


def _align_lengths(grad, rois, data, pooled_size, spatial_scale, sample_ratio, aligned, **_):
    return (
        *(*data.shape, rois.shape[0], pooled_size[0], pooled_size[-1], spatial_scale),
        *(0.5 if aligned else 0.0, float("-inf") if aligned else 1.0, sample_ratio),
    )


def _count(step, samples):
    """How many numbers of an axis a cell averages."""
    return samples if samples > 0 else int(np.ceil(min(max(step, 0.0), 64.0)))


def _within(at, m):
    """A place, moved into an axis."""
    return min(max(at, 0.0), m - 1.0)


def _cells(c, data, rois, out, images, channels, h, w, n, ph, pw, scale, off, least, samples, back):
    """All cells of all regions of one channel; `back` gives to the image what they read."""
    if back:
        for image in range(images):
            for at in range(h * w):
                out[(image * channels + c) * h * w + at] = T(0)
    for r in range(n):
        y0 = rois[r * 5 + 2] * scale - off
        x0 = rois[r * 5 + 1] * scale - off
        high = max(rois[r * 5 + 4] * scale - off - y0, least) / ph
        wide = max(rois[r * 5 + 3] * scale - off - x0, least) / pw
        rows, columns, start = 0, 0, 0
        if rois[r * 5] >= 0 and rois[r * 5] < images and y0 - y0 == 0 and x0 - x0 == 0:
            if high - high == 0 and wide - wide == 0:
                start = (int(rois[r * 5]) * channels + c) * h * w
                rows, columns = _count(high, samples), _count(wide, samples)
        for i in range(ph):
            for j in range(pw):
                cell = ((r * channels + c) * ph + i) * pw + j
                total = T(0)
                for p in range(rows):
                    y = y0 + (i + (p + 0.5) / rows) * high
                    if y >= -1 and y <= h:
                        top = int(_within(y, h))
                        below = min(top + 1, h - 1)
                        fy = _within(y, h) - top
                        for q in range(columns):
                            x = x0 + (j + (q + 0.5) / columns) * wide
                            if x >= -1 and x <= w:
                                left = int(_within(x, w))
                                right = min(left + 1, w - 1)
                                fx = _within(x, w) - left
                                a = start + top * w + left
                                b = start + top * w + right
                                d = start + below * w + left
                                e = start + below * w + right
                                if back:
                                    g = data[cell] / (rows * columns)
                                    out[a] += g * (1 - fy) * (1 - fx)
                                    out[b] += g * (1 - fy) * fx
                                    out[d] += g * fy * (1 - fx)
                                    out[e] += g * fy * fx
                                else:
                                    total += (1 - fy) * ((1 - fx) * data[a] + fx * data[b])
                                    total += fy * ((1 - fx) * data[d] + fx * data[e])
                if not back:
                    out[cell] = total / max(rows * columns, 1)
    return 0


@loops(lambda data, rois, out, **a: _align_lengths(out, rois, data, **a))
def _align_cpu(data, rois, out, images, channels, h, w, n, ph, pw, scale, off, least, samples):
    for c in each(channels):
        _cells(
            c, data, rois, out, images, channels, h, w, n, ph, pw, scale, off, least, samples, False
        )


@loops(lambda grad, rois, like, out, **a: _align_lengths(grad, rois, like, **a))
def _unalign_cpu(
    grad, rois, like, out, images, channels, h, w, n, ph, pw, scale, off, least, samples
):
    for c in each(channels):
        _cells(
            c, grad, rois, out, images, channels, h, w, n, ph, pw, scale, off, least, samples, True
        )


REGIONS = {"pooled_size": (shape, REQUIRED), "spatial_scale": (not_negative, REQUIRED)}
ALIGN = {
    **REGIONS,
    "sample_ratio": (integer, -1),
    "position_sensitive": (boolean, False),
    "aligned": (boolean, False),
}
roi_align = register(
    "_contrib_ROIAlign",
    inputs=("data", "rois"),
    attrs=ALIGN,
    infer=_as_floats(forward(_align_rule)),
    eager=_align_eager,
    cpu=_align_cpu,
    grad=lambda g, out, data, rois, **a: (unalign(g, rois, data, **a), None),
    doc="Bilinear means of the cells of each region, (R, C, *pooled_size); He et al., Mask "
    "R-CNN (2017). With sample_ratio below 1 a cell averages as many numbers as it covers, "
    "64 x 64 at most; a region of no image gives zeros.",
)
unalign = register(
    "_unalign",
    inputs=("grad", "rois", "like"),
    attrs=ALIGN,
    infer=_as_floats(adds_back("_unalign", _align_rule)),
    eager=_unalign_eager,
    cpu=_unalign_cpu,
    grad=lambda g, out, grad, rois, like, **a: (roi_align(g, rois, **a), None, None),
    doc="The gradient of ROIAlign: each cell's number is shared out where it was read.",
)


def _edge(at):
    """A border of a region in whole numbers: halves are rounded away from 0."""
    return int(np.floor(min(abs(at), 1e6) + 0.5)) * (1 if at >= 0 else -1)


def _first(i, start, long, n, m):
    """Where cell i of n begins, of a region that is `long`, in an axis of m."""
    return min(max(start + i * long // n, 0), m)


def _last(i, start, long, n, m):
    """Where it ends: where the next one begins, rounded up."""
    return min(max(start + ((i + 1) * long + n - 1) // n, 0), m)


def _best_eager(data, rois, *, pooled_size, spatial_scale):
    shape = _regions("ROIPooling", data.shape, rois.shape, pooled_size)
    (_, channels, ph, pw), (images, _, h, w) = shape, data.shape
    out = np.full(shape, -1, INT64)
    planes = np.arange(images * channels).reshape(images, channels) * (h * w)
    for r, (image, *edges) in enumerate(rois.astype("f8") * [1, *[spatial_scale] * 4]):
        if not (0 <= image < images and np.isfinite(edges).all()):
            continue
        x1, y1, x2, y2 = map(_edge, edges)
        high, wide = max(y2 - y1 + 1, 1), max(x2 - x1 + 1, 1)
        for i, j in np.ndindex(ph, pw):
            top, left = _first(i, y1, high, ph, h), _first(j, x1, wide, pw, w)
            below = _last(i, y1, high, ph, h)
            right = _last(j, x1, wide, pw, w)
            if below > top and right > left:
                cell = data[int(image), :, top:below, left:right].reshape(channels, -1)
                y, x = np.divmod(cell.argmax(1), right - left)
                out[r, :, i, j] = planes[int(image)] + (top + y) * w + left + x
    return out


@loops(
    lambda data, rois, out, pooled_size, spatial_scale: (
        *data.shape,
        rois.shape[0],
        pooled_size[0],
        pooled_size[-1],
        spatial_scale,
    )
)
def _best_cpu(data, rois, out, images, channels, h, w, n, ph, pw, scale):
    for r, c, i, j in each(n, channels, ph, pw):
        best = -1
        y, x = rois[r * 5 + 2] * scale, rois[r * 5 + 1] * scale
        y2, x2 = rois[r * 5 + 4] * scale, rois[r * 5 + 3] * scale
        fits = y - y == 0 and x - x == 0 and y2 - y2 == 0 and x2 - x2 == 0
        if rois[r * 5] >= 0 and rois[r * 5] < images and fits:
            start = (int(rois[r * 5]) * channels + c) * h * w
            y0, x0 = _edge(y), _edge(x)
            high, wide = max(_edge(y2) - y0 + 1, 1), max(_edge(x2) - x0 + 1, 1)
            left, right = _first(j, x0, wide, pw, w), _last(j, x0, wide, pw, w)
            for row in range(_first(i, y0, high, ph, h), _last(i, y0, high, ph, h)):
                for column in range(left, right):
                    at = start + row * w + column
                    if best < 0:
                        best = at
                    elif data[at] > data[best] or (
                        data[at] != data[at] and data[best] == data[best]
                    ):
                        best = at  # NaN is larger than all, as in NumPy
        store(out, ((r * channels + c) * ph + i) * pw + j, best)


best_places = register(
    "_best_places",
    inputs=("data", "rois"),
    attrs=REGIONS,
    infer=forward(
        lambda data, rois, pooled_size, **_: Spec(
            _regions("ROIPooling", data, rois, pooled_size), INT64
        )
    ),
    eager=_best_eager,
    cpu=_best_cpu,
    stores=True,
    grad=lambda g, out, data, rois, **_: (None, None),
    doc="Where the largest number of each cell of each region is in the flat data; else -1.",
)


def _pooling_expand(specs, data, rois, **attrs):
    places, numbers = best_places(data, rois, **attrs), reshape(data, shape=(-1,))
    nothing = made(data, full, shape=(1,) * 4, value=0.0, dtype=specs[0].dtype)
    return where(places >= 0, take(numbers, places), nothing)


roi_pooling = register(
    "ROIPooling",
    inputs=("data", "rois"),
    attrs=REGIONS,
    infer=forward(
        lambda data, rois, pooled_size, **_: _regions("ROIPooling", data, rois, pooled_size)
    ),
    expand=_pooling_expand,
    doc="The largest number of each cell of each region, (R, C, *pooled_size); Girshick, Fast "
    "R-CNN (2015). A cell without numbers, or of no image, gives 0.",
)
