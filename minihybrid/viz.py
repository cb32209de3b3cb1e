"""Pictures: a graph drawn as SVG, with nothing installed and nothing downloaded.

Takes:   a graph.
Gives:   `draw`, and `Drawing`, a picture in a notebook and a text in a terminal.

The layout has four steps, each a function: every box gets a row (`rows`); the boxes of
a row get an order with few crossings (`order`); boxes that continue each other become
one straight column (`columns`); the columns get their place (`place`).

What is left out: an exact solution of any of the four steps.
"""

import bisect
from html import escape
from pathlib import Path

from minihybrid.graph import Graph, shown_attrs
from minihybrid.op import UNKNOWN, HybridError
from minihybrid.passes.fuse import is_core, is_map
from minihybrid.sym import Symbol

LIMIT = 200  # nodes; a picture of more cannot be read

# kind -> (colour of Okabe and Ito, its meaning). The boxes say the same in words.
KINDS = {
    "variable": ("#0072B2", "input or parameter"),
    "elementwise": ("#56B4E9", "elementwise"),
    "core": ("#E69F00", "core: product, sum, ..."),
    "other": ("#999999", "other"),
    "fused": ("#009E73", "fused: one kernel"),
    "output": ("#CC79A7", "output"),
}
LINE, PAD, ACROSS, DOWN = 15, 10, 16, 34  # pixels: a line, inside a box, between boxes
LETTER = 7.2  # pixels: the widest letter of a monospace font at this size


def kind_of(node):
    """The kind of a node, one of `KINDS`."""
    if node.op is None:
        return "variable"
    if "graph" in node.attrs:
        return "fused"
    return "elementwise" if is_map(node) else "core" if is_core(node) else "other"


def what(node):
    """A node in words: its operator with attributes, or that it is an input."""
    if node.op is None:
        return "variable" if node.values is None else "constant"
    if "graph" in node.attrs:
        return repr(node.attrs["graph"])
    attrs = ", ".join(f"{k}={v}" for k, v in shown_attrs(node).items())
    return node.op.name + f"({attrs})" * bool(attrs)


def short(text, length=26):
    """The text without its middle if it is long; the end of a name tells most."""
    return text if len(text) <= length else f"{text[:7]}…{text[8 - length:]}"


class Box:
    """A rectangle to be placed; without a kind it is where a long edge passes a row."""

    def __init__(self, kind=None, bold=(), plain=(), tip=""):
        self.kind, self.bold, self.tip = kind, [short(t) for t in bold], tip
        self.lines = [*self.bold, *(short(t) for t in plain)]
        self.inputs = {}               # source Box -> its output numbers, as "[0]"
        self.ways = {}                 # source Box -> the points on the way from it
        self.ups, self.downs = [], []  # neighbours in the rows above and below
        self.row = self.index = 0
        self.x = self.y = 0.0          # the middle of the upper side
        self.width = max((2 * PAD + LETTER * len(t) for t in self.lines), default=PAD)
        self.height = LINE * len(self.lines) + PAD if kind else 0

    def reads(self, source, output, n_outputs):
        """Note an edge from another box."""
        self.inputs.setdefault(source, []).extend([f"[{output}]"] * (n_outputs > 1))


def boxes_of(graph, limit):
    """One box for each of the first `limit` nodes, and one for each output."""
    names, boxes = graph.names(), {}
    for node in graph.nodes[:limit]:
        specs = dict.fromkeys(str(s) for s in node.specs or () if s != UNKNOWN)
        bold, plain = [node.op.name if node.op else names[node]], []
        if node.values is not None:
            plain = ["constant"]
        elif "graph" in node.attrs:
            ops = [n.op.name for n in node.attrs["graph"].nodes if n.op]
            bold = ops if len(ops) <= 7 else [*ops[:6], f"and {len(ops) - 6} more"]
        elif node.op:
            plain = [f"{k}={v}" for k, v in list(shown_attrs(node).items())[:2]
                     if k != "num_hidden"]  # the shape says it
        box = boxes[node] = Box(kind_of(node), bold, [*plain, *specs],
                                f"{names[node]}: {what(node)}")
        for source, i in node.inputs:
            box.reads(boxes[source], i, source.n_outputs)
    n, outputs = len(graph.outputs), []
    labels = [f"output {k}" if n > 1 else "output" for k in range(n)]
    labels += [f"new {name}" for name in graph.states]
    for (node, i), label in zip(graph.heads, labels, strict=True):
        if node in boxes:
            outputs.append(Box("output", [label], (), f"{label}: {names[node]}"))
            outputs[-1].reads(boxes[node], i, node.n_outputs)
    return [*boxes.values(), *outputs]


