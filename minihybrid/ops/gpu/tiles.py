"""Chapter 27. Register tiles: each thread keeps 16 or 64 outputs in registers.

Uses:    a kernel writer (`codegen.gpu.kernel`), two operands (`products.Matrix`).
Defines: `blocked`, the kernel of a product in tiles of 64 x 64 or 128 x 128.

With one output per thread, each multiply-add needs two loads from shared memory. Here a
thread makes two vector loads of 4 elements and computes their outer product: 16
multiply-adds for two loads. With 8 + 8 elements it's 64 for four, in four quadrants of the
tile, so that neighboring threads load contiguous elements.

Double buffering: while a block multiplies one pair of tiles, its threads load the next
pair into registers, then into the other half of shared memory: one barrier per step.

In loops:   for tiles of K: fetch the next; for k: c[4, 4] += a[4] * b[4]; put the next

Source:  Volkov and Demmel, Benchmarking GPUs to tune dense linear algebra, SC 2008.
Not supported: dtypes other than float32.
"""

from contextlib import nullcontext

THREADS = 256  # per block: 16 x 16, each with 4 x 4 or 8 x 8 outputs
SIDE = 16  # threads per row


def deep_of(side):
    """Return the depth of a tile: each thread loads four elements of it.

    >>> deep_of(64), deep_of(128)
    (16, 8)
    """
    return 4 * THREADS // side


def pitch_of(side):
    """Return the row stride of a tile in shared memory.

    Threads that store a tile transposed write to different rows: padding avoids bank
    conflicts. It's four elements, to keep vector loads of four aligned.
    """
    return side + 4


