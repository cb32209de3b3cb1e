"""Block shapes of GPU reductions: threads along a row, rows per block, blocks per row.

Defines: `BlockShape`, chosen from the number, length and layout of the rows.

Limits: it ignores the number of multiprocessors.
"""

import math
from dataclasses import dataclass

from minihybrid.passes.reduction_schedule import is_literal

WARP = 32  # threads that execute in lockstep and coalesce their loads
MIN_THREADS = 256  # least threads of a block, given enough work,
MAX_THREADS = 512  # and most: more would leave each thread too few registers
EACH = 4  # least elements of a row per thread
CUT = 16  # least elements per thread before a row is split over blocks
SPREAD = 256  # blocks that keep all multiprocessors busy
PARTS = 4  # least blocks per row that justify another kernel


def power_of_two(n):
    """Return the smallest power of two that is at least n.

    >>> [power_of_two(n) for n in (0, 1, 3, 32, 33)]
    [1, 1, 4, 32, 64]
    """
    return 1 << max(n - 1, 0).bit_length()


@dataclass(frozen=True)
class BlockShape:
    """A distribution of rows: threads `along` a row, `rows` per block, `parts` (blocks) per row.

    A warp covers 32 interleaved rows. Given enough elements, a thread has at least four,
    and a block at least 256 threads.

    >>> BlockShape.of(1000, 64, False), BlockShape.of(10, 64, False)
    (BlockShape(along=256, rows=1, parts=1), BlockShape(along=4, rows=64, parts=1))
    >>> BlockShape.of(1000, 64, True), BlockShape.of(10**6, 1, False)
    (BlockShape(along=16, rows=32, parts=1), BlockShape(along=512, rows=1, parts=122))
    """

    along: int
    rows: int
    parts: int

    @classmethod
    def of(cls, n, n_rows, across, cut=CUT):
        """Return the shape for `n_rows` rows of length n."""
        most = power_of_two(n_rows)
        rows = min(WARP, most) if across else 1
        along = min(power_of_two(-(-n // EACH)), MAX_THREADS // rows)
        rows = max(rows, min(MIN_THREADS // along, most))
        parts = min(SPREAD // -(-n_rows // rows), n // (along * cut))
        return cls(along, rows, parts if parts >= PARTS else 1)


def team_of(rows):
    """Return the shape for a schedule's rows.

    Rows whose sums differ in dtype aren't split over blocks; rows without sums always can.
    """
    frame, sums = rows.frame, reductions(rows)
    elements = sums or any(n.specs[0].shape == frame.shape for n in rows.depth if not is_literal(n))
    team = BlockShape.of(
        frame.n if elements else 1, math.prod(frame.kept), frame.across, CUT if sums else EACH
    )
    if any(n.specs[0].dtype != rows.dtype for n in sums):
        return BlockShape(team.along, team.rows, 1)
    return team


def reductions(rows):
    """Return the reductions of a schedule."""
    return [n for n in rows.stats if n.op.reduce]
