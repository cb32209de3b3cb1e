"""If: a branch in a graph; only the side taken is executed.

Defines: `If`, the operator of two subgraphs of primitives, and its gradient.

    if predicate:               (one element; NaN counts as true, as in Python)
        outs = then(inputs)
    else:
        outs = other(inputs)

The gradient is a branch as well, so the side not taken contributes neither NaN nor work. It
recomputes its side, except for matrix products and random numbers, which are saved as
additional outputs.
Limits: targets without branches (GPUs, WebAssembly) compute both sides and select one (`lower`).
Inputs of the side not taken get zeros, where the tape stops: an infinite slope before them gives
NaN, and an output layer such as `SVMOutput`, which ignores an incoming gradient, its own gradient.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np

from minihybrid.core.graph import Graph, apply
from minihybrid.core.op import Node, Spec
from minihybrid.core.passes import dce, plan_memory
from minihybrid.core.passes.gradient import gradient_of, kept_name, seed_names
from minihybrid.core.passes.memory import Memory
from minihybrid.core.sym import Symbol, as_symbol, replay
from minihybrid.ops import OPS
from minihybrid.ops.elementwise import choose, nothing_like
from minihybrid.ops.infix import Value
from minihybrid.ops.layout import view_as
from minihybrid.passes.reduction_schedule import scratch_of
from minihybrid.passes.scan import GraphOp, as_tuple, constants, products_of, whole_lines


class If(GraphOp):
    """One of two graphs of primitives with the same outputs.

    graphs:  the side for a true predicate, then the other.
    places:  for each, a variable's name -> index of the operator's input; input 0 is the
             predicate.
    """

    name, doc, nested = "_if", __doc__, True
    gradients: dict[tuple, tuple]  # outputs with an output gradient -> result of `_backward`

    def __init__(self, graphs: Iterable[Graph], places: Iterable[Mapping[str, int]]) -> None:
        super().__init__()
        self.graphs, self.places, self.gradients = tuple(graphs), tuple(places), {}

    @property
    def n_outputs(self) -> int:
        """The number of outputs of each side."""
        return len(self.graphs[0].heads)

    @cached_property
    def random(self) -> bool:
        """Whether a side draws random numbers."""
        return any(map(draws, self.graphs))

    def having(self, run: Callable[[Graph], Graph]) -> "If":
        """Return this branch with a pass applied to each side."""
        return If(map(run, self.graphs), self.places)

    def narrowed(self, outs: Sequence[int]) -> tuple["If", list[int]]:
        """Return (the branch with these outputs only, the indices of the inputs it uses)."""
        graphs = [dce(g.rebuilt(g.nodes, [g.heads[k] for k in outs])) for g in self.graphs]
        sides = [*zip(graphs, self.places, strict=True)]
        read = sorted({0}.union(*([p[v.name] for v in g.variables] for g, p in sides)))
        at = {k: i for i, k in enumerate(read)}
        return If(graphs, [{v.name: at[p[v.name]] for v in g.variables} for g, p in sides]), read

    def inside(self, specs: Sequence[Spec]) -> tuple[Graph, ...]:
        """Return the graphs of both sides, whose specs are known."""
        return self.graphs

    def infer(self, specs: Sequence[Spec], **_: int) -> tuple[list[Spec], list[Spec]]:
        """Return the specs, which follow from those in the graphs."""
        return list(specs), [n.specs[i] for n, i in self.graphs[0].heads]

    def eager(self, *inputs: np.ndarray, key: int = 0, **_: int) -> np.ndarray | tuple:
        """Run the side taken on NumPy arrays."""
        side = 0 if inputs[0].reshape(-1)[0] != 0 else 1
        values = {name: inputs[k] for name, k in self.places[side].items()}
        outs = tuple(self.graphs[side].evaluate(values, key))
        return outs if len(outs) > 1 else outs[0]

    def lower(self, specs: Sequence[Spec], *inputs: Symbol, **_: int) -> Symbol:
        """Compute both sides and select one."""
        sides = []
        for graph, places in zip(self.graphs, self.places, strict=True):
            values = {v: inputs[places[v.name]] for v in graph.variables}
            sides.append(replay(graph.heads, constants(graph) | values))
        return as_symbol(tuple(selected(inputs[0], *pair) for pair in zip(*sides, strict=True)))

    # -- the gradient
    def grad(self, g: Value | tuple, out: Value | tuple, *inputs: Value, **_: int) -> tuple:
        """Differentiate the side taken; inputs of only the other side get zeros."""
        gs, outs = (x if isinstance(x, tuple) else (x,) for x in (g, out))
        present = tuple(i for i, x in enumerate(gs) if x is not None)
        if present not in self.gradients:
            self.gradients[present] = self._backward(present, len(inputs))
        op, reached, read, saved = self.gradients[present]
        if not reached:
            return (None,) * len(inputs)
        values = [*inputs, *(gs[i] for i in present), *(outs[k] for k in saved)]
        grads = dict(zip(reached, as_tuple(op(*(values[k] for k in read))), strict=True))
        return tuple(grads.get(k) for k in range(len(inputs)))

    def _backward(self, present: tuple[int, ...], n_inputs: int) -> tuple:
        """Return (branch, inputs with a gradient, values it reads, outputs among those)."""
        sides, saved = [], []
        for graph in self.graphs:
            own = [k for k, ref in enumerate(graph.heads) if ref in costly(graph)]
            wrt = [v.name for v in graph.variables if v.specs[0].dtype.kind != "b"]
            sides.append(gradient_of(graph, wrt, present, own))
            saved += own
        reached = sorted(
            {p[name] for (_, names), p in zip(sides, self.places, strict=True) for name in names}
        )
        at = n_inputs + len(present)
        graphs, all_places = [], []
        for graph, places, (side, names) in zip(self.graphs, self.places, sides, strict=True):
            seeds, name = seed_names(graph), kept_name(graph)
            now = dict(places) | {seeds[i]: n_inputs + j for j, i in enumerate(present)}
            now |= {f"{name}{k}": at + j for j, k in enumerate(saved)}
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
        return back, reached, read, saved

    def spec_of(self, k: int) -> Spec:
        """Return the spec of an input, from a side that reads it."""
        return next(
            v.specs[0]
            for graph, places in zip(self.graphs, self.places, strict=True)
            for v in graph.variables
            if places[v.name] == k
        )

    # -- for compiled branches
    @cached_property
    def memories(self) -> list[Memory]:
        """The memory plan of each side; both use the same memory."""
        return [plan_memory(graph, scratch_of) for graph in self.graphs]

    def scratch(self, ins: Sequence[Spec], outs: Sequence[Spec], **_: int) -> int:
        """Return the scratch memory, with a flag per side, in elements of the first output."""
        nbytes = self.flags[-1] + max(whole_lines(m.nbytes) for m in self.memories)
        return -(-nbytes // np.dtype(outs[0].dtype).itemsize)

    flags = 0, whole_lines(1), 2 * whole_lines(1)  # offsets of both flags and, last, of the sides


def selected(predicate: Symbol, a: Symbol, b: Symbol) -> Symbol:
    """Select one of two values of the same shape."""
    if a.spec.shape == ():  # a predicate of shape (1,) would broadcast it
        op, _, attrs = view_as((), predicate.refs)
        predicate = op(predicate, **attrs)
    return choose(predicate, a, b)


def draws(graph: Graph) -> bool:
    """Return whether a graph, fused or not, draws random numbers."""
    return any(
        draws(n.attrs["graph"]) if "graph" in n.attrs else n.op is not None and n.op.random
        for n in graph.nodes
    )


def costly(graph: Graph) -> list[tuple[Node, int]]:
    """Return the values that a gradient loads instead of recomputing."""
    random = [n for n in graph.nodes if n.op is not None and n.op.random]
    return products_of(graph) + [(n, i) for n in random for i in range(n.n_outputs)]


def branch(
    graphs: Sequence[Graph], places: Sequence[Mapping[str, int]], inputs: Sequence[Symbol]
) -> list[Symbol]:
    """Return the outputs of an `If` that also outputs the values its gradient loads."""
    more = [[ref for ref in costly(g) if ref not in g.heads] for g in graphs]
    sides = []
    for k, graph in enumerate(graphs):
        nodes = [*graph.nodes]
        for node, i in more[1 - k]:  # zeros for values that the other side saves
            spec = node.specs[i]
            zeros = {"shape": spec.shape, "dtype": spec.dtype}
            nodes.append(apply(OPS["_zeros"], (), zeros, f"no_{node.name}"))
        others = [(n, 0) for n in nodes[len(graph.nodes) :]]
        saved = [*more[0], *others] if k == 0 else [*others, *more[1]]
        sides.append(Graph(nodes, [*graph.heads, *saved]))
    return list(as_tuple(If(sides, places)(*inputs)))[: len(graphs[0].heads)]
