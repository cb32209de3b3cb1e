"""Chapter 25. The simulator's scheduler: runs threads from barrier to barrier.

Uses:    the factory of a kernel's threads (`rewrite.maker`), its arrays, a grid and a block.
The kernel updates the arrays in place; errors name the line and thread.

Blocks run sequentially, and so do their threads, each up to its next barrier: a thread
with barriers is a generator (coroutine), and a barrier yields to the next thread.
Not supported: timing. Performance here says nothing about a GPU.
"""

import ast
import linecache
import math
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NoReturn

import numpy as np

from minihybrid.simt.errors import (
    BarrierError,
    Endless,
    EndlessError,
    KernelError,
    LaunchError,
    Lines,
    WholeError,
)

MAX_THREADS, MAX_SHARED, MAX_GRID = 1024, 48 * 1024, 65535
WARP = 32
LIMITS = [1_000_000]  # stack of iteration limits; `turns` pushes others


@contextmanager
def turns(n: int) -> Iterator:
    """Allow each loop of a kernel n iterations, not a million, inside the block.

    >>> with turns(10_000_000):
    ...     Run("add", {}, 2, 4).turns
    10000000
    """
    LIMITS.append(n)
    try:
        yield
    finally:
        LIMITS.pop()


def axes3(sizes: int | tuple, kernel: str, what: str) -> tuple:
    """Normalize a grid or block to three lengths: 4 -> (4, 1, 1).

    >>> axes3((2, 8), "add", "grid")
    (2, 8, 1)
    """
    sizes = tuple(sizes) if isinstance(sizes, (tuple, list)) else (sizes,)
    if not 1 <= len(sizes) <= 3 or not all(
        isinstance(n, (int, np.integer)) and n > 0 for n in sizes
    ):
        raise LaunchError(
            f"kernel '{kernel}': the {what} is {sizes}, but it must be "
            "one to three whole numbers of at least 1"
        )
    return tuple(map(int, sizes)) + (1,) * (3 - len(sizes))


class Run(Lines):
    """One launch: its kernel, grid and block, and descriptions of its threads and lines.

    text:   line number -> source line;
    strict: whether storing a float64 as float32 is an error.

    >>> run = Run("add", {3: "  out[i] = a[i]"}, 2, 4)
    >>> run.who(5), run.line(3)
    ('thread 1 of block 1', 'line 3 (`out[i] = a[i]`)')
    """

    def __init__(
        self, name: str, text: dict, grid: int | tuple, block: int | tuple, strict: bool = True
    ) -> None:
        super().__init__(name, text)
        self.strict, self.file = strict, file_of(name)
        self.grid, self.block = axes3(grid, name, "grid"), axes3(block, name, "block")
        self.turns = LIMITS[-1]
        self.phase = 1  # of a block: 1 + the number of barriers passed
        self.t = 0  # the running thread's index in the grid
        self.n_block = math.prod(self.block)
        self.n_threads = self.n_block * math.prod(self.grid)
        if self.n_block > MAX_THREADS:
            raise LaunchError(
                f"kernel '{name}': a block of {self.block} has {self.n_block} threads, but at "
                f"most {MAX_THREADS} fit; use more blocks of fewer threads"
            )
        if max(self.grid[1:]) > MAX_GRID:
            raise LaunchError(
                f"kernel '{name}': a grid of {self.grid} is too large in "
                f"y or z, where at most {MAX_GRID} blocks fit; use x"
            )

    def thread(self, t: int) -> tuple:
        """Return thread t as ((block x, y, z), (thread x, y, z))."""
        block, thread = divmod(t, self.n_block)
        return place(block, self.grid), place(thread, self.block)

    def who(self, t: int) -> str:
        """Describe thread t for messages."""
        block, thread = self.thread(t)
        return f"thread {short(thread, self.block)} of block {short(block, self.grid)}"


def place(k: int, sizes: tuple) -> tuple:
    """Unravel index k into three axes, x fastest."""
    return k % sizes[0], k // sizes[0] % sizes[1], k // (sizes[0] * sizes[1])


def short(position: tuple, sizes: tuple) -> int | tuple:
    """Drop the trailing axes of length 1 from a position."""
    n = max((axis + 1 for axis in range(3) if sizes[axis] > 1), default=1)
    return position[0] if n == 1 else position[:n]


