"""Chapter 19. Vectorizable float32 trigonometry: sin, cos, tan, their inverses, hypot.

As in `transcendental`, they accept all float32 values, with at most 4 units in the last
place of error.

An angle is first reduced to [-pi/4, pi/4] and a number of quarter turns. For large x,
x * 2 / pi would lose its fraction to rounding, so the digits of 2 / pi that matter for the
exponent of x come from a table, and the product is computed with integers.
Source:  Payne and Hanek, ACM SIGNUM Newsletter 1983. The coefficients are found as in
         `transcendental`.
Not supported: float64, which uses the C library.
"""

import math

import numpy as np
from numba import float32, float64, int32, int64, njit, uint64

from minihybrid.codegen.cpu.scalar import INLINE, as_bits, polynomial, root, signed
from minihybrid.codegen.cpu.transcendental import HALF, INF32, ONE, ZERO


def inverse_tangent(n, unit):
    """unit * arctan(1 / n), all whole numbers, by the series."""
    return sum((-1) ** k * unit // ((2 * k + 1) * n ** (2 * k + 1)) for k in range(200))


ONE_360 = 1 << 360
PI = 4 * (4 * inverse_tangent(5, ONE_360) - inverse_tangent(239, ONE_360))  # Machin
TWO_BY_PI = (2 * ONE_360 * ONE_360) // PI
# For each exponent e of x: 2 / pi * 2**(e - 150) modulo 4, in units of 2**-94.
DIGITS = [(TWO_BY_PI << e >> 360 + 150 - 94) % 2**96 for e in range(256)]
FIRST = np.array([d >> 32 for d in DIGITS], np.uint64)
LAST = np.array([d % 2**32 for d in DIGITS], np.uint64)

EIGHTH, QUARTER, HALF_TURN = map(np.float32, (math.pi / 4, math.pi / 2, math.pi))
SIN = polynomial(1, -0.16666655, 0.008332187, -0.00019517908)
COS = polynomial(1, -0.5, 0.041666646, -0.001388731, 2.4432336e-05)
TAN = polynomial(1, 0.33333156, 0.13338844, 0.053407036, 0.02444657, 0.0030919784, 0.009402706)


@njit(**INLINE)
def reduced(x):
    """(q, r): x is q quarter turns, modulo 4, and r between -pi/4 and pi/4."""
    bits = as_bits(abs(x))
    e = uint64(int64(bits >> 23))
    digits = uint64(int64((bits & 0x7FFFFF) | 0x800000))
    turns = digits * FIRST[e] + (digits * LAST[e] >> uint64(32))  # 2**62 a quarter
    q = (turns + uint64(1 << 61)) >> uint64(62)
    r = float32(float64(int64(turns - (q << uint64(62)))) * (math.pi / 2**63))
    small = abs(x) < EIGHTH
    q = int32(0) if small else int32(q)
    return q, abs(x) if small else r if abs(x) < INF32 else x - x


@njit(**INLINE)
def sine(q, r):
    """The sine of q quarter turns and r."""
    z = r * r
    out = COS(z) if q & 1 else SIN(z) * r
    return -out if q & 2 else out


@njit(**INLINE)
def sin32(x):
    """The sine."""
    q, r = reduced(x)
    return signed(ONE, x) * sine(q, r)


@njit(**INLINE)
def cos32(x):
    """The cosine: the sine a quarter turn on."""
    q, r = reduced(x)
    return sine(q + 1, r)


@njit(**INLINE)
def tan32(x):
    """The tangent."""
    q, r = reduced(x)
    out = TAN(r * r) * r
    return signed(ONE, x) * (-ONE / out if q & 1 else out)


# -- the angle of a number -------------------------------------------------------------
ASIN = polynomial(1, 0.16666752, 0.0749531, 0.04546902, 0.024185503, 0.042157013)
ATAN = polynomial(
    1,
    -0.33333153,
    0.19993769,
    -0.14211024,
    0.10665893,
    -0.075519934,
    0.043209426,
    -0.01636652,
    0.0029203598,
)


@njit(**INLINE)
def arc(a):
    """arcsin(a) of a up to 1/2; of larger ones, half of arccos(a)."""
    z = a * a if a <= HALF else (ONE - a) * HALF
    return ASIN(z) * (a if a <= HALF else root(z))


@njit(**INLINE)
def asin32(x):
    """The angle whose sine is x."""
    a = abs(x)
    out = arc(a)
    return signed(out if a <= HALF else QUARTER - (out + out), x)


@njit(**INLINE)
def acos32(x):
    """The angle whose cosine is x."""
    a = abs(x)
    out = arc(a)
    large = HALF_TURN - (out + out) if x < ZERO else out + out
    return QUARTER - signed(out, x) if a <= HALF else large


@njit(**INLINE)
def atan32(x):
    """The angle whose tangent is x; of 1 / x beyond 1."""
    a = abs(x)
    b = ONE / a if a > ONE else a
    out = ATAN(b * b) * b
    return signed(QUARTER - out if a > ONE else out, x)


@njit(**INLINE)
def atan2_32(y, x):
    """Return the angle of the point (x, y), from the ratio of the smaller to the larger."""
    a, b = abs(y), abs(x)
    steep = a > b
    low, high = b if steep else a, a if steep else b
    t = low / (high if high > ZERO else ONE)
    t = ONE if (low == INF32) else t
    t = a + b if (a != a) | (b != b) else t
    out = ATAN(t * t) * t
    out = QUARTER - out if steep else out
    out = HALF_TURN - out if as_bits(x) < 0 else out
    return signed(out, y)


@njit(**INLINE)
def hypot32(x, y):
    """sqrt(x x + y y): no square of a float32 is too large or small for float64."""
    a, b = float64(x), float64(y)
    out = float32(root(a * a + b * b))
    return INF32 if (abs(x) == INF32) | (abs(y) == INF32) else out
