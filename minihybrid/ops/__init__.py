"""Chapter 08. Every operator, once.

Takes:   the record type of `minihybrid.op`.
Gives:   `OPS`, filled: importing the files below enters their records.
"""

from minihybrid.op import OPS
from minihybrid.ops import (
    convolution,
    elementwise,
    flatshift,
    functions,
    indexing,
    layout,
    linalg,
    neural,
    norm,
    np,
    np_shapes,
    ordering,
    outputs,
    pooling,
    products,
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
    "flatshift",
    "functions",
    "indexing",
    "infix",
    "layout",
    "linalg",
    "neural",
    "norm",
    "np",
    "np_shapes",
    "ordering",
    "outputs",
    "pooling",
    "products",
    "random",
    "reduce",
    "sequence",
    "shapes",
    "tiling",
]
