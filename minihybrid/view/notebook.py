"""Notebook display of a net or a symbol at the end of a cell.

Defines: `net`, a table of its layers, and `symbol`, its graph in a collapsible element, both as
         HTML. IPython calls them (`later.py` registers them); a terminal shows the text.

After `net.`, a row's path is the layer's name in `save_parameters`. Nothing is computed, and
names and texts of users' classes are escaped.
Not supported: output shapes, which only a call determines: `net.summary(x)`.
"""

from html import escape
from math import prod
from typing import Any

from minihybrid.core.block import Block, SymbolBlock
from minihybrid.core.graph import Graph
from minihybrid.core.parameter import Parameter
from minihybrid.core.sym import Symbol
from minihybrid.view.viz import LIMIT, Drawing, html_table, plural, scrolling

BOXES = 60  # nodes drawn; `viz.draw` draws more
SHAPES = 4  # parameters listed in a row


def symbol(value: Symbol) -> str:
    """Return a symbol's text and, collapsed, a drawing of its graph and a table of nodes."""
    graph = Graph.of(value)
    return (
        f"<div><code>{escape(repr(value))}</code>\n<details><summary>{escape(repr(graph)[1:-1])}"
        f"</summary>{Drawing(graph, BOXES)._repr_html_()}</details></div>"
    )


def net(block: Block) -> str:
    """Return a table of layers: path, layer, parameter shapes, number of elements."""
    if isinstance(block, SymbolBlock):
        return symbol(block._outputs)
    rows = []
    counted: dict[int, Parameter] = {}
    waiting: list[tuple[str, Any]] = [("net", block)]
    while waiting:
        path, layer = waiting.pop()
        params = layer._reg_params
        new = [p for p in params.values() if id(p) not in counted]
        counted |= {id(p): p for p in new}
        shapes = [f"{name} {shape_of(p)}" for name, p in [*params.items()][:SHAPES]]
        shapes += [f"and {len(params) - SHAPES} more"] * (len(params) > SHAPES)
        numbers = size_of(new) if new else "shared" * bool(params)
        rows.append((path, layer_text(layer), ", ".join(shapes), numbers))
        waiting += [(f"{path}.{name}", b) for name, b in reversed(layer._children.items())]
    every = list(counted.values())
    head = f"{type(block).__name__}: {plural(len(every), 'parameter')}, {size_of(every)} numbers"
    if len(rows) > LIMIT:
        head += f"; the first {LIMIT} of {len(rows)} layers"
    table = html_table([("path", "layer", "parameters", "numbers"), *rows[:LIMIT]])
    return f"<div>{scrolling(table, 'layers')}\n<div>{escape(head)}</div></div>"


def layer_text(layer: Block) -> str:
    """Return a layer's `repr`, or its class name if that has several lines."""
    text = repr(layer)
    return type(layer).__name__ if "\n" in text else text


def shape_of(param: Parameter) -> str:
    """Return a parameter's shape, with `?` for a length inferred in the first call."""
    if param.shape is None:
        return "?"
    return " x ".join(str(n) if n > 0 else "?" for n in param.shape) or "1"


def size_of(params: list) -> str:
    """Return the number of elements of parameters as text; `?` if a length is unknown."""
    total = 0
    for param in params:
        if param.shape is None or min(param.shape, default=1) < 1:
            return "?"
        total += prod(param.shape)
    return f"{total:,}"
