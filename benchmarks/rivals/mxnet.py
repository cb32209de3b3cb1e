"""MXNet 1.9.1, the last release; hybridized means static_alloc and static_shape."""

import mxnet

from .gluon import build, eager, hybridized, to_numpy, trained

__all__ = ["BUILD", "KERNELS", "MODES", "TRAIN", "VERSION", "to_numpy"]
VERSION = mxnet.__version__
LIBRARIES = {"MKLDNN": "oneDNN", "BLAS_OPEN": "OpenBLAS", "BLAS_MKL": "MKL"}
KERNELS = ", ".join(n for f, n in LIBRARIES.items() if mxnet.runtime.Features().is_enabled(f))
BUILD = build(mxnet)
MODES = {"eager": eager, "hybridized": hybridized}
TRAIN = {
    "eager": trained(mxnet),
    "hybridized": trained(mxnet, static_alloc=True, static_shape=True),
}
