"""Chapter 22. MXNet's JSON format of graphs.

Defines: `tojson`; `refs_of_json`, from which `sym.fromjson` makes a symbol.

A file is data: operators are looked up by name, attributes are parsed as literals, and
nothing in a file is executed. An unknown operator gets a placeholder definition that
can't run, so that the rest of the graph can be inspected, used and saved.
Source:  MXNet 1.9's nnvm JSON; `formats/legacy.py` upgrades older files.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from minihybrid.core.attribute import DTYPES, TYPE_FLAGS
from minihybrid.core.files import FileError, parsed_json
from minihybrid.core.graph import Graph, shown_attrs, topological
from minihybrid.core.op import UNKNOWN, AttrError, HybridError, Node, Op, Spec
from minihybrid.core.switches import is_np_shape, told_shape
from minihybrid.ops.registry import OPS

# Attributes that MXNet requires, though they have defaults here.
NEEDED = {
    "_npi_flip": ("axis",),
    "_npi_normal": ("loc", "scale"),
    "_npi_uniform": ("low", "high"),
    "_split_v2": ("indices",),
}
OLDEST, NOW = 800, 10901  # 0.8.0, which did not save its version, and 1.9.1
MAX_NODES, MAX_INPUTS, MAX_OUTPUTS = 1 << 16, 1 << 18, 1 << 16  # of a whole graph


def tojson(symbol):
    """Encode a symbol's graph as JSON text.

    >>> from minihybrid.core import sym
    >>> import json
    >>> json.loads(tojson(sym.relu(sym.var("x"), name="y")))["arg_nodes"]
    [0]
    """
    import json  # imported on demand

    graph = Graph.of(symbol)
    names = graph.names()
    number = {node: i for i, node in enumerate(graph.nodes)}
    nodes, rows = [], [0]
    for node in graph.nodes:
        if node.op is None and node.values is not None:
            raise FileError(
                f"tojson: '{node.name}' is a constant array, which has no "
                "place in a graph file; make it a parameter"
            )
        entry = {
            "op": node.op and called(node.op)[0] or "null",
            "name": node.name or names[node] * (node.op is not None),
        }
        attrs = file_attrs(node)
        if attrs:
            entry["attrs"] = attrs
        entry["inputs"] = [[number[n], i, 0] for n, i in node.inputs]
        nodes.append(entry | getattr(node.op, "more", {}))
        rows.append(rows[-1] + node.n_outputs)
    return json.dumps(
        {
            "nodes": nodes,
            "arg_nodes": [i for i, node in enumerate(graph.nodes) if node.op is None],
            "node_row_ptr": rows,
            "heads": [[number[n], i, 0] for n, i in graph.heads],
            "attrs": {"mxnet_version": ["int", NOW]},
        },
        indent=2,
    )


def file_attrs(node):
    """Return a node's attributes as text, without those that MXNet infers."""
    if node.op is None:
        return dict(node.info or {})
    explicit = shown_attrs(node)
    attrs = {
        k: v.name if isinstance(v, np.dtype) else str(v)
        for k, v in node.attrs.items()
        if k in explicit and k != "stream" or k in NEEDED.get(node.op.name, ())
    }
    if node.op.variadic:
        key = "num_arrays" if "num_arrays" in node.op.attrs else "num_args"
        attrs[key] = str(len(node.inputs))
    return attrs | called(node.op)[1] | (node.info or {})


def called(op):
    """Return MXNet's (name, attributes) for an operator."""
    return op.mxnet_name or (op.name, {})


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Missing(Op):
    """A placeholder definition of an unknown operator in a file."""

    more: dict  # other fields of its node in the file


def missing_of(nodes):
    """Return the nodes whose operators are unknown."""
    return [node for node in nodes if isinstance(node.op, Missing)]


def missing(kind, name, n_inputs, n_outputs, more):
    """Return a definition for one node that can be inspected and saved, but not run."""

    def refuse(*_, **__):
        from minihybrid.formats.foreign import remedy_of

        raise HybridError(
            f"{kind} '{name}': there is no operator '{kind}' here, so the graph can be shown and "
            f"saved, but not run; {remedy_of(kind)}"
        )

    def infer(specs):
        """Raise once the inputs' specs are known, because then the graph is about to run."""
        return refuse() if all(s.known for s in specs) else (specs, [UNKNOWN] * n_outputs)

    return Missing(
        kind,
        infer,
        "An operator that is missing here.",
        inputs=tuple(f"data{i}" for i in range(n_inputs)),
        expand=refuse,
        n_outputs=n_outputs,
        more=more,
    )


