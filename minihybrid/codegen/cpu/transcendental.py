"""Chapter 17. Vectorizable float32 functions: exp, log, tanh, pow, erf and others.

They accept all float32 values, including infinities, NaN, -0 and subnormals, with at most
4 units in the last place of error.

`math.exp` is a scalar call into the C library. Here each function is a range reduction
and a polynomial without branches (both sides of an `if` are computed and selected), so
LLVM vectorizes it.
Source:  Cody and Waite, Software Manual for the Elementary Functions (1980). The
         coefficients are ours: least squares on Chebyshev nodes, weights renewed until
         the largest relative error is as small as it gets (Lawson 1961), each
         coefficient rounded to float32 before the next ones are fitted.
Not supported: float64, which uses the C library.
"""

import math

import numpy as np
from numba import float32, float64, int32, njit

from minihybrid.codegen.cpu.scalar import (
    INLINE,
    MAGIC32,
    MAGIC64,
    as_bits,
    as_float,
    polynomial,
    power_of_two,
    root,
    signed,
)
from minihybrid.codegen.device_math import INF, NAN

# log 2 in two parts: a few leading bits, whose multiples are exact, and the rest.
HIGH, LOW = np.float32(0.693145751953125), np.float32(1.42860677e-6)
LOG2 = np.float32(math.log(2))
ZERO, HALF, ONE, TWO, INF32, NAN32 = map(np.float32, (0, 0.5, 1, 2, INF, NAN))
TINY = np.float32(2**-126)  # below are subnormals, with fewer digits

EXP = polynomial(1, 0.5, 0.124999985, 0.020833151, 0.0026042666, 0.00026152105, 2.159474e-05)
BOUND = int32((MAGIC32 + np.float32(80)).view(np.int32))


@njit(**INLINE)
def grow32(x, first):
    """Return first * e**x for x = 2 n log 2 + r: (polynomial for e**(r/2) * 2**n) squared.

    Squaring avoids that 2**(2 n) overflows or underflows where e**x doesn't. For large x,
    n is clamped and r isn't, so the polynomial becomes large.
    """
    y = float32(-106) if x < float32(-106) else x
    s = y * float32(0.5 / math.log(2)) + MAGIC32
    bits = as_bits(s)
    s = as_float(BOUND if bits > BOUND else bits)
    n = s - MAGIC32
    r = y - n * (HIGH + HIGH) - n * (LOW + LOW)
    half = EXP(r) * power_of_two(s)
    return half * first * half


@njit(**INLINE)
def exp32(x):
    """e to the power x."""
    return grow32(x, ONE)


@njit(**INLINE)
def sigmoid32(x):
    """1 / (1 + e**-x), of a small part of both: the sum must not become infinite."""
    part = float32(2**-24)
    return part / (part + grow32(-x, part))


EXPM1 = polynomial(1, 0.49999997, 0.16666546, 0.041667435, 0.008366262, 0.0013870656)


@njit(**INLINE)
def expm1_32(x):
    """x = n log 2 + r: (e**r - 1) 2**n + (2**n - 1), of halves until the end."""
    y = float32(-20) if x < float32(-20) else x
    y = float32(89) if y > float32(89) else y
    s = y * float32(1 / math.log(2)) + MAGIC32
    n = s - MAGIC32
    r = y - n * HIGH - n * LOW
    small = EXPM1(r) * r
    half = power_of_two(s - ONE)
    large = small * half + (half - HALF)
    return small if n == ZERO else large + large


# -- logarithms ------------------------------------------------------------------------
LOG = polynomial(
    -0.5,
    0.3333333,
    -0.25000823,
    0.20001246,
    -0.166233,
    0.1420138,
    -0.1316053,
    0.12764184,
    -0.07636425,
)
ROOT = int32(0x3F3504F3)  # the bits of sqrt(1/2)


@njit(**INLINE)
def split(x):
    """(n, m): x = 2**n m, where m lies between sqrt(1/2) and sqrt(2)."""
    tiny = x < TINY
    bits = as_bits(x * float32(2**23) if tiny else x)
    n = int32(int32(bits - ROOT) >> 23)
    m = as_float(int32(bits - int32(n << 23)))
    return float32(n) - (float32(23) if tiny else ZERO), m


