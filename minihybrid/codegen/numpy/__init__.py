"""Export plans as programs that need only NumPy, with the operators' code included."""

from minihybrid.codegen.numpy import whole
from minihybrid.core import lazy

__getattr__ = lazy.face(globals(), {})

__all__ = ["whole"]
