"""Chapter 02. Graph: a program as nodes in topological order, without running it.

Defines: `Graph`, with printing, checking, shape inference, evaluation by a reference
         interpreter, and structural comparison.

Nothing here is recursive, so a chain of ten thousand nodes is no problem.
"""

from heapq import heappop, heappush

import numpy as np

from minihybrid.core.op import UNEXPECTED, UNKNOWN, HybridError, Node, Op, ShapeError, Spec, legible
from minihybrid.ops.errors import said_by_node
from minihybrid.ops.shapes import agree, longer


class GraphError(HybridError):
    """An invalid graph, or a missing input."""


def topological(heads):
    """Return all nodes on which the heads depend in topological order (iterative DFS)."""
    order, visited = [], set()
    stack = [(node, False) for node, _ in reversed(heads)]
    while stack:
        node, inputs_done = stack.pop()
        if inputs_done:
            order.append(node)
        elif node not in visited:
            visited.add(node)
            stack.append((node, True))
            stack.extend((n, False) for n, _ in reversed(node.inputs or ()) if n not in visited)
    return order


def auxiliary(nodes):
    """Return the variables that some operator reads as a state."""
    return {
        node.inputs[place][0]
        for node in nodes
        if node.op is not None
        for place in node.op.states(node.attrs)
        if node.inputs[place][0].op is None
    }


def are_places(refs):
    """Return whether these are references to outputs of nodes: (node, output index)."""
    return isinstance(refs, (list, tuple)) and all(
        isinstance(r, tuple) and [*map(type, r)] == [Node, int] and r[1] in range(r[0].n_outputs)
        for r in refs
    )


def apply(op, inputs, attrs, name=""):
    """Return a new node with inferred specs; missing attributes get their defaults.

    inputs:  (node, output index) for each.
    Raises:  the operator's ShapeError; GraphError unless `op` is an operator with as many
             inputs, or if a shape stays unknown.
    """
    if not isinstance(op, Op) or not isinstance(attrs, dict):
        raise GraphError(
            f"apply: {legible(repr(op))} and {legible(repr(attrs))} were given, but an operator's "
            "record and a dict of attributes are needed, as in apply(OPS['relu'], inputs, {})"
        )
    if attrs.keys() != op.attrs.keys():
        attrs = op.normalize(dict(attrs))
    fits = are_places(inputs)
    names = op.input_names(attrs, len(inputs) if fits else 1)
    if not fits or len(names) != len(inputs):
        raise GraphError(
            f"apply: {op.name} takes a (node, output index) for each of {', '.join(names)}, in a "
            f"list, but {legible(repr(inputs))} was given"
        )
    specs = [n.specs[i] if n.specs else UNKNOWN for n, i in inputs]
    _, outs = op.specs_of(specs, attrs)
    if not all(s.known for s in outs):
        raise GraphError(
            f"{op.name} '{name}': its shape is still unknown; variables need their specs first"
        )
    return Node(op, tuple(inputs), attrs, name, tuple(outs))


