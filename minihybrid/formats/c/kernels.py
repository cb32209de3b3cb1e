"""Chapter 23. A kernel's Python text as a C99 function.

Takes:   the text of a generated kernel.
Gives:   `Function`: the same loops in C, and which helpers they call.

Kernels use little of Python: loops over `range`, assignments, conditional expressions
and calls of a few functions. Numba finds the types of names from what is assigned to
them, and so does this module. Only arithmetic that Python and C understand differently
goes through a helper: division of negative numbers, sums that overflow.
What is left out: Python that no kernel has; it is an error here.
"""

import ast
import textwrap
from functools import partial

from minihybrid.codegen.ir import common
from minihybrid.core.op import HybridError
from minihybrid.formats.c.calls import WRITES, call, cast, power
from minihybrid.formats.c.names import (
    assignments,
    assigns,
    fresh_in,
    loop_names,
    names_read,
    occurs,
    part,
    spelled,
)
from minihybrid.formats.c.values import (
    ATOM,
    BINDS,
    BITS,
    FLOATS,
    OPERATORS,
    UNARY,
    Array,
    Tile,
    Value,
    Vector,
    c_type,
    chosen,
    compared,
    constant,
    joined,
    literal,
    logical,
    operation,
    stored,
    truth,
    within,
)

LOGICAL = {ast.BitAnd: ast.And(), ast.BitOr: ast.Or()}  # of conditions
RESULT = "return"  # stands for what a function returns, where names have types
WRAPS = {"+": "wrap_add", "-": "wrap_sub", "*": "wrap_mul"}


