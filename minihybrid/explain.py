"""All that happens in one call, stage by stage, to be looked at.

Takes:   a net or a compiled function, and the inputs of a call.
Gives:   `explain`, and `Explanation`: text, and in a notebook folded sections.

Counts are the same in every run; times are not, so they stand in a section of their own
that can be left out.

What is left out: the backward plan; training changes what is recorded, not the stages.
"""

import itertools
from html import escape
from typing import NamedTuple

import numpy as np

from minihybrid.bench import Timing
from minihybrid.graph import diff
from minihybrid.op import AttrError, HybridError
from minihybrid.plan import nbytes_moved
from minihybrid.simt import watch
from minihybrid.viz import LIMIT, draw, html_table, memory_map, scrolling

LINES = 400  # of one text; more would drown a notebook

STAGES = {  # what each stage does, for the headings
    "trace": "the Python code ran once, on placeholders, and this is what it did",
    "expand": "operators made of simpler ones are replaced by those",
    "fold": "what does not depend on the inputs is computed once, now",
    "cse": "what is computed twice is computed once",
    "dce": "what nobody reads is not computed",
    "fuse": "operators that can share a loop become one kernel",
    "lower": "operators that are loops of others are written as these",
    "merge": "operators that can share threads become one kernel",
}

STYLE = """<style>
.mh-explain summary { cursor: pointer; padding: .25em 0; }
.mh-explain pre { overflow-x: auto; padding: .6em; font-size: .85em; line-height: 1.4;
  color: inherit; background: rgba(128, 128, 128, .12); border: 0; }
.mh-explain ins, .mh-explain del { text-decoration: none; font-weight: 600; }
.mh-explain ins { background: rgba(0, 158, 115, .25); }
.mh-explain del { background: rgba(213, 94, 0, .25); }
.mh-explain th, .mh-explain td { padding: .1em .8em .1em 0; }
.mh-pair { display: flex; flex-wrap: wrap; gap: 1em 2em; align-items: flex-start; }
.mh-pair figure { flex: 1 1 18rem; min-width: 0; margin: .5em 0; }
</style>"""


class Section(NamedTuple):
    """One stage: its heading, and what there is to see, as text and as HTML."""

    title: str
    text: str
    html: str


class Explanation:
    """The stages of one call.

    plan:    the plan of these inputs;  stages: [(name, graph)];  source: the generated
             text;  memory: where each value lies.
    steps:   [(kernel, elapsed_s)], seconds; `None` without timings.
    launches: what a simulated GPU counted (`simt.watch`); `None` elsewhere.
    """

    def __init__(self, plan, steps=None, launches=None, note=""):
        self.plan, self.stages = plan, plan.stages
        self.source, self.memory = plan.source, plan.memory
        self.steps, self.launches, self._note = steps, launches, note

    @property
    def title(self):
        """What was compiled, for which inputs."""
        plan = self.plan
        specs = {n.name: n.specs[0] for n in self.stages[0][1].variables}
        given = ", ".join(f"{n} {specs[n]}" for n in plan.inputs if n in specs)
        mode = "training" if plan.training else "prediction"
        note = f" ({plan.target_note})" * bool(plan.target_note)
        return f"{plan.title}: {given or 'no inputs'}; " \
               f"{mode}, target {plan.target}{note}"

    def counts(self):
        """The table of stages as text cells, the headings first."""
        return [("stage", "operators", "kernels", "bytes moved")] + [
            (name, str(graph.n_ops), str(n_steps(graph)), f"{nbytes_moved(graph):,}")
            for name, graph in self.stages]

    def sections(self):
        """One `Section` a stage, in the order of a call; times come last."""
        found = [_first(*self.stages[0])]
        for (_, before), (name, after) in itertools.pairwise(self.stages):
            found.append(_change(name, before, after))
        plan = self.plan
        title = (f"memory: {plan.nbytes_planned:,} bytes planned; "
                 f"{plan.nbytes_eager:,} bytes if each result had its own")
        text = cut(self.memory.show())
        picture = scrolling(memory_map(plan.graph, self.memory), "memory over time")
        found.append(Section(title, text, picture + _pre(text)))
        title = f"source: one function, {plural(plan.n_kernels, 'kernel')}"
        text = cut(self.source.rstrip())
        found.append(Section(title, text, _pre(text)))
        if self.launches:
            found.append(self._accesses())
        if self._note:
            found.append(Section("times: not measured", self._note, _pre(self._note)))
        elif self.steps is not None:
            found.append(self._times())
        return found

    def _accesses(self):
        rows = [("kernel", "threads", "loads", "stores", "shared loads", "barriers",
                 "bytes")]
        for label, (_, _, _, counts) in zip(self.plan.labels, self.launches,
                                            strict=True):
            nbytes = counts.total("nbytes_loaded") + counts.total("nbytes_stored")
            rows.append((label, *(f"{n:,}" for n in (
                counts.n_threads, counts.global_loads, counts.global_stores,
                counts.shared_loads, counts.barriers, nbytes))))
        return Section("accesses: what the threads of each kernel read and wrote",
                       columns_of(rows), scrolling(html_table(rows),
                                                   "table of accesses"))

    def _times(self):
        def text(elapsed_s):
            return Timing((elapsed_s,), 1).cells()[0]

        rows = [("step", "median")]
        rows += [("call from Python" if name == "call" else name, text(elapsed_s))
                 for name, elapsed_s in self.steps]
        rows += [("total", text(sum(elapsed_s for _, elapsed_s in self.steps))),
                 ("compiling once, or loading", text(self.plan.compile_s))]
        return Section("times: medians of the compiled steps, on this machine",
                       columns_of(rows, align="<"),
                       scrolling(html_table(rows), "table of times"))

    def __repr__(self):
        parts = [f"{self.title}\n\n{columns_of(self.counts())}"]
        for i, section in enumerate(self.sections(), 1):
            parts.append(f"{i}. {section.title}\n\n{section.text}")
        return "\n\n".join(parts)

    def _repr_html_(self):
        parts = [STYLE, f"<p>{escape(self.title)}</p>",
                 scrolling(html_table(self.counts()), "table of stages")]
        for i, section in enumerate(self.sections(), 1):
            name, _, rest = section.title.partition(":")
            parts.append(f"<details><summary><strong>{i}. {escape(name)}</strong>:"
                         f"{escape(rest)}</summary>\n{section.html}</details>")
        return "\n".join(['<div class="mh-explain">', *parts, "</div>"])


