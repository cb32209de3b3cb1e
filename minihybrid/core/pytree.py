"""Nested values: what functions take and give beside single arrays.

Takes:   lists, tuples, namedtuples and dicts, in one another.
Gives:   `flatten`, what such a value is made of; `unflatten`, the same of other parts;
         `reader`, which compiles the function that makes the cache key of a call.

What is left out: sets, whose order is not theirs to tell; plain values without a hash.
"""

from copy import copy
from functools import lru_cache
from numbers import Number

from numpy import ndarray

EXACT = frozenset((bool, int, str, type(None), type))  # `==` tells those of a type apart
ITEMS = frozenset((int, str, type(None)))  # of a tuple, in which it has to tell their types


def flatten(value):
    """The parts of a nested value in order; `None` for what has no parts.

    >>> flatten({"a": 1, "b": [2, 3]}), flatten(4)
    ([1, [2, 3]], None)
    """
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, (list, tuple)) else None


def unflatten(value, parts):
    """A value of the same kind and keys, made of other parts.

    >>> unflatten({"a": 1, "b": 2}, [3, 4])
    {'a': 3, 'b': 4}
    """
    if isinstance(value, dict):
        made = copy(value)  # as an OrderedDict, a defaultdict
        made.update(zip(value, parts, strict=True))
        return made
    kind = type(value)
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)  # a namedtuple


class Slot:
    """The place of an array in nested arguments."""

    def __repr__(self):
        return "array"


SLOT = Slot()


class Keywords(dict):
    """The keyword arguments of a call, passed on as its last argument."""


def static_key(value) -> tuple:
    """A plain value's part of a cache key: equal for two values only if no program can
    tell them apart. It begins with the type.

    So 1, 1.0 and True differ, and so do 0.0 and -0.0; but NaN equals NaN.

    Raises:  TypeError for arrays, symbols and nested values; a tuple of integers, strings
             and None, as an operator's attribute may be, is one value.
    """
    kind = type(value)
    if kind is float and value and value == value or kind in EXACT:
        return kind, value
    if kind is tuple:
        for item in value:
            if type(item) not in ITEMS:
                break
        else:
            return kind, value
    if hasattr(kind, "level") or kind.__hash__ is None or flatten(value) is not None:
        raise TypeError
    if isinstance(value, Number) and not isinstance(value, int):
        return kind, repr(value)
    return kind, value, None if kind.__eq__ is object.__eq__ else repr(value)


def nesting(value):
    """How arrays and plain values are nested: SLOT, None, or (type, has names, *parts)."""
    if hasattr(type(value), "level"):
        return SLOT
    if (parts := flatten(value)) is None:
        return None
    has_names = isinstance(value, dict) and {*map(type, value)} <= {str}
    return (type(value), has_names, *map(nesting, parts))


@lru_cache(1_000)
def reader(nested, place="type({0}) is ndarray or {0}.device") -> tuple:
    """The functions (read, arrays), compiled for arguments of one nesting.

    place:   what of an ndarray counts beside shape and dtype.

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
    scope = {"static_key": static_key, "EXACT": EXACT, "NESTING": object(), "ndarray": ndarray}
    lines, key, arrays = [], [], []

    def visit(name, nested):
        if nested is SLOT:
            data = f"d{len(arrays)}"
            key.append(f"type({name}), {data}.shape, {data}.dtype, {place.format(data)}")
            arrays.append(name)
        elif nested is None:
            key.append(f"type({name}), {name} if type({name}) in EXACT else static_key({name})")
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
