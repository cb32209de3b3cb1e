"""Schedules of the loop IR: each takes a kernel and gives a faster one that computes the same.

Takes:   a kernel, and which of its loops.
Gives:   `split`, `unroll`, `jam`, `vectorize`, `accumulate`; `scheduled`, which chooses.

A loop is named by its counter. Each schedule has a dependence test, and raises a `ScheduleError`
for what would change the result. Only `accumulate` changes the order of a sum, and only of one
that says that its order is free.

    for j in 0 .. 2:                   jam(kernel, "j")     s = 0; s_1 = 0
        s = 0                                                for k in 0 .. 9:
        for k in 0 .. 9:                                         s = s + a[k] * b[0, k]
            s = s + a[k] * b[j, k]                               s_1 = s_1 + a[k] * b[1, k]
        out[j] = s                                           out[0] = s; out[1] = s_1

What is left out: tiles of two loops at once, and copies of tiles to contiguous memory.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count
from typing import NoReturn

from minihybrid.codegen.check import never_negative
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
    Return,
    Store,
    Type,
    Var,
    While,
    binary,
    blocks,
    const,
    expressions,
    parts,
    rebuilt,
    statements,
    substituted,
    terms,
)
from minihybrid.core.op import HybridError

LANES = 4  # of float32, in a vector of WebAssembly
JAMMED = 4  # iterations of an outer loop that share their loads
WHOLE = {*COMPARISONS, *"+ - * & | ^".split()}  # what vectors compute, of int32
FLOAT = {*COMPARISONS, *"+ - * / neg abs sqrt floor ceil copysign fma add_up multiply_up".split()}
WIDE = {"float32", "int32"}  # kinds that vectors have


class ScheduleError(HybridError):
    """Why a schedule would change the result, or cannot be done."""


def refuse(kernel: Kernel, name: str, why: str) -> NoReturn:
    """Raise a sentence about a loop."""
    raise ScheduleError(f"kernel {kernel.name}: the loop over {name} {why}")


# -- finding and changing loops --------------------------------------------------------
def loops_of(kernel: Kernel) -> list[For]:
    """All loops, the outer ones first."""
    return [s for s in statements(kernel.body) if isinstance(s, For)]


def loop_of(kernel: Kernel, name: str) -> For:
    """The loop of a counter."""
    for loop in loops_of(kernel):
        if loop.var.name == name:
            return loop
    refuse(kernel, name, "is none of it")


def changed(kernel: Kernel, name: str, f: Callable) -> Kernel:
    """The kernel in which the statements f(loop) take a loop's place."""
    loop = loop_of(kernel, name)

    def within(body: tuple) -> tuple:
        out = []
        for s in body:
            if s is loop:
                out += f(loop)
                continue
            if isinstance(s, If):
                s = replace(s, body=within(s.body), orelse=within(s.orelse))
            elif isinstance(s, For | While):
                s = replace(s, body=within(s.body))
            out.append(s)
        return tuple(out)

    return replace(kernel, body=within(kernel.body))


def names_of(body: tuple) -> set:
    """The names that statements define."""
    return {s.var.name for s in statements(body) if isinstance(s, Let | For)}


def fresh(kernel: Kernel) -> Callable:
    """A function that gives names which the kernel hasn't: of another one, and a number."""
    taken = names_of(kernel.body) | {p.name for p in kernel.params}

    def new(name: str) -> str:
        found = next(f"{name}_{i}" for i in count(1) if f"{name}_{i}" not in taken)
        taken.add(found)
        return found

    return new


def local(kernel: Kernel, loop: For) -> set:
    """The variables that a loop sets, and nothing outside of it reads or sets."""
    beside = outside(kernel, loop)
    seen = {p for s in beside for e in expressions(s) for p in parts(e) if isinstance(p, Var)}
    seen |= {s.var for s in beside if isinstance(s, Let)}
    return {s.var for s in statements(loop.body) if isinstance(s, Let)} - seen


def with_names(body: tuple, known: dict) -> tuple:
    """Statements that set other variables: variable -> the one in its place."""
    out = []
    for s in body:
        if isinstance(s, Let | For):
            s = replace(s, var=known.get(s.var, s.var))
        if isinstance(s, If):
            s = replace(s, orelse=with_names(s.orelse, known))
        if isinstance(s, If | For | While):
            s = replace(s, body=with_names(s.body, known))
        out.append(s)
    return tuple(out)


def renamed(body: tuple, own: set, new: Callable) -> tuple:
    """Statements whose counters and own variables have other names."""
    own = own | {s.var for s in statements(body) if isinstance(s, For)}
    known = {v: Var(new(v.name), v.type) for v in sorted(own, key=lambda v: v.name)}
    return with_names(substituted(body, known), known)