def _first(name, graph):
    text = cut(graph.show())
    return Section(f"{name}: {STAGES[name]}", text, draw(graph).figure() + _pre(text))


def _change(name, before, after):
    """The section of a pass: what it changed, with both graphs drawn."""
    title = f"{name}: {STAGES[name]}"
    if before.show() == after.show():
        return Section(f"{title} (nothing here)", "unchanged", "<p>Unchanged.</p>")
    counts = (f"{plural(n_steps(before), 'kernel')} before, {n_steps(after)} after; "
              f"{nbytes_moved(before):,} bytes moved before, "
              f"{nbytes_moved(after):,} after")
    figures = "".join(
        f"<figure><figcaption>{when} {name}</figcaption>{draw(graph).figure()}</figure>"
        for when, graph in (("Before", before), ("After", after)))
    if max(len(before.nodes), len(after.nodes)) > LIMIT:  # it would take too long
        text = f"more than {LIMIT} nodes, too many to compare line by line; see .stages"
    else:
        text = diff(before, after)
    return Section(title, f"{counts}\n\n{text}",
                   f'<p>{counts}</p><div class="mh-pair">{figures}</div>'
                   + _pre(text, {"- ": "del", "+ ": "ins"}))


def _pre(text, marks=()):
    """Preformatted text; `marks`: how a line begins -> the element around it."""
    lines = []
    for line in text.split("\n"):
        mark = line[:2] if line[:2] in marks else ""
        lines.append(f"<{marks[mark]}>{escape(line)}</{marks[mark]}>" if mark
                     else escape(line))
    return '<pre tabindex="0">' + "\n".join(lines) + "</pre>"


def cut(text):
    """The first `LINES` lines, and how many more there are."""
    lines = text.split("\n")
    more = [f"... and {len(lines) - LINES} more lines"] * (len(lines) > LINES)
    return "\n".join([*lines[:LINES], *more])


def plural(count, word):
    """`1 kernel`, `2 kernels`."""
    return f"{count} {word}{'s' * (count != 1)}"


def n_steps(graph):
    """How many loops run if each operator is one; views only rename memory."""
    return sum(n.op is not None and not n.op.view for n in graph.nodes)


def columns_of(rows, align=">"):
    """Rows of cells as lines of text; the first column is aligned to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(
        f"{cell:{align if i else '<'}{width}}"
        for i, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip()
        for row in rows)


def explain(net, *inputs, timings=True):
    """Show every stage of the call `net(*inputs)`: graphs, memory, source, times.

    net:     a HybridBlock, hybridized or not, or the result of `minihybrid.function`.
    timings: whether to time the compiled steps; they differ from run to run.
    Units:   bytes; `.steps` in seconds.
    Raises:  AttrError if `net` cannot be compiled; what tracing it raises.

    >>> from minihybrid import nd
    >>> from minihybrid.gluon.function import function
    >>> scaled = function(lambda a, b: nd.relu(a * b) * 2)
    >>> explain(scaled, nd.ones(3), nd.ones(3), timings=False).counts()[-1]
    ('fuse', '1', '1', '36')
    """
    if not hasattr(net, "plan_for"):
        raise AttrError(
            f"explain: found a value of type {type(net).__name__}, which has no plans, "
            "but a HybridBlock or a compiled function is needed; derive the net from "
            "HybridBlock, or wrap the function as minihybrid.function(f)")
    plan, arrays, bound = net.plan_for(*inputs)
    if plan.device:
        with watch() as launches:
            plan(arrays, bound)
        return Explanation(plan, launches=launches, note="what a launch on a GPU takes "
                           "is measured by benchmarks/gpu.py" * timings)
    if not timings:
        return Explanation(plan)
    plan(arrays, bound)  # compiles it, and notes how long that takes
    arrays = [np.array(a, order="C") for a in arrays]
    try:
        return Explanation(plan, plan.time_steps(arrays, bound))
    except HybridError as error:  # a target whose steps cannot be timed one by one
        return Explanation(plan, note=str(error))
