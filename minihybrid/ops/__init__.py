"""Chapter 12. Every operator, once.

Takes:   the record type of `minihybrid.core.op`.
Gives:   `OPS`, filled: importing the files below enters their records.
"""

from minihybrid.core.op import OPS
from minihybrid.ops import (
    anchors,
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
from minihybrid.ops import infix  # last: it makes methods of the records above

__all__ = [
    "OPS",
    "anchors",
    "boxes",
    "convolution",
    "ctc",
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
    "random",
    "recurrent",
    "reduce",
    "regions",
    "resizing",
    "sequence",
    "shapes",
    "tiling",
]
