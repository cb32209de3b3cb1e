"""Chapter 10. A kernel's Python text as a C99 function.

Takes:   the text of a generated kernel.
Gives:   `Function`: the same loops in C, and which helpers they call.

Kernels use little of Python: loops over `range`, assignments, conditional expressions
and calls of a few functions. Numba finds the types of names from what is assigned to
them, and so does this module, by Numba's rules: whole numbers grow to 64 bits, and meet
32-bit floats as 64-bit ones. Only arithmetic that Python and C understand differently
goes through a helper: division of negative numbers, sums that overflow.
What is left out: Python that no kernel has; it is an error here.
"""

import ast
import math
import operator
from typing import NamedTuple

import numpy as np

from minihybrid.machine import width
from minihybrid.op import HybridError

FLOATS = {"float32": "f", "float64": ""}  # and how C marks their functions
C_TYPES = {"float32": "float", "float64": "double", "bool": "bool"}


class Array(NamedTuple):
    """The type of an address where numbers lie side by side."""

    dtype: str


class Vector(NamedTuple):
    """The type of some numbers in one register."""

    dtype: str

    @property
    def lanes(self):
        """How many."""
        return width(np.dtype(self.dtype).itemsize)

    def __str__(self):
        return f"{self.dtype}x{self.lanes}"


class Tile(NamedTuple):
    """The type of rows of vectors."""

    vector: Vector
    rows: int
    columns: int

    def __str__(self):
        return f"{self.vector}_{self.rows}x{self.columns}"


class Value(NamedTuple):
    """A C expression.

    binds:   how strongly its operator holds its parts together, as in `BINDS`.
    place:   whether it is made of loop counters and literals only, so that it cannot
             overflow;  natural: whether it cannot be negative, either.
    """

    text: str
    type: object
    binds: int = 20
    place: bool = False
    natural: bool = False
    number: float | None = None


BINDS = {"*": 13, "/": 13, "%": 13, "+": 12, "-": 12, "<": 10, ">": 10, "<=": 10,
         ">=": 10, "==": 9, "!=": 9, "&": 8, "^": 7, "|": 6, "&&": 5, "||": 4,
         "?": 3}
UNARY, ATOM = 14, 20
OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/",
             ast.FloorDiv: "//", ast.Mod: "%",
             ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
             ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
             ast.GtE: ">=", ast.And: "&&", ast.Or: "||"}
FOLDED = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
          ast.Pow: operator.pow}
LOGICAL = {ast.BitAnd: ast.And(), ast.BitOr: ast.Or()}  # of conditions
WRAPS = {"+": "wrap_add", "-": "wrap_sub", "*": "wrap_mul"}
MATH = set("acos acosh asin asinh atan atan2 atanh cbrt cos cosh erf exp expm1 hypot "
           "lgamma log log10 log1p log2 sin sinh tan tanh".split())
SIMPLE = {"root": "sqrt", "np.floor": "floor", "np.ceil": "ceil", "cbrt": "cbrt",
          **{f"math.{name}": name for name in MATH}, "power32": "pow",
          **{f"{name}{'_' * name[-1].isdigit()}32": name for name in MATH}}
OURS = {"sigmoid": "sigmoid", "sigmoid32": "sigmoid", "rank_up": "rank_up",
        "rank_down": "rank_down", "unrank": "unrank"}  # one for each dtype
SPECIAL = {"gamma": "tgamma", "erfinv": "erfinv", "polygamma": "polygamma"}
KEYWORDS = set("auto case char const default do double enum extern float goto inline "
               "int long register restrict short signed sizeof static struct switch "
               "typedef union unsigned void volatile".split())


def c_type(kind):
    """How C calls a type."""
    if isinstance(kind, str):
        return C_TYPES.get(kind, f"{kind}_t")
    return str(kind)


def stored(dtype):
    """How C calls a number in memory: a bool is a byte there.

    >>> stored("float32"), stored("int8"), stored("bool")
    ('float', 'int8_t', 'uint8_t')
    """
    return c_type("uint8" if dtype == "bool" else dtype)