def refs_of_json(text, source="the JSON text"):
    """Decode a graph from JSON text; return its outputs as (node, index) pairs.

    Raises:  FileError naming the invalid node and the reason.
    """
    data = parsed_json(text, source)
    if not isinstance(data, dict) or not isinstance(data.get("nodes"), list):
        raise FileError(f"{source} has no list 'nodes'; needed: a symbol file")
    try:
        version = version_of(data)
    except AttrError as error:
        raise FileError(f"{source}: {error}") from None
    nodes = _nodes(data, version, source)
    if absent := missing_of(nodes):
        from minihybrid.formats.foreign import warn_of_missing

        warn_of_missing(absent, source)
    heads = data.get("heads", [[len(nodes) - 1, 0, 0]])
    if isinstance(heads, list) and not 0 < len(heads) <= MAX_OUTPUTS:
        raise FileError(
            f"{source} has {len(heads)} heads, the outputs that are asked "
            f"for; needed: 1 to {MAX_OUTPUTS}"
        )
    refs = _refs(heads, nodes, f"{source}, heads")
    _check_names(refs, source)
    return refs


def version_of(data):
    """Return the MXNet version in a file's attributes; 10901 is 1.9.1.

    Raises:  AttrError if it doesn't have MXNet's form.
    """
    attrs = data.get("attrs", {})
    version = attrs.get("mxnet_version", ["int", OLDEST]) if isinstance(attrs, dict) else attrs
    if not (isinstance(version, list) and len(version) == 2 and type(version[1]) is int):
        raise AttrError(f'the version {version!r:.60} is not readable; needed: ["int", {NOW}]')
    return version[1]


def _nodes(data, version, source):
    """Decode the nodes of a file, in order."""
    lists = [e.get("inputs") for e in data["nodes"] if isinstance(e, dict)]
    n_inputs = sum(len(refs) for refs in lists if isinstance(refs, list))
    if len(data["nodes"]) > MAX_NODES or n_inputs > MAX_INPUTS:
        raise FileError(
            f"{source} has {len(data['nodes'])} nodes with {n_inputs} "
            f"inputs; at most {MAX_NODES} with {MAX_INPUTS} are allowed"
        )
    nodes, n_outputs = [], 0
    counts = _told_outputs(data, lists)
    for i, entry in enumerate(data["nodes"]):
        where = f"{source}, node {i}"
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise FileError(f"{where}: an object with a name is needed")
        where += f" ({entry['name'][:60]!r})"
        inputs = _refs(entry.get("inputs", []), nodes, where)
        nodes.append(_node(entry, inputs, version, counts.get(i, 1), where))
        n_outputs += nodes[-1].n_outputs
        if n_outputs > MAX_OUTPUTS:
            raise FileError(
                f"{where}: here are {n_outputs} outputs; a graph may have {MAX_OUTPUTS} in all"
            )
    return nodes


def _told_outputs(data, lists):
    """Return node index -> number of outputs, from the file's table and from references."""
    rows = data.get("node_row_ptr")
    rows = rows if isinstance(rows, list) and all(type(n) is int for n in rows) else []
    counts = {i: max(b - a, 1) for i, (a, b) in enumerate(pairwise(rows))}
    for refs in (*lists, data.get("heads")):
        for ref in refs if isinstance(refs, list) else ():
            if isinstance(ref, list) and len(ref) > 1 and all(type(n) is int for n in ref):
                counts[ref[0]] = max(counts.get(ref[0], 1), ref[1] + 1)
    return counts


