"""The C printer: kernels of the loop IR as functions of C99.

Defines: `functions`, the sources of kernels and of the helpers that they use.

All values are typed, so a kernel is printed in one pass. Arithmetic that is undefined in C
calls a helper of `codegen/c_helpers.py`. A variable is declared in the smallest block that
contains all its uses.
Not supported: general vector arithmetic, which only schedules for WebAssembly produce.
"""

import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import replace

from minihybrid.codegen import ir
from minihybrid.codegen.c_helpers import (
    FLOATS,
    WRAPS,
    c_type,
    function_name,
    helper,
    literal,
    stored,
    type_of,
)
from minihybrid.codegen.check import never_negative
from minihybrid.codegen.read import LOOPING, function, is_counted

KEYWORDS = set(
    "auto case char const default do double enum extern float goto inline int long register "
    "restrict short signed sizeof static struct switch typedef union unsigned void volatile".split()
)
ATOM, UNARY, TERNARY = 20, 14, 3
PAD = "    "
CHUNK = 64  # elements of a sum that are computed before they are accumulated
WORTH = 4  # least statements that justify it
BINDS = {"*": 13, "/": 13, "%": 13, "+": 12, "-": 12, ">>": 11, "<": 10, ">": 10, "<=": 10}
BINDS |= {">=": 10, "==": 9, "!=": 9, "&": 8, "^": 7, "|": 6, "&&": 5, "||": 4}


def spelled(name: str) -> str:
    """Return a valid C identifier for a name."""
    return f"{name}_" if name in KEYWORDS else name