def common(a, b):
    """The type of a sum of two numbers.

    >>> common("int8", "int8"), common("int32", "float32"), common("int8", "float32")
    ('int64', 'float64', 'float32')
    """
    kinds = {a, b}
    if kinds & set(FLOATS):
        exact = {"float32", "bool", "int8", "int16", "uint8"}
        return "float32" if kinds <= exact else "float64"
    return "uint64" if all(k.startswith("uint") for k in kinds) else "int64"


def joined(a, b):
    """The type of a name that is assigned values of two types."""
    return a if a == b or b is None else b if a is None else common(a, b)


class Function:
    """One kernel in C.

    text:     the function's definition.
    helpers:  names of helpers, and types of vectors and tiles, that it uses.
    """

    def __init__(self, text, name):
        module = ast.parse(text)
        self.tree = next(n for n in module.body if isinstance(n, ast.FunctionDef))
        (mark,) = self.tree.decorator_list
        self.helpers, self.tables, self.name = {}, {}, name
        self.types, self.args = {}, [a.arg for a in self.tree.args.args]
        for arg, kind in zip(self.args, mark.args, strict=True):
            dtype = ast.unparse(kind).removesuffix("[::1]").replace("boolean", "bool")
            self.types[arg] = Array(dtype) if "[" in ast.unparse(kind) else dtype
        self.places = {arg for arg in self.args if self.types[arg] == "int64"}
        self.natural = set(self.places)
        self.written, self.read = set(), set()
        self.settle()
        self.tree = _Decided(self).visit(self.tree)
        self.find_read()
        self.text = "\n".join(self.lines())

    def fail(self, node):
        """Raise an error for Python that has no C here."""
        raise HybridError(f"export: the kernel {self.name} has `{ast.unparse(node)}`, "
                          "which is not translated to C")

    # -- what names are
    def settle(self):
        """Find the types of names: until nothing changes, look at each assignment."""
        assigned = {}
        for node in ast.walk(self.tree):
            for target, value in self.assignments(node):
                if isinstance(target, ast.Name):
                    assigned.setdefault(target.id, []).append(value)
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                self.written.add(node.value.id)
            if isinstance(node, ast.Call) and (n := ast.unparse(node.func)) in WRITES:
                self.written.add(node.args[WRITES[n]].id)
        for name, values in assigned.items():
            for value in values:  # of a part of an array
                if name in self.written and isinstance(value, ast.Subscript):
                    self.written.add(value.value.id)
        for kept in (self.places, self.natural):  # hoped for all, until seen otherwise
            kept |= set(assigned)
        while True:
            before = dict(self.types), set(self.places), set(self.natural)
            for name, values in assigned.items():
                for value in values:
                    if (found := self.value(value)) is None:
                        continue
                    self.types[name] = joined(found.type, self.types.get(name))
                    if not found.place:
                        self.places.discard(name)
                    if not found.natural:
                        self.natural.discard(name)
            if before == (self.types, self.places, self.natural):
                return

    def find_read(self):
        """Find the names that are read, but not only to set names that never are."""
        users = {}  # name that is set -> names that are read for it; None: what is done
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.stmt) or node is self.tree:
                continue
            pairs = [*self.assignments(node)]
            parts = [(t.id if isinstance(t, ast.Name) and not isinstance(node, ast.For)
                      else None, p) for t, v in pairs for p in (t, v)]
            if not pairs or isinstance(node, ast.For):
                parts = [(None, p) for p in ast.iter_child_nodes(node)
                         if isinstance(p, ast.expr)]
            for name, tree in parts:
                users.setdefault(name, set()).update(
                    n.id for n in ast.walk(tree)
                    if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
        wanted = [None]
        while wanted:
            new = users.get(wanted.pop(), set()) - self.read
            self.read |= new
            wanted += new

    @staticmethod
    def assignments(node):
        """(target, value) of a statement, one at a time."""
        match node:
            case ast.Assign(targets, value):
                for target in targets:
                    if isinstance(target, ast.Tuple):
                        yield from zip(target.elts, value.elts, strict=True)
                    else:
                        yield target, value
            case ast.AugAssign(target, op, value):
                read = ast.parse(ast.unparse(target), mode="eval").body
                yield target, ast.BinOp(read, op, value)
            case ast.For(target, ast.Call(args=args)):
                yield target, args[0] if len(args) > 1 else ast.Constant(0)

    # -- expressions
    def value(self, node):
        """An expression in C; `None` while a name in it has no type yet."""
        if (number := constant(node)) is not None:
            return literal(number)
        match node:
            case ast.Name(name):
                return self.name_value(name)
            case ast.Subscript(ast.Tuple() as numbers, index):
                return self.item(self.table(numbers), index)
            case ast.Subscript(array, index):
                return self.item(self.value(array), index)
            case ast.UnaryOp(_, operand):
                parts, make = [operand], self.unary
            case ast.BinOp(left, _, right):
                parts, make = [left, right], self.arithmetic
            case ast.Compare(left, [_], [right]):
                parts, make = [left, right], compared
            case ast.BoolOp(_, parts):
                make = logical
            case ast.IfExp(test, yes, no):
                parts, make = [test, yes, no], chosen
            case ast.Call(_, parts):
                make = self.call
            case _:
                self.fail(node)
        values = [self.value(part) for part in parts]
        return None if None in values else make(node, *values)

    def name_value(self, name):
        """A name, or one of the constants that kernels know."""
        if name in ("INF", "NAN"):
            return Value({"INF": "INFINITY", "NAN": "NAN"}[name], "float64")
        if name not in self.types:
            return None
        return Value(spelled(name), self.types[name], ATOM, name in self.places,
                     name in self.natural)

    def table(self, numbers):
        """The name of an array of whole numbers that are known."""
        text = ", ".join(str(constant(n)) for n in numbers.elts)
        name = self.tables.setdefault(text, f"table_{len(self.tables)}")
        return Value(name, Array("int64"))

    def item(self, array, index):
        """An element of an array, or the address of those from an index on."""
        if isinstance(index, ast.Slice):
            start = self.value(index.lower)
            return start and Value(f"{array.text} + {within(start, '+')}", array.type,
                                   BINDS["+"])
        at = self.value(index)
        text = at and f"{array.text}[{at.text}]"
        if at and array.type.dtype == "bool":
            return Value(f"{text} != 0", "bool", BINDS["!="])
        return at and Value(text, array.type.dtype)

    def help(self, name):
        """Note that a helper is used."""
        self.helpers[name] = None
        return name

    def unary(self, node, a):
        """-a or `not a`."""
        if isinstance(node.op, ast.Not):
            return Value(f"!{within(truth(a), UNARY)}", "bool", UNARY)
        if not isinstance(node.op, ast.USub) or not isinstance(a.type, str):
            self.fail(node)
        if a.type in FLOATS or a.place:
            return Value(f"-{within(a, UNARY)}", a.type, UNARY, a.place)
        return Value(f"{self.help('wrap_sub')}(0, {a.text})", "int64")

    def arithmetic(self, node, a, b):
        """An operation with two numbers, by Numba's rules."""
        sign = OPERATORS.get(type(node.op))
        if not sign or not isinstance(a.type, str) or not isinstance(b.type, str):
            self.fail(node)
        kind = common(a.type, b.type)
        if sign in "&|^":
            kind = "bool" if a.type == b.type == "bool" else kind
            if kind == "bool" and {a.number, b.number} & {True, False}:
                return logical(ast.BoolOp(LOGICAL[type(node.op)]), a, b)
            return operation(sign, a, b, kind)
        if sign == "/" and kind not in FLOATS:
            kind = "float64"
        if kind in FLOATS:
            if sign in ("//", "%"):
                self.fail(node)
            return operation(sign, a, b, kind)
        place, natural = a.place and b.place, a.natural and b.natural
        if sign in ("//", "%"):
            if natural and b.number:
                return operation(sign[0], a, b, kind)._replace(
                    place=place, natural=True)
            helper = "_".join(self.help(({"//": "div", "%": "mod"}[sign], kind)))
            return Value(f"{helper}({a.text}, {b.text})", kind, ATOM, place)
        if kind == "uint64" or place:
            found = operation(sign, a, b, kind)
            return found._replace(place=place, natural=natural and sign != "-")
        return Value(f"{self.help(WRAPS[sign])}({a.text}, {b.text})", kind)

    # -- calls
    def call(self, node, *values):
        """A call of one of the functions that kernels know."""
        name = ast.unparse(node.func)
        if name in CASTS:
            return self.cast(values[0], CASTS[name])
        if name in VECTORS:
            return VECTORS[name](self, *values)
        if name == "settled":
            return values[0]
        if name in ("abs", "min", "max"):
            return self.smallest(name, values)
        if name in ("np.mod", "np.power"):
            return self.whole_or_float(name.removeprefix("np."), values)
        kinds = {v.type for v in values}
        if name in SIMPLE:
            kind = "float32" if kinds == {"float32"} else "float64"
            args = ", ".join(self.cast(v, kind).text for v in values)
            return Value(f"{SIMPLE[name]}{FLOATS[kind]}({args})", kind)
        if name in OURS:
            (kind,) = kinds
            helper = self.help((OURS[name], kind))
            kind = RANKS.get(kind, kind) if "rank" in name else kind
            return Value(f"{'_'.join(helper)}({values[0].text})", kind)
        if name in SPECIAL:
            if name != "gamma":
                self.help(SPECIAL[name])
            args = ", ".join(v.text for v in values)
            return Value(f"{SPECIAL[name]}({args})", "float64")
        return self.fail(node)

    def cast(self, value, kind):
        """A number as another type of number."""
        if value.number is not None:
            return literal(value.number, kind)
        if value.type == kind:
            return value
        if kind == "bool":
            return truth(value)
        if value.type in FLOATS and kind not in FLOATS:
            return Value(f"{self.help(('whole', kind))[0]}_{kind}({value.text})", kind)
        keeps = kind == "int64" and value.type != "uint64"
        return Value(f"({c_type(kind)}) {within(value, UNARY)}", kind, UNARY,
                     value.place and keeps, value.natural and keeps)

    def smallest(self, name, values):
        """abs, min or max; of floats, NaN stays if it comes first, as in Numba."""
        kind = values[0].type
        for value in values[1:]:
            kind = common(kind, value.type)
        if name == "abs":
            if kind in FLOATS:
                return Value(f"fabs{FLOATS[kind]}({values[0].text})", kind)
            if kind.startswith("uint"):
                return values[0]
        kind = kind if kind in FLOATS else "int64"
        args = ", ".join(self.cast(v, kind).text for v in values)
        natural = all(v.natural for v in values) or \
            name == "max" and any(v.natural for v in values)
        place = all(v.place for v in values)
        return Value(f"{'_'.join(self.help((name, kind)))}({args})", kind, ATOM, place,
                     natural)

    def whole_or_float(self, name, values):
        """np.mod or np.power."""
        kind = common(*(v.type for v in values))
        args = ", ".join(self.cast(v, kind).text for v in values)
        if kind in FLOATS and name == "power":
            return Value(f"pow{FLOATS[kind]}({args})", kind)
        return Value(f"{'_'.join(self.help((name, kind)))}({args})", kind)

    # -- statements
    def lines(self):
        """The whole definition, line by line."""
        args = [self.declared(arg) for arg in self.args]
        yield f"static void {self.name}({', '.join(args)})"
        yield "{"
        for text, name in self.tables.items():
            yield f"    static const int64_t {name}[] = {{{text}}};"
        for arg in self.args:
            if arg not in self.read and arg not in self.written:
                yield f"    (void) {spelled(arg)};"
        own = set(self.types) - set(self.args)
        yield from self.block(self.tree.body, own & (self.read | loop_names(self.tree)),
                              1)
        yield "}"

    def block(self, body, own, depth):
        """The lines of a block; `own` are the names that it must declare."""
        pad = "    " * depth
        inner = {}  # statement -> the names that it declares
        for name in sorted(own):
            users = [s for s in body if occurs(s, name)]
            until = next((i for i, s in enumerate(users)
                          if not fresh_in(s, name)), None)
            if until is None or assigns(users[until], name):
                for user in users[:until]:
                    inner.setdefault(user, set()).add(name)
        for statement in body:
            mine = inner.get(statement, set())
            for name in sorted(own - mine):
                if occurs(statement, name):
                    own = own - {name}
                    if not assigns(statement, name):
                        zero = "0" if isinstance(self.types[name], str) else "{0}"
                        yield f"{pad}{self.declared(name)} = {zero};"
                    else:
                        mine = mine | {name}
            yield from self.statement(statement, mine, depth)

    def declared(self, name):
        """A name with its type before it."""
        kind = self.types[name]
        if isinstance(kind, Array):
            const = "" if name in self.written else "const "
            return f"{const}{stored(kind.dtype)} *{spelled(name)}"
        return f"{c_type(kind)} {spelled(name)}"

    def statement(self, node, own, depth):
        """The lines of one statement, which declares the names `own`."""
        pad = "    " * depth
        match node:
            case ast.Pass():
                return
            case ast.Break():
                yield f"{pad}break;"
            case ast.Expr(value):
                yield f"{pad}{self.value(value).text};"
            case ast.Assign() | ast.AugAssign():
                yield from self.assign(node, own, pad)
            case ast.If(test, body, orelse):
                yield f"{pad}if ({truth(self.value(test)).text}) {{"
                yield from self.block(body, part(own, body), depth + 1)
                if orelse:
                    yield f"{pad}}} else {{"
                    yield from self.block(orelse, part(own, orelse), depth + 1)
                yield f"{pad}}}"
            case ast.While(test, body):
                yield f"{pad}while ({truth(self.value(test)).text}) {{"
                yield from self.block(body, own, depth + 1)
                yield f"{pad}}}"
            case ast.For(ast.Name(name), ast.Call(args=args), body):
                yield from self.loop(name, [self.value(a) for a in args], body, own,
                                     depth)
            case _:
                self.fail(node)

    def loop(self, name, ends, body, own, depth):
        """A loop over `range`; its end is computed once."""
        pad, counter = "    " * depth, spelled(name)
        start, stop = ends[:2] if len(ends) > 1 else (literal(0), ends[0])
        step = ends[2].text if len(ends) > 2 else "1"
        if name not in own:
            counter += "_turn"
        begin, end = f"int64_t {counter} = {start.text}", stop.text
        if stop.number is None and stop.binds < ATOM or "(" in end:
            begin, end = f"{begin}, {counter}_end = {end}", f"{counter}_end"
        more = f"{counter}++" if step == "1" else f"{counter} += {step}"
        yield f"{pad}for ({begin}; {counter} < {end}; {more}) {{"
        if name not in own:
            yield f"{pad}    {spelled(name)} = {counter};"
        yield from self.block(body, own - {name}, depth + 1)
        yield f"{pad}}}"

    def assign(self, node, own, pad):
        """One assignment, or several at once."""
        pairs = [(t, v) for t, v in self.assignments(node)
                 if not isinstance(t, ast.Name) or t.id in self.read]
        names = [t.id for t, _ in pairs if isinstance(t, ast.Name)]
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and \
                any(occurs(v, name) for i, (_, v) in enumerate(pairs)
                    for name in names[:i]):
            for i, (target, value) in enumerate(pairs):
                kind = c_type(self.types[target.id])
                yield f"{pad}const {kind} new_{i} = {self.value(value).text};"
            for i, (target, _) in enumerate(pairs):
                yield f"{pad}{spelled(target.id)} = new_{i};"
            return
        for target, value in pairs:
            found = self.value(value)
            if isinstance(target, ast.Name):
                kind = self.types[target.id]
                declared = self.declared(target.id) if target.id in own else \
                    spelled(target.id)
            else:
                array = self.value(target.value)
                kind = array.type.dtype
                declared = f"{array.text}[{self.value(target.slice).text}]"
            if isinstance(kind, str):
                found = self.cast(found, kind)
            yield f"{pad}{declared} = {found.text};"


class _Decided(ast.NodeTransformer):
    """Whole numbers that are compared with themselves: only NaN differs from itself."""

    def __init__(self, function):
        self.function = function

    def visit_Compare(self, node):
        """The answer, if it is known."""
        left, right = node.left, node.comparators[0]
        if ast.dump(left) == ast.dump(right) and \
                self.function.value(left).type not in FLOATS:
            return ast.Constant(isinstance(node.ops[0], (ast.Eq, ast.LtE, ast.GtE)))
        return node


# -- names and where they are declared -------------------------------------------------
def spelled(name):
    """A name as C may have it."""
    return f"{name}_" if name in KEYWORDS else name


def occurs(tree, name):
    """Whether a name is read or written; all names of a tree are noted in it."""
    if not hasattr(tree, "all_names"):
        tree.all_names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    return name in tree.all_names


def part(names, body):
    """Those of the names that occur in a block."""
    return {name for name in names if any(occurs(s, name) for s in body)}


def loop_names(tree):
    """The counters of loops."""
    return {n.target.id for n in ast.walk(tree) if isinstance(n, ast.For)}


def assigns(node, name):
    """Whether a statement sets a name, without having read it."""
    match node:
        case ast.Assign(targets, value):
            names = [n for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)
                     and isinstance(n.ctx, ast.Store)]
            return name in {n.id for n in names} and not occurs(value, name) and \
                not any(isinstance(t, ast.Subscript) and occurs(t, name)
                        for t in targets)
    return False


