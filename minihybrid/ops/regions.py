"""Region pooling for detection: resample regions of images to a fixed size.

Uses:    images (N, C, H, W), and rows of a batch index, x1, y1, x2, y2: regions (R, 5).
Defines: `ROIAlign`, `ROIPooling`.

A region is divided into cells. ROIPooling takes each cell's maximum, and its gradient flows
to the position of the maximum. ROIAlign averages bilinear samples, and its gradient is
distributed over the four pixels around each sample. The regions get no gradient.
Not supported: deformable cells.
"""

import numpy as np

from minihybrid.core.op import REQUIRED, AttrError, ShapeError, Spec, boolean, integer, shape, share
from minihybrid.ops.elementwise import block_grad, cast, choose
from minihybrid.ops.filled import arange, full, make
from minihybrid.ops.indexing import take
from minihybrid.ops.joining import stack
from minihybrid.ops.layout import reshape, slice_axis
from minihybrid.ops.loops import T, each, loops, store
from minihybrid.ops.registry import register
from minihybrid.ops.shapes import adds_back, floating, forward

FARTHEST = 1e6  # clamp for region borders, in pixels from the image


def _regions(op, data, rois, pooled_size):
    """Return the output shape of all regions: (R, C, *pooled_size)."""
    if len(data) != 4 or len(rois) != 2 or rois[1] != 5 or 0 in data:
        raise ShapeError(
            f"{op}: data {data} and rois {rois}, but images (N, C, H, W) and one row "
            "(batch index, x1, y1, x2, y2) a region are needed"
        )
    if len(pooled_size) != 2 or min(pooled_size) < 1:
        raise AttrError(f"{op}: pooled_size={pooled_size}, but (height, width) is needed")
    return (rois[0], data[1], *pooled_size)


# -- ROIAlign: means of bilinear samples -----------------------------------------------
def _align_rule(data, rois, pooled_size, position_sensitive, **_):
    count, channels, high, wide = _regions("_contrib_ROIAlign", data, rois, pooled_size)
    if not position_sensitive:
        return count, channels, high, wide
    if channels % (high * wide):
        raise ShapeError(
            f"_contrib_ROIAlign: {channels} channels of data {data} cannot be shared out among "
            f"{high} x {wide} cells; position_sensitive=True needs a multiple of {high * wide}"
        )
    return count, channels // (high * wide), high, wide


def _in_floats(infer):
    """Adapt a shape rule to float outputs for integer data."""

    def rule(specs, **attrs):
        specs, (out,) = infer(specs, **attrs)
        return specs, [Spec(out.shape, floating(specs[0].dtype))]

    return rule


def _larger(a, b):
    """Return the larger scalar; if either is NaN, the second."""
    return a if a > b else b


def _smaller(a, b):
    """Return the smaller scalar; if either is NaN, the second."""
    return a if a < b else b


def _extent(first, last, aligned):
    """Return a region's length along an axis; without `aligned`, at least one pixel."""
    return last - first if aligned else _larger(last - first, T(1))


def _samples(step, ratio):
    """Return the samples per cell along an axis, bounded for any region size."""
    return ratio if ratio > 0 else int(np.ceil(_smaller(_larger(step, T(0)), T(1024))))


def _at(first, step, cell, number, count):
    """Return the coordinate of one of `count` samples of a cell."""
    return first + T(cell) * step + (T(number) + T(0.5)) * step / T(count)


def _within(at, length):
    """Clamp a coordinate to the pixels."""
    return _smaller(_larger(at, T(0)), T(length - 1))


def _image(index, images):
    """Return the index of a region's image; -1 if it is out of range."""
    return int(index) if index > -1 and index < images else -1


def _read_axis(first, last, n, length, sample_ratio, aligned):
    """Return (left pixel, right pixel, weight of the right, inside) of n cells' samples along
    an axis, and the number of samples per cell."""
    kind = type(first)
    step = kind(_extent(first, last, aligned)) / kind(n)
    count = _samples(step, sample_ratio)
    cell, number = np.arange(n, dtype=kind)[:, None], np.arange(count, dtype=kind)
    at = first + cell * step + (number + kind(0.5)) * step / kind(max(count, 1))
    at = at.ravel()
    inside = (at >= -1) & (at <= length)
    on = np.where(inside, np.clip(at, 0, length - 1), 0)
    low = on.astype(np.int64)
    return low, np.minimum(low + 1, length - 1), on - low, inside, count


