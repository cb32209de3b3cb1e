"""Chapter 14. Block and HybridBlock: networks as ordinary Python classes.

Defines: `Block`, `HybridBlock`, `SymbolBlock`.

`hybrid_forward(self, F, x, ...)` is written once. With arrays, F is the nd namespace and
the code computes; with symbols, F is the sym namespace and the code records a graph.
Limits: a block is replicated on each of its devices, not sharded.
"""

import threading
import weakref
from contextlib import contextmanager, nullcontext
from os.path import commonprefix

from minihybrid.core import initial as initializers
from minihybrid.core import nd, sym
from minihybrid.core.arguments import arrays_in
from minihybrid.core.checked_call import CheckedCall
from minihybrid.core.context import current_context
from minihybrid.core.convert import dtype_of
from minihybrid.core.formats import FORMATS
from minihybrid.core.graph import other_dtypes, topological
from minihybrid.core.hybrid import Hybrid, Plans, alike
from minihybrid.core.name import Prefix
from minihybrid.core.nd import save
from minihybrid.core.op import (
    AttrError,
    HybridError,
    checked,
    choice,
    described,
    described_type,
    not_negative,
    optional,
    unfit,
    unknown_argument,
)
from minihybrid.core.parameter import (
    UNIFORM,
    VERSION,
    DeferredInitializationError,
    Parameter,
    ParameterDict,
    _load_named,
    fill,
)
from minihybrid.core.placement import context_of
from minihybrid.core.switches import scoped
from minihybrid.core.sym import Group, Symbol, replay
from minihybrid.core.tracing import direct, is_tracing
from minihybrid.ops.infix import absent


class Scope(threading.local):
    """The open name scope of this thread, and the number of uses of each name."""

    block = None

    def __init__(self):
        self.counts = {}


SCOPE = Scope()


def _prefix_and_params(prefix, params, hint):
    """Return a new block's prefix (`dense0_`, after its parent's) and parameter dict."""
    parent = SCOPE.block
    counts = SCOPE.counts if parent is None else parent._counts
    if prefix is None:
        prefix = f"{hint}{counts.get(hint, 0)}_"
        counts[hint] = counts.get(hint, 0) + 1
    full = prefix if parent is None else parent.prefix + prefix
    if params is not None:
        return full, ParameterDict(params.prefix, params)
    return full, ParameterDict(full, None if parent is None else parent._params._shared)


OPTIONS = """backend clear wait dynamic remat static_alloc static_shape inline_limit
    forward_bulk_size backward_bulk_size""".split()  # of `hybridize`


class HookHandle:
    """Removes a hook: `handle.detach()`."""

    def __init__(self, block, hooks, hook):
        self._block, self._hooks, self._hook = block, hooks, hook
        hooks.append(hook)
        block._choose_call()

    def detach(self):
        """Stop calling the hook."""
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)
            self._block._choose_call()


def _invalidating(name):
    """Return a method of `dict` that also invalidates traces."""

    def method(self, *args):
        VERSION.count += 1
        return getattr(super(Children, self), name)(*args)

    return method


class Children(dict):
    """A block's children by name; changing them invalidates traces."""

    __setitem__, __delitem__ = _invalidating("__setitem__"), _invalidating("__delitem__")
    pop, clear = _invalidating("pop"), _invalidating("clear")


# Attributes about plans; traced code may read any other attribute.
PLANS_OWN = {"_active", "_compiled", "_hybrid", "_options", "_op_hook", "_state_version"}


