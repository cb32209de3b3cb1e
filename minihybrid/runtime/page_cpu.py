"""Target "cpu" in a browser: kernels in WebAssembly that run in Pyodide's memory.

Only compilation differs: graph, kernels, source and memory plan are those of a laptop, so
whatever a chapter says about a plan holds in the page as well.

Each launch becomes a kernel of the loop IR, and all kernels of a plan one side module, which
`ctypes.CDLL` loads. A launch without such a kernel, or all of them where modules can't be
loaded, run on NumPy by the operators' eager functions.
Limits: plans don't share kernels.
"""

import ctypes
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from itertools import count, groupby, islice
from typing import Any

import numpy as np

from minihybrid.codegen.bytecode import ARENA, ARRAY, Operand, in_turns, is_taken, n_calls
from minihybrid.codegen.cpu.objects import make_runner
from minihybrid.codegen.cpu.target import Source
from minihybrid.core.graph import evaluate_node
from minihybrid.core.op import HybridError
from minihybrid.core.pipeline import Job
from minihybrid.core.plan import ActivePlan, Plan
from minihybrid.core.targets import TARGETS
from minihybrid.runtime.tiers import CPU as COMPILED
from minihybrid.runtime.tiers import SwappingBinding, waiting

MODULES = count()  # the linker identifies a module by its file name


@cache
def compiler() -> Any:
    """Return the module that builds side modules; `None` if none can be loaded."""
    from minihybrid.codegen import side_module

    return side_module if side_module.is_page() else None


@cache
def scratch(nbytes: int) -> np.ndarray:
    """Return scratch memory, shared by kernels, which run one at a time."""
    return np.empty(nbytes, np.uint8)


def compiled(source: Source) -> tuple[list, dict[str, str]]:
    """Return ([a `Compiled` or `None` per launch], {launch without one: reason}).

    The iterations of a loop are compiled if all of its launches are.
    """
    from minihybrid.codegen.lower import step_of
    from minihybrid.codegen.schedule import scheduled
    from minihybrid.codegen.side_module import Compiled

    out: list = []
    reasons: dict[str, str] = {}
    for launch in source.launches:
        try:
            kernel, _, work = step_of(launch.node)
            size = 1 << (work - 1).bit_length() if work else 0
            address = scratch(size).ctypes.data if work else 0
            out.append(Compiled(launch, scheduled(kernel), address))
        except (HybridError, AttributeError) as error:
            out.append(None)
            reasons[launch.label] = str(error)
        body = slice(len(out) - launch.body, None)
        if launch.turns and None in out[body]:
            out[body] = [None] * launch.body
    return out, reasons


def load(source: Source) -> Callable:
    """Return a plan's function, with the arguments of a compiled one:
    `run(*arrays, arena, table, key, until, shared, thread)`."""
    return loaded(source)[0]


def loaded(source: Source) -> tuple[Callable, dict[str, str]]:
    """Return (the function of a plan, {launch that runs on NumPy: reason})."""
    launches: list = [None] * len(source.launches)
    reasons: dict[str, str] = {}
    if compiler():
        launches, reasons = compiled(source)
    groups = [
        (key, [*group])
        for key, group in groupby(range(len(launches)), lambda i: launches[i] is None)
    ]
    natives = [[launches[i] for i in group] for is_numpy, group in groups if not is_numpy]
    functions = iter(linked(natives, source.n_arrays) if natives else ())
    parts = [
        (
            Interpreter(source, group) if is_numpy else next(functions),
            n_calls([source.launches[i] for i in group]),
        )
        for is_numpy, group in groups
    ]
    if len(parts) == 1:
        return parts[0][0], reasons

    def run(*args: Any) -> bool:
        *others, until, shared, thread = args
        for part, n in parts:
            if part(*others, min(until, n), shared, thread) is False:
                return False
            until = max(until - n, 0)
        return True

    return run, reasons


