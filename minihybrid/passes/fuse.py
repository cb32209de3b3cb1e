"""Chapter 11. fuse: many operators, one loop.

Takes:   a graph of primitives without dead code.
Gives:   a graph in which groups of nodes are single `_fused` nodes, one kernel each.

A group has at most one core (a product of matrices, a convolution): what follows is
computed as it writes. Or it has reductions, all along the same axes: whatever is an
element of their rows, or one number a row, is computed in their loops.

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
from minihybrid.passes.lower import lower
from minihybrid.passes.pool_early import pool_early
from minihybrid.passes.rows import frames, is_literal, is_map


class Group:
    """Nodes that will be one kernel; filled from the last node to the first.

    core:   the node whose own loops the others join, if there is one.
    frame:  what the loops go over, if there are reductions.
    """

    def __init__(self, node, frame):
        self.nodes, self.core, self.frame = [], None, None
        self.shape = frame.shape if frame else node.specs[0].shape
        self.dtype = node.specs[0].dtype
        self.add(node, frame)

    def add(self, node, frame):
        """Take one node more; loops of its own, or its reduction's, become all's."""
        self.nodes.append(node)
        if frame and frame.shape == self.shape:
            self.frame = frame
        elif is_core(node):
            self.core = node


class Fused(Graph):
    """The inside of a fused node; prints as its operators in order."""

    def __init__(self, nodes, heads, frame):
        super().__init__(nodes, heads)
        self.frame = frame

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


def is_load(node):
    """Whether the output only reads the input at other steps (transpose, slice)."""
    return node.op is not None and node.op.strides is not None


def is_core(node):
    """Whether the node has loops of its own that others can join."""
    return node.op is not None and not is_map(node) and not is_load(node) and \
        bool(node.op.reduce or node.op.cpu or node.op.lower) and \
        not is_scatter(node)


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
    can arise: every path from the node stays inside. Groups of reductions that go along
    the same axes of one array become one group first.
    """
    return merge(lower(pool_early(graph)))


def merge(graph):
    """The same for a graph whose operators are as they shall be computed."""
    uses, heads, frame_of = graph.uses(), set(graph.heads), frames(graph)
    place = {node: i for i, node in enumerate(graph.nodes)}
    group_of, order = {}, graph.nodes[::-1]
    for node in (*order, *order):  # again: meanwhile its readers may have got a frame
        if node in group_of and len(group_of[node].nodes) > 1:
            continue
        frame = frame_of.get(node)
        readers = [r for i in range(node.n_outputs) for r in uses.get((node, i), ())]
        groups = {group_of.get(r): None for r in readers}  # most views have no group
        if len(groups) > 1:
            groups = _merged(groups, node, frame, place, uses, group_of)
        if node.op is None or node.op is FUSED or node.op.view and not frame:
            continue
        group = next(iter(groups)) if len(groups) == 1 else None
        if group and _joins(node, frame, group, readers, (node, 0) in heads):
            group.add(node, frame)
            group_of[node] = group
        elif node not in group_of and not node.op.view:
            group_of[node] = Group(node, frame)
    return _collapse(graph, group_of, heads)


def _merged(groups, node, frame, place, uses, group_of):
    """The groups of a value's readers, those of one frame made one if they may be.

    They may if all that is read of them is read after the last of them: then no other
    kernel has to run between them.
    """
    kinds = {}
    for group in groups:
        fits = group and group.frame and (
            group.frame == frame or group.shape == node.specs[0].shape)
        kind = (group.frame, group.dtype) if fits else group
        kinds.setdefault(kind, []).append(group)
    found = []
    for first, *others in kinds.values():
        inside = {first, *others}
        nodes = [n for group in inside for n in group.nodes] if others else []
        last = max((place[n] for n in nodes), default=0)
        if any(place[r] < last and group_of.get(r) not in inside
               for n in nodes for r in uses.get((n, 0), ())):
            found += inside
            continue
        for group in others:
            first.nodes += group.nodes
            group_of.update(dict.fromkeys(group.nodes, first))
        found.append(first)
    return found


def _joins(node, frame, group, readers, is_head):
    """Whether a node may become part of its only readers' group."""
    if node.n_outputs != 1 or any(is_scatter(r) for r in readers) or \
            is_head and (is_literal(node) or node.op.view):
        return False
    if group.frame or frame and frame.shape == group.shape and not group.core:
        return _joins_rows(node, frame, group.frame or frame, group, readers)
    core, spec = group.core, node.specs[0]
    if spec.shape != group.shape or node.op.view or any(map(is_load, readers)):
        return False
    if is_core(node):  # it becomes the core, if what follows can be computed on the way
        return core is None and not node.op.random and not node.op.reduce and \
            spec.dtype == group.dtype and \
            all(_reads_on_the_way(n, node, group) for n in group.nodes)
    return (is_map(node) or is_load(node)) and (
        core is None or core not in readers and _reads_on_the_way(node, core, group))


def _joins_rows(node, frame, wanted, group, readers):
    """Whether a node is computed in loops over rows, and its readers find it there.

    They do if they want the same element of the row, or the row's one number.
    """
    spec = node.specs[0]
    if is_literal(node):
        return not any(is_load(r) or r.op.reduce for r in readers)
    if spec.shape == wanted.shape:
        return (is_map(node) or is_load(node)) and not any(map(is_load, readers))
    if not (is_map(node) and wanted.is_stat(spec.shape) or frame == wanted) or \
            wanted.across and spec.dtype != group.dtype:
        return False
    whole = [r for r in readers if r.specs[0].shape == wanted.shape]
    if whole and (wanted.long or not wanted.lines_up(spec.shape)):
        return False
    return all(r in whole and (is_map(r) or r.op.name == "broadcast_to") or r.op.view or
               r not in whole and is_map(r) and r.specs[0].shape == spec.shape
               for r in readers)


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
            now = _fused_node(group, outs, mapped, node.name, inside[node].frame)
            new_nodes.append(now)
            mapped.update((ref, (now, i)) for i, ref in enumerate(outs))
    return graph.rebuilt(new_nodes, [mapped[r] for r in graph.heads])


def _fused_node(group, outs, mapped, name, frame):
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
    if len({n.specs[0].shape for n in nodes}) == 1 and all(map(is_map, nodes)):
        frame = None  # no reduction, nor a row's number: one loop over all elements
    graph = Fused([*variables, *nodes], [inner[ref] for ref in outs], frame)
    return Node(FUSED, tuple(inputs), {"graph": graph}, name,
                tuple(n.specs[0] for n, _ in outs))
