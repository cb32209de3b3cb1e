"""Chapter 10. Well-known nets: `model_zoo.vision`."""

from minihybrid.gluon.model_zoo import vision
from minihybrid.gluon.model_zoo.vision import get_model

__all__ = ["get_model", "vision"]
