"""Drawings of graphs as SVG, without installing or downloading anything.

Defines: `draw` and `plot_network`, which return a `Drawing`: a picture in a notebook, text
         in a terminal; `print_summary`, a table.

Not supported: animation, and the tools of Graphviz (`Drawing.to_dot` exports to them).
"""

from collections.abc import Sequence, Set
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from minihybrid.core.checked_call import signed
from minihybrid.core.files import write_whole
from minihybrid.core.graph import Graph, infer
from minihybrid.core.hooks import own_names
from minihybrid.core.op import UNKNOWN, AttrError, HybridError, Node, ShapeError, Spec, described
from minihybrid.core.passes.memory import Memory
from minihybrid.core.sym import Symbol, trace
from minihybrid.passes.reduction_schedule import Ref
from minihybrid.view.drawing import KINDS, LETTER, LINE, PAD, Box, boxes_of, layout, short, what
from minihybrid.view.summary import print_summary

__all__ = ["KINDS", "LIMIT", "Drawing", "draw", "memory_map", "plot_network", "print_summary"]

LIMIT = 200  # nodes; a larger drawing is unreadable


# -- ink -------------------------------------------------------------------------------
def svg_box(box: Box, marks: str = "") -> str:
    """Return a rectangle with its lines of text; inputs and outputs have round ends.

    marks:   attributes of its group, besides the kind.
    """
    color = KINDS[box.kind][0]
    round_ends = box.kind in ("variable", "output")
    texts = []
    for i, line in enumerate(box.lines):
        style = 'font-weight="600"' if i < len(box.bold) else 'opacity=".8"'
        y = box.y + PAD / 2 + LINE * i + 11.5
        texts.append(f'<text x="{box.x:.1f}" y="{y:.1f}" {style}>{escape(line)}</text>')
    return (
        f'<g data-kind="{box.kind}"{marks}><title>{escape(box.tip)}</title>'
        f'<rect x="{box.x - box.width / 2:.1f}" y="{box.y:.1f}" '
        f'width="{box.width:.1f}" height="{box.height:.1f}" '
        f'rx="{box.height / 2 if round_ends else 4:.1f}" fill="{color}" '
        f'fill-opacity=".16" stroke="{color}" '
        f'stroke-width="{2.5 if box.kind == "fused" else 1.2}"/>'
        f"{''.join(texts)}</g>"
    )


def svg_arrows(box: Box) -> list[str]:
    """Return the arrows into a box, from the lower side of each source."""
    x_end = {}  # neighbor above -> x of its arrowhead, spread over the box
    for side in (-1, 1):
        beside = sorted(
            (u for u in set(box.ups) if (u.x - box.x) * side > 0.5), key=lambda u: abs(u.x - box.x)
        )
        for k, up in enumerate(beside, 1):
            x_end[up] = box.x + side * box.width / 2 * k / (len(beside) + 1)
    arrows = []
    for source, outputs in box.inputs.items():
        x, y = source.x, source.y + source.height
        path = f"M{x:.1f} {y:.1f}"
        for point in box.ways[source]:
            path += _curve(x, y, point.x, point.y) + f"V{point.y + point.height:.1f}"
            x, y = point.x, point.y + point.height
        x_last = x_end.get((box.ways[source] or [source])[-1], box.x)
        path += _curve(x, y, x_last, box.y) + "m-3.5 -6l3.5 6l3.5 -6"
        arrows.append(f'<path d="{path}"/>')
        if outputs:
            arrows.append(
                f'<text x="{x_last + 6:.1f}" y="{box.y - 9:.1f}" '
                'text-anchor="start" stroke="none" fill="currentColor" '
                f'font-size="10">{"".join(outputs)}</text>'
            )
    return arrows


def _curve(x: float, y: float, x_end: float, y_end: float) -> str:
    if abs(x - x_end) < 0.1:
        return f"V{y_end:.1f}"
    middle = (y + y_end) / 2
    return f"C{x:.1f} {middle:.1f} {x_end:.1f} {middle:.1f} {x_end:.1f} {y_end:.1f}"


