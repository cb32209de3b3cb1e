"""Schedules of fused reductions: reductions over the same axes share one loop over rows.

Defines: `ReductionDomain`, the iteration space; `ReductionSchedule`, which assigns each
         value to a pass over the row, and decides what is saved between passes.

A row is the set of elements that are reduced to one. Softmax takes three passes over it:
the maximum, the sum of exp, the result. If one kernel does all three while the row is in
cache, each element is loaded from memory once and stored once. The same applies to
normalizations, cross entropy and all their gradients; no operator is special-cased here.
Not supported: reductions over different axes in one kernel.
"""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from minihybrid.core.graph import Graph
from minihybrid.core.lengths import Length
from minihybrid.core.op import Node, Spec
from minihybrid.ops.shapes import axes_of, row_major

Ref = tuple[Node, int]  # an output of a node

ROW_NBYTES = 2**18  # stays in the L2 cache between passes
ACROSS = 256  # least tile of interleaved rows, for long contiguous accesses
# Elements per partial sum. In a contiguous row, each vector lane accumulates a few of
# them; in interleaved rows, all.
SUM_BLOCK, SUM_BLOCK_ACROSS = 1024, 128


def is_map(node: Node) -> bool:
    """Return whether one scalar expression computes each output element."""
    return node.op is not None and node.op.scalar(node.attrs) is not None


def is_literal(node: Node) -> bool:
    """Return whether every element is the same constant of the program."""
    return is_map(node) and not node.inputs and "{i}" not in node.op.scalar(node.attrs)


def steps_of(ref: Ref, node: Node, shape: tuple) -> tuple[int, tuple]:
    """Return (offset, strides along the axes of `shape`) of a node's loads of an input."""
    old = ref[0].specs[ref[1]].shape
    if node.op.strides:
        return node.op.strides(old, **node.attrs)
    if node.op.view:
        return 0, row_major(shape)
    pad = len(shape) - len(old)
    return 0, (0,) * pad + tuple(
        0 if n == 1 else s for n, s in zip(old, row_major(old), strict=True)
    )


@dataclass(frozen=True)
class ReductionDomain:
    """The iteration space of reductions: the input shape and the reduced axes.

    gone:    the reduced axes, except those of length 1.

    >>> frame = ReductionDomain((8, 3, 5), frozenset({0, 2}))
    >>> frame.kept, frame.n, frame.across
    ((3,), 40, False)
    """

    shape: tuple
    gone: frozenset

    @property
    def kept(self) -> tuple:
        """The lengths of the axes that remain, without those of length 1."""
        return tuple(n for i, n in enumerate(self.shape) if i not in self.gone and n != 1)

    @property
    def n(self) -> int:
        """The length of a row."""
        return math.prod([self.shape[i] for i in self.gone])

    @property
    def across(self) -> bool:
        """Whether rows are interleaved: neighbors in memory belong to different rows."""
        last = [i for i, n in enumerate(self.shape) if n != 1][-1:]
        return not self.gone.issuperset(last)

    @property
    def long(self) -> bool:
        """Whether there is only one row, and it exceeds the cache.

        Fusing what follows its sum then gains little, and prevents splitting that loop.
        """
        return math.prod(self.kept) == 1 and 4 * self.n > ROW_NBYTES

    @property
    def block(self) -> int:
        """The maximal number of elements per partial sum."""
        return SUM_BLOCK_ACROSS if self.across else SUM_BLOCK

    def is_stat(self, shape: tuple) -> bool:
        """Return whether an array of this shape holds one element per row."""
        return shape != self.shape and tuple(n for n in shape if n != 1) == self.kept

    # -- strides
    def along(self, shape: tuple, steps: Iterable[int]) -> tuple:
        """Convert strides of an array of elements, or of one per row, to strides along the
        domain's axes.

        >>> ReductionDomain((8, 3, 5), frozenset({0, 2})).along((1, 3), (9, 1))
        (0, 1, 0)
        """
        if shape != self.shape:  # one element per row
            steps = iter([s for n, s in zip(shape, steps, strict=True) if n != 1])
            return tuple(
                0 if n == 1 or i in self.gone else next(steps) for i, n in enumerate(self.shape)
            )
        return tuple(s * (n != 1) for n, s in zip(shape, steps, strict=True))

    def own(self, shape: tuple) -> tuple[int, tuple]:
        """Return (offset, strides) at which a value of the rows is stored."""
        return 0, self.along(shape, row_major(shape))

    def reads(self, ref: Ref, node: Node) -> tuple[int, tuple]:
        """Return (offset, strides) at which a node of the rows loads a value."""
        shape = self.shape if node.op.reduce else node.specs[0].shape
        offset, steps = steps_of(ref, node, shape)
        return offset, self.along(shape, steps)

    def meets(self, node: Node, reader: Node) -> bool:
        """Return whether a user reads, at each iteration, the element just computed.

        Otherwise (it is flipped or transposed, used by another row, or broadcast along
        another axis) the value must be stored in memory first.
        """
        if is_literal(node):
            return reader.op.view or is_map(reader)
        shape, goes = node.specs[0].shape, reader.specs[0].shape
        if shape != self.shape and not self.is_stat(shape):
            return False
        if reader.op.reduce:
            return frame_of(reader) == self
        return (goes == self.shape or self.is_stat(goes)) and self.reads(
            (node, 0), reader
        ) == self.own(shape)


