"""Chapter 19. The target "cpu": loops that Numba and LLVM make machine code of."""

from minihybrid.core import lazy

__getattr__ = lazy.face(globals(), {})
