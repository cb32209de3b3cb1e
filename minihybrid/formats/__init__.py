"""File formats beyond the core's graphs and arrays.

Defines: old graph files, sparse arrays, outlines of nets, ONNX, programs in Python, C and
         WebAssembly.
"""

from minihybrid.core import lazy
from minihybrid.core.hooks import own_names

__getattr__ = lazy.face(globals(), {})

__all__ = ["foreign", "legacy", "outline", "sparse"]

__dir__ = own_names(globals())
