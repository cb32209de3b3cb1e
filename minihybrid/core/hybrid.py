"""Chapter 03. Hybrid: trace a function once per signature, then run the compiled plan.

Uses:    a function that works on arrays and on symbols, and the parameters it reads.
Defines: `Hybrid`, a cache of plans keyed by signature: shapes, dtypes, mode.

A cache hit costs one lookup and one call into compiled code.
Limits: each new length is traced; lengths of a dynamic axis share kernels.
"""

from contextlib import nullcontext
from itertools import repeat
from typing import NamedTuple

from minihybrid.core import hooks
from minihybrid.core.arguments import arrays_in, restore
from minihybrid.core.array import STATE, NDArray
from minihybrid.core.cache_entry import MAX_PLANS, CacheEntry, CompiledGraph
from minihybrid.core.fork_safe import ForkSafe
from minihybrid.core.lengths import marked, marks_of, symbolic
from minihybrid.core.lru_cache import LRUCache
from minihybrid.core.op import AttrError, HybridError, Spec, described
from minihybrid.core.parameter import VERSION
from minihybrid.core.pipeline import Job
from minihybrid.core.plan import write_states
from minihybrid.core.pytree import SLOT, flatten, nesting, reader
from minihybrid.core.sym import Symbol, trace
from minihybrid.core.tape import modes
from minihybrid.core.targets import TARGETS, best_target, target_of
from minihybrid.core.tracing import TraceError, is_tracing, user_line


class Signature(NamedTuple):
    """The cache key of a plan, in readable form."""

    inputs: tuple  # specs of the arrays, and the other arguments
    training: bool
    recording: bool
    lengths: tuple = ()  # (symbol, its values), if one plan serves several lengths

    def __str__(self):
        mode = "training" if self.training else "prediction"
        gradient = ", with gradient" if self.recording else ""
        with symbolic() if self.lengths else nullcontext():
            inputs = ", ".join(map(str, self.inputs))
        values = "".join(f", {name} = {', '.join(map(str, v))}" for name, v in self.lengths)
        return f"({inputs}) {mode}{gradient}{values}"


class Plans(dict):
    """All compiled plans: signature -> plan; prints as a list.

    uses:    signature -> (cache entry, number of calls that ran this plan).
    reasons: why the function was traced or retraced, newest last (at most 1,000).
    """

    uses: dict = {}
    reasons: list = []

    def __repr__(self):
        return self.show(guards=False)

    def show(self, guards=True):
        """Return text: each plan with its guards, number of calls and reason to compile."""
        from minihybrid.runtime.guards import listed

        return listed(self, guards)


def alike(symbol, kind):
    """Return the symbol as an nd or np symbol, whichever `kind` is."""
    return symbol.as_np_ndarray() if kind.is_np else symbol