# -- the layout ------------------------------------------------------------------------
def rows(boxes):
    """Give each box a row below its inputs; edges that pass a row get a point there.

    A box stands as near to its readers as its own inputs allow. Returns a list of rows.
    """
    readers = {box: [] for box in boxes}
    for box in boxes:
        box.row = max((source.row + 1 for source in box.inputs), default=0)
        for source in box.inputs:
            readers[source].append(box)
    for box in reversed(boxes):
        computed = [source for source in box.inputs if source.inputs]
        if readers[box] and len(readers[box]) >= len(computed):
            box.row = min(r.row for r in readers[box]) - 1
    table = [[] for _ in range(max((b.row for b in boxes), default=-1) + 1)]
    points = {}  # (source, row) -> the point that all long edges of the source share
    for box in boxes:
        table[box.row].append(box)
        for source in box.inputs:
            way = box.ways[source] = []
            for row in range(source.row + 1, box.row):
                if (source, row) not in points:
                    points[source, row] = Box()
                    table[row].append(points[source, row])
                    _join(way[-1] if way else source, points[source, row])
                way.append(points[source, row])
            _join(way[-1] if way else source, box)
    return table


def _join(above, below):
    above.downs.append(below)
    below.ups.append(above)


def order(table, sweeps=8):
    """Sort each row by the mean place of its neighbours, down and up; keep the best."""
    place_of, stack = {}, [b for row in table for b in reversed(row) if not b.downs]
    while stack:  # first, depth first from the outputs: a box's inputs stay together
        box = stack.pop()
        if box not in place_of:
            place_of[box] = len(place_of)
            stack.extend(reversed(box.ups))
    for row in table:
        _sort(row, place_of.get)
    best, fewest = [list(row) for row in table], crossings(table)
    for sweep in range(sweeps):
        if fewest == 0:
            break
        down = sweep % 2 == 0
        for row in table if down else reversed(table):
            _sort(row, lambda box, side="ups" if down else "downs": _mean(
                [b.index for b in getattr(box, side)], box.index))
        if (count := crossings(table)) < fewest:
            best, fewest = [list(row) for row in table], count
    for row, best_row in zip(table, best, strict=True):
        row[:] = best_row
        _sort(row, row.index)


def _sort(row, key):
    row.sort(key={box: key(box) for box in row}.get)
    for i, box in enumerate(row):
        box.index = i


def _mean(values, default):
    return sum(values) / len(values) if values else default


def crossings(table):
    """How many pairs of edges cross."""
    count = 0
    for row in table:
        ends = []  # where the edges seen so far arrive, sorted
        for box in row:
            arrivals = sorted(below.index for below in box.downs)
            count += sum(len(ends) - bisect.bisect_right(ends, a) for a in arrivals)
            for a in arrivals:
                bisect.insort(ends, a)
    return count


def columns(table):
    """box -> the list of boxes, one a row, that stand on one vertical line with it.

    Long edges and long runs of operators come first, parameters last. An elementwise
    box of equal inputs stands between them instead.
    """
    column = {box: [box] for row in table for box in row}
    for upper in table[:-1]:
        weights = {(up, down): (_weight(up, down), len(column[up]))
                   for up in upper for down in up.downs}
        taken = []  # places of what is tied already between these two rows
        for up, down in sorted(weights, key=lambda e: (*(-w for w in weights[e]),
                                                       e[0].index)):
            rivals = [weights[other, down] for other in down.ups]
            even = down.kind == "elementwise" and rivals.count(max(rivals)) > 1
            crosses = any((up.index - u) * (down.index - d) <= 0 for u, d in taken)
            if not even and not crosses:
                taken.append((up.index, down.index))
                column[up].append(down)
                column[down] = column[up]
    return column


def _weight(up, down):
    if not (up.kind and down.kind):
        return 3 if up.kind == down.kind else 1
    return 2 if up.inputs else 0


