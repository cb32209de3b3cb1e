"""Loops as Python functions, which run as they are or are specialized into kernels.

Defines: `loops`, a decorator that turns a function of flat arrays and lengths into the
         `cpu` field of an operator; the intrinsics of such functions: `each`, `store`,
         `then`, `T`, `F`, `add_up`.

The function is plain Python: it can be called with NumPy arrays, stepped through and
tested. A kernel is generated from its syntax tree by partial evaluation: arrays get the
kernel's names, lengths become constants, constant expressions and branches are folded,
and called functions are inlined, including generators around the body of their `for`.
Not supported: loops that depend on the register size or on the number of axes; those are
written line by line.
"""

import ast
import functools
import inspect
import itertools
import math
import numbers
import operator
import textwrap

import numpy as np

from minihybrid.core.op import HybridError, described, legible

CALLED = {"min": min, "max": max}
SIGNS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
}


# -- intrinsics ------------------------------------------------------------------------
def each(*stops, work=0):
    """Iterate over independent iterations, which threads may share.

    work:    approximate total number of multiply-adds; little work stays on one thread.

    >>> list(each(2, 2))
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    >>> list(each(2))
    [0, 1]
    """
    if not all(isinstance(stop, numbers.Integral) for stop in stops):
        raise HybridError(
            f"each: {legible(', '.join(map(repr, stops)))} was given, but whole numbers are "
            "needed; loops of a record stand below @loops(lengths), which says what these are"
        )
    if len(stops) == 1:
        return range(*stops)
    return itertools.product(*map(range, stops))


def store(out, index, value):
    """Store one element of the result; a kernel computes the fused epilogue here."""
    out[index] = value


def then():
    """Separate two `each` loops, of which the second reads what the first stored."""


def T(number):
    """Convert to the kernel's dtype."""
    return int(number) if isinstance(number, np.int8) else number  # np.int8 would overflow at 127


def F(number):
    """Convert to the float dtype of the kernel's arithmetic."""
    return number


def add_up(total, number):
    """Add to a reassociable sum, for which a compiler may use several accumulators."""
    return total + number


def atomic_add(out, index, number):
    """Atomically add to an element."""
    out[index] += number


# -- the decorator ---------------------------------------------------------------------
def loops(lengths):
    """Decorate a function of flat arrays as the loops of an operator.

    lengths: (arrays, **attrs) -> values of the parameters after the arrays: integers,
             floats or booleans. It may use only shapes and dtypes of the arrays. A
             parameter named `work` is the operator's scratch memory.

    >>> @loops(lambda data, out, by: (out.shape[0], by))
    ... def shifted(data, out, n, by):
    ...     for i in each(n):
    ...         store(out, i, data[(i + by) % n])
    >>> import numpy as np
    >>> out = np.zeros(3)
    >>> shifted.run(np.array([1., 2., 3.]), out, by=1)
    >>> out.tolist()
    [2.0, 3.0, 1.0]
    """

    def of(function, *others):
        if others or not inspect.isfunction(function):
            raise HybridError(
                "loops: @loops(lengths) stands above a function of flat arrays, and lengths is a "
                f"function, too; found: {described(function)}"
            )
        return Loops(lengths, function)

    return of


