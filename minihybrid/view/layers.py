"""Summaries of nets: each layer's output shapes and number of parameters.

Defines: `summary`, which `Block.summary` calls.

Not supported: hybridized nets, whose children aren't called individually.
"""

from typing import Any

from minihybrid.core.arguments import arrays_in
from minihybrid.core.block import Block
from minihybrid.core.op import AttrError, HybridError
from minihybrid.core.tracing import is_tracing


def summary(net: Block, inputs: tuple) -> None:
    """Print each block's output shape and number of parameters."""
    if not arrays_in(inputs):
        raise AttrError(
            "summary: an array is needed, which tells the shapes; for "
            "example net.summary(nd.zeros((1, 3)))"
        )
    rows, handles = [], []
    counted: set[int] = set()

    def row(block: Any, _: tuple, out: Any) -> None:
        if is_tracing():  # during shape inference of parameters
            return
        params = [p for p in block._reg_params.values() if id(p) not in counted]
        counted.update(map(id, params))
        shapes = ", ".join(str(o.shape) for o in arrays_in([out]))
        rows.append(
            (f"{type(block).__name__} ({block.name})", shapes, sum(p.data().size for p in params))
        )

    for block in net._walk():
        if getattr(block, "_active", False):
            raise HybridError(
                "summary: the net is hybridized, so its children are not "
                "called one by one; call hybridize(active=False) first"
            )
        handles.append(block.register_forward_hook(row))
    try:
        net(*inputs)
    finally:
        for handle in handles:
            handle.detach()
    total = sum(n for *_, n in rows)
    line = "-" * 72
    print(
        line,
        f"{'Layer (name)':<41} {'Output shape':<18} {'Parameters':>10}",
        line,
        *(f"{a:<41} {b:<18} {n:>10}" for a, b, n in rows),
        line,
        f"{'Total parameters':<60} {total:>10}",
        line,
        sep="\n",
    )
