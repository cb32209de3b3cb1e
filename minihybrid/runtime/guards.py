"""Chapter 29. Guards as text: what a cached plan assumes, and which guard failed.

Defines: `explain_trace`, which stores an entry's guards and the reason for its trace;
         `differences`, the guards in which two entries differ; `listed`, plans as text.

This runs once per trace; calls only compare cache keys (core/pytree.py).
Limits: globals that the traced code reads aren't guarded.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from minihybrid.core.cache_entry import CacheEntry
from minihybrid.core.hybrid import Hybrid, Plans, Signature
from minihybrid.core.lengths import Length, symbolic
from minihybrid.core.op import Spec, legible
from minihybrid.core.plan import Plan
from minihybrid.core.pytree import SLOT, Keywords

TAPED = "recording is on, not off"
LOGGED = 1_000  # reasons kept per function


def in_words(guard: Any) -> str:
    """Return the value that a guard requires, as text.

    >>> import numpy as np
    >>> in_words(Spec((32, 64), np.dtype("float32")))
    'float32 (32, 64)'
    """
    with symbolic():
        return f"{guard.dtype} {guard.shape}" if isinstance(guard, Spec) else str(guard)


def guards(entry: CacheEntry) -> dict[str, Spec | str]:
    """Return name -> required value of all guards of an entry."""
    specs = {n.name: n.specs[0] for n in entry.graph.variables}
    args: tuple = entry.args
    entry.guards = entry.guards or {
        **{name: specs[name] for name in entry.names},
        **{
            f"argument {k}": legible(repr(value))
            for place, arg in enumerate(args)
            for k, value in (arg.items() if type(arg) is Keywords else [(place, arg)])
            if value is not SLOT
        },
        "device": str(entry.context),
        "arrays": "mx.np" if entry.kind.is_np else "mx.nd",
        "training": "on" if entry.program.job.training else "off",
        **{name: specs[name] for name in entry.params},
    }
    return entry.guards


def differences(mine: Mapping, other: Mapping) -> Iterator[str]:
    """Yield the guards of `other` that a call with the guards `mine` fails, as clauses.

    >>> import numpy as np
    >>> small, large = (Spec((n, 5), np.dtype("float32")) for n in (7, 32))
    >>> list(differences({"x": small, "training": "on"}, {"x": large, "training": "on"}))
    ['x.shape[0] is 7, not 32']
    """
    for name in dict.fromkeys([*mine, *other]):
        new, old = (each.get(name, "absent") for each in (mine, other))
        pairs = [(name, new, old)]
        if isinstance(new, Spec) and isinstance(old, Spec):
            a, b = new.shape or (), old.shape or ()
            axes = enumerate(zip(a, b, strict=False))
            lengths = [(f"{name}.shape[{axis}]", *both) for axis, both in axes]
            shapes = lengths if len(a) == len(b) else [(f"{name}.shape", a, b)]
            pairs = [(f"{name}.dtype", new.dtype, old.dtype), *shapes]
        for what, a, b in pairs:
            is_marked = isinstance(a, Length) and isinstance(b, Length)
            if a != b and not is_marked:
                yield f"{what} is {in_words(a)}, not {in_words(b)}"


def changes(mine: Sequence, other: Sequence) -> list[str]:
    """Return how a net's blocks changed between two traces, as clauses."""
    if [block for block, _ in mine] != [block for block, _ in other]:
        return ["a block was added, replaced or removed"]
    pairs = zip(mine, other, strict=True)
    changed = [(b := ref(), b._changed) for (ref, now), (_, before) in pairs if now != before]
    return [
        f"{block.name}.{name} was set to {legible(repr(getattr(block, name, None)), 40)}"
        for block, name in changed
    ]


def failed(hybrid: Hybrid, entry: CacheEntry, old: CacheEntry | None) -> str:
    """Return the guards of the most similar entry that a new one fails, as text."""
    mine = guards(entry)
    if old:
        failures = changes(entry.parts, old.parts) + [*differences(mine, guards(old))]
    else:
        rivals = [[*differences(mine, guards(e))] for e in hybrid.entries.values()]
        failures = min(reversed(rivals), key=len)
    more = [f"and {len(failures) - 3} more"] * (len(failures) > 3)
    return "; ".join(failures[:3] + more) or new_length(mine) or "the arguments are of other types"


def new_length(mine: Mapping) -> str:
    """Return the new symbolic lengths of a call that fails no guard."""
    with symbolic() as lengths:
        str(list(mine.values()))
    return ", ".join(f"{name} is {n}" for name, n in lengths.items())


def explain_trace(hybrid: Hybrid, entry: CacheEntry, old: CacheEntry | None) -> None:
    """Store which guard of the most similar entry failed, if there are entries.

    old:     the entry of the same key that `entry` replaces, if there is one.
    """
    if old or hybrid.entries:
        entry.reason = failed(hybrid, entry, old)
    hybrid.reasons.append(entry.reason or "first call")
    del hybrid.reasons[:-LOGGED]


def reason(plans: Any, signature: Signature) -> str:
    """Return why a plan was compiled beside existing ones; "" for the first."""
    entry, _ = plans.uses[signature]
    if plans[signature].title.endswith("backward"):
        return ""
    if signature.recording and entry.program.now:
        return TAPED
    current = plans[signature]
    before = takewhile(lambda plan: plan is not current, plans.values())
    compiled = {text for plan in before for text in plan.texts}
    anew = [launch.label for launch in current.made.launches if launch.kernel not in compiled]
    more = f": another schedule of {few([*dict.fromkeys(anew)])}"
    return entry.reason + more * bool(signature.lengths and entry.reason and anew)


def recompiled(plans: dict, plan: Plan) -> str:
    """Return the reason for one of the plans of a net or a compiled function."""
    return next((reason(plans, key) for key, each in plans.items() if each is plan), "")


def required(entry: CacheEntry, recording: bool) -> list[str]:
    """Return the guards of a plan as lines, with all parameters on one."""
    by_name = guards(entry)
    inputs = [f"{k}: {in_words(v)}" for k, v in by_name.items() if k not in entry.params]
    params = [f"{k} {in_words(by_name[k])}" for k in entry.params]
    op = entry.program.op
    return [
        *inputs,
        f"recording: {f'on, gradients of {few(op.taped)}' if recording and op else 'off'}",
        *[f"parameters: {few(params)}"] * bool(params),
        *["blocks and attributes: as they were traced"] * bool(entry.parts),
    ]


def few(names: Sequence[str]) -> str:
    """Return the first two names and the number of others.

    >>> few(["a", "b"]), few("abcde")
    ('a, b', 'a, b, and 3 more')
    """
    return ", ".join([*names[:2], *[f"and {len(names) - 2} more"] * (len(names) > 2)])


def listed(plans: Plans, full: bool) -> str:
    """Return a line per plan, with the reason to recompile; `full` adds guards and calls."""
    lines = []
    for signature, plan in plans.items():
        note = f" ({plan.target_note})" * bool(plan.target_note)
        kernels = f"{plan.n_kernels} kernel{'s' * (plan.n_kernels != 1)}"
        lines.append(
            f"{signature}: {kernels}, {plan.nbytes_planned} bytes, target {plan.target}{note}"
        )
        entry, calls = plans.uses[signature]
        why = reason(plans, signature)
        if full:
            guards_of = "\n          ".join(required(entry, signature.recording))
            lines += [f"  guards  {guards_of}", f"  calls   {calls}"]
        if why:
            lines.append(f"  recompiled: {why}")
    return "\n".join(lines) or "no plans yet: hybridize, then call with data"
