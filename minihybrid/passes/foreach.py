"""Foreach: MXNet's loop over the rows of arrays, traced and in files.

Defines: `Foreach`, the operator, which is decomposed into a `Scan` of primitives; `of_entry`,
         which reads one from a file; `written_down`, which unrolls the loops of a graph.

Source:  MXNet's src/operator/control_flow.cc, and its files: the body is in `subgraphs`, and
         lists of indices tell which of its variables are rows, states and others.
Not supported: a body with auxiliary states, such as BatchNorm's running mean, which each
iteration would update; nested loops, of which the inner one is unrolled.
"""

import json
from collections.abc import Callable, Sequence
from functools import partial

from minihybrid.core.files import FileError
from minihybrid.core.graph import Graph, infer, refine
from minihybrid.core.name import Prefix
from minihybrid.core.op import DTypeError, Node, ShapeError, Spec, integer, parsed, shape
from minihybrid.core.passes.expand import expand
from minihybrid.core.passes.rewrite import rewrite
from minihybrid.core.serial import NOW, tojson
from minihybrid.core.sym import Group, Symbol, fromjson
from minihybrid.ops import OPS
from minihybrid.ops.infix import Value
from minihybrid.ops.layout import reshape
from minihybrid.passes.lower import recorded
from minihybrid.passes.scan import Loop, results, scan, stacked


class Foreach(Loop):
    """Apply a graph to each row of arrays, and carry states between iterations."""

    name, modal, doc = "_foreach", True, "A loop over the rows of arrays."

    @property
    def n_outputs(self) -> int:
        """The number of stacked outputs and final states."""
        return self.n_outs + self.n_states

    def infer(self, specs: Sequence[Spec]) -> tuple[list[Spec], list[Spec]]:
        """Infer the body's specs from the inputs', and a state's from its new value."""
        lengths = {s.shape[0] for s in specs[: self.n_rows] if s.shape} - {-1}
        if len(lengths) > 1:
            raise ShapeError(
                "foreach: data must be arrays of one common length, found "
                f"{', '.join(map(str, sorted(lengths)))}"
            )
        length = lengths.pop() if lengths else -1
        rows, states, others = self.sorted(specs)
        now = [*map(row_of, rows), *states, *others]
        for _ in range(self.n_states + 1):  # one state's spec may determine the next one's
            inside = self.specs_inside(now)
            heads = [inside[n][i] for n, i in self.body.heads]
            now, before = [inside[v][0] for v in self.ins], now
            for j, new in enumerate(heads[self.n_outs :]):
                k = self.n_rows + j
                now[k] = agreed(f"foreach: state {j}", now[k], new)
            if now == before:
                break
        data, states, others = self.sorted(now)
        data = [
            Spec(spec.shape or stacked(row, length).shape, row.dtype)
            for spec, row in zip(rows, data, strict=True)
        ]
        outs = [stacked(head, length) for head in heads[: self.n_outs]]
        return [*data, *states, *others], [*outs, *states]

    def specs_inside(self, specs: Sequence[Spec]) -> dict[Node, list[Spec]]:
        """Return node of the body -> its specs, given those of its variables."""
        return infer(self.body, {v.name: s for v, s in zip(self.ins, specs, strict=True)})

    def with_specs(self, specs: Sequence[Spec]) -> Loop:
        """Return this loop as a `Loop` whose nodes have specs."""
        rows, states, others = self.sorted(specs)
        body, mapped = typed(self.body, self.specs_inside([*map(row_of, rows), *states, *others]))
        return Loop(body, [mapped[v] for v in self.ins], self.n_rows, self.n_states)

    def inside(self, specs: Sequence[Spec]) -> list[Graph]:
        """Return the body, with the specs that follow from those of the inputs."""
        return [self.with_specs(specs).body]

    def in_rows(self, specs: Sequence, inputs: list[Value]) -> list[Value]:
        """Return the inputs; a vector gets an axis, so that each of its rows has shape (1,)."""
        for i in range(self.n_rows):
            if len(specs[i].shape) == 1:
                inputs[i] = reshape(inputs[i], shape=(*specs[i].shape, 1))
        return inputs

    def expand(self, specs: Sequence, *inputs: Value, training: bool) -> Value | tuple:
        """Return a `Scan`, or the unrolled loop if each iteration draws random numbers."""
        loop, length = self.with_specs(specs), specs[0].shape[0]
        simple = expand(written_down(loop.body), training)  # unrolls nested loops
        if any(n.op is not None and n.op.random for n in simple.nodes):
            return self.written_down(specs, *inputs)
        op = scan(simple, loop, length, products=True)
        outs, last = results(op, self.n_outs, self.in_rows(specs, [*inputs]))
        return only((*outs, *last))

    def written_down(self, specs: Sequence, *inputs: Value) -> Value | tuple:
        """Return the outputs of the unrolled loop."""
        order = range(specs[0].shape[0])
        outputs = self.with_specs(specs).unrolled(order, self.in_rows(specs, [*inputs]))
        return only(outputs[: self.n_outputs])

    # -- files
    @property
    def in_file(self) -> tuple[Graph, list[int]]:
        """(the body in the form of MXNet's files, the indices of its variables).

        In files, each variable has a user and no head is a variable. So a head is multiplied
        by ones made from an unused state, or taken at an index 0 made from unused rows.
        """
        heads = [Symbol([ref]) for ref in self.body.heads]
        read = {n for node in self.body.nodes for n, _ in node.inputs}
        read.update(n for n, _ in self.body.heads)
        with Prefix("loop_"):
            heads = [s if s.refs[0][0].op else OPS["_copy"](s) for s in heads]
            for k, v in enumerate(self.ins):
                if v not in read and k < self.n_rows:
                    first = OPS["zeros_like"](OPS["sum"](Symbol([(v, 0)])))
                    rows = OPS["take"](OPS["expand_dims"](heads[0], axis=0), first, axis=0)
                    heads[0] = OPS["squeeze"](rows, axis=0)
                elif v not in read:
                    j = k - self.n_rows + self.n_outs
                    heads[j] = OPS["elemwise_mul"](heads[j], OPS["ones_like"](Symbol([(v, 0)])))
        graph = Graph.of(Group(heads))
        place = {v: i for i, v in enumerate(graph.variables)}
        return graph, [place[v] for v in self.ins]

    @property
    def mxnet_name(self) -> tuple[str, dict[str, str]]:
        """(name, attributes) of the operator in files."""
        rows, states, others = self.sorted(self.in_file[1])
        return self.name, {
            "num_args": str(len(self.ins) + 1),
            "num_outputs": str(self.n_outputs),
            "num_out_data": str(self.n_outs),
            "in_data_locs": str(rows),
            "in_state_locs": str(states),
            "remain_locs": str(others),
        }

    @property
    def more(self) -> dict[str, list]:
        """The node's additional fields in files: the body."""
        return {"subgraphs": [in_json(self.in_file[0])]}


