"""Chapter 25. Source transformation: a kernel becomes a Python function of one thread.

Uses:    the syntax tree of a kernel.
Defines: `Rewritten`, the statements of one thread, and its shared arrays, barriers and
         stored arrays; `maker`, which builds from these the tree of a
         factory: given the arrays and the block's indices, it returns the function of
         one thread of that block.

    def add(a, out):                       def make(a, out, _bx, ..., _gz):
        i = cuda.grid(1)                       def add(_tx, _ty, _tz):
        out[i] = a[i]              ->              i = _bx * _dx + _tx
        cuda.syncthreads()                         out[i] = a[i]
                                                   yield 4
                                               return add

A barrier becomes a `yield` of its line number: the thread is suspended, and the next one runs. A
`while` becomes a `for` of a million iterations with a `break`, which detects infinite loops at
negligible cost. What `a[i]` does is up to the array.
Not supported: slices.
"""

import ast
from collections.abc import Callable
from typing import Any, NoReturn, TypeGuard

from minihybrid.simt.errors import KernelError

AXES = ("x", "y", "z")
PLACES = {"blockIdx": "_b", "blockDim": "_d", "gridDim": "_g", "threadIdx": "_t"}
BLOCK = [PLACES[name] + axis for name in ("blockIdx", "blockDim", "gridDim") for axis in AXES]
BLOCK.append("_turns")  # a loop's iteration limit
THREAD = ["_tx", "_ty", "_tz"]
ATOMICS = {
    "atomic_add": "atomic_add",
    "cuda.atomic.add": "atomic_add",
    "cuda.atomic.max": "atomic_max",
    "cuda.atomic.min": "atomic_min",
}
SUPPORTED = "threadIdx blockIdx blockDim gridDim grid gridsize shared syncthreads atomic".split()


def maker(rewritten: "Rewritten") -> ast.Module:
    """Return the tree of the thread factory (see above)."""
    tree = ast.parse(
        f"def make({', '.join([*rewritten.params, *rewritten.shared, *BLOCK])}):\n"
        f"    def {rewritten.name}({', '.join(THREAD)}): pass\n"
        f"    return {rewritten.name}"
    )
    (outer,) = tree.body
    assert isinstance(outer, ast.FunctionDef)
    thread = outer.body[0]
    assert isinstance(thread, ast.FunctionDef)
    # A parameter that the kernel assigns becomes local to each thread.
    changed = [name for name in rewritten.params if name in rewritten.assigned]
    thread.args.args += [ast.arg(name) for name in changed]
    thread.args.defaults = [ast.Name(name, ast.Load()) for name in changed]
    thread.body = rewritten.body or thread.body
    return ast.fix_missing_locations(tree)


