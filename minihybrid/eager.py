"""Chapter 20. One operator on a device: a plan of a graph with one node.

Takes:   a device, an operator, DeviceArrays, attributes, and the key of a random one.
Gives:   the operator's outputs, in new memory of the device.

So eager and hybridized calls run the same kernels. Plans are remembered by what they
were made for: operator, shapes, dtypes, attributes, device.
"""

import numpy as np

from minihybrid.array import NDArray
from minihybrid.devicearray import placed


def run_on_device(device, op, datas, attrs, key):
    """What `op.eager` gives on the processor: a DeviceArray, or a tuple of them."""
    with np.errstate(all="ignore"):
        out = op.eager(*map(np.asarray, datas), **attrs, **key)
    outs = tuple(placed(np.asarray(o), device.context)
                 for o in (out if isinstance(out, tuple) else (out,)))
    return outs if isinstance(out, tuple) else outs[0]


NDArray.run_on_device = staticmethod(run_on_device)  # arrays come before plans
