"""Functions of MXNet's `nd` that aren't operators.

Defines: `nd.concatenate`, `nd.histogram`, ..., registered in `hooks.FACES`.

Not supported: sparse storage.
"""

import warnings

import numpy as np

from minihybrid.core import nd
from minihybrid.core.array import NDArray, dense
from minihybrid.core.array import arrays as given_arrays
from minihybrid.core.checked_call import signed
from minihybrid.core.convert import OneElement
from minihybrid.core.hooks import FACES
from minihybrid.core.op import AttrError, ShapeError, boolean, checked, unfit
from minihybrid.ops import OPS


class CSRNDArray(NDArray):
    """MXNet's CSR array, which has no instances here.

    It exists for checks such as `isinstance(x, nd.sparse.CSRNDArray)`, which are false.
    """

    def __init__(self, *_, **__):
        dense("csr")


class Sparse:
    """The namespace `nd.sparse`; there are no sparse arrays here."""

    CSRNDArray = csr_matrix = CSRNDArray

    def __getattr__(self, name):
        raise AttributeError(f"nd.sparse has no '{name}'; every array is dense, so use nd's own")


sparse = Sparse()


@signed
def from_numpy(ndarray, zero_copy=True):
    """Return an array that shares NumPy's memory, or copies it with zero_copy=False."""
    if type(ndarray) is OneElement:
        ndarray = ndarray.view(np.ndarray)
    if type(ndarray) is not np.ndarray or ndarray.dtype.kind not in "biuf":
        raise unfit("nd.from_numpy", "", ndarray, "a NumPy array of numbers is needed")
    if zero_copy and not ndarray.flags.c_contiguous:
        raise AttrError("nd.from_numpy: the memory has gaps; pass zero_copy=False")
    return NDArray(ndarray if zero_copy else ndarray.copy())


@signed
def concatenate(arrays, axis=0, always_copy=True):
    """Concatenate along an axis; a single array is copied unless always_copy=False."""
    parts = given_arrays("nd.concatenate", arrays)
    if not checked("nd.concatenate", "always_copy", always_copy, boolean) and len(parts) == 1:
        return parts[0]
    return OPS["Concat"](*parts, dim=axis)


@signed
def histogram(a, bins=10, range=None):
    """Return the counts of elements per bin, and the bin edges.

    bins:    a number of equal bins within `range` (by default, that of the data), or
             an NDArray of edges.
    Returns: (counts, int64; edges); the last bin includes its right edge.

    >>> from minihybrid import nd
    >>> histogram(nd.array([0, 1, 2, 2, 3]), bins=3, range=(0, 3))[0].asnumpy()
    array([1, 1, 3])
    """
    given_arrays("nd.histogram", [a])
    if isinstance(bins, NDArray):
        return OPS["_histogram"](a, bins)
    if range is None:
        low, high = a.min().item(), a.max().item()
        range = (low, high) if low < high else (low - 0.5, high + 0.5)
    return OPS["_histogram"](a, bin_cnt=bins, range=range)


@signed
def onehot_encode(indices, out):
    """Write the one-hot vectors of indices into the rows of `out`."""
    given_arrays("nd.onehot_encode", [indices, out])
    if out.ndim != 2:
        raise ShapeError(f"nd.onehot_encode: out has shape {out.shape}, but rows (N, K) are needed")
    return out.copy_from(OPS["one_hot"](indices, depth=out.shape[1], dtype=out.dtype))


@signed
def reset_arrays(*arrays, num_arrays=None):
    """Fill arrays with zeros."""
    for each in given_arrays("nd.reset_arrays", arrays):
        each[...] = 0


def warn_of_mask(key):
    """Warn that `x[x > 0]` selects rows: a legacy comparison returns 0 and 1.

    key:     an index of floats in the array's shape.
    """
    numbers = np.asarray(key.data)
    if numbers.size > 2 * (numbers.ndim == 1) and ((numbers == 0) | (numbers == 1)).all():
        warnings.warn(
            "x[...]: an index in the shape of x with only 0 and 1 names places 0 "
            "and 1; to choose by a condition, write nd.where(x > 0, x, other), or "
            "x[(x > 0).astype('bool')] for the numbers alone",
            UserWarning,
            stacklevel=4,
        )


FACES["nd"].update(
    ndarray=nd,
    CSRNDArray=CSRNDArray,
    sparse=sparse,
    from_numpy=from_numpy,
    concatenate=concatenate,
    histogram=histogram,
    onehot_encode=onehot_encode,
    reset_arrays=reset_arrays,
)
