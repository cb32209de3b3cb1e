"""Conversion of users' values to NumPy arrays.

Defines: `to_numpy`, which converts to a dtype; `fits` and `check_range`, whether that is
         possible; `dtype_of`; `of_one`, for arrays of one element.

Conversion to floats rounds as IEEE 754 defines, up to infinity. Conversion to integers
truncates as in C; a value out of range is an error.
"""

from numbers import Number

import numpy as np

from minihybrid.core.op import AttrError, HybridError, NumberError, checked, described
from minihybrid.core.op import dtype as dtype_kind


def to_numpy(owner, source, dtype):
    """Convert a source to a NumPy array of a dtype; return the source if it is one.

    Raises:  AttrError for strings, objects and ragged rows; NumberError for values out
             of an integer dtype's range.

    >>> to_numpy("x", [1, 2.9], np.int8)
    array([1, 2], dtype=int8)
    """
    if type(dtype) is not np.dtype:
        dtype = checked(owner, "dtype", dtype, dtype_kind)
    if type(source) is np.ndarray and source.dtype == dtype:
        return source
    try:
        array = np.asarray(source)
    except HybridError:  # raised by a symbol
        raise
    except (ValueError, TypeError):
        raise AttrError(
            f"{owner}: {described(source)} has rows of different lengths, "
            "but an array has one length an axis"
        ) from None
    if array.dtype == object and all(isinstance(v, Number) for v in array.flat):
        array = np.asarray(source, np.float64)  # integers beyond 64 bits
    if array.dtype.kind not in "biuf" and array.dtype.name != "bfloat16":
        raise AttrError(
            f"{owner}: {described(source)} is no array of numbers; needed: "
            "numbers in (nested) lists of one length, or in NumPy's arrays"
        )
    if dtype.kind in "iu" and array.size and not np.can_cast(array.dtype, dtype):
        for number in (array.min(), array.max()):
            check_range(owner, number.item(), dtype)
    with np.errstate(over="ignore"):  # overflow gives infinity
        return array.astype(dtype, copy=False)


def dtype_of(owner, value):
    """Return the NumPy dtype for a dtype or its name; float32 for `None`.

    Raises:  AttrError unless it is a numeric dtype.

    >>> dtype_of("cast", "float16")
    dtype('float16')
    """
    return checked(owner, "dtype", "float32" if value is None else value, dtype_kind)


def fits(value, dtype):
    """Return whether a value has the dtype, or is numeric and the dtype floating."""
    actual = value.dtype if isinstance(value, (np.ndarray, np.generic)) else None
    if actual is None:
        return dtype.kind in "fV" and type(value) in (int, float, bool)
    return actual == dtype or dtype.kind in "fV" and np.dtype(actual).kind in "biufV"


def check_range(owner, number, dtype):
    """Return a number if the dtype can represent it.

    Raises:  NumberError naming the dtype's range.
    """
    if dtype is not None and dtype.kind in "iu":
        ends = np.iinfo(dtype)
        if not ends.min - 1 < number < ends.max + 1:
            raise NumberError(
                f"{owner}: {number} does not fit into {dtype}, which "
                f"holds {ends.min} to {ends.max}; choose another dtype"
            )
    return number


class OneElement(np.ndarray):
    """An array of one element and some axes that converts to a Python scalar.

    NumPy allowed this until 2.4, and programs for MXNet use `'%f' % loss.asnumpy()` and
    `int(x.argmax().asnumpy())`. Results computed from it, and pickles, are plain arrays.

    >>> a = np.array([2.5]).view(OneElement)
    >>> f"{a:.1f}", "%.2f" % a, int(a), a, type(a + 1).__name__
    ('2.5', '2.50', 2, array([2.5]), 'ndarray')
    """

    __array_priority__ = -1.0  # combined with plain arrays, the result is plain

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __format__(self, form):
        return format(self.item(), form) if form else str(self.view(np.ndarray))

    def __array_wrap__(self, array, *_):
        return array.view(np.ndarray)[() if array.ndim == 0 else ...]

    def __repr__(self):
        return repr(self.view(np.ndarray))

    def __reduce_ex__(self, protocol):
        return self.view(np.ndarray).__reduce_ex__(protocol)


def of_one(array: np.ndarray) -> np.ndarray:
    """Return the array, as a `OneElement` if it has one element and some axes."""
    return array.view(OneElement) if array.size == 1 and array.ndim else array