def frame_of(node: Node) -> ReductionDomain:
    """Return the domain of a reduction."""
    ((source, i),) = node.inputs
    shape = source.specs[i].shape
    attrs = node.attrs
    axes = axes_of(node.op.name, attrs["axis"], len(shape), attrs["exclude"])
    return ReductionDomain(shape, frozenset(i for i in axes if shape[i] != 1))


def frames(graph: Graph) -> dict[Node, ReductionDomain]:
    """Return node -> domain, for reductions and for functions of their results alone."""
    domains: dict[Node, ReductionDomain] = {}
    for node in graph.nodes:
        if node.op is None:
            continue
        frame = None
        if node.op.reduce:
            frame = frame_of(node)
        elif node.op.view or is_map(node):
            frame = next((domains[n] for n, _ in node.inputs if n in domains), None)
        if frame and frame.n > 1 and frame.is_stat(node.specs[0].shape):
            domains[node] = frame
    return domains


class ReductionSchedule:
    """The pass that computes each value, and the memory that saves it for later passes.

    depth:   node -> number of passes over the row that must come before it.
    stats:   nodes with one element per row.
    slots:   those saved in `work`, one per row of an interleaved tile.
    blocks:  float sums of so many elements that they are accumulated in blocks; with
             interleaved rows, a block's partial sum and the rounding error of the total
             are also in `work`.
    waiting: nodes with the row's elements that a later pass reads.
    shared:  those saved in an output's buffer until the output is stored -> the output.
    saved:   those saved in `work`; others are outputs, or are recomputed.
    tile:    number of interleaved rows computed together.
    scratch: (number of elements, dtype) of `work`.
    """

    def __init__(
        self, nodes: Sequence[Node], heads: Collection[Ref], frame: ReductionDomain
    ) -> None:
        self.frame = frame
        self.depth: dict[Node, int] = {}
        for node in nodes:
            before = [self.depth[n] for n, _ in node.inputs if n in self.depth]
            self.depth[node] = max(before, default=0) + bool(node.op.reduce)
        self.stats = [
            n
            for n in nodes
            if not is_literal(n) and (n.op.reduce or n.specs[0].shape != frame.shape)
        ]
        self.dtype = (self.stats or nodes)[0].specs[0].dtype
        read_in = self._as_late_as_possible(nodes, heads)
        self.waiting = {n for n, passes in read_in.items() if max(passes) > self.depth[n]}
        self.shared = self._share_outputs(nodes, heads, read_in)
        self.saved = [
            n
            for n in nodes
            if n in self.waiting
            and (n, 0) not in heads
            and n not in self.shared
            and n.specs[0].dtype == self.dtype
        ]
        again = {
            m
            for n in nodes
            for m, _ in n.inputs
            if m in self.stats and (n not in self.stats or self.depth[m] < self.depth[n])
        }
        self.slots = [
            n
            for n in self.stats
            if frame.across and (n, 0) not in heads and (n.op.reduce or n in again)
        ]
        self.tile = self._tile() if frame.across else 1
        self.blocks = [
            n
            for n in self.stats
            if (frame.n > frame.block or isinstance(frame.n, Length))
            and n.op.reduce
            and n.op.reduce.rounds
            and n.specs[0].dtype.kind == "f"
        ]
        self.scratch = (
            (len(self.saved) * frame.n + len(self.slots) + 2 * len(self.blocks) * frame.across)
            * self.tile,
            self.dtype,
        )

    def _as_late_as_possible(
        self, nodes: Sequence[Node], heads: Collection[Ref]
    ) -> dict[Node, set[int]]:
        """Return node -> the passes that read it, and move it to the first of them."""
        read_in = {
            n: {self.depth[n]} if (n, 0) in heads else set()
            for n in nodes
            if n not in self.stats and not is_literal(n)
        }
        for node in reversed(nodes):
            if node in read_in:
                self.depth[node] = min(read_in[node])
            now = self.depth[node] - bool(node.op.reduce)
            if node.op.reduce or node in read_in:
                for n, _ in node.inputs:
                    if n in read_in:
                        read_in[n].add(now)
        return read_in

    def _share_outputs(
        self, nodes: Sequence[Node], heads: Collection[Ref], read_in: dict[Node, set[int]]
    ) -> dict[Node, Node]:
        """Return waiting node -> output of the last pass whose buffer it borrows.

        That pass loads each element before it overwrites it.
        """
        end = max((max(passes) for passes in read_in.values()), default=0)
        idle = [n for n in nodes if (n, 0) in heads and read_in.get(n) == {end}]
        shared = {}
        for node in nodes:
            if node in self.waiting and (node, 0) not in heads:
                shared[node] = next((n for n in idle if n.specs == node.specs), None)
                idle = [n for n in idle if n is not shared[node]]
        return {node: out for node, out in shared.items() if out}

    def _tile(self) -> int:
        """Return the number of rows that stay in cache between passes."""
        shape, axes = self.frame.shape, self.frame.gone
        start = max((i + 1 for i in axes if shape[i] != 1), default=0)
        most = (
            ACROSS
            if max(self.depth.values()) < 2
            else max(ACROSS, ROW_NBYTES // (max(self.frame.n, 1) * self.dtype.itemsize))
        )
        rows = math.prod(shape[start:])
        return most if isinstance(rows, Length) else min(rows, most)


def rows_of(node: Node) -> ReductionSchedule | None:
    """Return the schedule of a single or fused node; `None` if it has no reduction."""
    graph = node.attrs.get("graph")
    if graph is None:
        return ReductionSchedule([node], {(node, 0)}, frame_of(node)) if node.op.reduce else None
    nodes = [n for n in graph.nodes if n.op]
    return ReductionSchedule(nodes, set(graph.heads), graph.frame) if graph.frame else None


def scratch_of(
    node: Node, of_rows: Callable = attrgetter("scratch"), of_op: Callable = attrgetter("scratch")
) -> Ref | None:
    """Return a reference to a node's scratch memory; `None` if it needs none.

    of_rows: schedule -> (number of elements, dtype);  of_op: operator -> its rule.
    """
    if not any(spec.size for spec in node.specs):
        return None  # it isn't launched
    inner, rows = node.attrs.get("graph"), rows_of(node)
    size, dtype = of_rows(rows) if rows else (0, None)
    for n in inner.nodes if inner else [node]:
        needs = n.op and of_op(n.op)
        if needs and not size:
            ins = [m.specs[i] for m, i in n.inputs]
            size, dtype = needs(ins, n.specs, **n.attrs), n.specs[0].dtype
    if not size:
        return None
    return Node(None, name="scratch", specs=(Spec((size,), dtype),)), 0
