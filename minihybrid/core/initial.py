"""Initialisers: what all have in common, and the simplest.

Takes:   a parameter's name and its array.
Gives:   `Initializer`, the parent; `Zero`, `One`, `Constant`, `Uniform`; `create`, which
         finds them and others by names.

What is left out: all others (`minihybrid/gluon/init.py`).
"""

from minihybrid.core import nd
from minihybrid.core.array import NDArray
from minihybrid.core.checked_call import Settings
from minihybrid.core.convert import to_numpy
from minihybrid.core.hooks import INITIALIZERS
from minihybrid.core.op import AttrError, described, finite, not_negative, positive


class Initializer(Settings):
    """The parent: biases and running means become 0, scales 1, the rest by the child.

    >>> Constant(3).init_array("weight", nd.zeros((1, 2)))
    """

    KINDS = {"scale": finite, "sigma": not_negative, "magnitude": positive}

    def __init__(self, **kwargs):
        self._kwargs = kwargs

    def __repr__(self):
        args = ", ".join(f"{k}={v!r}" for k, v in self._kwargs.items())
        return f"{type(self).__name__}({args})"

    def __eq__(self, other):
        return type(self) is type(other) and self._kwargs == other._kwargs

    __hash__ = None

    def dumps(self):
        """The name and the arguments as JSON text, as symbol files have them."""
        import json  # only who writes a graph waits for it

        return json.dumps([type(self).__name__.lower(), self._kwargs], default=_as_json)

    def __call__(self, desc, arr):
        """Fill the array of a parameter with the name `desc`."""
        self.init_array(desc, arr)

    def init_array(self, name, array, chosen=False):
        """Fill an array; `chosen` says that this initialiser is the parameter's own."""
        if not chosen and name.endswith(("bias", "beta", "running_mean", "moving_mean")):
            array[...] = 0
        elif not chosen and name.endswith(("gamma", "running_var", "moving_var")):
            array[...] = 1
        else:
            self._init_weight(name, array)

    def _init_weight(self, name, array):
        raise NotImplementedError


def _as_json(value):
    return value.asnumpy().tolist() if isinstance(value, NDArray) else repr(value)


class Constant(Initializer):
    """Every number is `value`."""

    def __init__(self, value=0.0):
        super().__init__(value=value)
        if not isinstance(value, NDArray):
            to_numpy(f"{type(self).__name__}: value", value, "float32")
        self.value = value

    def _init_weight(self, name, array):
        array[...] = self.value


class Zero(Constant):
    """Every number is 0."""

    def __init__(self):
        super().__init__(0.0)
        self._kwargs = {}


class One(Constant):
    """Every number is 1."""

    def __init__(self):
        super().__init__(1.0)
        self._kwargs = {}


class Uniform(Initializer):
    """Equally likely in [-scale, scale)."""

    def __init__(self, scale=0.07):
        super().__init__(scale=scale)
        self.scale = scale

    def _init_weight(self, name, array):
        nd.random.uniform(-self.scale, self.scale, dtype=array.dtype, out=array)


INITIALIZERS.update(zeros=Zero, zero=Zero, ones=One, one=One, uniform=Uniform, constant=Constant)


def register(klass):
    """Let `create` find a class of initialisers under its name; for use as `@register`.

    >>> @register
    ... class Halves(Constant):
    ...     def __init__(self):
    ...         super().__init__(0.5)
    >>> create("halves")
    Halves(value=0.5)
    """
    if not isinstance(klass, type):
        raise AttrError(f"init.register: {described(klass)} is no class")
    INITIALIZERS[klass.__name__.lower()] = klass
    return klass


def create(init):
    """The initialiser that a name, an object or `None` means."""
    if init is None or isinstance(init, Initializer):
        return init
    if isinstance(init, str) and init.lower() in INITIALIZERS:
        return INITIALIZERS[init.lower()]()
    if isinstance(init, type) and issubclass(init, Initializer):
        return init()
    raise AttrError(
        f"initialiser {init!r} is unknown; needed: an object of mx.init or "
        f"one of {', '.join(INITIALIZERS)}"
    )
