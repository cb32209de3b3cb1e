"""The cache entries of a hybridized function.

Defines: `CacheEntry`, one per signature; `CompiledGraph`, the plans of a graph, which
         several entries may share.

Not supported: sharing between functions.
"""

from dataclasses import replace

from minihybrid.core import hooks
from minihybrid.core.arguments import builder
from minihybrid.core.array import refs_of
from minihybrid.core.compiled import CompiledOp
from minihybrid.core.passes import expand
from minihybrid.core.plan import active_plan
from minihybrid.core.pytree import SLOT

MAX_PLANS = 100  # cached signatures per function, each with a plan and machine code
MAX_CONSTANTS = 4  # values of a scalar argument that get a plan each, before it becomes an input


class CompiledGraph:
    """A traced graph and its plans."""

    def __init__(self, job, wait):
        self.job, self.wait = job, wait  # each caller names its inputs
        self.now = None  # the plan of calls off the tape
        self.op, self.ops = None, {}  # of calls on the tape: the last operator, and all

    def tiers(self, inputs):
        """The plans of calls off the tape."""
        if self.now is None:
            self.now = active_plan(replace(self.job, inputs=tuple(inputs)), self.wait)
        return self.now

    def operator(self, inputs, bindings):
        """Return the operator for calls on the tape, specialized by which inputs are on it."""
        refs_of(bindings.values())  # raises for a stale view
        taped = tuple(name for name, value in bindings.items() if value.node is not None)
        if taped not in self.ops:
            job = self.job
            graph = job.graph if job.expanded else expand(job.graph, job.training).check("expand")
            self.ops[taped] = CompiledOp(
                replace(job, graph=graph, inputs=tuple(inputs), expanded=True),
                taped=taped,
                wait=self.wait,
            )
        self.op = self.ops[taped]
        return self.op


class CacheEntry:
    """The cache entry of one signature: the traced graph and its plans.

    graph:   the traced graph;  names: of its inputs;  params: the Parameters that it
             reads, by name;  numbers: scalars that the program reads as inputs.
    structure: the result as a pytree with slots for arrays;  kind: its array class.
    again:   retraces: (name -> Spec of the inputs) -> graph.
    context: the device of the inputs and of the parameters' copies.
    wrap:    makes an array from an output: a class, or a function of the context.
    parts:   dependencies of the traced code (`Hybrid`);  args: the call's arguments, with
             slots for arrays.
    calls:   number of calls, `taped` of them recorded; `counted`, at the last insertion.
    plain:   whether the result is one array and no state changes, as in most calls.
    guards:  conditions that another call must meet;  reason: to trace (runtime/guards.py).
    """

    def __init__(self, graph, names, structure, params, kind, again, context, program):
        self.graph, self.names, self.structure = graph, names, structure
        self.params, self.kind, self.again = params, kind, again
        self.context, self.program = context, program
        self.wrap, self.build = hooks.wrapper(kind, context), builder(structure)
        self.numbers, self.parts, self.args = {}, (), ()
        self.calls = self.taped = self.counted = 0
        self.guards, self.reason = {}, ""
        self.bound, self.version, self.states = None, -1, ()

    def places(self, arrays):
        """Return name -> ndarray of all variables, inputs included, to store states in."""
        return dict(zip(self.names, arrays, strict=True)) | self.arrays

    @property
    def copies(self):
        """name -> ndarray of the parameters on this context."""
        return {name: p.data(self.context).data for name, p in self.params.items()}

    @property
    def arrays(self):
        """name -> ndarray of everything the program reads except the inputs."""
        return self.copies | {name: a.data for name, a in self.numbers.items()}

    @property
    def tiers(self):
        """The plans of calls off the tape."""
        return self.program.tiers(self.names)

    def bind(self):
        """Bind the plan to the parameters' addresses."""
        self.states = self.tiers.states
        self.plain = self.structure is SLOT and not self.states
        self.bound = self.tiers.bind(self.arrays)
        return self.bound

    def bindings(self, arrays):
        """Return name -> array of everything the program reads."""
        params = {name: param.data(self.context) for name, param in self.params.items()}
        return dict(zip(self.names, arrays, strict=True)) | self.numbers | params

    def recorded(self, arrays):
        """Run a call on the tape; return its result."""
        self.taped += 1
        bindings = self.bindings(arrays)
        return self.result(self.program.operator(self.names, bindings).apply(bindings))

    def result(self, outs):
        """Return the outputs in the structure that the function returned."""
        if self.kind is not type(outs[0]):
            outs = [out.as_np_ndarray() for out in outs]
        return self.build(iter(outs))

    def fits(self):
        """Return whether every parameter still has the shape and dtype of the trace.

        Raises:  HybridError if a parameter has no copy on the inputs' context.
        """
        specs = {n.name: n.specs[0] for n in self.graph.variables}
        return all(specs[name] == (a.shape, a.dtype) for name, a in self.copies.items())
