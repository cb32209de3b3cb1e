"""Chapter 14. Block and HybridBlock: networks as ordinary Python classes.

Takes:   parameters and child blocks, as attributes.
Gives:   `Block`, `HybridBlock`, `SymbolBlock`.

`hybrid_forward(self, F, x, ...)` is written once. With arrays, F is the nd namespace
and the code computes; with symbols, F is the sym namespace and the code writes a graph
down.
What is left out: parts of a block on several devices; each has a whole copy.
"""

import threading
import weakref
from contextlib import contextmanager, nullcontext
from os.path import commonprefix

from minihybrid.core import initial as initializers
from minihybrid.core import nd, sym
from minihybrid.core.arguments import arrays_in
from minihybrid.core.checked_call import CheckedCall
from minihybrid.core.context import STACK
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
    described,
    not_negative,
    optional,
    unknown_argument,
)
from minihybrid.core.parameter import (
    UNIFORM,
    VERSION,
    DeferredInitializationError,
    Parameter,
    ParameterDict,
    _named,
    fill,
)
from minihybrid.core.placement import context_of
from minihybrid.core.switches import scoped
from minihybrid.core.sym import Group, Symbol, replay
from minihybrid.core.tracing import direct, is_tracing
from minihybrid.ops.infix import absent


class Scope(threading.local):
    """Which block's name scope is open, and how often each kind of name was used."""

    block = None

    def __init__(self):
        self.counts = {}


SCOPE = Scope()


def _prefix_and_params(prefix, params, hint):
    """A new block's prefix (`dense0_`, under its parent's) and its parameter dict."""
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
    """Takes a hook off again: `handle.detach()`."""

    def __init__(self, block, hooks, hook):
        self._block, self._hooks, self._hook = block, hooks, hook
        hooks.append(hook)
        block._choose_call()

    def detach(self):
        """Stop calling the hook."""
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)
            self._block._choose_call()


def _told(name):
    """A method of `dict`, after which what is traced already hears of a change."""

    def method(self, *args):
        VERSION.count += 1
        return getattr(super(Children, self), name)(*args)

    return method


class Children(dict):
    """A block's children by name. What is traced already must hear of another one."""

    __setitem__, __delitem__ = _told("__setitem__"), _told("__delitem__")
    pop, clear = _told("pop"), _told("clear")


# Attributes that are about plans; all others may be read by the code that is traced.
PLANS_OWN = {"_active", "_compiled", "_hybrid", "_options", "_op_hook", "_seen"}


