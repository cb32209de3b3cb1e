"""Chapter 25. Implicit float64: type inference that finds accidental promotion.

Uses:    the definition of a kernel, and the dtypes of its parameters.
Defines: `find_hidden`, which raises where float32 is promoted.

In Numba, `2.0` is a float64, and so are `a[i] * 2.0`, `a[i] * 2` and `max(a[i], 0)`, even
for float32 arrays; on most GPUs that is 32 or 64 times slower. Python and NumPy don't show
this, so types are inferred as Numba does. A kernel without narrower floats may compute in
float64.
Limits:  functions of other modules have unknown types, which are assumed to be right.
"""

import ast
from typing import Any

import numpy as np

from minihybrid.simt.errors import HiddenFloat64Error
from minihybrid.simt.numbers import CONSTRUCTORS

NARROW = ("float16", "float32")
Kind = str | list | None  # of a scalar, see `kind_of`; of a tuple's items; unknown


def kind_of(dtype: np.dtype) -> str:
    """Return the type of a scalar: "int", "float16", "float32" or "float64".

    >>> kind_of(np.dtype("uint8")), kind_of(np.dtype("float32"))
    ('int', 'float32')
    """
    return dtype.name if dtype.kind == "f" else "int"


def find_hidden(function: ast.FunctionDef, kinds: dict, source: Any) -> None:
    """Raise if a kernel computes in float64 on narrower arrays.

    kinds:  name of a parameter or shared array -> `kind_of` its elements;
    source: the program, which has a name and describes its lines.
    Raises: HiddenFloat64Error with the line and a correction.
    """
    if not set(kinds.values()) & set(NARROW):
        return
    types = Types(kinds, source)
    # A variable has the widest type assigned to it anywhere, including later lines.
    for types.reports in (False, False, True):
        for statement in function.body:
            types.visit(statement)


