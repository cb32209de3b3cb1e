"""The part of MXNet's `mx.test_utils` that its tutorials use.

Defines: `get_mnist`, `list_gpus`.

Not supported: comparisons (use `numpy.testing`) and helpers of MXNet's own tests.
"""

import numpy as np

from minihybrid.core.context import num_gpus
from minihybrid.core.hooks import own_names
from minihybrid.gluon.data.vision.datasets import MNIST


def list_gpus():
    """Return the indices of the available GPUs.

    >>> list_gpus() == list(range(num_gpus()))
    True
    """
    return list(range(num_gpus()))


def get_mnist(path="."):
    """Read MNIST from files in a folder; nothing is downloaded.

    Returns: train_data, train_label, test_data and test_label by name: NumPy arrays of shape
             (N, 1, 28, 28) with values from 0 to 1, and (N,).
    """
    arrays = {}
    for name, train in (("train", True), ("test", False)):
        digits = MNIST(path, train)
        arrays[f"{name}_data"] = digits._data.asnumpy().transpose(0, 3, 1, 2) / np.float32(255)
        arrays[f"{name}_label"] = np.asarray(digits._label).astype(np.int8)
    return arrays


__dir__ = own_names(globals())
