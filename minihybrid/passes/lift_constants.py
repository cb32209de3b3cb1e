"""Lift scalar constants of operators to graph inputs.

Defines: `lift`, which returns the new graph and the scalars; `same`, a structural key that
         is equal for equal programs.

One plan then serves every value: `softmax(x / t)` isn't recompiled for each t.
Not lifted: other attributes, such as the bounds of clip; infinity and NaN; scalars beside
integer arrays, where separate conversion rules apply.
"""

import math
from collections.abc import Callable

import numpy as np

from minihybrid.core.graph import Graph, apply
from minihybrid.core.op import Node, Spec
from minihybrid.core.passes.rewrite import rewrite
from minihybrid.ops import OPS
from minihybrid.ops.elementwise import scalar_like


def lift(graph: Graph) -> tuple[Graph, dict[str, np.ndarray]]:
    """Return (graph with binary operators, name -> ndarray of the lifted scalars)."""
    names = {n.name for n in graph.variables}
    numbers: dict[str, np.ndarray] = {}

    def rule(node: Node, inputs: tuple, emit: Callable) -> list | None:
        if node.op is None or node.op.binary_form is None or not inputs:
            return None
        spec, number = inputs[0][0].specs[inputs[0][1]], node.attrs["scalar"]
        if spec.dtype.kind != "f" or not math.isfinite(number):
            return None
        name = f"number{len(numbers)}"
        while name in names:
            name = "_" + name
        numbers[name] = array = np.empty((), spec.dtype)
        array[()] = scalar_like(array, number)
        variable = emit(Node(None, name=name, specs=(Spec((), spec.dtype),)))
        op, comes_first = node.op.binary_form
        pair = [inputs[0], (variable, 0)]
        return [(emit(apply(OPS[op], pair[::-1] if comes_first else pair, {}, node.name)), 0)]

    return rewrite(graph, rule), numbers


def same(graph: Graph) -> tuple:
    """Return a structural key: operators, attributes, shapes and edges."""
    number, rows = {node: k for k, node in enumerate(graph.nodes)}, []
    for node in graph.nodes:
        if node.op is not None:
            what = node.op, repr(node.attrs)
        elif node.values is not None:
            what = "constant", node.values[0].tobytes()
        else:
            what = "variable", node.name
        rows.append((what, tuple((number[n], i) for n, i in node.inputs), tuple(node.specs)))
    heads = tuple((number[n], i) for n, i in graph.heads)
    return tuple(rows), heads, graph.states, graph.n_streams
