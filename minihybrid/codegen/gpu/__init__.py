"""Chapter 18. The target "gpu": kernels in CUDA Python, for threads."""
