"""Loops of reductions: row by row, with the passes of a `ReductionSchedule`.

Defines: `RowLoops`, loops over rows with one inner loop per pass; `RowWriter`, the part
         shared with GPU kernels.

In contiguous rows, accumulators are scalars, which the compiler splits over several
vector registers. Interleaved rows are computed as tiles: the accumulators are in `work`,
and the inner loop runs over the tile.
Limits: rows longer than the cache are loaded from memory in each pass.
"""

import math
from contextlib import contextmanager, nullcontext

from minihybrid.core.lengths import Length
from minihybrid.ops.shapes import row_major
from minihybrid.passes.reduction_schedule import is_literal

# A float's rank is an integer with the same order, where NaN is beyond all others:
# comparing ranks propagates NaN as NumPy does, and vectorizes.
RANKS = {"LOWEST": "rank_up", "HIGHEST": "rank_down"}


class RowWriter:
    """Computes the addresses of a row's values, and writes the steps of reductions."""

    in_registers = True  # values per row

    def __init__(self, kernel, nodes, rows):
        self.k, self.nodes, self.rows = kernel, nodes, rows
        self.frame, self.across = rows.frame, rows.frame.across
        self.stats = dict.fromkeys(rows.stats)
        reads = {
            (ref, n): self.frame.reads(ref, n)
            for n in nodes
            for ref in n.inputs
            if ref in kernel.ins
        }
        ends = {n: self.frame.own(n.specs[0].shape) for n in rows.stats}
        self.shape, self.gone, self.steps = joined(self.frame.shape, self.frame.gone, reads | ends)
        self.kept = [i for i in range(len(self.shape)) if i not in self.gone]
        self.n_gone = [self.shape[i] for i in sorted(self.gone)]
        self.known = {}  # literals and values per row -> name
        self.partial = {}  # reduction -> partial sum of the current block
        self.write()

    # -- places
    def place(self, offset, steps):
        """Return the source of an index: an offset plus strides times counters."""
        terms = [
            f"k{i}" + (f" * {s}" if s != 1 else "")
            for i, s in enumerate(steps)
            if s and self.shape[i] != 1
        ]
        return " + ".join(([str(offset)] if offset else []) + terms) or "0"

    def flat(self, node):
        """Return the source of the index at which a value is stored."""
        return (
            self.place(*self.steps[node])
            if node in self.stats
            else self.place(0, row_major(self.shape))
        )

    def read(self, ref, node):
        """Return the source of a load, from an input or from a value saved by an earlier pass."""
        if ref in self.known:
            return self.known[ref]
        if ref not in self.k.ins:
            return self.waits_at(ref[0])
        text = f"{self.k.ins[ref]}[{self.place(*self.steps[ref, node])}]"
        return self.known.get(text, text)

    def operand(self, values, ref, node):
        """Return the name of a computed or loaded value, or else the source of its load."""
        text = values.get(ref) or self.read(ref, node)
        return values.get(text, text)

    def is_kept(self, node):
        """Whether an element of the row is written to memory."""
        return (node, 0) in self.k.outs

    def waits(self, node, depth):
        """Return whether a pass loads an element stored by an earlier one."""
        return self.rows.depth[node] < depth and node in self.rows.waiting and self.is_kept(node)

    def needed(self, used, depth):
        """Return the nodes to compute in a pass, without those saved by earlier ones."""
        nodes = []
        for node in reversed(self.nodes):
            if node in used and not (
                node in self.stats or is_literal(node) or self.waits(node, depth)
            ):
                nodes.insert(0, node)
                used = used | {n for n, _ in node.inputs}
        return nodes

    def read_once(self, nodes):
        """Hoist loads that are invariant over the row."""
        for node in nodes:
            for ref in node.inputs:
                if self.in_registers and ref in self.k.ins:
                    offset, steps = self.steps[ref, node]
                    text = f"{self.k.ins[ref]}[{self.place(offset, steps)}]"
                    if not any(steps[i] for i in self.gone) and text not in self.known:
                        name = self.k.name("v")
                        self.k(f"{name} = {text}")
                        self.known[text] = name

    # -- long sums: the partial sum of each block is added to the total with compensation
    # of the rounding errors
    @contextmanager
    def in_blocks(self, long):
        """Surround the loop over blocks."""
        self.lost = {node: self.place_of(node, 0) for node in long}
        with self.columns():
            self.zero(self.lost)
        yield
        with self.columns():
            for node in long:
                self.k(f"{self.accumulator(node)} += {self.lost[node]}")

    @contextmanager
    def one_block(self, long):
        """Surround the loop over the elements of a block."""
        wholes = {node: self.accumulator(node) for node in long}
        self.partial = {node: self.place_of(node, 1) for node in long}
        partial = self.partial
        with self.columns():
            self.zero(partial)
        yield
        self.partial = {}
        with self.columns():
            for node, whole in wholes.items():
                text = f"{self.lost[node]} += lost({whole}, {partial[node]})"
                self.k(self.k.translate(text, node.specs[0].dtype))
                self.k(f"{whole} += {partial[node]}")

    def zero(self, sums):
        """Initialize sums to zero."""
        for node, name in sums.items():
            self.k(f"{name} = {self.k.translate('T(0)', node.specs[0].dtype)}")

    def place_of(self, node, i):
        """Return the location of a sum's rounding error (i = 0) or partial sum (i = 1)."""
        if not self.across or self.in_registers:
            return self.k.name(("lost", "part")[i])
        return self.in_work(len(self.rows.slots) + 2 * self.rows.blocks.index(node) + i)

    def columns(self):
        """Loop over the rows that are computed together: here one."""
        return nullcontext()

    # -- passes
    def of_pass(self, depth):
        """Return the reductions of a pass, and the elements that it stores."""
        sums = [n for n in self.stats if n.op.reduce and self.rows.depth[n] == depth + 1]
        elements = [n for n in self.nodes if n not in self.stats and self.rows.depth[n] == depth]
        return sums, [n for n in elements if self.is_kept(n)]

    def write_elements(self, needed, sums, outs):
        """Write the loop of a pass over the row."""
        with self.elements([n for n in sums if n in self.rows.blocks]):
            values = dict(self.known)
            self.k.scalars(needed, values, f"({self.flat(None)})", self.read)
            for node in sums:
                self.add(node, self.operand(values, node.inputs[0], node))
            for node in outs:  # last: the saved values there have been loaded
                self.k(f"{self.waits_at(node)} = {values[node, 0]}")

    # -- one reduction
    def start(self, node):
        """Return the initial value of a reduction's accumulator."""
        start = node.op.reduce.start
        text = self.k.translate(f"T({start})" if start in RANKS else start, node.specs[0].dtype)
        if self.in_registers:
            self.known[node] = self.k.name("acc")
        with self.k.of(node):
            self.k(f"{self.accumulator(node)} = {self.ranked(node, text)}")

    def accumulator(self, node):
        """Where a reduction adds up."""
        return self.partial.get(node) or self.known[node]

    def ranked(self, node, text):
        """Return the source of what is accumulated for an element."""
        return text

    def add(self, node, value):
        """Accumulate one element."""
        acc, x = self.accumulator(node), self.ranked(node, value)
        with self.k.of(node):
            if not x.isidentifier():
                x = self.k.name("x")
                self.k(f"{x} = {self.ranked(node, value)}")
            text = self.combined(node, acc, x)
            self.k(f"{acc} = {self.k.translate(text, node.specs[0].dtype)}")

    def combined(self, node, acc, x):
        """Return the source of an accumulator updated with one element."""
        return node.op.reduce.combine.format(a=x, acc=acc)

    def per_row(self, node, values):
        """Compute the value per row of a node into `values`."""
        if node.op.reduce:
            values[node, 0] = self.finished(node)
        elif node.op.view:
            values[node, 0] = self.operand(values, node.inputs[0], node)
        else:
            self.k.scalars([node], values, f"({self.flat(node)})", self.read)

    def kept_of(self, node, acc):
        """Return the name of a result, converted from the 64-bit accumulator of integers."""
        dtype = node.specs[0].dtype
        if dtype.kind in "iub":
            acc = self.k.translate(f"T({acc})", dtype)
        if acc.isidentifier():
            return acc
        name = self.k.name("v")
        self.k(f"{name} = {acc}")
        return name


