"""One file of C99, written from the loops of the target "cpu"."""

from minihybrid import faces

__getattr__ = faces.face(globals(), {})
