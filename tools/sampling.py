"""What samples are written with: inputs, and the operator with inputs that fit.

"dot": [of((2, 3), (3, 4)), of((3,), (3,))],
"log": [of(pos(2, 3))],
"""

from typing import NamedTuple

import numpy as np

from minihybrid.core.op import Op


class In(NamedTuple):
    """One input: its shape, and which numbers are allowed."""

    shape: tuple
    # positive, inside (-1, 1), above 1, chance (0 to 1), matrix (symmetric, far from
    # singular), bits (0 and 1), index (0, 1, 2), like (only a shape), whole
    # (int32 of at least 0, in place of any other dtype), int8, int4 (in an int8), scale
    # (float32), box (corners)
    kind: str = "any"

    def array(self, dtype, rng):
        """Numbers of this kind, away from the kinks at 0 and 1, and never equal."""
        if self.kind in ("bits", "index"):
            stop = 2 if self.kind == "bits" else 3
            return np.asarray(rng.integers(0, stop, self.shape), "f4")
        if self.kind == "whole":
            return np.asarray(rng.integers(0, 100, self.shape), "i4")
        if self.kind in ("int8", "int4"):
            half = 128 if self.kind == "int8" else 8
            return rng.integers(-half, half, self.shape).astype("i1")
        if self.kind == "scale":
            return rng.random(self.shape, "f4") + np.float32(0.5)
        size = int(np.prod(self.shape))
        if dtype.kind != "f":
            values = rng.integers(1, 4, self.shape)
        else:
            values = 0.55 + 0.7 * rng.permutation(size) / max(size, 1)
            values = values.reshape(self.shape) + 0.01 * rng.random(self.shape)
        if self.kind == "chance":
            values = np.ones(self.shape) if dtype.kind != "f" else values - 0.5
        elif self.kind == "matrix":
            values = (values + values.swapaxes(-1, -2)) / 2 + 6 * np.eye(self.shape[-1])
        elif self.kind == "box":
            values = values + np.array([0, 0, 3, 3] if self.shape[-1] == 4 else [0, 0, 0, 3, 3])
        elif self.kind not in ("positive", "above"):
            values = values * rng.choice([-1, 1], self.shape)
        values = {"inside": values * 0.7, "above": values + 1}.get(self.kind, values)
        return np.asarray(values, dtype)


class Case(NamedTuple):
    """One operator with inputs and attributes that fit."""

    op: Op
    inputs: tuple
    attrs: dict
    smooth: bool = True  # whether central differences can tell its gradient

    def __str__(self):
        shapes = "-".join("x".join(map(str, i.shape)) for i in self.inputs)
        attrs = "-".join(f"{k}={v}".replace(" ", "") for k, v in self.attrs.items())
        return "-".join(filter(None, (self.op.name, shapes, attrs)))

    def arrays(self, dtype, rng):
        """One array an input."""
        return [i.array(np.dtype(dtype), rng) for i in self.inputs]


def of(*inputs, smooth=True, **attrs):
    """A sample: inputs as `In` or as plain shapes, then attributes."""
    ins = tuple(i if isinstance(i, In) else In(i) for i in inputs)
    return ins, attrs, smooth


def pos(*shape):
    return In(shape, "positive")


def chance(*shape):
    return In(shape, "chance")


def matrix(*shape):
    return In(shape, "matrix")


def inside(*shape):
    return In(shape, "inside")


def above(*shape):
    return In(shape, "above")


def bits(*shape):
    return In(shape, "bits")


def index(*shape):
    return In(shape, "index")


def whole(*shape):
    return In(shape, "whole")


def box(*shape):
    return In(shape, "box")


def like(*shape):
    return In(shape, "like")


def reductions(**more):
    return [
        of((2, 3, 4), **more),
        of((2, 3, 4), axis=(1,), **more),
        of((2, 3, 4), axis=(0, -1), keepdims=True, **more),
        of((2, 3, 4), axis=2, exclude=True, **more),
        of((1,), **more),
        of((3, 4), axis=0, **more),
        of((2, 0, 3), axis=0, **more),
    ]


def products(*leading):
    """Both orders of both matrices, with lengths above and below a kernel's blocks."""
    return [
        of(
            (*leading, *((k, m) if a else (m, k))),
            (*leading, *((n, k) if b else (k, n))),
            transpose_a=a,
            transpose_b=b,
        )
        for m, k, n in ((2, 3, 4), (5, 9, 6))[bool(leading) :]
        for a in (False, True)
        for b in (False, True)
    ]
