"""Schedules: semantics-preserving transformations of loop IR.

Defines: `split reorder tile fuse unroll jam vectorize accumulate hold pack parallel`, and
         `Loops`, which chains them; `scheduled`, which chooses a schedule.

A loop is named by its counter. Each transformation has a dependence test, and raises a
`ScheduleError` if it would change the result. Only `accumulate` reassociates a sum, and only
one that is marked as reassociable.

    for j in 0 .. 2:                   jam(kernel, "j")     s = 0; s_1 = 0
        s = 0                                                for k in 0 .. 9:
        for k in 0 .. 9:                                         s = s + a[k] * b[0, k]
            s = s + a[k] * b[j, k]                               s_1 = s_1 + a[k] * b[1, k]
        out[j] = s                                           out[0] = s; out[1] = s_1

Not supported: loops whose bounds depend on another counter; masks instead of remainder loops.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from itertools import count, pairwise
from numbers import Integral
from typing import Any, NoReturn

from minihybrid.codegen.check import accesses, covers, never_negative, spans_of
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
    mapped,
    parts,
    rebuilt,
    statements,
    substituted,
    terms,
    with_blocks,
)
from minihybrid.core.op import HybridError

LANES = 4  # float32 elements in a WebAssembly vector
JAMMED = 4  # iterations of an outer loop that share their loads
WHOLE = {*COMPARISONS, *"+ - * & | ^".split()}  # integer operations that vectors support
FLOAT = {*COMPARISONS, *"+ - * / neg abs sqrt floor ceil copysign fma add_up multiply_up".split()}
VECTOR_TYPES = {"float32", "int32"}  # element types of vectors


class ScheduleError(HybridError):
    """A schedule is illegal, because it would change the result, or not applicable."""


def refuse(kernel: Kernel, name: str, why: str) -> NoReturn:
    """Raise a ScheduleError that names the loop."""
    raise ScheduleError(f"kernel {kernel.name}: the loop over {name} {why}")


# -- finding and changing loops --------------------------------------------------------
def loops_of(kernel: Kernel) -> list[For]:
    """Return all loops, outer ones first."""
    return [s for s in statements(kernel.body) if isinstance(s, For)]


def must_be_count(kernel: Kernel, name: str, count: Any) -> None:
    """Raise a ScheduleError unless this is a number of iterations."""
    if not isinstance(count, Integral) or count < 1:
        refuse(kernel, name, f"is divided by {count!r}, but a whole number from 1 on is needed")


def loop_of(kernel: Kernel, name: str) -> For:
    """Return the loop with a counter."""
    for loop in loops_of(kernel):
        if loop.var.name == name:
            return loop
    loops = ", ".join(loop.var.name for loop in loops_of(kernel))
    raise ScheduleError(f"kernel {kernel.name}: there is no loop over {name}; it has {loops}")


def changed(kernel: Kernel, name: str, f: Callable) -> Kernel:
    """Replace a loop by the statements f(loop)."""
    loop = loop_of(kernel, name)

    def within(body: tuple) -> tuple:
        out = []
        for s in body:
            if s is loop:
                out += f(loop)
            else:
                out.append(with_blocks(s, within))
        return tuple(out)

    return replace(kernel, body=within(kernel.body))


def names_of(body: tuple) -> set:
    """Return the names that statements define."""
    return {s.var.name for s in statements(body) if isinstance(s, Let | For)}


def fresh(kernel: Kernel) -> Callable:
    """Return a function that makes unused names, by adding a number."""
    names = names_of(kernel.body) | {p.name for p in kernel.params}

    def new(name: str) -> str:
        free = next(f"{name}_{i}" for i in count(1) if f"{name}_{i}" not in names)
        names.add(free)
        return free

    return new


def local(kernel: Kernel, loop: For) -> set:
    """Return the variables that are assigned and used only inside a loop."""
    beside = outside(kernel, loop)
    external = {p for s in beside for e in expressions(s) for p in parts(e) if isinstance(p, Var)}
    external |= {s.var for s in beside if isinstance(s, Let)}
    return {s.var for s in statements(loop.body) if isinstance(s, Let)} - external


def with_names(body: tuple, renames: dict) -> tuple:
    """Rename assigned variables in statements: old -> new."""
    out = []
    for s in body:
        if isinstance(s, Let | For):
            s = replace(s, var=renames.get(s.var, s.var))
        out.append(with_blocks(s, lambda block: with_names(block, renames)))
    return tuple(out)


def renamed(body: tuple, variables: set, new: Callable) -> tuple:
    """Rename counters and local variables of statements."""
    variables = variables | {s.var for s in statements(body) if isinstance(s, For)}
    renames = {v: Var(new(v.name), v.type) for v in sorted(variables, key=lambda v: v.name)}
    return with_names(substituted(body, renames), renames)


# -- dependences -----------------------------------------------------------------------
def reads_of(body: tuple) -> list[Load]:
    """Return all loads of statements."""
    return [
        p for s in statements(body) for e in expressions(s) for p in parts(e) if isinstance(p, Load)
    ]


def is_load(e: Expr) -> bool:
    """Return whether an expression is a load."""
    return isinstance(e, Load)


def carried(kernel: Kernel, loop: For, private: Iterable = ()) -> str:
    """Describe a loop-carried dependence; empty if the iterations are independent.

    private:  buffers that are private to each iteration.

    They are independent if each element stored by an iteration is accessed by no other, and
    each variable is assigned in an iteration before it is read.
    """
    if any(isinstance(s, Break | Return | While) for s in statements(loop.body)):
        return "ends early"
    if {s.var for s in statements(loop.body) if isinstance(s, Let)} - local(kernel, loop):
        return "sets what is used outside of it"
    return shared_memory(kernel, loop, private)


def shared_memory(kernel: Kernel, loop: For, private: Iterable = ()) -> str:
    """Describe a possible memory conflict between iterations; empty if there is none."""
    stores = [s for s in stores_of(loop.body) if s.buffer not in {*private}]
    touching: list[Store | Load] = [*stores, *reads_of(loop.body)]
    for store in stores:
        same = [a.index for a in touching if a.buffer == store.buffer]
        if not is_apart(kernel, store.buffer, same, loop, store.value.type.lanes):
            return f"may write {store.buffer.name} where another iteration reads or writes it"
    return ""


def outside(kernel: Kernel, loop: For) -> list:
    """Return the statements outside of a loop."""
    inside = {id(s) for s in statements(loop.body)}
    return [s for s in statements(kernel.body) if id(s) not in inside]


def live_in(body: tuple, defined: set) -> str:
    """Return a variable that a block may read before assigning it; empty if there is none."""
    assigned = {s.var for s in statements(body) if isinstance(s, Let)}

    def walk(body: tuple, defined: set) -> set:
        for s in body:
            for e in expressions(s):
                for p in parts(e):
                    if isinstance(p, Var) and p in assigned and p not in defined:
                        raise LookupError(p.name)
            if isinstance(s, Let):
                defined = defined | {s.var}
            inner = [walk(block, defined) for block in blocks(s)]
            if isinstance(s, If):
                defined = inner[0] & inner[1]
        return defined

    try:
        walk(body, defined)
    except LookupError as error:
        return error.args[0]
    return ""


def is_apart(kernel: Kernel, buffer: Buffer, indices: list, loop: For, width: int) -> bool:
    """Return whether iterations access disjoint parts of a buffer at these indices.

    An offset is upper + n * counter + common + lower: `common` is the same for all,
    0 <= lower < n, and `upper` is a multiple of more than the rest can reach.
    """
    counters = {s.var: (s.start, s.stop - 1) for s in loops_of(kernel)}
    scope = {p for p in kernel.params if isinstance(p, Var)} | counters.keys()
    inner = {s.var for s in statements(loop.body) if isinstance(s, For)}
    moving, common, lower, upper = None, const(0), [], []
    for index in indices:
        scale, offset, rest = const(0), const(0), []
        for key, n in terms(buffer.place(index)):
            if any(
                p not in scope if isinstance(p, Var) else is_load(p) for f in key for p in parts(f)
            ):
                return False
            if loop.var in key:
                scale = scale + product(tuple(f for f in key if f is not loop.var)) * n
            elif any(p in inner or p is loop.var for f in key for p in parts(f)):
                rest.append((key, n))
            else:
                offset = offset + product(key) * n
        if moving is None:
            moving, common = scale, offset
        if scale is not moving or any(p in inner or p is loop.var for p in parts(scale)):
            return False
        offset = offset - common
        for key, n in rest:
            step = product(tuple(f for f in key if f not in inner)) * n
            is_digit = sum(f in inner for f in key) == 1 and not any(
                p in inner for p in parts(step)
            )
            if is_digit and step is not moving and never_negative(step - moving, counters):
                upper.append(step)
            else:
                offset = offset + product(key) * n
        lower.append(offset)
    if moving is None or moving is const(0):
        return False
    span = moving * (loop.stop - loop.start)
    return any(
        (unit is None or never_negative(unit - span, counters))
        and all(
            never_negative(low, counters) and never_negative(moving - low - width, counters)
            for low in (modulo(low, unit) for low in lower)
        )
        for unit in units(upper, lower)
    )


def units(upper: list, lower: list) -> list:
    """Return common divisors of the upper parts; none is needed if there are no upper parts."""
    pairs = [terms(scale) for scale in upper]
    if any(len(pair) != 1 or pair[0][0] != pairs[0][0][0] for pair in pairs):
        return []
    whole = math.gcd(*(pair[0][1] for pair in pairs))
    if pairs and pairs[0][0][0]:
        return [product(pairs[0][0][0]) * whole]
    offsets = {abs(n) for low in lower for key, n in terms(low) if not key}
    sizes = offsets | {whole // d for d in range(1, math.isqrt(whole) + 1) if whole % d == 0}
    return [None] * (not pairs) + [const(n) for n in sorted(sizes) if n and whole % n == 0]


def modulo(e: Expr, unit: Expr | None) -> Expr:
    """Reduce an index expression's constant modulo a unit."""
    offset = sum(n for key, n in terms(e) if not key)
    return e - (offset - offset % unit.value) if isinstance(unit, Const) else e