def _refs(entries, nodes, where):
    """Decode [[node, output, version], ...] as references to earlier nodes."""
    if not isinstance(entries, list):
        raise FileError(f"{where}: a list of inputs is needed, found {entries!r:.60}")
    refs = []
    for entry in entries:
        good = (
            isinstance(entry, list) and len(entry) in (2, 3) and all(type(v) is int for v in entry)
        )
        if not good or not 0 <= entry[0] < len(nodes):
            raise FileError(f"{where}: input {entry!r:.60} is not a node before this one")
        node, i = nodes[entry[0]], entry[1]
        if not 0 <= i < node.n_outputs:
            raise FileError(
                f"{where}: input {entry!r:.60} asks for output {i}, but there are {node.n_outputs}"
            )
        refs.append((node, i))
    return refs


def _attrs(entry, where):
    """Return a node's attributes: the operator's (`param` in old files) and the user's."""
    attrs = {}
    for key in ("param", "attr", "attrs"):
        fields = entry.get(key, {})
        if not isinstance(fields, dict) or not all(isinstance(v, str) for v in fields.values()):
            raise FileError(f"{where}: attributes must be text, found {fields!r:.80}")
        attrs |= fields
    return attrs


def _pinned(info, version, names=(), inputs=()):
    """Return a node's user attributes in the current format."""
    if version == NOW:
        return info
    from minihybrid.formats.legacy import pinned

    return pinned(info, names, inputs)


def _node(entry, inputs, version, n_outputs, where):
    attrs, name, kind = _attrs(entry, where), entry["name"], entry.get("op")
    if kind == "null":
        if inputs:
            raise FileError(f"{where}: a variable has no inputs, found {len(inputs)}")
        info = _pinned(attrs, version)
        return Node(None, name=name, info=info or None, specs=(_spec(attrs, where),))
    if not isinstance(kind, str):
        raise FileError(f"{where}: an operator's name is needed, found {kind!r:.60}")
    op = OPS.get(kind)
    if op is None:
        from minihybrid.formats.legacy import operator_of

        op = operator_of(kind, OPS, entry)
    if op is None:
        more = {k: entry[k] for k in ("control_deps", "subgraphs") if k in entry}
        op = missing(kind, name, len(inputs), n_outputs, more)
        info = _pinned(attrs, version)
        return Node(op, tuple(inputs), {}, name, info=info or None)
    try:
        if version < NOW or attrs.keys() - op.attrs.keys() - {"num_args", "num_arrays"}:
            from minihybrid.formats.legacy import upgraded

            attrs = upgraded(attrs, op, version)
        full = op.read(
            {k: v for k, v in attrs.items() if k in op.attrs and k != "num_arrays"}
        )  # counted from the inputs
    except AttrError as error:
        raise FileError(f"{where}: {error}") from None
    info = {k: v for k, v in attrs.items() if k not in op.attrs and k != "num_args"}
    names = op.input_names(full, len(inputs))
    if version < NOW:
        from minihybrid.formats.legacy import completed

        info = _pinned(info, version, names, inputs)
        inputs = completed(inputs, op, name, names, info, version)
    if len(inputs) != len(names) or op.variadic and not inputs:
        raise FileError(
            f"{where}: {op.name} needs {len(names) or 'some'} inputs, found {len(inputs)}"
        )
    return Node(op, tuple(inputs), full, name, info=info or None)


def _check_names(refs, source):
    """Raise if two variables have the same name, so that they can't be bound separately."""
    counts = Counter(n.name for n in topological(refs) if n.op is None)
    name, count = counts.most_common(1)[0] if counts else ("", 0)
    if count > 1:
        raise FileError(f"{source}: {count} variables are called {name[:60]!r}")


def _spec(info, where):
    """Return the spec given by a variable's attributes."""
    dtype, shape = info.get("__dtype__"), info.get("__shape__")
    try:
        if dtype is not None and dtype.lstrip("-").isdigit():
            dtype = None if int(dtype) < 0 else DTYPES[int(dtype)]
        if dtype is not None and dtype not in TYPE_FLAGS:
            raise KeyError
        shape = None if shape is None else OPS["Reshape"].read({"shape": shape})["shape"]
        if not shape and not is_np_shape():  # () means unknown without np_shape
            shape = None
        shape = None if shape is None else told_shape(shape)
        return Spec(shape, dtype and np.dtype(dtype)).possible()
    except (ValueError, KeyError, AttrError):
        raise FileError(f"{where}: the shape or dtype is not readable: {info!r:.80}") from None
