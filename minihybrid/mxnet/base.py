"""Error and type names of `mx.base`.

Defines: `MXNetError`, the base class of all errors here; `mx_real_t`, the default dtype;
         `numeric_types` and similar tuples, for `isinstance`; `py_str`; `cpu_pinned` and
         `cpu_shared`; `__version__`, for files that record their writer.
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
    """Decode bytes from a C library.

    >>> py_str(b"conv0")
    'conv0'
    """
    return text.decode("utf-8")


def cpu_pinned(device_id=0):
    """Return the CPU; pinned memory isn't special here.

    >>> cpu_pinned(1)
    cpu(0)
    """
    return Context("cpu_pinned", device_id)


def cpu_shared(device_id=0):
    """Return the CPU; shared memory isn't special here.

    >>> cpu_shared()
    cpu(0)
    """
    return Context("cpu_shared", device_id)


__dir__ = own_names(
    globals(), "MXNetError", "mx_real_t", "numeric_types", "integer_types", "string_types"
)
