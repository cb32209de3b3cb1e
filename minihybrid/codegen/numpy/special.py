"""Chapter 15. Special functions with nothing but NumPy and Python's `math`.

Takes:   arrays of floats or whole numbers.
Gives:   `erf`, `erfinv`, `gamma`, `gammaln`, `polygamma`, as `ops.functions` has them
         from SciPy; `special`, which finds one by its name.

Files that stand alone take them from here.
What is left out: speed; `math` computes one number at a time.
"""

import math

import numpy as np

from minihybrid.ops.shapes import floating


def one_by_one(function, data):
    """A function of one number for each number of an array, in float64.

    >>> one_by_one(math.erf, np.zeros((2, 1))).tolist()
    [[0.0], [0.0]]
    """
    return np.asarray(np.vectorize(function, [np.float64])(data))


def erf(data):
    """The error function.

    >>> erf(np.float32([0, 1])).round(4).tolist() == np.float32([0, 0.8427]).tolist()
    True
    """
    return one_by_one(math.erf, data).astype(floating(data.dtype))


def erfinv(data):
    """The inverse of erf: Winitzki's formula, and three steps of Newton's method.

    >>> erfinv(np.array([-1, 0, 1.0])).tolist()
    [-inf, 0.0, inf]
    """
    x = np.asarray(data, np.float64)
    inside = np.where(abs(x) < 1, x, 0)
    half = np.log1p(-inside * inside) / 2
    centre = 2 / (math.pi * 0.147) + half
    y = np.sqrt(np.sqrt(centre * centre - 2 * half / 0.147) - centre)
    for _ in range(3):  # near 1, what is missing to 1 has more digits
        wrong = np.where(abs(inside) < 0.5, one_by_one(math.erf, y) - abs(inside),
                         1 - abs(inside) - one_by_one(math.erfc, y))
        y = y - wrong * (math.sqrt(math.pi) / 2) * np.exp(y * y)
    edge = np.where(abs(x) == 1, np.inf, np.nan)
    y = np.copysign(np.where(abs(x) < 1, y, edge), x)
    return y.astype(floating(data.dtype))


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
    """The derivative of log gamma, differentiated `order` times more.

    The recurrence leads to large x, where the series of Stirling is exact.

    >>> polygamma(np.float64([1]), order=1).round(6).tolist()
    [1.644934]
    """
    x = np.asarray(data, np.float64)
    x = start = np.where(x == -np.inf, np.nan, x)
    sign, total = 1 if order % 2 else -1, np.zeros(x.shape)
    while (small := x < 16).any():
        total += np.where(small, sign * math.factorial(order) / x ** (order + 1), 0)
        x = np.where(small, x + 1, x)
    series = math.factorial(order) / (2 * x ** (order + 1))
    series += math.factorial(order - 1) / x**order if order else -np.log(x)
    for i, bernoulli in enumerate(
            (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)):
        n = 2 * i + 2
        ratio = math.factorial(n + order - 1) / math.factorial(n)
        series += bernoulli * ratio / x ** (n + order)
    at_zero = np.where(start == 0, -np.copysign(np.inf, start), np.nan)
    at_pole = at_zero if order == 0 else sign * np.inf
    pole = (start <= 0) & (start == np.floor(start))
    return np.where(pole, at_pole, total + sign * series).astype(floating(data.dtype))


def special(name):
    """A function by SciPy's name for it; random draws need one.

    >>> special("gammaln") is gammaln
    True
    """
    return {"gammaln": gammaln}[name]
