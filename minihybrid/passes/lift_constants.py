"""numbers: scalars of operators become inputs of the graph.

Takes:   an expanded graph.
Gives:   `lift`, the graph that reads these numbers, and the numbers; `same`, equal for
         graphs that are the same program.

A plan then serves every number: `softmax(x / t)` is not compiled again for each t.
What is left out: numbers that are attributes of other kinds, such as the bounds of
clip; infinity and NaN, which stay in the text; numbers beside whole ones, where the
scalar's own rules hold.
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
    """(graph, name -> ndarray): operators on two arrays, and the second ones."""
    taken = {n.name for n in graph.variables}
    numbers: dict[str, np.ndarray] = {}

    def rule(node: Node, inputs: tuple, emit: Callable) -> list | None:
        if node.op is None or node.op.binary_form is None or not inputs:
            return None
        spec, number = inputs[0][0].specs[inputs[0][1]], node.attrs["scalar"]
        if spec.dtype.kind != "f" or not math.isfinite(number):
            return None
        name = f"number{len(numbers)}"
        while name in taken:
            name = "_" + name
        numbers[name] = array = np.empty((), spec.dtype)
        array[()] = scalar_like(array, number)
        variable = emit(Node(None, name=name, specs=(Spec((), spec.dtype),)))
        op, comes_first = node.op.binary_form
        pair = [inputs[0], (variable, 0)]
        return [(emit(apply(OPS[op], pair[::-1] if comes_first else pair, {}, node.name)), 0)]

    return rewrite(graph, rule), numbers


def same(graph: Graph) -> tuple:
    """A key of the program: operators, attributes, shapes, and what reads what."""
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
