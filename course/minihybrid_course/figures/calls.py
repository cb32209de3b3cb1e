"""Figures of calls: their costs, and the stages that they pass through.

Uses:    nets or functions, and their inputs; the figures call them.
Defines: `bill`, `microseconds`, `who_calls`.

`bill` and `who_calls` count, so they are the same on every machine; `microseconds` measures.
Limits:  the work of libraries inside a call isn't counted.
"""

import copy
import inspect
import itertools
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import minihybrid
from minihybrid.core import nd
from minihybrid.core.block import Block
from minihybrid.core.hybrid import Hybrid
from minihybrid.core.pipeline import build
from minihybrid.core.plan import Plan
from minihybrid.runtime import page_cpu
from minihybrid.view.bench import compare
from minihybrid.view.viz import plural
from minihybrid_course.ink import LETTER, LINE, WIDTH, Figure, Film, Panel

OURS = str(Path(minihybrid.__file__).parent)
STATIONS = {  # stage of a call -> the code that runs in it
    "find the plan": next(c for c in Hybrid.caller.__code__.co_consts if inspect.iscode(c)),
    "trace": Hybrid.trace.__code__,
    "your Python": None,
    "build": build.__code__,
    "compile, load": Plan._runner.__code__,
    "run kernels": "run",
}


def _called(function, *inputs):
    """Return code -> how often a call ran it, for Python functions."""
    seen = Counter()

    def note(frame, event, arg):
        if event == "call":
            seen[frame.f_code] += 1

    old = sys.getprofile()
    sys.setprofile(note)
    try:
        function(*inputs)
    finally:
        sys.setprofile(old)
    return seen


def n_python(function, *inputs):
    """Count the engine's Python functions that a call runs, including those of plans.

    Comprehensions aren't counted: they're functions only in some versions of Python.
    """
    return sum(
        count
        for code, count in _called(function, *inputs).items()
        if (code.co_filename.startswith(OURS) or code.co_filename == "<string>")
        and (code.co_name[0] != "<" or code.co_name == "<lambda>")
        and code.co_filename not in (__file__, page_cpu.__file__)
    )


def line_by_line(net):
    """Return a copy of the net or function, not hybridized."""
    if not isinstance(net, Block):
        return inspect.unwrap(net)
    twin = copy.deepcopy(net)
    twin.hybridize(False)
    return twin


def bill(hybrid, *inputs):
    """Draw the cost of one call, eager and hybridized: Python, loops, memory.

    hybrid:  a hybridized block, or the result of `minihybrid.function`. It's called
             twice, since the first call also compiles.
    """
    eager = line_by_line(hybrid)
    for each in (eager, hybrid):
        each(*inputs)
    plan = hybrid.plan_for(*inputs)[0]
    traced = [n for n in plan.stages[0][1].nodes if n.op and not n.op.view]
    counts = [n_python(each, *inputs) for each in (eager, hybrid)]
    left, right = Panel("line by line"), Panel("hybridized")
    told_of = []
    for panel, count in zip((left, right), counts, strict=True):
        high = max(110 * round(count / max(counts), 1), LINE)
        # Large counts are rounded: they also depend on the version of Python.
        few = count < 20
        calls = plural(count, "function") if few else f"about {round(count, -1)} functions"
        told_of.append(calls.replace("function", "Python function"))
        panel.box(0, panel.row(high), WIDTH, high, f"Python: {calls}", "python")
        panel.tell(f"Python: {calls}.")
    for node in traced:
        _loop(left, [node.op.name], sum(s.nbytes for s in node.specs))
    nodes = [n for n in plan.graph.nodes if n.op and not n.op.view]
    for node in nodes:
        inner = node.attrs.get("graph")
        names = [n.op.name for n in inner.nodes if n.op] if inner else [node.op.name]
        _loop(right, names, sum(s.nbytes for s in node.specs))
    total = sum(s.nbytes for node in traced for s in node.specs)
    own = f"{plural(len(traced), 'operator')}; each has its own memory: {total:,} bytes"
    left.note(own)
    left.tell(f"{own}.")
    used = f"{plural(plan.n_kernels, 'kernel')}; memory planned: {plan.nbytes_planned:,} bytes"
    right.note(used)
    right.tell(f"{used}.")
    return Figure(
        f"One call: {plural(len(traced), 'operator')} and {told_of[0]} become "
        f"{plural(len(nodes), 'kernel')} and {told_of[1]}",
        left,
        right,
    )


