"""Well-known networks: `model_zoo.vision`."""

from minihybrid.core.hooks import own_names
from minihybrid.gluon.model_zoo import vision as vision
from minihybrid.gluon.model_zoo.vision import get_model as get_model

__dir__ = own_names(globals(), "vision")
