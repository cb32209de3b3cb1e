"""Arguments and results of a hybridized call, apart from their numbers.

Takes:   what a function is called with or gives: arrays or symbols, nested in lists,
         tuples and dicts, and plain values between them.
Gives:   `arrays_in`, `restore`; `reader`, which compiles the function that makes
         the cache key of a call, and `builder`, the one that makes its result.

What is left out: plain values that cannot be hashed.
"""

from collections.abc import Callable
from functools import lru_cache
from numbers import Number

from minihybrid.core.array import NDArray
from minihybrid.core.nested import parts_of, rebuilt
from minihybrid.core.op import PLAIN
from minihybrid.core.sym import Symbol


class Slot:
    """The place of an array in nested arguments."""

    def __repr__(self):
        return "array"


SLOT = Slot()


class Keywords(dict):
    """The keyword arguments of a call, passed on as its last argument."""


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


def builder(structure) -> Callable:
    """`restore` compiled for one structure: an iterator of values -> the structure."""
    scope = {"rebuilt": rebuilt}

    def text(part):
        if part is SLOT:
            return "next(values)"
        scope[name := f"c{len(scope)}"], parts = part, parts_of(part)
        if parts is None:
            return name
        inner = "".join(f"{text(p)}, " for p in parts)
        shown = {list: f"[{inner}]", tuple: f"({inner})"}
        return shown.get(type(part), f"rebuilt({name}, [{inner}])")

    exec(f"def build(values):\n    return {text(structure)}", scope)
    return scope.pop("build")  # a cycle would keep the result's constants alive


def static_key(value) -> tuple:
    """A plain value's part of a cache key: equal for two values only if no program can
    tell them apart. It begins with the type.

    So 1, 1.0 and True differ, and so do 0.0 and -0.0; but NaN equals NaN.

    Raises:  TypeError for arrays, symbols and nested values.
    """
    kind = type(value)
    if kind in PLAIN:
        return kind, value if kind is not float or value and value == value else repr(value)
    if isinstance(value, (NDArray, Symbol)) or parts_of(value) is not None:
        raise TypeError
    if isinstance(value, Number) and not isinstance(value, int):
        return kind, repr(value)
    return kind, value, None if kind.__eq__ is object.__eq__ else repr(value)


def nesting(value):
    """How arrays and plain values are nested: SLOT, None, or (type, has names, *parts)."""
    if isinstance(value, (NDArray, Symbol)):
        return SLOT
    if (parts := parts_of(value)) is None:
        return None
    has_names = isinstance(value, dict) and {*map(type, value)} <= {str}
    return (type(value), has_names, *map(nesting, parts))


@lru_cache(1_000)
def reader(nested) -> tuple[Callable, Callable]:
    """The functions (read, arrays), compiled for arguments of one nesting.

    read:    arguments, mode -> (cache key, their ndarrays). For arguments of another
             nesting it raises an error, or returns a key that no plan has.
    arrays:  arguments -> their arrays, in order.

    For `f(x, [y], 2)`, read is

        [x_0, x_1, x_2] = x
        if type(x_1) is not list: raise TypeError
        [x_1_0] = x_1
        d0, d1 = x_0.data, x_1_0.data
        key = NESTING, type(x_0), d0.shape, ..., static_key(x_2), mode
    """
    scope, lines, key, arrays = {"static_key": static_key, "NESTING": object()}, [], [], []

    def visit(name, nested):
        if nested is SLOT:
            data = f"d{len(arrays)}"
            key.append(f"type({name}), {data}.shape, {data}.dtype, {data}.device")
            arrays.append(name)
        elif nested is None:
            key.append(f"static_key({name})")
        else:
            kind, has_names, *parts = nested
            names, values = [f"{name}_{i}" for i in range(len(parts))], name
            if name != "x":  # the arguments as a whole are a tuple
                scope[f"T{name}"] = kind
                lines.append(f"    if type({name}) is not T{name}: raise TypeError\n")
            if issubclass(kind, dict):
                types = f"*map(type, {name}), " * (kind is not Keywords)
                key.append(f"{types}*{name}" if has_names else f"*map(static_key, {name})")
                values += ".values()"
            lines.append(f"    [{', '.join(names)}] = {values}\n")
            [*map(visit, names, parts)]

    visit("x", nested)
    parts, datas = "".join(lines), [f"d{i}" for i in range(len(arrays))]
    exec(
        f"def arrays(x):\n{parts}    return [{', '.join(arrays)}]\n"
        f"def read(x, mode):\n{parts}"
        + "".join(f"    {d} = {a}.data\n" for d, a in zip(datas, arrays, strict=True))
        + f"    return (NESTING, {', '.join([*key, 'mode'])}), [{', '.join(datas)}]",
        scope,
    )
    return scope.pop("read"), scope.pop("arrays")
