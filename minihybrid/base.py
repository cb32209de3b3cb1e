"""Chapter 07. The names of errors and types that MXNet programs ask `mx.base` for.

Takes:   nothing.
Gives:   `MXNetError`, the parent of all errors here; `mx_real_t`, the usual type;
         `__version__`, for files that say who wrote them.
"""

import numpy as np

from minihybrid.core.op import HybridError

MXNetError = HybridError
mx_real_t = np.float32
__version__ = "0.1.0"
