"""The hybrid view: a program as linked Python, graph, kernels, memory and times.

Defines: `view`, which returns self-contained HTML with `view.css` and `view.js` inlined.
         Hover over a line, or focus it by keyboard, to highlight the linked elements; a
         slider steps through the passes. `passes`: only the program and the passes.

Without scripts, all parts are shown one below the other. All text is escaped, because
names come from files.
Not supported: the backward plan.
"""

import itertools
from html import escape
from pathlib import Path
from typing import Any

from minihybrid.core.graph import Graph
from minihybrid.core.targets import TARGETS
from minihybrid.view.links import Change, Links, counts
from minihybrid.view.viz import (
    LIMIT,
    Drawing,
    columns_of,
    html_table,
    memory_map,
    plural,
    scrolling,
)

HERE = Path(__file__).parent
STAGES = {  # stage -> heading; `meaning` adds the passes of a target
    "trace": "Python ran once, on placeholders, and the engine recorded these operators",
    "expand": "composite operators are replaced by simpler ones",
    "fold": "values that no input affects are computed once, at compile time",
    "cse": "equal values are computed only once",
    "dce": "values that are never read are removed",
    "fuse": "operators that can share a loop become one kernel",
    "lower": "operators such as softmax become reductions and elementwise steps",
    "merge": "operators that can share threads become one kernel",
}
CUT = 250  # lines of a listing; more would flood a notebook
BOXES = 240, 30  # total over all graphs, and minimum for each


def meaning(name: str) -> str:
    """Describe a stage; for a target's own pass, by the first line of its docstring."""
    passes = [p for target in TARGETS.values() for p in target.passes if p.__name__ == name]
    summaries = [p.__doc__.strip().splitlines()[0].rstrip(".") for p in passes if p.__doc__]
    return STAGES.get(name) or next(iter(summaries), "a pass of your own")


def view(explanation: Any) -> str:
    """Return the view of an explanation as HTML, deterministic for a plan."""
    plan = explanation.plan
    links = Links(plan.stages, plan)
    panels = [_program(links), _passes(links), _kernels(links), _memory(links)]
    if explanation.launches:
        panels.append(_accesses(links, explanation))
    if explanation.note:
        panels.append(panel("step", "Time: not measured", f"<p>{escape(explanation.note)}</p>"))
    elif explanation.steps is not None:
        panels.append(_times(links, explanation))
    return _page(explanation.title, panels)


class Passes:
    """The stages of a graph; a notebook shows them with a slider."""

    def __init__(self, stages: list[tuple[str, Graph]]) -> None:
        self.stages = list(stages)

    def __repr__(self) -> str:
        return columns_of(counts(self.stages))

    def _repr_html_(self) -> str:
        links = Links(self.stages)
        title = " → ".join(name for name, _ in self.stages)
        return _page(title, [_program(links), _passes(links)])


def passes(stages: list[tuple[str, Graph]]) -> Passes:
    """Step through graphs, each the result of a pass over the previous one.

    stages:  [(name, graph)]: the input of `optimize`, then its results.

    >>> from minihybrid.core import sym
    >>> from minihybrid.core.graph import Graph
    >>> from minihybrid.passes import optimize
    >>> x = sym.var("x", shape=(3,), dtype="float32")
    >>> graph, _ = sym.trace(lambda x: sym.exp(x * 1), {"x": x.spec})
    >>> passes([("trace", graph), *optimize(graph)])
    stage  operators  kernels  bytes moved
    trace          2        2           48
    fold           1        1           24
    cse            1        1           24
    dce            1        1           24
    """
    return Passes(stages)


def _page(title: str, panels: list) -> str:
    return page(
        f'<p class="title">{escape(title)}</p>\n'
        '<p class="said" role="status"></p>\n'
        f'<div class="panels">{"".join(panels)}</div>',
        "view",
    )


def page(content: str, name: str, folder: Path = HERE) -> str:
    """Wrap content with its stylesheet and script, from files in a folder, for any page."""
    style, script = (
        (folder / f"{name}.{kind}").read_text(encoding="utf-8") for kind in ("css", "js")
    )
    return (
        f'<div class="mh-look"><div class="mh-{name}">\n<style>{style}</style>\n'
        f"{content}\n</div><script>{script}</script></div>"
    )


def keyed(key: tuple) -> str:
    """Return the HTML attribute with a key; empty for an empty key."""
    return f' data-k="{" ".join(map(str, key))}"' if key else ""


def panel(kind: str, title: str, content: str) -> str:
    """Return one panel of the view; `kind` names the items that the script counts."""
    return (
        f'<section class="panel" data-kind="{kind}" aria-label="{escape(title)}">'
        f'<p class="head">{escape(title)}</p>\n{content}</section>\n'
    )


def code(lines: list, first: int | None = None, tag: str = "span", most: int = CUT) -> str:
    """Return at most `most` lines with their keys, numbered from `first`."""
    parts = []
    for i, line in enumerate(lines[:most]):
        margin = "" if first is None else f"<i>{first + i}</i>"
        parts.append(
            f'<{tag} class="line"{keyed(line.key)}>{margin}{escape(line.text) or " "}\n</{tag}>'
        )
    if len(lines) > most:
        parts.append(f"... and {len(lines) - most} more lines\n")
    return "".join(parts)


def _pre(content: str, label: str) -> str:
    return f'<pre tabindex="0" role="group" aria-label="{escape(label)}">{content}</pre>'


def _program(links: Links) -> str:
    return panel(
        "line of Python",
        "Python",
        "".join(
            f"<p>{escape(listing.name)}</p>{_pre(code(listing.lines, listing.first), listing.name)}"
            for listing in links.listings()
        )
        or "<p>No line of the program is known.</p>",
    )


