"""Chapter 17. Generate a kernel's source: loops around scalar expressions.

Defines: `Kernel`, which turns a single or fused node with known shapes into Python source
         with flat arrays and constant lengths.

The source consists of counters, the operators' own expressions and validated numbers,
never of names or strings from a file: loading a model can't run code.
Not supported: parallel loops inside other loops.
"""

import math
import re
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache

from minihybrid.codegen.rows import RowLoops, joined_axes
from minihybrid.core.lengths import Length, symbolic
from minihybrid.core.op import HybridError, legible
from minihybrid.ops.cpu.machine import MOVED
from minihybrid.ops.integers import limits
from minihybrid.ops.shapes import row_major
from minihybrid.passes.reduction_schedule import rows_of, scratch_of, steps_of

# Multiply-adds, about fifty per nanosecond and thread: the least work per kernel to share
# with spinning workers, and the least to wake sleeping ones.
WORTH_SHARING, WORTH_WAKING = 2**18, 2**20
FUNCTION = 24  # multiply-adds that take as long as one call of a math function
QUICK = "T", "F", "abs", "ceil", "floor"  # functions that compile to one instruction
CALLED = re.compile(r"(?<![\w.])[^\W\d]\w*(?=\()")  # calls in expressions


class Buf(str):
    """The name of a flat array in generated source, with its shape and dtype."""

    def __new__(cls, name, shape, dtype):
        """Create the name of an array."""
        self = super().__new__(cls, name)
        self.shape, self.dtype = tuple(shape), dtype
        self.size = math.prod(self.shape)
        return self


def typed(text, dtype):
    """Replace the placeholders T, F, LOWEST and HIGHEST in source for one dtype.

    F is the float type in which its elements are computed. Literals beside integers are
    truncated here, because (uint8_t) -1.5 is undefined in C. Infinity and NaN, whose
    repr isn't a Python literal, become constants.

    >>> import numpy as np
    >>> typed("T(inf) * a if F(-nan) < b else np.inf", np.dtype("float32"))
    'float32(INF) * a if float32(-NAN) < b else np.inf'
    >>> typed("T(-1.5) * a", np.dtype("uint8"))
    'uint8(-1) * a'
    """
    low, high, wide, own = _words(dtype)
    text = re.sub(r"(?<![\w.])(inf|nan)\b", lambda match: match[0].upper(), text)
    text = text.replace("LOWEST", low).replace("HIGHEST", high)
    if dtype.kind in "iu":
        text = re.sub(
            r"\bT\((-?[0-9][0-9.e+-]*)\)",
            lambda match: f"T({int(float(match[1]))})" if {*match[1]} & {*".e"} else match[0],
            text,
        )
    names = {"F": wide, "U": "uint64", "T": own}
    return re.sub(r"\b[FUT](?=\()", lambda match: names[match[0]], text)


@cache
def _words(dtype):
    """Return the replacements of LOWEST, HIGHEST, F and T."""
    if dtype.kind == "V":  # `bfloat16` rounds a float32 to the bits of one
        return "-INF", "INF", "float32", "bfloat16"
    if dtype.kind == "f":
        return "-INF", "INF", dtype.name, dtype.name
    low, high = (False, True) if dtype.kind == "b" else limits(dtype)
    return str(low), str(high), "float64", dtype.name


def type_name(dtype):
    """Return Numba's name of a dtype.

    >>> from numpy import dtype
    >>> type_name(dtype("bool"))
    'boolean'
    """
    return {"b": "boolean", "V": "uint16"}.get(dtype.kind, dtype.name)


