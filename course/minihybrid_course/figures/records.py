"""Figures of programs and operator definitions: eager and symbolic values, users, files.

Uses:    a function, an operator, a net with its files.
Defines: `two_ways`, `readers`, `journey`.

Limits:  for functions that call others, `two_ways` shows only the outer one.
"""

import inspect
import json
import sys
from pathlib import Path

from minihybrid.core.block import SymbolBlock
from minihybrid.core.graph import Graph
from minihybrid.core.name import NameManager
from minihybrid.core.nd import load
from minihybrid.core.sym import Symbol, var
from minihybrid.view.viz import plural
from minihybrid_course.ink import LINE, WIDTH, Figure, Film, Panel, fitting, wrapped

READERS = {  # field of a definition -> (its user, its purpose)
    "eager": ("arrays", "compute with NumPy"),
    "grad": ("the tape", "the rule of the gradient"),
    "infer": ("symbols", "shapes and dtypes"),
    "expr": ("kernels", "one element of a loop"),
    "name": ("files", "what JSON calls it"),
}


def two_ways(function, *values):
    """Draw the values after each line of a function, on arrays and on symbols.

    values:  its arguments; the same function is also run on symbols.
    """
    names = list(inspect.signature(function).parameters)
    ran = [(text, "" if v is None else f"{v}") for text, v in _spied(function, values)]
    with NameManager():  # names count from zero
        traced = [value for _, value in _spied(function, map(var, names))]
    graph = Graph.of(traced[-1])
    panels, recorded = {}, []  # (node, the line that recorded it)
    for k, value in enumerate(traced):
        new = Graph.of(value).nodes if isinstance(value, Symbol) else ()
        recorded += [(n, k) for n in new if n.op and n not in dict(recorded)]
        panels[f"line {k + 1}"] = _two_tracks(names, ran[: k + 1], recorded, graph)
    panels["all uses"] = _uses(names, graph)
    n = plural(len(recorded), "operator")
    return Film(
        f"Run, the function has values; traced, it has {n} and every use", "the step", panels
    )


def _two_tracks(names, ran, recorded, graph):
    panel, shown = Panel(f"after {ran[-1][0]}"), graph.names()
    panel.text(0, panel.row(LINE) + 12, "on arrays: values, and no next line", anchor="start")
    for text, value in ran:
        y = panel.row(LINE + 8, 4)
        panel.box(0, y, WIDTH, LINE + 8, ink="python", fill=0.45 if text == ran[-1][0] else 0.1)
        panel.text(8, y + LINE, text, anchor="start")
        panel.text(WIDTH - 8, y + LINE, value, anchor="end", bold=True)
    if not ran[-1][0].startswith("return"):
        panel.box(0, panel.row(LINE + 8), WIDTH, LINE + 8, "next line: not known", dashed=True)
    panel.text(0, panel.row(LINE) + 12, "on symbols: nodes, and no values", anchor="start")
    panel.box(0, panel.row(LINE + 8, 4), WIDTH, LINE + 8, f"inputs: {', '.join(names)}", "given")
    for node, line in recorded:
        args = ", ".join(shown[n] for n, _ in node.inputs)
        new, y = line == len(ran) - 1, panel.row(LINE + 8, 4)
        panel.box(0, y, WIDTH, LINE + 8, ink="kernel", fill=0.45 if new else 0.1)
        text = fitting(f"{shown[node]} = {node.op.name}({args})", WIDTH - 16)
        panel.text(8, y + LINE, text, anchor="start")
    last = [shown[node] for node, line in recorded if line == len(ran) - 1]
    panel.tell(f"{ran[-1][0]}: {ran[-1][1]}; recorded: {', '.join(last) or 'nothing'}.")
    return panel


def _uses(names, graph):
    panel, shown, uses = Panel("traced: every line, and no values"), graph.names(), graph.uses()
    panel.box(0, panel.row(LINE + 8, 4), WIDTH, LINE + 8, f"inputs: {', '.join(names)}", "given")
    for node in [n for n in graph.nodes if n.op]:
        y, readers = panel.row(2 * LINE + 8, 4), [shown[n] for n in uses.get((node, 0), ())]
        args = ", ".join(shown[n] for n, _ in node.inputs)
        text = f"{shown[node]} = {node.op.name}({args})"
        last = f"read by {', '.join(dict.fromkeys(readers))}" if readers else "the result"
        panel.box(0, y, WIDTH, 2 * LINE + 8, ink="kernel")
        panel.text(8, y + LINE, fitting(text, WIDTH - 16), anchor="start")
        panel.text(WIDTH - 8, y + 2 * LINE, fitting(last, WIDTH - 16), anchor="end")
        panel.tell(f"{text}, {last}.")
    return panel