class RowLoops(RowWriter):
    """Writes a kernel of reductions over the axes of one domain."""

    @property
    def in_registers(self):
        """Whether rows are computed one at a time."""
        return not self.across

    def write(self):
        """Write loops over the kept axes, and inside, the passes over a row or a tile of rows."""
        k, kept = self.k, self.kept
        k.scalars(filter(is_literal, self.nodes), self.known, "", None)
        whole = any(n.op.reduce or not (n in self.stats or is_literal(n)) for n in self.nodes)
        lengths = self.shape if whole else [self.shape[i] for i in kept]
        work = math.prod(lengths) * k.effort
        self.last = kept.pop() if self.across else None
        ranges = [(f"k{i}", self.shape[i]) for i in kept if self.shape[i] != 1]
        first = k.share(*ranges[0], work=work) if ranges else nullcontext()
        with first, k.loops(ranges[1:]), self.tiles(work):
            for depth in range(max(self.rows.depth.values()) + 1):
                self.write_stats(depth)
                self.write_pass(depth)

    def waits_at(self, node):
        """Return where a value is saved for later passes: in `work` or in an output."""
        out = self.rows.shared.get(node, node), 0
        if out in self.k.outs:
            return f"{self.k.outs[out]}[{self.flat(node)}]"
        n, tile = self.frame.n, self.rows.tile
        if node in self.stats:
            return self.in_work(self.rows.slots.index(node))
        inside = iter(row_major(self.n_gone))
        at = self.place(
            self.rows.saved.index(node) * n,
            [next(inside) if i in self.gone else 0 for i in range(len(self.shape))],
        )
        if self.across:
            at = f"({at}) * {tile}" if " " in at else f"{at} * {tile}"
        return f"work[{at} + {self.column}]" if self.across else f"work[{at}]"

    def in_work(self, slot):
        """Return the location of a value per row of a tile, after the saved elements."""
        at = (len(self.rows.saved) * self.frame.n + slot) * self.rows.tile
        return f"work[{f'{at} + ' * (at > 0)}{self.column}]"

    # -- loops
    @contextmanager
    def tiles(self, work):
        """Open a loop over tiles of the last axis, if rows are interleaved."""
        n, tile = self.across and self.shape[self.last], self.rows.tile
        self.column, self.ends = f"k{self.last}", f"{n}"
        if n <= tile and not isinstance(n, Length):
            yield
            return
        self.column, self.ends = f"k{self.last} - c", f"c, min(c + {tile}, {n})"
        with self.k.share("c", n, 0, tile, work):
            yield

    def columns(self):
        """Open a loop over the tile, if there is one."""
        return (
            self.k.block(f"for k{self.last} in range({self.ends}):")
            if self.across
            else nullcontext()
        )

    def write_stats(self, depth):
        """Write the values per row that are known after `depth` passes."""
        nodes = [n for n in self.stats if self.rows.depth[n] == depth]
        if self.across and all(n.op.reduce for n in nodes):
            return  # their sums stay in the accumulators
        with self.columns():
            values = dict(self.known)
            for node in nodes:
                self.per_row(node, values)
                waits = (node, 0) in self.k.outs or node in self.rows.slots
                if waits and not (node.op.reduce and self.across):  # it is in place
                    self.k(f"{self.waits_at(node)} = {values[node, 0]}")
                if not self.across:
                    self.known[node, 0] = values[node, 0]

    def write_pass(self, depth):
        """Write one loop over the row, which stores elements and accumulates reductions."""
        sums, outs = self.of_pass(depth)
        if not sums and not outs:
            return
        needed = self.needed({n.inputs[0][0] for n in sums} | set(outs), depth)
        self.read_once([*needed, *sums])
        with self.columns() if sums else nullcontext():
            for node in sums:
                self.start(node)
        self.write_elements(needed, sums, outs)

    @contextmanager
    def elements(self, long):
        """Open the loops over the row; for long sums, over its blocks and within them."""
        k, ranges = self.k, [(f"k{i}", self.shape[i]) for i in sorted(self.gone)]
        if not long:
            with k.loops(ranges), self.columns():
                yield
            return
        axis, step = cut(self.n_gone, self.frame.block)
        name, stop = ranges[axis]
        exact = stop % step == 0 and not isinstance(stop, Length)
        end = f"b + {step}" if exact else f"min(b + {step}, {stop})"
        with (
            self.in_blocks(long),
            k.loops(ranges[:axis]),
            k.block(f"for b in range(0, {stop}, {step}):"),
            self.one_block(long),
        ):
            with (
                k.block(f"for {name} in range(b, {end}):"),
                k.loops(ranges[axis + 1 :]),
                self.columns(),
            ):
                yield

    def is_kept(self, node):
        """Whether an element of the row is written to memory."""
        rows = self.rows
        return super().is_kept(node) or node in rows.shared or node in rows.saved

    # -- one reduction
    def accumulator(self, node):
        """Return a reduction's accumulator: a scalar, or an element per row of a tile."""
        return (
            super().accumulator(node)
            if not self.across
            else self.partial.get(node) or self.waits_at(node)
        )

    def combined(self, node, acc, x):
        """Return the update; it is reassociable if the row is contiguous."""
        return (
            f"{node.op.reduce.free}({acc}, {x})"
            if self.is_free(node)
            else super().combined(node, acc, x)
        )

    def is_free(self, node):
        """Return whether the compiler may reassociate the reduction."""
        return node.op.reduce.free and node.specs[0].dtype.kind == "f" and not self.across

    def ranked(self, node, text):
        """Return a float as its rank, for maxima and minima."""
        rank = RANKS.get(node.op.reduce.start)
        float_ = node.specs[0].dtype.kind == "f"
        return f"{rank}({text})" if rank and float_ and not self.across else text

    def finished(self, node):
        """Return the name of a reduction's result."""
        acc = self.accumulator(node)
        if self.ranked(node, acc) != acc:
            acc = f"unrank({acc})"
        elif self.is_free(node):  # accumulated in double precision in C
            acc = self.k.translate(f"T({acc})", node.specs[0].dtype)
        return self.kept_of(node, acc)


