"""The names of errors and types that MXNet programs ask `mx.base` for.

Takes:   nothing.
Gives:   `MXNetError`, the parent of all errors here; `mx_real_t`, the usual type;
         `numeric_types` and its like, for `isinstance`; `py_str`; `cpu_pinned` and
         `cpu_shared`; `__version__`, for files that say who wrote them.
"""

import numpy as np

from minihybrid.core.context import Context
from minihybrid.core.hooks import own_names
from minihybrid.core.op import HybridError

MXNetError = HybridError
mx_real_t = np.float32
numeric_types = (float, int, np.generic)
integer_types = (int, np.int32, np.int64)
string_types = (str,)
__version__ = "0.1.0"


def py_str(text):
    """The text that bytes of a C library stand for.

    >>> py_str(b"conv0")
    'conv0'
    """
    return text.decode("utf-8")


def cpu_pinned(device_id=0):
    """The processor: memory that a GPU could copy faster is here like all other.

    >>> cpu_pinned(1)
    cpu(0)
    """
    return Context("cpu_pinned", device_id)


def cpu_shared(device_id=0):
    """The processor: memory that several processes could share is here like all other.

    >>> cpu_shared()
    cpu(0)
    """
    return Context("cpu_shared", device_id)


def __dir__():
    types = ("mx_real_t", "numeric_types", "integer_types", "string_types")
    return own_names(globals(), "MXNetError", *types)
