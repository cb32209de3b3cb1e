"""Chapter 25. Fast simulation: kernels compiled by Numba, without checks.

Uses:    the source of a kernel.
Defines: `FastProgram`, which runs it as `Program` does.

A kernel without barriers becomes one compiled loop over all threads. One with barriers
becomes a compiled generator, with one instance for each thread of a block.
Limits:  no checks or counters; out-of-bounds accesses aren't detected, and `max` and
         `min` of NaN follow the CPU.
"""

import ast
import math
import operator
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from minihybrid.codegen.gpu.cuda import load4, store4
from minihybrid.core.op import HybridError
from minihybrid.simt.checked import fresh, shared_arrays
from minihybrid.simt.errors import Endless
from minihybrid.simt.lockstep import Run, endless, execute, run_blocks
from minihybrid.simt.numbers import CONSTRUCTORS
from minihybrid.simt.program import Program, device_names
from minihybrid.simt.rewrite import AXES, BLOCK, THREAD, Rewritten

OPTIONS: dict[str, Any] = {"error_model": "numpy"}
PLACES = BLOCK + THREAD


def updating(combine: Callable) -> Callable:
    """Return a function that updates an element of an array, and returns its old value.

    >>> a = [1, 2]
    >>> updating(max)(a, 1, 10), a
    (2, [1, 10])
    """

    def update(array: Any, index: int, value: Any) -> Any:
        old = array[index]
        array[index] = combine(old, value)
        return old

    return update


ACCESSES = {
    "atomic_add": updating(operator.add),
    "atomic_max": updating(max),
    "atomic_min": updating(min),
    "load4": load4,
    "store4": store4,
}


class FloatFloor(ast.NodeTransformer):
    """Replace `math.floor` by `np.floor`: on a CPU, Numba's returns an integer."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.Attribute:
        """Replace `math` in `math.floor` and `math.ceil`."""
        if ast.unparse(node) in ("math.floor", "math.ceil"):
            node.value = ast.copy_location(ast.Name("np", ast.Load()), node.value)
        return node


class FastProgram(Program):
    """A kernel compiled by Numba, from the same source as for `Program`.

    Raises:  HybridError if Numba is not installed.

    >>> text = '''
    ... def double(a: float32[4], out: float32[4]):
    ...     i = cuda.grid(1)
    ...     if i < 4:
    ...         out[i] = a[i] + a[i]
    ... '''
    >>> a, out = np.arange(4, dtype="float32"), np.empty(4, "float32")
    >>> FastProgram(text).run(1, 32, [a, out])
    >>> out
    array([0., 2., 4., 6.], dtype=float32)
    """

    def __init__(self, text: str, name: str | None = None) -> None:
        try:
            import numba
        except ImportError:
            raise HybridError(
                "the fast simulated GPU needs Numba, which is not "
                "installed; use simulated_gpu(fast=False)"
            ) from None
        super().__init__(text, name)
        self.jit = numba.njit(**OPTIONS)
        self.compiled_names = (
            {"math": math, "np": np}
            | {
                name: getattr(numba, constructor.__name__, constructor)
                for name, constructor in CONSTRUCTORS.items()
            }
            | {name: self.jit(function) for name, function in ACCESSES.items()}
            | device_names(ast.parse(text), self.jit)
        )

    @cached_property
    def kernel(self) -> tuple[Rewritten, Callable]:
        """The rewritten kernel, and its compiled per-thread function."""
        rewritten = self.rewritten()
        params = ", ".join(rewritten.params + [*rewritten.shared] + PLACES)
        tree = ast.parse(f"def {rewritten.name}({params}): pass")
        (thread,) = tree.body
        assert isinstance(thread, ast.FunctionDef)
        thread.body = rewritten.body or thread.body
        tree = ast.fix_missing_locations(FloatFloor().visit(tree))
        return rewritten, self.jit(execute(tree, self.name, self.text, self.compiled_names))

    @cached_property
    def launch(self) -> Callable:
        """The compiled loop over all threads of a kernel without barriers."""
        rewritten, kernel = self.kernel
        arrays = ", ".join([*rewritten.params, *rewritten.shared])
        loops = [
            f"for _{what}{axis} in range(_{extent}{axis}):"
            for what, extent in ("bg", "td")
            for axis in reversed(AXES)
        ]
        lines = [f"def launch({arrays}, {', '.join(BLOCK[3:])}):"]
        lines += [" " * (k + 1) + loop for k, loop in enumerate(loops)]
        lines.append(" " * 8 + f"kernel({arrays}, {', '.join(PLACES)})")
        names = {"kernel": kernel}
        exec("\n".join(lines), names)
        return self.jit(names["launch"])

    def run(self, grid: int | tuple, block: int | tuple, args: Sequence) -> None:
        """Run the kernel for every thread of a grid of blocks; see `Program.run`."""
        run = Run(self.name, self.text, grid, block)
        values = list(self.arguments(args).values())
        rewritten, kernel = self.kernel
        shared = [
            (shape, dtype) for _, shape, dtype in shared_arrays(self.name, rewritten, self.names)
        ]
        if not rewritten.barriers:
            places = *run.block, *run.grid, run.turns
            try:
                self.launch(*values, *(fresh(*one) for one in shared), *places)
            except Endless as error:
                raise endless(run, *error.args) from None
            return

        def make(*arguments: int | np.ndarray) -> Callable:
            return lambda *place: kernel(*arguments, *place)

        run_blocks(run, make, values, lambda: [fresh(*one) for one in shared], lambda: None)
