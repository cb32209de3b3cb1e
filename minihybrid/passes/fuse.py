"""Chapter 08. fuse: many operators, one loop.

Takes:   a graph of primitives without dead code.
Gives:   a graph in which groups of nodes are single `_fused` nodes, one kernel each.

A group has at most one core (a product of matrices, a reduction, a softmax). Before a
reduction, elementwise nodes are computed as it reads; after a core, as it writes.

In loops:   t = a * b   (a pass over memory)     becomes    one pass, where t is a
scalar
            y = relu(t) (another pass)                      that never leaves the
            register

Source:  MXNet's pointwise fusion (src/operator/fusion); here with cores, broadcasting
         and several outputs, without merging neighbours that share no value.
"""

from minihybrid.graph import Graph
from minihybrid.op import Node, Op
from minihybrid.ops.pooling import tiles
from minihybrid.passes.pool_early import pool_early


class Group:
    """Nodes that will be one kernel; filled from the last node to the first."""

    def __init__(self, node, core=None):
        self.nodes, self.core = [node], core
        self.before = {core}  # the core, and what it reads
        self.shape = node.specs[0].shape
        self.dtype = node.specs[0].dtype


class Fused(Graph):
    """The inside of a fused node; prints as its operators in order."""

    def __repr__(self):
        return " + ".join(n.op.name for n in self.nodes if n.op)


def _infer(specs, graph):
    return specs, [n.specs[i] for n, i in graph.heads]


def _eager(*arrays, graph, key):
    values = {n.name: a for n, a in zip(graph.variables, arrays, strict=True)}
    out = tuple(graph.evaluate(values, key))
    return out if len(out) > 1 else out[0]


FUSED = Op(name="_fused", inputs=("data",), variadic=True, random=True, infer=_infer,
           eager=_eager, n_outputs=lambda attrs: len(attrs["graph"].heads),
           attrs={"graph": (None, None)}, doc="Several operators in one kernel.")


def is_map(node):
    """Whether one scalar expression tells each output element."""
    return node.op is not None and node.op.scalar(node.attrs) is not None


def is_literal(node):
    """Whether every element is one number that stands in the program."""
    return is_map(node) and not node.inputs and "{i}" not in node.op.scalar(node.attrs)


def is_load(node):
    """Whether the output only reads the input at other steps (transpose, slice)."""
    return node.op is not None and node.op.strides is not None


def is_core(node):
    """Whether the node has loops of its own that others can join."""
    return node.op is not None and not is_map(node) and not is_load(node) and \
        bool(node.op.reduce or node.op.cpu) and not is_scatter(node)


def is_scatter(node):
    """Whether the node does not write each element once, at the end."""
    return node.op.name in SCATTERS and not (
        node.op.name == "_unpool_max" and tiles(**node.attrs))


SCATTERS = {
    "Concat", "_put_slice", "_put_along", "_put_take", "_put_diagonal", "_frame",
    "_solve_triangle", "_cholesky", "_slogdet",
    "_conv_weight", "_unpool_sum", "_unpool_max",
}


def fuse(graph):
    """Merge nodes that can share a loop into `_fused` nodes.

    Shapes:  unchanged; every output keeps its shape.
    Units:   the report counts kernels and `nbytes` moved, not seconds.

    A node joins the group of its readers when it has only one such group, so no cycle
    can arise: every path from the node stays inside.
    """
    graph = pool_early(graph)
    uses, heads = graph.uses(), set(graph.heads)
    group_of = {}
    for node in reversed(graph.nodes):
        if node.op is None or node.op.view or node.op is FUSED:
            continue
        readers = [r for i in range(node.n_outputs) for r in uses.get((node, i), ())]
        groups = {group_of.get(r) for r in readers}  # views have no group: None
        group = groups.pop() if len(groups) == 1 else None
        if group is not None and _joins(node, group, readers, (node, 0) in heads):
            group.nodes.append(node)
            if is_core(node):
                group.core, group.before = node, {node}
            elif group.before.issuperset(readers):
                group.before.add(node)
        else:
            group = Group(node, node if is_core(node) else None)
        group_of[node] = group
    return _collapse(graph, group_of, heads)


def _joins(node, group, readers, is_head):
    """Whether a node may become part of its only readers' group."""
    if node.n_outputs != 1 or any(
            is_load(r) or is_scatter(r) for r in readers) or \
            not (is_map(node) or is_load(node) or is_core(node)):
        return False
    if node.op.random and node.op.cpu and not is_map(node):
        return False
    core, spec = group.core, node.specs[0]
    if core is not None and group.before.issuperset(readers):  # it is read by the core
        (n, i), *_ = core.inputs
        return not is_core(node) and not is_head and core.op.reduce is not None and \
            (spec.shape == n.specs[i].shape or is_literal(node))
    if spec.shape != group.shape:
        return False
    if is_core(node):  # it becomes the core, if what follows can be computed on the way
        return core is None and spec.dtype == group.dtype and \
            all(_reads_on_the_way(n, node, group) for n in group.nodes)
    return core is None or core.op.reduce is None and core not in readers and \
        _reads_on_the_way(node, core, group)


def _reads_on_the_way(node, core, group):
    """After a core: arrays of the result's shape, or with one number along all axes
    but one."""
    if is_load(node) or node.specs[0].dtype != group.dtype:
        return False
    shapes = [n.specs[i].shape for n, i in node.inputs]
    return all(s == group.shape or sum(n != 1 for n in s) <= 1 for s in shapes)


def _collapse(graph, group_of, heads):
    """Replace each group of several nodes by one node, at the place of its last one."""
    members = {}  # group -> its nodes in order
    for node in graph.nodes:
        if node in group_of:
            members.setdefault(group_of[node], []).append(node)
    last = {nodes[-1]: group for group, nodes in members.items()}
    inside = {n: g for n, g in group_of.items() if len(members[g]) > 1}
    uses = graph.uses()
    mapped, new_nodes = {}, []
    for node in graph.nodes:
        if node not in inside:
            inputs = tuple(mapped[r] for r in node.inputs)
            now = node if inputs == node.inputs else \
                Node(node.op, inputs, node.attrs, node.name, node.specs)
            new_nodes.append(now)
            mapped.update(((node, i), (now, i)) for i in range(node.n_outputs))
        elif node in last:
            group = members[last[node]]
            outs = [
                (n, 0)
                for n in group
                if (n, 0) in heads
                or any(inside.get(r) is not inside[node] for r in uses.get((n, 0), ()))
            ]
            now = _fused_node(group, outs, mapped, node.name)
            new_nodes.append(now)
            mapped.update((ref, (now, i)) for i, ref in enumerate(outs))
    return graph.rebuilt(new_nodes, [mapped[r] for r in graph.heads])


def _fused_node(group, outs, mapped, name):
    """One node around a small graph, whose variables are the group's inputs."""
    inner, variables, inputs = {}, [], []
    nodes = []
    for node in group:
        refs = []
        for ref in node.inputs:
            if ref not in inner:
                spec = ref[0].specs[ref[1]]
                variable = Node(None, name=f"a{len(variables)}", specs=(spec,))
                variables.append(variable)
                inputs.append(mapped[ref])
                inner[ref] = (variable, 0)
            refs.append(inner[ref])
        copy = Node(node.op, tuple(refs), node.attrs, node.name, node.specs)
        inner[node, 0] = (copy, 0)
        nodes.append(copy)
    graph = Fused([*variables, *nodes], [inner[ref] for ref in outs])
    return Node(FUSED, tuple(inputs), {"graph": graph}, name,
                tuple(n.specs[0] for n, _ in outs))
