"""Pointwise (1 x 1) convolution kernels: filters times channels.

Uses:    a kernel writer (`codegen.source.Kernel`), flat arrays, the sizes of a convolution.
Defines: the product of data and weights for 1 x 1 kernels, and larger ones by im2col.

An image's channels are the rows of a matrix, and its positions the columns. So the output
is a matrix product, and a tile of some filters and some vectors of positions stays in
registers for all channels; the epilogue runs before the next tile. The few positions
beyond whole vectors, such as the last one of 7 x 7, are dot products. So are all of them,
if they are less than a vector: then reading the weights dominates.

Where `flatshift` would discard many results, as at the row ends of 7 x 7, windows are
copied into such a matrix, a strip of whole vectors at a time: each tap of each channel is
a row. Many filters must amortize the copy; fewer if all positions are one vector.

In loops:   for tiles of p: for tiles of o: for c: tile[o, p] += w[o, c] * data[c, p]

Limits:  weights aren't packed in the order in which they are read.
"""

from contextlib import ExitStack, contextmanager
from math import prod

from minihybrid.ops.cpu.flatshift import LINE, divisor, most_vectors, zero
from minihybrid.ops.cpu.machine import registers, width
from minihybrid.ops.shapes import row_major

MAX_REST = 4  # maximum positions beyond whole vectors that become dot products
TILE_VECTORS = 7  # vectors of a tile
L1_BYTES = 3 * 2**13  # bytes of a strip that fits in the L1 cache
FILTERS, JUNK = 256, 1.2  # that amortize copying windows; computed per used position
FEWER = 64  # filters that amortize it if all windows are one vector
LINES = 2  # cache lines to prefetch per next filter; hardware prefetching does the rest
REPEATS = 8  # row tiles that amortize packing the channels' strip; one more if it's in L1


def points_fit(s, itemsize):
    """Return whether each output reads one position (contiguous or strided), or a window
    whose copy in whole vectors pays off, because `flatshift` would discard many results at
    the row ends.
    """
    window = _is_window(s)
    if not prod(s.out) > 0 or len(s.size) > 2 and (window or set(s.stride) != {1}):
        return False
    if _are_few(_depth(s), prod(s.out), itemsize):
        return True
    if window:
        least = FILTERS if prod(s.out) != width(itemsize) else FEWER
        much = s.data_planes().row >= JUNK * prod(s.out)
        return s.c > 0 and s.o // s.g >= least and much
    return True


def _are_few(depth, places, itemsize):
    """Return whether all positions are dot products."""
    return depth > 0 == depth % width(itemsize) and places < width(itemsize)


def _is_window(s):
    """Return whether an output reads more than one position, or padding."""
    return prod(s.kernel) > 1 or any(s.pad)


def _room():
    """Return the number of accumulator registers."""
    return 24 if registers()[1] > 16 else 12


