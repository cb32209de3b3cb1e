"""Parse a kernel's Python source into typed loop IR.

Defines: `read`, which parses loops around the operators' scalar expressions.

Types follow Numba's rules: integers widen to 64 bits in arithmetic, and promote float32 to
float64. Functions of float32 are inlined from `codegen/cpu/transcendental.py`, those of
other types from `codegen/device_math.py`, so that one definition serves every target.
Not supported: slices, and loops that return; both are rejected by name.
"""

import ast
import functools
import math
import operator
from pathlib import Path

import numpy as np

from minihybrid.codegen import device_math, ir
from minihybrid.codegen.check import never_negative
from minihybrid.codegen.evaluate import MATH
from minihybrid.codegen.tiles import STATEMENTS, VALUES, Place, Tile
from minihybrid.core.op import HybridError
from minihybrid.ops.loops import definition

SYMBOLS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.Pow: "**",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.And: "and",
    ast.Or: "or",
}
PYTHON = ir.SIGNS | ir.COMPARISONS | {"/": operator.truediv, "**": operator.pow}  # on two literals
CASTS = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
CASTS |= {"float32", "float64", "bool"}
CALLED = {"boolean": "bool", "bool_": "bool", "int": "int64", "float": "float64"}
SAME = {"root": "sqrt", "signed": "copysign", "add_up": "add_up", "multiply_up": "multiply_up"}
SAME |= {name: name for name in ("sqrt", "floor", "ceil", "copysign", "abs")}
IN_C = {"erf": "erf", "erfc": "erfc", "lgamma": "lgamma", "gamma": "tgamma"}
DEVICE = "sigmoid lost mod power whole_div whole_mod".split()
LOOPING = {  # functions with loops, for C: types of parameters and result
    "erfinv": ("float64", "float64"),
    "polygamma": ("int64", "float64", "float64"),
    "whole_power": ("uint64", None, "uint64"),
}
KEEP = "rank_up", "rank_down", "unrank"  # a float compares like its rank, except NaN
RANKS = {"float32": "int32", "float64": "int64"}


class Unreadable(HybridError):
    """A construct that can't be parsed."""


def read(
    name: str,
    text: str | list,
    buffers: tuple,
    numbers: dict | None = None,
    in_c: bool = False,
    result: str = "float32",
) -> ir.Kernel:
    """Parse a kernel's Python function.

    buffers:  flat buffers with the names of its parameters.
    numbers:  parameter -> its length.
    in_c:     whether the kernel may use tables, and functions of the C library.

    >>> from minihybrid.codegen.ir import Buffer
    >>> a, out = Buffer("a", "float32", (8,)), Buffer("out", "float32", (8,), "out")
    >>> text = "def k(a, out):\\n    for i in range(8):\\n        out[i] = a[i] + a[i]"
    >>> print(read("twice", text, (a, out)))
    kernel twice(a: in float32[8], out: out float32[8])
        for i in 0 .. 8:
            out[i] = a[i] + a[i]
    """
    body = text
    if isinstance(text, str):
        (body,) = (n.body for n in ast.parse(text).body if isinstance(n, ast.FunctionDef))
    kinds: dict = {}
    for _ in range(9):
        reader = Reader(body, buffers, numbers or {}, kinds, in_c)
        reader.kind = result
        reader.run(body)
        if reader.kinds == kinds or not reader.is_joined:
            return ir.Kernel(name, tuple(buffers), tuple(reader.out))
        kinds = reader.kinds
    raise Unreadable("the types of a kernel do not settle")


@functools.cache
def library() -> tuple:
    """Return (functions of float32, constants) of `codegen/cpu/transcendental.py`, parsed rather
    than imported, because importing it needs a compiler."""
    tree = ast.parse(
        Path(__file__).with_name("cpu").joinpath("transcendental.py").read_text("utf-8")
    )
    scope = {"np": np, "math": math, "polynomial": lambda *c: c, "int32": np.int32}
    scope |= {"INF": math.inf, "NAN": math.nan, "MAGIC32": np.float32(3 * 2**22 + 127)}
    consts = ast.Module([s for s in tree.body if isinstance(s, ast.Assign)], [])
    exec(compile(consts, "transcendental.py", "exec"), scope)  # our own file
    return {s.name: s for s in tree.body if isinstance(s, ast.FunctionDef)}, scope


