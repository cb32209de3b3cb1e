"""Chapter 18. Matrix product kernels with register tiles and cache blocking.

Uses:    a kernel writer, flat arrays, which of them are transposed.
Defines: `product_loops`, the kernel of out (M, N) = op(a) op(b); `product_scratch`, its
         scratch size.

A product reuses each element many times, so the cache level it's loaded from matters. A
tile of `out`, some rows high and some vectors wide, stays in registers while one loop runs
along K. The strip of b that it reads is row-major and stays in L2, packed by `_pack` if b
is transposed. For a few rows, packing would cost more than it saves: then rows of a are
multiplied with rows of b, and each vector accumulates one dot product.

Where tiles don't divide `out`, the last one begins earlier and stores only the new
elements: the same code handles the interior and the edges.

Source:  Goto and van de Geijn, Anatomy of high-performance matrix multiplication,
         ACM TOMS 34 (2008).
Limits:  a isn't packed, which would pay off for many thousand rows.
"""

from minihybrid.core.lengths import Length
from minihybrid.ops.cpu.machine import READ, registers, width

ROWS, COLUMNS = 72, 16  # of out: with fewer of either, packing b doesn't pay off
DEPTH = 512  # block along K, so that reused data stays in cache
ACROSS = 128  # the same for transposed a: power-of-two strides conflict in caches
BLOCK_ROWS = 256  # rows of out per block, which share one packed strip of b
FEWEST = 4  # elements of out; fewer use scalar sums
TILE_ROWS = 4  # rows of a tile of dot products
CHAINS = 10  # multiply-adds in flight: two per cycle, with a latency of up to five cycles
LONG = 1 << 12  # the assumed value of a symbolic length


def is_open(length):
    """Return whether a length is symbolic: the code must then work for all lengths."""
    return isinstance(length, Length)


def product_scratch(m, n, depth, dtype, transpose_a, transpose_b):
    """Return the scratch size in elements: a strip of b, after a few rows."""
    if _is_plain(m, n, depth, dtype, transpose_a, transpose_b) or _is_few(
        m, n, depth, transpose_a, transpose_b
    ):
        return 0
    high, wide = _tile_size(m, n, dtype)
    lanes = width(dtype.itemsize)
    deep = _deep(depth, lanes, transpose_a)
    return (lanes + deep) * wide * _is_packed(m, n, high, wide, transpose_b)


def product_loops(k, a, b, out, transpose_a, transpose_b, bias=None, start=""):
    """Write the loops of out (M, N) = op(a) op(b) + bias.

    start:      the source of out's offset in the whole output, `"batch * 6 + "`.

    In loops:   for each tile of out: for k: tile += column of a * row of b
    """
    (m, n), depth = out.shape, a.shape[0 if transpose_a else 1]
    if not out.size:
        return
    columns = _vectors(m, n, out.dtype)[1]
    wide, unit, body = 64 // columns * columns, int(min(m, TILE_ROWS)), _dot_products
    if _is_plain(m, n, depth, out.dtype, transpose_a, transpose_b):
        body = _sums
    elif not _is_few(m, n, depth, transpose_a, transpose_b):
        (unit, wide), body = _tile_size(m, n, out.dtype), _tiles
    high = _even(m, BLOCK_ROWS, unit)
    if body is _tiles and transpose_a and m > high:
        wide = n  # a block of a is reused for all strips of b while in cache
    work = max(m, READ) * n * depth
    strip = wide if is_open(n) else min(wide, n)
    with k.share("top", m, 0, high, work), k.share("n", n, 0, strip, work):
        k(f"below, right = min(top + {high}, {m}), min(n + {wide}, {n})")
        body(k, a, b, out, (m, n, depth), transpose_a, transpose_b)
        if bias is not None or k.after or (k.core, 0) not in k.outs:
            rows = k.loop("r", m) if m == 1 else k.block("for r in range(top, below):")
            with rows, k.block("for c in range(n, right):"):
                plus = f" + {bias}[c]" if bias is not None else ""
                at = f"r * {n} + c"
                k.store(start + at, f"{out}[{at}]{plus}", {len(k.core.specs[0].shape) - 1: "c"})


