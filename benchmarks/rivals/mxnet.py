"""MXNet 1.9.1, the last release."""
import mxnet

from .gluon import build, eager, hybridized, to_numpy, trained

__all__ = ["BUILD", "MODES", "TRAIN", "VERSION", "to_numpy"]
VERSION = mxnet.__version__
BUILD = build(mxnet)
MODES = {
    "eager": eager,
    "hybridized": hybridized(),
    "hybridized, static_alloc": hybridized(static_alloc=True),
    "hybridized, static_alloc, static_shape": hybridized(
        static_alloc=True, static_shape=True),
}
TRAIN = {
    "eager": trained(mxnet),
    "hybridized, static_alloc": trained(mxnet, static_alloc=True),
    "hybridized, static_alloc, static_shape": trained(
        mxnet, static_alloc=True, static_shape=True),
}
