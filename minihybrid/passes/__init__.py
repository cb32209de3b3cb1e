"""Chapter 15. Passes: each takes a graph and gives a better one.

Takes:   a traced graph.
Gives:   all passes: those of the core, and those for targets that write loops.
"""

from minihybrid import faces
from minihybrid.core.passes import PASSES, cse, dce, expand, fold, memory, optimise
from minihybrid.passes.fuse import fuse, merge
from minihybrid.passes.lower import lower
from minihybrid.passes.rows import scratch_of

__getattr__ = faces.face(globals(), {})

__all__ = [
    "PASSES",
    "cse",
    "dce",
    "expand",
    "fold",
    "fuse",
    "lower",
    "merge",
    "optimise",
    "plan_memory",
]


def plan_memory(graph, scratch=scratch_of, into=None):
    """A place for every value, as the core finds it; also for what loops need beside.

    scratch: node -> what that is, by the rule of the target.
    """
    return memory.plan_memory(graph, scratch, into)
