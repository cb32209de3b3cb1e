"""The verifier of the loop IR.

Defines: `verify`: types agree, names are unique and defined before use; `check`: in
         addition, every index is in bounds, every output is fully written, and nothing is
         read before it is written.

Bounds are proved for all lengths of at least 1: an index is a polynomial, in which counters
are replaced by their bounds. Data-dependent indices can't be proved, and `check` rejects
them.
Not checked: whether two stores overlap.
"""

from collections.abc import Iterator
from typing import NoReturn

from minihybrid.codegen import ir
from minihybrid.core.op import HybridError

SAME = "min max neg abs sqrt floor ceil copysign fmod fma add_up multiply_up".split()


class KernelError(HybridError):
    """An invalid kernel."""


def fail(kernel: ir.Kernel, what: str) -> NoReturn:
    """Raise a KernelError that names the kernel."""
    raise KernelError(f"kernel {kernel.name}: {what}")


# -- types and names -------------------------------------------------------------------
def verify(kernel: ir.Kernel) -> None:
    """Raise a KernelError unless types agree and every name is defined before it is read."""
    names = [p.name for p in kernel.params]
    counters = [s.var.name for s in ir.statements(kernel.body) if isinstance(s, ir.For)]
    lets = {s.var.name for s in ir.statements(kernel.body) if isinstance(s, ir.Let)}
    for name in [*names, *counters, *lets]:
        if [*names, *counters, *lets].count(name) > 1:
            fail(kernel, f"the name {name} has two meanings")
    _verify(kernel, kernel.body, {p for p in kernel.params if isinstance(p, ir.Var)})


def _verify(kernel: ir.Kernel, body: tuple, names: set) -> set:
    """Verify a block; return the names defined after it."""
    for s in body:
        for e in ir.expressions(s):
            for part in ir.parts(e):
                _typed(kernel, part, names)
        match s:
            case ir.Let(var, value):
                if var.type != value.type:
                    fail(kernel, f"{var.name} is {var.type}, but its value {value.type}")
                if any(v.name == var.name and v.type != var.type for v in names):
                    fail(kernel, f"{var.name} has two types")
                names = names | {var}
            case ir.Store(buffer, index, value):
                _typed(kernel, ir.Load(buffer, index, value.type.lanes), names)
                if buffer.space == "in":
                    fail(kernel, f"the input {buffer.name} is written")
                if value.type.kind != buffer.kind:
                    fail(kernel, f"{value.type} is stored in {buffer.name}, of {buffer.kind}")
            case ir.For(var, start, stop, inner, step):
                if not var.type == start.type == stop.type == ir.INDEX or step < 1:
                    fail(kernel, f"the loop over {var.name} does not count")
                _verify(kernel, inner, names | {var})
            case ir.While(test, inner):
                _condition(kernel, test)
                _verify(kernel, inner, names)
            case ir.If(test, inner, orelse):
                _condition(kernel, test)
                names = _verify(kernel, inner, names) & _verify(kernel, orelse, names)
            case ir.Return(value):
                if value.type != kernel.result:
                    fail(kernel, f"it returns {value.type}, not {kernel.result}")
            case ir.Break():
                pass
    if body and isinstance(body[-1], (ir.Return, ir.Break)):
        return {
            v for s in ir.statements(kernel.body) if isinstance(s, ir.Let) for v in [s.var]
        } | names
    return names


def _condition(kernel: ir.Kernel, test: ir.Expr) -> None:
    if test.type != ir.BOOL:
        fail(kernel, f"the condition {ir.text(test)} is {test.type}")


