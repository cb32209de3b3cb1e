"""Layered graph layout: positions of boxes and arrows in a drawing of a graph.

Defines: `boxes_of`, which returns a box for each node; `layout`, which positions them.

The layout has four steps, each a function: assign boxes to rows (`rows`); order the boxes
of each row with few crossings (`order`); align chains of boxes in straight columns
(`columns`); assign x coordinates to columns (`place`).

Limits: all four steps are heuristics.
"""

import bisect
from collections.abc import Callable, Iterable, Sequence, Set
from graphlib import TopologicalSorter
from typing import Any

from minihybrid.core.graph import Graph, shown_attrs
from minihybrid.core.op import UNKNOWN, Node
from minihybrid.passes.fuse import is_core
from minihybrid.passes.reduction_schedule import is_map

# kind -> (color of Okabe and Ito, its meaning). The boxes' text is as informative.
KINDS = {
    "variable": ("#0072B2", "input or parameter"),
    "elementwise": ("#56B4E9", "elementwise"),
    "core": ("#E69F00", "core: product, sum, ..."),
    "other": ("#999999", "other"),
    "fused": ("#009E73", "fused: one kernel"),
    "output": ("#CC79A7", "output"),
}
LINE, PAD, ACROSS, DOWN = 15, 10, 16, 34  # pixels: a line, inside a box, between boxes
LETTER = 7.2  # pixels: the widest letter of a monospace font at this size


def kind_of(node: Node) -> str:
    """Return the kind of a node, one of `KINDS`."""
    if node.op is None:
        return "variable"
    if "graph" in node.attrs:
        return "fused"
    if is_map(node):
        return "elementwise"
    loops = node.op.reduce or node.op.lower or is_core(node)
    return "core" if loops else "other"


def what(node: Node) -> str:
    """Describe a node: its operator with attributes, `variable` or `constant`."""
    if node.op is None:
        return "variable" if node.values is None else "constant"
    if "graph" in node.attrs:
        return repr(node.attrs["graph"])
    attrs = ", ".join(f"{k}={v}" for k, v in shown_attrs(node).items())
    return node.op.name + f"({attrs})" * bool(attrs)


def short(text: str, length: int = 26) -> str:
    """Abbreviate a long text in the middle, as the end of a name matters most."""
    return text if len(text) <= length else f"{text[:7]}…{text[8 - length :]}"


class Box:
    """A box of the drawing; without a kind, a dummy where a long edge passes a row."""

    def __init__(
        self,
        kind: str = "",
        bold: Iterable[str] = (),
        plain: Iterable[str] = (),
        tip: str = "",
        node: Node | None = None,
    ) -> None:
        self.kind, self.bold, self.tip = kind, [short(t) for t in bold], tip
        self.node = node  # the node it represents
        self.lines = [*self.bold, *(short(t) for t in plain)]
        self.inputs: dict[Box, list[str]] = {}  # source Box -> output indices read, as "[0]"
        self.ways: dict[Box, list[Box]] = {}  # source Box -> dummies on the edge from it
        self.ups: list[Box] = []  # neighbors in the row above
        self.downs: list[Box] = []  # neighbors in the row below
        self.row = self.index = 0
        self.x = self.y = 0.0  # the center of the upper side
        self.width = max((2 * PAD + LETTER * len(t) for t in self.lines), default=PAD)
        self.height = LINE * len(self.lines) + PAD if kind else 0

    def reads(self, source: "Box", output: int, n_outputs: int) -> None:
        """Add an edge from another box."""
        self.inputs.setdefault(source, []).extend([f"[{output}]"] * (n_outputs > 1))


