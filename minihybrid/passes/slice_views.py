"""Chapter 16. pieces: make contiguous slices views instead of copies.

Such a step has no kernel; its users load from an offset in the same buffer.

    x[3] of (32, 8, 4)    is    32 elements at offset 96 of x

A slice of a concatenation within one of its inputs is a view of that input, so the
concatenation may become dead. `fuse` runs this last.
Not supported: outputs of the graph, which have separate buffers; slices that aren't
aligned to a cache line, where vector loads would cross two lines; small slices that would
extend the live range of a large buffer.
"""

import math
from collections.abc import Callable

from minihybrid.core.graph import Graph, apply
from minihybrid.core.op import Node, Op, Spec
from minihybrid.core.passes.dce import dce
from minihybrid.core.passes.memory import ALIGN, places
from minihybrid.core.passes.rewrite import rewrite
from minihybrid.ops.shapes import same_steps
from minihybrid.passes.reduction_schedule import Ref

PIECE = Op(
    "_piece",
    infer=lambda specs, start, shape: (specs, [Spec(shape, specs[0].dtype)]),
    eager=lambda data, start, shape: data.ravel()[start:][: Spec(shape, None).size].reshape(shape),
    attrs={"start": (None, None), "shape": (None, None)},
    view=True,
    doc="So many numbers as the shape has, from number `start` on.",
)


def pieces(graph: Graph) -> Graph:
    """Replace contiguous slices by views."""
    steps = worth_it(graph, cuts(graph))

    def rule(node: Node, inputs: tuple, emit: Callable) -> list | None:
        if node not in steps:
            return None
        spec, start = node.specs[0], first_number(node)
        assert start is not None  # true for the steps of `cuts`
        ref, start = resolve(inputs[0], start, spec.size)
        return [(emit(apply(PIECE, (ref,), {"start": start, "shape": spec.shape}, node.name)), 0)]

    return dce(rewrite(graph, rule))


def cuts(graph: Graph) -> dict[Node, Ref]:
    """Return contiguous slice -> the reference whose buffer contains it."""
    root = places(graph)
    where: dict[Node, Ref] = {}
    results = {root[ref] for ref in graph.heads}
    for node in graph.nodes:
        if node.op is None or not node.op.strides or (node, 0) in results:
            continue
        spec, start = node.specs[0], first_number(node)
        if start is None:
            continue
        ref, start = resolve(node.inputs[0], start, spec.size)
        if start * spec.dtype.itemsize % ALIGN == 0:
            where[node] = where.get(ref[0], ref)
    return where


def first_number(node: Node) -> int | None:
    """Return a slice's offset in its input, in elements; `None` if it isn't contiguous."""
    spec, (first, i) = node.specs[0], node.inputs[0]
    start, steps = node.op.strides(first.specs[i].shape, **node.attrs)
    return start if spec.size and same_steps((0, steps), spec.shape) else None


def worth_it(graph: Graph, where: dict[Node, Ref]) -> set[Node]:
    """Return the slices of `cuts` that don't extend the live range of a much larger buffer."""
    root, last, after = places(graph), {}, {}  # reference -> index of its last use
    for k, node in enumerate(graph.nodes):
        for ref in () if node.op is None or node.op.view else node.inputs:
            last[root[ref]] = k
            if where.get(node) != root[ref]:
                after[root[ref]] = k
    after |= {root[ref]: math.inf for ref in graph.heads}
    late: dict[Ref, list[Node]] = {}  # reference -> slices used after its last other use
    for node, ref in where.items():
        if ref[0].op is not None and last.get((node, 0), 0) > after.get(ref, 0):
            late.setdefault(ref, []).append(node)
    few = [
        node
        for (base, i), nodes in late.items()
        for node in nodes
        if 2 * sum(n.specs[0].nbytes for n in nodes) < base.specs[i].nbytes
    ]
    return where.keys() - few


def begin(view: Node) -> int:
    """Return a view's offset in its input, in elements."""
    return view.attrs["start"] if view.op is PIECE else 0


def resolve(ref: Ref, start: int, size: int) -> tuple[Ref, int]:
    """Resolve (reference, offset) through views and concatenations."""
    node, _ = ref
    while node.op is not None:
        if node.op.view:
            start += begin(node)
            ref = node.inputs[0]
        elif node.op.contiguous_concat and node.op.contiguous_concat(
            [n.specs[i] for n, i in node.inputs], **node.attrs
        ):
            part = part_with(node, start, size)
            if part is None:
                break
            ref, start = part
        else:
            break
        node, _ = ref
    return ref, start


def part_with(node: Node, start: int, size: int) -> tuple[Ref, int] | None:
    """Return (the concatenated input that contains a slice, offset there), or `None`."""
    for n, i in node.inputs:
        if start + size <= n.specs[i].size:
            return ((n, i), start) if start >= 0 else None
        start -= n.specs[i].size
    return None
