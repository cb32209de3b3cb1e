"""Convolution kernels: every tap of a filter is one constant shift.

Uses:    a kernel writer (`codegen.source.Kernel`), flat arrays, the sizes of a convolution.
Defines: three products: data with weights, gradient with weights, data with gradient.

The channels of a sample's group are copied into zero-padded planes. In a plane with row
stride W, the neighbor (y, x) of any position is y W + x elements further on, so an output
plane is one flat loop over whole vectors, and each tap accumulates the shifted plane times
one weight in registers. Elements computed in the padding between rows are discarded. For
many filters of small planes, each tap of a kernel row gets its own shifted copy, without
padding between rows. Strides split a plane into phases (for stride 2, the even and the odd
positions), and each tap reads one of them. Depthwise layers copy one channel at a time.

In loops:   for vectors p: for c: for taps t: row[p] += plane[c][p + shift[t]] * w[c, t]

Source:  the shifted sums of Anderson, Vasudevan, Keane, Gregg, Low-memory GEMM-based
         convolution algorithms (2017); here on planes, without matrix products.
Not supported: Winograd and FFT convolution.
"""

import itertools
from contextlib import contextmanager
from math import prod

from minihybrid.core.lengths import Length
from minihybrid.ops.cpu.machine import registers, width
from minihybrid.ops.shapes import blocks, row_major

COPIED, L2_BYTES = 14, 3 * 2**18  # multiply-adds per element copy; L2 cache bytes
ROWS = 4  # output rows of a tile
LINE = 64  # bytes of a cache line
BATCH = 1 << 17  # elements of planes per batch in the weights' gradient


