"""Chapter 03. Hybrid: a function of arrays that is traced once a signature, then
compiled.

Takes:   a function that works on arrays and on symbols alike, and the parameters it
         uses.
Gives:   `Hybrid`, which keeps a plan for each signature: shapes, dtypes, mode.

A call that meets a known signature costs one look-up and one crossing into compiled
code.
What is left out: signatures with unknown lengths; each new shape is a new plan.
"""

from contextlib import contextmanager
from itertools import repeat
from typing import NamedTuple

from minihybrid import np
from minihybrid.array import STATE, NDArray
from minihybrid.compiled import CompiledOp
from minihybrid.gluon.parameter import Version
from minihybrid.locked import Locked
from minihybrid.op import AttrError, HybridError, Spec, described
from minihybrid.passes import expand
from minihybrid.plan import best_target, target_of, write_states
from minihybrid.sym import Symbol, replay, trace
from minihybrid.tiers import Tiers
from minihybrid.tracing import TraceError


class Signature(NamedTuple):
    """What a plan was made for."""

    inputs: tuple       # specs of the arrays, and other arguments as they are
    training: bool
    recording: bool

    def __str__(self):
        mode = "training" if self.training else "prediction"
        kept = ", with gradient" if self.recording else ""
        return f"({', '.join(map(str, self.inputs))}) {mode}{kept}"


class Plans(dict):
    """signature -> plan, of everything that was compiled; prints as a list."""

    def __repr__(self):
        lines = [f"{signature}: {plan.n_kernels} kernel{'s' * (plan.n_kernels != 1)}, "
                 f"{plan.nbytes_planned} bytes, target {plan.target}"
                 f"{f' ({plan.target_note})' * bool(plan.target_note)}"
                 for signature, plan in self.items()]
        return "\n".join(lines) or "no plans yet: hybridize, then call with data"


class Entry:
    """A traced signature: its graph, and what runs it."""

    def __init__(self, graph, names, structure, params, kind, again, device, target):
        self.graph, self.names, self.structure = graph, names, structure
        self.device = device   # of the inputs; the parameters must be there, too
        self.target = target   # of its plans
        self.params = params   # the Parameters that the graph reads, by name
        self.tiers = None      # for calls off the tape
        self.op, self.ops = None, {}  # for calls on the tape: the last, and all
        self.bound, self.version = None, -1
        self.kind = kind       # the class of the arrays that it takes and gives
        self.again = again     # name -> Spec of the inputs to a graph, for other specs

    def places(self, arrays):
        """name -> ndarray, of the inputs and the parameters: where states lie."""
        return dict(zip(self.names, arrays, strict=True)) | {
            name: p.data().data for name, p in self.params.items()}

    def fits(self):
        """Whether every parameter still has the shape, dtype and device of the trace.
        """
        specs = {n.name: n.specs[0] for n in self.graph.variables}
        arrays = {name: p.data().data for name, p in self.params.items()}
        return all(specs[name] == (a.shape, a.dtype) and a.device == self.device
                   for name, a in arrays.items())


def arrays_in(args):
    """The arrays (or symbols) of nested arguments, in order."""
    found = []
    for arg in args:
        if isinstance(arg, (list, tuple)):
            found += arrays_in(arg)
        elif isinstance(arg, (NDArray, Symbol)):
            found.append(arg)
    return found


def restore(structure, values):
    """The nested structure with each placeholder taken from an iterator of values."""
    if isinstance(structure, (list, tuple)):
        return type(structure)(restore(part, values) for part in structure)
    return next(values) if isinstance(structure, (NDArray, Symbol, Slot)) else structure


def check_places(title, entry, arrays):
    """Raise an error if an input or a parameter is not where the first input is."""
    for name, other in zip(entry.names, arrays, strict=True):
        if other.data.device != entry.device:
            raise HybridError(
                f"{title}: its input '{entry.names[0]}' is on {arrays[0].context}, but "
                f"'{name}' is on {other.context}; bring both to one device, for "
                "example by x.as_in_context(...)")
    for name, param in entry.params.items():
        if param.data().data.device != entry.device:
            raise HybridError(
                f"{title}: the input lives on {arrays[0].context}, but the parameter "
                f"'{name}' on {param.data().context}; move the input by "
                "x.as_in_context(...) or the net by net.reset_ctx(...)")


class Slot:
    """The place of an array in nested arguments."""

    def __repr__(self):
        return "array"


SLOT = Slot()


def slots(args):
    """The same nesting with slots for arrays: what else than arrays was passed."""
    if isinstance(args, (list, tuple)):
        return tuple(slots(a) for a in args)
    return SLOT if isinstance(args, (NDArray, Symbol)) else args


