"""Operators of MXNet's np files that are composite functions here.

Each becomes an operator definition under its name in MXNet's files. Tracing the function
infers the shapes; its operators have the gradients.
Not supported: writing these names; MXNet can also read the operators inside.
"""

import numpy as onp

from minihybrid.core.op import (
    REQUIRED,
    UNKNOWN,
    AttrError,
    DTypeError,
    axes,
    boolean,
    integer,
    number,
    optional,
    shape,
)
from minihybrid.core.sym import trace
from minihybrid.np.public import FUNCTIONS, kind_of, public
from minihybrid.ops import OPS, register
from minihybrid.ops.shapes import known


def compound(name, inputs, function, **attrs):
    """Register a function of np arrays as an operator definition."""

    def expand(specs, *values, **attrs):
        return function(*(v.as_np_ndarray() for v in values), **attrs).as_nd_ndarray()

    def infer(specs, **attrs):
        if not known(specs):
            return specs, [UNKNOWN]
        inside = {f"x{i}": spec for i, spec in enumerate(specs)}
        _, out = trace(lambda *values: expand(specs, *values, **attrs), inside)
        return specs, [out.spec]

    register(name, inputs=inputs, infer=infer, expand=expand, attrs=attrs, doc=function.__doc__)


def average(a, weights=None, *, axis, weighted):
    """Return the mean or the weighted mean."""
    return FUNCTIONS["average"](a, axis=axis, weights=weights)


def _averaged(attrs):
    return ("a", "weights")[: 2 if attrs is None or attrs["weighted"] else 1]


def tensordot(a, b, a_axes_summed, b_axes_summed):
    """Sum over pairs of axes of two arrays."""
    return FUNCTIONS["tensordot"](a, b, (a_axes_summed, b_axes_summed))


def tensordot_int_axes(a, b, axes):
    """Sum over the last axes of one array and the first of another."""
    if not 0 <= axes <= 32:
        raise AttrError(f"tensordot: axes={axes}; an array has at most 32")
    return FUNCTIONS["tensordot"](a, b, axes)


def diff(a, n, axis):
    """Return the n-th difference of adjacent elements."""
    if not 0 <= n <= 32:
        raise AttrError(
            f"diff: n={n} in a graph; 0 to 32 are possible, since each is two operators"
        )
    return FUNCTIONS["diff"](a, n, axis)


@public
def nan_to_num(data, copy=True, nan=0.0, posinf=None, neginf=None):
    """Replace NaN and infinities, by default by the largest finite numbers."""
    kind = kind_of(data)
    if kind is None:
        raise DTypeError("nan_to_num: a Symbol of unknown dtype; trace it with data")
    if kind.kind != "f":
        return OPS["_np_copy"](data) if copy else data
    most = float(onp.finfo(kind).max)
    for mask, new in (
        (data != data, nan),
        (data == onp.inf, most if posinf is None else posinf),
        (data == -onp.inf, -most if neginf is None else neginf),
    ):
        data = FUNCTIONS["where"](mask, new, data)
    return data


def where_lscalar(condition, x, scalar):
    """Return a scalar where the condition isn't 0, else x."""
    return FUNCTIONS["where"](condition, scalar, x)


def where_rscalar(condition, y, scalar):
    """Return y where the condition isn't 0, else a scalar."""
    return FUNCTIONS["where"](condition, y, scalar)


def where_scalar2(condition, x, y):
    """Return one scalar where the condition isn't 0, else another."""
    first = FUNCTIONS["zeros_like"](condition).astype("float32")
    return FUNCTIONS["where"](condition, first + x, first + y)


compound("_npi_around", ("x",), FUNCTIONS["around"], decimals=(integer, 0))
places = {"offset": (integer, 0), "axis1": (integer, 0), "axis2": (integer, 1)}
compound("_np_trace", ("data",), FUNCTIONS["trace"], **places)
compound("_npi_average", _averaged, average, axis=(axes, None), weighted=(boolean, True))
summed = {"a_axes_summed": (shape, REQUIRED), "b_axes_summed": (shape, REQUIRED)}
compound("_npi_tensordot", ("a", "b"), tensordot, **summed)
compound("_npi_tensordot_int_axes", ("a", "b"), tensordot_int_axes, axes=(integer, REQUIRED))
compound("_npi_diff", ("a",), diff, n=(integer, 1), axis=(integer, -1))
news = {"nan": (number, 0.0), **dict.fromkeys(("posinf", "neginf"), (optional(number), None))}
compound("_npi_nan_to_num", ("data",), nan_to_num, copy=(boolean, True), **news)
compound("_npi_where_lscalar", ("condition", "x"), where_lscalar, scalar=(number, 0.0))
compound("_npi_where_rscalar", ("condition", "y"), where_rscalar, scalar=(number, 0.0))
compound("_npi_where_scalar2", ("condition",), where_scalar2, x=(number, 0.0), y=(number, 0.0))
