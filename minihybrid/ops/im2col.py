"""Convolution in NumPy: windows become the columns of a matrix product (im2col).

Defines: `convolved` and its gradients `convolved_back`, `weight_sums`: the eager code of
         `ops/convolution.py`.

A block of images, or some rows of one image, is copied into columns (C, taps, positions) that
fit in the cache, and one matrix product with the weights computes all outputs of the block:

    data 4 x 4, kernel 2 x 2     columns: one row per tap, one column per output
    a b c d                      a b c e f g i j k
    e f g h                      b c d f g h j k l
    i j k l                      e f g i j k m n o
    m n o p                      f g h j k l n o p

Axes are gathered one at a time, the last one first, so that all but the first copies
move whole rows. So does the first where outputs have the data's size: row ends are then cleared.
Small images are batched to make products long, as the last axis if rows are short.

With stride 1, the columns of one kernel row are those of the row above, shifted down the
image. Where it pays, only one row's columns are copied, without padding, and one product
multiplies them with the weights of all kernel rows. Its rows are added with shifts: above,
rows c and d are rows a and b, from one line of outputs further on. In three dimensions, the
rows of the second axis are shared, and those of the first where filters are few.
Limits: direct loops without copies are left to the compiled kernels (`ops/cpu`).
"""

import itertools
from functools import lru_cache
from math import isfinite, prod

import numpy as np

BLOCK_BYTES = 2**21  # bytes of columns, so that the product reads them from the cache
SMALL = 256  # outputs per channel; images with fewer are batched
WIDE = 16  # outputs per row; with fewer, images are the last axis of the columns
DEEP = 96  # minimum rows of columns for shifts to pay, unless groups have one filter
THIN = 128  # filters from which a weight's gradient puts the columns first in its product
DOTS = 9  # elements of a weight's gradient, per group, up to which dot products are faster
LONG = 1024  # minimum positions that one product of a weight's gradient reduces over


# -- windows as slices -----------------------------------------------------------------
def taps(kernel, stride, dilate, out):
    """Yield, for each kernel tap, the slice of the padded data that the outputs read."""
    axes = (
        [slice(t * d, t * d + (n - 1) * s + 1, s) for t in range(k)]
        for k, d, n, s in zip(kernel, dilate, out, stride, strict=True)
    )
    for at in itertools.product(*axes):
        yield (..., *at)


def inside(pad, size):
    """Return the slices of the padded array that hold the data."""
    return (..., *(slice(p, p + n) for p, n in zip(pad, size, strict=True)))


# -- windows as columns ----------------------------------------------------------------
def windows(kernel, dilate, pad):
    """Return, for each axis, the positions that the first output's taps read."""
    return [[t * d - p for t in range(k)] for k, d, p in zip(kernel, dilate, pad, strict=True)]


def gathered(data, starts, stride, out, axis):
    """Gather columns (C, *taps, n, *out) of data (C, n, *size); taps outside read zeros.

    In loops:   columns[c, t, n, y] = data[c, n, starts[t] + stride y]
    axis:       the last axis to gather. The images n can also be the last axis.
    """
    lead, begin = (slice(None),) * axis, axis - len(out) + 1  # taps move the next axis here
    for first, step, length in zip(reversed(starts), reversed(stride), reversed(out), strict=True):
        size = data.shape[axis]
        if (first, step, length) == ([0], 1, size):
            data = data[:, None]
            continue
        shape = (*data.shape[1:axis], length, *data.shape[axis + 1 :])
        columns, lines = np.empty((len(data), len(first), *shape), data.dtype), None
        if (step, length) == (1, size):  # rows follow each other: move all at once
            lines = data.reshape(*data.shape[:begin], prod(data.shape[begin:]))
        for t, start in enumerate(first):
            into, (at, source) = columns[:, t], overlap(start, step, length, size)
            if lines is None:
                into[(*lead, at)] = data[(*lead, source)]
            else:
                shift, n = start * prod(data.shape[axis + 1 :]), lines.shape[-1]
                whole, moved = overlap(shift, 1, n, n)
                into.reshape(lines.shape)[..., whole] = lines[..., moved]
            if at.start:
                into[(*lead, slice(at.start))] = 0
            if at.stop < length:
                into[(*lead, slice(at.stop, None))] = 0
        data = columns
    return data