# -- dependences -----------------------------------------------------------------------
def reads_of(body: tuple) -> list[Load]:
    """All loads."""
    return [
        p for s in statements(body) for e in expressions(s) for p in parts(e) if isinstance(p, Load)
    ]


def is_load(e: Expr) -> bool:
    """Whether an expression reads memory."""
    return isinstance(e, Load)


def carried(kernel: Kernel, loop: For) -> str:
    """Why iterations of a loop depend on each other; empty if they don't.

    They are independent if each element that one writes is written and read by that one only,
    and each variable is set in an iteration before it is read there.
    """
    if any(isinstance(s, Break | Return | While) for s in statements(loop.body)):
        return "ends early"
    if {s.var for s in statements(loop.body) if isinstance(s, Let)} - local(kernel, loop):
        return "sets what is used outside of it"
    return shared_memory(kernel, loop)


def shared_memory(kernel: Kernel, loop: For) -> str:
    """Where iterations of a loop may meet in memory; empty if they don't."""
    stores = [s for s in statements(loop.body) if isinstance(s, Store)]
    touching: list[Store | Load] = [*stores, *reads_of(loop.body)]
    for store in stores:
        same = [a.index for a in touching if a.buffer == store.buffer]
        if not is_apart(kernel, store.buffer, same, loop, store.value.type.lanes):
            return f"may write {store.buffer.name} where another iteration reads or writes it"
    return ""


def outside(kernel: Kernel, loop: For) -> list:
    """The statements that are not inside a loop."""
    inside = {id(s) for s in statements(loop.body)}
    return [s for s in statements(kernel.body) if id(s) not in inside]


def live_in(body: tuple, known: set) -> str:
    """A variable that a block sets, but may read before; empty if there is none."""
    own = {s.var for s in statements(body) if isinstance(s, Let)}

    def walk(body: tuple, known: set) -> set:
        for s in body:
            for e in expressions(s):
                for p in parts(e):
                    if isinstance(p, Var) and p in own and p not in known:
                        raise LookupError(p.name)
            if isinstance(s, Let):
                known = known | {s.var}
            inner = [walk(block, known) for block in blocks(s)]
            if isinstance(s, If):
                known = inner[0] & inner[1]
        return known

    try:
        walk(body, known)
    except LookupError as error:
        return error.args[0]
    return ""


def is_apart(kernel: Kernel, buffer: Buffer, indices: list, loop: For, width: int) -> bool:
    """Whether iterations of a loop touch separate parts of a buffer at these indices.

    A place is n * counter + common + rest: `common` is the same for all, and the rest is at
    least 0 and less than n.
    """
    counters = {s.var: (s.start, s.stop - 1) for s in loops_of(kernel)}
    known = {p for p in kernel.params if isinstance(p, Var)} | counters.keys()
    inner = {s.var for s in statements(loop.body) if isinstance(s, For)}
    found = []
    for index in indices:
        moving, common, rest = const(0), const(0), const(0)
        for key, n in terms(buffer.place(index)):
            if any(
                p not in known if isinstance(p, Var) else is_load(p) for f in key for p in parts(f)
            ):
                return False
            part = product(key) * n
            if loop.var in key:
                moving = moving + product(tuple(f for f in key if f is not loop.var)) * n
            elif any(p in inner or p is loop.var for f in key for p in parts(f)):
                rest = rest + part
            else:
                common = common + part
        found.append((moving, common, rest))
    (moving, common, _), *_ = found
    if moving is const(0) or any(p in inner or p is loop.var for p in parts(moving)):
        return False
    return all(
        m is moving
        and never_negative(rest + own - common, counters)
        and never_negative(moving - (rest + own - common) - width, counters)
        for m, own, rest in found
    )


def product(key: tuple) -> Expr:
    """The product of factors."""
    out = const(1)
    for f in key:
        out = out * f
    return out


