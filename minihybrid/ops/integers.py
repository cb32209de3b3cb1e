"""Integer semantics, the same on all targets, where NumPy, C and CPUs differ.

Sums and products wrap around; quotients truncate; division by 0 gives 0, and so do
negative powers of 0; functions with float results compute in float32.

A scalar operand is truncated first. One out of the dtype's range is an error, except in
sums and products, which are correct modulo 2**n.
Not supported: integers of more than 64 bits.
"""

from numbers import Integral

import numpy as np

from minihybrid.core.op import DTypeError, number

EXACT = 2**53  # up to here, float64 represents all integers


def limits(dtype):
    """Return the minimum and maximum of an integer or boolean dtype.

    >>> limits(np.dtype("int8")), limits(np.dtype("bool"))
    ((-128, 127), (0, 1))
    """
    info = None if dtype.kind == "b" else np.iinfo(dtype)
    return (int(info.min), int(info.max)) if info else (0, 1)


def scalar_number(value):
    """A real number; `inf` and `nan` are allowed."""
    real = number(value)
    return int(value) if isinstance(value, Integral) and real != value else real


def fits(op, dtype, value=None, wraps=False, divisor=False, bools=True):
    """Raise for an unsupported dtype, or for a scalar out of its range.

    value:   the scalar; `None` for two arrays.
    wraps:   whether the result is also correct for a scalar that wraps around.
    divisor: whether the array is divided by it.
    bools:   whether the operator supports booleans, which have no difference or sign.
    """
    if dtype is None or dtype.kind == "f":
        return
    if dtype.kind == "b" and not bools:
        raise DTypeError(
            f"{op}: the input is bool, but numbers are needed; convert it with astype('int32')"
        )
    low, high = limits(dtype)
    if value is None:
        return
    if not (low - 1 < value < high + 1 or wraps and dtype.kind != "b" and abs(value) < EXACT):
        problem = f"is not a number that {dtype} holds, which are {low} to {high}"
    elif divisor and not int(value):
        problem = f"is cut to 0, by which {dtype} cannot be divided"
    else:
        return
    raise DTypeError(f"{op}: scalar={value} {problem}; convert the array with astype('float32')")


def clamp(value, dtype):
    """Clamp a bound to a dtype's range, and truncate it.

    >>> clamp(np.inf, np.dtype("int8")), clamp(-1.5, np.dtype("int8"))
    (127, -1)
    """
    low, high = limits(dtype)
    return low if value <= low else high if value >= high else int(value)


def scalar_like(array, value):
    """Convert a scalar to an array's dtype; truncate it for integers."""
    if array.dtype.kind == "f":
        return value
    return np.uint64(int(value) % 2**64).astype(array.dtype)


# -- arithmetic that differs from NumPy's ----------------------------------------------
def as_floats(data):
    """Return a float array unchanged, and others as float32."""
    return data if data.dtype.kind == "f" else data.astype(np.float32)


def whole_div(a, b):
    """Return a / b, truncated; 0 where b is 0.

    >>> whole_div(np.int8([-7, 7, -6]), np.int8([2, 2, 2]))
    array([-3,  3, -3], dtype=int8)
    """
    zero = b == 0
    if max(a.itemsize, b.itemsize) > 4:
        below = (np.mod(a, b) != 0) & ((a < 0) != (b < 0))
        return np.floor_divide(a, b) + below
    if not zero.any():  # a float64 quotient never rounds up to an integer
        return np.divide(a, b, dtype=np.float64).astype(np.int64).astype(a.dtype)
    return np.where(zero, 0, whole_div(a, np.where(zero, 1, b).astype(b.dtype)))


def whole_power(a, b):
    """Return a to the power b; for a negative b, the truncated inverse.

    >>> whole_power(np.int8([3, -1, 2]), np.int8([4, -3, -1]))
    array([81, -1,  0], dtype=int8)
    """
    below = np.where(b % 2 == 0, a * a, a) * ((a == 1) | (a == -1))
    return np.where(b < 0, below, np.power(a, np.maximum(b, 0)))


def whole_function(function):
    """Decorate a binary float function for integers, by truncating its results."""

    def cut(a, b):
        return function(np.float64(a), np.float64(b)).astype(np.int64)

    return cut
