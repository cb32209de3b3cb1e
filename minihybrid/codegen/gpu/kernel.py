"""Chapter 26. Generate the source of GPU kernels: one loop iteration per thread.

Defines: `GpuKernel`, which turns a single or fused node with known shapes into CUDA Python
         source of one or more kernels, with the grid and block of each.

Scalar expressions are those of the CPU, and so are loops with independent iterations:
instead of `for i in range(n)`, a thread computes its index. Products, convolutions and
reductions share loads between the threads of a block, and have separate templates.
Not supported: autotuned block sizes; all are rules.
"""

import textwrap
from contextlib import contextmanager
from math import prod

from minihybrid.codegen.device_math import functions
from minihybrid.codegen.gpu.block_shape import MIN_THREADS, WARP
from minihybrid.codegen.gpu.rows import GpuRows
from minihybrid.codegen.rows import joined_axes
from minihybrid.codegen.source import Buf, Kernel, place, type_name
from minihybrid.ops.shapes import row_major
from minihybrid.passes import reduction_schedule

LINE = 88  # characters
VECTOR = 4  # float32 elements that a thread loads at once,
WIDE_FROM = 2**18  # given enough elements to keep all multiprocessors busy


class GpuKernel(Kernel):
    """Builds the source of a node's kernels; operators' templates call it.

    It extends the CPU's `Kernel` (`minihybrid.codegen.source`): iterations of `each` are
    threads, and `then` starts another kernel. A template can also choose a launch by
    `threads` and write the code of one thread.
    """

    def __init__(self, node):
        self.parts, self.launch = [], ((1, 1, 1), (1, 1, 1))
        super().__init__(node, functions)
        self.then()

    def write(self):
        """Choose the loops: over rows, elementwise, or the core's own."""
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
        """Return the array arguments, passed as addresses."""
        work = [Buf("work", (self.n_work,), self.dtype)] * bool(self.scratch)
        return [*self.args, *self.outs.values(), *work]

    @property
    def numbers(self):
        """Return the scalar arguments, which come after the arrays."""
        return ["key"] * self.random

    # -- threads
    def threads(self, grid, block):
        """Set this kernel's launch configuration.

        grid, block:  blocks, and threads per block: an integer, or up to three (x, y, z).
        """
        self.launch = tuple(
            (*n, 1, 1)[:3] if isinstance(n, tuple) else (n, 1, 1) for n in (grid, block)
        )

    @contextmanager
    def each(self, *ranges, work=0):
        """Run independent iterations, one per thread."""
        if self.depth > 1:  # inside a thread's own loops
            with super().each(*ranges, work=work):
                yield
            return
        total = prod(stop for _, stop in ranges)
        if not total:  # no iterations: no kernel
            yield
            self.lines = []
            return
        once = [name for name, stop in ranges if stop == 1]
        ranges = [(name, stop) for name, stop in ranges if stop != 1]
        flat = ranges[0][0] if len(ranges) == 1 else "t"
        block = min(MIN_THREADS, -(-total // WARP) * WARP)
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
        """End a kernel; the next one, with the same arguments, starts after all its threads
        have finished."""
        self.parts.append((self.lines, self.launch))
        self.lines, self.launch = [], ((1, 1, 1), (1, 1, 1))

    def shared(self, name, shape, dtype=None):
        """Declare an array in shared memory, by default of the kernel's dtype."""
        self(f"{name} = cuda.shared.array({shape}, {type_name(dtype or self.dtype)})")

    def texts(self, name):
        """Return [(source of a kernel, grid, block)] under a name, in order."""
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

    # -- elementwise loops
    def map_loops(self):
        """Use a thread per element, or per four consecutive elements of large arrays."""
        if self.is_wide():
            return self.wide_loops()
        super().map_loops()

    @contextmanager
    def nest(self, shape, strides):
        """Open loops as on the CPU; a thread's index is the flat index."""
        if self.depth > 1:
            with super().nest(shape, strides) as texts:
                yield texts
            return
        joined = joined_axes(shape, [row_major(shape), *strides])
        names = [f"i{d}" for d in range(len(joined))] if len(joined) > 1 else ["i"]
        stops = [n for n, _, _ in joined] or [1]
        flat = "t" if len(joined) > 1 else "i"
        whole, *reads = ([steps[k] for _, steps, _ in joined] for k in range(1 + len(strides)))
        with self.each(*zip(names, stops, strict=True)):
            yield flat, [flat if steps == whole else place(names, steps) for steps in reads]

    def is_wide(self):
        """Return whether all arrays are float32, and each is a scalar or has the result's
        order."""
        shape = self.nodes[-1].specs[0].shape
        bufs = [*self.ins.values(), *self.outs.values()]
        size = self.nodes[-1].specs[0].size
        return (
            size >= WIDE_FROM
            and size % VECTOR == 0
            and all(b.dtype.name == "float32" and (b.shape == shape or b.size == 1) for b in bufs)
            and not any(n.op.strides for n in self.nodes)
        )

    def wide_loops(self):
        """Write code for four elements per thread: vector loads, four results, a vector store."""
        size, lanes = self.nodes[-1].specs[0].size, range(VECTOR)
        once, wide = {}, {}  # reference -> name, of scalars and of vectors
        with self.each(("i", size // VECTOR)):
            self(f"i *= {VECTOR}")
            for ref, buf in self.ins.items():
                name = self.name("v")
                (once if buf.size == 1 else wide)[ref] = name
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
    """Return a reference to the scratch memory of a node's kernels; `None` for none."""
    return reduction_schedule.scratch_of(
        node, GpuRows.scratch_of, lambda op: op.gpu_scratch if op.gpu else op.scratch
    )
