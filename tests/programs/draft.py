"""A program that is being drawn: its values so far, and what to draw next from them.

Values are computed with eager arrays on the way, so their shapes, dtypes and numbers
are known to whoever draws the next step.
"""

import inspect
import math
import random
import warnings

import numpy as np
from minihybrid.nd import NDArray

from minihybrid import nd
from minihybrid import np as mx_np
from minihybrid.core.op import REQUIRED, axes, boolean, choice, dtype, integer, number, optional
from programs.run import Input, Step, apply

LENGTHS = (1, 1, 2, 2, 3, 3, 4, 5, 7)
LARGEST = 120  # elements of a value
SCALARS = (2.0, 0.5, -1.5, 3.0, 1.0, -1.0, 0.0, -0.0, 0.1, 2, 3, -2, 0)
WILD = (math.inf, -math.inf, math.nan, 1e30, -1e30, 1e-30, 16777217.0, 1e-45, 3e38)
WHOLE = ("int32", "int32", "int64", "int8", "uint8")
ARRAYS = {"nd": NDArray, "np": mx_np.ndarray}  # world -> its arrays, of NumPy's


class Draft:
    """A program that is being drawn."""

    def __init__(self, seed, is_loose, world="nd"):
        self.is_loose = is_loose  # whether a step adds up
        self.world = world
        self.rng = rng = random.Random(seed)
        self.values = []  # NumPy arrays
        self.inputs = {}  # number of a value -> Input
        self.steps = []  # (Step, number of its first output)
        self.exact, self.wild = rng.random() < 0.25, rng.random() < 0.15
        self.mood = rng.choice(("float32",) * 5 + ("float64",) * 2 + ("whole", "mixed"))
        self.lengths = rng.sample(LENGTHS, rng.choice((1, 2, 2, 3)))
        self.chain = rng.random() < 0.5  # each step reads the last one, too
        self.favourite = rng.choice((-1, -1, 0, 1))  # the axis of such a chain
        self.empty = rng.random() < (0.04 if world == "nd" else 0.15)
        self.refused = []  # what operators did not take
        self.control = 0  # how deep branches and loops may be inside of each other
        self.finite = False  # whether infinite values and NaN are never drawn

    # -- choices
    def flag(self, chance=0.5):
        """True, as often as said."""
        return self.rng.random() < chance

    def length(self):
        """The length of an axis; few different ones, so that values fit together."""
        if self.empty and self.flag(0.15):
            return 0
        return (
            self.rng.choice(self.lengths)
            if self.chain or self.flag(0.8)
            else self.rng.choice(LENGTHS)
        )

    def shape(self, ndim=None):
        """A shape of a few elements."""
        some = (2, 2, 2, 3) if self.chain else (1, 1, 2, 2, 2, 2, 3, 3, 3, 4)
        if ndim is None and self.world == "np" and self.flag(0.12):
            return ()
        ndim = ndim or self.rng.choice(some)
        lengths = [self.length() for _ in range(ndim)]
        while math.prod(lengths) > LARGEST / 2:
            lengths[self.rng.randrange(ndim)] = self.rng.choice((1, 2))
        return tuple(lengths)

    def dtype(self):
        """The dtype of an input."""
        if self.mood == "whole" or self.mood == "mixed" and self.flag(0.4):
            return self.rng.choice(WHOLE)
        return (
            self.mood if self.mood.startswith("float") else self.rng.choice(("float32", "float64"))
        )

    def axis(self, ndim):
        """One axis, from the front or from the back."""
        if self.chain and self.flag(0.8) and self.favourite < ndim:
            return self.favourite
        return self.rng.randrange(-ndim, ndim)

    def axes(self, ndim):
        """All axes, one, or some, in any order."""
        kind = self.rng.choice((1, 1, 1, 1, 0) if self.chain else (0, 1, 2, 3))
        if kind < 2:
            return self.axis(ndim) if kind else None
        some = self.rng.sample(range(ndim), self.rng.randint(1, ndim))
        return tuple(a - ndim if self.flag(0.3) else a for a in some)

    def scalar(self):
        """A number beside an array."""
        return self.rng.choice(WILD if self.wild and self.flag(0.4) else SCALARS)

    # -- values
    def shape_of(self, value):
        return self.values[value].shape

    def ndim(self, value):
        return self.values[value].ndim

    def is_float(self, value):
        return self.values[value].dtype.kind == "f"

    def is_state(self, value):
        return value in self.inputs and self.inputs[value].role == "state"

    def numbers(self, size, dtype, kind):
        """What an input holds."""
        rng = self.rng
        if dtype == "bool":
            return [rng.randint(0, 1) for _ in range(size)]
        if dtype[0] in "iu":
            low, high = (0, 9) if dtype[0] == "u" else (-5, 5)
            some = [rng.randint(low, high) for _ in range(size)]
            info = np.iinfo(dtype)
            return [
                rng.choice((info.min, info.max, 0, 100)) if self.wild and self.flag(0.2) else n
                for n in some
            ]
        if kind == "positive":
            return [round(rng.uniform(0.3, 2.5), 3) for _ in range(size)]
        if kind == "any" and self.flag(0.3):  # ties, and sums without rounding
            some = [rng.randint(-4, 4) / 2 for _ in range(size)]
        else:
            some = [round(rng.gauss(0, 1.5), 3) for _ in range(size)]
        return [
            rng.choice((*WILD, 0.0, -0.0)) if self.wild and self.flag(0.15) else n for n in some
        ]

    def new(self, shape, dtype=None, kind="any", role=None, values=None):
        """A new input."""
        dtype = dtype or self.dtype()
        if values is None:
            values = self.numbers(math.prod(shape), dtype, kind)
        role = role or (
            "param" if self.flag(0.25) and dtype[0] == "f" and shape and 0 not in shape else "data"
        )
        made = Input(tuple(shape), dtype, tuple(values), role)
        self.inputs[len(self.values)] = made
        self.values.append(made.array())
        return len(self.values) - 1

    def forget(self, n_values):
        """Drop all values but the first."""
        del self.values[n_values:]
        self.inputs = {v: i for v, i in self.inputs.items() if v < n_values}
        self.steps = [(s, first) for s, first in self.steps if first < n_values]

    def any(self, fits=lambda value: True, second=False):
        """A value that fits, the later the likelier; `None` if there is none.

        second:  it stands beside another one, and may be any.
        """
        some = [v for v in range(len(self.values)) if fits(v) and not self.is_state(v)]
        if not some:
            return None
        if second:
            return self.rng.choice(some)
        if self.chain and self.flag(0.85):
            return some[-1]
        return self.rng.choice(some[-3:] if self.flag(0.6) else some)

    def value(self, **which):
        """Some value; now and then a new one."""
        if not self.values or self.flag(0.12):
            return self.new(self.shape(), **which)
        return self.any()

    def float(self, fits=lambda value: True, kind="any", shape=None):
        """A float value that fits."""
        existing = self.any(lambda v: self.is_float(v) and fits(v))
        if existing is not None and not self.flag(0.1):
            return existing
        kinds = ("float32", "float64")
        dtype = self.mood if self.mood in kinds else self.rng.choice(kinds)
        return self.new(shape or self.shape(), dtype, kind)

    def rank(self, ndim, most=LARGEST):
        """A float value of so many axes, perhaps another one reshaped."""
        existing = self.any(lambda v: self.is_float(v) and self.ndim(v) == ndim)
        if existing is not None and self.flag(0.7):
            return existing
        other = self.any(lambda v: self.is_float(v) and self.values[v].size > 1)
        if other is None or self.flag(0.3):
            return self.float(lambda v: self.ndim(v) == ndim, shape=self.shape(ndim))
        return self.step("reshape", [other], {"shape": self.cut(self.values[other].size, ndim)})

    def cut(self, size, ndim):
        """A shape of so many elements and axes."""
        shape = []
        for _ in range(ndim - 1):
            shape.append(
                self.rng.choice([n for n in (1, 2, 3, 5, 7) if size % n == 0] if size else [1, 2])
            )
            size //= shape[-1] if size else 1
        shape.append(size)
        self.rng.shuffle(shape)
        return tuple(shape)

    def shaped(self, shape, like=None, kind="any", dtype=None):
        """A value of a shape, of the dtype of another; or a new one."""
        dtype = dtype or (str(self.values[like].dtype) if like is not None else None)
        existing = self.any(
            lambda v: (
                self.shape_of(v) == tuple(shape) and dtype in (None, str(self.values[v].dtype))
            ),
            second=True,
        )
        if existing is not None and self.flag(0.75):
            return existing
        return self.new(shape, dtype, kind)

    def beside(self, value):
        """A value of the same dtype that stretches, or is stretched, to the same shape."""
        shape, dtype = self.shape_of(value), self.values[value].dtype
        existing = self.any(
            lambda v: self.values[v].dtype == dtype and self.stretches(shape, self.shape_of(v)),
            second=True,
        )
        if existing is not None and self.flag(0.7):
            return existing
        short = shape[self.rng.randint(0, max(len(shape) - 1, 0)) :] if self.flag(0.3) else shape
        return self.new([1 if self.flag(0.3) else n for n in short], str(dtype))

    @staticmethod
    def stretches(*shapes):
        try:
            return math.prod(np.broadcast_shapes(*shapes)) <= LARGEST
        except ValueError:
            return False

    def index(self, shape, n, dtype=None):
        """A value of whole numbers below n."""

        def fits(v):
            array = self.values[v]
            return (
                array.shape == tuple(shape)
                and array.size
                and np.isfinite(array).all()
                and (array == np.floor(array)).all()
                and 0 <= array.min()
                and array.max() < n
            )

        existing = self.any(fits)
        if existing is not None and dtype is None and self.flag():
            return existing
        dtype = dtype or self.rng.choice(("int32", "float32", "int64"))
        return self.new(
            shape,
            dtype,
            role="data",
            values=[self.rng.randrange(max(n, 1)) for _ in range(math.prod(shape))],
        )

    def part(self, n, steps=True):
        """A slice of an axis: where it begins, where it ends, and its step."""
        low, high = sorted(self.rng.randint(0, n) for _ in range(2))
        if low == high:
            low, high = 0, n
        begin = self.rng.choice([low, low - n if n else 0]) if low or self.flag() else None
        end = self.rng.choice([high, high - n or None]) if high < n or self.flag() else None
        step = self.rng.choice((None, None, 1, 2, -1, -2)) if steps else None
        return (None, None, step) if step and step < 0 else (begin, end, step)

    def castable(self, value):
        """Dtypes of whole numbers that hold all numbers of a value."""
        array = self.values[value]
        if not np.isfinite(array).all():
            return ()
        low, high = array.min(initial=0), array.max(initial=0)
        return tuple(
            name
            for name in ("int32", "int64", "int8", "uint8")
            if np.iinfo(name).min <= low and high <= np.iinfo(name).max
        )

    def positive_matrix(self):
        """A symmetric matrix far from singular, and its length: x x' + n."""
        n = self.rng.randint(1, 4)
        rng = self.rng
        some = np.array([rng.gauss(0, 1) for _ in range(n * n)]).reshape(n, n)
        some = (some @ some.T + n * np.eye(n)).round(3)
        kind = "float64" if self.mood == "float64" else "float32"
        return self.new((n, n), kind, values=some.ravel().tolist()), n

    def steps_of_window(self, rank):
        """Strides, padding, dilation of a convolution."""
        drawn = {}
        for name, low, high in (("stride", 1, 2), ("pad", 0, 2), ("dilate", 1, 2)):
            if self.flag(0.4):
                drawn[name] = tuple(self.rng.randint(low, high) for _ in range(rank))
        return drawn

    # -- steps
    def step(self, name, inputs, attrs, n_outputs=1):
        """Add a step, and the first of its values' numbers.

        Raises:  HybridError if the operator refuses, ValueError if values become large
                 or are no numbers any more.
        """
        step = Step(name, tuple(inputs), attrs, n_outputs)
        given = [ARRAYS[self.world](self.values[i]) for i in inputs]
        if self.is_loose(step) and any(map(self.is_huge, inputs)):
            raise ValueError("products would be infinite, except in one instruction")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outs = [np.asarray(out.asnumpy()) for out in apply(nd, step, given)]
        for out in outs:
            if out.size > LARGEST:
                raise ValueError("too large")
            if out.dtype.kind != "f" or self.wild:
                continue
            if (
                not np.isfinite(out).all()
                and (self.finite or not self.flag(0.1))
                and all(np.isfinite(self.values[i]).all() for i in inputs)
            ):
                raise ValueError("not finite")
            if np.abs(np.where(np.isfinite(out), out, 0)).max(initial=0) > 1e5 and not self.flag(
                0.1
            ):
                raise ValueError("too far")
        self.steps.append((step, len(self.values)))
        self.values += outs
        return len(self.values) - len(outs)

    def is_huge(self, value):
        array = np.abs(self.values[value].astype(np.float64))
        return array[np.isfinite(array)].max(initial=0) > 1e18

    def attribute(self, name, kind, value):
        """A drawn value of an attribute, by its kind; `None` where there is no rule.

        value:   the input whose axes are meant.
        """
        ndim = self.ndim(value)
        if kind is boolean:
            return self.flag()
        if kind is axes:
            return self.axes(ndim)
        if kind is number:
            return float(self.scalar())
        if kind is integer and name in ("axis", "dim", "dim1", "dim2"):
            return self.axis(ndim)
        if kind is dtype:
            return self.rng.choice(("float32", "float64"))
        inside = inspect.getclosurevars(kind).nonlocals
        if made_by(kind, choice):
            return self.rng.choice(inside["names"])
        if made_by(kind, optional) and self.flag(0.7):
            return self.attribute(name, inside["kind"], value)
        return None

    def attributes(self, op, value, *names):
        """Attributes of an operator by the kinds in its record: those named, or all.

        One that may stay away is there half the time.
        """
        drawn = {}
        for name, (kind, default) in op.attrs.items():
            if (
                (not names or name in names)
                and name not in UNINTERESTING
                and (default is REQUIRED or self.flag())
            ):
                attribute = self.attribute(name, kind, value)
                if attribute is not None:
                    drawn[name] = attribute
        return drawn


UNINTERESTING = {
    "cudnn_off",
    "cudnn_tune",
    "workspace",
    "layout",
    "dtype",
    "out_dtype",
    "min_calib_range",
    "max_calib_range",
    "stream",
    "sparse_grad",
}


def made_by(kind, maker):
    """Whether a kind of attributes was made by `optional` or `choice`."""
    return kind.__qualname__.startswith(f"{maker.__name__}.")
