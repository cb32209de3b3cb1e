"""What belongs together: lines of Python, nodes, lines of kernels, and memory.

Takes:   the stages of a graph, and the plan that was made of it.
Gives:   `Links`: each of those with its key, the numbers of the traced nodes behind it;
         `counts`, the table of stages.

Two things belong together if their keys have a number in common. Nothing is guessed:
the trace keeps which lines made a node, each pass in whose place a node stands, and
the writer of kernels which node a line computes.
What is left out: what is one constant in the end is not linked to what it was made of.
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
    """The lines of a function that was traced.

    first:  the line number of the first in its file; `None` in this package, whose
            pictures are stored in notebooks and must not change when a line moves.
    """

    name: str
    first: int | None
    lines: list


class Buffer(NamedTuple):
    """A value that has memory: a row of `Memory.steps`, its reference, and its key."""

    ref: tuple
    row: tuple
    key: tuple


class Change(NamedTuple):
    """What a pass made of a graph: lines that went and came, and nodes by kind.

    new:     nodes that were not there before.
    merged:  nodes that now stand where several stood.
    """

    gone: list
    came: list
    new: set
    merged: set


class Links:
    """The parts of a plan, and the keys that link them.

    stages:  [(name, graph)] from the trace on;  plan: `None` for graphs alone.
    """

    def __init__(self, stages: list[tuple[str, Graph]], plan: Plan | None = None) -> None:
        self.stages, self.trace = stages, stages[0][1]
        self.plan: Any = plan  # needed to show code or memory
        self.number = {node: i for i, node in enumerate(self.trace.nodes)}

    def key(self, graph: Graph, node: Node) -> tuple[int, ...]:
        """The numbers of the traced nodes that a node of a stage stands for."""
        indices = (self.number.get(n) for n in graph.origin(node))
        return tuple(sorted(i for i in indices if i is not None))

    # -- the program
    def listings(self) -> list[Listing]:
        """The functions that were traced, in the order in which they were first run."""
        keys: dict[tuple[str, int], list[int]] = {}
        codes: dict[CodeType, None] = {}  # outermost first
        for node, places in self.trace.places.items():
            for code, line in places:
                keys.setdefault((code.co_filename, line), []).append(self.number[node])
                codes[code] = None
        listings = []
        shown: set[tuple[str, int]] = set()
        for code in codes:
            file, (texts, first) = code.co_filename, source_of(code)
            if (file, first) not in shown:  # else it stands inside of one that is
                shown.update((file, first + i) for i in range(len(texts)))
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
        """The lines of `graph.show()` that are nodes: [(node, Line)]."""
        return [
            (node, Line(text, self.key(graph, node)))
            for node, text in zip(graph.nodes, graph.show().split("\n"), strict=False)
        ]

    def change(self, before: Graph, after: Graph) -> Change:
        """What a pass changed."""
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
        """The generated text, line by line."""
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
        """The key of each kernel that a call runs, in order."""
        return [self.key(self.plan.graph, call.node) for call in self.plan.made.calls]

    # -- memory
    def buffers(self) -> list[Buffer]:
        """The values that have memory; what a kernel needs beside is the kernel's."""
        memory, graph = self.plan.memory, self.plan.graph
        owner = {ref: node for node, ref in memory.scratch.items()}
        return [
            Buffer(ref, row, self.key(graph, owner.get(ref, ref[0])))
            for ref, row in rows_of(memory, graph)
        ]


def counts(stages: list[tuple[str, Graph]]) -> Sequence[tuple[str, ...]]:
    """The table of stages as text cells, the headings first."""
    return [("stage", "operators", "kernels", "bytes moved")] + [
        (name, str(graph.n_ops), str(n_steps(graph)), f"{nbytes_moved(graph):,}")
        for name, graph in stages
    ]


def n_steps(graph: Graph) -> int:
    """How many loops run if each operator is one; views only rename memory."""
    return sum(n.op is not None and not n.op.view for n in graph.nodes)


def _body(texts: list[str], first: int) -> range:
    """The numbers of a function's lines, with its decorators."""
    last = first
    while last + 1 < len(texts) and texts[last + 1][:1] in (" ",):
        last += 1
    while first and texts[first - 1].startswith("@"):
        first -= 1
    return range(first, last + 1)


def source_of(code: CodeType) -> tuple[list[str], int]:
    """(lines, number of the first) of a code object; what can be said if it is lost."""
    try:
        texts, first = inspect.getsourcelines(code)
    except OSError:
        return [f"def {code.co_name}(...):  # its text is not in a file"], code.co_firstlineno
    return textwrap.dedent("".join(texts)).rstrip("\n").split("\n"), max(first, 1)
