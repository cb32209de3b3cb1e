"""The WebAssembly printer: loop IR as a binary module with SIMD.

Defines: `module`, the bytes of a module that exports its memory and one function of the
         batch size.

A buffer is the address of its first element; an index is an i32. An address is split into
terms in loop counters, which are computed at the innermost of these loops, data-dependent
terms, and a constant offset in the instruction. Functions without an instruction are
imported from `Math`. `fma` rounds twice.
Source:  the WebAssembly specification 2.0, chapter 5.
Not supported: vectors of types other than float32 and int32; threads.
"""

import struct
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import lru_cache

import numpy as np

from minihybrid.codegen.evaluate import MATH
from minihybrid.codegen.ir import (
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
    expressions,
    parts,
    statements,
    summed,
    terms,
)

GET, SET, TEE, I32CONST, ADD, MUL, SELECT, BR, BR_IF, END, ELSE = bytes.fromhex(
    "202122416a6c1b0c0d0b05"
)
BLOCK, LOOP, IF, EMPTY, CALL, EQZ = 0x02, 0x03, 0x04, 0x40, 0x10, 0x45
I32, I64, F32, F64, V128 = 0x7F, 0x7E, 0x7D, 0x7C, 0x7B
VALUE = {"float32": F32, "float64": F64, "int64": I64, "uint64": I64}  # all others: i32
FLOAT = "abs neg ceil floor trunc nearest sqrt + - * / min max copysign".split()
ORDER = "== != < > <= >=".split()
WHOLE = "+ - * // / % %u & | ^ << >> >>u".split()


def table(names: Sequence, first: int) -> dict:
    """Return name -> opcode for consecutive opcodes."""
    return {name: first + i for i, name in enumerate(names)}


SIGNED = "== != < <u > >u <= <=u >= >=u".split()
SCALAR = {
    F32: table(FLOAT, 0x8B) | table(ORDER, 0x5B),
    F64: table(FLOAT, 0x99) | table(ORDER, 0x61),
    I32: table(WHOLE, 0x6A) | table(SIGNED, 0x46),
    I64: table(WHOLE, 0x7C) | table(SIGNED, 0x51),
}
VECTOR = {
    "float32": table(ORDER, 0x41)
    | {"ceil": 0x67, "floor": 0x68, "abs": 0xE0, "neg": 0xE1, "sqrt": 0xE3}
    | table("+ - * / min max".split(), 0xE4),
    "int32": {"==": 0x37, "!=": 0x38, "<": 0x39, ">": 0x3B, "<=": 0x3D, ">=": 0x3F}
    | {"<<": 0xAB, ">>": 0xAC, "+": 0xAE, "-": 0xB1, "*": 0xB5, "&": 0x4E, "|": 0x50, "^": 0x51},
    "bool": {"and": 0x4E, "or": 0x50, "!=": 0x51, "&": 0x4E, "|": 0x50, "^": 0x51},
}
LOADS = {"int8": 0x2C, "uint8": 0x2D, "bool": 0x2D, "int16": 0x2E, "uint16": 0x2F}
STORES = {"int8": 0x3A, "uint8": 0x3A, "bool": 0x3A, "int16": 0x3B, "uint16": 0x3B}
LOADED = {I32: 0x28, I64: 0x29, F32: 0x2A, F64: 0x2B}
STORED = {I32: 0x36, I64: 0x37, F32: 0x38, F64: 0x39}
BITS = {(F32, I32): 0xBC, (F64, I64): 0xBD, (I32, F32): 0xBE, (I64, F64): 0xBF}
CONVERT = {(F32, I32): 0xB2, (F32, I64): 0xB4, (F64, I32): 0xB7, (F64, I64): 0xB9}
IMPORTED = {*MATH, "fmod"}


# -- the encoding ----------------------------------------------------------------------
def u(n: int) -> bytes:
    """Encode a nonnegative integer as unsigned LEB128.

    >>> u(300).hex()
    'ac02'
    """
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + u(n >> 7)


