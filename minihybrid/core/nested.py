"""Nested values: what functions take and give beside single arrays.

Takes:   lists, tuples, namedtuples and dicts, in one another.
Gives:   `parts_of`, what such a value is made of; `rebuilt`, the same of other parts.

What is left out: sets, whose order is not theirs to tell.
"""

from copy import copy


def parts_of(value):
    """The parts of a nested value in order; `None` for what has no parts.

    >>> parts_of({"a": 1, "b": [2, 3]}), parts_of(4)
    ([1, [2, 3]], None)
    """
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, (list, tuple)) else None


def rebuilt(value, parts):
    """A value of the same kind and keys, made of other parts.

    >>> rebuilt({"a": 1, "b": 2}, [3, 4])
    {'a': 3, 'b': 4}
    """
    if isinstance(value, dict):
        made = copy(value)  # as an OrderedDict, a defaultdict
        made.update(zip(value, parts, strict=True))
        return made
    kind = type(value)
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)  # a namedtuple
