"""Chapter 19. The target "cpu": loops that Numba and LLVM make machine code of."""

from minihybrid import faces

__getattr__ = faces.face(globals(), {})
