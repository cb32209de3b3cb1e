"""Chapter 25. A GPU simulator: runs kernels thread by thread, with checks and counters.

Defines: `cuda`, a substitute for Numba's; `draw`, a picture of the accesses; `traffic`,
         the memory requests of warps; `turns`, the limit of a loop's trip count;
         `Program`, `watch`, the errors, and `driver.SimulatedDriver`.
"""

from minihybrid.core import lazy
from minihybrid.simt import cuda
from minihybrid.simt.counts import Counts, watch
from minihybrid.simt.errors import (
    AlignmentError,
    BarrierError,
    BoundsError,
    EndlessError,
    HiddenFloat64Error,
    KernelError,
    LaunchError,
    RaceError,
    UninitializedError,
)
from minihybrid.simt.lockstep import turns
from minihybrid.simt.numbers import CONSTRUCTORS
from minihybrid.simt.picture import draw
from minihybrid.simt.program import Program
from minihybrid.simt.traffic import traffic

# The dtypes, under their names in Numba.
float16 = CONSTRUCTORS["float16"]
float32 = CONSTRUCTORS["float32"]
float64 = CONSTRUCTORS["float64"]
int8 = CONSTRUCTORS["int8"]
int16 = CONSTRUCTORS["int16"]
int32 = CONSTRUCTORS["int32"]
int64 = CONSTRUCTORS["int64"]
uint8 = CONSTRUCTORS["uint8"]
uint16 = CONSTRUCTORS["uint16"]
uint32 = CONSTRUCTORS["uint32"]
uint64 = CONSTRUCTORS["uint64"]
boolean = CONSTRUCTORS["boolean"]

__getattr__ = lazy.face(globals(), {})

__all__ = [
    "AlignmentError",
    "BarrierError",
    "BoundsError",
    "Counts",
    "EndlessError",
    "HiddenFloat64Error",
    "KernelError",
    "LaunchError",
    "Program",
    "RaceError",
    "UninitializedError",
    "boolean",
    "cuda",
    "draw",
    "float16",
    "float32",
    "float64",
    "int16",
    "int32",
    "int64",
    "int8",
    "traffic",
    "turns",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "watch",
]