def _each_region(images, rois, kind, pooled_size, spatial_scale, sample_ratio, aligned):
    """Yield, for each region in an image, its index, its image's index, the four (rows,
    columns, weights) that it reads, and a cell's samples down and across."""
    (n, _, h, w), (ph, pw) = images, pooled_size
    edges = rois[:, 1:].astype(kind) * kind(spatial_scale) - kind(0.5 if aligned else 0)
    for r, (x1, y1, x2, y2) in enumerate(edges):
        if (image := _image(rois[r, 0], n)) >= 0:
            top, below, fy, y_in, down = _read_axis(y1, y2, ph, h, sample_ratio, aligned)
            left, right, fx, x_in, across = _read_axis(x1, x2, pw, w, sample_ratio, aligned)
            inside = y_in[:, None] & x_in
            reads = [
                (rows[:, None], columns, np.where(inside, a[:, None] * b, kind(0)))
                for rows, a in ((top, 1 - fy), (below, fy))
                for columns, b in ((left, 1 - fx), (right, fx))
            ]
            yield r, image, reads, (down, across)


def _by_cells(image, position_sensitive, ph, pw):
    """Reshape an image to (cells down, across or 1, channels of the output, H, W)."""
    c, h, w = image.shape
    if not position_sensitive:
        return image.reshape(1, 1, c, h, w)
    return np.moveaxis(image.reshape(-1, ph, pw, h, w), 0, 2)


def _of_cell(number, count):
    """Return the slice of an axis's samples that one cell reads."""
    return slice(number * count, (number + 1) * count)


def _align_eager(data, rois, *, pooled_size, position_sensitive, **attrs):
    kind, (ph, pw) = floating(data.dtype).type, pooled_size
    rule = {"pooled_size": pooled_size, "position_sensitive": position_sensitive}
    out = np.zeros(_align_rule(data.shape, rois.shape, **rule), kind)
    for r, image, reads, counts in _each_region(data.shape, rois, kind, pooled_size, **attrs):
        cells = _by_cells(data[image], position_sensitive, ph, pw)
        for i, j in np.ndindex(ph, pw):
            if min(counts) > 0:
                cell = cells[i % len(cells), j % cells.shape[1]]
                rows, columns = _of_cell(i, counts[0]), _of_cell(j, counts[1])
                values = sum(cell[:, y[rows], x[columns]] * f[rows, columns] for y, x, f in reads)
                out[r, :, i, j] = values.sum((1, 2)) / kind(counts[0] * counts[1])
    return out


def _unalign_eager(grad, rois, like, *, pooled_size, position_sensitive, **attrs):
    kind, (ph, pw) = floating(grad.dtype).type, pooled_size
    out = np.zeros(like.shape, kind)
    for r, image, reads, counts in _each_region(like.shape, rois, kind, pooled_size, **attrs):
        cells = _by_cells(out[image], position_sensitive, ph, pw)  # a view
        for i, j in np.ndindex(ph, pw):
            if min(counts) > 0:
                cell = cells[i % len(cells), j % cells.shape[1]]
                rows, columns = _of_cell(i, counts[0]), _of_cell(j, counts[1])
                share = grad[r, :, i, j] / kind(counts[0] * counts[1])
                for y, x, f in reads:
                    part = share[:, None, None] * f[rows, columns]
                    np.add.at(cell, (slice(None), y[rows], x[columns]), part)
    return out


def _align_lengths(
    data, rois, cells, pooled_size, spatial_scale, sample_ratio, position_sensitive, aligned
):
    sizes = (*data.shape, rois.shape[0], cells.shape[1], *pooled_size)
    return *sizes, spatial_scale, sample_ratio, position_sensitive, aligned


@loops(_align_lengths)
def _align_cpu(
    data, rois, out, images, channels, h, w, n, c_out, ph, pw, scale, ratio, sensitive, aligned
):
    for r, c, i, j in each(n, c_out, ph, pw):
        off = T(0.5) if aligned else T(0)
        x0 = T(rois[r * 5 + 1]) * T(scale) - off
        y0 = T(rois[r * 5 + 2]) * T(scale) - off
        across = _extent(x0, T(rois[r * 5 + 3]) * T(scale) - off, aligned) / T(pw)
        down = _extent(y0, T(rois[r * 5 + 4]) * T(scale) - off, aligned) / T(ph)
        rows = _samples(down, ratio)
        columns = _samples(across, ratio)
        image = _image(rois[r * 5], images)
        total = T(0)
        if image >= 0:
            plane = (c * ph + i) * pw + j if sensitive else c
            start = (image * channels + plane) * (h * w)
            for p in range(rows):
                y = _at(y0, down, i, p, rows)
                if y >= T(-1) and y <= T(h):
                    top = int(_within(y, h))
                    fy = _within(y, h) - T(top)
                    upper = start + top * w
                    lower = start + min(top + 1, h - 1) * w
                    for q in range(columns):
                        x = _at(x0, across, j, q, columns)
                        if x >= T(-1) and x <= T(w):
                            left = int(_within(x, w))
                            right = min(left + 1, w - 1)
                            fx = _within(x, w) - T(left)
                            a = (T(1) - fx) * T(data[upper + left]) + fx * T(data[upper + right])
                            b = (T(1) - fx) * T(data[lower + left]) + fx * T(data[lower + right])
                            total += (T(1) - fy) * a + fy * b
        store(out, ((r * c_out + c) * ph + i) * pw + j, total / T(max(rows * columns, 1)))