def product(key: tuple) -> Expr:
    """Return the product of factors."""
    out = const(1)
    for f in key:
        out = out * f
    return out


# -- schedules -------------------------------------------------------------------------
def split(kernel: Kernel, name: str, factor: int, inner: str = "in") -> Kernel:
    """Split a loop into chunks of `factor` iterations; the inner loop is `name_in`, and a
    separate loop handles the remainder."""
    loop, new = loop_of(kernel, name), fresh(kernel)
    must_be_count(kernel, name, factor)
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
        tail = renamed(loop.body, local(kernel, loop) if out else set(), new) if out else loop.body
        first = loop.start + pieces * factor
        out.append(For(rest, first, loop.stop, substituted(tail, {loop.var: rest})))
    return changed(kernel, name, lambda _: out)


def unroll(kernel: Kernel, name: str) -> Kernel:
    """Unroll a loop of constant trip count."""
    loop, new = loop_of(kernel, name), fresh(kernel)
    out: list = []
    local_vars = local(kernel, loop)
    for i in iterations(kernel, loop):
        body = substituted(loop.body, {loop.var: const(i)})
        out += renamed(body, local_vars, new) if i else body
    return changed(kernel, name, lambda _: out)


def jam(kernel: Kernel, name: str) -> Kernel:
    """Unroll and jam: interleave the iterations of a loop of constant trip count, so that they
    share inner loops and common loads."""
    loop, new = loop_of(kernel, name), fresh(kernel)
    if why := carried(kernel, loop):
        refuse(kernel, name, why)
    inner = [s for s in statements(loop.body) if isinstance(s, For)]
    if any(loop.var in parts(e) for s in inner for e in (s.start, s.stop)):
        refuse(kernel, name, "is one that loops inside depend on")
    copies, local_vars = [], sorted(local(kernel, loop), key=lambda v: v.name)
    for i in iterations(kernel, loop):
        renames = {v: Var(new(v.name), v.type) for v in local_vars} if i else {}
        copies.append(with_names(substituted(loop.body, {loop.var: const(i), **renames}), renames))
    return changed(kernel, name, lambda _: side_by_side(copies, new))