@njit(**INLINE)
def bounded(out, x):
    """Fix the logarithm `out` of x for infinity, 0 and negative x."""
    out = out if x < INF32 else x
    pole = -INF32 if x == ZERO else NAN32
    return pole if x <= ZERO else out


@njit(**INLINE)
def log32(x):
    """The natural logarithm: n log 2 + log m."""
    n, m = split(x)
    f = m - ONE
    return bounded(LOG(f) * (f * f) + n * LOW + f + n * HIGH, x)


@njit(**INLINE)
def log2_32(x):
    """The logarithm to base 2: n + log m / log 2."""
    n, m = split(x)
    f = m - ONE
    return bounded((LOG(f) * (f * f) + f) * float32(1 / math.log(2)) + n, x)


@njit(**INLINE)
def log10_32(x):
    """The logarithm to base 10; its log 2, too, is in two parts."""
    n, m = split(x)
    f = m - ONE
    out = (LOG(f) * (f * f) + f) * float32(1 / math.log(10))
    return bounded(out + n * float32(4.6050389e-6) + n * float32(0.30102539), x)


@njit(**INLINE)
def log1p32(x):
    """log(1 + x), where m - 1 gets back the digits that 1 + x has lost."""
    u = ONE + x
    lost = x - (u - ONE) if x < float32(2**24) else ZERO
    n, m = split(u)
    f = m - ONE + lost * power_of_two(MAGIC32 - n * float32(lost != 0))
    out = bounded(LOG(f) * (f * f) + n * LOW + f + n * HIGH, u)
    return x if x == ZERO else out


# -- hyperbolic functions, erf ---------------------------------------------------------
RISE = polynomial(2, 1.9999999, 1.3333237, 0.66667896, 0.26772037, 0.08877220)


@njit(**INLINE)
def rise32(y):
    """e**(2 y) - 1, for small y and where an error in e**(2 y) hardly counts."""
    s = y * float32(2 / math.log(2)) + MAGIC32
    n = s - MAGIC32
    r = y - n * (LOG2 * HALF)
    scale = power_of_two(s)
    return RISE(r) * r * scale + (scale - ONE)


@njit(**INLINE)
def tanh32(x):
    """t / (t + 2) for t = e**(2 |x|) - 1, with the sign of x."""
    a = abs(x)
    t = rise32(float32(9.01) if a > float32(9.01) else a)
    return signed(t / (t + TWO), x)


SINH = polynomial(1, 0.16666667, 0.0083333105, 0.00019842896, 2.7822132e-06)


@njit(**INLINE)
def sinh32(x):
    """Small x: an odd polynomial; else half of e**|x| - e**-|x|."""
    a = abs(x)
    half = grow32(a, HALF)
    large = signed(half - float32(0.25) / half, x)
    return SINH(x * x) * x if a < ONE else large


@njit(**INLINE)
def cosh32(x):
    """Half of e**|x| + e**-|x|."""
    half = grow32(abs(x), HALF)
    return half + float32(0.25) / half


@njit(**INLINE)
def asinh32(x):
    """log(a + sqrt(a a + 1)) for a = |x|; of large a, log(2 a)."""
    a = abs(x)
    large = a > float32(2**40)
    b = ZERO if large else a * a
    more = b / (ONE + root(ONE + b))
    out = log1p32(a + more) + (LOG2 if large else ZERO)
    return signed(out, x)


@njit(**INLINE)
def acosh32(x):
    """log(x + sqrt(x x - 1)), in terms of x - 1; of large x, log(2 x)."""
    large = x > float32(2**40)
    t = x - ONE
    more = ZERO if large else root(t * (x + ONE))
    out = log1p32(t + more) + (LOG2 if large else ZERO)
    return NAN32 if x < ONE else out


@njit(**INLINE)
def atanh32(x):
    """Half of log((1 + a) / (1 - a)) for a = |x|."""
    a = abs(x)
    return signed(HALF * log1p32((a + a) / (ONE - a)), x)


ERF = polynomial(
    -0.064189605,
    -0.31830814,
    -0.05140829,
    0.009665052,
    -0.000110304514,
    -0.00061933935,
    0.00018775949,
    -1.991759e-05,
)


