"""Extract the source of functions together with everything they use.

Defines: `Excerpt`, which collects definitions, each once, into source that needs only
         NumPy and the standard library.

Definitions are copied from their files. Captured values of closures are substituted, and
conflicting names are renamed.
Not supported: functions without source, or that use other kinds of objects.
"""

import ast
import functools
import inspect
import itertools
import math
import re
import sys
import textwrap
import types

import numpy as np

from minihybrid.codegen.numpy.special import erf, erfinv, gamma, gammaln, polygamma, special
from minihybrid.core.numpy_target import name_of
from minihybrid.core.op import HybridError, Op
from minihybrid.ops import OPS, functions
from minihybrid.ops.elementwise import Ufunc
from minihybrid.ops.loops import copied

# NumPy versions of SciPy's functions, for standalone programs only.
REPLACED = {
    OPS["erf"].eager: erf,
    OPS["erfinv"].eager: erfinv,
    OPS["gamma"].eager: gamma,
    OPS["gammaln"].eager: gammaln,
    OPS["_polygamma"].eager: polygamma,
    functions.special: special,
}
PUBLIC = {np: "np", np.linalg: "np.linalg"}
PUBLIC |= {module: module.__name__ for module in (ast, itertools, math, re)}
IN_NOTEBOOKS = "_render_traceback_"  # a method that a file doesn't need
LITERALS = int, float, str, bool, tuple, types.NoneType


class NoExcerpt(HybridError):
    """A function whose source can't be extracted."""


