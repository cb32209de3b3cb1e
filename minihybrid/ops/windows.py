"""Pooling kernels: windows over one, two or three spatial axes of each channel.

Uses:    flat arrays, and the geometry of `minihybrid.ops.pooling`.
Defines: sums and maxima over windows, and their gradients: scattered from the windows,
         or gathered per input element with one GPU thread each.

Data with fewer than three spatial axes gets leading axes of length 1.
Element i of window z on an axis is at z * stride - pad + i. Bounds are checked where that
may be padding; if all windows are inside, their trip counts are constants, and the
compiler unrolls the loops over small windows.
Not supported: dilation.
"""

from math import prod

import numpy as np

from minihybrid.ops.cpu.machine import READ
from minihybrid.ops.loops import F, T, each, loops, store

MAX_UNROLLED = 16  # elements of a window whose loop is unrolled


# -- constants of a launch -------------------------------------------------------------
def _geometry(data, size, kernel, stride, pad, outs):
    """Return samples x channels, cost, lengths on three axes, and per-axis `inside`."""
    size, kernel, stride, outs = (
        (1,) * (3 - len(lengths)) + lengths for lengths in (size, kernel, stride, outs)
    )
    pad = (0,) * (3 - len(pad)) + pad
    inside = tuple(
        (k == 1 or prod(kernel) <= MAX_UNROLLED) and p == 0 and (n - 1) * s + k <= m
        for m, k, s, p, n in zip(size, kernel, stride, pad, outs, strict=True)
    )
    lead = data.shape[0] * data.shape[1]
    cost = READ * lead * prod(outs) * prod(kernel)
    return lead, cost, size, kernel, stride, pad, outs, inside


def _for_sums(data, out, *, count, **g):
    """Add each axis's bounds of the elements that a mean counts, or ()."""
    geometry = _geometry(data, **g)
    size, pad = geometry[2], geometry[5] if count == "padding" else (0, 0, 0)
    edges = () if count == "none" else tuple((-p, m + p) for m, p in zip(size, pad, strict=True))
    return *geometry, edges


def _lowest(dtype):
    return -np.inf if dtype.kind == "f" else int(np.iinfo(dtype).min)


def _for_maxima(data, out, **g):
    """Add whether windows clamp indices to the data instead of skipping padding.

    The maximum is the same, without branches; each window must overlap the data.
    """
    again = prod(g["kernel"]) <= MAX_UNROLLED and all(
        (n - 1) * s - p < m
        for m, s, p, n in zip(g["size"], g["stride"], g["pad"], g["outs"], strict=True)
    )
    return *_geometry(data, **g), again, _lowest(data.dtype)


def _for_best(values, data, out, **g):
    return *_geometry(data, **g), _lowest(data.dtype)


# -- windows ---------------------------------------------------------------------------
def _first(d, z, stride, pad, inside):
    """Return the first element of window z on axis d that isn't padding."""
    return 0 if inside[d] else max(pad[d] - z * stride[d], 0)


def _end(d, z, size, kernel, stride, pad, inside):
    """Return the end of the elements that aren't padding."""
    return kernel[d] if inside[d] else min(size[d] + pad[d] - z * stride[d], kernel[d])


def _place(n, z, y, x, size):
    """Return the flat index of an element of channel n."""
    return ((n * size[0] + z) * size[1] + y) * size[2] + x


def _seen(n, z, y, x, size, kernel, stride, pad, inside):
    """Yield the flat indices of a window, without padding."""
    for i in range(
        _first(0, z, stride, pad, inside), _end(0, z, size, kernel, stride, pad, inside)
    ):
        for j in range(
            _first(1, y, stride, pad, inside), _end(1, y, size, kernel, stride, pad, inside)
        ):
            for k in range(
                _first(2, x, stride, pad, inside), _end(2, x, size, kernel, stride, pad, inside)
            ):
                yield _place(
                    n,
                    z * stride[0] - pad[0] + i,
                    y * stride[1] - pad[1] + j,
                    x * stride[2] - pad[2] + k,
                    size,
                )


