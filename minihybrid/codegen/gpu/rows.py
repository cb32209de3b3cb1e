"""Chapter 26. Reductions on the GPU: threads share a row, with a tree in shared memory.

Defines: `GpuRows`, the passes of a `ReductionSchedule`, each executed by all threads of a
         row.

In a pass, each of T threads takes every T-th element of its row, so that loads are
coalesced. Then T partial results are reduced in a tree: half of the threads add the other
half's results, then a quarter, and so on, with a barrier after each level. Elements of a
row are recomputed in each pass that uses them; only their inputs are in memory. A few long
rows are split over several blocks, and each pass ends its kernel: the next kernel combines
all blocks' partial results in a fixed order.
Not supported: warp shuffles, which would need no shared memory.
"""

import math
from contextlib import contextmanager

from minihybrid.codegen.gpu.block_shape import reductions, team_of
from minihybrid.codegen.rows import RowWriter
from minihybrid.passes.reduction_schedule import is_literal

PARTIAL = 128  # floats per partial sum of a thread
SUMS = 4  # results reduced together, limited by shared memory


class GpuRows(RowWriter):
    """Writes kernels of reductions over the axes of one domain."""

    @staticmethod
    def scratch_of(rows):
        """Return (number, dtype) of the partial results in global memory."""
        team, n_rows = team_of(rows), math.prod(rows.frame.kept)
        n = len(reductions(rows)) * team.parts * n_rows
        return (n, rows.dtype) if team.parts > 1 else (0, None)

    def write(self):
        """Write one kernel with all passes, or one per pass if several blocks share a row.

        In that case, each first combines the results of earlier passes.
        """
        self.team, self.n_rows = team_of(self.rows), math.prod(self.frame.kept)
        depths = range(max(self.rows.depth.values()) + 1)
        if self.team.parts == 1:
            with self.kernel(self.nodes, 1):
                for depth in depths:
                    self.write_pass(depth, *self.of_pass(depth))
            return
        for depth in depths:
            sums, outs = self.of_pass(depth)
            live = self.live(depth, sums, outs)
            with self.kernel(live, self.team.parts if sums or outs else 1):
                for before in range(depth):
                    self.add_parts(before, [n for n in self.of_pass(before)[0] if n in live])
                self.write_pass(depth, sums, outs)
                self.keep_parts(sums)
            self.k.then()

    def live(self, depth, sums, outs):
        """Return the nodes that the kernel of a pass needs."""
        live = (
            {n.inputs[0][0] for n in sums}
            | set(outs)
            | {n for n in self.stats if self.rows.depth[n] == depth and (n, 0) in self.k.outs}
        )
        for node in reversed(self.nodes):
            if node in live and not node.op.reduce and not self.waits(node, depth):
                live |= {n for n, _ in node.inputs}
        return [n for n in self.nodes if n in live]

    # -- threads
    @contextmanager
    def kernel(self, live, parts):
        """Begin a kernel: compute each thread's row, and its index among the row's threads.

        live:    the nodes to compute.
        """
        k, (along, rows) = self.k, (self.team.along, self.team.rows)
        self.live_nodes, self.parts, self.known = live, parts, {}
        self.arrays, self.n_trees = {}, 0  # in shared memory
        aside = self.across or along == 1  # neighboring threads have different rows
        k.threads((-(-self.n_rows // rows), parts), (rows, along) if aside else (along, rows))
        r, t = "xy" if aside else "yx"
        if along > 1:
            k(f"t = cuda.threadIdx.{t}")
        self.me, self.first = "t", "0"
        if along > 1 and rows > 1:
            self.me = "me"
            self.first = f"cuda.threadIdx.{r}" + ("" if aside else f" * {along}")
            k(
                "me = "
                + (
                    f"t * {rows} + cuda.threadIdx.{r}"
                    if aside
                    else f"cuda.threadIdx.{r} * {along} + t"
                )
            )
        self.row = "0"
        if self.kept:
            self.row = f"k{self.kept[0]}" if len(self.kept) == 1 else "row"
            k(
                f"{self.row} = cuda.blockIdx.x"
                + (f" * {rows} + cuda.threadIdx.{r}" if rows > 1 else "")
            )
            self.split(self.row, self.kept)
        if parts > 1:
            k("part = cuda.blockIdx.y")
        with self.present(along == 1):
            k.scalars(filter(is_literal, live), self.known, "", None)
            yield

    def split(self, flat, axes):
        """Split a flat index into indices along several axes."""
        inner = math.prod([self.shape[i] for i in axes])
        for i in axes if len(axes) > 1 else ():
            inner //= self.shape[i]
            place = f"{flat} // {inner}" if inner > 1 else flat
            self.k(f"k{i} = {place}" + (f" % {self.shape[i]}" if i != axes[0] else ""))

    @contextmanager
    def only(self, *conditions):
        """Open a block for threads that meet all conditions, if there are any."""
        if not conditions:
            yield
            return
        with self.k.block(f"if {' and '.join(conditions)}:"):
            yield

    def present(self, here):
        """Open a block for threads whose row exists; the last block may have others.

        here:    whether to test here: around each pass, because all threads must reach the
                 barriers in between; or once, if each thread has a whole row.
        """
        ragged = self.n_rows % self.team.rows > 0
        return self.only(*[f"{self.row} < {self.n_rows}"] * (here and ragged))

    def one_thread(self):
        """Open a block for the row's first thread."""
        return self.only(*["part == 0"] * (self.parts > 1), *["t == 0"] * (self.team.along > 1))

    # -- passes
    def write_pass(self, depth, sums, outs):
        """Write the values per row, then the loop that stores elements and accumulates."""
        needed = self.needed({n.inputs[0][0] for n in sums} | set(outs), depth)
        with self.to_meet(sums):
            self.write_stats(depth, ends=True)
            if not sums and not outs:
                return
            self.read_once([*needed, *sums])
            self.write_elements(needed, sums, outs)

    def write_stats(self, depth, ends):
        """Write the values per row that are known after `depth` passes.

        ends:    whether this kernel stores those that are outputs.
        """
        nodes = [n for n in self.stats if self.rows.depth[n] == depth and n in self.live_nodes]
        for node in nodes:
            if not node.op.reduce:
                self.read_once([node])
            values = dict(self.known)
            self.per_row(node, values)
            self.known[node, 0] = values[node, 0]
        with self.one_thread():
            for node in nodes:
                if ends and (node, 0) in self.k.outs:
                    self.k(f"{self.waits_at(node)} = {self.known[node, 0]}")

    def finished(self, node):
        """Return the name of a reduction's result."""
        return self.kept_of(node, self.known[node])

    def waits_at(self, node):
        """Return the source of a saved value's location in an output."""
        return f"{self.k.outs[node, 0]}[{self.flat(node)}]"

    @contextmanager
    def elements(self, long):
        """Open a thread's loop over its elements; for long sums, over its blocks."""
        k, gone, along = self.k, sorted(self.gone), self.team.along
        if along == 1:
            with k.loops([(f"k{i}", self.shape[i]) for i in gone]):
                yield
            return
        start, step = "t", along * self.parts
        if self.parts > 1:
            start = f"part * {along} + t"
        if len(gone) == 1:
            with self.blocks_of(f"k{gone[0]}", start, step, long):
                yield
            return
        k(f"j = {start}")
        self.split("j", gone)
        with self.blocks_of("j", "j", step, long):
            yield
            self.advance(gone, step)

    @contextmanager
    def blocks_of(self, name, start, step, long):
        """Open the loop, nested in a loop over blocks if a thread has many elements."""
        n = self.frame.n
        if not long or n <= PARTIAL * step:
            with self.strides(name, start, n, step):
                yield
            return
        if name != start:
            self.k(f"{name} = {start}")
        with self.in_blocks(long), self.k.block(f"while {name} < {n}:"), self.one_block(long):
            self.k(f"stop = min({name} + {PARTIAL * step}, {n})")
            with self.strides(name, name, "stop", step):
                yield

    @contextmanager
    def strides(self, name, start, stop, step):
        """Open a while loop, because Numba's `range` with a step is several times slower."""
        if name != start:
            self.k(f"{name} = {start}")
        with self.k.block(f"while {name} < {stop}:"):
            yield
            self.k(f"{name} += {step}")

    def advance(self, axes, step):
        """Advance indices by `step` with carries, because divisions are slow."""
        carries = False
        for i, before in zip(axes[:0:-1], axes[-2::-1], strict=True):
            n = self.shape[i]
            digit, step = step % n, step // n
            if digit:
                self.k(f"k{i} += {digit}")
            carries = carries or digit > 0
            if carries:
                with self.k.block(f"if k{i} >= {n}:"):
                    self.k(f"k{i} -= {n}")
                    self.k(f"k{before} += 1")
        if step:
            self.k(f"k{axes[0]} += {step}")

    # -- results of threads and of blocks
    @contextmanager
    def to_meet(self, sums):
        """Reduce the threads' partial results; all threads of the row get the total."""
        for node in sums:
            self.start(node)
        with self.present(self.team.along > 1):
            yield
        if self.team.along > 1:
            for at in range(0, len(sums), SUMS):
                self.tree(sums[at : at + SUMS])

    def tree(self, sums):
        """Reduce the partial results of a row's threads in shared memory."""
        k, (along, rows) = self.k, (self.team.along, self.team.rows)
        arrays = {n: self.shared(i, n.specs[0].dtype) for i, n in enumerate(sums)}
        self.n_trees += 1
        for node, array in arrays.items():
            k(f"{array}[{self.me}] = {self.known[node]}")
        k("cuda.syncthreads()")
        k(f"h = {along // 2}")
        with k.block("while h:"):
            with k.block("if t < h:"):
                for node, array in arrays.items():
                    step = f"h * {rows}" if self.across and rows > 1 else "h"
                    self.add(node, f"{array}[{self.me} + {step}]")
                    k(f"{array}[{self.me}] = {self.known[node]}")
            k("cuda.syncthreads()")
            k("h //= 2")
        for node, array in arrays.items():
            k(f"{self.known[node]} = {array}[{self.first}]")

    def shared(self, i, dtype):
        """Return the name of a shared array with one element per thread.

        Trees alternate between two sets of arrays, because a slow thread may still read one
        tree's result while others start the next.
        """
        which = self.n_trees % 2, i, dtype
        if which not in self.arrays:
            self.arrays[which] = f"s{len(self.arrays)}"
            size = self.team.along * self.team.rows
            self.k.shared(self.arrays[which], size, dtype)
        return self.arrays[which]

    def part_at(self, node, part):
        """Return the source of the location of a block's partial result."""
        parts, n_rows = self.team.parts, self.n_rows
        before = reductions(self.rows).index(node) * parts * n_rows
        terms = [f"{before}"] * bool(before)
        terms += [part] if n_rows == 1 else [f"{part} * {n_rows}", self.row]
        return f"work[{' + '.join(terms)}]"

    def keep_parts(self, sums):
        """Store a block's partial results for the following kernels."""
        with self.present(True), self.only("t == 0"):
            for node in sums:
                self.k(f"{self.part_at(node, 'part')} = {self.known[node]}")

    def add_parts(self, depth, sums):
        """Combine all blocks' partial results of a row's earlier pass."""
        with self.to_meet(sums):
            self.write_stats(depth, ends=False)
            if sums:
                with self.strides("i", "t", self.team.parts, self.team.along):
                    for node in sums:
                        self.add(node, self.part_at(node, "i"))
