"""Programs that need only NumPy: operators' code, copied out.

Takes:   a plan for NumPy.
Gives:   its whole text.
"""

from minihybrid import faces
from minihybrid.codegen.numpy import whole

__getattr__ = faces.face(globals(), {})

__all__ = ["whole"]
