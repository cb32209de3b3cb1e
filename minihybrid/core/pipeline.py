"""The pipeline: all stages between a traced graph and what runs, in order.

Takes:   a `Job`: a traced graph with known shapes, and what is wanted of it.
Gives:   `build`, which takes it through the stages up to the text of its kernels.

    stage                 takes                    gives
    expand                graph                    graph of primitives
    fold, cse, dce        graph                    smaller graph
    the target's passes   graph                    graph whose nodes are loops
    plan_memory           graph                    where each value lies
    generate              graph, memory            the text of the kernels

What is left out: graphs whose shapes are not known.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from minihybrid.core.graph import Graph
from minihybrid.core.op import HybridError, legible
from minihybrid.core.passes import expand, optimise, plan_memory
from minihybrid.core.targets import TARGETS, best_target


@dataclass(frozen=True)
class Job:
    """What is to be compiled: one record that is handed on from a net to its plan.

    inputs:    names of the variables that each call passes; all others are bound once.
    training:  the mode, of which operators such as Dropout are made.
    target:    a name of TARGETS, or the `Device` where arrays and kernels are.
    title:     what errors and pictures call it.
    expanded:  whether the graph was expanded already.
    into:      output number -> the variable that it is written over, except by NumPy.
    remat:     a budget for what a forward pass keeps for its backward pass, or `None`.
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
        """The `Device` of the target; `None` for the processor."""
        return None if isinstance(self.target, str) else self.target


class Built(NamedTuple):
    """What the stages gave: `stages` is [(name, graph)], `graph` the last of them."""

    stages: list
    graph: Graph
    target: str  # a key of TARGETS
    note: str  # why it is not the one asked for, or ""
    memory: Any
    code: Any  # what the target's `generate` gave


def build(job):
    """Take a graph through all stages, up to the text of its kernels.

    Raises:  HybridError for a target that there is not, or that cannot run the graph.

    >>> from minihybrid.core import sym
    >>> graph = Graph.of(sym.relu(sym.var("x", shape=(2,), dtype="float32")))
    >>> [name for name, _ in build(Job(graph, ("x",), target="numpy")).stages]
    ['trace', 'expand', 'fold', 'cse', 'dce']
    """
    stages = [("trace", job.graph.check("trace"))]
    if not job.expanded:
        graph = expand(job.graph, job.training)
        stages.append(("expand", graph.check("expand")))
    stages += optimise(stages[-1][1])  # fold, cse, dce
    target, note = _target(job, stages[-1][1])
    stages += optimise(stages[-1][1], TARGETS[target].passes)
    graph = _with_unread(stages[-1][1], stages[0][1], job.inputs)
    # Loops may write over what they read last; NumPy's results are new memory.
    memory = plan_memory(graph, TARGETS[target].scratch_of, job.into if target != "numpy" else None)
    code = TARGETS[target].generate(graph, memory, list(job.inputs))
    return Built(stages, graph, target, note, memory, code)


def _target(job, graph):
    """(target, why it is not the one asked for): NumPy runs what others cannot."""
    wanted = job.device.target if job.device else job.target
    known = sorted(n for n, target in TARGETS.items() if target.here)
    if not job.device and wanted not in known:
        raise HybridError(
            f"target '{wanted}' is unknown; there are "
            f"{' and '.join(known)}, and for arrays on a GPU that device"
        )
    reason = TARGETS[wanted].unsupported(graph)
    if reason and job.device:
        raise HybridError(f"{job.title}: {reason}; move its arrays to mx.cpu()")
    return "numpy" if reason else wanted, legible(reason or "", 500)


def _with_unread(graph, traced, inputs):
    """The graph with those of its inputs, too, that nobody reads any more."""
    given, read = set(inputs), set(graph.variables)
    unread = [n for n in traced.variables if n.name in given and n not in read]
    return graph.rebuilt([*unread, *graph.nodes], graph.heads)
