"""Chapter 14. What Gluon keeps beside its usual layers: `contrib.nn`."""

from minihybrid.gluon.contrib import nn
from minihybrid.ops.shown import own_names

__all__ = ["nn"]


def __dir__():
    return own_names(globals())