class Excerpt:
    """Definitions in an order that Python can execute.

    >>> excerpt = Excerpt()
    >>> excerpt.text_of(OPS["relu"].eager, "relu")
    'Ufunc(relu)'
    >>> print(excerpt.definitions[-1])
    relu = lambda a: np.maximum(a, 0)
    >>> excerpt.text_of(np.dtype("int64"))
    "np.dtype('int64')"
    """

    def __init__(self, taken=()):
        self.definitions, self.modules = [], {}
        self.names = {}  # function or class -> its name in the source
        self.taken = set(taken)  # names in use

    def text_of(self, value, title=None):
        """Return an expression for a value; add the definitions that it needs.

        title:   a name for a nested or anonymous function.
        Raises:  NoExcerpt for values without source.
        """
        if isinstance(value, (types.FunctionType, Ufunc)) and value in REPLACED:
            value = REPLACED[value]
        if isinstance(value, float) and not math.isfinite(value):
            return f"float({str(value)!r})"
        if isinstance(value, LITERALS):
            return repr(value)
        if isinstance(value, np.dtype) and value.isbuiltin == 1:  # not a structured dtype
            return f"np.dtype({value.name!r})"
        if isinstance(value, types.ModuleType) and value in PUBLIC:
            self.modules[value.__name__] = None
            return PUBLIC[value]
        if isinstance(value, Ufunc):
            more = ", True" if value.floats else ""
            if value.whole is not value.ufunc:
                more += f", whole={self.text_of(value.whole, title)}"
            return f"{self.text_of(Ufunc)}({self.text_of(value.ufunc, title)}{more})"
        for module, prefix in PUBLIC.items():
            name = getattr(value, "__name__", None)
            if name and getattr(module, name, None) is value:
                self.modules[module.__name__] = None
                return f"{prefix}.{name}"
        if isinstance(value, functools._lru_cache_wrapper):
            value = value.__wrapped__
        if not isinstance(value, (types.FunctionType, type)):
            raise NoExcerpt(f"it uses {value!r:.60} (a {type(value).__name__}), which has no text")
        if value not in self.names:
            self.define(value, title)
        return self.names[value]

    def define(self, value, title):
        """Copy a definition, after those it uses."""
        before = set(self.names), len(self.definitions)
        own = not {"<locals>", "<lambda>"} & set(value.__qualname__.split("."))
        name = value.__name__ if own else title or "function"
        self.names[value] = name = self.free_name(name.strip("<>"))
        try:
            text = self.copied(value, name)
        except NoExcerpt:
            self.taken -= {self.names.pop(v) for v in set(self.names) - before[0]}
            del self.definitions[before[1] :]
            raise
        self.definitions.append(text)

    def free_name(self, name):
        """Return an unused name, by adding a number if needed."""
        free, count = name, 2
        while free in self.taken:
            free, count = f"{name}_{count}", count + 1
        self.taken.add(free)
        return free

    def copied(self, value, name):
        """Return the source of a definition under a name."""
        node, lines = _definition(value)
        scope, change, done = _scope(value), {}, set()
        shown = [n for n in ast.walk(node) if getattr(n, "name", None) == IN_NOTEBOOKS]
        for inner in shown:
            node.body.remove(inner)
        local = {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
        local |= {
            n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        for inner in ast.walk(node):
            text = ast.unparse(inner) if isinstance(inner, ast.Name) else None
            if op := _operator(inner, scope):  # softmax.eager: the function itself
                done.update(ast.walk(inner))
                change[inner] = self.text_of(op.eager, name_of(op))
            elif text in scope and text not in local and inner not in done:
                new = self.text_of(scope[text], text)
                change |= {inner: new} if new != text else {}
        if isinstance(node, ast.Lambda):
            return f"{name} = {ast.unparse(_Changed(change).visit(node))}"
        if change or shown or name != node.name:
            node.name = name
            return ast.unparse(_Changed(change).visit(node))
        return textwrap.dedent("".join(lines[node.lineno - 1 : node.end_lineno])).rstrip()

    @property
    def parts(self):
        """Return imports and definitions, as separate strings."""
        imports = [f"import {name}" for name in self.modules if "numpy" not in name]
        head = "\n".join([*sorted(imports), *[""] * bool(imports), "import numpy as np"])
        return [head, *self.definitions]


class _Changed(ast.NodeTransformer):
    """Replaces expressions by the source of others."""

    def __init__(self, change):
        self.change = change

    def visit(self, node):
        """Return the expression or its replacement."""
        text = self.change.get(node)
        return ast.parse(text, mode="eval").body if text else self.generic_visit(node)


def _operator(node, scope):
    """Return the operator `op` of an expression `op.eager` or `OPS["name"].eager`."""
    match node:
        case ast.Attribute(ast.Name(name), "eager"):
            op = scope.get(name)
        case ast.Attribute(ast.Subscript(ast.Name("OPS"), ast.Constant(name)), "eager"):
            op = OPS[name]
        case _:
            op = None
    return op if isinstance(op, Op) else None


def _scope(value):
    """Return name -> value of the globals and captured variables of a function or class."""
    if isinstance(value, type):
        return vars(sys.modules[value.__module__])
    cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
    return value.__globals__ | {name: cell.cell_contents for name, cell in cells}


@functools.lru_cache(64)
def _definitions(lines):
    """Return the syntax trees of all functions and classes of a file."""
    return [
        node
        for node in ast.walk(ast.parse("".join(lines)))
        if isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef))
    ]


def _definition(value):
    """Return (a copy of the syntax tree, the lines of its file) of a function or class."""
    try:
        lines, _ = inspect.findsource(value)
    except (OSError, TypeError):
        lines = []
    made_by = _is_class if isinstance(value, type) else _is_function
    matches = [n for n in _definitions(tuple(lines)) if made_by(n, value)]
    if not matches:
        raise NoExcerpt(f"the text of its function {value.__name__} is not known here")
    return copied(matches[-1]), lines  # for nested lambdas, the inner one


def _is_class(node, value):
    return isinstance(node, ast.ClassDef) and node.name == value.__qualname__


def _is_function(node, value):
    """Return whether a definition creates this function; a line may have two lambdas."""
    code = value.__code__
    if isinstance(node, ast.FunctionDef):
        return (node.name, node.lineno) == (value.__name__, code.co_firstlineno)
    if not isinstance(node, ast.Lambda) or node.lineno != code.co_firstlineno:
        return False
    start, end = ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))
    return all(
        start <= (line, column) and (end_line, end_column) <= end
        for line, end_line, column, end_column in code.co_positions()
        if end_column
    )  # without RESUME, the marker of a function's start
