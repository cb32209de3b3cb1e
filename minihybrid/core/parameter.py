"""Chapter 14. Parameter: an array that a block owns, whose shape may be inferred later.

Defines: `Parameter`, `Constant`, `ParameterDict`.

Limits: a parameter is replicated on each of its devices, not sharded.
"""

import re
from types import SimpleNamespace

import numpy as np

from minihybrid.core import initial as initializers
from minihybrid.core import nd, sym
from minihybrid.core.array import GRAD_REQ, STATE
from minihybrid.core.checked_call import CheckedCall
from minihybrid.core.context import CPU, check_context
from minihybrid.core.convert import dtype_of
from minihybrid.core.files import FileError
from minihybrid.core.graph import refine
from minihybrid.core.nd import NDArray, load, save
from minihybrid.core.op import (
    AttrError,
    HybridError,
    ShapeError,
    Spec,
    checked,
    choice,
    items,
    legible,
)
from minihybrid.core.placement import aligned, copy_to, new_array
from minihybrid.core.switches import SWITCHES, is_np_array, is_np_shape
from minihybrid.core.tape import modes
from minihybrid.core.tracing import CURRENT, IMPERATIVE, TraceError, is_tracing, user_line
from minihybrid.ops.infix import absent
from minihybrid.ops.random import STREAM

UNIFORM = initializers.Uniform()


class DeferredInitializationError(HybridError):
    """The parameter has no array yet: its shape will be inferred from the first input."""


def lengths(shape):
    """Whole numbers, of which 0 is unknown."""
    if shape is None:
        return None
    known = tuple(-1 if n in (0, None) else int(n) for n in items(shape))
    if min(known, default=0) < -1:
        raise ValueError
    return known


def contexts_of(ctx):
    """Return the list of devices given by a device, a list of them, or `None`."""
    several = isinstance(ctx, (list, tuple)) and ctx
    return list(dict.fromkeys(map(check_context, ctx if several else [ctx])))


VERSION = SimpleNamespace(count=0)  # changes of a parameter's array, whose address plans hold


