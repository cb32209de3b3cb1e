"""Chapter 20. Plan: what the pipeline built, around which a call is written.

Takes:   a traced graph with known shapes, and what else a `Job` says.
Gives:   `Plan`, which runs; `ActivePlan`, the plan of a job that answers its calls, and
         `Bound`, that plan tied to its parameters.

What is left out: plans for shapes that are not known.
"""

import time
from functools import partial
from types import SimpleNamespace

import numpy as np

from minihybrid.core import hooks
from minihybrid.core.pipeline import Job, build
from minihybrid.core.placement import aligned
from minihybrid.core.targets import TARGETS
from minihybrid.ops.random import STREAM


class Plan:
    """A graph, optimised, placed in memory, written as source and compiled.

    wanted:      the other fields of a `Job`: training, target, title, ...

    stages:      [(name, graph)] from the trace to what was compiled.
    source:      the generated text;  kernels: its kernels, one by one.
    memory:      where each value lies.
    n_kernels:   loops a call runs;   nbytes_moved: bytes that they read and write.
    device:      where arrays and arena are; `None` for the processor.
    target_note: why the target is not the one asked for, or "".
    into:        output number -> which of `params` it is written over, of those that the
                 job names.
    states:      names of variables whose new values are the last outputs of a call.
    """

    def __init__(self, graph, inputs, **wanted):
        job = Job(graph, tuple(inputs), **wanted)
        self.built = built = build(job)
        self.inputs, self.training, self.title = [*inputs], job.training, job.title
        self.device, self.target = job.device, built.target
        self.target_note = built.note
        self.stages, self.graph, self.memory = built.stages, built.graph, built.memory
        self.states, self.made = built.graph.states, built.code
        self.kernels, self.table = self.made.kernels, self.made.table
        self.n_kernels = self.made.n_kernels
        self.params = [n.name for n in self.table.params]
        self.into = {k: self.params.index(v) for k, v in self.memory.into.items()}
        specs = [n.specs[i] for n, i in self.graph.heads]
        self.out_specs = [(tuple(map(int, s.shape)), s.dtype) for s in specs]
        self.compile_s = None  # seconds that compiling, or loading, took
        self.pool = []  # arenas that no thread is using
        self.makers = [hooks.reuse(*spec) for spec in self.out_specs]  # of their memory
        self.run = None

    @classmethod
    def of(cls, job):
        """The plan of a job."""
        return cls(**vars(job))

    def load(self):
        """The function that runs the plan; compiled, or loaded from the cache, once.

        Gives:   `run(arrays, bound)`: the outputs, in fresh memory, of the input arrays
                 and what `bind` returned.
        """
        if self.run is None:
            start, target = time.perf_counter(), TARGETS[self.target]
            if target.runner:
                self.function, run = target.runner(self)
            else:
                self.function = target.load(self.made)
                run = self._runner(self.function)
            self.compile_s = time.perf_counter() - start
            self.run = run
        return self.run

    def _runner(self, function):
        """What a call does around the compiled function: `caller`, names filled in."""
        sizes = SimpleNamespace(memory=self.memory, made=self.made)  # not the plan,
        new_arena = partial(Plan._new_arena, sizes)  # which keeps what calls this
        scope = {
            "function": function,
            "pool": self.pool,
            "new_arena": new_arena,
            "arena": aligned((0,), np.uint8),
            "empty": np.empty,
            "take": STREAM.take,
            "contiguous": _contiguous,
        }
        scope |= TARGETS[self.target].names
        for k, (shape, dtype) in enumerate(self.out_specs):
            scope |= {f"shape{k}": shape, f"dtype{k}": dtype, f"reuse{k}": self.makers[k]}
        exec(self.caller, scope)
        return scope.pop("run")  # what refers to itself outlives its last user

    @property
    def caller(self):
        """The Python around the compiled function, written out for its inputs and
        outputs.

        A loop over the outputs would cost more than the outputs themselves.
        """
        ins = "".join(f"x{i}, " for i in range(len(self.inputs)))
        outs = "".join(f"y{k}, " for k in range(len(self.out_specs)))
        n = self.graph.n_streams
        call = TARGETS[self.target].call(
            self, f"{ins}{outs}arena, bound[0]", f"take({n})" if n else ""
        )
        makes = [
            f"reuse{k}()" if maker else f"empty(shape{k}, dtype{k})"
            for k, maker in enumerate(self.makers)
        ]
        for k, at in self.into.items():
            makes[k] = f"bound[1][{at}]"
        makes = "".join(f"    y{k} = {made}\n" for k, made in enumerate(makes))
        take = (
            "    try:\n        arena = pool.pop()\n"
            "    except IndexError:\n        arena = new_arena()\n"
        )
        give = "    pool.append(arena)\n"
        if not self.memory.nbytes + self.made.nbytes_helpers:  # calls may share an empty arena
            take = give = ""
        return (
            f"def run(arrays, bound):\n    {ins or '_'} = arrays\n{makes}{take}"
            f"    if {call} is False:  # an array is strided\n"
            f"        {ins or '_'} = map(contiguous, arrays)\n"
            f"        {call}\n{give}    return {outs}\n"
        )

    def __call__(self, arrays, bound):
        """The outputs, in fresh memory, of input arrays and what `bind` returned."""
        return (self.run or self.load())(arrays, bound)

    def bind(self, arrays):
        """What every call with these parameters passes on: a table of their addresses.

        arrays:  one ndarray a name in `params`; they must stay where they are.
        """
        return TARGETS[self.target].bound(
            arrays, [n.values[0] for n in self.table.constants], self.device
        )

    def _new_arena(self):
        return aligned((self.memory.nbytes + self.made.nbytes_helpers,), np.uint8)

    # -- looking at it
    @property
    def labels(self):
        """What the steps of a call are called, in order."""
        return [step.label for step in self.made.steps]

    @property
    def source(self):
        """The generated text."""
        return self.made.text

    @property
    def texts(self):
        """The text of each step's kernel: plans with the same texts share machine code."""
        return tuple(step.kernel for step in self.made.steps if hasattr(step, "kernel"))

    @property
    def nbytes_moved(self):
        """Bytes that the kernels of a call read and write, each value once a kernel."""
        return nbytes_moved(self.graph)

    @property
    def nbytes_eager(self):
        """Bytes that the same operators take when each result has memory of its own."""
        graph = dict(self.stages).get("expand", self.stages[0][1])
        return sum(s.nbytes for n in graph.nodes if n.op and not n.op.view for s in n.specs)

    @property
    def nbytes_planned(self):
        """Bytes of the arena and the outputs."""
        return self.memory.nbytes + self.memory.outs_nbytes

    def time_steps(self, arrays, bound, repeats=200):
        """Seconds of each kernel: [(kernel, elapsed_s)], medians of repeats."""
        from minihybrid.runtime.kernel_times import time_steps

        return time_steps(self, arrays, bound, repeats)

    def show(self):
        """The plan in a few lines."""
        from minihybrid.view.text import text

        return text(self)

    def __repr__(self):
        return f"<Plan {self.show()}>"