def side_by_side(copies: list, new: Callable) -> list:
    """Interleave copies: their first statements, then the second ones, and so on."""
    out: list = []
    for same in zip(*copies, strict=True):
        if isinstance(same[0], For):
            out.append(replace(same[0], body=tuple(side_by_side([s.body for s in same], new))))
        else:
            out += same
    return named_loads(out, new)


def named_loads(body: list, new: Callable) -> list:
    """Load once, into a variable, what neighboring statements load in common."""
    out: list = []
    run: list = []

    def flush() -> None:
        loads = [p for s in run for p in dict.fromkeys(reads_of((s,)))]
        repeated = {p for p in loads if loads.count(p) > 1}
        shared = {}
        for s in run:
            for p in reads_of((s,)):
                if p in repeated and p not in shared:
                    shared[p] = Var(new("shared"), p.type)
                    out.append(Let(shared[p], p))
            out.append(replace(s, value=rebuilt(s.value, lambda e: shared.get(e, e))))
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
    """Vectorize a whole short loop, whose counter is the last index of its accesses; variables
    that it assigns become vectors."""
    loop = loop_of(kernel, name)
    if why := carried(kernel, loop):
        refuse(kernel, name, why)
    lanes = len(iterations(kernel, loop))
    if lanes < 2:
        refuse(kernel, name, "has too few iterations for a vector")
    return changed(kernel, name, lambda _: Widener(kernel, loop, lanes).body(loop.body))


