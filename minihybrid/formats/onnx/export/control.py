"""ONNX export rules for branches and loops, whose subgraphs are attributes.

Uses:    an exporter, a node of `_cond`, `_while_loop` or `_foreach`, and its input values.
Defines: `CONTROL`, operator name -> rule, which returns the outputs of an If, Loop or Scan.

A subgraph captures outer values by name. The outputs of `_while_loop` have a row for each of
`max_iterations`, so they are loop variables, initially zero, and each iteration writes its
row: ONNX's scan outputs would only have a row per executed iteration.
Not supported: training, as in all rules.
"""

import numpy as np

from minihybrid.core.op import Spec
from minihybrid.formats.onnx.export.draft import Step, Value

BOOL, INT64 = np.dtype("bool"), np.dtype("int64")


def predicate(draft, value, spec):
    """Return a scalar bool: whether a one-element array is nonzero."""
    value = draft.cast(value, BOOL)
    return draft.reshape(value, ()) if spec.shape else value


def applied(draft, kind, inputs, dtypes, **attrs):
    """Append an operator with subgraphs; return its outputs, one for each dtype."""
    outs = [Value(draft.unique(f"{draft.name}_{kind.lower()}"), dtype) for dtype in dtypes]
    names = tuple(getattr(v, "name", v) for v in inputs)
    draft.steps.append(Step(kind, names, tuple(v.name for v in outs), attrs, draft.source))
    return outs


def specs_of(node):
    """Return the specs of a node's inputs."""
    return [n.specs[i] for n, i in node.inputs]


def branch(exporter, node, *inputs):
    """Export `_cond` as If, whose subgraphs have no inputs."""
    op, draft, name = node.op, exporter.draft, node.name
    test, *sides = op.inside(specs_of(node))
    (holds,) = exporter.inlined(test, op.values(0, inputs))
    holds = predicate(draft, holds, test.heads[0][0].specs[test.heads[0][1]])
    bodies = [
        exporter.body([], lambda k=k, g=g: exporter.inlined(g, op.values(k, inputs)), node.specs)
        for k, g in enumerate(sides, 1)
    ]
    draft.name = name
    dtypes = [spec.dtype for spec in node.specs]
    return applied(draft, "If", [holds], dtypes, then_branch=bodies[0], else_branch=bodies[1])


def while_loop(exporter, node, *inputs):
    """Export `_while_loop` as Loop, over the node's loop variables, then its output arrays."""
    op, draft, name, specs = node.op, exporter.draft, node.name, specs_of(node)
    test, func = op.inside(specs)
    outs, spec = node.specs[: op.n_outs], test.heads[0][0].specs[test.heads[0][1]]

    def holds(values):
        return predicate(draft, exporter.inlined(test, op.values(0, values))[0], spec)

    def with_new(new):
        values = list(inputs)
        for i, value in zip(op.vars, new, strict=True):
            values[i] = value
        return values

    def variables(kind, dtypes):
        return [Value(draft.unique(f"{name}_{kind}"), dtype) for dtype in dtypes]

    first = holds(inputs)
    draft.name = name
    zeros = [draft.filled(s.shape, np.zeros(1, s.dtype)) for s in outs]
    (step,), (condition,) = variables("step", [INT64]), variables("condition", [BOOL])
    now = variables("var", [specs[i].dtype for i in op.vars])
    stacks = variables("out", [s.dtype for s in outs])

    def iteration():
        heads = exporter.inlined(func, op.values(1, with_new(now)))
        rows, new = heads[: op.n_outs], heads[op.n_outs :]
        condition = holds(with_new(new))
        draft.name = name
        index = draft.reshape(step, (1, 1))
        rows = [draft.add("Unsqueeze", row, (0,)) for row in rows]
        written = [draft.add("ScatterND", s, index, r) for s, r in zip(stacks, rows, strict=True)]
        return [condition, *new, *written]

    out_specs = [*(specs[i] for i in op.vars), *outs]
    body = exporter.body(
        [step, condition, *now, *stacks], iteration, [Spec((), BOOL), *out_specs], scalars=2
    )
    draft.name, states = name, [inputs[i] for i in op.vars]
    loop_inputs = [np.array(op.max_iterations), first, *states, *zeros]
    results = applied(draft, "Loop", loop_inputs, [v.dtype for v in (*now, *stacks)], body=body)
    return [*results[len(now) :], *results[: len(now)]]


def foreach(exporter, node, *inputs):
    """Export `_foreach` as Scan, whose body takes the states, then a row of each array."""
    op, draft, name, specs = node.op, exporter.draft, node.name, specs_of(node)
    loop = op.with_specs(specs)
    rows, states, others = op.sorted(list(zip(loop.ins, inputs, strict=True)))
    now, row = (
        [Value(draft.unique(f"{name}_{kind}"), v.specs[0].dtype) for v, _ in some]
        for kind, some in (("state", states), ("row", rows))
    )

    def iteration():
        draft.name = name
        values = [  # our body takes a row of a vector with shape (1,)
            value if len(spec.shape) > 1 else draft.reshape(value, (1,))
            for value, spec in zip(row, specs, strict=False)
        ]
        values_of = dict(zip(loop.ins, [*values, *now, *(v for _, v in others)], strict=True))
        heads = exporter.inlined(loop.body, {v: values_of[v] for v in loop.body.variables})
        return [*heads[op.n_outs :], *heads[: op.n_outs]]

    heads = [n.specs[i] for n, i in loop.body.heads]
    heads = [*heads[op.n_outs :], *heads[: op.n_outs]]
    body = exporter.body([*now, *row], iteration, heads)
    draft.name, scan_inputs = name, [v for _, v in (*states, *rows)]
    dtypes = [v.dtype for v in body.outputs]
    results = applied(draft, "Scan", scan_inputs, dtypes, body=body, num_scan_inputs=len(rows))
    return [*results[op.n_states :], *results[: op.n_states]]


CONTROL = {"_cond": branch, "_while_loop": while_loop, "_foreach": foreach}