class Graph:
    """Nodes in topological order, and the heads: (node, output index) of the results.

    states:  names of variables whose new values are the last heads; the caller stores
             them, because operators are pure.
    origins: node -> the traced nodes that it replaces; see `origin`.
    places:  traced node -> the source lines that created it (`Trace.places`).

    >>> from minihybrid.core import sym
    >>> print(Graph.of(sym.clip(sym.var("x"), 0, 6, name="y")).show())
    x               = variable                 ?[?]
    y               = clip(x; a_min=0.0, a_max=6.0) ?[?]
    return y
    """

    def __init__(self, nodes, heads, n_streams=0, states=(), origins=None, places=None):
        self.nodes, self.heads, self.n_streams = tuple(nodes), tuple(heads), n_streams
        self.states, self.origins, self.places = tuple(states), origins or {}, places or {}

    @classmethod
    def of(cls, symbol):
        """Return the graph that computes a symbol."""
        return cls(topological(symbol.refs), symbol.refs)

    def rebuilt(self, nodes, heads, origins=None):
        """Return this graph with other nodes and heads, as a pass makes it."""
        return Graph(
            nodes, heads, self.n_streams, self.states, self.origins if origins is None else origins
        )

    def origin(self, node):
        """Return the traced nodes that a node replaces; a traced node replaces itself."""
        return self.origins.get(node) or {node}

    @property
    def outputs(self):
        """The heads, without the new values of states."""
        return self.heads[: len(self.heads) - len(self.states)]

    @property
    def variables(self):
        """The nodes that are inputs, in order."""
        return [n for n in self.nodes if n.op is None and n.values is None]

    @property
    def n_ops(self):
        """The number of operator applications."""
        return sum(n.op is not None for n in self.nodes)

    def uses(self):
        """Return (node, index) -> its users, one entry per use."""
        readers = {}
        for node in self.nodes:
            for ref in node.inputs:
                readers.setdefault(ref, []).append(node)
        return readers

    # -- printing
    def names(self):
        """Return node -> a name that is unique in this graph."""
        names, counts = {}, {}
        for node in self.nodes:
            base = legible(node.name) or (node.op.name.lower() if node.op else "v")
            count = counts.get(base, 0)
            counts[base] = count + 1
            names[node] = base if count == 0 else f"{base}.{count}"
        return names

    def show(self):
        """Return the graph as text, one line per node; equal graphs print equally."""
        from minihybrid.view.text import text

        return text(self)

    def __repr__(self):
        return (
            f"<Graph: {len(self.variables)} inputs, {self.n_ops} operators, "
            f"{len(self.heads)} outputs>"
        )

    # -- checking
    def check(self, stage="the graph"):
        """Verify the invariants of a graph; return it.

        Raises:  GraphError naming the stage that made the graph, the node and the invariant.
        """
        defined, names = set(), self.names()
        for node in self.nodes:
            where = f"after {stage}: node '{names[node]}'"
            if node in defined:
                raise GraphError(f"{where} stands twice in the order")
            for source, i in node.inputs:
                if source not in defined:
                    raise GraphError(
                        f"{where} reads '{source.name}', which does not come before it"
                    )
                if not 0 <= i < source.n_outputs:
                    raise GraphError(
                        f"{where} reads output {i} of '{source.name}', which has {source.n_outputs}"
                    )
            if (
                node.op is not None
                and node.specs
                and all(s.known for n, _ in node.inputs for s in n.specs or (UNKNOWN,))
            ):
                _, outs = node.op.specs_of([n.specs[i] for n, i in node.inputs], node.attrs)
                if tuple(outs) != tuple(node.specs):
                    raise GraphError(
                        f"{where} has {' '.join(map(str, node.specs))}, but its "
                        f"operator's shape rule gives {' '.join(map(str, outs))}"
                    )
            defined.add(node)
        for node, i in self.heads:
            if node not in defined or not 0 <= i < node.n_outputs:
                raise GraphError(
                    f"after {stage}: the output '{node.name}' [{i}] is not in the graph"
                )
        return self

    # -- running and typing
    def evaluate(self, values, key=0):
        """Run node by node with NumPy: the semantics that every pass must preserve.

        values:  variable name -> ndarray.
        """
        computed = {}
        for node in self.nodes:
            if node.op is None:
                if node.values is not None:
                    computed[node] = node.values
                elif node.name in values:
                    computed[node] = (np.asarray(values[node.name]),)
                else:
                    raise GraphError(f"evaluate: no value is given for '{node.name}'")
                continue
            arrays = [computed[n][i] for n, i in node.inputs]
            computed[node] = evaluate_node(node, arrays, key)
        return [computed[n][i] for n, i in self.heads]


def the_graph(owner, value):
    """Return `value` if it is a graph; otherwise raise GraphError."""
    if not isinstance(value, Graph):
        raise GraphError(
            f"{owner}: {legible(repr(value))} is no graph; Graph.of(symbol) makes one of a symbol"
        )
    return value


def evaluate_node(node, arrays, key=0):
    """Return the outputs of one node as NumPy arrays."""
    if node.op.eager is None:
        raise GraphError(
            f"{node.op.name} '{node.name}' is made of simpler operators; "
            "run the expand pass before evaluating"
        )
    try:
        with np.errstate(all="ignore"):
            out = node.op.eager(*arrays, **node.attrs, **({"key": key} if node.op.random else {}))
    except HybridError:
        raise
    except UNEXPECTED as error:
        specs = [Spec(a.shape, a.dtype) for a in arrays]
        raise node.op.sentence(GraphError, specs, node.attrs, error) from None
    return out if isinstance(out, tuple) else (out,)