def fresh_in(node, name):
    """Whether a name is one of a block inside a statement: set there before it is read.
    """
    match node:
        case ast.For(target, iterator, body):
            if occurs(iterator, name):
                return False
            if target.id == name:
                return True
            blocks = [body]
        case ast.If(test, body, orelse) | ast.While(test, body, orelse):
            blocks = [b for b in (body, orelse) if part({name}, b)]
            if occurs(test, name):
                return False
        case _:
            return False
    return all(fresh_at_start(block, name) for block in blocks)


def fresh_at_start(body, name):
    """Whether a block sets a name before it reads it, on every way through it."""
    users = [s for s in body if occurs(s, name)]
    return assigns(users[0], name) or all(fresh_in(user, name) for user in users)


# -- the text of expressions -----------------------------------------------------------
def constant(node):
    """The number that is written with digits only; `None` for all other expressions."""
    match node:
        case ast.Constant(number):
            return number
        case ast.UnaryOp(ast.USub(), operand):
            number = constant(operand)
            return None if number is None else -number
        case ast.BinOp(left, op, right) if type(op) in FOLDED:
            pair = constant(left), constant(right)
            return None if None in pair else FOLDED[type(op)](*pair)
    return None


def literal(number, kind=None):
    """A number as C writes it, in a type."""
    kind = kind or {bool: "bool", int: "int64", float: "float64"}[type(number)]
    if kind == "bool":
        return Value("true" if number else "false", kind, number=bool(number))
    if kind in FLOATS:
        value = np.dtype(kind).type(number)
        if not math.isfinite(value):
            text = "NAN" if value != value else "INFINITY" if value > 0 else "-INFINITY"
        else:
            text = str(value)
            text += ("" if set(text) & set(".e") else ".0") + FLOATS[kind]
    else:
        number = int(np.array(int(number)).astype(kind))
        text = "INT64_MIN" if number == -2**63 else str(number)
        text += "u" * kind.startswith("uint")
    return Value(text, kind, UNARY if text[0] == "-" else ATOM, kind == "int64",
                 kind == "int64" and number >= 0, number)