def static(args):
    """What the arguments are apart from arrays; 1, 1.0 and True are not the same."""
    if isinstance(args, (list, tuple)):
        return (type(args), *map(static, args))
    return SLOT if isinstance(args, NDArray) else (type(args), args)


def seen(array):
    """What a plan knows of an array."""
    data = array.data
    return type(array), data.shape, data.dtype, data.device


def alike(symbol, kind):
    """The symbol that stands for an array of a class, in that class's world."""
    return symbol.as_np_ndarray() if kind is np.ndarray else symbol


@contextmanager
def off_the_tape():
    """Nothing is recorded in this block; the mode stays what it is."""
    recording, STATE.recording = STATE.recording, False
    try:
        yield
    finally:
        STATE.recording = recording


class Hybrid(Locked):
    """Traces `function(*args)` for each signature and runs the compiled plan.

    params:  () -> name -> Parameter, those that the function may read.
    title:   what plans and errors call the function.
    target:  "cpu" (Numba), "numpy", or None: the first that is installed.
    wait:    whether calls wait for compiled kernels (minihybrid/tiers.py).
    """

    def __init__(self, function, params, title, target=None, wait=None):
        super().__init__()
        self.function, self.params, self.title = function, params, title
        self.target, self.wait = target or best_target(), wait
        self.entries = {}
        self.call = self._caller()

    def _caller(self):
        """The function that runs plans; a closure finds names faster than an object."""
        entries, state, version = self.entries, STATE, Version

        def call(*args):
            try:  # the usual case looks at nothing else: one array, met before
                (x,) = args
                data = x.data
                entry = entries[type(x), data.shape, data.dtype, data.device,
                                state.training]
                arrays = (data,)
            except (KeyError, ValueError, AttributeError):
                entry = None
            if entry is None or entry.version != version.count:
                if any(isinstance(a, Symbol) for a in arrays_in(args)):
                    return self.function(*args)
                entry = self.entry_for(args)
                arrays = [a.data for a in arrays_in(args)]
            if state.recording:
                return self.recorded(entry, args)
            run, table = (entry.bound or self.bind(entry)).call
            outs = run(arrays, table)
            if entry.tiers.states:
                write_states(entry.tiers.states, outs, entry.places(arrays))
            if entry.structure is SLOT:
                return entry.kind(outs[0])
            return restore(entry.structure, map(entry.kind, outs))

        return call

    def entry_for(self, args):
        """The entry for these arguments; traced if it is new or fits no more."""
        key = self.key(args)
        with self.lock:
            entry = self.entries.get(key)
            if entry is None or not entry.fits():
                entry = self.trace(args)
                entry.fits()  # raises if initialize() was forgotten
                check_places(self.title, entry, arrays_in(args))
                self.entries[key] = entry
            if entry.version != Version.count:
                entry.bound, entry.version = None, Version.count
        return entry

    def key(self, args):
        """What must be equal for a plan to fit."""
        arrays = arrays_in(args)
        if not arrays or not all(isinstance(a, NDArray) for a in arrays):
            found = ", ".join(map(described, args)) or "none"
            raise AttrError(f"{self.title}: NDArrays are needed as inputs, found "
                            f"{found}; make arrays with nd.array(...)")
        if len(args) == 1 and isinstance(args[0], NDArray):
            return (*seen(arrays[0]), STATE.training)
        try:
            key = (*map(seen, arrays), static(args), STATE.training)
            hash(key)
        except TypeError:
            raise AttrError(f"{self.title}: arguments other than arrays must be plain "
                            "values (numbers, strings, None), which are part of the "
                            "program; pass arrays as NDArray") from None
        return key

    def trace(self, args):
        """Run the function once on symbols; finish parameters whose shapes came out."""
        arrays = arrays_in(args)
        names = (
            ["data"] if len(arrays) == 1 else [f"data{i}" for i in range(len(arrays))]
        )
        taken = set(self.params())
        while not taken.isdisjoint(names):  # a parameter may be called data, too
            names = ["_" + name for name in names]
        specs = {n: Spec(a.data.shape, a.data.dtype)
                 for n, a in zip(names, arrays, strict=True)}
        kinds = [np.ndarray if isinstance(a, np.ndarray) else NDArray for a in arrays]
        places = restore(args, repeat(SLOT))  # keeps no array alive

        def run(*symbols):
            return self.function(*restore(places, map(alike, symbols, kinds)))

        def again(specs):
            with off_the_tape():
                return trace(run, specs, STATE.training)[0]

        with off_the_tape():  # not by `again`: errors show few frames of ours
            graph, result = trace(run, specs, STATE.training)
        params = self.params()
        used = {}
        for node in graph.variables:
            if node.name in specs:
                continue
            if node.name not in params:
                raise TraceError(f"{self.title}: the variable '{node.name}' is neither "
                                 "an argument nor a parameter")
            used[node.name] = params[node.name]
        self.finish(graph, used)
        kind = np.ndarray if np.ndarray in kinds else NDArray
        device = arrays[0].data.device
        return Entry(graph, names, slots(result), used, kind, again, device,
                     target_of(arrays[0].data, self.target))

    def finish(self, graph, params):
        """Give the parameters the shapes that the trace found."""
        unknown = []
        for node in graph.variables:
            param = params.get(node.name)
            if param is None or param._array is not None:
                continue
            if node.specs[0].known:
                param.shape = node.specs[0].shape
                if param._waiting:
                    param.finish()
            else:
                unknown.append(param)
        if unknown:
            names = ", ".join(f"'{p.name}' {p.shape}" for p in unknown)
            raise HybridError(
                f"{self.title}: the shapes of {names} cannot be found from the input "
                "(0 is unknown); tell them when the layer is made (in_units), or use "
                "the parameter in an operator that fixes its shape")

    def bind(self, entry):
        """The plan tied to where the parameters lie; the first call makes it."""
        entry.bound = self.tiers(entry).bind(
            {name: p.data().data for name, p in entry.params.items()})
        return entry.bound

    def tiers(self, entry):
        """The plans of an entry for calls off the tape."""
        if entry.tiers is None:
            entry.tiers = Tiers(entry.graph, entry.names, STATE.training, entry.target,
                                self.title, wait=self.wait)
        return entry.tiers

    def recorded(self, entry, args):
        """The same on the tape: the compiled net is one operator."""
        given = dict(zip(entry.names, arrays_in(args), strict=True))
        given |= {name: param.data() for name, param in entry.params.items()}
        taped = tuple(name for name, value in given.items() if value.node is not None)
        if taped not in entry.ops:
            graph = expand(entry.graph, STATE.training).check("expand")
            entry.ops[taped] = CompiledOp(graph, entry.names, STATE.training,
                                          entry.target, self.title, taped=taped,
                                          wait=self.wait)
        entry.op = entry.ops[taped]
        outs = entry.op.apply(given)
        if entry.kind is np.ndarray:
            outs = [out.as_np_ndarray() for out in outs]
        return (
            outs[0] if entry.structure is SLOT else restore(entry.structure, iter(outs))
        )

    def watched(self, args, callback, monitor_all):
        """Run the graph operator by operator, showing each value to `callback`."""
        entry = self.entry_for(args)
        given = dict(zip(entry.names, arrays_in(args), strict=True))
        given |= {name: param.data() for name, param in entry.params.items()}
        inside = Symbol(entry.graph.outputs).get_internals()
        outs = replay([*inside.refs, *entry.graph.outputs],
                      {n: given[n.name] for n in entry.graph.variables})
        if entry.kind is np.ndarray:
            outs = [out.as_np_ndarray() for out in outs]
        for (node, _), name, out in zip(inside.refs, inside.list_outputs(), outs,
                                        strict=False):
            if monitor_all or node.op is not None:
                callback(name, "null" if node.op is None else node.op.name, out)
        outs = outs[len(inside.refs):]
        return (
            outs[0] if entry.structure is SLOT else restore(entry.structure, iter(outs))
        )

    @property
    def plans(self):
        """The plans in force: those of calls on the tape for the gradients of now."""
        found = Plans()
        for key, entry in self.entries.items():
            inputs = tuple(n.specs[0] for n in entry.graph.variables
                           if n.name in entry.names)
            for plan, recording in ((entry.tiers and entry.tiers.plan, False),
                                    (entry.op and entry.op.plan, True),
                                    (entry.op and entry.op.backward_op
                                     and entry.op.backward_op.plan, True)):
                if plan:
                    what = (*inputs, "backward") if plan.title.endswith("backward") \
                        else inputs
                    found[Signature(what, key[-1], recording)] = plan
        return found

    def plan_for(self, *args):
        """(plan, input arrays, bound parameters) for these arguments: the plan that
        stays."""
        entry = self.entry_for(args)
        plan = self.tiers(entry).last()
        bound = plan.bind([entry.params[name].data().data for name in plan.params])
        return plan, [a.data for a in arrays_in(args)], bound
