"""What programs written for MXNet 1.x use beside Gluon: Module, io, image, kvstore ...

Takes:   the engine, which imports nothing of this.
Gives:   modules that the package shows under MXNet's names, such as `mx.io`.
"""

from minihybrid.core import lazy
from minihybrid.core.hooks import own_names

__getattr__ = lazy.face(globals(), {})

__all__ = ["callback", "image", "io", "kvstore", "module", "recordio"]


def __dir__():
    return own_names(globals())