def _is_plain(m, n, depth, dtype, transpose_a, transpose_b):
    """Return whether every contiguous axis is shorter than a vector."""
    short = depth < width(dtype.itemsize)
    if not _is_few(m, n, depth, transpose_a, transpose_b):
        short = max(m, n) < width(dtype.itemsize) and (short or m * n < FEWEST)
    return not depth or dtype.kind == "b" or short


def _is_few(m, n, depth, transpose_a, transpose_b):
    few = m < ROWS or n < COLUMNS
    return few and transpose_b and not transpose_a and not is_open(depth)


def _deep(depth, lanes, transpose_a):
    """Return the block length along K."""
    return _even(depth, ACROSS if transpose_a else DEPTH, lanes)


def _even(length, limit, unit):
    """Return the step that splits a length into the fewest equal parts, up to a limit.

    >>> _even(64, 256, 6), _even(300, 256, 6), _even(512, 256, 4)
    (66, 150, 256)
    """
    if is_open(length):
        return limit // unit * unit
    step = -(-length // -(-length // limit))
    return -(-step // unit) * unit


def _sums(k, a, b, out, lengths, transpose_a, transpose_b):
    """Write scalar loops: for bools, empty sums, less than a vector."""
    m, n, depth = lengths
    add, times = "|&" if out.dtype.kind == "b" else "+*"
    with k.block("for r in range(top, below):"), k.block("for c in range(n, right):"):
        k(f"{out}[r * {n} + c] = T(0)")
        if depth:
            with k.block(f"for k in range({depth}):"):
                k(
                    f"{out}[r * {n} + c] {add}= "
                    f"{a}[{f'k * {m} + r' if transpose_a else f'r * {depth} + k'}] {times} "
                    f"{b}[{f'c * {depth} + k' if transpose_b else f'k * {n} + c'}]"
                )


def _last(k, name, at, length, step):
    """Shift the last tile back to fit; return its start and how many rows are done."""
    if length < step or length % step == 0 and not is_open(length):
        return at, "0"
    k(f"{name} = min({at}, {length - step})")
    return name, f"{at} - {name}"


# -- few rows, or few columns ----------------------------------------------------------
def _vectors(m, n, dtype):
    """Return (rows, columns) of a tile of dot products; a strip is whole tiles."""
    rows, most = int(min(_even(m, TILE_ROWS, 1), m)), 16 if registers()[1] > 16 else 12
    return rows, int(min(most // rows, 8, width(dtype.itemsize), n))


def _dot_products(k, a, b, out, lengths, transpose_a, transpose_b):
    """Multiply rows of a and b; each dot product is a horizontal vector sum."""
    m, n, depth = lengths
    lanes, (rows, cols) = width(out.dtype.itemsize), _vectors(m, n, out.dtype)
    step = min(_even(depth, DEPTH, lanes), depth) if m > rows or is_open(m) else depth
    rest = depth % lanes
    with k.loop("start", depth, 0, step), k.block(f"for c in range(n, right, {cols}):"):
        column, first = _last(k, "column", "c", n, cols)
        with k.block(f"for m in range(top, below, {rows}):"):
            row, top = _last(k, "row", "m", m, rows)
            add = f"s = inner(s, {a}, {row} * {depth} + k, {b}, {column} * {depth} + k, {depth}, "
            k(f"s = tile(T(0), {rows}, {cols})")
            with k.block(f"for k in range(start, min(start + {step}, {depth - rest}), {lanes}):"):
                k(f"{add}{lanes})")
            if rest:
                with k.block(f"if start + {step} >= {depth}:"):
                    k(f"k = {depth - rest}")
                    k(f"{add}{rest})")
            k(f"put_totals(s, {out}, {row} * {n} + {column}, {n}, {top}, {first}, start > 0)")


# -- many rows -------------------------------------------------------------------------
def _tile_size(m, n, dtype):
    """Return (rows, columns) of the tiles with the lowest estimated time.

    For each k, a tile of `high` x `wide` vectors does `high * wide` multiply-adds and loads
    `high + wide` operands, which cost a quarter each. Its accumulators, `wide` vectors and one
    operand need registers; in higher tiles, LLVM spills accumulators nevertheless.
    """
    lanes, most = width(dtype.itemsize), registers()[1]
    rows, columns = (LONG if is_open(length) else length for length in (m, n))

    def cost(tile):
        high, wide = tile
        count = -(-rows // high) * -(-columns // (wide * lanes))
        return count * (4 * max(high * wide, CHAINS) + high + wide)

    high, wide = min(
        (
            (high, wide)
            for high in range(int(min(most * 3 // 8, m)), 0, -1)
            for wide in range(int(min(2 if is_open(n) else 4, max(n // lanes, 1))), 0, -1)
            if (high + 1) * wide < most
        ),
        key=cost,
    )
    return high, wide * lanes


def _is_packed(m, n, high, wide, transpose_b):
    return transpose_b or n < wide or m > 2 * high or is_open(m)


def _tiles(k, a, b, out, lengths, transpose_a, transpose_b):
    """For each part of K strips of b, each with all tiles of out below it."""
    m, n, depth = lengths
    high, wide = _tile_size(m, n, out.dtype)
    packed = _is_packed(m, n, high, wide, transpose_b)
    lanes = width(out.dtype.itemsize)
    step, front = _deep(depth, lanes, transpose_a), lanes * wide
    strips = k.block(f"for strip in range(n, right, {wide}):")
    with k.loop("start", depth, 0, step if is_open(depth) else min(step, depth)), strips:
        column, first = _last(k, "column", "strip", n, wide)
        k(f"deep = min({step}, {depth} - start)")
        if packed:
            _pack(k, b, column, (n, depth, wide), transpose_b)
        with k.block(f"for m in range(top, below, {high}):"):
            row, top = _last(k, "row", "m", m, high)
            k(f"s = tile(T(0), {high}, {wide // lanes})")
            if depth > step or is_open(depth):
                with k.block("if start:"):
                    k(f"s = get(s, {out}, {row} * {n} + {column}, {n}, {int(min(wide, n))})")
            at, down = (
                (f"(start + k) * {m} + {row}", 1)
                if transpose_a
                else (f"{row} * {depth} + start + k", depth)
            )
            with k.block("for k in range(deep):"):
                k(
                    f"s = outer(s, {a}, {at}, {down}, "
                    + (
                        f"work, {front} + k * {wide})"
                        if packed
                        else f"{b}, (start + k) * {n} + {column})"
                    )
                )
            k(f"put(s, {out}, {row} * {n} + {column}, {n}, {top}, {first}, {int(min(wide, n))})")


def _pack(k, b, column, lengths, transpose_b):
    """Pack a strip of b into `work`, one row for each k."""
    n, depth, wide = lengths
    lanes = width(b.dtype.itemsize)
    front = lanes * wide
    if n < wide or transpose_b and depth < lanes:
        with k.block("for k in range(deep):"), k.block(f"for c in range({wide}):"):
            at = (
                f"({column} + c) * {depth} + start + k"
                if transpose_b
                else f"(start + k) * {n} + {column} + c"
            )
            k(f"work[{front} + k * {wide} + c] = {b}[{at}]" + f" if c < {n} else T(0)" * (n < wide))
    elif transpose_b:
        with k.loop("c", wide, 0, lanes), k.block(f"for k in range(0, deep, {lanes}):"):
            k(f"j = min(k, deep - {lanes})")  # overwrites only unused rows before the strip
            k(
                f"transpose({b}, ({column} + c) * {depth} + start + j, {depth}, "
                f"work, {front} + j * {wide} + c, {wide})"
            )
    else:
        with k.block("for k in range(deep):"), k.loop("c", wide, 0, lanes):
            k(f"store(work, {front} + k * {wide} + c, load({b}, (start + k) * {n} + {column} + c))")