class Parameter(metaclass=CheckedCall):
    """An array with a name, a gradient and an initializer.

    >>> p = Parameter("weight", shape=(2, 3)); p.initialize(); p.data().shape
    (2, 3)
    """

    def __init__(
        self,
        name=None,
        grad_req="write",
        shape=None,
        dtype="float32",
        lr_mult=1.0,
        wd_mult=1.0,
        init=None,
        allow_deferred_init=False,
        differentiable=True,
        stype="default",
        grad_stype="default",
    ):
        owner = f"Parameter '{name}'"
        kind = dtype_of(owner, dtype)
        self.name, self.dtype, self.init = name, kind.type, init
        initializers.create(init, owner)  # raises now, not at initialization
        self.lr_mult, self.wd_mult = lr_mult, wd_mult
        self.allow_deferred_init = allow_deferred_init
        self._differentiable = differentiable
        self._spec = Spec(checked(owner, "shape", shape, lengths), kind)
        self._arrays, self._var = {}, None  # device -> copy; its symbol outside of traces
        self.placed = False  # whether a ParameterDict has named it
        self._waiting = None  # (initializer, key) of a deferred initialization
        self._contexts = ()  # its devices; by default, the current one
        self.grad_req = grad_req

    __getattr__ = absent

    def __repr__(self):
        return (
            f"{type(self).__name__} {legible(self.name)} (shape={self.shape}, "
            f"dtype={self.dtype.__name__})"
        )

    # -- shape
    @property
    def shape(self):
        """The lengths of the axes; an unknown one is 0, or -1 under np's rules."""
        shape = self._spec.shape
        return shape if shape is None or is_np_shape() else tuple(max(n, 0) for n in shape)

    @shape.setter
    def shape(self, shape):
        shape = checked(f"Parameter '{self.name}'", "shape", shape, lengths)
        self._spec = refine(self.name, self._spec, Spec(shape, None))

    @property
    def known(self):
        """Whether the shape is complete."""
        return self._spec.known

    @property
    def grad_req(self):
        """What the backward pass does with the gradient: write, add or null."""
        return self._grad_req

    @grad_req.setter
    def grad_req(self, req):
        req = checked(f"Parameter '{self.name}'", "grad_req", req, GRAD_REQ)
        self._grad_req = req if self._differentiable else "null"
        self._attach()

    # -- the array
    def initialize(self, init=None, ctx=None, default_init: object = UNIFORM, force_reinit=False):
        """Allocate and fill the array, or defer that until the shape is known.

        ctx:     a device, or a list of devices that each get a copy.
        """
        contexts = contexts_of(ctx)
        if self._arrays and not force_reinit:
            return
        self._contexts = contexts
        self._waiting = initializers.create(init or self.init or default_init), STREAM.take(1)
        if self.known:
            self.finish()
        elif not self.allow_deferred_init:
            raise ShapeError(
                f"Parameter '{self.name}' has shape {self.shape}, where 0 is unknown; give the "
                "whole shape, or allow_deferred_init=True"
            )

    def finish(self):
        """Allocate and fill the array, now that the shape is known.

        The random stream is the one reserved by `initialize`, so values depend neither
        on the order of shape inference nor on the device: the CPU draws them.
        """
        init, key = self._waiting
        self._contexts = self._contexts or contexts_of(None)
        array = NDArray(aligned(self._spec.shape, self._spec.dtype))
        with modes(recording=False), STREAM.branch(key), CPU:
            init.init_array(self.name, array, chosen=True)  # ignores its name, as in MXNet
        self._replace({c: array.as_in_context(c) for c in self._contexts})
        self._waiting = None  # last, so that other threads always see one of the two

    def _replace(self, arrays):
        self._arrays = arrays
        VERSION.count += 1
        self._attach()

    def _attach(self):
        for array in self._arrays.values():
            array.attach_grad(self._grad_req)

    def data(self, ctx=None) -> nd.NDArray:
        """Return the array; an np.ndarray after `npx.set_np()`.

        ctx:     which copy; by default, that on the current device.
        While a `forward` without F is traced, this is a symbol.

        Raises:  DeferredInitializationError before the shape is known; HybridError
                 before `initialize`, or if there is no copy on `ctx`.
        """
        if CURRENT.direct:
            return in_world(self.var())
        if len(self._arrays) == 1 and (ctx is None or ctx is self._contexts[0]):
            (array,) = self._arrays.values()
            return array.as_np_ndarray() if SWITCHES.array else array
        if self._arrays:
            if (context := check_context(ctx)) in self._arrays:
                return in_world(self._arrays[context])
            here = ", ".join(map(str, self._arrays))
            raise HybridError(
                f"Parameter '{self.name}' lives on {here}, not on {context}; move the input by "
                f"x.as_in_context({self._contexts[0]}) or the net by net.reset_ctx({context})"
            )
        if self._waiting:
            raise DeferredInitializationError(
                f"Parameter '{self.name}' has shape {self.shape}, where 0 is unknown, "
                "so it has no values yet; call the net once with data, or give the "
                "layer its number of inputs (in_units)"
            )
        raise HybridError(
            f"Parameter '{self.name}' has not been initialized; call net.initialize() first"
        )

    def list_data(self) -> list[nd.NDArray]:
        """Return the copies of the array, one per device."""
        return [self.data(context) for context in self.list_ctx()]

    def list_ctx(self):
        """Return the devices that hold the array."""
        if not self._arrays and not self._waiting:
            self.data()
        return list(self._arrays or self._contexts)

    def grad(self, ctx=None) -> nd.NDArray:
        """Return the gradient buffer, on the device of `data(ctx)`.

        Raises:  HybridError if `grad_req` is null.
        """
        buffer = self.data(ctx).grad
        if buffer is None:
            raise HybridError(
                f"Parameter '{self.name}' has no gradient, because its grad_req is 'null'"
            )
        return in_world(buffer)

    def list_grad(self):
        """Return the gradient buffers, one per device."""
        return [self.grad(context) for context in self.list_ctx()]

    @property
    def _grad(self):
        """The gradient buffers, or `None` without gradients."""
        return self.list_grad() if self._arrays and self._grad_req != "null" else None

    def zero_grad(self):
        """Set the gradient to 0."""
        for grad in self._grad or ():
            grad[...] = 0

    def _reduce(self):
        """Return the mean of the copies, to save; running statistics differ per device."""
        copies = [array.as_in_context(CPU) for array in self.list_data()]
        return copies[0] if len(copies) == 1 else sum(copies) / len(copies)

    def set_data(self, data):
        """Overwrite the elements.

        Raises:  HybridError inside `record()` for a parameter with a gradient; TraceError
                 while tracing, because calls of the plan would not write.
        """
        if is_tracing():
            raise TraceError(
                f"Parameter '{self.name}': set_data is called while a function is traced"
                f"{user_line()}, so only this call would write; call it outside of the block, "
                f"{IMPERATIVE}"
            )
        if STATE.recording and self._arrays and self._grad_req != "null":
            raise HybridError(
                f"Parameter '{self.name}': set_data is called inside autograd.record(), but the "
                "gradient is that of its values before; call it outside of record()"
            )
        data = data if isinstance(data, NDArray) else nd.array(data, dtype=self.dtype)
        self.shape = data.shape
        if not self._arrays:
            if self._waiting is None:
                self._waiting = UNIFORM, STREAM.take(1)
            self.finish()
        with modes(recording=False):
            for array in self._arrays.values():
                array[...] = data

    def reset_ctx(self, ctx):
        """Move to a device or to a list of devices; the gradient becomes 0."""
        self._contexts = contexts_of(ctx)
        if self._arrays and list(self._arrays) != self._contexts:
            mean = self._reduce().data
            self._replace({c: NDArray(copy_to(mean, c)) for c in self._contexts})

    def cast(self, dtype):
        """Change the dtype of the array and its gradient."""
        kind, arrays = dtype_of(f"Parameter '{self.name}'", dtype), {}
        self.dtype, self._spec = kind.type, Spec(self._spec.shape, kind)
        for context, old in self._arrays.items():
            arrays[context] = NDArray(new_array(old.shape, dtype, context))
            arrays[context].data[...] = old.data
        self._replace(arrays)

    def var(self):
        """Return the symbol of this parameter: one per trace, and one outside of traces."""
        if is_tracing():
            return self._new_var()
        if self._var is None or self._var.spec != self._spec:
            self._var = self._new_var()
        return self._var

    def _new_var(self):
        init = self.init if isinstance(self.init, str) else initializers.create(self.init)
        info = {"lr_mult": self.lr_mult, "wd_mult": self.wd_mult, "init": init, "stype": "default"}
        return sym.parameter(
            self.name, spec=self._spec, shape=self.shape, dtype=self._spec.dtype, **info
        )


