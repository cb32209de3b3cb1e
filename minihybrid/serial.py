"""Chapter 13. Graphs as JSON, in MXNet's form.

Takes:   symbols, or files.
Gives:   `tojson`, `fromjson`, `sym.load`; the methods `Symbol.save`, `Symbol.tojson`.

A file is data: names are looked up among the operators, attributes are parsed as
literals, and nothing in a file is run.
Source:  MXNet 1.9's nnvm JSON.
"""

import json

import numpy as np

from minihybrid import sym
from minihybrid.attribute import DTYPES
from minihybrid.files import FileError, read_whole, write_whole
from minihybrid.graph import Graph, shown_attrs
from minihybrid.op import OPS, AttrError, Node, Spec
from minihybrid.sym import Symbol, unknown_lengths

VERSION = 10901  # the MXNet version whose form is written


def tojson(symbol):
    """A symbol's graph as JSON text in MXNet's form.

    >>> json.loads(tojson(sym.relu(sym.var("x"), name="y")))["arg_nodes"]
    [0]
    """
    graph = Graph.of(symbol)
    names = graph.names()
    number = {node: i for i, node in enumerate(graph.nodes)}
    nodes, rows = [], [0]
    for node in graph.nodes:
        if node.op is None and node.values is not None:
            raise FileError(f"tojson: '{node.name}' is a constant array, which has no "
                            "place in a graph file; make it a parameter")
        entry = {"op": node.op.name if node.op else "null", "name": names[node]}
        attrs = file_attrs(node)
        if attrs:
            entry["attrs"] = attrs
        entry["inputs"] = [[number[n], i, 0] for n, i in node.inputs]
        nodes.append(entry)
        rows.append(rows[-1] + node.n_outputs)
    return json.dumps({
        "nodes": nodes,
        "arg_nodes": [i for i, node in enumerate(graph.nodes) if node.op is None],
        "node_row_ptr": rows,
        "heads": [[number[n], i, 0] for n, i in graph.heads],
        "attrs": {"mxnet_version": ["int", VERSION]},
    }, indent=2)


def file_attrs(node):
    """A node's attributes as a file has them: text, only what differs from defaults."""
    if node.op is None:
        return dict(node.info or {})
    attrs = {k: v.name if isinstance(v, np.dtype) else str(v)
             for k, v in shown_attrs(node).items() if k != "stream"}
    if node.op.variadic:
        attrs["num_args"] = str(len(node.inputs))
    return attrs | (node.info or {})


def fromjson(text, source="the JSON text"):
    """The symbol that JSON text describes.

    Raises:  FileError naming the node and what is wrong with it.
    """
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, RecursionError, UnicodeDecodeError) as error:
        raise FileError(f"{source} is not JSON: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("nodes"), list):
        raise FileError(f"{source} has no list 'nodes'; needed: a symbol file")
    made = []
    for i, entry in enumerate(data["nodes"]):
        where = f"{source}, node {i}"
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise FileError(f"{where}: an object with a name is needed")
        where += f" ('{entry['name'][:60]}')"
        made.append(_node(entry, _refs(entry.get("inputs", []), made, where), where))
    heads = data.get("heads", [[len(made) - 1, 0, 0]])
    refs = _refs(heads, made, f"{source}, heads")
    if not refs:
        raise FileError(f"{source} has no heads: nothing is asked for")
    return Symbol(refs)


def _refs(entries, made, where):
    """[[node, output, version], ...] as references to nodes that came before."""
    if not isinstance(entries, list):
        raise FileError(f"{where}: a list of inputs is needed, found {entries!r:.60}")
    refs = []
    for entry in entries:
        good = isinstance(entry, list) and len(entry) in (2, 3) and all(
            type(v) is int for v in entry)
        if not good or not 0 <= entry[0] < len(made):
            raise FileError(f"{where}: input {entry!r:.60} is not a node before this "
                            "one")
        node, i = made[entry[0]], entry[1]
        if not 0 <= i < node.n_outputs:
            raise FileError(f"{where}: input {entry!r:.60} asks for output {i}, but "
                            f"there are {node.n_outputs}")
        refs.append((node, i))
    return refs


def _node(entry, inputs, where):
    attrs = entry.get("attrs", entry.get("attr", entry.get("param", {})))
    if not isinstance(attrs, dict) or not all(
            isinstance(v, str) for kv in attrs.items() for v in kv):
        raise FileError(f"{where}: attributes must be text, found {attrs!r:.80}")
    name, op = entry["name"], entry.get("op")
    if op == "null":
        if inputs:
            raise FileError(f"{where}: a variable has no inputs, found {len(inputs)}")
        return Node(None, name=name, info=attrs or None, specs=(_spec(attrs, where),))
    if op not in OPS:
        raise FileError(f"{where}: the operator {op!r:.60} is unknown here")
    op = OPS[op]
    given = {k: v for k, v in attrs.items() if k in op.attrs}
    info = {k: v for k, v in attrs.items() if k not in op.attrs and k != "num_args"}
    try:
        full = op.normalize(given)
    except AttrError as error:
        raise FileError(f"{where}: {error}") from None
    wanted = None if op.variadic else len(op.input_names(full))
    if wanted is not None and len(inputs) != wanted:
        raise FileError(f"{where}: {op.name} needs {wanted} inputs, found "
                        f"{len(inputs)}")
    return Node(op, tuple(inputs), full, name, info=info or None)


def _spec(info, where):
    """What a variable's attributes say of its shape and dtype."""
    dtype, shape = info.get("__dtype__"), info.get("__shape__")
    try:
        if dtype is not None and dtype.lstrip("-").isdigit():
            dtype = None if int(dtype) < 0 else DTYPES[int(dtype)]
        shape = None if shape is None else OPS["Reshape"].attrs["shape"][0](shape)
        return Spec(unknown_lengths(shape) if shape else None,
                    None if dtype is None else np.dtype(dtype))
    except (ValueError, TypeError, KeyError, SyntaxError):
        raise FileError(f"{where}: the shape or dtype is not readable: "
                        f"{info!r:.80}") from None


def save_symbol(symbol, fname, remove_amp_cast=True):
    """Write a symbol's graph to a JSON file."""
    write_whole(fname, tojson(symbol).encode())


def load_symbol(fname):
    """The symbol in a JSON file."""
    return fromjson(read_whole(fname), fname)


# Symbols come before files in the reading order; their methods come here.
sym.load, sym.fromjson, sym.load_json = load_symbol, fromjson, fromjson
Symbol.tojson, Symbol.save = tojson, save_symbol
Symbol.__reduce__ = lambda self: (fromjson, (tojson(self),))
