"""Figures of plans: the stages of compilation, the two tiers, and a training step.

Uses:    plans; a hybridized net; a model with its trainer.
Defines: `stages`, `tiers`, `training_step`.

Not supported: times; `minihybrid.explain` shows those.
"""

from minihybrid.core.op import HybridError
from minihybrid.core.plan import nbytes_moved
from minihybrid.view.links import n_steps
from minihybrid.view.viz import plural
from minihybrid_course.ink import LINE, WIDTH, Figure, Panel


def _station(panel, lines, ink):
    """Draw a box with a heading and a line."""
    y = panel.row(42, 0)
    panel.box(0, y, WIDTH, 42, ink=ink)
    for i, line in enumerate(lines):
        panel.text(WIDTH / 2, y + 2 + LINE * (i + 1), line, bold=i == 0)
    panel.tell(f"{': '.join(lines)}.")


def _down(panel, label=""):
    """Draw an arrow to the next box, with a label."""
    y, x = panel.row(24, 2), 60
    panel.arrow(x, y + 2, x, y + 23)
    panel.text(x + 14, y + 17, label, anchor="start")
    if label:
        panel.tell(f"{label}.")


def stages(plan):
    """Draw the stages from a traced graph to running code, with their results."""
    panel, before, idle = Panel("from a graph to a program"), None, []
    for name, graph in plan.stages:
        now = f"{plural(n_steps(graph), 'loop')}, {nbytes_moved(graph):,} bytes moved"
        if now == before:
            idle.append(name)
            continue
        if before:
            _down(panel, _idle(idle))
            idle = []
        _station(panel, [name, now], "kernel" if before else "plain")
        before = now
    n_lines = sum(map(bool, map(str.strip, plan.source.splitlines())))
    for ink, *lines in (
        ("array", "memory", f"{plan.nbytes_planned:,} bytes planned"),
        ("file", "text", f"{n_lines} lines for {plural(plan.n_kernels, 'kernel')}"),
        ("python", "function", f"target {plan.target}"),
    ):
        _down(panel, _idle(idle))
        idle = []
        _station(panel, lines, ink)
    first, last = plan.stages[0][1], plan.stages[-1][1]
    caption = (
        f"{plural(n_steps(first), 'loop')} that {'move' if n_steps(first) > 1 else 'moves'} "
        f"{nbytes_moved(first):,} bytes become{'s' * (n_steps(first) == 1)} "
        f"{plural(plan.n_kernels, 'kernel')} for {nbytes_moved(last):,} bytes"
    )
    return Figure(caption, panel)


def _idle(names):
    return f"{', '.join(names)}: the same" * bool(names)


def tiers(first, last):
    """Draw two plans of one graph: the first runs calls while the other compiles.

    first:   the plan available immediately;  last: the optimized one.
    """
    panel, half = Panel("two plans, one net"), WIDTH / 2
    y = panel.row(LINE)
    panel.text(half / 2, y + 12, "your calls", bold=True)
    panel.text(half * 1.5, y + 12, "a thread", bold=True)
    top, wide = panel.row(96, 24), half - 10
    panel.box(0, top, wide, 96, [first.target, plural(first.n_kernels, "step")], "python")
    panel.box(
        half + 10, top, wide, 96, ["compiles", plural(last.n_kernels, "kernel")], "plain", True
    )
    y = panel.row(70)
    panel.box(0, y, wide, 70, [last.target, plural(last.n_kernels, "kernel")], "kernel")
    panel.arrow(half / 2, top + 98, half / 2, y - 2)
    panel.arrow(half * 1.5, top + 98, half - 6, y + 30, dashed=True)
    panel.text(half * 1.5 + 4, y + 30, "when ready")
    panel.note("time goes from top to bottom; the first call does not wait")
    panel.tell(f"First {first.target}, {plural(first.n_kernels, 'step')}, answers.")
    panel.tell(f"Meanwhile a thread compiles {plural(last.n_kernels, 'kernel')}.")
    panel.tell(f"Then {last.target} answers.")
    answer = f"{first.target} answers in {plural(first.n_kernels, 'step')}"
    return Figure(f"{answer} until {plural(last.n_kernels, 'kernel')} are compiled", panel)


def training_step(model, trainer):
    """Draw the three calls into compiled code of one training step.

    model:   a hybridized block that was trained;  trainer: its trainer.
    """
    plans = list(model.plans.values())
    ways = [p for p in plans if p.training and p.title.endswith("backward")]
    updates = [u for group in trainer._compiled.values() for u in group]
    if not ways or not updates:
        raise HybridError(
            "training_step: the model was not trained yet; call it inside autograd.record(), "
            "then loss.backward() and trainer.step(batch_size)"
        )
    forward = next(p for p in plans if p.title == ways[-1].title.partition(",")[0] and p.training)
    panel, backward, update = Panel("one step of training"), ways[-1], updates[-1].plan
    _station(panel, ["forward", _counted(forward)], "kernel")
    saved = [n for n in backward.graph.variables if n.name.startswith("kept")]
    nbytes = sum(n.specs[0].nbytes for n in saved)
    _down(panel, f"{plural(len(saved), 'array')} kept, {nbytes:,} bytes")
    _station(panel, ["backward", _counted(backward)], "python")
    _down(panel, "gradients")
    _station(panel, ["update", _counted(update)], "array")
    three = forward, backward, update
    n_ops = sum(plan.stages[0][1].n_ops for plan in three)
    n_kernels = sum(plan.n_kernels for plan in three)
    caption = f"A step of training runs {n_kernels} kernels for {n_ops} operators, in three calls"
    return Figure(caption, panel)


def _counted(plan):
    traced = plan.stages[0][1].n_ops
    return f"{plural(traced, 'operator')} in {plural(plan.n_kernels, 'kernel')}"