def in_world(value):
    """Return the array or symbol, as its np version after `npx.set_np()`."""
    return value.as_np_ndarray() if is_np_array() else value


class Constant(Parameter):
    """A parameter that isn't trained."""

    def __init__(self, name, value):
        value = value if isinstance(value, NDArray) else nd.array(value)
        self.value = value

        class Given(initializers.Initializer):
            def _init_weight(self, name, array):
                array[...] = value

        super().__init__(name, grad_req="null", shape=value.shape, dtype=value.dtype, init=Given())


class ParameterDict(dict):
    """Parameters by name; names begin with the dict's prefix."""

    def __init__(self, prefix="", shared=None):
        super().__init__()
        self._prefix, self._shared = prefix, shared

    def __repr__(self):
        lines = "\n".join(f"  {p}" for p in self.values())
        return f"{legible(self._prefix)} (\n{lines}\n)"

    prefix = property(lambda self: self._prefix, doc="What every name begins with.")

    def __missing__(self, key):
        names = ", ".join(self) or "none"
        raise KeyError(legible(f"there is no parameter '{key}'; there are {names}", 2000))

    def get(self, name, **kwargs):
        """Return the parameter `prefix + name`; create it with these arguments if it is new."""
        name = self._prefix + name
        param = super().get(name)
        if param is None and self._shared is not None and name in self._shared:
            param = self[name] = self._shared[name]
        if param is None:
            param = self[name] = Parameter(name, **kwargs)
            param.placed = True
        elif kwargs.get("shape") is not None:
            param.shape = kwargs["shape"]
        return param

    def get_constant(self, name, value=None):
        """Return the constant `prefix + name`; a new one needs `value`."""
        name = self._prefix + name
        if name not in self:
            if value is None:
                raise AttrError(f"get_constant: '{name}' is new, so it needs a value")
            self[name] = Constant(name, value)
            self[name].placed = True
        return self[name]

    def update(self, other):
        """Add another dict's parameters."""
        for name, param in other.items():
            if self.setdefault(name, param) is not param:
                raise AttrError(
                    f"two different parameters are called '{name}'; give one another name, or "
                    "their blocks other prefixes, or share one of them by params=block.params"
                )

    def place(self, name, param):
        """Add a parameter that was created without a dict.

        Unless another dict has named it, its name gets this dict's prefix, as in
        `get(name)`.
        """
        if any(p is param for p in self.values()):
            return
        if not param.placed:
            param.name, param.placed = self._prefix + name, True
        self.update({param.name: param})

    def drop(self, param):
        """Remove a parameter that another one has replaced."""
        for name in [n for n, p in self.items() if p is param]:
            del self[name]

    def select(self, pattern):
        """Return the parameters whose names match a regular expression."""
        selected = ParameterDict(self._prefix, self._shared)
        selected.update({n: p for n, p in self.items() if re.match(pattern, n)})
        return selected

    def initialize(self, init: object = UNIFORM, ctx=None, verbose=False, force_reinit=False):
        """Initialize all parameters, with `init` unless one has its own initializer."""
        for param in self.values():
            param.initialize(None, ctx, init or UNIFORM, force_reinit)

    def zero_grad(self):
        """Set all gradients to 0."""
        for param in self.values():
            param.zero_grad()

    def reset_ctx(self, ctx):
        """Move all parameters to a device."""
        for param in self.values():
            param.reset_ctx(ctx)

    def list_ctx(self):
        """Return the devices that hold the parameters."""
        return list(dict.fromkeys(c for p in self.values() for c in p.list_ctx()))

    def setattr(self, name, value):
        """Set an attribute of every parameter, for example grad_req."""
        for param in self.values():
            setattr(param, name, value)

    def save(self, filename, strip_prefix=""):
        """Save all arrays to a file, under their names without `strip_prefix`."""
        for wrong in [n for n in self if not n.startswith(strip_prefix)]:
            raise AttrError(f"save: '{wrong}' does not begin with '{strip_prefix}'")
        save(filename, {n[len(strip_prefix) :]: p._reduce() for n, p in self.items()})

    def load(
        self,
        filename,
        ctx=None,
        allow_missing=False,
        ignore_extra=False,
        restore_prefix="",
        cast_dtype=False,
        dtype_source="current",
    ):
        """Load all arrays from a file; with `ctx`, move the parameters there."""
        arrays = _load_named(filename, restore_prefix)
        fill(self, arrays, filename, allow_missing, ignore_extra, cast_dtype, dtype_source, ctx)


