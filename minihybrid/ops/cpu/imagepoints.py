"""The loops of convolutions of single points: filters times channels.

Takes:   a kernel writer (`codegen.source.Kernel`), flat arrays, the numbers of a shape.
Gives:   the product of data and weights where a kernel is one point, as 1 x 1.

An image's channels already are the rows of a matrix, and its places the columns. So the
output is a product of matrices, and a tile of some filters and some vectors of places
stays in registers through all channels; what follows the sums is computed before the
next tile. The few places beyond whole vectors, as the one of 7 x 7, are dot products.

Where planes of shifts would compute much for nothing, as at the row ends of 7 x 7, windows
are copied into such a matrix, a strip of whole vectors at a time: each tap of each channel
is a row. Many filters must share the copy; fewer, where all places are one vector.

In loops:   for tiles of p: for tiles of o: for c: tile[o, p] += w[o, c] * data[c, p]

What is left out: a copy of the weights in the order in which they are read.
"""

from contextlib import ExitStack, contextmanager
from functools import cache
from math import prod

from minihybrid.ops.cpu.flatshift import divisor, zero
from minihybrid.ops.cpu.imagecolumns import pad_data, padded_size
from minihybrid.ops.cpu.machine import registers, width
from minihybrid.ops.shapes import row_major

FEW = 4  # places beyond whole vectors that are dot products
WIDE = 7  # vectors of a tile
NEAR = 3 * 2**13  # bytes of a strip that stay in the nearest cache
FILTERS, JUNK = 256, 1.2  # that repay a copy of windows; places computed for one that is read
FEWER = 64  # filters that do if all windows are one vector
LINES = 2  # of a cache, of each next filter that are asked for: the memory guesses the rest
REPEATS = 8  # tiles above each other that repay a copy of the channels' strip, one more if near


def points_fit(s, itemsize):
    """Whether each output sees one place (in a row all, or every second, ...), or a window
    of which a copy in whole vectors is repaid, since `flatshift` would compute at the row
    ends what nobody reads.
    """
    if not prod(s.out) > 0 or len(s.size) > 2 and set(s.stride) != {1}:
        return False
    if _is_window(s):
        least = FILTERS if prod(s.out) != width(itemsize) else FEWER
        much = s.data_planes().row >= JUNK * prod(s.out)
        return len(s.size) <= 2 and s.c > 0 and s.o // s.g >= least and much
    return True


def _is_window(s):
    """Whether an output sees more than one place, or padding."""
    return prod(s.kernel) > 1 or any(s.pad)


def _room():
    """How many registers hold sums."""
    return 24 if registers()[1] > 16 else 12


