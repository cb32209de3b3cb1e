"""From ONNX to our graphs."""

from minihybrid.core import lazy

__getattr__ = lazy.face(globals(), {})