class Drawing:
    """A drawn graph; a notebook shows the picture, a terminal the text.

    svg:     the picture's SVG;  n_drawn: the number of nodes in it.
    marks:   node -> attributes of its box, for a page with a script.
    hidden:  nodes that are in the text, but not in the picture.
    Units:   `width` and `height` in pixels.
    """

    def __init__(
        self,
        graph: Graph,
        limit: int = LIMIT,
        marks: dict[Node, str] | None = None,
        hidden: Set[Node] = frozenset(),
    ) -> None:
        self.graph, self.n_drawn = graph, min(limit, len(graph.nodes))
        self.marks: dict = marks or {}
        boxes = boxes_of(graph, limit, hidden)
        self.width, self.height = layout(boxes)
        self.kinds = [kind for kind in KINDS if any(b.kind == kind for b in boxes)]
        self.title = repr(graph)[1:-1]
        self.note = (
            ""
            if self.n_drawn == len(graph.nodes)
            else f"The first {self.n_drawn} of {len(graph.nodes)} nodes are drawn."
        )
        self.svg = self._svg(boxes)

    def _svg(self, boxes: Sequence[Box]) -> str:
        steps = ", ".join(" + ".join(b.bold) for b in boxes if b.kind != "variable")
        return "\n".join(
            [
                svg_head(self.width, self.height, "group" if self.marks else "img"),
                f"<title>{escape(f'{self.title}. {self.note}'.strip())}</title>",
                f"<desc>In order: {escape(steps or 'nothing is computed')}.</desc>",
                '<g fill="none" stroke="currentColor" opacity=".6">',
                *(arrow for box in boxes for arrow in svg_arrows(box)),
                "</g>",
                '<g fill="currentColor">',
                *(svg_box(box, self.marks.get(box.node, "")) for box in boxes),
                "</g>",
                "</svg>",
            ]
        )

    def figure(self) -> str:
        """Return the picture and its legend as HTML; a narrow page shrinks or scrolls it."""
        swatch = "display:inline-block;width:.8em;height:.8em;margin-right:.4em"
        legend = " ".join(
            '<span style="display:inline-block;margin-right:1.2em">'
            f'<span style="{swatch};border:2px solid {KINDS[kind][0]};'
            f'background:{KINDS[kind][0]}29"></span>{KINDS[kind][1]}</span>'
            for kind in self.kinds
        ) + f"<div>{self.note}</div>" * bool(self.note)
        return f'{scrolling(self.svg, "graph")}\n<div style="font-size:.85em">{legend}</div>'

    def _repr_html_(self) -> str:
        names = self.graph.names()
        lines = [("name", "operator", "reads", "gives")]
        for node in self.graph.nodes[: self.n_drawn]:
            reads = ", ".join(names[n] + f"[{i}]" * (n.n_outputs > 1) for n, i in node.inputs)
            specs = " ".join(map(str, node.specs or (UNKNOWN,)))
            lines.append((names[node], what(node), reads, specs))
        return (
            f"<div>{self.figure()}\n<details><summary>Table of nodes</summary>\n"
            f"{scrolling(html_table(lines), 'table of nodes')}</details></div>"
        )

    def __repr__(self) -> str:
        return self.graph.show()

    def to_dot(self) -> str:
        """Return the whole graph in Graphviz's DOT language."""
        names = self.graph.names()
        lines = ["digraph {", "  node [shape=box];"]
        for node in self.graph.nodes:
            label = "\n".join([names[node], what(node), *map(str, node.specs or ())])
            ellipse = "" if node.op else ", shape=ellipse"
            name = _quoted(names[node])
            lines.append(f"  {name} [label={_quoted(label)}{ellipse}];")
            lines += [f"  {_quoted(names[n])} -> {name};" for n, _ in node.inputs]
        for k, (node, _) in enumerate(self.graph.heads):
            lines.append(f'  "output {k}" [shape=ellipse];')
            lines.append(f'  {_quoted(names[node])} -> "output {k}";')
        return "\n".join([*lines, "}"])

    def save(self, path: str | Path) -> None:
        """Write the picture to a `.svg` file, or the graph to a `.dot` file.

        Raises:  HybridError for another suffix.
        """
        path = Path(path)
        if path.suffix not in (".svg", ".dot"):
            raise HybridError(
                f"Drawing.save: the file is called '{path.name}', but a "
                "name that ends in .svg or .dot is needed"
            )
        paper = 'style="color:#222;background:#fff;'  # a file has no surrounding page
        text = self.svg.replace('style="', paper, 1) if path.suffix == ".svg" else self.to_dot()
        write_whole(path, text.encode())


