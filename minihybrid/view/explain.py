"""Inspection of one call, stage by stage: trace, passes, memory, source, times.

Defines: `explain`, which returns an `Explanation`: text, or the hybrid view in a notebook.

Counts are reproducible; times aren't, so they have a separate, optional section.

Not supported: the backward plan; training changes the traced graph, not the stages.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minihybrid.core.graph import Graph
from minihybrid.core.op import AttrError, HybridError
from minihybrid.core.plan import Plan, nbytes_moved
from minihybrid.runtime.guards import recompiled
from minihybrid.simt import watch
from minihybrid.view.bench import Timing
from minihybrid.view.hybrid_view import meaning, view
from minihybrid.view.links import counts, n_steps
from minihybrid.view.text import diff
from minihybrid.view.viz import LIMIT, columns_of, plural

LINES = 400  # per section; more would flood a notebook


class Section(NamedTuple):
    """One stage: its heading and its contents as text."""

    title: str
    text: str


class Explanation:
    """The stages of one call.

    plan:    the plan of these inputs;  stages: [(name, graph)];  source: the generated
             source;  memory: the memory plan.
    steps:   [(kernel, elapsed_s)], seconds; `None` without timings.
    launches: counters of a simulated GPU (`simt.watch`); `None` elsewhere.
    reason:  which guard of an earlier plan failed, if this one is a recompilation.
    """

    def __init__(
        self,
        plan: Plan,
        steps: list[tuple[str, float]] | None = None,
        launches: list | None = None,
        note: str = "",
        reason: str = "",
    ) -> None:
        self.plan, self.stages = plan, plan.stages
        self.source, self.memory = plan.source, plan.memory
        self.steps, self.launches, self.note, self.reason = steps, launches, note, reason

    @property
    def title(self) -> str:
        """The compiled net and its inputs."""
        plan = self.plan
        specs = {n.name: n.specs[0] for n in self.stages[0][1].variables}
        inputs = ", ".join(f"{n} {specs[n]}" for n in plan.inputs if n in specs)
        mode = "training" if plan.training else "prediction"
        note = f" ({plan.target_note})" * bool(plan.target_note)
        why = f"; recompiled: {self.reason}" * bool(self.reason)
        return f"{plan.title}: {inputs or 'no inputs'}; {mode}, target {plan.target}{note}{why}"

    def counts(self) -> Sequence[tuple[str, ...]]:
        """Return the table of stages as rows of strings, headings first."""
        return counts(self.stages)

    def sections(self) -> list[Section]:
        """Return a `Section` per stage, in the order of a call; times come last."""
        sections = [_first(*self.stages[0])]
        for (_, before), (name, after) in itertools.pairwise(self.stages):
            sections.append(_change(name, before, after))
        plan = self.plan
        title = (
            f"memory: {plan.nbytes_planned:,} bytes planned; "
            f"{plan.nbytes_eager:,} bytes if each result had its own"
        )
        sections.append(Section(title, cut(self.memory.show())))
        title = f"source: one function, {plural(plan.n_kernels, 'kernel')}"
        sections.append(Section(title, cut(self.source.rstrip())))
        if self.launches:
            title = "accesses: what the threads of each kernel read and wrote"
            sections.append(Section(title, columns_of(self.access_rows())))
        if self.note:
            sections.append(Section("times: not measured", self.note))
        elif self.steps is not None:
            title = "times: medians of the compiled steps, on this machine"
            text = columns_of([("step", "median"), *self.time_rows()], align="<")
            sections.append(Section(title, text))
        return sections

    def access_rows(self) -> Sequence[tuple[str, ...]]:
        """Return a simulated GPU's counters, a row per launch, headings first."""
        rows = [("kernel", "threads", "loads", "stores", "shared loads", "barriers", "bytes")]
        for label, (_, _, _, counters) in zip(self.plan.labels, self.launches or (), strict=True):
            numbers = (
                counters.n_threads,
                counters.global_loads,
                counters.global_stores,
                counters.shared_loads,
                counters.barriers,
                counters.total("nbytes_loaded") + counters.total("nbytes_stored"),
            )
            rows.append((label, *(f"{n:,}" for n in numbers)))
        return rows

    def time_rows(self) -> list[tuple[str, str]]:
        """Return (step, median) rows as strings: the steps, their sum, and compilation."""

        def text(elapsed_s: float) -> str:
            return Timing((elapsed_s,), 1).cells()[0]

        steps = self.steps or []
        return [
            *(("call from Python" if name == "call" else name, text(s)) for name, s in steps),
            ("total", text(sum(elapsed_s for _, elapsed_s in steps))),
            ("compiling once, or loading", text(self.plan.compile_s or 0.0)),
        ]

    def __repr__(self) -> str:
        parts = [f"{self.title}\n\n{columns_of(self.counts())}"]
        for i, section in enumerate(self.sections(), 1):
            parts.append(f"{i}. {section.title}\n\n{section.text}")
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        return view(self)


