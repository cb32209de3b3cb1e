"""Target "gpu": kernels in CUDA Python."""

from minihybrid.core import lazy

__getattr__ = lazy.face(globals(), {})
