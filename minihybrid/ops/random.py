"""Chapter 02. Random numbers as a pure function of a key and a place.

Takes:   a key (one whole number a draw) and the place of the element.
Gives:   uniform and normal numbers, and the masks of Dropout.

Because the number at place i of draw k depends on (k, i) only, an eager operator and a
compiled kernel that split the work differently draw the same numbers.
Source:  the mixing function of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
What is left out: other distributions, and streams that are cryptographically safe.
"""

import threading
from contextlib import contextmanager

import numpy as np

from minihybrid.op import (
    REQUIRED,
    AttrError,
    choice,
    dtype,
    integer,
    number,
    register,
    shape,
)
from minihybrid.ops.layout import created
from minihybrid.ops.shapes import same_shape


class Stream:
    """The global sequence of keys; `seed` starts it anew.

    >>> stream = Stream(); stream.seed(7); first = stream.take(2)
    >>> stream.seed(7); stream.take(1) == first
    True
    """

    def __init__(self):
        self.lock = threading.Lock()
        self.seed(int(np.random.SeedSequence().entropy % 2**63))

    def seed(self, seed):
        """Start the sequence that belongs to a whole number."""
        self.next = int(mix(np.uint64([seed % 2**64]))[0])

    @contextmanager
    def branch(self, key):
        """Inside this `with` block, draw from a sequence that a key begins."""
        before = self.next
        self.seed(key)
        try:
            yield
        finally:
            self.next = before

    def take(self, count):
        """The first of `count` keys that nobody else will get."""
        with self.lock:
            key, self.next = self.next, (self.next + count) % 2**64
        return key


def mix(x):
    """SplitMix64: whole numbers that differ in one bit become unrelated ones."""
    x = (x + np.uint64(0x9E3779B97F4A7C15))
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def unit(key, size, lane=0):
    """`size` float64 numbers in [0, 1) that belong to the key; `lane` gives more of
    them.

    A float32 holds each of them exactly: they are multiples of 2**-24.
    """
    start = mix(np.uint64([key % 2**64]))
    bits = mix(start + np.arange(2 * size, dtype=np.uint64)[lane::2])
    return (bits >> np.uint64(40)) * 2.0**-24


STREAM = Stream()


def seed(seed_state, ctx="all"):
    """Start the random numbers anew: the same seed gives the same numbers.

    >>> seed(42)
    """
    if not isinstance(seed_state, (int, np.integer)):
        raise AttrError(f"random.seed: {seed_state!r} is given, but a whole number is "
                        "needed")
    STREAM.seed(int(seed_state))


def _uniform_eager(*, low, high, shape, dtype, stream, key):
    out = low + (high - low) * unit(key + stream, int(np.prod(shape)))
    return out.astype(dtype or np.float32).reshape(shape)


def _normal_eager(*, loc, scale, shape, dtype, stream, key):
    size = int(np.prod(shape))
    radius = np.sqrt(-2 * np.log(1 - unit(key + stream, size)))
    out = loc + scale * radius * np.cos(2 * np.pi * unit(key + stream, size, lane=1))
    return out.astype(dtype or np.float32).reshape(shape)


SHAPED = {"shape": (shape, (1,)), "dtype": (dtype, np.dtype("float32")),
          "stream": (integer, 0)}
uniform = register(
    "_random_uniform", "random_uniform", "uniform", inputs=(), random=True,
    infer=created,
    attrs={"low": (number, 0.0), "high": (number, 1.0), **SHAPED}, eager=_uniform_eager,
    expr=lambda low, high, stream, **_:
        f"T({low!r} + {high - low!r} * unit(key + U({stream}), {{i}}, 0))",
    doc="Numbers that are equally likely anywhere in [low, high).")
normal = register(
    "_random_normal", "random_normal", "normal", inputs=(), random=True, infer=created,
    attrs={"loc": (number, 0.0), "scale": (number, 1.0), **SHAPED}, eager=_normal_eager,
    expr=lambda loc, scale, stream, **_:
        f"T({loc!r} + {scale!r} * gauss(key + U({stream}), {{i}}))",
    doc="Numbers with the normal distribution, by the method of Box and Muller.")


def _randint_eager(*, low, high, shape, dtype, stream, key):
    out = low + np.floor((high - low) * unit(key + stream, int(np.prod(shape))))
    return out.astype(dtype).reshape(shape)


randint = register(
    "_random_randint", "random_randint", inputs=(), random=True, infer=created,
    attrs={"low": (integer, REQUIRED), "high": (integer, REQUIRED), **SHAPED,
           "dtype": (dtype, np.dtype("int32"))}, eager=_randint_eager,
    expr=lambda low, high, stream, **_:
        f"T({low} + floor({high - low} * unit(key + U({stream}), {{i}}, 0)))",
    doc="Whole numbers that are equally likely in [low, high).")


# -- dropout ---------------------------------------------------------------------------
def _mask_eager(data, *, p, axes, stream, key):
    shape = tuple(1 if i in axes else n for i, n in enumerate(data.shape))
    keep = unit(key + stream, int(np.prod(shape))).reshape(shape) >= p
    return np.broadcast_to(keep / (1 - p), data.shape).astype(data.dtype)


def _mask_expr(p, axes, stream):
    if axes:
        return None  # the mask is shared along an axis: not one scalar an element
    return f"T(0) if unit(key + U({stream}), {{i}}, 0) < {p!r} else T({1 / (1 - p)!r})"


def _mask_cpu(k, data, out, *, p, axes, stream):
    with k.loop("i", out.size):
        at, index, rest = [], out.size, 1
        for n, is_shared in reversed([(n, i in axes) for i, n in enumerate(out.shape)]):
            index //= n
            if not is_shared:
                at.append(f"i // {out.size // index // n} % {n} * {rest}")
                rest *= n
        k(f"at = {' + '.join(at) or '0'}")
        k.store("i", f"T(0) if unit(key + U({stream}), at, 0) < {p!r} "
                     f"else T({1 / (1 - p)!r})")


dropout_mask = register(
    "_dropout_mask", inputs=("data",), random=True,
    attrs={"p": (number, 0.5), "axes": (shape, ()), "stream": (integer, 0)},
    infer=lambda specs, **_: same_shape("Dropout", specs), eager=_mask_eager,
    expr=_mask_expr, cpu=_mask_cpu, grad=lambda g, out, data, **_: (None,),
    doc="0 with probability p, else 1 / (1 - p), in the shape of the data.")


def _dropout_expand(specs, data, p, mode, axes, training):
    if not 0 <= p < 1:
        raise AttrError(f"Dropout: p={p} is given, but a probability in [0, 1) is "
                        "needed")
    if p == 0 or not (training or mode == "always"):
        return data
    return data * dropout_mask(data, p=p, axes=axes)


dropout = register(
    "Dropout", inputs=("data",), modal=True, infer=lambda specs, **_: (specs, specs),
    attrs={"p": (number, 0.5), "mode": (choice("training", "always"), "training"),
           "axes": (shape, ())},
    expand=_dropout_expand,
    doc="Training: each number is 0 with probability p, else divided by 1 - p.")

