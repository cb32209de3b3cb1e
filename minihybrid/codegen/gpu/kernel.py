"""Chapter 26. From a node to the text of GPU kernels: one turn of a loop is a thread.

Takes:   a node with known shapes, single or fused.
Gives:   `GpuKernel`: Python source of one or more kernels, as Numba compiles it for
         CUDA, and the blocks of threads that each is launched with.

The scalar expressions are those of the CPU, and so are the loops of simple operators,
whose turns do not depend on each other: where the CPU writes `for i in range(n)`, a
thread asks for its number. Products, convolutions and reductions share what they read
between the threads of a block, and have texts of their own.
What is left out: blocks chosen by trial; every length here is a rule.
"""

import textwrap
from contextlib import contextmanager
from math import prod

from minihybrid.codegen.device_math import functions
from minihybrid.codegen.gpu.block_shape import BLOCK, WARP
from minihybrid.codegen.gpu.rows import GpuRows
from minihybrid.codegen.source import Buf, Kernel, joined_axes, place, type_name
from minihybrid.core.op import Node, Spec
from minihybrid.passes.reduction_schedule import rows_of

LINE = 88  # characters
WIDE = 4  # float32 numbers that one thread can load at once,
WIDE_FROM = 2**18  # where so many elements keep all multiprocessors busy anyway


