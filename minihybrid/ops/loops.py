"""Loops as Python functions: run as they stand, or written into kernels.

Takes:   a function of flat arrays and lengths, and what computes those lengths.
Gives:   `loops`, a decorator that makes of it the `cpu` of a record, and the words that
         such functions have besides Python's: `each`, `store`, `then`, `T`, `F`, `add_up`.

The function is plain Python: it can be called with NumPy arrays, stepped through, and
tested. A kernel is written from its syntax tree: arrays get the kernel's names, lengths
become numbers, what numbers alone decide is decided, and other functions are written
out where they are called: generators, too, around the body of the `for` that they serve.
What is left out: loops whose text depends on registers, or whose number on how many axes
there are; those are written line by line.
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


# -- words -----------------------------------------------------------------------------
def each(*stops, work=0):
    """Turns that are independent of each other: threads may share them.

    work:    about how many sums and products there are in all turns; little work is
             not worth a second thread.

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
    """End one element of the result: in a kernel, what follows is computed there."""
    out[index] = value


def then():
    """What follows reads what other turns of the `each` before have written."""


def T(number):
    """A number of the dtype that the kernel computes in."""
    return int(number) if isinstance(number, np.int8) else number  # NumPy's wraps at 127


def F(number):
    """A number of the float dtype in which the kernel's numbers are computed."""
    return number


def add_up(total, number):
    """A step of a sum whose order is free, so that a compiler may do several at once."""
    return total + number


def atomic_add(out, index, number):
    """Add to an element in one step, which no other thread can interrupt."""
    out[index] += number


# -- the decorator ---------------------------------------------------------------------
def loops(lengths):
    """Make of a function of flat arrays the loops of a record.

    lengths: (arrays, **attrs) -> the values of the parameters that come after the
             arrays: whole numbers, numbers or truth values. Of the arrays it sees
             shapes and dtypes only. A parameter called `work` is the record's scratch.

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
    """Loops that Python can run (`run`), and that a kernel is written from (a call)."""

    def __init__(self, lengths, function):
        self.lengths, self.function = lengths, function
        functools.update_wrapper(self, function)

    def run(self, *arrays, work=None, **attrs):
        """Run the function on NumPy arrays, the results last; it fills them.

        Raises:  ValueError for an array whose numbers do not lie side by side.
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
        """The values of the parameters behind the arrays."""
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
        known = {
            name: ast.Name(value) if isinstance(value, str) else number(value)
            for name, value in zip(names, values, strict=True)
        }
        Writer(k, self.function, known).write(body)


@functools.cache
def definition(function):
    """(names of the parameters, statements) of a function, from its text."""
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
    """The expression of a number; Python writes infinity as a number too large."""
    if isinstance(value, tuple):
        return ast.Tuple([number(v) for v in value])
    if isinstance(value, float) and not math.isfinite(value):
        sign, name = math.copysign(1, value) < 0, "nan" if value != value else "inf"
        return ast.UnaryOp(ast.USub(), ast.Name(name)) if sign else ast.Name(name)
    return ast.Constant(value)


class Filled(ast.NodeTransformer):
    """Puts what is known into an expression, and computes what it decides."""

    def __init__(self, scope, known):
        self.scope, self.known = scope, known

    def visit_Name(self, node):
        """What a name is known to be."""
        return self.known.get(node.id, node)

    def visit_Attribute(self, node):
        """`np.sqrt` is `sqrt` in a kernel."""
        return ast.Name(node.attr) if ast.unparse(node.value) == "np" else node

    def visit_Subscript(self, node):
        """A part of a known tuple."""
        node = self.generic_visit(node)
        match node:
            case ast.Subscript(ast.Tuple(parts), ast.Constant(i)):
                return parts[i]
        return node

    def visit_IfExp(self, node):
        """One of two, if a number decides, or whether a tuple has parts."""
        test = self.visit(node.test)
        match test:
            case ast.Constant(decides) | ast.Tuple(decides):
                return self.visit(node.body if decides else node.orelse)
        return ast.IfExp(test, self.visit(node.body), self.visit(node.orelse))

    def visit_Call(self, node):
        """Functions of one `return`, written out; the least and largest of numbers."""
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
        """Arithmetic of numbers; and what 0 and 1 do not change."""
        node = self.generic_visit(node)
        match node:
            case ast.BinOp(ast.Constant(a), sign, ast.Constant(b)) if type(sign) in SIGNS:
                return ast.Constant(SIGNS[type(sign)](a, b))
            case (
                ast.BinOp(kept, ast.Mult(), ast.Constant(1))
                | ast.BinOp(ast.Constant(1), ast.Mult(), kept)
                | ast.BinOp(kept, ast.Add(), ast.Constant(0))
                | ast.BinOp(ast.Constant(0), ast.Add(), kept)
            ):
                return kept
        return node

    def visit_Compare(self, node):
        """A comparison of numbers."""
        node = self.generic_visit(node)
        match node:
            case ast.Compare(ast.Constant(a), [sign], [ast.Constant(b)]) if type(sign) in SIGNS:
                return ast.Constant(SIGNS[type(sign)](a, b))
        return node

    def visit_BoolOp(self, node):
        """`and` and `or`: the parts that numbers do not decide, or the answer."""
        node, decides = self.generic_visit(node), isinstance(node.op, ast.Or)
        known = [bool(p.value) for p in node.values if isinstance(p, ast.Constant)]
        open_ = [p for p in node.values if not isinstance(p, ast.Constant)]
        if decides in known or not open_:
            return ast.Constant(decides == (decides in known))
        return open_[0] if len(open_) == 1 else ast.BoolOp(node.op, open_)

    def visit_UnaryOp(self, node):
        """Minus, and not."""
        node = self.generic_visit(node)
        match node:
            case ast.UnaryOp((ast.USub() | ast.Not()) as sign, ast.Constant(a)):
                return ast.Constant(SIGNS[type(sign)](a))
        return node