@cache
def _tile(rows, depth, places, itemsize):
    """(filters, vectors of places, places that are left to dot products).

    Of all tiles that fit the registers, that whose sums and loads are the fewest. To load
    from a strip that has left the nearest cache takes three times as long.
    """
    lanes, room = width(itemsize), _room()
    rest = places % lanes if places >= lanes and places % lanes <= FEW else 0
    count = -(-(places - rest) // lanes)

    def cost(tile):
        high, wide = tile
        load = 1 if depth * wide * lanes * itemsize <= NEAR else 3
        return -(-rows // high) * -(-count // wide) * (2 * high * wide + high + load * wide)

    tiles = [
        (high, wide)
        for high in range(1, min(rows, room) + 1)
        for wide in range(1, min(WIDE, count) + 1)
        if high * wide <= room
    ]
    return *min(tiles, key=cost), rest


def _depth(s):
    """The numbers that an output is the sum of: all taps of a group's channels."""
    return s.c // s.g * prod(s.kernel)


def points_scratch(s, itemsize):
    """Numbers beside the arrays: the sums of a tile, a strip of what its places see, columns,
    and, for windows, the data with padding."""
    high, vectors, rest = _tile(s.o // s.g, _depth(s), prod(s.out), itemsize)
    padded = s.c * prod(padded_size(s)) if _is_window(s) else 0
    return (high + _depth(s)) * vectors * width(itemsize) + rest * _depth(s) + padded


def points_loops(k, data, weight, out, s):
    """out[n, o, p] = sum over c of weight[o, c] * data[n, c, p]; of a window, each tap of
    each channel is such a `c`."""
    rows, depth, whole = s.o // s.g, _depth(s), prod(s.out)
    lanes = width(k.dtype.itemsize)
    high, vectors, rest = _tile(rows, depth, whole, k.dtype.itemsize)
    wide, strip, work = vectors * lanes, high * vectors * lanes, s.n * s.o * depth * whole
    k.length("channels", depth), k.length("filters", rows), k.length("places", whole)
    whole -= rest
    new = min(wide, whole)
    alone = s.n * s.g == 1 and new == whole  # one strip: threads share its blocks
    window = _is_window(s)
    apart, plane = window or set(s.stride) != {1}, "places"
    held = depth * wide * k.dtype.itemsize <= NEAR
    packed = new < wide or apart or rows >= (REPEATS + held) * high and not alone
    line, columns = 64 // k.dtype.itemsize, f"{strip} + channels * {wide}"
    padded = f"{columns} + {rest} * channels"
    if apart:
        size, source = padded_size(s), "work" if window else data
        steps = prod(size), s.out[-1], s.stride[0] * size[-1]
        plane, *_ = names = "plane", "across", "down"
        for name, step in zip(names, steps, strict=True):
            if window:  # its taps are numbers of the text anyway
                k(f"{name} = {step}")
            else:
                k.length(name, step)
    if window:
        with k.loop("i", s.c * prod(size)):
            k(f"work[{padded} + i] = T(0)")
    if new < wide:  # what is beyond the places is computed, and not read
        zero(k, "work", f"{strip} + channels * {wide}")
    turns = k.length("turns", -(-whole // wide)) if new < whole else 1
    blocks = k.length("blocks", -(-rows // high))
    # The next strip is asked for: all at once, if the nearest cache holds it, else bit by bit;
    # but if its rows are long pieces of a channel, the memory guesses what comes next.
    near = new < whole and held and not apart
    far = 3 * wide < whole and not near and not apart
    with k.share("n", s.n, work=work):
        if window:
            pad_data(k, k.part(data, "n", (1, s.c, *s.size)), s, padded)
        with k.share("g", s.g, work=work):
            if window:
                k(f"image = {padded} + g * {s.c // s.g} * plane")
            else:
                k(f"image = (n * {s.g} + g) * channels * {plane}")
            if rest and apart:
                with _taps(k, s) as (tap, seen), k.loop("j", rest):
                    at = f"places - {rest} + j"
                    at = f"({at}) // across * down + ({at}) % across * {s.stride[-1]}"
                    k(f"work[{columns} + j * channels + {tap}] = {source}[{seen} + {at}]")
            elif rest:
                with k.loop("c", "channels"), k.loop("j", rest):
                    at = f"image + c * places + places - {rest} + j"
                    k(f"work[{columns} + j * channels + c] = {data}[{at}]")
            with k.share("turn", turns, work=work):
                k(f"p = min(turn * {wide}, places - {rest + wide})" if new < whole else "p = 0")
                if apart:
                    _gather(k, s, source, strip, wide, new)
                elif packed:
                    with k.loop("c", "channels"), k.loop("j", new):
                        k(f"work[{strip} + c * {wide} + j] = {data}[image + p + c * places + j]")
                if near:
                    with k.loop("c", "channels"), k.loop("j", wide, 0, lanes):
                        k(f"fetch({data}, image + p + {wide} + c * places + j)")
                split = alone and apart or not packed  # a copy of few places by each thread
                with (
                    k.share("block", blocks, work=alone * work)
                    if split
                    else k.loop("block", blocks)
                ):
                    k(f"first = g * filters + min(block * {high}, filters - {high})")
                    k(f"s = tile(T(0), {high}, {vectors})")
                    with k.loop("r", high), k.loop("j", LINES * line, 0, line):  # the next tile's
                        k(f"fetch({weight}, (first + {high} + r) * channels + j)")
                    row = f"work, {strip} + c * {wide}" if packed else f"{data}, at"
                    if far:
                        k(f"ahead = image + p + {wide} + min(block, {vectors - 1}) * {lanes}")
                    with k.loop("c", "channels"):
                        if not packed:
                            k("at = image + p + c * places")
                        if far:  # each block asks for another vector of its rows
                            k(f"fetch({data}, ahead + c * places)")
                        k(f"s = outer(s, {weight}, first * channels + c, channels, {row})")
                    k(f"put(s, work, 0, {wide}, 0, 0, {wide})")
                    _give(k, s, high, new, wide, "p")
                    if rest and new < whole:
                        with k.block("if turn == turns - 1:"):
                            _dots(k, weight, s, columns, high, rest)
                    elif rest:
                        _dots(k, weight, s, columns, high, rest)


@contextmanager
def _taps(k, s):
    """A loop over the taps of all channels: the number of a tap, and where its window begins."""
    steps = row_major(padded_size(s))
    number, at = "c", "image + c * plane"
    with ExitStack() as loops:
        loops.enter_context(k.loop("c", s.c // s.g if prod(s.kernel) > 1 else "channels"))
        for d, (n, dilate, step) in enumerate(zip(s.kernel, s.dilate, steps, strict=True)):
            if n > 1:
                loops.enter_context(k.loop(f"t{d}", n))
                number, at = f"({number}) * {n} + t{d}", f"{at} + t{d} * {dilate * step}"
        yield number, at


def _gather(k, s, source, strip, wide, count):
    """Copy what each tap of the outputs from p on sees, row by row."""
    k(f"top, below = p // across, (p + {count - 1}) // across + 1")
    with _taps(k, s) as (tap, seen):
        k(f"row, seen = {strip} + ({tap}) * {wide} - p, {seen}")
        with k.block("for y in range(top, below):"):
            k(f"left, right = max(p - y * across, 0), min(p + {count} - y * across, across)")
            k("to, at = row + y * across, seen + y * down")
            with k.block("for x in range(left, right):"):
                k(f"work[to + x] = {source}[at + x * {s.stride[-1]}]")


def _give(k, s, high, count, step, start):
    """The sums of a tile, rows of `count` numbers, go to their places of the output."""
    with k.loop("r", high):
        k("channel = first + r")
        k(f"to = (n * {s.g} * filters + channel) * places + {start}")
        with k.loop("j", count):
            k.store("to + j", f"work[r * {step} + j]", {1: "channel"})


def _dots(k, weight, s, columns, high, rest):
    """The last places of a tile's filters: rows of weights times columns of channels.

    The weights are in a near cache now.
    """
    lanes, some = width(k.dtype.itemsize), divisor(high, _room() // rest)
    with k.loop("part", high, 0, some):
        k("row = (first + part) * channels")
        k(f"dots = tile(T(0), {some}, {rest})")
        with k.block(f"for c in range(0, channels, {lanes}):"):
            count = f"min({lanes}, channels - c)" if _depth(s) % lanes else lanes
            k(f"dots = inner(dots, {weight}, row + c, work, {columns} + c, channels, {count})")
        k(f"put_totals(dots, work, part * {rest}, {rest}, 0, 0, False)")
    _give(k, s, high, rest, rest, f"places - {rest}")