def _spied(function, values):
    """Return (source line, its value or None) for each executed line of a function."""
    lines, first = inspect.getsourcelines(function)
    seen, before = [], [None, {}]

    def note(frame, event, arg):
        if frame.f_code is not function.__code__ or event == "call":
            return note
        line, known = before
        if line is not None:
            new = [v for k, v in frame.f_locals.items() if k not in known or known[k] is not v]
            value = arg if event == "return" else new[-1] if new else None
            seen.append((lines[line - first].strip(), value))
        before[:] = frame.f_lineno, dict(frame.f_locals)
        return note

    old = sys.gettrace()
    sys.settrace(note)
    try:
        function(*values)
    finally:
        sys.settrace(old)
    return seen


def readers(op):
    """Draw the fields of an operator's definition, and the user of each."""
    panel, left = Panel(f"the definition of {op.name}"), 96
    for field, (who, why) in READERS.items():
        value = getattr(op, field)
        lines = [why, *wrapped(value, WIDTH - left - 16)] if isinstance(value, str) else [why]
        lines = lines if value is not None else [f"{why}: empty"]
        high = LINE * (1 + len(lines)) + 8
        y = panel.row(high, 8)
        panel.box(0, y, 56, high, field, "kernel", bold=True)
        panel.arrow(60, y + high / 2, left - 4, y + high / 2)
        panel.box(left, y, WIDTH - left, high, ink="plain" if value is None else "array")
        for i, line in enumerate([who, *lines]):
            panel.text(left + 8, y + LINE * (i + 1), line, anchor="start", bold=i == 0)
        panel.tell(f"{who}: {field}, {' '.join(lines)}.")
    n = sum(getattr(op, field) is not None for field in READERS)
    return Figure(f"One definition of {op.name} serves {n} parts of the engine", panel)


def journey(net, symbol, params):
    """Draw export and import: from a class to two files, to a block without the class.

    symbol, params:  the names of the files that `net.export` wrote.
    """
    graph = json.loads(Path(symbol).read_text(encoding="utf-8"))
    arrays = load(params)
    names = {name.partition(":")[2] for name in arrays}
    inputs = [n["name"] for n in graph["nodes"] if n["op"] == "null" and n["name"] not in names]
    block = SymbolBlock.imports(symbol, inputs, params)
    panel = Panel("class, two files, block")
    _station(panel, "python", f"class {type(net).__name__}", "its Python code", _numbers(net))
    y = panel.row(34, 2)
    panel.text(WIDTH / 2, y + 20, "net.export")
    panel.arrow(WIDTH / 4, y, WIDTH / 4, y + 30)
    panel.arrow(WIDTH * 3 / 4, y, WIDTH * 3 / 4, y + 30)
    half, y = WIDTH / 2 - 4, panel.row(70, 2)
    for x, name, holds in (
        (0, symbol, plural(len(graph["nodes"]), "node")),
        (WIDTH / 2 + 4, params, plural(len(arrays), "array")),
    ):
        size = f"{Path(name).stat().st_size:,} bytes"
        panel.box(x, y, half, 70, [Path(name).name, holds, size], "file")
        panel.tell(f"{Path(name).name}: {holds}, {size}.")
    y = panel.row(34, 2)
    panel.text(WIDTH / 2, y + 20, "imports")
    panel.arrow(WIDTH / 4, y, WIDTH / 4, y + 30)
    panel.arrow(WIDTH * 3 / 4, y, WIDTH * 3 / 4, y + 30)
    _station(
        panel, "kernel", type(block).__name__, "the graph in place of the code", _numbers(block)
    )
    size = sum(Path(name).stat().st_size for name in (symbol, params))
    return Figure(f"Two files of {size:,} bytes replace the class", panel)


def _station(panel, ink, title, *lines):
    y = panel.row(70, 2)
    panel.box(0, y, WIDTH, 70, ink=ink)
    panel.text(WIDTH / 2, y + 22, title, bold=True)
    for i, line in enumerate(lines):
        panel.text(WIDTH / 2, y + 40 + LINE * i, line)
    panel.tell(f"{title}: {', '.join(lines)}.")


def _numbers(block):
    params = block.collect_params().values()
    numbers = sum(p.data().size for p in params)
    return f"{plural(len(params), 'parameter')}, {plural(numbers, 'number')}"
