"""Chapter 25. Hidden float64: arithmetic that is wider than the arrays are.

Takes:   the definition of a kernel, and the dtypes of its parameters.
Gives:   `find_hidden`, which raises where float32 meets a wider number.

To Numba `2.0` is a float64, and so is what `a[i] * 2.0`, `a[i] * 2` and `max(a[i], 0)`
give, also where a holds float32; on most GPUs that is 32 or 64 times slower. In Python
and NumPy nothing of this shows, so the types are worked out as Numba does it. A kernel
without narrower floats may compute in float64.
What is left out: functions of other modules, whose types are not known here, and are
taken to be right.
"""

import ast
from typing import Any

import numpy as np

from minihybrid.simt.errors import HiddenFloat64Error
from minihybrid.simt.numbers import CONSTRUCTORS

NARROW = ("float16", "float32")
Kind = str | list | None  # of a number, as `kind_of` says; of a tuple's; not known yet


def kind_of(dtype: np.dtype) -> str:
    """The type of a number in a kernel: "int", "float16", "float32" or "float64".

    >>> kind_of(np.dtype("uint8")), kind_of(np.dtype("float32"))
    ('int', 'float32')
    """
    return dtype.name if dtype.kind == "f" else "int"


def find_hidden(function: ast.FunctionDef, kinds: dict, source: Any) -> None:
    """Raise if a kernel computes in float64 what its arrays hold in less.

    kinds:  name of a parameter or shared array -> what `kind_of` says of its numbers;
    source: the program, which has a name, and words for its lines.
    Raises: HiddenFloat64Error naming the line and what to write.
    """
    if not set(kinds.values()) & set(NARROW):
        return
    types = Types(kinds, source)
    # A variable has the widest type that is assigned to it anywhere, also further down.
    for types.reports in (False, False, True):
        for statement in function.body:
            types.visit(statement)


class Types(ast.NodeVisitor):
    """The types of a kernel's variables: "int", a float's name, or None if unknown."""

    def __init__(self, kinds: dict, source: Any) -> None:
        self.elements, self.source = kinds, source
        self.names = dict(kinds)  # numbers among the parameters are variables, too
        self.reports = False

    def hidden(self, node: ast.expr | ast.stmt, cause: str, instead: str) -> None:
        """Raise, if all types are known already, that an expression is float64."""
        if self.reports:
            raise HiddenFloat64Error(
                f"kernel '{self.source.name}', {self.source.line(node.lineno)}: "
                f"{cause}, so a GPU computes in float64, which is slow; {instead}",
                self.source.name,
                node.lineno,
            )

    def mixed(self, node: ast.expr | ast.stmt, parts: list) -> Kind:
        """The type of numbers that meet in one operation."""
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
        """The type of an expression; a list of types for a tuple."""
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
                # Compilers compare with a number that float32 has as with a float32.
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
        """The type of what a function gives."""
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
        """A variable gets the type of what is assigned; an element must fit."""
        kind = self.type(node.value)
        for target in node.targets:
            self.assign(target, kind, node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """`a += b` is `a = a + b`."""
        as_read = ast.parse(ast.unparse(node.target), mode="eval").body
        value = ast.copy_location(ast.BinOp(as_read, node.op, node.value), node)
        self.assign(node.target, self.type(value), node)

    def assign(self, target: ast.expr, kind: Kind, node: ast.stmt) -> None:
        """A value of a type goes to a target."""
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
        """The variable of a loop over a range is a whole number."""
        self.type(node.iter)
        self.assign(node.target, "int", node)
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        """A call for its effect: what `store4` stores must fit."""
        self.type(node.value)
        match node.value:
            case ast.Call(func=ast.Name(id="store4"), args=[array, _, four]):
                kinds = self.type(four)
                for kind in kinds if isinstance(kinds, list) else [kinds]:
                    self.assign(ast.Subscript(array, ast.Constant(0), ast.Store()), kind, node)

    def visit_If(self, node: ast.If | ast.While) -> None:
        """The condition is an expression like others."""
        self.type(node.test)
        self.generic_visit(node)

    visit_While = visit_If


def is_exact(node: ast.expr) -> bool:
    """Whether an expression is a number, such as -1, which float32 has exactly.

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
    """The type of a variable that has two; None if one is unknown."""
    if a is None or b is None or isinstance(a, list) or isinstance(b, list):
        return a if a == b else None
    return max(a, b, key=("int", *NARROW, "float64").index)
