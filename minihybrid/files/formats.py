"""Chapter 22. Programs that `net.export` writes: Python, C, JavaScript, WebAssembly.

Takes:   a traced signature of a net: its graph, its inputs' names, its parameters.
Gives:   the formats "numpy", "c", "wasm" and "js" of `FORMATS`.

What is left out: shapes that are not known; but for "js", a file serves the signature of
one call.
"""

import copy
import io
import json
import os

import numpy as np

from minihybrid.codegen.c.file import c_file, weights_file
from minihybrid.codegen.c.wasm import loader, program
from minihybrid.codegen.js.module import missing, module
from minihybrid.codegen.numpy.alone import alone
from minihybrid.core.files import FileError, write_together
from minihybrid.core.formats import mxnet_files
from minihybrid.core.graph import Graph
from minihybrid.core.hooks import FORMATS, own_names
from minihybrid.core.op import HybridError, Spec
from minihybrid.core.passes.expand import expand
from minihybrid.core.plan import Plan
from minihybrid.core.serial import tojson
from minihybrid.core.sym import Symbol
from minihybrid.loops.foreach import written_down
from minihybrid.loops.turns import without_loops


def write_numpy(entry, path, *_):
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
    return write({f"{path}.py": text.encode(), f"{path}.npz": file.getvalue()})


def write_c(entry, path, *_):
    """`path.c` and `path.weights`: a program that needs only the C library."""
    parts = Parts(entry, "cpu")
    text = c_file(parts.plan, parts.inputs, parts.outputs, parts.weights)
    return write({f"{path}.c": text.encode(), f"{path}.weights": weights_file(parts.weights)})


def write_wasm(entry, path, *_):
    """`path.mjs`, an ES module, and what it loads: `path.wasm` and `path.weights`."""
    parts = Parts(entry, "cpu")
    specs = parts.inputs, parts.outputs
    made = program(parts.plan, *specs, parts.weights)
    text = loader(made, *specs, parts.weights).encode()
    weights = weights_file(parts.weights)
    return write({f"{path}.mjs": text, f"{path}.wasm": made, f"{path}.weights": weights})


def write_js(entry, path, epoch, *_):
    """`path.js`, an ES module, and MXNet's two files, which it reads and runs."""
    entry = copy.copy(entry)
    entry.graph = written_down(entry.graph)
    graph = Graph.of(Symbol(entry.graph.heads))
    entries = json.loads(tojson(Symbol(graph.heads)))["nodes"]
    # programs of NumPy draw no random numbers either
    other = "mxnet" if any(n.op and n.op.random for n in expand(entry.graph).nodes) else "numpy"
    names = set()
    for node, told in zip(graph.nodes, entries, strict=True):
        if node.op is None:
            continue
        names.add(told["op"])
        if lack := missing(told["op"], node.attrs, [s.dtype for s in node.specs]):
            raise HybridError(
                f"export: {node.op.name} '{node.name}' {lack}; export the net without it, or as "
                f"format '{other}'"
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
    return write_together({f"{path}.js": text.encode()} | mxnet_files(entry, path, epoch))


EMPTY_ZIP = 22  # bytes of an .npz of no arrays
MARKS = {".npz": (b"PK\3\4", b"p0.npy"), ".weights": (b"minihyb1",)}  # what their heads contain


def write(files):
    """Write a program and what it reads, name -> bytes; returns the names.

    Raises:  FileError for a file that `export` did not write, such as a user's own `.npz`.
    """
    for name in files:
        marks = MARKS.get(os.path.splitext(name)[1])
        if marks and os.path.isfile(name) and os.path.getsize(name) > EMPTY_ZIP:
            with open(name, "rb") as file:
                head = file.read(64)
            if not all(mark in head for mark in marks):
                raise FileError(
                    f"cannot write '{name}': its arrays are not those of an exported net; choose "
                    "another name, or move that file away"
                )
    return write_together(files)


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