def within(value, outer):
    """The text of a part of an expression, in brackets if it would fall apart."""
    outer = BINDS.get(outer, outer)
    return value.text if value.binds > outer else f"({value.text})"


def truth(value):
    """A number as a condition."""
    if value.type == "bool":
        return value
    return Value(f"{within(value, '!=')} != 0", "bool", BINDS["!="])


def operation(sign, a, b, kind):
    """Two numbers and a sign between, both in a type first."""
    left, right = (operand(v, kind) for v in (a, b))
    if sign in "&|^":
        parts = [within(v, UNARY) for v in (left, right)]
        return Value(f" {sign} ".join(parts), kind, BINDS[sign])
    chain = left.binds == BINDS[sign] and sign in "+*-/" and left.type == kind
    text = left.text if chain else within(left, sign)
    return Value(f"{text} {sign} {within(right, sign)}", kind, BINDS[sign])


def operand(value, kind):
    """A number as part of an operation in a type."""
    if value.number is not None:
        return literal(value.number, kind)
    if value.type == kind or (value.type, kind) == ("float32", "float64") or \
            kind == "int64" and value.place:
        return value
    return Value(f"({c_type(kind)}) {within(value, UNARY)}", kind, UNARY)


def compared(node, a, b):
    """A comparison; a literal is compared in the other's type."""
    kind = a.type if a.type == b.type else common(a.type, b.type)
    for one, other in ((a, b), (b, a)):
        if one.number is not None and other.type == "float32" and \
                float(np.float32(one.number)) == one.number:
            kind = "float32"
    sign = OPERATORS[type(node.ops[0])]
    return operation(sign, a, b, kind)._replace(type="bool")


