"""The lowering of a symbol to ONNX operators.

Uses:    a symbol, the specs of its variables, and which of them are batches.
Defines: `drafted`, which returns the `Program`: its steps and outputs.

Each node is looked up in a table of rules. A node without a rule is translated from its
scalar expression, if it has one; any other is decomposed into simpler operators by its
definition's `expand`, and these are looked up in turn. So most operators need no rule.
Not supported: training, and random operators.
"""

from typing import NamedTuple

import numpy as np

from minihybrid.core.name import Prefix
from minihybrid.core.op import UNKNOWN, HybridError, Spec
from minihybrid.core.sym import Symbol, replay, trace
from minihybrid.core.tracing import Trace, tracing
from minihybrid.formats.onnx.export.control import CONTROL
from minihybrid.formats.onnx.export.draft import (
    Body,
    Draft,
    ExportError,
    Value,
    agreed,
    live,
    renamed,
)
from minihybrid.formats.onnx.export.layers import LAYERS
from minihybrid.formats.onnx.export.layout import LAYOUT
from minihybrid.formats.onnx.export.scalar import elementwise

RULES = LAYOUT | LAYERS


# -- node by node ----------------------------------------------------------------------
class Exporter:
    """Exports the nodes of one traced graph to a draft.

    values:  (node, output index) -> Value, or an ndarray for a constant.
    """

    def __init__(self, graph, used):
        self.draft, self.values = Draft(used), {}
        for node in graph.nodes:
            self.add(node)

    def add(self, node, source=None):
        """Export one node; `source` describes the node it was decomposed from, if any."""
        if node.op is None:
            self.values[node, 0] = (
                Value(node.name, node.specs[0].dtype) if node.values is None else node.values[0]
            )
            return
        self.draft.name = node.name
        self.draft.source = source or f"{node.op.name} '{node.name}'"
        outs = self.outputs(node)
        outs = [outs] if isinstance(outs, (Value, np.ndarray)) else outs
        self.values.update(((node, i), value) for i, value in enumerate(outs))

    def outputs(self, node):
        """Return the output or outputs of a node, by the first method that applies."""
        op, inputs = node.op, [self.values[ref] for ref in node.inputs]
        if op.name in CONTROL:
            return CONTROL[op.name](self, node, *inputs)
        if op.widens([n.specs[i] for n, i in node.inputs], node.attrs):
            return self.expanded(node, lambda specs, *ins, **a: op.expanded(specs, ins, a, False))
        if op.name in RULES:
            out = RULES[op.name](self.draft, node, *inputs)
            if out is not None:
                return out
        if op.random:
            self.draft.refuse(
                "it draws random numbers, which would not be ours; "
                "leave it out of the net that is exported"
            )
        if not op.inputs and op.eager:
            return op.eager(**node.attrs)
        if op.expr:
            return elementwise(self.draft, node, inputs)
        rule = op.expand or op.lower
        if rule is None:
            self.draft.refuse("ONNX has no operator for it; compute this part outside of the net")
        return self.expanded(node, rule)

    def expanded(self, node, rule):
        """Decompose a node and return the outputs."""
        specs = [source.specs[i] for source, i in node.inputs]
        mode = {"training": False} if node.op.modal and rule is node.op.expand else {}
        with tracing(Trace()) as subtrace, Prefix(f"{node.name}_"):
            subtrace.known.update(source for source, _ in node.inputs)
            out = rule(specs, *(Symbol([ref]) for ref in node.inputs), **node.attrs, **mode)
        source = self.draft.source
        for inner in subtrace.nodes:
            self.add(inner, source)
        outs = out if isinstance(out, tuple) else (out,)
        return [self.values[ref] for s in outs for ref in s.refs][: node.n_outputs]

    # -- subgraphs
    def inlined(self, graph, values):
        """Inline a graph, `values` for its variables in order; return its heads."""
        for node, value in zip(graph.variables, values.values(), strict=True):
            self.values[node, 0] = value
        for node in graph.nodes:
            if node.op is not None or node.values is not None:
                self.add(node, self.draft.source)
        return [self.values[ref] for ref in graph.heads]

    def body(self, inputs, write, specs, scalars=0):
        """Return the subgraph of the steps that `write` adds; it returns outputs of these specs."""
        draft, outputs = self.draft, []
        outer, draft.steps = draft.steps, []
        for value in write():
            defined = {name for step in draft.steps for name in step.outputs}
            if getattr(value, "name", None) not in defined or value in outputs:
                value = draft.add("Identity", value)
            outputs.append(value)
        steps, draft.steps = live(draft.steps, [v.name for v in outputs]), outer
        return Body(steps, inputs, outputs, [spec.shape for spec in specs], scalars)


