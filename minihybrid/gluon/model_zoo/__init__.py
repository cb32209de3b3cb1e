"""Chapter 14. Well-known nets: `model_zoo.vision`."""

from minihybrid.gluon.model_zoo import vision
from minihybrid.gluon.model_zoo.vision import get_model
from minihybrid.ops.shown import own_names

__all__ = ["get_model", "vision"]


def __dir__():
    return own_names(globals())
