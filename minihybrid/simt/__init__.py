"""Chapter 17. A simulated GPU: kernels run thread by thread, checked and counted.

Takes:   the text of a kernel, or a student's kernel.
Gives:   `Program`, `watch`, the errors, and `driver.SimulatedDriver`.
"""

from minihybrid.simt.counts import Counts, watch
from minihybrid.simt.errors import (
    AlignmentError,
    BarrierError,
    BoundsError,
    HiddenFloat64Error,
    KernelError,
    LaunchError,
    RaceError,
    UninitialisedError,
)
from minihybrid.simt.program import Program

__all__ = ["AlignmentError", "BarrierError", "BoundsError", "Counts",
           "HiddenFloat64Error", "KernelError", "LaunchError", "Program", "RaceError",
           "UninitialisedError", "watch"]
