"""Chapter 19. Plan: a compiled graph, and the code around each call of it.

Defines: `Plan`, which runs; `ActivePlan`, which chooses the plan that answers a job's
         calls; `Bound`, a plan bound to its parameters' addresses.

Not supported: unknown shapes.
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
    """A graph, optimized, with planned memory, generated source and compiled kernels.

    options:     the other fields of a `Job`: training, target, title, ...

    stages:      [(name, graph)] from the trace to the compiled graph.
    source:      the generated source;  kernels: its kernels, one by one.
    memory:      the memory plan.
    n_kernels:   kernels per call;   nbytes_moved: bytes that they load and store.
    device:      of arrays and arena; `None` for the CPU.
    target_note: why this isn't the requested target, or "".
    into:        output number -> position in `params` of the buffer that it overwrites.
    states:      names of variables whose new values are the last outputs of a call.
    """

    def __init__(self, graph, inputs, **options):
        job = Job(graph, tuple(inputs), **options)
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
        self.pool = []  # arenas not in use by any thread
        self.makers = [hooks.reuse(*spec) for spec in self.out_specs]  # buffer reuse per output
        self.run = None

    @classmethod
    def of(cls, job):
        """Compile a job."""
        return cls(**vars(job))

    def load(self):
        """Return the function that runs the plan; compile it, or load it from the cache, once.

        Returns: `run(arrays, bound)`: (input arrays, result of `bind`) -> outputs in fresh
                 memory.
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
        """Compile `caller`, the code around the compiled function."""
        sizes = SimpleNamespace(memory=self.memory, made=self.made)  # not self: the plan
        new_arena = partial(Plan._new_arena, sizes)  # refers to this function
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
        return scope.pop("run")  # without the scope's reference to it: no cycle

    @property
    def caller(self):
        """The Python source around the compiled function, unrolled over inputs and outputs.

        A loop over the outputs would cost more than allocating them.
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
        makes = "".join(f"    y{k} = {expr}\n" for k, expr in enumerate(makes))
        take = (
            "    try:\n        arena = pool.pop()\n"
            "    except IndexError:\n        arena = new_arena()\n"
        )
        give = "    pool.append(arena)\n"
        if not self.memory.nbytes + self.made.nbytes_helpers:  # an empty arena can be shared
            take = give = ""
        return (
            f"def run(arrays, bound):\n    {ins or '_'} = arrays\n{makes}{take}"
            f"    if {call} is False:  # an array is strided\n"
            f"        {ins or '_'} = map(contiguous, arrays)\n"
            f"        {call}\n{give}    return {outs}\n"
        )

    def __call__(self, arrays, bound):
        """Run the plan on input arrays and the result of `bind`; return outputs in fresh memory."""
        return (self.run or self.load())(arrays, bound)

    def bind(self, arrays):
        """Return the table of addresses that every call with these parameters passes.

        arrays:  one ndarray per name in `params`; their memory must not be replaced.
        """
        return TARGETS[self.target].bound(
            arrays, [n.values[0] for n in self.table.constants], self.device
        )

    def _new_arena(self):
        return aligned((self.memory.nbytes + self.made.nbytes_helpers,), np.uint8)

    # -- inspection
    @property
    def labels(self):
        """The names of a call's launches, in order."""
        return [launch.label for launch in self.made.launches]

    @property
    def source(self):
        """The generated source."""
        return self.made.text

    @property
    def texts(self):
        """The source of each launch's kernel; plans with equal sources share machine code."""
        return tuple(launch.kernel for launch in self.made.launches if hasattr(launch, "kernel"))

    @property
    def nbytes_moved(self):
        """Bytes that a call's kernels load and store, each value once per kernel."""
        return nbytes_moved(self.graph)

    @property
    def nbytes_eager(self):
        """Bytes that eager execution allocates, with fresh memory for each result."""
        graph = dict(self.stages).get("expand", self.stages[0][1])
        return sum(s.nbytes for n in graph.nodes if n.op and not n.op.view for s in n.specs)

    @property
    def nbytes_planned(self):
        """Bytes of the arena and the outputs."""
        return self.memory.nbytes + self.memory.outs_nbytes

    def time_steps(self, arrays, bound, repeats=200):
        """Time each kernel: return [(kernel, elapsed_s)], medians over repeats."""
        from minihybrid.runtime.kernel_times import time_steps

        return time_steps(self, arrays, bound, repeats)

    def show(self):
        """Return a summary of a few lines."""
        from minihybrid.view.text import text

        return text(self)

    def __repr__(self):
        return f"<Plan {self.show()}>"


class ActivePlan:
    """The plan that answers a job's calls: here always the same.

    Tiered compilation (minihybrid/runtime/tiers.py) replaces it later; `settled` is False
    until then.
    """

    settled = True

    def __init__(self, job, wait=None):
        self.job, self.title = job, job.title
        self.plan = self._first(job, wait)
        self.states = self.plan.states

    def _first(self, job, wait):
        return Plan.of(job)

    def bind(self, arrays):
        """Return the active plan bound to its parameters.

        arrays:  name -> ndarray; their memory must not be replaced.
        """
        return Bound(self, arrays)

    def last(self):
        """Return the plan of the last tier, which may not be compiled yet."""
        return self.plan


def active_plan(job, wait=None):
    """Return the `ActivePlan` of a job, of the class that its target chooses."""
    target = TARGETS.get(job.device.target if job.device else job.target)
    return (target.tiers if target else ActivePlan)(job, wait)


def bind(plan, arrays):
    """Return (function, table) of a plan; `function(inputs, table)` returns its outputs."""
    table = plan.bind([arrays[name] for name in plan.params])
    return plan.load(), table


class Bound:
    """The active plan bound to its parameters.

    call:    (function, table); `function(arrays, table)` returns the outputs.
    """

    def __init__(self, tiers, arrays):
        self.tiers, self.arrays = tiers, arrays
        self.call = bind(tiers.plan, arrays)

    def __call__(self, arrays):
        """Run the plan on input arrays; return outputs in fresh memory."""
        function, table = self.call
        return function(arrays, table)


def _contiguous(array):
    """Return a contiguous copy, as kernels require."""
    return np.array(array, order="C")


def nbytes_moved(graph):
    """Return the bytes loaded and stored if each operator is a separate loop."""
    total = 0
    for node in graph.nodes:
        if node.op is not None and not node.op.view:
            total += sum(n.specs[i].nbytes for n, i in set(node.inputs))
            total += sum(s.nbytes for s in node.specs)
    return total


def write_states(states, outs, arrays):
    """Store the new values of states, a plan's last outputs, into their arrays.

    arrays:  name -> ndarray.
    """
    if states:
        for name, new in zip(states, outs[-len(states) :], strict=True):
            arrays[name][...] = new
