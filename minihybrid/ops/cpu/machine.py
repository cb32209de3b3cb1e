"""Chapter 18. Properties of the target processor, for the code generator.

Defines: `registers`, the size and number of vector registers; `width`, the number of
         lanes; `cores`, the processors available to this process.

Limits:  cache sizes aren't queried; tiles are small enough for all current processors.
"""

import os
from functools import cache

from minihybrid.core.op import AttrError

# Costs in multiply-adds: a load of one element that isn't reused, and a copy of one
# element.
READ, MOVED = 6, 12


@cache
def registers() -> tuple[int, int]:
    """Return (bytes per vector register, number of registers)."""
    try:
        from llvmlite.binding import get_host_cpu_features
    except ImportError:  # nothing is compiled here; target the most common machine
        return 32, 16
    features = get_host_cpu_features()
    if features.get("avx512f"):
        return 64, 32
    if features.get("avx"):
        return 32, 16
    return 16, 32 if features.get("neon") else 16


def width(itemsize):
    """Return the vector lanes for elements of so many bytes: at most 16.

    >>> width(4) in (4, 8, 16), width(4) >= width(8)
    (True, True)
    """
    return min(16, registers()[0] // itemsize)


def cores():
    """Return the number of processors available to this process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def threads():
    """Return the number of threads: `MINIHYBRID_NUM_THREADS`, or one per core.

    Raises:  AttrError if the variable isn't a positive integer.
    """
    setting = os.environ.get("MINIHYBRID_NUM_THREADS") or str(cores())
    if not (setting.isascii() and setting.isdigit() and int(setting)):
        raise AttrError(
            f"MINIHYBRID_NUM_THREADS is {setting!r}, but a whole number "
            "from 1 on is needed; without it, each core has a thread"
        )
    return int(setting)