@loops(lambda grad, rois, like, out, **a: _align_lengths(like, rois, grad, **a))
def _unalign_cpu(
    grad,
    rois,
    like,
    out,
    images,
    channels,
    h,
    w,
    n,
    c_out,
    ph,
    pw,
    scale,
    ratio,
    sensitive,
    aligned,
):
    """Iterate over output channels, which write disjoint planes."""
    for c in each(c_out):
        for image in range(images):
            for at in range(channels // c_out * (h * w)):
                out[(image * channels + c * (channels // c_out)) * (h * w) + at] = T(0)
        for r in range(n):
            off = T(0.5) if aligned else T(0)
            x0 = T(rois[r * 5 + 1]) * T(scale) - off
            y0 = T(rois[r * 5 + 2]) * T(scale) - off
            across = _extent(x0, T(rois[r * 5 + 3]) * T(scale) - off, aligned) / T(pw)
            down = _extent(y0, T(rois[r * 5 + 4]) * T(scale) - off, aligned) / T(ph)
            rows = _samples(down, ratio)
            columns = _samples(across, ratio)
            image = _image(rois[r * 5], images)
            if image >= 0:
                for i in range(ph):
                    for j in range(pw):
                        plane = (c * ph + i) * pw + j if sensitive else c
                        start = (image * channels + plane) * (h * w)
                        g = T(grad[((r * c_out + c) * ph + i) * pw + j]) / T(max(rows * columns, 1))
                        for p in range(rows):
                            y = _at(y0, down, i, p, rows)
                            if y >= T(-1) and y <= T(h):
                                top = int(_within(y, h))
                                fy = _within(y, h) - T(top)
                                upper = start + top * w
                                lower = start + min(top + 1, h - 1) * w
                                for q in range(columns):
                                    x = _at(x0, across, j, q, columns)
                                    if x >= T(-1) and x <= T(w):
                                        left = int(_within(x, w))
                                        right = min(left + 1, w - 1)
                                        fx = _within(x, w) - T(left)
                                        out[upper + left] += g * (T(1) - fy) * (T(1) - fx)
                                        out[upper + right] += g * (T(1) - fy) * fx
                                        out[lower + left] += g * fy * (T(1) - fx)
                                        out[lower + right] += g * fy * fx


REGIONS = {"pooled_size": (shape, REQUIRED), "spatial_scale": (share, REQUIRED)}
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
    infer=_in_floats(forward(_align_rule)),
    eager=_align_eager,
    cpu=_align_cpu,
    stores=True,
    grad=lambda g, out, data, rois, **a: (unalign(g, rois, data, **a), None),
    doc="Bilinear means of the cells of each region, (R, C, *pooled_size); He et al., Mask "
    "R-CNN (2017). With sample_ratio below 1 a cell averages as many numbers as it covers, "
    "1024 x 1024 at most; a region of no image gives zeros; with position_sensitive each "
    "cell reads channels of its own.",
)
unalign = register(
    "_unalign",
    inputs=("grad", "rois", "like"),
    attrs=ALIGN,
    infer=_in_floats(adds_back("_unalign", _align_rule)),
    eager=_unalign_eager,
    cpu=_unalign_cpu,
    grad=lambda g, out, grad, rois, like, **a: (roi_align(g, rois, **a), None, None),
    doc="The gradient of ROIAlign: each cell's number is shared out where it was read.",
)


# -- ROIPooling: the maximum of a cell -------------------------------------------------
def _border(at, length):
    """Clamp a cell's border to an integer pixel position on an axis."""
    return min(max(int(at), 0), length)


def _best_eager(data, index, rows, columns):
    (images, channels, h, w), (_, n, ph), pw = data.shape, rows.shape, columns.shape[2]
    out = np.full((n, channels, ph, pw), -1, np.int64)
    planes = np.arange(images * channels).reshape(images, channels) * (h * w)
    for r, i, j in np.ndindex(n, ph, pw):
        top, below = (_border(at, h) for at in rows[:, r, i])
        left, right = (_border(at, w) for at in columns[:, r, j])
        image = _image(index[r], images)
        if image >= 0 and below > top and right > left:
            cell = data[image, :, top:below, left:right].reshape(channels, -1)
            least = np.fmin.reduce(cell, axis=1, keepdims=True)
            y, x = np.divmod(np.where(cell != cell, least, cell).argmax(1), right - left)
            out[r, :, i, j] = planes[image] + (top + y) * w + left + x
    return out


@loops(lambda data, index, rows, columns, out: (*data.shape, index.size, *out.shape[2:]))
def _best_cpu(data, index, rows, columns, out, images, channels, h, w, n, ph, pw):
    for r, c, i, j in each(n, channels, ph, pw):
        best = -1
        image = _image(index[r], images)
        if image >= 0:
            start = (image * channels + c) * (h * w)
            left = _border(columns[r * pw + j], w)
            right = _border(columns[(n + r) * pw + j], w)
            for y in range(_border(rows[r * ph + i], h), _border(rows[(n + r) * ph + i], h)):
                for x in range(left, right):
                    at = start + y * w + x
                    if best < 0 or data[at] > data[best] or data[best] != data[best]:
                        best = at
        store(out, ((r * channels + c) * ph + i) * pw + j, best)


def _best_rule(data, index, rows, columns):
    n = index[0] if len(index) == 1 else -1
    fits = len(rows) == len(columns) == 3 and rows[:2] == columns[:2] == (2, n)
    if len(data) != 4 or 0 in data or not fits:
        raise ShapeError(
            f"_best_places: data {data}, index {index}, rows {rows} and columns {columns}, but "
            "(N, C, H, W), (R,), (2, R, height) and (2, R, width) are needed"
        )
    return n, data[1], rows[2], columns[2]


best_places = register(
    "_best_places",
    inputs=("data", "index", "rows", "columns"),
    infer=forward(_best_rule, dtype=np.dtype("int64")),
    eager=_best_eager,
    cpu=_best_cpu,
    stores=True,
    grad=lambda g, out, *ins: (None,) * 4,
    doc="Where the largest number of each cell is in the flat data, or -1: cells lie in images "
    "`index` between rows (first, end) and columns (first, end); NaN is no number.",
)


def _borders(first, last, cells, length, kind):
    """Return where cells of regions (R, 1) begin and end on an axis: (2, R, cells)."""
    number = make(first, arange, start=0, stop=cells, dtype=kind)
    step = (last - first + 1).broadcast_maximum(first.ones_like()) / cells
    begins = number.broadcast_mul(step).floor().broadcast_add(first)
    ends = (number + 1).broadcast_mul(step).ceil().broadcast_add(first)
    return cast(stack(begins, ends, axis=0).clip(0, length), dtype="int64")


def _pooling_expand(specs, data, rois, pooled_size, spatial_scale):
    (_, _, h, w), kind = specs[0].shape, floating(specs[1].dtype)
    rois = block_grad(cast(rois, dtype=kind))
    index, *edges = (slice_axis(rois, axis=1, begin=i, end=i + 1) for i in range(5))
    edges = [(choose(e == e, e, e.zeros_like()) * spatial_scale).round() for e in edges]
    x1, y1, x2, y2 = (e.clip(-FARTHEST, FARTHEST) for e in edges)
    rows = _borders(y1, y2, pooled_size[0], h, kind)
    columns = _borders(x1, x2, pooled_size[1], w, kind)
    places = best_places(block_grad(data), reshape(index, shape=(-1,)), rows, columns)
    nothing = make(data, full, shape=(1,) * 4, value=0.0, dtype=specs[0].dtype)
    return choose(places >= 0, take(reshape(data, shape=(-1,)), places), nothing)


roi_pooling = register(
    "ROIPooling",
    inputs=("data", "rois"),
    attrs=REGIONS,
    infer=forward(
        lambda data, rois, pooled_size, **_: _regions("ROIPooling", data, rois, pooled_size)
    ),
    expand=_pooling_expand,
    doc="The largest number of each cell of each region, (R, C, *pooled_size); Girshick, Fast "
    "R-CNN (2015). A cell without pixels, or of no image, gives 0.",
)
