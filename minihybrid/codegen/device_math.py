"""Scalar functions that generated kernels call and Python's `math` lacks.

Defines: `sigmoid`, `mod`, `power`, `cbrt`, `erfinv`, `gamma`, `polygamma`, and random
         draws; `functions`, their names in a GPU kernel's source; `compiled`, all of
         them through a compiler.

They are plain Python functions, because several tools compile them: Numba for the CPU
(`codegen/cpu/scalar.py`), Numba for GPUs, and a simulator, which interprets them. `T` is
the float type of a function; `sigmoid32` is `sigmoid` with another T, because on most GPUs
an operation on float64 costs as much as 32 or 64 on float32. `math` must behave like C's:
the logarithm of 0 is minus infinity, not an error. To run the functions as Python, pass
`compiled` such a module.
Not supported: float32 forms of draws and of `polygamma`, which need 64 bits.
"""

import math
from types import FunctionType

import numpy as np

from minihybrid.ops.loops import add_up

INF, NAN = math.inf, math.nan
T = np.float64
floor = np.floor  # for a GPU, `math.floor`, which returns a float in Numba-CUDA


# -- floats ----------------------------------------------------------------------------
def sigmoid(x):
    """1 / (1 + e**-x).

    >>> sigmoid(0.0).item()
    0.5
    """
    small = math.exp(-abs(x))  # never infinite
    return (small if x < T(0) else T(1)) / (T(1) + small)


def lost(total, x):
    """Return the rounding error of total + x; 0 if it isn't finite.

    Source:  Knuth, The Art of Computer Programming, volume 2, 4.2.2.

    >>> float(lost(1.0, 1e-20)), float(lost(2.0, 1.0)), float(lost(INF, 1.0))
    (1e-20, 0.0, 0.0)
    """
    rounded = total + x
    taken = rounded - total
    rest = (total - (rounded - taken)) + (x - taken)
    return rest if rest == rest else T(0)


def mod(a, b):
    """The remainder of a / b, with the sign of b; NaN if b is 0.

    >>> mod(-7.0, 4.0)
    1.0
    """
    rest = math.fmod(a, b)
    if rest == T(0):
        return math.copysign(rest, b)
    return rest + b if (rest < T(0)) != (b < T(0)) else rest


def power(a, b):
    """a to the power b; the powers that nets use are products.

    >>> power(3.0, 2.0)
    9.0
    """
    if b == T(2):
        return a * a
    if b == T(3):
        return a * a * a
    if b == T(-1):
        return T(1) / a
    return math.pow(a, b)


def cbrt(x):
    """The cube root: a power, and one step of Newton's method.

    >>> round(cbrt(-27.0), 9)
    -3.0
    """
    a = T(abs(x))
    y = math.pow(a, T(1 / 3))
    if T(0) < a and a < T(INF):
        y = y - (y * y * y - a) / (T(3) * y * y)
    return math.copysign(y, T(x))


def erfinv(x):
    """The inverse of erf: Winitzki's formula, and three steps of Newton's method.

    >>> round(float(erfinv(math.erf(0.3))), 9)
    0.3
    """
    a = T(abs(x))
    if not a < T(1):
        return T(INF) * x if a == T(1) else T(NAN)
    half = math.log1p(-a * a) / T(2)
    center = T(2 / (math.pi * 0.147)) + half
    y = math.sqrt(math.sqrt(center * center - half * T(2 / 0.147)) - center)
    for _ in range(3):  # near 1, the difference to 1 is more precise
        wrong = math.erf(y) - a if a < T(0.5) else T(1) - a - math.erfc(y)
        y -= wrong * T(math.sqrt(math.pi) / 2) * math.exp(y * y)
    return math.copysign(y, T(x))


def gamma(x):
    """The gamma function.

    >>> gamma(5.0)
    24.0
    """
    return math.gamma(x)