def logical(node, *values):
    """`and` or `or` of conditions."""
    sign = OPERATORS[type(node.op)]
    ends = sign == "||"  # the condition that decides alone
    values = [v for v in values if v.number is None or v.number == ends]
    if any(v.number is not None for v in values) or not values:
        return literal(ends if values else not ends)
    if len(values) == 1:
        return values[0]
    parts = [v.text if v.binds in (BINDS["<"], BINDS["!="]) else within(v, UNARY)
             for v in map(truth, values)]
    return Value(f" {sign} ".join(parts), "bool", BINDS[sign])


def chosen(_, test, yes, no):
    """A conditional expression."""
    kind = joined(yes.type, no.type)
    if isinstance(kind, str):
        yes, no = operand(yes, kind), operand(no, kind)
    text = f"{within(truth(test), 3)} ? {within(yes, 3)} : {within(no, 3)}"
    return Value(text, kind, 3, yes.place and no.place, yes.natural and no.natural)


# -- calls with vectors and tiles ------------------------------------------------------
CASTS = {name: name for name in ("float32", "float64", "int8", "int16", "int32",
                                 "int64", "uint8", "uint16", "uint32", "uint64")}
CASTS |= {"bool": "bool", "bool_": "bool", "boolean": "bool", "int": "int64",
          "float": "float64"}