class Rewritten(ast.NodeTransformer):
    """The definition of a kernel, rewritten as the function of one thread.

    refuse:  called with a line and a reason for unsupported code; it raises.
    name, params: the kernel's name and parameters;
    body:    the statements of one thread;
    assigned: names of variables that are assigned;
    shared:  name -> (shape, dtype), as written;
    written: names of arrays that are stored to;
    vectors: names of arrays that `load4` or `store4` uses;
    barriers: the lines of `cuda.syncthreads()`.

    >>> tree = ast.parse("def f(a): a[cuda.threadIdx.x] = 1").body[0]
    >>> print(ast.unparse(maker(Rewritten(tree, None))))
    def make(a, _bx, _by, _bz, _dx, _dy, _dz, _gx, _gy, _gz, _turns):
    <BLANKLINE>
        def f(_tx, _ty, _tz):
            a[_tx] = 1
        return f
    """

    def __init__(self, function: ast.FunctionDef, refuse: Callable[[int, str], NoReturn]) -> None:
        self.refuse, self.name = refuse, function.name
        self.params = [arg.arg for arg in function.args.args]
        self.shared: dict[str, tuple[ast.expr, ast.expr]] = {}
        self.assigned: set[str] = set()
        self.written: set[str] = set()
        self.vectors: set[str] = set()
        self.barriers: list[int] = []
        body = map(self.visit, function.body)
        self.body = [statement for statement in body if statement is not None]

    def is_array(self, node: ast.AST) -> TypeGuard[ast.Name]:
        """Return whether an expression is the name of an array of the kernel."""
        return isinstance(node, ast.Name) and (node.id in self.params or node.id in self.shared)

    def visit_Name(self, node: ast.Name) -> ast.Name:
        """Record assigned names."""
        if isinstance(node.ctx, ast.Store):
            self.assigned.add(node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """Replace `cuda.threadIdx.x` and the like by variables."""
        match node:
            case ast.Attribute(
                value=ast.Attribute(value=ast.Name(id="cuda"), attr=name), attr=axis
            ) if name in PLACES and axis in AXES:
                return at(node, ast.Name(PLACES[name] + axis, ast.Load()))
            case ast.Attribute(value=ast.Name(id="cuda"), attr=name):
                if name in SUPPORTED:
                    self.refuse(node.lineno, f"cuda.{name} cannot be used like this")
                self.refuse(
                    node.lineno,
                    f"the simulator has no cuda.{name}; it has "
                    + ", ".join(f"cuda.{other}" for other in SUPPORTED),
                )
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """Replace a barrier by a `yield` of its line."""
        if is_call(node.value, "cuda.syncthreads"):
            self.barriers.append(node.lineno)
            node.value = at(node, ast.Yield(ast.Constant(node.lineno)))
            return node
        return self.generic_visit(node)

    def visit_While(self, node: ast.While) -> ast.For:
        """Bound a loop's iterations; beyond them, it raises."""
        if node.orelse:
            self.refuse(node.lineno, "a `while` has no `else` here; write its lines after the loop")
        self.generic_visit(node)
        loop = ast.parse(
            "for _turn in range(_turns):\n    if not _test: break\n"
            f"else:\n    raise _Endless({node.lineno})"
        ).body[0]
        assert isinstance(loop, ast.For) and isinstance(stop := loop.body[0], ast.If)
        assert isinstance(stop.test, ast.UnaryOp)
        stop.test.operand = node.test
        loop.body += node.body
        for part in (loop, *loop.orelse):
            at(node, part)
        return loop

    def visit_Assign(self, node: ast.Assign) -> Any:
        """Hoist a shared array out of the thread: there is one per block."""
        if is_call(node.value, "cuda.shared.array"):
            arguments: dict[str | None, ast.expr] = dict(
                zip(("shape", "dtype"), node.value.args, strict=False)
            )
            arguments |= {keyword.arg: keyword.value for keyword in node.value.keywords}
            if set(arguments) != {"shape", "dtype"} or not isinstance(node.targets[0], ast.Name):
                self.refuse(
                    node.lineno,
                    "cuda.shared.array needs a name, a shape and "
                    "a dtype: s = cuda.shared.array(16, float32)",
                )
            self.shared[node.targets[0].id] = arguments["shape"], arguments["dtype"]
            return None
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Record stored arrays."""
        if isinstance(node.ctx, ast.Store) and self.is_array(node.value):
            self.written.add(node.value.id)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        """Transform grid indices, atomics and vector accesses."""
        name = ast.unparse(node.func)
        if name in ("cuda.grid", "cuda.gridsize"):
            return self.grid(node, name)
        if name in ATOMICS or name in ("load4", "store4"):
            if not node.args or not self.is_array(node.args[0]):
                self.refuse(
                    node.lineno, f"the first argument of {name} must be an array of the kernel"
                )
            array = node.args[0].id
            if name in ("load4", "store4"):
                self.vectors.add(array)
            if name != "load4":
                self.written.add(array)
            node.args = [self.visit(arg) for arg in node.args]
            node.func = ast.Name(ATOMICS.get(name, name), ast.Load())
            return node
        return self.generic_visit(node)

    def grid(self, node: ast.Call, name: str) -> Any:
        """Expand `cuda.grid(n)`, the thread's indices, and `gridsize`, the threads per axis."""
        match node.args:
            case [ast.Constant(value=int(n))] if n in (1, 2, 3):
                form = "_d{0} * _g{0}"
                if name == "cuda.grid":
                    form = "_b{0} * _d{0} + _t{0}"
                parts = [form.format(axis) for axis in AXES[:n]]
                text = parts[0] if n == 1 else f"({', '.join(parts)})"
                return at(node, ast.parse(text, mode="eval").body)
        self.refuse(node.lineno, f"{name} needs the number of axes, 1, 2 or 3, as in {name}(1)")


def at(node: ast.AST, new: ast.AST) -> Any:
    """Give a new node the location of an old one."""
    return ast.fix_missing_locations(ast.copy_location(new, node))


def is_call(node: ast.AST, name: str) -> TypeGuard[ast.Call]:
    """Return whether an expression calls the named function."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) == name


def find_kernel(tree: ast.Module, name: str | None = None) -> ast.FunctionDef:
    """Return the definition of a module's kernel: the only one, or the named one."""
    kernels = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and name in (None, node.name)
    ]
    if len(kernels) != 1:
        raise KernelError(
            f"a kernel's text defines {len(kernels)} functions{f' named {name}' if name else ''}, "
            "but exactly one is needed"
        )
    return kernels[0]
