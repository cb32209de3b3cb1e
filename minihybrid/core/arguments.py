"""Arguments and results of a hybridized call, apart from their numbers.

Takes:   what a function is called with or gives: arrays or symbols, nested in lists,
         tuples and dicts, and plain values between them.
Gives:   `arrays_in`, `slots`, `restore`; `static` and `seen`, of which keys are made.

What is left out: plain values that cannot be hashed.
"""

from numbers import Number

from minihybrid.core.array import NDArray
from minihybrid.core.nested import parts_of, rebuilt
from minihybrid.core.sym import Symbol


class Slot:
    """The place of an array in nested arguments."""

    def __repr__(self):
        return "array"


SLOT = Slot()


def arrays_in(args):
    """The arrays (or symbols) of nested arguments, in order."""
    found = []
    for arg in args:
        if isinstance(arg, (NDArray, Symbol)):
            found.append(arg)
        elif parts := parts_of(arg):
            found += arrays_in(parts)
    return found


def restore(structure, values):
    """The nested structure with each placeholder taken from an iterator of values."""
    if isinstance(structure, (NDArray, Symbol, Slot)):
        return next(values)
    parts = parts_of(structure)
    return (
        structure
        if parts is None
        else rebuilt(structure, [restore(part, values) for part in parts])
    )


def slots(args):
    """The same nesting with slots for arrays: what else than arrays was passed."""
    if isinstance(args, (NDArray, Symbol)):
        return SLOT
    parts = parts_of(args)
    return args if parts is None else rebuilt(args, map(slots, parts))


def static(args, numbers=True):
    """What the arguments are apart from arrays: equal for two calls only if no program
    can tell them apart.

    So 1, 1.0 and True are not the same, nor are 0.0 and -0.0; but NaN is NaN.

    numbers: without, of numbers only their types.
    """
    if isinstance(args, NDArray):
        return SLOT
    if (parts := parts_of(args)) is not None:
        names = tuple(map(static, args)) if isinstance(args, dict) else ()
        return (type(args), names, *(static(part, numbers) for part in parts))
    if isinstance(args, Number) and (not numbers or not isinstance(args, int)):
        return type(args), repr(args) if numbers else None
    by_identity = type(args).__eq__ is object.__eq__
    return type(args), args, None if by_identity else repr(args)  # of what numbers?


def seen(array):
    """What a plan knows of an array."""
    data = array.data
    return type(array), data.shape, data.dtype, data.device