def linked(parts: list, n_arrays: int) -> list[Callable]:
    """Link the parts of a plan; return them as built-in functions."""
    path = os.path.join(tempfile.gettempdir(), f"minihybrid{next(MODULES)}.so")
    with open(path, "wb") as file:
        file.write(compiler().side_module(parts, n_arrays))
    library = ctypes.CDLL(path)
    os.remove(path)
    addresses = [ctypes.cast(library[f"part{i}"], ctypes.c_void_p).value for i in range(len(parts))]
    return [make_runner(address, np.zeros(0, np.uint32)) for address in addresses]


class Interpreter:
    """Runs launches of a plan with NumPy, by the operators' eager functions."""

    def __init__(self, source: Source, launches: list[int]) -> None:
        self.n_arrays = source.n_arrays
        self.launches = [source.launches[i] for i in launches]

    def __call__(self, *args: Any) -> None:
        """Run the first `until` launches, hidden from profilers."""
        profiler = sys.getprofile()
        if not callable(profiler):  # there is none, or cProfile's, which can't be put back
            self.run(*args)
            return
        sys.setprofile(None)  # machine code is invisible to it, too
        try:
            self.run(*args)
        finally:
            sys.setprofile(profiler)

    def run(self, *args: Any) -> None:
        """Run the first `until` launches."""
        arrays = args[: self.n_arrays]
        arena, table, key, until, _, _ = args[self.n_arrays :]

        def at(operand: Operand, iteration: int, spec: Any) -> np.ndarray:
            what, which, after, further = operand
            after += iteration * further
            if what == ARENA:
                piece = arena[which + after :][: spec.nbytes].view(spec.dtype)
            elif what == ARRAY:
                start = after // spec.dtype.itemsize
                piece = arrays[which].reshape(-1)[start : start + spec.size]
            else:
                raw = (ctypes.c_uint8 * spec.nbytes).from_address(int(table[which]) + after)
                piece = np.frombuffer(raw, spec.dtype, spec.size)
            return piece.reshape(spec.shape)

        for launch, iteration in islice(in_turns(self.launches), until):
            if not is_taken(launch, iteration, at):
                continue
            node, operands = launch.node, launch.operands
            specs = [n.specs[i] for n, i in node.inputs]
            values = [at(w, iteration, s) for w, s in zip(operands, specs, strict=False)]
            outs = evaluate_node(node, values, key)
            for operand, spec, out in zip(operands[len(specs) :], node.specs, outs, strict=False):
                at(operand, iteration, spec)[...] = out


def runner(plan: Plan) -> tuple[Callable, Callable]:
    """Return (function, run) of a plan; its note names the launches that run on NumPy."""
    function, reasons = loaded(plan.made)
    if reasons:
        why = next(iter(reasons.values()))
        plan.target_note = f"NumPy computes {', '.join(reasons)}: {why}"
    return function, plan._runner(function)


class SecondCall(ActivePlan):
    """A plan that runs on NumPy the first time and is compiled at the second call.

    Compiling takes as long as thousands of calls, and many plans are called only once. With
    `wait` or MINIHYBRID_WAIT=1, it is compiled at once."""

    calls = 0

    def _first(self, job: Job, wait: bool | None) -> Plan:
        self.settled = (waiting() if wait is None else wait) is True
        return Plan.of(job)

    def bind(self, arrays: dict[str, np.ndarray]) -> SwappingBinding:
        """Bind the plan to its parameters."""
        return SwappingBinding(self, arrays)

    def first(self, arrays: dict[str, np.ndarray]) -> tuple[Callable, Any]:
        """Return the first tier's (function, table)."""
        launches = [*range(len(self.plan.made.launches))]
        run = self.plan._runner(Interpreter(self.plan.made, launches))
        return run, self.plan.bind([arrays[name] for name in self.plan.params])

    def ask(self) -> bool:
        """Return whether this call should run the compiled plan."""
        self.calls += 1
        self.settled = self.calls > 1
        return self.settled


CPU = COMPILED
if sys.platform == "emscripten":  # Pyodide, where Numba's compiler is missing
    CPU = CPU._replace(load=load, runner=runner, tiers=SecondCall)
TARGETS["cpu"] = CPU
