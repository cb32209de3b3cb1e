"""Chapter 11. Passes: each takes a graph and gives a better one.

Takes:   a traced graph.
Gives:   `optimise`, which runs the passes in order, checks the graph after each, and
         keeps every stage to be looked at.
"""

from minihybrid.graph import GraphError
from minihybrid.op import ShapeError
from minihybrid.passes.cse import cse
from minihybrid.passes.dce import dce
from minihybrid.passes.expand import expand
from minihybrid.passes.fold import fold
from minihybrid.passes.fuse import fuse, merge
from minihybrid.passes.lower import lower
from minihybrid.passes.memory import plan_memory

__all__ = ["PASSES", "cse", "dce", "expand", "fold", "fuse", "lower", "merge",
           "optimise", "plan_memory"]

PASSES = (fold, cse, dce)


def optimise(graph, passes=PASSES):
    """Run passes in order: [(name, graph)], one entry a pass, each graph checked.

    Raises:  GraphError naming the pass that broke the graph.
    """
    stages = []
    for run in passes:
        try:
            graph = run(graph).check(run.__name__)
        except (KeyError, IndexError, AttributeError, ShapeError) as error:
            raise GraphError(f"the pass {run.__name__} failed: "
                             f"{type(error).__name__}: {error}") from error
        stages.append((run.__name__, graph))
    return stages
