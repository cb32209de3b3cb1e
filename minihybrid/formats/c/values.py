"""Expressions in C: their text, their type, and how strongly they bind.

Takes:   the syntax trees of Python's expressions, and the C of their parts.
Gives:   `Value`; the types `Array`, `Vector`, `Tile`; literals, comparisons and
         operations, with as few brackets as C needs.

Types are those that Numba finds: whole numbers grow to 64 bits in a sum, and those of
32 bits meet float32 as float64.
What is left out: complex numbers; float16.
"""

import ast
import math
import operator
from typing import NamedTuple

import numpy as np

from minihybrid.codegen.ir import common
from minihybrid.ops.cpu.machine import width

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


BINDS = {
    "*": 13,
    "/": 13,
    "%": 13,
    "+": 12,
    "-": 12,
    "<": 10,
    ">": 10,
    "<=": 10,
    ">=": 10,
    "==": 9,
    "!=": 9,
    ">>": 11,
    "&": 8,
    "^": 7,
    "|": 6,
    "&&": 5,
    "||": 4,
    "?": 3,
}
UNARY, ATOM = 14, 20
BITS = "&", "|", "^", ">>"  # whose parts compilers want in brackets
OPERATORS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.RShift: ">>",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.And: "&&",
    ast.Or: "||",
}
FOLDED = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
}


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


def joined(a, b):
    """The type of a name that is assigned values of two types."""
    return a if a == b or b is None else b if a is None else common(a, b)


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
        number = float(value)
        if not math.isfinite(value):
            text = "NAN" if value != value else "INFINITY" if value > 0 else "-INFINITY"
        else:
            text = str(value)
            text += ("" if set(text) & set(".e") else ".0") + FLOATS[kind]
    else:
        number = int(np.array(int(number)).astype(kind))
        text = "INT64_MIN" if number == -(2**63) else str(number)
        text += "u" * kind.startswith("uint")
    return Value(
        text,
        kind,
        UNARY if text[0] == "-" else ATOM,
        kind == "int64",
        kind == "int64" and number >= 0,
        number,
    )


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
    if kind == "bool" or sign in BITS:
        parts = [within(v, UNARY) for v in (left, right)]
        return Value(f" {sign} ".join(parts), kind, BINDS[sign])
    chain = left.binds == BINDS[sign] and sign in "+*-/" and left.type == kind
    text = left.text if chain else within(left, sign)
    return Value(f"{text} {sign} {within(right, sign)}", kind, BINDS[sign])


def operand(value, kind):
    """A number as part of an operation in a type."""
    if value.number is not None:
        return literal(value.number, kind)
    if (
        value.type == kind
        or (value.type, kind) == ("float32", "float64")
        or kind == "int64"
        and value.place
    ):
        return value
    return Value(f"({c_type(kind)}) {within(value, UNARY)}", kind, UNARY)


def compared(node, a, b):
    """A comparison; a literal is compared in the other's type."""
    kind = a.type if a.type == b.type else common(a.type, b.type)
    for one, other in ((a, b), (b, a)):
        if (
            one.number is not None
            and other.type == "float32"
            and float(np.float32(one.number)) == one.number
        ):
            kind = "float32"
        if other.type == "uint64" and one.number is not None and one.number >= 0:
            kind = "uint64"
    sign = OPERATORS[type(node.ops[0])]
    return operation(sign, a, b, kind)._replace(type="bool")


def logical(node, *values):
    """`and` or `or` of conditions."""
    sign = OPERATORS[type(node.op)]
    ends = sign == "||"  # the condition that decides alone
    values = [v for v in values if v.number is None or bool(v.number) == ends]
    if any(v.number is not None for v in values) or not values:
        return literal(ends if values else not ends)
    if len(values) == 1:
        return values[0]
    parts = [
        v.text if v.binds in (BINDS["<"], BINDS["!="]) else within(v, UNARY)
        for v in map(truth, values)
    ]
    return Value(f" {sign} ".join(parts), "bool", BINDS[sign])


def chosen(_, test, yes, no):
    """A conditional expression."""
    kind = joined(yes.type, no.type)
    if isinstance(kind, str):
        yes, no = operand(yes, kind), operand(no, kind)
    text = f"{within(truth(test), 3)} ? {within(yes, 3)} : {within(no, 3)}"
    return Value(text, kind, 3, yes.place and no.place, yes.natural and no.natural)
