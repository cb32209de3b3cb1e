"""Chapter 14. Programs that `net.export` writes, in Python and in C.

Takes:   a traced signature of a net: its graph, its inputs' names, its parameters.
Gives:   the formats "numpy" and "c" of `FORMATS`.

What is left out: shapes that are not known; a file serves the signature of one call.
"""

import io

import numpy as np

from minihybrid.codegen.c.file import c_file, weights_file
from minihybrid.codegen.numpy.alone import alone
from minihybrid.core.files import write_whole
from minihybrid.core.formats import FORMATS
from minihybrid.core.op import HybridError, Spec
from minihybrid.core.plan import Plan


def write_numpy(entry, path, _):
    """`path.py` and `path.npz`: a program that needs only NumPy, and its weights."""
    parts = Parts(entry, "numpy")
    text = alone(parts.plan.made, parts.inputs, parts.outputs,
                 map(spec_of, parts.weights), parts.plan.memory.nbytes)
    file = io.BytesIO()
    np.savez(file, **{f"p{i}": array for i, array in enumerate(parts.weights)})
    write_whole(f"{path}.npz", file.getvalue())
    write_whole(f"{path}.py", text.encode())
    return f"{path}.py", f"{path}.npz"


def write_c(entry, path, _):
    """`path.c` and `path.weights`: a program that needs only the C library."""
    parts = Parts(entry, "cpu")
    text = c_file(parts.plan, parts.inputs, parts.outputs, parts.weights)
    write_whole(f"{path}.weights", weights_file(parts.weights))
    write_whole(f"{path}.c", text.encode())
    return f"{path}.c", f"{path}.weights"


class Parts:
    """A plan for prediction, and what it reads and writes.

    inputs, outputs:  their specs;  weights: parameters and constants as ndarrays.
    """

    def __init__(self, entry, target):
        self.plan = plan = Plan(entry.graph, entry.names, target=target)
        nodes = [n for node in plan.graph.nodes for n in
                 (node.attrs["graph"].nodes if "graph" in node.attrs else [node])]
        for node in nodes:
            if node.op and node.op.random:
                raise HybridError(f"export: {node.op.name} '{node.name}' draws random "
                                  "numbers, and files of code do not; export the net "
                                  "without it, or as format 'mxnet'")
        specs = {n.name: n.specs[0] for n in plan.graph.variables}
        self.inputs = [specs[name] for name in entry.names]
        self.outputs = [Spec(*spec) for spec in plan.out_specs]
        self.weights = [np.asarray(entry.params[name].data().data)
                        for name in plan.params]
        self.weights += [node.values[0] for node in plan.table.constants]


def spec_of(array):
    """The shape and dtype of an ndarray."""
    return Spec(array.shape, array.dtype)


FORMATS.update(numpy=write_numpy, c=write_c)
