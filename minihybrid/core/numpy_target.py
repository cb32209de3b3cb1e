"""Target "numpy": the plan as a plain Python function that calls NumPy.

Input:   a graph (not fused: NumPy can't merge loops) and its memory plan.
Output:  readable source in which every step writes into planned memory with `out=`.

It needs no compiler, so it runs wherever NumPy runs, also in a browser. The source is a
complete file that doesn't need minihybrid: it contains the code of each operator that
takes more than one NumPy call.
Limits: small arrays are slow, because each step is a call from Python.
"""

import functools

import numpy as np

from minihybrid.core.passes.memory import places
from minihybrid.core.plan import ActivePlan
from minihybrid.core.targets import TARGETS, Call, Table, Target, in_order
from minihybrid.ops.integers import scalar_like


def generate(graph, memory, inputs, functions=None):
    """Generate the function's source and the rest of the plan's code object.

    functions: name -> operator, for those already named; others are added to it.
    """
    table = Table(graph, inputs)
    names, variables = {}, {n.name: n for n in graph.variables}
    functions, lines, calls, written = {} if functions is None else functions, [], [], []
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
            written.append(Call(node))
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
                at, kind = memory.offsets[node, i], spec.dtype.name
                kind = repr(kind) if spec.dtype.kind == "V" else f"np.{kind}"
                names[node, i] = f"t{count}"
                lines.append(
                    f"t{count} = arena[{at}:{at + spec.nbytes}].view({kind}).reshape({spec.shape})"
                )
            count += 1
        calls += _step(
            node,
            [names[r] for r in node.inputs],
            [names[node, i] for i in range(node.n_outputs)],
            functions,
        )
        written += [Call(node)] * (len(calls) - len(written))
    for ref, k in memory.copies:
        source = names.get(ref) or names[root[ref]]
        calls.append(f"y{k}[...] = {source}.reshape(y{k}.shape)")
        written.append(Call(ref[0]))
    tail = ["arena", "table", *["key"] * bool(graph.n_streams)]
    body = "\n".join(f"    {line}" for line in [*lines, *calls] or ["pass"])
    text = (
        '# NaN and infinity are answers, too.\n@np.errstate(all="ignore")\n'
        f"def plan({', '.join([*args, *tail])}):\n{body}\n"
    )
    n_steps = sum(n.op is not None and not n.op.view for n in graph.nodes)
    return Function(text, functions, n_steps, table, written)


class Function:
    """The generated code of this target.

    plan:      source of the plan's function.
    functions: names that it calls -> operators, whose `eager` they denote.
    calls:     a `Call` for each of the source's last lines.

    The plan calls the operators' functions directly; the complete file is generated only
    on demand.
    """

    kernels, launches, nbytes_helpers = [], (), 0

    def __init__(self, plan, functions, n_kernels, table, calls=()):
        self.plan, self.functions, self.calls = plan, functions, calls
        self.n_kernels, self.table = n_kernels, table

    @functools.cached_property
    def written(self):
        """(text, outside): the complete file, and why some operators can't be included."""
        from minihybrid.codegen.numpy.whole import written

        return written(self.plan, self.functions)

    @property
    def text(self):
        """The complete file, which needs only NumPy if `outside` is empty."""
        return self.written[0]

    @property
    def outside(self):
        """Operator -> why its code can't be included."""
        return self.written[1]


def name_of(op):
    """Return the name of an operator's function in generated source.

    >>> from minihybrid.ops import OPS
    >>> name_of(OPS["_mul_scalar"])
    'mul_scalar_eager'
    """
    return f"{op.name.strip('_').lower()}_eager"


def _step(node, ins, outs, functions):
    """Return the lines of one node: a NumPy call with out=, or a copy of the eager result."""
    op, attrs = node.op, node.attrs
    if callable(op.numpy):
        specs = [n.specs[i] for n, i in node.inputs]
        return op.numpy(specs, *ins, out=outs[0], **attrs).split("\n")
    dtypes = {n.specs[i].dtype for n, i in (*node.inputs, (node, 0))}
    if op.numpy and len(dtypes) == 1 and not op.is_apart(*dtypes):
        letters = dict(zip("abcdefgh", ins, strict=False))
        numbers = {k: _number(v, node.specs[0]) for k, v in attrs.items()}
        return op.numpy.format(**letters, **numbers, out=outs[0]).split("\n")
    args = ", ".join(
        [*ins, *(f"{k}={_literal(v)}" for k, v in attrs.items()), *["key=key"] * op.random]
    )
    name = name_of(op)
    while functions.setdefault(name, op) is not op:
        name += "_"
    return [f"{', '.join(f'{o}[...]' for o in outs)} = {name}({args})"]


def _number(value, spec):
    """Return a scalar attribute's source: an integer literal for integer arrays."""
    if spec.dtype.kind == "f" or not isinstance(value, float) or not np.isfinite(value):
        return _literal(value)
    name = "bool_" if spec.dtype.kind == "b" else spec.dtype.name
    return f"np.{name}({int(scalar_like(spec, value))})"


def _literal(value):
    if isinstance(value, np.dtype):
        return f"np.dtype('{value.name}')"
    return (
        repr(value) if not isinstance(value, float) or np.isfinite(value) else f"float('{value}')"
    )


def load(source):
    """Compile the plan's function."""
    scope = {"np": np} | {name: op.eager for name, op in source.functions.items()}
    exec(compile(source.plan, "<minihybrid numpy plan>", "exec"), scope)
    return scope["plan"]


def call(plan, arrays, key):
    """Return the source of a call of the plan's function."""
    return f"function({arrays}{key and ', '}{key})"


def bound(arrays, constants, device):
    """Return the table, here simply the arrays."""
    arrays = in_order(arrays, constants)
    return arrays, arrays


TARGETS["numpy"] = NUMPY = Target(generate, load, call, bound, ActivePlan)
