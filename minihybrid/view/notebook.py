"""What a notebook shows of a net or a symbol that a cell ends with.

Takes:   a block, or a symbol.
Gives:   `net`, a table of its layers, and `symbol`, its graph to unfold, both as HTML.
         IPython asks for them (`later.py` says where they are); a terminal shows the text.

Behind `net.`, a row's path is what `save_parameters` calls the layer. Nothing is computed, and
names and texts of users' own classes are escaped.
What is left out: shapes of outputs, which only a call can tell: `net.summary(x)`.
"""

from html import escape
from math import prod
from typing import Any

from minihybrid.core.block import Block, SymbolBlock
from minihybrid.core.graph import Graph
from minihybrid.core.parameter import Parameter
from minihybrid.core.sym import Symbol
from minihybrid.view.viz import LIMIT, Drawing, html_table, plural, scrolling

BOXES = 60  # of a graph; `viz.draw` draws more
SHAPES = 4  # parameters that a row names


def symbol(value: Symbol) -> str:
    """What a symbol prints, and the graph behind it, folded: drawn, and as a table of nodes."""
    graph = Graph.of(value)
    return (
        f"<div><code>{escape(repr(value))}</code>\n<details><summary>{escape(repr(graph)[1:-1])}"
        f"</summary>{Drawing(graph, BOXES)._repr_html_()}</details></div>"
    )


def net(block: Block) -> str:
    """A row for each layer: its path, what it is, its parameters, how many numbers they hold."""
    if isinstance(block, SymbolBlock):
        return symbol(block._outputs)
    rows = []
    counted: dict[int, Parameter] = {}
    waiting: list[tuple[str, Any]] = [("net", block)]
    while waiting:
        path, layer = waiting.pop()
        own = layer._reg_params
        new = [p for p in own.values() if id(p) not in counted]
        counted |= {id(p): p for p in new}
        shapes = [f"{name} {shape_of(p)}" for name, p in [*own.items()][:SHAPES]]
        shapes += [f"and {len(own) - SHAPES} more"] * (len(own) > SHAPES)
        numbers = size_of(new) if new else "shared" * bool(own)
        rows.append((path, layer_text(layer), ", ".join(shapes), numbers))
        waiting += [(f"{path}.{name}", b) for name, b in reversed(layer._children.items())]
    every = list(counted.values())
    head = f"{type(block).__name__}: {plural(len(every), 'parameter')}, {size_of(every)} numbers"
    if len(rows) > LIMIT:
        head += f"; the first {LIMIT} of {len(rows)} layers"
    table = html_table([("path", "layer", "parameters", "numbers"), *rows[:LIMIT]])
    return f"<div>{scrolling(table, 'layers')}\n<div>{escape(head)}</div></div>"


def layer_text(layer: Block) -> str:
    """A layer as it prints itself, or of many lines, which list its own layers, the kind."""
    text = repr(layer)
    return type(layer).__name__ if "\n" in text else text


def shape_of(param: Parameter) -> str:
    """The shape of a parameter; a length that the first call tells is a question mark."""
    if param.shape is None:
        return "?"
    return " x ".join(str(n) if n > 0 else "?" for n in param.shape) or "1"


def size_of(params: list) -> str:
    """How many numbers parameters hold, as text; a question mark if a length is unknown."""
    total = 0
    for param in params:
        if param.shape is None or min(param.shape, default=1) < 1:
            return "?"
        total += prod(param.shape)
    return f"{total:,}"
