"""Chapter 23. A net for browsers: one module of JavaScript that runs the two files."""

from minihybrid import faces

__getattr__ = faces.face(globals(), {})
