"""Elementwise operators in ONNX, translated from their scalar expressions.

Uses:    an operator's expression for one output element, as every compiled target does.
Defines: `elementwise`, which adds the ONNX steps that compute it for whole arrays.

Most operators need no rule: `T(0) if {a} < 0 else sqrt({a})` is a Less, a Sqrt and a
Where. Python's parser (`ast`) reads the expression.
Not supported: functions that ONNX lacks (gamma, erfinv).
"""

import ast
import math

import numpy as np

from minihybrid.ops.elementwise import literal

BINARY = {
    ast.Add: "Add",
    ast.Sub: "Sub",
    ast.Mult: "Mul",
    ast.Div: "Div",
    ast.BitAnd: "BitwiseAnd",
    ast.BitOr: "BitwiseOr",
    ast.BitXor: "BitwiseXor",
}
COMPARE = {
    ast.Eq: "Equal",
    ast.Gt: "Greater",
    ast.GtE: "GreaterOrEqual",
    ast.Lt: "Less",
    ast.LtE: "LessOrEqual",
}
SAME = """abs acos acosh asin asinh atan atanh cos cosh erf exp log max min sigmoid sin sinh sqrt
    tan tanh""".split()  # in ONNX, with a capital letter
FUNCTIONS = {
    **{name: name.capitalize() for name in SAME},
    "power": "Pow",
    "whole_div": "Div",
    "whole_mod": "Mod",
}
# Expressions for which ONNX has a single operator.
IDIOMS = {
    "T(0) if {a} <= 0 else {a}": "Relu",
    "T(1) / T({a})": "Reciprocal",
    "T(1) if {a} > 0 else (T(-1) if {a} < 0 else {a} + T(0))": "Sign",
    "(T({a}) if T({a}) > 0 else T(0)) + log1p(exp(-abs(T({a}))))": "Softplus",
    "{a} if {a} >= {b} or {a} != {a} else {b}": "Max",
    "{a} if {a} <= {b} or {a} != {a} else {b}": "Min",
}
NAMES = "abcde"
FLOAT64 = np.dtype("float64")


def elementwise(draft, node, inputs):
    """Return the output of an elementwise node."""
    dtype = node.specs[0].dtype
    text = node.op.scalar(node.attrs, dtype)
    if "{a}" not in text:  # the same value for all elements
        number = np.full(1, Builder(draft, {}, dtype).read(text), dtype)
        return draft.filled(draft.add("Shape", inputs[0]), number)
    builder = Builder(draft, dict(zip(NAMES, inputs, strict=False)), dtype)
    if "scalar" in node.attrs:  # it is the second operand
        scalar = literal(node.attrs["scalar"])
        text, builder.operands["b"] = text.replace(scalar, "{b}"), builder.read(scalar)
    if kind := IDIOMS.get(text):
        return draft.add(kind, *(draft.cast(v, dtype) for v in builder.operands.values()))
    return draft.cast(builder.read(text), dtype)


class Builder:
    """Translates expressions to values; `operands` maps a, b, ... to values."""

    def __init__(self, draft, operands, dtype):
        self.draft, self.operands, self.dtype = draft, operands, dtype

    def read(self, text):
        """Return the value of an expression."""
        text = text.format(**{name: name for name in NAMES})
        return self.build(ast.parse(text, mode="eval").body)

    def build(self, tree):
        """Return the value of a node of the syntax tree."""
        add, build = self.draft.add, self.build
        match tree:
            case ast.Name(id="NAN" | "INF" | "nan" | "inf" as name):
                return np.asarray(float(name), self.dtype if self.dtype.kind == "f" else FLOAT64)
            case ast.Name(id=name):
                return self.operands[name]
            case ast.Constant(value=number):
                return number
            case ast.UnaryOp(op=ast.USub(), operand=part):
                value = build(part)
                return add("Neg", value) if hasattr(value, "name") else -value
            case ast.BinOp(left=left, op=op, right=right):
                return add(BINARY[type(op)], *self.alike(build(left), build(right)))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                pair = self.alike(build(left), build(right))
                if isinstance(op, ast.NotEq):
                    return add("Not", add("Equal", *pair))
                return add(COMPARE[type(op)], *pair)
            case ast.BoolOp(op=op, values=[left, right]):
                kind = "And" if isinstance(op, ast.And) else "Or"
                return add(kind, build(left), build(right))
            case ast.IfExp(test=test, body=body, orelse=rest):
                test, *parts = build(test), build(body), build(rest)
                return add("Where", test, *map(self.typed, parts))
            case ast.Call(func=ast.Name(id=name), args=args):
                return self.call(name, [build(arg) for arg in args])
        raise AssertionError(f"no rule for {ast.dump(tree)}")

    def typed(self, value, dtype=None):
        """Cast a value or a Python scalar to a dtype, by default the output's."""
        dtype = dtype or self.dtype
        if hasattr(value, "dtype"):
            return self.draft.cast(value, dtype)
        return np.asarray(value).astype(dtype)  # -2 as uint8 is 254, as in kernels

    def alike(self, a, b):
        """Cast two operands, at most one a Python scalar, to a common dtype."""
        if not hasattr(a, "dtype"):
            return self.alike(b, a)[::-1]
        if not hasattr(b, "dtype"):
            exact = a.dtype.kind == "f" or b == int(b)
            b = np.asarray(b, a.dtype if exact else "float64")
        wide = np.result_type(a.dtype, b.dtype)
        return self.draft.cast(a, wide), self.draft.cast(b, wide)

    def call(self, name, args):
        """Return the value of a function call."""
        if name == "T":
            return self.typed(args[0])
        if name in ("int64", "float64"):
            return self.typed(args[0], np.dtype(name))
        if name == "U":
            return args[0]
        if name == "F":  # T, but float64 for integers
            is_float = self.dtype.kind == "f"
            return self.typed(args[0], self.dtype if is_float else FLOAT64)
        if name in ("floor", "ceil"):
            (value,) = args
            return value if value.dtype.kind != "f" else self.draft.add(name.capitalize(), value)
        if len(args) == 2:
            args = self.alike(*args)
        if name in FUNCTIONS:
            return self.draft.add(FUNCTIONS[name], *args)
        if name not in COMPOSED:
            self.draft.refuse(
                f"ONNX has no function '{name}'; compute this part outside of the net"
            )
        if name not in ("mod", "whole_power"):  # the others need floats
            wide = np.dtype("f4" if name == "atan2" else "f8")  # that ONNX Runtime supports
            args = [
                v if v.dtype.kind == "f" == self.dtype.kind else self.draft.cast(v, wide)
                for v in args
            ]
        return COMPOSED[name](self.draft.add, *args)