def copied(node):
    """A copy of a syntax tree, or of a list in one, without what others hang on its nodes.

    What shows tracebacks in IPython gives each node its `parent`, also the one `Load()`
    that all trees of a process share: `copy.deepcopy` would copy the tree above it, too.

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
    """Writes statements into a kernel."""

    def __init__(self, k, function, known, given=None):
        self.k, self.function, self.known = k, function, known
        self.given = given  # what a generator's `yield` does with the text of a value

    def filled(self, node):
        """An expression with what is known."""
        filler = Filled(self.function.__globals__, self.known)
        return filler.visit(copied(node))

    def text(self, node):
        """The text of an expression; of several values, without parentheses."""
        text = ast.unparse(self.filled(node))
        return text[1:-1] if isinstance(node, ast.Tuple) else text

    def write(self, body):
        """Write statements, one after the other."""
        for node in body:
            match node:
                case ast.For(target, ast.Call(ast.Name("each"), stops, more), inner):
                    names = target.elts if isinstance(target, ast.Tuple) else [target]
                    hints = {word.arg: self.filled(word.value).value for word in more}
                    with self.k.each(*self.turns(names, stops), **hints):
                        self.write(inner)
                case ast.For(counter, ast.Call(ast.Name("range"), ends), inner):
                    self.count(self.text(counter), map(self.filled, ends), inner)
                case ast.For(target, ast.Call(ast.Name(name), args), inner) if self.is_long(name):
                    self.walk(self.text(target), name, args, inner)
                case ast.Expr(ast.Yield(value)) if self.given:
                    self.given(self.text(value))
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

    def turns(self, names, stops):
        """(name, number of turns) of each loop of an `each`."""
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
        """A loop over `range`; its ends may be known."""
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
        """Whether a name is that of a generator, or has statements before its `return`."""
        called = self.function.__globals__.get(name)
        return (
            inspect.isfunction(called)
            and called.__module__ != __name__
            and (len(definition(called)[1]) > 1 or inspect.isgeneratorfunction(called))
        )

    def inline(self, name, args):
        """Write another function's statements; gives the text of what it returns."""
        inner, (*body, last) = self.inside(name, args)
        inner.write(body)
        return inner.text(last.value)

    def walk(self, target, name, args, body):
        """Write a generator's statements; what it yields is the target of the body."""

        def given(value):
            self.k(f"{target} = {value}")
            self.write(body)

        inner, statements = self.inside(name, args, given)
        inner.write(statements)

    def inside(self, name, args, given=None):
        """(the writer of another function, its statements): its names get its own's name."""
        called = self.function.__globals__[name]
        names, body = definition(called)
        own = {
            n.id
            for statement in body
            for n in ast.walk(statement)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        known = {n: ast.Name(f"{n}_{name.strip('_')}") for n in own}
        known |= dict(zip(names, map(self.filled, args), strict=True))
        return Writer(self.k, called, known, given), body

    def choose(self, test, inner, otherwise):
        """A branch: one of the two, if numbers decide."""
        if isinstance(test, ast.Constant):
            return self.write(inner if test.value else otherwise)
        with self.k.block(f"if {ast.unparse(test)}:"):
            self.write(inner)
        if otherwise:
            with self.k.block("else:"):
                self.write(otherwise)
