"""Chapter 25. Generated kernels on a simulated GPU.

Uses:    the source of a kernel, as generated for the target "gpu": one function, whose
         annotations define the dtype and size of each array.
Defines: `Program`, which runs it on NumPy arrays, with checks and counters; `Source`, which it
         shares with `simt.cuda`; `device_names`, what a kernel imports.

The source's imports aren't executed: its names are bound to the simulator's, so neither
Numba nor a GPU is needed. Those from `minihybrid.codegen.device_math` are rebuilt with another
`math`.
Not supported: compilation; see `simt.fast`.
"""

import ast
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

import minihybrid.codegen.device_math as device
from minihybrid.ops.loops import copied
from minihybrid.simt.checked import run_checked, shared_arrays
from minihybrid.simt.counts import Counts
from minihybrid.simt.errors import KernelError, LaunchError, Lines
from minihybrid.simt.floats import find_hidden, kind_of
from minihybrid.simt.lockstep import Run, execute
from minihybrid.simt.memory import ACCESSES
from minihybrid.simt.numbers import CONSTRUCTORS, EXTREMES, math
from minihybrid.simt.rewrite import Rewritten, find_kernel, maker

NAMES = CONSTRUCTORS | EXTREMES | {"math": math}


def device_names(tree: ast.Module, make: Callable, **names: Any) -> dict:
    """Return what a kernel's source imports from the device functions, by name.

    make, names: as for `compiled` of that module: a transform of each function, and
                 substitutes for names that they use.

    >>> tree = ast.parse("from minihybrid.codegen.device_math import INF, cbrt")
    >>> device_names(tree, lambda function: function)
    {'INF': inf, 'cbrt': <function cbrt at ...>}
    """
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == device.__name__
        for alias in node.names
    }
    functions = vars(device) | device.compiled(make, **names) if imported else {}
    return {name: functions[name] for name in sorted(imported)}


class Source(Lines):
    """The definition of a kernel: its syntax tree, and the text of its lines by number."""

    def __init__(self, tree: ast.Module, text: dict[int, str], name: str | None = None) -> None:
        self.function = find_kernel(tree, name)
        super().__init__(self.function.name, text)

    def refuse(self, line: int, why: str) -> NoReturn:
        """Raise KernelError for a line of the source that kernels don't support."""
        raise self.error(KernelError, line, why)

    def rewritten(self) -> Rewritten:
        """Rewrite a copy of the definition."""
        return Rewritten(copied(self.function), self.refuse)

    def made(self, names: dict) -> tuple[Rewritten, Callable]:
        """Return the rewritten kernel with checked accesses, and its thread factory."""
        rewritten = self.rewritten()
        tree = maker(rewritten)
        return rewritten, execute(tree, self.name, self.text, names | ACCESSES)

    def arguments(self, args: Sequence) -> dict[str, Any]:
        """Return the arguments by name, checked and converted."""
        names = [arg.arg for arg in self.function.args.args]
        if len(args) != len(names):
            raise LaunchError(
                f"kernel '{self.name}' takes {len(names)} arguments "
                f"({', '.join(names)}), but got {len(args)}"
            )
        return {name: self.argument(name, arg) for name, arg in zip(names, args, strict=True)}

    def argument(self, name: str, value: Any) -> Any:
        """Check and convert one argument."""
        raise NotImplementedError


class Program(Source):
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
        super().__init__(tree, dict(enumerate(text.splitlines(), 1)), name)
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

    @cached_property
    def checked(self) -> tuple[Rewritten, Callable]:
        """The rewritten kernel with checked accesses, and its thread factory."""
        rewritten, make = self.made(self.names)
        kinds = {name: kind_of(dtype) for name, dtype, _ in self.params}
        shared = {
            name: kind_of(dtype)
            for name, _, dtype in shared_arrays(self.name, rewritten, self.names)
        }
        find_hidden(self.function, kinds | shared, self)
        return rewritten, make

    @cached_property
    def vectors(self) -> set[str]:
        """The names of arrays with vector accesses of four elements."""
        return self.rewritten().vectors

    # -- running -----------------------------------------------------------------------
    def run(self, grid: int | tuple, block: int | tuple, args: Sequence) -> Counts | None:
        """Run the kernel for every thread of a grid of blocks.

        grid, block: integers or tuples of up to three;
        args:    a NumPy array or scalar for every parameter; arrays are modified.
        Returns: the `Counts`; None from a `FastProgram`, which doesn't count.
        Raises:  LaunchError, or an error of the kernel (see `simt.errors`).
        """
        run = Run(self.name, self.text, grid, block)
        values = self.arguments(args)
        rewritten, make = self.checked
        shared = shared_arrays(self.name, rewritten, self.names)
        return run_checked(run, rewritten, make, values, shared)

    def argument(self, name: str, value: Any) -> Any:
        """Convert one argument; an array is cut to the annotated size."""
        _, dtype, size = next(param for param in self.params if param[0] == name)
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
