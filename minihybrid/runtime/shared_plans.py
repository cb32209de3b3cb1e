"""Functions with many plans: scalars become inputs, varying lengths get a warning.

Defines: `many_plans`, which counts plans and warns; `share`, which lets several entries
         use one compiled graph.

Scalar arguments are constants of the traced program, so each value has a plan. After a
few values, one graph that reads them as inputs serves all. Each length of an axis also has
a plan, unless the axis is dynamic; then a warning names the remedies.
Limits: scalars that are other attributes stay constants (passes/lift_constants.py).
"""

import warnings
from dataclasses import replace
from numbers import Number

from minihybrid.core.arguments import arrays_in
from minihybrid.core.array import NDArray
from minihybrid.core.cache_entry import MAX_CONSTANTS, MAX_PLANS, CacheEntry, CompiledGraph
from minihybrid.core.context import Context
from minihybrid.core.hybrid import Hybrid
from minihybrid.core.lengths import Length
from minihybrid.core.lru_cache import LRUCache
from minihybrid.core.passes import expand
from minihybrid.core.placement import copy_to
from minihybrid.runtime.guards import explain_trace

LENGTHS = 8  # per axis, before a warning


def many_plans(hybrid: Hybrid, entry: CacheEntry, args: tuple, old: CacheEntry | None) -> None:
    """Count a function's plans before `entry` is inserted, perhaps in place of `old`."""
    explain_trace(hybrid, entry, old)
    if len(hybrid.entries) >= LENGTHS and "lengths" not in hybrid.warned:
        many_lengths(hybrid, entry)
    if (group := without_numbers(key := hybrid.key(args))) != key:  # there are scalar arguments
        generalize_scalars(hybrid, entry, args, group)


def many_lengths(hybrid: Hybrid, entry: CacheEntry) -> None:
    """Warn, once per function, if an axis of an input has had many lengths."""
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
    """Turn scalars with many values into inputs; warn once."""
    count = hybrid.values.put(group, hybrid.values.get(group, 0) + 1)
    if count <= MAX_CONSTANTS:
        return
    shared = share(entry, hybrid.programs, arrays_in(args)[0].context)
    if count > MAX_CONSTANTS + 1 and "numbers" not in hybrid.warned:
        hybrid.warned.add("numbers")
        what = (
            "they are inputs of its plan from now on"
            if shared
            else f"each set of them has a plan of its own, of which the newest {MAX_PLANS} are kept"
        )
        warnings.warn(
            f"{hybrid.title}: {count} sets of numbers were passed beside the arrays, and {what}; "
            "as arrays, nd.array(...), they would not even be traced",
            RuntimeWarning,
            stacklevel=7,
        )


def without_numbers(key: tuple) -> tuple:
    """Return a cache key in which scalars count only by type."""
    return tuple(
        None if isinstance(kind, type) and issubclass(kind, Number) else part
        for kind, part in zip((None, *key), key, strict=False)
    )


def share(entry: CacheEntry, programs: LRUCache, context: Context) -> bool:
    """Let an entry read its scalars as inputs of a graph shared with other entries.

    programs:  structural key -> CompiledGraph;  context: the device of the scalars.
    Returns:   whether there was such a graph.
    """
    from minihybrid.passes.lift_constants import lift, same  # rarely needed: imported on demand

    mine = entry.program
    graph, numbers = lift(expand(entry.graph, mine.job.training))
    key, shared = same(graph), None
    if numbers:
        shared = programs.lookup(key)
        entry.numbers = {name: NDArray(copy_to(a, context)) for name, a in numbers.items()}
        entry.program = shared or programs.put(
            key, CompiledGraph(replace(mine.job, graph=graph, expanded=True), mine.wait)
        )
    return shared is not None
