"""The loop IR: kernels as data, rewritten by schedules, checked, and printed by back ends.

Defines: `Kernel` and its statements and typed expressions; their text; traversal and
         rewriting.

Statements are `For While If Let Store Break Return`, expressions `Const Var Load Call` and
`Sum`. A `Sum` is index arithmetic: a polynomial in normal form. Expressions are interned
(hash-consed): equal ones are one object. A length is an integer, or a `Var` that is an
argument.
Not supported: pointers, and overlapping buffers.
"""

import math
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn, Self
from weakref import WeakValueDictionary

import numpy as np

from minihybrid.core.op import HybridError


class Type(NamedTuple):
    """The type of an expression: a NumPy dtype or "index", and the number of vector lanes."""

    kind: str
    lanes: int = 1

    def __str__(self) -> str:
        return self.kind + f"x{self.lanes}" * (self.lanes > 1)

    def of(self, kind: str) -> "Type":
        """Return the type of another kind with as many lanes."""
        return Type(kind, self.lanes)


INDEX, BOOL, F32 = Type("index"), Type("bool"), Type("float32")
COMPARISONS: dict[str, Callable] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}
SIGNS: dict[str, Callable] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": np.true_divide,
    "//": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
}


# -- expressions -----------------------------------------------------------------------
class Expr:
    """An interned expression: equality is identity, and hashing is cheap."""

    __slots__ = ("__weakref__",)
    known: WeakValueDictionary = WeakValueDictionary()

    def __new__(cls, *fields: Any) -> Self:
        """Return the unique expression with these fields."""
        key = cls, *(repr(f) if isinstance(f, float) else f for f in fields)
        node: Any = Expr.known.get(key)
        if node is None:
            node = object.__new__(cls)
            for name, field in zip(cls.__slots__, fields, strict=True):
                object.__setattr__(node, name, field)
            Expr.known[key] = node
        return node

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("expressions are not changed; make another")

    @property
    def type(self) -> Type:
        """The type; each subclass defines it."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return text(self)

    def __add__(self, other: "Expr | int") -> "Expr":
        return binary("+", self, other)

    def __sub__(self, other: "Expr | int") -> "Expr":
        return binary("-", self, other)

    def __mul__(self, other: "Expr | int") -> "Expr":
        return binary("*", self, other)

    def __truediv__(self, other: "Expr | int") -> "Expr":
        return binary("/", self, other)

    def __floordiv__(self, other: "Expr | int") -> "Expr":
        return binary("//", self, other)

    def __mod__(self, other: "Expr | int") -> "Expr":
        return binary("%", self, other)

    def __lt__(self, other: "Expr | int") -> "Expr":
        return binary("<", self, other)

    def __ge__(self, other: "Expr | int") -> "Expr":
        return binary(">=", self, other)


class Const(Expr):
    """A literal."""

    __slots__ = __match_args__ = ("value", "type")
    value: Any
    type: Type


class Var(Expr):
    """A loop counter, a length, or a variable defined by `Let`."""

    __slots__ = __match_args__ = ("name", "type")
    name: str
    type: Type


class Call(Expr):
    """An operation: an operator symbol, or a function in `MEANING`."""

    __slots__ = __match_args__ = ("name", "args", "type")
    name: str
    args: tuple
    type: Type


class Load(Expr):
    """A load of `lanes` elements of a buffer along the last axis."""

    __slots__ = __match_args__ = ("buffer", "index", "lanes")
    buffer: "Buffer"
    index: tuple
    lanes: int

    @property
    def type(self) -> Type:
        """The type of the buffer's elements, with `lanes` lanes."""
        return Type(self.buffer.kind, self.lanes)


class Sum(Expr):
    """Index arithmetic: sorted terms (factors, coefficient); the constant has no factors."""

    __slots__ = __match_args__ = ("terms",)
    terms: tuple
    type = INDEX


@dataclass(frozen=True)
class Buffer:
    """An array argument of a kernel: "in", "out", or "work" (uninitialized scratch).

    strides: in elements, per axis; contiguous by default.
    """

    name: str
    kind: str
    shape: tuple
    space: str = "in"
    strides: tuple | None = None

    def __getitem__(self, index: Any) -> Load:
        index = index if isinstance(index, tuple) else (index,)
        return Load(self, tuple(map(const, index)), 1)

    def place(self, index: tuple) -> Expr:
        """Return the offset of an index, in elements."""
        strides = self.strides
        if strides is None:
            strides = (const(1),)
            for n in reversed(self.shape[1:]):
                strides = (strides[0] * n, *strides)
        return total(i * s for i, s in zip(index, strides, strict=True))


