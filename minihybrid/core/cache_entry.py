"""What a hybridized function keeps of a signature, and for how long.

Takes:   a traced graph, and the parameters that it reads.
Gives:   `CacheEntry`; `CompiledGraph`, the plans of a graph, which several entries may share.

What is left out: sharing between functions.
"""

from dataclasses import replace

from minihybrid.core import hooks
from minihybrid.core.arguments import builder
from minihybrid.core.array import refs_of
from minihybrid.core.compiled import CompiledOp
from minihybrid.core.passes import expand
from minihybrid.core.plan import active_plan
from minihybrid.core.pytree import SLOT

KEPT = 100  # signatures of one function: a plan for each, and its machine code
FEW = 4  # so many values may a number among the arguments have, each with a plan


class CompiledGraph:
    """A graph and all that runs it."""

    def __init__(self, job, wait):
        self.job, self.wait = job, wait  # whose inputs each caller says
        self.now = None  # for calls off the tape
        self.op, self.ops = None, {}  # for calls on the tape: the last, and all

    def tiers(self, inputs):
        """The plans of calls off the tape."""
        if self.now is None:
            self.now = active_plan(replace(self.job, inputs=tuple(inputs)), self.wait)
        return self.now

    def operator(self, inputs, given):
        """The same on the tape: one operator, for those inputs that are on it."""
        refs_of(given.values())  # raises for a stale view
        taped = tuple(name for name, value in given.items() if value.node is not None)
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
    """A traced signature: its graph, and what runs it.

    graph:   as it was traced;  names: of its inputs;  params: the Parameters that it
             reads, by name;  numbers: scalars that the program reads as inputs.
    structure: the result with slots for arrays;  kind: the class of its arrays.
    again:   name -> Spec of the inputs to a graph, for other specs.
    context: of the inputs; the parameters have copies there.
    wrap:    what makes arrays of outputs: their class, if it is not a matter of the context.
    parts:   what the traced code was made of (`Hybrid`);  args: of the call, with slots for
             arrays.
    calls:   how many there were, `taped` of them recorded, `counted` when the last entry came.
    plain:   whether the result is one array and no state changes: most calls are so.
    guards:  what must hold for another call;  reason: why it was traced (runtime/guards.py).
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
        """name -> ndarray, of the inputs, too: where states lie."""
        return dict(zip(self.names, arrays, strict=True)) | self.arrays

    @property
    def copies(self):
        """name -> ndarray, of the parameters there."""
        return {name: p.data(self.context).data for name, p in self.params.items()}

    @property
    def arrays(self):
        """name -> ndarray, of all that the program reads beside the inputs."""
        return self.copies | {name: a.data for name, a in self.numbers.items()}

    @property
    def tiers(self):
        """The plans of calls off the tape."""
        return self.program.tiers(self.names)

    def bind(self):
        """The plan tied to where the parameters lie; the first call makes it."""
        self.states = self.tiers.states
        self.plain = self.structure is SLOT and not self.states
        self.bound = self.tiers.bind(self.arrays)
        return self.bound

    def given(self, arrays):
        """name -> array, of the inputs and of all else that the program reads."""
        params = {name: param.data(self.context) for name, param in self.params.items()}
        return dict(zip(self.names, arrays, strict=True)) | self.numbers | params

    def recorded(self, arrays):
        """The outputs of a call on the tape."""
        self.taped += 1
        given = self.given(arrays)
        return self.result(self.program.operator(self.names, given).apply(given))

    def result(self, outs):
        """Arrays in the structure that the function gave them."""
        if self.kind is not type(outs[0]):
            outs = [out.as_np_ndarray() for out in outs]
        return self.build(iter(outs))

    def fits(self):
        """Whether every parameter still has the shape and dtype of the trace.

        Raises:  HybridError if one has no copy on the inputs' context.
        """
        specs = {n.name: n.specs[0] for n in self.graph.variables}
        return all(specs[name] == (a.shape, a.dtype) for name, a in self.copies.items())