def _overlap(start, step, length, size):
    """Return the outputs y, of `length`, whose start + step y is one of `size` positions, and
    these positions, as slices."""
    low = min(max(-(start // step), 0), length)
    high = max(min(-((start - size) // step), length), low)
    begin = start + step * low
    return slice(low, high), slice(begin, begin + max(step * (high - low - 1) + 1, 0), step)


overlap = lru_cache(1024)(_overlap)  # for each tap of each block


def blocks(n, out, nbytes, least=SMALL):
    """Return (images, rows of the first axis) of each block, as slices.

    nbytes:  the size of one column.
    least:   the minimum positions per block, if there are that many.
    """
    positions = max(BLOCK_BYTES // max(nbytes, 1), least)
    (rows, *rest), size = out, prod(out)
    many = size < SMALL or size * nbytes < BLOCK_BYTES // 6
    n_images = _even(n, positions // size) if many else 1
    n_rows = rows if many else _even(rows, positions // prod(rest))
    return [
        (slice(i, min(i + n_images, n)), slice(y, min(y + n_rows, rows)))
        for i in range(0, n, n_images)
        for y in range(0, rows, n_rows)
    ]


def _even(length, most):
    """Return the length of nearly equal parts of at most `most`, at least 1."""
    n_parts = max(-(-length // max(most, 1)), 1)
    return max(-(-length // n_parts), 1)


def pays(weight, n_shifts, positions):
    """Return whether sharing columns among taps saves more than moving weights and sums costs."""
    filters = weight.shape[1]
    deep = filters == 1 or weight[0, 0].size // n_shifts >= max(DEEP, 3 * filters)
    return deep and n_shifts > 1 and positions >= 16 * filters


def sharing(weight, factors, starts, stride, shape, out):
    """Choose the axes whose taps share columns: those before the last, as far as it pays.

    weight:  (groups, O / groups, C / groups, *taps).
    factors: arrays that the padding's zeros may multiply, which sharing skips or adds.
    shape:   of the data (N, C, *size).

    Returns: (the weight with these axes before its channels, each axis's shifts, starts and
    lengths of the columns). Without sharing, all shifts are 0, and the weight is as it was.
    """
    shifts, axes = [[0]] * len(out), []
    for axis in reversed(range(max(len(out) - 1, 1))):
        n_shifts = prod(len(starts[a]) for a in (axis, *axes))
        if stride[axis] == 1 and starts[axis][1:] and pays(weight, n_shifts, shape[0] * prod(out)):
            axes.insert(0, axis)
    if not (axes and all(isfinite(np.vdot(a, a)) for a in factors)):
        return weight, shifts, starts, out
    new_starts, lengths = [*starts], [*out]
    for axis in axes:
        shifts[axis], new_starts[axis], lengths[axis] = starts[axis], [0], shape[2 + axis]
    weight = np.moveaxis(weight, [3 + axis for axis in axes], range(2, 2 + len(axes)))
    return weight, shifts, new_starts, lengths


def first_axis(out):
    """Return where outputs begin in a block: 2 in (C, n, *out), or 1 in (C, *out, n)."""
    return 2 if out[-1] >= WIDE else 1


def block_of(data, images, rows, axis):
    """Return images and rows of data (N, C, *size), so that `axis` is the first of `size`."""
    part = data[images, :, rows]
    return part.swapaxes(0, 1) if axis == 2 else part.transpose(*range(1, part.ndim), 0)


def columns_of(data, images, rows, starts, stride, out):
    """Return the columns (C, *taps, *block of outputs) of a block of data (N, C, *size)."""
    step, axis = stride[0], first_axis(out)
    low = max(min(starts[0]) + step * rows.start, 0)  # the first row that the block reads
    high = max(max(starts[0]) + step * (rows.stop - 1) + 1, low)
    starts = [[start + step * rows.start - low for start in starts[0]], *starts[1:]]
    data, out = block_of(data, images, slice(low, high), axis), (rows.stop - rows.start, *out[1:])
    return gathered(computed(data), starts, stride, out, axis + len(out) - 1)


def computed(data):
    """Cast float16 to float32: NumPy has no fast float16 product."""
    return data.astype(np.float32) if data.dtype == np.float16 else data


def correlate(data, weight, starts, stride, into):
    """into[n, o, y] = sum over c, t of weight[o, c, t] * data[n, c, starts[t] + stride y].

    weight:  (groups, O / groups, C / groups, *taps).
    """
    out, groups = into.shape[2:], len(weight)
    rows, shifts, starts, read = sharing(weight, [weight], starts, stride, data.shape, out)
    n_shifts, axis = prod(map(len, shifts)), first_axis(read)
    rows = rows.reshape(groups, weight.shape[1] * n_shifts, -1)
    for images, part in blocks(len(data), out, rows[0, 0].nbytes * groups):
        (first, *others), lines = shifts, part
        if first[1:]:  # with some rows above and below
            length = part.stop - part.start + max(first) - min(first)
            lines = overlap(part.start + min(first), 1, length, data.shape[2])[1]
            first = [start + part.start - lines.start for start in first]
        columns = columns_of(data, images, lines, starts, stride, read)
        terms = np.matmul(rows, columns.reshape(groups, rows.shape[-1], -1))
        terms = terms.reshape(into.shape[1], n_shifts, *columns.shape[-1 - len(out) :])
        target = block_of(into, images, part, axis)
        if n_shifts > 1:
            terms = shifted(terms, (first, *others), target.shape, axis)[:, None]
        target[...] = terms[:, 0]


def shifted(terms, shifts, shape, axis):
    """Add the products (O, shifts, ...) of shared columns, each moved by its shift."""
    total, lead = np.zeros(shape, terms.dtype), (slice(None),) * axis
    sizes = zip(shifts, shape[axis:], terms.shape[axis + 1 :], strict=False)
    moves = itertools.product(*([overlap(at, 1, *ns) for at in starts] for starts, *ns in sizes))
    for t, slices in enumerate(moves):
        at, source = ((*lead, *one) for one in zip(*slices, strict=True))
        if t:
            total[at] += terms[:, t][source]
        else:
            total[at] = terms[:, t][source]
    return total


# -- the three sums --------------------------------------------------------------------
def convolved(data, weight, *, size, kernel, stride, dilate, pad, num_group):
    """Convolve data (N, C, *size) with weights (O, C / G, *kernel)."""
    out = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, d, p in zip(size, kernel, stride, dilate, pad, strict=True)
    ]
    into = np.empty((len(data), len(weight), *out), data.dtype)
    split = computed(weight).reshape(num_group, len(weight) // num_group, *weight.shape[1:])
    correlate(data, split, windows(kernel, dilate, pad), stride, into)
    return into


def convolved_back(grad, weight, *, size, kernel, stride, dilate, pad, num_group):
    """Return the gradient of the data: a transposed convolution.

    With strides, data positions of equal remainder are reached by the same taps, so each
    such set is a stride-1 convolution of the gradient with those taps.
    """
    filters, (channels, *_) = len(weight) // num_group, weight.shape[1:]
    into = np.empty((len(grad), channels * num_group, *size), grad.dtype)
    split = computed(weight).reshape(num_group, filters, *weight.shape[1:])
    if 4 * channels <= filters and np.isfinite(weight).all():
        scatter(grad, split, kernel, stride, dilate, pad, into)
        return into
    for phase in np.ndindex(*np.minimum(stride, size)):
        axes = [*zip(phase, kernel, stride, dilate, pad, strict=True)]
        reached = [[t for t in range(k) if (r + p - t * d) % s == 0] for r, k, s, d, p in axes]
        starts = [
            [(r + p - t * d) // s for t in taps]
            for taps, (r, _, s, d, p) in zip(reached, axes, strict=True)
        ]
        part = into[(..., *(slice(r, None, s) for r, _, s, _, _ in axes))]
        if not all(reached):
            part[...] = 0
            continue
        evenly = (slice(t[0], t[-1] + 1, t[1] - t[0] if t[1:] else 1) for t in reached)
        correlate(grad, split[(..., *evenly)].swapaxes(1, 2), starts, (1,) * len(size), part)
    return into


def scatter(grad, split, kernel, stride, dilate, pad, into):
    """The same for few channels: one product computes each output's contributions (col2im).

    Columns would have a row per filter and tap, and the product few rows. The gradient's zero
    padding is skipped here, so the weights must be finite.
    """
    (groups, filters), n_taps, out = split.shape[:2], prod(kernel), grad.shape[2:]
    rows = split.reshape(groups, filters, -1).swapaxes(1, 2)
    nbytes = groups * rows[0, :, 0].nbytes * prod(out)  # of one image's contributions
    step = _even(len(grad), BLOCK_BYTES // nbytes)
    for images in (slice(i, i + step) for i in range(0, len(grad), step)):
        values = np.moveaxis(computed(grad[images]), 0, -1).reshape(groups, filters, -1)
        added = np.matmul(rows, values).reshape(into.shape[1], n_taps, *out, -1)
        around = (n + 2 * p for n, p in zip(into.shape[2:], pad, strict=True))
        sums = np.zeros((into.shape[1], *around, added.shape[-1]), added.dtype)
        for t, at in enumerate(taps(kernel, stride, dilate, out)):
            sums[(*at, slice(None))] += added[:, t]
        into[images] = np.moveaxis(sums[(*inside(pad, into.shape[2:]), slice(None))], -1, 0)


def weight_sums(data, grad, *, size, kernel, stride, dilate, pad, num_group):
    """Return the gradient of the weights, summed over images and outputs."""
    filters, channels, out = grad.shape[1] // num_group, data.shape[1] // num_group, grad.shape[2:]
    total = np.zeros((num_group, filters, channels, *kernel), computed(data[:0]).dtype)
    starts, is_thin, sums = windows(kernel, dilate, pad), filters <= THIN, 0
    into, shifts, starts, read = sharing(total, (data, grad), starts, stride, data.shape, out)
    back = [[-start for start in axis] for axis in shifts]
    depth = total[0, 0].size // prod(map(len, shifts))
    for images, part in blocks(len(data), read, depth * num_group * total.itemsize, LONG):
        columns = columns_of(data, images, part, starts, stride, read).reshape(num_group, depth, -1)
        rows = columns_of(grad, images, part, back, (1,) * len(out), read)
        rows = rows.reshape(num_group, -1, columns.shape[2])
        left, right = (columns, rows) if is_thin else (rows, columns)
        few = depth * rows.shape[1] <= DOTS
        sums += np.vecdot(left[:, :, None], right[:, None]) if few else left @ right.swapaxes(1, 2)
    if len(data):
        into[...] = (sums.swapaxes(1, 2) if is_thin else sums).reshape(into.shape)
    return total.reshape(num_group * filters, channels, *kernel).astype(data.dtype, order="C")
