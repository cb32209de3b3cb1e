"""The names of a kernel: what sets and reads them, where C declares them.

Takes:   the syntax tree of a kernel.
Gives:   `assignments`, `names_read`, `fresh_in`, and what else asks for names.

In Python a name belongs to the whole function. In C it is declared in the smallest
block that always sets it before it reads it, so that one sees how long it matters.
What is left out: names inside functions inside functions; kernels have none.
"""

import ast

KEYWORDS = set(
    "auto case char const default do double enum extern float goto inline "
    "int long register restrict short signed sizeof static struct switch "
    "typedef union unsigned void volatile".split()
)


def assignments(node):
    """(target, value) of a statement, one at a time."""
    match node:
        case ast.Assign(targets, value):
            for target in targets:
                if isinstance(target, ast.Tuple):
                    yield from zip(target.elts, value.elts, strict=True)
                else:
                    yield target, value
        case ast.AugAssign(target, op, value):
            read = ast.parse(ast.unparse(target), mode="eval").body
            yield target, ast.BinOp(read, op, value)
        case ast.For(target, ast.Call(args=args)):
            yield target, args[0] if len(args) > 1 else ast.Constant(0)


def names_read(function):
    """The names that are read, but not only to set names that never are."""
    users = {}  # name that is set -> names that are read for it; None: what is done
    for node in ast.walk(function):
        if not isinstance(node, ast.stmt) or node is function:
            continue
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            parts = [
                (target.id if isinstance(target, ast.Name) else None, tree)
                for target, value in assignments(node)
                for tree in (target, value)
            ]
        else:
            parts = [
                (None, tree) for tree in ast.iter_child_nodes(node) if isinstance(tree, ast.expr)
            ]
        for name, tree in parts:
            users.setdefault(name, set()).update(
                n.id
                for n in ast.walk(tree)
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
            )
    wanted, found = [None], set()
    while wanted:
        new = users.get(wanted.pop(), set()) - found
        found |= new
        wanted += new
    return found


def spelled(name):
    """A name as C may have it."""
    return f"{name}_" if name in KEYWORDS else name


def occurs(tree, name):
    """Whether a name is read or written; all names of a tree are noted in it."""
    if not hasattr(tree, "all_names"):
        tree.all_names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    return name in tree.all_names


def part(names, body):
    """Those of the names that occur in a block."""
    return {name for name in names if any(occurs(s, name) for s in body)}


def loop_names(tree):
    """The counters of loops."""
    return {n.target.id for n in ast.walk(tree) if isinstance(n, ast.For)}


def assigns(node, name):
    """Whether a statement sets a name, without having read it."""
    match node:
        case ast.Assign(targets, value):
            names = [
                n
                for t in targets
                for n in ast.walk(t)
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            ]
            return (
                name in {n.id for n in names}
                and not occurs(value, name)
                and not any(isinstance(t, ast.Subscript) and occurs(t, name) for t in targets)
            )
    return False


def fresh_in(node, name):
    """Whether a name is one of a block inside a statement: set there before it is read."""
    match node:
        case ast.For(target, iterator, body):
            if occurs(iterator, name):
                return False
            if target.id == name:
                return True
            blocks = [body]
        case ast.If(test, body, orelse) | ast.While(test, body, orelse):
            blocks = [b for b in (body, orelse) if part({name}, b)]
            if occurs(test, name):
                return False
        case _:
            return False
    return all(fresh_at_start(block, name) for block in blocks)


def fresh_at_start(body, name):
    """Whether a block sets a name before it reads it, on every way through it."""
    users = [s for s in body if occurs(s, name)]
    return assigns(users[0], name) or all(fresh_in(user, name) for user in users)
