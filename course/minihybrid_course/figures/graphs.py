"""Figures of graphs: optimization passes, tapes, shape inference, groupings.

Uses:    stages, tapes, symbols.
Defines: `vanishing`, `tape`, `shape_flow`, `grouped`.

Not supported: graphs of more than `MAX_DRAWN` nodes; use `viz.draw`.
"""

import itertools

from minihybrid.core.graph import Graph, infer, topological
from minihybrid.core.op import UNKNOWN, HybridError, Spec
from minihybrid.core.plan import nbytes_moved
from minihybrid.view.drawing import Box, layout, what
from minihybrid.view.hybrid_view import meaning
from minihybrid.view.links import Links
from minihybrid.view.viz import plural, svg_arrows
from minihybrid_course.ink import LETTER, WIDTH, Figure, Film, Panel
from minihybrid_course.tape import shown

MAX_DRAWN = 14  # nodes


def _draw(panel, nodes, lines, look, upwards=()):
    """Draw nodes on a panel, each as a box of text below its inputs.

    lines:   node -> lines of text;  look: node -> keywords of `Panel.box`.
    upwards: nodes with an incoming arrow from below.
    """
    if len(nodes) > MAX_DRAWN:
        raise HybridError(
            f"a figure draws at most {MAX_DRAWN} nodes, but there are {len(nodes)}; "
            "use draw(graph) of minihybrid.view.viz"
        )
    boxes = {}
    for node in nodes:
        box = boxes[node] = Box("other", lines(node))
        box.width = max(LETTER * len(text) for text in box.lines) + 8
        for n, _ in node.inputs:
            box.reads(boxes[n], 0, 1)
    width, height = layout([*boxes.values()])
    panel.width = max(panel.width, width)
    first, y = len(panel.parts), panel.row(height)
    for node, box in boxes.items():
        panel.parts += [
            f'<g fill="none" stroke="currentColor" stroke-opacity=".7">{arrow}</g>'
            for arrow in svg_arrows(box)
        ]
        left = box.x - box.width / 2
        panel.box(left, box.y, box.width, box.height, box.lines, **look(node))
        if node in upwards:
            bottom = box.y + box.height
            panel.arrow(box.x, bottom + 15, box.x, bottom + 3, "python", 3)
    parts = "\n".join(panel.parts[first:])
    panel.parts[first:] = [
        f'<g transform="translate({(panel.width - width) / 2:.1f} {y:.1f})">{parts}</g>'
    ]


# -- passes ----------------------------------------------------------------------------
def vanishing(stages):
    """Draw a panel for each pass that changes the graph, and the memory traffic after it.

    stages:  [(name, graph)], each the result of a pass; the last is drawn without marks.
    """
    links, panels = Links(stages), {}
    for (_, before), (name, after) in itertools.pairwise(stages):
        if before.show() != after.show():
            panels[name] = _pass(links, name, before, after)
    (name, graph) = stages[-1]
    panel = panels["the result"] = Panel(f"after {name}: {_sizes(graph)}")
    _draw(panel, graph.nodes, _words, _look)
    panel.tell(f"{_sizes(graph)}.")
    most, least = (nbytes_moved(graph) for _, graph in (stages[0], stages[-1]))
    caption = (
        f"{len(panels) - 1} passes save {most - least:,} of {most:,} bytes of "
        f"memory traffic, and {plural(stages[0][1].n_ops, 'operator')} become {graph.n_ops}"
    )
    return Film(caption, "the pass", panels, _ladder(stages))


def _ladder(stages):
    """Draw the bytes moved after each pass as bars."""
    panel = Panel("bytes moved after each pass")
    names, counts = zip(*((name, nbytes_moved(graph)) for name, graph in stages), strict=True)
    left = LETTER * (max(map(len, names)) + 1)
    full = WIDTH - left - LETTER * (len(f"{max(counts):,}") + 1)
    for before, name, nbytes in zip((counts[0], *counts), names, counts, strict=False):
        y, long = panel.row(20), full * nbytes / max(counts)
        panel.text(0, y + 14, name, anchor="start")
        if before > nbytes:  # a dashed outline of the bytes that this pass saved
            panel.box(left + long, y, full * before / max(counts) - long, 20, "", "gone", True)
        panel.box(left, y, long, 20, "", "array", fill=0.75)
        panel.text(left + full * before / max(counts) + 4, y + 14, f"{nbytes:,}", anchor="start")
        panel.tell(f"{name}: {nbytes:,} bytes.")
    return panel


def _pass(links, name, before, after):
    change = links.change(before, after)
    names, remaining = before.names(), {(name, what(node)) for node, name in after.names().items()}
    fused = set().union(
        *(links.key(after, node) for node in change.merged if "graph" in node.attrs)
    )
    panel = Panel(f"{name}: {meaning(name)}")
    marked, looks = [], {}
    for node, line in links.lines(before):
        looks[node] = _look(node)
        if (names[node], what(node)) not in remaining:
            marked.append(_words(node)[0])
            together = fused and set(line.key) <= fused
            looks[node] = {"ink": "kernel" if together else "gone", "dashed": not together}
    _draw(panel, before.nodes, _words, looks.get)
    verb = "become one loop" if fused else "are removed or replaced"
    panel.note(f"{'green' if fused else 'dashed'}: {verb}; before: {_sizes(before)}")
    panel.tell(f"Of {_sizes(before)}, {', '.join(marked)} {verb}; then {_sizes(after)}.")
    return panel


