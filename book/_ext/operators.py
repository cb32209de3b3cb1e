"""Sphinx extension: the operators of some modules, as their records say, and run.

    ```{operators} linalg
    ```

Names, inputs, attributes and defaults are read from the records. The example of each is
one of the samples that its laws are tried on, and is run while the book is built. So are
all its samples, to see which inputs a gradient reaches.
"""

import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

import minihybrid as mx
from minihybrid import autograd, nd
from minihybrid.core.op import REQUIRED, described_kind
from minihybrid.ops.registry import OPS, PLACES

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))
SHOWN = 12  # numbers of an array that are printed; of larger ones, the shape is
NUMBERS = 1, -2, 0.5, 3, -1, 2, -0.5, 4, 1.5, 0, -3, 2.5


def shares(values):
    """Probabilities: 1/2, 1/4, ... of a sum of 1."""
    parts = 0.5 ** np.arange(1, values.shape[-1] + 1)
    parts[-1:] *= 2
    return np.broadcast_to(parts, values.shape)


OF_KIND = {  # what an input takes, where it does not take every number
    "positive": lambda v: np.abs(v) + 0.5,
    "chance": shares,
    "inside": lambda v: v / 5,
    "above": lambda v: np.abs(v) + 1.5,
    "bits": lambda v: v > 0,
    "index": lambda v: np.abs(v).astype(int) % 3,
    "whole": lambda v: np.abs(v).astype(int),
    "matrix": lambda v: (v + v.swapaxes(-1, -2)) / 2 + 6 * np.eye(v.shape[-1]),
}


def public(module):
    """{record: its public names} of the operators that a module of `ops` enters."""
    names_of = {}
    for name, op in OPS.items():
        name = name.replace("_contrib_", "contrib.")  # as programs write it, nd.contrib.X
        if not name.startswith("_") and Path(PLACES[op][0].co_filename).stem == module:
            names_of.setdefault(op, []).append(name)
    return names_of


def title(names):
    """The name that the page uses: the first in small letters, if there is one."""
    return min(names, key=lambda n: (n != n.lower(), names.index(n)))


def array(sample, turn):
    """A sample's input as a reader would type it: a few round numbers that fit."""
    if sample.kind in ("any", "like") and np.prod(sample.shape) > SHOWN:
        return f"nd.random.uniform(shape={tuple(sample.shape)})"
    values = np.resize(np.roll(NUMBERS, -3 * turn), sample.shape)
    values = OF_KIND.get(sample.kind, lambda v: v)(values)
    dtype = ', dtype="int32"' * (sample.kind == "whole")
    return f"nd.array({written(values.tolist())}{dtype})"


def written(values):
    if isinstance(values, list):
        return f"[{', '.join(map(written, values))}]"
    return f"{values:g}"


def program(case, name):
    """(lines that make a case's inputs, the call, the names of the inputs)."""
    op, n = case.op, len(case.inputs)
    names = [f"x{i}" for i in range(n)] if op.variadic else list(inputs_of(op)[:n])
    lines = [
        f"{key} = {array(i, t)}" for t, (key, i) in enumerate(zip(names, case.inputs, strict=True))
    ]
    by_place = not names and [*op.attrs][: len(case.attrs)] == [*case.attrs]
    arguments = [
        repr(v) if by_place and k != "dtype" else f"{k}={v!r}" for k, v in case.attrs.items()
    ]
    return lines, f"nd.{name}({', '.join(names + arguments)})", names


def run(lines, call, record=(), seed=0):
    """The call's value; on the tape, with gradients of the arrays called `record`."""
    scope = {"nd": nd, "mx": mx, "nan": np.nan, "inf": np.inf}  # as attributes print
    mx.random.seed(seed)
    exec("\n".join(lines), scope)
    for key in record:
        scope[key].attach_grad()
        scope[key].grad[:] = np.nan  # what a gradient overwrites
    with autograd.record() if record else nullcontext():
        value = eval(call, scope)
    return value if isinstance(value, (list, tuple)) else [value], scope


def cases(op):
    """An operator's samples, but those of nothing and of single numbers."""
    from samples import cases_of

    return [c for c in cases_of(op) if all(i.shape and 0 not in i.shape for i in c.inputs)]


