"""minihybrid: MXNet's program, and another import."""
from importlib.metadata import version

import minihybrid

from .gluon import build, eager, hybridized, to_numpy  # noqa: F401

VERSION = version("minihybrid")
BUILD = build(minihybrid)
MODES = {
    "eager": eager,
    "hybridized": hybridized(static_alloc=True, static_shape=True),
}
