"""Scan: a loop in a graph, whose body is a subgraph traced once.

Defines: `Scan`, an operator of such a loop and its gradient; `Loop`, the base class it shares
         with MXNet's operator `_foreach`.

An iteration reads a row of each scanned array, the states, and loop-invariant inputs. It
computes a row of each output and the states of the next iteration:

    for i in 0, 1, ..., n - 1:      (backwards: n - 1, ..., 0)
        outs[i], states[i + 1] = step(rows[i], states[i], others)

The forward pass saves all states, one more than there are iterations, and all matrix products.
The gradient is a loop in the opposite direction, whose iterations recompute everything else
(rematerialization).
Source:  rematerialization: Chen and others, Training Deep Nets with Sublinear Memory Cost,
         2016.
Limits: an output layer such as `LogisticRegressionOutput`, which ignores an incoming gradient,
adds its own in each iteration, whichever is read; recomputing one changes second derivatives.
Not supported: a trip count that depends on values; random operators; nested loops.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial

import numpy as np

from minihybrid.core.graph import Graph, topological
from minihybrid.core.name import NameManager
from minihybrid.core.op import Checked, Node, Op, ShapeError, Spec
from minihybrid.core.passes import cse, dce, fold, plan_memory
from minihybrid.core.passes.gradient import gradient_of, kept_name, seed_names
from minihybrid.core.passes.memory import ALIGN, Memory
from minihybrid.core.passes.rewrite import rewrite
from minihybrid.core.sym import Symbol, as_symbol, replay, var
from minihybrid.core.tracing import CURRENT, Trace, tracing
from minihybrid.ops.convolution import conv
from minihybrid.ops.elementwise import zeros_like
from minihybrid.ops.infix import Value
from minihybrid.ops.joining import stack
from minihybrid.ops.layout import reshape, slice_axis
from minihybrid.ops.neural import batch_dot, fully_connected, matmul
from minihybrid.passes.lower import recorded
from minihybrid.passes.reduction_schedule import Ref, scratch_of

PRODUCTS, SUM = (matmul, batch_dot, fully_connected, conv), "{a} + {b}"


class GraphOp(Op):
    """The base class of operators with subgraphs; unlike others, each belongs to one node."""

    variadic, attrs, any_dtype = True, {}, True
    checked: Checked
    readers: dict
    __setattr__ = object.__setattr__

    def __init__(self) -> None:
        self.checked, self.readers = Checked(), {}


class Loop(GraphOp):
    """The base class of loop operators. Each loop is its own operator, as it has its own body.

    body:    the graph of one iteration. Its heads are a row of each output, then the states of
             the next iteration.
    ins:     its variables, in the order of the operator's inputs: rows, states, others.
    n_rows, n_states: how many of `ins` these are;  n_outs: how many outputs are stacked.
    """

    nested = True

    def __init__(self, body: Graph, ins: Iterable[Node], n_rows: int, n_states: int) -> None:
        super().__init__()
        self.body, self.ins, self.n_rows, self.n_states = body, tuple(ins), n_rows, n_states
        self.n_outs = len(body.heads) - n_states

    def sorted(self, values: Sequence) -> tuple[list, list, list]:
        """Split values, one per input, into (rows, states, others)."""
        first, last = self.n_rows, self.n_rows + self.n_states
        return list(values[:first]), list(values[first:last]), list(values[last:])

    def unrolled(self, order: range, inputs: Sequence[Value]) -> tuple[Value, ...]:
        """Return all outputs of `Scan`, computed by the unrolled loop.

        order:   the row index of each iteration;  inputs: arrays or symbols.
        """
        rows, states, others = self.sorted(inputs)
        outs, seen, folded = {}, [states], constants(self.body)
        for i in order:
            now = [
                reshape(slice_axis(x, axis=0, begin=i, end=i + 1), shape=v.specs[0].shape)
                for x, v in zip(rows, self.ins, strict=False)
            ]
            bound = dict(zip(self.ins, [*now, *states, *others], strict=True))
            values = replay(self.body.heads, folded | bound)
            outs[i], states = values[: self.n_outs], values[self.n_outs :]
            seen.append(states)
        columns = [
            *zip(*(outs[i] for i in sorted(outs)), strict=True),
            *zip(*seen[:: order.step], strict=True),
        ]
        stacks = [stack(*column, axis=0) for column in columns]
        return (*stacks[: self.n_outs], *states, *stacks[self.n_outs :])


class Scan(Loop):
    """A loop of primitives whose shapes are known.

    length:  the trip count;  reverse: whether iterations go from the last row to the first.
    final_only: indices of states whose final value alone is saved.
    Outputs: the stacked outputs; the final states; for each state not in `final_only`, the
             stack of its length + 1 values. The value before iteration i is row i of the
             stack, or row i + 1 in a reverse loop.
    """

    name = "_turns"
    doc = __doc__

    def __init__(
        self,
        body: Graph,
        ins: Iterable[Node],
        n_rows: int,
        n_states: int,
        length: int,
        reverse: bool = False,
        final_only: Iterable[int] = (),
    ) -> None:
        super().__init__(body, ins, n_rows, n_states)
        self.length, self.reverse, self.final_only = length, reverse, frozenset(final_only)
        self.gradients: dict[tuple, tuple] = {}  # arguments of `_backward` -> its result
        self.stacked = [j for j in range(n_states) if j not in self.final_only]

    @property
    def n_outputs(self) -> int:
        """The number of outputs, final states and stacks of states."""
        return self.n_outs + self.n_states + len(self.stacked)

    def having(self, run: Callable[[Graph], Graph]) -> "Scan":
        """Return this loop with a pass applied to its body."""
        sizes = self.n_rows, self.n_states, self.length, self.reverse, self.final_only
        return Scan(run(self.body), self.ins, *sizes)

    def narrowed(self) -> tuple["Scan", list[int]]:
        """Return (this loop without unused inputs, the indices of the remaining ones)."""
        there, states = set(self.body.variables), range(self.n_rows, self.n_rows + self.n_states)
        read = [k for k, v in enumerate(self.ins) if v in there or k in states]
        ins, n_rows = [self.ins[k] for k in read], sum(k < self.n_rows for k in read)
        sizes = n_rows, self.n_states, self.length, self.reverse, self.final_only
        return Scan(self.body, ins, *sizes), read

    def inside(self, specs: Sequence[Spec]) -> list[Graph]:
        """Return the body, whose specs are known."""
        return [self.body]

    @property
    def order(self) -> range:
        """The row index of each iteration."""
        return range(self.length)[:: -1 if self.reverse else 1]

    def infer(self, specs: Sequence[Spec]) -> tuple[list, list]:
        """Return the specs, which follow from those in the body."""
        heads = [n.specs[i] for n, i in self.body.heads]
        rows, states, others = self.sorted([v.specs[0] for v in self.ins])
        for j, (old, new) in enumerate(zip(states, heads[self.n_outs :], strict=True)):
            if old != new:
                raise ShapeError(f"foreach: state {j} is {old}, but its new value {new}")
        rows = [stacked(row, self.length) for row in rows]
        outs = [stacked(head, self.length) for head in heads[: self.n_outs]]
        stacks = [stacked(states[j], self.length + 1) for j in self.stacked]
        return [*rows, *states, *others], [*outs, *states, *stacks]

    def eager(self, *inputs: np.ndarray) -> np.ndarray | tuple[np.ndarray, ...]:
        """Run the loop on NumPy arrays."""
        rows, states, others = self.sorted(inputs)
        _, specs = self.infer(())
        results = [np.empty(s.shape, s.dtype) for s in specs]
        outs, last = results[: self.n_outs], results[self.n_outs :][: self.n_states]
        stacks = dict(zip(self.stacked, results[self.n_outs + self.n_states :], strict=True))
        for j, full in stacks.items():
            full[self.length if self.reverse else 0] = states[j]
        names = [v.name for v in self.ins]
        for i in self.order:
            args = [*(x[i] for x in rows), *states, *others]
            values = self.body.evaluate(dict(zip(names, args, strict=True)))
            for full, value in zip(outs, values, strict=False):
                full[i] = value
            states = values[self.n_outs :]
            for j, full in stacks.items():
                full[i if self.reverse else i + 1] = states[j]
        for place, value in zip(last, states, strict=True):
            place[...] = value
        return tuple(results) if len(results) > 1 else results[0]

    def lower(self, specs: Sequence[Spec], *inputs: Symbol) -> Symbol:
        """Unroll the loop, for a target without loops around its kernels."""
        outputs = self.unrolled(self.order, inputs)
        last = self.n_outs + self.n_states
        return as_symbol((*outputs[:last], *(outputs[last + j] for j in self.stacked)))

    def states_needed(self, outs: Iterable[int], read: Iterable[int]) -> list[int]:
        """Return the states that these outputs need in any iteration, and those in `read`."""
        needed = set(read)
        while True:
            heads = [self.body.heads[k] for k in (*outs, *(self.n_outs + j for j in needed))]
            seen = set(topological(heads))
            more = [j for j in range(self.n_states) if self.ins[self.n_rows + j] in seen]
            if needed.issuperset(more):
                return sorted(needed)
            needed.update(more)

    # -- the gradient
    @property
    def saved(self) -> list[int]:
        """The indices of the outputs that iterations of the gradient read."""
        return [k for k, (n, _) in enumerate(self.body.heads[: self.n_outs]) if has_product(n)]

    def grad(
        self, g: Value | tuple, out: Value | tuple, *inputs: Value
    ) -> tuple[Value | None, ...]:
        """Build the gradient loop, in the opposite direction; it carries state gradients."""
        gs, outs = (x if isinstance(x, tuple) else (x,) for x in (g, out))
        if self.final_only:  # the gradient reads all states
            sizes = self.n_rows, self.n_states, self.length, self.reverse
            whole, missing = Scan(self.body, self.ins, *sizes), (None,) * self.n_states
            gs = (*gs[: self.n_outs + self.n_states], *missing)
            return whole.grad(gs, as_tuple(whole(*inputs)), *inputs)
        last = self.n_outs + self.n_states
        stacks, from_stacks = outs[last:], gs[last:]
        present = tuple(i for i in range(self.n_outs) if gs[i] is not None)
        beside = tuple(j for j, x in enumerate(from_stacks) if x is not None)
        seeded = tuple(j for j, x in enumerate(gs[self.n_outs : last]) if x is not None)
        key = present, beside, seeded
        if key not in self.gradients:
            self.gradients[key] = self._backward(*key)
        op, read, flow, saved, row_inputs, sums, hoisted = self.gradients[key]
        before = int(self.reverse)  # offset in a stack of the states before each iteration

        def rows(full: Value) -> Value:
            return slice_axis(full, axis=0, begin=before, end=before + self.length)

        def end(j: int) -> Value:
            at = 0 if self.reverse else self.length
            part = slice_axis(from_stacks[j], axis=0, begin=at, end=at + 1)
            return reshape(part, shape=self.ins[self.n_rows + j].specs[0].shape)

        carried = []
        for j in flow:
            seeds = [gs[self.n_outs + j], end(j) if j in beside else None]
            seeds = [x for x in seeds if x is not None] or [zeros_like(outs[self.n_outs + j])]
            carried.append(sum(seeds[1:], seeds[0]))
        data, _, others = self.sorted(inputs)
        values = [*data, *(gs[i] for i in present), *map(rows, stacks), *(outs[k] for k in saved)]
        values += [rows(from_stacks[j]) for j in beside]
        all_inputs = *values, *carried, *(zeros_like(inputs[k]) for k in sums), *others
        result = as_tuple(op(*(all_inputs[k] for k in read))) if op.body.heads else ()
        grads = dict(zip(row_inputs, result, strict=False))
        ends = [*(self.n_rows + j for j in flow), *sums]
        grads |= dict(zip(ends, result[op.n_outs :], strict=False))
        for k, node, places in hoisted:
            parts = [as_one(result[i] if computed else values[i], v) for computed, i, v in places]
            grads[k] = node.op(*parts, **node.attrs)
        return tuple(grads.get(k) for k in range(len(inputs)))

    def _backward(
        self, present: tuple[int, ...], beside: tuple[int, ...], seeded: tuple[int, ...]
    ) -> tuple:
        """Return (loop, read, states, saved, rows, sums, hoisted) of the gradient: the inputs it
        reads, the states with a gradient, the outputs it reads, and the inputs with a gradient:
        rows, those accumulated in each iteration, and those computed after the loop.

        present: outputs that have an output gradient;  beside: such stacks of states;
        seeded:  such final states.

        A sum over rows, such as a weight's gradient, is hoisted: it is computed once from the
        rows of all iterations. `hoisted` holds its node and the places of these rows.
        """
        heads, names = self.body.heads, seed_names(self.body)
        dtypes = [n.specs[i].dtype for n, i in heads]
        flow = self.states_needed(present, (*beside, *seeded))
        flow = [j for j in flow if dtypes[self.n_outs + j].kind != "b"]
        seeds = [*present, *(self.n_outs + j for j in flow)]
        read = set(self.body.variables)
        wrt = [v.name for v in self.ins if v in read and v.specs[0].dtype.kind != "b"]
        graph, reached = gradient_of(self.body, wrt, seeds, self.saved)
        place = {v.name: k for k, v in enumerate(self.ins)}
        indices = sorted(place[name] for name in reached)
        with tracing(Trace(lower=True)) as trace, NameManager():
            trace.nodes += graph.nodes
            trace.known.update(graph.nodes)
            there = {v.name: Symbol([(v, 0)]) for v in graph.variables}
            name = kept_name(self.body)
            saved = [k for k in self.saved if f"{name}{k}" in there]

            def variable(name: str, spec: Spec) -> Symbol:
                return there[name] if name in there else var(name, spec=spec)

            own = [variable(v.name, v.specs[0]) for v in self.ins]
            data, states, others = self.sorted(own)
            seed = {i: variable(names[i], heads[i][0].specs[heads[i][1]]) for i in seeds}
            more = {j: var(f"of_stack{j}", spec=states[j].spec) for j in beside}
            grads = {place[n]: Symbol([r]) for n, r in zip(reached, graph.heads, strict=True)}
            rows = [*data, *(seed[i] for i in present), *states]
            rows += [*(there[f"{name}{k}"] for k in saved), *more.values()]
            outs: dict[int | Ref, Symbol] = {k: grads[k] for k in indices if k < self.n_rows}
            hoisted = []
            first = self.n_rows + self.n_states  # index of the first of `others`
            fixed = {*self.ins[first:]}
            for k in indices:
                node = grads[k].refs[0][0]
                if k >= first and adds_rows(node) and not fixed & {n for n, _ in node.inputs}:
                    hoisted.append((k, node, places_of(node, rows, outs)))
            sums = [k for k in indices if k >= first and k not in {k for k, *_ in hoisted}]
            totals = [var(f"sum{k}", spec=own[k].spec) for k in sums]
            new = []
            for j in flow:
                k = self.n_rows + j
                state = grads[k] if k in grads else zeros_like(states[j])
                new.append(state + more[j] if j in more else state)
            new += [total + grads[k] for k, total in zip(sums, totals, strict=True)]
        carried = [*(seed[self.n_outs + j] for j in flow), *totals]
        loop = Loop(
            Graph(trace.nodes, [s.refs[0] for s in (*outs.values(), *new)]),
            [s.refs[0][0] for s in (*rows, *carried, *others)],
            len(rows),
            len(carried),
        )
        final_only = range(len(flow), len(carried))  # only a complete sum is read
        op, needed = scan(loop.body, loop, self.length, not self.reverse, final_only).narrowed()
        return op, needed, flow, saved, [k for k in indices if k < self.n_rows], sums, hoisted

    # -- for compiled loops
    @cached_property
    def memory(self) -> Memory:
        """The memory plan of one iteration, the same for each; new values of states in
        `final_only` come after it.
        """
        return plan_memory(self.body, scratch_of)

    def scratch(self, ins: Sequence[Spec], outs: Sequence) -> int:
        """Return the scratch memory of an iteration, in elements of the first output's dtype."""
        return -(-self.places[1] // outs[0].dtype.itemsize)

    @property
    def places(self) -> tuple[dict[int, int], int]:
        """(final_only state -> offset of its new value after the arena, total bytes)."""
        at, offsets = whole_lines(self.memory.nbytes), {}
        for j in sorted(self.final_only):
            offsets[j] = at
            at += whole_lines(self.ins[self.n_rows + j].specs[0].nbytes)
        return offsets, at


def adds_rows(node: Node) -> bool:
    """Return whether a node sums over the rows of its inputs, none of them empty."""
    sizes = [n.specs[i].size for n, i in node.inputs]
    return node.op and node.op.adds_rows and all(sizes) and node.op.adds_rows(**node.attrs)


def places_of(
    node: Node, rows: Iterable[Symbol], outs: dict[int | Ref, Symbol]
) -> list[tuple[bool, int, Ref]]:
    """Return the place of each input of a node: (whether it is an output, index, reference).

    rows:    symbols of the loop's rows;  outs: symbols of its outputs; any other input is
             added to them.
    """
    ins, locations = [s.refs[0] for s in rows], []
    for ref in node.inputs:
        out_refs = [s.refs[0] for s in outs.values()]
        if ref not in ins and ref not in out_refs:
            outs[ref] = Symbol([ref])
            out_refs.append(ref)
        locations.append((ref not in ins, (ins if ref in ins else out_refs).index(ref), ref))
    return locations


def as_one(rows: Value, ref: Ref) -> Value:
    """Return the rows of all iterations concatenated into one array."""
    spec = ref[0].specs[ref[1]]
    return reshape(rows, shape=(-1, *spec.shape[1:]))


def whole_lines(nbytes: int) -> int:
    """Round bytes up to whole cache lines."""
    return -(-nbytes // ALIGN) * ALIGN


def constants(graph: Graph) -> dict[Node, Symbol]:
    """Return constant of a body -> its copy, added to the current trace."""
    copies = {
        n: Node(None, name=n.name, specs=n.specs, values=n.values)
        for n in graph.nodes
        if n.op is None and n.values is not None
    }
    for copy in copies.values():
        assert CURRENT.trace is not None
        CURRENT.trace.add(copy)
    return {n: Symbol([(copy, 0)]) for n, copy in copies.items()}


def scan(
    body: Graph,
    like: Loop,
    length: int,
    reverse: bool = False,
    final_only: Iterable[int] = (),
    products: bool = False,
) -> Scan:
    """Simplify a graph of primitives, except for gradient barriers, and return its `Scan`.

    like:    a `Loop` with the variables of the body and the number of rows and states.
    products: whether to append matrix products to the outputs: loading them is cheaper for
             a gradient than recomputing them, and passes remove unused outputs.
    """
    body = dce(cse(fold(dce(without_loops(body)), walls=True)))
    if products:
        n, heads = like.n_outs, body.heads
        more = [ref for ref in products_of(body) if ref not in heads]
        body = body.rebuilt(body.nodes, [*heads[:n], *more, *heads[n:]])
    return Scan(body, like.ins, like.n_rows, like.n_states, length, reverse, final_only)


def has_product(node: Node) -> bool:
    """Return whether a value is a matrix product, or a sum with one as an operand."""
    if node.op is None or node.op.expr != SUM:
        return node.op in PRODUCTS
    return any(has_product(n) for n, _ in node.inputs)


def products_of(graph: Graph) -> list[Ref]:
    """Return the matrix products, or the sums fused into them if those are the only users."""
    uses = graph.uses()
    products: dict[Ref, None] = {}
    for node in graph.nodes:
        if node.op in PRODUCTS:
            readers = uses.get((node, 0), ())
            while len(readers) == 1 and readers[0].op.expr == SUM:
                node = readers[0]
                readers = uses.get((node, 0), ())
            products[node, 0] = None
    return list(products)


def having(node: Node, inputs: tuple, emit: Callable, run: Callable[[Graph], Graph]) -> list[Ref]:
    """Replace a node by one with a pass applied to its subgraphs."""
    new = emit(Node(node.op.having(run), inputs, node.attrs, node.name, node.specs))
    return [(new, i) for i in range(new.n_outputs)]


def without_loops(graph: Graph, branches: bool = False) -> Graph:
    """Return a graph of primitives with all loops unrolled.

    branches: whether to replace branches as well: compute both sides and select one.
    """

    def is_meant(op: Op | None) -> bool:
        return isinstance(op, Scan) or branches and getattr(op, "nested", False)

    def rule(node: Node, inputs: tuple, emit: Callable) -> list | None:
        if not is_meant(node.op):
            if not getattr(node.op, "nested", False):
                return None
            return having(node, inputs, emit, without_loops)
        return recorded(node, inputs, emit, partial(node.op.lower, node.specs))

    if any(getattr(n.op, "nested", False) for n in graph.nodes):
        graph = dce(fold(rewrite(graph, rule), walls=True, strict=False))
    return without_loops(graph, branches) if any(is_meant(n.op) for n in graph.nodes) else graph


def captured(
    inside: Iterable[Node],
    variables: Sequence[Ref],
    refs: Iterable[Ref],
    copied: Callable[[Node, tuple[Ref, ...]], Node],
    known: Callable[[Ref], tuple[Spec, ...] | None],
) -> tuple[Graph, list[Node], list[Ref]]:
    """Return (graph, variables, references): a loop's body and the outer values it captures.

    inside:   the nodes of the body;  variables: references to its rows and states;
    refs:     references to its results.
    copied:   (node, inputs) -> the node in the body;  known: reference -> its specs there.
    """
    mapped: dict[Ref, Ref] = {}
    ins: list[Node] = []
    names: set[str] = set()
    nodes: list[Node] = []

    def source(ref: Ref) -> Ref:
        """Return a value's reference in the body; an outer value becomes a variable."""
        if ref not in mapped:
            name = ref[0].name
            while name in names:
                name += "_"
            names.add(name)
            ins.append(Node(None, name=name, specs=known(ref)))
            mapped[ref] = ins[-1], 0
        return mapped[ref]

    for ref in variables:
        source(ref)
    for n in inside:
        nodes.append(copied(n, tuple(map(source, n.inputs))))
        mapped.update(((n, i), (nodes[-1], i)) for i in range(n.n_outputs))
    heads = [source(ref) for ref in refs]
    beside = set(ins[len(variables) :])
    return Graph([*ins, *nodes], heads), ins, [ref for ref, (v, _) in mapped.items() if v in beside]


def results(op: Scan, n_outs: int, inputs: Iterable[Value]) -> tuple[list, list]:
    """Return (the first `n_outs` outputs, final states) of a loop applied to symbols.

    An output whose rows are those of a state is read from the stack of that state.
    """
    outputs = as_tuple(op(*inputs))
    heads, last = op.body.heads, op.n_outs + op.n_states
    outs, first = [], 0 if op.reverse else 1  # row of the first new state
    for k, out in enumerate(outputs[:n_outs]):
        if heads[k] in heads[op.n_outs :]:
            full = outputs[last + op.stacked.index(heads[op.n_outs :].index(heads[k]))]
            out = slice_axis(full, axis=0, begin=first, end=first + op.length)
        outs.append(out)
    return outs, list(outputs[op.n_outs : last])


def in_turns(
    body: Callable[[list[Symbol], list[Symbol]], tuple[Symbol, Sequence[Symbol]]],
    rows: Sequence,
    states: Sequence,
    order: Sequence[int],
) -> tuple[Value, list] | None:
    """Trace a loop: (stacked output, final states); `None` for arrays or no iterations.

    body:    (rows, states) -> (output, new states), symbols of primitives.
    """
    outer = CURRENT.trace
    if outer is None or not order or not all(isinstance(x, Symbol) for x in (*rows, *states)):
        return None
    with tracing(Trace(lower=True, training=outer.training)) as trace, NameManager():
        trace.known.update(outer.known)
        row = [
            var(f"row{i}", spec=Spec(x.spec.shape[1:], x.spec.dtype)) for i, x in enumerate(rows)
        ]
        old = [var(f"state{j}", spec=x.spec) for j, x in enumerate(states)]
        out, new = body(row, old)
    graph, ins, others = captured(
        [n for n in trace.nodes if n.op],
        [x.refs[0] for x in (*row, *old)],
        [x.refs[0] for x in (out, *new)],
        lambda n, inputs: Node(n.op, inputs, n.attrs, n.name, n.specs),
        lambda ref: (ref[0].specs[ref[1]],),
    )
    loop = Loop(graph, ins, len(rows), len(states))
    op = scan(
        graph,
        loop,
        rows[0].spec.shape[0] if rows else len(order),
        order[0] > order[-1],
        products=True,
    )
    (stacked,), last = results(op, 1, [*rows, *states, *(Symbol([ref]) for ref in others)])
    return stacked, last


def as_tuple(value: Value | tuple) -> tuple:
    """Return an operator's outputs as a tuple, from one value or a multi-output symbol."""
    if isinstance(value, Symbol):
        return tuple(type(value)([ref]) for ref in value.refs)
    return value if isinstance(value, tuple) else (value,)


def stacked(spec: Spec, length: int) -> Spec:
    """Return the spec of a stack of `length` rows."""
    return Spec(None if spec.shape is None else (length, *spec.shape), spec.dtype)