@njit(**INLINE)
def erf32(x):
    """1 - e**-w, where w / |x| is a polynomial; written for y = -w / 2."""
    a = abs(x)
    a = float32(3.93) if a > float32(3.93) else a
    y = ERF(a) * a - HALF * a
    return signed(-rise32(y), x)


ERFINV = polynomial(
    1.5014094,
    0.24664074,
    -0.0041776705,
    -0.0012537319,
    0.00021857183,
    -4.3870764e-06,
    -3.5201804e-06,
    3.426573e-07,
    2.7744262e-08,
)
NEAR_1 = polynomial(
    2.832977,
    1.001675,
    0.009436127,
    -0.00763028,
    0.0057592453,
    -0.003650758,
    0.0013021033,
    8.039778e-05,
    -0.00016478794,
)


@njit(**INLINE)
def erfinv32(x):
    """x times a polynomial in w = -log(1 - x x), or near 1 in its root (Giles 2010)."""
    w = -log32((ONE - x) * (ONE + x))
    near_1 = INF32 if w == INF32 else NEAR_1(root(w) - float32(3))
    return (near_1 if w >= float32(5) else ERFINV(w - float32(2.5))) * x


# -- powers and roots ------------------------------------------------------------------
LOG2_64 = polynomial(
    1.4426950408865706,
    -0.7213475203273965,
    0.4808983488053014,
    -0.3606737931740546,
    0.2885387954934018,
    -0.2404464310762278,
    0.20610713004679015,
    -0.18043682160259017,
    0.16021660906409757,
    -0.14249774169521634,
    0.13027526837555847,
    -0.13463353781975776,
    0.1325168165123468,
    -0.0697380913298303,
)
EXP2_64 = polynomial(
    0.9999999999616829,
    0.6931471807284535,
    0.2402265119815651,
    0.05550410353429023,
    0.00961802725380424,
    0.0013333922579381163,
    0.00015469291107144504,
    1.5201917994611261e-05,
)


@njit(**INLINE)
def power32(x, y):
    """2**(y log2 |x|), in float64: y log2 |x| needs as many digits more as it is long.

    A negative x has a power only if y is a whole number; an odd one keeps the sign.
    """
    a = abs(x)
    n, m = split(a)
    f = float64(m) - 1.0
    log = LOG2_64(f) * f + float64(n)
    log = log if a < INF32 else float64(a)
    log = -INF if a == ZERO else log
    e = float64(y) * log
    e = -200.0 if e < -200.0 else e
    e = 200.0 if e > 200.0 else e
    s = e + MAGIC64
    out = float32(EXP2_64(e - (s - MAGIC64)) * power_of_two(s))
    out = ONE if (x == ONE) | (y == ZERO) | (a == ONE) & (abs(y) == INF32) else out
    half = y * HALF
    whole, odd = np.floor(y) == y, np.floor(half) != half
    out = signed(out, x) if whole & odd else out
    out = NAN32 if (x < ZERO) & (x > -INF32) & (not whole) else out
    # Where the compiler knows y, it leaves out all but one of these.
    out = x * x if y == TWO else out
    out = x * x * x if y == float32(3) else out
    out = ONE / x if y == -ONE else out
    plain = INF32 if x == -INF32 else root(x + ZERO)
    return plain if y == HALF else out


@njit(**INLINE)
def cbrt32(x):
    """One over the root from a third of the bits, two steps, and a step for the root.

    With h = 1 - a r**3, the root of 1 / a is r (1 - h)**(-1/3), a series in h.
    """
    a = abs(x)
    tiny = a < TINY
    a = a * float32(2**24) if tiny else a
    r = as_float(int32(0x548C2B4B) - int32(float32(as_bits(a)) * float32(1 / 3)))
    for _ in range(2):
        h = ONE - a * r * r * r
        r = r + r * h * (float32(1 / 3) + h * (float32(2 / 9) + h * float32(14 / 81)))
    y = a * r * r
    y = y + (a - y * y * y) * (r * r) * float32(1 / 3)
    y = y * float32(2**-8) if tiny else y
    return signed(y, x) if (a > ZERO) & (a < INF32) else x
