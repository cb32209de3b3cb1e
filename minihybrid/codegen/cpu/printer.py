"""The Numba printer: loop IR as Python source for the engine's compiler.

Defines: `source`, the module of a kernel; `compiled`, the kernel as a Python function.

Vectors are values with operators (`codegen/cpu/vector.py`). A kernel with a parallel loop
runs in phases with a barrier between them:

    for i in 0 .. 8:            if phase == 0:
        ...                         for i in range(8): ...
    for j in 0 .. n, parallel:  if phase == 1:
        ...                         for j in range(n * part // parts, n * (part + 1) // parts): ...

Limits: no bounds checks; vectors of float32 and int32 only.
"""

import ctypes
import keyword
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, reduce
from typing import Any, NoReturn

import numpy as np

from minihybrid.codegen.check import verify
from minihybrid.codegen.cpu.objects import load_kernels
from minihybrid.codegen.cpu.target import header
from minihybrid.codegen.evaluate import MATH
from minihybrid.codegen.ir import (
    COMPARISONS,
    INDEX,
    Break,
    Buffer,
    Call,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Store,
    Sum,
    Type,
    Var,
    While,
    sum_text,
)
from minihybrid.core.op import HybridError
from minihybrid.ops.cpu.machine import threads

IMPORTS = {  # module -> names that generated source may use
    "numba": "boolean float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    "minihybrid.codegen.cpu.flat": "kernel",
    "minihybrid.codegen.cpu.scalar": "add_up as_bits as_float multiply_up root signed",
    "minihybrid.codegen.cpu.vector": "choose fma load_lanes splat_lanes store total",
    "minihybrid.codegen.device_math": "INF NAN",
}
TAKEN = {*" ".join(IMPORTS.values()).split(), "np", "math", "range", "abs", "min", "max"}
SCALAR = {"sqrt": "root", "copysign": "signed", "fmod": "math.fmod", "neg": "-"}
SCALAR |= {name: name for name in ("add_up", "multiply_up", "abs", "fma", "min", "max")}
SCALAR |= {name: f"np.{name}" for name in ("floor", "ceil")}
SCALAR |= {name: f"math.{name}" for name in MATH if name != "cbrt"}
VECTOR = {"add_up": "+", "multiply_up": "*", "fma": "fma", "total": "total", "sqrt": "root"}
INFIX = {*COMPARISONS, *"+ - * / // % & | ^ << >>".split()}


def spelled(name: str) -> str:
    """Return a valid identifier for a name."""
    return f"{name}_" if name in TAKEN or keyword.iskeyword(name) else name


def type_name(type: Type) -> str:
    """Return Numba's name of a type."""
    return {"index": "int64", "bool": "boolean"}.get(type.kind, type.kind)


def phases(kernel: Kernel) -> list[tuple]:
    """Split a kernel's statements at barriers: each phase is one parallel loop, or the rest."""
    out: list = []
    for s in kernel.body:
        is_shared = isinstance(s, For) and s.parallel
        if out and not is_shared and not out[-1][1]:
            out[-1][0].append(s)
        else:
            out.append(([s], is_shared))
    return [(tuple(body), is_shared) for body, is_shared in out]


def source(kernel: Kernel) -> str:
    """Return the source of a kernel's module.

    >>> from minihybrid.codegen.ir import F32, const
    >>> a, out = Buffer("a", "float32", (8,)), Buffer("out", "float32", (8,), "out")
    >>> i = Var("i", INDEX)
    >>> store = Store(out, (i,), Call("sqrt", (a[i],), F32))
    >>> text = source(Kernel("k", (a, out), (For(i, const(0), const(8), (store,)),)))
    >>> print(text[text.index("@"):])
    @kernel(float32[::1], float32[::1])
    def k(a, out):
        for i in range(8):
            out[i] = root(a[i])
    <BLANKLINE>
    """
    params = [spelled(p.name) for p in kernel.params]
    kinds = [
        f"{type_name(Type(p.kind))}[::1]" if isinstance(p, Buffer) else type_name(p.type)
        for p in kernel.params
    ]
    lines = [*Lines(kernel).block(kernel.body, 1)]
    if any(is_shared for _, is_shared in phases(kernel)):
        params, kinds, lines = [*params, "phase", "part", "parts"], [*kinds, *["int64"] * 3], []
        for i, (body, _) in enumerate(phases(kernel)):
            lines += [f"    if phase == {i}:", *Lines(kernel).block(body, 2)]
    head = [f"@kernel({', '.join(kinds)})", f"def {spelled(kernel.name)}({', '.join(params)}):"]
    text = "\n".join([*head, *(lines or ["    pass"])])
    return f"{header(text, '.', IMPORTS)}\n\n{text}\n"