def _typed(kernel: ir.Kernel, e: ir.Expr, names: set) -> None:
    """Verify the type and names of one expression."""
    kinds = [a.type for a in e.args] if isinstance(e, ir.Call) else []
    right = True
    match e:
        case ir.Var():
            if e not in names:
                fail(kernel, f"{e.name}, {e.type}, is read where it is not defined")
        case ir.Load(buffer, index, _):
            if buffer not in kernel.params:
                fail(kernel, f"{buffer.name} is no buffer of it")
            right = len(index) == len(buffer.shape) and all(i.type == ir.INDEX for i in index)
        case ir.Sum(pairs):
            right = all(f.type == ir.INDEX for key, _ in pairs for f in key)
        case ir.Call(name, (a, b), type) if name in ir.COMPARISONS:
            right = a.type == b.type and type == a.type.of("bool")
        case ir.Call("<<" | ">>", (a, _), type):
            right = type == a.type
        case ir.Call(name, _, type) if name in ir.SIGNS or name in SAME:
            right = all(kind == type for kind in kinds)
        case ir.Call("and" | "or" | "not", _, type):
            right = all(kind == type for kind in kinds) and type.kind == "bool"
        case ir.Call("select", (test, a, b), type):
            right = a.type == b.type == type and test.type == type.of("bool")
        case ir.Call("splat", (a,), type):
            right = a.type == ir.Type(type.kind) and type.lanes > 1
        case ir.Call("masked", (a, *mask), type):
            right = a.type == type and all(m.type == ir.INDEX for m in mask)
        case ir.Call("table", (at, *items), type):
            right = at.type == ir.INDEX and all(i.type == type for i in items)
        case ir.Call("total", (a,), type):
            right = a.type.lanes > 1 and type == ir.Type(a.type.kind)
        case ir.Call("cast" | "bitcast", (a,), type):
            right = a.type.lanes == type.lanes
    if not right:
        fail(kernel, f"{ir.text(e)} is {e.type}, of {', '.join(map(str, kinds)) or 'its index'}")


# -- bounds and outputs ----------------------------------------------------------------
def check(kernel: ir.Kernel) -> None:
    """Raise a KernelError unless a kernel is valid for all lengths, memory accesses included."""
    verify(kernel)
    for access, ranges, _ in accesses(kernel.body, {}, once(kernel)):
        width = access.value.type.lanes if isinstance(access, ir.Store) else access.lanes
        wide = [*[1] * (len(access.index) - 1), width]
        for i, n, lanes in zip(access.index, access.buffer.shape, wide, strict=True):
            if not never_negative(i, ranges) or not never_negative(ir.const(n) - i - lanes, ranges):
                fail(kernel, f"{access.buffer.name}: {ir.text(i)} is not known to lie in {n}")
    _written(kernel)


def once(kernel: ir.Kernel) -> dict:
    """Return the definitions of index variables that are assigned once."""
    lets = [
        s for s in ir.statements(kernel.body) if isinstance(s, ir.Let) and s.var.type == ir.INDEX
    ]
    count = [s.var for s in lets]
    return {s.var: s.value for s in lets if count.count(s.var) == 1}


def accesses(body: tuple, ranges: dict, defs: dict, always: bool = True) -> Iterator[tuple]:
    """Yield (load or store, ranges of the enclosing counters, whether it is unconditional).

    ranges:  counter -> (minimum, maximum).
    """
    for s in body:
        for e in ir.expressions(s):
            yield from ((p, ranges | defs, always) for p in ir.parts(e) if isinstance(p, ir.Load))
        if isinstance(s, ir.Store):
            yield s, ranges | defs, always
        inner = ranges
        if isinstance(s, ir.For):
            inner = ranges | {s.var: (s.start, s.stop - 1)}
        every = always and isinstance(s, ir.For) and s.step == 1
        for block in ir.blocks(s):
            yield from accesses(block, inner, defs, every)


