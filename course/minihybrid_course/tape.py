"""Step through the backward pass: values on the tape, and gradients as they accumulate.

Uses:    an array computed under `record()`.
Defines: `walk_back`, HTML with a drawing of the tape and a slider for the steps of the
         backward pass; and a text.

The steps are those of `backprop.gradient`, which reports each of them.
Not supported: a tape that an earlier backward pass has freed.
"""

import itertools
from html import escape
from typing import NamedTuple

import numpy as np

from minihybrid.core import tape
from minihybrid.core.array import Leaf, NDArray
from minihybrid.core.backprop import gradient
from minihybrid.core.graph import Graph, shown_attrs, topological
from minihybrid.core.op import HybridError, Node, Spec
from minihybrid.view.hybrid_view import page
from minihybrid.view.viz import Drawing, columns_of, scrolling
from minihybrid_course import HERE


class Step(NamedTuple):
    """One step of the pass: its node, a description, and the gradients it changed."""

    node: str
    text: str
    grads: dict  # name -> text of its gradient, if it changed


class Walk:
    """A tape and the steps of the backward pass over it.

    graph:   the tape with a name for each node;  values: name -> its value as text.
    rows:    (name, expression, value) of each output, in program order.
    steps:   the `Step`s, in order; the first seeds the output's gradient with 1.
    """

    def __init__(self, head, names):
        if head.node is None or any(
            n.inputs is None for n in topological([(head.node, head.index)])
        ):
            raise HybridError(
                "walk_back: the array has no tape; compute it inside `with "
                "autograd.record():` from arrays with attach_grad(), and walk back "
                "before backward() frees it, or call backward(retain_graph=True)"
            )
        ref = head.node, head.index
        order = topological([ref])
        self.names = _named(order, names)
        self.graph = _copied(order, ref, self.names)
        self.values = {
            self.name(n, i): shown(n.values[i]) for n in order for i in range(n.n_outputs)
        }
        self.rows = [
            (self.name(n, i), self.what(n), self.values[self.name(n, i)])
            for n in order
            for i in range(n.n_outputs)
        ]
        self.steps = self._walked(ref, [n for n in order if isinstance(n.info, Leaf)])

    def name(self, node, i):
        """Return the name of one output of a node."""
        return self.names[node] + f"[{i}]" * (node.n_outputs > 1)

    def _walked(self, ref, leaves):
        """Return the steps, as reported by the engine."""
        handed, one = [], NDArray(np.ones_like(ref[0].values[ref[1]]))
        with tape.pause(train_mode=True):
            gradient(
                [ref],
                [one],
                [(n, 0) for n in leaves],
                lambda r: NDArray(r[0].values[r[1]], *r),
                lambda *passed: handed.append(passed),
            )
        grads, name = {ref: one}, self.name(*ref)
        steps = [
            Step(
                self.names[ref[0]], f"{name} begins with {shown(one.data)}", {name: shown(one.data)}
            )
        ]
        for node, passed in itertools.groupby(handed, key=lambda each: each[0]):
            now, targets = {}, []
            for _, source, g in passed:
                targets.append(
                    f"{shown(g.data)}{' more' * (source in grads)} to {self.name(*source)}"
                )
                grads[source] = grads[source] + g if source in grads else g
                now[self.name(*source)] = shown(grads[source].data)
            steps.append(
                Step(
                    self.names[node],
                    f"{self.names[node]} = {self.what(node)} hands {' and '.join(targets)}",
                    now,
                )
            )
        return steps

    def what(self, node):
        """Describe a node: its operator and arguments."""
        if node.op is None:
            return "variable"
        attrs = [f"{k}={v}" for k, v in shown_attrs(node).items()]
        args = [self.name(*ref) for ref in node.inputs]
        return f"{node.op.name}({', '.join([*args, *attrs])})"

    def __repr__(self):
        rows = [("name", "what", "value"), *self.rows]
        return "\n".join(
            [
                columns_of(rows, align="<"),
                "",
                *(f"{i}. {step.text}" for i, step in enumerate(self.steps)),
            ]
        )

    def _repr_html_(self):
        marks = {n: f' data-name="{escape(n.name)}"' for n in self.graph.nodes}
        steps = "".join(
            f'<li value="{i}" data-node="{escape(step.node)}" '
            f'data-to="{escape(" ".join(step.grads))}">{escape(step.text)}</li>'
            for i, step in enumerate(self.steps)
        )
        return page(
            '<p class="buttons"><button type="button" data-do="-1">back</button> '
            '<button type="button" data-do="1">next step</button> '
            '<label>step <input type="range" min="0" value="0" step="1" '
            f'max="{len(self.steps) - 1}"></label></p>\n'
            f'<ol class="steps">{steps}</ol>\n<div class="both">'
            f'<div class="drawn">{Drawing(self.graph, marks=marks).figure()}</div>'
            f"{scrolling(self._table(), 'values and gradients')}</div>",
            "tape",
            HERE,
        )

    def _table(self):
        """Return a table of nodes with values, and gradients after each step."""
        parts = [
            "<table><thead><tr><th scope=col>name</th><th scope=col>what</th><th "
            "scope=col>value</th><th scope=col>gradient</th></tr></thead><tbody>"
        ]
        for name, what, value in self.rows:
            history = [
                (i, step.grads[name]) for i, step in enumerate(self.steps) if name in step.grads
            ]
            grads = " <b>→</b> ".join(
                f'<span data-from="{i}">{escape(text)}</span>' for i, text in history
            )
            cells = "".join(f"<td>{escape(text)}</td>" for text in (what, value))
            parts.append(
                f'<tr data-name="{escape(name)}"><th scope=row>{escape(name)}'
                f'</th>{cells}<td class="grad">{grads}</td></tr>'
            )
        return "".join([*parts, "</tbody></table>"])


