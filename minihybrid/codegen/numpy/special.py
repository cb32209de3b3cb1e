"""Special functions that need only NumPy and `math`, for use without SciPy.

Defines: `erf`, `erfinv`, `gamma`, `gammaln`, `polygamma`, as in `ops.functions`;
         `special`, which finds one by name.

Standalone programs copy them. They are slow: `math` computes one element at a time.
"""

import math

import numpy as np

from minihybrid.codegen.device_math import erfinv as erfinv_of
from minihybrid.codegen.device_math import polygamma as polygamma_of
from minihybrid.core.hooks import WITHOUT_SCIPY
from minihybrid.ops.shapes import floating


def one_by_one(function, *data):
    """Apply a scalar function to each element of an array, in float64.

    >>> one_by_one(math.erf, np.zeros((2, 1))).tolist()
    [[0.0], [0.0]]
    """
    return np.asarray(np.vectorize(function, [np.float64])(*data))


def erf(data):
    """The error function.

    >>> erf(np.float32([0, 1])).round(4).tolist() == np.float32([0, 0.8427]).tolist()
    True
    """
    return one_by_one(math.erf, data).astype(floating(data.dtype))


def erfinv(data):
    """Return the inverse of erf, as in kernels.

    >>> erfinv(np.array([-1, 0, 1.0])).tolist()
    [-inf, 0.0, inf]
    """
    return one_by_one(erfinv_of, data).astype(floating(data.dtype))


def _gammaln_of(x):
    pole = x == -math.inf or x <= 0 and x == math.floor(x)
    return math.inf if pole else math.lgamma(x)


def gammaln(data):
    """The logarithm of |gamma|; infinite at 0, -1, -2, ...

    >>> gammaln(np.float64([0, 1, 2])).tolist()
    [inf, 0.0, 0.0]
    """
    return one_by_one(_gammaln_of, data).astype(floating(data.dtype))


def gamma(data):
    """The gamma function, from its logarithm; NaN at -1, -2, ..., where it jumps.

    >>> gamma(np.float64([0, 1, 5])).round(9).tolist()
    [inf, 1.0, 24.0]
    """
    x = np.asarray(data, np.float64)
    down = np.floor(x)
    sign = np.where(x < 0, 1 - 2 * (down % 2), np.copysign(1, x))
    out = sign * np.exp(one_by_one(_gammaln_of, x))
    return np.where((x < 0) & (x == down), np.nan, out).astype(floating(data.dtype))


def polygamma(data, *, order):
    """Return the polygamma function of an order, as in kernels.

    >>> polygamma(np.float64([1]), order=1).round(6).tolist()
    [1.644934]
    """
    return one_by_one(polygamma_of, order, data).astype(floating(data.dtype))


def digamma(data):
    """The derivative of log gamma.

    >>> digamma(np.float64([1])).round(6).tolist()
    [-0.577216]
    """
    return polygamma(data, order=0)


def zeta(s, data):
    """Return the sum of 1 / (x + n)^s over n = 0, 1, 2, ..., for integers s above 1.

    >>> zeta(2, np.float64([1])).round(6).tolist()
    [1.644934]
    """
    return (-1) ** s * polygamma(data, order=s - 1) / math.factorial(s - 1)


def special(name):
    """Return a function by its SciPy name; random draws use this.

    >>> special("gammaln") is gammaln
    True
    """
    return {"gammaln": gammaln}[name]


WITHOUT_SCIPY.update(
    erf=erf, erfinv=erfinv, gamma=gamma, gammaln=gammaln, digamma=digamma, zeta=zeta
)
