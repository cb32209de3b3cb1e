"""Whole numbers: what their dtypes hold, and what arithmetic makes of them.

Takes:   NumPy arrays of whole numbers or bools, and scalars beside them.
Gives:   the rules that every target keeps, where NumPy, C and processors differ: sums
         and products wrap around; a quotient is cut towards zero; what is divided by 0
         is 0, and so is one over a power of 0; a function that leaves the whole numbers
         computes in float32.

A scalar is cut towards zero first. One that the dtype cannot hold is refused, but in
sums and products, which are right without what wraps around.
What is left out: whole numbers of more than 64 bits.
"""

from numbers import Integral

import numpy as np

from minihybrid.core.op import DTypeError, number

EXACT = 2**53  # up to here, a float64 is the whole number that was meant


def limits(dtype):
    """The smallest and the largest number of a dtype that has no fractions.

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
    """Refuse a dtype, or a scalar that cannot stand beside arrays of it.

    value:   the scalar; `None` where two arrays meet.
    wraps:   whether the result is right for a scalar that wraps around, too.
    divisor: whether the array is divided by it.
    bools:   whether the operator knows them; they have no difference, and no sign.
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


def held(value, dtype):
    """The number of a dtype that is nearest to a bound, cut towards zero.

    >>> held(np.inf, np.dtype("int8")), held(-1.5, np.dtype("int8"))
    (127, -1)
    """
    low, high = limits(dtype)
    return low if value <= low else high if value >= high else int(value)


def scalar_like(array, value):
    """The scalar in the array's dtype; whole-number arrays cut the fraction off."""
    if array.dtype.kind == "f":
        return value
    return np.uint64(int(value) % 2**64).astype(array.dtype)


# -- arithmetic that NumPy has otherwise -----------------------------------------------
def as_floats(data):
    """The array itself if it has fractions; else its numbers as float32."""
    return data if data.dtype.kind == "f" else data.astype(np.float32)


def whole_div(a, b):
    """a / b cut towards zero; 0 where b is 0.

    >>> whole_div(np.int8([-7, 7, -6]), np.int8([2, 2, 2]))
    array([-3,  3, -3], dtype=int8)
    """
    zero = b == 0
    if max(a.itemsize, b.itemsize) > 4:
        below = (np.mod(a, b) != 0) & ((a < 0) != (b < 0))
        return np.floor_divide(a, b) + below
    if not zero.any():  # a float64 is never rounded up to a whole quotient
        return np.divide(a, b, dtype=np.float64).astype(np.int64).astype(a.dtype)
    return np.where(zero, 0, whole_div(a, np.where(zero, 1, b).astype(b.dtype)))


def whole_power(a, b):
    """a to the power b; of a negative b, what is left of 1 / a without a fraction.

    >>> whole_power(np.int8([3, -1, 2]), np.int8([4, -3, -1]))
    array([81, -1,  0], dtype=int8)
    """
    below = np.where(b % 2 == 0, a * a, a) * ((a == 1) | (a == -1))
    return np.where(b < 0, below, np.power(a, np.maximum(b, 0)))


def whole_function(function):
    """A function of two arrays of floats, for whole numbers: its results are cut."""

    def cut(a, b):
        return function(np.float64(a), np.float64(b)).astype(np.int64)

    return cut
