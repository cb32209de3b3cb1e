"""Who answers a call: NumPy first, compiled kernels, a device.

Takes:   the plan of a graph, for a target that is not NumPy; the drivers of GPUs, real or
         simulated.
Gives:   the targets "cpu" and "gpu", single operators on a device, and `DeviceArray`, which
         an NDArray holds where it would hold a NumPy array; what is compiled in, as MXNet's
         `runtime` tells it (`feature_list`, `Features`).
"""

from minihybrid.core import lazy
from minihybrid.core.hooks import own_names

LATER = {name: f"runtime.features:{name}" for name in ("Feature", "Features", "feature_list")}
__getattr__ = lazy.face(globals(), LATER)

__all__ = ["Feature", "Features", "feature_list"]

__dir__ = own_names(globals())
