"""The compilation pipeline: all stages from a traced graph to kernel source, in order.

Defines: `Job`, a traced graph with compilation options; `build`, which runs the stages.

    stage                 input                    output
    expand                graph                    graph of primitives
    fold, cse, dce        graph                    smaller graph
    the target's passes   graph                    graph whose nodes are loops
    plan_memory           graph                    offset of each value
    generate              graph, memory            source of the kernels

Not supported: unknown shapes.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from minihybrid.core.graph import Graph
from minihybrid.core.op import HybridError, legible
from minihybrid.core.passes import expand, optimize, plan_memory
from minihybrid.core.targets import TARGETS, best_target


@dataclass(frozen=True)
class Job:
    """A compilation job: a graph and its options.

    inputs:    names of the variables that each call passes; all others are bound once.
    training:  the mode, which decides how operators such as Dropout are decomposed.
    target:    a name of TARGETS, or the `Device` of arrays and kernels.
    title:     its name in errors and figures.
    expanded:  whether the graph is already expanded.
    into:      output number -> the variable that it overwrites, except with NumPy.
    remat:     a budget for the values saved for the backward pass, or `None`.
    """

    graph: Graph
    inputs: tuple
    training: bool = False
    target: Any = field(default_factory=best_target)
    title: str = "a graph"
    expanded: bool = False
    into: dict | None = None
    remat: float | None = None

    @property
    def device(self):
        """The `Device` of the target; `None` for the CPU."""
        return None if isinstance(self.target, str) else self.target


class Built(NamedTuple):
    """The result of `build`; `stages` is [(name, graph)], `graph` the last of them."""

    stages: list
    graph: Graph
    target: str  # a key of TARGETS
    note: str  # why it isn't the requested one, or ""
    memory: Any
    code: Any  # the result of the target's `generate`


def build(job):
    """Run all stages on a job, up to the source of its kernels.

    Raises:  HybridError for a target that is unknown, or that can't run the graph.

    >>> from minihybrid.core import sym
    >>> graph = Graph.of(sym.relu(sym.var("x", shape=(2,), dtype="float32")))
    >>> [name for name, _ in build(Job(graph, ("x",), target="numpy")).stages]
    ['trace', 'expand', 'fold', 'cse', 'dce']
    """
    stages = [("trace", job.graph.check("trace"))]
    if not job.expanded:
        graph = expand(job.graph, job.training)
        stages.append(("expand", graph.check("expand")))
    stages += optimize(stages[-1][1])  # fold, cse, dce
    target, note = _target(job, stages[-1][1])
    stages += optimize(stages[-1][1], TARGETS[target].passes)
    graph = _with_unread(stages[-1][1], stages[0][1], job.inputs)
    # Loops may overwrite an operand at its last use; NumPy allocates its results.
    memory = plan_memory(graph, TARGETS[target].scratch_of, job.into if target != "numpy" else None)
    code = TARGETS[target].generate(graph, memory, list(job.inputs))
    return Built(stages, graph, target, note, memory, code)


def _target(job, graph):
    """Return (target, reason for a fallback): NumPy runs what others can't."""
    name = job.device.target if job.device else job.target
    available = sorted(n for n, target in TARGETS.items() if target.here)
    if not job.device and name not in available:
        raise HybridError(
            f"target '{name}' is unknown; there are "
            f"{' and '.join(available)}, and for arrays on a GPU that device"
        )
    reason = TARGETS[name].unsupported(graph)
    if reason and job.device:
        raise HybridError(f"{job.title}: {reason}; move its arrays to mx.cpu()")
    return "numpy" if reason else name, legible(reason or "", 500)


def _with_unread(graph, traced, inputs):
    """Return the graph with its unused inputs, which calls pass anyway."""
    names, read = set(inputs), set(graph.variables)
    unread = [n for n in traced.variables if n.name in names and n not in read]
    return graph.rebuilt([*unread, *graph.nodes], graph.heads)
