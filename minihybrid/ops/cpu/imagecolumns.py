"""The loops of convolutions with few places: dot products with columns.

Takes:   a kernel writer (`codegen.source.Kernel`), flat arrays, the numbers of a shape.
Gives:   the product of data and weights where an image's output is a few numbers high
         and wide, and its channels are many.

Late in a net, pictures are 4 x 4 or 2 x 2, and nearly all of the work is to read the
weights. What an output sees is copied into a column, in the order of a filter's
weights; so each output is the dot product of two rows that lie in memory as they are
read. Some filters and some columns at a time share what is loaded.

In loops:   for o: for places p: for k: out[o, p] += w[o, k] * column[p, k]

What is left out: gradients; training has many images, which `imagelanes` computes.
"""

from math import prod

from minihybrid.ops.cpu.flatshift import most_vectors, zero
from minihybrid.ops.cpu.machine import width
from minihybrid.ops.shapes import row_major

PLACES = 4  # whose sums are in registers at once; with as many filters as fit


def columns_fit(s, itemsize):
    """Whether a filter is whole vectors, and `flatshift` would compute much for nothing:
    its rows end in padding, and in the rest of a vector.
    """
    return (
        prod(s.out) > 0
        and depth(s) > 0
        and depth(s) % width(itemsize) == 0
        and s.data_planes().row >= 1.5 * prod(s.out)
    )


def depth(s):
    """The numbers of one column: all taps of the channels of a group."""
    return s.c // s.g * prod(s.kernel)


def padded_size(s):
    """The lengths of a channel with its padding."""
    return [n + 2 * p for n, p in zip(s.size, s.pad, strict=True)]


def _tile(s):
    """(filters, places) at once. Each filter is a stream out of memory, and several
    streams are read faster than one.
    """
    wide = min(PLACES, prod(s.out))
    return min(most_vectors(wide), s.o // s.g), wide


def columns_scratch(s):
    """Numbers beside the arrays: padded data, columns, the sums of some filters."""
    return s.c * prod(padded_size(s)) + prod(s.out) * (s.g * depth(s) + _tile(s)[0])


def columns_loops(k, data, weight, out, s):
    """out[n, o] = sum over c and taps of the data that a place sees times weights."""
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
            with k.loop("turn", -(-places // wide)):  # the last ones twice
                k(f"p = min(turn * {wide}, {places - wide})")
                _dots(k, weight, s, lanes, columns, sums, high, wide)
            with k.loop("r", high):
                k("channel = first + r")
                k(f"at = (n * {s.o} + channel) * {places}")
                with k.loop("j", places):
                    k.store("at + j", f"work[{sums} + r * {places} + j]", {1: "channel"})


def pad_data(k, image, s, start):
    """Copy an image into padding that begins at a place of `work`; it is there already."""
    size = padded_size(s)
    steps = row_major(size)
    first = sum(p * t for p, t in zip(s.pad, steps, strict=True))
    read = 0, row_major((s.c, *s.size))
    k.copy(image, (s.c, *s.size), read, "work", (f"{start} + {first}", (prod(size), *steps)))


def _fill(k, image, s, columns):
    """Copy an image into the padding, and from there to its columns."""
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
    """The dot products of some filters and some columns."""
    n, places = depth(s), prod(s.out)
    k(f"row, column = first * {n}, {columns} + (g * {places} + p) * {n}")
    k(f"s = tile(T(0), {high}, {wide})")
    with k.block(f"for k in range(0, {n}, {lanes}):"):
        k(f"s = inner(s, {weight}, row + k, work, column + k, {n}, {lanes})")
    k(f"put_totals(s, work, {sums} + p, {places}, 0, 0, False)")
