"""Chapter 06. Helpers of training loops.

Takes:   batches and gradients.
Gives:   `split_data`, `split_and_load`, `clip_global_norm`; and `HookHandle`, which
         a block gives for a hook.

What is left out: downloads.
"""

import warnings

import numpy as np

from minihybrid.core import nd
from minihybrid.core.array import arrays
from minihybrid.core.block import HookHandle as HookHandle
from minihybrid.core.nd import NDArray
from minihybrid.core.op import AttrError, ShapeError, checked, count, described, integer
from minihybrid.core.parameter import in_world
from minihybrid.ops.shapes import axis_of


def split_data(data, num_slice, batch_axis=0, even_split=True):
    """Cut a batch into parts along an axis, one a device.

    even_split:  all parts must have one size; else the first ones are longer by one.
    Raises:      ShapeError if the parts cannot be equal and must be.

    >>> [part.shape for part in split_data(nd.zeros((5, 2)), 2, even_split=False)]
    [(3, 2), (2, 2)]
    """
    num_slice = checked("split_data", "num_slice", num_slice, count)
    arrays("split_data", data)
    axis_of("split_data", checked("split_data", "batch_axis", batch_axis, integer),
            data.ndim)
    size = data.shape[batch_axis]
    if even_split and size % num_slice:
        raise ShapeError(f"split_data: {size} samples of shape {data.shape} do not "
                         f"make {num_slice} equal parts; use a batch size that "
                         f"{num_slice} divides, or even_split=False")
    parts = np.array_split(np.arange(size), num_slice)
    ends = np.cumsum([len(part) for part in parts])
    return [data.slice_axis(axis=batch_axis, begin=int(end) - len(part), end=int(end))
            for part, end in zip(parts, ends, strict=True)]


def split_and_load(data, ctx_list, batch_axis=0, even_split=True):
    """Cut a batch into one part a device, and put each part there.

    >>> from minihybrid import cpu
    >>> split_and_load([[1, 2], [3, 4]], [cpu()])[0].shape
    (2, 2)
    """
    data = data if isinstance(data, NDArray) else in_world(nd.array(data))
    if not isinstance(ctx_list, (list, tuple)) or not ctx_list:
        raise AttrError(f"split_and_load: ctx_list={described(ctx_list)}, but a list "
                        "of devices is needed, such as [mx.cpu()]")
    if len(ctx_list) == 1:
        return [data.as_in_context(ctx_list[0])]
    parts = split_data(data, len(ctx_list), batch_axis, even_split)
    return [p.as_in_context(ctx) for p, ctx in zip(parts, ctx_list, strict=True)]


def clip_global_norm(arrays, max_norm, check_isfinite=True):
    """Scale arrays in place, so that all together are no longer than `max_norm`.

    Units:   returns the length before: the root of the sum of all squares; a float, or
             with check_isfinite=False an array of shape (1,).

    >>> gradients = [nd.array([3.0]), nd.array([4.0])]
    >>> float(clip_global_norm(gradients, 1.0)), gradients[0].item()
    (5.0, 0.6...)
    """
    if not arrays:
        raise AttrError("clip_global_norm: the list of arrays is empty")
    flat = [a.detach().reshape((-1,)) for a in arrays]
    norm = nd.sqrt(nd.add_n(*(nd.dot(a, a) for a in flat)))
    if check_isfinite and not np.isfinite(norm.asscalar()):
        warnings.warn("clip_global_norm: the norm is nan or inf; the result is "
                      "undefined", UserWarning, stacklevel=2)
    scale = nd.minimum(max_norm / (norm + 1e-8), 1.0)
    for array in arrays:
        array *= scale
    return norm.asscalar() if check_isfinite else norm
