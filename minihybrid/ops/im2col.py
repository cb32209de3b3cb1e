"""Convolutions in NumPy: windows become the columns of a matrix product.

Takes:   arrays (N, C, *size) and the geometry of the windows.
Gives:   `convolved` and its gradients `convolved_back`, `weight_sums`: the eager code of
         `ops/convolution.py`; `taps` and `padded` for pooling.

A block of images, or some rows of one image, is copied into columns (C, taps, positions) that
fit into the cache, and one matrix product with the weights gives all outputs of the block:

    data 4 x 4, kernel 2 x 2     columns: one row per tap, one column per output
    a b c d                      a b c e f g i j k
    e f g h                      b c d f g h j k l
    i j k l                      e f g i j k m n o
    m n o p                      f g h j k l n o p

Axes are gathered one after another, the last one first, so that all but the first copies
move whole rows. Small images are gathered together, the images as the last axis, so that
copies and products are long.

Without a stride the columns of one row of a kernel are those of the row above, further down
in the image. Where it pays, only one row's columns are copied, for some more positions, and
each row of the kernel multiplies a shifted part of them; above, c and d are a and b from
position 3 on.
What is left out: loops without copies; compiled kernels (`ops/cpu`) contain those.
"""

from math import prod

import numpy as np

BLOCK = 2**21  # bytes of columns: they stay in the cache until the product has read them
SMALL = 256  # outputs of a channel: images with fewer are gathered together
DEEP = 128  # rows of columns that are multiplied once a shift, at least
THIN = 128  # filters: with as many, a weight's gradient is computed with the columns first
LONG = 1024  # positions that a weight's gradient sums up in one product, at least


# -- windows as slices -----------------------------------------------------------------
def taps(kernel, stride, dilate, out):
    """For each tap of a kernel, the part of the padded data that the outputs read."""
    for at in np.ndindex(*kernel):
        yield (
            ...,
            *(
                slice(t * d, t * d + (n - 1) * s + 1, s)
                for t, d, n, s in zip(at, dilate, out, stride, strict=True)
            ),
        )


def padded(data, pad, more=None, value=0):
    """The data with `pad` elements on both sides of its last axes, `more` at the end."""
    if not any(pad) and not any(more or ()):
        return data
    lead, size = data.shape[: -len(pad)], data.shape[-len(pad) :]
    more = more or (0,) * len(pad)
    length = [n + 2 * p + m for n, p, m in zip(size, pad, more, strict=True)]
    out = np.full((*lead, *length), value, data.dtype)
    out[inside(pad, size)] = data
    return out


def inside(pad, size):
    """Where the data are in the padded array."""
    return (..., *(slice(p, p + n) for p, n in zip(pad, size, strict=True)))


# -- windows as columns ----------------------------------------------------------------
def windows(kernel, dilate, pad):
    """For each axis, where the taps of the first output read the data."""
    return [[t * d - p for t in range(k)] for k, d, p in zip(kernel, dilate, pad, strict=True)]