def _sizes(graph):
    return f"{plural(graph.n_ops, 'operator')}, {nbytes_moved(graph):,} bytes"


def _words(node):
    """Return a short label; a long name is cut at the start."""
    if node.op is None:
        return ["_".join(node.name.split("_")[-2:]) if node.values is None else "constant"]
    inner = node.attrs.get("graph")
    return [_op(n) for n in inner.nodes if n.op] if inner else [_op(node)]


def _op(node):
    scalar = node.attrs.get("scalar")
    return node.op.name.removeprefix("elemwise").strip("_") + (
        "" if scalar is None else f" {scalar:g}"
    )


def _look(node):
    return {"ink": "given" if node.op is None else "kernel" if "graph" in node.attrs else "plain"}


# -- the tape --------------------------------------------------------------------------
def tape(y, symbol, **names):
    """Draw a tape next to a symbol's graph: the same nodes, with values and with shapes.

    names:   your arrays by display name.
    """
    name_of = {array.node: name for name, array in names.items()}
    left, right = Panel("the tape: each node has its value"), Panel("the graph: only shapes")
    graph = Graph.of(symbol)
    specs = infer(graph, {})
    for panel, nodes, value in (
        (left, topological([(y.node, y.index)]), lambda n: shown(n.values[0], 24)),
        (right, graph.nodes, lambda n: str(specs[n][0])),
    ):

        def lines(node, value=value):
            return [
                node.op.name if node.op else name_of.get(node, node.name or "variable"),
                value(node),
            ]

        _draw(panel, nodes, lines, _look)
        panel.tell(f"{', then '.join(' '.join(lines(n)) for n in nodes)}.")
    n = plural(sum(node.op is not None for node in graph.nodes), "operator")
    return Figure(
        f"Tape and graph have the same {n}: one with values, one with shapes", left, right
    )


# -- shapes ----------------------------------------------------------------------------
def shape_flow(symbol, **known):
    """Draw shape inference: forward, and backward from operators to variables.

    known:   variable -> its given shape.
    """
    graph = Graph.of(symbol)
    known_specs = {name: Spec(tuple(shape), None) for name, shape in known.items()}
    specs, ways = infer(graph, known_specs), {}
    forwards = {}  # node -> its specs, inferred from its inputs alone
    for node in graph.nodes:
        if node.op is None:
            forwards[node] = [known_specs.get(node.name, UNKNOWN)]
        else:
            forwards[node] = node.op.specs_of([forwards[n][i] for n, i in node.inputs], node.attrs)[
                1
            ]
        shape, at_once = specs[node][0].shape, forwards[node][0].shape
        ways[node] = (
            "given"
            if node.op is None and node.name in known
            else "unknown"
            if shape is None or -1 in shape
            else "down"
            if at_once == shape
            else "back"
        )
    inks = {"given": "given", "down": "kernel", "back": "python", "unknown": "gone"}
    panel = Panel("where each shape comes from")

    def lines(node):
        shape = specs[node][0].shape
        text = "?" if shape is None else "x".join("?" if n < 0 else str(n) for n in shape)
        sign = {"given": "given", "down": "from above", "back": "from below", "unknown": "open"}
        return [_words(node)[0], text, sign[ways[node]]]

    upwards = {node for node, way in ways.items() if way == "back"}
    _draw(
        panel,
        graph.nodes,
        lines,
        lambda n: {"ink": inks[ways[n]], "dashed": ways[n] == "back"},
        upwards,
    )
    for node in graph.nodes:
        panel.tell(f"{': '.join(lines(node)[:2])}, {lines(node)[2]}.")
    panel.note("from below: inferred by the operator that reads it")
    counts = [sum(way == one for way in ways.values()) for one in ("down", "back")]
    caption = "Shapes inferred from inputs: {}; from the operators that read them: {}"
    return Figure(caption.format(*counts), panel)


# -- groups ----------------------------------------------------------------------------
def grouped(graph, **ways):
    """Draw groupings of a graph's nodes, and the dependences between groups.

    ways:    title -> (compute node -> the name of its group).
    """
    panels = [_grouped(graph, title.replace("_", " "), groups) for title, groups in ways.items()]
    cyclic = [
        panel.title
        for panel in panels
        if any("each other" in sentence for sentence in panel.sentences)
    ]
    note = f"; cyclic, so it can't run: {', '.join(cyclic)}" * bool(cyclic)
    return Figure(f"Each group becomes one kernel{note}", *panels)


def _grouped(graph, title, groups):
    names = list(dict.fromkeys(groups[node] for node in graph.nodes if node in groups))
    inks = dict(zip(names, itertools.cycle(("kernel", "python", "file", "array"))))
    waits = {
        (names.index(groups[node]) + 1, names.index(groups[source]) + 1)
        for node in groups
        for source, _ in node.inputs
        if source in groups and groups[source] != groups[node]
    }
    panel = Panel(f"{title}: {plural(len(names), 'group')}")

    def lines(node):
        number = f"group {names.index(groups[node]) + 1}" if node in groups else ""
        return [*_words(node), *[number] * bool(number)]

    def look(node):
        return {"ink": inks[groups[node]]} if node in groups else _look(node)

    _draw(panel, graph.nodes, lines, look)
    for one, other in sorted(waits):
        if (other, one) not in waits:
            sentence = f"group {one} needs group {other}"
        elif one < other:
            sentence = f"groups {one} and {other} need each other"
        else:
            continue  # already drawn
        panel.note(sentence)
        panel.tell(f"{sentence}.")
    panel.tell(f"{plural(len(names), 'group')}.")
    return panel
