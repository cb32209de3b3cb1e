"""Chapter 12. The target "cpu": loops that Numba and LLVM make machine code of."""