@functools.cache
def function(name: str, kinds: tuple) -> ir.Kernel:
    """Return one of `LOOPING` as a loop IR function, for argument types."""
    names, body = definition(getattr(device_math, name))
    params = {n: ir.Var(n, ir.Type(kind)) for n, kind in zip(names, kinds, strict=True)}
    result = LOOPING[name][-1]
    kernel = read(name, body, (), params, True, result)
    return ir.Kernel(f"{name}_{kinds[-1]}", tuple(params.values()), kernel.body, ir.Type(result))


def is_counted(e: ir.Expr, ranges: dict) -> bool:
    """Return whether a value is index arithmetic on counters and lengths only."""
    return e.type == ir.INDEX and all(
        p in ranges
        or isinstance(p, ir.Const | ir.Sum)
        or isinstance(p, ir.Call)
        and p.name in ("//", "%", "min", "max")
        for p in ir.parts(e)
    )


def kind_of(value) -> str:
    """Return the kind (dtype name) of a value or literal."""
    if isinstance(value, ir.Expr):
        return value.type.kind
    if isinstance(value, np.generic):
        return value.dtype.name
    return {bool: "bool", int: "index", float: "float64"}[type(value)]


def cast(value, kind: str) -> ir.Expr:
    """Convert a value or literal to a kind."""
    if not isinstance(value, ir.Expr):
        if kind == "index":
            return ir.const(int(value))
        with np.errstate(all="ignore"):
            number = np.asarray(value).astype(kind)[()]
        return ir.Const(number.item(), ir.Type(kind))
    if value.type.kind == kind:
        return value
    if kind == "bool":
        return ir.Call("!=", (value, cast(0, value.type.kind)), ir.BOOL)
    if kind == "int32" and (narrow := narrowed(value)) is not None:
        return narrow
    if isinstance(value, ir.Const):
        return cast(value.value, kind)
    return ir.Call("cast", (value,), ir.Type(kind))


def narrowed(value: ir.Expr) -> ir.Expr | None:
    """Return 64-bit arithmetic computed in 32 bits, if the low bits agree; else `None`."""
    kind = ir.Type("int32")
    match value:
        case ir.Const(number, _):
            return cast(number, "int32")
        case ir.Call("cast", (a,), ir.Type("int64", 1)) if a.type == kind:
            return a
        case ir.Call("+" | "-" | "*" | "&" | "|" | "^" | "<<" as sign, (a, b), ir.Type("int64", 1)):
            pair = narrowed(a), narrowed(b)
            return None if None in pair else ir.Call(sign, pair, kind)
        case ir.Call(">>", (ir.Call("cast", (a,), _), ir.Const() as b), _) if a.type == kind:
            return ir.Call(">>", (a, cast(b.value, "int32")), kind)
    return None