# -- one graph, several sizes ----------------------------------------------------------
def draft_of(symbol, specs, names):
    """Return (draft, the specs of its outputs) for variables of given specs.

    names:   of the outputs.
    """
    nodes = {n.name: n for part in symbol._variables() for n in part}
    twice = [name for name in nodes if symbol.list_inputs().count(name) > 1]
    if twice:
        raise ExportError(
            f"export to ONNX: two variables are called '{twice[0]}'; give each a name of its own"
        )
    graph, _ = trace(
        lambda *values: replay(symbol.refs, dict(zip(nodes.values(), values, strict=True))),
        {name: specs.get(name, UNKNOWN) for name in nodes},
    )
    exporter = Exporter(graph, {*nodes, *names})
    heads = [exporter.values[ref] for ref in graph.heads]
    named_heads(exporter.draft, heads, names)
    return exporter.draft, [n.specs[i] for n, i in graph.heads]


def named_heads(draft, heads, names):
    """Give each output its name; copy an input or a constant that is an output."""
    defined = {name for step in draft.steps for name in step.outputs}
    new = {}
    for value, name in zip(heads, names, strict=True):
        if getattr(value, "name", None) in defined - new.keys():
            new[value.name] = name
        else:
            draft.source = f"the output '{name}'"
            draft.add("Identity", value)
            draft.steps[-1] = draft.steps[-1]._replace(outputs=(name,))

    draft.steps = live(renamed(draft.steps, new), names)


def output_names(symbol):
    """Return unique names of the outputs, with a suffix if another value has the name."""
    inputs, draft = symbol.list_inputs(), Draft(symbol.list_inputs())
    return [
        draft.unique(f"{name}_output" if name in inputs else name) for name in symbol.list_outputs()
    ]


class Program(NamedTuple):
    """The contents of a file."""

    steps: list
    outputs: list  # names
    specs: list  # of the outputs
    others: list  # the same for a batch with one more sample, if its size is free


def drafted(traced, specs, batch):
    """Return the Program of a net.

    traced:  specs -> the symbol for variables of these specs.
    batch:   names of inputs whose first axis may have any length.
    Raises:  ExportError, which tells whether the net works for one batch size only.
    """
    symbol = traced(specs)
    names = output_names(symbol)
    draft, outs = draft_of(symbol, specs, names)
    if not batch:
        return Program(draft.steps, names, outs, outs)
    length, drafts, results = specs[batch[0]].shape[0], [draft], [outs]
    sizes = list(dict.fromkeys((length, length + 1, 2 * length + 3, 1)))
    for size in sizes[1:]:
        other = specs | {name: with_length(specs[name], size) for name in batch}
        try:
            draft, outs = draft_of(traced(other), other, names)
        except HybridError as error:
            raise ExportError(
                f"export to ONNX: the net does for a batch of {length}, but not of {size} "
                f"({error}); mx.onnx.export_model with dynamic=False writes a file for this length"
            ) from None
        drafts.append(draft)
        results.append(outs)
    return Program(agreed(drafts, sizes, batch[0]), names, *results[:2])


def with_length(spec, length):
    """Return the spec with another first length."""
    return Spec((length, *spec.shape[1:]), spec.dtype)