class Loops:
    """Loops that Python can run (`run`), or that are written into a kernel (a call)."""

    def __init__(self, lengths, function):
        self.lengths, self.function = lengths, function
        functools.update_wrapper(self, function)

    def run(self, *arrays, work=None, **attrs):
        """Run the function on NumPy arrays; it fills the results, which come last.

        Raises:  ValueError for an array that isn't contiguous.
        """
        if not all(isinstance(a, np.ndarray) for a in arrays):
            raise HybridError(
                f"{self.__name__}: run takes NumPy arrays, those of the results last, since it "
                f"writes into them; found: {', '.join(map(described, arrays))}"
            )
        flat = [a.reshape(-1, copy=False) for a in arrays]
        if "work" in inspect.signature(self.function).parameters:
            flat.append(work)
        self.function(*flat, *self.lengths_of(arrays, attrs))

    def lengths_of(self, arrays, attrs):
        """Return the values of the parameters after the arrays."""
        try:
            lengths = self.lengths(*arrays, **attrs)
        except (AttributeError, TypeError) as error:
            raise HybridError(
                f"{self.__name__}: lengths is called with {len(arrays)} arrays, the results last, "
                "of which shapes and dtypes are known, and with "
                f"{', '.join(attrs) or 'no attribute'}; it failed: {error}"
            ) from error
        if not isinstance(lengths, tuple):
            raise HybridError(
                f"{self.__name__}: its lengths are {described(lengths)}, but a tuple is needed, "
                "as in @loops(lambda data, out: (data.size,))"
            )
        return lengths

    def __call__(self, k, *arrays, **attrs):
        """Write the loops into a kernel."""
        values = [*arrays]
        names, body = definition(self.function)
        if "work" in names:
            values.append("work")
        values += self.lengths_of(arrays, attrs)
        if len(names) != len(values):
            raise HybridError(
                f"{self.__name__}: its parameters are {', '.join(names)}, but "
                f"{len(values)} values were given: the arrays, then the lengths"
            )
        bindings = {
            name: ast.Name(value) if isinstance(value, str) else number(value)
            for name, value in zip(names, values, strict=True)
        }
        Writer(k, self.function, bindings).write(body)


@functools.cache
def definition(function):
    """Parse a function's source: return (parameter names, statements)."""
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise HybridError(
            f"{function.__qualname__}: its text is not known, but loops are written "
            "from it; define it in a file or in a notebook's cell"
        ) from None
    tree = ast.parse(text).body[0]
    first = ast.get_docstring(tree, clean=False) is not None
    return [a.arg for a in tree.args.args], tree.body[first:]


def number(value):
    """Return the syntax tree of a number, including infinity and NaN."""
    if isinstance(value, tuple):
        return ast.Tuple([number(v) for v in value])
    if isinstance(value, float) and not math.isfinite(value):
        sign, name = math.copysign(1, value) < 0, "nan" if value != value else "inf"
        return ast.UnaryOp(ast.USub(), ast.Name(name)) if sign else ast.Name(name)
    return ast.Constant(value)


class Filled(ast.NodeTransformer):
    """Substitutes known values into an expression, and folds constants."""

    def __init__(self, scope, bindings):
        self.scope, self.bindings = scope, bindings

    def visit_Name(self, node):
        """Substitute a known name."""
        return self.bindings.get(node.id, node)

    def visit_Attribute(self, node):
        """Replace `np.sqrt` by `sqrt`, its name in kernels."""
        return ast.Name(node.attr) if ast.unparse(node.value) == "np" else node

    def visit_Subscript(self, node):
        """Index a known tuple."""
        node = self.generic_visit(node)
        match node:
            case ast.Subscript(ast.Tuple(parts), ast.Constant(i)):
                return parts[i]
        return node

    def visit_IfExp(self, node):
        """Fold a conditional whose test is known."""
        test = self.visit(node.test)
        match test:
            case ast.Constant(decides) | ast.Tuple(decides):
                return self.visit(node.body if decides else node.orelse)
        return ast.IfExp(test, self.visit(node.body), self.visit(node.orelse))

    def visit_Call(self, node):
        """Inline functions of one `return`; fold min and max of constants."""
        args = [self.visit(a) for a in node.args]
        name = ast.unparse(node.func)
        called = self.scope.get(name)
        if inspect.isfunction(called) and called.__module__ != __name__:
            names, (*_, last) = definition(called)
            inner = Filled(called.__globals__, dict(zip(names, args, strict=True)))
            return inner.visit(copied(last.value))
        if name in CALLED and all(isinstance(a, ast.Constant) for a in args):
            return ast.Constant(CALLED[name](a.value for a in args))
        return ast.Call(self.visit(node.func), args, [])

    def visit_BinOp(self, node):
        """Fold arithmetic on constants, and identities with 0 and 1."""
        node = self.generic_visit(node)
        match node:
            case ast.BinOp(ast.Constant(a), sign, ast.Constant(b)) if type(sign) in SIGNS:
                return ast.Constant(SIGNS[type(sign)](a, b))
            case (
                ast.BinOp(operand, ast.Mult(), ast.Constant(1))
                | ast.BinOp(ast.Constant(1), ast.Mult(), operand)
                | ast.BinOp(operand, ast.Add(), ast.Constant(0))
                | ast.BinOp(ast.Constant(0), ast.Add(), operand)
            ):
                return operand
        return node

    def visit_Compare(self, node):
        """Fold a comparison of constants."""
        node = self.generic_visit(node)
        match node:
            case ast.Compare(ast.Constant(a), [sign], [ast.Constant(b)]) if type(sign) in SIGNS:
                return ast.Constant(SIGNS[type(sign)](a, b))
        return node

    def visit_BoolOp(self, node):
        """Fold the known operands of `and` and `or`."""
        node, decides = self.generic_visit(node), isinstance(node.op, ast.Or)
        constants = [bool(p.value) for p in node.values if isinstance(p, ast.Constant)]
        open_ = [p for p in node.values if not isinstance(p, ast.Constant)]
        if decides in constants or not open_:
            return ast.Constant(decides == (decides in constants))
        return open_[0] if len(open_) == 1 else ast.BoolOp(node.op, open_)

    def visit_UnaryOp(self, node):
        """Fold negation and `not`."""
        node = self.generic_visit(node)
        match node:
            case ast.UnaryOp((ast.USub() | ast.Not()) as sign, ast.Constant(a)):
                return ast.Constant(SIGNS[type(sign)](a))
        return node


