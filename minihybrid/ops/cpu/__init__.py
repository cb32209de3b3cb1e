"""CPU kernels, tiled for registers and caches."""
