"""Chapter 18. What the generator must know of this machine's processor.

Takes:   nothing.
Gives:   `registers`, their size and number; `width`, how many numbers one holds;
         `cores`, how many processors there are for this process.

What is left out: caches; tiles are small enough for all that are sold today.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

from minihybrid.core.op import AttrError

# So many sums and products take as long as reading a number from memory that is read
# once, and as copying one.
READ, MOVED = 6, 12


OTHER = ContextVar("OTHER", default=None)  # the registers of the machine that will run a file


def registers() -> tuple[int, int]:
    """(bytes in a vector register, number of registers)."""
    return OTHER.get() or _own()


@contextmanager
def planned_for(nbytes: int, count: int) -> Iterator[None]:
    """Plans made inside this `with` block are for a machine with these registers.

    >>> with planned_for(16, 16):
    ...     width(4), registers()
    (4, (16, 16))
    """
    token = OTHER.set((nbytes, count))
    try:
        yield
    finally:
        OTHER.reset(token)


@cache
def _own() -> tuple[int, int]:
    """The registers of this machine."""
    try:
        from llvmlite.binding import get_host_cpu_features
    except ImportError:  # nothing is compiled here; texts are written for most machines
        return 32, 16
    features = get_host_cpu_features()
    if features.get("avx512f"):
        return 64, 32
    if features.get("avx"):
        return 32, 16
    return 16, 32 if features.get("neon") else 16


def width(itemsize):
    """How many numbers of so many bytes are computed at once: 16 at most.

    >>> width(4) in (4, 8, 16), width(4) >= width(8)
    (True, True)
    """
    return min(16, registers()[0] // itemsize)


def cores():
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def threads():
    """How many threads compute: `MINIHYBRID_NUM_THREADS`, or one for each core.

    Raises:  AttrError if the variable is not a whole number from 1 on.
    """
    wanted = os.environ.get("MINIHYBRID_NUM_THREADS") or str(cores())
    if not (wanted.isascii() and wanted.isdigit() and int(wanted)):
        raise AttrError(
            f"MINIHYBRID_NUM_THREADS is {wanted!r}, but a whole number "
            "from 1 on is needed; without it, each core has a thread"
        )
    return int(wanted)
