"""Chapter 25. Data race detection.

Uses:    every access to an element: its kind, the thread and the line.
Defines: `Watcher`, which returns an earlier access that races with it.

Two threads race for an element if both access it, at least one writes, and the accesses
are unordered. A barrier orders threads of a block; nothing orders blocks. Atomic updates
are ordered only among themselves.
"""

# Kind of access -> the kinds of another thread's accesses that conflict with it.
AGAINST = {
    "read": ("write", "atomic"),
    "write": ("write", "atomic", "read"),
    "atomic": ("write", "read"),
}
LINES = 1 << 20  # thread and line are packed into thread * LINES + line, for speed


class Watcher:
    """The first access to each element, by kind: enough to detect every race.

    Between two barriers, threads run sequentially: if the first access is the thread's
    own, no other thread accessed the element before it.

    group: how many consecutive threads count as one: 1, or all of a block.

    >>> watcher = Watcher()
    >>> watcher.use("write", 7, t=0, line=3), watcher.use("read", 7, t=0, line=4)
    (None, None)
    >>> watcher.use("read", 7, t=1, line=4)
    ('write', 0, 3)
    """

    __slots__ = ("group", "first", "reads", "writes", "atomics")

    def __init__(self, group: int = 1) -> None:
        self.group = group * LINES
        self.clear()

    def clear(self) -> None:
        """Clear at a barrier, which orders earlier and later accesses."""
        self.reads: dict[int, int] = {}  # element -> thread and line
        self.writes: dict[int, int] = {}
        self.atomics: dict[int, int] = {}
        self.first = {"read": self.reads, "write": self.writes, "atomic": self.atomics}

    def was_read(self, element: int) -> bool:
        """Return whether an element was read and only read, as most: `use` has nothing to do."""
        return element in self.reads and not self.writes and not self.atomics

    def use(self, kind: str, element: int, t: int, line: int) -> tuple[str, int, int] | None:
        """Record an access; return an earlier racing one as (kind, t, line)."""
        me = t * LINES + line
        for earlier in AGAINST[kind]:
            who = self.first[earlier].get(element)
            if who is not None and who // self.group != me // self.group:
                return earlier, *divmod(who, LINES)
        self.first[kind].setdefault(element, me)
        return None