class Block(metaclass=CheckedCall):
    """A network or a part of one: parameters, children, and `forward`.

    Blocks and parameters assigned to attributes are registered.
    """

    _direct = False  # whether a HybridBlock's `forward` is written without F
    _state_version = _changed = None  # VERSION.count when traced or changed; last changed attribute
    _compiled = None  # runs a hybridized call on arrays, if there are no hooks
    _forward_hooks = _forward_pre_hooks = ()  # until __init__ has run

    def __init__(self, prefix=None, params=None):
        if type(prefix) not in (str, type(None)) or params is not None:
            from minihybrid.core.call_errors import check_names

            check_names(type(self).__name__, prefix, params)
        fields = {"_children": Children(), "_reg_params": {}, "_counts": {}, "_op_hook": None}
        vars(self).update(fields, _forward_hooks=[], _forward_pre_hooks=[])
        self._prefix, self._params = _prefix_and_params(prefix, params, self._alias())
        self._name, self._unnamed = self._prefix.removesuffix("_"), prefix == ""

    def _alias(self):
        """Return the stem of automatic names of such blocks."""
        return type(self).__name__.lower()

    def __setattr__(self, name, value):
        kind, old = type(self).__name__, vars(self).get(name)
        if isinstance(value, (Block, Parameter)) and "_children" not in vars(self):
            raise HybridError(f"{kind}: call super().__init__() before setting '{name}'")
        if isinstance(old, (Block, Parameter)) and not isinstance(value, type(old)):
            raise AttrError(
                f"{kind}: '{name}' is a {type(old).__name__} and cannot become a "
                f"{type(value).__name__}; a replacement must be of its kind"
            )
        if isinstance(value, Block):
            self.register_child(value, name)
        elif isinstance(value, Parameter):
            self._reg_params[name] = value
            if isinstance(old, Parameter) and old not in self._reg_params.values():
                self._params.drop(old)
            self._params.place(value.name or name, value)
        if (
            old is not value
            and self._state_version is not None
            and name not in PLANS_OWN
            and not is_tracing()
        ):  # traced code's own assignments don't count
            VERSION.count += 1  # traced code may have read the old value
            vars(self).update(_state_version=VERSION.count, _changed=name)
        super().__setattr__(name, value)

    __getattr__ = absent

    def __repr__(self):
        lines = [f"  ({n}): {c!r}".replace("\n", "\n  ") for n, c in self._children.items()]
        body = "\n".join(lines)
        return f"{type(self).__name__}(\n{body}\n)"

    prefix = property(
        lambda self: self._prefix, doc="What the names of this block's parameters begin with."
    )
    name = property(lambda self: self._name, doc="The prefix without its last underscore.")
    params = property(
        lambda self: self._params, doc="This block's own parameters, without its children's."
    )

    @contextmanager
    def name_scope(self):
        """Give blocks created inside this `with` block this block's prefix."""
        if self._unnamed:  # its parent names and counts its children
            yield self
            return
        with scoped(SCOPE, block=self), Prefix(self._prefix, type(self)):
            yield self

    def register_child(self, block, name=None):
        """Add a child under a name, by default its index."""
        if not isinstance(block, Block):
            need = (
                "children must be Blocks; make one by calling its class, and add several one by one"
            )
            raise unfit(type(self).__name__, "", block, need)
        self._children[str(len(self._children)) if name is None else name] = block

    def register_forward_hook(self, hook):
        """Call `hook(block, inputs, outputs)` after every call."""
        return HookHandle(self, self._forward_hooks, hook)

    def register_forward_pre_hook(self, hook):
        """Call `hook(block, inputs)` before every call."""
        return HookHandle(self, self._forward_pre_hooks, hook)

    def register_op_hook(self, callback, monitor_all=False):
        """Call `callback(name, operator, array)` on the outputs of all operators.

        monitor_all: also on the values of variables, whose operator is "null".

        A hybridized block then runs its graph operator by operator, without fusion, so
        that every value is available. A block that isn't hybridized has no graph.
        """
        for block in self._walk():
            block._op_hook = callback, monitor_all
            block._choose_call()

    def _choose_call(self):
        """Update after hooks changed; a plain Block checks them in every call."""

    def apply(self, fn):
        """Call `fn(block)` on every child and on this block."""
        for child in self._children.values():
            child.apply(fn)
        fn(self)
        return self

    # -- parameters
    def collect_params(self, select=None) -> ParameterDict:
        """Return all parameters, children's included; `select` is a regular expression."""
        params = ParameterDict(self._params.prefix)
        for block in self._walk():
            params.update(block._params)
        return params if select is None else params.select(select)

    def _walk(self):
        """Return this block and all its descendants, each once."""
        blocks, stack = {}, [self]
        while stack:
            block = stack.pop()
            if id(block) not in blocks:
                blocks[id(block)] = block
                stack.extend(reversed(block._children.values()))
        return list(blocks.values())

    def _state(self):
        """Return the versions of all blocks; equal as long as no block has changed."""
        blocks = self._walk()
        for block in blocks:
            if block._state_version is None:
                block._state_version = VERSION.count
        return [(weakref.ref(block), block._state_version) for block in blocks]

    def _collect_params_with_prefix(self, prefix=""):
        """Return parameters by structural names: `0.weight`, `output.bias`."""
        prefix += "." * bool(prefix)
        params = {prefix + name: p for name, p in self._reg_params.items()}
        for name, child in self._children.items():
            params.update(child._collect_params_with_prefix(prefix + name))
        return params

    def initialize(self, init: object = UNIFORM, ctx=None, verbose=False, force_reinit=False):
        """Initialize all parameters; those of unknown shape, at the first call."""
        self.collect_params().initialize(initializers.create(init), ctx, verbose, force_reinit)

    def reset_ctx(self, ctx):
        """Move all parameters to a device."""
        self.collect_params().reset_ctx(ctx)

    reset_device = reset_ctx

    def save_parameters(self, filename, deduplicate=False):
        """Save all arrays to a file under their structural names.

        deduplicate: save a parameter shared by several layers only once.
        """
        params = self._collect_params_with_prefix()
        if deduplicate:
            first = {p: n for n, p in reversed(params.items())}
            params = {n: p for n, p in params.items() if first[p] == n}
        save(filename, {n: p._reduce() for n, p in params.items()})

    def load_parameters(
        self,
        filename,
        ctx=None,
        allow_missing=False,
        ignore_extra=False,
        cast_dtype=False,
        dtype_source="current",
    ):
        """Load all arrays from a file with structural or with prefixed names.

        ctx:     the device to move the parameters to; `None` leaves them in place.
        """
        params, arrays = self._collect_params_with_prefix(), _load_named(filename)
        if arrays and not any("." in n for n in arrays) and not arrays.keys() & params.keys():
            params, strip = dict(self.collect_params().items()), self.prefix
            if not arrays.keys() & params.keys():
                params = {n.removeprefix(strip): p for n, p in params.items()}
        loaded = {id(params[n]) for n in arrays if n in params}
        shared = {n: p for n, p in params.items() if n in arrays or id(p) not in loaded}
        fill(shared, arrays, filename, allow_missing, ignore_extra, cast_dtype, dtype_source, ctx)

    def save(self, prefix):
        """Save arrays and structure: `prefix-model.params`, `prefix-model.json`.

        To load them, build the net with the same code first.
        """
        from minihybrid.formats.outline import save_outline

        save_outline(self, f"{prefix}-model.json")
        self.save_parameters(f"{prefix}-model.params")

    def load(self, prefix):
        """Load files of `save`: names, which blocks are hybridized, and arrays.

        Raises:  FileError if this net consists of other blocks.
        """
        from minihybrid.formats.outline import load_outline

        for block in load_outline(self, f"{prefix}-model.json"):
            block.hybridize()
        self.load_parameters(f"{prefix}-model.params")

    def save_params(self, filename):
        """Write all arrays under their names without the prefix (the old form)."""
        self.collect_params().save(filename, strip_prefix=self.prefix)

    def load_params(self, filename, ctx=None, allow_missing=False, ignore_extra=False):
        """Read what `save_params` or `save_parameters` wrote."""
        self.load_parameters(filename, ctx, allow_missing, ignore_extra)

    def cast(self, dtype):
        """Change the dtype of all parameters."""
        others = self._other_dtypes(dtype_of(self.name, dtype))  # raises before any change
        for child in self._children.values():
            child.cast(dtype)
        for name, param in self._params.items():
            param.cast(others.get(name, dtype))

    def _other_dtypes(self, dtype):
        """name of a parameter -> its dtype, if it is another than the block is cast to."""
        return {}

    def hybridize(self, active=True, **kwargs):
        """Hybridize the children; a plain Block itself stays imperative."""
        if unknown := kwargs.keys() - {*OPTIONS}:
            raise AttrError(unknown_argument("hybridize", unknown, OPTIONS))
        for child in self._children.values():
            child.hybridize(active, **kwargs)

    # -- calling
    def __call__(self, *args, **kwargs) -> nd.NDArray:
        """Call `forward`, or the plan that it became, and the hooks before and after it."""
        if kwargs:
            names = ", ".join(kwargs)
            raise AttrError(
                f"{self.name}: the inputs {names} are given by name, but a "
                f"block takes them by their places; write net({names})"
            )
        call = self._compiled  # of a hybridized HybridBlock without hooks
        for hook in () if call else self._forward_pre_hooks:
            hook(self, args)
        try:
            if call:
                return call(args)
            out = self._run(*args) if self._direct else self.forward(*args)
        except (TypeError, AttributeError, HybridError) as error:
            from minihybrid.core.call_errors import refuse_inputs

            refuse_inputs(self, error, args)
            raise
        for hook in self._forward_hooks:
            hook(self, args, out)
        return out

    def forward(self, *args):
        """Compute the outputs; subclasses override it."""
        raise NotImplementedError(
            f"{type(self).__name__} has no forward method; write def forward(self, x): ..."
        )

    def summary(self, *inputs):
        """Print each block's output shape and number of parameters."""
        from minihybrid.view.layers import summary

        summary(self, inputs)


