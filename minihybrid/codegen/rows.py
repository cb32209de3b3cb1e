"""The loops of reductions: a row at a time, in as few passes as it takes.

Takes:   a kernel to write into, and what `minihybrid.passes.reduction_schedule` says of its nodes.
Gives:   `RowLoops`, loops over rows; inside, one loop over the row for each pass.
         `RowWriter`, what is the same where threads of a GPU share the rows.

Where a row lies in one piece, its numbers are scalars, and the compiler splits each sum
over several registers. Where neighbours lie in different rows, a tile of rows is
computed at once: its numbers wait in `work`, and the inner loop goes over the tile.
What is left out: rows longer than the cache, which are read from memory in each pass.
"""

import math
from contextlib import contextmanager, nullcontext

from minihybrid.core.lengths import Length
from minihybrid.ops.shapes import row_major
from minihybrid.passes.reduction_schedule import is_literal

# A float's rank is a whole number, NaN's beyond all others: comparing ranks keeps NaN
# as NumPy does, and the compiler can take the largest of several registers at once.
RANKS = {"LOWEST": "rank_up", "HIGHEST": "rank_down"}


class RowWriter:
    """Knows where each number of a row lies, and writes the steps of reductions."""

    in_registers = True  # what is one number of a row

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
        self.known = {}  # literals, and what is one number of the row -> name
        self.partial = {}  # reduction -> where the sum of a block is, inside of it
        self.write()

    # -- places
    def place(self, offset, steps):
        """The text of a place: an offset, and steps along the loops."""
        terms = [
            f"k{i}" + (f" * {s}" if s != 1 else "")
            for i, s in enumerate(steps)
            if s and self.shape[i] != 1
        ]
        return " + ".join(([str(offset)] if offset else []) + terms) or "0"

    def flat(self, node):
        """The text of a value's own place in memory."""
        return (
            self.place(*self.steps[node])
            if node in self.stats
            else self.place(0, row_major(self.shape))
        )

    def read(self, ref, node):
        """The text of a read: from memory, or of what waits for this pass."""
        if ref in self.known:
            return self.known[ref]
        if ref not in self.k.ins:
            return self.waits_at(ref[0])
        text = f"{self.k.ins[ref]}[{self.place(*self.steps[ref, node])}]"
        return self.known.get(text, text)

    def operand(self, values, ref, node):
        """The name of what has been computed or read; else the text of the read."""
        text = values.get(ref) or self.read(ref, node)
        return values.get(text, text)

    def is_kept(self, node):
        """Whether an element of the row is written to memory."""
        return (node, 0) in self.k.outs

    def waits(self, node, depth):
        """Whether a pass reads an element that an earlier one has written."""
        return self.rows.depth[node] < depth and node in self.rows.waiting and self.is_kept(node)

    def needed(self, wanted, depth):
        """The nodes to compute in a pass; what waits is not computed again."""
        nodes = []
        for node in reversed(self.nodes):
            if node in wanted and not (
                node in self.stats or is_literal(node) or self.waits(node, depth)
            ):
                nodes.insert(0, node)
                wanted = wanted | {n for n, _ in node.inputs}
        return nodes

    def read_once(self, nodes):
        """Read what is the same for the whole row before the loop over it."""
        for node in nodes:
            for ref in node.inputs:
                if self.in_registers and ref in self.k.ins:
                    offset, steps = self.steps[ref, node]
                    text = f"{self.k.ins[ref]}[{self.place(offset, steps)}]"
                    if not any(steps[i] for i in self.gone) and text not in self.known:
                        name = self.k.name("v")
                        self.k(f"{name} = {text}")
                        self.known[text] = name

    # -- sums of many numbers: the sum of a block is added to that of the row, and what
    # rounding loses there is added up beside
    @contextmanager
    def in_blocks(self, long):
        """Around the loop over blocks."""
        self.lost = {node: self.place_of(node, 0) for node in long}
        with self.columns():
            self.zero(self.lost)
        yield
        with self.columns():
            for node in long:
                self.k(f"{self.accumulator(node)} += {self.lost[node]}")

    @contextmanager
    def one_block(self, long):
        """Around the loop over the numbers of a block."""
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
        """Begin to add up."""
        for node, name in sums.items():
            self.k(f"{name} = {self.k.translate('T(0)', node.specs[0].dtype)}")

    def place_of(self, node, i):
        """Where what is lost of a sum is, or the sum of a block: i is 0 or 1."""
        if not self.across or self.in_registers:
            return self.k.name(("lost", "part")[i])
        return self.in_work(len(self.rows.slots) + 2 * self.rows.blocks.index(node) + i)

    def columns(self):
        """The rows that are computed at once: here one."""
        return nullcontext()

    # -- one reduction
    def start(self, node):
        """The first value of a reduction's accumulator."""
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
        """What is compared or added up of an element."""
        return text

    def add(self, node, value):
        """One element more."""
        acc, x = self.accumulator(node), self.ranked(node, value)
        with self.k.of(node):
            if not x.isidentifier():
                x = self.k.name("x")
                self.k(f"{x} = {self.ranked(node, value)}")
            text = self.combined(node, acc, x)
            self.k(f"{acc} = {self.k.translate(text, node.specs[0].dtype)}")

    def combined(self, node, acc, x):
        """The text of a reduction's result so far, with one element more."""
        return node.op.reduce.combine.format(a=x, acc=acc)

    def kept_of(self, node, acc):
        """The name of a result: whole numbers are added up in 64 bits."""
        dtype = node.specs[0].dtype
        if dtype.kind in "iub":
            acc = self.k.translate(f"T({acc})", dtype)
        if acc.isidentifier():
            return acc
        name = self.k.name("v")
        self.k(f"{name} = {acc}")
        return name