class Function:
    """One kernel in C.

    text:     the function's definition.
    helpers:  (name, type, another type) of the helpers it uses, in order.
    calls:    kernels of the functions it calls.
    """

    def __init__(self, kernel: ir.Kernel) -> None:
        self.kernel, self.helpers, self.calls, self.tables = kernel, {}, {}, {}
        self.ranges: dict = dict.fromkeys(p for p in kernel.params if isinstance(p, ir.Var))
        lets = [s for s in ir.statements(kernel.body) if isinstance(s, ir.Let)]
        # In C, sums of float32 aren't reassociated, and accumulate in double.
        self.doubles = {s.var for s in lets if is_step(s) and s.var.type.kind == "float32"}
        body = distributed(pruned(kernel.body, needed(kernel.body)), self.doubles)
        self.seen: dict = {}  # statement -> the variables in it
        self.used: set = set()  # parameters that the source uses
        lines = [*self.block(body, set(kernel.params), 1)]
        unread = [f"{PAD}(void) {spelled(p.name)};" for p in kernel.params if p not in self.used]
        self.text = "\n".join([*self.head(), "{", *self.constants(), *unread, *lines, "}"])

    def name(self, thing: ir.Buffer | ir.Var) -> str:
        """Return the C name of a buffer or a variable."""
        self.used.add(thing)
        return spelled(thing.name)

    def head(self) -> Iterator[str]:
        """Yield the function's name and parameters."""
        args = ", ".join(map(self.declared, self.kernel.params))
        if self.kernel.result:
            yield f"static {type_of(self.kernel.result)} {self.kernel.name}({args})"
            return
        products = any(type.lanes > 1 for _, type, _ in self.helpers)
        yield f"{'PRODUCTS' if products else 'LOOPS'} static void {self.kernel.name}("
        yield from textwrap.wrap(f"{args})", 84, initial_indent=PAD, subsequent_indent=PAD)

    def constants(self) -> Iterator[str]:
        """Yield the declarations of tables and partial sums."""
        local = [b for b in self.used if isinstance(b, ir.Buffer) and b not in self.kernel.params]
        for buffer in sorted(local, key=str):
            yield f"{PAD}{stored(buffer.kind)} {buffer.name}[{CHUNK}];"
        for (type, text), name in self.tables.items():
            line = f"static const {type_of(type)} {name}{text}"
            yield from textwrap.wrap(line, 88, initial_indent=PAD, subsequent_indent=2 * PAD)

    def declared(self, param: ir.Buffer | ir.Var) -> str:
        """Return the declaration of a parameter."""
        if isinstance(param, ir.Buffer):
            qualifier = "const " * (param.space == "in")
            return f"{qualifier}{stored(param.kind)} *{spelled(param.name)}"
        kind = "double" if param in self.doubles else type_of(param.type)
        return f"{kind} {spelled(param.name)}"

    def help(self, name: str, type: ir.Type, other: str = "") -> str:
        """Request a helper; return its name."""
        name = WRAPS.get(name, name)
        if type.lanes > 1:
            self.helpers["vector", type, ""] = None
            self.helpers[name, type, other] = None
            return f"{type}_{name}"
        kind = "int64" if type.kind == "index" else type.kind
        self.helpers[name, ir.Type(kind), other] = None
        return function_name(name, kind)

    # -- statements
    def variables(self, s: object) -> set:
        """Return the variables of a statement, without counters of loops in it."""
        if id(s) not in self.seen:
            variables = {p for e in ir.expressions(s) for p in ir.parts(e) if isinstance(p, ir.Var)}
            variables |= {s.var} if isinstance(s, ir.Let) else set()
            variables = variables.union(
                *(self.variables(t) for block in ir.blocks(s) for t in block)
            )
            self.seen[id(s)] = variables - ({s.var} if isinstance(s, ir.For) else set())
        return self.seen[id(s)]

    def block(self, body: tuple, known: set, depth: int) -> Iterator[str]:
        """Yield the lines of a block, which declares variables shared by its statements."""
        pad = PAD * depth
        users: dict = {}
        for s in body:
            for var in self.variables(s) - known:
                users.setdefault(var, []).append(s)
        own = {var for var, (first, *rest) in users.items() if rest or var in own_variables(first)}
        known = known | own
        for s in body:
            fresh = None
            for var in sorted((v for v in own & self.variables(s)), key=lambda v: v.name):
                own.remove(var)
                if isinstance(s, ir.Let) and s.var is var and var not in parts_of(s):
                    fresh = var
                else:
                    yield f"{pad}{self.declared(var)} = {'{0}' if var.type.lanes > 1 else '0'};"
            yield from self.statement(s, known, depth, fresh)

    def statement(self, s: object, known: set, depth: int, fresh: ir.Var | None) -> Iterator[str]:
        """Yield the lines of one statement, which may declare the variable `fresh`."""
        pad = PAD * depth
        match s:
            case ir.Let(var, value):
                name = self.declared(var) if fresh else spelled(var.name)
                yield f"{pad}{name} = {self.stepped(var, value)};"
            case ir.Store(buffer, index, ir.Call("masked", (value, *mask), type)):
                args = ", ".join(map(self.text, (value, *mask)))
                at = self.address(buffer, index)
                yield f"{pad}{self.help('store_some', type)}({at}, {args});"
            case ir.Store(buffer, index, value) if value.type.lanes > 1:
                name = self.help("store", value.type)
                yield f"{pad}{name}({self.address(buffer, index)}, {self.text(value)});"
            case ir.Store(buffer, (index,), value):
                yield f"{pad}{self.name(buffer)}[{self.text(index)}] = {self.text(value)};"
            case ir.For():
                yield from self.loop(s, known, depth)
            case ir.While(test, body):
                yield f"{pad}while ({self.text(test)}) {{"
                yield from self.block(body, known, depth + 1)
                yield f"{pad}}}"
            case ir.If(test, body, orelse):
                yield f"{pad}if ({self.text(test)}) {{"
                yield from self.block(body, known, depth + 1)
                if orelse:
                    yield f"{pad}}} else {{"
                    yield from self.block(orelse, known, depth + 1)
                yield f"{pad}}}"
            case ir.Return(value):
                yield f"{pad}return {self.text(value)};"
            case ir.Break():
                yield f"{pad}break;"

    def loop(self, s: ir.For, known: set, depth: int) -> Iterator[str]:
        """Yield a counted loop, whose end is evaluated once."""
        pad, name = PAD * depth, spelled(s.var.name)
        if is_counted(s.start, self.ranges) and is_counted(s.stop, self.ranges):
            self.ranges[s.var] = s.start, s.stop - 1
        start, stop = f"int64_t {name} = {self.text(s.start)}", self.text(s.stop)
        if not isinstance(s.stop, ir.Const) and s.stop not in self.kernel.params:
            start, stop = f"{start}, {name}_end = {stop}", f"{name}_end"
        step = f"{name}++" if s.step == 1 else f"{name} += {s.step}"
        yield f"{pad}for ({start}; {name} < {stop}; {step}) {{"
        yield from self.block(s.body, known | {s.var}, depth + 1)
        yield f"{pad}}}"

    def stepped(self, var: ir.Var, value: ir.Expr) -> str:
        """Return the source of an assignment."""
        if var in self.doubles and is_step(ir.Let(var, value)):
            sign = "+" if value.name == "add_up" else "*"  # type: ignore[attr-defined]
            more = self.inside(value.args[1], BINDS[sign])  # type: ignore[attr-defined]
            return f"{spelled(var.name)} {sign} {more}"
        return self.text(value)

    # -- expressions
    def text(self, e: ir.Expr) -> str:
        """Return the source of an expression."""
        return self.expression(e)[0]

    def inside(self, e: ir.Expr, binds: int) -> str:
        """Return a subexpression, in parentheses unless it binds more tightly."""
        text, own = self.expression(e)
        return text if own > binds else f"({text})"

    def address(self, buffer: ir.Buffer, index: tuple) -> str:
        """Return the source of an address."""
        (at,) = index
        return self.name(buffer) + f" + {self.inside(at, BINDS['+'] - 1)}" * (at is not ZERO)

    def call(self, name: str, *args: ir.Expr) -> tuple[str, int]:
        """Return a function call."""
        return f"{name}({', '.join(map(self.text, args))})", ATOM

    def expression(self, e: ir.Expr) -> tuple[str, int]:
        """Return an expression and its precedence."""
        match e:
            case ir.Const(value, type):
                text = literal(value, type.kind)
                return text, UNARY if text[0] == "-" else ATOM
            case ir.Var():
                name = self.name(e)
                return (f"(float) {name}", UNARY) if e in self.doubles else (name, ATOM)
            case ir.Sum(pairs):
                return self.sum(pairs)
            case ir.Load(buffer, index, 1):
                text = f"{self.name(buffer)}[{self.text(*index)}]"
                return (f"{text} != 0", BINDS["!="]) if buffer.kind == "bool" else (text, ATOM)
            case ir.Load(buffer, index, _):
                return f"{self.help('load', e.type)}({self.address(buffer, index)})", ATOM
            case ir.Call("masked", (ir.Load(buffer, index, _), *mask), type):
                args = ", ".join([self.address(buffer, index), *map(self.text, mask)])
                return f"{self.help('load_some', type)}({args})", ATOM
            case ir.Call("splat" | "fma" as name, args, type) if type.lanes > 1:
                return self.call(self.help(name, type), *args)
            case ir.Call("total", (a,), _):
                return self.call(self.help("total", a.type), a)
            case ir.Call("table", (at, *items), type):
                numbers = ", ".join(literal(i.value, type.kind) for i in items)
                text = f"[] = {{{numbers}}};"
                name = self.tables.setdefault((type, text), f"table_{len(self.tables)}")
                return f"{name}[{self.text(at)}]", ATOM
            case ir.Call("select", (test, a, b), _):
                yes, no = self.inside(a, TERNARY), self.inside(b, TERNARY)
                return f"{self.inside(test, TERNARY)} ? {yes} : {no}", TERNARY
            case ir.Call("cast", (a,), type):
                return self.cast(a, type)
            case ir.Call("bitcast", (a,), type):
                return self.call(self.help("bits", type, a.type.kind), a)
            case ir.Call("not", (a,), _):
                return f"!{self.inside(a, UNARY)}", UNARY
            case ir.Call("and" | "or" as name, args, _):
                sign = "&&" if name == "and" else "||"
                return f" {sign} ".join(self.inside(a, BINDS["&"]) for a in args), BINDS[sign]
            case ir.Call("fma", (a, b, c), type):
                return self.infix("+", ir.Call("*", (a, b), type), c)
            case ir.Call("neg", (a,), type):
                if type.kind in FLOATS:
                    return f"-{self.inside(a, UNARY)}", UNARY
                return self.expression(ir.Call("-", (ir.Const(0, type), a), type))
            case ir.Call(name, args, type) if name in LOOPING:
                kernel = function(name, tuple(a.type.kind for a in args))
                self.calls[kernel] = None
                return self.call(kernel.name, *args)
            case ir.Call("min" | "max" as name, args, type):
                return self.call(self.help(name, type), *args)
            case ir.Call(name, args, type) if name.isidentifier() and name not in ADDED:
                return self.call(f"{'f' * (name == 'abs')}{name}{FLOATS[type.kind]}", *args)
            case ir.Call(name, (a, b), type):
                return self.arithmetic(ADDED.get(name, name), a, b, type)
        raise TypeError(e)

    def sum(self, pairs: tuple) -> tuple[str, int]:
        """Return index arithmetic."""
        text = ir.sum_text(pairs, lambda f: self.inside(f, BINDS["*"]))
        return text, BINDS["+"] if len(pairs) > 1 or text[0] == "-" else BINDS["*"]

    def arithmetic(self, sign: str, a: ir.Expr, b: ir.Expr, type: ir.Type) -> tuple[str, int]:
        """Return a binary operation on operands of one type."""
        kind = a.type.kind
        if sign in ir.COMPARISONS:
            return self.infix(sign, a, b)
        if sign in ("//", "%"):
            if kind.startswith("uint"):
                text = self.infix("/" if sign == "//" else sign, a, b)[0]
                return f"{self.inside(b, BINDS['=='])} == 0 ? 0 : {text}", TERNARY
            if type == ir.INDEX and self.is_natural(a) and self.is_natural(b):
                return self.infix(sign[0], a, b)
            return self.call(self.help("div" if sign == "//" else "mod", type), a, b)
        if sign in WRAPS and kind not in FLOATS and (not kind.startswith("uint") or sign == "<<"):
            return self.call(self.help(sign, type), a, b)
        return self.infix(sign, a, b)

    def infix(self, sign: str, a: ir.Expr, b: ir.Expr) -> tuple[str, int]:
        """Return an infix operation, with the parentheses that C needs or compilers warn about."""
        binds = BINDS[sign]
        if sign in ("+", "-", "*", "/"):
            left, right = self.inside(a, binds - 1), self.inside(b, binds)
        else:
            outer = BINDS["<"] if sign in ir.COMPARISONS else UNARY - 1
            left, right = self.inside(a, outer), self.inside(b, outer)
        return f"{left} {sign} {right}", binds

    def is_natural(self, e: ir.Expr) -> bool:
        """Return whether an index is provably nonnegative."""
        return is_counted(e, self.ranges) and never_negative(e, self.ranges)

    def cast(self, a: ir.Expr, type: ir.Type) -> tuple[str, int]:
        """Return a conversion."""
        if c_type(a.type.kind) == c_type(type.kind):
            return self.expression(a)
        if a.type.kind in FLOATS and type.kind not in FLOATS:
            return self.call(self.help("whole", type), a)
        return f"({c_type(type.kind)}) {self.inside(a, UNARY - 1)}", UNARY


