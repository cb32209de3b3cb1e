"""Summary tables of symbols: each layer's output shape, parameters and inputs.

Defines: `print_summary`, available as `mx.viz.print_summary`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minihybrid.core.graph import topological
from minihybrid.core.op import AttrError, Node, ShapeError, described, legible
from minihybrid.core.sym import Symbol

TRAINED = ("weight", "bias", "gamma", "beta")  # inputs that are parameters


def print_summary(
    symbol: Symbol,
    shape: dict[str, tuple] | None = None,
    line_length: int = 120,
    positions: Sequence[float] = (0.44, 0.64, 0.74, 1.0),
) -> None:
    """Print a table of layers: type, output shape, number of parameters, inputs.

    shape:   input name -> shape; without it, shapes and parameter counts are unknown.
    positions: where the columns end, as fractions of the line or in characters.
    Raises:  ShapeError if the shapes can't be inferred from those given.
    Source:  MXNet's mxnet.visualization.print_summary; here all kinds of layers count,
             a shared parameter counts once, and unknown counts are blank, not wrong.

    >>> from minihybrid.core import sym
    >>> net = sym.FullyConnected(sym.var("data"), num_hidden=3, name="fc")
    >>> print_summary(net, {"data": (1, 4)}, 60, (24, 38, 46, 60))
    ____________________________________________________________
    Layer (type)            Output Shape  Param # Previous Layer
    ============================================================
    data(null)              4             0
    ____________________________________________________________
    fc(FullyConnected)      3             15      data
    ============================================================
    Total params: 15
    ____________________________________________________________
    """
    if not isinstance(symbol, Symbol):
        raise AttrError(f"print_summary: found {described(symbol)}, but a Symbol is needed")
    ends = [int(line_length * p if positions[-1] <= 1 else p) for p in positions]
    rows = _rows(symbol, shape)
    print("_" * line_length)
    print(_line(("Layer (type)", "Output Shape", "Param #", "Previous Layer"), ends))
    print("=" * line_length)
    for i, (name, size, count, readers) in enumerate(rows):
        print(_line((name, size, count, readers[0] if readers else ""), ends))
        for reader in readers[1:]:
            print(_line(("", "", "", reader), ends))
        print(("=" if i == len(rows) - 1 else "_") * line_length)
    print(f"Total params: {sum(count or 0 for _, _, count, _ in rows)}")
    print("_" * line_length)


def _rows(
    symbol: Symbol, shape: dict[str, tuple] | None
) -> list[tuple[str, str, int | None, list[str]]]:
    """Return [(name and type, output shape, number of parameters, input layers)]."""
    nodes = topological(symbol.refs)
    shapes: dict[Node, Any] = {node: None for node in nodes}
    if shape is not None:
        internals = symbol.get_internals()
        _, out_shapes, _ = internals.infer_shape(**shape)
        if out_shapes is None:
            raise ShapeError(
                "print_summary: the shapes of all layers do not follow from "
                f"{', '.join(shape) or 'nothing'}; give the whole shape of each input"
            )
        for (node, _), out in reversed(list(zip(internals.refs, out_shapes, strict=True))):
            shapes[node] = out
    rows, counted = [], set()
    for i, node in enumerate(nodes):
        if node.op is None and i > 0:
            continue
        count = 0
        for role, (source, _) in zip(_roles(node), node.inputs, strict=True):
            if shape is not None and role in TRAINED and source not in counted:
                counted.add(source)
                count += int(np.prod(shapes[source]))
        layers = [n.name for n, _ in node.inputs if n.op is not None or n is nodes[0]]
        size = "x".join(map(str, (shapes[node] or ())[1:]))
        kind = "null" if node.op is None else node.op.name
        rows.append((f"{node.name}({kind})", size, None if shape is None else count, layers))
    return rows


def _roles(node: Node) -> tuple[str, ...]:
    return () if node.op is None else node.op.input_names(node.attrs, len(node.inputs))


def _line(fields: Iterable[object], ends: Iterable[int]) -> str:
    """Truncate or pad each field to end at its position."""
    line = ""
    for field, end in zip(fields, ends, strict=True):
        line = (line + ("" if field is None else legible(str(field))))[:end].ljust(end)
    return line
