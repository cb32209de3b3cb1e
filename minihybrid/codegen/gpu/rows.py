"""Chapter 26. Reductions on the GPU: threads share a row, and meet in shared memory.

Takes:   a kernel to write into, and what `minihybrid.passes.reduction_schedule` says of its nodes.
Gives:   `GpuRows`, the passes over a row, each by all the row's threads at once.

In a pass each thread takes every T-th element of its row: neighbouring threads read
neighbours. Then T partial results are added in a tree: half of the threads add the
other half's, then a quarter, until one is left, and a barrier after each level. What is
an element of the row is computed again in each pass that reads it; only its inputs lie
in memory. Where rows are few and long, several blocks share a row, and each pass ends
its kernel: the next one adds up the partial results of all blocks, always in one order.
What is left out: sums by instructions of a warp, which need no shared memory.
"""

from contextlib import contextmanager

from minihybrid.codegen.gpu.block_shape import reductions, team_of
from minihybrid.codegen.rows import RowWriter
from minihybrid.passes.reduction_schedule import is_literal, size_of

BLOCK = 128  # floats that a thread adds up before the sum is added to that of others
SUMS = 4  # results that go through a tree together, for lack of shared memory


class GpuRows(RowWriter):
    """Writes the kernels of reductions along the axes of one frame."""

    @staticmethod
    def scratch_of(rows):
        """How many partial results wait in global memory, and their dtype."""
        team, n_rows = team_of(rows), size_of(rows.frame.kept)
        n = len(reductions(rows)) * team.parts * n_rows
        return (n, rows.dtype) if team.parts > 1 else (0, None)

    def write(self):
        """One kernel with all passes; or one for each, if several blocks share a row.

        Then each begins with what the passes before it have found.
        """
        self.team, self.n_rows = team_of(self.rows), size_of(self.frame.kept)
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

    def of_pass(self, depth):
        """The reductions of a pass, and the elements of rows that it writes."""
        rows = self.rows
        return (
            [n for n in reductions(rows) if rows.depth[n] == depth + 1],
            [
                n
                for n in self.nodes
                if n not in self.stats and rows.depth[n] == depth and self.is_kept(n)
            ],
        )

    def live(self, depth, sums, outs):
        """The nodes that the kernel of one pass alone needs."""
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
        """One launch: the row of each thread, and its place among the row's threads.

        live:    the nodes to be computed.
        """
        k, (along, rows) = self.k, (self.team.along, self.team.rows)
        self.live_nodes, self.parts, self.known = live, parts, {}
        self.arrays, self.n_trees = {}, 0  # in shared memory
        aside = self.across or along == 1  # the rows are neighbours
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
        """The places along several axes, of a number that counts through all."""
        inner = size_of([self.shape[i] for i in axes])
        for i in axes if len(axes) > 1 else ():
            inner //= self.shape[i]
            place = f"{flat} // {inner}" if inner > 1 else flat
            self.k(f"k{i} = {place}" + (f" % {self.shape[i]}" if i != axes[0] else ""))

    @contextmanager
    def only(self, *conditions):
        """What threads do that meet all conditions; none is always met."""
        if not conditions:
            yield
            return
        with self.k.block(f"if {' and '.join(conditions)}:"):
            yield

    def present(self, here):
        """What threads do whose row is there: the last block may have some without.

        here:    whether it is asked here: around each pass, for all threads have to
                 meet between them; or once, where each thread has a row of its own.
        """
        ragged = self.n_rows % self.team.rows > 0
        return self.only(*[f"{self.row} < {self.n_rows}"] * (here and ragged))

    def one_thread(self):
        """What one thread does for the whole row."""
        return self.only(*["part == 0"] * (self.parts > 1), *["t == 0"] * (self.team.along > 1))

    # -- passes
    def write_pass(self, depth, sums, outs):
        """Numbers of the row; then its elements that are wanted, and sums of them."""
        needed = self.needed({n.inputs[0][0] for n in sums} | set(outs), depth)
        with self.to_meet(sums):
            self.write_stats(depth, ends=True)
            if not sums and not outs:
                return
            self.read_once([*needed, *sums])
            with self.elements(sums):
                values = dict(self.known)
                self.k.scalars(needed, values, f"({self.flat(None)})", self.read)
                for node in sums:
                    self.add(node, self.operand(values, node.inputs[0], node))
                for node in outs:
                    self.k(f"{self.waits_at(node)} = {values[node, 0]}")

    def write_stats(self, depth, ends):
        """What is one number of the row, once so many passes are done.

        ends:    whether this is the kernel that writes those of them that are outputs.
        """
        nodes = [n for n in self.stats if self.rows.depth[n] == depth and n in self.live_nodes]
        for node in nodes:
            if node.op.reduce:
                self.known[node, 0] = self.kept_of(node, self.known[node])
                continue
            self.read_once([node])
            values = dict(self.known)
            if node.op.view:
                values[node, 0] = self.operand(values, node.inputs[0], node)
            else:
                self.k.scalars([node], values, f"({self.flat(node)})", self.read)
            self.known[node, 0] = values[node, 0]
        with self.one_thread():
            for node in nodes:
                if ends and (node, 0) in self.k.outs:
                    self.k(f"{self.waits_at(node)} = {self.known[node, 0]}")

    def waits_at(self, node):
        """The text of a value's place in an output."""
        return f"{self.k.outs[node, 0]}[{self.flat(node)}]"

    @contextmanager
    def elements(self, sums):
        """A loop of each thread over its elements of the row; over many, in blocks."""
        k, gone, along = self.k, sorted(self.gone), self.team.along
        if along == 1:
            with k.loops([(f"k{i}", self.shape[i]) for i in gone]):
                yield
            return
        start, step = "t", along * self.parts
        if self.parts > 1:
            start = f"part * {along} + t"
        if len(gone) == 1:
            with self.blocks_of(f"k{gone[0]}", start, step, sums):
                yield
            return
        k(f"j = {start}")
        self.split("j", gone)
        with self.blocks_of("j", "j", step, sums):
            yield
            self.advance(gone, step)

    @contextmanager
    def blocks_of(self, name, start, step, sums):
        """The loop; where a thread has many elements, one in another."""
        n = self.frame.n
        long = [node for node in sums if node in self.rows.blocks]
        if not long or n <= BLOCK * step:
            with self.strides(name, start, n, step):
                yield
            return
        if name != start:
            self.k(f"{name} = {start}")
        with self.in_blocks(long), self.k.block(f"while {name} < {n}:"), self.one_block(long):
            self.k(f"stop = min({name} + {BLOCK * step}, {n})")
            with self.strides(name, name, "stop", step):
                yield

    @contextmanager
    def strides(self, name, start, stop, step):
        """A loop; Numba's `range` with a step takes several times the instructions."""
        if name != start:
            self.k(f"{name} = {start}")
        with self.k.block(f"while {name} < {stop}:"):
            yield
            self.k(f"{name} += {step}")

    def advance(self, axes, step):
        """Go on by so many elements, like a mileage counter: divisions take long."""
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

    # -- results of threads, and of blocks
    @contextmanager
    def to_meet(self, sums):
        """Each thread sums up by itself; then all of a row get the results of all."""
        for node in sums:
            self.start(node)
        with self.present(self.team.along > 1):
            yield
        if self.team.along > 1:
            for at in range(0, len(sums), SUMS):
                self.tree(sums[at : at + SUMS])

    def tree(self, sums):
        """Add up the partial results of a row's threads, in shared memory."""
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
        """The name of an array in shared memory, of one number a thread.

        Trees take turns with two sets of arrays: who is late still reads the result of
        one tree while others begin the next.
        """
        which = self.n_trees % 2, i, dtype
        if which not in self.arrays:
            self.arrays[which] = f"s{len(self.arrays)}"
            size = self.team.along * self.team.rows
            self.k.shared(self.arrays[which], size, dtype)
        return self.arrays[which]

    def part_at(self, node, part):
        """The text of the place where a block's result of a row waits."""
        parts, n_rows = self.team.parts, self.n_rows
        before = reductions(self.rows).index(node) * parts * n_rows
        terms = [f"{before}"] * bool(before)
        terms += [part] if n_rows == 1 else [f"{part} * {n_rows}", self.row]
        return f"work[{' + '.join(terms)}]"

    def keep_parts(self, sums):
        """Write a block's results of a pass, for the kernels that follow."""
        with self.present(True), self.only("t == 0"):
            for node in sums:
                self.k(f"{self.part_at(node, 'part')} = {self.known[node]}")

    def add_parts(self, depth, sums):
        """Add up the results of all blocks that a row's earlier pass has left."""
        with self.to_meet(sums):
            self.write_stats(depth, ends=False)
            if sums:
                with self.strides("i", "t", self.team.parts, self.team.along):
                    for node in sums:
                        self.add(node, self.part_at(node, "i"))