def _tile(rows, depth, places, itemsize):
    """Return (filters, vectors of positions, positions left to dot products).

    Of all tiles that fit in the registers, choose the one with the fewest operations and
    loads; loads from a strip that doesn't fit in L1 cost three times as much.
    """
    lanes, room = width(itemsize), _room()
    if _are_few(depth, places, itemsize):
        return min(most_vectors(min(places, MAX_REST)), rows), 0, places
    rest = places % lanes if places >= lanes and places % lanes <= MAX_REST else 0
    count = -(-(places - rest) // lanes)

    def cost(tile):
        high, wide = tile
        load = 1 if depth * wide * lanes * itemsize <= L1_BYTES else 3
        return -(-rows // high) * -(-count // wide) * (2 * high * wide + high + load * wide)

    tiles = [
        (high, wide)
        for high in range(1, min(rows, room) + 1)
        for wide in range(1, min(TILE_VECTORS, count) + 1)
        if high * wide <= room and (high + 1) * wide < registers()[1]  # and one for a weight
    ]
    return *min(tiles, key=cost), rest


def _padded_size(s):
    """Return the shape of a padded channel."""
    return [n + 2 * p for n, p in zip(s.size, s.pad, strict=True)]


def _depth(s):
    """Return the reduction length: all taps of a group's channels."""
    return s.c // s.g * prod(s.kernel)


def points_scratch(s, itemsize):
    """Return the scratch size in elements: a tile's sums, its strip of the data, columns,
    and, for windows, the padded data."""
    high, vectors, rest = _tile(s.o // s.g, _depth(s), prod(s.out), itemsize)
    padded = s.c * prod(_padded_size(s)) if _is_window(s) else 0
    wide = vectors * width(itemsize)
    return high * max(wide, rest) + _depth(s) * (wide + rest) + padded


def points_loops(k, data, weight, out, s):
    """Write out[n, o, p] = sum over c of weight[o, c] * data[n, c, p]; for a window, `c` is
    each tap of each channel."""
    rows, depth, whole = s.o // s.g, _depth(s), prod(s.out)
    lanes = width(k.dtype.itemsize)
    high, vectors, rest = _tile(rows, depth, whole, k.dtype.itemsize)
    wide, work = vectors * lanes, s.n * s.o * depth * whole
    strip = high * max(wide, rest)
    k.length("channels", depth), k.length("filters", rows), k.length("places", whole)
    whole -= rest
    new = min(wide, whole)
    alone = s.n * s.g == 1 and new == whole  # one strip: threads share its blocks
    window = _is_window(s)
    apart, plane = window or set(s.stride) != {1}, "places"
    held = depth * wide * k.dtype.itemsize <= L1_BYTES
    packed = new < wide or apart or rows >= (REPEATS + held) * high and not alone
    line, columns = LINE // k.dtype.itemsize, f"{strip} + channels * {wide}"
    padded = f"{columns} + {rest} * channels"
    if apart:
        size, source = _padded_size(s), "work" if window else data
        steps = prod(size), s.out[-1], s.stride[0] * size[-1]
        plane, *_ = names = "plane", "across", "down"
        for name, step in zip(names, steps, strict=True):
            if window:  # its taps are constants in the source anyway
                k(f"{name} = {step}")
            else:
                k.length(name, step)
    if window:
        with k.loop("i", s.c * prod(size)):
            k(f"work[{padded} + i] = T(0)")
    if new < wide:  # positions beyond the end are computed and discarded
        zero(k, "work", f"{strip} + channels * {wide}")
    # Prefetch the next strip: all at once if it fits in L1, else incrementally, unless its
    # rows are long runs of a channel, for which hardware prefetching suffices.
    near = new < whole and held and not apart
    far = 3 * wide < whole and not near and not apart
    ends = [buf for ref, buf in k.ins.items() if any(ref in node.inputs for node in k.after)]
    ends = [buf for buf in ends if buf.shape == out.shape and lanes < line]
    turns = k.length("turns", -(-whole // wide)) if new < whole else 1
    blocks = k.length("blocks", -(-rows // high))
    with k.share("n", s.n, work=work):
        if window:
            _pad_data(k, k.part(data, "n", (1, s.c, *s.size)), s, padded)
        with k.share("g", s.g, work=work):
            if window:
                k(f"image = {padded} + g * {s.c // s.g} * plane")
            else:
                k(f"image = (n * {s.g} + g) * channels * {plane}")
            if rest and apart:
                with k.loop("j", rest):
                    k(f"at = places - {rest} + j")
                    k(f"at = at // across * down + at % across * {s.stride[-1]}")
                    with _taps(k, s) as (tap, seen):
                        k(f"work[{columns} + j * channels + {tap}] = {source}[{seen} + at]")
            elif rest:
                with k.loop("c", "channels"), k.loop("j", rest):
                    at = f"image + c * places + places - {rest} + j"
                    k(f"work[{columns} + j * channels + c] = {data}[{at}]")
            with k.share("turn", turns, work=work):
                if whole:
                    k(f"p = min(turn * {wide}, places - {rest + wide})" if new < whole else "p = 0")
                if whole and apart:
                    _gather(k, s, source, strip, wide, new)
                elif whole and packed:
                    with k.loop("c", "channels"), k.loop("j", new):
                        k(f"work[{strip} + c * {wide} + j] = {data}[image + p + c * places + j]")
                if near:
                    with k.loop("c", "channels"), k.loop("j", wide, 0, lanes):
                        k(f"fetch({data}, image + p + {wide} + c * places + j)")
                split = alone and apart or not packed  # each thread copies the few positions
                with (
                    k.share("block", blocks, work=alone * work)
                    if split
                    else k.loop("block", blocks)
                ):
                    k(f"first = g * filters + min(block * {high}, filters - {high})")
                    if whole:
                        k(f"s = tile(T(0), {high}, {vectors})")
                        with k.loop("r", high), k.loop("j", LINES * line, 0, line):  # the next tile
                            k(f"fetch({weight}, (first + {high} + r) * channels + j)")
                        for end in ends:  # tiles are too narrow for hardware prefetching
                            with k.loop("r", high), k.loop("j", new, 0, line):
                                at = f"(n * {s.g} * filters + first + r) * places + p + j"
                                k(f"fetch({end}, {at})")
                        row = f"work, {strip} + c * {wide}" if packed else f"{data}, at"
                        if far:
                            k(f"ahead = image + p + {wide} + min(block, {vectors - 1}) * {lanes}")
                        with k.loop("c", "channels"):
                            if not packed:
                                k("at = image + p + c * places")
                            if far:  # each block prefetches a different vector of the rows
                                k(f"fetch({data}, ahead + c * places)")
                            k(f"s = outer(s, {weight}, first * channels + c, channels, {row})")
                        k(f"put(s, work, 0, {wide}, 0, 0, {wide})")
                        _give(k, s, high, new, wide, "p")
                    if rest and new < whole:
                        with k.block("if turn == turns - 1:"):
                            _dots(k, weight, s, columns, high, rest)
                    elif rest:
                        _dots(k, weight, s, columns, high, rest)


def _pad_data(k, image, s, start):
    """Copy an image into a zero-padded buffer at an offset of `work`."""
    size = _padded_size(s)
    steps = row_major(size)
    first = sum(p * t for p, t in zip(s.pad, steps, strict=True))
    read = 0, row_major((s.c, *s.size))
    k.copy(image, (s.c, *s.size), read, "work", (f"{start} + {first}", (prod(size), *steps)))


@contextmanager
def _taps(k, s):
    """Write a loop over the taps of all channels; yield a tap's index and window offset."""
    steps = row_major(_padded_size(s))
    number, at = "c", "image + c * plane"
    with ExitStack() as loops:
        loops.enter_context(k.loop("c", s.c // s.g if prod(s.kernel) > 1 else "channels"))
        for d, (n, dilate, step) in enumerate(zip(s.kernel, s.dilate, steps, strict=True)):
            if n > 1:
                loops.enter_context(k.loop(f"t{d}", n))
                number, at = f"({number}) * {n} + t{d}", f"{at} + t{d} * {dilate * step}"
        yield number, at


def _gather(k, s, source, strip, wide, count):
    """Copy the data that each tap reads for the outputs from p on, one row per tap."""
    k(f"top, below = p // across, (p + {count - 1}) // across + 1")
    with _taps(k, s) as (tap, seen):
        k(f"row, seen = {strip} + ({tap}) * {wide} - p, {seen}")
        with k.block("for y in range(top, below):"):
            k(f"left, right = max(p - y * across, 0), min(p + {count} - y * across, across)")
            k("to, at = row + y * across, seen + y * down")
            with k.block("for x in range(left, right):"):
                k(f"work[to + x] = {source}[at + x * {s.stride[-1]}]")


def _give(k, s, high, count, step, start):
    """Store a tile's sums, in rows of `count` elements, in the output."""
    with k.loop("r", high):
        k("channel = first + r")
        k(f"to = (n * {s.g} * filters + channel) * places + {start}")
        with k.loop("j", count):
            k.store("to + j", f"work[r * {step} + j]", {1: "channel"})


def _dots(k, weight, s, columns, high, rest):
    """Compute the last positions of a tile: rows of weights times columns of channels.

    The weights are in cache by now.
    """
    lanes, wide = width(k.dtype.itemsize), min(rest, MAX_REST)
    some = divisor(high, _room() // wide)
    with k.loop("part", high, 0, some), k.loop("q", rest, 0, wide):
        k(f"row, q = (first + part) * channels, min(q, {rest - wide})")
        k(f"dots = tile(T(0), {some}, {wide})")
        with k.block(f"for c in range(0, channels, {lanes}):"):
            count = f"min({lanes}, channels - c)" if _depth(s) % lanes else lanes
            column = f"{columns} + q * channels + c"
            k(f"dots = inner(dots, {weight}, row + c, work, {column}, channels, {count})")
        k(f"put_totals(dots, work, part * {rest} + q, {rest}, 0, 0, False)")
    _give(k, s, high, rest, rest, f"places - {rest}")