def accumulate(kernel: Kernel, name: str, lanes: int = LANES) -> Kernel:
    """Vectorize a reduction with one accumulator per lane; combine the lanes after the loop.

    Sums must be reassociable (`add_up`, `multiply_up`); for maxima and minima, order doesn't
    matter.
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
    """Return the loop-carried variables."""
    variables: list = []
    while name := live_in(body, set(variables)):
        variables += {s.var for s in statements(body) if isinstance(s, Let) and s.var.name == name}
    return variables


def step_of(kernel: Kernel, loop: For, var: Var) -> tuple:
    """Return (operation, update) of a reduction.

    Raises:  ScheduleError if the loop updates the variable in any other way.
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
    """Return whether an expression reads a variable."""
    return any(p is var for p in parts(e))


def iterations(kernel: Kernel, loop: For) -> range:
    """Return the counter's values in a loop of constant trip count."""
    if not isinstance(loop.start, Const) or not isinstance(loop.stop, Const):
        refuse(kernel, loop.var.name, "has no known length")
    return range(loop.start.value, loop.stop.value, loop.step)


class Widener:
    """Turns values that vary with a loop's counter into vectors.

    vectors: scalar variable -> vector variable.
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
        """Make a variable a vector."""
        if var.type.kind not in (*VECTOR_TYPES, "bool"):
            self.refuse(f"sets {var.name}, of {var.type}")
        self.vectors[var] = Var(self.new(var.name), Type(var.type.kind, self.lanes))

    def refuse(self, why: str) -> NoReturn:
        """Raise a ScheduleError that names the loop."""
        refuse(self.kernel, self.loop.var.name, why)

    def changes(self, e: Expr) -> bool:
        """Return whether a value varies with the counter."""
        return any(p is self.loop.var or p in self.vectors for p in parts(e))

    def body(self, body: tuple) -> tuple:
        """Return statements in vector form."""
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
        """Return the index of the first lane."""
        var = self.loop.var
        moving = [n for key, n in terms(buffer.place(index)) if any(uses(f, var) for f in key)]
        straight = [n for key, n in terms(buffer.place(index)) if key == (var,)]
        of_data = any(v in parts(i) for i in index for v in self.vectors)
        if moving != [1] or straight != [1] or of_data:
            self.refuse(f"does not go through {buffer.name} side by side")
        if buffer.kind not in VECTOR_TYPES:
            self.refuse(f"goes through {buffer.name}, of {buffer.kind}")
        zero = {var: const(0)}
        return tuple(rebuilt(i, lambda e: zero.get(e, e)) for i in index)

    def wide(self, e: Expr) -> Expr:
        """Return a value as a vector, by broadcasting if it is a scalar."""
        e = self.value(e)
        return e if e.type.lanes > 1 else Call("splat", (e,), Type(e.type.kind, self.lanes))

    def value(self, e: Expr) -> Expr:
        """Return a value, as a vector if it varies."""
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
                if kinds == ("int32", "float32") or name == "bitcast" and {*kinds} <= VECTOR_TYPES:
                    return Call(name, (self.value(a),), Type(type.kind, self.lanes))
            case Call(name, args, type) if can_be_wide(name, args):
                return Call(name, tuple(map(self.wide, args)), Type(type.kind, self.lanes))
        self.refuse(f"computes {e}")


def can_be_wide(name: str, args: tuple) -> bool:
    """Return whether an operation has a vector form."""
    kinds = {a.type.kind for a in args}
    if name == "select":
        return kinds <= {*VECTOR_TYPES, "bool"} and args[1].type.kind in VECTOR_TYPES
    if kinds == {"bool"}:
        return name in ("and", "or", "not", "!=")
    if kinds == {"int32"}:
        return name in WHOLE
    return kinds == {"float32"} and name in FLOAT


# -- the order of loops ----------------------------------------------------------------
def reorder(kernel: Kernel, *names: str) -> Kernel:
    """Reorder nested loops, outermost first; statements beside an inner loop are distributed
    into separate loops."""
    for name in names:
        loop_of(kernel, name)
    while True:
        order = [s.var.name for s in loops_of(kernel) if s.var.name in names]
        pairs = zip(order, order[1:], strict=False)
        wrong = [(a, b) for a, b in pairs if names.index(a) > names.index(b)]
        if not wrong:
            return kernel
        kernel = swapped(kernel, *wrong[0])


def swapped(kernel: Kernel, name: str, other: str) -> Kernel:
    """Interchange a loop with the one directly inside it."""
    loop, inner, new = loop_of(kernel, name), loop_of(kernel, other), fresh(kernel)
    if all(s is not inner for s in loop.body):
        refuse(kernel, name, f"has no loop over {other} directly inside")
    if any(uses(e, loop.var) for e in (inner.start, inner.stop)):
        refuse(kernel, other, f"has bounds that depend on {name}")
    at = [s is inner for s in loop.body].index(True)
    groups = [g for g in (loop.body[:at], (inner,), loop.body[at + 1 :]) if g]
    for i, group in enumerate(groups):
        reads = {p for s in statements(group) for e in expressions(s) for p in parts(e)}
        for s in statements(sum(groups[:i] + groups[i + 1 :], ())):
            if isinstance(s, Let) and s.var in reads:
                refuse(kernel, name, f"sets {s.var.name} beside the loop over {other}")
    out = []
    for group in groups:
        if group == (inner,):
            out.append(replace(inner, body=(replace(loop, body=inner.body),)))
        else:
            var = Var(new(name), INDEX)
            out.append(replace(loop, var=var, body=substituted(group, {loop.var: var})))
    result = changed(kernel, name, lambda _: out)
    why = carried(kernel, loop)
    if why and (len(groups) > 1 or carried(result, loop_of(result, other))):
        refuse(kernel, name, why)
    return result


def tile(kernel: Kernel, name: str, other: str, rows: int, columns: int) -> Kernel:
    """Tile two nested loops; `name_in` and `other_in` iterate over one tile."""
    for n, size in ((name, rows), (other, columns)):
        must_be_count(kernel, n, size)
        if not is_long(loop_of(kernel, n), size):
            refuse(kernel, n, f"has fewer than {size} iterations")
        kernel = split(kernel, n, size)
    return reorder(kernel, other, f"{name}_in")


def fuse(kernel: Kernel, name: str, other: str) -> Kernel:
    """Fuse two consecutive loops, so that elements are reused while they are in cache."""
    first, second = loop_of(kernel, name), loop_of(kernel, other)
    if (first.start, first.stop, first.step) != (second.start, second.stop, second.step):
        refuse(kernel, other, f"has other bounds than the loop over {name}")
    body = first.body + substituted(second.body, {second.var: first.var})
    pairs = [(a, b) for block in all_blocks(kernel.body) for a, b in pairwise(block)]
    if not any(a is first and b is second for a, b in pairs):
        refuse(kernel, other, f"does not follow the loop over {name}")
    result = changed(kernel, other, lambda _: [])
    result = changed(result, name, lambda loop: [replace(loop, body=body)])
    if why := carried(result, loop_of(result, name)):
        refuse(kernel, name, f"cannot be one with the loop over {other}: it {why}")
    return result


def all_blocks(body: tuple) -> list:
    """Return a block and all nested blocks."""
    return [body, *(b for s in body for block in blocks(s) for b in all_blocks(block))]


def parallel(kernel: Kernel, name: str) -> Kernel:
    """Let threads share a loop; work buffers that each iteration fills become private."""
    loop = loop_of(kernel, name)
    if all(s is not loop for s in kernel.body):
        refuse(kernel, name, "is inside another one, and threads share only an outermost loop")
    if any(isinstance(s, Let) for s in kernel.body):
        refuse(kernel, name, "stands beside variables, which threads do not share")
    if why := carried(kernel, loop, {b for b in kernel.buffers if is_private(kernel, loop, b)}):
        refuse(kernel, name, why)
    return changed(kernel, name, lambda loop: [replace(loop, parallel=True)])


def is_private(kernel: Kernel, loop: For, buffer: Buffer) -> bool:
    """Return whether a work buffer is used only in a loop, and each iteration fills it first."""
    beside = [s for s in outside(kernel, loop) if not any(blocks(s))]
    return (
        buffer.space == "work"
        and all(buffer not in touched_by(s) for s in beside)
        and fills_first(loop.body, buffer)
    )


def touched_by(s: Any) -> set:
    """Return the buffers that a statement accesses."""
    return {p.buffer for p in reads_of((s,))} | {p.buffer for p in stores_of((s,))}


def fills_first(body: tuple, buffer: Buffer) -> bool:
    """Return whether a block, or a loop in it, writes a whole buffer before reading it."""
    for s in body:
        if buffer in {p.buffer for p in reads_of((s,))}:
            if not isinstance(s, For) or not fills_first(s.body, buffer):
                return False
        stores = [
            spans_of(a, a.value.type.lanes, ranges)
            for a, ranges, always in accesses((s,), {}, {})
            if always and isinstance(a, Store) and a.buffer == buffer
        ]
        if covers(buffer, stores):
            return True
    return True


# -- memory ----------------------------------------------------------------------------
def hold(kernel: Kernel, name: str, buffer: str) -> Kernel:
    """Keep a loop's single element of a buffer in a register: load it before the loop, or
    forward it from a preceding store, and store it after the loop."""
    loop, new = loop_of(kernel, name), fresh(kernel)
    stores = [s for s in stores_of(loop.body) if s.buffer.name == buffer]
    places = {s.index for s in stores}
    places |= {p.index for p in reads_of(loop.body) if p.buffer.name == buffer}
    if len(places) != 1 or not stores:
        refuse(kernel, name, f"touches {len(places)} places of {buffer}, not one that it writes")
    ((index,), assigned) = (
        tuple(places),
        {s.var for s in (loop, *statements(loop.body)) if hasattr(s, "var")},
    )
    if any(p in assigned or is_load(p) for i in index for p in parts(i)):
        refuse(kernel, name, f"moves through {buffer}")
    counters = {s.var: (s.start, s.stop - 1) for s in loops_of(kernel)}
    if not never_negative(loop.stop - loop.start - 1, counters):
        refuse(kernel, name, "may have no iteration")
    element = Load(stores[0].buffer, index, stores[0].value.type.lanes)
    if any(s.value.type != element.type for s in stores):
        refuse(kernel, name, f"stores vectors of several lengths in {buffer}")
    var = Var(new(buffer), element.type)

    def in_register(body: tuple) -> tuple:
        out = []
        for s in mapped(body, lambda e: rebuilt(e, lambda p: var if p is element else p)):
            if isinstance(s, Store) and s.buffer == element.buffer:
                s = Let(var, s.value)
            out.append(with_blocks(s, in_register))
        return tuple(out)

    whole = replace(loop, body=in_register(loop.body))
    result = changed(
        kernel, name, lambda _: [Let(var, element), whole, Store(element.buffer, index, var)]
    )
    return replace(result, body=without_store(result.body, Let(var, element)))


def without_store(body: tuple, load: Let) -> tuple:
    """Forward the value of a store to the load right after it."""
    out: list = []
    for s in body:
        before = out[-1] if out else None
        s = with_blocks(s, lambda block: without_store(block, load))
        if s == load and isinstance(before, Store):
            if (before.buffer, before.index) == (s.value.buffer, s.value.index):
                if before.value.type == s.var.type:
                    s = Let(s.var, out.pop().value)
        out.append(s)
    return tuple(out)


def pack(kernel: Kernel, name: str, buffer: str, order: tuple = ()) -> Kernel:
    """Pack the part of a buffer that one iteration reads into contiguous memory.

    order:  the inner loops that index the buffer, slowest first.
    """
    loop, new = loop_of(kernel, name), fresh(kernel)
    loads = {p for p in reads_of(loop.body) if p.buffer.name == buffer}
    if len(loads) != 1:
        refuse(kernel, name, f"reads {len(loads)} places of {buffer}, not one that moves")
    if any(s.buffer.name == buffer for s in stores_of(loop.body)):
        refuse(kernel, name, f"writes {buffer}, whose copy would be old")
    (load,) = loads
    outer = around(loop.body, load)
    if any(isinstance(s, If | While) for s in outer):
        refuse(kernel, name, f"reads {buffer} under a condition")
    moving = {s.var.name: s for s in outer if any(uses(i, s.var) for i in load.index)}
    bounds = {p for s in moving.values() for e in (s.start, s.stop) for p in parts(e)}
    assigned = {s.var for s in statements(loop.body) if isinstance(s, Let)}
    if any(is_load(p) or p in assigned for i in load.index for p in parts(i)) or bounds & assigned:
        refuse(kernel, name, f"reads {buffer} where data say")
    scales = {n: scale_of(load, s.var) for n, s in moving.items()}
    order = order or tuple(sorted(moving, key=lambda n: -scales[n]))
    if {*order} != {*moving}:
        refuse(kernel, name, f"moves through {buffer} by {', '.join(moving)}")
    counts = [len(iterations(kernel, moving[n])) for n in order]
    if not all(counts):
        refuse(kernel, name, "has a loop without iterations inside")
    size = math.prod(counts) * load.lanes
    scratch = Buffer(new(buffer), load.buffer.kind, (const(size),), "work")
    at = const(0)
    for n, times in zip(order, counts, strict=True):
        first, step = moving[n].start, moving[n].step
        if step != 1:
            refuse(kernel, n, "has a step")
        at = at * times + (moving[n].var - first)
    packed = Load(scratch, (at * load.lanes,), load.lanes)
    copies = {moving[n].var: Var(new(n), INDEX) for n in order}
    body: tuple = substituted((Store(scratch, packed.index, load),), copies)
    for n in reversed(order):
        body = (replace(moving[n], var=copies[moving[n].var], body=body),)
    rest = mapped(loop.body, lambda e: rebuilt(e, lambda p: packed if p is load else p))
    kernel = changed(kernel, name, lambda _: [replace(loop, body=body + rest)])
    return replace(kernel, params=(*kernel.params, scratch))


def scale_of(load: Load, var: Var) -> int:
    """Return the stride of a counter in a buffer if it is constant; else 0."""
    return sum(n for key, n in terms(load.buffer.place(load.index)) if key == (var,))


def around(body: tuple, load: Load) -> list:
    """Return the loops and conditionals around a load, outermost first."""
    for s in body:
        if load in reads_of((s,)):
            inner = [t for block in blocks(s) for t in around(block, load)]
            return [s, *inner] if isinstance(s, For | If | While) else inner
    return []


def stores_of(body: tuple) -> list[Store]:
    """Return all stores of statements."""
    return [s for s in statements(body) if isinstance(s, Store)]


# -- a chain of rewrites ---------------------------------------------------------------
class Loops:
    """A kernel with transformations as chainable methods. After a split, the loop's name means
    its innermost part in `unroll`, `jam` and `vectorize`.

    history: (transformation, kernel after it) for each.
    """

    def __init__(self, kernel: Kernel, history: tuple = ()) -> None:
        self.kernel, self.history = kernel, history

    def then(self, rewrite: Callable, *args: Any) -> "Loops":
        """Apply one more transformation."""
        kernel = rewrite(self.kernel, *args)
        step = f"{rewrite.__name__}({', '.join(map(repr, args))})"
        return Loops(kernel, (*self.history, (step, kernel)))

    def inner(self, name: str) -> str:
        """Return the innermost part of a split loop."""
        names = names_of(self.kernel.body)
        while f"{name}_in" in names:
            name = f"{name}_in"
        return name

    def split(self, name: str, factor: int) -> "Loops":
        """Split a loop into chunks of `factor` iterations; the inner loop is `name_in`."""
        return self.then(split, name, factor)

    def reorder(self, *names: str) -> "Loops":
        """Reorder nested loops, outermost first."""
        return self.then(reorder, *names)

    def tile(self, name: str, other: str, rows: int, columns: int) -> "Loops":
        """Tile two nested loops by `rows` and `columns` iterations."""
        return self.then(tile, name, other, rows, columns)

    def fuse(self, name: str, other: str) -> "Loops":
        """Fuse two consecutive loops."""
        return self.then(fuse, name, other)

    def unroll(self, name: str) -> "Loops":
        """Unroll a loop."""
        return self.then(unroll, self.inner(name))

    def jam(self, name: str) -> "Loops":
        """Unroll a loop and jam its iterations into shared inner loops."""
        return self.then(jam, self.inner(name))

    def vectorize(self, name: str, lanes: int | None = None) -> "Loops":
        """Vectorize a loop, all at once or `lanes` iterations at a time."""
        name = self.inner(name)
        if lanes is not None and not iterations_are(self.kernel, name, lanes):
            must_be_count(self.kernel, name, lanes)
            if not is_long(loop_of(self.kernel, name), lanes):
                refuse(self.kernel, name, f"has fewer than {lanes} iterations")
            return self.split(name, lanes).vectorize(name)
        return self.then(vectorize, name)

    def hold(self, name: str, buffer: str) -> "Loops":
        """Keep a loop's single element of a buffer in a register."""
        return self.then(hold, name, buffer)

    def pack(self, name: str, buffer: str, *order: str) -> "Loops":
        """Pack what an iteration reads of a buffer into contiguous memory."""
        return self.then(pack, name, buffer, order)

    def parallel(self, name: str) -> "Loops":
        """Let threads share a loop."""
        return self.then(parallel, name)

    def accumulate(self, name: str, lanes: int = LANES) -> "Loops":
        """Vectorize a reduction."""
        return self.then(accumulate, name, lanes)


def iterations_are(kernel: Kernel, name: str, lanes: int) -> bool:
    """Return whether a loop has exactly `lanes` iterations."""
    loop = loop_of(kernel, name)
    return loop.stop - loop.start is const(lanes)


# -- the choice ------------------------------------------------------------------------
def attempt(kernel: Kernel, *steps: Callable) -> Kernel | None:
    """Apply schedules; return `None` if one of them is illegal."""
    try:
        for step in steps:
            kernel = step(kernel)
    except ScheduleError:
        return None
    return kernel


def is_product(loop: For) -> bool:
    """Return whether a loop accumulates products."""
    return any(
        isinstance(s, Let)
        and isinstance(s.value, Call)
        and s.value.name == "add_up"
        and any(isinstance(p, Call) and p.name == "*" for p in parts(s.value))
        for s in loop.body
    )


def is_long(loop: For, least: int) -> bool:
    """Return whether a loop may have at least this many iterations."""
    length = loop.stop - loop.start
    return not isinstance(length, Const) or length.value >= least


@lru_cache(256)
def scheduled(kernel: Kernel) -> Kernel:
    """Choose a schedule: vectorize contiguous reductions, or else the loop around them, and jam
    products to share loads."""
    around = []  # loops around products, innermost first
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