class Kernel:
    """Builds the source of one kernel; the `cpu` templates of operators call it.

    `kernel("line")` adds a line, `kernel.loop("i", 8)` and `kernel.block("if ...:")`
    open an indented block, and `kernel.store(index, value)` completes an element: the
    fused epilogue is computed there, in registers.
    """

    def __init__(self, node, functions, threads=1, is_open=False):
        graph = node.attrs.get("graph")
        self.node, self.functions, self.n_threads = node, functions, threads
        self.turns, self.work = 1, 0  # iterations and work of the parallel loop
        self.parted = False  # whether a call may run only a chunk of them
        self.prelude = False  # whether loops precede it, which each call repeats
        self.lines, self.depth, self.count = [], 1, 0
        self.made = {}  # line number -> the node that it computes
        refs, nodes, heads = node.inputs, [node], [(node, i) for i in range(node.n_outputs)]
        if graph:
            refs, nodes = [(v, 0) for v in graph.variables], [n for n in graph.nodes if n.op]
            heads = list(graph.heads)
        self.ins = {}  # reference -> Buf
        for i, (n, j) in enumerate(refs):
            self.ins.setdefault((n, j), Buf(f"a{i}", *n.specs[j]))
        self.args = [Buf(f"a{i}", *n.specs[j]) for i, (n, j) in enumerate(node.inputs)]
        self.outs = {
            ref: Buf(f"out{k if len(heads) > 1 else ''}", *ref[0].specs[ref[1]])
            for k, ref in enumerate(heads)
        }
        self.nodes = nodes
        self.random = any(n.op.random for n in nodes)
        self.core = next(
            (n for n in nodes if n.op.scalar(n.attrs) is None and n.op.strides is None), None
        )
        self.rows = rows_of(node)
        self.dtype = self.rows.dtype if self.rows else (self.core or nodes[-1]).specs[0].dtype
        work = scratch_of(node)
        self.scratch = work[0].specs[0].nbytes if work else 0  # bytes per thread
        self.lengths = {}  # argument -> its value here
        with symbolic() if is_open else nullcontext({}) as symbols:
            self.write()
        text = "\n".join(self.lines)
        self.lengths |= {s: n for s, n in symbols.items() if re.search(rf"\b{s}\b", text)}

    # -- lines
    def __call__(self, line):
        """Add a line at the current indentation."""
        self.lines.append("    " * self.depth + self.translate(line, self.dtype))

    @contextmanager
    def of(self, node):
        """Attribute the lines added inside this `with` block to a node, as debug information."""
        first = len(self.lines)
        yield
        self.made.update(dict.fromkeys(range(first, len(self.lines)), node))

    def translate(self, text, dtype):
        """Replace placeholders of the dtype, and function names by the target's."""
        names = self.functions(dtype)
        return CALLED.sub(lambda match: names.get(match[0], match[0]), typed(text, dtype))

    @contextmanager
    def block(self, header):
        """Indent the lines added inside this `with` block under a header.

        An empty block, such as a loop without iterations, is omitted.
        """
        self(header)
        before = len(self.lines)
        self.depth += 1
        yield
        self.depth -= 1
        if len(self.lines) == before:
            self.lines.pop()

    @contextmanager
    def loop(self, name, stop, start=0, step=1):
        """Open a counted loop; one with a single iteration is written without the loop.

        stop:    an integer, or an expression evaluated at run time.
        """
        if not isinstance(stop, str | Length) and 0 < stop - start <= step:
            self(f"{name} = {start}")
            before = len(self.lines)
            yield
            if len(self.lines) == before:  # empty, such as a loop without iterations
                self.lines.pop()
            return
        ends = (
            f"{start}, {stop}, {step}" if step != 1 else f"{start}, {stop}" if start else str(stop)
        )
        with self.block(f"for {name} in range({ends}):"):
            yield

    @contextmanager
    def share(self, name, stop, start=0, step=1, work=0):
        """Open the outermost loop, whose independent iterations threads may share.

        A call of the kernel runs chunk `part` of `parts` equal chunks. Each call repeats
        the code outside of the loop, which may write only to `work`.

        stop:    an integer, or the name of a length.
        work:    approximate number of multiply-adds in the loop; little work stays on one
                 thread, except that a core's equal loops have equal source.
        """
        named = stop in self.lengths
        turns = self.lengths[stop] if named else -((start - stop) // step)
        is_open = isinstance(work, Length)  # then one source for any amount of work
        much, alike = work >= WORTH_SHARING, is_open or named and self.core is not None
        few = turns < 2 and not (isinstance(stop, Length) and step == 1)
        if self.n_threads == 1 or not (much or alike) or few or self.depth > 1:
            with self.loop(name, stop, start, step):
                yield
            return
        if not self.parted:
            self.prelude = any(line.lstrip().startswith("for ") for line in self.lines)
        self.parted = True
        if much:
            self.turns, self.work = int(max(self.turns, turns)), int(max(self.work, work))
        length = stop if named else turns
        ends = [f"{piece} * {length} // parts" for piece in ("part", "(part + 1)")]
        if step != 1:
            ends = [f"{end} * {step}" for end in ends]
        if start:
            ends = [f"{start} + {end}" for end in ends]
        with self.block(
            f"for {name} in range({', '.join(ends)}{f', {step}' if step != 1 else ''}):"
        ):
            yield

    @property
    def effort(self):
        """Estimate the multiply-adds that take as long as one element of the result."""
        texts = [n.op.scalar(n.attrs, n.specs[0].dtype) or "" for n in self.nodes]
        called = [name for text in texts for name in CALLED.findall(text) if name not in QUICK]
        return MOVED + len(texts) + FUNCTION * len(called)

    @contextmanager
    def each(self, *ranges, work=0):
        """Open a nest of loops with independent iterations.

        ranges:  (name, stop) of each loop.
        work:    as in `share`.
        """
        if not ranges or not all(isinstance(r, tuple) and len(r) == 2 for r in ranges):
            raise HybridError(
                f"k.each: {legible(', '.join(map(repr, ranges)))} was given, but a pair for each "
                'loop is needed, as in k.each(("i", data.size))'
            )
        with ExitStack() as loops:
            for name, stop in ranges:  # share the outermost with several iterations
                loops.enter_context(self.share(name, stop, work=work))
            yield

    def equal_parts(self, length, work):
        """Return the number of equal chunks of a length: one per thread, or 1 for little work."""
        if work < WORTH_SHARING:
            return 1
        return max(n for n in range(1, self.n_threads + 1) if length % n == 0)

    def then(self):
        """Separate phases: all iterations before must end first; here, nothing to do."""

    def length(self, name, number):
        """Make a length an argument of the kernel; return its name.

        Kernels that differ only in such lengths have equal source, compiled once. Sizes
        that determine register allocation, such as a tile's, aren't lengths.
        """
        self.lengths[name] = number
        return name

    def name(self, prefix):
        """Return an unused name."""
        self.count += 1
        return f"{prefix}{self.count - 1}"

    def part(self, buf, index, shape):
        """Define and return the `index`-th part of a shape in an array, or a reshaped array."""
        if index is None:
            return Buf(buf, shape, buf.dtype)
        size = math.prod(shape)
        name = self.name("part")
        self(f"{name} = {buf}[{index} * {size}:({index} + 1) * {size}]")
        return Buf(name, shape, buf.dtype)

    @property
    def arrays(self):
        """Return the array arguments, passed as addresses."""
        work = [Buf("work", (), self.dtype)] * bool(self.scratch)
        return [*self.args, *self.outs.values(), *work]

    @property
    def numbers(self):
        """Return the scalar arguments, which come after the arrays."""
        return ["key"] * self.random + [*self.lengths] + ["part", "parts"] * self.parted

    def text(self, name):
        """Return the source of the kernel under a name."""
        args = [*self.arrays, *self.numbers]
        body = self.lines or ["    pass"]  # an empty array
        return "\n".join([f"def {name}({', '.join(args)}):", *body])

    # -- loops
    def write(self):
        """Choose the loops: over rows, elementwise, or the core's own."""
        if self.rows:
            return RowLoops(self, self.nodes, self.rows)
        if self.core is None:
            return self.map_loops()
        self.write_core(self.core.op.cpu)

    def write_core(self, template):
        """Write the core's own loops; the epilogue is computed at its stores."""
        self.after = [n for n in self.nodes if n is not self.core]
        ins = [self.ins[ref] for ref in self.core.inputs]
        out = (
            [self.outs.get((self.core, 0)) or list(self.outs.values())[0]]
            if self.core.n_outputs == 1
            else [self.outs[self.core, i] for i in range(self.core.n_outputs)]
        )
        self.stored = not self.after
        template(self, *ins, *out, **self.core.attrs)
        if not self.stored:
            raise HybridError(
                f"{self.core.op.name}: its record says `stores`, but its loops did not "
                "call k.store, where what follows is computed; end each element by "
                "k.store(index, value), or say stores=False"
            )

    # -- scalars
    def scalars(self, nodes, values, index, load):
        """Write one statement per node; `values` collects the names of results, and of
        loads by their source.

        load:    (reference, its user) -> the source of a load.
        """
        for node in nodes:
            operands = {}
            for letter, ref in zip("abcdefgh", node.inputs, strict=False):
                text = values.get(ref) or load(ref, node)
                if not (ref in values or text in values or text.isidentifier() or node.op.strides):
                    values[text] = self.name("v")  # users may load different elements
                    self(f"{values[text]} = {text}")
                operands[letter] = values.get(text, text)
                if ref[0].specs[ref[1]].dtype.kind == "V" and not node.op.strides:
                    operands[letter] = f"widened({operands[letter]})"
            if node.op.strides:
                values[node, 0] = operands["a"]
                continue
            dtype = node.specs[0].dtype
            expr = node.op.scalar(node.attrs, dtype).format(**operands, i=index)
            expr = self.translate(expr, dtype)
            if dtype.kind not in "fV":  # Numba widens integers to 64 bits
                expr = f"{dtype.name}({expr})"
            values[node, 0] = self.name("t")
            with self.of(node):
                self(f"{values[node, 0]} = {expr}")

    def store(self, index, value, at=None):
        """Complete one element of the core: compute the epilogue, store the outputs.

        at:  axis -> source of the index on it; others are computed from `index`.
        """
        if not self.after:
            (out,) = self.outs.values()
            return self(f"{out}[{index}] = {value}")
        self.stored = True
        values = {(self.core, 0): self.name("v")}
        shape, dtype = self.core.specs[0]
        if dtype.kind in "iub":  # accumulated in 64 bits
            value = self.translate(f"T({value})", dtype)
        self(f"{values[self.core, 0]} = {value}")

        def load(ref, node):
            buf = self.ins[ref]
            if buf.size == 1:
                return f"{buf}[0]"
            if buf.shape == shape:
                return f"{buf}[{index}]"
            axis, n = next(
                (len(shape) - i, n) for i, n in enumerate(reversed(buf.shape), 1) if n != 1
            )
            inner = math.prod(shape[axis + 1 :])
            place = f"({index}) // {inner}" if inner != 1 else f"({index})"
            return f"{buf}[{(at or {}).get(axis) or f'{place} % {n}'}]"

        self.scalars(self.after, values, f"({index})", load)
        for ref, out in self.outs.items():
            self(f"{out}[{index}] = {values[ref]}")

    # -- elementwise loops
    def map_loops(self):
        """Write one loop nest over the output; broadcast inputs have stride 0."""
        shape = self.nodes[-1].specs[0].shape
        reads = {}  # (reference, strided node or None) -> (offset, strides)
        for node in self.nodes:
            for ref in node.inputs:
                if ref in self.ins:
                    reads[ref, node if node.op.strides else None] = steps_of(ref, node, shape)
        with self.nest(shape, [s for _, s in reads.values()]) as (index, steps):
            where = {
                key: _sum(offset, text)
                for (key, (offset, _)), text in zip(reads.items(), steps, strict=True)
            }
            values = {}
            self.scalars(
                self.nodes,
                values,
                f"({index})",
                lambda ref, node: (
                    f"{self.ins[ref]}[{where[ref, node if node.op.strides else None]}]"
                ),
            )
            for ref, out in self.outs.items():
                self(f"{out}[{index}] = {values[ref]}")

    @contextmanager
    def nest(self, shape, strides):
        """Open loops over a shape, with axes collapsed where all strides allow it.

        Returns the source of the flat output index and of each load's index.
        """
        joined = joined_axes(shape, [row_major(shape), *strides])
        names = [f"i{d}" if len(joined) > 1 else "i" for d in range(len(joined))]
        stops = [n for n, _, _ in joined]
        if len(joined) == 1 and self.core is None:  # equal source for all sizes
            stops = [self.length("size", stops[0])]

        work = math.prod(shape) * self.effort
        with ExitStack() as loops:
            for name, stop in zip(names, stops, strict=True):
                loops.enter_context(
                    self.share(name, stop, work=work)
                    if self.core is None
                    else self.block(f"for {name} in range({stop}):")
                )
            yield (
                place(names, [steps[0] for _, steps, _ in joined]),
                [
                    place(names, [steps[k] for _, steps, _ in joined])
                    for k in range(1, 1 + len(strides))
                ],
            )

    def copy(self, source, shape, read, out, write):
        """Copy elements; `read` and `write` are (offset, strides)."""
        with self.nest(shape, [read[1], write[1]]) as (_, (at, to)):
            self(f"{out}[{_sum(write[0], to)}] = {source}[{_sum(read[0], at)}]")

    @contextmanager
    def loops(self, ranges):
        """Open nested loops of (name, bounds), outermost first; skip those of one iteration."""
        with ExitStack() as loops:
            for name, ends in ranges:
                if ends != 1:
                    loops.enter_context(self.block(f"for {name} in range({ends}):"))
            yield


def place(names, steps):
    """Return the source of an index: each counter times its stride.

    >>> place(["i", "j", "k"], [12, 0, 1])
    'i * 12 + k'
    """
    terms = [
        name if step == 1 else f"{name} * {step}"
        for name, step in zip(names, steps, strict=True)
        if step
    ]
    return " + ".join(terms) or "0"


def _sum(offset, text):
    return text if not offset else str(offset) if text == "0" else f"{offset} + {text}"
