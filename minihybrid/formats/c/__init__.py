"""One file of C99, written from the loops of the target "cpu"."""

from minihybrid.core import lazy

__getattr__ = lazy.face(globals(), {})
