"""Chapter 25. Generated kernels on a simulated GPU.

Uses:    the source of a kernel, as generated for the target "gpu": one function, whose
         annotations define the dtype and size of each array.
Defines: `Program`, which runs it on NumPy arrays, with checks and counters.

The source's imports aren't executed: its names are bound to the simulator's, so neither
Numba nor a GPU is needed.
Not supported: compilation; see `simt.fast`.
"""

import ast
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from minihybrid.ops.loops import copied
from minihybrid.simt.checked import fresh, run_checked, shared_arrays
from minihybrid.simt.counts import Counts
from minihybrid.simt.device import device_names
from minihybrid.simt.errors import KernelError, LaunchError
from minihybrid.simt.floats import find_hidden, kind_of
from minihybrid.simt.lockstep import Run, execute, run_blocks
from minihybrid.simt.numbers import CONSTRUCTORS, EXTREMES, math
from minihybrid.simt.plain import PLAIN, plain
from minihybrid.simt.rewrite import Rewritten, find_kernel, maker, rewrite

NAMES = CONSTRUCTORS | EXTREMES | PLAIN | {"math": math}


class Program:
    """A kernel, parsed from its source.

    text: the module's source;
    name: the kernel's function; optional if there is only one.
    Raises:  KernelError if the source isn't such a kernel.

    >>> text = '''
    ... def double(a: float32[4], out: float32[4]):
    ...     i = cuda.grid(1)
    ...     if i < 4:
    ...         out[i] = a[i] + a[i]
    ... '''
    >>> a, out = np.arange(4, dtype="float32"), np.empty(4, "float32")
    >>> Program(text).run(1, 32, [a, out])
    double: 32 threads, 0 barriers per block
    array    space   loads stores atomics most/thread   bytes
    a        global      8      0       0           2      32
    out      global      0      4       0           1      16
    >>> out
    array([0., 2., 4., 6.], dtype=float32)
    """

    def __init__(self, text: str, name: str | None = None) -> None:
        tree = ast.parse(text)
        self.function = find_kernel(tree, name)
        self.name = self.function.name
        self.text = dict(enumerate(text.splitlines(), 1))
        self.params = [self.param(arg) for arg in self.function.args.args]
        self.names = NAMES | device_names(
            tree, lambda function: function, math=math, floor=math.floor
        )

    def param(self, arg: ast.arg) -> tuple[str, np.dtype, int | None]:
        """Return a parameter as (name, dtype, size or None for a scalar)."""
        match arg.annotation:
            case ast.Name(id=dtype) if dtype in CONSTRUCTORS:
                return arg.arg, np.dtype(CONSTRUCTORS[dtype].__name__), None
            case ast.Subscript(value=ast.Name(id=dtype), slice=ast.Constant(value=int(size))) if (
                dtype in CONSTRUCTORS
            ):
                return arg.arg, np.dtype(CONSTRUCTORS[dtype].__name__), size
        self.refuse(
            arg.lineno,
            f"parameter {arg.arg} needs an annotation: a dtype for "
            "a number, or float32[1000] for an array of 1000 elements",
        )

    def refuse(self, line: int, why: str) -> NoReturn:
        """Raise KernelError for a line of the source that kernels don't support."""
        raise KernelError(f"kernel '{self.name}', {self.line(line)}: {why}", self.name, line)

    def line(self, number: int) -> str:
        """Describe a line of the source for messages."""
        return f"line {number} (`{self.text[number].strip()}`)"

    @cached_property
    def checked(self) -> tuple[Rewritten, Callable]:
        """The rewritten kernel with checked accesses, and its thread factory."""
        rewritten, make = self.compiled(True)
        kinds = {name: kind_of(dtype) for name, dtype, _ in self.params}
        shared = {
            name: kind_of(dtype)
            for name, _, dtype in shared_arrays(self.name, rewritten, self.names)
        }
        find_hidden(self.function, kinds | shared, self)
        return rewritten, make

    @cached_property
    def plain(self) -> tuple[Rewritten, Callable]:
        """The rewritten kernel without checks, and its thread factory."""
        return self.compiled(False)

    @cached_property
    def vectors(self) -> set[str]:
        """The names of arrays with vector accesses of four elements."""
        return rewrite(copied(self.function), False, self.refuse).vectors

    def compiled(self, checked: bool) -> tuple[Rewritten, Callable]:
        """Rewrite and compile a copy of the definition."""
        rewritten = rewrite(copied(self.function), checked, self.refuse)
        return rewritten, execute(maker(rewritten), self.name, self.text, self.names)

    # -- running -----------------------------------------------------------------------
    def run(
        self, grid: int | tuple, block: int | tuple, args: Sequence, check: bool = True
    ) -> Counts | None:
        """Run the kernel for every thread of a grid of blocks.

        grid, block: integers or tuples of up to three;
        args:    a NumPy array or scalar for every parameter; arrays are modified;
        check:   whether to check and count accesses, which is slower.
        Returns: the `Counts`, or None without checks.
        Raises:  LaunchError, or an error of the kernel (see `simt.errors`).
        """
        run = Run(self.name, self.text, grid, block)
        values = self.arguments(args)
        rewritten, make = self.checked if check else self.plain
        shared = shared_arrays(self.name, rewritten, self.names)
        if check:
            return run_checked(run, rewritten, make, values, shared)
        run_blocks(
            run,
            make,
            map(plain, values.values()),
            lambda: [plain(fresh(shape, dtype)) for _, shape, dtype in shared],
            (lambda: None) if rewritten.barriers else None,
        )
        return None

    def arguments(self, args: Sequence) -> dict[str, Any]:
        """Return the arguments by name; arrays are cut to the annotated size."""
        if len(args) != len(self.params):
            raise LaunchError(
                f"kernel '{self.name}' takes {len(self.params)} arguments "
                f"({', '.join(name for name, *_ in self.params)}), but got {len(args)}"
            )
        return {
            param[0]: self.argument(value, *param)
            for value, param in zip(args, self.params, strict=True)
        }

    def argument(self, value: Any, name: str, dtype: np.dtype, size: int | None) -> Any:
        """Convert one argument for the kernel."""
        if size is None:
            return CONSTRUCTORS[dtype.name](value)
        if (
            not isinstance(value, np.ndarray)
            or value.dtype != dtype
            or value.ndim != 1
            or not value.flags.c_contiguous
            or value.size < size
        ):
            received = f"the type {type(value).__name__}"
            if isinstance(value, np.ndarray):
                gaps = "" if value.flags.c_contiguous else ", with gaps"
                received = f"{value.dtype} of shape {value.shape}{gaps}"
            raise LaunchError(
                f"kernel '{self.name}': argument {name} must be a flat array of NumPy, of at least "
                f"{size} {dtype}, but got {received}"
            )
        return value[:size]
