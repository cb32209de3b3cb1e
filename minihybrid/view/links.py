"""Links between lines of Python, graph nodes, lines of kernels, and buffers.

Defines: `Links`, which gives each of these a key: the indices of the traced nodes that it
         comes from; `counts`, the table of stages.

Two elements are linked if their keys intersect. All links are exact: the trace records
which lines created a node, each pass which nodes a node replaces, and the code generator
which node a line computes.
Limits: a folded constant isn't linked to the nodes it was computed from.
"""

import inspect
import textwrap
from collections.abc import Sequence
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from minihybrid.core.graph import Graph
from minihybrid.core.op import Node
from minihybrid.core.plan import Plan, nbytes_moved
from minihybrid.view.drawing import what
from minihybrid.view.viz import rows_of

PACKAGE = str(Path(__file__).parents[1])


class Line(NamedTuple):
    """A line of text and its key."""

    text: str
    key: tuple = ()


class Listing(NamedTuple):
    """The source lines of a traced function.

    first:  the number of the first line in its file; `None` in this package, as outputs
            stored in notebooks must not change when a line moves.
    """

    name: str
    first: int | None
    lines: list


class Buffer(NamedTuple):
    """A value in memory: its reference, its row of `Memory.steps`, and its key."""

    ref: tuple
    row: tuple
    key: tuple


class Change(NamedTuple):
    """The effect of a pass on a graph: lines removed and added, and nodes by kind.

    new:     nodes that didn't exist before.
    merged:  nodes that replace several.
    """

    removed: list
    added: list
    new: set
    merged: set


class Links:
    """The elements of a plan, and the keys that link them.

    stages:  [(name, graph)], the trace first;  plan: `None` for graphs alone.
    """

    def __init__(self, stages: list[tuple[str, Graph]], plan: Plan | None = None) -> None:
        self.stages, self.trace = stages, stages[0][1]
        self.plan: Any = plan  # needed to show code or memory
        self.number = {node: i for i, node in enumerate(self.trace.nodes)}

    def key(self, graph: Graph, node: Node) -> tuple[int, ...]:
        """Return the indices of the traced nodes that a node of a stage comes from."""
        indices = (self.number.get(n) for n in graph.origin(node))
        return tuple(sorted(i for i in indices if i is not None))

    # -- the program
    def listings(self) -> list[Listing]:
        """Return the traced functions, in order of their first execution."""
        keys: dict[tuple[str, int], list[int]] = {}
        codes: dict[CodeType, None] = {}  # outermost first
        for node, places in self.trace.places.items():
            for code, line in places:
                keys.setdefault((code.co_filename, line), []).append(self.number[node])
                codes[code] = None
        listings = []
        listed: set[tuple[str, int]] = set()
        for code in codes:
            file, (texts, first) = code.co_filename, source_of(code)
            if (file, first) not in listed:  # otherwise nested in one already shown
                listed.update((file, first + i) for i in range(len(texts)))
                listings.append(
                    Listing(
                        code.co_qualname,
                        None if file.startswith(PACKAGE) else first,
                        [
                            Line(text, tuple(keys.get((file, i), ())))
                            for i, text in enumerate(texts, first)
                        ],
                    )
                )
        return listings

    # -- graphs
    def lines(self, graph: Graph) -> list[tuple[Node, Line]]:
        """Return the lines of `graph.show()` that are nodes: [(node, Line)]."""
        return [
            (node, Line(text, self.key(graph, node)))
            for node, text in zip(graph.nodes, graph.show().split("\n"), strict=False)
        ]

    def change(self, before: Graph, after: Graph) -> Change:
        """Compare the graphs before and after a pass."""
        olds, news = self.lines(before), self.lines(after)
        old_texts, new_texts = ({line.text for _, line in lines} for lines in (olds, news))
        names, new_names = before.names(), after.names()
        was = {(names[node], what(node)): line.key for node, line in olds}
        behind = [set(line.key) for node, line in olds if node.op]
        new, merged = set(), set()
        for node, line in news:
            old_key = was.get((new_names[node], what(node)))
            covers = [key for key in behind if key <= set(line.key)]
            if old_key != line.key and len(covers) > 1:
                merged.add(node)
            elif old_key is None:
                new.add(node)
        return Change(
            [line for _, line in olds if line.text not in new_texts],
            [line for _, line in news if line.text not in old_texts],
            new,
            merged,
        )

    # -- kernels
    def code(self) -> list[Line]:
        """Return the lines of the generated source."""
        plan, texts = self.plan, self.plan.source.rstrip().split("\n")
        keys: list[set[int]] = [set() for _ in texts]
        start = {
            text[4 : text.index("(")]: i for i, text in enumerate(texts) if text.startswith("def ")
        }
        calls = plan.made.calls
        for call, at in zip(calls, range(len(texts) - len(calls), len(texts)), strict=True):
            key = self.key(plan.graph, call.node)
            keys[at].update(key)
            for i in _body(texts, start[call.kernel]) if call.kernel else ():
                node = call.made.get(i - start[call.kernel] - 1, call.node)
                keys[i].update(self.key(plan.graph, node))
        return [Line(text, tuple(sorted(key))) for text, key in zip(texts, keys, strict=True)]

    def steps(self) -> list[tuple[int, ...]]:
        """Return the key of each kernel that a call runs, in order."""
        return [self.key(self.plan.graph, call.node) for call in self.plan.made.calls]

    # -- memory
    def buffers(self) -> list[Buffer]:
        """Return the values in memory; scratch memory has its kernel's key."""
        memory, graph = self.plan.memory, self.plan.graph
        owner = {ref: node for node, ref in memory.scratch.items()}
        return [
            Buffer(ref, row, self.key(graph, owner.get(ref, ref[0])))
            for ref, row in rows_of(memory, graph)
        ]


def counts(stages: list[tuple[str, Graph]]) -> Sequence[tuple[str, ...]]:
    """Return the table of stages as rows of strings, headings first."""
    return [("stage", "operators", "kernels", "bytes moved")] + [
        (name, str(graph.n_ops), str(n_steps(graph)), f"{nbytes_moved(graph):,}")
        for name, graph in stages
    ]


def n_steps(graph: Graph) -> int:
    """Return the number of kernels if each operator is one; views are none."""
    return sum(n.op is not None and not n.op.view for n in graph.nodes)


def _body(texts: list[str], first: int) -> range:
    """Return the line indices of a function, with its decorators."""
    last = first
    while last + 1 < len(texts) and texts[last + 1][:1] in (" ",):
        last += 1
    while first and texts[first - 1].startswith("@"):
        first -= 1
    return range(first, last + 1)


def source_of(code: CodeType) -> tuple[list[str], int]:
    """Return (lines, number of the first) of a code object; a placeholder if there's no file."""
    try:
        texts, first = inspect.getsourcelines(code)
    except OSError:
        return [f"def {code.co_name}(...):  # its text is not in a file"], code.co_firstlineno
    return textwrap.dedent("".join(texts)).rstrip("\n").split("\n"), max(first, 1)