def _near(d, z, i, size, stride, pad, inside):
    """Return the index on axis d of a window's element i, clamped to the data."""
    return z * stride[d] + i if inside[d] else min(max(z * stride[d] - pad[d] + i, 0), size[d] - 1)


def _nearest(n, z, y, x, size, kernel, stride, pad, inside):
    """Yield the flat indices of a window, clamped to the data."""
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            for k in range(kernel[2]):
                yield _place(
                    n,
                    _near(0, z, i, size, stride, pad, inside),
                    _near(1, y, j, size, stride, pad, inside),
                    _near(2, x, k, size, stride, pad, inside),
                    size,
                )


def _counted(d, z, kernel, stride, pad, inside, edges):
    """Count the elements of window z on axis d that are between the edges."""
    return (
        kernel[d]
        if inside[d]
        else max(
            min(z * stride[d] - pad[d] + kernel[d], edges[d][1])
            - max(z * stride[d] - pad[d], edges[d][0]),
            0,
        )
    )


def _many(z, y, x, kernel, stride, pad, inside, edges):
    """Count the elements of a window that are between the edges; 1 if there are none."""
    return max(
        _counted(0, z, kernel, stride, pad, inside, edges)
        * _counted(1, y, kernel, stride, pad, inside, edges)
        * _counted(2, x, kernel, stride, pad, inside, edges),
        1,
    )


def _mean(total, z, y, x, kernel, stride, pad, inside, edges):
    """Divide a window's sum by its number of elements; without edges, return the sum.

    Integers are divided as floats: the count may overflow their dtype.
    """
    return T(total / F(_many(z, y, x, kernel, stride, pad, inside, edges))) if edges else total


def _best(data, n, z, y, x, size, kernel, stride, pad, inside, lowest):
    """Return the flat index of a window's first maximum; -1 if there is none."""
    top = T(lowest)
    for at in _seen(n, z, y, x, size, kernel, stride, pad, inside):
        v = data[at]
        top = top if top > v else v
    best = -1
    for at in _seen(n, z, y, x, size, kernel, stride, pad, inside):
        best = at if (best < 0) & (data[at] == top) else best
    return best


# -- the loops -------------------------------------------------------------------------
@loops(_for_sums)
def sums(data, out, lead, cost, size, kernel, stride, pad, outs, inside, edges):
    """Compute the sum or mean of each window."""
    for n, z, y, x in each(lead, *outs, work=cost):
        total = T(0)
        for at in _seen(n, z, y, x, size, kernel, stride, pad, inside):
            total += data[at]
        mean = _mean(total, z, y, x, kernel, stride, pad, inside, edges)
        store(out, _place(n, z, y, x, outs), mean)


@loops(_for_sums)
def add_sums(grad, out, lead, cost, size, kernel, stride, pad, outs, inside, edges):
    """Scatter the gradient: each window accumulates into its elements; windows may overlap."""
    for n in each(lead, work=cost):
        for at in range(n * size[0] * size[1] * size[2], (n + 1) * size[0] * size[1] * size[2]):
            out[at] = T(0)
        for z in range(outs[0]):
            for y in range(outs[1]):
                for x in range(outs[2]):
                    g = grad[_place(n, z, y, x, outs)]
                    g = _mean(g, z, y, x, kernel, stride, pad, inside, edges)
                    for at in _seen(n, z, y, x, size, kernel, stride, pad, inside):
                        out[at] += g


@loops(_for_sums)
def share_sums(grad, out, lead, cost, size, kernel, stride, pad, outs, inside, edges):
    """Store the gradient without accumulating, for windows that tile the data exactly."""
    for n, z, y, x in each(lead, *outs, work=cost):
        g = grad[_place(n, z, y, x, outs)]
        g = _mean(g, z, y, x, kernel, stride, pad, inside, edges)
        for at in _seen(n, z, y, x, size, kernel, stride, pad, inside):
            store(out, at, g)


@loops(_for_maxima)
def maxima(data, out, lead, cost, size, kernel, stride, pad, outs, inside, again, lowest):
    """Compute the maximum of each window; NaN propagates."""
    for n, z, y, x in each(lead, *outs, work=cost):
        top = T(lowest)
        if again:
            for at in _nearest(n, z, y, x, size, kernel, stride, pad, inside):
                v = data[at]
                top = v if (v > top) | (v != v) else top
        else:
            for at in _seen(n, z, y, x, size, kernel, stride, pad, inside):
                v = data[at]
                top = v if (v > top) | (v != v) else top
        store(out, _place(n, z, y, x, outs), top)


