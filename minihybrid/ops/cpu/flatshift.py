"""The loops of convolutions: every tap of a kernel is one constant shift.

Takes:   a kernel writer (`codegen.source.Kernel`), flat arrays, the numbers of a shape.
Gives:   three products: data with weights, gradient with weights, data with gradient.

A sample's channels are copied into planes padded with zeros. In a plane whose rows are
W numbers apart, the neighbour (y, x) of a place lies y W + x further on, for every
place; so an output plane is one flat loop over whole vectors, and a tap adds the plane,
shifted, times one weight, to sums that stay in registers. At the row ends the loop
computes what nobody reads; for many filters of small planes, each tap of a row has a
copy of its own, already shifted, and no padding stands between rows. Strides deal a
plane out to phases (of a stride of 2: the even and the odd places), and each tap reads
one of them.

In loops:   for vectors p: for c: for taps t: row[p] += plane[c][p + shift[t]] * w[c, t]

Source:  Anderson, Vasudevan, Keane, Gregg, Low-memory GEMM-based convolution algorithms
         (2017), whose shifted sums these are; here in planes, without matrix products.
What is left out: Winograd's and Fourier's forms.
"""

import itertools
from contextlib import contextmanager
from math import prod

from minihybrid.core.lengths import Length
from minihybrid.ops.cpu.machine import registers, width
from minihybrid.ops.shapes import blocks, row_major

COPIED, NEAR = 14, 3 * 2**18  # products that take as long as a copy; bytes near a core
ROWS = 4  # rows of outputs that are summed at once
BATCH = 1 << 17  # numbers of planes that the gradient of the weights reads at once


