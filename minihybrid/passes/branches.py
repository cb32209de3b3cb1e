"""If: a branch in a graph, of which only the side that is taken runs.

Takes:   two graphs of primitives, and which of the inputs each of their variables is.
Gives:   `If`, such a branch as an operator definition, with its gradient.

    if predicate:               (one element; NaN counts as true, as in Python)
        outs = then(inputs)
    else:
        outs = other(inputs)

The gradient is a branch, too, so it has no part of the side that isn't taken: no NaN, and no
work. It computes its side again, except for matrix products and random numbers, which are
additional outputs.
What is left out: targets without branches (GPUs, files of NumPy or WebAssembly), for which `lower`
computes both sides and selects one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np

from minihybrid.core.graph import Graph, apply
from minihybrid.core.op import Checked, Node, Op, Spec
from minihybrid.core.passes import dce, plan_memory
from minihybrid.core.passes.gradient import gradient_of, kept_name, seed_names
from minihybrid.core.passes.memory import Memory
from minihybrid.core.sym import Symbol, as_symbol, replay
from minihybrid.core.tracing import CURRENT
from minihybrid.ops import OPS
from minihybrid.ops.elementwise import choose, nothing_like
from minihybrid.ops.infix import Value
from minihybrid.ops.layout import view_as
from minihybrid.passes.reduction_schedule import scratch_of
from minihybrid.passes.scan import as_tuple, products_of, whole_lines


class If(Op):
    """One of two graphs of primitives with the same outputs.

    graphs:  the side for a true predicate, and the other one.
    places:  for each, a variable's name -> the number of the operator's input that it is; input
             0 is the predicate.
    """

    name, doc = "_if", __doc__
    inputs, variadic, attrs, nested, any_dtype = ("data",), True, {}, True, True
    checked: Checked
    readers: dict
    gradients: dict[tuple, tuple]  # which outputs' gradients come in -> what `_backward` gives
    __setattr__ = object.__setattr__  # unlike other records, made for one node

    def __init__(self, graphs: Iterable[Graph], places: Iterable[Mapping[str, int]]) -> None:
        self.graphs, self.places = tuple(graphs), tuple(places)
        self.checked, self.readers, self.gradients = Checked(), {}, {}

    @property
    def n_outputs(self) -> int:
        """Those of each side."""
        return len(self.graphs[0].heads)

    @cached_property
    def random(self) -> bool:
        """Whether a side draws random numbers."""
        return any(map(draws, self.graphs))

    def having(self, run: Callable[[Graph], Graph]) -> "If":
        """The same branch with a pass applied to each side."""
        return If(map(run, self.graphs), self.places)

    def narrowed(self, outs: Sequence[int]) -> tuple["If", list[int]]:
        """(the branch with these outputs only, the numbers of the inputs that it reads)."""
        graphs = [dce(g.rebuilt(g.nodes, [g.heads[k] for k in outs])) for g in self.graphs]
        sides = [*zip(graphs, self.places, strict=True)]
        read = sorted({0}.union(*([p[v.name] for v in g.variables] for g, p in sides)))
        at = {k: i for i, k in enumerate(read)}
        return If(graphs, [{v.name: at[p[v.name]] for v in g.variables} for g, p in sides]), read

    def inside(self, specs: Sequence[Spec]) -> tuple[Graph, ...]:
        """The graphs of the sides, whose specs are known."""
        return self.graphs

    def infer(self, specs: Sequence[Spec], **_: int) -> tuple[list[Spec], list[Spec]]:
        """The shapes inside are known."""
        return list(specs), [n.specs[i] for n, i in self.graphs[0].heads]

    def eager(self, *inputs: np.ndarray, key: int = 0, **_: int) -> np.ndarray | tuple:
        """The side that the predicate chooses, on NumPy's arrays."""
        side = 0 if inputs[0].reshape(-1)[0] != 0 else 1
        values = {name: inputs[k] for name, k in self.places[side].items()}
        outs = tuple(self.graphs[side].evaluate(values, key))
        return outs if len(outs) > 1 else outs[0]

    def lower(self, specs: Sequence[Spec], *inputs: Symbol, **_: int) -> Symbol:
        """Both sides, and a selection."""
        sides, trace = [], CURRENT.trace
        assert trace is not None
        for graph, places in zip(self.graphs, self.places, strict=True):
            values = {}
            for n in graph.nodes:
                if n.op is None and n.values is not None:
                    if n not in trace.known:
                        trace.add(n)
                    values[n] = Symbol([(n, 0)])
                elif n.op is None:
                    values[n] = inputs[places[n.name]]
            sides.append(replay(graph.heads, values))
        return as_symbol(tuple(selected(inputs[0], *pair) for pair in zip(*sides, strict=True)))

    # -- the gradient
    def grad(self, g: Value | tuple, out: Value | tuple, *inputs: Value, **_: int) -> tuple:
        """The gradient of the side that was taken; of the other one, zeros."""
        gs, outs = (x if isinstance(x, tuple) else (x,) for x in (g, out))
        present = tuple(i for i, x in enumerate(gs) if x is not None)
        if present not in self.gradients:
            self.gradients[present] = self._backward(present, len(inputs))
        op, reached, read, kept = self.gradients[present]
        if not reached:
            return (None,) * len(inputs)
        values = [*inputs, *(gs[i] for i in present), *(outs[k] for k in kept)]
        grads = dict(zip(reached, as_tuple(op(*(values[k] for k in read))), strict=True))
        return tuple(grads.get(k) for k in range(len(inputs)))

    def _backward(self, present: tuple[int, ...], n_inputs: int) -> tuple:
        """(branch, inputs with a gradient, what it reads, outputs that it reads)."""
        sides, kept = [], []
        for graph in self.graphs:
            own = [k for k, ref in enumerate(graph.heads) if ref in costly(graph)]
            wanted = [v.name for v in graph.variables if v.specs[0].dtype.kind != "b"]
            sides.append(gradient_of(graph, wanted, present, own))
            kept += own
        reached = sorted(
            {p[name] for (_, names), p in zip(sides, self.places, strict=True) for name in names}
        )
        at = n_inputs + len(present)
        graphs, all_places = [], []
        for graph, places, (side, names) in zip(self.graphs, self.places, sides, strict=True):
            seeds, name = seed_names(graph), kept_name(graph)
            now = dict(places) | {seeds[i]: n_inputs + j for j, i in enumerate(present)}
            now |= {f"{name}{k}": at + j for j, k in enumerate(kept)}
            grads = {places[n]: ref for n, ref in zip(names, side.heads, strict=True)}
            nodes, there = [*side.nodes], {now[v.name]: v for v in side.variables}
            for k in reached:
                if k not in grads:
                    if k not in there:
                        there[k] = Node(None, name=f"of_other{k}", specs=(self.spec_of(k),))
                        now[there[k].name] = k
                        nodes.insert(0, there[k])
                    op, ins, attrs = nothing_like((there[k], 0))
                    nodes.append(apply(op, ins, attrs, f"none{k}"))
                    grads[k] = nodes[-1], 0
            graphs.append(Graph(nodes, [grads[k] for k in reached]))
            all_places.append(now)
        if not reached:
            return None, (), (), ()
        back, read = If(graphs, all_places).narrowed(range(len(reached)))
        return back, reached, read, kept

    def spec_of(self, k: int) -> Spec:
        """What the sides know of an input."""
        return next(
            v.specs[0]
            for graph, places in zip(self.graphs, self.places, strict=True)
            for v in graph.variables
            if places[v.name] == k
        )

    # -- for compiled branches
    @cached_property
    def memories(self) -> list[Memory]:
        """Where the values of each side lie; the sides share their memory."""
        return [plan_memory(graph, scratch_of) for graph in self.graphs]

    def scratch(self, ins: Sequence[Spec], outs: Sequence[Spec], **_: int) -> int:
        """How many numbers of the first output's dtype a side takes, beside a flag for each."""
        nbytes = self.flags[-1] + max(whole_lines(m.nbytes) for m in self.memories)
        return -(-nbytes // np.dtype(outs[0].dtype).itemsize)

    flags = 0, whole_lines(1), 2 * whole_lines(1)  # where the flags end, and the sides begin


def selected(predicate: Symbol, a: Symbol, b: Symbol) -> Symbol:
    """One of two values of the same shape."""
    if a.spec.shape == ():  # which a predicate with an axis would stretch
        op, _, attrs = view_as((), predicate.refs)
        predicate = op(predicate, **attrs)
    return choose(predicate, a, b)


def draws(graph: Graph) -> bool:
    """Whether a graph, fused or not, draws random numbers."""
    return any(
        draws(n.attrs["graph"]) if "graph" in n.attrs else n.op is not None and n.op.random
        for n in graph.nodes
    )


def costly(graph: Graph) -> list[tuple[Node, int]]:
    """The values that a gradient reads instead of computing them again."""
    random = [n for n in graph.nodes if n.op is not None and n.op.random]
    return products_of(graph) + [(n, i) for n in random for i in range(n.n_outputs)]


def branch(
    graphs: Sequence[Graph], places: Sequence[Mapping[str, int]], inputs: Sequence[Symbol]
) -> list[Symbol]:
    """The outputs of `If` with what its gradient reads as additional outputs."""
    more = [[ref for ref in costly(g) if ref not in g.heads] for g in graphs]
    sides = []
    for k, graph in enumerate(graphs):
        nodes = [*graph.nodes]
        for node, i in more[1 - k]:  # what the other side keeps
            spec = node.specs[i]
            zeros = {"shape": spec.shape, "dtype": spec.dtype}
            nodes.append(apply(OPS["_zeros"], (), zeros, f"no_{node.name}"))
        others = [(n, 0) for n in nodes[len(graph.nodes) :]]
        kept = [*more[0], *others] if k == 0 else [*others, *more[1]]
        sides.append(Graph(nodes, [*graph.heads, *kept]))
    return list(as_tuple(If(sides, places)(*inputs)))[: len(graphs[0].heads)]