class Lines:
    """Generates the lines of one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def refuse(self, what: str) -> NoReturn:
        """Raise an error that names the kernel."""
        raise HybridError(f"kernel {self.kernel.name}: the Numba printer has no {what}")

    def block(self, body: tuple, depth: int) -> Iterator[str]:
        """Yield the lines of statements."""
        pad = "    " * depth
        for s in body:
            match s:
                case Let(var, value):
                    yield f"{pad}{spelled(var.name)} = {self.text(value)}"
                case Store(buffer, index, value) if value.type.lanes > 1:
                    at, value = self.text(buffer.place(index)), self.text(value)
                    yield f"{pad}store({spelled(buffer.name)}, {at}, {value})"
                case Store(buffer, index, value):
                    place = f"{spelled(buffer.name)}[{self.text(buffer.place(index))}]"
                    yield f"{pad}{place} = {self.text(value)}"
                case For():
                    yield f"{pad}for {spelled(s.var.name)} in range({self.ends(s)}):"
                    yield from self.block(s.body, depth + 1)
                case While(test, inner):
                    yield f"{pad}while {self.text(test)}:"
                    yield from self.block(inner, depth + 1)
                case If(test, inner, orelse):
                    yield f"{pad}if {self.text(test)}:"
                    yield from self.block(inner, depth + 1)
                    if orelse:
                        yield f"{pad}else:"
                        yield from self.block(orelse, depth + 1)
                case Break():
                    yield f"{pad}break"
                case _:
                    self.refuse(f"statement {type(s).__name__}")

    def ends(self, s: For) -> str:
        """Return the arguments of `range`; for a parallel loop, those of a thread's chunk."""
        start, length = self.text(s.start), s.stop - s.start
        if s.parallel and s.step == 1:
            size, first = self.inside(length), f"{start} + " * (start != "0")
            return ", ".join(f"{first}{size} * {part} // parts" for part in ("part", "(part + 1)"))
        ends = [start] * (start != "0" or s.step != 1) + [self.text(s.stop)]
        return ", ".join(ends + [str(s.step)] * (s.step != 1))

    def text(self, e: Expr) -> str:
        """Return the source of an expression."""
        match e:
            case Const(value, type) if type == INDEX:
                return str(value)
            case Const(value, type):
                if isinstance(value, float) and not math.isfinite(value):
                    value = "NAN" if value != value else "-INF" if value < 0 else "INF"
                return f"{type_name(type)}({value})"
            case Var(name, _):
                return spelled(name)
            case Sum(pairs):
                return sum_text(pairs, self.inside)
            case Load(buffer, index, 1):
                return f"{spelled(buffer.name)}[{self.text(buffer.place(index))}]"
            case Load(buffer, index, lanes):
                return (
                    f"load_lanes({spelled(buffer.name)}, {self.text(buffer.place(index))}, {lanes})"
                )
            case Call(name, args, type) if type.lanes > 1 or args[0].type.lanes > 1:
                return self.of_vectors(name, args, type)
            case Call("select", (test, a, b), _):
                return f"({self.text(a)} if {self.text(test)} else {self.text(b)})"
            case Call("and" | "or" as name, (a, b), _):
                return f"{self.inside(a)} {name} {self.inside(b)}"
            case Call("not", (a,), _):
                return f"not {self.inside(a)}"
            case Call("cast", (a,), type):
                return f"{type_name(type)}({self.text(a)})"
            case Call("bitcast", (a,), type) if {a.type.kind, type.kind} == {"int32", "float32"}:
                return f"{'as_float' if type.kind == 'float32' else 'as_bits'}({self.text(a)})"
            case Call(name, (a, b), type) if name in INFIX:
                text = f"{self.inside(a)} {name} {self.inside(b)}"
                is_whole = type != INDEX and name not in COMPARISONS and "int" in type.kind
                return f"{type_name(type)}({text})" if is_whole else text  # Numba makes int64 of it
            case Call(name, args, _) if name in SCALAR:
                return f"{SCALAR[name]}({', '.join(map(self.text, args))})"
        self.refuse(f"operation {e}")

    def of_vectors(self, name: str, args: tuple, type: Type) -> str:
        """Return the source of a vector operation."""
        match name, args:
            case "splat", (a,):
                return f"splat_lanes({self.text(a)}, {type.lanes})"
            case "add_up", (a, Call("*", (x, y), _)):
                return f"fma({self.text(x)}, {self.text(y)}, {self.text(a)})"
            case "select", _:
                return f"choose({', '.join(map(self.text, args))})"
            case _, (a, b) if VECTOR.get(name, name) in {*COMPARISONS, *"+-*/"}:
                return f"{self.inside(a)} {VECTOR.get(name, name)} {self.inside(b)}"
        if name not in VECTOR:
            self.refuse(f"{name} of vectors: leave that loop scalar")
        return f"{VECTOR[name]}({', '.join(map(self.text, args))})"

    def inside(self, e: Expr) -> str:
        """Return a subexpression, in parentheses unless it is a name or a call."""
        text = self.text(e)
        is_word = isinstance(e, Const | Var | Load) or text.endswith(")") and text[0] != "("
        is_bare = is_word and not isinstance(e, Sum) and not (isinstance(e, Call) and " " in text)
        return text if is_bare else f"({text})"


