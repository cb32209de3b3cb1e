"""Chapter 25. Instrumented arrays: check and count every access.

Uses:    NumPy arrays; every load and store of every thread, with its line.
Defines: `Array`, whose element accesses are checked and counted, and recorded as `Access` for
         pictures and the analysis of warps.

Limits:  a real GPU's thread order isn't modeled: a race is an error here even if it
         would be benign.
"""

import ast
import operator
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np

from minihybrid.simt.errors import (
    AlignmentError,
    BoundsError,
    HiddenFloat64Error,
    KernelError,
    RaceError,
    UninitializedError,
    WholeError,
)
from minihybrid.simt.lockstep import Run
from minihybrid.simt.numbers import CONSTRUCTORS, load_as, store_as

DOES = {"read": "reads", "write": "writes", "atomic": "updates atomically"}
DID = {"read": "read", "write": "wrote", "atomic": "updated atomically"}


class Access(NamedTuple):
    """An access of thread t to element i of an array: "read", "write" or "atomic".

    phase: 1 before the first barrier of the block, 2 after it, ...
    """

    phase: int
    t: int
    kind: str
    array: "Array"
    i: int
    line: int


class Array:
    """An array in a kernel: every access is checked and counted.

    run:      the launch, which describes threads and lines in messages;
    values:   a contiguous NumPy array;
    watchers: a list of `Watcher`, empty for read-only arrays;
    unit:     for global memory, the granularity of race detection in bytes: the size of
              the smallest elements of the launch;
    record:   a list to which every access is appended, as an `Access`.
    """

    __slots__ = """run name values shape size ndim dtype loads stores atomics load4s store4s
        watchers watcher start scale written get wrap narrow record""".split()

    def __init__(
        self,
        run: Run,
        name: str,
        values: np.ndarray,
        shape: tuple,
        watchers: list | tuple = (),
        unit: int | None = None,
        record: list | None = None,
    ) -> None:
        self.run, self.name, self.values = run, name, values.reshape(-1)
        self.shape, self.size, self.ndim = shape, int(np.prod(shape)), len(shape)
        self.dtype, self.record = values.dtype, record
        n = run.n_threads
        self.loads, self.stores, self.atomics = [0] * n, [0] * n, [0] * n
        self.load4s = self.store4s = 0
        self.watchers = watchers
        # Two arguments may alias: elements are tracked by address.
        self.start = values.ctypes.data // unit if unit else 0
        self.scale = values.itemsize // unit if unit else 1
        self.watcher = watchers[0] if len(watchers) == self.scale == 1 else None
        self.written = None if unit else bytearray(self.size)
        self.get, self.wrap = load_as(self.values), store_as(self.dtype)
        self.narrow = run.strict and self.dtype.kind == "f" and self.dtype.itemsize < 8

    def begin(self) -> None:
        """Reset for a new block: its shared memory is uninitialized."""
        self.written = bytearray(self.size)
        self.watchers[0].clear()

    def __len__(self) -> int:
        return self.shape[0]

    def whole(self, *_: Any) -> NoReturn:
        """Raise WholeError: kernels have no whole-array arithmetic."""
        raise WholeError(
            f"array {self.name} is used as a whole, but a thread computes "
            "with elements; write out[i] = a[i] + 10, not out = a + 10"
        )

    # -- indices -----------------------------------------------------------------------
    def place(self, index: int | tuple) -> int:
        """Return the flat index of an element; check the bounds."""
        if type(index) is tuple and len(index) == self.ndim == 2:
            (y, x), (height, width) = index, self.shape
            if type(y) is int and type(x) is int and (0 <= y < height and 0 <= x < width):
                return y * width + x
        indices = index if type(index) is tuple else (index,)
        if len(indices) != self.ndim:
            message = f"has {len(indices)} indices, but the array has {self.ndim} axes"
            self.fail(KernelError, index, message)
        flat = 0
        for axis, (i, n) in enumerate(zip(indices, self.shape, strict=True)):
            if not isinstance(i, (int, np.integer)):
                message = f"needs whole numbers, not {type(i).__name__}"
                if isinstance(i, slice):
                    message += "; a thread computes with elements, as in out[i] = a[i]"
                self.fail(KernelError, index, message)
            if not 0 <= i < n:
                text = self.written_as(axis)
                guard = f"`if {text or 'i'} < {n}:`"
                if i < 0:
                    guard = f"`if {text} >= 0:`" if text else "`if i >= 1:` for an index i - 1"
                    guard += "; a negative one does not count from the end"
                message = f"is out of bounds: {self.extent()}; guard it, as in {guard}"
                self.fail(BoundsError, index, message)
            flat = flat * n + int(i)
        return flat

    def written_as(self, axis: int) -> str | None:
        """Return the source of an axis's index in the line; None if it's ambiguous."""
        try:
            tree = ast.parse(self.run.text[self.line()].strip())
        except SyntaxError:  # the line is continued, or opens a block
            return None
        uses = {
            ast.unparse(
                node.slice.elts[axis]
                if isinstance(node.slice, ast.Tuple) and self.ndim > 1
                else node.slice
            )
            for node in ast.walk(tree)
            if isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and node.value.id == self.name
            and (self.ndim == 1 or isinstance(node.slice, ast.Tuple))
        }
        return uses.pop() if len(uses) == 1 else None

    def extent(self) -> str:
        """Describe the array's size for messages."""
        axes = [f"0 to {n - 1}" for n in self.shape]
        return f"indices go from {' and '.join(axes)}"

    def line(self) -> int:
        """Return the number of the kernel's line that runs."""
        frame, file = sys._getframe(3), self.run.file
        while frame.f_code.co_filename != file:
            assert frame.f_back
            frame = frame.f_back
        return frame.f_lineno

    def fail(self, kind: type, index: Any, what: str) -> NoReturn:
        """Raise an error for one element and the running thread."""
        where = ", ".join(map(str, index)) if type(index) is tuple else index
        what = f"{self.name}[{where}] {what} ({self.run.who(self.run.t)})"
        raise self.run.error(kind, self.line(), what, self.run.thread(self.run.t))

    def use(self, kind: str, i: int) -> None:
        """Record an access to element i; raise if it races with an earlier one."""
        t, line, first = self.run.t, self.line(), self.start + i * self.scale
        for watcher in self.watchers:
            for element in range(first, first + self.scale):
                conflict = watcher.use(kind, element, t, line)
                if conflict is not None:
                    self.race(kind, i, line, *conflict)

    def race(
        self, kind: str, i: int, line: int, earlier: str, other: int, other_line: int
    ) -> NoReturn:
        """Raise RaceError: the running thread and another one race for element i."""
        run, t = self.run, self.run.t
        where = ", ".join(str(int(k)) for k in np.unravel_index(i, self.shape))
        place = "the same line" if line == other_line else run.line(other_line)
        if run.thread(t)[0] != run.thread(other)[0]:
            remedy = "nothing orders blocks, so use an atomic or two kernels"
        elif line == other_line:
            remedy = (
                "give each thread its own element, use an atomic or, if "
                "these are iterations of a loop, put cuda.syncthreads() into it"
            )
        else:
            remedy = "put cuda.syncthreads() between the two lines"
        raise run.error(
            RaceError,
            line,
            f"race for {self.name}[{where}], which {run.who(t)} {DOES[kind]}, and {run.who(other)} "
            f"{DID[earlier]} in {place}; {remedy}",
            run.thread(t),
            run.thread(other),
        )

    def note(self, kind: str, i: int) -> None:
        """Record an access, for a picture or a count of requests."""
        assert self.record is not None
        self.record.append(Access(self.run.phase, self.run.t, kind, self, i, self.line()))

    # -- accesses by kernels -----------------------------------------------------------
    def __getitem__(self, index: Any) -> Any:
        if type(index) is not int or self.ndim != 1 or not 0 <= index < self.size:
            index = self.place(index)
        self.loads[self.run.t] += 1
        if self.written is not None and not self.written[index]:
            self.uninitialized(index)
        if self.watchers and not (self.watcher and self.watcher.was_read(self.start + index)):
            self.use("read", index)
        if self.record is not None:
            self.note("read", index)
        return self.values[index] if self.get is None else self.get(index)

    def uninitialized(self, i: int) -> NoReturn:
        """Raise UninitializedError for element i of a shared array."""
        self.fail(
            UninitializedError,
            tuple(int(k) for k in np.unravel_index(i, self.shape)),
            "is read, but no thread of the block has written it: shared memory starts with "
            "arbitrary values; write it first, with cuda.syncthreads() in between",
        )

    def __setitem__(self, index: Any, value: Any) -> None:
        if type(index) is not int or self.ndim != 1 or not 0 <= index < self.size:
            index = self.place(index)
        self.stores[self.run.t] += 1
        if not self.watchers:  # the kernel's text has no store to this name
            raise WholeError(
                f"array {self.name} is written under another name or by another function; inside a "
                "kernel, write elements of its arguments and shared arrays by their own names"
            )
        self.use("write", index)
        self.put(index, value)
        if self.record is not None:
            self.note("write", index)

    def put(self, i: int, value: Any) -> None:
        """Convert a value and store it."""
        if self.wrap is not None:
            value = self.wrap(value)
        elif self.narrow and isinstance(value, float):  # includes np.float64
            what = (
                f"a float64 is stored into {self.name}, which holds {self.dtype}; the arithmetic "
                f"was in float64, so write numbers as {self.dtype}(...)"
            )
            thread = self.run.thread(self.run.t)
            raise self.run.error(HiddenFloat64Error, self.line(), what, thread)
        self.values[i] = value
        if self.written is not None:
            self.written[i] = 1

    def atomic(self, combine: Callable, index: int | tuple, value: Any) -> Any:
        """Atomically set `array[index]` to combine(old, value); return the old value."""
        i = self.place(index)
        self.atomics[self.run.t] += 1
        if self.written is not None and not self.written[i]:
            self.uninitialized(i)
        if self.watchers:
            self.use("atomic", i)
        old = self.values[i] if self.get is None else self.get(i)
        self.put(i, combine(old, CONSTRUCTORS[self.dtype.name](value)))
        if self.record is not None:
            self.note("atomic", i)
        return old

    def load4(self, index: int) -> tuple:
        """Load four contiguous elements in one access, as a tuple."""
        self.check_aligned(index)
        self.load4s += 1
        self.loads[self.run.t] -= 3
        return tuple(self[index + k] for k in range(4))

    def store4(self, index: int, four: tuple) -> None:
        """Store four contiguous elements in one access."""
        self.check_aligned(index)
        self.store4s += 1
        self.stores[self.run.t] -= 3
        for k in range(4):
            self[index + k] = four[k]

    def check_aligned(self, index: int) -> None:
        """Check the alignment of the first of four elements."""
        if index % 4:
            self.fail(
                AlignmentError,
                index,
                "begins four neighbors, but "
                "only a multiple of 4 may: the memory is read 16 bytes at once",
            )


ACCESSES: dict[str, Callable] = {  # functions of kernels
    "atomic_add": lambda array, index, value: array.atomic(operator.add, index, value),
    "atomic_max": lambda array, index, value: array.atomic(max, index, value),
    "atomic_min": lambda array, index, value: array.atomic(min, index, value),
    "load4": Array.load4,
    "store4": Array.store4,
}


for _sign in """add sub mul truediv floordiv mod pow and or xor lshift rshift
        matmul""".split():
    for _form in (f"__{_sign}__", f"__r{_sign}__", f"__i{_sign}__"):
        setattr(Array, _form, Array.whole)
for _sign in ("neg", "pos", "abs", "invert", "lt", "le", "gt", "ge", "bool", "float"):
    setattr(Array, f"__{_sign}__", Array.whole)
