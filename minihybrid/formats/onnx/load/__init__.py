"""Import of ONNX graphs."""

from minihybrid.core import lazy

__getattr__ = lazy.face(globals(), {})
