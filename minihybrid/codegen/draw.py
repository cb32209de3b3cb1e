"""Chapter 12. Random numbers in generated kernels: a function of a key and a place.

Takes:   the key of a call, and the place of an element.
Gives:   `unit`, `gauss`, `draw_gamma`, `draw_poisson`: as in `minihybrid.ops.random`.

What is left out: vectors; a draw that rejects numbers takes a loop of its own.
"""

import math

import numpy as np
from numba import njit, uint64

from minihybrid.codegen.scalar import EXACT


@njit(**EXACT)
def mix(x):
    """SplitMix64, as in `minihybrid.ops.random`."""
    x = x + uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> uint64(27))) * uint64(0x94D049BB133111EB)
    return x ^ (x >> uint64(31))


@njit(**EXACT)
def unit(key, i, lane):
    """The number in [0, 1) at place i of a key."""
    bits = mix(mix(key) + uint64(2) * uint64(i) + uint64(lane))
    return float(bits >> uint64(40)) * 2.0**-24


@njit(**EXACT)
def gauss(key, i):
    """The normally distributed number at place i of a key."""
    radius = math.sqrt(-2 * math.log(1 - unit(key, i, 0)))
    return radius * math.cos(2 * math.pi * unit(key, i, 1))


@njit(**EXACT)
def draw_gamma(key, i, alpha):
    """The number with the gamma distribution at place i of a key."""
    d = (alpha + 1 if alpha < 1 else alpha) - 1 / 3
    for turn in range(1, 100):
        x = gauss(key + uint64(turn << 32), i)
        v = (1 + x / math.sqrt(9 * d)) ** 3
        if v > 0:
            u = 1 - unit(key + uint64((turn + 100) << 32), i, 0)
            if math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
                power = (1 - unit(key, i, 0)) ** (1 / alpha) if alpha < 1 else 1.0
                return d * v * power
    return 0.0


@njit(**EXACT)
def draw_poisson(key, i, lam):
    """The number with the Poisson distribution at place i of a key."""
    if lam < 10:
        u = unit(key, i, 0)
        k, p = 0, math.exp(-lam)
        total = p
        while u > total and k < 99:
            k += 1
            p = p * lam / k
            total += p
        return float(k)
    b = 0.931 + 2.53 * math.sqrt(lam)
    a = -0.059 + 0.02483 * b
    for turn in range(1, 100):
        x = unit(key + uint64(turn << 32), i, 0) - 0.5
        v = unit(key + uint64(turn << 32), i, 1)
        edge = 0.5 - abs(x)
        k = np.floor((2 * a / edge + b) * x + lam + 0.43)
        if edge >= 0.07 and v <= 0.9277 - 3.6224 / (b - 2):
            return k
        if k >= 0 and (edge >= 0.013 or v <= edge) and math.log(
                v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (edge * edge) + b)) <= \
                k * math.log(lam) - lam - math.lgamma(k + 1):
            return k
    return 0.0
