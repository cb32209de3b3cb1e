"""Chapter 25. Who used an element: how races are found.

Takes:   every use of an element: its kind, the thread and the line.
Gives:   `Watcher`, which answers with an earlier use that races with it.

Two threads race for an element if both use it, one of them writes, and nothing orders
them: between threads of a block a barrier does, between blocks nothing. Atomic updates
are ordered among themselves only.
"""

# What may not be done to an element that another thread used in these ways.
AGAINST = {
    "read": ("write", "atomic"),
    "write": ("write", "atomic", "read"),
    "atomic": ("write", "read"),
}
LINES = 1 << 20  # thread and line are one number, thread * LINES + line: quick to keep


class Watcher:
    """Who used which element first, in each way: enough to find every race.

    Between two barriers, threads run one after the other: if the first user is the
    thread itself, no other thread came before it.

    group: how many threads in a row are one user: 1, or those of a block.

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
        """Forget: a barrier orders what was before and what comes."""
        self.reads: dict[int, int] = {}  # element -> who
        self.writes: dict[int, int] = {}
        self.atomics: dict[int, int] = {}
        self.first = {"read": self.reads, "write": self.writes, "atomic": self.atomics}

    def read(self, element: int, t: int, line: int) -> tuple[str, int, int] | None:
        """`use("read", ...)`, quickly: most uses are reads, and race with nothing."""
        if self.writes or self.atomics:
            return self.use("read", element, t, line)
        self.reads.setdefault(element, t * LINES + line)
        return None

    def use(self, kind: str, element: int, t: int, line: int) -> tuple[str, int, int] | None:
        """Note a use, and give the earlier one that races with it: (kind, t, line)."""
        me = t * LINES + line
        for earlier in AGAINST[kind]:
            who = self.first[earlier].get(element)
            if who is not None and who // self.group != me // self.group:
                return earlier, *divmod(who, LINES)
        self.first[kind].setdefault(element, me)
        return None
