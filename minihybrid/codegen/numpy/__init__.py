"""Programs that need only NumPy: operators' code, copied out.

Takes:   a plan for NumPy.
Gives:   its whole text.
"""

from minihybrid.codegen.numpy import whole
from minihybrid.core import lazy

__getattr__ = lazy.face(globals(), {})

__all__ = ["whole"]
