"""Chapter 08. Every operator, once.

Takes:   the record type of `minihybrid.core.op`.
Gives:   `OPS`, filled: importing the files below enters their records.
"""

from minihybrid.core.op import OPS
from minihybrid.ops import (
    convolution,
    elementwise,
    functions,
    indexing,
    layout,
    linalg,
    neural,
    norm,
    np,
    ordering,
    outputs,
    pooling,
    random,
    reduce,
    sequence,
    shapes,
    tiling,
)

# isort: split
from minihybrid.ops import infix  # last: it makes methods of the records above

__all__ = [
    "OPS",
    "convolution",
    "elementwise",
    "functions",
    "indexing",
    "infix",
    "layout",
    "linalg",
    "neural",
    "norm",
    "np",
    "ordering",
    "outputs",
    "pooling",
    "random",
    "reduce",
    "sequence",
    "shapes",
    "tiling",
]
