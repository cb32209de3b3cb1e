"""Chapter 06. A compiled net is one more operator.

Takes:   a graph, traced and expanded.
Gives:   `CompiledOp`, an `Op` whose forward pass is a plan and whose gradient another.

So the tape, nesting and second derivatives need no special case.
What is left out: one forward plan for several sets of wanted gradients.
"""

from minihybrid.graph import Graph
from minihybrid.nd import NDArray
from minihybrid.op import HybridError, Op
from minihybrid.passes import dce
from minihybrid.passes.gradient import differentiate, joint_graph, seed_names
from minihybrid.plan import write_states
from minihybrid.sym import constant, replay
from minihybrid.tiers import Tiers


class CompiledOp:
    """A traced graph as one operator: its forward pass is a plan, its gradient another.

    inputs:  the names of the variables that are passed as arrays; the others, `params`,
             come after them and go by address.
    keep:    the forward plan keeps what the backward plan will read. Without, the
             backward plan computes it again (so for the gradient of a gradient).
    taped:   the variables whose gradient somebody may ask for; all unless given.
    """

    def __init__(self, graph, inputs, training=False, target="cpu", title="a graph",
                 keep=True, taped=None, wait=None):
        self.options = {"training": training, "target": target, "wait": wait}
        self.graph, self.inputs, self.title = graph, list(inputs), title
        variables = {n.name: n for n in graph.variables}
        self.params = [name for name in variables if name not in set(self.inputs)]
        self.names, self.taped = self.inputs + self.params, taped
        self.wanted = [name for name in self.names if name in variables
                       and variables[name].specs[0].dtype.kind == "f"
                       and (taped is None or name in taped)
                       and name not in graph.states]
        self.forward, self.backward = (
            differentiate(graph, self.wanted) if keep else (graph, None)
        )
        self.tiers = Tiers(self.forward, inputs, title=title, expanded=True,
                           **self.options)
        self.n_heads, self.backward_op, self.second = len(graph.outputs), None, None
        self.bound = None
        specs = [n.specs[i] for n, i in self.forward.outputs]
        self.op = Op(name="_plan", inputs=("data",), variadic=True, eager=self.run,
                     infer=lambda ins: (ins, specs), grad=self.grad,
                     n_outputs=len(specs), doc=f"The compiled plan of {title}.",
                     expand=self.expand, anywhere=True)

    @property
    def plan(self):
        """The forward plan in force."""
        return self.tiers.plan

    def run(self, *arrays):
        """The forward plan: the graph's outputs, then what the backward plan needs."""
        given = dict(zip(self.names, arrays, strict=True))
        if self.bound is None or any(given[name] is not array for name, array
                                     in self.bound.arrays.items()):
            self.bound = self.tiers.bind({name: given[name] for name in self.params})
        outs, states = self.bound(arrays[:len(self.inputs)]), self.tiers.states
        write_states(states, outs, given)
        outs = outs[:len(outs) - len(states)]
        return tuple(outs) if len(outs) > 1 else outs[0]

    def expand(self, specs, *inputs):
        """The operators that the forward plan was made of, applied one by one."""
        graph = self.forward
        given = dict(zip(self.names, inputs, strict=True))
        values = {n: given[n.name] for n in graph.variables}
        values |= {n: constant(n.values[0], n.name) for n in graph.nodes
                   if n.op is None and n.values is not None}
        return tuple(replay(graph.outputs, values))

    def grad(self, g, out, *inputs):
        """The backward plan, applied as an operator: it can be differentiated, too."""
        gs, outs = (g, out) if isinstance(g, tuple) else ((g,), (out,))
        given = dict(zip(self.names, inputs, strict=True))
        if self.backward is None or any(v is not None for v in gs[self.n_heads:]):
            op = self.second = self.second or self._make(
                self._whole_gradient(), "again"
            )
        else:
            op = self.backward_op = self.backward_op or self._make(
                self.backward, "backward"
            )
            gs = gs[:self.n_heads]
            given |= {f"kept{i}": v for i, v in enumerate(outs)}
        seeds = zip(seed_names(self.forward), gs, outs, strict=False)
        given |= {name: o.zeros_like() if v is None else v for name, v, o in seeds}
        found = dict(zip(self.wanted, op.apply(given), strict=True))
        return tuple(found.get(name) for name in self.names)

    def _make(self, graph, what):
        """The operator of a gradient graph; parameters still go by address."""
        inputs = [n.name for n in graph.variables if n.name not in self.params]
        return CompiledOp(graph, inputs, title=f"{self.title}, {what}", keep=False,
                          **self.options)

    def _whole_gradient(self):
        """The gradient of every output of the forward plan, from the inputs alone.

        Raises:  HybridError for random operators, which would draw other numbers.
        """
        joint = joint_graph(self.forward, self.wanted)
        graph = dce(Graph(joint.nodes, joint.heads[len(self.forward.heads):]))
        if any(n.op is not None and n.op.random for n in graph.nodes):
            raise HybridError(f"{self.title}: the gradient of a gradient through "
                              "random operators (Dropout) is not compiled; take it "
                              "without hybridize()")
        return graph

    def apply(self, given):
        """The operator on named arrays; the graph's own outputs as a list."""
        out = NDArray.interpret(self.op, [given[name] for name in self.names], {})
        outs = list(out) if isinstance(out, tuple) else [out]
        return outs[:self.n_heads]