# -- schedules -------------------------------------------------------------------------
def split(kernel: Kernel, name: str, factor: int, inner: str = "in") -> Kernel:
    """A loop in pieces of `factor` iterations: the inner loop is called `name_in`, and what is
    left over is a loop of its own."""
    loop, new = loop_of(kernel, name), fresh(kernel)
    if loop.step != 1:
        refuse(kernel, name, "has a step")
    length = loop.stop - loop.start
    inside, rest = Var(f"{name}_{inner}", INDEX), Var(new(f"{name}_rest"), INDEX)
    if inside.name in names_of(kernel.body):
        refuse(kernel, name, "is in pieces already")
    pieces = binary("//", length, const(factor))
    out = []
    if pieces is not const(0):
        at = loop.start + loop.var * factor + inside
        body = substituted(loop.body, {loop.var: at})
        out.append(For(loop.var, const(0), pieces, (For(inside, const(0), const(factor), body),)))
    if not (isinstance(length, Const) and length.value % factor == 0):
        own = renamed(loop.body, local(kernel, loop) if out else set(), new) if out else loop.body
        first = loop.start + pieces * factor
        out.append(For(rest, first, loop.stop, substituted(own, {loop.var: rest})))
    return changed(kernel, name, lambda _: out)


def unroll(kernel: Kernel, name: str) -> Kernel:
    """Every iteration of a loop of known length, written out."""
    loop, new = loop_of(kernel, name), fresh(kernel)
    out: list = []
    own = local(kernel, loop)
    for i in iterations(kernel, loop):
        body = substituted(loop.body, {loop.var: const(i)})
        out += renamed(body, own, new) if i else body
    return changed(kernel, name, lambda _: out)


def jam(kernel: Kernel, name: str) -> Kernel:
    """Every iteration of a loop of known length, side by side: loops inside are shared, and so
    is what all iterations load."""
    loop, new = loop_of(kernel, name), fresh(kernel)
    if why := carried(kernel, loop):
        refuse(kernel, name, why)
    inner = [s for s in statements(loop.body) if isinstance(s, For)]
    if any(loop.var in parts(e) for s in inner for e in (s.start, s.stop)):
        refuse(kernel, name, "is one that loops inside depend on")
    copies, own = [], sorted(local(kernel, loop), key=lambda v: v.name)
    for i in iterations(kernel, loop):
        known = {v: Var(new(v.name), v.type) for v in own} if i else {}
        copies.append(with_names(substituted(loop.body, {loop.var: const(i), **known}), known))
    return changed(kernel, name, lambda _: side_by_side(copies, new))


def side_by_side(copies: list, new: Callable) -> list:
    """The first statements of all copies, then the second ones, and so on."""
    out: list = []
    for same in zip(*copies, strict=True):
        if isinstance(same[0], For):
            out.append(replace(same[0], body=tuple(side_by_side([s.body for s in same], new))))
        else:
            out += same
    return named_loads(out, new)


def named_loads(body: list, new: Callable) -> list:
    """Statements in which what neighbours load in common is loaded once, under a name."""
    out: list = []
    run: list = []

    def flush() -> None:
        loads = [p for s in run for p in dict.fromkeys(reads_of((s,)))]
        wanted = {p for p in loads if loads.count(p) > 1}
        seen = {}
        for s in run:
            for p in reads_of((s,)):
                if p in wanted and p not in seen:
                    seen[p] = Var(new("shared"), p.type)
                    out.append(Let(seen[p], p))
            out.append(replace(s, value=rebuilt(s.value, lambda e: seen.get(e, e))))
        run.clear()

    for s in body:
        if isinstance(s, Let):
            run.append(s)
        else:
            flush()
            out.append(s)
    flush()
    return out


def vectorize(kernel: Kernel, name: str) -> Kernel:
    """All iterations of a loop of few at once: its counter is the last index of what it reads
    and writes, and what it sets is a vector."""
    loop = loop_of(kernel, name)
    if why := carried(kernel, loop):
        refuse(kernel, name, why)
    lanes = len(iterations(kernel, loop))
    if lanes < 2:
        refuse(kernel, name, "has too few iterations for a vector")
    return changed(kernel, name, lambda _: Widener(kernel, loop, lanes).body(loop.body))


def accumulate(kernel: Kernel, name: str, lanes: int = LANES) -> Kernel:
    """A reduction in vectors, each lane for every fourth element; their total comes after it.

    Sums must be of a free order (`add_up`, `multiply_up`); for a largest or smallest element,
    any order is the same.
    """
    whole = loop_of(kernel, name)
    if any(isinstance(s, Break | Return | While) for s in statements(whole.body)):
        refuse(kernel, name, "ends early")
    steps = {var: step_of(kernel, whole, var) for var in live(whole.body)}
    if not steps:
        refuse(kernel, name, "adds nothing up")
    defined = {s.var for s in statements(whole.body) if isinstance(s, Let)}
    if defined - local(kernel, whole) - steps.keys():
        refuse(kernel, name, "sets what is read after it")
    if why := shared_memory(kernel, whole):
        refuse(kernel, name, why)
    kernel = split(kernel, name, lanes)
    loop = loop_of(kernel, f"{name}_in")
    widener = Widener(kernel, loop, lanes, steps)
    body = widener.body(loop.body)
    before, after = [], []
    for var, (sign, again) in steps.items():
        wide = widener.vectors[var]
        start = {"add_up": Const(0.0, var.type), "multiply_up": Const(1.0, var.type)}.get(sign, var)
        before.append(Let(wide, Call("splat", (start,), wide.type)))
        if sign == "add_up":
            after.append(Let(var, Call(sign, (var, Call("total", (wide,), var.type)), var.type)))
            continue
        for i in range(lanes):
            one = Call("lane", (wide, const(i)), var.type)
            after.append(Let(var, again(one)))
    kernel = changed(kernel, f"{name}_in", lambda _: body)
    return changed(kernel, name, lambda loop: [*before, loop, *after])


