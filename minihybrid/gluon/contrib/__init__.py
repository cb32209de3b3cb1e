"""Gluon's additional layers: `contrib.nn`."""

from minihybrid.core.hooks import own_names
from minihybrid.gluon.contrib import nn

__all__ = ["nn"]


def __dir__():
    return own_names(globals())
