"""Every operator, once.

Takes:   the record type of `minihybrid.core.op`.
Gives:   `OPS`, filled: importing the files below enters their records; `register`, for more.
"""

from minihybrid.ops import (
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
from minihybrid.ops import distributions, eager_cache, infix  # last: methods of the records above
from minihybrid.ops.registry import OPS, register

__all__ = [
    "OPS",
    "register",
    "anchors",
    "attention",
    "boxes",
    "convolution",
    "ctc",
    "distributions",
    "eager_cache",
    "elementwise",
    "filled",
    "functions",
    "indexing",
    "infix",
    "joining",
    "layout",
    "linalg",
    "neural",
    "norm",
    "np",
    "ordering",
    "outputs",
    "pooling",
    "quantize",
    "random",
    "recurrent",
    "reduce",
    "regions",
    "resizing",
    "sequence",
    "shapes",
    "tiling",
]