def const(value: Any, type: Type = INDEX) -> Expr:
    """Return a number as a literal, and an expression unchanged."""
    return value if isinstance(value, Expr) else Const(value, type)


def binary(name: str, a: Any, b: Any) -> Expr:
    """Return a binary operation on operands of one type, in normal form."""
    kind = a.type if isinstance(a, Expr) else b.type
    a, b = const(a, kind), const(b, kind)
    if a.type == b.type == INDEX:
        if name in ("+", "-"):
            sign = 1 if name == "+" else -1
            return summed([*terms(a), *((key, sign * n) for key, n in terms(b))])
        if name == "*":
            return summed(
                [(tuple(sorted(x + y, key=text)), n * m) for x, n in terms(a) for y, m in terms(b)]
            )
        if isinstance(a, Const) and isinstance(b, Const) and (name in COMPARISONS or b.value):
            return const((COMPARISONS | SIGNS)[name](a.value, b.value), result(name, kind))
    return Call(name, (a, b), result(name, kind))


def result(name: str, kind: Type) -> Type:
    """Return the result type of a binary operator."""
    return kind.of("bool") if name in COMPARISONS else kind


def terms(e: Expr) -> tuple:
    """Return the terms of an index expression's polynomial."""
    match e:
        case Sum(pairs):
            return pairs
        case Const(0):
            return ()
        case Const(n):
            return (((), n),)
    return (((e,), 1),)


def summed(pairs: Iterable[tuple]) -> Expr:
    """Return the normal form of a sum of terms."""
    coefficients: dict = {}
    for key, n in pairs:
        coefficients[key] = coefficients.get(key, 0) + n
    nonzero = [(key, n) for key, n in coefficients.items() if n]
    if all(key == () for key, _ in nonzero):
        return Const(nonzero[0][1] if nonzero else 0, INDEX)
    if len(nonzero) == 1 and nonzero[0][1] == 1 and len(nonzero[0][0]) == 1:
        return nonzero[0][0][0]
    return Sum(tuple(sorted(nonzero, key=lambda t: (not t[0], -t[1], [text(f) for f in t[0]]))))


def total(parts: Iterable[Expr]) -> Expr:
    """Return the sum of index expressions."""
    return summed([term for part in parts for term in terms(part)])


# -- statements ------------------------------------------------------------------------
@dataclass(frozen=True)
class Let:
    """Assign a value to a variable; a later `Let` may reassign it."""

    var: Var
    value: Expr


@dataclass(frozen=True)
class Store:
    """Store a scalar, or a vector along the last axis."""

    buffer: Buffer
    index: tuple
    value: Expr


@dataclass(frozen=True)
class For:
    """A counted loop with a positive constant `step`; `parallel` allows threads to share it."""

    var: Var
    start: Expr
    stop: Expr
    body: tuple
    step: int = 1
    parallel: bool = False


@dataclass(frozen=True)
class While:
    """A loop whose trip count depends on data."""

    test: Expr
    body: tuple


@dataclass(frozen=True)
class If:
    """A conditional with two blocks."""

    test: Expr
    body: tuple
    orelse: tuple = ()


@dataclass(frozen=True)
class Break:
    """Leave the innermost loop."""


@dataclass(frozen=True)
class Return:
    """Return from a function with a result."""

    value: Expr


