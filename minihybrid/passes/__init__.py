"""Graph passes: those of the core, and those for targets that generate loops."""

from collections.abc import Callable

from minihybrid.core import lazy
from minihybrid.core.graph import Graph
from minihybrid.core.op import Node
from minihybrid.core.passes import PASSES, cse, dce, expand, fold, memory, optimize
from minihybrid.core.passes.memory import Memory
from minihybrid.passes.fuse import fuse, merge
from minihybrid.passes.lower import lower
from minihybrid.passes.reduction_schedule import scratch_of

__getattr__ = lazy.face(globals(), {})

__all__ = [
    "PASSES",
    "cse",
    "dce",
    "expand",
    "fold",
    "fuse",
    "lower",
    "merge",
    "optimize",
    "plan_memory",
]


def plan_memory(
    graph: Graph,
    scratch: Callable[[Node], tuple | None] | None = scratch_of,
    into: Memory | None = None,
) -> Memory:
    """Plan memory as in the core, by default with scratch memory for loops.

    scratch: node -> its scratch memory, by the target's rule.
    """
    return memory.plan_memory(graph, scratch, into)
