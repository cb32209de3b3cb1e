"""Chapter 27. Matrix products on the GPU, tiled in shared memory.

Uses:    a kernel writer (`codegen.gpu.kernel`), two operands, which define the addresses
         of their elements.
Defines: `product`, the kernels of out (M, N) = a (M, K) b (K, N); `product_work`, their
         scratch size; `Matrix`, the plain operand, and `matrix_product` of two.

A product reuses each element many times. So a thread block loads a tile of a and a tile
of b into shared memory, reads them from there many times, and advances along K. Loads are
coalesced: neighboring threads load neighboring elements.

Source:  the tiles are those of the CUDA C++ Programming Guide (shared memory); larger
         ones are in `ops.gpu.tiles`.
Not supported: tensor cores, which have lower precision.
"""

from math import prod

from minihybrid.ops.gpu.tiles import THREADS, added, block_of, blocked, deep_of, number

MIN_TILED = 8  # rows or columns, too few for tiles: a thread computes them all
WARP = 32  # threads that run in lockstep and coalesce contiguous loads
TILE = 16  # rows, columns and depth of a tile with one output per thread
ENOUGH = 128  # blocks that occupy all multiprocessors of a large GPU (T4: 40, H200: 132)
MIN_DEPTH = 128  # minimum of K per block in split-K: it takes about as long
# as the kernel that adds the partial sums
HIGHEST = 65535  # limit of a grid's blocks along y and z; along x it's 2**31 - 1


class Matrix:
    """An operand as a flat matrix of places (a's rows, b's columns) and depths.

    along_depth: whether it is contiguous along K.
    start:   the source of its offset, `"batch * 6 + "`.
    wide:    whether four contiguous elements can be loaded at once.

    >>> Matrix("w", 3, 5, True).at(None, "col", "k")
    ('col * 5 + k', '')
    """

    def __init__(self, buf, places, depth, along_depth, start=""):
        self.buf, self.along_depth, self.start = buf, along_depth, start
        self.places, self.depth = places, depth
        self.wide = (depth if along_depth else places) % 4 == 0

    def begin(self, k, place):
        """Write the loop-invariant part of a place; return it for `at`."""
        return place

    def at(self, k, place, depth):
        """Return the source of (an index, the condition for reading it or "")."""
        row, column, length = (
            (place, depth, self.depth) if self.along_depth else (depth, place, self.places)
        )
        return f"{self.start}{factor(row)} * {length} + {column}", ""


def factor(text):
    """Parenthesize an expression for use as a factor.

    >>> factor("k + tx"), factor("row")
    ('(k + tx)', 'row')
    """
    return f"({text})" if " " in text else text