def _load_named(filename, prefix=""):
    """Load a file's arrays by name, without `arg:` and `aux:`."""
    arrays = load(filename)
    if arrays == []:  # a net without parameters has a file without names
        return {}
    if not isinstance(arrays, dict):
        raise FileError(f"'{filename}' holds arrays without names; parameters need names")
    return {prefix + re.sub("^(arg|aux):", "", n): a for n, a in arrays.items()}


def fill(params, arrays, filename, allow_missing, ignore_extra, cast_dtype, dtype_source, ctx):
    """Set parameters to arrays of the same names, on `ctx` if it is given.

    cast_dtype: accept other dtypes; `dtype_source` chooses the result: the parameter's
             ("current") or the file's ("saved").
    Raises:  FileError for missing and superfluous names, ShapeError for other shapes.
    """
    checked("load", "dtype_source", dtype_source, choice("current", "saved"))
    missing, extra = params.keys() - arrays.keys(), arrays.keys() - params.keys()
    if missing and not allow_missing:
        raise FileError(
            f"'{filename}' has no {_some(missing)}; it has "
            f"{_some(arrays)}; allow_missing=True loads the others"
        )
    if extra and not ignore_extra:
        raise FileError(
            f"'{filename}' has {_some(extra)}, but the net "
            f"has only {_some(params)}; ignore_extra=True skips the others"
        )
    for name in params.keys() & arrays.keys():
        param, array = params[name], arrays[name]
        if np.dtype(array.dtype) != np.dtype(param.dtype):
            if not cast_dtype:
                raise FileError(
                    f"'{filename}': '{name}' is {np.dtype(array.dtype)}, but the net has "
                    f"{np.dtype(param.dtype)}; cast_dtype=True converts"
                )
            if dtype_source == "saved":
                param.cast(array.dtype)
        if ctx is not None:
            param.reset_ctx(ctx)
        if (param.shape, array.shape) == ((), (1,)):  # nd.load gives each array an axis
            array = array.reshape(())
        try:
            param.set_data(array)
        except ShapeError:
            sizes = f"{array.shape}, but the net's is {param.shape}"
            raise ShapeError(f"'{filename}': '{name}' is {sizes}; make the same layers") from None


def _some(names):
    names = sorted(names)
    some = ", ".join(f"'{n:.60}'" for n in names[:5])
    return some + (", ..." if len(names) > 5 else "")