def boxes_of(graph: Graph, limit: int, hidden: Set[Node] = frozenset()) -> list[Box]:
    """Return a box for each of the first `limit` nodes and each output.

    hidden:  nodes drawn neither as boxes nor with arrows.
    """
    names = graph.names()
    boxes: dict[Node, Box] = {}
    for node in graph.nodes[:limit]:
        if node in hidden:
            continue
        specs = dict.fromkeys(str(s) for s in node.specs or () if s != UNKNOWN)
        bold, plain = [node.op.name if node.op else names[node]], []
        if node.values is not None:
            plain = ["constant"]
        elif "graph" in node.attrs:
            ops = [n.op.name for n in node.attrs["graph"].nodes if n.op]
            bold = ops if len(ops) <= 7 else [*ops[:6], f"and {len(ops) - 6} more"]
        elif node.op:
            plain = [
                f"{k}={v}" for k, v in list(shown_attrs(node).items())[:2] if k != "num_hidden"
            ]  # the shape shows it
        box = boxes[node] = Box(
            kind_of(node), bold, [*plain, *specs], f"{names[node]}: {what(node)}", node
        )
        for source, i in node.inputs:
            if source not in hidden:
                box.reads(boxes[source], i, source.n_outputs)
    n, outputs = len(graph.outputs), []
    labels = [f"output {k}" if n > 1 else "output" for k in range(n)]
    labels += [f"new {name}" for name in graph.states]
    for (node, i), label in zip(graph.heads, labels, strict=True):
        if node in boxes:
            outputs.append(Box("output", [label], (), f"{label}: {names[node]}"))
            outputs[-1].reads(boxes[node], i, node.n_outputs)
    return [*boxes.values(), *outputs]


# -- the layout ------------------------------------------------------------------------
Table = list[list[Box]]  # rows from top to bottom, each from left to right
Beside = dict[int, dict[int, float]]  # column index -> {index of an adjacent column: distance}


def rows(boxes: Sequence[Box]) -> Table:
    """Assign each box to a row below its inputs, and add dummies where edges pass a row.

    A box is as close to its users as its own inputs permit. Returns a list of rows.
    """
    readers: dict[Box, list[Box]] = {box: [] for box in boxes}
    for box in boxes:
        box.row = max((source.row + 1 for source in box.inputs), default=0)
        for source in box.inputs:
            readers[source].append(box)
    for box in reversed(boxes):
        computed = [source for source in box.inputs if source.inputs]
        if readers[box] and len(readers[box]) >= len(computed):
            box.row = min(r.row for r in readers[box]) - 1
    table: Table = [[] for _ in range(max((b.row for b in boxes), default=-1) + 1)]
    # (source, row) -> the dummy shared by all long edges of the source
    points: dict[tuple[Box, int], Box] = {}
    for box in boxes:
        table[box.row].append(box)
        for source in box.inputs:
            way: list[Box] = []
            box.ways[source] = way
            for row in range(source.row + 1, box.row):
                if (source, row) not in points:
                    points[source, row] = Box()
                    table[row].append(points[source, row])
                    _join(way[-1] if way else source, points[source, row])
                way.append(points[source, row])
            _join(way[-1] if way else source, box)
    return table


def _join(above: Box, below: Box) -> None:
    above.downs.append(below)
    below.ups.append(above)


def order(table: Table, sweeps: int = 8) -> None:
    """Sort rows by mean neighbor position, sweeping down and up; keep the best order."""
    place_of: dict[Box, int] = {}
    stack = [b for row in table for b in reversed(row) if not b.downs]
    while stack:  # initially depth-first from the outputs, which keeps inputs together
        box = stack.pop()
        if box not in place_of:
            place_of[box] = len(place_of)
            stack.extend(reversed(box.ups))
    for row in table:
        _sort(row, place_of.__getitem__)
    best, fewest = [list(row) for row in table], crossings(table)
    for sweep in range(sweeps):
        if fewest == 0:
            break
        down = sweep % 2 == 0
        for row in table if down else reversed(table):
            _sort(row, lambda box: _mean(box.ups if down else box.downs, box.index))  # noqa: B023
        if (count := crossings(table)) < fewest:
            best, fewest = [list(row) for row in table], count
    for row, best_row in zip(table, best, strict=True):
        row[:] = best_row
        _sort(row, row.index)


def _sort(row: list[Box], key: Callable[[Box], Any]) -> None:
    row.sort(key={box: key(box) for box in row}.__getitem__)
    for i, box in enumerate(row):
        box.index = i


def _mean(beside: Sequence[Box], default: float) -> float:
    return sum(b.index for b in beside) / len(beside) if beside else default


