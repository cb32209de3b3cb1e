"""What makes a function public in `mx.np`: its name, its arguments, its errors.

Takes:   functions of values, under NumPy's names.
Gives:   `FUNCTIONS`, all that are entered by `public`; `guarded`, which lets each error begin
         with the name that the caller wrote; what is known of a value: `lengths`, `kind_of`,
         `on_tape`.

What is left out: NumPy's arguments that a function does not take; they are refused by name,
unless their value changes nothing.
"""

import functools

import numpy as onp

from minihybrid.core import hooks
from minihybrid.core.array import STATE
from minihybrid.core.op import UNEXPECTED, AttrError, DTypeError, HybridError, ShapeError, described
from minihybrid.ops.infix import Value, put, said_by

FUNCTIONS = {}  # name -> function, of all that `mx.np` offers for values
# Arguments of NumPy's functions that change nothing with these values.
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
    """The same function, whose every error is a sentence that begins with a public name.

    An argument of NumPy's that the function lacks may have the value that changes nothing;
    any other is refused.

    parents:  as `misfit` has them: functions whose arguments it takes as well.
    has_out:  whether `out=` is added to the function's arguments.
    Raises:  AttrError for arguments that it does not take, or cannot compute with.
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
            text = hooks.misfit(owner, bound, args[is_method:], kwargs, parents)
            failure, unknown = error, {k for k in kwargs if f"'{k}'" in (text or "")}
        idle = {k for k in unknown if _is_idle(k, kwargs[k])}
        if idle:
            kwargs = {k: v for k, v in kwargs.items() if k not in idle}
            return call(*args, **kwargs) if out is None else call(*args, out=out, **kwargs)
        if text is None:
            given = [
                *map(_brief, args[is_method:]),
                *(f"{k}={_brief(v)}" for k, v in kwargs.items()),
            ]
            text = f"{owner}: cannot compute with {', '.join(given) or 'nothing'} ({failure})"
            raise AttrError(text) from failure
        raise AttrError(text)

    return call


def _is_idle(name, value):
    """Whether an argument of NumPy's has the value that changes nothing."""
    return any(
        value is neutral or isinstance(value, str) and value == neutral
        for neutral in NEUTRAL.get(name, ())
    )


def _brief(value):
    """An argument in an error: an array by its shape."""
    shape = (
        getattr(value, "shape", None) if not isinstance(value, Value) or not value.level else None
    )
    return described(value) if shape is None else f"an array of shape {shape}"


def _takes_out(function, out=None):
    """What all these functions take beside their own arguments."""


def public(function=None, *, names=()):
    """Enter a function under its name, with `out=` added."""
    if function is None:
        return functools.partial(public, names=names)
    name = function.__name__.rstrip("_")

    for public_name in (name, *names):
        call = guarded(f"np.{public_name}", function, parents=(_takes_out,), has_out=True)
        call.__name__ = call.__qualname__ = public_name
        FUNCTIONS[public_name] = call
    return FUNCTIONS[name]


def lengths(a):
    """The shape of an array, or what a trace knows of a symbol's.

    Raises:  ShapeError for a symbol whose shape nobody has told yet.
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
    """Refuse to write floats into whole numbers, or numbers into bools, as NumPy does."""
    kind, own = kind_of(result), kind_of(into)
    if None not in (kind, own) and not onp.can_cast(kind, own, "same_kind"):
        raise DTypeError(
            f"{what}: the result is {kind}, which does not fit into the array's {own}; make a new "
            f"array, or convert the result by astype('{own}')"
        )


def on_tape(value):
    """Whether an operator on this value would be recorded."""
    return STATE.recording and getattr(value, "node", None) is not None


def flat(value):
    """The values in nested lists and tuples, one after another."""
    if isinstance(value, (list, tuple)):
        return [leaf for v in value for leaf in flat(v)]
    return [value]


def kind_of(value):
    """The dtype of a value; `None` where a symbol's is unknown."""
    return value.spec.dtype if value.level else value.data.dtype
