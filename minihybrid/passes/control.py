"""Cond and While: MXNet's branch and loop, traced and in files.

Defines: `Cond`, which is decomposed into an `If` of primitives; `While`, which is decomposed
         into a `Foreach` of a `Cond`; `of_entry`, which reads one from a file.

    cond:        if test(inputs): outs = then(inputs)     else: outs = other(inputs)
    while_loop:  while test(variables) and i < max_iterations:
                     outs[i], variables = func(variables)

Source:  MXNet's src/operator/control_flow.cc, and its files: the graphs are in `subgraphs`, and
         lists of indices map their variables to inputs.
Limits: a compiled loop doesn't exit early; each iteration after the end costs a comparison per
kernel.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from minihybrid.core.files import FileError
from minihybrid.core.graph import Graph, auxiliary, infer, refine
from minihybrid.core.name import NameManager, Prefix
from minihybrid.core.op import AttrError, Node, Spec, integer, parsed, shape
from minihybrid.core.passes import cse, dce, fold
from minihybrid.core.passes.expand import expand
from minihybrid.core.sym import Group, Symbol, replay, var
from minihybrid.core.tracing import CURRENT, tracing
from minihybrid.ops import OPS
from minihybrid.ops.infix import Value
from minihybrid.ops.layout import view_as
from minihybrid.passes.branches import branch
from minihybrid.passes.foreach import Foreach, agreed, in_json, only, subgraphs_of, typed
from minihybrid.passes.scan import GraphOp, as_tuple, stacked


class Control(GraphOp):
    """The base class: subgraphs, and for each the inputs that its variables stand for."""

    modal = True
    keys: tuple[str, ...]  # prefixes of the attributes with index lists in files

    def __init__(self, graphs: Iterable[Graph], locs: Iterable[Sequence[int]]) -> None:
        super().__init__()
        self.graphs, self.locs = tuple(graphs), tuple(map(tuple, locs))

    @property
    def n_outputs(self) -> int:
        """The number of heads of the last graph."""
        return len(self.graphs[-1].heads)

    def values(self, k: int, inputs: Sequence) -> dict[Node, Any]:
        """Return variable of graph `k` -> its input."""
        pairs = zip(self.graphs[k].variables, self.locs[k], strict=True)
        return {v: inputs[i] for v, i in pairs}

    def replayed(self, k: int, inputs: Sequence[Value]) -> list[Value]:
        """Return the values of graph `k`, computed by what computes the inputs."""
        return replay(self.graphs[k].heads, self.values(k, inputs), inputs)

    def specs_inside(self, k: int, specs: Sequence[Spec]) -> dict[Node, list[Spec]]:
        """Return node of graph `k` -> its specs, given those of the inputs."""
        return infer(self.graphs[k], {v.name: s for v, s in self.values(k, specs).items()})

    def inside(self, specs: Sequence[Spec]) -> list[Graph]:
        """Return the graphs, with the specs that follow from those of the inputs."""
        return [typed(g, self.specs_inside(k, specs))[0] for k, g in enumerate(self.graphs)]

    def learn(self, k: int, specs: list[Spec]) -> list[Spec]:
        """Return the specs of graph `k`'s heads, and refine those of the inputs in place."""
        inside = self.specs_inside(k, specs)
        for v, i in self.values(k, range(len(specs))).items():
            specs[i] = refine(v.name, specs[i], inside[v][0])
        return [inside[n][i] for n, i in self.graphs[k].heads]

    @cached_property
    def aux_places(self) -> list[int]:
        """The inputs that are auxiliary states of inner operators, such as running means."""
        indices = set()
        for k, graph in enumerate(self.graphs):
            states = auxiliary(graph.nodes)
            places = self.values(k, range(1 + max(self.locs[k], default=0)))
            indices |= {i for v, i in places.items() if v in states}
        return sorted(indices)

    def states(self, attrs: dict) -> list[int]:
        """Return the indices of the inputs that are auxiliary states."""
        return self.aux_places

    # -- files
    def in_file(self) -> list[tuple[Graph, list[int]]]:
        """Return [(graph, indices of its variables)] as in files, where no head is a variable."""
        pairs = []
        for k, graph in enumerate(self.graphs):
            with Prefix(f"{self.keys[k]}_"):
                heads = [s if s.refs[0][0].op else OPS["_copy"](s) for s in self.heads_in_file(k)]
            place = self.values(k, range(1 + max(self.locs[k], default=0)))
            graph = Graph.of(Group(heads))
            pairs.append((graph, [place[v] for v in graph.variables]))
        return pairs

    def heads_in_file(self, k: int) -> list[Symbol]:
        """Return the heads of graph `k`."""
        return [Symbol([ref]) for ref in self.graphs[k].heads]

    @property
    def mxnet_name(self) -> tuple[str, dict[str, str]]:
        """(name, attributes) in files."""
        pairs = zip(self.keys, self.in_file(), strict=True)
        attrs = {f"{key}_input_locs": str(tuple(locs)) for key, (_, locs) in pairs}
        n_inputs = 1 + max((i for locs in self.locs for i in locs), default=-1)
        n_args = str(n_inputs + len(self.graphs))
        return self.name, {"num_args": n_args, "num_outputs": str(self.n_outputs), **attrs}

    @property
    def more(self) -> dict[str, list]:
        """The node's additional fields in files: the subgraphs."""
        return {"subgraphs": [in_json(graph) for graph, _ in self.in_file()]}