class Block(metaclass=CheckedCall):
    """A piece of a network: parameters, children, and `forward`.

    Blocks and parameters that are assigned to attributes are registered.
    """

    _direct = False  # whether a HybridBlock's `forward` is written without F
    _seen = _changed = None  # the VERSION.count of its attributes, once traced; the last new one
    _compiled = None  # what a hybridized call with arrays runs, if it is that simple
    _forward_hooks = _forward_pre_hooks = ()  # until __init__ has run

    def __init__(self, prefix=None, params=None):
        if type(prefix) not in (str, type(None)) or params is not None:
            from minihybrid.core.call_errors import check_names

            check_names(type(self).__name__, prefix, params)
        own = {"_children": Children(), "_reg_params": {}, "_counts": {}, "_op_hook": None}
        vars(self).update(own, _forward_hooks=[], _forward_pre_hooks=[])
        self._prefix, self._params = _prefix_and_params(prefix, params, self._alias())
        self._name, self._unnamed = self._prefix.removesuffix("_"), prefix == ""

    def _alias(self):
        """What automatic names of such blocks begin with."""
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
            and self._seen is not None
            and name not in PLANS_OWN
            and not is_tracing()
        ):  # what traced code itself assigns is no news
            VERSION.count += 1  # traced code may have read the old value
            vars(self).update(_seen=VERSION.count, _changed=name)
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
        """Blocks made inside this `with` block get this block's prefix."""
        if self._unnamed:  # its children are named and counted by whoever holds it
            yield self
            return
        with scoped(SCOPE, block=self), Prefix(self._prefix):
            yield self

    def register_child(self, block, name=None):
        """Add a child, under a name or its number."""
        if not isinstance(block, Block):
            raise AttrError(
                f"{type(self).__name__}: children must be Blocks, found {described(block)}; "
                "make one by calling its class, and add several one by one"
            )
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

        A hybridized block then runs its graph operator by operator: nothing is fused,
        so every value can be looked at. A block that is not hybridized has no graph.
        """
        for block in self._walk():
            block._op_hook = callback, monitor_all
            block._choose_call()

    def _choose_call(self):
        """Hooks came or went; a plain Block looks at them in every call."""

    def apply(self, fn):
        """Call `fn(block)` on every child and on this block."""
        for child in self._children.values():
            child.apply(fn)
        fn(self)
        return self

    # -- parameters
    def collect_params(self, select=None) -> ParameterDict:
        """All parameters, the children's too; `select` is a regular expression."""
        params = ParameterDict(self._params.prefix)
        for block in self._walk():
            params.update(block._params)
        return params if select is None else params.select(select)

    def _walk(self):
        """This block and all below it, each once."""
        seen, stack = {}, [self]
        while stack:
            block = stack.pop()
            if id(block) not in seen:
                seen[id(block)] = block
                stack.extend(reversed(block._children.values()))
        return list(seen.values())

    def _state(self):
        """What traced code has seen: equal as long as no block has changed."""
        blocks = self._walk()
        for block in blocks:
            if block._seen is None:
                block._seen = VERSION.count
        return [(weakref.ref(block), block._seen) for block in blocks]

    def _collect_params_with_prefix(self, prefix=""):
        """Parameters under their structural names: `0.weight`, `output.bias`."""
        prefix += "." * bool(prefix)
        params = {prefix + name: p for name, p in self._reg_params.items()}
        for name, child in self._children.items():
            params.update(child._collect_params_with_prefix(prefix + name))
        return params

    def initialize(self, init: object = UNIFORM, ctx=None, verbose=False, force_reinit=False):
        """Initialise all parameters; those of unknown shape at the first call."""
        self.collect_params().initialize(initializers.create(init), ctx, verbose, force_reinit)

    def reset_ctx(self, ctx):
        """Move all parameters to a device."""
        self.collect_params().reset_ctx(ctx)

    reset_device = reset_ctx

    def save_parameters(self, filename, deduplicate=False):
        """Write all arrays to a file under their structural names.

        deduplicate: write a parameter that several layers share only once.
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
        """Read all arrays from a file with structural names, or with prefixed ones.

        ctx:     the device on which the parameters are then; where they are, if `None`.
        """
        params, arrays = self._collect_params_with_prefix(), _named(filename)
        if arrays and not any("." in n for n in arrays) and not arrays.keys() & params.keys():
            params, strip = dict(self.collect_params().items()), self.prefix
            if not arrays.keys() & params.keys():
                params = {n.removeprefix(strip): p for n, p in params.items()}
        loaded = {id(params[n]) for n in arrays if n in params}
        shared = {n: p for n, p in params.items() if n in arrays or id(p) not in loaded}
        fill(shared, arrays, filename, allow_missing, ignore_extra, cast_dtype, dtype_source, ctx)

    def save(self, prefix):
        """Write the arrays and an outline: `prefix-model.params`, `prefix-model.json`.

        To load them, the net is made again by the same code.
        """
        from minihybrid.formats.outline import save_outline

        save_outline(self, f"{prefix}-model.json")
        self.save_parameters(f"{prefix}-model.params")

    def load(self, prefix):
        """Read what `save` wrote: names, which blocks are hybridized, and arrays.

        Raises:  FileError if this net is made of other blocks.
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
        except (TypeError, AttributeError) as error:
            from minihybrid.core.call_errors import refuse_inputs

            refuse_inputs(self, error, args)
            raise
        for hook in self._forward_hooks:
            hook(self, args, out)
        return out

    def forward(self, *args):
        """The computation; subclasses write it."""
        raise NotImplementedError(
            f"{type(self).__name__} has no forward method; write def forward(self, x): ..."
        )

    def summary(self, *inputs):
        """Print each block's output shape and number of parameters."""
        from minihybrid.view.layers import summary

        summary(self, inputs)


