"""Public functions of `mx.np`: names, arguments and errors.

Defines: `FUNCTIONS`, all registered by `public` or `publish`; `guarded`, which starts each
         error with the public name; and properties of values: `lengths`, `kind_of`, `on_tape`.

Limits: NumPy arguments that a function doesn't support are rejected by name unless they
have their default.
"""

import functools
import inspect
import re
from numbers import Real
from types import FunctionType

import numpy as onp

from minihybrid.core.array import STATE, NDArray
from minihybrid.core.call_errors import misfit
from minihybrid.core.op import (
    UNEXPECTED,
    AttrError,
    DTypeError,
    HybridError,
    ShapeError,
    axes,
    boolean,
    described,
    described_kind,
    dtype,
    integer,
    shape,
)
from minihybrid.ops.infix import Value, put, said_by

FUNCTIONS = {}  # name -> function of values in `mx.np`
# NumPy arguments that have no effect with these values.
NEUTRAL = {
    "casting": ("same_kind",),
    "dtype": (None,),
    "initial": (None,),
    "like": (None,),
    "order": ("C", "K", "A", None),
    "subok": (True, False),
    "where": (True,),
}


def guarded(owner, function, is_method=False, parents=(), has_out=False):
    """Wrap a function so that its errors start with its public name.

    An unsupported NumPy argument may have its default value. Any other value is rejected.

    parents:  functions whose arguments it also accepts (see `misfit`).
    has_out:  whether `out=` is added to the function's arguments.
    Raises:  AttrError for unknown or invalid arguments.
    """

    @functools.wraps(function)
    def call(*args, **kwargs):
        out = kwargs.pop("out", None) if kwargs and has_out else None
        try:
            result = function(*args, **kwargs)
            if out is None:
                return result
            if isinstance(out, Value) and isinstance(result, Value):
                refuse_narrower(owner, result, out)
            return put(owner, result, out)
        except HybridError as error:
            said_by(owner, error)
            raise
        except (*UNEXPECTED, AttributeError):
            bound = functools.partial(function, args[0]) if is_method else function
            text = misfit(owner, bound, args[is_method:], kwargs, parents)
            unknown = {k for k in kwargs if f"'{k}'" in (text or "")}
        idle = {k for k in unknown if _is_idle(k, kwargs[k])}
        if idle:
            kwargs = {k: v for k, v in kwargs.items() if k not in idle}
            return call(*args, **kwargs) if out is None else call(*args, out=out, **kwargs)
        raise AttrError(text or wrong_value(owner, bound, args[is_method:], kwargs))

    return call


def array_like(value):
    """An array, a number, or numbers in (nested) lists of one length."""
    leaves = flat(value)
    for leaf in leaves:
        kind = getattr(getattr(leaf, "dtype", None), "kind", None)
        if not isinstance(leaf, (Value, Real)) and kind not in (*"biufV",):
            raise ValueError
    if not any(getattr(leaf, "level", 0) for leaf in leaves):
        onp.asarray(opened(value))  # raises for rows of different lengths


def array_only(value):
    """An np.ndarray, which np.array(...) makes."""
    if not isinstance(value, Value):
        raise ValueError


def opened(values):
    """Replace the arrays in nested lists by NumPy arrays."""
    if isinstance(values, (list, tuple)):
        return [opened(v) for v in values]
    return onp.asarray(values.data) if isinstance(values, NDArray) else values


KINDS = {  # argument -> its kind; the others are arrays, or have defaults that show it
    **dict.fromkeys("M N axis1 axis2 decimals k n num offset".split(), integer),
    **dict.fromkeys("axis shift".split(), axes),
    **dict.fromkeys("dimensions indices_or_sections newshape reps shape size".split(), shape),
    "dtype": dtype,
    "out": array_only,
}


