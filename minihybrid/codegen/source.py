"""Chapter 17. From a node to the text of a kernel: loops around scalar expressions.

Takes:   a node with known shapes, single or fused.
Gives:   `Kernel`: Python source in which arrays are flat and every length is a number.

The text is built from counters, operators' own expressions and checked numbers, never
from a name or a string out of a file: loading a model is not running a program.
What is left out: loops inside others that threads share.
"""

import math
import re
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache

from minihybrid.codegen.rows import RowLoops
from minihybrid.core.lengths import Length, symbolic
from minihybrid.core.op import HybridError, legible
from minihybrid.ops.cpu.machine import MOVED
from minihybrid.ops.integers import limits
from minihybrid.ops.shapes import row_major
from minihybrid.passes.reduction_schedule import rows_of, scratch_of, steps_of

# Sums and products, of which a thread does some fifty in a nanosecond: so many are worth
# sharing with helpers who are awake; and so many, in one kernel of a plan, waking them.
WORTH_SHARING, WORTH_WAKING = 2**18, 2**20
FUNCTION = 24  # as many sums and products take as long as a function of a number
QUICK = "T", "F", "abs", "ceil", "floor"  # functions that are one instruction
CALLED = re.compile(r"(?<![\w.])[^\W\d]\w*(?=\()")  # functions of expressions


class Buf(str):
    """The name of a flat array in generated source, with its shape and dtype."""

    def __new__(cls, name, shape, dtype):
        """Name an array."""
        self = super().__new__(cls, name)
        self.shape, self.dtype = tuple(shape), dtype
        self.size = math.prod(self.shape)
        return self


