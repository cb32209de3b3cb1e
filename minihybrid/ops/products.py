"""Chapter 02. Products of matrices: sums that stay in registers.

Takes:   a kernel writer, flat arrays, which of them are transposed.
Gives:   `product_loops`, those of out (M, N) = op(a) op(b); `product_scratch`, what
         they need.

A product reads each number many times, so the question is from where. Here a tile
of `out`, some rows high and some vectors wide, stays in registers while one loop goes
along K; the strip of b that it reads lies in the nearest cache, row by row, because it
was copied there (`panel`) if b lay the other way. For a few rows the copy would cost
more than it saves: then rows of a meet rows of b in dot products.

Source:  Goto and van de Geijn, Anatomy of high-performance matrix multiplication,
         ACM TOMS 34 (2008).
What is left out: several threads, and a second level of tiles.
"""

from minihybrid.machine import registers, width
from minihybrid.ops.shapes import blocks

FEW = 12       # rows of a for which tiles do not pay; twice as many with panels
DEPTH = 256    # rows of a panel, so that it fits the first cache
WIDE = 32      # numbers in a row of a panel, at most: two vectors


def product_scratch(rows):
    """Numbers beside the arrays: a panel, and a tile of what sticks out."""
    return 0 if rows < FEW else (DEPTH + 8) * WIDE


def product_loops(k, a, b, out, transpose_a, transpose_b, bias=None, start=""):
    """Write the loops of out (M, N) = op(a) op(b) + bias.

    start:      the text of where out begins in the whole output, `"batch * 6 + "`.

    In loops:   for each tile of out: for k: tile += column of a * row of b
    """
    m, n = out.shape
    depth = a.shape[0] if transpose_a else a.shape[1]
    if depth == 0 or m * n == 0:
        with k.loop("i", out.size):
            k(f"{out}[i] = T(0)")
    elif (m < 2 * FEW or n < FEW) and transpose_b and not transpose_a:
        _dot_products(k, a, b, out, m, n, depth)
    elif m < FEW or out.dtype.kind == "b":
        _sums(k, a, b, out, m, n, depth, transpose_a, transpose_b)
    else:
        return _tiles(k, a, b, out, (m, n, depth), transpose_a, transpose_b, bias,
                      start)
    if bias is not None or k.after or (k.core, 0) not in k.outs:
        with k.loop("m", m), k.loop("n", n):
            _finish(k, out, n, bias, start, "m", "n")
    return None


def _finish(k, out, n, bias, start, row, column):
    """End one number of the product: the bias, and what follows the product."""
    plus = f" + {bias}[{column}]" if bias is not None else ""
    index = f"{row} * {n} + {column}"
    k.store(start + index, f"{out}[{index}]{plus}",
            {len(k.core.specs[0].shape) - 1: column})


# -- few rows --------------------------------------------------------------------------
def _dot_products(k, a, b, out, m, n, depth):
    """Blocks of rows of a times rows of b; every sum is a number in a register."""
    for m0, m1, rows in blocks(m, 4):
        for n0, n1, cols in blocks(n, 4):
            with k.loop("m", m1, m0, rows), k.loop("n", n1, n0, cols):
                pairs = [(r, c) for r in range(rows) for c in range(cols)]
                k(" = ".join(f"s{r}{c}" for r, c in pairs) + " = T(0)")
                with k.block(f"for k in range({depth}):"):
                    for r, c in pairs:
                        k(f"s{r}{c} += {a}[{_at('m', r)} * {depth} + k] * "
                          f"{b}[{_at('n', c)} * {depth} + k]")
                for r, c in pairs:
                    k(f"{out}[{_at('m', r)} * {n} + {_at('n', c)}] = s{r}{c}")


def _at(name, offset):
    return f"({name} + {offset})" if offset else name


def _sums(k, a, b, out, m, n, depth, transpose_a, transpose_b):
    """Eight rows of b, each times one number of a, added to a row of out."""
    with k.loop("i", out.size):
        k(f"{out}[i] = T(0)")
    for k0, k1, rows in blocks(depth, 8):
        with k.loop("k", k1, k0, rows), k.loop("m", m):
            for r in range(rows):
                at = f"(k + {r}) * {m} + m" if transpose_a else f"m * {depth} + k + {r}"
                k(f"x{r} = {a}[{at}]")
                if not transpose_b:
                    k(f"w{r} = {b}[(k + {r}) * {n}:(k + {r} + 1) * {n}]")
            k(f"row = {out}[m * {n}:(m + 1) * {n}]")
            with k.block(f"for n in range({n}):"):
                k("row[n] += " + " + ".join(
                    f"x{r} * {b}[n * {depth} + k + {r}]" if transpose_b
                    else f"x{r} * w{r}[n]" for r in range(rows)))


