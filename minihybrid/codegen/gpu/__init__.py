"""Chapter 26. The target "gpu": kernels in CUDA Python, for threads."""
