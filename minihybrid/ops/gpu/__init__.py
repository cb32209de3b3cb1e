"""GPU kernels, written for threads and blocks."""