def place(table, column, rounds=12):
    """Set `x` of every box: columns stay straight and go near what they are joined to.

    From as far left as possible, each column in turn moves to the median of its
    neighbours, as far as the columns beside it let it; in the end, of those above.
    """
    lefts, rights = {}, {}  # number of a column -> {number of one beside it: distance}
    members = list({id(c): c for c in column.values()}.values())
    of = {box: i for i, boxes in enumerate(members) for box in boxes}
    for row in table:
        for a, b in zip(row, row[1:], strict=False):
            apart = (a.width + b.width) / 2 + ACROSS
            for side, i, j in ((rights, of[a], of[b]), (lefts, of[b], of[a])):
                beside = side.setdefault(i, {})
                beside[j] = max(beside.get(j, 0), apart)
    sequence = _left_to_right(len(members), lefts, rights)
    x = [0.0] * len(members)
    for i in sequence:
        x[i] = max((x[j] + apart for j, apart in lefts.get(i, {}).items()), default=0.0)
    for turn in range(rounds):
        for i in sequence if turn % 2 else reversed(sequence):
            ups, downs = (sorted(x[of[n]] for box in members[i]
                                 for n in getattr(box, side) if of[n] != i)
                          for side in ("ups", "downs"))
            near = ups if ups and turn >= rounds - 2 else sorted(ups + downs)
            if near:
                low = [x[j] + apart for j, apart in lefts.get(i, {}).items()]
                high = [x[j] - apart for j, apart in rights.get(i, {}).items()]
                middle = (near[(len(near) - 1) // 2] + near[len(near) // 2]) / 2
                x[i] = min([max([middle, *low]), *high])
    for box, i in of.items():
        box.x = x[i]


def _left_to_right(n, lefts, rights):
    """The numbers below `n`, each after all that stand left of it."""
    waiting = {i: len(beside) for i, beside in lefts.items()}
    sequence = [i for i in range(n) if i not in waiting]
    for i in sequence:  # it grows while we walk
        for j in rights.get(i, {}):
            waiting[j] -= 1
            if waiting[j] == 0:
                sequence.append(j)
    return sequence


def layout(boxes):
    """Place the boxes; returns the picture's (width, height) in pixels."""
    table = rows(boxes)
    order(table)
    place(table, columns(table))
    y = PAD
    for row in table:
        height = max(box.height for box in row)
        for box in row:
            if not box.kind:  # an edge passes the row straight down
                box.height = height
            box.y = y + (height - box.height) / 2
        y += height + DOWN
    everything = [box for row in table for box in row]
    left = min((b.x - b.width / 2 for b in everything), default=0) - PAD
    for box in everything:
        box.x -= left
    right = max((b.x + b.width / 2 for b in everything), default=0)
    return right + PAD, max(y - DOWN, 0) + PAD


# -- ink -------------------------------------------------------------------------------
def svg_box(box):
    """A rectangle with its lines of text; its ends are round for what comes or goes."""
    colour = KINDS[box.kind][0]
    round_ends = box.kind in ("variable", "output")
    texts = []
    for i, line in enumerate(box.lines):
        style = 'font-weight="600"' if i < len(box.bold) else 'opacity=".8"'
        y = box.y + PAD / 2 + LINE * i + 11.5
        texts.append(f'<text x="{box.x:.1f}" y="{y:.1f}" {style}>{escape(line)}</text>')
    return (f'<g data-kind="{box.kind}"><title>{escape(box.tip)}</title>'
            f'<rect x="{box.x - box.width / 2:.1f}" y="{box.y:.1f}" '
            f'width="{box.width:.1f}" height="{box.height:.1f}" '
            f'rx="{box.height / 2 if round_ends else 4:.1f}" fill="{colour}" '
            f'fill-opacity=".16" stroke="{colour}" '
            f'stroke-width="{2.5 if box.kind == "fused" else 1.2}"/>'
            f"{''.join(texts)}</g>")


def svg_arrows(box):
    """The arrows into a box, from the lower side of each source."""
    x_end = {}  # neighbour above -> where its arrow arrives; those beside spread out
    for side in (-1, 1):
        beside = sorted((u for u in set(box.ups) if (u.x - box.x) * side > 0.5),
                        key=lambda u: abs(u.x - box.x))
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
            arrows.append(f'<text x="{x_last + 6:.1f}" y="{box.y - 9:.1f}" '
                          'text-anchor="start" stroke="none" fill="currentColor" '
                          f'font-size="10">{"".join(outputs)}</text>')
    return arrows


def _curve(x, y, x_end, y_end):
    if abs(x - x_end) < 0.1:
        return f"V{y_end:.1f}"
    middle = (y + y_end) / 2
    return f"C{x:.1f} {middle:.1f} {x_end:.1f} {middle:.1f} {x_end:.1f} {y_end:.1f}"


class Drawing:
    """A graph with a picture; a notebook shows the picture, a terminal the text.

    svg:     the picture as text;  n_drawn: how many nodes are in it.
    Units:   `width` and `height` in pixels.
    """

    def __init__(self, graph, limit=LIMIT):
        self.graph, self.n_drawn = graph, min(limit, len(graph.nodes))
        boxes = boxes_of(graph, limit)
        self.width, self.height = layout(boxes)
        self.kinds = [kind for kind in KINDS if any(b.kind == kind for b in boxes)]
        self.title = repr(graph)[1:-1]
        self.note = "" if self.n_drawn == len(graph.nodes) else \
            f"The first {self.n_drawn} of {len(graph.nodes)} nodes are drawn."
        self.svg = self._svg(boxes)

    def _svg(self, boxes):
        steps = ", ".join(" + ".join(b.bold) for b in boxes if b.kind != "variable")
        return "\n".join([
            svg_head(self.width, self.height),
            f"<title>{escape(f'{self.title}. {self.note}'.strip())}</title>",
            f"<desc>In order: {escape(steps or 'nothing is computed')}.</desc>",
            '<g fill="none" stroke="currentColor" opacity=".6">',
            *(arrow for box in boxes for arrow in svg_arrows(box)), "</g>",
            '<g fill="currentColor">', *map(svg_box, boxes), "</g>", "</svg>"])

    def figure(self):
        """The picture and its legend as HTML; a narrow page shrinks or scrolls it."""
        swatch = "display:inline-block;width:.8em;height:.8em;margin-right:.4em"
        legend = " ".join(
            '<span style="display:inline-block;margin-right:1.2em">'
            f'<span style="{swatch};border:2px solid {KINDS[kind][0]};'
            f'background:{KINDS[kind][0]}29"></span>{KINDS[kind][1]}</span>'
            for kind in self.kinds) + f"<div>{self.note}</div>" * bool(self.note)
        return (f'{scrolling(self.svg, "graph")}\n<div style="font-size:.85em">'
                f"{legend}</div>")

    def _repr_html_(self):
        names = self.graph.names()
        lines = [("name", "operator", "reads", "gives")]
        for node in self.graph.nodes[:self.n_drawn]:
            lines.append((names[node], what(node), ", ".join(
                names[n] + f"[{i}]" * (n.n_outputs > 1) for n, i in node.inputs),
                " ".join(map(str, node.specs or (UNKNOWN,)))))
        return (f"<div>{self.figure()}\n<details><summary>Table of nodes</summary>\n"
                f'{scrolling(html_table(lines), "table of nodes")}</details></div>')

    def __repr__(self):
        return self.graph.show()

    def to_dot(self):
        """The whole graph in the language of Graphviz, for tools that read it."""
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

    def save(self, path):
        """Write the picture to a `.svg` file, or the graph to a `.dot` file.

        Raises:  HybridError for another ending.
        """
        path = Path(path)
        if path.suffix not in (".svg", ".dot"):
            raise HybridError(f"Drawing.save: the file is called '{path.name}', but a "
                              "name that ends in .svg or .dot is needed")
        paper = 'style="color:#222;background:#fff;'  # a file has no page around it
        text = self.svg.replace('style="', paper, 1) if path.suffix == ".svg" \
            else self.to_dot()
        path.write_text(text, encoding="utf-8")


def memory_map(graph, memory):
    """The arena as SVG: steps from left to right, bytes from top to bottom.

    A block is one value, from the step that computes it to its last reader; blocks that
    share bytes at different steps show memory that is used again.
    """
    refs = [(n, i) for n in graph.nodes if n.op and not n.op.view
            for i in range(n.n_outputs)]
    rows = [(memory.offsets[ref], row)
            for ref, row in zip(refs, memory.steps, strict=True)
            if ref in memory.offsets]
    n_steps = 1 + max((row[3] for row in memory.steps), default=0)
    across, down = min(max(480 / n_steps, 16), 160), 160 / max(memory.nbytes, 1)
    left, top, width = 70, 26, 80 + n_steps * across
    marks = [f'<text x="{left + across * (k + 0.5):.1f}" y="18">{k}</text>'
             for k in range(0, n_steps, -(-n_steps // 16))]
    marks += [f'<text x="{left - 6}" y="{top + 8 + at * down:.1f}" text-anchor="end">'
              f"{at:,}</text>" for at in sorted({0, memory.nbytes})]
    blocks = []
    for at, (name, nbytes, first, last, _) in rows:
        x, y = left + first * across + 1, top + at * down
        wide, high = (last - first + 1) * across - 2, max(nbytes * down - 1, 1)
        tip = f"{name}: {nbytes:,} bytes at {at:,}, steps {first} to {last}"
        blocks.append(
            f"<g><title>{escape(tip)}</title>"
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" '
            f'rx="3" fill="#009E73" fill-opacity=".25" stroke="#009E73"/>')
        label = short(name, max(int(wide / LETTER) - 1, 9))
        if high > LINE and wide > LETTER * len(label):
            blocks.append(f'<text x="{x + wide / 2:.1f}" y="{y + high / 2 + 4:.1f}">'
                          f"{escape(label)}</text>")
        blocks.append("</g>")
    return "\n".join([
        svg_head(width, top + 176), "<title>Memory over time</title>",
        f"<desc>{len(rows)} values share {memory.nbytes:,} bytes; steps from left to "
        "right, bytes from top to bottom. The text below tells each place.</desc>",
        '<g fill="currentColor">', f'<text x="{left - 6}" y="18" text-anchor="end">step'
        "</text>", *marks, *blocks, "</g>", "</svg>"])


def svg_head(width, height):
    """The opening tag of a picture."""
    return ('<svg xmlns="http://www.w3.org/2000/svg" role="img" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}" font-size="11.5" text-anchor="middle" '
            'font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" '
            f'style="width:100%;height:auto;max-width:{width:.0f}px;'
            f'min-width:{width * 0.7:.0f}px">')


def _quoted(text):
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'


def scrolling(content, label):
    """HTML content in a frame that scrolls sideways, with the keyboard, too."""
    return (f'<div style="overflow-x:auto" tabindex="0" role="group" '
            f'aria-label="{escape(label)}">{content}</div>')


def html_table(lines):
    """Lines of text cells as an HTML table; the first line and column are headings."""
    def cell(text, scope):
        tag = "th" if scope else "td"
        side = "right" if text.replace(",", "").isdigit() else "left"
        return (f'<{tag}{f" scope={scope}" * bool(scope)} style="text-align:{side}">'
                f"{escape(text)}</{tag}>")

    def row(first, *rest, head=False):
        cells = [cell(first, "col" if head else "row")]
        return "".join(cells + [cell(text, "col" * head) for text in rest])

    body = "\n".join(f"<tr>{row(*texts)}</tr>" for texts in lines[1:])
    return (f"<table><thead><tr>{row(*lines[0], head=True)}</tr></thead>\n"
            f"<tbody>{body}</tbody></table>")


def draw(graph, limit=LIMIT):
    """Draw a graph, or the graph behind a symbol, as a `Drawing`.

    limit:   how many nodes are drawn; the picture says if there are more.
    Raises:  HybridError if it is neither a graph nor a symbol.

    >>> from minihybrid import sym
    >>> draw(sym.relu(sym.var("x"), name="y"))
    x               = variable                 ?[?]
    y               = relu(x)                  ?[?]
    return y
    """
    if isinstance(graph, Symbol):
        graph = Graph.of(graph)
    if not isinstance(graph, Graph):
        raise HybridError(f"draw: found a value of type {type(graph).__name__}, but a "
                          "Graph or a Symbol is needed, such as net(sym.var('data'))")
    return Drawing(graph, limit)