class Reader:
    """Parses statements into `out`.

    kinds:   variable -> kind, inferred by the previous run.
    bound:   name -> its fixed value: a counter, an index or a literal.
    parts:   name -> start of an array, or of a part of one.
    vectors: name -> the variables of a vector or tile.
    ranges:  counter -> (minimum, maximum); lengths are at least 1.
    """

    def __init__(self, body, buffers, numbers, kinds, in_c=False):
        self.parts = {b.name: Place(b, ir.const(0)) for b in buffers}
        self.vectors, self.in_c = {}, in_c
        self.bound, self.before, self.kinds = dict(numbers), kinds, {}
        self.out, self.counters, self.count = [], {}, 0
        self.ranges = dict.fromkeys(v for v in numbers.values() if isinstance(v, ir.Var))
        self.is_joined = False  # whether some variable has values of several kinds
        self.scope: dict = {}  # of an inlined function
        self.inside = False
        self.kind = "float32"  # its T
        values: dict = {}
        for node in (n for s in body for n in ast.walk(s)):
            for name in targets_of(node):
                source = node.value if isinstance(node, ast.Assign) else node
                values.setdefault(name, set()).add(
                    source.value if isinstance(source, ast.Constant) else source
                )
        loops = (n for s in body for n in ast.walk(s) if isinstance(n, ast.For))
        self.also_counts = {n.target.id for n in loops}
        self.single = {name for name, assigned in values.items() if len(assigned) == 1}

    # -- statements
    def run(self, body):
        """Parse statements into `out`."""
        for node in body:
            self.statement(node)

    def block(self, body) -> tuple:
        """Parse statements into a new block."""
        outer, self.out = self.out, []
        self.run(body)
        inner, self.out = self.out, outer
        return tuple(inner)

    def statement(self, node):
        """Parse one statement."""
        match node:
            case ast.Pass():
                pass
            case ast.Break():
                self.out.append(ir.Break())
            case ast.Return(value):
                self.out.append(ir.Return(cast(self.value(value), self.kind)))
            case ast.Assign([ast.Tuple(names)], ast.Tuple(values)):
                parts = [self.named(self.value(v), True) for v in values]
                for name, value in zip(names, parts, strict=True):
                    self.assign(name, value)
            case ast.Assign([ast.Tuple(names)], value):
                for name, part in zip(names, self.value(value), strict=True):
                    self.assign(name, part)
            case ast.Expr(ast.Call(ast.Name(name), args)) if self.in_c and name in STATEMENTS:
                STATEMENTS[name](self, *map(self.value, args))
            case ast.Assign([ast.Name(name)], ast.Subscript(ast.Name(array), ast.Slice(start))):
                at = self.named(cast(self.value(start), "index"))
                self.parts[name] = self.parts[array] + at
            case ast.Assign(targets, value):
                result = self.value(value)
                for target in targets:
                    self.assign(target, result)
            case ast.AugAssign(target, op, value):
                now = self.value(ast.parse(ast.unparse(target), mode="eval").body)
                self.assign(target, self.arithmetic(SYMBOLS[type(op)], now, self.value(value)))
            case ast.For(ast.Name(name), ast.Call(ast.Name("range"), ends), body):
                self.loop(name, [cast(self.value(e), "index") for e in ends], body)
            case ast.While(test, body):
                self.out.append(ir.While(self.test(test), self.block(body)))
            case ast.If(test, body, orelse):
                test = self.test(test)
                if isinstance(test, ir.Const):
                    return self.run(body if test.value else orelse)
                self.out.append(ir.If(test, self.block(body), self.block(orelse)))
            case _:
                raise Unreadable(f"a kernel has `{ast.unparse(node).splitlines()[0]}`")

    def loop(self, name, ends, body):
        """Parse a counted loop, with a fresh counter."""
        start, stop = (ir.const(0), *ends)[:2] if len(ends) == 1 else ends[:2]
        step = ends[2] if len(ends) > 2 else ir.const(1)
        first, is_other = start, not isinstance(step, ir.Const)  # then it is positive
        if is_other:
            start, stop = ir.const(0), ir.binary("//", stop - start + step - 1, step)
        elif step.value < 0:  # the counter counts up; the name is derived from it
            is_other = True
            start, stop = (
                ir.const(0),
                ir.binary("//", start - stop - step - 1, ir.const(-step.value)),
            )
        var = self.counter(name)
        if self.is_fixed(start) and self.is_fixed(stop):
            self.ranges[var] = start, stop - 1
        outer = self.bound.get(name)
        self.bound[name] = first + var * step if is_other else var
        self.out.append(ir.For(var, start, stop, self.block(body), 1 if is_other else step.value))
        if outer is not None:
            self.bound[name] = outer

    def assign(self, target, value):
        """Assign to a name or an element."""
        if isinstance(target, ast.Subscript):
            buffer, index = self.element(target)
            self.out.append(ir.Store(buffer, (index,), cast(value, buffer.kind)))
            return
        name = target.id
        if isinstance(value, Tile) or isinstance(value, ir.Expr) and value.type.lanes > 1:
            return self.assign_vectors(name, value)
        if self.inside or name in self.single and self.is_fixed(value):
            self.bound[name] = self.named(value) if self.inside else value
            return
        kind = kind_of(value)
        for known in (self.kinds.get(name), self.before.get(name)):
            if known not in (None, kind):
                kind, self.is_joined = ir.common(wide(known), wide(kind)), True
        self.kinds[name] = kind
        self.bound.pop(name, None)  # it was a counter
        self.out.append(ir.Let(self.variable(name, kind), cast(value, kind)))

    def assign_vectors(self, name, value):
        """Assign a vector or tile, each vector as a variable."""
        tile = value if isinstance(value, Tile) else Tile(1, 1, [value])
        known = [ir.Var(f"{name}_{r}_{c}", v.type) for r, c, v in tile.places()]
        if not isinstance(value, Tile):
            known = [ir.Var(name, value.type)]
        self.out += [
            ir.Let(var, v) for var, v in zip(known, tile.vectors, strict=True) if var is not v
        ]
        self.vectors[name] = tile._replace(vectors=known) if isinstance(value, Tile) else known[0]

    def counter(self, name) -> ir.Var:
        """Return a new counter."""
        number = self.counters[name] = self.counters.get(name, -1) + 1
        return ir.Var(f"{name}_{number}" if number else name, ir.INDEX)

    def variable(self, name, kind) -> ir.Var:
        """Return a variable, whose name must differ from counters'."""
        return ir.Var(name + "_" * (name in self.also_counts), ir.Type(kind))

    def is_fixed(self, value) -> bool:
        """Return whether a value is index arithmetic on counters, or a literal."""
        return not isinstance(value, ir.Expr) or is_counted(value, self.ranges)

    def named(self, value, now=False):
        """Bind a long expression to a fresh variable; `now`: also copy a variable's value."""
        if not isinstance(value, ir.Expr) or self.is_fixed(value) or isinstance(value, ir.Const):
            return value
        if isinstance(value, ir.Var) and not now:
            return value
        self.count += 1
        var = ir.Var(f"u{self.count}", value.type)
        self.out.append(ir.Let(var, value))
        return var

    # -- expressions
    def value(self, node):
        """Parse an expression; a literal becomes a Python number."""
        match node:
            case ast.Constant(number):
                return number
            case ast.Name(name):
                return self.name(name)
            case ast.Attribute(ast.Name("math"), "pi"):
                return math.pi
            case ast.Tuple(elements):
                return [self.value(p) for p in elements]
            case ast.UnaryOp(ast.Not(), a):
                test = self.test(a)
                return (
                    not test.value
                    if isinstance(test, ir.Const)
                    else ir.Call("not", (test,), ir.BOOL)
                )
            case ast.UnaryOp(ast.USub(), a):
                a = self.value(a)
                if not isinstance(a, ir.Expr):
                    return -a
                floats = a.type.kind.startswith("float")
                return ir.Call("neg", (a,), a.type) if floats else self.arithmetic("-", 0, a)
            case ast.BinOp(a, sign, b):
                return self.arithmetic(SYMBOLS[type(sign)], self.value(a), self.value(b))
            case ast.Compare(a, [*signs], [*others]):
                values = [self.value(v) for v in (a, *others)]
                tests = [
                    self.compare(SYMBOLS[type(sign)], *values[i : i + 2])
                    for i, sign in enumerate(signs)
                ]
                return functools.reduce(lambda a, b: self.logical("and", a, b), tests)
            case ast.BoolOp(sign, operands):
                tests = [self.test(p) for p in operands]
                return functools.reduce(lambda a, b: self.logical(SYMBOLS[type(sign)], a, b), tests)
            case ast.IfExp(test, yes, no):
                test = self.test(test)
                if isinstance(test, ir.Const):
                    return self.value(yes if test.value else no)
                return self.select(test, self.value(yes), self.value(no))
            case ast.Subscript(ast.Name(name)) if name in self.parts:
                buffer, index = self.element(node)
                return ir.Load(buffer, (index,), 1)
            case ast.Subscript(value, index):
                table, at = self.value(value), self.value(index)
                if not isinstance(at, ir.Expr):
                    return table[at]
                if self.in_c:
                    return self.table(table, at)
                out = table[-1]  # a table is short
                for i, item in enumerate(table[:-1]):
                    out = self.select(self.compare("==", at, i), item, out)
                return out
            case ast.Call(ast.Name(name) | ast.Attribute(_, name), args):
                return self.call(name, [self.value(a) for a in args])
        raise Unreadable(f"a kernel has `{ast.unparse(node)}`")

    def name(self, name):
        """Return the value of a name."""
        if name in self.bound:
            return self.bound[name]
        if name in self.scope:
            return self.scope[name]
        if name in self.vectors:
            return self.vectors[name]
        if name in self.parts:
            return self.parts[name]
        if name in ("INF", "NAN"):
            return math.inf if name == "INF" else math.nan
        kind = self.kinds.get(name) or self.before.get(name)
        if kind is None:
            raise Unreadable(f"a kernel reads `{name}`")
        return self.variable(name, self.before.get(name) or kind)

    def element(self, node) -> tuple:
        """Return (buffer, index) of a subscript."""
        place = self.parts[node.value.id] + cast(self.value(node.slice), "index")
        return place

    def table(self, items, at) -> ir.Expr:
        """Return an element of a table of literals."""
        kind = "index" if all(isinstance(i, int) for i in items) else "float64"
        return ir.Call("table", (cast(at, "index"), *(cast(i, kind) for i in items)), ir.Type(kind))

    def test(self, node) -> ir.Expr:
        """Parse a condition."""
        return cast(self.value(node), "bool")

    def logical(self, sign, a, b) -> ir.Expr:
        """Return `and` or `or` of conditions."""
        for one, other in ((a, b), (b, a)):
            if isinstance(one, ir.Const | bool):
                decides = getattr(one, "value", one)
                return other if decides == (sign == "and") else cast(decides, "bool")
        return ir.Call(sign, (a, b), ir.BOOL)

    def select(self, test, yes, no):
        """Return a selection between two values."""
        kind = kind_of(yes)
        if kind != kind_of(no):
            kind = ir.common(wide(kind), wide(kind_of(no)))
        if isinstance(test, ir.Const):
            return cast(yes if test.value else no, kind)
        return ir.Call("select", (test, cast(yes, kind), cast(no, kind)), ir.Type(kind))

    def arithmetic(self, sign, a, b):
        """Return a binary operation, typed by Numba's rules."""
        kinds = kind_of(a), kind_of(b)
        if not isinstance(a, ir.Expr) and not isinstance(b, ir.Expr):
            with np.errstate(all="ignore"):
                return PYTHON[sign](a, b)
        if kinds == ("index", "index"):
            a, b = cast(a, "index"), cast(b, "index")
            if sign in ("//", "%") and isinstance(b, ir.Const) and b.value > 0:
                return self.divided(sign, a, b.value)
            if sign in ("+", "-", "*", "//", "%"):
                return ir.binary(sign, a, b)
        if sign == "**" and self.in_c:
            return ir.Call("pow", (cast(a, "float64"), cast(b, "float64")), ir.Type("float64"))
        if sign == "**":
            raise Unreadable("a kernel has a power")
        kind = ir.common(*map(wide, kinds))
        if sign in ("&", "|", "^") and kinds == ("bool", "bool"):
            a, b = cast(a, "bool"), cast(b, "bool")
            return (
                ir.Call("!=", (a, b), ir.BOOL)
                if sign == "^"
                else self.logical("and" if sign == "&" else "or", a, b)
            )
        if sign == "/" and not kind.startswith("float"):
            kind = "float64"
        if sign in ("//", "%") and kind.startswith("float"):
            raise Unreadable(f"a kernel has a `{sign}` of {kind}")
        return ir.Call(sign, (cast(a, kind), cast(b, kind)), ir.Type(kind))

    def divided(self, sign, a, c) -> ir.Expr:
        """Return a quotient or remainder, simplified if multiples of the divisor split off."""
        whole = ir.summed((key, n // c) for key, n in ir.terms(a) if n % c == 0)
        rest = ir.summed((key, n) for key, n in ir.terms(a) if n % c)
        if self.is_natural(rest) and self.is_natural(ir.const(c - 1) - rest):
            return whole if sign == "//" else rest
        return ir.binary(sign, a, ir.const(c))

    def is_natural(self, e) -> bool:
        """Return whether an index is provably nonnegative."""
        return self.is_fixed(e) and never_negative(e, self.ranges)

    def compare(self, sign, a, b) -> ir.Expr:
        """Return a comparison; a literal takes the other operand's kind if it is representable."""
        if not isinstance(a, ir.Expr) and not isinstance(b, ir.Expr):
            return cast(bool(PYTHON[sign](a, b)), "bool")
        kinds = kind_of(a), kind_of(b)
        if kinds == ("index", "index") and sign in ("<", "<=", ">", ">="):
            gap = cast(b, "index") - cast(a, "index")  # at least `least` if it holds
            gap, least = (gap if "<" in sign else ir.const(0) - gap), int("=" not in sign)
            if self.is_natural(gap - least):
                return cast(True, "bool")
            if self.is_natural(ir.const(least - 1) - gap):
                return cast(False, "bool")
        kind = kinds[0] if kinds[0] == kinds[1] else ir.common(*map(wide, kinds))
        for one, other in ((a, b), (b, a)):
            if isinstance(one, ir.Expr) or not isinstance(other, ir.Expr):
                continue
            own = kind_of(other)
            if own.startswith("uint") and one < 0:  # less than all
                return cast(PYTHON[sign](*(-(v is one) for v in (a, b))), "bool")
            if own != "bool" and (own == "index") <= isinstance(one, int):
                with np.errstate(all="ignore"):
                    held = int(one) if own == "index" else np.asarray(one).astype(own).item()
                kind = own if held == one or one != one else kind
        a, b = cast(a, kind), cast(b, kind)
        if isinstance(a, ir.Const) and isinstance(b, ir.Const):
            return cast(bool(PYTHON[sign](a.value, b.value)), "bool")
        if a is b and not kind.startswith("float"):  # only NaN differs from itself
            return cast(sign in ("==", "<=", ">="), "bool")
        return ir.Call(sign, (a, b), ir.BOOL)

    # -- functions
    def call(self, name, args):
        """Parse a call of a scalar function."""
        name = CALLED.get(name, name)
        if self.in_c and name in VALUES:
            return VALUES[name](self, *args)
        if name not in CASTS and name.endswith("32"):
            name = name.removesuffix("32").removesuffix("_")
        if name == "T":
            name = self.kind
        if name in CASTS:
            (a,) = args
            return a if name == "int64" and kind_of(a) == "index" else cast(a, name)
        if name in KEEP:
            return self.rank(name, args[0]) if self.in_c else args[0]
        if name in ("min", "max"):
            return functools.reduce(lambda a, b: self.extreme(name, a, b), args)
        if isinstance(coefficients := self.scope.get(name), tuple):
            return self.horner(coefficients, args[0])
        if name == "as_bits":
            return ir.Call("bitcast", (args[0],), ir.Type("int32"))
        if name == "as_float":
            return ir.Call("bitcast", (cast(args[0], "int32"),), ir.Type("float32"))
        if name == "power_of_two":
            bits = ir.Call("bitcast", (args[0],), ir.Type("int32"))
            moved = ir.Call("<<", (bits, cast(23, "int32")), ir.Type("int32"))
            return ir.Call("bitcast", (moved,), ir.Type("float32"))
        kinds = {kind_of(a) for a in args if isinstance(a, ir.Expr) or isinstance(a, np.generic)}
        kind = functools.reduce(ir.common, map(wide, kinds)) if kinds else "float64"
        if name == "abs" and kind.startswith(("uint", "bool")):
            return args[0]
        if name == "abs" and not kind.startswith("float"):
            a = self.named(cast(args[0], kind))
            return self.select(self.compare("<", a, 0), self.arithmetic("-", 0, a), a)
        if not kinds and hasattr(math, name):
            return getattr(math, name)(*args)
        if name in SAME:
            if not kind.startswith("float") and not name.endswith("_up"):
                kind = "float64"
            return ir.Call(SAME[name], tuple(cast(a, kind) for a in args), ir.Type(kind))
        functions, consts = library()
        for own in (f"{name}32", f"{name}_32", name):
            if own in functions and (kind == "float32" or self.inside and own == name):
                if own not in ("cbrt32", "power32"):
                    node = functions[own]
                    body = node.body[isinstance(node.body[0], ast.Expr) :]
                    return self.written([a.arg for a in node.args.args], body, args, consts, kind)
        if name in LOOPING and self.in_c:
            *kinds, result = LOOPING[name]
            args = (cast(a, k or wide(kind_of(a))) for a, k in zip(args, kinds, strict=True))
            return ir.Call(name, tuple(args), ir.Type(result))
        if name in DEVICE:
            names, body = definition(getattr(device_math, name))
            if name.startswith("whole"):
                args = [cast(a, wide(kind_of(a))) for a in args]
            return self.written(names, body, args, {}, kind)
        if name in MATH or name == "fmod" or self.in_c and name in IN_C:
            name = IN_C.get(name, name)
            if self.in_c and kind.startswith("float"):
                return ir.Call(name, tuple(cast(a, kind) for a in args), ir.Type(kind))
            wide_args = tuple(cast(a, "float64") for a in args)
            return cast(ir.Call(name, wide_args, ir.Type("float64")), kind)
        raise Unreadable(f"`{name}` of {kind}")

    def rank(self, name, x):
        """Return a float's rank (an integer of the same order, NaN beyond all), or its inverse."""
        kind = kind_of(x)
        whole = RANKS.get(kind, kind)
        most = ir.Const(np.iinfo(whole).max, ir.Type(whole))
        x = self.named(x)
        bits = x if name == "unrank" else self.named(ir.Call("bitcast", (x,), ir.Type(whole)))
        sign = ir.Call(">>", (bits, cast(8 * np.dtype(whole).itemsize - 1, whole)), ir.Type(whole))
        rank = ir.Call("^", (bits, ir.Call("&", (sign, most), ir.Type(whole))), ir.Type(whole))
        if name == "unrank":
            return ir.Call("bitcast", (rank,), ir.Type({v: k for k, v in RANKS.items()}[whole]))
        nan = most if name == "rank_up" else cast(np.iinfo(whole).min, whole)
        return self.select(self.compare("!=", x, x), nan, rank)

    def extreme(self, name, a, b):
        """Return the minimum or maximum of two values."""
        if kind_of(a) == kind_of(b) == "index":
            gap = cast(a, "index") - cast(b, "index")
            if self.is_natural(gap):
                return b if name == "min" else a
            if self.is_natural(ir.const(0) - gap):
                return a if name == "min" else b
            return ir.Call(name, (cast(a, "index"), cast(b, "index")), ir.INDEX)
        return self.select(self.compare("<" if name == "min" else ">", b, a), b, a)

    def horner(self, coefficients, x) -> ir.Expr:
        """Return c0 + x (c1 + x (c2 + ...))."""
        kind = kind_of(x)
        out = cast(coefficients[-1], kind)
        for c in coefficients[-2::-1]:
            out = ir.Call("fma", (out, x, cast(c, kind)), x.type)
        return out

    def written(self, names, body, args, scope, kind):
        """Inline a function; return its result."""
        outer = self.bound, self.scope, self.inside, self.kind
        args = [self.named(a) for a in args]
        self.bound, self.scope = dict(zip(names, args, strict=True)), scope
        self.inside, self.kind = True, kind
        try:
            return self.returned(body)
        finally:
            self.bound, self.scope, self.inside, self.kind = outer

    def returned(self, body):
        """Return the value that statements return; early returns become selections."""
        for i, node in enumerate(body):
            match node:
                case ast.Return(value):
                    return self.value(value)
                case ast.If(test, [*_, ast.Return()] as inner, []):
                    test = self.test(test)
                    yes = self.returned(inner)
                    return self.select(test, yes, self.returned(body[i + 1 :]))
                case ast.Assign() | ast.AugAssign():
                    self.statement(node)
                case _:
                    break
        raise Unreadable(f"a function has `{ast.unparse(node).splitlines()[0]}`")


def wide(kind: str) -> str:
    """Return a kind as `common` names it."""
    return "int64" if kind == "index" else kind


def targets_of(node) -> list:
    """Return the names that a node assigns."""
    targets = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AugAssign):  # counts twice, because it also reads
        return [node.target.id] if isinstance(node.target, ast.Name) else []
    return [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name) and is_stored(n)]


def is_stored(node) -> bool:
    """Return whether a name is assigned."""
    return isinstance(node.ctx, ast.Store)


def compiled(text: str, name: str) -> ir.Kernel:
    """Parse a kernel of a plan of the target "cpu", without its threads.

    text:  source of its module, where `@kernel(...)` declares the arguments.
    """
    (tree,) = (n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef))
    kinds = [ast.unparse(kind) for kind in tree.decorator_list[0].args]
    arrays, numbers = [], {}
    for arg, kind in zip((a.arg for a in tree.args.args), kinds, strict=True):
        if kind.endswith("[::1]"):
            space = {"a": "in", "o": "out", "w": "work"}[arg[0]]
            dtype = kind.removesuffix("[::1]").replace("boolean", "bool")
            arrays.append(ir.Buffer(arg, dtype, (ir.Var("size of " + arg, ir.INDEX),), space))
        else:
            numbers[arg] = ir.Var(arg, ir.INDEX)
    kernel = read(name, text, tuple(arrays), numbers | {"part": 0, "parts": 1}, in_c=True)
    params = [v for arg, v in numbers.items() if arg not in ("part", "parts")]
    return ir.Kernel(name, (*arrays, *params), kernel.body)