def s(n: int) -> bytes:
    """Encode an integer as signed LEB128.

    >>> s(-2).hex(), s(64).hex()
    ('7e', 'c000')
    """
    return bytes([n & 127]) if -64 <= n < 64 else bytes([n & 127 | 128]) + s(n >> 7)


def several(items: list) -> bytes:
    """Encode a vector of encoded items."""
    return u(len(items)) + b"".join(items)


def named(text: str) -> bytes:
    """Encode a name."""
    data = text.encode()
    return u(len(data)) + data


def section(number: int, payload: bytes) -> bytes:
    """Encode a section of a module; omit an empty one."""
    return bytes([number]) + u(len(payload)) + payload


def simd(code: int) -> bytes:
    """Encode a SIMD instruction."""
    return b"\xfd" + u(code)


def value_type(type: Type) -> int:
    """Return the WebAssembly type of a value."""
    return V128 if type.lanes > 1 else VALUE.get(type.kind, I32)


def item_size(kind: str) -> int:
    """Return the bytes of an element."""
    return np.dtype(kind).itemsize


# -- one kernel ------------------------------------------------------------------------
class Function:
    """Encodes one kernel."""

    def __init__(self, kernel: Kernel, imports: dict) -> None:
        self.imports, self.code = imports, bytearray()
        names = [p.name for p in kernel.params]
        self.locals = {name: i for i, name in enumerate(names)}
        self.kinds: list = []
        self.order = [p for p in kernel.params if isinstance(p, Var)]
        self.pointers: dict = {}  # (buffer, terms) -> local that contains the address
        self.depth = 0  # nesting of blocks
        self.ends: list[int] = []  # depths of the loops' outer blocks
        self.enter(None, kernel.body)
        self.statements(kernel.body)

    def encoded(self) -> bytes:
        """Return the function with its locals."""
        kinds = several([u(1) + bytes([kind]) for kind in self.kinds])
        body = kinds + bytes(self.code) + bytes([END])
        return u(len(body)) + body

    def local(self, key: Hashable, kind: int = I32) -> bytes:
        """Return the index of a local."""
        if key not in self.locals:
            self.locals[key] = len(self.locals)
            self.kinds.append(kind)
        return u(self.locals[key])

    def emit(self, *items: int | bytes) -> None:
        """Append opcodes and operands."""
        for item in items:
            self.code += bytes([item]) if isinstance(item, int) else item

    # -- addresses
    def split(self, buffer: Buffer, index: tuple) -> tuple:
        """Split an address: (terms in loop counters, data-dependent terms, constant), in bytes."""
        size, counted, other, offset = item_size(buffer.kind), {}, {}, 0
        for key, n in terms(buffer.place(index)):
            if not key:
                offset = n * size
            elif all(
                p in self.order or not isinstance(p, Var | Load) for f in key for p in parts(f)
            ):
                counted[key] = n * size
            else:
                other[key] = n * size
        return counted, other, offset

    def enter(self, counter: Var | None, body: tuple) -> None:
        """Compute the addresses that depend on this counter but on no inner one."""
        todo: dict = {}
        own, outer = {counter} if counter else set(self.order), self.order
        for buffer, index, inner in accesses(body):
            self.order = outer + inner
            counted = self.split(buffer, index)[0]
            while counted:
                last = max((v for v in self.order if uses(counted, v)), key=self.order.index)
                rest = {k: n for k, n in counted.items() if not uses({k: n}, last)}
                key = buffer.name, frozenset(counted.items())
                if last in own and key not in self.pointers:
                    todo[key] = counted, rest
                counted = rest
        self.order = outer
        for key, (counted, rest) in sorted(todo.items(), key=lambda t: len(t[0][1])):
            self.base(key[0], rest)
            self.expression(summed((k, n) for k, n in counted.items() if k not in rest))
            self.pointers[key] = self.local(key)
            self.emit(ADD, SET, self.pointers[key])

    def base(self, name: str, counted: dict) -> None:
        """Push a precomputed address."""
        key = name, frozenset(counted.items())
        self.emit(GET, self.pointers[key] if counted else self.local(name))

    def place(self, buffer: Buffer, index: tuple) -> bytes:
        """Push an address; return the memory argument of the instruction."""
        counted, other, offset = self.split(buffer, index)
        self.base(buffer.name, counted)
        if other:
            self.expression(summed(other.items()))
            self.emit(ADD)
        if offset < 0 or any(n < 0 for n in (*counted.values(), *other.values())):
            self.emit(I32CONST, s(offset), ADD)  # explicit, because the rest may be negative
            offset = 0
        align = min(item_size(buffer.kind), 8).bit_length() - 1
        return u(align) + u(offset)

    # -- expressions
    def expression(self, e: Expr) -> None:
        """Push a value."""
        kind, wide = value_type(e.type), e.type.lanes > 1
        match e:
            case Const(value, _):
                self.constant(value, kind)
            case Var(name, _):
                self.emit(GET, self.local(name, kind))
            case Sum(pairs):
                for i, (key, n) in enumerate(pairs):
                    for j, factor in enumerate(key):
                        self.expression(factor)
                        self.emit(*[MUL] * (j > 0))
                    if n != 1 or not key:
                        self.emit(I32CONST, s(n), *[MUL] * bool(key))
                    self.emit(*[ADD] * (i > 0))
            case Load(buffer, index, _):
                where = self.place(buffer, index)
                self.emit(simd(0) if wide else LOADS.get(buffer.kind, LOADED[kind]), where)
            case Call("splat", (Load(buffer, index, 1),), _) if item_size(buffer.kind) == 4:
                where = self.place(buffer, index)
                self.emit(simd(9), where)
            case Call("splat", (a,), _):
                self.expression(a)
                if a.type.kind == "bool":  # all bits of a lane
                    self.emit(I32CONST, s(-1), MUL)
                self.emit(simd(0x13 if a.type.kind == "float32" else 0x11))
            case Call("fma", (a, b, c), type):
                self.expression(Call("+", (Call("*", (a, b), type), c), type))
            case Call("total", (a,), _):
                self.total(a)
            case Call("lane", (a, Const(i, _)), _):
                self.expression(a)
                self.emit(simd(0x1F if e.type.kind == "float32" else 0x1B), int(i))
            case Call("select", (test, a, b), _):
                self.select(test, a, b, kind)
            case Call("cast", (a,), _):
                self.expression(a)
                self.cast(a.type, e.type)
            case Call("bitcast", (a,), _):
                self.expression(a)
                self.emit(*([] if wide else [BITS[value_type(a.type), kind]]))
            case Call("not", (a,), _):
                self.expression(a)
                self.emit(simd(0x4D) if wide else EQZ)
            case Call("and" | "or" as name, (a, b), _) if not wide and is_guarded(b):
                yes, no = (b, Const(0, e.type)) if name == "and" else (Const(1, e.type), b)
                self.select(a, yes, no, kind)
            case Call(name, args, _) if name in IMPORTED:
                self.all(*args)
                self.emit(CALL, u(self.imports[name]))
            case Call("//" | "%" as name, (a, b), _):
                self.floor_divided(name, a, b)
            case Call("min" | "max" as name, (a, b), _) if e.type == INDEX:
                self.all(a, b, a, b)
                self.emit(SCALAR[I32]["<" if name == "min" else ">"], SELECT)
            case Call("copysign", (a, b), type) if wide:
                self.all(a, b)
                self.emit(I32CONST, s(0x7FFFFFFF), simd(0x11), simd(0x52))
            case Call("neg", (a,), type) if kind in (I32, I64):
                self.expression(Call("-", (Const(0, type), a), type))
            case Call(name, args, _):
                self.operation(name, args)
                self.wrap(e.type)

    def all(self, *args: Expr) -> None:
        """Push several values."""
        for a in args:
            self.expression(a)

    def constant(self, value: float, kind: int) -> None:
        """Push a literal."""
        if kind in (F32, F64):
            self.emit(
                0x43 if kind == F32 else 0x44, struct.pack("<f" if kind == F32 else "<d", value)
            )
        elif kind == I64:
            self.emit(0x42, s((int(value) + 2**63) % 2**64 - 2**63))
        else:
            self.emit(I32CONST, s((int(value) + 2**31) % 2**32 - 2**31))

    def operation(self, name: str, args: tuple) -> None:
        """Emit a unary or binary instruction."""
        type = args[0].type
        name = {"add_up": "+", "multiply_up": "*"}.get(name, name)
        if type.lanes > 1:
            self.expression(args[0])
            for b in args[1:]:
                self.expression(b.args[0] if name in ("<<", ">>") and is_splat(b) else b)
            self.emit(simd(VECTOR[type.kind][name]))
            return
        self.all(*args)
        kind = value_type(type)
        if kind in (I32, I64) and type.kind.startswith("uint") and f"{name}u" in SCALAR[kind]:
            name += "u"
        self.emit(SCALAR[kind][{"and": "&", "or": "|"}.get(name, name)])

    def wrap(self, type: Type) -> None:
        """Wrap an i32 to a narrow integer type."""
        if type.lanes == 1 and type.kind in ("int8", "int16"):
            self.emit(0xC0 if type.kind == "int8" else 0xC1)
        elif type.lanes == 1 and type.kind in ("uint8", "uint16"):
            self.emit(I32CONST, s(0xFF if type.kind == "uint8" else 0xFFFF), SCALAR[I32]["&"])

    def select(self, test: Expr, a: Expr, b: Expr, kind: int) -> None:
        """Push one of two values; compute lazily whatever may trap or is slow."""
        if kind == V128:
            self.all(a, b, test)
            self.emit(simd(0x52))
        elif not (is_guarded(a) or is_guarded(b)):
            self.all(a, b, test)
            self.emit(SELECT)
        else:
            self.expression(test)
            self.emit(IF, kind)
            self.expression(a)
            self.emit(ELSE)
            self.expression(b)
            self.emit(END)

    def total(self, a: Expr) -> None:
        """Push the sum of a vector, by halving."""
        v = self.local("vector", V128)
        self.expression(a)
        swapped = bytes([*range(8, 16), *range(8)])
        self.emit(TEE, v, GET, v, GET, v, simd(13), swapped, simd(0xE4), TEE, v)
        self.emit(simd(0x1F), 0, GET, v, simd(0x1F), 1, SCALAR[F32]["+"])

    def floor_divided(self, name: str, a: Expr, b: Expr) -> None:
        """Push a floor quotient, or its remainder, which has the sign of the divisor."""
        kind, type = value_type(a.type), a.type
        ops = SCALAR[kind]
        if type.kind.startswith("uint"):
            self.all(a, b)
            self.emit(ops["/" if name == "//" else "%u"])
            return
        x, y, r = (self.local(f"{part}{kind}", kind) for part in ("left ", "right ", "rest "))
        self.all(a, b)
        self.emit(SET, y, SET, x)
        if name == "//":  # the truncated quotient, or one less
            self.emit(GET, x, GET, y, ops["//"])
            self.constant(1, kind)
        else:  # its remainder, perhaps plus the divisor
            self.emit(GET, x, GET, y, ops["%"], GET, y)
        self.constant(0, kind)
        self.emit(GET, x, GET, y, ops["%"], TEE, r)
        self.constant(0, kind)
        self.emit(ops["!="], GET, r, GET, y, ops["^"])
        self.constant(0, kind)
        self.emit(ops["<"], SCALAR[I32]["&"], SELECT, ops["-" if name == "//" else "+"])

    def cast(self, old: Type, new: Type) -> None:
        """Convert the value on top of the stack."""
        source, target = value_type(old), value_type(new)
        if target == V128:
            if old.kind != new.kind:
                self.emit(simd({("int32", "float32"): 0xFA}[old.kind, new.kind]))
        elif target in (F32, F64):
            if source in (F32, F64):
                self.emit(*[0xBB if target == F64 else 0xB6] * (source != target))
            else:
                self.emit(CONVERT[target, source] + (old.kind in ("uint32", "uint64")))
        elif source in (F32, F64):
            self.truncate(source, new)
        else:
            if source != target:
                unsigned = old.kind.startswith("uint") or old.kind == "bool"
                self.emit(0xA7 if target == I32 else 0xAD if unsigned else 0xAC)
            self.wrap(new)

    def truncate(self, source: int, new: Type) -> None:
        """Convert a float to an integer via 32 or 64 bits; out of range gives the minimum."""
        wide = new.kind in ("int64", "uint64", "uint32", "index")
        kind, end = (I64, 2.0**63) if wide else (I32, 2.0**31)
        x, ops = self.local("float", F64), SCALAR[F64]
        self.emit(*[0xBB] * (source == F32), TEE, x, b"\xfc", u(6 if wide else 2))
        self.constant(-end, kind)
        self.emit(GET, x)
        self.constant(-end, F64)
        self.emit(ops[">="], GET, x)
        self.constant(end, F64)
        self.emit(ops["<"], SCALAR[I32]["&"], SELECT)
        if wide and value_type(new) == I32:
            self.emit(0xA7)
        self.wrap(new)

    # -- statements
    def statements(self, body: tuple) -> None:
        """Emit statements."""
        for item in body:
            match item:
                case Let(var, value):
                    self.expression(value)
                    self.emit(SET, self.local(var.name, value_type(var.type)))
                case Store(buffer, index, value):
                    where = self.place(buffer, index)
                    self.expression(value)
                    if value.type.lanes > 1:
                        self.emit(simd(11), where)
                    else:
                        kind = value_type(value.type)
                        self.emit(STORES.get(buffer.kind, STORED[kind]), where)
                case For():
                    self.loop(item)
                case While(test, inner):
                    self.emit(BLOCK, EMPTY, LOOP, EMPTY)
                    self.inside(2, True, inner, test)
                    self.emit(BR, 0, END, END)
                case If(test, inner, orelse):
                    self.expression(test)
                    self.emit(IF, EMPTY)
                    self.inside(1, False, inner)
                    if orelse:
                        self.emit(ELSE)
                        self.inside(1, False, orelse)
                    self.emit(END)
                case Break():
                    self.emit(BR, u(self.depth - self.ends[-1]))

    def inside(self, levels: int, ends: bool, body: tuple, test: Expr | None = None) -> None:
        """Emit statements in blocks; a `break` or a failed test leaves the outer one."""
        self.ends += [self.depth + 1] * ends
        self.depth += levels
        if test is not None:
            self.expression(test)
            self.emit(EQZ, BR_IF, 1)
        self.statements(body)
        self.depth -= levels
        if ends:
            self.ends.pop()

    def loop(self, loop: For) -> None:
        """Emit a counted loop, whose end is evaluated once."""
        var = loop.var
        i, end = self.local(var.name), self.local(("end", var.name))
        ops = SCALAR[I32]
        self.all(loop.start, loop.stop)
        self.emit(SET, end, TEE, i, GET, end, ops["<"], IF, EMPTY, LOOP, EMPTY)
        known = dict(self.pointers)
        self.order = [*self.order, var]
        self.enter(var, loop.body)
        self.inside(2, True, loop.body)
        self.order = self.order[:-1]
        self.pointers = known
        self.emit(GET, i, I32CONST, s(loop.step), ADD, TEE, i, GET, end, ops["<"], BR_IF, 0)
        self.emit(END, END)


