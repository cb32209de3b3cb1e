"""Chapter 23. From ONNX to our graphs."""

from minihybrid import faces

__getattr__ = faces.face(globals(), {})