def polygamma(order, x):
    """The derivative of log gamma, differentiated `order` times more.

    The recurrence leads to large x, where the series of Stirling is exact.

    >>> round(float(polygamma(1, 1.0)), 6)
    1.644934
    """
    x = T(x)  # whose powers may be infinite
    sign, total = (1.0 if order % 2 else -1.0), 0.0
    if not x > -INF:
        return NAN
    if x <= 0 and x == floor(x):  # a pole, whose side is known at 0 only
        at_zero = -math.copysign(INF, x) if x == 0 else NAN
        return sign * INF if order else at_zero
    factorial = gamma(order + 1.0)
    while x < 16:
        total += sign * factorial / x ** (order + 1)
        x += 1
    series = factorial / (2 * x ** (order + 1))
    series += gamma(float(order)) / x**order if order else -math.log(x)
    bernoulli = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
    for i in range(7):
        n = 2 * i + 2
        ratio = 1.0 / n if order == 0 else 1.0
        for j in range(1, order):  # (n + order - 1)! / n!
            ratio *= n + j
        series += bernoulli[i] * ratio / x ** (n + order)
    return total + sign * series


# -- integers --------------------------------------------------------------------------
# CPUs trap on division by 0, and of the minimum by -1. Literals are avoided in arithmetic,
# because Numba converts uint64 and a literal to float.
def whole_div(a, b):
    """a / b cut towards zero; 0 if b is 0.

    >>> whole_div(-7, 2), whole_div(-7, 0)
    (-3, 0)
    """
    if b == 0 or b == -1:
        return a * b
    rest = a % b
    if rest != 0 and (a < 0) != (b < 0):
        return (a - rest + b) // b
    return a // b


def whole_mod(a, b):
    """The remainder of a / b, with the sign of b; 0 if b is 0.

    >>> whole_mod(-7, 4)
    1
    """
    return a % b if b != 0 and b != -1 else b - b


def whole_power(a, b):
    """a to the power b, by squaring; a negative power of whole numbers is 0, 1 or -1.

    a:  as uint64, whose products wrap around wherever this function runs.

    >>> int(whole_power(np.uint64(3), 4)), int(whole_power(np.uint64(3), -1))
    (81, 0)
    """
    one = np.uint64(1)
    if b < 0:
        is_one = a == one or a == np.uint64(2**64 - 1)
        return a if is_one and b % 2 else np.uint64(is_one)
    out, left = one, np.uint64(b)
    while left > np.uint64(0):
        if left & one:
            out = out * a
        a, left = a * a, left >> one
    return out


# -- random numbers: functions of a key and an index, as in `ops.random` ---------------
def mix(x):
    """SplitMix64: map integers that differ in one bit to unrelated integers.

    >>> with np.errstate(over="ignore"):  # the product keeps its last 64 bits
    ...     hex(mix(np.uint64(0)))
    '0xe220a8397b1dcdaf'
    """
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def bits24(key, i, lane):
    """Return 24 random bits at index i of a key.

    >>> with np.errstate(over="ignore"):
    ...     int(bits24(np.uint64(7), 0, 0))
    12104898
    """
    place = np.uint64(2) * np.uint64(i) + np.uint64(lane)
    return mix(mix(key) + place) >> np.uint64(40)


def unit(key, i, lane):
    """Return the uniform number in [0, 1) at index i of a key.

    >>> with np.errstate(over="ignore"):
    ...     float(unit(np.uint64(7), 0, 0)) * 2**24
    12104898.0
    """
    return np.float64(np.int32(bits24(key, i, lane))) * 2.0**-24


def upper(a, b):
    """Return the upper 64 bits of the product of two 64-bit integers.

    >>> int(upper(np.uint64(2**63), np.uint64(6)))
    3
    """
    half, mask = np.uint64(32), np.uint64(2**32 - 1)
    middle = (a >> half) * (b & mask) + ((a & mask) * (b & mask) >> half)
    return (
        (a >> half) * (b >> half)
        + (middle >> half)
        + ((a & mask) * (b >> half) + (middle & mask) >> half)
    )


def below(key, i, count):
    """Return the random integer in [0, count) at index i of a key.

    >>> with np.errstate(over="ignore"):
    ...     int(below(np.uint64(7), 0, np.uint64(1000)))
    721
    """
    start, place = mix(key), np.uint64(2) * np.uint64(i)
    high, low = mix(start + place), mix(start + place + np.uint64(1))
    carry = upper(low, count)
    rest = high * count + carry
    return upper(high, count) + np.uint64(rest < carry)