def round_up(n, step=16):
    """Round up to a multiple of `step`."""
    return -(-n // step) * step


def divisor(n, limit):
    """Return the largest divisor of n up to a limit; 1 for a symbolic n."""
    if isinstance(n, Length):
        return 1
    return max((d for d in range(1, min(n, limit) + 1) if n % d == 0), default=1)


class Planes:
    """The layout of the padded copy of a group's channels.

    places:  for each axis, the (phase, shift) that each tap reads.

    Along one axis, element `i` of the data is at `a` in phase `r`, where
    i + before = stride a + r. `reach` is the largest shift, and `out` the number of
    outputs.
    """

    def __init__(self, channels, size, before, out, places, stride, batch=1):
        self.channels, self.size, self.batch = channels, size, batch
        self.before, self.stride, self.places = before, stride, places
        self.phases = [sorted({r for r, _ in p}) for p in places]
        self.reach = reach = [max(steps for _, steps in p) for p in places]
        self.length = [n + r for n, r in zip(out, reach, strict=True)]
        self.steps = row_major(self.length)
        span = sum((n - 1) * s for n, s in zip(out, self.steps, strict=True)) + 1
        self.row = round_up(span)  # elements of an output's flat row
        shift = sum(n * s for n, s in zip(reach, self.steps, strict=True))
        self.plane = round_up(max(prod(self.length), self.row + shift))
        self.phase = self.plane * batch
        self.channel = self.phase * prod(map(len, self.phases))
        self.numbers = channels * self.channel

    def or_copies(self, products, itemsize):
        """Return these planes, or ones with a separate copy per tap of the last axis.

        A copy is already shifted, so its rows have no padding between them, where discarded
        outputs would be computed. Such copies must fit in the L2 cache.

        products: multiply-adds per output position and channel.
        """
        *places, last = self.places
        alone = [(r + self.stride[-1] * steps, 0) for r, steps in last]
        out = [n - r for n, r in zip(self.length, self.reach, strict=True)]
        more = self.channels, self.size, self.before, out
        copies = Planes(*more, [*places, alone], self.stride, self.batch)
        saved = (self.row - copies.row) * self.batch * products
        pays = saved > COPIED * (copies.channel - self.channel)
        return copies if pays and copies.numbers * itemsize <= L2_BYTES else self

    def shift(self, places):
        """Return the offset of the element at (phase, steps) of each axis."""
        number, at = 0, 0
        for (phase, steps), phases, step in zip(places, self.phases, self.steps, strict=True):
            number = number * len(phases) + phases.index(phase)
            at += steps * step
        return number * self.phase + at

    def fill(self, k, source, work):
        """Copy (batch, channels, *size) into the planes; leave the padding unchanged."""
        rows = row_major(self.size)
        for number, phase in enumerate(itertools.product(*self.phases)):
            counts, read, write = [], 0, number * self.phase
            for d, r in enumerate(phase):
                n, before, s = self.size[d], self.before[d], self.stride[d]
                first = max(0, -((r - before) // s))
                last = min(self.length[d] - 1, (n - 1 + before - r) // s)
                counts.append(max(last - first + 1, 0))
                read += (s * first + r - before) * rows[d]
                write += first * self.steps[d]
            if prod(counts):
                shape, image = (self.channels, self.batch, *counts), prod(self.size)
                apart = (s * r for s, r in zip(self.stride, rows, strict=True))
                places = read, (image, self.channels * image, *apart)
                padded = write, (self.channel, self.plane, *self.steps)
                k.copy(source, shape, places, work, padded)


class Shapes:
    """The sizes of a convolution: data (N, C, *size), weight (O, C / G, *kernel)."""

    def __init__(self, samples, channels, filters, size, kernel, stride, dilate, pad, num_group):
        self.n, self.c, self.o, self.g = samples, channels, filters, num_group
        self.size, self.kernel, self.stride = size, kernel, stride
        self.dilate, self.pad = dilate, pad
        self.out = out_size(size, kernel, stride, dilate, pad)
        self.places = [
            [divmod(t * d, s)[::-1] for t in range(n)]
            for n, d, s in zip(kernel, dilate, stride, strict=True)
        ]  # (phase, steps)
        self.reach = [places[-1][1] for places in self.places]

    @property
    def products(self):
        """Multiply-adds per position and channel: all taps of all filters."""
        return self.o // self.g * prod(self.kernel)

    def data_planes(self, batch=1, groups=1):
        """Return the data's layout for the forward pass and the weights' gradient."""
        channels = self.c // groups
        return Planes(channels, self.size, self.pad, self.out, self.places, self.stride, batch)

    def grad_planes(self):
        """Return the layout of a group's output gradient, padded on both sides, for the data's
        gradient; and the first output position."""
        first = [p // s for p, s in zip(self.pad, self.stride, strict=True)]
        last = [(n - 1 + p) // s for n, p, s in zip(self.size, self.pad, self.stride, strict=True)]
        before = [r - f for r, f in zip(self.reach, first, strict=True)]
        count = [b - a + 1 for a, b in zip(first, last, strict=True)]
        places = [[(0, r - steps) for _, steps in p]
                  for r, p in zip(self.reach, self.places, strict=True)]  # fmt: skip
        channels = self.o // self.g
        return Planes(channels, self.out, before, count, places, [1] * len(first)), first

    def batch(self):
        """Return the number of samples per batch in the weights' gradient."""
        one = self.data_planes()
        return divisor(self.n, BATCH // (one.numbers + self.o * one.plane))


def out_size(size, kernel, stride, dilate, pad):
    """Return the spatial shape of the output."""
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, d, p in zip(size, kernel, stride, dilate, pad, strict=True)
    )


def zero(k, work, size):
    """Write a loop that fills an array with zeros."""
    with k.loop("i", size):
        k(f"{work}[i] = T(0)")


def taps_of(planes):
    """Return each tap's shift, in the order of the weights."""
    return [planes.shift(places) for places in itertools.product(*planes.places)]


def forward_planes(s, itemsize):
    """Return the layout of a sample's group for the forward pass."""
    return s.data_planes(groups=s.g).or_copies(s.products, itemsize)


def forward_scratch(s, itemsize):
    """Return the scratch size in elements: a group's planes, some rows."""
    planes = forward_planes(s, itemsize)
    return planes.numbers + ROWS * planes.row


def forward_loops(k, data, weight, out, s):
    """Write out[n, o] = sum over c, taps of the shifted data times weight[o, c, tap]."""
    planes, counts = forward_planes(s, k.dtype.itemsize), (s.o // s.g, s.c // s.g)
    taps = [(at, t) for t, at in enumerate(taps_of(planes))]
    ones, zeros = [1] * len(s.out), [0] * len(s.out)
    steps = counts[1] * len(taps), len(taps)
    phases = [(taps, s.out, s.out, ones, zeros, zeros)]
    group_sums(k, s, data, weight, planes, counts, steps, phases)


def data_planes_of(s, itemsize):
    """Return the layout of the output gradient for the data's gradient; the first output."""
    planes, first = s.grad_planes()
    products = s.c // s.g * prod(s.kernel) // prod(s.stride)
    return planes.or_copies(products, itemsize), first


def data_scratch(s, itemsize):
    """Return the scratch size in elements: a group's gradient planes, some rows."""
    planes, _ = data_planes_of(s, itemsize)
    return planes.numbers + ROWS * planes.row


def data_loops(k, grad, weight, out, s):
    """The same with the roles of channels and filters exchanged, once per phase of out.

    Output `i` is at i + pad = stride a + r; the taps of phase r contribute to it, from
    `a` minus their shifts.
    """
    planes, first = data_planes_of(s, k.dtype.itemsize)
    phases, n_taps, counts = [], prod(s.kernel), (s.c // s.g, s.o // s.g)
    for phase in itertools.product(*map(range, s.stride)):
        starts = [
            max(0, -((r - p) // d) - f)
            for r, p, d, f in zip(phase, s.pad, s.stride, first, strict=True)
        ]
        places = [
            d * (f + a) + r - p
            for d, f, a, r, p in zip(s.stride, first, starts, phase, s.pad, strict=True)
        ]
        sizes = [len(range(i, n, d)) for i, n, d in zip(places, s.size, s.stride, strict=True)]
        reached = [[r for r, _ in places] for places in itertools.product(*s.places)]
        taps = [(at, t) for t, at in enumerate(taps_of(planes)) if reached[t] == [*phase]]
        if prod(sizes):
            phases.append((taps, s.size, sizes, s.stride, places, starts))
    group_sums(k, s, grad, weight, planes, counts, (n_taps, counts[0] * n_taps), phases)


def group_sums(k, s, source, weight, planes, counts, steps, phases):
    """Write the loops over samples and groups of channels, which are copied into the planes.

    counts:  rows and channels of a group;  steps: their strides in the weights.
    phases:  (taps, places of their sums in the output) of each phase.
    """
    (n_rows, n_channels), n_taps = counts, prod(s.kernel)
    work = s.n * s.o * s.c // s.g * n_taps * prod(s.out)
    steps = n_rows * n_channels * n_taps, *steps  # and of groups
    zero(k, "work", planes.numbers)
    groups = k.length("groups", s.g) if s.g > 1 else 1
    with k.share("n", s.n, work=work), k.share("g", groups, work=work):
        k(f"group = n * {groups} + g")
        planes.fill(k, k.part(source, "group", (1, n_channels, *planes.size)), "work")
        for taps, *places in phases:
            store = store_rows(k, planes, n_rows, *places)
            shifted_sums(k, s, planes, taps, weight, counts, steps, store)


def store_rows(k, planes, channels, size, counts, stride, places, starts):
    """Return the epilogue of a row block, which stores the valid elements."""

    def store(rows):
        with k.loop("j", rows):
            k("channel = first + o + j")
            at = f"group * {channels} + o + j"
            depth = k.depth
            for d, count in enumerate(counts):
                k(f"for i{d} in range({count}):")
                k.depth += 1
                at = f"({at}) * {size[d]} + i{d} * {stride[d]} + {places[d]}"
            row = " + ".join(
                f"(i{d} + {a}) * {step}"
                for d, (a, step) in enumerate(zip(starts, planes.steps, strict=True))
            )
            k(f"at = {at}")
            k.store("at", f"work[{planes.numbers} + j * {planes.row} + {row}]", {1: "channel"})
            k.depth = depth

    return store


def shifted_sums(k, s, planes, taps, weight, counts, steps, store):
    """Write rows[o] = sum over c and taps of the shifted plane[c] times a weight.

    taps:    [(shift, index in the weights)].
    counts:  rows and channels of a group;  steps: strides of groups, rows and channels in
             the weights.

    A tile of some rows and some vectors stays in registers while all taps of all
    channels accumulate into it.
    """
    n_rows, n_channels = counts
    lanes = width(k.dtype.itemsize)
    work = s.g * n_rows * n_channels * len(taps) * planes.row
    k(f"first = g * {n_rows}")
    for start, stop, high in blocks(n_rows, ROWS):
        with k.share("o", stop, start, high, work):
            for p0, p1, wide in blocks(planes.row // lanes, most_vectors(high)):
                with k.loop("p", p1 * lanes, p0 * lanes, wide * lanes):
                    _tile(k, planes, taps, weight, n_channels, steps, high, wide)
            store(high)


def _tile(k, planes, taps, weight, n_channels, steps, high, wide):
    """Accumulate one tile over all channels."""
    lanes = width(k.dtype.itemsize)
    name = f"s{high}x{wide}"  # each tile size is a separate type
    k(f"{name} = tile(T(0), {high}, {wide})")
    if taps:
        with k.block(f"for c in range({n_channels}):"):
            k(f"plane = c * {planes.channel} + p")
            k(f"wat = g * {steps[0]} + o * {steps[1]} + c * {steps[2]}")
            for first, last in _far_apart(planes, taps, wide * lanes):
                with k.loop("j", last, first, LINE // k.dtype.itemsize):
                    k(f"fetch(work, plane + {planes.channel} + j)")
            shift, number = (_table(column) for column in zip(*taps, strict=True))
            with k.block(f"for t in range({len(taps)}):"):
                place = f"wat + {number}, {steps[1]}, work, plane + {shift}"
                k(f"{name} = outer({name}, {weight}, {place})")
    k(f"put({name}, work, {planes.numbers} + p, {planes.row}, 0, 0, {wide * lanes})")


def _far_apart(planes, taps, length):
    """Return the ranges [first, last) that a tile reads of a channel, for prefetching.

    Empty unless they are a small part of the plane, where hardware prefetching fails.
    """
    ranges = []
    for at in sorted(at for at, _ in taps):
        if ranges and at <= ranges[-1][1]:
            ranges[-1][1] = at + length
        else:
            ranges.append([at, at + length])
    return ranges if 3 * sum(b - a for a, b in ranges) < planes.channel else []


def most_vectors(rows):
    """Return how many vectors per row fit in the registers, besides operands."""
    most = 24 // rows if registers()[1] > 16 else 15 // (rows + 1)
    return max(1, min(8, most))


def _table(numbers):
    """Return the expression of the constant at index t."""
    steps = {b - a for a, b in itertools.pairwise(numbers)}
    if len(steps) < 2:
        return f"{numbers[0]} + t * {steps.pop() if steps else 0}"
    return f"({', '.join(map(str, numbers))})[t]"


def weight_scratch(s):
    """Return the scratch size in elements: a batch of data and gradient planes."""
    planes = s.data_planes(s.batch())
    return planes.numbers + s.o * planes.phase


def weight_loops(k, data, grad, out, s):
    """Write out[o, c, tap] = sum of grad[o] times the shifted data.

    The gradient planes have the same strides, with zeros between rows, so that one
    reduction runs along the planes of several samples. If a result isn't finite, it is
    recomputed without the elements between rows: zero times infinity is NaN.
    """
    batch = s.batch()
    planes, ones = s.data_planes(batch), [1] * len(s.out)
    room = [[(0, n)] for n in s.reach]  # rows as long as the data's
    grads = Planes(s.o, s.out, [0] * len(ones), s.out, room, ones, batch)
    zero(k, "work", planes.numbers + grads.numbers)
    k(f"rows = work[{planes.numbers}:]")
    filters = Filters(k, s)
    with filters.shared(), k.block("for turn in range(2):"):
        with filters.weights() as i:
            k(f"{out}[{i}] = T(0)")
        with k.loop("n", s.n // batch):
            planes.fill(k, k.part(data, "n", (batch, s.c, *s.size)), "work")
            grads.fill(k, k.part(grad, "n", (batch, s.o, *s.out)), "rows")
            with k.loop("g", s.g):
                with k.block("if turn == 0:"):
                    _flat_sums(k, planes, s, out, filters)
                with k.block("else:"):
                    _exact_sums(k, planes, s, out, filters)
        k("bad = 0")
        with filters.weights() as i:
            k(f"bad += not abs({out}[{i}]) < INF")
        with k.block("if bad == 0:"):
            k("break")


class Filters:
    """The partition of the filters of a weight gradient among threads.

    Each part copies all samples itself, so there are at most as many parts as threads.
    """

    def __init__(self, k, s):
        of_group = s.o // s.g
        self.k, self.groups, self.all = k, s.g, of_group
        self.size = s.c // s.g * prod(s.kernel)  # weights per filter
        self.work = s.n * s.o * self.size * prod(s.out)
        self.parts = k.equal_parts(of_group, self.work)
        self.rows = of_group // self.parts

    @contextmanager
    def shared(self):
        """Write the outermost loop over parts, parallel if there are several."""
        if self.parts == 1:
            yield
            return
        with self.k.share("piece", self.parts, work=self.work):
            self.k(f"low = piece * {self.rows}")
            yield

    @contextmanager
    def loop(self, stop, start=0, step=1):
        """Write a loop over a range of a part's filters `o`."""
        if self.parts == 1:
            with self.k.loop("o", stop, start, step):
                yield
            return
        with self.k.block(f"for o in range(low + {start}, low + {stop}, {step}):"):
            yield

    @contextmanager
    def weights(self):
        """Write a loop over a part's weights; yield the index expression."""
        if self.parts == 1:
            with self.k.loop("i", self.groups * self.all * self.size):
                yield "i"
            return
        with self.k.loop("g", self.groups), self.k.loop("i", self.rows * self.size):
            yield f"(g * {self.all} + low) * {self.size} + i"


def _flat_sums(k, planes, s, out, filters):
    """Reduce blocks of filters, with several taps of a channel at once."""
    n_rows, n_channels, n_taps = s.o // s.g, s.c // s.g, prod(s.kernel)
    for start, stop, high in blocks(filters.rows, 4):
        with filters.loop(stop, start, high), k.loop("c", n_channels):
            k(f"row = {planes.numbers} + (g * {n_rows} + o) * {planes.phase}")
            k(f"plane = (g * {n_channels} + c) * {planes.channel}")
            k(f"wat = ((g * {n_rows} + o) * {n_channels} + c) * {n_taps}")
            for t0, t1, taps in blocks(n_taps, most_vectors(high)):
                with k.loop("first", t1, t0, taps):
                    _dots(k, planes, s, high, taps)
                    for r in range(high):
                        for e in range(taps):
                            at = r * n_channels * n_taps + e
                            k(f"{out}[wat + first + {at}] += total(s{r}_{e})")


def _dots(k, planes, s, high, taps):
    """Accumulate gradient rows times shifts of the data, lane by lane."""
    shifts = taps_of(planes)
    length = round_up((planes.batch - 1) * planes.plane + planes.row)
    for e in range(taps):
        k(f"t = first + {e}")
        k(f"x{e} = plane + {_table(shifts)}")
        for r in range(high):
            k(f"s{r}_{e} = splat(T(0))")
    with k.block(f"for p in range(0, {length}, {width(k.dtype.itemsize)}):"):
        for e in range(taps):
            k(f"v{e} = load(work, x{e} + p)")
        for r in range(high):
            k(f"y = load(work, row + {r * planes.phase} + p)")
            for e in range(taps):
                k(f"s{r}_{e} = fma(v{e}, y, s{r}_{e})")


def _exact_sums(k, planes, s, out, filters):
    """The same, one element at a time."""
    n_rows, n_channels, n_taps = s.o // s.g, s.c // s.g, prod(s.kernel)
    shifts = taps_of(planes)
    with filters.loop(filters.rows), k.loop("c", n_channels), k.loop("t", n_taps):
        k(f"x = (g * {n_channels} + c) * {planes.channel} + {_table(shifts)}")
        k(f"row = (g * {n_rows} + o) * {planes.phase}")
        k("sum_ = T(0)")
        depth, at = k.depth, []
        for d, (count, step) in enumerate(
            [(planes.batch, planes.plane), *zip(s.out, planes.steps, strict=True)]
        ):
            k(f"for i{d} in range({count}):")
            k.depth += 1
            at.append(f"i{d} * {step}")
        k(f"at = {' + '.join(at)}")
        k("sum_ = add_up(sum_, work[x + at] * rows[row + at])")
        k.depth = depth
        k(f"{out}[((g * {n_rows} + o) * {n_channels} + c) * {n_taps} + t] += sum_")