class Cond(Control):
    """Apply one of two graphs, chosen by a one-element predicate: test, then, other."""

    name, doc, keys = "_cond", "A branch: one of two graphs is applied.", ("cond", "then", "else")

    def infer(self, specs: Sequence[Spec]) -> tuple[list[Spec], list[Spec]]:
        """Infer input specs from both branches, which must agree on those of outputs."""
        now = list(specs)
        for _ in range(2):  # one graph may refine the inputs of another
            (test,), *sides = [self.learn(k, now) for k in range(3)]
        check_predicate("cond: pred", test.shape)
        pairs = enumerate(zip(*sides, strict=True))
        return now, [
            agreed(f"cond: output {k} of the first branch", a, b, "that of the second")
            for k, (a, b) in pairs
        ]

    def expand(self, specs: Sequence[Spec], *inputs: Value, training: bool) -> Value | tuple:
        """Return an `If` with new auxiliary states; for arrays, run the branch taken."""
        holds = self.replayed(0, inputs)[0]
        if not isinstance(holds, Symbol):
            k = 1 if is_true("cond: pred", holds) else 2
            return only(tuple(self.replayed(k, inputs)))
        sides, trace = [], CURRENT.trace
        assert trace is not None
        for k in (1, 2):
            graph, _ = typed(self.graphs[k], self.specs_inside(k, specs))
            graph = expand(graph, training)
            shift_streams(graph, trace.n_streams)
            trace.n_streams += graph.n_streams
            sides.append(graph)
        states = self.aux_places if any(g.states for g in sides) else ()
        graphs, places = [], []
        for k, graph in enumerate(sides, 1):
            own = {v.name: v for v in graph.variables}
            at = {v.name: 1 + i for v, i in self.values(k, range(len(inputs))).items()}
            renewed = dict(zip(graph.states, graph.heads[len(graph.outputs) :], strict=True))
            renewed = {at[name]: ref for name, ref in renewed.items()}
            there = {at[name]: (v, 0) for name, v in own.items()}
            nodes = [*graph.nodes]
            for i in states:
                if 1 + i not in there:
                    nodes.append(Node(None, name=f"state{i}", specs=(specs[i],)))
                    at[nodes[-1].name], there[1 + i] = 1 + i, (nodes[-1], 0)
            heads = [*graph.outputs, *({**there, **renewed}[1 + i] for i in states)]
            graph = fold(dce(Graph(nodes, heads)), walls=True, strict=False)
            graphs.append(dce(cse(graph)))
            places.append(at)
        values = [as_predicate(holds), *(x for x in inputs if isinstance(x, Symbol))]
        return only(tuple(branch(graphs, places, values)))


