"""Which of the two array worlds holds: the switches, and what they mean.

Takes:   what `set_np` and its scopes (`minihybrid/mxnet/util.py`) have said.
Gives:   `is_np_array()`, `is_np_shape()`; `told_shape` and `shown_shape`, shapes from
         users and for them; `scoped`, for all that holds for a thread.

What is left out: default dtypes other than float32.
"""

import threading
from contextlib import contextmanager


class Switches(threading.local):
    """The switches; `set_np` sets them for all threads, a scope for its own."""

    shape = False
    array = False


SWITCHES = Switches()


@contextmanager
def scoped(state, **values):
    """Attributes of what holds for a thread, inside this `with` block."""
    before = {name: getattr(state, name) for name in values}
    vars(state).update(values)
    try:
        yield
    finally:
        vars(state).update(before)


def set_for_all(**wanted):
    """Set switches for all threads that are in no scope."""
    for name, value in wanted.items():
        setattr(Switches, name, bool(value))


def is_np_shape():
    """Whether 0 is a length and -1 an unknown one."""
    return SWITCHES.shape


def is_np_array():
    """Whether parameters and data loaders give `mx.np` arrays."""
    return SWITCHES.array


def told_shape(shape):
    """A shape in which the user's 0 for "unknown" is -1, as it is under `np_shape`."""
    unknown = (-1, None) if is_np_shape() else (0, -1, None)
    return None if shape is None else tuple(-1 if n in unknown else int(n) for n in shape)


def shown_shape(shape):
    """The shape as programs see it: in the legacy world, 0 and () are unknown."""
    return shape if is_np_shape() else tuple(max(n, 0) for n in shape or ())