def typed(text, dtype):
    """Fill the placeholders of one dtype: T, LOWEST, HIGHEST, and whole-number keys.

    F is the float that its numbers are computed in: whole numbers have no halves, and
    a literal among them is cut here, since C does not say what (uint8_t) -1.5 is.
    Infinity and NaN are numbers, too, which Python writes as names that it has not.

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
    """What stands for LOWEST, HIGHEST, F and T."""
    if dtype.kind == "f":
        return "-INF", "INF", dtype.name, dtype.name
    low, high = (False, True) if dtype.kind == "b" else limits(dtype)
    return str(low), str(high), "float64", dtype.name


def type_name(dtype):
    """Numba's name of a dtype.

    >>> from numpy import dtype
    >>> type_name(dtype("bool"))
    'boolean'
    """
    return "boolean" if dtype.kind == "b" else dtype.name


class Kernel:
    """Writes the body of one kernel; the `cpu` templates of operators call it.

    `kernel("line")` adds a line, `kernel.loop("i", 8)` and `kernel.block("if ...:")`
    open an indented block, `kernel.store(index, value)` ends an element: what follows
    the core is computed there, in registers.
    """

    def __init__(self, node, functions, threads=1, is_open=False):
        graph = node.attrs.get("graph")
        self.node, self.functions, self.n_threads = node, functions, threads
        self.turns, self.work = 1, 0  # of loops that threads may share
        self.parted = False  # whether a call may do a part of them
        self.prelude = False  # whether loops stand before them, which each call does again
        self.lines, self.depth, self.count = [], 1, 0
        self.made = {}  # number of a line -> the node that it computes
        if graph:
            variables, nodes, heads = (
                graph.variables,
                [n for n in graph.nodes if n.op],
                list(graph.heads),
            )
        else:
            variables, nodes, heads = (None, [node], [(node, i) for i in range(node.n_outputs)])
        self.ins = {}  # reference -> Buf
        if graph:
            for i, v in enumerate(variables):
                self.ins[v, 0] = Buf(f"a{i}", *v.specs[0])
        else:
            for i, (n, j) in enumerate(node.inputs):
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
        self.lengths = {}  # name of an argument -> the number that it stands for here
        with symbolic() if is_open else nullcontext({}) as symbols:
            self.write()
        text = "\n".join(self.lines)
        self.lengths |= {s: n for s, n in symbols.items() if re.search(rf"\b{s}\b", text)}

    # -- lines
    def __call__(self, line):
        """Add a line at the present depth."""
        self.lines.append("    " * self.depth + self.translate(line, self.dtype))

    @contextmanager
    def of(self, node):
        """What is written inside this `with` block computes a node, for whoever asks."""
        first = len(self.lines)
        yield
        self.made.update(dict.fromkeys(range(first, len(self.lines)), node))

    def translate(self, text, dtype):
        """Fill in the dtype, and the target's functions for those of expressions."""
        names = self.functions(dtype)
        return CALLED.sub(lambda match: names.get(match[0], match[0]), typed(text, dtype))

    @contextmanager
    def block(self, header):
        """Indent what is written inside this `with` block under a header.

        Without any lines, as where a loop inside has no turns, there is no header.
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
        """A counting loop; one that turns once is written without the loop.

        stop:    a number, or the text of one that is known when the kernel runs.
        """
        if not isinstance(stop, str | Length) and 0 < stop - start <= step:
            self(f"{name} = {start}")
            before = len(self.lines)
            yield
            if len(self.lines) == before:  # as where a loop inside has no turns
                self.lines.pop()
            return
        ends = (
            f"{start}, {stop}, {step}" if step != 1 else f"{start}, {stop}" if start else str(stop)
        )
        with self.block(f"for {name} in range({ends}):"):
            yield

    @contextmanager
    def share(self, name, stop, start=0, step=1, work=0):
        """The outermost loop, whose turns are independent: threads may share them.

        Of `parts` equal pieces, a call of the kernel does the one that `part` says.
        Each call does all that stands outside, which may write to `work` only.

        stop:    a number, or the name of a length.
        work:    about how many sums and products there are in all turns; little work
                 is not worth a second thread, but loops of a core that are alike have
                 one text.
        """
        named = stop in self.lengths
        turns = self.lengths[stop] if named else -((start - stop) // step)
        is_open = isinstance(work, Length)  # then one text, for little work and much
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
        """About how many sums and products take as long as one number of the result."""
        texts = [n.op.scalar(n.attrs, n.specs[0].dtype) or "" for n in self.nodes]
        called = [name for text in texts for name in CALLED.findall(text) if name not in QUICK]
        return MOVED + len(texts) + FUNCTION * len(called)

    @contextmanager
    def each(self, *ranges, work=0):
        """Turns that are independent of each other: here loops, one in another.

        ranges:  (name, stop) of each loop.
        work:    as in `share`.
        """
        if not ranges or not all(isinstance(r, tuple) and len(r) == 2 for r in ranges):
            raise HybridError(
                f"k.each: {legible(', '.join(map(repr, ranges)))} was given, but a pair for each "
                'loop is needed, as in k.each(("i", data.size))'
            )
        with ExitStack() as loops:
            for name, stop in ranges:  # the outermost of those that turn is shared
                loops.enter_context(self.share(name, stop, work=work))
            yield

    def equal_parts(self, length, work):
        """How many equal parts of a length threads may share: one each, or 1 for little work."""
        if work < WORTH_SHARING:
            return 1
        return max(n for n in range(1, self.n_threads + 1) if length % n == 0)

    def then(self):
        """What follows reads what came before, of all turns: here it does anyway."""

    def length(self, name, number):
        """A number that the kernel takes as an argument; gives its name.

        Kernels that differ in lengths only have one text, which is compiled once. What
        decides which numbers stay in registers, as a tile, is no length.
        """
        self.lengths[name] = number
        return name

    def name(self, prefix):
        """A name that this kernel has not used yet."""
        self.count += 1
        return f"{prefix}{self.count - 1}"

    def part(self, buf, index, shape):
        """A piece of an array, `index` times its size from the start; or reshaped."""
        if index is None:
            return Buf(buf, shape, buf.dtype)
        size = math.prod(shape)
        name = self.name("part")
        self(f"{name} = {buf}[{index} * {size}:({index} + 1) * {size}]")
        return Buf(name, shape, buf.dtype)

    @property
    def arrays(self):
        """What the kernel takes as addresses."""
        work = [Buf("work", (), self.dtype)] * bool(self.scratch)
        return [*self.args, *self.outs.values(), *work]

    @property
    def numbers(self):
        """What the kernel takes as numbers, after the arrays."""
        return ["key"] * self.random + [*self.lengths] + ["part", "parts"] * self.parted

    def text(self, name):
        """The whole kernel under a name."""
        args = [*self.arrays, *self.numbers]
        body = self.lines or ["    pass"]  # nothing to do for an array without elements
        return "\n".join([f"def {name}({', '.join(args)}):", *body])

    # -- what the node needs
    def write(self):
        """Choose the loops: over rows, of a map, or the core's own."""
        if self.rows:
            return RowLoops(self, self.nodes, self.rows)
        if self.core is None:
            return self.map_loops()
        self.write_core(self.core.op.cpu)

    def write_core(self, template):
        """The core's own loops; other nodes are computed as it stores its results."""
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
        """Write one statement per node; `values` collects the names of what is computed,
        and of what is read, by the text of the read.

        load:    (reference, node that reads it) -> the text of a read from memory.
        """
        for node in nodes:
            operands = {}
            for letter, ref in zip("abcdefgh", node.inputs, strict=False):
                text = values.get(ref) or load(ref, node)
                if not (ref in values or text in values or text.isidentifier() or node.op.strides):
                    values[text] = self.name("v")  # two nodes may read two places
                    self(f"{values[text]} = {text}")
                operands[letter] = values.get(text, text)
            if node.op.strides:
                values[node, 0] = operands["a"]
                continue
            dtype = node.specs[0].dtype
            expr = node.op.scalar(node.attrs, dtype).format(**operands, i=index)
            expr = self.translate(expr, dtype)
            if dtype.kind != "f":  # whole numbers grow to 64 bits in an expression
                expr = f"{dtype.name}({expr})"
            values[node, 0] = self.name("t")
            with self.of(node):
                self(f"{values[node, 0]} = {expr}")

    def store(self, index, value, at=None):
        """End one element of the core: compute what follows, write what is wanted.

        at:  axis -> the text of the place on it; others are computed from the index.
        """
        if not self.after:
            (out,) = self.outs.values()
            return self(f"{out}[{index}] = {value}")
        self.stored = True
        values = {(self.core, 0): self.name("v")}
        shape, dtype = self.core.specs[0]
        if dtype.kind in "iub":  # in a kernel, sums of whole numbers have 64 bits
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

    # -- loops of a map
    def map_loops(self):
        """One loop nest over the output; inputs that stretch are read at step 0."""
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
        """Loops over a shape, with axes joined where every read allows it.

        Gives the text of the flat output index and of each read's index.
        """
        joined = joined_axes(shape, strides)
        names = [f"i{d}" if len(joined) > 1 else "i" for d in range(len(joined))]
        stops = [n for n, _, _ in joined]
        if len(joined) == 1 and self.core is None:  # one text for all sizes
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
                place(names, [s for _, s, _ in joined]),
                [place(names, [reads[k] for _, _, reads in joined]) for k in range(len(strides))],
            )

    def copy(self, source, shape, read, out, write):
        """Copy element by element; `read` and `write` are (offset, strides)."""
        with self.nest(shape, [read[1], write[1]]) as (_, (at, to)):
            self(f"{out}[{_sum(write[0], to)}] = {source}[{_sum(read[0], at)}]")

    @contextmanager
    def loops(self, ranges):
        """Nested loops of (name, ends), the outermost first; of one turn, no loop."""
        with ExitStack() as loops:
            for name, ends in ranges:
                if ends != 1:
                    loops.enter_context(self.block(f"for {name} in range({ends}):"))
            yield


def joined_axes(shape, strides):
    """The axes of a shape that turn, joined where every read allows it.

    Gives:   [length, step of the flat index, step of each read] of each.

    >>> joined_axes((2, 3, 4), [(12, 4, 1), (0, 4, 1)])
    [[2, 12, [12, 0]], [12, 1, [1, 1]]]
    """
    axes = [
        [n, s, [t[i] for t in strides]]
        for i, (n, s) in enumerate(zip(shape, row_major(shape), strict=True))
        if n != 1
    ]
    joined = []
    for n, s, reads in axes:
        if (
            joined
            and joined[-1][1] == s * n
            and all(a == b * n for a, b in zip(joined[-1][2], reads, strict=True))
        ):
            joined[-1] = [joined[-1][0] * n, s, reads]
        else:
            joined.append([n, s, reads])
    return joined


def place(names, steps):
    """The text of an index: each loop's name times its step.

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
