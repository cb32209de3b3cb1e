"""Chapter 10. The functions of one number that generated kernels call.

Takes:   float32 numbers (`exp32`, ...), keys and places (`unit`, `gauss`).
Gives:   Numba functions that LLVM can inline and vectorise.

`math.exp` is a call into the C library, one number at a time; a polynomial after range
reduction is a few multiplications, eight or sixteen numbers at a time.
Source:  Cody and Waite, Software Manual for the Elementary Functions (1980).
What is left out: float64 polynomials; float64 uses the C library.
"""

import math

import numpy as np
from llvmlite import ir
from numba import float32, int32, njit, types, uint64
from numba.extending import intrinsic

INF, NAN = math.inf, math.nan
# Never nnan or ninf: they are numbers. Nor arcp: 1 / sqrt(0) would be NaN. Nor afn: the
# power of a whole number would be a call that no library has, which ends the process.
FAST = {"reassoc", "contract", "nsz"}
OPTIONS = {"error_model": "numpy", "fastmath": FAST}
# For functions whose rounding errors cancel on purpose: (u - 1) - x must not be
# simplified.
EXACT = {"error_model": "numpy", "fastmath": {"contract"}}


@intrinsic
def as_float(typing, bits):
    """The float32 whose bits are a given int32 (Numba's shifts make int64 of it)."""
    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.FloatType())
    return types.float32(types.int32), codegen


@intrinsic
def as_bits(typing, number):
    """The bits of a float32 as an int32."""
    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(32))
    return types.int32(number), codegen


def _rank(nan):
    """A function that gives the rank of a float among all floats, as a whole number.

    The bits of a float are ordered as the float is, if those below zero are turned
    round. NaN is given a rank of its own.
    """
    @intrinsic
    def rank(typing, number):
        def codegen(context, builder, signature, args):
            bits = builder.bitcast(args[0], ir.IntType(number.bitwidth))
            is_nan = builder.fcmp_unordered("uno", args[0], args[0])
            last = bits.type((1 << number.bitwidth - 1) - 1)
            return builder.select(is_nan, builder.xor(last, bits.type(nan)),
                                  _turned(builder, bits))
        return types.Integer.from_bitwidth(number.bitwidth)(number), codegen
    return rank


def _turned(builder, bits):
    sign = builder.ashr(bits, bits.type(bits.type.width - 1))
    return builder.xor(bits, builder.lshr(sign, bits.type(1)))


rank_up, rank_down = _rank(nan=0), _rank(nan=-1)  # NaN above all, and below all


@intrinsic
def unrank(typing, rank):
    """The float of a rank."""
    kind = types.float32 if rank.bitwidth == 32 else types.float64

    def codegen(context, builder, signature, args):
        return builder.bitcast(_turned(builder, args[0]), context.get_value_type(kind))
    return kind(rank), codegen


@njit(**EXACT)
def exp32(x):
    """e to the power x: x = n log 2 + r, a polynomial for r, n into the exponent."""
    y = float32(-150) if x < float32(-150) else x
    y = float32(130) if y > float32(130) else y
    y = float32(0) if x != x else y
    n = np.floor(y * float32(1.442695040888963) + float32(0.5))
    r = y - n * float32(0.693359375) + n * float32(2.12194440e-4)
    p = float32(1.9875691500e-4)
    p = p * r + float32(1.3981999507e-3)
    p = p * r + float32(8.3334519073e-3)
    p = p * r + float32(4.1665795894e-2)
    p = p * r + float32(1.6666665459e-1)
    p = p * r + float32(5.0000001201e-1)
    p = p * r * r + r + float32(1)
    i = int32(n)
    half = i >> int32(1)  # in two steps: the smallest results are below 2**-126
    p = p * as_float((half + int32(127)) << int32(23))
    p = p * as_float((i - half + int32(127)) << int32(23))
    return p if x == x else x


