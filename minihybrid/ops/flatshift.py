"""Chapter 02. The loops of convolutions: every tap of a kernel is one constant shift.

Takes:   a kernel writer (`codegen.source.Kernel`), flat arrays, the numbers of a shape.
Gives:   three products: data with weights, gradient with weights, data with gradient.

A sample's channels are copied into planes padded with zeros. In a plane whose rows are
W numbers apart, the neighbour (y, x) of a place lies y W + x further on, for every
place; so an output plane is one flat loop, which the compiler can vectorise, and a tap
adds the plane, shifted, times one weight. At the row ends the loop computes what nobody
reads. Strides deal a plane out to phases (of a stride of 2: the even and the odd
places), and each tap reads one of them.

In loops:   for p: row[p] += plane[p + shift0] * w0 + plane[p + shift1] * w1 + ...

Source:  Anderson, Vasudevan, Keane, Gregg, Low-memory GEMM-based convolution algorithms
         (2017), whose shifted sums these are; here in planes, without matrix products.
What is left out: Winograd's and Fourier's forms.
"""

import itertools
from math import prod

from minihybrid.ops.shapes import blocks, row_major

TERMS = 24   # products in one loop: their weights stay in registers
ROWS = 4     # outputs that one loop adds to
SUMS = 20    # sums in one loop that adds up along it
TILE = 1024  # numbers of a row that are worked on at once: they stay in the cache
BATCH = 1 << 17  # numbers of planes that the gradient of the weights reads at once


