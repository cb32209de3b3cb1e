"""Chapter 18. The loops of convolutions of single points: filters times channels.

Takes:   a kernel writer (`codegen.source.Kernel`), flat arrays, the numbers of a shape.
Gives:   the product of data and weights where a kernel is one point, as 1 x 1.

An image's channels already are the rows of a matrix, and its places the columns. So the
output is a product of matrices, and a tile of some filters and some vectors of places
stays in registers through all channels; what follows the sums is computed before the
next tile. The few places beyond whole vectors, as the one of 7 x 7, are dot products.

In loops:   for tiles of p: for tiles of o: for c: tile[o, p] += w[o, c] * data[c, p]

What is left out: a copy of the weights in the order in which they are read.
"""

from functools import cache
from math import prod

from minihybrid.ops.cpu.flatshift import divisor, zero
from minihybrid.ops.cpu.machine import registers, width

FEW = 4  # places beyond whole vectors that are dot products
WIDE = 7  # vectors of a tile
NEAR = 3 * 2**13  # bytes of a strip that stay in the nearest cache
REPEATS = 8  # tiles above each other that repay a copy of the channels' strip


def points_fit(s):
    """Whether each output sees one place: in a row all, or every second, ..."""
    few = len(s.size) < 3 or set(s.stride) == {1}
    return few and set(s.kernel) == {1} and not any(s.pad) and prod(s.out) > 0


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


def points_scratch(s, itemsize):
    """Numbers beside the arrays: the sums of a tile, a strip of channels, columns."""
    high, vectors, rest = _tile(s.o // s.g, s.c // s.g, prod(s.out), itemsize)
    return (high + s.c // s.g) * vectors * width(itemsize) + rest * (s.c // s.g)


def points_loops(k, data, weight, out, s):
    """out[n, o, p] = sum over c of weight[o, c] * data[n, c, p]."""
    rows, depth, whole = s.o // s.g, s.c // s.g, prod(s.out)
    lanes = width(k.dtype.itemsize)
    high, vectors, rest = _tile(rows, depth, whole, k.dtype.itemsize)
    wide, strip, work = vectors * lanes, high * vectors * lanes, s.n * s.o * depth * whole
    k.length("channels", depth), k.length("filters", rows), k.length("places", whole)
    whole -= rest
    new = min(wide, whole)
    alone = s.n * s.g == 1 and new == whole  # one strip: threads share its blocks
    apart, plane = set(s.stride) != {1}, "places"
    packed = new < wide or apart or rows > REPEATS * high and not alone
    if apart:
        plane = k.length("plane", prod(s.size))
        k.length("across", s.out[-1]), k.length("down", s.stride[0] * s.size[-1])
    if new < wide:  # what is beyond the places is computed, and not read
        zero(k, "work", f"{strip} + channels * {wide}")
    turns = k.length("turns", -(-whole // wide)) if new < whole else 1
    blocks = k.length("blocks", -(-rows // high))
    # The next strip is asked for: all at once, if the nearest cache holds it, else bit by bit;
    # but if its rows are long pieces of a channel, the memory guesses what comes next.
    near = new < whole and depth * wide * k.dtype.itemsize <= NEAR and not apart
    far = 3 * wide < whole and not near and not apart
    columns = f"{strip} + channels * {wide}"
    with k.share("n", s.n, work=work), k.share("g", s.g, work=work):
        k(f"image = (n * {s.g} + g) * channels * {plane}")
        if rest:
            with k.loop("c", "channels"), k.loop("j", rest):
                at = f"places - {rest} + j"
                if apart:
                    at = f"({at}) // across * down + ({at}) % across * {s.stride[-1]}"
                k(f"work[{columns} + j * channels + c] = {data}[image + c * {plane} + {at}]")
        with k.share("turn", turns, work=work):
            k(f"p = min(turn * {wide}, places - {rest + wide})" if new < whole else "p = 0")
            if apart:
                _gather(k, data, f"{strip} + c * {wide}", new, s.stride[-1])
            elif packed:
                with k.loop("c", "channels"), k.loop("j", new):
                    k(f"work[{strip} + c * {wide} + j] = {data}[image + p + c * places + j]")
            if near:
                with k.loop("c", "channels"), k.loop("j", wide, 0, lanes):
                    k(f"fetch({data}, image + p + {wide} + c * places + j)")
            split = alone and apart or not packed  # a copy of few places by each thread
            with k.share("block", blocks, work=alone * work) if split else k.loop("block", blocks):
                k(f"first = g * filters + min(block * {high}, filters - {high})")
                k(f"s = tile(T(0), {high}, {vectors})")
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


def _gather(k, data, strip, count, step):
    """Copy those places of each channel that the outputs from p on see, row by row."""
    k(f"top, below = p // across, (p + {count - 1}) // across + 1")
    with k.loop("c", "channels"), k.block("for y in range(top, below):"):
        k(f"left, right = max(p - y * across, 0), min(p + {count} - y * across, across)")
        k(f"to = {strip} + y * across - p")
        k("at = image + c * plane + y * down")
        with k.block("for x in range(left, right):"):
            k(f"work[to + x] = {data}[at + x * {step}]")


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
            count = f"min({lanes}, channels - c)" if s.c // s.g % lanes else lanes
            k(f"dots = inner(dots, {weight}, row + c, work, {columns} + c, channels, {count})")
        k(f"put_totals(dots, work, part * {rest}, {rest}, 0, 0, False)")
    _give(k, s, high, rest, rest, f"places - {rest}")
