"""Convolution kernels for small feature maps: dot products with columns.

Uses:    a kernel writer (`codegen.source.Kernel`), flat arrays, the sizes of a convolution.
Defines: the product of data and weights for outputs of a few elements per side, and many
         channels.

Late in a network, feature maps are 4 x 4 or 2 x 2, and reading the weights dominates. Each
output's receptive field is copied into a column, in the order of a filter's weights, so
each output is the dot product of two contiguous rows. A tile of filters and columns reuses
each load.

In loops:   for o: for places p: for k: out[o, p] += w[o, k] * column[p, k]

Not supported: gradients; training has many images, which use `imagelanes`.
"""

from math import prod

from minihybrid.ops.cpu.flatshift import most_vectors, zero
from minihybrid.ops.cpu.machine import width
from minihybrid.ops.shapes import row_major

PLACES = 4  # positions of a register tile; it has as many filters as fit


def columns_fit(s, itemsize):
    """Return whether a filter is whole vectors, and `flatshift` would waste much work on
    padding at the ends of rows and vectors.
    """
    return (
        prod(s.out) > 0
        and depth(s) > 0
        and depth(s) % width(itemsize) == 0
        and s.data_planes().row >= 1.5 * prod(s.out)
    )


def depth(s):
    """Return the length of a column: all taps of a group's channels."""
    return s.c // s.g * prod(s.kernel)


def padded_size(s):
    """Return the shape of a padded channel."""
    return [n + 2 * p for n, p in zip(s.size, s.pad, strict=True)]


def _tile(s):
    """Return the tile's (filters, positions). Each filter is one stream from memory;
    several concurrent streams use more of the bandwidth.
    """
    wide = min(PLACES, prod(s.out))
    return min(most_vectors(wide), s.o // s.g), wide


def columns_scratch(s):
    """Return the scratch size in elements: padded data, columns, some filters' sums."""
    return s.c * prod(padded_size(s)) + prod(s.out) * (s.g * depth(s) + _tile(s)[0])


def columns_loops(k, data, weight, out, s):
    """Write out[n, o] = sum over c and taps of the receptive field times the weights."""
    lanes, places, rows = width(k.dtype.itemsize), prod(s.out), s.o // s.g
    columns = s.c * prod(padded_size(s))
    sums = columns + places * s.g * depth(s)
    high, wide = _tile(s)
    zero(k, "work", columns)
    work = s.n * s.o * places * depth(s)
    with k.share("n", s.n, work=work):
        _fill(k, k.part(data, "n", (1, s.c, *s.size)), s, columns)
        with k.share("g", s.g, work=work), k.share("block", -(-rows // high), work=work):
            k(f"first = g * {rows} + min(block * {high}, {rows - high})")
            with k.loop("turn", -(-places // wide)):  # the last tile may overlap
                k(f"p = min(turn * {wide}, {places - wide})")
                _dots(k, weight, s, lanes, columns, sums, high, wide)
            with k.loop("r", high):
                k("channel = first + r")
                k(f"at = (n * {s.o} + channel) * {places}")
                with k.loop("j", places):
                    k.store("at + j", f"work[{sums} + r * {places} + j]", {1: "channel"})


def pad_data(k, image, s, start):
    """Copy an image into a zero-padded buffer at an offset of `work`."""
    size = padded_size(s)
    steps = row_major(size)
    first = sum(p * t for p, t in zip(s.pad, steps, strict=True))
    read = 0, row_major((s.c, *s.size))
    k.copy(image, (s.c, *s.size), read, "work", (f"{start} + {first}", (prod(size), *steps)))


def _fill(k, image, s, columns):
    """Copy an image into the padded buffer, and from there to columns."""
    pad_data(k, image, s, 0)
    size = padded_size(s)
    steps, plane = row_major(size), prod(size)
    shape = (s.g, *s.out, s.c // s.g, *s.kernel)
    read = (
        s.c // s.g * plane,
        *(a * t for a, t in zip(s.stride, steps, strict=True)),
        plane,
        *(a * t for a, t in zip(s.dilate, steps, strict=True)),
    )
    k.copy("work", shape, (0, read), "work", (columns, row_major(shape)))


def _dots(k, weight, s, lanes, columns, sums, high, wide):
    """Compute the dot products of a tile of filters and columns."""
    n, places = depth(s), prod(s.out)
    k(f"row, column = first * {n}, {columns} + (g * {places} + p) * {n}")
    k(f"s = tile(T(0), {high}, {wide})")
    with k.block(f"for k in range(0, {n}, {lanes}):"):
        k(f"s = inner(s, {weight}, row + k, work, column + k, {n}, {lanes})")
    k(f"put_totals(s, work, {sums} + p, {places}, 0, 0, False)")
