"""In-place writes as an operator, for writes inside `autograd.record()`.

Defines: `SET_ITEM`: (array before the write, value, index) -> array after it; its gradient
         flows to the elements that weren't overwritten and to the value.

Not supported: an index that names an element twice, whose gradient would be ambiguous.
"""

import math

import numpy as np

from minihybrid.core.op import REQUIRED, HybridError, Op
from minihybrid.ops.registry import OPS


def is_whole(key) -> bool:
    """Return whether an index covers every element, in order."""
    keys = key if isinstance(key, tuple) else (key,)
    return all(k is Ellipsis or type(k) is slice and k == slice(None) for k in keys)


def refuse_duplicates(key, shape: tuple[int, ...]) -> None:
    """Raise HybridError if an index names an element twice."""
    places = np.arange(math.prod(shape)).reshape(shape)[key]
    if np.unique(places).size < np.size(places):
        raise HybridError(
            "x[...] = y inside autograd.record(): the index names an element twice, so it is "
            "unclear whose gradient counts; name each element once"
        )


def _set_item(data, value, key):
    out = data.copy()
    out[key] = value
    return out


def _gradients(g, out, data, value, key):
    """Return the gradients of the old array and of the value, summed where it was broadcast."""
    stays = None
    if not is_whole(key):
        stays = g.copy()
        stays[key] = 0
    part = g[key]
    inner = (1,) * (part.ndim - value.ndim) + value.shape[max(value.ndim - part.ndim, 0) :]
    axes = tuple(i for i, (n, m) in enumerate(zip(part.shape, inner, strict=True)) if n != m)
    part = OPS["sum"](part, axis=axes, keepdims=True) if axes else part
    return stays, OPS["_np_reshape"](part, newshape=value.shape)


SET_ITEM = Op(
    name="x[...] = y",
    inputs=("data", "value"),
    attrs={"key": (lambda key: key, REQUIRED)},
    anywhere=True,
    any_dtype=True,
    doc="An array with new values at an index.",
    infer=lambda ins, key: (ins, ins[:1]),
    eager=_set_item,
    grad=_gradients,
)
