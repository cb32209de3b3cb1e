"""Chapter 25. Arrays and functions for kernels that run without checks.

Defines: `atomic_add`, `atomic_max`, `atomic_min`, `load4`, `store4` as plain functions;
         `Whole`, an integer array of Python ints.
"""

from typing import Any

import numpy as np

from minihybrid.simt.numbers import CONSTRUCTORS, load_as


def atomic_add(array: Any, index: int, value: Any) -> Any:
    """Compute `array[index] += value`; return the old value.

    >>> a = [1, 2]
    >>> atomic_add(a, 1, 10), a
    (2, [1, 12])
    """
    old = array[index]
    array[index] = old + value
    return old


def atomic_max(array: Any, index: int, value: Any) -> Any:
    """Set `array[index]` to the maximum of itself and a value; return the old one."""
    old = array[index]
    array[index] = max(old, value)
    return old


def atomic_min(array: Any, index: int, value: Any) -> Any:
    """Set `array[index]` to the minimum of itself and a value; return the old one."""
    old = array[index]
    array[index] = min(old, value)
    return old


def load4(array: Any, index: int) -> tuple:
    """Load four contiguous elements as a tuple.

    >>> load4([1, 2, 3, 4, 5, 6, 7, 8], 4)
    (5, 6, 7, 8)
    """
    return array[index], array[index + 1], array[index + 2], array[index + 3]


def store4(array: Any, index: int, four: tuple) -> None:
    """Store four contiguous elements."""
    array[index], array[index + 1] = four[0], four[1]
    array[index + 2], array[index + 3] = four[2], four[3]


PLAIN = {
    function.__name__: function for function in (atomic_add, atomic_max, atomic_min, load4, store4)
}


class Whole:
    """An integer array, loaded as Python ints and stored in its dtype.

    >>> import numpy as np
    >>> a = Whole(np.zeros(2, "uint8"))
    >>> a[1] = 257
    >>> a[1]
    1
    """

    __slots__ = ("values", "get", "wrap")

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.get = values, load_as(values) or values.__getitem__
        self.wrap = CONSTRUCTORS[values.dtype.name]

    def __getitem__(self, index: int) -> Any:
        return self.get(index)

    def __setitem__(self, index: int, value: Any) -> None:
        self.values[index] = self.wrap(value)


def plain(values: np.ndarray) -> Whole | np.ndarray:
    """Wrap an array or scalar for a kernel without checks."""
    return Whole(values) if getattr(values, "ndim", 0) and values.dtype.kind != "f" else values