class Function:
    """One kernel in C.

    text:     the function's definition.
    helpers:  names of helpers, and types of vectors and tiles, that it uses.
    """

    def __init__(self, text, name):
        module = ast.parse(text)
        tree = next(n for n in module.body if isinstance(n, ast.FunctionDef))
        (mark,) = tree.decorator_list
        dtypes = [ast.unparse(kind).replace("boolean", "bool") for kind in mark.args]
        self.translate(
            tree, name, [Array(d.removesuffix("[::1]")) if "[" in d else d for d in dtypes]
        )

    def translate(self, tree, name, kinds):
        """Find the types of all names of a syntax tree, and write it in C.

        kinds:  the types of its parameters.
        """
        self.tree, self.name = tree, name
        self.helpers, self.tables = {}, {}
        self.args = [a.arg for a in tree.args.args]
        self.types = dict(zip(self.args, kinds, strict=True))
        self.places = {arg for arg in self.args if self.types[arg] == "int64"}
        self.natural = set(self.places)
        self.written = set()
        self.settle()
        self.tree = _Decided(self).visit(self.tree)
        self.read = names_read(self.tree)
        self.text = "\n".join(self.lines())

    def fail(self, node):
        """Raise an error for Python that has no C here."""
        raise HybridError(
            f"export: the kernel {self.name} has `{ast.unparse(node)}`, "
            "which is not translated to C"
        )

    # -- what names are
    def settle(self):
        """Find the types of names: until nothing changes, look at each assignment."""
        assigned = {}
        for node in ast.walk(self.tree):
            for target, value in assignments(node):
                if isinstance(target, ast.Name):
                    assigned.setdefault(target.id, []).append(value)
            if isinstance(node, ast.Return):
                assigned.setdefault(RESULT, []).append(node.value)
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

    # -- expressions
    def value(self, node):
        """An expression in C; `None` while a name in it has no type yet."""
        if (number := constant(node)) is not None:
            return literal(number)
        match node:
            case ast.Name(name):
                return self.name_value(name)
            case ast.Subscript(ast.Tuple() as numbers, index):
                found, whole = self.item(self.table(numbers), index), Array("int64")
                return found and found._replace(
                    place=found.type == whole.dtype,
                    natural=all(constant(n) >= 0 for n in numbers.elts),
                )
            case ast.Subscript(array, index):
                return self.item(self.value(array), index)
            case ast.UnaryOp(_, operand):
                parts, make = [operand], self.unary
            case ast.BinOp(left, ast.Pow(), right):
                parts, make = [left, right], partial(power, self)
            case ast.BinOp(left, _, right):
                parts, make = [left, right], self.arithmetic
            case ast.Compare(left, [_], [right]):
                parts, make = [left, right], compared
            case ast.BoolOp(_, parts):
                make = logical
            case ast.IfExp(test, yes, no):
                parts, make = [test, yes, no], chosen
            case ast.Call(_, parts):
                make = partial(call, self)
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
        return Value(
            spelled(name), self.types[name], ATOM, name in self.places, name in self.natural
        )

    def table(self, numbers):
        """The name of an array of numbers that are known."""
        known = [constant(n) for n in numbers.elts]
        dtype = "float64" if any(isinstance(n, float) for n in known) else "int64"
        text = f"[] = {{{', '.join(literal(n, dtype).text for n in known)}}};"
        name = self.tables.setdefault((dtype, text), f"table_{len(self.tables)}")
        return Value(name, Array(dtype))

    def item(self, array, index):
        """An element of an array, or the address of those from an index on."""
        if isinstance(index, ast.Slice):
            start = self.value(index.lower)
            return start and Value(f"{array.text} + {within(start, '+')}", array.type, BINDS["+"])
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
        if sign in BITS:
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
                return operation(sign[0], a, b, kind)._replace(place=place, natural=True)
            helper = "_".join(self.help(({"//": "div", "%": "mod"}[sign], kind)))
            inside = sign == "%" and b.place and bool(b.number) and b.natural
            return Value(f"{helper}({a.text}, {b.text})", kind, ATOM, place or inside, inside)
        if kind == "uint64" or place:
            found = operation(sign, a, b, kind)
            return found._replace(place=place, natural=natural and sign != "-")
        return Value(f"{self.help(WRAPS[sign])}({a.text}, {b.text})", kind)

    # -- statements
    def lines(self):
        """The whole definition, line by line."""
        yield from self.head()
        yield "{"
        for (dtype, text), name in self.tables.items():
            yield from textwrap.wrap(
                f"static const {c_type(dtype)} {name}{text}",
                88,
                initial_indent="    ",
                subsequent_indent="        ",
            )
        for arg in self.args:
            if arg not in self.read and arg not in self.written:
                yield f"    (void) {spelled(arg)};"
        own = set(self.types) - {*self.args, RESULT}
        yield from self.block(self.tree.body, own & (self.read | loop_names(self.tree)), 1)
        yield "}"

    def head(self):
        """What the function is called, and its parameters."""
        args = ", ".join(self.declared(arg) for arg in self.args)
        products = any(isinstance(name[0], (Vector, Tile)) for name in self.helpers)
        yield f"{'PRODUCTS ' * products}static void {self.name}("
        yield from textwrap.wrap(f"{args})", 84, initial_indent="    ", subsequent_indent="    ")

    def block(self, body, own, depth):
        """The lines of a block; `own` are the names that it must declare."""
        pad = "    " * depth
        inner = {}  # statement -> the names that it declares
        for name in sorted(own):
            users = [s for s in body if occurs(s, name)]
            until = next((i for i, s in enumerate(users) if not fresh_in(s, name)), None)
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
            case ast.Return(value):
                yield f"{pad}return {cast(self, self.value(value), self.types[RESULT]).text};"
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
                yield from self.loop(name, [self.value(a) for a in args], body, own, depth)
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
        pairs = [
            (t, v) for t, v in assignments(node) if not isinstance(t, ast.Name) or t.id in self.read
        ]
        names = [t.id for t, _ in pairs if isinstance(t, ast.Name)]
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Tuple)
            and any(occurs(v, name) for i, (_, v) in enumerate(pairs) for name in names[:i])
        ):
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
                declared = self.declared(target.id) if target.id in own else spelled(target.id)
            else:
                array = self.value(target.value)
                kind = array.type.dtype
                declared = f"{array.text}[{self.value(target.slice).text}]"
            if isinstance(kind, str):
                found = cast(self, found, kind)
            if declared != found.text:
                yield f"{pad}{declared} = {found.text};"


class _Decided(ast.NodeTransformer):
    """Whole numbers that are compared with themselves: only NaN differs from itself."""

    def __init__(self, function):
        self.function = function

    def visit_Compare(self, node):
        """The answer, if it is known."""
        left, right = node.left, node.comparators[0]
        if ast.dump(left) == ast.dump(right) and self.function.value(left).type not in FLOATS:
            return ast.Constant(isinstance(node.ops[0], (ast.Eq, ast.LtE, ast.GtE)))
        return node
