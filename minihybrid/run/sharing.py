"""Chapter 03. Numbers of which many values come: from constants to inputs of a plan.

Takes:   a hybrid function, what it has just traced, and the arguments.
Gives:   `many_numbers`, which counts; `share`, the program that several entries have.

Numbers beside the arrays are part of the traced program, and each of them has a plan.
After a few, a graph that reads them as inputs serves all.
What is left out: numbers that are attributes of other kinds (passes/numbers.py).
"""

import warnings
from dataclasses import replace

from minihybrid.core import hooks
from minihybrid.core.arguments import arrays_in
from minihybrid.core.array import NDArray
from minihybrid.core.entry import FEW, KEPT, Program
from minihybrid.core.passes import expand
from minihybrid.core.placing import placed
from minihybrid.passes.numbers import lift, same


@hooks.many_numbers.brought
def many_numbers(hybrid, entry, args):
    """Let numbers of which many values come be inputs; say so once."""
    group = hybrid.key(args, numbers=False)
    if group == hybrid.key(args):
        return  # there are none
    count = hybrid.values.enter(group, hybrid.values.get(group, 0) + 1)
    if count <= FEW:
        return
    shared = share(entry, hybrid.programs, arrays_in(args)[0].context)
    if count > FEW + 1 and not hybrid.told:
        hybrid.told = True
        what = (
            "they are inputs of its plan from now on"
            if shared
            else f"each set of them has a plan of its own, of which the newest {KEPT} are kept"
        )
        warnings.warn(
            f"{hybrid.title}: {count} sets of numbers were passed beside the arrays, and {what}; "
            "as arrays, nd.array(...), they would not even be traced",
            RuntimeWarning,
            stacklevel=6,
        )


def share(entry, programs, context):
    """Read the scalars as inputs, by a program that others have, too, if they may.

    programs:  key of a graph -> Program;  context: where the scalars lie.
    Returns:   whether there was such a program.
    """
    mine = entry.program
    graph, numbers = lift(expand(entry.graph, mine.job.training))
    key, found = same(graph), None
    if numbers:
        found = programs.met(key)
        entry.numbers = {name: NDArray(placed(a, context)) for name, a in numbers.items()}
        entry.program = found or programs.enter(
            key, Program(replace(mine.job, graph=graph, expanded=True), mine.wait)
        )
    return found is not None