class ActivePlan:
    """The plan of a job that answers its calls: here one, from the start.

    Where another one comes to be in force later, `settled` is False until then
    (minihybrid/runtime/tiers.py).
    """

    settled = True

    def __init__(self, job, wait=None):
        self.job, self.title = job, job.title
        self.plan = self._first(job, wait)
        self.states = self.plan.states

    def _first(self, job, wait):
        return Plan.of(job)

    def bind(self, arrays):
        """The plan in force, tied to its parameters.

        arrays:  name -> ndarray; they must stay where they are.
        """
        return Bound(self, arrays)

    def last(self):
        """The plan that is in force in the end; not yet compiled, perhaps."""
        return self.plan


def active_plan(job, wait=None):
    """What answers the calls of a job, as its target has it."""
    target = TARGETS.get(job.device.target if job.device else job.target)
    return (target.tiers if target else ActivePlan)(job, wait)


def tied(plan, arrays):
    """(function, table) of a plan: its outputs are `function(inputs, table)`."""
    table = plan.bind([arrays[name] for name in plan.params])
    return plan.load(), table


class Bound:
    """The plan in force tied to its parameters.

    call:    (function, table): the outputs are `function(arrays, table)`.
    """

    def __init__(self, tiers, arrays):
        self.tiers, self.arrays = tiers, arrays
        self.call = tied(tiers.plan, arrays)

    def __call__(self, arrays):
        """The outputs, in fresh memory, of the input arrays."""
        function, table = self.call
        return function(arrays, table)


def _contiguous(array):
    """The array in plain memory of its own, as kernels take it."""
    return np.array(array, order="C")


def nbytes_moved(graph):
    """Bytes read and written if each operator is a loop of its own over memory."""
    total = 0
    for node in graph.nodes:
        if node.op is not None and not node.op.view:
            total += sum(n.specs[i].nbytes for n, i in set(node.inputs))
            total += sum(s.nbytes for s in node.specs)
    return total


def write_states(states, outs, arrays):
    """Put the new values of a plan's states, its last outputs, into their arrays.

    arrays:  name -> ndarray.
    """
    if states:
        for name, new in zip(states, outs[-len(states) :], strict=True):
            arrays[name][...] = new
