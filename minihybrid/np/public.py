"""Public functions of `mx.np`: names, arguments and errors.

Defines: `FUNCTIONS`, all registered by `public`; `guarded`, which starts each error with the
         public name; and properties of values: `lengths`, `kind_of`, `on_tape`.

Limits: NumPy arguments that a function doesn't support are rejected by name unless they
have their default.
"""

import functools

import numpy as onp

from minihybrid.core.array import STATE
from minihybrid.core.call_errors import misfit
from minihybrid.core.op import UNEXPECTED, AttrError, DTypeError, HybridError, ShapeError, described
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
        except (*UNEXPECTED, AttributeError) as error:
            bound = functools.partial(function, args[0]) if is_method else function
            text = misfit(owner, bound, args[is_method:], kwargs, parents)
            failure, unknown = error, {k for k in kwargs if f"'{k}'" in (text or "")}
        idle = {k for k in unknown if _is_idle(k, kwargs[k])}
        if idle:
            kwargs = {k: v for k, v in kwargs.items() if k not in idle}
            return call(*args, **kwargs) if out is None else call(*args, out=out, **kwargs)
        if text is None:
            inputs = [
                *map(_brief, args[is_method:]),
                *(f"{k}={_brief(v)}" for k, v in kwargs.items()),
            ]
            text = f"{owner}: can't compute with {', '.join(inputs) or 'nothing'} ({failure})"
            raise AttrError(text) from failure
        raise AttrError(text)

    return call


def _is_idle(name, value):
    """Return whether a NumPy argument has a value without effect."""
    return any(
        value is neutral or isinstance(value, str) and value == neutral
        for neutral in NEUTRAL.get(name, ())
    )


def _brief(value):
    """Describe an argument for an error; arrays are shown by shape."""
    shape = (
        getattr(value, "shape", None) if not isinstance(value, Value) or not value.level else None
    )
    return described(value) if shape is None else f"an array of shape {shape}"


def _takes_out(function, out=None):
    """The signature of `out=`, which all these functions accept."""


def public(function=None, *, names=()):
    """Register a function under its name, and add `out=`."""
    if function is None:
        return functools.partial(public, names=names)
    name = function.__name__.rstrip("_")

    for public_name in (name, *names):
        call = guarded(f"np.{public_name}", function, parents=(_takes_out,), has_out=True)
        call.__name__ = call.__qualname__ = public_name
        FUNCTIONS[public_name] = call
    return FUNCTIONS[name]


def as_method(name):
    """Return a public function as a method of arrays, with the method's name in errors."""
    call = guarded(f"ndarray.{name}", FUNCTIONS[name].__wrapped__, True, (_takes_out,), True)
    call.__name__ = call.__qualname__ = name
    return call


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
