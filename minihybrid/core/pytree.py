"""Pytrees: nested lists, tuples, namedtuples and dicts of arrays and plain values.

Defines: `flatten`, the parts of a container; `unflatten`, the container of other parts;
         `reader`, which compiles the function that makes a call's cache key.

Not supported: sets, which have no order; unhashable plain values.
"""

from copy import copy
from functools import lru_cache
from numbers import Number

from numpy import ndarray

EXACT = frozenset((bool, int, str, type(None), type))  # types whose values `==` distinguishes
ITEMS = frozenset((int, str, type(None)))  # allowed in a tuple that is one static value


def flatten(value):
    """Return the parts of a container in order, or `None` for any other value.

    >>> flatten({"a": 1, "b": [2, 3]}), flatten(4)
    ([1, [2, 3]], None)
    """
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, (list, tuple)) else None


def unflatten(value, parts):
    """Return a container of the same type and keys with other parts.

    >>> unflatten({"a": 1, "b": 2}, [3, 4])
    {'a': 3, 'b': 4}
    """
    if isinstance(value, dict):
        result = copy(value)  # keeps the type, such as OrderedDict
        result.update(zip(value, parts, strict=True))
        return result
    kind = type(value)
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)  # a namedtuple


class Slot:
    """The placeholder of an array in nested arguments."""

    def __repr__(self):
        return "array"


SLOT = Slot()


class Keywords(dict):
    """The keyword arguments of a call, passed on as its last argument."""


def static_key(value) -> tuple:
    """Return the cache key of a plain value: equal only for indistinguishable values.

    It begins with the type, so 1, 1.0 and True differ. So do 0.0 and -0.0, but NaN equals
    NaN.

    Raises:  TypeError for arrays, symbols and containers, except a tuple of integers,
             strings and None, such as an operator's attribute, which is one value.
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
    """Return the structure of arguments: SLOT, None, or (type, has names, *parts)."""
    if hasattr(type(value), "level"):
        return SLOT
    if (parts := flatten(value)) is None:
        return None
    has_names = isinstance(value, dict) and {*map(type, value)} <= {str}
    return (type(value), has_names, *map(nesting, parts))


@lru_cache(1_000)
def reader(nested, place="type({0}) is ndarray or {0}.device") -> tuple:
    """Compile the functions (read, arrays) for arguments of one structure.

    place:   an expression for the device of an ndarray, added to shape and dtype.

    read:    arguments, mode -> (cache key, their ndarrays). For arguments of another
             structure it raises, or returns a key that misses the cache.
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
            if name != "x":  # the argument list itself is a tuple
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