ADDED = {"add_up": "+", "multiply_up": "*"}
ZERO = ir.Const(0, ir.INDEX)


def is_step(s: ir.Let) -> bool:
    """Return whether a statement updates a reassociable sum or product."""
    return isinstance(s.value, ir.Call) and s.value.name in ADDED and s.value.args[0] is s.var


def parts_of(s: object) -> set:
    """Return all subexpressions of a statement, excluding its blocks."""
    return {p for e in ir.expressions(s) for p in ir.parts(e)}


def own_variables(s: object) -> set:
    """Return the variables that a statement uses outside of its blocks."""
    return parts_of(s) | ({s.var} if isinstance(s, ir.Let) else set())


def needed(body: tuple) -> set:
    """Return the live variables: those that affect a store or control flow."""
    reads: dict = {}  # assigned variable -> variables read for it; None: read by effects
    for s in ir.statements(body):
        reads.setdefault(s.var if isinstance(s, ir.Let) else None, set()).update(parts_of(s))
    todo, reached = [None], set()
    while todo:
        new = reads.get(todo.pop(), set()) - reached
        reached |= new
        todo += new
    return reached


def pruned(body: tuple, used: set) -> tuple:
    """Remove dead assignments."""
    out = []
    for s in body:
        if isinstance(s, ir.Let) and s.var not in used:
            continue
        out.append(ir.with_blocks(s, lambda block: pruned(block, used)))
    return tuple(out)