def rows_of(memory: Memory, graph: Graph) -> list[tuple[Ref, tuple]]:
    """Return each value of a memory plan with its row of `steps`: [(reference, row)]."""
    refs = [(n, i) for n in graph.nodes if n.op and not n.op.view for i in range(n.n_outputs)]
    return list(zip([*refs, *memory.scratch.values()], memory.steps, strict=True))


def memory_map(graph: Graph, memory: Memory, marks: dict[Ref, str] | None = None) -> str:
    """Draw the arena as SVG: steps from left to right, bytes from top to bottom.

    A block is the live range of a value, from its definition to its last use; blocks that
    share bytes at different steps show memory reuse.

    marks:   reference -> attributes of its block, for a page with a script.
    """
    rows = [
        (memory.offsets[ref], row, (marks or {}).get(ref, ""))
        for ref, row in rows_of(memory, graph)
        if ref in memory.offsets
    ]
    n_steps = 1 + max((row[3] for row in memory.steps), default=0)
    across, down = min(max(480 / n_steps, 16), 160), 160 / max(memory.nbytes, 1)
    left, top, width = 70, 26, 80 + n_steps * across
    labels = [
        f'<text x="{left + across * (k + 0.5):.1f}" y="18">{k}</text>'
        for k in range(0, n_steps, -(-n_steps // 16))
    ]
    labels += [
        f'<text x="{left - 6}" y="{top + 8 + at * down:.1f}" text-anchor="end">{at:,}</text>'
        for at in sorted({0, memory.nbytes})
    ]
    blocks = []
    for at, (name, nbytes, first, last, _), mark in rows:
        x, y = left + first * across + 1, top + at * down
        wide, high = (last - first + 1) * across - 2, max(nbytes * down - 1, 1)
        tip = f"{name}: {nbytes:,} bytes at {at:,}, steps {first} to {last}"
        blocks.append(
            f"<g{mark}><title>{escape(tip)}</title>"
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" '
            f'rx="3" fill="#009E73" fill-opacity=".25" stroke="#009E73"/>'
        )
        label = short(name, max(int(wide / LETTER) - 1, 9))
        if high > LINE and wide > LETTER * len(label):
            blocks.append(
                f'<text x="{x + wide / 2:.1f}" y="{y + high / 2 + 4:.1f}">{escape(label)}</text>'
            )
        blocks.append("</g>")
    return "\n".join(
        [
            svg_head(width, top + 176, "group" if marks else "img"),
            "<title>Memory over time</title>",
            f"<desc>{len(rows)} values share {memory.nbytes:,} bytes; steps from left to "
            "right, bytes from top to bottom. The text below tells each place.</desc>",
            '<g fill="currentColor">',
            f'<text x="{left - 6}" y="18" text-anchor="end">step</text>',
            *labels,
            *blocks,
            "</g>",
            "</svg>",
        ]
    )


def svg_head(width: float, height: float, role: str = "img") -> str:
    """Return the opening tag of a picture; its role is `group` if its parts get focus."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="{role}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" font-size="11.5" text-anchor="middle" '
        'font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" '
        f'style="width:100%;height:auto;max-width:{width:.0f}px;'
        f'min-width:{width * 0.7:.0f}px">'
    )


def _quoted(text: str) -> str:
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'


def scrolling(content: str, label: str) -> str:
    """Wrap HTML in a frame that scrolls horizontally, also by keyboard."""
    return (
        f'<div style="overflow-x:auto" tabindex="0" role="group" '
        f'aria-label="{escape(label)}">{content}</div>'
    )


def plural(count: int, word: str) -> str:
    """`1 kernel`, `2 kernels`."""
    return f"{count} {word}{('es' if word.endswith(('x', 'ch')) else 's') * (count != 1)}"


def columns_of(rows: Sequence[Sequence[str]], align: str = ">") -> str:
    """Return rows of cells as lines of text; the first column is left-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            f"{cell:{align if i else '<'}{width}}"
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def html_table(lines: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as an HTML table; the first row and column are headings."""

    def cell(text: str, scope: str) -> str:
        tag = "th" if scope else "td"
        side = "right" if text.replace(",", "").isdigit() else "left"
        return (
            f'<{tag}{f" scope={scope}" * bool(scope)} style="text-align:{side}">'
            f"{escape(text)}</{tag}>"
        )

    def row(first: str, *rest: str, head: bool = False) -> str:
        cells = [cell(first, "col" if head else "row")]
        return "".join(cells + [cell(text, "col" * head) for text in rest])

    body = "\n".join(f"<tr>{row(*texts)}</tr>" for texts in lines[1:])
    return (
        f"<table><thead><tr>{row(*lines[0], head=True)}</tr></thead>\n<tbody>{body}</tbody></table>"
    )


def draw(graph: Graph | Symbol, limit: int = LIMIT) -> Drawing:
    """Draw a graph, or the graph of a symbol, as a `Drawing`.

    limit:   the largest number of nodes drawn; the picture notes if there are more.
    Raises:  HybridError if it is neither a graph nor a symbol.

    >>> from minihybrid.core import sym
    >>> draw(sym.relu(sym.var("x"), name="y"))
    x               = variable                 ?[?]
    y               = relu(x)                  ?[?]
    return y
    """
    if isinstance(graph, Symbol):
        graph = Graph.of(graph)
    if not isinstance(graph, Graph):
        raise HybridError(
            f"draw: found a value of type {type(graph).__name__}, but a "
            "Graph or a Symbol is needed, such as net(sym.var('data'))"
        )
    return Drawing(graph, limit)


# The name suffixes of parameters and states that `plot_network` hides.
PARAMETERS = ("weight", "bias", "gamma", "beta")
STATES = ("moving_mean", "moving_var", "running_mean", "running_var")


@signed
def plot_network(
    symbol: Symbol,
    title: str = "plot",
    save_format: str = "pdf",
    shape: dict[str, tuple] | None = None,
    dtype: dict[str, Any] | None = None,
    node_attrs: dict | None = None,
    hide_weights: bool = True,
) -> Drawing:
    """Draw a symbol as a `Drawing`, under MXNet's name and without Graphviz.

    shape, dtype:  input name -> shape, dtype; if given, boxes show those of their outputs.
    hide_weights:  omit parameters, recognized by name suffix.
    title, save_format, node_attrs:  for Graphviz; ignored. `Drawing.save` writes .svg and .dot.

    >>> from minihybrid.core import sym
    >>> net = sym.FullyConnected(sym.var("data"), num_hidden=2, name="fc")
    >>> plot_network(net, shape={"data": (1, 3)})
    data            = variable                 float32[1x3]
    fc_weight       = variable                 float32[2x3]
    fc_bias         = variable                 float32[2]
    fc              = FullyConnected(data, fc_weight, fc_bias; num_hidden=2) float32[1x2]
    return fc
    """
    if not isinstance(symbol, Symbol):
        raise AttrError(f"plot_network: found {described(symbol)}, but a Symbol is needed")
    graph = Graph.of(symbol) if shape is None else _with_shapes(symbol, shape, dtype or {})
    ends = tuple(f"_{end}" for end in PARAMETERS + STATES)
    hidden = {n for n in graph.nodes if hide_weights and not n.op and n.name.endswith(ends)}
    return Drawing(graph, hidden=hidden - {node for node, _ in graph.heads})


def _with_shapes(symbol: Symbol, shape: dict[str, tuple], dtype: dict[str, Any]) -> Graph:
    """Return the graph of a symbol, with inferred shapes and dtypes."""
    input_specs = {
        name: Spec(tuple(lengths), np.dtype(dtype.get(name, "float32")))
        for name, lengths in shape.items()
    }
    if others := input_specs.keys() - set(symbol.list_inputs()):
        raise AttrError(
            f"plot_network: there is no input {', '.join(sorted(others))}; "
            f"there are {', '.join(symbol.list_inputs())}"
        )
    inferred = infer(Graph.of(symbol), input_specs).items()
    variables = {n.name: specs[0] for n, specs in inferred if not n.op and n.values is None}
    unknown = [name for name, spec in variables.items() if spec.shape is None or -1 in spec.shape]
    if unknown:
        raise ShapeError(
            f"plot_network: the shapes of {', '.join(unknown)} do not follow from "
            f"{', '.join(shape) or 'nothing'}; give the whole shape of each input"
        )
    complete = {
        n: Spec(spec.shape, spec.dtype or np.dtype("float32")) for n, spec in variables.items()
    }
    graph, _ = trace(lambda *inputs: symbol(**dict(zip(complete, inputs, strict=True))), complete)
    return graph


__dir__ = own_names(globals())
