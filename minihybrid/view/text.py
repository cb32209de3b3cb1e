"""Chapter 02. Text of graphs, symbols, plans and memory plans.

Defines: `text`, which their `show()` and `debug_str()` call; `diff` of two graphs.

Not supported: drawings (`viz`).
"""

import difflib
from functools import singledispatch

from minihybrid.core.graph import Graph, shown_attrs, topological
from minihybrid.core.op import UNKNOWN, Node, legible
from minihybrid.core.passes.memory import Memory
from minihybrid.core.plan import Plan
from minihybrid.core.sym import Symbol

LINE = 2**13  # characters per node, enough for a few hundred inputs
COLUMNS = 64  # the longest bar


@singledispatch
def text(thing: object) -> str:
    """Return the text of an object, dispatched by its class."""
    raise NotImplementedError(type(thing).__name__)


@text.register(Graph)
def graph_text(graph: Graph) -> str:
    """Return one line per node, deterministic for a graph."""
    names = graph.names()

    def ref(node: Node, i: int) -> str:
        return names[node] + (f"[{i}]" if node.n_outputs > 1 else "")

    lines = []
    for node in graph.nodes:
        if node.op is None:
            what = "variable" if node.values is None else "constant"
        else:
            attrs = ", ".join(f"{k}={v}" for k, v in shown_attrs(node).items())
            args = ", ".join(ref(*r) for r in node.inputs)
            what = f"{node.op.name}({args}{'; ' * bool(attrs)}{attrs})"
        spec = " ".join(map(str, node.specs or (UNKNOWN,)))
        lines.append(legible(f"{names[node]:<15} = {what:<24} {spec}", LINE))
        inside = getattr(node.op, "inside", None)  # the body of a loop, the sides of a branch
        ins = [(n.specs or (UNKNOWN,) * n.n_outputs)[i] for n, i in node.inputs]
        for k, inner in enumerate(inside(ins) if inside else ()):
            lines += ["  --"] * (k > 0)
            lines += [f"    {line}" for line in graph_text(inner).split("\n")]
    news = graph.heads[len(graph.outputs) :]
    lines += [f"{legible(name)} := {ref(*r)}" for name, r in zip(graph.states, news, strict=True)]
    return "\n".join([*lines, "return " + ", ".join(ref(*r) for r in graph.outputs)])


@text.register(Symbol)
def symbol_text(symbol: Symbol) -> str:
    """Return the nodes in MXNet's format."""
    lines = ["Symbol Outputs:"]
    lines += [f"\toutput[{k}]={legible(n.name)}({i})" for k, (n, i) in enumerate(symbol.refs)]
    for node in topological(symbol.refs):
        if node.op is None:
            lines.append(f"Variable:{legible(node.name)}")
            continue
        kind, name = legible(node.op.name), legible(node.name)
        lines += ["-" * 20, f"Op:{kind}, Name={name}", "Inputs:"]
        lines += [
            f"\targ[{k}]={legible(n.name)}({i}){' version=0' * (not n.op)}"
            for k, (n, i) in enumerate(node.inputs)
        ]
        attrs = Symbol([(node, 0)]).list_attr()
        lines += ["Attrs:"] * bool(attrs)
        lines += [f"\t{legible(key)}={legible(str(value))}" for key, value in sorted(attrs.items())]
    return "\n".join(lines) + "\n"


@text.register(Memory)
def memory_text(memory: Memory) -> str:
    """Return a line per buffer, with a bar for its live range."""
    again = f", {memory.n_again} steps computed again" * bool(memory.n_again)
    lines = [f"arena {memory.nbytes} bytes, outputs {memory.outs_nbytes} bytes{again}"]
    end = max((last for *_, last, _ in memory.steps), default=0)
    every = end // COLUMNS + 1  # steps per column, which bounds the line length
    for name, nbytes, first, last, where in memory.steps:
        first, last = first // every, last // every
        bar = "." * first + "#" * (last - first + 1) + "." * (end // every - last)
        lines.append(f"{name:<20} {nbytes:>9} bytes  {where:<12} {bar}")
    return "\n".join(lines)


@text.register(Plan)
def plan_text(plan: Plan) -> str:
    """Return a plan in a few lines."""
    return (
        f"{plan.title}: target {plan.target}"
        f"{f' ({plan.target_note})' if plan.target_note else ''}, "
        f"{'training' if plan.training else 'prediction'}\n"
        f"  {plan.stages[0][1].n_ops} operators traced, {plan.n_kernels} "
        f"kernels, {plan.nbytes_moved} bytes moved\n"
        f"  memory: {plan.nbytes_eager} bytes eager, {plan.nbytes_planned} "
        f"planned{f', {n} steps computed again' if (n := plan.memory.n_again) else ''}"
    )


def diff(before: Graph, after: Graph) -> str:
    """Return the changes of a pass as text: lines removed (-) and added (+)."""
    lines = list(difflib.ndiff(before.show().splitlines(), after.show().splitlines()))
    return "\n".join(line for line in lines if not line.startswith("?"))