PIECES = 13  # more than the compiler fully unrolls (UNROLL in codegen/cpu/compiler.py)


def cut(lengths, most):
    """Choose which loop of a nest to split, and the chunk size, so that a chunk has at
    most `most` iterations in total.

    Around other loops there are at least `PIECES` chunks: with fewer, the compiler would
    fully unroll both loops, and take a minute for some sums.

    >>> cut((10, 100, 30), 128), cut((5, 1000), 128), cut((7, 200), 7)
    ((1, 4), (1, 128), (1, 7))
    >>> cut((64, 81), 1024)
    (0, 5)
    """
    inner = 1
    for axis in reversed(range(len(lengths))):
        is_open = isinstance(lengths[axis], Length)  # then the same split for all lengths
        if is_open or inner * lengths[axis] > most:
            turns = most // inner
            if inner > 1 and not is_open:
                turns = min(turns, -(-lengths[axis] // PIECES))
            return axis, max(turns, 1)
        inner *= lengths[axis]
    return None


def joined(shape, gone, reads):
    """Collapse axes of a domain, reduced ones never with others.

    Returns: (lengths, the reduced axes, key -> (offset, strides)).
    """
    strides = [steps for _, steps in reads.values()]
    axes = joined_axes(shape, strides, [i in gone for i in range(len(shape))])
    reads = {
        key: (offset, tuple(steps[k] for _, steps, _ in axes))
        for k, (key, (offset, _)) in enumerate(reads.items())
    }
    return tuple(n for n, *_ in axes), {i for i, (*_, gone) in enumerate(axes) if gone}, reads


def joined_axes(shape, strides, marks=None):
    """Collapse adjacent axes of equal marks where all strides allow it; drop those of length 1.

    Returns: (length, its strides, mark) of each axis.

    >>> joined_axes((2, 3, 4), [(12, 4, 1), (0, 4, 1)])
    [(2, (12, 0), None), (12, (1, 1), None)]
    """
    axes = []
    for i, n in enumerate(shape):
        steps, mark = tuple(s[i] for s in strides), marks and marks[i]
        if (
            axes
            and axes[-1][2] == mark
            and all(a == b * n for a, b in zip(axes[-1][1], steps, strict=True))
        ):
            axes[-1] = axes[-1][0] * n, steps, mark
        elif n != 1:
            axes.append((n, steps, mark))
    return axes
