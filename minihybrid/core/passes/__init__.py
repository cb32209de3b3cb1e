"""The passes that every target runs.

Defines: `optimize`, which runs passes in order, checks the graph after each, and keeps
         every stage for inspection; `PASSES`: fold, cse, dce.
"""

from minihybrid.core.graph import GraphError, the_graph
from minihybrid.core.op import ShapeError, described
from minihybrid.core.passes.cse import cse
from minihybrid.core.passes.dce import dce
from minihybrid.core.passes.expand import expand
from minihybrid.core.passes.fold import fold
from minihybrid.core.passes.memory import plan_memory

__all__ = ["PASSES", "cse", "dce", "expand", "fold", "optimize", "plan_memory"]

PASSES = (fold, cse, dce)


def optimize(graph, passes=PASSES):
    """Run passes in order; return [(name, graph)], one checked graph per pass.

    Raises:  GraphError naming the pass that broke the graph.
    """
    if not isinstance(passes, (list, tuple)) or not all(map(callable, passes)):
        raise GraphError(
            f"optimize: {described(passes)} was given, but passes in a tuple are needed, (cse, dce)"
        )
    stages = []
    for run in passes:
        try:
            graph = the_graph(run.__name__, run(graph)).check(run.__name__)
        except (KeyError, IndexError, AttributeError, ShapeError) as error:
            raise GraphError(
                f"the pass {run.__name__} failed: {type(error).__name__}: {error}"
            ) from error
        stages.append((run.__name__, graph))
    return stages
