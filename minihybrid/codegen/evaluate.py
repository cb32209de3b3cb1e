"""The reference interpreter of the loop IR, which runs kernels with NumPy scalars.

Defines: `evaluate`, the oracle of all printers; `MEANING`, the semantics of operations.

Integers wrap around; floats round after each operation. `fma` rounds twice here, while
printers may round once. Work buffers are initialized to NaN. It is slow by design.
"""

import math
import operator
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from minihybrid.codegen import ir
from minihybrid.core.op import HybridError


def halves(a: np.ndarray) -> np.generic:
    """Sum a vector by halving, the order that all printers use."""
    while len(a) > 1:
        a = a[: len(a) // 2] + a[len(a) // 2 :]
    return a[0]


def least(a: Any, b: Any) -> Any:
    """Return b if it is smaller, else a; a NaN in a is kept."""
    return np.where(b < a, b, a)[()]


def largest(a: Any, b: Any) -> Any:
    """Return b if it is larger, else a."""
    return np.where(b > a, b, a)[()]


MATH = {  # for float64, as in C and JavaScript
    name: getattr(
        np,
        {"pow": "power", "atan2": "arctan2"}.get(
            name, name.replace("a", "arc", 1) if name[0] == "a" else name
        ),
    )
    for name in "exp expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh "
    "acosh atanh cbrt hypot atan2 pow".split()
}
MEANING: dict[str, Callable] = (
    ir.SIGNS
    | ir.COMPARISONS
    | MATH
    | {
        "min": least,
        "max": largest,
        "neg": operator.neg,
        "abs": np.abs,
        "and": np.logical_and,
        "or": np.logical_or,
        "not": np.logical_not,
        "sqrt": np.sqrt,
        "floor": np.floor,
        "ceil": np.ceil,
        "copysign": np.copysign,
        "fmod": np.fmod,
        "fma": lambda a, b, c: a * b + c,
        "add_up": operator.add,
        "multiply_up": operator.mul,
        "total": halves,
        "lane": lambda a, i: a[int(i)],
    }
)


class _Returned(Exception):
    """Carries the result of a `Return`."""


class _Broken(Exception):
    """Signals a `Break`."""


def evaluate(kernel: ir.Kernel, *values: Any, functions: dict | None = None) -> Any:
    """Run a kernel and return its result; arrays are flat or have the buffers' shapes.

    functions: name -> kernel, for functions that it calls.
    Raises:  IndexError for an index out of bounds.
    """
    names: dict = {}
    memory: dict = {}
    for param, value in zip(kernel.params, values, strict=True):
        if isinstance(param, ir.Buffer):
            memory[param.name] = np.reshape(value, -1, copy=False)
        else:
            names[param] = number(value, param.type)
    with np.errstate(all="ignore"):
        try:
            Run(memory, names, functions or {}).body(kernel.body)
        except _Returned as done:
            return done.args[0]
    return None


def number(value: Any, type: ir.Type) -> Any:
    """Convert a scalar to a type; an index is a Python int."""
    if type == ir.INDEX:
        return int(value)
    dtype = np.dtype(type.kind)
    if dtype.kind in "iu" and isinstance(value, float | np.floating):
        return whole(value, dtype)
    return np.asarray(value).astype(dtype)[()]


def whole(value: Any, dtype: np.dtype) -> Any:
    """Convert a float to an integer via 32 or 64 bits; out of range gives the minimum."""
    wide = np.int64 if dtype.itemsize == 8 or dtype.name == "uint32" else np.int32
    ends = np.iinfo(wide)
    fits = float(ends.min) <= value < -float(ends.min)
    return wide(int(value) if fits else ends.min).astype(dtype)


class Run:
    """The state of an execution: buffers and variables."""

    def __init__(self, memory: dict, names: dict, functions: dict) -> None:
        self.memory, self.names, self.functions = memory, names, functions

    def body(self, body: tuple) -> None:
        """Run statements."""
        for s in body:
            match s:
                case ir.Let(var, value):
                    self.names[var] = self.value(value)
                case ir.Store(buffer, index, ir.Call("masked", (value, *mask), _)):
                    places, values = (
                        self.masked(buffer, index, value.type.lanes, mask),
                        self.value(value),
                    )
                    for lane, place in places:
                        self.memory[buffer.name][place] = values[lane]
                case ir.Store(buffer, index, value):
                    place = self.place(buffer, index, value.type.lanes)
                    self.memory[buffer.name][place] = self.value(value)
                case ir.For(var, start, stop, inner, step, parallel):
                    order = range(self.value(start), self.value(stop), step)
                    with suppress(_Broken):
                        for i in reversed(order) if parallel else order:
                            self.names[var] = i
                            self.body(inner)
                case ir.While(test, inner):
                    with suppress(_Broken):
                        while self.value(test):
                            self.body(inner)
                case ir.If(test, inner, orelse):
                    self.body(inner if self.value(test) else orelse)
                case ir.Return(value):
                    raise _Returned(self.value(value))
                case ir.Break():
                    raise _Broken

    def place(self, buffer: ir.Buffer, index: tuple, lanes: int) -> slice | int:
        """Return the position of elements in a buffer's flat memory."""
        at, flat = self.value(buffer.place(index)), self.memory[buffer.name]
        if not 0 <= at <= at + lanes <= len(flat):
            raise IndexError(f"{buffer.name}: element {at} of {len(flat)}")
        return slice(at, at + lanes) if lanes > 1 else at

    def masked(self, buffer: ir.Buffer, index: tuple, lanes: int, mask: Any) -> list:
        """Return (lane, position) of the active lanes."""
        first, last = map(self.value, mask)
        lanes_on = range(max(first, 0), min(last, lanes))
        return [(i, self.place(buffer, (index[-1] + i,), 1)) for i in lanes_on]

    def value(self, e: ir.Expr) -> Any:
        """Evaluate an expression; `select`, `and` and `or` are lazy."""
        match e:
            case ir.Const(value, type):
                return value if type == ir.INDEX else number(value, type)
            case ir.Var():
                return self.names[e]
            case ir.Load(buffer, index, lanes):
                loaded = self.memory[buffer.name][self.place(buffer, index, lanes)]
                return loaded.copy() if lanes > 1 else loaded
            case ir.Sum(pairs):
                return sum(n * math.prod(map(self.value, key)) for key, n in pairs)
            case ir.Call("masked", (ir.Load(buffer, index, lanes), *mask), type):
                out = np.zeros(lanes, type.kind)
                for lane, place in self.masked(buffer, index, lanes, mask):
                    out[lane] = self.memory[buffer.name][place]
                return out
            case ir.Call("table", (at, *items), _):
                return self.value(items[self.value(at)])
            case ir.Call("select", (test, yes, no), type) if type.lanes == 1:
                return self.value(yes if self.value(test) else no)
            case ir.Call("and", (a, b), ir.Type(_, 1)):
                return self.value(a) and self.value(b)
            case ir.Call("or", (a, b), ir.Type(_, 1)):
                return self.value(a) or self.value(b)
        assert isinstance(e, ir.Call)
        name, args, type = e.name, [self.value(a) for a in e.args], e.type
        if name == "select":
            return np.where(*args)
        if name == "cast":
            return (
                np.array([number(a, type) for a in args[0]])
                if type.lanes > 1
                else number(args[0], type)
            )
        if name == "bitcast":
            return np.asarray(args[0]).view(type.kind)[()]
        if name == "splat":
            return np.full(type.lanes, args[0])
        if name in self.functions:
            return evaluate(self.functions[name], *args, functions=self.functions)
        if name in ("<<", ">>"):
            args[1] = np.asarray(args[1]).astype(np.asarray(args[0]).dtype)
        if name in ("//", "%") and type != ir.INDEX and not np.all(args[1]):
            raise HybridError(f"evaluate: {e} divides by 0")
        result = MEANING[name](*args)
        return result if type == ir.INDEX else np.asarray(result).astype(type.kind)[()]
