"""Convolution kernels for batches: SIMD across images, one per vector lane.

Uses:    a kernel writer (`codegen.source.Kernel`), flat arrays, the sizes of a convolution.
Defines: the three products of `flatshift`, and fused max pooling of the first.

Images are interleaved, as many at a time as a vector has lanes, so each output position is
a whole vector: row ends and strides don't interfere, and no result is discarded. A tile of
some filters and some positions stays in registers while all channels and taps accumulate
into it.

In loops:   for y: for tiles x: for c: for taps i, j:
                tile[o, x] += images[c, y + i, x + j] * w[o, c, i, j]

Limits:  the batch must fill whole vectors; other batches use `flatshift`.
"""

from math import prod

from minihybrid.ops.cpu.flatshift import Filters, most_vectors, zero
from minihybrid.ops.cpu.machine import width
from minihybrid.ops.shapes import blocks, row_major

ROWS = 8  # filters of a tile
MAX_SCRATCH = 2**18  # scratch elements that still fit in the cache


def lanes_fit(s, itemsize):
    """Return whether the images fill whole vectors and the scratch fits in the cache."""
    return (
        bool(s.n)
        and s.n % width(itemsize) == 0
        and width(itemsize) * (_images(s).vectors + s.o * prod(s.out)) <= MAX_SCRATCH
    )


class Images:
    """The layout of a block of interleaved images: zero-padded planes of vectors."""

    def __init__(self, channels, size, before, length):
        self.channels, self.size = channels, size
        self.plane, self.steps = prod(length), row_major(length)
        self.vectors = channels * self.plane
        self.first = sum(b * s for b, s in zip(before, self.steps, strict=True))
        self.rough = 0 if list(length) == list(size) else prod(size)

    def numbers(self, lanes):
        """Return the elements of the planes and of one unpadded channel."""
        return lanes * (self.vectors + self.rough)

    def fill(self, k, source, to):
        """Interleave the images from index `image` on, at offset `to` of the scratch."""
        lanes, inner = width(source.dtype.itemsize), prod(self.size)
        step = self.channels * inner
        if not self.rough:
            return _deal(k, source, f"image * {step}", step, step, to)
        rough = to + lanes * self.vectors
        with k.loop("c", self.channels):
            _deal(k, source, f"image * {step} + c * {inner}", step, inner, rough)
            start = f"{to + lanes * self.first} + c * {lanes * self.plane}"
            read, write = (
                (*(lanes * s for s in steps), 1) for steps in (row_major(self.size), self.steps)
            )
            k.copy("work", (*self.size, lanes), (rough, read), "work", (start, write))


