"""minihybrid: MXNet's program, and another import."""

from importlib.metadata import version

from llvmlite.binding import get_host_cpu_name, llvm_version_info

import minihybrid

from .gluon import build, eager, hybridized, to_numpy, trained

__all__ = ["BUILD", "KERNELS", "MODES", "TRAIN", "VERSION", "to_numpy"]
VERSION = version("minihybrid")
KERNELS = f"LLVM {'.'.join(map(str, llvm_version_info))} for {get_host_cpu_name()}"
BUILD = build(minihybrid)
MODES = {"eager": eager, "hybridized": hybridized}
TRAIN = {
    "eager": trained(minihybrid),
    "hybridized": trained(minihybrid, static_alloc=True, static_shape=True),
}