def microseconds(hybrid, x, sizes=(1, 4, 16, 64)):
    """Draw the time of one call, eager and hybridized, for some batch sizes.

    hybrid:  a hybridized `HybridSequential`;  x: one row of its input.

    A layer's time for an empty batch is overhead: the same calls of Python and NumPy, without
    arithmetic. The rest of its time is arithmetic. Each is the fastest of many rounds.
    """
    eager = line_by_line(hybrid)
    panels, gains, shares = [], [], []
    for size in sizes:
        batch = nd.concat(*[x] * size, dim=0)
        parts = _parts(eager, batch)
        total = sum(sum(part) for _, *part in parts)
        fast = _fastest({"hybrid": lambda b=batch: hybrid(b)})["hybrid"]
        gains.append(total / fast)
        shares.append(sum(overhead for _, overhead, _ in parts) / total)
        panels.append(_lanes(f"{plural(size, 'row')} at once", parts, total, fast))
    caption = (
        f"For {plural(sizes[0], 'row')}, {shares[0]:.0%} of a call is overhead, and the hybridized "
        f"call is {gains[0]:.1f} times as fast; for {sizes[-1]}, overhead is {shares[-1]:.0%}, "
        f"and it is {gains[-1]:.1f} times as fast (yellow: overhead, green: arithmetic)"
    )
    names = [f"{size:,}" for size in sizes]
    return Film(caption, "rows at once", dict(zip(names, panels, strict=True)))


def _parts(eager, batch):
    """Return [(layer, overhead in microseconds, arithmetic)]; the container is unnamed."""
    empty, parts, value, idle = batch[:0], [], batch, batch[:0]
    whole = _fastest({"full": lambda: eager(batch), "empty": lambda: eager(empty)})
    for i, layer in enumerate(eager):
        times = _fastest({"full": partial(layer, value), "empty": partial(layer, idle)})
        overhead = min(times.values())
        parts.append((f"{type(layer).__name__} {i}", overhead, times["full"] - overhead))
        value, idle = layer(value), layer(idle)
    return [("", max(whole["empty"] - sum(part[1] for part in parts), 0), 0), *parts]


def _fastest(functions):
    timings = compare(functions, repeats=41, min_time_s=0.002).timings
    return {name: min(timing.times_s) * 1e6 for name, timing in timings.items()}


def _lanes(title, parts, total, fast):
    """Draw two lanes over one axis: the parts of an eager call, and the hybridized call."""
    panel, x = Panel(title), 0.0
    scale = WIDTH / max(total, fast)
    panel.row(LINE)
    y = panel.row(30, 22)
    panel.text(0, y - 6, f"line by line: {total:.1f} us", anchor="start")
    for name, *spans in parts:
        left = x
        for ink, span in zip(("python", "kernel"), spans, strict=True):
            if span * scale >= 1:
                panel.box(x, y, span * scale, 30, "", ink, fill=0.75)
            x += span * scale
        if name and x - left > LETTER * len(name):
            panel.text((left + x) / 2, y + 19, name)
    y = panel.row(30, 2)
    panel.text(0, y - 6, f"hybridized: {fast:.1f} us", anchor="start")
    panel.box(0, y, fast * scale, 30, "", "kernel", fill=0.75)
    overhead = sum(part[1] for part in parts)
    panel.tell(
        f"Line by line {total:.1f} us, of it {overhead:.1f} overhead; hybridized {fast:.1f}."
    )
    return panel


def _loop(panel, names, nbytes):
    names = names if len(names) <= 5 else [*names[:4], f"and {len(names) - 4} more"]
    high = LINE * len(names) + 8
    y = panel.row(high, 4)
    panel.box(0, y, 190, high, names, "kernel")
    panel.arrow(194, y + high / 2, 226, y + high / 2)
    panel.box(230, y, WIDTH - 230, high, f"{nbytes:,} bytes", "array")
    panel.tell(f"{' + '.join(names)} writes {nbytes:,} bytes.")


def who_calls(net, **calls):
    """Draw the stages that each of some calls passes through, in order.

    net:     a hybridized block, or the result of `minihybrid.function`, with no plans.
    calls:   name of the call -> its input.
    """
    inside = getattr(net, "hybrid_forward", None) or inspect.unwrap(net)
    panel, left = Panel("the stages of each call, from top to bottom"), 122
    across = (WIDTH - left) / len(calls)
    stations = STATIONS | {"your Python": inside.__code__}
    came = {}
    for name, x in calls.items():
        seen = _called(net, x)
        runs = any(c.co_name == "run" and c.co_filename == "<string>" for c in seen)
        came[name] = [bool(runs if c == "run" else seen[c]) for c in stations.values()]
    y = panel.row(LINE)
    for k, name in enumerate(calls):
        panel.text(left + (k + 0.5) * across, y + 12, name.replace("_", " "), bold=True)
    last = [None] * len(calls)
    for i, station in enumerate(stations):
        y = panel.row(26, 14)
        panel.text(0, y + 17, station, anchor="start")
        for k, name in enumerate(calls):
            x, comes = left + k * across + 6, came[name][i]
            text, ink = ("yes", "kernel") if comes else ("", "plain")
            panel.box(x, y, across - 12, 26, text, ink, dashed=not comes, fill=0.18 * comes)
            if comes:
                if last[k] is not None:
                    panel.arrow(
                        left + (k + 0.5) * across, last[k], left + (k + 0.5) * across, y - 1
                    )
                last[k] = y + 26
    for name, passed in came.items():
        ways = ", ".join(itertools.compress(stations, passed))
        panel.tell(f"{name.replace('_', ' ')}: {ways}.")
    least = min(came, key=lambda name: sum(came[name]))
    reached = f"{sum(came[least])} of {len(stations)} stages"
    return Figure(f"{least.replace('_', ' ').capitalize()} reaches {reached}", panel)
