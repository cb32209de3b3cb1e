"""Chapter 25. A GPU's scalar arithmetic in Python.

Defines: `CONSTRUCTORS` (`float32(x)`, `int32(x)`, ...), `math` (functions that keep
         float32 and never raise), `max` and `min` as `EXTREMES`, `load_as` and
         `store_as` for the elements of arrays.

As in Numba, integer arithmetic has 64 bits, so integers of other widths are Python ints
here; only uint64 is a NumPy scalar, which wraps around. Converting a float that is out of
range to an integer saturates, as on the GPU; NaN becomes 0.
Limits:  the GPU's rounding of `exp`, `sin` and the like isn't modeled; the last digit
         may differ.
"""

import math as exact
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np


# -- constructors ----------------------------------------------------------------------
def whole(dtype: str) -> Callable:
    """Return the constructor of an integer dtype.

    >>> whole("int8")(200), whole("uint32")(-1), whole("int32")(3.0e10)
    (-56, 4294967295, 2147483647)
    """
    info = np.iinfo(dtype)
    low, high, size = int(info.min), int(info.max), 1 << info.bits

    def construct(x: Any = 0) -> int:
        if isinstance(x, (float, np.floating)):
            if x != x:
                return 0
            return low if x <= low else high if x >= high else int(x)
        x = int(x)
        return x if low <= x <= high else (x - low) % size + low

    def construct_uint64(x: Any = 0) -> Any:
        return x if type(x) is np.uint64 else np.uint64(construct(x))

    chosen = construct_uint64 if dtype == "uint64" else construct
    chosen.__name__ = dtype
    return chosen


WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
CONSTRUCTORS = {name: whole(name) for name in WHOLE} | {
    "float16": np.float16,
    "float32": np.float32,
    "float64": np.float64,
    "bool": bool,
    "bool_": bool,
    "boolean": bool,
}


def load_as(values: np.ndarray) -> Callable | None:
    """Return a function that loads element i of a flat array as a Python scalar.

    None for floats and uint64, which stay NumPy scalars.

    >>> load_as(np.array([7], "int32"))(0)
    7
    """
    as_numpy = values.dtype.kind == "f" or values.dtype == np.uint64
    return None if as_numpy else values.item


def store_as(dtype: np.dtype) -> Callable | None:
    """Return the conversion of a scalar before a store, or None.

    >>> store_as(np.dtype("uint8"))(257)
    1
    """
    return CONSTRUCTORS[dtype.name] if dtype.kind in "iu" else None


# -- maximum and minimum ---------------------------------------------------------------
def largest(first: Any, *others: Any) -> Any:
    """Return a GPU's `max`, which ignores NaN, like C's `fmaxf`.

    >>> largest(exact.nan, 2.0, 3.0), largest(3.0, exact.nan)
    (3.0, 3.0)
    """
    for x in others:
        if x > first or first != first:
            first = x
    return first


def smallest(first: Any, *others: Any) -> Any:
    """Return a GPU's `min`, which ignores NaN, like C's `fminf`.

    >>> smallest(exact.nan, 2.0, 3.0)
    2.0
    """
    for x in others:
        if x < first or first != first:
            first = x
    return first


EXTREMES = {"max": largest, "min": smallest}


# -- functions -------------------------------------------------------------------------
def keeping(function: Callable, beyond: Callable) -> Callable:
    """Wrap a `math` function: keep float32; if it raises, call `beyond`."""

    def call(x: Any, *more: Any) -> Any:
        try:
            y = function(x, *more)
        except (ValueError, OverflowError, ZeroDivisionError):
            y = beyond(x, *more)
        kind = type(x)
        if kind is np.float32 or kind is np.float16:
            return kind(y)
        return np.float64(y)

    return call


def with_numpy(ufunc: Callable) -> Callable:
    """Return NumPy's version, which returns infinity or NaN instead of raising."""
    return lambda *args: ufunc(*map(np.float64, args))


def gamma_beyond(x: Any) -> float:
    """Return gamma(x) where Python's raises: NaN at poles, infinity on overflow."""
    if x == 0:
        return exact.copysign(exact.inf, x)
    return exact.inf if x > 0 else exact.nan


NUMPY_NAME = {name: f"arc{name[1:]}" for name in "acos asin atan acosh asinh atanh atan2".split()}
NUMPY_NAME["pow"] = "power"
NEVER_RAISE = ("erf", "erfc", "fabs", "copysign", "degrees", "radians")
SOMETIMES = """exp expm1 log log1p log2 log10 sqrt sin cos tan acos asin atan sinh cosh tanh acosh
    asinh atanh atan2 pow fmod hypot""".split()

math = SimpleNamespace(
    **{name: keeping(getattr(exact, name), getattr(exact, name)) for name in NEVER_RAISE},
    **{
        name: keeping(getattr(exact, name), with_numpy(getattr(np, NUMPY_NAME.get(name, name))))
        for name in SOMETIMES
    },
    gamma=keeping(exact.gamma, gamma_beyond),
    lgamma=keeping(exact.lgamma, lambda x: exact.inf),
    # On a GPU, Numba returns floats here, including -0.0.
    floor=keeping(np.floor, lambda x: x),
    ceil=keeping(np.ceil, lambda x: x),
    isnan=exact.isnan,
    isinf=exact.isinf,
    isfinite=exact.isfinite,
    pi=exact.pi,
    e=exact.e,
    inf=exact.inf,
    nan=exact.nan,
)