def live(body: tuple) -> list:
    """The variables that iterations hand on."""
    found: list = []
    while name := live_in(body, set(found)):
        found += {s.var for s in statements(body) if isinstance(s, Let) and s.var.name == name}
    return found


def step_of(kernel: Kernel, loop: For, var: Var) -> tuple:
    """(operation, how one more element is taken in) of a reduction's only step.

    Raises:  ScheduleError if what the loop does to the variable is another thing.
    """
    lets = [s for s in loop.body if isinstance(s, Let) and s.var == var]
    reads = [p for s in statements(loop.body) for e in expressions(s) for p in parts(e) if p is var]
    if len(lets) == 1:
        match lets[0].value:
            case Call("add_up" | "multiply_up" as sign, (a, x), type) if (
                a is var and len(reads) == 1
            ):
                return sign, lambda one: Call(sign, (var, one), type)
            case Call(
                "select", (Call("or", (Call(">" | "<" as sign, (x, a), _), nan), _), y, b), type
            ):
                if x is y and a is b is var and len(reads) == 2 and not uses(x, var):
                    if nan is Call("!=", (x, x), nan.type):
                        return sign, lambda one: rebuilt(
                            lets[0].value, lambda e: one if e is x else e
                        )
    refuse(kernel, loop.var.name, f"does more to {var.name} than to add up")


def uses(e: Expr, var: Var) -> bool:
    """Whether an expression reads a variable."""
    return any(p is var for p in parts(e))


def iterations(kernel: Kernel, loop: For) -> range:
    """The counter's values in a loop of known length."""
    if not isinstance(loop.start, Const) or not isinstance(loop.stop, Const):
        refuse(kernel, loop.var.name, "has no known length")
    return range(loop.start.value, loop.stop.value, loop.step)


