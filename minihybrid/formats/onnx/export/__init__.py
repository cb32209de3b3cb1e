"""Export of graphs to ONNX."""

from minihybrid.core import lazy

__getattr__ = lazy.face(globals(), {})
