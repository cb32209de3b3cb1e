"""The `mx.np` namespace: NumPy's names for the same operators.

Defines: the functions, the constants, `ndarray`, `random`; `F.np` for both kinds of F.

>>> from minihybrid import np
>>> np.arange(3) + np.array([[1.0], [2.0]])
array([[1., 2., 3.],
       [2., 3., 4.]])

Not supported: functions that MXNet itself forwards to NumPy.
"""

from builtins import bool as bool  # np.bool is Python's
from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi

import numpy as _onp

from minihybrid.np.array import _Symbol, ndarray
from minihybrid.np.compound import FUNCTIONS
from minihybrid.np.creation import Creation, Random, array, reader
from minihybrid.np.host import Linalg
from minihybrid.ops.infix import Unknown as _Unknown

newaxis = None
float16, float32, float64 = _onp.float16, _onp.float32, _onp.float64
uint8, int8, int32, int64 = _onp.uint8, _onp.int8, _onp.int32, _onp.int64
bool_ = _onp.bool_
CONSTANTS = "e inf nan newaxis pi bool bool_ float16 float32 float64 uint8 int8 int32 int64"
__all__ = ["FUNCTIONS", "Space", "array", "ndarray", *CONSTANTS.split()]


class Space:
    """The functions of np. `reader()` is the interpreter of operators without inputs."""

    _Symbol = _Symbol

    def __init__(self, reader, name):
        self._creation, self._name = Creation(reader), name
        self.random, self.linalg = Random(reader), Linalg()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name in FUNCTIONS:
            return FUNCTIONS[name]
        if name in vars(Creation):
            return getattr(self._creation, name)
        if name in __all__:
            return globals()[name]
        raise AttributeError(_Unknown(name, self._name, dir(self)))

    def __dir__(self):
        names = [n for n in vars(Creation) if not n.startswith("_")]
        return sorted({*__all__, *FUNCTIONS, *names, "linalg", "random"})


_ARRAYS, _SYMBOLS = Space(reader, "np"), Space(lambda: _Symbol, "sym.np")


def _looked_up(names):
    """Return the module's `__getattr__`, which caches functions as attributes."""

    def __getattr__(name):
        function = getattr(_ARRAYS, name)
        if name in FUNCTIONS:
            names[name] = function  # later look-ups skip __getattr__
        return function

    return __getattr__


__getattr__ = _looked_up(globals())


def __dir__():
    return dir(_ARRAYS)
