"""The switches between the nd and np semantics, per thread.

Defines: `is_np_array()`, `is_np_shape()`, set by `set_np` (`minihybrid/mxnet/util.py`);
         `told_shape` and `shown_shape`, which convert shapes from and for users; `scoped`,
         which sets attributes of a thread-local object in a `with` block; `Nested`, the base
         class of objects that such a block makes the current one.

Not supported: default dtypes other than float32.
"""

import threading
from contextlib import contextmanager


class Switches(threading.local):
    """The switches; `set_np` sets them for all threads, a scope for its thread."""

    shape = False
    array = False


SWITCHES = Switches()


@contextmanager
def scoped(state, **values):
    """Set attributes of a thread-local object inside this `with` block."""
    before = {name: getattr(state, name) for name in values}
    vars(state).update(values)
    try:
        yield
    finally:
        vars(state).update(before)


class Opened(threading.local):
    """The objects of this thread's open `with` blocks, after a default; innermost last."""

    def __init__(self, default):
        self.all = [default()]


class Nested:
    """Base class of objects that are the current one of their kind in a `with` block."""

    opened: Opened

    @classmethod
    def current(cls):
        """Return the object of this thread's innermost open `with` block."""
        return cls.opened.all[-1]

    def __enter__(self):
        self.opened.all.append(self)
        return self

    def __exit__(self, *_):
        self.opened.all.pop()


def set_for_all(**values):
    """Set switches for all threads outside of scopes."""
    for name, value in values.items():
        setattr(Switches, name, bool(value))


def is_np_shape():
    """Return whether 0 is a valid length and -1 means unknown."""
    return SWITCHES.shape


def is_np_array():
    """Return whether parameters and data loaders return `mx.np` arrays."""
    return SWITCHES.array


def told_shape(shape):
    """Return a user's shape with -1 for unknown lengths, which may be given as 0."""
    unknown = (-1, None) if is_np_shape() else (0, -1, None)
    return None if shape is None else tuple(-1 if n in unknown else int(n) for n in shape)


def shown_shape(shape):
    """Return a shape for users: without `np_shape`, 0 and () mean unknown."""
    return shape if is_np_shape() else tuple(max(n, 0) for n in shape or ())