def round_up(n, step=16):
    """The next multiple of `step`."""
    return -(-n // step) * step


def divisor(n, limit):
    """The largest divisor of n up to a limit; 1 at least."""
    return max((d for d in range(1, min(n, limit) + 1) if n % d == 0), default=1)


class Planes:
    """Where each number of each channel lies in the padded copy.

    Along one axis, place `i` of the data lies at `a` in phase `r`, where
    i + before = stride a + r. `reach` is the furthest shift, and `out` how many
    outputs there are.
    """

    def __init__(self, channels, size, before, out, reach, stride, phases, batch=1):
        self.channels, self.size, self.batch = channels, size, batch
        self.before, self.stride, self.phases = before, stride, phases
        self.length = [n + r for n, r in zip(out, reach, strict=True)]
        self.steps = row_major(self.length)
        rest = 1 + sum(
            (n - 1) * s for n, s in zip(out[1:], self.steps[1:], strict=True))
        self.row = round_up((out[0] - 1) * self.steps[0] + rest)  # an output's numbers
        self.lines = max(1, min(out[0], TILE // self.steps[0]))   # those of a tile
        self.tile = round_up((self.lines - 1) * self.steps[0] + rest)
        self.tiles = -(-out[0] // self.lines)
        last = (self.tiles - 1) * self.lines * self.steps[0] + self.tile
        shift = sum(n * s for n, s in zip(reach, self.steps, strict=True))
        self.plane = round_up(max(prod(self.length), last + shift))
        self.phase = self.plane * batch
        self.channel = self.phase * prod(map(len, phases))
        self.numbers = channels * self.channel

    def shift(self, places):
        """How far the output lies from what it reads at (phase, steps) of each axis."""
        number, at = 0, 0
        for (phase, steps), phases, step in zip(
                places, self.phases, self.steps, strict=True):
            number = number * len(phases) + phases.index(phase)
            at += steps * step
        return number * self.phase + at

    def fill(self, k, source, work):
        """Copy (batch, channels, *size) into the planes; the padding stays as it is."""
        rows = row_major(self.size)
        for number, phase in enumerate(itertools.product(*self.phases)):
            counts, read, write = [], 0, number * self.phase
            for n, before, length, s, r, row, step in zip(
                    self.size, self.before, self.length, self.stride, phase, rows,
                    self.steps, strict=True):
                first = max(0, -((r - before) // s))
                last = min(length - 1, (n - 1 + before - r) // s)
                counts.append(max(last - first + 1, 0))
                read += (s * first + r - before) * row
                write += first * step
            if prod(counts):
                k.copy(source, (self.channels, self.batch, *counts),
                       (read, (prod(self.size), self.channels * prod(self.size),
                               *(s * r for s, r in
                                 zip(self.stride, rows, strict=True)))),
                       work, (write, (self.channel, self.plane, *self.steps)))


class Shapes:
    """The numbers of a convolution: data (N, C, *size), weight (O, C / G, *kernel)."""

    def __init__(self, samples, channels, filters, size, kernel, stride, dilate, pad,
                 num_group):
        self.n, self.c, self.o, self.g = samples, channels, filters, num_group
        self.size, self.kernel, self.stride = size, kernel, stride
        self.dilate, self.pad = dilate, pad
        self.out = out_size(size, kernel, stride, dilate, pad)
        self.places = [[divmod(t * d, s)[::-1] for t in range(n)] for n, d, s in
                       zip(kernel, dilate, stride, strict=True)]  # (phase, steps)
        self.reach = [places[-1][1] for places in self.places]

    def taps(self):
        """(number of the tap, its place on each axis)."""
        return enumerate(itertools.product(*self.places))

    def data_planes(self, batch=1):
        """The data as the forward pass and the weights' gradient read it."""
        return Planes(self.c, self.size, self.pad, self.out, self.reach, self.stride,
                      [sorted({r for r, _ in p}) for p in self.places], batch)

    def grad_planes(self):
        """The outputs' gradient, with room on both sides, as the data's gradient reads
        it."""
        first = [p // s for p, s in zip(self.pad, self.stride, strict=True)]
        last = [(n - 1 + p) // s for n, p, s in
                zip(self.size, self.pad, self.stride, strict=True)]
        before = [r - f for r, f in zip(self.reach, first, strict=True)]
        count = [b - a + 1 for a, b in zip(first, last, strict=True)]
        ones = [1] * len(first)
        return Planes(self.o, self.out, before, count, self.reach, ones,
                      [[0]] * len(first)), first

    def batch(self):
        """How many samples the weights' gradient takes at once."""
        one = self.data_planes()
        return divisor(self.n, BATCH // (one.numbers + self.o * one.plane))


def out_size(size, kernel, stride, dilate, pad):
    """The lengths of an output: how often the kernel fits."""
    return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, d, p in
                 zip(size, kernel, stride, dilate, pad, strict=True))


def zero(k, work, size):
    """Fill with zeros."""
    with k.loop("i", size):
        k(f"{work}[i] = T(0)")


def forward_scratch(s):
    """Numbers beside the arrays: a sample's planes, some rows."""
    planes = s.data_planes()
    return planes.numbers + ROWS * planes.tile


def forward_loops(k, data, weight, out, s):
    """out[n, o] = sum over c and taps of the data, shifted, times weight[o, c, tap]."""
    planes = s.data_planes()
    taps = [(planes.shift(places), t) for t, places in s.taps()]
    n_taps = len(taps)
    zero(k, "work", planes.numbers)
    with k.loop("n", s.n):
        planes.fill(k, k.part(data, "n", (1, s.c, *s.size)), "work")
        shifted_sums(
            k, planes, taps, weight, (s.g, s.o // s.g, s.c // s.g),
            (s.o // s.g * s.c // s.g * n_taps, s.c // s.g * n_taps, n_taps),
            store_rows(k, planes, s.o, s.out, s.out, [1] * len(s.out),
                       [0] * len(s.out), [0] * len(s.out)))


def data_scratch(s):
    """Numbers beside the arrays: a sample's planes of gradients, some rows."""
    planes, _ = s.grad_planes()
    return planes.numbers + ROWS * planes.tile


def data_loops(k, grad, weight, out, s):
    """The same with the roles of channels and filters exchanged, once a phase of out.

    Output `i` lies at i + pad = stride a + r; the taps that reach it are those of phase
    r, and they come from `a` minus their steps.
    """
    planes, first = s.grad_planes()
    n_taps = prod(s.kernel)
    zero(k, "work", planes.numbers)
    with k.loop("n", s.n):
        planes.fill(k, k.part(grad, "n", (1, s.o, *s.out)), "work")
        for phase in itertools.product(*map(range, s.stride)):
            starts = [max(0, -((r - p) // d) - f) for r, p, d, f in
                      zip(phase, s.pad, s.stride, first, strict=True)]
            places = [d * (f + a) + r - p for d, f, a, r, p in
                      zip(s.stride, first, starts, phase, s.pad, strict=True)]
            counts = [len(range(i, n, d)) for i, n, d in
                      zip(places, s.size, s.stride, strict=True)]
            if not prod(counts):
                continue
            taps = [(sum((b - steps) * step for b, (_, steps), step in
                         zip(s.reach, at, planes.steps, strict=True)), t)
                    for t, at in s.taps() if all(
                        r == w for (r, _), w in zip(at, phase, strict=True))]
            shifted_sums(
                k, planes, taps, weight, (s.g, s.c // s.g, s.o // s.g),
                (s.o // s.g * s.c // s.g * n_taps, n_taps, s.c // s.g * n_taps),
                store_rows(k, planes, s.c, s.size, counts, s.stride, places, starts))


def store_rows(k, planes, channels, size, counts, stride, places, starts):
    """What ends a tile of rows: write the numbers that are no junk to their places."""
    def store(high):
        with k.loop("j", high):
            k("channel = first + o + j")
            to, depth, origin = f"n * {channels} + channel", k.depth, ""
            low, stop = "0", str(counts[0])
            if planes.tiles > 1:
                origin = f" - tile * {planes.lines}"
                k(f"line = tile * {planes.lines} - {starts[0]}")
                low, stop = "max(line, 0)", f"min(line + {planes.lines}, {stop})"
            for d, count in enumerate(counts):
                k(f"for i{d} in range({f'{low}, {stop}' if d == 0 else count}):")
                k.depth += 1
                to = f"({to}) * {size[d]} + i{d} * {stride[d]} + {places[d]}"
            at = " + ".join(
                f"(i{d} + {a}{'' if d else origin}) * {step}" for d, (a, step)
                in enumerate(zip(starts, planes.steps, strict=True)))
            k(f"to = {to}")
            k.store("to", f"rows[j * {planes.tile} + {at}]", {1: "channel"})
            k.depth = depth
    return store


def shifted_sums(k, planes, taps, weight, counts, steps, store):
    """rows[o] = sum over c and taps of plane[c], shifted, times a weight.

    taps:    [(shift, number in the weights)], line after line of the kernel.
    counts:  groups, rows of a group, channels of a group;  steps: theirs in the
             weights.
    """
    groups, n_rows, n_channels = counts
    k(f"rows = work[{planes.numbers}:]")
    with k.loop("g", groups), k.loop("tile", planes.tiles):
        k(f"first = g * {n_rows}")
        for start, stop, high in blocks(n_rows, ROWS):
            parts = equal_parts(taps, TERMS // high)
            longest = max((len(part) for part in parts), default=1)
            wide = divisor(n_channels, TERMS // (high * min(longest, TERMS // high)))
            with k.loop("o", stop, start, high):
                zero(k, "rows", high * planes.tile)
                if parts:
                    with k.loop("c", n_channels, 0, wide), k.loop("part", len(parts)):
                        _sum(k, planes, parts, weight, n_channels, steps, high, wide)
                store(high)


def equal_parts(taps, limit):
    """The taps in parts that look the same: their shifts differ by one number.

    The largest up to the limit; if there is none, the smallest of several taps.
    """
    found = []
    for n in range(1, len(taps) + 1):
        size = len(taps) // n
        parts = [taps[i:i + size] for i in range(0, len(taps), size)]
        looks = {tuple((a - p[0][0], b - p[0][1]) for a, b in p) for p in parts}
        if len(taps) % n == 0 and len(looks) == 1 and (size > 1 or not found):
            found = parts
            if size <= limit:
                break
    return found


def _sum(k, planes, parts, weight, n_channels, steps, high, wide):
    """Loops over a tile: `high` rows, `wide` channels, the taps of a part."""
    lowest = [min(shift for shift, _ in part) for part in parts]
    k(f"shift = tile * {planes.lines * planes.steps[0]} + {_select('part', lowest)}")
    k(f"wat = g * {steps[0]} + o * {steps[1]} + c * {steps[2]} + "
      f"{_select('part', [part[0][1] for part in parts])}")
    k(f"w = {weight}[wat:]")
    for u in range(wide):
        k(f"x{u} = work[(g * {n_channels} + c + {u}) * {planes.channel} + shift:]")
    for j in range(high):
        k(f"r{j} = rows[{j * planes.tile}:{(j + 1) * planes.tile}]")
    taps = [(shift - lowest[0], t - parts[0][0][1]) for shift, t in parts[0]]
    for i, stop, _ in _parts(len(taps), TERMS // (high * wide)):
        terms = [(u, *tap) for u in range(wide) for tap in taps[i:stop]]
        for j in range(high):
            for e, (u, _, t) in enumerate(terms):
                k(f"w{j}_{e} = w[{j * steps[1] + u * steps[2] + t}]")
        with k.block(f"for p in range({planes.tile}):"):
            for e, (u, shift, _) in enumerate(terms):
                k(f"v{e} = x{u}[p + {shift}]")
            for j in range(high):
                products = " + ".join(f"v{e} * w{j}_{e}" for e in range(len(terms)))
                k(f"r{j}[p] += {products}")


def _parts(n, limit):
    """(first, last, length) of parts of at most `limit`."""
    return [(i, min(i + step, n), step) for a, b, step in
            (blocks(n, limit) if n else []) for i in range(a, b, step)]


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
    planes = s.data_planes(batch)
    ones = [1] * len(s.out)
    grads = Planes(s.o, s.out, [0] * len(ones), s.out, s.reach, ones,
                   [[0]] * len(ones), batch)
    zero(k, "work", planes.numbers + grads.numbers)
    k(f"rows = work[{planes.numbers}:]")
    with k.block("for turn in range(2):"):
        zero(k, out, out.size)
        with k.loop("n", s.n // batch):
            planes.fill(k, k.part(data, "n", (batch, s.c, *s.size)), "work")
            grads.fill(k, k.part(grad, "n", (batch, s.o, *s.out)), "rows")
            with k.loop("g", s.g):
                with k.block("if turn == 0:"):
                    flat_sums(k, planes, s, out)
                with k.block("else:"):
                    exact_sums(k, planes, s, out)
        k("bad = 0")
        with k.loop("i", out.size):
            k(f"bad += {out}[i] - {out}[i] != 0")
        with k.block("if bad == 0:"):
            k("break")


def flat_sums(k, planes, s, out):
    """Blocks of some filters and channels, each with the taps of a line at once."""
    n_rows, n_channels, inner = s.o // s.g, s.c // s.g, s.kernel[-1]
    for start, stop, high in blocks(n_rows, 4):
        wide = divisor(n_channels, SUMS // (high * inner))
        with k.loop("o", stop, start, high), k.loop("c", n_channels, 0, wide):
            k(f"wat = ((g * {n_rows} + o) * {n_channels} + c) * {prod(s.kernel)}")
            for j in range(high):
                k(f"r{j} = rows[(g * {n_rows} + o + {j}) * {planes.phase}:]")
            _dots(k, planes, s, n_channels, high, wide, out)


def exact_sums(k, planes, s, out):
    """The same, number by number."""
    n_rows, n_channels, n_taps = s.o // s.g, s.c // s.g, prod(s.kernel)
    shifts = [planes.shift(places) for _, places in s.taps()]
    with k.loop("o", n_rows), k.loop("c", n_channels), k.loop("tap", n_taps):
        k(f"x0 = work[(g * {n_channels} + c) * {planes.channel} + "
          f"{_select('tap', shifts)}:]")
        k(f"r0 = rows[(g * {n_rows} + o) * {planes.phase}:]")
        k("s0 = T(0)")
        depth, at = k.depth, []
        for d, (count, step) in enumerate([(s.batch(), planes.plane),
                                           *zip(s.out, planes.steps, strict=True)]):
            k(f"for i{d} in range({count}):")
            k.depth += 1
            at.append(f"i{d} * {step}")
        k(f"at = {' + '.join(at)}")
        k("s0 += x0[at] * r0[at]")
        k.depth = depth
        k(f"{out}[((g * {n_rows} + o) * {n_channels} + c) * {n_taps} + tap] += s0")


def _dots(k, planes, s, n_channels, high, wide, out):
    """One loop along the planes for each line of the kernel."""
    inner, n_taps = s.kernel[-1], prod(s.kernel)
    length = round_up((planes.batch - 1) * planes.plane + planes.row)
    shifts = [planes.shift(places) for _, places in s.taps()]
    with k.loop("line", n_taps // inner):
        k(f"shift = {_select('line', shifts[::inner])}")
        for u in range(wide):
            k(f"x{u} = work[(g * {n_channels} + c + {u}) * {planes.channel} + shift:]")
        for i, j, _ in _parts(inner, max(SUMS // (high * wide), 1)):
            terms = [(u, t) for u in range(wide) for t in range(i, j)]
            sums = [f"s{r}_{e}" for r in range(high) for e in range(len(terms))]
            k(" = ".join(sums) + " = T(0)")
            with k.block(f"for p in range({length}):"):
                for r in range(high):
                    k(f"y{r} = r{r}[p]")
                for e, (u, t) in enumerate(terms):
                    k(f"v = x{u}[p + {shifts[t] - shifts[0]}]")
                    for r in range(high):
                        k(f"s{r}_{e} += v * y{r}")
            for r in range(high):
                for e, (u, t) in enumerate(terms):
                    k(f"{out}[wat + {(r * n_channels + u) * n_taps + t} + line * "
                      f"{inner}] += s{r}_{e}")


def _select(name, numbers):
    """The number at a place, as an expression."""
    steps = {b - a for a, b in itertools.pairwise(numbers)}
    if len(steps) < 2:
        return f"{numbers[0]} + {name} * {steps.pop() if steps else 0}"
    return f"({', '.join(map(str, numbers))})[{name}]"