@lru_cache(256)
def encoded(kernel: Kernel, imports: tuple) -> bytes:
    """Encode a kernel as a function of a module with these imports."""
    return Function(kernel, table(imports, 0)).encoded()


def is_guarded(e: Expr) -> bool:
    """Return whether a value must be computed lazily."""
    return any(
        isinstance(p, Load) or isinstance(p, Call) and (p.name in IMPORTED or p.name in ("//", "%"))
        for p in parts(e)
    )


def is_splat(e: Expr) -> bool:
    """Return whether all lanes are equal."""
    return isinstance(e, Call) and e.name == "splat"


def uses(counted: dict, var: Var) -> bool:
    """Return whether terms depend on a counter."""
    return any(p == var for key in counted for f in key for p in parts(f))


def accesses(body: tuple, inner: tuple = ()) -> Iterator:
    """Yield (buffer, index, counters of the enclosing loops) of each access."""
    for item in body:
        for e in expressions(item):
            yield from ((p.buffer, p.index, [*inner]) for p in parts(e) if isinstance(p, Load))
        if isinstance(item, Store):
            yield item.buffer, item.index, [*inner]
        more = (item.var,) if isinstance(item, For) else ()
        for block in (getattr(item, "body", ()), getattr(item, "orelse", ())):
            yield from accesses(block, (*inner, *more))


