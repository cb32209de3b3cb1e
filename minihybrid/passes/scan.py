"""Scan: a loop in a graph, whose body is a graph that is written down once.

Takes:   what one iteration computes, as a graph of primitives, and what it reads.
Gives:   `Scan`, such a loop as a record, with its gradient; `Loop`, what it has in common
         with MXNet's operator.

An iteration reads a row of each array that the loop goes over, states, and others that are
the same in each iteration. It gives a row of each output, and the states of the next iteration:

    for i in 0, 1, ..., n - 1:      (backwards: n - 1, ..., 0)
        outs[i], states[i + 1] = step(rows[i], states[i], others)

All states stay, one more than there are iterations, and so do products of matrices, so the
gradient is a loop, too: it goes the other way, and each iteration computes again what else its
iteration had computed.
Source:  computing again: Chen and others, Training Deep Nets with Sublinear Memory Cost,
         2016.
What is left out: a number of iterations that depends on values; random numbers; loops inside of
loops.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np

from minihybrid.core import hooks
from minihybrid.core.graph import Graph, topological
from minihybrid.core.name import NameManager, Prefix
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
from minihybrid.passes.reduction_schedule import Ref, scratch_of

PRODUCTS, SUM = (matmul, batch_dot, fully_connected, conv), "{a} + {b}"


class Loop(Op):
    """What both operators are: a record for each loop, since each has its own body.

    body:    the graph of one iteration. Its heads are a row of each output, then the states of
             the next iteration.
    ins:     its variables, in the order of the operator's inputs: rows, states, others.
    n_rows, n_states: how many of `ins` these are;  n_outs: how many outputs have rows.
    """

    inputs, variadic, attrs, nested, any_dtype = ("data",), True, {}, True, True
    checked: Checked
    readers: dict
    __setattr__ = object.__setattr__  # unlike other records, made for one node

    def __init__(self, body: Graph, ins: Iterable[Node], n_rows: int, n_states: int) -> None:
        self.body, self.ins, self.n_rows, self.n_states = body, tuple(ins), n_rows, n_states
        self.n_outs, self.checked, self.readers = len(body.heads) - n_states, Checked(), {}

    def sorted(self, values: Sequence) -> tuple[list, list, list]:
        """(rows, states, others) of what there is one of for each input."""
        first, last = self.n_rows, self.n_rows + self.n_states
        return list(values[:first]), list(values[first:last]), list(values[last:])

    def unrolled(self, order: Sequence[int], inputs: Sequence[Value]) -> tuple[Value, ...]:
        """All outputs of `Scan`, computed iteration by iteration.

        order:   the numbers of the rows, as the iterations go;  inputs: arrays or symbols.
        """
        rows, states, others = self.sorted(inputs)
        outs, seen = {}, [states]
        for i in order:
            now = [
                reshape(slice_axis(x, axis=0, begin=i, end=i + 1), shape=v.specs[0].shape)
                for x, v in zip(rows, self.ins, strict=False)
            ]
            given = dict(zip(self.ins, [*now, *states, *others], strict=True))
            values = replay(self.body.heads, given)
            outs[i], states = values[: self.n_outs], values[self.n_outs :]
            seen.append(states)
        seen = seen if order[0] <= order[-1] else seen[::-1]
        columns = [*zip(*(outs[i] for i in sorted(outs)), strict=True), *zip(*seen, strict=True)]
        stacks = [stack(*column, axis=0) for column in columns]
        return (*stacks[: self.n_outs], *states, *stacks[self.n_outs :])


class Scan(Loop):
    """A loop of primitives whose shapes are known.

    length:  the number of iterations;  reverse: whether they go from the last row to the first.
    final_only: numbers of states of which only the last is kept.
    Gives:   the outputs, stacked; the last states; the others of them before and after each
             iteration, stacked: those before an iteration have the number of its row, or, where the
             loop goes back, one more.
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
        self.gradients: dict[tuple, tuple] = {}  # (present, beside) -> what `_backward` gives
        self.stacked = [j for j in range(n_states) if j not in self.final_only]

    @property
    def n_outputs(self) -> int:
        """The outputs, the states, and the stacks of those that have one."""
        return self.n_outs + self.n_states + len(self.stacked)

    def having(self, body: Graph | None = None, final_only: Iterable[int] | None = None) -> "Scan":
        """The same loop of another graph with the same meaning, or keeping other states."""
        final_only = self.final_only if final_only is None else final_only
        sizes = self.n_rows, self.n_states, self.length, self.reverse, final_only
        return Scan(body or self.body, self.ins, *sizes)

    def narrowed(self) -> tuple["Scan", list[int]]:
        """(the same loop without inputs that nobody reads, the numbers of those it has)."""
        there, states = set(self.body.variables), range(self.n_rows, self.n_rows + self.n_states)
        read = [k for k, v in enumerate(self.ins) if v in there or k in states]
        ins, n_rows = [self.ins[k] for k in read], sum(k < self.n_rows for k in read)
        sizes = n_rows, self.n_states, self.length, self.reverse, self.final_only
        return Scan(self.body, ins, *sizes), read

    def inside(self, specs: Sequence[Spec]) -> list[Graph]:
        """The graph of an iteration, whose specs are known."""
        return [self.body]

    @property
    def order(self) -> range:
        """The numbers of the rows, as the iterations go."""
        return range(self.length)[:: -1 if self.reverse else 1]

    def infer(self, specs: Sequence[Spec]) -> tuple[list, list]:
        """The shapes inside are known."""
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
        """The iterations on NumPy's arrays."""
        rows, states, others = self.sorted(inputs)
        _, specs = self.infer(())
        results = [np.empty(s.shape, s.dtype) for s in specs]
        outs, last = results[: self.n_outs], results[self.n_outs :][: self.n_states]
        stacks = dict(zip(self.stacked, results[self.n_outs + self.n_states :], strict=True))
        for j, full in stacks.items():
            full[self.length if self.reverse else 0] = states[j]
        names = [v.name for v in self.ins]
        for i in self.order:
            given = [*(x[i] for x in rows), *states, *others]
            values = self.body.evaluate(dict(zip(names, given, strict=True)))
            for full, value in zip(outs, values, strict=False):
                full[i] = value
            states = values[self.n_outs :]
            for j, full in stacks.items():
                full[i if self.reverse else i + 1] = states[j]
        for place, value in zip(last, states, strict=True):
            place[...] = value
        return tuple(results) if len(results) > 1 else results[0]

    def lower(self, specs: Sequence[Spec], *inputs: Symbol) -> Symbol:
        """Iteration by iteration, for a target without loops around its kernels."""
        outputs = self.unrolled(self.order, inputs)
        last = self.n_outs + self.n_states
        return as_symbol((*outputs[:last], *(outputs[last + j] for j in self.stacked)))

    def states_needed(self, outs: Iterable[int], read: Iterable[int]) -> list[int]:
        """The states that these outputs need, in some iteration, and those that are read."""
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
    def kept(self) -> list[int]:
        """The numbers of outputs that its iterations read."""
        return [k for k, (n, _) in enumerate(self.body.heads[: self.n_outs]) if has_product(n)]

    def grad(
        self, g: Value | tuple, out: Value | tuple, *inputs: Value
    ) -> tuple[Value | None, ...]:
        """The iterations of the gradient go the other way, and hand the states' gradients on."""
        gs, outs = (x if isinstance(x, tuple) else (x,) for x in (g, out))
        if self.final_only:  # the states are needed now
            whole, missing = self.having(final_only=()), (None,) * self.n_states
            gs = (*gs[: self.n_outs + self.n_states], *missing)
            return whole.grad(gs, as_tuple(whole(*inputs)), *inputs)
        last = self.n_outs + self.n_states
        stacks, from_stacks = outs[last:], gs[last:]
        present = tuple(i for i in range(self.n_outs) if gs[i] is not None)
        beside = tuple(j for j, x in enumerate(from_stacks) if x is not None)
        if (present, beside) not in self.gradients:
            self.gradients[present, beside] = self._backward(present, beside)
        op, read, flow, kept, row_inputs, sums, hoisted = self.gradients[present, beside]
        before = int(self.reverse)  # where in a stack the state before the first row is

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
        given = [*data, *(gs[i] for i in present), *map(rows, stacks), *(outs[k] for k in kept)]
        given += [rows(from_stacks[j]) for j in beside]
        all_inputs = *given, *carried, *(zeros_like(inputs[k]) for k in sums), *others
        result = as_tuple(op(*(all_inputs[k] for k in read)))
        grads = dict(zip(row_inputs, result, strict=False))
        ends = [*(self.n_rows + j for j in flow), *sums]
        grads |= dict(zip(ends, result[op.n_outs :], strict=False))
        for k, node, places in hoisted:
            parts = [as_one(result[i] if made else given[i], v) for made, i, v in places]
            grads[k] = node.op(*parts, **node.attrs)
        return tuple(grads.get(k) for k in range(len(inputs)))

    def _backward(self, present: tuple[int, ...], beside: tuple[int, ...]) -> tuple:
        """(loop, read, states, kept, rows, sums, hoisted) of the gradient: what it
        reads, which states have a gradient, which outputs are read, and which inputs have a
        gradient: rows, what is added up in each iteration, and what is computed last.

        present: the outputs whose gradients come in;  beside: the stacks of states.

        What is a sum over rows, such as a weight's gradient, is computed once, of the rows of
        all iterations: `hoisted` has its node, and where these are.
        """
        heads, names = self.body.heads, seed_names(self.body)
        dtypes = [n.specs[i].dtype for n, i in heads]
        flow = [j for j in range(self.n_states) if dtypes[self.n_outs + j].kind != "b"]
        seeds = [*present, *(self.n_outs + j for j in flow)]
        read = set(self.body.variables)
        wanted = [v.name for v in self.ins if v in read and v.specs[0].dtype.kind != "b"]
        graph, reached = gradient_of(self.body, wanted, seeds, self.kept)
        place = {v.name: k for k, v in enumerate(self.ins)}
        indices = sorted(place[name] for name in reached)
        with tracing(Trace(lower=True)) as trace, NameManager():
            trace.nodes += graph.nodes
            trace.known.update(graph.nodes)
            there = {v.name: Symbol([(v, 0)]) for v in graph.variables}
            name = kept_name(self.body)
            kept = [k for k in self.kept if f"{name}{k}" in there]

            def variable(name: str, spec: Spec) -> Symbol:
                return there[name] if name in there else var(name, spec=spec)

            own = [variable(v.name, v.specs[0]) for v in self.ins]
            data, states, others = self.sorted(own)
            seed = {i: variable(names[i], heads[i][0].specs[heads[i][1]]) for i in seeds}
            more = {j: var(f"of_stack{j}", spec=states[j].spec) for j in beside}
            grads = {place[n]: Symbol([r]) for n, r in zip(reached, graph.heads, strict=True)}
            rows = [*data, *(seed[i] for i in present), *states]
            rows += [*(there[f"{name}{k}"] for k in kept), *more.values()]
            outs: dict[int | Ref, Symbol] = {k: grads[k] for k in indices if k < self.n_rows}
            hoisted = []
            first = self.n_rows + self.n_states  # of the others
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
        final_only = range(len(flow), len(carried))  # a sum is read when it is done
        op, needed = scan(loop.body, loop, self.length, not self.reverse, final_only).narrowed()
        return op, needed, flow, kept, [k for k in indices if k < self.n_rows], sums, hoisted

    # -- for compiled loops
    @cached_property
    def memory(self) -> Memory:
        """Where an iteration's values lie, the same in each: behind them, the new values of
        states in `final_only`.
        """
        return plan_memory(self.body, scratch_of)

    def scratch(self, ins: Sequence[Spec], outs: Sequence) -> int:
        """How many numbers of the first output's dtype an iteration's values take."""
        return -(-self.places[1] // outs[0].dtype.itemsize)

    @property
    def places(self) -> tuple[dict[int, int], int]:
        """(final_only state -> where its new value lies behind the arena, bytes of all)."""
        at, offsets = whole_lines(self.memory.nbytes), {}
        for j in sorted(self.final_only):
            offsets[j] = at
            at += whole_lines(self.ins[self.n_rows + j].specs[0].nbytes)
        return offsets, at


def adds_rows(node: Node) -> bool:
    """Whether a node is a sum over the rows of its inputs, of which there are some."""
    sizes = [n.specs[i].size for n, i in node.inputs]
    return node.op and node.op.adds_rows and all(sizes) and node.op.adds_rows(**node.attrs)


def places_of(
    node: Node, rows: Iterable[Symbol], outs: dict[int | Ref, Symbol]
) -> list[tuple[bool, int, Ref]]:
    """Where the rows are that a node reads: (whether among the outputs, number, variable).

    rows:    symbols of the loop's rows;  outs: those of its outputs; what else is read
             becomes one.
    """
    given, locations = [s.refs[0] for s in rows], []
    for ref in node.inputs:
        made = [s.refs[0] for s in outs.values()]
        if ref not in given and ref not in made:
            outs[ref] = Symbol([ref])
            made.append(ref)
        locations.append((ref not in given, (given if ref in given else made).index(ref), ref))
    return locations


def as_one(rows: Value, ref: Ref) -> Value:
    """The rows of all iterations, one behind the other, in one array."""
    spec = ref[0].specs[ref[1]]
    return reshape(rows, shape=(-1, *spec.shape[1:]))


def whole_lines(nbytes: int) -> int:
    """Bytes rounded up to whole cache lines."""
    return -(-nbytes // ALIGN) * ALIGN


def scan(
    body: Graph,
    like: Loop,
    length: int,
    reverse: bool = False,
    final_only: Iterable[int] = (),
    products: bool = False,
) -> Scan:
    """`Scan` of a graph of primitives, simplified first but for what stops a gradient.

    like:    a `Loop` with the variables of the body and the number of rows and states.
    products: whether these are outputs, too, after the others: a gradient sooner reads
             than computes them, and passes remove what nobody reads.
    """
    body = dce(cse(fold(dce(without_loops(body)), walls=True)))
    if products:
        n, heads = like.n_outs, body.heads
        more = [ref for ref in products_of(body) if ref not in heads]
        body = body.rebuilt(body.nodes, [*heads[:n], *more, *heads[n:]])
    return Scan(body, like.ins, like.n_rows, like.n_states, length, reverse, final_only)


def has_product(node: Node) -> bool:
    """Whether a value is a product of matrices, or such a one and something added to it."""
    if node.op is None or node.op.expr != SUM:
        return node.op in PRODUCTS
    return any(has_product(n) for n, _ in node.inputs)


def products_of(graph: Graph) -> list[Ref]:
    """The products, or what alone is read of them: sums, computed in the same kernel."""
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


def without_loops(graph: Graph, branches: bool = False) -> Graph:
    """A graph of primitives with each loop written down iteration by iteration.

    branches: whether both sides of each branch are computed, and one is selected.
    """

    def is_meant(op: Op | None) -> bool:
        return isinstance(op, Scan) or branches and getattr(op, "nested", False)

    def rule(node: Node, inputs: tuple, emit: Callable) -> list | None:
        if not is_meant(node.op):
            if not getattr(node.op, "nested", False):
                return None
            op = node.op.having(without_loops)
            new = emit(Node(op, inputs, node.attrs, node.name, node.specs))
            return [(new, i) for i in range(new.n_outputs)]
        with tracing(Trace(lower=True)) as trace, Prefix(f"{node.name}_"):
            trace.known.update(n for n, _ in inputs)
            lowered = node.op.lower(node.specs, *(Symbol([ref]) for ref in inputs))
        for made in trace.nodes:
            emit(made)
        return lowered.refs

    if any(getattr(n.op, "nested", False) for n in graph.nodes):
        graph = dce(fold(rewrite(graph, rule), walls=True))
    return without_loops(graph, branches) if any(is_meant(n.op) for n in graph.nodes) else graph


def captured(
    inside: Iterable[Node],
    variables: Sequence[Ref],
    refs: Iterable[Ref],
    copied: Callable[[Node, tuple[Ref, ...]], Node],
    known: Callable[[Ref], tuple[Spec, ...] | None],
) -> tuple[Graph, list[Node], list[Ref]]:
    """(graph, its variables, references): the body of a loop, and what it reads beside.

    inside:   the nodes of the body;  variables: references to its rows and states;
    refs:     to what it gives.
    copied:   (node, inputs) -> the node in the body;  known: reference -> its specs there.
    """
    mapped: dict[Ref, Ref] = {}
    ins: list[Node] = []
    names: set[str] = set()
    nodes: list[Node] = []

    def source(ref: Ref) -> Ref:
        """Where a value is in the body: what stands before the loop is a variable there."""
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
    """(outputs, last states) of a loop of symbols; `n_outs` of its outputs are asked for.

    An output whose rows are those of a state is read where the states are.
    """
    outputs = as_tuple(op(*inputs))
    heads, last = op.body.heads, op.n_outs + op.n_states
    outs, first = [], 0 if op.reverse else 1  # of the states after an iteration
    for k, out in enumerate(outputs[:n_outs]):
        if heads[k] in heads[op.n_outs :]:
            full = outputs[last + op.stacked.index(heads[op.n_outs :].index(heads[k]))]
            out = slice_axis(full, axis=0, begin=first, end=first + op.length)
        outs.append(out)
    return outs, list(outputs[op.n_outs : last])


@hooks.in_turns.implement
def in_turns(
    body: Callable[[list[Symbol], list[Symbol]], tuple[Symbol, Sequence[Symbol]]],
    rows: Sequence,
    states: Sequence,
    order: Sequence[int],
) -> tuple[Value, list] | None:
    """(stacked output, last states) of a loop; `None` of arrays or no iterations, which need none.

    body:    (rows, states) -> (output, new states), of primitives' symbols.
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
    """The outputs of an operator, also if there is one, or one symbol of several."""
    if isinstance(value, Symbol):
        return tuple(type(value)([ref]) for ref in value.refs)
    return value if isinstance(value, tuple) else (value,)


def stacked(spec: Spec, length: int) -> Spec:
    """What so many such rows make."""
    return Spec(None if spec.shape is None else (length, *spec.shape), spec.dtype)
