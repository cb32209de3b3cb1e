"""Code generation: an optimized graph becomes source, and source a
function.

Takes:   a graph and its memory plan.
Gives:   `TARGETS`: name -> `Target`, with `generate` and `load`; those with compilers
         are entered by `minihybrid/run`.
"""

from minihybrid.core import lazy
from minihybrid.core.targets import TARGETS

__getattr__ = lazy.face(globals(), {})

__all__ = ["TARGETS"]