# -- a module --------------------------------------------------------------------------
def imported(kernels: Iterable[Kernel]) -> list:
    """Return the functions of `Math` that kernels call."""
    return sorted(
        {
            p.name
            for k in kernels
            for item in statements(k.body)
            for e in expressions(item)
            for p in parts(e)
            if isinstance(p, Call) and p.name in IMPORTED
        }
    )


def types_of(imports: list, source: str) -> tuple[list, list]:
    """Return the types of unary and binary functions, and the import entries."""
    types = [b"\x60" + several([b"\x7c"] * n) + several([b"\x7c"]) for n in (1, 2)]
    two = "pow", "atan2", "hypot", "fmod"
    return types, [named(source) + named(n) + b"\0" + u(int(n in two)) for n in imports]


def module(calls: list, data: tuple, end: tuple) -> bytes:
    """Encode a module.

    calls:  (kernel, address of each buffer); an address is (a, b), for a + b n.
    data:   (address, bytes) of its initial memory.
    end:    size of its memory in bytes, (a, b).
    """
    kernels = list(dict.fromkeys(kernel for kernel, _ in calls))
    imports = imported(kernels)
    types, entries = types_of(imports, "math")
    types += [b"\x60" + several([b"\x7f"] * len(k.params)) + b"\0" for k in kernels]
    types.append(b"\x60" + several([b"\x7f"]) + b"\0")
    bodies = [encoded(k, tuple(imports)) for k in kernels]
    run = bytearray()
    for kernel, addresses in calls:
        for a, b in addresses:
            run += bytes([I32CONST]) + s(a)
            if b:
                run += bytes([GET, 0, I32CONST]) + s(b) + bytes([MUL, ADD])
        run += bytes([GET, 0] * (len(kernel.params) - len(addresses)))
        run += bytes([CALL]) + u(len(imports) + kernels.index(kernel))
    body = b"\0" + bytes(run) + bytes([END])
    bodies.append(u(len(body)) + body)
    functions = [u(2 + i) for i in range(len(bodies))]
    exports = [named("memory") + b"\2\0", named("predict") + b"\0" + u(len(imports) + len(kernels))]
    pages = -(-(end[0] + end[1]) // 2**16)
    start, content = data
    segment = b"\0" + bytes([I32CONST]) + s(start) + bytes([END]) + u(len(content)) + content
    return (
        b"\0asm\1\0\0\0"
        + section(1, several(types))
        + (section(2, several(entries)) if entries else b"")
        + section(3, several(functions))
        + section(5, several([b"\0" + u(pages)]))
        + section(7, several(exports))
        + section(10, several(bodies))
        + section(11, several([segment]))
    )