def file_of(kernel: str) -> str:
    """Return the file name in a kernel's compiled code.

    >>> file_of("add")
    '<kernel add>'
    """
    return f"<kernel {kernel}>"


def execute(tree: ast.Module, name: str, text: dict, namespace: dict) -> Callable:
    """Execute a tree and return its function, with the kernel's line numbers."""
    filename = file_of(name)
    lines = [text.get(k, "") + "\n" for k in range(1, max(text) + 1)]
    linecache.cache[filename] = (sum(map(len, lines)), None, lines, filename)
    namespace = {**namespace, "_Endless": Endless}
    exec(compile(tree, filename, "exec"), namespace)
    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef)
    return namespace[function.name]


def run_blocks(
    run: Run,
    make: Callable,
    arguments: Iterable,
    shared: Callable[[], list],
    after_barrier: Callable[[], None] | None,
) -> int:
    """Run every block of a launch; return the number of barriers per block.

    make:      returns the function of a thread (see `rewrite.maker`);
    arguments: the kernel's arguments;
    shared:    called before each block, returns its shared arrays;
    after_barrier: called after each barrier; `None` if the kernel has none, and threads
               aren't generators.
    """
    n_barriers, values = 0, list(arguments)
    with np.errstate(all="ignore"):
        for b in range(math.prod(run.grid)):
            where = place(b, run.grid)
            thread = make(*values, *shared(), *where, *run.block, *run.grid, run.turns)
            first = b * run.n_block
            places = [place(k, run.block) for k in range(run.n_block)]
            try:
                if after_barrier:
                    n_barriers = run_in_turns(
                        run, [thread(*at) for at in places], first, after_barrier
                    )
                else:
                    for run.t, at in enumerate(places, first):
                        thread(*at)
            except KernelError:
                raise
            except Endless as error:
                raise endless(run, *error.args) from None
            except Exception as error:
                raise in_words(run, error) from error
    return n_barriers


def run_in_turns(run: Run, threads: list, first: int, after_barrier: Callable[[], None]) -> int:
    """Run the threads of a block, all to the next barrier, until all have ended."""
    n_barriers = 0
    while True:
        lines = [next(thread, None) for run.t, thread in enumerate(threads, first)]
        if any(line != lines[0] for line in lines):
            diverged(run, lines, first)
        if lines[0] is None:
            return n_barriers
        n_barriers += 1
        if n_barriers > run.turns // 10:  # every thread is at work between two barriers
            raise endless(run, lines[0], n_barriers)
        after_barrier()


def endless(run: Run, line: int, n_barriers: int | None = None) -> KernelError:
    """Return the error of a loop that exceeded its limit of iterations or barriers."""
    reason = f"the loop made {run.turns} turns and did not end"
    if n_barriers is not None:
        reason = f"a block met {n_barriers} barriers and did not end"
    return run.error(
        EndlessError,
        line,
        f"{reason}; most likely the variable that its condition asks for does not change in the "
        f"loop (if it must be so long: `with simt.turns({10 * run.turns}):` around the launch)",
    )


def diverged(run: Run, lines: list, first: int) -> NoReturn:
    """Raise BarrierError: two threads of a block wait at different barriers."""
    here = next(k for k, line in enumerate(lines) if line is not None)
    other = next(k for k, line in enumerate(lines) if line != lines[here])
    elsewhere = (
        "has ended" if lines[other] is None else f"waits at that in {run.line(lines[other])}"
    )
    raise BarrierError(
        f"kernel '{run.name}': {run.who(first + here)} waits at the barrier in "
        f"{run.line(lines[here])}, but {run.who(first + other)} {elsewhere}; all threads of a "
        "block must reach the same barriers, so take it out of the `if` or loop",
        run.name,
        lines[here],
        (run.thread(first + here), run.thread(first + other)),
    )


def in_words(run: Run, error: Exception) -> KernelError:
    """Convert an exception of a kernel to a KernelError with line and thread."""
    for frame, number in reversed(list(traceback.walk_tb(error.__traceback__))):
        if frame.f_code.co_filename == file_of(run.name):
            kind = f"{type(error).__name__}: " * (type(error) is not WholeError)
            return run.error(
                KernelError, number, f"{kind}{error} ({run.who(run.t)})", run.thread(run.t)
            )
    raise error
