"""Every operator, once.

Takes:   the record type of `minihybrid.core.op`.
Gives:   `OPS`, filled: importing the files below enters their records; `register`, for more.
"""

from minihybrid.ops import (  # noqa: F401  (they register their operators)
    anchors,
    attention,
    boxes,
    convolution,
    ctc,
    elementwise,
    filled,
    functions,
    indexing,
    joining,
    layout,
    linalg,
    neural,
    norm,
    np,
    ordering,
    outputs,
    pooling,
    quantize,
    random,
    recurrent,
    reduce,
    regions,
    resizing,
    sequence,
    shapes,
    tiling,
)

# isort: split
from minihybrid.ops import distributions, eager_cache, infix  # noqa: F401  (methods of the above)
from minihybrid.ops.registry import OPS, register

__all__ = ["OPS", "register"]