def never_negative(e: ir.Expr, ranges: dict) -> bool:
    """Return whether an index expression is provably nonnegative, by substituting bounds."""
    e, pairs = ir.const(e), ir.terms(ir.const(e))
    for key, n in pairs:
        for k, atom in enumerate(key):
            rest = ir.summed((other, m) for other, m in pairs if other != key)
            others = key[:k] + key[k + 1 :]

            def instead(
                value: ir.Expr, scale: int = n, rest: ir.Expr = rest, others: tuple = others
            ) -> bool:
                for other in others:
                    value = value * other
                return never_negative(rest + value * scale, ranges)

            match atom, ranges.get(atom):
                case _, (least, most):
                    return instead(least if n > 0 else most)
                case _, ir.Expr() as value:
                    return instead(value)
                case ir.Call("min", (a, b), _), _:
                    return (instead(a) and instead(b)) if n > 0 else (instead(a) or instead(b))
                case ir.Call("max", (a, b), _), _:
                    return (instead(a) or instead(b)) if n > 0 else (instead(a) and instead(b))
                case ir.Call("//", (a, ir.Const(c, _)), _), _ if c > 0 and n % c == 0:
                    if n > 0 and never_negative(a, ranges) and instead(ir.const(0)):
                        return True
                    return instead(a - (c - 1), n // c) if n > 0 else instead(a, n // c)
                case ir.Call("//", (a, ir.Const(c, _)), _), _ if c > 0:
                    return never_negative(a, ranges) and n > 0 and instead(ir.const(0))
                case ir.Call("%", (a, ir.Const(c, _)), _), _ if c > 0:
                    return instead(ir.const(0) if n > 0 else ir.const(c - 1))
    return sum(n for _, n in pairs) >= 0 and all(n >= 0 for key, n in pairs if key)


def _written(kernel: ir.Kernel) -> None:
    """Check that outputs are fully written, and that only inputs are read before a write."""
    stored: dict[ir.Buffer, list] = {}
    for access, ranges, always in accesses(kernel.body, {}, once(kernel)):
        if isinstance(access, ir.Store):
            spans = spans_of(access, access.value.type.lanes, ranges) if always else [None]
            stored.setdefault(access.buffer, []).append(spans)
        elif access.buffer.space != "in" and access.buffer not in stored:
            fail(kernel, f"{access.buffer.name} is read before it is written")
    for buffer in kernel.buffers:
        if buffer.space == "out" and not covers(buffer, stored.get(buffer, [])):
            fail(kernel, f"the output {buffer.name} is not known to be written everywhere")


def spans_of(store: ir.Store, lanes: int, ranges: dict) -> list:
    """Return (begin, end) per axis of a store that covers all in between, or None."""
    used: set = set()
    wide = [*[1] * (len(store.index) - 1), lanes]
    return [_span(i, n, ranges, used) for i, n in zip(store.index, wide, strict=True)]


def _span(index: ir.Expr, lanes: int, ranges: dict, used: set) -> tuple[ir.Expr, ir.Expr] | None:
    """Return the range of an index whose counters form a mixed-radix number, or None."""
    index, at, length = ir.const(index), ir.const(0), ir.const(lanes)
    for _ in range(8):  # definitions may be nested
        for v in [
            f for key, _ in ir.terms(index) for f in key if isinstance(ranges.get(f), ir.Expr)
        ]:
            index = ir.total(
                ranges[v] * n if key == (v,) else ir.summed([(key, n)])
                for key, n in ir.terms(index)
            )
    left = list(ir.terms(index))
    while True:
        for key, n in left:
            counters = [f for f in key if isinstance(ranges.get(f), tuple)]
            size = ir.summed([(tuple(f for f in key if f not in counters), n)])
            if len(counters) == 1 and size == length and counters[0] not in used:
                least, most = ranges[counters[0]]
                at, length = at + least * size, length * (most - least + 1)
                used.add(counters[0])
                left.remove((key, n))
                break
        else:
            break
    if any(f in ranges for key, _ in left for f in key):
        return None
    at = at + ir.summed(left)
    return at, at + length


def covers(buffer: ir.Buffer, stores: list) -> bool:
    """Return whether stores, consecutive along the last axis, cover a buffer."""
    whole = [s for s in stores if None not in s]
    if not buffer.shape:
        return bool(stores)
    front = [(ir.const(0), ir.const(n)) for n in buffer.shape[:-1]]
    ends = {first: end for *others, (first, end) in whole if others == front}
    at, visited = ir.const(0), set()
    while at in ends and at not in visited:
        visited.add(at)
        at = ends[at]
    return at == ir.binary("+", ir.const(buffer.shape[-1]), 0)
