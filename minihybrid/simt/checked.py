"""Chapter 25. Checked launches: every memory access is checked and counted.

Uses:    a rewritten kernel, its arguments, a grid and a block.
Defines: `run_checked`, which returns the `Counts`; `shared_arrays`.
"""

import ast
from collections.abc import Callable

import numpy as np

from minihybrid.simt.counts import Counts, note, use_of
from minihybrid.simt.errors import LaunchError
from minihybrid.simt.lockstep import MAX_SHARED, Run, run_blocks
from minihybrid.simt.memory import Array
from minihybrid.simt.rewrite import Rewritten
from minihybrid.simt.watcher import Watcher


def shared_arrays(kernel: str, rewritten: Rewritten, names: dict) -> list:
    """Return the shared arrays of a kernel as (name, shape, dtype).

    Raises: LaunchError if they exceed a block's shared memory.
    """
    shared = []
    for name, (shape, dtype) in rewritten.shared.items():
        shape = eval(compile(ast.Expression(shape), "shape", "eval"), names)
        dtype = eval(compile(ast.Expression(dtype), "dtype", "eval"), names)
        shared.append(
            (name, shape if isinstance(shape, tuple) else (shape,), np.dtype(dtype.__name__))
        )
    nbytes = sum(int(np.prod(shape)) * dtype.itemsize for _, shape, dtype in shared)
    if nbytes > MAX_SHARED:
        raise LaunchError(
            f"kernel '{kernel}' asks for {nbytes} bytes of shared memory per block, but there are "
            f"{MAX_SHARED}; use smaller tiles"
        )
    return shared


def fresh(shape: int | tuple, dtype: np.dtype) -> np.ndarray:
    """Allocate memory filled with bytes of 255: NaN as floats.

    >>> fresh((2,), np.dtype("float32"))
    array([nan, nan], dtype=float32)
    """
    return np.full(int(np.prod(shape)) * dtype.itemsize, 255, "uint8").view(dtype).reshape(shape)


def watched(rewritten: Rewritten, arrays: dict) -> set:
    """Return the names of arrays that are written, or alias one that is."""
    written = rewritten.written & arrays.keys()
    return written | {
        name
        for name, values in arrays.items()
        if any(np.may_share_memory(values, arrays[other]) for other in written)
    }


def run_checked(
    run: Run,
    rewritten: Rewritten,
    make: Callable,
    arguments: dict,
    shared: list,
    record: list | None = None,
) -> Counts:
    """Run a kernel with checks, and return its `Counts`.

    arguments: parameter -> NumPy array, in the shape that the kernel uses, or scalar;
    shared:    the result of `shared_arrays`;
    record:    a list to which every access is appended, as an `Access`.
    """
    arrays = {name: value for name, value in arguments.items() if isinstance(value, np.ndarray)}
    guarded = watched(rewritten, arrays)
    unit = min((arrays[name].itemsize for name in guarded), default=1)
    # A barrier orders all accesses of its block, and none between blocks.
    phase, launch = Watcher(), Watcher(run.n_block)
    watchers = [phase, launch] if rewritten.barriers else [phase]
    outer = {
        name: Array(
            run,
            name,
            value,
            value.shape,
            watchers if name in guarded else (),
            unit if name in guarded else value.itemsize,
            record,
        )
        for name, value in arrays.items()
    }
    inside = [
        Array(run, name, fresh(shape, dtype), shape, [Watcher()], record=record)
        for name, shape, dtype in shared
    ]

    def begin_block() -> list:
        run.phase = 1
        for array in inside:
            array.begin()
        return inside

    def after_barrier() -> None:
        phase.clear()
        run.phase += 1
        for array in inside:
            array.watchers[0].clear()

    n_barriers = run_blocks(
        run,
        make,
        [outer.get(name, value) for name, value in arguments.items()],
        begin_block,
        after_barrier if rewritten.barriers else None,
    )
    counts = Counts(
        run.name, run.n_threads, n_barriers, [use_of(array) for array in [*outer.values(), *inside]]
    )
    note(run.name, run.grid, run.block, counts)
    return counts
