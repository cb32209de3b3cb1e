"""Chapter 23. From our graphs to ONNX."""

from minihybrid import faces

__getattr__ = faces.face(globals(), {})