def gathered(data, starts, stride, out):
    """Columns (C, *taps, *out, n) of data (C, *size, n): zeros where a tap is outside.

    In loops:   columns[c, t, y, n] = data[c, starts[t] + stride y, n]
    """
    axis = len(out)  # of what is left to gather: taps move to the front, outputs stay
    for first, step, length in zip(reversed(starts), reversed(stride), reversed(out), strict=True):
        size = data.shape[axis]
        if (first, step, length) == ([0], 1, size):
            data = data[:, None]
            continue
        shape = (*data.shape[1:axis], length, *data.shape[axis + 1 :])
        columns = np.empty((len(data), len(first), *shape), data.dtype)
        for t, start in enumerate(first):
            low = min(max(-(start // step), 0), length)
            high = max(min(-((start - size) // step), length), low)
            into, lead = columns[:, t], (slice(None),) * axis
            into[(*lead, slice(low))] = into[(*lead, slice(high, None))] = 0
            if low < high:
                begin = start + step * low
                seen = slice(begin, begin + step * (high - low - 1) + 1, step)
                into[(*lead, slice(low, high))] = data[(*lead, seen)]
        data = columns
    return data


def blocks(n, out, nbytes, least=SMALL):
    """(images, rows of the first axis) of each block, as slices.

    nbytes:  of one column.
    least:   positions of a block, where there are that many.
    """
    positions = max(BLOCK // max(nbytes, 1), least)
    (rows, *rest), size = out, prod(out)
    many = size < SMALL or size * nbytes < BLOCK // 8
    n_images = _even(n, positions // size) if many else 1
    n_rows = rows if many else _even(rows, positions // prod(rest))
    return [
        (slice(i, min(i + n_images, n)), slice(y, min(y + n_rows, rows)))
        for i in range(0, n, n_images)
        for y in range(0, rows, n_rows)
    ]


def _even(length, most):
    """The length of about equal parts of at most `most`, at least 1."""
    n_parts = max(-(-length // max(most, 1)), 1)
    return max(-(-length // n_parts), 1)


def shifts(weight, starts, stride):
    """How many taps of the first axis read the same columns; 1: each has columns of its own.

    weight:  (groups, O / groups, C / groups, *taps).

    Copies are saved, but their products must be added up, one for each filter.
    """
    depth = weight[0, 0].size // len(starts[0])
    return len(starts[0]) if stride[0] == 1 and depth >= max(DEEP, 4 * weight.shape[1]) else 1


def columns_of(data, part, starts, stride, out, n_shifts):
    """(C, taps, positions) of a block of data (N, C, *size); and of these positions, those that
    each shift reads, as slices."""
    images, rows = part
    step, first = stride[0], min(starts[0]) + stride[0] * rows.start
    low = max(first, 0)  # of the rows that the block reads
    high = max(max(starts[0]) + step * (rows.stop - 1) + 1, low)
    starts = [[start + step * rows.start - low for start in starts[0]], *starts[1:]]
    data = np.moveaxis(computed(data[images, :, low:high]), 0, -1)
    n_rows, width, begins = rows.stop - rows.start, prod(out[1:]) * data.shape[-1], [0]
    length = n_rows * width
    if n_shifts > 1:
        begins = [(start - min(starts[0])) * width for start in starts[0]]
        n_rows += max(starts[0]) - min(starts[0])
        as_is = [[0]] * len(out[1:])  # all other axes
        shape = (n_rows, *data.shape[2:])
        data = gathered(data, [[min(starts[0])], *as_is], (1,) * len(out), shape[:-1])
        data, starts = data.reshape(len(data), *shape), [[0], *starts[1:]]
    columns = gathered(data, starts, stride, (n_rows, *out[1:]))
    columns = columns.reshape(len(data), prod(map(len, starts)), -1)
    return columns, [slice(begin, begin + length) for begin in begins]


def positions_of(values, part):
    """(C, positions) of a block of values (N, C, *out)."""
    images, rows = part
    values = np.moveaxis(computed(values[images, :, rows]), 0, -1)
    return values.reshape(len(values), -1)


def computed(data):
    """The data in the type of products: NumPy has no fast ones of float16."""
    return data.astype(np.float32) if data.dtype == np.float16 else data


def correlate(data, weight, starts, stride, into):
    """into[n, o, y] = sum over c, t of weight[o, c, t] * data[n, c, starts[t] + stride y].

    weight:  (groups, O / groups, C / groups, *taps).
    """
    out, (groups, filters, channels) = into.shape[2:], weight.shape[:3]
    n_shifts = shifts(weight, starts, stride)
    rows = np.moveaxis(weight.reshape(groups, filters, channels, n_shifts, -1), 3, 0)
    first, *others = rows.reshape(n_shifts, groups, filters, -1)
    for images, part in blocks(len(data), out, first[0, 0].nbytes * groups):
        columns, (at, *more) = columns_of(data, (images, part), starts, stride, out, n_shifts)
        columns = columns.reshape(groups, first.shape[-1], -1)
        product = np.matmul(first, columns[..., at])
        for row, at in zip(others, more, strict=True):
            product += np.matmul(row, columns[..., at])
        product = product.reshape(into.shape[1], -1, *out[1:], images.stop - images.start)
        into[images, :, part] = np.moveaxis(product, -1, 0)


# -- the three sums --------------------------------------------------------------------
def convolved(data, weight, *, size, kernel, stride, dilate, pad, num_group):
    """Sums of windows of data (N, C, *size) times weights (O, C / G, *kernel)."""
    out = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, d, p in zip(size, kernel, stride, dilate, pad, strict=True)
    ]
    into = np.empty((len(data), len(weight), *out), data.dtype)
    split = computed(weight).reshape(num_group, len(weight) // num_group, *weight.shape[1:])
    correlate(data, split, windows(kernel, dilate, pad), stride, into)
    return into


def convolved_back(grad, weight, *, size, kernel, stride, dilate, pad, num_group):
    """The gradient of data: each output's element times the weights, back at its window.

    With strides, the places of data of equal remainder are reached by the same taps: they
    are a convolution of the gradient with these, without stride.
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
    """The same for few channels: one product gives what each output adds to its window.

    Columns would have a row per filter and tap, and the product few rows. Zeros around the
    gradient don't count here, so the weights must be finite.
    """
    (groups, filters), n_taps, out = split.shape[:2], prod(kernel), grad.shape[2:]
    rows = split.reshape(groups, filters, -1).swapaxes(1, 2)
    nbytes = groups * rows[0, :, 0].nbytes * prod(out)  # of what an image adds
    step = _even(len(grad), BLOCK // nbytes)
    for images in (slice(i, i + step) for i in range(0, len(grad), step)):
        values = positions_of(grad, (images, slice(0, out[0]))).reshape(groups, filters, -1)
        added = np.matmul(rows, values).reshape(into.shape[1], n_taps, *out, -1)
        around = (n + 2 * p for n, p in zip(into.shape[2:], pad, strict=True))
        sums = np.zeros((into.shape[1], *around, added.shape[-1]), added.dtype)
        for t, at in enumerate(taps(kernel, stride, dilate, out)):
            sums[(*at, slice(None))] += added[:, t]
        into[images] = np.moveaxis(sums[(*inside(pad, into.shape[2:]), slice(None))], -1, 0)


def weight_sums(data, grad, *, size, kernel, stride, dilate, pad, num_group):
    """The gradient of weights: sums over images and outputs of data times gradient."""
    (n, filters), out, channels = grad.shape[:2], grad.shape[2:], data.shape[1]
    filters, kind = filters // num_group, computed(data[:0]).dtype
    shape, starts = (
        (num_group, filters, channels // num_group, *kernel),
        windows(kernel, dilate, pad),
    )
    n_shifts = shifts(np.broadcast_to(kind.type(0), shape), starts, stride)
    depth, is_thin = prod(shape[2:]) // n_shifts, filters <= THIN
    sums = np.zeros(
        (n_shifts, num_group, *((depth, filters) if is_thin else (filters, depth))), kind
    )
    for part in blocks(n, out, depth * num_group * kind.itemsize, LONG):
        columns, places = columns_of(data, part, starts, stride, out, n_shifts)
        columns = columns.reshape(num_group, depth, -1)
        rows = positions_of(grad, part).reshape(num_group, filters, -1)
        for total, at in zip(sums, places, strict=True):
            some = columns[..., at]
            total += some @ rows.swapaxes(1, 2) if is_thin else rows @ some.swapaxes(1, 2)
    sums = sums.swapaxes(2, 3) if is_thin else sums
    sums = sums.reshape(n_shifts, num_group, filters, shape[2], -1)
    sums = np.moveaxis(sums, 0, 3).reshape(num_group * filters, *shape[2:])
    return sums.astype(data.dtype, order="C")