@njit(**EXACT)
def log32(x):
    """The natural logarithm: the exponent times log 2, a polynomial for the rest."""
    tiny = x < float32(1.17549435e-38)
    y = x * float32(8388608) if tiny else x
    bits = as_bits(y)
    n = float32((bits >> int32(23)) - int32(126)) - (
        float32(23) if tiny else float32(0)
    )
    m = as_float((bits & int32(0x7FFFFF)) | int32(0x3F000000))
    low = m < float32(0.70710678)
    n = n - float32(1) if low else n
    f = (m + m if low else m) - float32(1)
    p = float32(7.0376836292e-2)
    p = p * f - float32(1.1514610310e-1)
    p = p * f + float32(1.1676998740e-1)
    p = p * f - float32(1.2420140846e-1)
    p = p * f + float32(1.4249322787e-1)
    p = p * f - float32(1.6668057665e-1)
    p = p * f + float32(2.0000714765e-1)
    p = p * f - float32(2.4999993993e-1)
    p = p * f + float32(3.3333331174e-1)
    z = f * f
    r = p * f * z - n * float32(2.12194440e-4) - float32(0.5) * z
    r = f + r + n * float32(0.693359375)
    r = x if x == float32(INF) else r
    r = float32(-INF) if x == float32(0) else r
    return float32(NAN) if x < float32(0) or x != x else r


@njit(**EXACT)
def tanh32(x):
    """Small x: an odd polynomial; else 1 - 2 / (exp(2 |x|) + 1) with the sign of x."""
    a = abs(x)
    big = float32(1) - float32(2) / (exp32(a + a) + float32(1))
    z = x * x
    p = float32(-5.70498872745e-3)
    p = p * z + float32(2.06390887954e-2)
    p = p * z - float32(5.37397155531e-2)
    p = p * z + float32(1.33314422036e-1)
    p = p * z - float32(3.33332819422e-1)
    small = p * z * x + x
    signed = -big if x < float32(0) else big
    return small if a < float32(0.625) else signed


@njit(**EXACT)
def log1p32(x):
    """log(1 + x), corrected for the digits that 1 + x loses."""
    u = float32(1) + x
    r = log32(u) - ((u - float32(1)) - x) / u
    r = x if u == float32(1) else r
    return r if u != float32(INF) and u > float32(0) else log32(u)


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


tgamma = types.ExternalFunction("tgamma", types.float64(types.float64))


@njit(**EXACT)
def gamma(x):
    """The gamma function, from the C library; Numba's own lives in Numba."""
    return tgamma(float(x))


@njit(**EXACT)
def cbrt(x):
    """The cube root: a power, and one step of Newton's method."""
    a = abs(float(x))
    y = a ** (1 / 3)
    y = y - (y * y * y - a) / (3 * y * y) if 0 < a < math.inf else y
    return math.copysign(y, x)


@njit(**EXACT)
def erfinv(x):
    """The inverse of erf: Winitzki's formula, and three steps of Newton's method."""
    if not abs(x) < 1:
        return math.inf * x if abs(x) == 1 else math.nan
    half = math.log1p(-x * x) / 2
    centre = 2 / (math.pi * 0.147) + half
    y = math.copysign(math.sqrt(math.sqrt(centre * centre - 2 * half / 0.147) - centre),
                      x)
    for _ in range(3):
        wrong = math.erf(y) - x if abs(x) < 0.5 else \
            math.copysign(1, x) * (1 - abs(x) - math.erfc(abs(y)))
        y -= wrong * math.sqrt(math.pi) / 2 * math.exp(y * y)
    return y


@njit(**EXACT)
def polygamma(order, x):
    """The derivative of log gamma, differentiated `order` times more.

    The recurrence leads to large x, where the series of Stirling is exact.
    """
    sign, total = (1.0 if order % 2 else -1.0), 0.0
    if not x > -math.inf:
        return math.nan
    if x <= 0 and x == math.floor(x):  # a pole, whose side is known at 0 only
        at_zero = -math.copysign(math.inf, x) if x == 0 else math.nan
        return sign * math.inf if order else at_zero
    factorial = tgamma(order + 1.0)
    while x < 16:
        total += sign * factorial / x ** (order + 1)
        x += 1
    series = factorial / (2 * x ** (order + 1))
    series += tgamma(float(order)) / x**order if order else -math.log(x)
    bernoulli = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
    for i in range(7):
        n = 2 * i + 2
        ratio = 1.0 / n if order == 0 else 1.0
        for j in range(1, order):  # (n + order - 1)! / n!
            ratio *= n + j
        series += bernoulli[i] * ratio / x ** (n + order)
    return total + sign * series