def _deal(k, source, at, step, count, to):
    """Transpose `count` elements per image, with image stride `step`, into vectors."""
    lanes = width(source.dtype.itemsize)
    if count < lanes:
        with k.loop("i", count), k.loop("lane", lanes):
            k(f"work[{to} + i * {lanes} + lane] = {source}[{at} + i + lane * {step}]")
        return
    with k.loop("turn", -(-count // lanes)):  # the last tile may overlap
        k(f"i = min(turn * {lanes}, {count - lanes})")
        k(f"transpose({source}, {at} + i, {step}, work, {to} + i * {lanes}, {lanes})")


class Sums:
    """out[r, y] = sum over channels c and taps t of data[c, y stride + t dilate -
    before] w[r, c, t], the forward pass; or with `back`, the data's gradient for stride 1,
    where the taps are reversed.

    steps:   the strides of groups, rows r and channels c in the weights.
    """

    def __init__(self, s, back=False):
        rows, channels, taps = s.o // s.g, s.c // s.g, prod(s.kernel)
        size, out, before, steps = s.size, s.out, s.pad, (channels * taps, taps)
        if back:
            rows, channels, size, out, steps = channels, rows, out, size, steps[::-1]
            before = [(t - 1) * d - p for t, d, p in zip(s.kernel, s.dilate, s.pad, strict=True)]
        self.groups, self.rows, self.channels = s.g, rows, channels
        self.size, self.out, self.kernel = size, out, s.kernel
        self.stride, self.dilate, self.before = s.stride, s.dilate, before
        self.steps, self.back = (rows * channels * taps, *steps), back
        lead = [max(b, 0) for b in before]
        length = [
            max(a + n, (m - 1) * s + (t - 1) * d - b + a + 1)
            for n, m, t, s, d, b, a in zip(
                size, out, s.kernel, s.stride, s.dilate, before, lead, strict=True
            )
        ]
        self.images = Images(s.g * channels, size, lead, length)
        self.high = blocks(rows, ROWS)[0][2]
        most = min(most_vectors(self.high), out[-1])
        self.wide = min(
            range(1, most + 1), key=lambda v: -(-out[-1] // v) * (2 * self.high * v + self.high + v)
        )  # sums and loads

    def numbers(self, lanes, pool=None):
        """Return the scratch elements of the planes and a tile of filters' sums."""
        return self.images.numbers(lanes) + lanes * self.high * (prod(self.out) + self.pooled(pool))

    def pooled(self, pool):
        """Return the number of pooling windows per filter."""
        return prod(pool["outs"]) if pool else 0


def _images(s):
    return Sums(s).images


def lanes_loops(k, source, weight, out, s, n, pool=None):
    """Write all sums of n images, one block at a time."""
    lanes = width(k.dtype.itemsize)
    sums = s.images.numbers(lanes)
    results = sums + lanes * s.high * prod(s.out) if pool else sums
    places = s.pooled(pool) or prod(s.out)
    if s.images.rough:
        zero(k, "work", s.images.numbers(lanes))
    _look_at_weights(k, s, weight)
    work = n * s.groups * s.rows * s.channels * prod(s.out) * prod(s.kernel)
    with k.share("block", n // lanes, work=work):
        k(f"image = block * {lanes}")
        s.images.fill(k, source, 0)
        with k.loop("g", s.groups):
            for start, stop, high in blocks(s.rows, ROWS):
                with k.loop("o", stop, start, high):
                    _rows(k, s, weight, high, lanes, sums)
                    if pool:
                        _pool(k, s, pool, high, lanes, sums, results)
                    _give(k, s, out, high, lanes, results, places)


def _look_at_weights(k, s, weight):
    """Compute `more`, extra taps on padding, which only infinite weights need (NaN)."""
    if s.images.rough:
        k("more = 0")
        with k.loop("i", weight.size):
            k(f"more = more if abs({weight}[i]) < INF else {max(s.kernel)}")


def _rows(k, s, weight, high, lanes, sums):
    """Write the sums of `high` filters at all positions."""
    depth, axes = k.depth, range(len(s.out))
    place, at, tap = "0", "", ""
    for d in axes:
        last, wide = d == axes[-1], s.wide
        if last:
            k(f"for tile in range({-(-s.out[d] // wide)}):")
            k.depth += 1
            k(f"i{d} = min(tile * {wide}, {s.out[d] - wide})")
        else:
            k(f"for i{d} in range({s.out[d]}):")
            k.depth += 1
        place = f"({place}) * {s.out[d]} + i{d}"
        start = f"i{d} * {s.stride[d]} - {s.before[d]}"
        at += f" + ({start} + tap{d} * {s.dilate[d]}) * {s.images.steps[d] * lanes}"
        tap = f"({tap}) * {s.kernel[d]} + tap{d}" if tap else f"tap{d}"
        if s.images.rough:  # skip taps that read only padding
            more = (wide - 1) * s.stride[d] if last else 0
            k(f"low{d} = max(0, -(({start} + {more}) // {s.dilate[d]}) - more)")
            k(
                f"high{d} = min({s.kernel[d]}, "
                f"({s.size[d] - 1} - ({start})) // {s.dilate[d]} + 1 + more)"
            )
    tile = [(r, v) for r in range(high) for v in range(s.wide)]
    k(f"{' = '.join(f's{r}_{v}' for r, v in tile)} = splat(T(0))")
    inner = k.depth
    k(f"for c in range({s.channels}):")
    k.depth += 1
    for d in axes:
        ends = f"low{d}, high{d}" if s.images.rough else s.kernel[d]
        k(f"for tap{d} in range({ends}):")
        k.depth += 1
    tap = f"{prod(s.kernel) - 1} - ({tap})" if s.back else tap
    k(f"x = (g * {s.channels} + c) * {s.images.plane * lanes} + {s.images.first * lanes}{at}")
    k(f"w = g * {s.steps[0]} + o * {s.steps[1]} + c * {s.steps[2]} + {tap}")
    for v in range(s.wide):
        k(f"x{v} = load(work, x + {v * s.stride[-1] * lanes})")
    for r in range(high):
        k(f"y = splat({weight}[w + {r * s.steps[1]}])")
        for v in range(s.wide):
            k(f"s{r}_{v} = fma(y, x{v}, s{r}_{v})")
    k.depth = inner
    k(f"to = {sums} + ({place}) * {lanes}")
    for r, v in tile:
        k(f"store(work, to + {(r * prod(s.out) + v) * lanes}, s{r}_{v})")
    k.depth = depth


def _pool(k, s, pool, high, lanes, sums, results):
    """Write max pooling of the sums; windows are disjoint and inside."""
    depth, inner = k.depth, prod(s.out)
    place, at, steps = "r", f"r * {inner}", row_major(s.out)
    windows = ((f"i{d}", n) for d, n in enumerate(pool["outs"]))
    for name, count in (("r", high), *windows, ("lane", lanes)):
        k(f"for {name} in range({count}):")
        k.depth += 1
    for d, n in enumerate(pool["outs"]):
        place = f"({place}) * {n} + i{d}"
        at += f" + i{d} * {pool['stride'][d] * steps[d]}"
    k(f"at = {sums} + ({at}) * {lanes} + lane")
    k("top = work[at]")
    taps = [0]
    for n, step in zip(pool["kernel"], steps, strict=True):
        taps = [t + i * step for t in taps for i in range(n)]
    for t in taps[1:]:
        k(f"v = work[at + {t * lanes}]")
        k("top = v if (v > top) | (v != v) else top")
    k(f"work[{results} + ({place}) * {lanes} + lane] = top")
    k.depth = depth


def _give(k, s, out, high, lanes, results, places):
    """Deinterleave the vectors into each image's rows and run the epilogue there."""
    rows = s.groups * s.rows
    with k.loop("r", high):
        k(f"channel = g * {s.rows} + o + r")
        k(f"first = (image * {rows} + channel) * {places}")
        if places < lanes:
            source = f"work[{results} + (r * {places} + j) * {lanes} + lane]"
        else:
            source = f"{out}[at + j]"
            with k.loop("turn", -(-places // lanes)):
                k(f"i = min(turn * {lanes}, {places - lanes})")
                k(
                    f"transpose(work, {results} + (r * {places} + i) * {lanes}, {lanes}, "
                    f"{out}, first + i, {rows * places})"
                )
            if not k.after:
                return
        with k.loop("lane", lanes):
            k(f"at = first + lane * {rows * places}")
            with k.loop("j", places):
                k.store("at + j", source, {1: "channel"})


def lanes_weight_scratch(s, lanes):
    """Return the scratch size in elements: images, gradients, a vector per weight."""
    return _images(s).numbers(lanes) + lanes * (
        s.o * prod(s.out) + s.o * s.c // s.g * prod(s.kernel)
    )


def lanes_weight_loops(k, data, grad, out, s):
    """Write out[o, c, t] = sum of grad[o] times the data that tap t reads.

    A tile of filters and neighboring taps stays in registers for a whole plane.
    """
    lanes, images = width(k.dtype.itemsize), _images(s)
    grads = Images(s.o, s.out, [0] * len(s.out), s.out)
    rows = images.numbers(lanes)
    sums = rows + grads.numbers(lanes)
    channels, n_taps = s.c // s.g, prod(s.kernel)
    if images.rough:
        zero(k, "work", images.numbers(lanes))
    with k.loop("i", lanes * out.size):
        k(f"work[{sums} + i] = T(0)")
    filters = Filters(k, s)
    with filters.shared():
        with k.loop("block", s.n // lanes):
            k(f"image = block * {lanes}")
            images.fill(k, data, 0)
            grads.fill(k, grad, rows)
            last = s.kernel[-1]
            for t0, t1, taps in blocks(last, ROWS):
                for start, stop, high in blocks(filters.rows, most_vectors(taps)):
                    with (
                        k.loop("g", s.g),
                        filters.loop(stop, start, high),
                        k.loop("c", channels),
                        k.loop("first", n_taps // last),
                        k.loop("t", t1, t0, taps),
                    ):
                        _dots(k, s, images, lanes, rows, sums, high, taps)
        with filters.weights() as i:
            k(f"at = {i}")
            k(f"{out}[at] = total(load(work, {sums} + at * {lanes}))")


def _dots(k, s, images, lanes, rows, sums, high, taps):
    """Accumulate gradient rows times taps' data into the scratch."""
    inner, channels, n_taps = prod(s.out), s.c // s.g, prod(s.kernel)
    tile = [(r, e) for r in range(high) for e in range(taps)]
    k(
        f"wat = {sums} + (((g * {s.o // s.g} + o) * {channels} + c) * {n_taps} + "
        f"first * {s.kernel[-1]} + t) * {lanes}"
    )
    for r, e in tile:
        k(f"s{r}_{e} = load(work, wat + {(r * channels * n_taps + e) * lanes})")
    depth = k.depth
    place, at, rest = "0", "", "first"
    shifts = [f"t * {s.dilate[-1]}"]
    for d in reversed(range(len(s.out) - 1)):
        shifts.insert(0, f"({rest}) % {s.kernel[d]} * {s.dilate[d]}")
        rest = f"({rest}) // {s.kernel[d]}"
    for d, n in enumerate(s.out):
        at += f" + (i{d} * {s.stride[d]} + {shifts[d]} - {s.pad[d]}) * {images.steps[d] * lanes}"
        k(f"for i{d} in range({n}):")
        k.depth += 1
        place = f"({place}) * {n} + i{d}"
    k(f"x = (g * {channels} + c) * {images.plane * lanes} + {images.first * lanes}{at}")
    k(f"y = {rows} + ((g * {s.o // s.g} + o) * {inner} + {place}) * {lanes}")
    for r in range(high):
        k(f"y{r} = load(work, y + {r * inner * lanes})")
    for e in range(taps):
        k(f"v = load(work, x + {e * s.dilate[-1] * lanes})")
        for r in range(high):
            k(f"s{r}_{e} = fma(v, y{r}, s{r}_{e})")
    k.depth = depth
    for r, e in tile:
        k(f"store(work, wat + {(r * channels * n_taps + e) * lanes}, s{r}_{e})")