def distributed(body: tuple, sums: set) -> tuple:
    """Distribute loops: accumulate sums in separate loops, after computing their elements.

    Without the sum, whose order is fixed, the iterations are independent, and compilers
    vectorize them.
    """
    out = []
    for s in body:
        if isinstance(s, ir.For) and all(isinstance(t, ir.Let | ir.Store) for t in s.body):
            s = in_chunks(s, [t for t in s.body if isinstance(t, ir.Let) and t.var in sums])
        else:
            s = ir.with_blocks(s, lambda block: distributed(block, sums))
        out.append(s)
    return tuple(out)


def in_chunks(loop: ir.For, steps: list) -> ir.For:
    """Split a loop into chunks that first compute the elements of a sum; keep a loop that has
    dependences or little to compute."""
    own, carried = {s.var for s in loop.body if isinstance(s, ir.Let)}, set()
    for s in reversed(loop.body):
        carried -= {s.var} if isinstance(s, ir.Let) else set()
        carried |= set(ir.parts(s.value.args[1])) if s in steps else parts_of(s)
    length = loop.stop - loop.start
    is_short = isinstance(length, ir.Const) and length.value < CHUNK
    is_cheap = len(loop.body) - len(steps) < WORTH
    if not steps or is_short or is_cheap or own & carried or not all(map(is_step, steps)):
        return loop
    first, again = (ir.Var(f"{loop.var.name}_{end}", ir.INDEX) for end in ("first", "again"))
    last = ir.Call("min", (first + CHUNK, loop.stop), ir.INDEX)
    elements, sums = [], []
    for s in loop.body:
        if s in steps:
            part = ir.Buffer(f"{s.var.name}_part", s.var.type.kind, (ir.const(CHUNK),), "work")
            elements.append(ir.Store(part, (loop.var - first,), s.value.args[1]))
            element = ir.Load(part, (again - first,), 1)
            sums.append(ir.Let(s.var, ir.Call(s.value.name, (s.var, element), s.var.type)))
        else:
            elements.append(s)
    inner = replace(loop, start=first, stop=last, body=tuple(elements))
    added = ir.For(again, first, last, tuple(sums))
    return ir.For(first, loop.start, loop.stop, (inner, added), CHUNK)


def functions(kernels: Iterable[ir.Kernel]) -> list[str]:
    """Return the sources of kernels, preceded by everything they use.

    >>> from minihybrid.codegen.ir import F32, INDEX, Buffer, Call, For, Kernel, Store, Var, const
    >>> a, out = Buffer("a", "float32", (8,)), Buffer("out", "float32", (8,), "out")
    >>> i = Var("i", INDEX)
    >>> store = Store(out, (i,), Call("sqrt", (a[i],), F32))
    >>> print(*functions([Kernel("k", (a, out), (For(i, const(0), const(8), (store,)),))]))
    LOOPS static void k(
        const float *a, float *out)
    {
        for (int64_t i = 0; i < 8; i++) {
            out[i] = sqrtf(a[i]);
        }
    }
    """
    callers: list = [Function(kernel) for kernel in kernels]
    called = [Function(kernel) for f in callers for kernel in f.calls]
    used = dict.fromkeys(h for f in [*called, *callers] for h in f.helpers)
    texts = [helper(*h) for h in used] + [f.text for f in [*called, *callers]]
    return list(dict.fromkeys(texts))