def block_of(k, n, side, batch):
    """Return the source of a block's index along the columns; write `batch`."""
    blocks = -(-n // side)
    if batch == 1:
        return "cuda.blockIdx.x"
    k(f"batch = cuda.blockIdx.x // {blocks}")
    return f"(cuda.blockIdx.x % {blocks})"


def added(*texts):
    """Return the source of a sum without zero terms.

    >>> added("half", 0, "to_a", 8), added(0)
    ('half + to_a + 8', '0')
    """
    return " + ".join(str(text) for text in texts if text not in (0, "0")) or "0"


def number(k, operand, place, depth, inside=(), wide=False):
    """Return the source of an element, or of four contiguous ones; zero out of bounds.

    place:   the result of the operand's `begin`.
    inside:  conditions in addition to the operand's.
    """
    index, condition = operand.at(k, place, depth)
    text = f"load4({operand.buf}, {index})" if wide else f"{operand.buf}[{index}]"
    zero = "(T(0), T(0), T(0), T(0))" if wide else "T(0)"
    conditions = " and ".join([*inside, *[condition] * bool(condition)])
    return f"{text} if {conditions} else {zero}" if conditions else text


class TileLoader:
    """Load one operand's tile from global to shared memory.

    Each thread loads four elements: along K, or as one vector at one depth, or one place
    at four depths. Places beyond the end repeat the last one; their results aren't
    stored.
    """

    def __init__(self, k, operand, name, first, length, side):
        self.k, self.operand, self.name = k, operand, name
        self.deep, self.pitch = deep_of(side), pitch_of(side)
        self.wide = operand.wide
        four = self.wide and not operand.along_depth
        if operand.along_depth:
            place, depth = f"t // {self.deep // 4}", f"t % {self.deep // 4} * 4"
            self.step = 1
        elif four:
            place, depth = f"t % {side // 4} * 4", f"t // {side // 4}"
        else:
            place, depth = f"t % {side}", f"t // {side}"
            self.step = THREADS // side
        k(f"place_{name}, depth_{name} = {place}, {depth}")
        k(f"to_{name} = depth_{name} * {self.pitch} + place_{name}")
        where = f"{first} + place_{name}"
        if length % side:
            where = f"min({where}, {length - (4 if four else 1)})"
        k(f"from_{name} = {where}")
        self.place = operand.begin(k, f"from_{name}")

    def fetch(self, start, depth):
        """Load the tile that begins at a depth into registers."""
        k, name = self.k, self.name
        for e in range(1 if self.wide else 4):
            k(f"at = {added(start, f'depth_{name}', e * self.step if e else 0)}")
            inside = [f"at < {depth}"] * (depth % self.deep > 0)
            text = number(k, self.operand, self.place, "at", inside, self.wide)
            k(f"{name}{'' if self.wide else e}_next = {text}")

    def put(self, half):
        """Store it in shared memory; transposed if it's contiguous along K."""
        k, name = self.k, self.name
        if self.wide and not self.operand.along_depth:
            k(f"store4(s{name}, {added(half, f'to_{name}')}, {name}_next)")
            return
        for e in range(4):
            value = f"{name}_next[{e}]" if self.wide else f"{name}{e}_next"
            at = added(half, f"to_{name}", e * self.step * self.pitch)
            k(f"s{name}[{at}] = {value}")


def blocked(k, lengths, a, b, end, batch, side, ends):
    """Write the kernel of a float32 product, in tiles of `side` rows and columns."""
    m, n, depth = lengths
    deep, pitch, first = deep_of(side), pitch_of(side), ends[0]
    each = range(side // SIDE)  # a thread's outputs along rows, and along columns
    for name in ("sa", "sb"):
        k.shared(name, 2 * deep * pitch)
    k("t = cuda.threadIdx.x")
    k(f"tx, ty = t % {SIDE} * 4, t // {SIDE} * 4")
    k(f"row0 = cuda.blockIdx.y * {side}")
    k(f"col0 = {block_of(k, n, side, batch)} * {side}")
    loaders = [TileLoader(k, a, "a", "row0", m, side), TileLoader(k, b, "b", "col0", n, side)]
    for i in each:
        k(f"{' = '.join(f'c{i}_{j}' for j in each)} = T(0)")
    for loader in loaders:
        loader.fetch(first, depth)
        loader.put("0")
    k("cuda.syncthreads()")
    k("half = 0")
    with k.block(f"for k in range({added(first, deep)}, {ends[1]} + {deep}, {deep}):"):
        with k.block(f"if k < {ends[1]}:"):
            for loader in loaders:
                loader.fetch("k", depth)
        multiply(k, side)
        with k.block(f"if k < {ends[1]}:"):
            k(f"half = {deep * pitch} - half")
            for loader in loaders:
                loader.put("half")
        k("cuda.syncthreads()")
    finish(k, m, n, side, end)


def multiply(k, side):
    """Accumulate the product of the tiles in shared memory."""
    each, half = range(side // SIDE), side // 2
    pitch = pitch_of(side)
    with k.block(f"for i in range(half, half + {deep_of(side) * pitch}, {pitch}):"):
        for q in range(side // SIDE // 4):
            k(f"left{q} = load4(sa, {added('i', 'ty', q * half)})")
            k(f"right{q} = load4(sb, {added('i', 'tx', q * half)})")
        for i in each:
            for j in each:
                k(f"c{i}_{j} += left{i // 4}[{i % 4}] * right{j // 4}[{j % 4}]")


def finish(k, m, n, side, end):
    """Store the outputs through shared memory, some rows at a time.

    A thread's outputs are in four or eight rows; this makes the stores coalesced.
    """
    each, half, rows = range(side // SIDE), side // 2, THREADS // side
    k(f"col = col0 + t % {side}")
    for i in each:
        for q in range(side // SIDE // 4):
            at = added(f"ty * {side // 4}", "tx", q * half)
            k(f"store4(sa, {at}, ({', '.join(f'c{i}_{4 * q + j}' for j in range(4))}))")
        k("cuda.syncthreads()")
        with k.block(f"for i in range({len(each)}):"):
            from_first = f"(t // {side} + i * {rows}) * 4"
            k(f"row = {added('row0', from_first, i // 4 * half + i % 4)}")
            inside = [f"row < {m}"] * (m % side > 0) + [f"col < {n}"] * (n % side > 0)
            with k.block(f"if {' and '.join(inside)}:") if inside else nullcontext():
                end("row", "col", f"sa[i * {THREADS} + t]")
        if i != each[-1]:
            k("cuda.syncthreads()")
