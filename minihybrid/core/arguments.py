"""Structure of a hybridized call's arguments and results, separate from their arrays.

Defines: `arrays_in`, `restore`, and `builder`, which compiles `restore` for one structure.

Not supported: sets of arrays.
"""

from collections.abc import Callable

from minihybrid.core.pytree import SLOT, Slot, flatten, unflatten
from minihybrid.ops.infix import Value


def arrays_in(args):
    """Return the arrays (or symbols) of nested arguments, in order."""
    arrays = []
    for arg in args:
        if isinstance(arg, Value):
            arrays.append(arg)
        elif parts := flatten(arg):
            arrays += arrays_in(parts)
    return arrays


def restore(structure, values):
    """Return a structure with its placeholders filled from an iterator of values."""
    if isinstance(structure, (Value, Slot)):
        return next(values)
    parts = flatten(structure)
    return structure if parts is None else unflatten(structure, [restore(p, values) for p in parts])


def builder(structure) -> Callable:
    """Compile `restore` for one structure: (iterator of values) -> structure."""
    scope = {"unflatten": unflatten}

    def text(part):
        if part is SLOT:
            return "next(values)"
        scope[name := f"c{len(scope)}"], parts = part, flatten(part)
        if parts is None:
            return name
        inner = "".join(f"{text(p)}, " for p in parts)
        literals = {list: f"[{inner}]", tuple: f"({inner})"}
        return literals.get(type(part), f"unflatten({name}, [{inner}])")

    exec(f"def build(values):\n    return {text(structure)}", scope)
    return scope.pop("build")  # avoids a cycle that would keep constants alive