def copied(node):
    """Copy a syntax tree, or a list in one, without attributes that other tools added.

    IPython's traceback formatter gives nodes a `parent`, even the `Load()` shared by all
    trees of a process, through which `copy.deepcopy` would copy entire other trees.

    >>> ast.unparse(copied(ast.parse("x + 1", mode="eval")))
    'x + 1'
    """
    if isinstance(node, list):
        return [copied(each) for each in node]
    if not isinstance(node, ast.AST):
        return node
    twin = type(node)(**{name: copied(value) for name, value in ast.iter_fields(node)})
    return ast.copy_location(twin, node)


class Writer:
    """Writes specialized statements into a kernel."""

    def __init__(self, k, function, bindings, on_yield=None):
        self.k, self.function, self.bindings = k, function, bindings
        self.on_yield = on_yield  # handles a generator's `yield`, given the value's source

    def filled(self, node):
        """Return a specialized expression."""
        filler = Filled(self.function.__globals__, self.bindings)
        return filler.visit(copied(node))

    def text(self, node):
        """Return the source of an expression; a tuple without parentheses."""
        text = ast.unparse(self.filled(node))
        return text[1:-1] if isinstance(node, ast.Tuple) else text

    def write(self, body):
        """Write statements."""
        for node in body:
            match node:
                case ast.For(target, ast.Call(ast.Name("each"), stops, more), inner):
                    names = target.elts if isinstance(target, ast.Tuple) else [target]
                    hints = {word.arg: self.filled(word.value).value for word in more}
                    with self.k.each(*self.trip_counts(names, stops), **hints):
                        self.write(inner)
                case ast.For(counter, ast.Call(ast.Name("range"), ends), inner):
                    self.count(self.text(counter), map(self.filled, ends), inner)
                case ast.For(target, ast.Call(ast.Name(name), args), inner) if self.is_long(name):
                    self.walk(self.text(target), name, args, inner)
                case ast.Expr(ast.Yield(value)) if self.on_yield:
                    self.on_yield(self.text(value))
                case ast.While(test, inner):
                    with self.k.block(f"while {self.text(test)}:"):
                        self.write(inner)
                case ast.If(test, inner, otherwise):
                    self.choose(self.filled(test), inner, otherwise)
                case ast.Expr(ast.Call(ast.Name("store"), [_, index, value])):
                    self.k.store(self.text(index), self.text(value))
                case ast.Expr(ast.Call(ast.Name("then"), [])):
                    self.k.then()
                case ast.Expr(ast.Call(ast.Name("atomic_add"))):
                    self.k(self.text(node.value))
                case ast.Assign([target], ast.Call(ast.Name(name), args)) if self.is_long(name):
                    self.k(f"{self.text(target)} = {self.inline(name, args)}")
                case ast.Expr(ast.Call(ast.Name(name), args)) if self.is_long(name):
                    self.inline(name, args)
                case ast.Assign([target], value):
                    self.k(f"{self.text(target)} = {self.text(value)}")
                case ast.AugAssign(target, sign, value):
                    self.k(
                        ast.unparse(ast.AugAssign(self.filled(target), sign, self.filled(value)))
                    )
                case _:
                    raise HybridError(
                        f"{self.function.__qualname__}: loops have no statement "
                        f"`{ast.unparse(node).splitlines()[0]}`; needed: for, while, "
                        "if, assignments, store and then"
                    )

    def trip_counts(self, names, stops):
        """Return (counter, trip count) of each loop of an `each`."""
        filled = []
        for stop in stops:
            star = isinstance(stop, ast.Starred)
            filled += self.filled(stop.value).elts if star else [self.filled(stop)]
        counts = [getattr(stop, "value", None) for stop in filled]
        if len(names) != len(counts) or not all(isinstance(n, numbers.Integral) for n in counts):
            raise HybridError(
                f"{self.function.__qualname__}: for {', '.join(map(ast.unparse, names))} in "
                f"each({', '.join(map(ast.unparse, stops))}): needed is a name for each length, "
                "and lengths that are whole numbers when the kernel is written: parameters that "
                "@loops(lengths) gives"
            )
        return zip([n.id for n in names], counts, strict=True)

    def count(self, name, ends, inner):
        """Write a loop over `range`, whose bounds may be known."""
        ends = [*ends]
        if not all(isinstance(end, ast.Constant) for end in ends):
            ends = ", ".join(map(ast.unparse, ends))
            with self.k.block(f"for {name} in range({ends}):"):
                return self.write(inner)
        stop, *more = (end.value for end in ends)
        start, stop, step = (0, stop, 1) if not more else (stop, *more, 1)[:3]
        if range(start, stop, step):
            with self.k.loop(name, stop, start, step):
                self.write(inner)

    def is_long(self, name):
        """Return whether a name is a generator, or a function of more than a `return`."""
        called = self.function.__globals__.get(name)
        return (
            inspect.isfunction(called)
            and called.__module__ != __name__
            and (len(definition(called)[1]) > 1 or inspect.isgeneratorfunction(called))
        )

    def inline(self, name, args):
        """Inline another function's statements; return the source of its result."""
        inner, (*body, last) = self.inside(name, args)
        inner.write(body)
        return inner.text(last.value)

    def walk(self, target, name, args, body):
        """Inline a generator around the loop body; its yields set the loop's target."""

        def on_yield(value):
            self.k(f"{target} = {value}")
            self.write(body)

        inner, statements = self.inside(name, args, on_yield)
        inner.write(statements)

    def inside(self, name, args, on_yield=None):
        """Return (the writer of another function, its statements), with renamed variables."""
        called = self.function.__globals__[name]
        names, body = definition(called)
        local_names = {
            n.id
            for statement in body
            for n in ast.walk(statement)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        bindings = {n: ast.Name(f"{n}_{name.strip('_')}") for n in local_names}
        bindings |= dict(zip(names, map(self.filled, args), strict=True))
        return Writer(self.k, called, bindings, on_yield), body

    def choose(self, test, inner, otherwise):
        """Write a branch, or only the taken side if its test is known."""
        if isinstance(test, ast.Constant):
            return self.write(inner if test.value else otherwise)
        with self.k.block(f"if {ast.unparse(test)}:"):
            self.write(inner)
        if otherwise:
            with self.k.block("else:"):
                self.write(otherwise)