def shown_attrs(node):
    """Return the attributes that differ from their defaults."""
    kinds = node.op.attrs
    return {
        k: v
        for k, v in node.attrs.items()
        if k not in kinds
        or v != kinds[k][1]
        or (v is None) != (kinds[k][1] is None)  # float64 == None
        or str(v) == "-0.0"  # == 0.0
    }


def infer(graph, var_specs):
    """Infer shapes and dtypes: return node -> list of specs, as complete as possible.

    var_specs:  variable name -> Spec; the variables' own specs are also used.
    Raises:  ShapeError or DTypeError naming the node.

    Shapes propagate forward, and backward where an operator can infer an input from its
    other inputs. A worklist repeats this until a fixed point; nodes with few inputs come
    first, so that one that joins many values is visited after they are known.
    """
    specs = {n: list(n.specs or (UNKNOWN,) * n.n_outputs) for n in graph.nodes}
    for node in graph.variables:
        if node.name in var_specs:
            specs[node] = [refine(node.name, specs[node][0], var_specs[node.name])]
    readers, nodes = graph.uses(), graph.nodes
    number = {node: k for k, node in enumerate(nodes)}
    todo = [(0, k) for k, node in enumerate(nodes) if node.op is not None]
    waiting = {k for _, k in todo}
    while todo:
        node = nodes[heappop(todo)[1]]
        waiting.discard(number[node])
        learnt, is_open = _learn(node, specs)
        for n, i in learnt:
            for touched in (n, *readers.get((n, i), ())):
                k = number[touched]
                if touched.op is not None and k not in waiting and (touched is not node or is_open):
                    waiting.add(k)
                    heappush(todo, (len(touched.inputs), k))
    return specs


def other_dtypes(heads, dtype):
    """Return variable name -> dtype, for those that differ when a graph is cast to `dtype`.

    BatchNorm, for example, keeps float32 statistics beside float16 data.
    """
    dtypes = {}
    for node in topological(heads):
        attrs = node.attrs | ({"dtype": dtype} if "dtype" in node.attrs else {})
        for place, (source, _) in enumerate(node.inputs):
            specs = [Spec(None, dtype if i != place else None) for i in range(len(node.inputs))]
            if source.op is None:
                dtypes[source.name] = node.op.specs_of(specs, attrs)[0][place].dtype or dtypes.get(
                    source.name
                )
    return {name: kind for name, kind in dtypes.items() if kind not in (None, dtype)}


def _learn(node, specs):
    """Apply a node's shape rule once.

    Returns: (the values whose specs changed, whether some specs are still incomplete).
    """
    refs = [*node.inputs, *((node, i) for i in range(node.n_outputs))]
    try:
        new_ins, outs = node.op.specs_of([specs[n][i] for n, i in node.inputs], node.attrs)
    except HybridError as error:
        raise said_by_node(node, error) from None
    if _keeps_specs(node, specs[node][0]):
        new_ins = specs[node]
    learnt = []
    for (n, i), new in zip(refs, [*new_ins, *outs], strict=True):
        merged = refine(n.name, specs[n][i], new)
        if is_news(specs[n][i], merged):
            specs[n][i] = merged
            learnt.append((n, i))
    return learnt, not all(specs[n][i].known for n, i in refs)


def _keeps_specs(node, spec):
    """Return whether this unary elementwise operator preserves the spec."""
    return (
        len(node.inputs) == 1
        and node.op.expr is not None
        and "dtype" not in node.attrs
        and tuple(node.op.infer([spec], **node.attrs)[1]) == (spec,)
    )


def refine(name, old, new):
    """Merge two partial specs of one value.

    Raises:  ShapeError if they contradict each other.
    """
    if old.shape is not None and new.shape is not None:
        if not agree(old.shape, new.shape):
            raise ShapeError(f"'{name}' has shape {old.shape}, but {new.shape} is needed")
        shape = tuple(map(longer, old.shape, new.shape))
    else:
        shape = old.shape if new.shape is None else new.shape
    return Spec(shape, old.dtype or new.dtype)


def is_news(old, new):
    """Return whether a spec is more complete; not by `!=`, because float64 == None."""
    return old.shape != new.shape or (old.dtype is None) != (new.dtype is None)