def wrong_value(owner, function, args, kwargs, reason=None):
    """Return the message for the argument on which NumPy or Python failed, as far as its kind
    shows, or else for all of them.

    reason:  NumPy's own message for arguments whose kinds are right.
    """
    names = inspect.signature(function)
    arguments = [
        (p, value, "" if p.kind is p.VAR_POSITIONAL else f"{p.name}=")
        for name, values in names.bind(*args, **kwargs).arguments.items()
        for p in [names.parameters[name]]
        for value in (values if p.kind is p.VAR_POSITIONAL else [values])
        if p.kind is not p.VAR_KEYWORD and value is not p.default
    ]
    for arrays in (array_like,) if reason else (array_like, array_only):
        for p, value, title in arguments:
            kind = arrays if p.default is p.empty else array_like
            kind = KINDS.get(p.name, boolean if isinstance(p.default, bool) else kind)
            try:
                kind(value)
            except (HybridError, *UNEXPECTED):
                needed = described_kind(kind)
                return f"{owner}: {title}{_brief(value)} does not fit; needed: {needed}"
    if reason and not re.search("broadcast|truth value|a sequence", reason):
        return f"{owner}: {reason.rstrip('.').replace('. ', '; ')}"
    texts = " and ".join(f"{title}{_brief(value)}" for _, value, title in arguments)
    return f"{owner}: {texts or 'nothing'} does not fit; help({owner}) lists what does"


def _is_idle(name, value):
    """Return whether a NumPy argument has a value without effect."""
    return any(
        value is neutral or isinstance(value, str) and value == neutral
        for neutral in NEUTRAL.get(name, ())
    )


def _brief(value):
    """Describe an argument for an error; arrays are shown by shape."""
    is_array = isinstance(value, Value) and not value.level or isinstance(value, onp.ndarray)
    return f"an array of shape {value.shape}" if is_array else described(value)


def _takes_out(function, out=None):
    """The signature of `out=`, which all these functions accept."""


ALIASES = {
    "absolute": ("abs", "fabs"),
    "degrees": ("rad2deg",),
    "radians": ("deg2rad",),
    "true_divide": ("divide",),
    "mod": ("remainder",),
    "around": ("round", "round_"),
    "full_like": ("empty_like",),
    "vstack": ("row_stack",),
    "max": ("amax",),
    "min": ("amin",),
}


def public(function, name=None, doc=None):
    """Register a function, possibly with another name and text, and add `out=`."""
    if name:
        function.__name__, function.__doc__ = name, doc
    name = function.__name__.rstrip("_")
    for public_name in (name, *ALIASES.get(name, ())):
        call = guarded(f"np.{public_name}", function, parents=(_takes_out,), has_out=True)
        call.__name__ = call.__qualname__ = public_name
        FUNCTIONS[public_name] = call
    return FUNCTIONS[name]


def publish(names):
    """Register all functions that a module defines without an underscore, by its `globals()`."""
    for name, value in list(names.items()):
        is_own = isinstance(value, FunctionType) and value.__module__ == names["__name__"]
        if is_own and not name.startswith("_"):
            public(value)


def as_method(name):
    """Return a public function as a method of arrays, with the method's name in errors."""
    call = guarded(f"ndarray.{name}", FUNCTIONS[name].__wrapped__, True, (_takes_out,), True)
    call.__name__ = call.__qualname__ = name
    return call


def row_major(name, order):
    """Reject memory orders other than row-major."""
    if order not in ("C", "K", "A", None):
        raise AttrError(f"{name}: order={order!r}, but memory is always row by row: order='C'")


def lengths(a):
    """Return the shape of an array or, if known, of a symbol.

    Raises:  ShapeError for a symbol of unknown shape.
    """
    if a.level == 0:
        return a.shape
    if not a.spec.known:
        raise ShapeError(
            f"the Symbol '{a.name}' has no known shape yet, which this "
            "function needs; trace it with data"
        )
    return a.spec.shape


def refuse_narrower(what, result, into):
    """Reject writing floats into integers, or numbers into bools, as NumPy does."""
    kind, dest = kind_of(result), kind_of(into)
    if None not in (kind, dest) and not onp.can_cast(kind, dest, "same_kind"):
        raise DTypeError(
            f"{what}: the result is {kind}, which does not fit into the array's {dest}; make a new "
            f"array, or convert the result by astype('{dest}')"
        )


def on_tape(value):
    """Return whether an operator on this value would be recorded."""
    return STATE.recording and getattr(value, "node", None) is not None


def flat(value):
    """Flatten nested lists and tuples."""
    if isinstance(value, (list, tuple)):
        return [leaf for v in value for leaf in flat(v)]
    return [value]


def kind_of(value):
    """Return the dtype of a value, or `None` if a symbol's is unknown."""
    return value.spec.dtype if value.level else value.data.dtype
