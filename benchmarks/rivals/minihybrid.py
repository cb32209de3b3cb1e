"""minihybrid: MXNet's program, and another import."""

from importlib.metadata import version

import minihybrid

from .gluon import build, eager, hybridized, to_numpy, trained

__all__ = ["BUILD", "MODES", "TRAIN", "VERSION", "to_numpy"]
VERSION = version("minihybrid")
BUILD = build(minihybrid)
MODES = {"eager": eager, "hybridized": hybridized}
TRAIN = {
    "eager": trained(minihybrid),
    "hybridized": trained(minihybrid, static_alloc=True, static_shape=True),
}
