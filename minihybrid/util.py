"""Chapter 09. Which of the two array worlds parameters and data loaders live in.

Takes:   `set_np()` once at the top of a program, or scopes and decorators.
Gives:   the answer, `is_np_array()`; and `np_shape`, `use_np`, as programs write them.

Arrays themselves need no switch: an `mx.np.ndarray` keeps np's rules wherever it goes.
What is left out: default dtypes other than float32.
"""

import functools
import inspect
import threading
from contextlib import ContextDecorator

from minihybrid.op import AttrError


class Switches(threading.local):
    """The switches; `set_np` sets them for all threads, a scope for its own."""

    shape = False
    array = False


SWITCHES = Switches()


def set_np(shape=True, array=True, dtype=False):
    """From now on, parameters and data loaders give `mx.np` arrays.

    Raises:  AttrError for array=True without shape=True.
    """
    if array and not shape:
        raise AttrError("set_np: array=True needs shape=True, because np arrays have "
                        "shapes such as () and (0, 3)")
    Switches.shape, Switches.array = bool(shape), bool(array)
    vars(SWITCHES).clear()  # what a scope of this thread said holds no more


def reset_np():
    """Go back to the legacy arrays of `mx.nd`."""
    set_np(shape=False, array=False)


def is_np_shape():
    """Whether 0 is a length and -1 an unknown one."""
    return SWITCHES.shape


def is_np_array():
    """Whether parameters and data loaders give `mx.np` arrays."""
    return SWITCHES.array


def set_np_shape(active):
    """Set the shape switch; returns what it was."""
    before, Switches.shape = SWITCHES.shape, bool(active)
    vars(SWITCHES).pop("shape", None)
    return before


def told_shape(shape):
    """A shape in which the user's 0 for "unknown" is -1, as it is under `np_shape`."""
    unknown = (-1, None) if is_np_shape() else (0, -1, None)
    return None if shape is None else \
        tuple(-1 if n in unknown else int(n) for n in shape)


def shown_shape(shape):
    """The shape as programs see it: in the legacy world, 0 and () are unknown."""
    if is_np_shape():
        return shape
    return tuple(max(n, 0) for n in shape or ())


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