class HybridBlock(Block):
    """A block whose `hybrid_forward` works on arrays and on symbols.

    After `hybridize()`, calls trace it once per signature and run a compiled plan.

    A subclass may instead define `forward(self, x)`, without F: the functions of `mx.np`,
    `mx.npx` and `mx.nd` dispatch on their arguments, and `self.weight.data()` is a symbol
    while tracing.
    """

    _inputs = ()  # names of the inputs in traced graphs, if not data

    def __init_subclass__(cls):
        cls._direct = cls.forward is not HybridBlock.forward

    def __init__(self, prefix=None, params=None):
        super().__init__(prefix, params)
        self._active, self._hybrid, self._options = False, None, {}

    def register_child(self, block, name=None):
        """Add a child, which must be a HybridBlock."""
        if isinstance(block, Block) and not isinstance(block, HybridBlock):
            raise AttrError(
                f"{type(self).__name__}: the child {' '.join(repr(block).split())} is a Block, "
                "but children of a HybridBlock must be HybridBlocks; "
                "derive it from HybridBlock, or this block from Block"
            )
        super().register_child(block, name)
        self._forget()

    def _forget(self):
        """Drop all plans after the network changed."""
        if vars(self).get("_hybrid"):
            self._hybrid = None
            self._choose_call()

    def _choose_call(self):
        """Choose the fast path: a hybridized block without hooks runs its plans directly."""
        watched = self._forward_hooks or self._forward_pre_hooks or self._op_hook
        self._compiled = self.hybrid.caller() if self._active and not watched else None

    def hybridize(
        self, active=True, backend=None, clear=True, wait=None, dynamic=None, remat=None, **kwargs
    ):
        """Trace and compile calls from now on; `hybridize(False)` returns to eager mode.

        backend:  the target of code generation: "cpu", "numpy", or None for the best.
        wait:     True: the first call blocks until kernels are compiled; False: NumPy
                  answers until they are (minihybrid/runtime/tiers.py); None: the
                  environment's MINIHYBRID_WAIT or, without it, True once the program
                  sets a seed or trains.
        dynamic:  axes of varying length: "batch" (axis 0 of each input), {0: "n", 1: "t"}
                  (of each input), or a list with such a dict per input. Kernels take
                  these lengths as arguments, so a new length is traced but not compiled,
                  unless another schedule suits it; `net.plans` lists the lengths that
                  each plan serves.
        remat:    a budget for the values that a training step's forward pass saves for its
                  backward pass: bytes, or a fraction up to 1.0 of the usual amount. The
                  backward pass recomputes elementwise values, bit for bit, until the rest
                  fits; `0` recomputes all of them.
        static_alloc, static_shape:  accepted as in Gluon and ignored: plans always have
                  planned memory and fixed shapes.
        """
        remat = checked("hybridize", "remat", remat, optional(not_negative))
        options = {"wait": wait, "dynamic": dynamic, "remat": remat}
        super().hybridize(active, backend=backend, clear=clear, **options, **kwargs)
        self._active = active
        if clear or active:
            self._hybrid = None
        self._options = {"target": backend, **options}
        self._choose_call()

    def cast(self, dtype):
        """Change the dtype of all parameters, and drop all plans."""
        super().cast(dtype)
        self._forget()

    def infer_shape(self, *args):
        """Infer the shapes of parameters from the shapes of inputs."""
        hybrid = self._new_hybrid()
        hybrid.key(args)  # raises if there are no arrays
        hybrid.trace(args)

    def __getstate__(self):
        """Return the state to pickle or copy: everything except the plans."""
        return vars(self) | {"_hybrid": None, "_compiled": None}

    def __setstate__(self, state):
        vars(self).update(state)
        self._choose_call()

    def _new_hybrid(self):
        this = weakref.ref(self)  # weak: a block owns its plans, which call the block

        def find():
            block = this()
            return block._run if block._direct else block.forward

        return Hybrid(
            find,
            lambda: this().collect_params(),
            self.name,
            parts=lambda: this()._state(),
            names=self._inputs,
            **self._options,
        )

    @property
    def hybrid(self):
        """The `Hybrid` that traces and runs this block."""
        if self._hybrid is None:
            self._hybrid = self._new_hybrid()
        return self._hybrid

    @property
    def plans(self):
        """All plans compiled for this block: signature -> plan."""
        return Plans() if self._hybrid is None else self._hybrid.plans

    def plan_for(self, *args):
        """Return (plan, input arrays, bound parameters) for these arguments."""
        return self.hybrid.plan_for(*args)

    def _run(self, *args):
        """Call a subclass's own `forward`, after inferring parameters' shapes.

        Symbols have shapes inside it.
        """
        arrays = arrays_in(args)
        symbols = any(isinstance(a, Symbol) for a in arrays)
        if self._active and arrays and not symbols:
            return self._call_hybrid(*args)
        if not symbols:
            self._finish_shapes(args)
            with arrays[0].context if arrays else nullcontext():
                return self.forward(*args)
        with direct(), self.name_scope():
            self._tell_shapes(args)
            return self.forward(*args)

    def _call_hybrid(self, *args):
        """Run the plan, or operator by operator if there are operator hooks."""
        if self._op_hook:
            from minihybrid.runtime.op_hooks import watched

            return watched(self.hybrid, args, *self._op_hook)
        return self.hybrid.caller()(args)

    def _tell_shapes(self, args):
        """Call the subclass's own `infer_shape` for shapes that are still unknown."""
        overridden = type(self).infer_shape is not HybridBlock.infer_shape
        if overridden and not all(p.known for p in self._reg_params.values()):
            self.infer_shape(*args)

    def _finish_shapes(self, args):
        """Allocate parameters whose initialization was deferred until the first input."""
        if all(p._arrays for p in self._reg_params.values()):
            return
        self._tell_shapes(args)
        waiting = [p for p in self._reg_params.values() if p._waiting]
        for param in waiting:
            if param.known:
                param.finish()
        if not all(p.known for p in waiting):
            HybridBlock.infer_shape(self, *args)

    def forward(self, *args):
        """Call `hybrid_forward` with F = nd for arrays or F = sym for symbols."""
        arrays = arrays_in(args)
        for value in arrays:
            if value.level == Symbol.level:
                with direct(False), self.name_scope():
                    params = {n: alike(p.var(), value) for n, p in self._reg_params.items()}
                    return self.hybrid_forward(sym, *args, **params)
        if not arrays:
            inputs = ", ".join(map(described, args))
            raise AttrError(
                f"{self.name}: {f'the input is {inputs}' if args else 'no input is given'}, but an "
                "NDArray or a Symbol is needed; wrap it in nd.array(...)"
            )
        if self._active and not is_tracing():
            return self._call_hybrid(*args)
        here = context_of(arrays[0].data) if not arrays[0].level else arrays[0].context
        if here is not current_context():
            with here:
                return self.forward(*args)
        try:
            params = {name: p.data(here) for name, p in self._reg_params.items()}
        except DeferredInitializationError:
            params = None
        if params is None:  # not in the handler: an error there would show two
            self.infer_shape(*args)
            params = {name: p.data(here) for name, p in self._reg_params.items()}
        return self.hybrid_forward(nd, *args, **params)

    def hybrid_forward(self, F, x, *args, **kwargs):
        """Compute the outputs with F's operators; subclasses override it."""
        raise NotImplementedError(
            f"{type(self).__name__} has no hybrid_forward "
            "method; write def hybrid_forward(self, F, x): ..."
        )

    def export(self, path, epoch=0, remove_amp_cast=True, format="mxnet"):
        """Save the net in files that need no Python class; return the file names.

        format:  "mxnet": `path-symbol.json` and `path-0000.params`; "numpy": a program
                 that needs only NumPy; "c": one C99 file (both with a file of weights);
                 "onnx"; "wasm": `path.wasm`, a program with its weights, and `path.mjs`,
                 which runs it in a browser or in Node.js. All but "mxnet" predict only,
                 for the shapes of the latest trace ("onnx" and "wasm": any batch size).
        epoch:   the number in the name of MXNet's parameter file.
        remove_amp_cast:  accepted as in Gluon and ignored: there are no such casts.

        Raises:  HybridError before the first hybridized call, which traces the graph.
        """
        format = checked("export", "format", format, choice(*FORMATS))
        return FORMATS[format](self._newest("export"), path, epoch, self)

    def _newest(self, what):
        """Return the cache entry of the latest trace.

        Raises:  HybridError, naming the call `what`, if there is none.
        """
        entries = list(self._hybrid.entries.values()) if self._hybrid else []
        if not entries:
            raise HybridError(
                f"{what}: there is no graph yet; call hybridize() and then the net once with data"
            )
        return entries[-1]