class Types(ast.NodeVisitor):
    """The types of a kernel's variables: "int", a float's name, or None if unknown."""

    def __init__(self, kinds: dict, source: Any) -> None:
        self.elements, self.source = kinds, source
        self.names = dict(kinds)  # scalar parameters are also variables
        self.reports = False

    def hidden(self, node: ast.expr | ast.stmt, cause: str, instead: str) -> None:
        """Raise that an expression is float64, in the pass that reports errors."""
        if self.reports:
            reason = f"{cause}, so a GPU computes in float64, which is slow; {instead}"
            raise self.source.error(HiddenFloat64Error, node.lineno, reason)

    def mixed(self, node: ast.expr | ast.stmt, parts: list) -> Kind:
        """Return the common type of an operation's operands."""
        kinds = [self.type(part) for part in parts]
        if None in kinds or any(isinstance(kind, list) for kind in kinds):
            return None if None in kinds or kinds.count(kinds[0]) < len(kinds) else kinds[0]
        narrow = [kind for kind in kinds if kind in NARROW]
        wide = [part for part, kind in zip(parts, kinds, strict=True) if kind not in NARROW]
        if narrow and wide:
            texts = [ast.unparse(part) for part in (node, wide[0])]
            other = "float64" if "float64" in kinds else "a whole number"
            remedy = (
                f"give {texts[1]} a {narrow[0]} wherever it is assigned"
                if isinstance(wide[0], ast.Name) and "float64" in kinds
                else f"write {narrow[0]}({texts[1]})"
            )
            self.hidden(node, f"`{texts[0]}` mixes {narrow[0]} with {other}", remedy)
            return "float64"
        return max(kinds, key=("int", *NARROW, "float64").index, default="int")

    # -- expressions -------------------------------------------------------------------
    def type(self, node: ast.expr) -> Kind:
        """Return the type of an expression; a list of types for a tuple."""
        match node:
            case ast.Constant(value=value):
                return "float64" if isinstance(value, float) else "int"
            case ast.Name(id=name):
                return self.names.get(name)
            case ast.Subscript(value=ast.Name(id=name)) if name in self.elements:
                self.type(node.slice)
                return self.elements[name]
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="cuda"))):
                return "int"
            case ast.Attribute(value=ast.Name(id="math")):
                return "float64"
            case ast.Tuple(elts=parts):
                return [self.type(part) for part in parts]
            case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int())):
                return self.type(left)
            case ast.BinOp(left=left, op=op, right=right):
                kind = self.mixed(node, [left, right])
                return "float64" if kind == "int" and isinstance(op, ast.Div) else kind
            case ast.UnaryOp(op=op, operand=operand):
                kind = self.type(operand)
                return "int" if isinstance(op, ast.Not) else kind
            case ast.Compare(left=left, comparators=others):
                # Compilers compare with a constant that is exact in float32 in float32.
                self.mixed(node, [part for part in (left, *others) if not is_exact(part)])
                return "int"
            case ast.BoolOp(values=parts):
                for part in parts:
                    self.type(part)
                return "int"
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self.type(test)
                return self.mixed(node, [body, orelse])
            case ast.Call():
                return self.call(node)
        return None

    def call(self, node: ast.Call) -> Kind:
        """Return the result type of a function call."""
        name = ast.unparse(node.func)
        kinds = [self.type(arg) for arg in node.args]
        if name in CONSTRUCTORS:
            return name if name.startswith("float") else "int"
        if name in ("min", "max"):
            return self.mixed(node, node.args)
        if name.startswith("math.") and kinds:
            return self.mixed(node, node.args) if kinds != ["int"] else "float64"
        if name == "load4":
            return [self.elements.get(ast.unparse(node.args[0]))] * 4
        if name in ("abs", "int", "float"):
            return {"abs": kinds[0], "int": "int", "float": "float64"}[name]
        return "int" if name in ("len", "cuda.grid", "cuda.gridsize") else None

    # -- statements --------------------------------------------------------------------
    def visit_Assign(self, node: ast.Assign) -> None:
        """Assign the value's type to a variable; check a store to an element."""
        kind = self.type(node.value)
        for target in node.targets:
            self.assign(target, kind, node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Treat `a += b` as `a = a + b`."""
        as_read = ast.parse(ast.unparse(node.target), mode="eval").body
        value = ast.copy_location(ast.BinOp(as_read, node.op, node.value), node)
        self.assign(node.target, self.type(value), node)

    def assign(self, target: ast.expr, kind: Kind, node: ast.stmt) -> None:
        """Assign a type to a target."""
        match target:
            case ast.Tuple(elts=parts):
                kinds = kind if isinstance(kind, list) else [kind] * len(parts)
                for part, one in zip(parts, kinds, strict=True):
                    self.assign(part, one, node)
            case ast.Name(id=name):
                kinds = [kind, self.names.get(name)]
                if "int" in kinds and any(each in NARROW for each in kinds):
                    self.hidden(
                        node,
                        f"`{name}` is a whole number in one line and a float in another",
                        "give it one dtype everywhere",
                    )
                    kind = "float64"
                self.names[name] = kind if name not in self.names else wider(kind, self.names[name])
            case ast.Subscript(value=ast.Name(id=name)):
                if kind == "float64" and self.elements.get(name) in NARROW:
                    small = self.elements[name]
                    self.hidden(
                        node,
                        f"a float64 is stored into {name}, which holds {small}",
                        f"write numbers as {small}(...)",
                    )

    def visit_For(self, node: ast.For) -> None:
        """Make the variable of a loop over a range an integer."""
        self.type(node.iter)
        self.assign(node.target, "int", node)
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        """Check a call statement, such as the values that `store4` stores."""
        self.type(node.value)
        match node.value:
            case ast.Call(func=ast.Name(id="store4"), args=[array, _, four]):
                kinds = self.type(four)
                for kind in kinds if isinstance(kinds, list) else [kinds]:
                    self.assign(ast.Subscript(array, ast.Constant(0), ast.Store()), kind, node)

    def visit_If(self, node: ast.If | ast.While) -> None:
        """Check the condition like any expression."""
        self.type(node.test)
        self.generic_visit(node)

    visit_While = visit_If


def is_exact(node: ast.expr) -> bool:
    """Return whether an expression is a constant that is exact in float32, such as -1.

    >>> [is_exact(ast.parse(text, mode="eval").body) for text in ("-1", "0.1", "x")]
    [True, False, False]
    """
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return False
    with np.errstate(over="ignore"):
        return isinstance(value, (int, float)) and float(np.float32(value)) == value


def wider(a: Kind, b: Kind) -> Kind:
    """Return the wider of two types; None if one is unknown."""
    if a is None or b is None or isinstance(a, list) or isinstance(b, list):
        return a if a == b else None
    return max(a, b, key=("int", *NARROW, "float64").index)