def form(lengths, batch, dtype):
    """Return (side of the tiles, or 0 for few rows or columns; number of parts of K).

    A larger tile reads less from global memory; it's chosen if there are still blocks for
    all multiprocessors, and outputs for most of its threads. With few blocks, several
    share a sum (split-K): each block waits for memory once per tile, so many short sums
    finish sooner than a few long ones.

    >>> import numpy as np
    >>> single = np.dtype("float32")
    >>> form((4, 1000, 512), 1, single), form((64, 64, 64), 1, single)
    ((0, 1), (16, 1))
    >>> form((512, 512, 512), 1, single), form((2048, 2048, 512), 1, single)
    ((64, 4), (128, 1))
    >>> form((64, 64, 8192), 1, single)  # a gradient of weights
    (64, 64)
    """
    m, n, depth = lengths

    def blocks(side):
        return -(-m // side) * -(-n // side) * batch

    def parts(side):
        return max(min(2 * ENOUGH // blocks(side), depth // MIN_DEPTH), 1)

    if min(m, n) <= MIN_TILED or not batch:
        return 0, 1
    side = TILE
    if dtype.name == "float32" and min(m, n) > TILE:
        if blocks(128) >= ENOUGH and min(m, n) > 64:
            side = 128
        elif 4 * blocks(64) * parts(64) >= ENOUGH:
            side = 64
    return side, -(-depth // piece_of(depth, parts(side), side))


def piece_of(depth, parts, side):
    """Return the length of each part of K, in whole tiles."""
    deep = deep_of(side) if side > TILE else TILE
    return -(-depth // parts // deep) * deep if parts > 1 else max(depth, 1)


def product_work(lengths, batch, dtype):
    """Return the scratch size in elements: the partial sums of each part of K."""
    (m, n, _), (_, parts) = lengths, form(lengths, batch, dtype)
    return m * n * batch * parts if parts > 1 else 0


def product(k, lengths, a, b, place, batch=1, store=None):
    """Write the kernels of a product and its epilogue.

    lengths: (M, N, K).
    a, b:    operands; in a batch, their code can use the index `batch`.
    place:   (row, column) -> the source of the index in `out`, and `at` for `k.store`.
    store:   a replacement for `k.store`, the default.
    """
    m, n, depth = lengths
    size, store = m * n * batch, store or k.store
    if not size:
        return
    if not depth:
        with k.each(("i", size)):
            store("i", "T(0)", None)
        return
    side, parts = form(lengths, batch, k.dtype)

    def end(row, col, value):
        index, at = place(row, col)
        if parts > 1:
            k(f"work[cuda.blockIdx.z * {size} + {index}] = {value}")
        else:
            k(f"at = {index}")
            store("at", value, at)

    ending = end
    if m > (side * HIGHEST or MIN_TILED):  # then compute the transpose: swap rows and columns
        m, n, a, b, ending = n, m, b, a, lambda row, col, value: end(col, row, value)
    if not side:
        return few(k, (m, n, depth), a, b, ending, batch)
    k.threads(
        (-(-n // side) * batch, -(-m // side), parts), THREADS if side > TILE else (TILE, TILE)
    )
    ends = "0", str(depth)
    if parts > 1:
        piece = piece_of(depth, parts, side)
        k(f"first = cuda.blockIdx.z * {piece}")
        k(f"last = min(first + {piece}, {depth})")
        ends = "first", "last"
    (blocked if side > TILE else square)(k, (m, n, depth), a, b, ending, batch, side, ends)
    if parts > 1:
        k.then()
        with k.each(("i", size)):
            k("total = work[i]")
            with k.block(f"for part in range(1, {parts}):"):
                k(f"total {signs(k)[0]}= work[part * {size} + i]")
            store("i", "total", None)


def signs(k):
    """Return the operators for plus and times; for bools, `|` and `&`."""
    return "|&" if k.dtype.kind == "b" else "+*"


# -- one thread per output -------------------------------------------------------------
def square(k, lengths, a, b, end, batch, side, ends):
    """Write 16 x 16 tiles: thread (tx, ty) loads one element of each, computes one."""
    m, n, depth = lengths
    add, times = signs(k)
    k.shared("sa", (side, side))
    # The threads of a warp read a column of this tile: one padding element per row avoids
    # bank conflicts.
    k.shared("sb", (side, side + 1) if b.along_depth else (side, side))
    k("tx, ty = cuda.threadIdx.x, cuda.threadIdx.y")
    block = block_of(k, n, side, batch)
    k(f"row = cuda.blockIdx.y * {side} + ty")
    k(f"col = {block} * {side} + tx")
    places = ["row", "col"]  # of the elements that this thread loads
    if not a.along_depth:
        places[0] = "row_a"
        k(f"row_a = cuda.blockIdx.y * {side} + tx")
    if b.along_depth:
        places[1] = "col_b"
        k(f"col_b = {block} * {side} + ty")
    begun = [v.begin(k, place) for v, place in zip((a, b), places, strict=True)]
    k("total = T(0)")
    with k.block(f"for k in range({', '.join(ends)}, {side}):"):
        for s, v, begin, place, length in zip(
            ("sa", "sb"), (a, b), begun, places, (m, n), strict=True
        ):
            at = "k + tx" if v.along_depth else "k + ty"
            inside = [f"{place} < {length}"] * (length % side > 0) + [f"{at} < {depth}"] * (
                depth % side > 0
            )
            text = number(k, v, begin, at, inside)
            k(f"{s}[ty, tx] = {text}")
        k("cuda.syncthreads()")
        left = "sa[ty, i]" if a.along_depth else "sa[i, ty]"
        right = "sb[tx, i]" if b.along_depth else "sb[i, tx]"
        with k.block(f"for i in range({side}):"):
            k(f"total {add}= {left} {times} {right}")
        k("cuda.syncthreads()")
    with k.block(f"if row < {m} and col < {n}:"):
        end("row", "col", "total")


# -- few rows --------------------------------------------------------------------------
def lanes_of(n, depth, along_depth):
    """Return how many threads share a sum: the fewest that occupy a GPU.

    If memory is contiguous along K, 32 threads coalesce their loads along it; otherwise
    along 32 columns.
    """
    lanes, most = 1, THREADS if along_depth else THREADS // WARP
    while (
        lanes < most
        and lanes < depth
        and (along_depth and lanes < WARP or lanes * n < ENOUGH * THREADS and 4 * lanes < depth)
    ):
        lanes *= 2
    return lanes


def few(k, lengths, a, b, end, batch):
    """Sum a part of K per thread, for one column and all rows; a tree adds the parts."""
    m, n, depth = lengths
    add, times = signs(k)
    lanes = lanes_of(n * batch, depth, b.along_depth)
    columns = THREADS // lanes
    k.threads(-(-n // columns) * batch, THREADS)
    if lanes > 1:
        k.shared("s", m * THREADS)
    k("t = cuda.threadIdx.x")
    lane, column = (
        (f"t % {lanes}", f"t // {lanes}")
        if b.along_depth
        else (f"t // {columns}", f"t % {columns}")
        if lanes > 1
        else ("0", "t")
    )
    k(f"lane = {lane}")
    k(f"col = {block_of(k, n, columns, batch)} * {columns} + {column}")
    where = "col"
    if n % columns:  # threads beyond the last column repeat it, and store nothing
        where = "inside"
        k(f"inside = min(col, {n - 1})")
    begun = b.begin(k, where)
    rows = [a.begin(k, str(r)) for r in range(m)]
    k(f"{' = '.join(f'sum{r}' for r in range(m))} = T(0)")
    wide = a.wide and b.wide and a.along_depth and b.along_depth and k.dtype.name == "float32"
    step = 4 if wide else 1
    with k.block(f"for k in range(lane{' * 4' * wide}, {depth}, {lanes * step}):"):
        k(f"y = {number(k, b, begun, 'k', (), wide)}")
        for r, row in enumerate(rows):
            k(f"x = {number(k, a, row, 'k', (), wide)}")
            for q in [f"[{q}]" for q in range(4)] if wide else [""]:
                k(f"sum{r} {add}= x{q} {times} y{q}")
    if lanes > 1:
        add_lanes(k, m, lanes, 1 if b.along_depth else columns)
    with k.block(f"if {'lane == 0 and ' * (lanes > 1)}col < {n}:"):
        for r in range(m):
            end(str(r), "col", f"sum{r}")


def add_lanes(k, m, lanes, apart):
    """Write a tree reduction of threads' sums; the first one gets the totals.

    apart:   the distance between consecutive threads.
    """
    add, _ = signs(k)
    for r in range(m):
        k(f"s[{added(r * THREADS, 't')}] = sum{r}")
    k("cuda.syncthreads()")
    k(f"half = {lanes // 2}")
    with k.block("while half > 0:"):
        with k.block("if lane < half:"):
            for r in range(m):
                mine = added(r * THREADS, "t")
                k(f"s[{mine}] {add}= s[{mine} + half{f' * {apart}' * (apart > 1)}]")
        k("cuda.syncthreads()")
        k("half //= 2")
    for r in range(m):
        k(f"sum{r} = s[{added(r * THREADS, 't')}]")


# -- two arrays ------------------------------------------------------------------------
def matrix_product(k, a, b, out, transpose_a, transpose_b, bias=None):
    """Write the kernels of out (..., M, N) = op(a) op(b) + bias, batched."""
    lengths, batch = lengths_of(a, out, transpose_a)
    m, n, depth = lengths
    last = len(k.core.specs[0].shape) - 1

    def store(index, value, at):
        column = at[last] if at else f"{index} % {n}"
        k.store(index, f"{value} + {bias}[{column}]" if bias else value, at)

    sizes = [m * depth, depth * n, m * n]
    left, right, start = (f"batch * {size} + " * (batch > 1) for size in sizes)
    product(
        k,
        lengths,
        Matrix(a, m, depth, not transpose_a, left),
        Matrix(b, n, depth, transpose_b, right),
        lambda row, col: (f"{start}{row} * {n} + {col}", {last: col}),
        batch,
        store,
    )


def matrix_work(ins, outs, transpose_a, transpose_b):
    """Return the scratch size of these kernels, in elements."""
    return product_work(*lengths_of(ins[0], outs[0], transpose_a), outs[0].dtype)


def lengths_of(a, out, transpose_a):
    """Return ((M, N, K), the batch size) from the first operand and the output."""
    *batch, m, n = out.shape
    return (m, n, a.shape[-2 if transpose_a else -1]), prod(batch)
