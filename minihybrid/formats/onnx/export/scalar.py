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
        shape = draft.add("Shape", inputs[0], dtype="int64")
        return draft.add("ConstantOfShape", shape, dtype=dtype, value=number)
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
                    return add("Not", add("Equal", *pair, dtype=bool))
                return add(COMPARE[type(op)], *pair, dtype=bool)
            case ast.BoolOp(op=op, values=[left, right]):
                kind = "And" if isinstance(op, ast.And) else "Or"
                return add(kind, build(left), build(right))
            case ast.IfExp(test=test, body=body, orelse=rest):
                test, *parts = build(test), build(body), build(rest)
                return add("Where", test, *map(self.typed, parts), dtype=self.dtype)
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
        return COMPOSED[name](Math(self.draft), *args)


# -- functions that ONNX lacks, built from those it has --------------------------------
class Math:
    """ONNX operators as methods; scalars become constants in the first operand's dtype."""

    def __init__(self, draft):
        self.draft = draft

    def __getattr__(self, kind):
        return lambda first, *rest: self.draft.add(
            kind, first, *(v if hasattr(v, "dtype") else np.asarray(v, first.dtype) for v in rest)
        )

    def test(self, kind, a, b):
        """Compare a and b."""
        b = b if hasattr(b, "dtype") else np.asarray(b, a.dtype)
        return self.draft.add(kind, a, b, dtype=bool)

    def choose(self, test, a, b):
        """Return a where the test holds, else b."""
        b = b if hasattr(b, "dtype") else np.asarray(b, a.dtype)
        return self.draft.add("Where", test, a, b, dtype=a.dtype)


def _mod(m, a, b):
    """Return Python's remainder, with the sign of b; ONNX's Mod of floats has the sign of a."""
    if a.dtype.kind != "f":
        return m.Mod(a, b)
    rest = m.draft.add("Mod", a, b, fmod=1)
    other = m.test("Less", m.Mul(rest, m.Sign(b)), 0)
    return m.Mul(m.Abs(m.choose(other, m.Add(rest, b), rest)), m.Sign(b))  # -0, too


def _whole_power(m, a, b):
    """Return a^b for integers; 0 to a negative power is 0, but INT_MIN in ONNX Runtime."""
    out = m.Pow(a, b)
    if isinstance(b, np.ndarray) and (b >= 0).all():
        return out
    none = m.draft.add("And", m.test("Equal", a, 0), m.test("Less", b, 0), dtype=bool)
    return m.choose(none, np.zeros((), out.dtype), out)


def _below(m, a):
    """Return the sign bit: 1 / a detects -0, and the comparison -infinity."""
    return m.draft.add("Or", m.test("Less", a, 0), m.test("Less", m.Reciprocal(a), 0), dtype=bool)


def _atan2(m, y, x):
    far = m.test("Equal", m.Min(m.Abs(x), m.Abs(y)), math.inf)  # both are infinite
    y, x = m.choose(far, m.Sign(y), y), m.choose(far, m.Sign(x), x)
    none = m.test("Equal", m.Add(m.Abs(x), m.Abs(y)), 0)
    angle = m.choose(none, y, m.Atan(m.Div(y, x)))
    left = m.choose(_below(m, y), m.Sub(angle, math.pi), m.Add(angle, math.pi))
    return m.choose(_below(m, x), left, angle)


def _expm1(m, a):
    """Return (e^a + 1) tanh(a / 2), which is accurate for small a."""
    return m.Mul(m.Add(m.Exp(a), 1), m.Tanh(m.Mul(a, 0.5)))


def _log1p(m, a):
    """Return log(u) a / (u - 1), u = 1 + a, whose errors cancel. Source: W. Kahan."""
    u = m.Add(a, 1)
    step = m.Sub(u, 1)
    near = m.Mul(m.Log(u), m.Div(a, step))
    far = m.choose(m.test("Equal", u, a), m.Log(u), near)
    return m.choose(m.test("Equal", step, 0), a, far)


def _hypot(m, a, b):
    a, b = m.Abs(a), m.Abs(b)
    high, low = m.Max(a, b), m.Min(a, b)
    ratio = m.Div(low, m.choose(m.test("Equal", high, 0), m.Add(high, 1), high))
    out = m.Mul(high, m.Sqrt(m.Add(m.Mul(ratio, ratio), 1)))
    for side in (a, b):
        out = m.choose(m.test("Equal", side, math.inf), side, out)
    return out


def _cbrt(m, a):
    root = m.Mul(m.Sign(a), m.Pow(m.Abs(a), 1 / 3))
    return m.choose(m.test("Equal", a, 0), a, root)  # also -0


COMPOSED = {
    "expm1": _expm1,
    "log1p": _log1p,
    "log2": lambda m, a: m.Div(m.Log(a), math.log(2)),
    "log10": lambda m, a: m.Div(m.Log(a), math.log(10)),
    "cbrt": _cbrt,
    "mod": _mod,
    "atan2": _atan2,
    "hypot": _hypot,
    "whole_power": _whole_power,
}
