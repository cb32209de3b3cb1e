"""How the threads of a GPU share rows: so many along a row, so many rows.

Takes:   how many rows there are, how long they are, and how they lie in memory.
Gives:   `BlockShape`, the threads of a block, and the blocks that share a row.

What is left out: the number of multiprocessors; the rules suit small GPUs and large.
"""

from dataclasses import dataclass

from minihybrid.passes.reduction_schedule import is_literal, size_of

WARP = 32  # threads that go in step, and read neighbours by one request
BLOCK = 256  # threads of a block at least, if there is so much to do,
MOST = 512  # and at most: more would leave each thread too few registers
EACH = 4  # elements of a row for each thread before another one is worth it
CUT = 16  # the same before another block is worth it
SPREAD = 256  # blocks that keep all multiprocessors busy
PARTS = 4  # blocks a row, at least, that are worth another kernel


def power_of_two(n):
    """The smallest power of two that is not below n.

    >>> [power_of_two(n) for n in (0, 1, 3, 32, 33)]
    [1, 1, 4, 32, 64]
    """
    return 1 << max(n - 1, 0).bit_length()


@dataclass(frozen=True)
class BlockShape:
    """How threads share rows: `along` a row, so many `rows` a block, `parts` a row.

    Where neighbours in memory lie in different rows, a warp takes 32 rows. A thread has
    four elements or more, a block 256 threads or more, as far as there are elements.

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
        """The team for so many rows of length n."""
        most = power_of_two(n_rows)
        rows = min(WARP, most) if across else 1
        along = min(power_of_two(-(-n // EACH)), MOST // rows)
        rows = max(rows, min(BLOCK // along, most))
        parts = min(SPREAD // -(-n_rows // rows), n // (along * cut))
        return cls(along, rows, parts if parts >= PARTS else 1)


def team_of(rows):
    """The team of a step's rows.

    It cuts none whose sums differ in their dtypes, and any where nothing is summed up.
    """
    frame, sums = rows.frame, reductions(rows)
    elements = sums or any(n.specs[0].shape == frame.shape for n in rows.depth if not is_literal(n))
    team = BlockShape.of(
        frame.n if elements else 1, size_of(frame.kept), frame.across, CUT if sums else EACH
    )
    if any(n.specs[0].dtype != rows.dtype for n in sums):
        return BlockShape(team.along, team.rows, 1)
    return team


def reductions(rows):
    """The nodes that take a row and give one number."""
    return [n for n in rows.stats if n.op.reduce]