def _first(name: str, graph: Graph) -> Section:
    return Section(f"{name}: {meaning(name)}", cut(graph.show()))


def _change(name: str, before: Graph, after: Graph) -> Section:
    """Return the section of a pass, with its changes."""
    title = f"{name}: {meaning(name)}"
    if before.show() == after.show():
        return Section(f"{title} (nothing here)", "unchanged")
    sizes = (
        f"{plural(n_steps(before), 'kernel')} before, {n_steps(after)} after; "
        f"{nbytes_moved(before):,} bytes moved before, {nbytes_moved(after):,} after"
    )
    if max(len(before.nodes), len(after.nodes)) > LIMIT:  # it would take too long
        text = f"more than {LIMIT} nodes, too many to compare line by line; see .stages"
    else:
        text = diff(before, after)
    return Section(title, f"{sizes}\n\n{text}")


def cut(text: str) -> str:
    """Truncate a text to `LINES` lines, and note how many more there are."""
    lines = text.split("\n")
    more = [f"... and {len(lines) - LINES} more lines"] * (len(lines) > LINES)
    return "\n".join([*lines[:LINES], *more])


def explain(net: Callable, *inputs: Any, timings: bool = True) -> Explanation:
    """Show every stage of the call `net(*inputs)`: graphs, memory, source, times.

    net:     a HybridBlock, hybridized or not, or the result of `minihybrid.function`.
    timings: whether to time the compiled steps; they differ from run to run.
    Units:   bytes; `.steps` in seconds.
    Raises:  AttrError if `net` can't be compiled; any error of tracing it.

    >>> from minihybrid.core import nd
    >>> from minihybrid.gluon.function import function
    >>> scaled = function(lambda a, b: nd.relu(a * b) * 2)
    >>> explain(scaled, nd.ones(3), nd.ones(3), timings=False).counts()[-1]
    ('fuse', '1', '1', '36')
    """
    if not hasattr(net, "plan_for"):
        raise AttrError(
            f"explain: found a value of type {type(net).__name__}, which has no plans, "
            "but a HybridBlock or a compiled function is needed; derive the net from "
            "HybridBlock, or wrap the function as minihybrid.function(f)"
        )
    plan, arrays, bound = net.plan_for(*inputs)
    explanation = Explanation(plan, reason=recompiled(getattr(net, "plans", {}), plan))
    if plan.device:
        with watch() as explanation.launches:
            plan(arrays, bound)
        explanation.note = "what a launch on a GPU takes is measured by benchmarks/gpu.py" * timings
    elif timings:
        plan(arrays, bound)  # compiles it and records the time
        arrays = [np.array(a, order="C") for a in arrays]
        try:
            explanation.steps = plan.time_steps(arrays, bound)
        except HybridError as error:  # this target can't time individual steps
            explanation.note = str(error)
    return explanation
