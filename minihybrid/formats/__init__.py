"""Other files than the two of the core.

Takes:   what the core reads and writes itself.
Gives:   old graphs, sparse arrays, outlines of nets, programs in Python and in C.
"""

from minihybrid.core import lazy
from minihybrid.core.hooks import own_names

__getattr__ = lazy.face(globals(), {})

__all__ = ["foreign", "formats", "legacy", "outline", "sparse"]


def __dir__():
    return own_names(globals())
