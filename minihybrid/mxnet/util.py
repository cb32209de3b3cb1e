"""Which of the two array worlds parameters and data loaders live in.

Takes:   `set_np()` once at the top of a program, or scopes and decorators.
Gives:   the answer, `is_np_array()`; and `np_shape`, `use_np`, as programs write them.

Arrays themselves need no switch: an `mx.np.ndarray` keeps np's rules wherever it goes.
What is left out: default dtypes other than float32.
"""

import functools
import inspect
from contextlib import ContextDecorator

from minihybrid.core.hooks import own_names
from minihybrid.core.op import AttrError
from minihybrid.core.switches import SWITCHES, set_for_all
from minihybrid.core.switches import is_np_array as is_np_array
from minihybrid.core.switches import is_np_shape as is_np_shape


def set_np(shape=True, array=True, dtype=False):
    """From now on, parameters and data loaders give `mx.np` arrays.

    Raises:  AttrError for array=True without shape=True.
    """
    if array and not shape:
        raise AttrError(
            "set_np: array=True needs shape=True, because np arrays have "
            "shapes such as () and (0, 3)"
        )
    set_for_all(shape=shape, array=array)
    vars(SWITCHES).clear()  # what a scope of this thread said holds no more


def reset_np():
    """Go back to the legacy arrays of `mx.nd`."""
    set_np(shape=False, array=False)


def set_np_shape(active):
    """Set the shape switch; returns what it was."""
    before = SWITCHES.shape
    set_for_all(shape=active)
    vars(SWITCHES).pop("shape", None)
    return before


class _Scope(ContextDecorator):
    """Switches that hold inside a `with` block, or while a function runs."""

    def __init__(self, **wanted):
        self.wanted, self.before = wanted, []

    def _recreate_cm(self):
        return _Scope(**self.wanted)

    def __enter__(self):
        self.before.append(dict(vars(SWITCHES)))
        vars(SWITCHES).update(self.wanted)
        return self

    def __exit__(self, *_):
        vars(SWITCHES).clear()
        vars(SWITCHES).update(self.before.pop())


def np_shape(active=True):
    """Inside this `with` block, 0 is a length and -1 an unknown one.

    >>> with np_shape():
    ...     is_np_shape()
    True
    """
    return _Scope(shape=bool(active))


def np_array(active=True):
    """Inside this `with` block, parameters and data loaders give np arrays."""
    return _Scope(array=bool(active))


def _decorated(target, **wanted):
    """A function, or every method that a class itself defines, inside the switches."""
    if not inspect.isclass(target):

        @functools.wraps(target)
        def call(*args, **kwargs):
            with _Scope(**wanted):
                return target(*args, **kwargs)

        return call
    for name, value in list(vars(target).items()):
        if inspect.isfunction(value):
            setattr(target, name, _decorated(value, **wanted))
    return target


def use_np(target):
    """Decorate a function or a class: inside, everything is np's."""
    return _decorated(target, shape=True, array=True)


def use_np_shape(target):
    """Decorate a function or a class: inside, shapes are np's."""
    return _decorated(target, shape=True)


def use_np_array(target):
    """Decorate a function or a class: inside, arrays are np's."""
    return _decorated(target, array=True)


def __dir__():
    return own_names(globals(), "is_np_array", "is_np_shape")