class RowLoops(RowWriter):
    """Writes the kernel of reductions along the axes of one frame."""

    @property
    def in_registers(self):
        """Whether there is one row at a time."""
        return not self.across

    def write(self):
        """Kept axes outside; then the passes over a row, or over a tile of rows."""
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
        """Where in `work` or in an output a value waits for later passes."""
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
        """A number for each row of a tile, behind the elements that wait."""
        at = (len(self.rows.saved) * self.frame.n + slot) * self.rows.tile
        return f"work[{f'{at} + ' * (at > 0)}{self.column}]"

    # -- loops
    @contextmanager
    def tiles(self, work):
        """A loop over tiles of the last axis, if rows lie across."""
        n, tile = self.across and self.shape[self.last], self.rows.tile
        self.column, self.ends = f"k{self.last}", f"{n}"
        if n <= tile and not isinstance(n, Length):
            yield
            return
        self.column, self.ends = f"k{self.last} - c", f"c, min(c + {tile}, {n})"
        with self.k.share("c", n, 0, tile, work):
            yield

    def columns(self):
        """A loop over the tile, or nothing."""
        return (
            self.k.block(f"for k{self.last} in range({self.ends}):")
            if self.across
            else nullcontext()
        )

    def write_stats(self, depth):
        """What is one number of the row, once so many passes are done."""
        nodes = [n for n in self.stats if self.rows.depth[n] == depth]
        if self.across and all(n.op.reduce for n in nodes):
            return  # their sums wait where they were added up
        with self.columns():
            values = dict(self.known)
            for node in nodes:
                if node.op.reduce:
                    values[node, 0] = self.finished(node)
                elif node.op.view:
                    values[node, 0] = self.operand(values, node.inputs[0], node)
                else:
                    self.k.scalars([node], values, f"({self.flat(node)})", self.read)
                waits = (node, 0) in self.k.outs or node in self.rows.slots
                if waits and not (node.op.reduce and self.across):  # it is there
                    self.k(f"{self.waits_at(node)} = {values[node, 0]}")
                if not self.across:
                    self.known[node, 0] = values[node, 0]

    def write_pass(self, depth):
        """One loop over the row: elements that are wanted, and sums of elements."""
        rows = self.rows
        sums = [n for n in self.stats if n.op.reduce and rows.depth[n] == depth + 1]
        outs = [
            n
            for n in self.nodes
            if n not in self.stats and rows.depth[n] == depth and self.is_kept(n)
        ]
        if not sums and not outs:
            return
        needed = self.needed({n.inputs[0][0] for n in sums} | set(outs), depth)
        self.read_once([*needed, *sums])
        with self.columns() if sums else nullcontext():
            for node in sums:
                self.start(node)
        with self.elements([n for n in sums if n in rows.blocks]):
            values = dict(self.known)
            self.k.scalars(needed, values, f"({self.flat(None)})", self.read)
            for node in sums:
                self.add(node, self.operand(values, node.inputs[0], node))
            for node in outs:  # last: what has waited there is read
                self.k(f"{self.waits_at(node)} = {values[node, 0]}")

    @contextmanager
    def elements(self, long):
        """The loops over the row; where sums are long, over its blocks, and over each."""
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
        """Where a reduction adds up: a scalar, or one number for each row of a tile."""
        return (
            super().accumulator(node)
            if not self.across
            else self.partial.get(node) or self.waits_at(node)
        )

    def combined(self, node, acc, x):
        """In any order, where the compiler chooses how a row in one piece is cut."""
        return (
            f"{node.op.reduce.free}({acc}, {x})"
            if self.is_free(node)
            else super().combined(node, acc, x)
        )

    def is_free(self, node):
        """Whether the compiler may choose the order of a row's numbers."""
        return node.op.reduce.free and node.specs[0].dtype.kind == "f" and not self.across

    def ranked(self, node, text):
        """A float whose largest or smallest is wanted, as a number that compares."""
        rank = RANKS.get(node.op.reduce.start)
        float_ = node.specs[0].dtype.kind == "f"
        return f"{rank}({text})" if rank and float_ and not self.across else text

    def finished(self, node):
        """The name of a reduction's result."""
        acc = self.accumulator(node)
        if self.ranked(node, acc) != acc:
            acc = f"unrank({acc})"
        elif self.is_free(node):  # in C it has more digits
            acc = self.k.translate(f"T({acc})", node.specs[0].dtype)
        return self.kept_of(node, acc)


