"""What a user gives as numbers.

Takes:   lists, numbers, NumPy arrays, and whatever NumPy makes an array of.
Gives:   `to_numpy`, NumPy's array of them, in a dtype that holds each; `fits` and
         `check_range`, whether it does; `dtype_of`; `of_one`, an array of one
         element as a number.

A dtype of floats rounds, as IEEE says, up to infinity. One of whole numbers cuts
fractions off, as C does, but a number beyond its ends would become another one.
"""

from numbers import Number

import numpy as np

from minihybrid.core.op import AttrError, HybridError, NumberError, checked, described
from minihybrid.core.op import dtype as dtype_kind


def to_numpy(owner, source, dtype):
    """A source's numbers in a dtype, as a NumPy array: the source itself, if it is one.

    Raises:  AttrError for texts, objects, and rows of different lengths; NumberError
             for numbers that a dtype of whole numbers cannot hold.

    >>> to_numpy("x", [1, 2.9], np.int8)
    array([1, 2], dtype=int8)
    """
    if type(dtype) is not np.dtype:
        dtype = checked(owner, "dtype", dtype, dtype_kind)
    if type(source) is np.ndarray and source.dtype == dtype:
        return source
    try:
        array = np.asarray(source)
    except HybridError:  # of a symbol
        raise
    except (ValueError, TypeError):
        raise AttrError(
            f"{owner}: {described(source)} has rows of different lengths, "
            "but an array has one length an axis"
        ) from None
    if array.dtype == object and all(isinstance(v, Number) for v in array.flat):
        array = np.asarray(source, np.float64)  # whole numbers of more than 64 bits
    if array.dtype.kind not in "biuf":
        raise AttrError(
            f"{owner}: {described(source)} is no array of numbers; needed: "
            "numbers in (nested) lists of one length, or in NumPy's arrays"
        )
    if dtype.kind in "iu" and array.size and not np.can_cast(array.dtype, dtype):
        for number in (array.min(), array.max()):
            check_range(owner, number.item(), dtype)
    with np.errstate(over="ignore"):  # the answer is infinity
        return array.astype(dtype, copy=False)


def dtype_of(owner, value):
    """NumPy's dtype for a dtype or its name.

    Raises:  AttrError for what is none of numbers.

    >>> dtype_of("cast", "float16")
    dtype('float16')
    """
    return checked(owner, "dtype", "float32" if value is None else value, dtype_kind)


def fits(value, dtype):
    """Whether a value is of the dtype, or numbers beside a dtype of floats."""
    own = None if getattr(value, "level", 0) else getattr(value, "dtype", None)
    if own is None:  # of a symbol, none is sure
        return dtype.kind == "f" and type(value) in (int, float, bool)
    return own == dtype or dtype.kind == "f" and np.dtype(own).kind in "biuf"


def check_range(owner, number, dtype):
    """A number, if the dtype can hold it.

    Raises:  NumberError, naming the dtype's ends.
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
    """An array of one element and some axes that Python takes as a number.

    NumPy itself did so until 2.4, and programs for MXNet write `'%f' % loss.asnumpy()` and
    `int(x.argmax().asnumpy())`. All that is computed from it, and its pickle, is plain.

    >>> a = np.array([2.5]).view(OneElement)
    >>> f"{a:.1f}", "%.2f" % a, int(a), a, type(a + 1).__name__
    ('2.5', '2.50', 2, array([2.5]), 'ndarray')
    """

    __array_priority__ = -1.0  # joined with plain arrays, it is one

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
    """The same array; one of one element as a class that `float()` and "%f" take."""
    return array.view(OneElement) if array.size == 1 and array.ndim else array
