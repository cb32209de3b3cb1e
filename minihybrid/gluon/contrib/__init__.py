"""Gluon's additional layers: `contrib.nn`."""

from minihybrid.core.hooks import own_names
from minihybrid.gluon.contrib import nn as nn

__dir__ = own_names(globals(), "nn")
