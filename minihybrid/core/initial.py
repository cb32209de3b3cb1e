"""Initializers: the base class, and the simplest ones.

Defines: `Initializer`; `Zero`, `One`, `Constant`, `Uniform`; `create`, which finds all
         initializers by name. The others are in `minihybrid/gluon/init.py`.
"""

from minihybrid.core import nd
from minihybrid.core.array import NDArray, arrays
from minihybrid.core.checked_call import Settings
from minihybrid.core.convert import to_numpy
from minihybrid.core.hooks import INITIALIZERS
from minihybrid.core.op import AttrError, described, finite, not_negative, positive


class Initializer(Settings):
    """Base class: fills biases and running means with 0, scales with 1; subclasses fill the rest.

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
        """Return the name and arguments as JSON text, as saved in symbol files."""
        import json  # only who writes a graph waits for it

        return json.dumps([type(self).__name__.lower(), self._kwargs], default=_as_json)

    def __call__(self, desc, arr):
        """Fill the array of the parameter named `desc`."""
        self.init_array(desc, *arrays(type(self).__name__, [arr]))

    def init_array(self, name, array, chosen=False):
        """Fill an array; `chosen`: this initializer was set for this parameter."""
        if not chosen and name.endswith(("bias", "beta", "running_mean", "moving_mean")):
            array[...] = 0
        elif not chosen and name.endswith(("gamma", "running_var", "moving_var")):
            array[...] = 1
        else:
            self._init_weight(name, array)

    def _init_weight(self, name, array):
        raise NotImplementedError(f"{type(self).__name__}: write _init_weight(self, name, array)")


def _as_json(value):
    return value.asnumpy().tolist() if isinstance(value, NDArray) else repr(value)


class Constant(Initializer):
    """Fill with `value`."""

    def __init__(self, value=0.0):
        super().__init__(value=value)
        if not isinstance(value, NDArray):
            to_numpy(f"{type(self).__name__}: value", value, "float32")
        self.value = value

    def _init_weight(self, name, array):
        array[...] = self.value


class Zero(Constant):
    """Fill with 0."""

    def __init__(self):
        super().__init__(0.0)
        self._kwargs = {}


class One(Constant):
    """Fill with 1."""

    def __init__(self):
        super().__init__(1.0)
        self._kwargs = {}


class Uniform(Initializer):
    """Fill uniformly at random from [-scale, scale)."""

    def __init__(self, scale=0.07):
        super().__init__(scale=scale)
        self.scale = scale

    def _init_weight(self, name, array):
        nd.random.uniform(-self.scale, self.scale, dtype=array.dtype, out=array)


INITIALIZERS.update(zeros=Zero, zero=Zero, ones=One, one=One, uniform=Uniform, constant=Constant)


def register(klass):
    """Register an initializer class under its name for `create`; usable as a decorator.

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


def create(init, owner="mx.init"):
    """Return the initializer given by a name, an object or `None`; owner: starts the error."""
    if init is None or isinstance(init, Initializer):
        return init
    if isinstance(init, str) and init.lower() in INITIALIZERS:
        return INITIALIZERS[init.lower()]()
    if isinstance(init, type) and issubclass(init, Initializer):
        return init()
    raise AttrError(
        f"{owner}: init={described(init)} does not fit; needed: an object of mx.init or "
        f"one of {', '.join(INITIALIZERS)}"
    )
