"""Chapter 10. Target "numpy": the plan as a plain Python function over NumPy.

Takes:   a graph (not fused: NumPy has no loops to merge) and its memory plan.
Gives:   readable source that writes every step into its place with `out=`.

It needs no compiler, so it runs wherever NumPy runs, in a browser, too.
What is left out: speed for small arrays; each step is a call from Python.
"""

import numpy as np

from minihybrid.codegen.cpu import Table
from minihybrid.op import OPS
from minihybrid.passes.memory import places


def generate(graph, memory, inputs, title):
    """The function's text, the number of steps, and the table of its parameters."""
    table = Table(graph, inputs)
    variables = {n.name: n for n in graph.variables}
    names, lines, calls, used = {}, [], [], {}
    args = [f"x{i}" for i in range(len(table.inputs))]
    for i, name in enumerate(table.inputs):
        if name in variables:
            names[variables[name], 0] = f"x{i}"
    for i, node in enumerate([*table.params, *table.constants]):
        names[node, 0] = f"p{i}"
        lines.append(f"p{i} = table[{i}]")
    args += [f"y{k}" for k in range(len(graph.heads))]
    root, count = places(graph), 0
    for node in graph.nodes:
        if node.op is None:
            continue
        spec = node.specs[0]
        if node.op.view:
            names[node, 0] = f"v{count}"
            calls.append(f"v{count} = {names[node.inputs[0]]}.reshape({spec.shape})")
            count += 1
            continue
        for i, spec in enumerate(node.specs):
            if (node, i) in memory.outs:
                k = memory.outs[node, i]
                head, j = graph.heads[k]
                same = head.specs[j].shape == spec.shape
                names[node, i] = f"y{k}" if same else f"t{count}"
                if not same:
                    lines.append(f"t{count} = y{k}.reshape({spec.shape})")
            else:
                at = memory.offsets[node, i]
                names[node, i] = f"t{count}"
                lines.append(f"t{count} = arena[{at}:{at + spec.nbytes}]"
                             f".view(np.{spec.dtype.name}).reshape({spec.shape})")
            count += 1
        calls += _step(node, [names[r] for r in node.inputs],
                       [names[node, i] for i in range(node.n_outputs)], used)
    for ref, k in memory.copies:
        source = names.get(ref) or names[root[ref]]
        calls.append(f"y{k}[...] = {source}.reshape(y{k}.shape)")
    tail = ["arena", "table", *["key"] * bool(graph.n_streams)]
    body = "\n".join(f"    {line}" for line in [*lines, *calls])
    imports = "from minihybrid.ops import OPS\n\n" if used else ""
    uses = "".join(f"{name} = OPS[{op!r}].eager\n" for op, name in used.items())
    text = (f'"""{title}."""\n\nimport numpy as np\n{imports}{uses}\n\n'
            f"def plan({', '.join([*args, *tail])}):\n{body}\n")
    return text, sum(n.op is not None and not n.op.view for n in graph.nodes), table


def _step(node, ins, outs, used):
    """The lines of one node: a NumPy call with out=, or a copy of the eager result."""
    op, attrs = node.op, node.attrs
    if callable(op.numpy):
        return op.numpy(*ins, out=outs[0], **attrs).split("\n")
    if op.numpy and len(set(s.dtype for n, i in node.inputs for s in [n.specs[i]])) <= 1:
        letters = dict(zip("abcdefgh", ins, strict=False))
        numbers = {k: _number(v, node.specs[0].dtype) for k, v in attrs.items()}
        return op.numpy.format(**letters, **numbers, out=outs[0]).split("\n")
    name = used.setdefault(op.name, f"{op.name.strip('_').lower()}_")
    given = ", ".join([*ins, *(f"{k}={_literal(v)}" for k, v in attrs.items()),
                       *["key=key"] * op.random])
    return [f"{', '.join(f'{o}[...]' for o in outs)} = {name}({given})"]


def _number(value, dtype):
    """A scalar attribute as NumPy must see it: whole for whole-number arrays."""
    if dtype.kind == "f" or not isinstance(value, float):
        return _literal(value)
    return repr(int(value)) if np.isfinite(value) else _literal(value)


def _literal(value):
    if isinstance(value, np.dtype):
        return f"np.dtype('{value.name}')"
    return repr(value) if not isinstance(value, float) or np.isfinite(value) \
        else f"float('{value}')"


def load(text):
    """The function that a text defines."""
    scope = {"OPS": OPS}
    exec(compile(text, "<minihybrid numpy plan>", "exec"), scope)
    return scope["plan"]
