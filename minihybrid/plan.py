"""Chapter 12. Plan: what the pipeline built, around which a call is written.

Takes:   a traced graph with known shapes, and what else a `Job` says.
Gives:   `Plan`, which runs.

What is left out: plans for shapes that are not known.
"""

import importlib.util
import statistics
import time
from functools import partial
from types import SimpleNamespace

import numpy as np

from minihybrid.codegen.team import together
from minihybrid.devicearray import DeviceArray, aligned, placed
from minihybrid.op import HybridError, Spec
from minihybrid.ops.random import STREAM
from minihybrid.pipeline import Job, build, load
from minihybrid.reuse import LARGE, Reuse


def best_target():
    """The target that is used unless another is asked for: what is installed."""
    return "cpu" if importlib.util.find_spec("numba") else "numpy"


def target_of(array, target=None):
    """The target of a plan that reads an array: a device runs its own kernels.

    target:  for arrays in the processor's memory; unless given, the best.
    """
    return target or best_target() if array.device == "cpu" else array.device


WIDE = 16  # bytes that one thread of a GPU can load at once, from a multiple of them


class Plan:
    """A graph, optimised, placed in memory, written as source and compiled.

    wanted:      the other fields of a `Job`: training, target, title, ...

    stages:      [(name, graph)] from the trace to what was compiled.
    source:      the generated text;  kernels: its kernels, one by one.
    memory:      where each value lies.
    n_kernels:   loops a call runs;   nbytes_moved: bytes that they read and write.
    device:      where arrays and arena are, for the target "gpu"; else `None`.
    target_note: why the target is not the one asked for, or "".
    into:        output number -> which of `params` it is written over on a device, of
                 those that the job names.
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
        self.out_specs = [
            (n.specs[i].shape, n.specs[i].dtype) for n, i in self.graph.heads
        ]
        self.compile_s = None  # seconds that compiling, or loading, took
        self.pool = []  # arenas that no thread is using
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
            start = time.perf_counter()
            self.function = load(self.built, self.device)
            run = self._run_on_device if self.device else self._runner(self.function)
            self.compile_s = time.perf_counter() - start
            self.run = run
        return self.run

    def _run_on_device(self, arrays, bound):
        n = self.graph.n_streams
        return self.launch(arrays, bound, STREAM.take(n) if n else 0)

    def launch(self, arrays, bound, key):
        """The outputs on the device, for random numbers that begin with a key.

        One launch is asked for; the numbers are there when the device is done.
        """
        arrays = [a if a.address % WIDE == 0 else a.copy() for a in arrays]
        outs = [bound[1][self.into[k]] if k in self.into else
                DeviceArray(self.device, shape, dtype)
                for k, (shape, dtype) in enumerate(self.out_specs)]
        self.function([a.address for a in (*arrays, *outs)], bound[0], key)
        return outs

    def _runner(self, function):
        """What a call does around the compiled function: `caller`, names filled in."""
        sizes = SimpleNamespace(memory=self.memory, made=self.made)  # not the plan,
        new_arena = partial(Plan._new_arena, sizes)  # which keeps what calls this
        scope = {"function": function, "together": together, "pool": self.pool,
                 "new_arena": new_arena, "empty": np.empty, "take": STREAM.take,
                 "contiguous": _contiguous}
        for k, (shape, dtype) in enumerate(self.out_specs):
            scope |= {f"shape{k}": shape, f"dtype{k}": dtype,
                      f"reuse{k}": Reuse(shape, dtype)}
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
        key = f"take({n})" if n else "0"
        args = f"{ins}{outs}arena, bound[0]"
        if self.target == "numpy":
            call = f"function({args}{f', {key}' if n else ''})"
        elif any(step.chunks > 1 for step in self.made.steps):
            call = f"together(function, ({args}, {key}), {self.n_kernels})"
        else:  # all steps, by this thread
            call = f"function({args}, {key}, {self.n_kernels}, 0, 0)"
        makes = "".join(
            f"    y{k} = reuse{k}()\n" if Spec(*spec).nbytes >= LARGE else
            f"    y{k} = empty(shape{k}, dtype{k})\n"
            for k, spec in enumerate(self.out_specs))
        return (f"def run(arrays, bound):\n    {ins or '_'} = arrays\n{makes}"
                "    try:\n        arena = pool.pop()\n"
                "    except IndexError:\n        arena = new_arena()\n"
                f"    if {call} is False:  # an array is strided\n"
                f"        {ins or '_'} = map(contiguous, arrays)\n"
                f"        {call}\n    pool.append(arena)\n    return {outs}\n")

    def __call__(self, arrays, bound):
        """The outputs, in fresh memory, of input arrays and what `bind` returned."""
        return (self.run or self.load())(arrays, bound)

    def bind(self, arrays):
        """What every call with these parameters passes on: a table of their addresses.

        arrays:  one ndarray a name in `params`; they must stay where they are.
        """
        constants = [n.values[0] for n in self.table.constants]
        if self.device:
            place = self.device.context
            arrays = [*arrays, *(placed(each, place) for each in constants)]
            return [a.address for a in arrays], arrays
        arrays = [*arrays, *constants]
        arrays = [np.asarray(a, order="C") for a in arrays]  # keeps 0 axes
        if self.target == "numpy":
            return arrays, arrays
        return np.array([a.ctypes.data for a in arrays], np.uint64), arrays

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
    def nbytes_moved(self):
        """Bytes that the kernels of a call read and write, each value once a kernel."""
        return nbytes_moved(self.graph)

    @property
    def nbytes_eager(self):
        """Bytes that the same operators take when each result has memory of its own."""
        graph = dict(self.stages).get("expand", self.stages[0][1])
        return sum(
            s.nbytes for n in graph.nodes if n.op and not n.op.view for s in n.specs
        )

    @property
    def nbytes_planned(self):
        """Bytes of the arena and the outputs."""
        return self.memory.nbytes + self.memory.outs_nbytes

    def time_steps(self, arrays, bound, repeats=200):
        """Seconds of each kernel: [(kernel, elapsed_s)], medians of repeats.

        The driver is told to stop after each step, and a step's time is the difference
        of two stops.
        """
        if self.target != "cpu":
            raise HybridError(f"time_steps: the target '{self.target}' has no compiled "
                              "steps; use target='cpu'")
        self(arrays, bound)  # compiles it
        outs = [np.empty(shape, dtype) for shape, dtype in self.out_specs]
        args, n = (*arrays, *outs, self._new_arena(), bound[0], 0), self.n_kernels
        samples = [[] for _ in range(n + 1)]
        for _ in range(repeats):
            for stop in range(n + 1):
                start = time.perf_counter()
                for _ in range(10):
                    self.function(*args, stop, 0, 0)
                samples[stop].append((time.perf_counter() - start) / 10)
        medians = [statistics.median(s) for s in samples]
        times = [max(b - a, 0.0) for a, b in zip(medians, medians[1:], strict=False)]
        return [("call", medians[0]), *zip(self.labels, times, strict=True)]

    def show(self):
        """The plan in a few lines."""
        return (f"{self.title}: target {self.target}"
                f"{f' ({self.target_note})' if self.target_note else ''}, "
                f"{'training' if self.training else 'prediction'}\n"
                f"  {self.stages[0][1].n_ops} operators traced, {self.n_kernels} "
                f"kernels, {self.nbytes_moved} bytes moved\n"
                f"  memory: {self.nbytes_eager} bytes eager, {self.nbytes_planned} "
                "planned")

    def __repr__(self):
        return f"<Plan {self.show()}>"


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
        for name, new in zip(states, outs[-len(states):], strict=True):
            arrays[name][...] = new
