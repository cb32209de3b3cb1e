"""A function with many plans: numbers that become inputs, lengths that vary.

Takes:   a hybrid function, the entry it has just traced, and the arguments.
Gives:   `many_plans`, which counts and warns; `share`, the program that several entries
         have.

Numbers beside the arrays are part of the traced program, and each of them has a plan.
After a few, a graph that reads them as inputs serves all. Each length of an axis has a
plan of its own as well, unless the axis is marked; there, a warning names the remedies.
What is left out: numbers that are attributes of other kinds (passes/lift_constants.py).
"""

import warnings
from dataclasses import replace
from numbers import Number

from minihybrid.core import hooks
from minihybrid.core.arguments import arrays_in
from minihybrid.core.array import NDArray
from minihybrid.core.cache_entry import FEW, KEPT, CacheEntry, CompiledGraph
from minihybrid.core.context import Context
from minihybrid.core.hybrid import Hybrid
from minihybrid.core.lengths import Length
from minihybrid.core.lru_cache import LRUCache
from minihybrid.core.passes import expand
from minihybrid.core.placement import placed
from minihybrid.runtime.guards import explain_trace

LENGTHS = 8  # of one axis: a plan for each, without a warning


@hooks.many_plans.implement
def many_plans(hybrid: Hybrid, entry: CacheEntry, args: tuple, old: CacheEntry | None) -> None:
    """Count the plans of a function, of which `entry` is about to be one, instead of `old`."""
    explain_trace(hybrid, entry, old)
    if len(hybrid.entries) >= LENGTHS and "lengths" not in hybrid.warned:
        many_lengths(hybrid, entry)
    if (
        group := without_numbers(key := hybrid.key(args))
    ) != key:  # there are scalars beside the arrays
        generalize_scalars(hybrid, entry, args, group)


def many_lengths(hybrid: Hybrid, entry: CacheEntry) -> None:
    """Warn, once a function, when an axis of an input has had more than a few lengths."""
    # (name of an input, its number of axes) -> shapes
    shapes: dict[tuple[str, int], list[tuple]] = {}
    for each in (*hybrid.entries.values(), entry):
        for node in each.graph.variables:
            if node.name in entry.names:
                shape = node.specs[0].shape
                shapes.setdefault((node.name, len(shape)), []).append(shape)
    for (name, _), those in shapes.items():
        for axis, lengths in enumerate(zip(*those, strict=True)):
            if len({*lengths}) > LENGTHS and not isinstance(lengths[0], Length):
                hybrid.warned.add("lengths")
                return warnings.warn(
                    f"{hybrid.title}: axis {axis} of its input '{name}' has had "
                    f"{len({*lengths})} lengths, and each length is traced and compiled as a "
                    f"plan of its own; mark the axis, hybridize(dynamic={{{axis}: 'n'}}), or pad "
                    "the arrays to a few lengths",
                    RuntimeWarning,
                    stacklevel=7,
                )


def generalize_scalars(hybrid: Hybrid, entry: CacheEntry, args: tuple, group: tuple) -> None:
    """Let numbers of which many values come be inputs; warn once."""
    count = hybrid.values.put(group, hybrid.values.get(group, 0) + 1)
    if count <= FEW:
        return
    shared = share(entry, hybrid.programs, arrays_in(args)[0].context)
    if count > FEW + 1 and "numbers" not in hybrid.warned:
        hybrid.warned.add("numbers")
        what = (
            "they are inputs of its plan from now on"
            if shared
            else f"each set of them has a plan of its own, of which the newest {KEPT} are kept"
        )
        warnings.warn(
            f"{hybrid.title}: {count} sets of numbers were passed beside the arrays, and {what}; "
            "as arrays, nd.array(...), they would not even be traced",
            RuntimeWarning,
            stacklevel=7,
        )


def without_numbers(key: tuple) -> tuple:
    """A cache key in which only the types of numbers count."""
    return tuple(
        None if isinstance(kind, type) and issubclass(kind, Number) else part
        for kind, part in zip((None, *key), key, strict=False)
    )


def share(entry: CacheEntry, programs: LRUCache, context: Context) -> bool:
    """Read the scalars as inputs, by a program that others have, too, if they may.

    programs:  key of a graph -> CompiledGraph;  context: where the scalars lie.
    Returns:   whether there was such a program.
    """
    from minihybrid.passes.lift_constants import (  # few functions come here: not at import
        lift,
        same,
    )

    mine = entry.program
    graph, numbers = lift(expand(entry.graph, mine.job.training))
    key, shared = same(graph), None
    if numbers:
        shared = programs.lookup(key)
        entry.numbers = {name: NDArray(placed(a, context)) for name, a in numbers.items()}
        entry.program = shared or programs.put(
            key, CompiledGraph(replace(mine.job, graph=graph, expanded=True), mine.wait)
        )
    return shared is not None