def _named(order, names):
    """Return node -> name without blanks: the reader's, or v0, v1 or t0, t1, ..."""
    name_of = {array.node: name for name, array in names.items()}
    counts = {"v": itertools.count(), "t": itertools.count()}

    def free(kind):
        return next(name for i in counts[kind] if (name := f"{kind}{i}") not in names)

    return {node: name_of.get(node) or free("t" if node.op else "v") for node in order}


def _copied(order, ref, names):
    """Return the tape as a graph with names and shapes, for drawing."""
    copies = {}
    for node in order:
        specs = tuple(Spec(v.shape, v.dtype) for v in node.values[: node.n_outputs])
        copies[node] = Node(
            node.op, tuple((copies[n], i) for n, i in node.inputs), node.attrs, names[node], specs
        )
    return Graph(copies.values(), [(copies[ref[0]], ref[1])])


def shown(array, most=60):
    """Return an array's elements in one short line."""
    text = np.array2string(
        np.asarray(array),
        precision=4,
        separator=", ",
        threshold=12,
        edgeitems=2,
        suppress_small=True,
    )
    text = " ".join(text.split()).replace("[ ", "[").replace(" ]", "]")
    return text if len(text) <= most else f"{text[: most - 1]}…"


def walk_back(y, **names):
    """Show the backward pass from an array, step by step.

    names:   your arrays by display name: `walk_back(y, x=x)`.
    Raises:  HybridError if the array isn't on the tape, or its tape is freed.

    >>> from minihybrid import autograd, nd
    >>> x = nd.array([3]); x.attach_grad()
    >>> with autograd.record():
    ...     y = x * x
    >>> walk_back(y, x=x)
    name  what                value
    x     variable            [3.]
    t0    elemwise_mul(x, x)  [9.]
    <BLANKLINE>
    0. t0 begins with [1.]
    1. t0 = elemwise_mul(x, x) hands [3.] to x and [3.] more to x
    """
    return Walk(y, names)
