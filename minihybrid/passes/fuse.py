"""Chapter 16. fuse: merge operators into groups that share one loop nest.

Each group becomes one `_fused` node, hence one kernel. A group has at most one core (a
matrix product, a convolution), whose store computes the elementwise epilogue. Or it has
reductions, all over the same axes: values per element of a row, or per row, are computed
in their loops.

    t = a * b      (one pass over memory)    becomes    one pass, with t in a register
    y = relu(t)    (another pass)

Source:  MXNet's pointwise fusion (src/operator/fusion); here with cores, broadcasting
         and several outputs, but not for siblings without a common value.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from minihybrid.core.graph import Graph
from minihybrid.core.op import Node, Op, Spec
from minihybrid.core.passes.cse import cse
from minihybrid.core.passes.dce import dce
from minihybrid.core.passes.fold import fold
from minihybrid.passes.hoist_max_pool import pool_early
from minihybrid.passes.loops import inside, is_loop, trimmed
from minihybrid.passes.lower import lower
from minihybrid.passes.pads_to_concat import side_by_side
from minihybrid.passes.reduction_schedule import ReductionDomain, Ref, frames, is_literal, is_map
from minihybrid.passes.slice_views import pieces

# Larger kernels gain little, because a row is then in cache anyway; and short kernels are
# more often equal, and compiled once.
MAX_OPS, MAX_REDUCTIONS = 64, 8  # operators and reductions per kernel


class Group:
    """Nodes of a future kernel; filled from the last node to the first.

    core:   the node into whose loops the others are fused, if there is one.
    frame:  the iteration space, if there are reductions.
    sums:   number of reductions.
    """

    def __init__(self, node: Node, frame: ReductionDomain | None) -> None:
        self.nodes: list[Node] = []
        self.core: Node | None = None
        self.frame: ReductionDomain | None = None
        self.sums = 0
        self.shape = frame.shape if frame else node.specs[0].shape
        self.dtype = node.specs[0].dtype
        self.add(node, frame)

    @property
    def loops(self) -> ReductionDomain | None:
        """The iteration space; `None` for a core's own loops."""
        return None if self.core else self.frame or ReductionDomain(self.shape, frozenset())

    def has_room(self, *nodes: Node) -> bool:
        """Return whether the group's size limits allow these nodes as well."""
        return (
            len(self.nodes) + len(nodes) <= MAX_OPS
            and self.sums + sum([n.op.reduce is not None for n in nodes]) <= MAX_REDUCTIONS
        )

    def add(self, node: Node, frame: ReductionDomain | None) -> None:
        """Add a node; if it is a core or a reduction, it sets the group's loops."""
        self.nodes.append(node)
        self.sums += node.op.reduce is not None
        if has_loops(node) and not frame:
            self.core = node
        elif frame and frame.shape == self.shape:
            self.frame = self.frame or frame


class Fused(Graph):
    """The subgraph of a fused node; prints as its operators in order."""

    def __init__(self, nodes: list[Node], heads: list[Ref], frame: ReductionDomain | None) -> None:
        super().__init__(nodes, heads)
        self.frame = frame

    def __repr__(self) -> str:
        return " + ".join(n.op.name for n in self.nodes if n.op)


def _infer(specs: list[Spec], graph: Graph) -> tuple[list[Spec], list[Spec]]:
    return specs, [n.specs[i] for n, i in graph.heads]


def _eager(*arrays: np.ndarray, graph: Graph, key: int) -> np.ndarray | tuple:
    values = {n.name: a for n, a in zip(graph.variables, arrays, strict=True)}
    out = tuple(graph.evaluate(values, key))
    return out if len(out) > 1 else out[0]


FUSED = Op(
    name="_fused",
    variadic=True,
    random=True,
    any_dtype=True,
    infer=_infer,
    eager=_eager,
    n_outputs=lambda attrs: len(attrs["graph"].heads),
    attrs={"graph": (None, None)},
    doc="Several operators in one kernel.",
)


def is_load(node: Node) -> bool:
    """Return whether a node only reads its input with other strides (transpose, slice)."""
    return node.op is not None and node.op.strides is not None


