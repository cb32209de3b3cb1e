"""Chapter 16. pieces: a part that lies in one piece is an address, and no copy.

Takes:   a fused graph; `fuse` ends with this.
Gives:   a graph in which a step that only cuts out such a part is a view: it has no
         kernel, and whoever reads it begins to read further on in the same memory.

    x[3] of (32, 8, 4)    is    32 numbers, from number 96 of x on

A part of joined arrays that lies in one of them is read there: then perhaps nobody
needs the joined array.
What is left out: results of the whole graph, which have memory of their own; parts that
begin within a cache line, from which vectors are read in two halves; small parts for
which a large value would keep its memory.
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
    inputs=("data",),
    infer=lambda specs, start, shape: (specs, [Spec(shape, specs[0].dtype)]),
    eager=lambda data, start, shape: data.ravel()[start:][: Spec(shape, None).size].reshape(shape),
    attrs={"start": (None, None), "shape": (None, None)},
    view=True,
    doc="So many numbers as the shape has, from number `start` on.",
)


def pieces(graph: Graph) -> Graph:
    """Make views of steps that cut out a part in one piece."""
    steps = worth_it(graph, cuts(graph))

    def rule(node: Node, inputs: tuple, emit: Callable) -> list | None:
        if node not in steps:
            return None
        spec, start = node.specs[0], first_number(node)
        assert start is not None  # else it is no step of `cuts`
        ref, start = resolve(inputs[0], start, spec.size)
        return [(emit(apply(PIECE, (ref,), {"start": start, "shape": spec.shape}, node.name)), 0)]

    return dce(rewrite(graph, rule))


def cuts(graph: Graph) -> dict[Node, Ref]:
    """step -> the reference in whose memory the part lies that it cuts out."""
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
    """With which number of its input a part begins; `None` if it is not in one piece."""
    spec, (first, i) = node.specs[0], node.inputs[0]
    start, steps = node.op.strides(first.specs[i].shape, **node.attrs)
    return start if spec.size and same_steps((0, steps), spec.shape) else None


def worth_it(graph: Graph, where: dict[Node, Ref]) -> set[Node]:
    """The steps of `cuts` without those for whose small part a large value would live on."""
    root, last, after = places(graph), {}, {}  # reference -> number of its last reader
    for k, node in enumerate(graph.nodes):
        for ref in () if node.op is None or node.op.view else node.inputs:
            last[root[ref]] = k
            if where.get(node) != root[ref]:
                after[root[ref]] = k
    after |= {root[ref]: math.inf for ref in graph.heads}
    late: dict[
        Ref, list[Node]
    ] = {}  # reference -> parts that are read when nothing else reads it any more
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
    """The number of its input's with which a view begins."""
    return view.attrs["start"] if view.op is PIECE else 0


def resolve(ref: Ref, start: int, size: int) -> tuple[Ref, int]:
    """(reference, number) where a piece of an array lies: before views, in a joined part."""
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
    """(the joined array that has a whole piece, where it begins there), or `None`."""
    for n, i in node.inputs:
        if start + size <= n.specs[i].size:
            return ((n, i), start) if start >= 0 else None
        start -= n.specs[i].size
    return None