@cache
def pool() -> ThreadPoolExecutor:
    """Return the thread pool for parallel loops."""
    return ThreadPoolExecutor(threads(), thread_name_prefix="minihybrid loops")


def compiled(kernel: Kernel) -> Callable[..., None]:
    """Compile a kernel to a function of its arrays and lengths; it allocates work buffers.

    Raises:  KernelError for an invalid kernel; HybridError for an argument of another type
             or shape, or an operation without Numba source.
    """
    verify(kernel)
    text, steps = source(kernel), phases(kernel)
    address = load_kernels({text: kernel.name})[text]
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
    takes = [p for p in kernel.params if not isinstance(p, Buffer) or p.space != "work"]
    n_parts = threads() if any(is_shared for _, is_shared in steps) else 1

    def call(*values: Any) -> None:
        if len(values) != len(takes):
            raise HybridError(
                f"kernel {kernel.name}: takes {len(takes)} arguments, got {len(values)}"
            )
        lengths = {p: v for p, v in zip(takes, values, strict=True) if isinstance(p, Var)}
        arrays = {p: v for p, v in zip(takes, values, strict=True) if isinstance(p, Buffer)}
        for buffer, array in arrays.items():
            check_array(kernel, buffer, array, lengths)
        sizes = {p: size_of(p, lengths) for p in kernel.buffers if p not in arrays}
        works = {p: np.empty((n_parts, n), p.kind) for p, n in sizes.items()}
        words = np.zeros((len(steps), n_parts, len(kernel.params) + 3), np.uint64)
        for i, p in enumerate(kernel.params):
            if p in works:
                words[:, :, i] = [row.ctypes.data for row in works[p]]
            else:
                words[:, :, i] = arrays[p].ctypes.data if p in arrays else lengths[p]
        words[:, :, -3] = np.arange(len(steps))[:, None]
        words[:, :, -2], words[:, :, -1] = np.arange(n_parts), n_parts
        for (_, is_shared), rows in zip(steps, words, strict=True):
            if is_shared and n_parts > 1:
                list(pool().map(function, [row.ctypes.data for row in rows]))
            else:
                rows[0, -1] = 1
                function(rows[0].ctypes.data)

    return call


def size_of(buffer: Buffer, lengths: dict) -> int:
    """Return a buffer's number of elements for given lengths."""

    def value(e: Any) -> int:
        match e:
            case Const(n, _):
                return n
            case Sum(pairs):
                return sum(n * math.prod(map(value, key)) for key, n in pairs)
        return lengths[e] if isinstance(e, Var) else e

    return reduce(lambda n, m: n * m, map(value, buffer.shape), 1)


def check_array(kernel: Kernel, buffer: Buffer, array: Any, lengths: dict) -> None:
    """Raise HybridError unless an array matches a buffer."""
    size = size_of(buffer, lengths)
    if not isinstance(array, np.ndarray) or array.dtype != np.dtype(buffer.kind):
        kind = getattr(array, "dtype", type(array).__name__)
        raise HybridError(f"kernel {kernel.name}: {buffer.name} is {kind}, not {buffer.kind}")
    if array.size != size or not array.flags.c_contiguous:
        raise HybridError(
            f"kernel {kernel.name}: {buffer.name} has {array.size} elements, not {size} "
            "in one contiguous piece"
        )
