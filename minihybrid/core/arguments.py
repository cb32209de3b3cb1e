"""Arguments and results of a hybridized call, apart from their numbers.

Takes:   what a function is called with or gives: arrays or symbols, nested in lists,
         tuples and dicts, and plain values between them.
Gives:   `arrays_in`, `restore`, and `builder`, which compiles `restore` for one structure.

What is left out: sets of arrays.
"""

from collections.abc import Callable

from minihybrid.core.pytree import SLOT, Slot, flatten, unflatten
from minihybrid.ops.infix import Value


def arrays_in(args):
    """The arrays (or symbols) of nested arguments, in order."""
    arrays = []
    for arg in args:
        if isinstance(arg, Value):
            arrays.append(arg)
        elif parts := flatten(arg):
            arrays += arrays_in(parts)
    return arrays


def restore(structure, values):
    """The nested structure with each placeholder taken from an iterator of values."""
    if isinstance(structure, (Value, Slot)):
        return next(values)
    parts = flatten(structure)
    return structure if parts is None else unflatten(structure, [restore(p, values) for p in parts])


def builder(structure) -> Callable:
    """`restore` compiled for one structure: an iterator of values -> the structure."""
    scope = {"unflatten": unflatten}

    def text(part):
        if part is SLOT:
            return "next(values)"
        scope[name := f"c{len(scope)}"], parts = part, flatten(part)
        if parts is None:
            return name
        inner = "".join(f"{text(p)}, " for p in parts)
        shown = {list: f"[{inner}]", tuple: f"({inner})"}
        return shown.get(type(part), f"unflatten({name}, [{inner}])")

    exec(f"def build(values):\n    return {text(structure)}", scope)
    return scope.pop("build")  # a cycle would keep the result's constants alive
