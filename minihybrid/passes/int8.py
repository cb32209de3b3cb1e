"""Replace dense layers and convolutions by their quantized forms.

Defines: `layers_of`, the layers that can be quantized; `int8_layers`, the new graph;
         `quantized_weight`, the integers and the scale of each output channel.

Not supported: computed weights; dtypes other than float32.
"""

from collections.abc import Callable

import numpy as np

from minihybrid.core.graph import Graph, apply
from minihybrid.core.op import Node, Spec
from minihybrid.core.passes.rewrite import rewrite
from minihybrid.ops.quantize import INT8_FORMS, SUFFIX

STEPS = 127  # integers on each side of 0


def layers_of(graph: Graph, exclude: tuple = ()) -> list[Node]:
    """Return the nodes with a quantized form: float32, with a variable as weight.

    exclude: names of nodes, or of their blocks, to leave in float32.
    """
    return [
        node
        for node in graph.nodes
        if node.op is not None
        and node.op.name in INT8_FORMS
        and node.inputs[1][0].op is None
        and node.specs[0].dtype == np.float32
        and not any(node.name == name or node.name.startswith(f"{name}_") for name in exclude)
    ]


def quantized_weight(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (int8, scale) of weights (N, ...); each output channel's largest becomes 127.

    >>> quantized_weight(np.float32([[1, -2], [0, 0]]))[0]
    array([[  64, -127],
           [   0,    0]], dtype=int8)
    """
    largest = np.abs(weight).reshape(len(weight), -1).max(1)
    scale = np.where(largest > 0, largest / STEPS, 1).astype(np.float32)
    column = scale.reshape(-1, *(1 for _ in weight.shape[1:]))
    return np.rint(weight / column).astype(np.int8), scale


def int8_layers(graph: Graph, scales: dict, weights: dict) -> tuple[Graph, dict]:
    """Return (graph with quantized layers, its new parameters).

    scales:  node of a layer -> the scale of its data.
    weights: name -> ndarray.
    """
    quantized: dict = {}  # (value, scale) -> the node that quantizes it
    params: dict = {}
    variables: dict = {}  # name of a new parameter -> its node

    def parameter(name: str, array: np.ndarray, emit: Callable) -> tuple:
        params[name] = array
        if name not in variables:
            spec = Spec(array.shape, array.dtype)
            variables[name] = emit(Node(None, name=name, specs=(spec,)))
        return variables[name], 0

    def rule(node: Node, inputs: tuple, emit: Callable) -> list | None:
        if node not in scales:
            return None
        data, (weight, _), *bias = inputs
        key = data, scales[node]
        if key not in quantized:
            name = f"{data[0].name}{SUFFIX}"
            quantized[key] = emit(apply(INT8_FORMS["data"], [data], {"scale": scales[node]}, name))
        numbers, scale = quantized_weight(weights[weight.name])
        new = [
            (quantized[key], 0),
            parameter(f"{weight.name}{SUFFIX}", numbers, emit),
            parameter(f"{weight.name}_scale", scale, emit),
            *bias,
        ]
        op = INT8_FORMS[node.op.name]
        return [(emit(apply(op, new, {"data_scale": scales[node], **node.attrs}, node.name)), 0)]

    return rewrite(graph, rule), params
