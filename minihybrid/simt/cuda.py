"""Chapter 25. CUDA without a GPU: `from minihybrid.simt import cuda`.

Uses:    a Python function, written for numba-cuda, and NumPy arrays.
Defines: `jit`, which makes a kernel of it; `to_device`, `device_array`; and the names
         that kernels use: `grid`, `threadIdx`, `shared`, `syncthreads`, `atomic`, ...

The same cell runs on a real GPU after `from numba import cuda`, without the checks.
Not supported: streams, and device functions that take arrays.
Limits:  implicit float64 isn't an error here; chapter 26 checks for it.
"""

import ast
import inspect
import math
import textwrap
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import DTypeLike

from minihybrid.core.op import HybridError
from minihybrid.simt.checked import fresh, run_checked, shared_arrays
from minihybrid.simt.counts import Counts
from minihybrid.simt.errors import KernelError, LaunchError
from minihybrid.simt.lockstep import Run
from minihybrid.simt.numbers import EXTREMES
from minihybrid.simt.numbers import math as gpu_math
from minihybrid.simt.program import Source
from minihybrid.simt.rewrite import SUPPORTED, Rewritten


class Kernel(Source):
    """A kernel made by `jit`; `kernel[grid, block](arrays)` runs it for every thread.

    counts: the `Counts` of the last launch.
    """

    def __init__(self, function: Callable) -> None:
        self.python = function
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError):  # typed at Python's prompt, or not a function
            raise KernelError(
                f"kernel '{function.__name__}': its source cannot be read; "
                "write it into a file or a notebook's cell"
            ) from None
        tree = ast.increment_lineno(ast.parse(textwrap.dedent("".join(lines))), first - 1)
        super().__init__(tree, dict(enumerate(lines, first)))
        self.counts: Counts | None = None

    @cached_property
    def checked(self) -> tuple[Rewritten, Callable]:
        """The rewritten kernel with checked accesses, and its thread factory."""
        return self.made(self.names())

    def __call__(self, *_: Any) -> NoReturn:
        """Raise LaunchError: a kernel needs a grid and a block."""
        raise LaunchError(
            f"kernel '{self.name}' must be told for how many threads "
            f"it runs: {self.name}[blocks, threads_per_block](...)"
        )

    def __getitem__(self, launch: Any) -> "Launcher":
        if not isinstance(launch, tuple) or len(launch) != 2:
            raise LaunchError(
                f"kernel '{self.name}' needs a grid and a block, but got {launch!r}: "
                f"{self.name}[blocks, threads_per_block](...)"
            )
        return Launcher(self, *launch)

    def run(
        self, grid: int | tuple, block: int | tuple, arguments: Sequence, record: list | None = None
    ) -> Run:
        """Run the kernel; for `record`, see `run_checked`."""
        run = Run(self.name, self.text, grid, block, strict=False)
        values = self.arguments(arguments)
        rewritten, make = self.checked
        shared = shared_arrays(self.name, rewritten, self.names())
        self.counts = run_checked(run, rewritten, make, values, shared, record)
        return run

    def names(self) -> dict:
        """Resolve the function's names, with a GPU's `math`, `max` and `min`."""
        outside = inspect.getclosurevars(self.python)
        names = {**EXTREMES, **self.python.__globals__, **outside.nonlocals}
        return {name: gpu_math if value is math else value for name, value in names.items()}

    def argument(self, name: str, value: Any) -> Any:
        """Check and convert a contiguous array or a scalar."""
        if isinstance(value, float):
            return np.float64(value)
        if isinstance(value, (int, np.number, np.bool_)):
            return value
        if not isinstance(value, np.ndarray):
            raise LaunchError(
                f"kernel '{self.name}': argument {name} is a {type(value).__name__}, but a NumPy "
                "array or a number is needed"
            )
        if not value.flags.c_contiguous:
            raise LaunchError(
                f"kernel '{self.name}': the elements of argument {name} are not one after the "
                f"other in memory; pass np.ascontiguousarray({name})"
            )
        return value

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"


class Launcher(NamedTuple):
    """A kernel with its grid and block: `kernel[grid, block]`."""

    kernel: Kernel
    grid: tuple
    block: tuple

    def __call__(self, *arguments: Any) -> None:
        """Run the kernel."""
        self.kernel.run(self.grid, self.block, arguments)


def jit(function: Callable | None = None, device: bool = False) -> Callable | Kernel:
    """Turn a function into a kernel: `@cuda.jit`.

    device: whether it is a device function of scalars, for kernels to call.

    >>> @jit
    ... def double(a, out):
    ...     i = cuda.grid(1)
    ...     if i < a.size:
    ...         out[i] = a[i] * 2
    >>> double[1, 32](np.arange(3), out := np.zeros(3))
    >>> out
    array([0., 2., 4.])
    """
    if function is None:
        return lambda function: jit(function, device)
    return function if device else Kernel(function)


# -- arrays ----------------------------------------------------------------------------
class DeviceArray(np.ndarray):
    """An array on the simulated GPU: a NumPy array in host memory."""

    def copy_to_host(self) -> np.ndarray:
        """Copy to an ordinary NumPy array."""
        return np.array(self)


def to_device(array: np.ndarray) -> np.ndarray:
    """Copy an array to the device.

    >>> to_device([1, 2]).copy_to_host()
    array([1, 2])
    """
    return np.array(array).view(DeviceArray)


def device_array(shape: int | tuple, dtype: DTypeLike = "float64") -> np.ndarray:
    """Allocate an array on the device, filled with bytes of 255: NaN for floats.

    >>> device_array(2, "float32").copy_to_host()
    array([nan, nan], dtype=float32)
    """
    return fresh(shape, np.dtype(dtype)).view(DeviceArray)


def synchronize() -> None:
    """Wait for the device; here, all work is already complete."""


# -- names that only kernels can use ---------------------------------------------------
def __getattr__(name: str) -> "Outside":
    if name in SUPPORTED:
        return Outside(name)
    raise AttributeError(
        f"the simulator has no cuda.{name}; it has "
        + ", ".join(f"cuda.{other}" for other in (*SUPPORTED, "jit", "to_device", "device_array"))
    )


class Outside:
    """A name such as `cuda.grid`, which is only valid in kernels."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *_: Any) -> NoReturn:
        """Raise an error: there is no current thread."""
        raise HybridError(
            f"cuda.{self.name} belongs to the threads of a kernel; write "
            "it in a function with @cuda.jit, and launch that"
        )

    def __getattr__(self, name: str) -> "Outside":
        return Outside(f"{self.name}.{name}")
