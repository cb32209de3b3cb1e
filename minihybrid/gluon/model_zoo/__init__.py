"""Well-known networks: `model_zoo.vision`."""

from minihybrid.core.hooks import own_names
from minihybrid.gluon.model_zoo import vision
from minihybrid.gluon.model_zoo.vision import get_model

__all__ = ["get_model", "vision"]

__dir__ = own_names(globals())