class Widener:
    """Makes vectors of what changes with a loop's counter.

    vectors: variable -> the vector that takes its place.
    """

    def __init__(self, kernel: Kernel, loop: For, lanes: int, vectors: Iterable = ()) -> None:
        self.kernel, self.loop, self.lanes = kernel, loop, lanes
        self.new = fresh(kernel)
        self.vectors: dict = {}
        for var in vectors:
            self.add(var)
        size = -1
        while size != len(self.vectors):  # until a fixed point
            size = len(self.vectors)
            for s in statements(loop.body):
                if isinstance(s, Let) and s.var not in self.vectors and self.changes(s.value):
                    self.add(s.var)

    def add(self, var: Var) -> None:
        """Let a variable be a vector."""
        if var.type.kind not in (*WIDE, "bool"):
            self.refuse(f"sets {var.name}, of {var.type}")
        self.vectors[var] = Var(self.new(var.name), Type(var.type.kind, self.lanes))

    def refuse(self, why: str) -> NoReturn:
        """Raise a sentence about the loop."""
        refuse(self.kernel, self.loop.var.name, why)

    def changes(self, e: Expr) -> bool:
        """Whether a value changes with the counter."""
        return any(p is self.loop.var or p in self.vectors for p in parts(e))

    def body(self, body: tuple) -> tuple:
        """Statements, with vectors."""
        out: list = []
        for s in body:
            match s:
                case Let(var, value) if var in self.vectors:
                    out.append(Let(self.vectors[var], self.wide(value)))
                case Store(buffer, index, value):
                    out.append(Store(buffer, self.place(buffer, index), self.wide(value)))
                case For(_, start, stop, inner) if not (self.changes(start) or self.changes(stop)):
                    out.append(replace(s, body=self.body(inner)))
                case If(test, inner, orelse) if not self.changes(test):
                    out.append(If(test, self.body(inner), self.body(orelse)))
                case Let():
                    out.append(s)
                case _:
                    self.refuse("decides what is done")
        return tuple(out)

    def place(self, buffer: Buffer, index: tuple) -> tuple:
        """The first of neighbours in a buffer."""
        var = self.loop.var
        moving = [n for key, n in terms(buffer.place(index)) if any(uses(f, var) for f in key)]
        straight = [n for key, n in terms(buffer.place(index)) if key == (var,)]
        of_data = any(v in parts(i) for i in index for v in self.vectors)
        if moving != [1] or straight != [1] or of_data:
            self.refuse(f"does not go through {buffer.name} side by side")
        if buffer.kind not in WIDE:
            self.refuse(f"goes through {buffer.name}, of {buffer.kind}")
        zero = {var: const(0)}
        return tuple(rebuilt(i, lambda e: zero.get(e, e)) for i in index)

    def wide(self, e: Expr) -> Expr:
        """A value of all lanes."""
        e = self.value(e)
        return e if e.type.lanes > 1 else Call("splat", (e,), Type(e.type.kind, self.lanes))

    def value(self, e: Expr) -> Expr:
        """A value, which is a vector if it changes."""
        if not self.changes(e):
            return e
        match e:
            case Var() if e in self.vectors:
                return self.vectors[e]
            case Load(buffer, index, 1):
                return Load(buffer, self.place(buffer, index), self.lanes)
            case Call("<<" | ">>" as name, (a, b), type) if not self.changes(b):
                if type.kind == "int32":
                    return Call(name, (self.value(a), b), Type(type.kind, self.lanes))
            case Call("cast" | "bitcast" as name, (a,), type):
                kinds = a.type.kind, type.kind
                if kinds == ("int32", "float32") or name == "bitcast" and {*kinds} <= WIDE:
                    return Call(name, (self.value(a),), Type(type.kind, self.lanes))
            case Call(name, args, type) if can_be_wide(name, args):
                return Call(name, tuple(map(self.wide, args)), Type(type.kind, self.lanes))
        self.refuse(f"computes {e}")


def can_be_wide(name: str, args: tuple) -> bool:
    """Whether vectors have an operation."""
    kinds = {a.type.kind for a in args}
    if name == "select":
        return kinds <= {*WIDE, "bool"} and args[1].type.kind in WIDE
    if kinds == {"bool"}:
        return name in ("and", "or", "not", "!=")
    if kinds == {"int32"}:
        return name in WHOLE
    return kinds == {"float32"} and name in FLOAT


# -- the choice ------------------------------------------------------------------------
def attempt(kernel: Kernel, *steps: Callable) -> Kernel | None:
    """A kernel after some schedules; `None` if one of them refuses."""
    try:
        for step in steps:
            kernel = step(kernel)
    except ScheduleError:
        return None
    return kernel


def is_product(loop: For) -> bool:
    """Whether a loop adds products up."""
    return any(
        isinstance(s, Let)
        and isinstance(s.value, Call)
        and s.value.name == "add_up"
        and any(isinstance(p, Call) and p.name == "*" for p in parts(s.value))
        for s in loop.body
    )


def is_long(loop: For, least: int) -> bool:
    """Whether a loop may have so many iterations."""
    length = loop.stop - loop.start
    return not isinstance(length, Const) or length.value >= least


def scheduled(kernel: Kernel) -> Kernel:
    """The kernel with vectors where they fit: along reductions whose elements lie side by side,
    else across the loop around them; and with products jammed, so that loads are shared."""
    around = []  # of products: the loops around them, the inner one first
    for loop in reversed(loops_of(kernel)):
        name = loop.var.name
        inner = [s.var.name for s in statements(loop.body) if isinstance(s, For)]
        if inner:
            if not any(is_product(s) for s in statements(loop.body) if isinstance(s, For)):
                continue
            if len(inner) > 1 or not is_long(loop, LANES):
                around.append(name)
                continue
        if not is_long(loop, LANES):
            continue
        wide = attempt(kernel, lambda k, n=name: accumulate(k, n)) if not inner else None
        wide = wide or attempt(
            kernel, lambda k, n=name: split(k, n, LANES), lambda k, n=name: vectorize(k, f"{n}_in")
        )
        kernel = wide or kernel
        if inner:
            around.append(name)
    for name, times in zip(around, (JAMMED // 2, JAMMED), strict=False):
        if is_long(loop_of(kernel, name), times):
            jammed = attempt(
                kernel,
                lambda k, n=name, c=times: split(k, n, c, "by"),
                lambda k, n=name: jam(k, f"{n}_by"),
            )
            kernel = jammed or kernel
    return kernel