class HybridBlock(Block):
    """A block whose `hybrid_forward` works on arrays and on symbols.

    `hybridize()` makes calls trace it once for each signature and run a compiled plan.

    A subclass may write `forward(self, x)` instead, without F: the functions of
    `mx.np`, `mx.npx` and `mx.nd` find out from their arguments who computes, and
    `self.weight.data()` is a symbol while tracing.
    """

    _inputs = ()  # what traced graphs call the inputs, if not data

    def __init_subclass__(cls):
        cls._direct = cls.forward is not HybridBlock.forward

    def __init__(self, prefix=None, params=None):
        super().__init__(prefix, params)
        self._active, self._hybrid, self._options = False, None, {}

    def register_child(self, block, name=None):
        """Add a child, which must be a HybridBlock, too."""
        if isinstance(block, Block) and not isinstance(block, HybridBlock):
            raise AttrError(
                f"{type(self).__name__}: the child {' '.join(repr(block).split())} is a Block, "
                "but children of a HybridBlock must be HybridBlocks; "
                "derive it from HybridBlock, or this block from Block"
            )
        super().register_child(block, name)
        self._forget()

    def _forget(self):
        """Drop all plans: the network changed."""
        if vars(self).get("_hybrid"):
            self._hybrid = None
            self._choose_call()

    def _choose_call(self):
        """A hybridized block without hooks runs its plans at once."""
        watched = self._forward_hooks or self._forward_pre_hooks or self._op_hook
        self._compiled = self.hybrid.caller() if self._active and not watched else None

    def hybridize(
        self, active=True, backend=None, clear=True, wait=None, dynamic=None, remat=None, **kwargs
    ):
        """Trace and compile calls from now on; `hybridize(False)` goes back.

        backend:  the target of code generation: None for the best, "cpu", "numpy".
        wait:     True: the first call waits for the compiled kernels; False: NumPy
                  answers until they are ready (minihybrid/runtime/tiers.py); None: as the
                  environment's MINIHYBRID_WAIT says; without it, True once the program
                  was seeded or trains.
        dynamic:  axes whose lengths vary: "batch" (axis 0 of each input), {0: "n", 1: "t"}
                  (of each input), or a list with such a dict for each input. Kernels take
                  these lengths as arguments, so another length is traced, but compiles
                  nothing new unless another schedule suits it; `net.plans` lists the
                  lengths that each plan serves.
        remat:    a budget for the values that a training step's forward pass keeps for its
                  backward pass: bytes, or up to 1.0 a share of what it keeps otherwise. The
                  backward pass computes elementwise values again, with the same bits, until
                  the rest fits; `0` computes all of them again.
        static_alloc, static_shape:  accepted as in Gluon; memory is planned ahead and
                  shapes are fixed in a plan always.
        """
        remat = checked("hybridize", "remat", remat, optional(not_negative))
        own = {"wait": wait, "dynamic": dynamic, "remat": remat}
        super().hybridize(active, backend=backend, clear=clear, **own, **kwargs)
        self._active = active
        if clear or active:
            self._hybrid = None
        self._options = {"target": backend, **own}
        self._choose_call()

    def cast(self, dtype):
        """Change the dtype of all parameters; plans are made anew."""
        super().cast(dtype)
        self._forget()

    def infer_shape(self, *args):
        """Find the shapes of parameters from the shapes of inputs."""
        hybrid = self._new_hybrid()
        hybrid.key(args)  # raises if there are no arrays
        hybrid.trace(args)

    def __getstate__(self):
        """For pickles and copies: all but the plans, which are made anew."""
        return vars(self) | {"_hybrid": None, "_compiled": None}

    def __setstate__(self, state):
        vars(self).update(state)
        self._choose_call()

    def _new_hybrid(self):
        this = weakref.ref(self)  # a block keeps its plans, which call the block

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
        """The traced function behind this block."""
        if self._hybrid is None:
            self._hybrid = self._new_hybrid()
        return self._hybrid

    @property
    def plans(self):
        """signature -> plan, of everything that was compiled for this block."""
        return Plans() if self._hybrid is None else self._hybrid.plans

    def plan_for(self, *args):
        """(plan, input arrays, bound parameters) for these arguments."""
        return self.hybrid.plan_for(*args)

    def _run(self, *args):
        """Call a subclass's own `forward` with what it may rely on.

        That is: parameters whose shapes can be known have them, and symbols tell
        theirs.
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
        """Run the plan, or operator by operator; reached when there are hooks."""
        if self._op_hook:
            from minihybrid.runtime.op_hooks import watched

            return watched(self.hybrid, args, *self._op_hook)
        return self.hybrid.caller()(args)

    def _tell_shapes(self, args):
        """Ask the subclass's own `infer_shape` for shapes that are still unknown."""
        overridden = type(self).infer_shape is not HybridBlock.infer_shape
        if overridden and not all(p.known for p in self._reg_params.values()):
            self.infer_shape(*args)

    def _finish_shapes(self, args):
        """Make the arrays of parameters that wait for the shape of the first input."""
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
        """Call `hybrid_forward` with F = nd or sym, whichever reads the input."""
        arrays = arrays_in(args)
        for value in arrays:
            if value.level == Symbol.level:
                with direct(False), self.name_scope():
                    params = {n: alike(p.var(), value) for n, p in self._reg_params.items()}
                    return self.hybrid_forward(sym, *args, **params)
        if not arrays:
            given = ", ".join(map(described, args))
            raise AttrError(
                f"{self.name}: {f'the input is {given}' if args else 'no input is given'}, but an "
                "NDArray or a Symbol is needed; wrap it in nd.array(...)"
            )
        if self._active and not is_tracing():
            return self._call_hybrid(*args)
        here = context_of(arrays[0].data) if not arrays[0].level else arrays[0].context
        if here is not STACK.contexts[-1]:
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
        """The computation, written with F's operators; subclasses write it."""
        raise NotImplementedError(
            f"{type(self).__name__} has no hybrid_forward "
            "method; write def hybrid_forward(self, F, x): ..."
        )

    def export(self, path, epoch=0, remove_amp_cast=True, format="mxnet"):
        """Write the net into files that need no Python class; returns their names.

        format:  "mxnet" for `path-symbol.json` and `path-0000.params`; "numpy" for a
                 program that needs only NumPy, "c" for one file of C99, each with
                 its weights beside; "onnx"; "wasm" for `path.wasm`, a program with its
                 weights, and `path.mjs`, which runs it in a browser or in Node.js. All but
                 "mxnet" predict, for the newest shapes that the net was called with ("onnx"
                 and "wasm": for any batch).
        epoch:   the number in the name of MXNet's file of parameters.
        remove_amp_cast:  accepted as in Gluon; there are no such casts here.

        Raises:  HybridError before the first hybridized call, which makes the graph.
        """
        if format not in FORMATS:
            raise HybridError(
                f"export: the format {format!r} is unknown; there are {', '.join(FORMATS)}"
            )
        return FORMATS[format](self._newest("export"), path, epoch, self)

    def _newest(self, what):
        """The signature that was traced last.

        Raises:  HybridError, in which `what` names the call, if there is none.
        """
        entries = list(self._hybrid.entries.values()) if self._hybrid else []
        if not entries:
            raise HybridError(
                f"{what}: there is no graph yet; call hybridize() and then the net once with data"
            )
        return entries[-1]


