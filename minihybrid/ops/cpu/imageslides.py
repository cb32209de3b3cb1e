"""The loops of convolutions channel by channel: a window slides over a plane.

Takes:   a kernel writer (`codegen.source.Kernel`), flat arrays, the numbers of a shape.
Gives:   the product of data and weights where each filter sees one channel.

There is no sum over channels, so what counts is how often a number is read. A tile is
some rows of the output, one vector wide: a row of the plane is read once, shifted for
each column of the window, for all rows of the tile that see it. Where the window leaves
the plane, masks read zeros, so nothing is copied into padding.

In loops:   for tiles of y, x: for rows i, j that they see: tile[y, x] += data[i, j] * w

What is left out: windows of one or of three axes, and large ones.
"""

from math import prod

from minihybrid.ops.cpu.machine import width

HIGH = 8  # rows of a tile
SLOW = 4  # products here take so many times as long as those of matrices
LARGEST = 25  # numbers of a window; and all of a tile's products stand in a line:
PRODUCTS = 72


def slides_fit(s):
    """Whether each filter sees one of the channels, through a small window of two axes."""
    return s.c == s.g > 1 and len(s.size) == 2 and prod(s.kernel) <= LARGEST and prod(s.out) > 0


def _rows(s):
    """How many rows a tile has: so many that the fewest are computed twice."""
    most = min(HIGH, max(PRODUCTS // prod(s.kernel), 1), s.out[0])
    return min(range(1, most + 1), key=lambda rows: -(-s.out[0] // rows) * (4 * rows + 1))


def slides_scratch(s):
    """Numbers beside the arrays: some rows of sums."""
    return _rows(s) * s.out[1]


def slides_loops(k, data, weight, out, s):
    """out[n, o, y, x] = sum over i, j of data[n, c, i, j] * weight[o, i, j]."""
    (high, wide), (down, across) = s.size, s.out
    rows, lanes, many = _rows(s), width(k.dtype.itemsize), s.o // s.g
    work = SLOW * s.n * s.o * prod(s.out) * prod(s.kernel)
    filters = k.length("filters", s.o)
    window = ", ".join(map(str, (*s.kernel, *s.stride, *s.dilate)))
    with k.share("n", s.n, work=work), k.share("channel", filters, work=work):
        k(f"plane = (n * filters + channel){f' // {many}' * (many > 1)} * {high * wide}")
        with k.loop("turn", -(-down // rows)):
            k(f"y = min(turn * {rows}, {down - rows})")  # the last ones twice
            k(f"top = y * {s.stride[0]} - {s.pad[0]}")
            with k.loop("block", -(-across // lanes)):
                k(f"x = block * {lanes}")
                k(f"left = x * {s.stride[1]} - {s.pad[1]}")
                k(f"s = tile(T(0), {rows}, 1)")
                k(
                    f"s = slide(s, {data}, plane, {high}, {wide}, top, left, {weight}, "
                    f"channel * {prod(s.kernel)}, {window})"
                )
                k(f"put(s, work, x, {across}, 0, 0, {across} - x)")
            k(f"to = (n * filters + channel) * {prod(s.out)} + y * {across}")
            with k.loop("j", rows * across):
                k.store("to + j", "work[j]", {1: "channel"})
