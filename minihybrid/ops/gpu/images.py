"""Convolution on the GPU: implicit GEMM.

Uses:    a kernel writer (`codegen.gpu.kernel`), flat arrays, the sizes of a convolution.
Defines: `forward_product`, `data_product`, `weight_product` and their scratch sizes: a
         convolution and its gradients, as matrix products with special operands.

The outputs of a convolution are weights times columns, (O, C taps) (C taps, N positions),
where a column is one output's receptive field. The columns would be many times larger
than the data, so they are never materialized: an operand maps (column, depth) to an
element of the data, or to zero for padding. The gradients are the same with other
operands. A depthwise convolution is a product with one row per channel: then one thread
computes an output.

With a stride, each data position is read by only some taps, which differ between
positions. Then one thread computes the gradient of one position.

Source:  Chetlur et al., cuDNN: Efficient Primitives for Deep Learning (2014).
Not supported: Winograd convolution; tiles for data gradients with strides.
"""

from contextlib import ExitStack
from math import prod

from minihybrid.ops.gpu.products import Matrix, factor, product, product_work, signs
from minihybrid.ops.gpu.tiles import added
from minihybrid.ops.shapes import row_major


def steps(*terms):
    """Return the source of a sum of (expression, factor) terms.

    >>> steps(("y", 8), ("0", 5), ("x", 1))
    'y * 8 + x'
    """
    return added(*(f"{text} * {n}" if n != 1 and text != "0" else text for text, n in terms))


def both(k, conditions):
    """Name the conjunction of conditions; "" if there are none."""
    if not conditions:
        return ""
    name = k.name("seen")
    k(f"{name} = {' and '.join(conditions)}")
    return name


def parts_of(k, text, lengths):
    """Unravel a flat index into expressions per axis, the last one fastest.

    Division of uint32 is several times faster than of other integers.
    """
    if sum(n != 1 for n in lengths) > 1:
        name = k.name("i")
        k(f"{name} = uint32({text})")
        text = name
    texts, inner = [], prod(lengths)
    for d, n in enumerate(lengths):
        inner //= n
        part = f"{text} // {inner}" if inner > 1 else text
        texts.append("0" if n == 1 else f"{part} % {n}" if prod(lengths[:d]) > 1 else part)
    return texts


class Images:
    """An operand (channel, sample and position): the elements of images (N, C, *size).

    along_depth: whether positions are along K and channels are rows or columns; or vice
                 versa.
    """

    def __init__(self, buf, channels, group, places, along_depth):
        self.buf, self.channels, self.group = buf, channels, group
        self.places, self.along_depth = places, along_depth
        self.n = buf.shape[0]
        self.wide = places % 4 == 0

    def begin(self, k, place):
        """Write the loop-invariant part of a channel, or of a sample and position."""
        start = self.channel(place) if self.along_depth else self.spot(k, place)
        name = k.name("from")
        k(f"{name} = {start}")
        return name

    def at(self, k, place, depth):
        """Return the index of an element; no access is out of bounds."""
        more = self.spot(k, depth) if self.along_depth else self.channel(depth)
        return f"{place} + {more}", ""

    def channel(self, text):
        """Return the offset of a channel of the group in its sample."""
        batch = "batch" if self.channels > self.group else "0"
        return steps((batch, self.group * self.places), (factor(text), self.places))

    def spot(self, k, text):
        """Return a sample's offset plus a position in its channel."""
        sample, spot = parts_of(k, text, (self.n, self.places))
        return steps((sample, self.channels * self.places), (spot, 1))