@dataclass(frozen=True)
class Kernel:
    """A kernel: parameters (buffers, lengths and other scalars) and statements.

    result:  the type of its result, for a scalar function.
    """

    name: str
    params: tuple
    body: tuple
    result: Type | None = None

    def __str__(self) -> str:
        return "\n".join(
            [f"kernel {self.name}({', '.join(map(declared, self.params))})"]
            + list(lines(self.body))
        )

    @property
    def buffers(self) -> list[Buffer]:
        """The buffers among the parameters."""
        return [p for p in self.params if isinstance(p, Buffer)]

    def show(self) -> None:
        """Print the kernel and the cost of one execution."""
        print(self, self.counts(), sep="\n")

    def counts(self) -> "Counts":
        """Count loads, stores and arithmetic of one execution; a vector instruction counts once.

        Raises:  HybridError if the trip count of a loop depends on data, or on another counter.

        >>> a, out = Buffer("a", "float32", (8,)), Buffer("out", "float32", (8,), "out")
        >>> i = Var("i", INDEX)
        >>> body = (Store(out, (i,), a[i] * a[i]),)
        >>> Kernel("k", (a, out), (For(i, const(0), const(8), body),)).counts()
        Counts(loads=16, stores=8, arithmetic=8)
        """
        out = counted(self.name, self.body, {p for p in self.params if isinstance(p, Var)})
        return Counts(*(n.value if isinstance(n, Const) else n for n in out))

    def schedule(self, steps: Callable) -> "Kernel":
        """Return an equivalent kernel; `steps(loops)` chains transformations of `Loops`.

        Raises:  ScheduleError for a rewrite that would change the result.
        """
        from minihybrid.codegen.schedule import Loops

        return steps(Loops(self)).kernel


class Counts(NamedTuple):
    """The cost of one execution: numbers of instructions, or polynomials in the lengths."""

    loads: Any
    stores: Any
    arithmetic: Any


def counted(name: str, body: tuple, lengths: set) -> tuple:
    """Count (loads, stores, arithmetic) of statements; both blocks of an `if` count."""
    out = [const(0)] * 3
    for s in body:
        inner = [const(0)] * 3
        for e in expressions(s):
            for p in parts(e):
                out[0] = out[0] + int(isinstance(p, Load))
                is_work = isinstance(p, Call) and p.type != INDEX and p.name not in MOVES
                out[2] = out[2] + int(is_work)
        out[1] = out[1] + int(isinstance(s, Store))
        for block in blocks(s):
            inner = [a + b for a, b in zip(inner, counted(name, block, lengths), strict=True)]
        times = const(1)
        if isinstance(s, For):
            length = s.stop - s.start
            times = length if s.step == 1 else binary("//", length + s.step - 1, s.step)
        if isinstance(s, While) or any(
            isinstance(p, Var | Load) and p not in lengths for p in parts(times)
        ):
            over = s.var.name if isinstance(s, For) else "a condition"
            raise HybridError(f"kernel {name}: the trip count of the loop over {over} is not known")
        out = [a + b * times for a, b in zip(out, inner, strict=True)]
    return tuple(out)


MOVES = {"splat", "cast", "bitcast", "lane", "masked", "table"}  # no arithmetic


# -- text ------------------------------------------------------------------------------
def declared(param: Buffer | Var) -> str:
    """Return a parameter's declaration as text."""
    if isinstance(param, Var):
        return f"{param.name}: {param.type}"
    strides = f" strides {list(map(const, param.strides))}" if param.strides else ""
    return f"{param.name}: {param.space} {param.kind}{list(map(const, param.shape))}{strides}"


def text(e: Expr) -> str:
    """Return an expression as text."""
    match e:
        case Const(value, type):
            return str(value) if type == INDEX else f"{type}({value})"
        case Var(name, _):
            return name
        case Load(buffer, index, lanes):
            return f"{buffer.name}[{', '.join(map(text, index))}{f': {lanes}' * (lanes > 1)}]"
        case Sum(parts):
            return sum_text(parts, inside)
        case Call(name, (a, b), _) if not name.isidentifier():
            return f"{inside(a)} {name} {inside(b)}"
        case Call("cast" | "splat" | "bitcast" as name, (a,), type):
            return f"{type}({text(a)})" if name == "cast" else f"{name}<{type}>({text(a)})"
        case Call(name, args, _):
            return f"{name}({', '.join(map(text, args))})"
    raise TypeError(e)


def inside(e: Expr) -> str:
    """Return a subexpression as text, in parentheses if it is infix."""
    is_infix = isinstance(e, Sum) or isinstance(e, Call) and not e.name.isidentifier()
    return f"({text(e)})" if is_infix else text(e)


def sum_text(terms: tuple, factor: Callable) -> str:
    """Return the terms of a `Sum` as text; `factor` prints a factor."""
    out = ""
    for key, n in terms:
        factors = [*map(factor, key), *[str(abs(n))] * (abs(n) != 1 or not key)]
        out += (" - " if n < 0 else " + ") + " * ".join(factors)
    return out[3:] if out[1] == "+" else f"-{out[3:]}"