def in_json(graph: Graph) -> dict:
    """Return a subgraph as the JSON value of files."""
    value = json.loads(tojson(Symbol(graph.heads)))
    del value["attrs"]
    return value


def subgraphs_of(entry: dict, who: str, count: int) -> tuple[dict, list[Graph]]:
    """Return (attributes, subgraphs) of a node of a file.

    Raises:  FileError unless there are `count` graphs.
    """
    attrs, graphs = entry.get("attrs"), entry["subgraphs"]
    is_list = isinstance(graphs, list) and [*map(type, graphs)] == [dict] * count
    if not isinstance(attrs, dict) or not is_list:
        raise FileError(f"{who}: attributes and a list 'subgraphs' of {count} are needed")
    versions = {"attrs": {"mxnet_version": ["int", NOW]}}
    return attrs, [Graph.of(fromjson(json.dumps({**each, **versions}), who)) for each in graphs]


def of_entry(entry: dict) -> Foreach | None:
    """Return the loop that a node of a file describes; `None` without a body, or for one with
    auxiliary states.

    Raises:  FileError for an invalid graph, or indices that don't match it.
    """
    if "subgraphs" not in entry:
        return None
    who = f"_foreach {entry['name'][:60]!r}"
    attrs, (body,) = subgraphs_of(entry, who, 1)
    try:
        n_outs = integer(parsed(attrs.get("num_out_data")))
        lists = [
            shape(parsed(attrs.get(f"{key}_locs"))) for key in ("in_data", "in_state", "remain")
        ]
    except (ValueError, TypeError):
        lists, n_outs = [], -1
    variables, places = body.variables, [i for each in lists for i in each]
    if (
        sorted(places) != list(range(len(variables)))
        or not lists[0]
        or n_outs < 0
        or n_outs + len(lists[1]) != len(body.heads)
        or attrs.get("num_outputs") != str(len(body.heads))
    ):
        raise FileError(
            f"{who}: in_data_locs, in_state_locs and remain_locs must name each of the "
            f"{len(variables)} variables of its graph once, one at least as data, and "
            f"num_out_data those of its {len(body.heads)} heads that are no states"
        )
    if any(n.op is not None and n.op.states(n.attrs) for n in body.nodes):
        return None
    return Foreach(body, [variables[i] for i in places], len(lists[0]), len(lists[1]))


def typed(graph: Graph, specs: dict[Node, list[Spec]]) -> tuple[Graph, dict[Node, Node]]:
    """Copy a graph into nodes with these specs; return (copy, node -> its copy)."""
    mapped: dict[Node, Node] = {}
    for n in graph.nodes:
        inputs = tuple((mapped[m], i) for m, i in n.inputs)
        mapped[n] = Node(n.op, inputs, n.attrs, n.name, tuple(specs[n]), n.values, n.info)
    return Graph(mapped.values(), [(mapped[n], i) for n, i in graph.heads]), mapped


def agreed(what: str, first: Spec, second: Spec, other: str = "its new value") -> Spec:
    """Merge two specs that must be equal: of a loop's state, or of both sides of a branch.

    Raises:  DTypeError or ShapeError naming both.
    """
    if first.dtype and second.dtype and first.dtype != second.dtype:
        raise DTypeError(f"{what} is {first.dtype}, but {other} {second.dtype}; cast one of them")
    try:
        return refine("", first, second)
    except ShapeError:
        raise ShapeError(
            f"{what} has shape {first.shape}, but {other} {second.shape}; both must be the same"
        ) from None


def only(outputs: tuple[Value, ...]) -> Value | tuple[Value, ...]:
    """Return a single output as itself, several as a tuple."""
    return outputs if len(outputs) > 1 else outputs[0]


def row_of(spec: Spec) -> Spec:
    """Return the spec of a row of an array; a scalar row has shape (1,)."""
    return Spec(None if spec.shape is None else spec.shape[1:] or (1,), spec.dtype)


def written_down(graph: Graph) -> Graph:
    """Return a traced graph with all loops unrolled; other operators aren't decomposed."""

    def rule(node: Node, inputs: tuple, emit: Callable) -> list | None:
        if not isinstance(node.op, Foreach):
            return None
        specs = [n.specs[i] for n, i in inputs]
        return recorded(node, inputs, emit, partial(node.op.written_down, specs), lower=False)

    return rewrite(graph, rule)