def has_loops(node: Node) -> bool:
    """Return whether a node needs its own loops: neither elementwise, a load, nor a view."""
    return node.op is not None and not (is_map(node) or is_load(node) or node.op.view)


def is_core(node: Node) -> bool:
    """Return whether an elementwise epilogue can be fused into a node's loops."""
    return has_loops(node) and node.op.may_be_followed(node.attrs)


def fuse(graph: Graph) -> Graph:
    """Merge nodes that can share a loop into `_fused` nodes.

    Shapes:  unchanged; every output keeps its shape.
    A node joins the group of its users if they are all in one group, so no cycle between
    kernels can arise: every path from the node stays inside. Groups that read the same
    value in the same iteration space are merged first.
    """
    graph = side_by_side(inside(trimmed(inside(graph, simplified)), fuse))
    return pieces(merge(lower(pool_early(graph), which=lambda op: not is_loop(op))))


def simplified(body: Graph) -> Graph:
    """Simplify a loop's body, dropping gradient barriers: differentiation is done."""
    return dce(cse(fold(body, strict=False)))


def merge(graph: Graph) -> Graph:
    """Merge nodes of a lowered graph into groups."""
    uses, heads, frame_of = graph.uses(), set(graph.heads), frames(graph)
    place = {node: i for i, node in enumerate(graph.nodes)}
    group_of: dict[Node, Group] = {}
    order = graph.nodes[::-1]
    for node in (*order, *order):  # twice: by now its users may have a frame
        if node in group_of and len(group_of[node].nodes) > 1:
            continue
        frame = frame_of.get(node)
        readers = [r for i in range(node.n_outputs) for r in uses.get((node, i), ())]
        groups = [*dict.fromkeys(group_of.get(r) for r in readers)]  # most views belong to no group
        if len(groups) > 1:
            groups = _merged(groups, node, frame, readers, place, uses, group_of)
        if node.op is None or node.op is FUSED or node.op.view and not frame:
            continue
        group = groups[0] if len(groups) == 1 else None
        if group and _joins(node, frame, group, readers, (node, 0) in heads):
            group.add(node, frame)
            group_of[node] = group
        elif node not in group_of and not node.op.view:
            group_of[node] = Group(node, frame)
    return _collapse(graph, group_of, heads)


def _merged(
    groups: Iterable[Group | None],
    node: Node,
    frame: ReductionDomain | None,
    readers: list[Node],
    place: dict[Node, int],
    uses: Mapping[Ref, list[Node]],
    group_of: dict[Node, Group],
) -> list[Group | None]:
    """Merge the groups of a value's users that have the same loops, where that is legal.

    It is if every use outside comes after the last of their nodes, so that no other kernel
    must run in between.
    """
    kinds: dict[object, list] = {}
    for group in groups:
        kind: object = group
        if group and (loops := group.loops):
            if loops == frame or (
                loops.shape == node.specs[0].shape
                and (group.frame or not any(map(is_load, readers)))
            ):
                kind = loops, group.dtype
        kinds.setdefault(kind, []).append(group)
    merged = []
    for first, *others in kinds.values():
        if others and _are_one({first, *others}, first, place, uses, group_of):
            for group in others:
                first.nodes += group.nodes
                first.sums += group.sums
                group_of.update(dict.fromkeys(group.nodes, first))
            others = []
        merged += [first, *others]
    return merged


def _are_one(
    groups: set[Group],
    first: Group,
    place: dict[Node, int],
    uses: Mapping[Ref, list[Node]],
    group_of: dict[Node, Group],
) -> bool:
    """Return whether groups with the same loops may be merged."""
    nodes, loops = [n for group in groups for n in group.nodes], first.loops
    assert loops is not None  # equal loops can't be None
    if not first.has_room(*(n for n in nodes if group_of[n] is not first)):
        return False
    last = max(place[n] for n in nodes)
    for node in nodes:
        readers = uses.get((node, 0), ())
        beside = [r for r in readers if group_of.get(r) is not group_of[node]]
        if any(place[r] < last and group_of.get(r) not in groups for r in beside) or not _is_there(
            node, [r for r in beside if group_of.get(r) in groups], loops, first.dtype
        ):
            return False
    return True