# -- the passes ------------------------------------------------------------------------
def _passes(links: Links) -> str:
    """Return a slider and a graph for each pass that changed it."""
    stages, (_, *rows) = links.stages, counts(links.stages)
    pairs = [
        (before, after, before.show() == after.show())
        for (_, before), (_, after) in itertools.pairwise(stages)
    ]
    most = max(BOXES[0] // (1 + sum(not same for *_, same in pairs)), BOXES[1])
    first = _figure(links, links.trace, most) + _all_lines(links, links.trace, most)
    parts = [_stage(0, rows[0], first)]
    for i, (before, after, same) in enumerate(pairs, 1):
        body = ""
        if not same:
            few = max(len(before.nodes), len(after.nodes)) <= LIMIT
            change = links.change(before, after) if few else None
            body = _figure(links, after, most, change)
            body += _changed(change, most) if change else _all_lines(links, after, most)
        parts.append(_stage(i, rows[i], body))
    slider = (
        '<label class="slider">pass <input type="range" min="0" '
        f'max="{len(stages) - 1}" value="0" step="1"></label>'
    )
    return panel("node", "Graph, pass by pass", slider + "".join(parts))


def _stage(i: int, row: tuple, body: str) -> str:
    name, n_ops, n_kernels, nbytes = row
    return (
        f'<div class="stage"><p class="pass"><b>{i}. {escape(name)}:</b> {escape(meaning(name))}'
        f"{'' if body else ' (nothing here)'}"
        f"<span>operators {n_ops}, kernels {n_kernels}, bytes moved {nbytes}"
        f'</span></p><div class="body">{body}</div></div>\n'
    )


def _figure(links: Links, graph: Graph, most: int, change: Change | None = None) -> str:
    """Draw a graph with keys, and mark the nodes that a pass created."""
    kinds = {}
    if change:
        kinds = dict.fromkeys(change.new, "new") | dict.fromkeys(change.merged, "merged")
    marks = {
        node: keyed(links.key(graph, node)) + (f' class="{kinds[node]}"' if node in kinds else "")
        for node in graph.nodes
    }
    return Drawing(graph, most, marks).figure()


def _all_lines(links: Links, graph: Graph, most: int) -> str:
    lines = [line for _, line in links.lines(graph)]
    return _details("as text", code(lines, most=most))


def _changed(change: Change, most: int) -> str:
    """Return the diff; signs distinguish lines, not color alone."""
    parts = [
        code([line._replace(text=f"{sign} {line.text}") for line in lines], tag=tag, most=most)
        for sign, tag, lines in (("-", "del", change.removed), ("+", "ins", change.added))
    ]
    sizes = [
        (change.removed, "line", "gone"),
        (change.added, "line", "new"),
        (change.new, "box", "new (dashed)"),
        (change.merged, "box", "made of several (dotted)"),
    ]
    return _details(
        ", ".join(f"{plural(len(some), word)} {what}" for some, word, what in sizes if some),
        "".join(parts),
        is_open=True,
    )


def _details(summary: str, content: str, is_open: bool = False) -> str:
    return (
        f"<details{' open' * is_open}><summary>{summary}</summary>"
        f"{_pre(content, summary)}</details>"
    )


# -- what runs -------------------------------------------------------------------------
def _kernels(links: Links) -> str:
    """Return the generated source without imports, which are the same for all programs."""
    lines = links.code()
    at = next((i for i, line in enumerate(lines) if line.text.startswith(("@", "def "))), 0)
    n = plural(links.plan.n_kernels, "kernel")
    return panel(
        "line of the kernels",
        f"{n}, {plural(len(lines) - at, 'line')} of generated source",
        _pre(code(lines[at:], first=at + 1), "generated source"),
    )


def _memory(links: Links) -> str:
    """Draw the arena, with a table row for each value."""
    plan, buffers = links.plan, links.buffers()
    title = (
        f"Memory: {plan.nbytes_planned:,} bytes; {plan.nbytes_eager:,} if each result had its own"
    )
    picture = (
        memory_map(plan.graph, plan.memory, {b.ref: keyed(b.key) for b in buffers})
        if plan.memory.nbytes
        else ""
    )
    rows = [
        ((name, f"{nbytes:,}", f"{first} to {last}", where), key)
        for _, (name, nbytes, first, last, where), key in buffers[: CUT // 2]
    ]
    return panel(
        "buffer",
        title,
        scrolling(picture, "memory over time")
        + table(("value", "bytes", "steps", "place"), rows, "values in memory"),
    )


def _accesses(links: Links, explanation: Any) -> str:
    head, *rows = explanation.access_rows()
    return panel(
        "step",
        "Accesses: what the threads of each kernel read and wrote",
        table(head, [*zip(rows, links.steps(), strict=True)], "accesses"),
    )


def _times(links: Links, explanation: Any) -> str:
    """Return the steps with their times, which the script draws as bars."""
    keys = [(), *links.steps()]
    rows = list(itertools.zip_longest(explanation.time_rows(), keys, fillvalue=()))
    return panel("step", "Time", table(("step", "median"), rows, "times of steps"))


def table(head: tuple, rows: list, label: str) -> str:
    """Return a table whose rows have keys."""
    lines = html_table([head, *(row for row, _ in rows)]).split("<tr>")
    keys = [(), *(key for _, key in rows)]
    return scrolling(
        lines[0]
        + "".join(f"<tr{keyed(key)}>{line}" for key, line in zip(keys, lines[1:], strict=True)),
        label,
    )