WRITES = {"store": 0, "transpose": 3, "put": 1, "put_totals": 1}  # which argument
RANKS = {"float32": "int32", "float64": "int64", "int32": "float32", "int64": "float64"}


def _named(k, kind, what, *values, gives=None):
    args = ", ".join(v.text for v in values)
    return Value(f"{'_'.join(map(str, k.help((kind, what))))}({args})", gives)


VECTORS = {
    "load": lambda k, array, at: _named(
        k, v := Vector(array.type.dtype), "load", array, at, gives=v),
    "store": lambda k, array, at, value: _named(
        k, value.type, "store", array, at, value),
    "splat": lambda k, value: _named(
        k, v := Vector(value.type), "splat", value, gives=v),
    "fma": lambda k, a, b, c: _named(k, c.type, "fma", a, b, c, gives=c.type),
    "total": lambda k, a: _named(k, a.type, "total", a, gives=a.type.dtype),
    "transpose": lambda k, source, *rest: _named(
        k, Vector(source.type.dtype), "transpose", source, *rest),
    "tile": lambda k, value, rows, columns: _named(
        k, t := Tile(Vector(value.type), rows.number, columns.number), "tile", value,
        gives=t),
    **{name: lambda k, tile, *rest, name=name: _named(
        k, tile.type, name, tile, *rest, gives=tile.type)
        for name in ("inner", "outer", "get")},
    **{name: lambda k, tile, *rest, name=name: _named(
        k, tile.type, name, tile, *rest) for name in ("put", "put_totals")},
}