@loops(_for_best)
def add_best(grad, data, out, lead, cost, size, kernel, stride, pad, outs, inside, lowest):
    """Scatter the gradient to each window's first maximum; windows may overlap."""
    for n in each(lead, work=cost):
        for at in range(n * size[0] * size[1] * size[2], (n + 1) * size[0] * size[1] * size[2]):
            out[at] = T(0)
        for z in range(outs[0]):
            for y in range(outs[1]):
                for x in range(outs[2]):
                    best = _best(data, n, z, y, x, size, kernel, stride, pad, inside, lowest)
                    if best >= 0:
                        out[best] += grad[_place(n, z, y, x, outs)]


@loops(_for_best)
def share_best(grad, data, out, lead, cost, size, kernel, stride, pad, outs, inside, lowest):
    """The same for windows that tile the data exactly: branch-free and vectorized."""
    for n, z, y, x in each(lead, *outs, work=cost):
        top = T(lowest)
        for at in _seen(n, z, y, x, size, kernel, stride, pad, inside):
            v = data[at]
            top = top if top > v else v
        rest = grad[_place(n, z, y, x, outs)]
        for at in _seen(n, z, y, x, size, kernel, stride, pad, inside):
            hit = data[at] == top
            store(out, at, rest if hit else T(0))
            rest = T(0) if hit else rest


@loops(_for_best)
def take_best(values, data, out, lead, cost, size, kernel, stride, pad, outs, inside, lowest):
    """Gather `values` at the position of each window's first maximum in the data."""
    for n, z, y, x in each(lead, *outs, work=cost):
        best = _best(data, n, z, y, x, size, kernel, stride, pad, inside, lowest)
        store(out, _place(n, z, y, x, outs), values[best] if best >= 0 else T(0))


# -- gradients on a GPU: one thread per input element ----------------------------------
# Scattering would race: two windows could update one element at once. So each element
# gathers from its windows, in the CPU's order, which makes the float sums bitwise equal.
def _since(d, at, kernel, stride, pad):
    """Return the first window on axis d that contains a position."""
    return max((at + (pad[d] - kernel[d])) // stride[d] + 1, 0)


def _until(d, at, stride, pad, outs):
    """Return the end of the windows on axis d that contain a position."""
    return min((at + pad[d]) // stride[d] + 1, outs[d])


@loops(_for_sums)
def ask_sums(grad, out, lead, cost, size, kernel, stride, pad, outs, inside, edges):
    """Gather the gradient that `add_sums` scatters."""
    for n, i, j, k in each(lead, *size):
        total = T(0)
        for z in range(_since(0, i, kernel, stride, pad), _until(0, i, stride, pad, outs)):
            for y in range(_since(1, j, kernel, stride, pad), _until(1, j, stride, pad, outs)):
                for x in range(_since(2, k, kernel, stride, pad), _until(2, k, stride, pad, outs)):
                    g = grad[_place(n, z, y, x, outs)]
                    total += _mean(g, z, y, x, kernel, stride, pad, inside, edges)
        store(out, _place(n, i, j, k, size), total)


@loops(_for_best)
def ask_best(grad, data, out, lead, cost, size, kernel, stride, pad, outs, inside, lowest):
    """Gather the gradient that `add_best` scatters."""
    for n, i, j, k in each(lead, *size):
        total = T(0)
        at = _place(n, i, j, k, size)
        for z in range(_since(0, i, kernel, stride, pad), _until(0, i, stride, pad, outs)):
            for y in range(_since(1, j, kernel, stride, pad), _until(1, j, stride, pad, outs)):
                for x in range(_since(2, k, kernel, stride, pad), _until(2, k, stride, pad, outs)):
                    best = _best(data, n, z, y, x, size, kernel, stride, pad, inside, lowest)
                    if best == at:
                        total += grad[_place(n, z, y, x, outs)]
        store(out, at, total)