class SymbolBlock(HybridBlock):
    """A block made of a symbol: its variables are inputs or parameters.

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
            given = None if params is None or name not in params else params[name]
            if isinstance(given, Parameter):
                self._params[name] = given
            else:
                shape, kind = node.specs[0]
                more = {"allow_deferred_init": True, "differentiable": name not in states}
                self._params.get(name, shape=shape, dtype=kind or "float32", **more)
                if given is not None:
                    self._params[name].set_data(given)
        self._stem = commonprefix([*self._params])  # MXNet's files of parameters omit it
        self._reg_params = {n.removeprefix(self._stem): p for n, p in self._params.items()}

    @staticmethod
    def imports(
        symbol_file, input_names, param_file=None, ctx=None, allow_missing=False, ignore_extra=False
    ):
        """The block in exported files, without the Python class that made it.

        input_names: which variables of the graph are inputs; the others are parameters.
        param_file: arrays by name, which also say the parameters' dtypes.
        allow_missing, ignore_extra: go on without an array, or with one too many.
        """
        names = [input_names] if isinstance(input_names, str) else list(input_names)
        net = SymbolBlock(sym.load(symbol_file), [sym.var(n) for n in names])
        if param_file is not None:
            net._params.load(
                param_file, ctx, allow_missing, ignore_extra, cast_dtype=True, dtype_source="saved"
            )
        return net

    def _other_dtypes(self, dtype):
        """What the symbol's operators need in another dtype, such as BatchNorm's statistics."""
        return other_dtypes(self._outputs.refs, dtype)

    def __repr__(self):
        ends = f"{len(self._inputs)} -> {len(self._outputs.refs)}"
        return f"SymbolBlock(\n{self._outputs!r} : {ends}\n)"

    def hybrid_forward(self, F, /, *args, **params):
        """Apply the symbol's operators to the inputs."""
        others, names = [a for a in args if not hasattr(a, "level")], ", ".join(self._inputs)
        if others or len(args) != len(self._inputs):
            received = f"a {type(others[0]).__name__}; call net({names})" if others else len(args)
            raise AttrError(
                f"SymbolBlock: {len(self._inputs)} inputs are needed ({names}), found {received}"
            )
        given = dict(zip(self._inputs, args, strict=True))
        given |= {self._stem + name: value for name, value in params.items()}
        values = {n: given[n.name] for n in topological(self._outputs.refs) if n.op is None}
        outs = replay(self._outputs.refs, values)
        return outs[0] if len(outs) == 1 else outs
