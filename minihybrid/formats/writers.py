"""Chapter 22. Programs in Python and C that `net.export` writes.

Uses:    a traced signature of a net: its graph, its inputs' names, its parameters.
Defines: the formats "numpy" and "c" of `FORMATS`; "wasm" is in its own module.

Limits: shapes are static; a file serves one signature.
"""

import io

import numpy as np

from minihybrid.codegen.numpy.alone import alone
from minihybrid.core.files import write_together
from minihybrid.core.hooks import FORMATS
from minihybrid.core.op import HybridError, Spec
from minihybrid.core.passes.expand import expand
from minihybrid.core.plan import Plan
from minihybrid.formats.c import c_file, weights_file
from minihybrid.passes.loops import graphs_of, is_loop
from minihybrid.passes.scan import without_loops


def write_numpy(entry, path, *_):
    """Write `path.py` and `path.npz`: a program that needs only NumPy, and its weights."""
    parts = Parts(entry, "numpy")
    text = alone(
        parts.plan.made,
        parts.inputs,
        parts.outputs,
        map(spec_of, parts.weights),
        parts.plan.memory.nbytes,
    )
    file = io.BytesIO()
    np.savez(file, **{f"p{i}": array for i, array in enumerate(parts.weights)})
    return write_together({f"{path}.py": text.encode(), f"{path}.npz": file.getvalue()})


def write_c(entry, path, *_):
    """Write `path.c` and `path.weights`: a program that needs only the C library."""
    parts = Parts(entry, "cpu")
    text = c_file(parts.plan, parts.inputs, parts.outputs, parts.weights)
    return write_together(
        {f"{path}.c": text.encode(), f"{path}.weights": weights_file(parts.weights)}
    )


class Parts:
    """An inference plan with its inputs, outputs and weights.

    inputs, outputs:  their specs;  weights: parameters and constants as ndarrays.
    """

    def __init__(self, entry, target):
        graph = expand(entry.graph)
        if target == "numpy":  # it has branches, but no loops
            graph = without_loops(graph)
        self.plan = plan = Plan(graph, entry.names, target=target, expanded=True)
        for node in every_node(plan.graph):
            if any(spec.dtype.kind == "V" for spec in node.specs):
                raise HybridError(
                    f"export: '{node.name}' is bfloat16, which neither C nor NumPy's files have; "
                    "cast the net to float32, or export it as format 'mxnet' or 'onnx'"
                )
            if node.op and node.op.random:
                raise HybridError(
                    f"export: {node.op.name} '{node.name}' draws random numbers, and files of "
                    "code do not; export the net without it, or as format 'mxnet'"
                )
        specs = {n.name: n.specs[0] for n in entry.graph.variables}  # including unused ones
        self.inputs = [specs[name] for name in entry.names]
        self.outputs = [Spec(*spec) for spec in plan.out_specs]
        self.weights = [np.asarray(entry.params[name].data().data) for name in plan.params]
        self.weights += [node.values[0] for node in plan.table.constants]


def every_node(graph):
    """Yield the nodes of a graph; in place of a node made of graphs, theirs."""
    for node in graph.nodes:
        graphs = graphs_of(node.op) if is_loop(node.op) else [node.attrs.get("graph")]
        if graphs == [None]:
            yield node
        else:
            for inner in graphs:
                yield from every_node(inner)


def spec_of(array):
    """Return the spec of an ndarray."""
    return Spec(array.shape, array.dtype)


FORMATS.update(numpy=write_numpy, c=write_c)