class Hybrid(ForkSafe):
    """Traces a function of arrays once per signature and runs the compiled plan.

    find:    () -> the function; indirect, to avoid a reference cycle with its owner.
    params:  () -> name -> Parameter, those that the function may read.
    title:   the function's name in plans and errors.
    target:  "cpu" (Numba), "numpy", or None: the first that is installed.
    wait:    whether calls block until kernels are compiled (minihybrid/runtime/tiers.py).
    remat:   a budget for the values kept by a forward pass (`passes/remat.py`).
    parts:   () -> the function's dependencies; if they change, it is retraced.
    names:   of its inputs in graphs; by default data, or data0, data1, ...
    dynamic: the axes of the inputs that have symbolic lengths (core/lengths.py).

    The owner keeps `caller()`, which keeps this object; nothing refers back, so a net is
    freed as soon as it is dropped.
    """

    def __init__(
        self,
        find,
        params,
        title,
        target=None,
        wait=None,
        parts=tuple,
        names=(),
        dynamic=None,
        remat=None,
    ):
        super().__init__()
        if target == "cpu" and target in TARGETS and not TARGETS[target].usable():
            raise HybridError(
                "hybridize: backend='cpu' needs Numba, which is not installed; "
                "pip install numba, or use backend='numpy'"
            )
        self.find, self.params, self.title, self.names = find, params, title, names
        self.target, self.wait, self.parts = target or best_target(), wait, parts
        self.marks = marks_of(dynamic)
        self.remat = remat
        self.entries, self.warned, self.reasons = LRUCache(MAX_PLANS), set(), []
        self.values = LRUCache(MAX_PLANS)  # signature without scalars -> traces so far
        self.programs = LRUCache(MAX_PLANS)  # graphs whose scalars are inputs

    def caller(self):
        """Return the function that runs plans for a tuple of arguments.

        A closure, because it reads its variables faster than attributes."""
        entries, state, version = self.entries, STATE, VERSION
        readers = {}  # number of arguments -> reader of the last such call

        def call(args):
            try:  # fast path: a cache hit checks nothing else
                read, arrays_of = readers[len(args)]
                key, datas = read(args, state.training)
                entry = entries[key]
            except (LookupError, TypeError, ValueError, AttributeError):
                entry = None
            if entry is None or entry.version != version.count:
                if any(isinstance(a, Symbol) for a in arrays_in(args)):
                    return self.find()(*args)
                read, arrays_of = readers[len(args)] = reader(nesting(args))
                entry, datas = self.entry_for(args), read(args, None)[1]
            entry.calls += 1
            if state.recording:
                return entry.recorded(arrays_of(args))
            run, table = (entry.bound or entry.bind()).call
            outs = run(datas, table)
            if entry.plain:
                return entry.wrap(outs[0])
            if entry.states:
                write_states(entry.states, outs, entry.places(datas))
            return entry.build(map(entry.wrap, outs))

        return call

    def entry_for(self, args):
        """Return the cache entry for these arguments; trace if it is missing or stale."""
        key = self.key(args)
        if is_tracing():
            raise TraceError(
                f"{self.title}: its inputs are NDArrays while another block is traced"
                f"{user_line()}; pass arrays to a hybrid block as parameters or constants "
                "(params.get_constant)"
            )
        with self.lock:
            entry = old = self.entries.get(key)
            if (
                entry is not None and entry.version != VERSION.count and entry.parts != self.parts()
            ):  # all other entries are stale, too
                self.entries.clear()
                entry = None
            if entry is None or not entry.fits():
                entry = self.trace(args)
                entry.fits()  # raises if initialize() was forgotten
                hooks.check_places(self.title, entry, arrays_in(args))
                hooks.many_plans(self, entry, args, old)
                for each, other in list(self.entries.items()):
                    if other.calls != other.counted:  # used since the last insertion
                        self.entries.lookup(each).counted = other.calls
                self.entries.put(key, entry)
            if entry.version != VERSION.count:
                entry.bound, entry.version = None, VERSION.count
        return entry

    def key(self, args):
        """Return the cache key of these arguments."""
        try:
            key, datas = reader(nesting(args))[0](args, STATE.training)
            hash(key)
        except (TypeError, AttributeError):  # AttributeError: symbols
            datas = ()
        if not datas:
            arrays = arrays_in(args)
            if arrays and all(isinstance(a, NDArray) for a in arrays):
                raise AttrError(
                    f"{self.title}: arguments other than arrays must be plain values (numbers, "
                    "strings, None), which are part of the program; pass arrays as NDArray"
                )
            received = ", ".join(map(described, args)) or "none"
            raise AttrError(
                f"{self.title}: NDArrays are needed as inputs, found "
                f"{received}; make arrays with nd.array(...)"
            )
        return key

    def trace(self, args):
        """Trace the function once on symbols; initialize parameters with inferred shapes."""
        arrays = arrays_in(args)
        names = ["data"] if len(arrays) == 1 else [f"data{i}" for i in range(len(arrays))]
        names[: len(self.names)] = self.names[: len(names)]
        reserved = set(self.params())
        while not reserved.isdisjoint(names):  # a parameter may have this name
            names = ["_" + name for name in names]
        specs = {n: Spec(a.data.shape, a.data.dtype) for n, a in zip(names, arrays, strict=True)}
        specs = marked(specs, self.marks, self.title) if self.marks else specs
        kinds = [a.kind for a in arrays]
        places = restore(args, repeat(SLOT))  # keeps no array alive
        find, training = self.find, STATE.training

        def arranged(symbols):
            return restore(places, map(alike, symbols, kinds))

        def again(specs):
            with modes(recording=False):
                return trace(find(), specs, training, arranged)[0]

        with modes(recording=False):  # not by `again`, to keep tracebacks short
            graph, result = trace(find(), specs, training, arranged)
        params, used = self.params(), {}
        for name in [n.name for n in graph.variables if n.name not in specs]:
            if name not in params:
                raise TraceError(
                    f"{self.title}: the variable '{name}' is neither an argument nor a "
                    "parameter; keep layers as attributes from __init__ on, lists hide them"
                )
            used[name] = params[name]
        self.finish(graph, used)
        kind = next((k for k in kinds if k.is_np), NDArray)
        target = target_of(arrays[0].data, self.target)
        program = CompiledGraph(
            Job(graph, (), training, target, self.title, remat=self.remat), self.wait
        )
        structure, context = restore(result, repeat(SLOT)), arrays[0].context
        entry = CacheEntry(graph, names, structure, used, kind, again, context, program)
        entry.parts, entry.args = self.parts(), places
        return entry

    def finish(self, graph, params):
        """Assign the parameters the shapes that the trace inferred."""
        unknown = []
        for node in graph.variables:
            param = params.get(node.name)
            if param is None or param._arrays:
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
                f"{self.title}: the shapes of {names} cannot be inferred from the input "
                "(0 is unknown); specify them when you create the layer (in_units), or use "
                "the parameter in an operator that fixes its shape"
            )

    @property
    def plans(self):
        """The current plans; for calls on the tape, those of the current `grad_req`."""
        plans, groups = Plans(), {}
        plans.uses, plans.reasons = {}, [*self.reasons]
        for key, entry in self.entries.items():
            inputs = [n.specs[0] for n in entry.graph.variables if n.name in entry.names]
            if not entry.numbers:  # else another entry has the same plan with other scalars
                inputs += [a for a in entry.args if a is not SLOT and flatten(a) is None]
            now, op = entry.program.now, entry.program.op
            for source in (now, op, op and op.backward_op):
                if source and source.plan:
                    more = ("backward",) * source.plan.title.endswith("backward")
                    signature = Signature((*inputs, *more), key[-1], source is not now)
                    calls = entry.calls - entry.taped if source is now else source.calls
                    plans[signature], plans.uses[signature] = source.plan, (entry, calls)
                    with symbolic() as lengths:  # equal text means one plan for several lengths
                        alike = f"{signature}", source.plan.target, source.plan.texts
                    if lengths:
                        groups.setdefault(alike, []).append((signature, lengths))
        for those in groups.values():
            values = {n: tuple(dict.fromkeys(at[n] for _, at in those)) for n in those[0][1]}
            signature = those[0][0]._replace(lengths=tuple(values.items()))
            uses, plan = [plans.uses.pop(each) for each, _ in those], plans[those[0][0]]
            for each, _ in those:
                del plans[each]
            plans[signature] = plan
            plans.uses[signature] = uses[0][0], sum(calls for _, calls in uses)
        return plans

    def plan_for(self, *args):
        """Return (plan, input arrays, bound parameters) for these arguments, with the plan
        of the last tier."""
        entry = self.entry_for(args)
        plan, read = entry.tiers.last(), entry.arrays
        bound = plan.bind([read[name] for name in plan.params])
        return plan, [a.data for a in arrays_in(args)], bound