def gauss(key, i):
    """Return the normally distributed number at index i of a key.

    >>> with np.errstate(over="ignore"):
    ...     round(float(gauss(np.uint64(7), 0)), 6)
    0.891316
    """
    radius = math.sqrt(-2 * math.log(1 - unit(key, i, 0)))
    return radius * math.cos(2 * math.pi * unit(key, i, 1))


def draw_gamma(key, i, alpha):
    """Return the gamma-distributed number at index i of a key.

    >>> with np.errstate(over="ignore"):
    ...     round(float(draw_gamma(np.uint64(7), 0, 2.0)), 6)
    0.313848
    """
    d = (alpha + 1 if alpha < 1 else alpha) - 1 / 3
    for turn in range(1, 100):
        x = gauss(key + np.uint64(turn << 32), i)
        v = (1 + x / math.sqrt(9 * d)) ** 3
        if v > 0:
            u = 1 - unit(key + np.uint64((turn + 100) << 32), i, 0)
            if math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
                power = (1 - unit(key, i, 0)) ** (1 / alpha) if alpha < 1 else 1.0
                return d * v * power
    return 0.0


def draw_poisson(key, i, lam):
    """Return the Poisson-distributed number at index i of a key.

    >>> with np.errstate(over="ignore"):
    ...     float(draw_poisson(np.uint64(7), 0, 3.0))
    4.0
    """
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
        x = unit(key + np.uint64(turn << 32), i, 0) - 0.5
        v = unit(key + np.uint64(turn << 32), i, 1)
        edge = 0.5 - abs(x)
        k = floor((2 * a / edge + b) * x + lam + 0.43)
        if edge >= 0.07 and v <= 0.9277 - 3.6224 / (b - 2):
            return k
        if (
            k >= 0
            and (edge >= 0.013 or v <= edge)
            and math.log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (edge * edge) + b))
            <= k * math.log(lam) - lam - math.lgamma(k + 1)
        ):
            return k
    return 0.0


# -- their names in source -------------------------------------------------------------
TYPED = "sigmoid lost mod power cbrt erfinv".split()
OTHERS = (
    "gamma polygamma whole_div whole_mod whole_power mix bits24 unit upper below gauss "
    "draw_gamma draw_poisson"
).split()
PLAIN = {"add_up": add_up} | {name: globals()[name] for name in TYPED + OTHERS}  # in order of calls


def compiled(jit, **names):
    """Compile every function of this module: return name -> function.

    jit:    a compiler of plain functions, such as `numba.njit`.
    names:  replacements of globals that the functions use, such as `math`.

    >>> compiled(lambda f: f)["sigmoid32"](np.float32(0))
    np.float32(0.5)
    """
    out = {}
    for end, number in (("", np.float64), ("32", np.float32)):
        world = globals() | {"T": number}
        for name in TYPED if end else PLAIN:
            code = PLAIN[name].__code__
            out[name + end] = world[name] = jit(FunctionType(code, world, name + end))
        world |= names
    return out


NUMBERS = "float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
SAME = (
    "exp log log2 log10 log1p expm1 tanh sin cos tan asin acos atan sinh cosh "
    "asinh acosh atanh erf lgamma hypot atan2 floor ceil sqrt"
).split()
FUNCTIONS = {name: f"math.{name}" for name in SAME}


def functions(dtype):
    """Return the names of the functions of expressions in a GPU kernel's source.

    >>> functions(np.dtype("float32"))["sigmoid"], functions(np.dtype("int8"))["exp"]
    ('sigmoid32', 'math.exp')
    """
    return FUNCTIONS | {name: f"{name}32" for name in TYPED if dtype.name == "float32"}


sigmoid32, lost32, mod32, power32, cbrt32, erfinv32 = map(
    compiled(lambda f: f).get, (f"{name}32" for name in TYPED)
)
IMPORTS = {  # module -> names that a GPU kernel's source may use
    "numba": " ".join(["boolean", "cuda", *NUMBERS]),
    "minihybrid.codegen.gpu.cuda": "atomic_add load4 store4",
    "minihybrid.codegen.device_math": (
        "INF NAN add_up below bits24 cbrt cbrt32 draw_gamma draw_poisson erfinv erfinv32 "
        "gamma gauss lost lost32 mod mod32 polygamma power power32 sigmoid sigmoid32 unit "
        "whole_div whole_mod whole_power"
    ),
}
