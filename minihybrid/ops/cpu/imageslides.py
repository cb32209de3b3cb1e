"""Depthwise convolution kernels: a window slides over each channel's plane.

Uses:    a kernel writer (`codegen.source.Kernel`), flat arrays, the sizes of a convolution.
Defines: the product of data and weights where each filter reads one channel.

Without a sum over channels, memory traffic dominates. A tile is some rows of the output,
one vector wide: a row of the plane is loaded once, shifted for each column of the window,
for all rows of the tile that use it. Outside the plane, masked loads return zeros, so no
padded copy is needed.

In loops:   for tiles of y, x: for rows i, j that they read: tile[y, x] += data[i, j] * w

Not supported: 1-D, 3-D and large windows.
"""

from math import prod

from minihybrid.ops.cpu.machine import width

TILE_ROWS = 8  # rows of a tile
SLOW = 4  # cost of a multiply-add here, relative to matrix products
MAX_WINDOW = 25  # elements of a window; a tile's products are fully unrolled, at most:
PRODUCTS = 72


def slides_fit(s):
    """Return whether each filter reads one channel, through a small 2-D window."""
    return s.c == s.g > 1 and len(s.size) == 2 and prod(s.kernel) <= MAX_WINDOW and prod(s.out) > 0


def _rows(s):
    """Return the rows per tile that minimize the cost of rows computed twice."""
    most = min(TILE_ROWS, max(PRODUCTS // prod(s.kernel), 1), s.out[0])
    return min(range(1, most + 1), key=lambda rows: -(-s.out[0] // rows) * (4 * rows + 1))


def slides_scratch(s):
    """Return the scratch size in elements: some rows of sums."""
    return _rows(s) * s.out[1]


def slides_loops(k, data, weight, out, s):
    """Write out[n, o, y, x] = sum over i, j of data[n, c, i, j] * weight[o, i, j]."""
    (high, wide), (down, across) = s.size, s.out
    rows, lanes, many = _rows(s), width(k.dtype.itemsize), s.o // s.g
    work = SLOW * s.n * s.o * prod(s.out) * prod(s.kernel)
    filters = k.length("filters", s.o)
    window = ", ".join(map(str, (*s.kernel, *s.stride, *s.dilate)))
    with k.share("n", s.n, work=work), k.share("channel", filters, work=work):
        k(f"plane = (n * filters + channel){f' // {many}' * (many > 1)} * {high * wide}")
        with k.loop("turn", -(-down // rows)):
            k(f"y = min(turn * {rows}, {down - rows})")  # the last tile may overlap
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
