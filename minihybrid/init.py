"""Chapter 14. Initialisers: the first numbers of a parameter.

Takes:   the parameter's name and its array.
Gives:   classes whose objects fill an array; names such as "zeros" for the simple ones.

Random initialisers draw from the global stream, so `random.seed` repeats them.
What is left out: initialisers that need a factorisation, such as Orthogonal.
"""

import numpy as np

from minihybrid import nd
from minihybrid.op import AttrError


class Initializer:
    """The parent: biases and running means become 0, scales 1, the rest by the child.

    >>> Constant(3).init_array("weight", nd.zeros((1, 2)))
    """

    def __init__(self, **kwargs):
        self._kwargs = kwargs

    def __repr__(self):
        args = ", ".join(f"{k}={v!r}" for k, v in self._kwargs.items())
        return f"{type(self).__name__}({args})"

    def __eq__(self, other):
        return type(self) is type(other) and self._kwargs == other._kwargs

    __hash__ = None

    def init_array(self, name, array, chosen=False):
        """Fill an array; `chosen` says that this initialiser is the parameter's own."""
        if not chosen and name.endswith(("bias", "beta", "running_mean", "moving_mean")):
            array[:] = 0
        elif not chosen and name.endswith(("gamma", "running_var", "moving_var")):
            array[:] = 1
        else:
            self._init_weight(name, array)

    def _init_weight(self, name, array):
        raise NotImplementedError


class Constant(Initializer):
    """Every number is `value`."""

    def __init__(self, value=0.0):
        super().__init__(value=value)
        self.value = value

    def _init_weight(self, name, array):
        array[:] = self.value


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


class Normal(Initializer):
    """Normally distributed around 0 with standard deviation sigma."""

    def __init__(self, sigma=0.01):
        super().__init__(sigma=sigma)
        self.sigma = sigma

    def _init_weight(self, name, array):
        nd.random.normal(0, self.sigma, dtype=array.dtype, out=array)


class Xavier(Initializer):
    """Scaled so that signals keep their size from layer to layer.

    Source:  Glorot and Bengio, AISTATS 2010; parameters as in MXNet 1.9.
    """

    def __init__(self, rnd_type="uniform", factor_type="avg", magnitude=3):
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        if rnd_type not in ("uniform", "gaussian") or factor_type not in ("avg", "in", "out"):
            raise AttrError(f"Xavier: rnd_type={rnd_type!r}, factor_type={factor_type!r}; "
                            "needed: uniform or gaussian, and avg, in or out")
        self.rnd_type, self.factor_type, self.magnitude = rnd_type, factor_type, magnitude

    def _init_weight(self, name, array):
        if array.ndim < 2:
            raise AttrError(f"Xavier: '{name}' has shape {array.shape}, but at least two "
                            "axes are needed; choose another initialiser for it")
        area = np.prod(array.shape[2:])
        fan = {"in": array.shape[1] * area, "out": array.shape[0] * area}
        fan["avg"] = (fan["in"] + fan["out"]) / 2
        scale = float(np.sqrt(self.magnitude / max(fan[self.factor_type], 1)))
        if self.rnd_type == "uniform":
            nd.random.uniform(-scale, scale, dtype=array.dtype, out=array)
        else:
            nd.random.normal(0, scale, dtype=array.dtype, out=array)


NAMES = {"zeros": Zero, "zero": Zero, "ones": One, "one": One, "uniform": Uniform,
         "normal": Normal, "gaussian": Normal, "xavier": Xavier}


def create(init):
    """The initialiser that a name, an object or `None` means."""
    if init is None or isinstance(init, Initializer):
        return init
    if isinstance(init, str) and init.lower() in NAMES:
        return NAMES[init.lower()]()
    if isinstance(init, type) and issubclass(init, Initializer):
        return init()
    raise AttrError(f"initialiser {init!r} is unknown; needed: an object of mx.init or one "
                    f"of {', '.join(NAMES)}")