def round_up(n, step=16):
    """The next multiple of `step`."""
    return -(-n // step) * step


def divisor(n, limit):
    """The largest divisor of n up to a limit; 1 at least, and for a symbolic n."""
    if isinstance(n, Length):
        return 1
    return max((d for d in range(1, min(n, limit) + 1) if n % d == 0), default=1)


class Planes:
    """Where each number of each channel lies in the padded copy.

    places:  of each axis, what taps read: (phase, steps) that an output lies at.

    Along one axis, place `i` of the data lies at `a` in phase `r`, where
    i + before = stride a + r. `reach` is the furthest shift, and `out` how many
    outputs there are.
    """

    def __init__(self, channels, size, before, out, places, stride, batch=1):
        self.channels, self.size, self.batch = channels, size, batch
        self.before, self.stride, self.places = before, stride, places
        self.phases = [sorted({r for r, _ in p}) for p in places]
        self.reach = reach = [max(steps for _, steps in p) for p in places]
        self.length = [n + r for n, r in zip(out, reach, strict=True)]
        self.steps = row_major(self.length)
        span = sum((n - 1) * s for n, s in zip(out, self.steps, strict=True)) + 1
        self.row = round_up(span)  # numbers of an output's flat row
        shift = sum(n * s for n, s in zip(reach, self.steps, strict=True))
        self.plane = round_up(max(prod(self.length), self.row + shift))
        self.phase = self.plane * batch
        self.channel = self.phase * prod(map(len, self.phases))
        self.numbers = channels * self.channel

    def or_copies(self, products, itemsize):
        """These planes; or others, where each tap of the last axis reads a copy of its own.

        A copy is shifted already, so no padding stands between its rows, where outputs
        would be computed that nobody reads. Such copies must stay in a near cache.

        products: how many are added up for an output, of one channel.
        """
        *places, last = self.places
        alone = [(r + self.stride[-1] * steps, 0) for r, steps in last]
        out = [n - r for n, r in zip(self.length, self.reach, strict=True)]
        more = self.channels, self.size, self.before, out
        copies = Planes(*more, [*places, alone], self.stride, self.batch)
        saved = (self.row - copies.row) * self.batch * products
        pays = saved > COPIED * (copies.channel - self.channel)
        return copies if pays and copies.numbers * itemsize <= NEAR else self

    def shift(self, places):
        """How far the output lies from what it reads at (phase, steps) of each axis."""
        number, at = 0, 0
        for (phase, steps), phases, step in zip(places, self.phases, self.steps, strict=True):
            number = number * len(phases) + phases.index(phase)
            at += steps * step
        return number * self.phase + at

    def fill(self, k, source, work):
        """Copy (batch, channels, *size) into the planes; the padding stays as it is."""
        rows = row_major(self.size)
        for number, phase in enumerate(itertools.product(*self.phases)):
            counts, read, write = [], 0, number * self.phase
            for n, before, length, s, r, row, step in zip(
                self.size,
                self.before,
                self.length,
                self.stride,
                phase,
                rows,
                self.steps,
                strict=True,
            ):
                first = max(0, -((r - before) // s))
                last = min(length - 1, (n - 1 + before - r) // s)
                counts.append(max(last - first + 1, 0))
                read += (s * first + r - before) * row
                write += first * step
            if prod(counts):
                k.copy(
                    source,
                    (self.channels, self.batch, *counts),
                    (
                        read,
                        (
                            prod(self.size),
                            self.channels * prod(self.size),
                            *(s * r for s, r in zip(self.stride, rows, strict=True)),
                        ),
                    ),
                    work,
                    (write, (self.channel, self.plane, *self.steps)),
                )


class Shapes:
    """The numbers of a convolution: data (N, C, *size), weight (O, C / G, *kernel)."""

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
        """How many are added up for the outputs of a place and a channel: all taps."""
        return self.o // self.g * prod(self.kernel)

    def data_planes(self, batch=1):
        """The data as the forward pass and the weights' gradient read it."""
        return Planes(self.c, self.size, self.pad, self.out, self.places, self.stride, batch)

    def grad_planes(self):
        """The outputs' gradient, with room on both sides, as the data's gradient reads
        it."""
        first = [p // s for p, s in zip(self.pad, self.stride, strict=True)]
        last = [(n - 1 + p) // s for n, p, s in zip(self.size, self.pad, self.stride, strict=True)]
        before = [r - f for r, f in zip(self.reach, first, strict=True)]
        count = [b - a + 1 for a, b in zip(first, last, strict=True)]
        places = [[(0, r - steps) for _, steps in p]
                  for r, p in zip(self.reach, self.places, strict=True)]  # fmt: skip
        return Planes(self.o, self.out, before, count, places, [1] * len(first)), first

    def batch(self):
        """How many samples the weights' gradient takes at once."""
        one = self.data_planes()
        return divisor(self.n, BATCH // (one.numbers + self.o * one.plane))


def out_size(size, kernel, stride, dilate, pad):
    """The lengths of an output: how often the kernel fits."""
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, d, p in zip(size, kernel, stride, dilate, pad, strict=True)
    )


def zero(k, work, size):
    """Fill with zeros."""
    with k.loop("i", size):
        k(f"{work}[i] = T(0)")


def taps_of(planes):
    """[shift of what each tap reads], in the order of the weights."""
    return [planes.shift(places) for places in itertools.product(*planes.places)]


def forward_planes(s, itemsize):
    """A sample's planes, as the forward pass reads them."""
    return s.data_planes().or_copies(s.products, itemsize)


def forward_scratch(s, itemsize):
    """Numbers beside the arrays: a sample's planes, some rows."""
    planes = forward_planes(s, itemsize)
    return planes.numbers + ROWS * planes.row


def forward_loops(k, data, weight, out, s):
    """out[n, o] = sum over c and taps of the data, shifted, times weight[o, c, tap]."""
    planes = forward_planes(s, k.dtype.itemsize)
    taps = [(at, t) for t, at in enumerate(taps_of(planes))]
    n_taps = len(taps)
    zero(k, "work", planes.numbers)
    with k.share("n", s.n, work=s.n * s.o * s.c // s.g * n_taps * prod(s.out)):
        planes.fill(k, k.part(data, "n", (1, s.c, *s.size)), "work")
        shifted_sums(
            k,
            planes,
            taps,
            weight,
            (s.g, s.o // s.g, s.c // s.g),
            (s.o // s.g * s.c // s.g * n_taps, s.c // s.g * n_taps, n_taps),
            store_rows(
                k, planes, s.o, s.out, s.out, [1] * len(s.out), [0] * len(s.out), [0] * len(s.out)
            ),
        )


def data_planes_of(s, itemsize):
    """A sample's planes of gradients, as those of the data read them; and the first output."""
    planes, first = s.grad_planes()
    products = s.c // s.g * prod(s.kernel) // prod(s.stride)
    return planes.or_copies(products, itemsize), first


def data_scratch(s, itemsize):
    """Numbers beside the arrays: a sample's planes of gradients, some rows."""
    planes, _ = data_planes_of(s, itemsize)
    return planes.numbers + ROWS * planes.row


def data_loops(k, grad, weight, out, s):
    """The same with the roles of channels and filters exchanged, once a phase of out.

    Output `i` lies at i + pad = stride a + r; the taps that reach it are those of phase
    r, and they come from `a` minus their steps.
    """
    planes, first = data_planes_of(s, k.dtype.itemsize)
    n_taps = prod(s.kernel)
    zero(k, "work", planes.numbers)
    with k.share("n", s.n, work=s.n * s.o * s.c // s.g * n_taps * prod(s.out)):
        planes.fill(k, k.part(grad, "n", (1, s.o, *s.out)), "work")
        for phase in itertools.product(*map(range, s.stride)):
            starts = [
                max(0, -((r - p) // d) - f)
                for r, p, d, f in zip(phase, s.pad, s.stride, first, strict=True)
            ]
            places = [
                d * (f + a) + r - p
                for d, f, a, r, p in zip(s.stride, first, starts, phase, s.pad, strict=True)
            ]
            counts = [len(range(i, n, d)) for i, n, d in zip(places, s.size, s.stride, strict=True)]
            if not prod(counts):
                continue
            reached = [[r for r, _ in places] for places in itertools.product(*s.places)]
            taps = [(at, t) for t, at in enumerate(taps_of(planes)) if reached[t] == [*phase]]
            shifted_sums(
                k,
                planes,
                taps,
                weight,
                (s.g, s.c // s.g, s.o // s.g),
                (s.o // s.g * s.c // s.g * n_taps, n_taps, s.c // s.g * n_taps),
                store_rows(k, planes, s.c, s.size, counts, s.stride, places, starts),
            )


def store_rows(k, planes, channels, size, counts, stride, places, starts):
    """What ends a block of rows: write the numbers that are no junk to their places."""

    def store(rows):
        with k.loop("j", rows):
            k("channel = first + o + j")
            at = f"n * {channels} + channel"
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


def shifted_sums(k, planes, taps, weight, counts, steps, store):
    """rows[o] = sum over c and taps of plane[c], shifted, times a weight.

    taps:    [(shift, number in the weights)].
    counts:  groups, rows of a group, channels of a group;  steps: theirs in the
             weights.

    A tile of some rows and some vectors stays in registers while all taps of all
    channels are added to it.
    """
    groups, n_rows, n_channels = counts
    lanes = width(k.dtype.itemsize)
    work = groups * n_rows * n_channels * len(taps) * planes.row
    with k.share("g", groups, work=work):
        k(f"first = g * {n_rows}")
        for start, stop, high in blocks(n_rows, ROWS):
            with k.share("o", stop, start, high, work):
                for p0, p1, wide in blocks(planes.row // lanes, most_vectors(high)):
                    with k.loop("p", p1 * lanes, p0 * lanes, wide * lanes):
                        _tile(k, planes, taps, weight, n_channels, steps, high, wide)
                store(high)


def _tile(k, planes, taps, weight, n_channels, steps, high, wide):
    """The sums of one tile, from the first channel to the last."""
    lanes = width(k.dtype.itemsize)
    name = f"s{high}x{wide}"  # tiles of other sizes are of other types
    k(f"{name} = tile(T(0), {high}, {wide})")
    if taps:
        with k.block(f"for c in range({n_channels}):"):
            k(f"plane = (g * {n_channels} + c) * {planes.channel} + p")
            k(f"wat = g * {steps[0]} + o * {steps[1]} + c * {steps[2]}")
            for first, last in _far_apart(planes, taps, wide * lanes):
                with k.loop("j", last, first, lanes):
                    k(f"fetch(work, plane + {planes.channel} + j)")
            shift, number = (_table(column) for column in zip(*taps, strict=True))
            with k.block(f"for t in range({len(taps)}):"):
                place = f"wat + {number}, {steps[1]}, work, plane + {shift}"
                k(f"{name} = outer({name}, {weight}, {place})")
    k(f"put({name}, work, {planes.numbers} + p, {planes.row}, 0, 0, {wide * lanes})")


def _far_apart(planes, taps, length):
    """[first, last) of what a tile reads of a channel, for asking for the next one's.

    Where it is a small part of a large plane, the memory does not guess what comes next.
    """
    ranges = []
    for at in sorted(at for at, _ in taps):
        if ranges and at <= ranges[-1][1]:
            ranges[-1][1] = at + length
        else:
            ranges.append([at, at + length])
    return ranges if 3 * sum(b - a for a, b in ranges) < planes.channel else []


def most_vectors(rows):
    """How many vectors of so many rows fit the registers, with room for operands."""
    return max(1, min(8, (24 if registers()[1] > 16 else 10) // rows))


def _table(numbers):
    """The number at place t: an expression."""
    steps = {b - a for a, b in itertools.pairwise(numbers)}
    if len(steps) < 2:
        return f"{numbers[0]} + t * {steps.pop() if steps else 0}"
    return f"({', '.join(map(str, numbers))})[t]"


def weight_scratch(s):
    """Numbers beside the arrays: planes of data and of gradients, of some samples."""
    planes = s.data_planes(s.batch())
    return planes.numbers + s.o * planes.phase


def weight_loops(k, data, grad, out, s):
    """out[o, c, tap] = the products of grad[o] and the data, shifted, summed up.

    The gradients lie in planes of the same steps, with zeros where rows end, so that
    one sum goes along the planes of several samples. If that gives a number that is
    not finite, it is done again without what lies at the row ends: zero times infinity
    is NaN.
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
    """The filters of a gradient of weights, of which each thread takes a part.

    Each part lays out all samples for itself, so there are no more parts than threads.
    """

    def __init__(self, k, s):
        of_group = s.o // s.g
        self.k, self.groups, self.all = k, s.g, of_group
        self.size = s.c // s.g * prod(s.kernel)  # weights of a filter
        self.work = s.n * s.o * self.size * prod(s.out)
        self.parts = k.equal_parts(of_group, self.work)
        self.rows = of_group // self.parts

    @contextmanager
    def shared(self):
        """The outermost loop: part after part, or by several threads."""
        if self.parts == 1:
            yield
            return
        with self.k.share("piece", self.parts, work=self.work):
            self.k(f"low = piece * {self.rows}")
            yield

    @contextmanager
    def loop(self, stop, start=0, step=1):
        """The filters `o` of a part, from one to another, counted from its first."""
        if self.parts == 1:
            with self.k.loop("o", stop, start, step):
                yield
            return
        with self.k.block(f"for o in range(low + {start}, low + {stop}, {step}):"):
            yield

    @contextmanager
    def weights(self):
        """A loop over the weights of a part; gives the place of each."""
        if self.parts == 1:
            with self.k.loop("i", self.groups * self.all * self.size):
                yield "i"
            return
        with self.k.loop("g", self.groups), self.k.loop("i", self.rows * self.size):
            yield f"(g * {self.all} + low) * {self.size} + i"


def _flat_sums(k, planes, s, out, filters):
    """Blocks of filters, each with some taps of a channel at once."""
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
    """Some rows of gradients times some shifts of the data, summed up lane by lane."""
    shifts = taps_of(planes)
    length = round_up((planes.batch - 1) * planes.plane + planes.row)
    for e in range(taps):
        k(f"t = first + {e}")
        k(f"x{e} = plane + {_table(shifts)}")
        for r in range(high):
            k(f"s{r}_{e} = splat(T(0))")
    with k.block(f"for p in range(0, {length}, {width(k.dtype.itemsize)}):"):
        for r in range(high):
            k(f"y{r} = load(work, row + {r * planes.phase} + p)")
        for e in range(taps):
            k(f"v = load(work, x{e} + p)")
            for r in range(high):
                k(f"s{r}_{e} = fma(v, y{r}, s{r}_{e})")


def _exact_sums(k, planes, s, out, filters):
    """The same, number by number."""
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
