"""loops: passes on nodes with subgraphs: `Scan` and `If` (`passes/scan.py`, `branches.py`).

Defines: `inside`, which applies a pass to every subgraph; `trimmed`, which removes dead
         outputs of loops and branches.

Not supported: hoisting loop-invariant code out of a loop.
"""

from collections.abc import Callable

from minihybrid.core.graph import Graph, the_graph, topological
from minihybrid.core.op import Node, Op
from minihybrid.core.passes.dce import dce
from minihybrid.core.passes.rewrite import rewrite
from minihybrid.passes.branches import If
from minihybrid.passes.scan import Scan, having

LARGE = 2**20  # bytes of stacked states: above, a copy per iteration is cheaper


def is_loop(op: Op | None) -> bool:
    """Return whether an operator is a `Scan` or an `If`."""
    return isinstance(op, Scan | If)


def loops_in(graph: Graph) -> list[Node]:
    """Return the loops and branches of a graph."""
    return [n for n in the_graph("loops_in", graph).nodes if is_loop(n.op)]


def graphs_of(op: Scan | If) -> tuple[Graph, ...]:
    """Return the subgraphs of a loop or a branch."""
    return op.graphs if isinstance(op, If) else (op.body,)


def inside(graph: Graph, run: Callable[[Graph], Graph]) -> Graph:
    """Apply a pass to the body of each loop and both sides of each branch."""

    def rule(node: Node, inputs: tuple, emit: Callable) -> list | None:
        if not is_loop(node.op):
            return None
        return having(node, inputs, emit, run)

    return rewrite(graph, rule) if loops_in(graph) else graph


def trimmed(graph: Graph) -> Graph:
    """Remove dead outputs of loops and branches, and everything only they need."""
    if not loops_in(graph):
        return graph
    read = {*graph.uses(), *graph.heads}

    def rule(node: Node, inputs: tuple, emit: Callable) -> list | None:
        op = node.op
        if isinstance(op, If):
            outs = [k for k in range(node.n_outputs) if (node, k) in read]
            return narrowed(node, op, inputs, outs, emit) if outs else None
        if not isinstance(op, Scan):
            return None
        outs = [k for k in range(op.n_outs) if (node, k) in read]
        last = [j for j in range(op.n_states) if (node, op.n_outs + j) in read]
        full = [j for i, j in enumerate(op.stacked) if (node, op.n_outs + op.n_states + i) in read]
        states = op.states_needed(outs, {*last, *full})
        final_only = {
            i
            for i, j in enumerate(states)
            if j not in full
            and (
                j in op.final_only
                or (op.length + 1) * op.ins[op.n_rows + j].specs[0].nbytes > LARGE
            )
        }
        heads = [op.body.heads[k] for k in [*outs, *(op.n_outs + j for j in states)]]
        needed = set(topological(heads)) | {op.ins[op.n_rows + j] for j in states}
        keep = [k for k, v in enumerate(op.ins) if v in needed]
        same = len(heads) == len(op.body.heads) and len(keep) == len(op.ins)
        if same and final_only == op.final_only:
            return None
        n_rows = sum(k < op.n_rows for k in keep)
        ins = [op.ins[k] for k in keep]
        body = dce(op.body.rebuilt(op.body.nodes, heads))
        less = Scan(body, ins, n_rows, len(states), op.length, op.reverse, final_only)
        specs = less.infer(())[1]
        new = emit(Node(less, tuple(inputs[k] for k in keep), {}, node.name, tuple(specs)))
        place = {k: i for i, k in enumerate(outs)}
        for i, j in enumerate(states):
            place[op.n_outs + j] = less.n_outs + i
            if j in full:
                old = op.n_outs + op.n_states + op.stacked.index(j)
                place[old] = less.n_outs + less.n_states + less.stacked.index(i)
        return [(new, place.get(k, 0)) for k in range(node.n_outputs)]

    return dce(rewrite(graph, rule))


def narrowed(node: Node, op: If, inputs: tuple, outs: list[int], emit: Callable) -> list:
    """Replace a branch by one with only the outputs `outs`; return the references."""
    less, keep = op.narrowed(outs)
    specs, ins = [node.specs[k] for k in outs], tuple(inputs[k] for k in keep)
    new = emit(Node(less, ins, node.attrs, node.name, tuple(specs)))
    return [(new, outs.index(k) if k in outs else 0) for k in range(node.n_outputs)]