class While(Control):
    """Apply a graph, `func`, while another, `test`, is true.

    vars:    the inputs that are the initial loop variables.
    n_outs:  how many heads of `func` are stacked, in `max_iterations` rows; the others are the
             new loop variables.
    """

    name, doc, keys = "_while_loop", "A loop that a predicate ends.", ("cond", "func")

    def __init__(
        self,
        graphs: Iterable[Graph],
        locs: Iterable[Sequence[int]],
        places: Iterable[int],
        max_iterations: int,
    ) -> None:
        super().__init__(graphs, locs)
        self.vars, self.max_iterations = tuple(places), max_iterations
        self.n_outs = self.n_outputs - len(self.vars)

    def infer(self, specs: Sequence[Spec]) -> tuple[list[Spec], list[Spec]]:
        """Infer the specs; a loop variable keeps its shape and dtype."""
        now = list(specs)
        for _ in range(len(self.vars) + 1):
            (test,), heads = [self.learn(k, now) for k in range(2)]
            for j, (i, new) in enumerate(zip(self.vars, heads[self.n_outs :], strict=True)):
                now[i] = agreed(f"while_loop: loop variable {j}", now[i], new)
        check_predicate("while_loop: cond", test.shape)
        outs = [stacked(head, self.max_iterations) for head in heads[: self.n_outs]]
        return now, [*outs, *(now[i] for i in self.vars)]

    def expand(self, specs: Sequence[Spec], *inputs: Value, training: bool) -> Value | tuple:
        """Return a `Foreach` of a `Cond`, or for arrays run it; unrolled if it writes states."""
        holds = self.replayed(0, inputs)[0]
        if not isinstance(holds, Symbol):
            return self.run(specs, inputs)
        now, n, outs = [holds, *inputs], self.n_outs, []
        step, places = self.step(specs), [0, *(1 + i for i in self.vars)]
        if not (training and self.aux_places):
            loop, others = self.loop(step, places)
            row = OPS["_zeros"].applied((), {"shape": (self.max_iterations,)}, base=Symbol)
            values = as_tuple(loop(row, *(now[i] for i in (*places, *others))))
            return only((*values[:n], *values[n + 1 :]))
        places += [1 + i for i in self.aux_places]
        for _ in range(self.max_iterations):
            ins = [x.spec for x in now]
            values = as_tuple(step.expanded(ins, now, {}, training))
            outs.append(values[:n])
            for i, x in zip(places, values[n:], strict=False):
                now[i] = x
        stacks = [OPS["stack"](*column, axis=0) for column in zip(*outs, strict=True)]
        return only((*stacks, *(now[i] for i in places[1:])))

    def step(self, specs: Sequence[Spec]) -> Cond:
        """Return an iteration as a branch: (predicate, inputs) -> (outputs, next predicate, new
        loop variables)."""
        _, outs = self.infer(specs)
        with tracing(None), NameManager(), Prefix("step_"):
            holds, *ins = [var(f"in{i}") for i in range(1 + len(specs))]
            values = self.replayed(1, ins)
            new = dict(zip(self.vars, values[self.n_outs :], strict=True))
            now = [new.get(i, x) for i, x in enumerate(ins)]
            test = self.replayed(0, now)
            then = Group([*values[: self.n_outs], *test, *(new[i] for i in self.vars)])
            zeros = [
                OPS["_zeros"].applied(
                    (), {"shape": (s.shape or ())[1:], "dtype": s.dtype}, base=Symbol
                )
                for s in outs[: self.n_outs]
            ]
            other = Group([*zeros, holds, *(ins[i] for i in self.vars)])
        number = {x.refs[0][0]: i for i, x in enumerate([holds, *ins])}
        graphs = [Graph.of(each) for each in (holds, then, other)]
        return Cond(graphs, [[number[v] for v in g.variables] for g in graphs])

    def loop(self, step: Cond, states: Sequence[int]) -> tuple[Foreach, list[int]]:
        """Return (a loop over a dummy array, the inputs of `step` that aren't states)."""
        n_inputs = 1 + max(i for locs in step.locs for i in locs)
        ins = [Node(None, name=f"in{i}") for i in range(n_inputs)]
        row, node = Node(None, name="row"), Node(step, tuple((v, 0) for v in ins), {}, "step")
        others = [i for i in range(n_inputs) if i not in states]
        body = Graph([row, *ins, node], [(node, k) for k in range(step.n_outputs)])
        order = [row, *(ins[i] for i in (*states, *others))]
        return Foreach(body, order, 1, len(states)), others

    def run(self, specs: Sequence[Spec], inputs: Sequence[Value]) -> Value | tuple:
        """Run the loop on arrays."""
        now, rows = list(inputs), list[list]()
        while len(rows) < self.max_iterations and is_true(
            "while_loop: cond", self.replayed(0, now)[0]
        ):
            values = self.replayed(1, now)
            rows.append(values[: self.n_outs])
            for i, x in zip(self.vars, values[self.n_outs :], strict=True):
                now[i] = x
        taped = [now[i] for i in self.vars if now[i].node] if not rows else []
        outs = []
        for k, spec in enumerate(self.infer(specs)[1][: self.n_outs]):
            zeros = {"shape": (spec.shape or ())[1:], "dtype": spec.dtype}
            zero = OPS["_zeros"].applied((), zeros, base=type(now[0]))
            if taped and zero.ndim:  # zeros are on the tape as well, as in a plan
                tie = OPS["zeros_like"](OPS["sum"](taped[0])).astype(zero.dtype)
                zero = OPS["broadcast_add"](zero, tie)
            column = [row[k] for row in rows] + [zero] * (self.max_iterations - len(rows))
            outs.append(OPS["stack"](*column, axis=0))
        return only((*outs, *(now[i] for i in self.vars)))

    # -- files
    def heads_in_file(self, k: int) -> list[Symbol]:
        """Return the heads; an unused loop variable is read to make ones, a factor of a head."""
        heads, graph = super().heads_in_file(k), self.graphs[k]
        read = {n for node in graph.nodes for n, _ in node.inputs} | {n for n, _ in graph.heads}
        place = {i: v for v, i in self.values(k, range(1 + max(self.locs[k], default=0))).items()}
        for j, i in enumerate(self.vars if k == 1 else ()):
            v = place.get(i)
            if v is not None and v not in read:
                ones = OPS["ones_like"](Symbol([(v, 0)]))
                heads[self.n_outs + j] = OPS["elemwise_mul"](heads[self.n_outs + j], ones)
        return heads

    @property
    def mxnet_name(self) -> tuple[str, dict[str, str]]:
        """(name, attributes) in files."""
        name, attrs = super().mxnet_name
        locs = self.in_file()[1][1]
        return name, attrs | {
            "num_out_data": str(self.n_outs),
            "max_iterations": str(self.max_iterations),
            "func_var_locs": str(tuple(locs.index(i) for i in self.vars)),
        }


