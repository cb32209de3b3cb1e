"""Switches between legacy (`mx.nd`) and NumPy (`mx.np`) semantics.

Defines: `set_np`, called once at the start of a program; the query `is_np_array`; and scopes
         and decorators such as `np_shape` and `use_np`.

They affect parameters and data loaders; an `mx.np.ndarray` always has NumPy semantics.
Not supported: default dtypes other than float32.
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
    """Make parameters and data loaders use `mx.np` arrays from now on.

    Raises:  AttrError for array=True without shape=True.
    """
    if array and not shape:
        raise AttrError(
            "set_np: array=True needs shape=True, because np arrays have "
            "shapes such as () and (0, 3)"
        )
    set_for_all(shape=shape, array=array)
    vars(SWITCHES).clear()  # overrides the scopes of this thread


def reset_np():
    """Switch back to the legacy arrays of `mx.nd`."""
    set_np(shape=False, array=False)


def set_np_shape(active):
    """Set the shape switch; return its old value."""
    before = SWITCHES.shape
    set_for_all(shape=active)
    vars(SWITCHES).pop("shape", None)
    return before


class _Scope(ContextDecorator):
    """Sets switches inside a `with` block, or during a function."""

    def __init__(self, **values):
        self.values, self.before = values, []

    def _recreate_cm(self):
        return _Scope(**self.values)

    def __enter__(self):
        self.before.append(dict(vars(SWITCHES)))
        vars(SWITCHES).update(self.values)
        return self

    def __exit__(self, *_):
        vars(SWITCHES).clear()
        vars(SWITCHES).update(self.before.pop())


def np_shape(active=True):
    """Inside this `with` block, 0 is a length and -1 means unknown.

    >>> with np_shape():
    ...     is_np_shape()
    True
    """
    return _Scope(shape=bool(active))


def np_array(active=True):
    """Inside this `with` block, parameters and data loaders use np arrays."""
    return _Scope(array=bool(active))


def _decorated(target, **values):
    """Wrap a function, or every method that a class itself defines, in the switches."""
    if not inspect.isclass(target):

        @functools.wraps(target)
        def call(*args, **kwargs):
            with _Scope(**values):
                return target(*args, **kwargs)

        return call
    for name, value in list(vars(target).items()):
        if inspect.isfunction(value):
            setattr(target, name, _decorated(value, **values))
    return target


def use_np(target):
    """Decorate a function or a class to run with np's arrays and shapes."""
    return _decorated(target, shape=True, array=True)


def use_np_shape(target):
    """Decorate a function or a class to run with np's shapes."""
    return _decorated(target, shape=True)


def use_np_array(target):
    """Decorate a function or a class to run with np's arrays."""
    return _decorated(target, array=True)


__dir__ = own_names(globals(), "is_np_array", "is_np_shape")
