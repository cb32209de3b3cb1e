"""Chapter 25. Counters of a launch's memory accesses.

Uses:    the arrays of a launch, after it ran.
Defines: `Counts` with one `Use` per array, printed as a table; `watch`, which collects
         the counts of all launches in a `with` block.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from minihybrid.simt.memory import Array


class Use(NamedTuple):
    """The accesses of a launch's threads to one array.

    loads, stores, atomics: totals over all threads; `load4` and `store4` count as one;
    most_loads, most_stores: the maximum per thread;
    nbytes_loaded, nbytes_stored: the total bytes of these accesses;
    load4, store4: how many of them accessed four elements.
    """

    name: str
    space: str
    loads: int
    stores: int
    atomics: int
    most_loads: int
    most_stores: int
    nbytes_loaded: int
    nbytes_stored: int
    load4: int
    store4: int


def use_of(array: Array) -> Use:
    """Return the `Use` of a simulated array."""
    loads, stores, size = sum(array.loads), sum(array.stores), array.dtype.itemsize
    return Use(
        array.name,
        "global" if array.written is None else "shared",
        loads,
        stores,
        sum(array.atomics),
        max(array.loads),
        max(array.stores),
        size * (loads + 3 * array.load4s),
        size * (stores + 3 * array.store4s),
        array.load4s,
        array.store4s,
    )


@dataclass(frozen=True)
class Counts:
    """The counts of one launch; `counts["a"]` is the `Use` of array a.

    >>> use = Use("a", "global", 8, 0, 0, 1, 0, 32, 0, 0, 0)
    >>> Counts("add", 8, 0, [use])
    add: 8 threads, 0 barriers per block
    array    space   loads stores atomics most/thread   bytes
    a        global      8      0       0           1      32
    """

    kernel: str
    n_threads: int
    barriers: int
    uses: list[Use]

    def __getitem__(self, name: str) -> Use:
        return next(use for use in self.uses if use.name == name)

    def total(self, what: str, space: str = "global") -> int:
        """Sum a column over the arrays in a memory space: `counts.total("loads")`."""
        return sum(getattr(use, what) for use in self.uses if use.space == space)

    @property
    def global_loads(self) -> int:
        """Loads from global memory by all threads."""
        return self.total("loads")

    @property
    def global_stores(self) -> int:
        """Stores to global memory by all threads."""
        return self.total("stores")

    @property
    def shared_loads(self) -> int:
        """Loads from shared memory by all threads."""
        return self.total("loads", "shared")

    @property
    def shared_stores(self) -> int:
        """Stores to shared memory by all threads."""
        return self.total("stores", "shared")

    def __repr__(self) -> str:
        lines = [
            f"{self.kernel}: {self.n_threads} threads, {self.barriers} barriers per block",
            f"{'array':8} {'space':6}  {'loads':>5} {'stores':>6} "
            f"{'atomics':>7} {'most/thread':>11} {'bytes':>7}",
        ]
        for use in self.uses:
            lines.append(
                f"{use.name:8} {use.space:6} {use.loads:6} {use.stores:6} {use.atomics:7} "
                f"{use.most_loads + use.most_stores:11} {use.nbytes_loaded + use.nbytes_stored:7}"
            )
        return "\n".join(lines)


class Launched(NamedTuple):
    """A launch recorded by `watch`."""

    kernel: str
    grid: tuple
    block: tuple
    counts: Counts


WATCHING: list[list[Launched]] = []  # the lists of the active `watch` blocks


@contextmanager
def watch() -> Iterator[list[Launched]]:
    """Collect every checked launch of the simulator inside the block.

    >>> with watch() as launches:
    ...     pass
    >>> launches
    []
    """
    launches: list[Launched] = []
    WATCHING.append(launches)
    try:
        yield launches
    finally:
        WATCHING.remove(launches)


def note(kernel: str, grid: tuple, block: tuple, counts: Counts) -> None:
    """Add a launch to the lists of all active `watch` blocks."""
    for launches in WATCHING:
        launches.append(Launched(kernel, grid, block, counts))