# -- predicates and variables ----------------------------------------------------------
def check_predicate(who: str, shape: tuple[int, ...] | None) -> None:
    """Refuse a predicate of several elements.

    Raises:  AttrError.
    """
    if shape is not None and -1 not in shape and Spec(shape, None).size != 1:
        raise AttrError(
            f"{who} has shape {shape}, but one element is needed; reduce it first, for "
            "example with (x > 0).sum(), or choose element by element with where"
        )


def is_true(who: str, predicate: Value) -> bool:
    """Return whether a one-element array is nonzero."""
    check_predicate(who, getattr(predicate, "shape", ()))
    return bool(predicate)


def as_predicate(holds: Symbol) -> Symbol:
    """Return a predicate of shape (1,), of a dtype that a compiled plan can test."""
    spec = holds.spec
    if spec.dtype.itemsize == 8 and spec.dtype.kind != "f":
        holds = OPS["Cast"](OPS["_not_equal_scalar"](holds, scalar=0), dtype="float32")
    if spec.shape != (1,):
        op, _, attrs = view_as((1,), holds.refs)
        holds = op(holds, **attrs)
    return holds


def shift_streams(graph: Graph, by: int) -> None:
    """Shift the random streams of a graph, to follow those of the enclosing graph."""
    for node in graph.nodes:
        if "stream" in node.attrs:
            node.attrs = {**node.attrs, "stream": node.attrs["stream"] + by}
        for inner in getattr(node.op, "graphs", ()):
            shift_streams(inner, by)


# -- files -----------------------------------------------------------------------------
def of_entry(entry: dict) -> Cond | While | None:
    """Return the operator that a node of a file describes; `None` if it has no subgraphs.

    Raises:  FileError for graphs and indices that don't match.
    """
    if "subgraphs" not in entry:
        return None
    kind = Cond if entry["op"] == "_cond" else While
    who = f"{kind.name} {entry['name'][:60]!r}"
    attrs, graphs = subgraphs_of(entry, who, len(kind.keys))
    n_inputs = len(entry.get("inputs", ()))
    try:
        locs = [shape(parsed(attrs.get(f"{key}_input_locs"))) for key in kind.keys]
        numbers = [
            integer(parsed(attrs.get(key)))
            for key in (("num_out_data", "max_iterations") if kind is While else ())
        ]
        places = shape(parsed(attrs.get("func_var_locs"))) if kind is While else ()
    except (ValueError, TypeError):
        locs, numbers, places = [], [], ()
    heads = [len(g.heads) for g in graphs]
    fits = [
        len(each) == len(g.variables) == len({*each}) and {*each} <= {*range(n_inputs)}
        for each, g in zip(locs, graphs, strict=False)
    ]
    if kind is While and all(fits) and len(numbers) == 2:
        fits += [
            numbers[0] >= 0 < numbers[1],
            numbers[0] + len(places) == heads[1],
            {*places} <= {*range(len(locs[1]))} and 0 < len(places) == len({*places}),
        ]
    if len(fits) < len(kind.keys) or not all(fits) or heads[0] != 1 or heads[1] != heads[-1]:
        raise FileError(
            f"{who}: each variable of its graphs must be one of its {n_inputs} inputs in "
            f"{', '.join(f'{key}_input_locs' for key in kind.keys)}, the first graph needs one "
            "head, and the heads of the others must be its outputs"
        )
    if kind is Cond:
        return Cond(graphs, locs)
    return While(graphs, locs, [locs[1][i] for i in places], numbers[1])
