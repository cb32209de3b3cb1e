"""Random operators: a counter-based generator, a pure function of key and index.

Uses:    a key (one integer per draw) and the index of the element.
Defines: distributions, sampling from given probabilities, and dropout masks.

Because element i of draw k depends only on (k, i), eager operators and compiled kernels
draw the same values, however they split the work.
Source:  the mixing function of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
Not supported: gradients with respect to parameters, and cryptographic randomness.
"""

import math
import os
import threading
from contextlib import contextmanager

import numpy as np

from minihybrid.core.fork_safe import ForkSafe
from minihybrid.core.op import (
    REQUIRED,
    AttrError,
    Spec,
    boolean,
    chance,
    choice,
    dtype,
    finite,
    integer,
    not_negative,
    positive,
    rate,
    shape,
)
from minihybrid.ops.elementwise import cast, log
from minihybrid.ops.filled import created, make, zeros
from minihybrid.ops.functions import special
from minihybrid.ops.indexing import take, take_along
from minihybrid.ops.integers import clamp
from minihybrid.ops.ordering import order, running_sum
from minihybrid.ops.registry import OPS, register
from minihybrid.ops.shapes import as_codes, axis_of, floating, known, same_shape


class Stream(ForkSafe):
    """The global sequence of keys; `seed` restarts it.

    repeats: whether runs must be bitwise reproducible, because the program called `seed`
             or trains; then calls wait for compiled kernels (minihybrid/runtime/tiers.py).

    >>> stream = Stream(); stream.seed(7); first = stream.take(2)
    >>> stream.seed(7); stream.take(1) == first
    True
    """

    def __init__(self):
        super().__init__()
        self.local, self.repeats = threading.local(), False
        self.seed(int.from_bytes(os.urandom(8), "big") % 2**63)

    def seed(self, seed):
        """Restart the sequence from an integer seed."""
        with self.lock:
            self.next = _first_key(seed)

    @contextmanager
    def branch(self, key):
        """Draw from a sequence seeded by a key inside this `with` block.

        The branch is thread-local: other threads continue the global sequence.
        """
        before = getattr(self.local, "next", None)
        self.local.next = _first_key(key)
        try:
            yield
        finally:
            self.local.next = before

    def take(self, count):
        """Reserve `count` consecutive keys and return the first."""
        key = getattr(self.local, "next", None)
        if key is not None:
            self.local.next = (key + count) % 2**64
            return key
        with self.lock:
            key, self.next = self.next, (self.next + count) % 2**64
        return key


def _first_key(seed):
    return int(mix(np.uint64([seed % 2**64]))[0])