# -- functions that ONNX lacks, built from those it has --------------------------------
def _mod(add, a, b):
    """Return Python's remainder, with the sign of b; ONNX's Mod of floats has the sign of a."""
    if a.dtype.kind != "f":
        return add("Mod", a, b)
    rest, sign = add("Mod", a, b, fmod=1), add("Sign", b)
    other = add("Less", add("Mul", rest, sign), 0)
    return add("Mul", add("Abs", add("Where", other, add("Add", rest, b), rest)), sign)  # -0, too


def _whole_power(add, a, b):
    """Return a^b for integers; 0 to a negative power is 0, but INT_MIN in ONNX Runtime."""
    out = add("Pow", a, b)
    if isinstance(b, np.ndarray) and (b >= 0).all():
        return out
    return add("Where", add("And", add("Equal", a, 0), add("Less", b, 0)), 0, out)


def _below(add, a):
    """Return the sign bit: 1 / a detects -0, and the comparison -infinity."""
    return add("Or", add("Less", a, 0), add("Less", add("Reciprocal", a), 0))


def _atan2(add, y, x):
    far = add("Equal", add("Min", add("Abs", x), add("Abs", y)), math.inf)  # both are infinite
    y, x = (add("Where", far, add("Sign", v), v) for v in (y, x))
    none = add("Equal", add("Add", add("Abs", x), add("Abs", y)), 0)
    angle = add("Where", none, y, add("Atan", add("Div", y, x)))
    left = add("Where", _below(add, y), add("Sub", angle, math.pi), add("Add", angle, math.pi))
    return add("Where", _below(add, x), left, angle)


def _expm1(add, a):
    """Return (e^a + 1) tanh(a / 2), which is accurate for small a."""
    return add("Mul", add("Add", add("Exp", a), 1), add("Tanh", add("Mul", a, 0.5)))


def _log1p(add, a):
    """Return log(u) a / (u - 1), u = 1 + a, whose errors cancel. Source: W. Kahan."""
    u = add("Add", a, 1)
    step, log = add("Sub", u, 1), add("Log", u)
    far = add("Where", add("Equal", u, a), log, add("Mul", log, add("Div", a, step)))
    return add("Where", add("Equal", step, 0), a, far)


def _hypot(add, a, b):
    a, b = add("Abs", a), add("Abs", b)
    high, low = add("Max", a, b), add("Min", a, b)
    ratio = add("Div", low, add("Where", add("Equal", high, 0), 1, high))
    out = add("Mul", high, add("Sqrt", add("Add", add("Mul", ratio, ratio), 1)))
    for side in (a, b):
        out = add("Where", add("Equal", side, math.inf), side, out)
    return out


def _cbrt(add, a):
    root = add("Mul", add("Sign", a), add("Pow", add("Abs", a), 1 / 3))
    return add("Where", add("Equal", a, 0), a, root)  # also -0


COMPOSED = {
    "expm1": _expm1,
    "log1p": _log1p,
    "log2": lambda add, a: add("Div", add("Log", a), math.log(2)),
    "log10": lambda add, a: add("Div", add("Log", a), math.log(10)),
    "cbrt": _cbrt,
    "mod": _mod,
    "atan2": _atan2,
    "hypot": _hypot,
    "whole_power": _whole_power,
}