def crossings(table: Table) -> int:
    """Count pairs of edges that cross."""
    count = 0
    for row in table:
        ends: list[int] = []  # sorted end positions of earlier edges
        for box in row:
            arrivals = sorted(below.index for below in box.downs)
            count += sum(len(ends) - bisect.bisect_right(ends, a) for a in arrivals)
            for a in arrivals:
                bisect.insort(ends, a)
    return count


def columns(table: Table) -> dict[Box, list[Box]]:
    """Return box -> its column, the boxes on the same vertical line, one per row.

    Long edges and long chains of operators are aligned first, parameters last. An
    elementwise box is centered between equally important inputs instead.
    """
    column = {box: [box] for row in table for box in row}
    for upper in table[:-1]:
        weights = {
            (up, down): (_weight(up, down), len(column[up])) for up in upper for down in up.downs
        }
        aligned: list[tuple[int, int]] = []  # index pairs aligned so far between these rows
        for up, down in sorted(weights, key=lambda e: (*(-w for w in weights[e]), e[0].index)):
            rivals = [weights[other, down] for other in down.ups]
            even = down.kind == "elementwise" and rivals.count(max(rivals)) > 1
            crosses = any((up.index - u) * (down.index - d) <= 0 for u, d in aligned)
            if not even and not crosses:
                aligned.append((up.index, down.index))
                column[up].append(down)
                column[down] = column[up]
    return column


def _weight(up: Box, down: Box) -> int:
    if not (up.kind and down.kind):
        return 3 if up.kind == down.kind else 1
    return 2 if up.inputs else 0


def place(table: Table, column: dict[Box, list[Box]], rounds: int = 12) -> None:
    """Set `x` of every box: columns stay straight and close to their neighbors.

    Starting at the far left, each column moves to the median of its neighbors, as far as
    adjacent columns permit; in the last rounds, of the neighbors above.
    """
    lefts: Beside = {}
    rights: Beside = {}
    members = list({id(c): c for c in column.values()}.values())
    of = {box: i for i, boxes in enumerate(members) for box in boxes}
    for row in table:
        for a, b in zip(row, row[1:], strict=False):
            apart = (a.width + b.width) / 2 + ACROSS
            for side, i, j in ((rights, of[a], of[b]), (lefts, of[b], of[a])):
                beside = side.setdefault(i, {})
                beside[j] = max(beside.get(j, 0), apart)
    sequence = [
        *TopologicalSorter({i: lefts.get(i, {}) for i in range(len(members))}).static_order()
    ]
    x = [0.0] * len(members)
    for i in sequence:
        x[i] = max((x[j] + apart for j, apart in lefts.get(i, {}).items()), default=0.0)
    for iteration in range(rounds):
        for i in sequence if iteration % 2 else reversed(sequence):
            ups, downs = (
                sorted(x[of[n]] for box in members[i] for n in getattr(box, side) if of[n] != i)
                for side in ("ups", "downs")
            )
            near = ups if ups and iteration >= rounds - 2 else sorted(ups + downs)
            if near:
                low = [x[j] + apart for j, apart in lefts.get(i, {}).items()]
                high = [x[j] - apart for j, apart in rights.get(i, {}).items()]
                middle = (near[(len(near) - 1) // 2] + near[len(near) // 2]) / 2
                x[i] = min([max([middle, *low]), *high])
    for box, i in of.items():
        box.x = x[i]


def layout(boxes: Sequence[Box]) -> tuple[float, float]:
    """Position the boxes; return the drawing's (width, height) in pixels."""
    table = rows(boxes)
    order(table)
    place(table, columns(table))
    y = PAD
    for row in table:
        height = max(box.height for box in row)
        for box in row:
            if not box.kind:  # an edge crosses the row vertically
                box.height = height
            box.y = y + (height - box.height) / 2
        y += height + DOWN
    everything = [box for row in table for box in row]
    left = min((b.x - b.width / 2 for b in everything), default=0) - PAD
    for box in everything:
        box.x -= left
    right = max((b.x + b.width / 2 for b in everything), default=0)
    return right + PAD, max(y - DOWN, 0) + PAD
