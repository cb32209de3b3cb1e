"""Chapter 23. Scalar expressions of operators in JavaScript.

Takes:   the expression of one output number, as every compiled target does.
Gives:   `javascript`, the same expression in JavaScript; its numbers are doubles, and are
         rounded when they are written into an array.

What is left out: functions that JavaScript has not (gamma, erfinv), whole numbers of 64
bits, random numbers: these are refused.
"""

import ast
import math

from minihybrid.core.op import HybridError

SIGNS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Pow: "**",
    ast.Eq: "===",
    ast.NotEq: "!==",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.And: "&&",
    ast.Or: "||",
    ast.USub: "-",
    ast.UAdd: "+",
    ast.Not: "!",
}
SAME = (
    "abs acos acosh asin asinh atan atanh atan2 cbrt ceil cos cosh exp expm1 floor hypot log "
    "log10 log1p log2 max min sin sinh sqrt tan tanh"
)
FUNCTIONS = {name: f"Math.{name}" for name in SAME.split()}
FUNCTIONS |= {"power": "Math.pow", "sigmoid": "sigmoid", "mod": "mod", "erf": "erf"}
KEPT = {"T", "F", "U", "float64"}  # what changes a dtype: all numbers are doubles here
NUMBERS = {"INF": "Infinity", "NAN": "NaN"}


class Unsaid(HybridError):
    """What JavaScript has no word for."""


def javascript(text, given=None):
    """An expression over {a}, {b}, {c} in JavaScript.

    given:   number -> what stands for it, such as an attribute that a file says.

    >>> javascript("T(0) if {a} <= 0 else {a} * T(7.5)", {7.5: "n.scalar"})
    '((a <= 0) ? 0 : (a * n.scalar))'
    """
    names = {name: name for name in "abcde"}
    return said(ast.parse(text.format(**names), mode="eval").body, given or {})


def said(node, given):
    """The text of a syntax tree, each operation in brackets.

    Raises:  Unsaid for what has no form in JavaScript.
    """

    def part(node):
        return said(node, given)

    match node:
        case ast.Constant(bool(value)):
            return str(value).lower()
        case ast.Constant(int() | float() as value):
            return given.get(value) or written(value)
        case ast.Name(name) if name in NUMBERS or name in "abcde":
            return NUMBERS.get(name, name)
        case ast.UnaryOp(sign, operand) if type(sign) in SIGNS:
            return f"({SIGNS[type(sign)]}{part(operand)})"
        case (
            ast.BinOp(left, sign, right)
            | ast.Compare(left, [sign], [right])
            | ast.BoolOp(sign, [left, right])
        ) if type(sign) in SIGNS:
            return f"({part(left)} {SIGNS[type(sign)]} {part(right)})"
        case ast.IfExp(test, yes, no):
            return f"({part(test)} ? {part(yes)} : {part(no)})"
        case ast.Call(ast.Name(name), [argument]) if name in KEPT:
            return part(argument)
        case ast.Call(ast.Name(name), arguments) if name in FUNCTIONS:
            return f"{FUNCTIONS[name]}({', '.join(map(part, arguments))})"
    raise Unsaid(f"JavaScript has no form of `{ast.unparse(node)}`")


def written(number):
    """A number as JavaScript writes it."""
    if math.isfinite(number):
        return repr(number)
    return "NaN" if number != number else "Infinity" if number > 0 else "-Infinity"
