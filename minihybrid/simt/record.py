"""Chapter 25. Access traces, for pictures and warp analysis.

Defines: `Recorder`, an `Array` that also records its accesses; `Access`, an entry.
"""

from typing import Any, NamedTuple

from minihybrid.simt.memory import Array


class Access(NamedTuple):
    """An access of thread t to element i of an array: "read", "write" or "atomic".

    phase: 1 before the first barrier of the block, 2 after it, ...
    """

    phase: int
    t: int
    kind: str
    array: Array
    i: int
    line: int


class Recorder(Array):
    """An array that also appends its accesses to a list `record`."""

    __slots__ = ("record",)
    record: list

    def note(self, kind: str, index: int | tuple, t: int, line: int) -> None:
        """Record an access."""
        self.record.append(Access(self.run.phase, t, kind, self, self.place(index, t, line), line))

    def load(self, index: int | tuple, t: int, line: int) -> Any:
        """See `Array.load`."""
        value = super().load(index, t, line)
        self.note("read", index, t, line)
        return value

    def store(self, index: int | tuple, value: Any, t: int, line: int) -> None:
        """See `Array.store`."""
        super().store(index, value, t, line)
        self.note("write", index, t, line)

    def atomic(self, index: int | tuple, value: Any, kind: str, t: int, line: int) -> Any:
        """See `Array.atomic`."""
        old = super().atomic(index, value, kind, t, line)
        self.note("atomic", index, t, line)
        return old
