"""The target "gpu": kernels in CUDA Python, for threads."""

from minihybrid import faces

__getattr__ = faces.face(globals(), {})