def example(op, name):
    """The first of an operator's samples in which few numbers go in, and few come out."""

    def long(case):
        lines, call, _ = program(case, name)
        few = all(1 < np.prod(i.shape) <= SHOWN for i in case.inputs)
        return not few or max(v.size for v in run(lines, call)[0]) > SHOWN

    return program(min(cases(op), key=long), name)


def shown(value):
    """What the page prints of a value: numbers of a small array, else its shape."""
    if value.size > SHOWN:
        return f"an array of shape {value.shape}, {np.dtype(value.dtype).name}"
    return np.array2string(value.asnumpy(), precision=4, suppress_small=True)


def session(lines, call):
    """The example as a terminal shows it."""
    results = ["\n".join(map(shown, run(lines, call, seed=seed)[0])) for seed in (0, 1)]
    lines = ["mx.random.seed(0)"] * (results[0] != results[1]) + [*lines, call]
    return "\n".join([*(f">>> {line}" for line in lines), results[0]])


def gradients(lines, call, names):
    """{input: its gradient, or nan where none flows back} of the arrays of floats."""
    _, scope = run(lines, call)
    floats = [key for key in names if np.dtype(scope[key].dtype).kind == "f"]
    values, scope = run(lines, call, floats)
    heads = [v for v in values if v.node is not None]
    if heads:
        seeds = [nd.array(np.resize(NUMBERS, h.shape or (1,))).astype(h.dtype) for h in heads]
        autograd.backward(heads, seeds)
    return {key: scope[key].grad.asnumpy() for key in floats}


def gradient(op, name):
    """To which inputs a gradient flows back in one of the samples, in words."""
    all_grads = [gradients(*program(case, name)) for case in cases(op)]
    reached = [(key, g) for grads in all_grads for key, g in grads.items() if not np.isnan(g).all()]
    flows = dict.fromkeys(key for key, g in reached if np.any(g))
    if flows and op.variadic:
        return "for every input"
    if flows:
        return f"for {listed(flows)}"
    return "zero everywhere" if reached else "none"


def inputs_of(op):
    """The names of the arrays that an operator takes, optional ones included."""
    return op.inputs if isinstance(op.inputs, tuple) else op.inputs(None)


def default(value):
    if value is REQUIRED:
        return "must be given"
    return value.name if isinstance(value, np.dtype) else repr(value)


def prose(text):
    """A paragraph of text in which `this` is code."""
    paragraph = nodes.paragraph()
    for i, part in enumerate(text.split("`")):
        paragraph += nodes.literal(text=part) if i % 2 else nodes.Text(part)
    return paragraph


def listed(names):
    return ", ".join(f"`{name}`" for name in names)


def table(head, rows):
    """A table whose first and last columns are code."""
    result = nodes.table(classes=["attributes"])
    group = nodes.tgroup(cols=len(head))
    group += [nodes.colspec(colwidth=1) for _ in head]
    top, body = nodes.thead(), nodes.tbody()
    top += nodes.row("", *(nodes.entry("", nodes.paragraph(text=h)) for h in head))
    for name, takes, value in rows:
        cells = map(prose, (f"`{name}`", takes, f"`{value}`"))
        body += nodes.row("", *(nodes.entry("", cell) for cell in cells))
    group += [top, body]
    result += group
    return result


class Operators(SphinxDirective):
    """One section for each public operator of the modules that are named."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        names_of = {}
        for module in self.arguments[0].split():
            names_of |= public(module)
        return [self.entry(op, names) for op, names in names_of.items()]

    def entry(self, op, names):
        name = title(names)
        section = nodes.section(ids=[f"op-{name.lower().replace('_', '-')}"])
        section += nodes.title("", "", nodes.literal(text=name))
        if len(names) > 1:
            section += prose(f"Also called {listed(n for n in names if n != name)}.")
        section += prose(op.doc)
        lines, call, _ = example(op, name)
        inputs = "any number of arrays" if op.variadic else listed(inputs_of(op)) or "none"
        section += prose(f"Inputs: {inputs}. Gradient: {gradient(op, name)}.")
        if op.attrs:
            rows = [
                (key, described_kind(kind), default(value))
                for key, (kind, value) in op.attrs.items()
            ]
            section += table(("attribute", "takes", "default"), rows)
        text = session(lines, call)
        section += nodes.literal_block(text, text, language="pycon", classes=["docstring"])
        return section


def setup(app):
    app.add_directive("operators", Operators)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