def mix(x):
    """Hash integers with SplitMix64: inputs that differ in one bit become uncorrelated."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def unit(key, size, lane=0):
    """Draw `size` float64 samples in [0, 1); each `lane` is an independent stream.

    They are multiples of 2**-24, so each is exact in float32.
    """
    start = mix(np.uint64([key % 2**64]))
    bits = mix(start + np.arange(2 * size, dtype=np.uint64)[lane::2])
    return (bits >> np.uint64(40)) * 2.0**-24


def below(key, size, count):
    """Draw `size` integers uniformly from 0 to count - 1.

    Each is the high part of count times 128 random bits (multiply-shift), so the bias
    is below one part in 2**64.
    """
    start = mix(np.uint64([key % 2**64]))
    places = np.arange(2 * size, dtype=np.uint64)
    high, low = mix(start + places[::2]), mix(start + places[1::2])
    count, carry = np.uint64(count), _upper(low, np.uint64(count))
    rest = high * count + carry
    return _upper(high, count) + (rest < carry)


def _upper(a, b):
    """Return the upper 64 bits of the product of two 64-bit integers."""
    half, mask = np.uint64(32), np.uint64(2**32 - 1)
    middle = (a >> half) * (b & mask) + ((a & mask) * (b & mask) >> half)
    return (
        (a >> half) * (b >> half)
        + (middle >> half)
        + ((a & mask) * (b >> half) + (middle & mask) >> half)
    )


STREAM = Stream()


def seed(seed_state, ctx="all"):
    """Seed the generator: the same seed reproduces the same samples.

    >>> seed(42)
    """
    if not isinstance(seed_state, (int, np.integer)):
        raise AttrError(f"random.seed: {seed_state!r} is given, but a whole number is needed")
    STREAM.seed(int(seed_state))
    STREAM.repeats = True


# -- samplers per (key, index); codegen/cpu/scalar.py has a compiled twin of each ------
OFFSET = 2**32  # an offset between keys larger than any run of draws


def gauss(key, size):
    """Draw standard normal samples by the Box-Muller method."""
    radius = np.sqrt(-2 * np.log(1 - unit(key, size)))
    return radius * np.cos(2 * np.pi * unit(key, size, lane=1))


def draw_gamma(key, size, alpha):
    """Draw gamma samples of shape alpha and scale 1.

    Source:  Marsaglia and Tsang, ACM TOMS 26 (2000): the cube of a normal sample, with
             rejection; below alpha = 1, a sample for alpha + 1 times a power.
    """
    alpha = np.broadcast_to(np.asarray(alpha, np.float64), size)
    d = np.where(alpha < 1, alpha + 1, alpha) - 1 / 3
    out, open_places = np.zeros(size), d > 0
    for attempt in range(1, 100):
        if not open_places.any():
            break
        x = gauss(key + attempt * OFFSET, size)
        u = 1 - unit(key + (attempt + 100) * OFFSET, size)
        v = (1 + x / np.sqrt(9 * d)) ** 3
        accepted = (
            open_places
            & (v > 0)
            & (np.log(u) < 0.5 * x * x + d - d * v + d * np.log(np.where(v > 0, v, 1)))
        )
        out[accepted] = (d * v)[accepted]
        open_places &= ~accepted
    power = (1 - unit(key, size)) ** (1 / np.where(alpha < 1, alpha, 1))
    return np.where(alpha < 1, out * power, out)


def draw_poisson(key, size, lam):
    """Draw Poisson samples with mean lam.

    Small lam: inversion by sequential search. Otherwise Hoermann's transformed rejection
    with a table mountain hat.
    Source:  Hoermann, Insurance: Mathematics and Economics 12 (1993), PTRS.
    """
    lam = np.broadcast_to(np.asarray(lam, np.float64), size)
    small, u = lam < 10, unit(key, size)
    out, p = np.zeros(size), np.exp(-lam)
    total = p.copy()
    for k in range(1, 100):
        more = small & (u > total)
        if not more.any():
            break
        out[more] = k
        p = p * lam / k
        total = np.where(more, total + p, total)
    open_places, log_lam = lam >= 10, np.log(lam)
    b = 0.931 + 2.53 * np.sqrt(lam)
    a, limit = -0.059 + 0.02483 * b, 0.9277 - 3.6224 / (b - 2)
    for attempt in range(1, 100):
        if not open_places.any():
            break
        x = unit(key + attempt * OFFSET, size) - 0.5
        v = unit(key + attempt * OFFSET, size, lane=1)
        edge = 0.5 - np.abs(x)
        k = np.floor((2 * a / edge + b) * x + lam + 0.43)
        fits = np.log(
            v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (edge * edge) + b)
        ) <= k * log_lam - lam - special("gammaln")(np.maximum(k, 0) + 1)
        accepted = open_places & (
            (edge >= 0.07) & (v <= limit) | (k >= 0) & ((edge >= 0.013) | (v <= edge)) & fits
        )
        out[accepted] = k[accepted]
        open_places &= ~accepted
    return out


# -- distributions ---------------------------------------------------------------------
SHAPED = {"shape": (shape, (1,)), "dtype": (dtype, np.dtype("float32"))}
STREAMED = {"stream": (integer, 0)}


def _one_dtype(attrs):
    return np.dtype("float32") if attrs.get("dtype") is None else attrs["dtype"]


def distribution(name, params, eager, text, doc, aliases=(), arrays=None):
    """Register a distribution under four names, for scalar and array parameters.

    params:  name -> (type, default), in order.
    eager:   (key, size, *params) -> float64 samples.
    text:    the scalar expression of one sample, over {key}, {i} and the parameters' names.
    arrays:  the names of the parameters when they are arrays, if different.

    `_random_x(params, shape)` draws, `_random_x_like(data, params)` uses the shape of data,
    `_sample_x(params, shape)` draws a block of that shape per element of its array
    parameters, using `_draw_x`, which draws one sample per element.
    """
    names = tuple(params)
    arrays = arrays or names

    def draw(key, shape, dtype, values):
        drawn = np.asarray(eager(key, int(np.prod(shape)), *values))
        return drawn.astype(dtype).reshape(shape)

    def scalar_text(stream, **attrs):
        values = {n: repr(attrs[n]) for n in names}
        return f"T({text.format(key=f'(key + U({stream}))', i='{i}', **values)})"

    def random_eager(*data, key, stream, **attrs):
        shape = attrs.get("shape", data and data[0].shape)
        dtype = data[0].dtype if data else _one_dtype(attrs)
        return draw(key + stream, shape, dtype, [attrs[n] for n in names])

    def sample_infer(specs, shape, dtype):
        specs, (out,) = same_shape(f"sample_{name}", specs)
        new = None if out.shape is None else (*out.shape, *shape)
        return specs, [Spec(new, _one_dtype({"dtype": dtype}))]

    def sample_expand(specs, *values, shape, dtype):
        old = specs[0].shape
        upright = as_codes((*old, *(1 for _ in shape)))
        if 0 in shape:
            return make(values[0], zeros, shape=(*old, *shape), dtype=_one_dtype({"dtype": dtype}))
        blocks = [v.reshape(upright).broadcast_to((*old, *shape)) for v in values]
        return drawer(*blocks, dtype=_one_dtype({"dtype": dtype}))

    letters = dict(zip(names, ("float64({a})", "float64({b})"), strict=False))
    register(
        f"_random_{name}",
        f"random_{name}",
        *aliases,
        inputs=(),
        random=True,
        infer=created,
        eager=random_eager,
        expr=scalar_text,
        doc=doc,
        attrs=params | SHAPED | STREAMED,
    )
    register(
        f"_random_{name}_like",
        random=True,
        eager=random_eager,
        infer=lambda specs, **_: same_shape(f"{name}_like", specs),
        expr=scalar_text,
        attrs=params | STREAMED,
        doc=f"{doc} In a given shape.",
        grad=lambda g, out, data, **_: (None,),
    )
    drawer = register(
        f"_draw_{name}",
        inputs=arrays,
        random=True,
        infer=lambda specs, dtype, stream: (
            specs,
            [Spec(same_shape(name, specs)[1][0].shape, dtype)],
        ),
        attrs={"dtype": (dtype, np.dtype("float32"))} | STREAMED,
        eager=lambda *values, dtype, stream, key: draw(
            key + stream, values[0].shape, dtype, [v.astype(np.float64).ravel() for v in values]
        ),
        expr=lambda dtype, stream: (
            "T(" + text.format(key=f"(key + U({stream}))", i="{i}", **letters) + ")"
        ),
        grad=lambda g, out, *values, **_: (None,) * len(values),
        doc=f"{doc} One for each element of the parameters.",
    )
    register(
        f"_sample_{name}",
        f"sample_{name}",
        inputs=arrays,
        infer=sample_infer,
        expand=sample_expand,
        attrs={"shape": (shape, ()), "dtype": (dtype, None)},
        doc=f"{doc} A block of a shape for each element of the parameters.",
    )


distribution(
    "uniform",
    {"low": (finite, 0.0), "high": (finite, 1.0)},
    lambda key, size, low, high: low + (high - low) * unit(key, size),
    "{low} + ({high} - {low}) * unit({key}, {i}, 0)",
    "Numbers that are equally likely anywhere in [low, high).",
    ("uniform",),
)
distribution(
    "normal",
    {"loc": (finite, 0.0), "scale": (not_negative, 1.0)},
    lambda key, size, loc, scale: loc + scale * gauss(key, size),
    "{loc} + {scale} * gauss({key}, {i})",
    "Numbers with the normal distribution, by the method of Box and Muller.",
    ("normal",),
    ("mu", "sigma"),
)
distribution(
    "exponential",
    {"lam": (positive, 1.0)},
    lambda key, size, lam: -np.log(1 - unit(key, size)) / lam,
    "-math.log(1 - unit({key}, {i}, 0)) / {lam}",
    "Waiting times of a rate lam; their mean is 1 / lam.",
)
distribution(
    "gamma",
    {"alpha": (positive, 1.0), "beta": (positive, 1.0)},
    lambda key, size, alpha, beta: beta * draw_gamma(key, size, alpha),
    "{beta} * draw_gamma({key}, {i}, {alpha})",
    "Numbers with the gamma distribution of shape alpha and scale beta.",
)
distribution(
    "poisson",
    {"lam": (not_negative, 1.0)},
    draw_poisson,
    "draw_poisson({key}, {i}, {lam})",
    "Counts of events of which lam are expected.",
)
distribution(
    "negative_binomial",
    {"k": (positive, 1.0), "p": (chance, 1.0)},
    lambda key, size, k, p: draw_poisson(
        key + 300 * OFFSET, size, draw_gamma(key, size, k) * ((1 - p) / p)
    ),
    "draw_poisson({key} + uint64(300 * 2**32), {i}, "
    "draw_gamma({key}, {i}, {k}) * ((1 - {p}) / {p}))",
    "Failures before success number k, each try succeeding with probability p.",
)
distribution(
    "generalized_negative_binomial",
    {"mu": (not_negative, 1.0), "alpha": (positive, 1.0)},
    lambda key, size, mu, alpha: draw_poisson(
        key + 300 * OFFSET, size, draw_gamma(key, size, 1 / alpha) * (alpha * mu)
    ),
    "draw_poisson({key} + uint64(300 * 2**32), {i}, "
    "draw_gamma({key}, {i}, 1 / {alpha}) * ({alpha} * {mu}))",
    "Counts with mean mu and variance mu + alpha mu^2.",
)


def _drawn_dtype(value):
    """Parse a numeric dtype or its name; `None` means int32."""
    return dtype(value) or np.dtype("int32")


def _randint_infer(specs, low, high, shape, dtype, **_):
    if not low < high:
        raise AttrError(
            f"random.randint: low={low} and high={high} are given, but low "
            "must be smaller: numbers are drawn from [low, high)"
        )
    if dtype.kind in "iub" and not clamp(low, dtype) == low <= high - 1 == clamp(high - 1, dtype):
        raise AttrError(
            f"random.randint: {dtype} cannot hold all numbers in [{low}, "
            f"{high}); pass dtype='int64'"
        )
    return created(specs, shape=shape, dtype=dtype)


def _randint_eager(*, low, high, shape, dtype, stream, key):
    drawn = np.uint64(low % 2**64) + below(key + stream, math.prod(shape), high - low)
    return drawn.astype(np.int64).astype(dtype).reshape(shape)


randint = register(
    "_random_randint",
    "random_randint",
    inputs=(),
    random=True,
    infer=_randint_infer,
    attrs={
        "low": (integer, REQUIRED),
        "high": (integer, REQUIRED),
        **SHAPED,
        "dtype": (_drawn_dtype, np.dtype("int32")),
        **STREAMED,
    },
    eager=_randint_eager,
    expr=lambda low, high, stream, **_: (
        f"T(int64(U({low % 2**64}) + below(key + U({stream}), {{i}}, U({high - low}))))"
    ),
    doc="Whole numbers that are equally likely in [low, high).",
)


# -- sampling --------------------------------------------------------------------------
def _multinomial_infer(specs, shape, get_prob, dtype):
    if not known(specs):
        return specs, [Spec(None, dtype)] * (1 + get_prob)
    axis_of("sample_multinomial", -1, len(specs[0].shape))
    new = (*specs[0].shape[:-1], *shape) or (1,)
    outs = [Spec(new, dtype), Spec(new, floating(specs[0].dtype))]
    return specs, outs[: 1 + get_prob]


def _multinomial_expand(specs, data, shape, get_prob, dtype):
    *rows, k = specs[0].shape
    count, batch = int(np.prod(shape)), int(np.prod(rows))
    chances = data.reshape(as_codes((batch, 1, k)))
    drawn = make(data, OPS["_random_uniform"], shape=(batch, count, 1), dtype=specs[0].dtype)
    # Inverse CDF: count the prefix sums, except the last, up to a uniform sample.
    below = running_sum(chances, axis=2).slice_axis(axis=2, begin=0, end=k - 1)
    place = drawn.broadcast_greater_equal(below).sum(axis=2)
    new = as_codes((*rows, *shape) or (1,))
    samples = cast(place.reshape(new), dtype=dtype)
    if not get_prob:
        return samples
    lines = data.reshape(as_codes((batch, k)))
    return samples, log(take_along(lines, place, axis=1)).reshape(new)


multinomial = register(
    "_sample_multinomial",
    "sample_multinomial",
    attrs={"shape": (shape, ()), "get_prob": (boolean, False), "dtype": (dtype, np.dtype("int32"))},
    infer=_multinomial_infer,
    expand=_multinomial_expand,
    n_outputs=lambda attrs: 1 + attrs["get_prob"],
    doc="Places drawn with the probabilities in each row; get_prob adds their "
    "logarithms, which have a gradient.",
)

shuffle = register(
    "_shuffle",
    "shuffle",
    infer=lambda specs: (specs, specs),
    expand=lambda specs, data: take(
        data, order(make(data, OPS["_random_uniform"], shape=specs[0].shape[:1]), axis=0)
    ),
    doc="The rows (axis 0) in random order.",
)


# -- dropout ---------------------------------------------------------------------------
def _mask_eager(data, *, p, axes, stream, key):
    shape = tuple(1 if i in axes else n for i, n in enumerate(data.shape))
    keep = unit(key + stream, int(np.prod(shape))).reshape(shape) >= p
    return np.broadcast_to(keep / (1 - p), data.shape).astype(data.dtype)


def _mask_expr(p, axes, stream):
    if axes:
        return None  # the mask is shared along an axis: not one scalar per element
    return _kept_or_not(p, stream, "{i}")


def _kept_or_not(p, stream, place):
    """Return the expression of one mask element.

    A sample in [0, 1) has 24 bits, so comparing it with p needs no conversion to float.
    """
    dropped = math.ceil(p * 2**24)
    return f"T(0) if bits24(key + U({stream}), {place}, 0) < U({dropped}) else T({1 / (1 - p)!r})"


def _mask_cpu(k, data, out, *, p, axes, stream):
    with k.each(("i", out.size)):
        at, index, rest = [], out.size, 1
        for n, is_shared in reversed([(n, i in axes) for i, n in enumerate(out.shape)]):
            index //= n
            if not is_shared:
                at.append(f"i // {out.size // index // n} % {n} * {rest}")
                rest *= n
        k(f"at = {' + '.join(at) or '0'}")
        k.store("i", _kept_or_not(p, stream, "at"))


dropout_mask = register(
    "_dropout_mask",
    random=True,
    attrs={"p": (rate, 0.5), "axes": (shape, ()), "stream": (integer, 0)},
    infer=lambda specs, **_: same_shape("Dropout", specs),
    eager=_mask_eager,
    expr=_mask_expr,
    cpu=_mask_cpu,
    grad=lambda g, out, data, **_: (None,),
    doc="0 with probability p, else 1 / (1 - p), in the shape of the data.",
)


def _dropout_expand(specs, data, p, mode, axes, cudnn_off, training):
    if p == 0 or not (training or mode == "always"):
        return data
    return data * dropout_mask(data, p=p, axes=axes)


dropout = register(
    "Dropout",
    modal=True,
    infer=lambda specs, **_: (specs, specs),
    attrs={
        "p": (rate, 0.5),
        "mode": (choice("training", "always"), "training"),
        "axes": (shape, ()),
        "cudnn_off": (boolean, False),
    },
    expand=_dropout_expand,
    doc="Training: each number is 0 with probability p, else divided by 1 - p.",
)
