"""Chapter 19. Target "cpu": loops compiled by Numba and LLVM."""

from minihybrid.core import lazy

__getattr__ = lazy.face(globals(), {})