def _joins(
    node: Node, frame: ReductionDomain | None, group: Group, readers: list[Node], is_head: bool
) -> bool:
    """Return whether a node may join the group of all its users."""
    if (
        node.n_outputs != 1
        or not group.has_room(node)
        or is_head
        and (is_literal(node) or node.op.view)
    ):
        return False
    domain = group.frame
    if domain is None and frame and frame.shape == group.shape and not group.core:
        domain = frame
    if domain is not None:
        return _goes_along(node, frame, domain) and _is_there(node, readers, domain, group.dtype)
    core, spec = group.core, node.specs[0]
    if spec.shape != group.shape or node.op.view or any(map(is_load, readers)):
        return False
    if has_loops(node):  # as the core, if it accepts an epilogue
        return (
            core is None
            and is_core(node)
            and not node.op.random
            and spec.dtype == group.dtype
            and all(_reads_on_the_way(n, node, group) for n in group.nodes)
        )
    return core is None or core not in readers and _reads_on_the_way(node, core, group)


def _goes_along(node: Node, frame: ReductionDomain | None, domain: ReductionDomain) -> bool:
    """Whether a node is an element of the frame's rows, or one number of each row."""
    shape = node.specs[0].shape
    if shape == domain.shape:
        return is_map(node) or is_load(node)
    return is_literal(node) or frame == domain or is_map(node) and domain.is_stat(shape)


def _is_there(node: Node, readers: Iterable[Node], frame: ReductionDomain, dtype: np.dtype) -> bool:
    """Whether readers in loops over rows find there what the loops have computed."""
    spec = node.specs[0]
    if (
        spec.shape != frame.shape
        and not is_literal(node)
        and (
            frame.across
            and spec.dtype != dtype
            or frame.long
            and any(r.specs[0].shape == frame.shape for r in readers)
        )
    ):
        return False
    return all(frame.meets(node, r) for r in readers)


def _reads_on_the_way(node: Node, core: Node, group: Group) -> bool:
    """After a core: arrays of the result's shape, or with one number along all axes
    but one."""
    if is_load(node) or node.specs[0].dtype != group.dtype:
        return False
    shapes = [n.specs[i].shape for n, i in node.inputs]
    return all(s == group.shape or sum(n != 1 for n in s) <= 1 for s in shapes)


def _collapse(graph: Graph, group_of: dict[Node, Group], heads: set[Ref]) -> Graph:
    """Replace each group of several nodes by one node, at the position of its last."""
    members: dict[Group, list[Node]] = {}  # group -> its nodes in order
    for node in graph.nodes:
        if node in group_of:
            members.setdefault(group_of[node], []).append(node)
    last = {nodes[-1]: group for group, nodes in members.items()}
    inside = {n: g for n, g in group_of.items() if len(members[g]) > 1}
    uses = graph.uses()
    mapped: dict[Ref, Ref] = {}
    new_nodes: list[Node] = []
    origins: dict[Node, set] = {}
    for node in graph.nodes:
        if node not in inside:
            now = node.reading(tuple(mapped[r] for r in node.inputs))
            new_nodes.append(now)
            origins[now] = graph.origin(node)
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
            origins[now] = set().union(*map(graph.origin, group))
            copies = [n for n in now.attrs["graph"].nodes if n.op]
            origins.update(zip(copies, map(graph.origin, group), strict=True))
            mapped.update((ref, (now, i)) for i, ref in enumerate(outs))
    return graph.rebuilt(new_nodes, [mapped[r] for r in graph.heads], origins)


def _fused_node(
    group: Sequence[Node],
    outs: list[Ref],
    mapped: Mapping[Ref, Ref],
    name: str,
    frame: ReductionDomain | None,
) -> Node:
    """Return a fused node, whose subgraph's variables are the group's inputs."""
    inner: dict[Ref, Ref] = {}
    variables: list[Node] = []
    inputs: list[Ref] = []
    nodes: list[Node] = []
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
        frame = None  # purely elementwise: one flat loop
    graph = Fused([*variables, *nodes], [inner[ref] for ref in outs], frame)
    return Node(FUSED, tuple(inputs), {"graph": graph}, name, tuple(n.specs[0] for n, _ in outs))
