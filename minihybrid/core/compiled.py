"""A compiled graph as an operator.

Defines: `CompiledOp`, an `Op` whose forward pass is a plan and whose gradient is another
         plan, so that the tape, nesting and second derivatives need no special case.

Limits: each set of requested gradients has its own forward plan.
"""

from contextlib import nullcontext
from dataclasses import replace

from minihybrid.core.array import STATE, NDArray
from minihybrid.core.op import Checked, Op
from minihybrid.core.passes.gradient import forward_backward, gradient_of, kept_name, seed_names
from minihybrid.core.plan import active_plan, write_states
from minihybrid.core.sym import constant, replay


class CompiledOp(Op):
    """A traced graph as one operator: its forward pass is a plan, its gradient another.

    job:     the compilation job of the expanded graph. Variables passed as arrays are its
             inputs; the others, `params`, come after them and are bound by address.
    keep:    whether the forward plan saves values for the backward plan; otherwise the
             backward plan recomputes them (as for second derivatives).
    taped:   the variables whose gradients can be requested; by default, all.

    The fields of `Op` that hold functions are methods here, to avoid reference cycles: a
    net and its weights are freed as soon as it is dropped.
    """

    name, inputs, variadic, attrs, gives_own = "_plan", ("data",), True, {}, True
    any_dtype = True
    __setattr__ = object.__setattr__  # unlike other operators, it is mutable

    def __init__(self, job, keep=True, taped=None, wait=None):
        self.job, self.wait, self.anywhere = job, wait, job.device is not None
        self.graph = graph = job.graph
        self.arg_names, self.title = list(job.inputs), job.title
        self.doc = f"The compiled plan of {job.title}."
        variables = {n.name: n for n in graph.variables}
        self.params = [name for name in variables if name not in set(self.arg_names)]
        self.names, self.taped = self.arg_names + self.params, taped
        self.wrt = [
            name
            for name in self.names
            if name in variables
            and variables[name].specs[0].dtype.kind != "b"
            and (taped is None or name in taped)
            and name not in graph.states
        ]
        self.n_heads, self.gradients, self.readers = len(graph.outputs), {}, {}
        self.flat = [i for i in range(self.n_heads) if _inputs(graph, i).isdisjoint(self.wrt)]
        self.forward, self.backward, self.backward_op = graph, None, None
        self.saved, self.checked, self.calls, self.bound = {}, Checked(), 0, None
        if keep:
            self.forward, self.backward, self.reached = forward_backward(graph, self.wrt, job.remat)
            name = kept_name(self.forward)
            self.saved = {i: f"{name}{i}" for i in range(len(self.forward.outputs))}
        self.tiers = active_plan(replace(job, graph=self.forward, expanded=True), wait)
        self.specs = [n.specs[i] for n, i in self.forward.outputs]
        self.n_outputs = len(self.specs)

    @property
    def plan(self):
        """The current forward plan."""
        return self.tiers.plan

    def infer(self, ins):
        """Return the specs; shapes were checked by the trace."""
        return ins, self.specs

    def eager(self, *arrays):
        """Run the forward plan: return the graph's outputs, then the saved values."""
        self.calls += 1
        bindings = dict(zip(self.names, arrays, strict=True))
        if self.bound is None or any(
            bindings[name] is not array for name, array in self.bound.arrays.items()
        ):
            self.bound = self.tiers.bind({name: bindings[name] for name in self.params})
        outs, states = self.bound(arrays[: len(self.arg_names)]), self.tiers.states
        write_states(states, outs, bindings)
        outs = outs[: len(outs) - len(states)]
        return tuple(outs) if len(outs) > 1 else outs[0]

    def expand(self, specs, *inputs):
        """Apply the operators of the forward graph one by one."""
        graph = self.forward
        bindings = dict(zip(self.names, inputs, strict=True))
        values = {n: bindings[n.name] for n in graph.variables}
        values |= {
            n: constant(n.values[0], n.name)
            for n in graph.nodes
            if n.op is None and n.values is not None
        }
        return tuple(replay(graph.outputs, values))

    def dependencies(self, index, inputs):
        """Return the inputs that output `index` depends on, as it would run eagerly."""
        if index not in self.readers:
            self.readers[index] = _inputs((self.forward, self.graph)[index < self.n_heads], index)
        return [v for v, n in zip(inputs, self.names, strict=True) if n in self.readers[index]]

    def grad(self, g, out, *inputs):
        """Apply the backward plan as an operator, which can itself be differentiated."""
        gs, outs = (g, out) if isinstance(g, tuple) else ((g,), (out,))
        present = tuple(i for i, v in enumerate(gs) if v is not None)
        if present not in self.gradients:
            self.gradients[present] = self._gradient(present)
        op, reached = self.gradients[present]
        if not reached:
            return (None,) * len(self.names)
        if present[-1] < self.n_heads:
            self.backward_op = op
        seeds = seed_names(self.forward)
        bindings = dict(zip(self.names, inputs, strict=True)) | {seeds[i]: gs[i] for i in present}
        bindings |= {name: outs[i] for i, name in self.saved.items()}
        donation = nullcontext()
        if STATE.lent:
            from minihybrid.runtime.donation import donate

            donation = donate(op, [bindings[n] for n in reached])
        with donation:
            grads = dict(zip(reached, op.apply(bindings), strict=True))
        return tuple(grads.get(name) for name in self.names)

    def _gradient(self, present):
        """Return (operator, names of the inputs that get a gradient) for these outputs."""
        if self.backward is not None and present == tuple(range(self.n_heads)):
            graph, reached = self.backward, self.reached
        else:
            graph, reached = gradient_of(self.forward, self.wrt, present, self.saved)
        assert not any(n.op is not None and n.op.random for n in graph.nodes), (
            "random numbers are kept: drawn again, they would be others"
        )
        inputs = [n.name for n in graph.variables if n.name not in self.params]
        what = "backward" if present[-1] < self.n_heads else "again"
        job = replace(
            self.job, graph=graph, inputs=tuple(inputs), title=f"{self.job.title}, {what}"
        )
        return reached and CompiledOp(job, keep=False, wait=self.wait), reached

    def apply(self, bindings):
        """Apply the operator to named arrays; return the graph's own outputs as a list."""
        out = NDArray.interpret(self, [bindings[name] for name in self.names], {})
        outs = list(out)[: self.n_heads] if isinstance(out, tuple) else [out]
        for i in self.flat:  # as in eager mode, such an output is not on the tape
            outs[i].node = None
        return outs


def _inputs(graph, index):
    """Return the names of the variables on which an output depends differentiably."""
    visited, ahead = {}, [graph.outputs[index][0]]
    for node in ahead:
        if node not in visited and (node.op is None or node.op.grad):
            visited[node] = node.name
            ahead += [n for n, _ in node.inputs]
    return {name for node, name in visited.items() if node.op is None}
