"""MXNet 1.x APIs besides Gluon: Module, io, image, kvstore ...

Defines: modules that the package exposes under MXNet's names, such as `mx.io`. The engine
         imports none of them.
"""

from minihybrid.core import lazy
from minihybrid.core.hooks import own_names

__getattr__ = lazy.face(globals(), {})

__all__ = ["callback", "io", "kvstore", "module", "recordio"]

__dir__ = own_names(globals())