class GpuKernel(Kernel):
    """Writes the bodies of a node's kernels; templates of operators call it.

    It is the writer of CPU kernels (`minihybrid.codegen.source`), but that turns of
    `each` are threads, and `then` begins another kernel. A template that needs threads
    of its own says so by `threads`, and writes what each does.
    """

    def __init__(self, node):
        self.parts, self.launch = [], ((1, 1, 1), (1, 1, 1))
        super().__init__(node, functions)
        self.then()

    def write(self):
        """Choose the loops: over rows, of a map, or the core's own."""
        work = scratch_of(self.node)
        self.scratch = work[0].specs[0].nbytes if work else 0
        self.n_work = work[0].specs[0].size if work else 0
        if self.rows:
            return GpuRows(self, self.nodes, self.rows)
        if self.core is None:
            return self.map_loops()
        self.write_core(self.core.op.gpu or self.core.op.cpu)

    @property
    def arrays(self):
        """What the kernel takes as addresses."""
        work = [Buf("work", (self.n_work,), self.dtype)] * bool(self.scratch)
        return [*self.args, *self.outs.values(), *work]

    @property
    def numbers(self):
        """What the kernel takes as numbers, after the arrays."""
        return ["key"] * self.random

    # -- threads
    def threads(self, grid, block):
        """Launch this kernel with so many blocks of so many threads.

        grid, block:  a number, or up to three: along x, y, z.
        """
        self.launch = tuple(
            (*n, 1, 1)[:3] if isinstance(n, tuple) else (n, 1, 1) for n in (grid, block)
        )

    @contextmanager
    def each(self, *ranges, work=0):
        """Turns that are independent of each other: one thread does one of them."""
        if self.depth > 1:  # inside a thread's own loops
            with super().each(*ranges, work=work):
                yield
            return
        total = prod(stop for _, stop in ranges)
        if not total:  # no thread is needed, nor a kernel
            yield
            self.lines = []
            return
        once = [name for name, stop in ranges if stop == 1]
        ranges = [(name, stop) for name, stop in ranges if stop != 1]
        flat = ranges[0][0] if len(ranges) == 1 else "t"
        block = min(BLOCK, -(-total // WARP) * WARP)
        self.threads(-(-total // block), block)
        self(f"{flat} = cuda.blockIdx.x * {block} + cuda.threadIdx.x")
        with self.block(f"if {flat} < {total}:"):
            for name in once:
                self(f"{name} = 0")
            inner = total
            for d, (name, stop) in enumerate(ranges if len(ranges) > 1 else ()):
                inner //= stop
                text = f"t // {inner}" if inner > 1 else "t"
                self(f"{name} = {text}{f' % {stop}' * (d > 0)}")
            yield

    def then(self):
        """End a kernel; the next one, with the same arguments, begins when all its
        threads are done."""
        self.parts.append((self.lines, self.launch))
        self.lines, self.launch = [], ((1, 1, 1), (1, 1, 1))

    def shared(self, name, shape, dtype=None):
        """An array that the threads of a block share; of the kernel's dtype, if no
        other is given."""
        self(f"{name} = cuda.shared.array({shape}, {type_name(dtype or self.dtype)})")

    def texts(self, name):
        """[(text of a kernel, grid, block)] under a name, in order."""
        args = [f"{a}: {type_name(a.dtype)}[{a.size}]" for a in self.arrays]
        args += [f"{number}: uint64" for number in self.numbers]
        head = f"def {name}({', '.join(args)}):"
        if len(head) > LINE:
            head = f"def {name}(\n" + textwrap.fill(
                ", ".join(args) + "):",
                LINE,
                initial_indent=" " * 8,
                subsequent_indent=" " * 8,
                break_on_hyphens=False,
            )
        return [("\n".join([head, *lines]), *launch) for lines, launch in self.parts if lines]

    # -- loops of a map
    def map_loops(self):
        """A thread an element, or four neighbours where there are very many."""
        if self.is_wide():
            return self.wide_loops()
        super().map_loops()

    @contextmanager
    def nest(self, shape, strides):
        """As on the CPU; a thread's number is the flat index."""
        if self.depth > 1:
            with super().nest(shape, strides) as texts:
                yield texts
            return
        joined = joined_axes(shape, strides)
        names = [f"i{d}" for d in range(len(joined))] if len(joined) > 1 else ["i"]
        stops = [n for n, _, _ in joined] or [1]
        flat = "t" if len(joined) > 1 else "i"
        whole = [s for _, s, _ in joined]
        reads = [[steps[k] for _, _, steps in joined] for k in range(len(strides))]
        with self.each(*zip(names, stops, strict=True)):
            yield flat, [flat if steps == whole else place(names, steps) for steps in reads]

    def is_wide(self):
        """Whether every array is float32, and read in the order of the result, or one
        number."""
        shape = self.nodes[-1].specs[0].shape
        bufs = [*self.ins.values(), *self.outs.values()]
        size = self.nodes[-1].specs[0].size
        return (
            size >= WIDE_FROM
            and size % WIDE == 0
            and all(b.dtype.name == "float32" and (b.shape == shape or b.size == 1) for b in bufs)
            and not any(n.op.strides for n in self.nodes)
        )

    def wide_loops(self):
        """Four elements a thread: their loads, then each by itself, then one store."""
        size, lanes = self.nodes[-1].specs[0].size, range(WIDE)
        once, wide = {}, {}  # reference -> name: of one number, of four
        with self.each(("i", size // WIDE)):
            self(f"i *= {WIDE}")
            for ref, buf in self.ins.items():
                name = self.name("v")
                kept = once if buf.size == 1 else wide
                kept[ref] = name
                self(f"{name} = " + (f"{buf}[0]" if buf.size == 1 else f"load4({buf}, i)"))
            ends = {ref: [] for ref in self.outs}
            for lane in lanes:
                values = dict(once) | {r: f"{v}[{lane}]" for r, v in wide.items()}
                index = f"(i + {lane})" if lane else "i"
                self.scalars(self.nodes, values, index, None)
                for ref, names in ends.items():
                    names.append(values[ref])
            for ref, out in self.outs.items():
                self(f"store4({out}, i, ({', '.join(ends[ref])}))")


def scratch_of(node):
    """A value that holds what a node's kernels need beside; `None` for nothing."""
    inner, rows = node.attrs.get("graph"), rows_of(node)
    size, dtype = GpuRows.scratch_of(rows) if rows else (0, None)
    for n in inner.nodes if inner else [node]:
        needs = n.op and (n.op.gpu_scratch if n.op.gpu else n.op.scratch)
        if needs and not size:
            ins = [m.specs[i] for m, i in n.inputs]
            size, dtype = needs(ins, n.specs, **n.attrs), n.specs[0].dtype
    if not size:
        return None
    return Node(None, name="scratch", specs=(Spec((size,), dtype),)), 0