PIECES = 13  # more than the compiler writes out (UNROLL in codegen/cpu/compiler.py)


def cut(lengths, most):
    """Which of some loops, one in another, to cut into pieces, and of how many turns,
    so that a piece has no more turns in all than `most`.

    Around other loops there are `PIECES` or more: of fewer, each with fewer turns, the
    compiler would write out every turn of both, and take a minute over some sums.

    >>> cut((10, 100, 30), 128), cut((5, 1000), 128), cut((7, 200), 7)
    ((1, 4), (1, 128), (1, 7))
    >>> cut((64, 81), 1024)
    (0, 5)
    """
    inner = 1
    for axis in reversed(range(len(lengths))):
        is_open = isinstance(lengths[axis], Length)  # then the same cut for all lengths
        if is_open or inner * lengths[axis] > most:
            turns = most // inner
            if inner > 1 and not is_open:
                turns = min(turns, -(-lengths[axis] // PIECES))
            return axis, max(turns, 1)
        inner *= lengths[axis]
    return None


def joined(shape, gone, reads):
    """The same for fewer, longer axes: neighbours that every read takes as one.

    gone:    the axes that are reduced; they do not join those that are kept.
    """
    axes = []  # [length, whether it is reduced, the step of each read]
    for i, n in enumerate(shape):
        steps = [strides[i] for _, strides in reads.values()]
        if (
            axes
            and axes[-1][1] == (i in gone)
            and all(a == b * n for a, b in zip(axes[-1][2], steps, strict=True))
        ):
            axes[-1] = [axes[-1][0] * n, i in gone, steps]
        elif n != 1:
            axes.append([n, i in gone, steps])
    shape = tuple(n for n, _, _ in axes)
    reads = {
        key: (offset, tuple(steps[k] for _, _, steps in axes))
        for k, (key, (offset, _)) in enumerate(reads.items())
    }
    return shape, {i for i, (_, reduced, _) in enumerate(axes) if reduced}, reads
