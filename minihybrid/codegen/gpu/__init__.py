"""The target "gpu": kernels in CUDA Python, for threads."""

from minihybrid.core import lazy

__getattr__ = lazy.face(globals(), {})