class Windows:
    """An operand (channel and tap, sample and output): the elements that outputs read.

    along_depth: whether the outputs are along K (the gradient of the weights), or the
                 channels and taps.
    """

    wide = False

    def __init__(self, data, s, along_depth):
        self.buf, self.s, self.along_depth = data, s, along_depth

    def begin(self, k, place):
        """Write the loop-invariant part of a tap or an output: names of its coordinate
        along each axis, then of its offset in memory."""
        return self.seen(k, place, not self.along_depth)

    def seen(self, k, text, is_output):
        """Write the coordinates and offset of an output or a tap."""
        s, names = self.s, []
        plane = prod(s.size)
        lead, *axes = parts_of(k, text, (s.n, *s.out) if is_output else (s.c // s.g, *s.kernel))
        for part, by, pad in zip(axes, s.stride if is_output else s.dilate, s.pad, strict=True):
            names.append(k.name("y"))
            before = f" - {pad}" if is_output and pad else ""
            k(f"{names[-1]} = {steps((part, by))}{before}")
        terms = (
            [(lead, s.c * plane), (group_of(s), s.c // s.g * plane)]
            if is_output
            else [(lead, plane)]
        )
        base = k.name("from")
        k(f"{base} = {steps(*terms, *zip(names, row_major(s.size), strict=True))}")
        return *names, base

    def at(self, k, place, depth):
        """Return an element's index, and the condition that it isn't padding."""
        *here, base = place
        *there, more = self.seen(k, depth, self.along_depth)
        inside = [
            f"0 <= {y} + {x} < {n}"
            for y, x, n, pad in zip(here, there, self.s.size, self.s.pad, strict=True)
            if pad
        ]
        return f"{base} + {more}", both(k, inside)


class Spread:
    """An operand (filter and tap, sample and position): the outputs that read a position
    through a tap, for the data's gradient. The strides are 1.
    """

    wide = along_depth = False

    def __init__(self, grad, s):
        self.buf, self.s = grad, s

    def begin(self, k, place):
        """Write the loop-invariant part of a position."""
        s, names, plane = self.s, [], prod(self.s.out)
        sample, *axes = parts_of(k, place, (s.n, *s.size))
        for part, pad in zip(axes, s.pad, strict=True):
            names.append(k.name("y"))
            k(f"{names[-1]} = {part}{f' + {pad}' * (pad > 0)}")
        base = k.name("from")
        k(f"{base} = {steps((sample, s.o * plane), (group_of(s), s.o // s.g * plane))}")
        return *names, base

    def at(self, k, place, depth):
        """Return the index of an output's gradient, and the condition that it exists."""
        s = self.s
        *here, base = place
        channel, *taps = parts_of(k, depth, (s.o // s.g, *s.kernel))
        inside, terms = [], [(base, 1), (channel, prod(s.out))]
        for y, tap, by, n, step in zip(here, taps, s.dilate, s.out, row_major(s.out), strict=True):
            name = k.name("y")
            k(f"{name} = {y} - {steps((tap, by))}")
            inside.append(f"0 <= {name} < {n}")
            terms.append((name, step))
        return steps(*terms), both(k, inside)


class Filters:
    """An operand (channel, filter and tap): the weights in the data's gradient."""

    wide, along_depth = False, True

    def __init__(self, weight, s):
        self.buf, self.s, self.taps = weight, s, prod(s.kernel)
        self.filter = s.c // s.g * self.taps

    def begin(self, k, place):
        """Write a channel's offset."""
        name = k.name("from")
        group = group_of(self.s), self.s.o // self.s.g * self.filter
        k(f"{name} = {steps(group, (factor(place), self.taps))}")
        return name

    def at(self, k, place, depth):
        """Return the index of a weight; no access is out of bounds."""
        number, tap = parts_of(k, depth, (self.s.o // self.s.g, self.taps))
        return steps((place, 1), (number, self.filter), (tap, 1)), ""


def group_of(s):
    """Return the source of the index of a block's group."""
    return "batch" if s.g > 1 else "0"


def is_pointwise(s):
    """Return whether each output reads only the input at its own position."""
    return {*s.kernel, *s.stride} == {1} and not any(s.pad)


def seen_by(data, s, along_depth):
    """Return the operand of the data that the outputs read."""
    if is_pointwise(s):
        return Images(data, s.c, s.c // s.g, prod(s.size), along_depth)
    return Windows(data, s, along_depth)


def in_images(k, s, channels, size):
    """Map (channel of the group, sample and position) to the output's index."""
    plane, group = prod(size), channels // s.g

    def place(row, col):
        channel = steps((group_of(s), group), (row, 1))
        sample, spot = parts_of(k, col, (s.n, plane))
        start = steps((sample, channels), (factor(channel), 1))
        return steps((f"({start})", plane), (spot, 1)), {1: channel}

    return place


# -- the three products ----------------------------------------------------------------
def forward_lengths(s):
    """Return (M, N, K) = (filters, outputs, channels and taps) of each group."""
    return s.o // s.g, s.n * prod(s.out), s.c // s.g * prod(s.kernel)


def forward_product(k, data, weight, out, s):
    """Write out = weights times the windows of the data."""
    m, _, depth = lengths = forward_lengths(s)
    start = f"batch * {m * depth} + " * (s.g > 1)
    product(
        k,
        lengths,
        Matrix(weight, m, depth, True, start),
        seen_by(data, s, False),
        in_images(k, s, s.o, s.out),
        s.g,
    )


def data_lengths(s):
    """Return (M, N, K) = (channels, positions, filters and taps) of each group."""
    return s.c // s.g, s.n * prod(s.size), s.o // s.g * prod(s.kernel)


def data_product(k, grad, weight, out, s):
    """Write the data's gradient = transposed weights times output gradient."""
    if is_strided(s):
        return strided_gradient(k, grad, weight, out, s)
    m, _, depth = lengths = data_lengths(s)
    if is_pointwise(s):
        start = f"batch * {m * depth} + " * (s.g > 1)
        a = Matrix(weight, m, depth, False, start)
        b = Images(grad, s.o, s.o // s.g, prod(s.out), False)
    else:
        a, b = Filters(weight, s), Spread(grad, s)
    product(k, lengths, a, b, in_images(k, s, s.c, s.size), s.g)


def is_strided(s):
    """Return whether data positions differ in the taps that read them."""
    return max(s.stride) > 1


def data_work(s, dtype):
    """Return the scratch size of the data's gradient, in elements."""
    return 0 if is_strided(s) else product_work(data_lengths(s), s.g, dtype)


def strided_gradient(k, grad, weight, out, s):
    """Gather the gradient, one thread per position, tap by tap."""
    filters, channels, plane = s.o // s.g, s.c // s.g, prod(s.out)
    add, times = signs(k)
    with k.each(("i", out.size)), ExitStack() as loops:
        sample, channel, *axes = parts_of(k, "i", (s.n, s.c, *s.size))
        k(f"channel = {channel}")
        k("total = T(0)")
        seen, taps = [], [f"tap{d}" for d in range(len(axes))]
        for d, (at, n, stride, by, pad) in enumerate(
            zip(axes, s.kernel, s.stride, s.dilate, s.pad, strict=True)
        ):
            loops.enter_context(k.block(f"for tap{d} in range({n}):"))
            k(f"y{d} = {at} + {pad} - tap{d} * {by}")
            if stride > 1:
                loops.enter_context(k.block(f"if y{d} % {stride} == 0:"))
                k(f"y{d} //= {stride}")
            seen.append(f"0 <= y{d} < {s.out[d]}")
        k(f"first = channel // {channels} * {filters}")
        k(f"seen = {' and '.join(seen)}")
        spot = steps(*zip([f"y{d}" for d in range(len(axes))], row_major(s.out), strict=True))
        tap = steps(*zip(taps, row_major(s.kernel), strict=True))
        with k.block(f"for o in range(first, first + {filters}):"):
            k(
                f"g = {grad}[{steps((sample, s.o * plane), ('o', plane))} + {spot}]"
                " if seen else T(0)"
            )
            pair = f"(o * {channels} + channel % {channels})"
            k(f"w = {weight}[{pair} * {prod(s.kernel)} + {tap}]")
            k(f"total {add}= g {times} w")
        loops.close()
        k.store("i", "total", {1: "channel"})


def weight_lengths(s):
    """Return (M, N, K) = (filters, channels and taps, outputs) of each group."""
    return s.o // s.g, s.c // s.g * prod(s.kernel), s.n * prod(s.out)


def weight_product(k, data, grad, out, s):
    """Write the weights' gradient = output gradient times the windows."""
    m, n, _ = lengths = weight_lengths(s)
    start = f"batch * {m * n} + " * (s.g > 1)
    product(
        k,
        lengths,
        Images(grad, s.o, m, prod(s.out), True),
        seen_by(data, s, True),
        lambda row, col: (f"{start}{row} * {n} + {col}", None),
        s.g,
    )
