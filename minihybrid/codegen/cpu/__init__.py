"""Chapter 19. The target "cpu": loops that Numba and LLVM make machine code of."""
