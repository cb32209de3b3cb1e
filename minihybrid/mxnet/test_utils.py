"""MXNet's `mx.test_utils`: comparisons and random arrays.

Defines: `same`, `almost_equal`, `assert_almost_equal`, `rand_ndarray`, `get_mnist`,
         `default_context`, `list_gpus`.

Tolerances are MXNet 1.9.1's, by dtype. Random numbers come from NumPy, as there.
Not supported: helpers of MXNet's own tests, such as `check_numeric_gradient`.
"""

import numpy as np

from minihybrid.core import nd
from minihybrid.core.context import current_context, num_gpus
from minihybrid.core.hooks import own_names
from minihybrid.core.nd import NDArray
from minihybrid.core.op import AttrError
from minihybrid.gluon.data.vision.datasets import MNIST

RTOL = {"float16": 1e-2, "float32": 1e-4, "float64": 1e-5}  # 0 for other dtypes
ATOL = {"float16": 1e-1, "float32": 1e-3, "float64": 1e-20}


def default_context():
    """Return the default device."""
    return current_context()


def list_gpus():
    """Return the indices of the available GPUs.

    >>> list_gpus() == list(range(num_gpus()))
    True
    """
    return list(range(num_gpus()))


# -- random arrays ---------------------------------------------------------------------
def rand_ndarray(shape, stype="default", density=None, dtype=None, ctx=None):
    """Return an NDArray of normally distributed values; storage is dense."""
    if stype != "default":
        raise AttrError(f"rand_ndarray: stype={stype!r}, but storage is 'default' here")
    return nd.array(np.random.randn(*shape), ctx, dtype)


# -- comparisons -----------------------------------------------------------------------
def _numpy(array):
    return array.asnumpy() if isinstance(array, NDArray) else np.asarray(array)


def same(a, b):
    """Return whether all elements are equal.

    >>> same(nd.ones((2,)), [1, 1])
    True
    """
    return np.array_equal(_numpy(a), _numpy(b))


def almost_equal(a, b, rtol=None, atol=None, equal_nan=False, use_broadcast=True):
    """Return whether |a - b| <= atol + rtol |b| everywhere."""
    a, b = _numpy(a), _numpy(b)
    if not use_broadcast and a.shape != b.shape:
        raise AssertionError(f"shapes {a.shape} and {b.shape} are not equal")
    rtol, atol = (_tolerance(np.empty(0), *pair) for pair in ((rtol, RTOL), (atol, ATOL)))
    return np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


def assert_almost_equal(
    a, b, rtol=None, atol=None, names=("a", "b"), equal_nan=False, use_broadcast=True
):
    """Check that |a - b| <= atol + rtol |b| everywhere.

    rtol, atol:  numbers, or dicts by dtype; by default those of the less precise dtype.
    Raises:      AssertionError with the worst index and both values there.
    """
    a, b = _numpy(a), _numpy(b)
    rtol = max(_tolerance(x, rtol, RTOL) for x in (a, b))
    atol = max(_tolerance(x, atol, ATOL) for x in (a, b))
    if almost_equal(a, b, rtol, atol, equal_nan, use_broadcast):
        return
    a, b = np.broadcast_arrays(a, b)
    with np.errstate(all="ignore"):
        off = np.where(a == b, 0, np.abs(a.astype(float) - b)) / (atol + rtol * np.abs(b) + 1e-20)
        if equal_nan:
            off[np.isnan(a) & np.isnan(b)] = 0
    place = np.unravel_index(np.argmax(off), off.shape)
    raise AssertionError(
        f"Error {off[place]:.6g} exceeds tolerance rtol={rtol:e}, atol={atol:e} "
        f"(mismatch {100 * np.mean(~(off <= 1)):f}%); location of maximum error: "
        f"{tuple(map(int, place))}, {names[0]}={a[place]:.8f}, {names[1]}={b[place]:.8f}"
    )


def _tolerance(array, given, usual):
    if isinstance(given, dict):
        given = {np.dtype(dtype).name: tolerance for dtype, tolerance in given.items()}
        usual, given = usual | given, None
    return usual.get(array.dtype.name, 0) if given is None else given


def get_mnist(path="."):
    """Read MNIST from files in a folder; nothing is downloaded.

    Returns: train_data, train_label, test_data and test_label by name: NumPy arrays of shape
             (N, 1, 28, 28) with values from 0 to 1, and (N,).
    """
    arrays = {}
    for name, train in (("train", True), ("test", False)):
        digits = MNIST(path, train)
        arrays[f"{name}_data"] = digits._data.asnumpy().transpose(0, 3, 1, 2) / np.float32(255)
        arrays[f"{name}_label"] = _numpy(digits._label).astype(np.int8)
    return arrays


def __dir__():
    return own_names(globals())
