"""Chapter 22. Programs that `net.export` writes: Python, C, JavaScript, WebAssembly.

Takes:   a traced signature of a net: its graph, its inputs' names, its parameters.
Gives:   the formats "numpy", "c", "wasm" and "js" of `FORMATS`.

What is left out: shapes that are not known; but for "js", a file serves the signature of
one call.
"""

import copy
import io
import json

import numpy as np

from minihybrid.codegen.c.file import c_file, weights_file
from minihybrid.codegen.c.wasm import loader, program
from minihybrid.codegen.js.module import missing, module
from minihybrid.codegen.numpy.alone import alone
from minihybrid.core.files import write_whole
from minihybrid.core.formats import write_mxnet
from minihybrid.core.graph import Graph
from minihybrid.core.hooks import FORMATS, own_names
from minihybrid.core.op import HybridError, Spec
from minihybrid.core.passes.expand import expand
from minihybrid.core.plan import Plan
from minihybrid.core.serial import tojson
from minihybrid.core.sym import Symbol
from minihybrid.loops.foreach import written_down
from minihybrid.loops.turns import without_loops


def write_numpy(entry, path, _):
    """`path.py` and `path.npz`: a program that needs only NumPy, and its weights."""
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


def write_wasm(entry, path, _):
    """`path.mjs`, an ES module, and what it loads: `path.wasm` and `path.weights`."""
    parts = Parts(entry, "cpu")
    specs = parts.inputs, parts.outputs
    made = program(parts.plan, *specs, parts.weights)
    write_whole(f"{path}.weights", weights_file(parts.weights))
    write_whole(f"{path}.wasm", made)
    write_whole(f"{path}.mjs", loader(made, *specs, parts.weights).encode())
    return f"{path}.mjs", f"{path}.wasm", f"{path}.weights"


def write_js(entry, path, epoch):
    """`path.js`, an ES module, and MXNet's two files, which it reads and runs."""
    entry = copy.copy(entry)
    entry.graph = written_down(entry.graph)
    graph = Graph.of(Symbol(entry.graph.heads))
    entries = json.loads(tojson(Symbol(graph.heads)))["nodes"]
    names = set()
    for node, told in zip(graph.nodes, entries, strict=True):
        if node.op is None:
            continue
        names.add(told["op"])
        if lack := missing(told["op"], node.attrs, [s.dtype for s in node.specs]):
            raise HybridError(
                f"export: {node.op.name} '{node.name}' {lack}; export the net without it, or as "
                "format 'numpy'"
            )
    # Activation(act_type="relu") is the operator relu: what others are made of comes along.
    made_of = {n.op.name for n in expand(entry.graph).nodes if n.op and n.op.expr is not None}
    names |= {name for name in made_of if not missing(name)}
    if entry.numbers:
        raise HybridError(
            "export: the net takes numbers beside arrays, which a module of JavaScript does not; "
            "pass them as arrays"
        )
    free = [n.name for n in graph.nodes if n.op is None and n.name not in entry.params]
    text = module(names, [free.index(name) for name in entry.names], epoch)
    files = write_mxnet(entry, path, epoch)
    write_whole(f"{path}.js", text.encode())
    return (f"{path}.js", *files)


class Parts:
    """A plan for prediction, and what it reads and writes.

    inputs, outputs:  their specs;  weights: parameters and constants as ndarrays.
    """

    def __init__(self, entry, target):
        graph = expand(entry.graph)
        if target == "numpy":  # whose text has no loops
            graph = without_loops(graph)
        self.plan = plan = Plan(graph, entry.names, target=target, expanded=True)
        nodes = [
            n
            for node in plan.graph.nodes
            for n in (node.attrs["graph"].nodes if "graph" in node.attrs else [node])
        ]
        for node in nodes:
            if node.op and node.op.random:
                raise HybridError(
                    f"export: {node.op.name} '{node.name}' draws random numbers, and files of "
                    "code do not; export the net without it, or as format 'mxnet'"
                )
        specs = {n.name: n.specs[0] for n in plan.graph.variables}
        self.inputs = [specs[name] for name in entry.names]
        self.outputs = [Spec(*spec) for spec in plan.out_specs]
        self.weights = [np.asarray(entry.params[name].data().data) for name in plan.params]
        self.weights += [node.values[0] for node in plan.table.constants]


def spec_of(array):
    """The shape and dtype of an ndarray."""
    return Spec(array.shape, array.dtype)


FORMATS.update(numpy=write_numpy, c=write_c, wasm=write_wasm, js=write_js)


def __dir__():
    return own_names(globals())