class SymbolBlock(HybridBlock):
    """A block that runs a symbol, whose variables are inputs or parameters.

    >>> x = sym.var("x"); SymbolBlock(x * 2, x)(nd.ones((1, 2))).asnumpy()
    array([[2., 2.]], dtype=float32)
    """

    def __init__(self, outputs, inputs, params=None):
        super().__init__()
        self._prefix, self._params = "", ParameterDict()
        outputs = list(outputs) if isinstance(outputs, (list, tuple)) and outputs else [outputs]
        inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        from minihybrid.core.call_errors import check_symbols

        check_symbols(outputs, inputs)
        self._outputs, self._inputs = Group(outputs), [s.name for s in inputs]
        variables = {n.name: n for n in topological(self._outputs.refs) if n.op is None}
        states = set(self._outputs.list_auxiliary_states())
        for name, node in variables.items():
            if name in self._inputs:
                continue
            value = None if params is None or name not in params else params[name]
            if isinstance(value, Parameter):
                self._params[name] = value
            else:
                shape, kind = node.specs[0]
                more = {"allow_deferred_init": True, "differentiable": name not in states}
                self._params.get(name, shape=shape, dtype=kind or "float32", **more)
                if value is not None:
                    self._params[name].set_data(value)
        self._stem = commonprefix([*self._params])  # MXNet's parameter files omit it
        self._reg_params = {n.removeprefix(self._stem): p for n, p in self._params.items()}

    @staticmethod
    def imports(
        symbol_file, input_names, param_file=None, ctx=None, allow_missing=False, ignore_extra=False
    ):
        """Load an exported block, without the Python class that defined it.

        input_names: the variables that are inputs; the others are parameters.
        param_file: arrays by name, whose dtypes the parameters take.
        allow_missing, ignore_extra: accept missing or superfluous arrays.
        """
        names = [input_names] if isinstance(input_names, str) else list(input_names)
        net = SymbolBlock(sym.load(symbol_file), [sym.var(n) for n in names])
        if param_file is not None:
            net._params.load(
                param_file, ctx, allow_missing, ignore_extra, cast_dtype=True, dtype_source="saved"
            )
        return net

    def _other_dtypes(self, dtype):
        """Return the parameters that keep another dtype, such as BatchNorm's statistics."""
        return other_dtypes(self._outputs.refs, dtype)

    def __repr__(self):
        ends = f"{len(self._inputs)} -> {len(self._outputs.refs)}"
        return f"SymbolBlock(\n{self._outputs!r} : {ends}\n)"

    def hybrid_forward(self, F, /, *args, **params):
        """Apply the symbol's operators to the inputs."""
        others, names = [a for a in args if not hasattr(a, "level")], ", ".join(self._inputs)
        if others or len(args) != len(self._inputs):
            received = f"{described_type(others[0])}; call net({names})" if others else len(args)
            raise AttrError(
                f"SymbolBlock: {len(self._inputs)} inputs are needed ({names}), found {received}"
            )
        bindings = dict(zip(self._inputs, args, strict=True))
        bindings |= {self._stem + name: value for name, value in params.items()}
        values = {n: bindings[n.name] for n in topological(self._outputs.refs) if n.op is None}
        outs = replay(self._outputs.refs, values)
        return outs[0] if len(outs) == 1 else outs
