"""Chapter 14. Initializers: the initial values of parameters.

An initializer is called with a parameter's name and its array, and fills the array. Some
have names, such as "xavier". The simplest of them, and `register`, are in the core.

Random initializers draw from the global stream, so `random.seed` makes them reproducible.
Not supported: `FusedRNN`, for layers whose parameters are one array.
"""

import re

import numpy as np

from minihybrid.core import nd
from minihybrid.core.hooks import own_names
from minihybrid.core.initial import Constant, Initializer, One, Uniform, Zero, create, register
from minihybrid.core.nd import load
from minihybrid.core.op import AttrError, ShapeError, checked, choice, finite, unfit


class Normal(Initializer):
    """Normal distribution with mean 0 and standard deviation sigma."""

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
        self.rnd_type = checked("Xavier", "rnd_type", rnd_type, choice("uniform", "gaussian"))
        self.factor_type = checked("Xavier", "factor_type", factor_type, choice("avg", "in", "out"))
        self.magnitude = magnitude

    def _init_weight(self, name, array):
        if array.ndim < 2:
            raise AttrError(
                f"Xavier: '{name}' has shape {array.shape}, but at least "
                "two axes are needed; choose another initializer for it"
            )
        area = np.prod(array.shape[2:])
        fan = {"in": array.shape[1] * area, "out": array.shape[0] * area}
        fan["avg"] = (fan["in"] + fan["out"]) / 2
        scale = float(np.sqrt(self.magnitude / max(fan[self.factor_type], 1)))
        if self.rnd_type == "uniform":
            nd.random.uniform(-scale, scale, dtype=array.dtype, out=array)
        else:
            nd.random.normal(0, scale, dtype=array.dtype, out=array)


class MSRAPrelu(Xavier):
    """Xavier with normal values, for layers followed by a leaky ReLU with this slope.

    Source:  He et al., ICCV 2015.
    """

    def __init__(self, factor_type="avg", slope=0.25):
        slope = checked("MSRAPrelu", "slope", slope, finite)
        super().__init__("gaussian", factor_type, 2 / (1 + slope**2))
        self._kwargs = {"factor_type": factor_type, "slope": slope}


class Orthogonal(Initializer):
    """Orthogonal rows (or columns, if they are fewer) of norm `scale`.

    Shapes:  all axes after the first are flattened.
    Source:  Saxe, McClelland and Ganguli, ICLR 2014.
    """

    def __init__(self, scale=1.414, rand_type="uniform"):
        super().__init__(scale=scale, rand_type=rand_type)
        self.scale = scale
        self.rand_type = checked("Orthogonal", "rand_type", rand_type, choice("uniform", "normal"))

    def _init_weight(self, name, array):
        shape = (array.shape[0], array.size // array.shape[0])
        uniform = self.rand_type == "uniform"
        start = nd.random.uniform(-1, 1, shape) if uniform else nd.random.normal(0, 1, shape)
        left, _, right = np.linalg.svd(start.asnumpy(), full_matrices=False)
        chosen = left if left.shape == shape else right
        array[...] = self.scale * chosen.reshape(array.shape)


class Bilinear(Initializer):
    """The weight of a transposed convolution that upsamples by linear interpolation.

    Shapes:  (channels, 1, H, W): each kernel is a tent function, highest in the middle.
    """

    def _init_weight(self, name, array):
        if array.ndim != 4:
            raise AttrError(
                f"Bilinear: '{name}' has shape {array.shape}, but the four "
                "axes of a 2-D convolution's weight are needed"
            )
        half = np.ceil(array.shape[3] / 2)  # MXNet uses the width for both axes
        center = (2 * half - 1 - half % 2) / (2 * half)
        y, x = (1 - np.abs(np.arange(n) / half - center) for n in array.shape[2:])
        array[...] = np.broadcast_to(np.outer(y, x), array.shape)


class LSTMBias(Initializer):
    """The bias of an LSTM's gates: `forget_bias` for the forget gate, else 0.

    Source:  Jozefowicz, Zaremba and Sutskever, ICML 2015.

    >>> b = nd.zeros((4,)); LSTMBias()("i2h", b); b.asnumpy().tolist()
    [0.0, 1.0, 0.0, 0.0]
    """

    def __init__(self, forget_bias=1.0):
        super().__init__(forget_bias=forget_bias)
        self.forget_bias = checked("LSTMBias", "forget_bias", forget_bias, finite)

    def _init_weight(self, name, array):
        units = array.shape[0] // 4
        array[...] = 0
        array[units : 2 * units] = self.forget_bias  # the second gate is the forget gate


class Mixed(Initializer):
    """The first initializer whose regular expression matches the start of the name.

    >>> w = nd.zeros((2,)); Mixed(["fc1", ".*"], [One(), Zero()])("fc1_weight", w)
    >>> w.asnumpy()
    array([1., 1.], dtype=float32)
    """

    def __init__(self, patterns, initializers):
        super().__init__(patterns=patterns, initializers=initializers)
        for name, value in (("patterns", patterns), ("initializers", initializers)):
            if not isinstance(value, (list, tuple)):
                raise unfit("Mixed", name, value, "a list is needed")
        if len(patterns) != len(initializers):
            raise AttrError(
                f"Mixed: {len(patterns)} patterns for {len(initializers)} "
                "initializers; one for each is needed"
            )
        self.map = [(re.compile(p), create(i)) for p, i in zip(patterns, initializers, strict=True)]

    def init_array(self, name, array, chosen=False):
        """Fill an array with the initializer that matches its name."""
        for pattern, init in self.map:
            if pattern.match(name):
                return init.init_array(name, array, chosen=chosen)
        raise AttrError(f"Mixed: no pattern fits '{name}'; add '.*' as the last one")


class Load(Initializer):
    """Arrays by name, from a dict or a file; `default_init` for all other names.

    verbose:  ignored, for compatibility.
    """

    def __init__(self, param, default_init=None, verbose=False):
        super().__init__(default_init=default_init)
        arrays = load(param) if isinstance(param, str) else param
        if not hasattr(arrays, "items"):
            need = "a dict of arrays by name is needed, or the name of a file with one"
            raise unfit("Load", "param", arrays, need)
        self.param = {re.sub("^(arg|aux):", "", name): a for name, a in arrays.items()}
        self.default_init = create(default_init)

    def init_array(self, name, array, chosen=False):
        """Fill an array with the array of that name."""
        if name not in self.param:
            if self.default_init is None:
                raise AttrError(f"Load: there is no array '{name}', and no default_init")
            return self.default_init.init_array(name, array, chosen=chosen)
        if self.param[name].shape != array.shape:
            raise ShapeError(
                f"Load: '{name}' has shape {array.shape}, but the array "
                f"that was loaded has {self.param[name].shape}"
            )
        array[...] = self.param[name]


CORE = Constant, Initializer, One, Uniform, Zero, create, register
__dir__ = own_names(globals(), *(value.__name__ for value in CORE))
__all__ = __dir__()