def lines(body: tuple, pad: str = "    ") -> Iterator[str]:
    """Yield statements as lines of text."""
    for s in body:
        match s:
            case Let(var, value):
                yield f"{pad}{var.name}: {var.type} = {text(value)}"
            case Store(buffer, index, value):
                yield f"{pad}{text(Load(buffer, index, value.type.lanes))} = {text(value)}"
            case For(var, start, stop, inner, step, parallel):
                by = f" by {step}" * (step != 1) + ", parallel" * parallel
                yield f"{pad}for {var.name} in {text(start)} .. {text(stop)}{by}:"
                yield from lines(inner, pad + "    ")
            case While(test, inner):
                yield f"{pad}while {text(test)}:"
                yield from lines(inner, pad + "    ")
            case If(test, inner, orelse):
                yield f"{pad}if {text(test)}:"
                yield from lines(inner, pad + "    ")
                if orelse:
                    yield f"{pad}else:"
                    yield from lines(orelse, pad + "    ")
            case Return(value):
                yield f"{pad}return {text(value)}"
            case Break():
                yield f"{pad}break"


# -- walking and rewriting -------------------------------------------------------------
def children(e: Expr) -> tuple:
    """Return the operands of an expression."""
    match e:
        case Call(_, args, _):
            return args
        case Load(_, index, _):
            return index
        case Sum(pairs):
            return tuple(f for key, _ in pairs for f in key)
    return ()


def parts(e: Expr) -> Iterator[Expr]:
    """Yield an expression and all its subexpressions."""
    yield e
    for child in children(e):
        yield from parts(child)


def rebuilt(e: Expr, f: Callable) -> Expr:
    """Rewrite an expression bottom-up with f."""
    match e:
        case Call(name, args, type):
            args = tuple([rebuilt(a, f) for a in args])
            same = len(args) == 2 and type == args[0].type == INDEX and name in SIGNS
            return f(binary(name, *args) if same else Call(name, args, type))
        case Load(buffer, index, lanes):
            return f(Load(buffer, tuple(rebuilt(i, f) for i in index), lanes))
        case Sum(pairs):
            return total(
                math.prod((rebuilt(x, f) for x in key), start=const(n)) for key, n in pairs
            )
    return f(e)


def expressions(s: object) -> tuple:
    """Return the expressions of a statement, excluding its blocks."""
    match s:
        case Let(_, value) | Return(value):
            return (value,)
        case Store(_, index, value):
            return (*index, value)
        case For(_, start, stop):
            return start, stop
        case While(test) | If(test):
            return (test,)
    return ()


def blocks(s: object) -> tuple:
    """Return the blocks of a statement."""
    return (s.body, s.orelse) if isinstance(s, If) else (getattr(s, "body", ()),)


def with_blocks(s: Any, f: Callable) -> Any:
    """Return a statement with f applied to its blocks."""
    if isinstance(s, If):
        return replace(s, body=f(s.body), orelse=f(s.orelse))
    return replace(s, body=f(s.body)) if isinstance(s, For | While) else s


def statements(body: tuple) -> Iterator:
    """Yield all statements, including nested ones."""
    for s in body:
        yield s
        for block in blocks(s):
            yield from statements(block)


def mapped(body: tuple, f: Callable) -> tuple:
    """Rewrite every top-level expression of statements with f."""
    out = []
    for s in body:
        match s:
            case Let(_, value) | Return(value):
                s = replace(s, value=f(value))
            case Store(buffer, index, value):
                s = Store(buffer, tuple(map(f, index)), f(value))
            case For(_, start, stop):
                s = replace(s, start=f(start), stop=f(stop))
            case While(test) | If(test):
                s = replace(s, test=f(test))
        out.append(with_blocks(s, lambda block: mapped(block, f)))
    return tuple(out)


def substituted(body: tuple, known: dict) -> tuple:
    """Substitute variables in statements: Var -> expression."""
    return mapped(body, lambda e: rebuilt(e, lambda part: known.get(part, part)))


def common(a: str, b: str) -> str:
    """Return the dtype of a sum of two scalars by Numba's promotion rules.

    >>> common("int8", "int8"), common("int32", "float32"), common("int8", "float32")
    ('int64', 'float64', 'float32')
    """
    kinds = {a, b}
    if kinds & {"float32", "float64"}:
        exact = {"float32", "bool", "int8", "int16", "uint8"}
        return "float32" if kinds <= exact else "float64"
    return "uint64" if all(k.startswith("uint") for k in kinds) else "int64"
