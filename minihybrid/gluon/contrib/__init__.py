"""Chapter 10. What Gluon keeps beside its usual layers: `contrib.nn`."""

from minihybrid.gluon.contrib import nn

__all__ = ["nn"]