# -- many rows -------------------------------------------------------------------------
def _tiles(k, a, b, out, lengths, transpose_a, transpose_b, bias, start):
    """Tiles of out, strip by strip; what follows the product is done tile by tile."""
    m, n, depth = lengths
    lanes = width(out.dtype.itemsize)
    wide, rest = 2 * lanes, n % (2 * lanes)
    strips = [(0, n - rest, wide, wide)] if n >= wide else []
    if rest:
        strips.append((n - rest, n, wide if rest > lanes else lanes, rest))
    ends = bias is not None or k.after or (k.core, 0) not in k.outs
    high = 8 if registers()[1] > 16 else 6
    if depth > DEPTH:  # then panels add up in out
        with k.loop("i", out.size):
            k(f"{out}[i] = T(0)")
    with k.loop("start", depth, 0, DEPTH):
        k(f"deep = min({DEPTH}, {depth} - start)")
        for n0, n1, step, cols in strips:
            with k.loop("n", n1, n0, step):
                packed = transpose_b or cols < step
                if packed:
                    _pack(k, b, n, depth, step, cols, transpose_b)
                for m0, m1, rows in blocks(m, high):
                    with k.loop("m", m1, m0, rows):
                        _tile(k, a, b, out, lengths, (rows, step, cols), transpose_a,
                              packed)
                        if ends:
                            with k.block(f"if start + deep == {depth}:"), \
                                    k.loop("r", rows), k.loop("c", cols):
                                _finish(k, out, n, bias, start, "(m + r)", "(n + c)")


def _pack(k, b, n, depth, step, cols, transpose_b):
    """Copy a strip of b into the panel: one row of it for each k, padded with zeros."""
    lanes = width(b.dtype.itemsize)
    if not (transpose_b and cols == step):
        k("done = 0")
    else:
        k(f"done = deep - deep % {lanes}")
        with k.block(f"for k in range(0, done, {lanes}):"), \
                k.loop("c", step, 0, lanes):
            k(f"transpose({b}, (n + c) * {depth} + start + k, {depth}, "
              f"work, k * {step} + c, {step})")
    with k.block("for k in range(done, deep):"), k.loop("c", step):
        at = f"(n + c) * {depth} + start + k" if transpose_b else \
            f"(start + k) * {n} + n + c"
        keep = f" if c < {cols} else T(0)" if cols < step else ""
        k(f"work[k * {step} + c] = {b}[{at}]{keep}")


def _tile(k, a, b, out, lengths, size, transpose_a, packed):
    """One tile: its sums stay in registers while k goes through a panel."""
    (m, n, depth), (rows, step, cols) = lengths, size
    lanes = width(out.dtype.itemsize)
    vectors = range(0, step, lanes)
    whole = cols == step
    for r in range(rows):
        for c in vectors:
            place = f"{_at('m', r)} * {n} + {_at('n', c)}"
            k(f"s{r}_{c} = " + (f"load({out}, {place})"
                                if whole and depth > DEPTH else "splat(T(0))"))
    with k.block("for k in range(deep):"):
        for c in vectors:
            k(f"b{c} = " + (f"load(work, {_at(f'k * {step}', c)})" if packed else
                            f"load({b}, (start + k) * {n} + {_at('n', c)})"))
        for r in range(rows):
            at = f"(start + k) * {m} + m + {r}" if transpose_a else \
                f"{_at('m', r)} * {depth} + start + k"
            k(f"x = splat({a}[{at}])")
            for c in vectors:
                k(f"s{r}_{c} = fma(x, b{c}, s{r}_{c})")
    for r in range(rows):
        for c in vectors:
            place = f"{_at('m', r)} * {n} + {_at('n', c)}"
            k(f"store({out}, {place}, s{r}_{c})" if whole else
              f"store(work, {DEPTH * WIDE + r * step + c}, s{r}_{c})")
    if not whole:
        with k.loop("r", rows), k.loop("c", cols):
            k(f"{out}[(m + r) * {n} + n + c] {'+' if depth > DEPTH else ''}= "
              f"work[{DEPTH * WIDE} + r * {step} + c]")
