"""Chapter 11. NDArray: eager execution of operators.

Defines: `NDArray`, whose elements are in a NumPy array or on a device; `STATE`, whether
         this thread records a tape (`core/tape.py` reads the tape).

On the CPU, NumPy computes at once. On a device, an operator launches a kernel
asynchronously, and reading elements synchronizes.
Not supported: sparse storage; asynchronous execution on the CPU.
"""

import operator
import threading
from functools import partial

import numpy as np

from minihybrid.core import hooks, params
from minihybrid.core.checked_call import naming
from minihybrid.core.context import CPU, check_context
from minihybrid.core.convert import fits, of_one, to_numpy
from minihybrid.core.files import write_whole
from minihybrid.core.op import (
    UNEXPECTED,
    AttrError,
    Checked,
    Constant,
    HybridError,
    Node,
    Op,
    PlaceError,
    ShapeError,
    Spec,
    checked,
    choice,
    described,
    ndarray,
    unfit,
)
from minihybrid.core.placement import HERE, Elsewhere, context_of, copy_to, is_basic, zeros_where
from minihybrid.core.writes import SET_ITEM, is_whole, refuse_duplicates
from minihybrid.ops.eager_cache import QUIET, at_once, fresh, specialize, specs_of, steps_of
from minihybrid.ops.infix import Value
from minihybrid.ops.random import STREAM
from minihybrid.ops.registry import OPS


class State(threading.local):
    """Per-thread flags: whether operators are recorded, and whether the mode is training."""

    recording = False
    training = False
    lent: dict | None = None  # variable -> gradient buffer donated to a backward plan


STATE = State()
GRAD_REQ = choice("write", "add", "null")


# -- the array -------------------------------------------------------------------------
class Leaf:
    """A variable's gradient buffer, and its `grad_req`: write, add or null.

    The buffer is allocated at first use, so prediction needs no memory for it.
    `fresh` is whether a backward pass wrote it since the last `Trainer.step`.
    """

    def __init__(self, like, req, grad=None):
        self.like, self.req, self.fresh = like, req, False
        self._grad = grad

    @property
    def grad(self):
        """The buffer, initially zeros; `None` if `grad_req` is null."""
        if self._grad is None and self.req != "null":
            self._grad = NDArray(zeros_where(self.like))
        return self._grad


RESHAPED = Checked()  # (shape, arguments of reshape) -> new shape


def path_of(kind, op, attrs, run):
    """Return the function that runs an operator whose arguments have been checked.

    run:     computes the outputs' ndarrays from the inputs' ndarrays.

    A closure, because it reads its variables faster than attributes.
    """
    is_own, slopes = op.gives_own, op.grad

    def path(inputs, datas):
        try:
            out = QUIET.copy().run(run, *datas)
        except HybridError:
            raise
        except UNEXPECTED as error:
            raise op.sentence(HybridError, specs_of(datas), attrs, error) from None
        many = type(out) is tuple
        if not (is_own or type(out) is ndarray and out.base is None and out.flags.c_contiguous):
            out = fresh(out)
        # The call may have further arguments that aren't arrays.
        refs = slopes and STATE.recording and refs_of(inputs[: len(datas)])
        node = Node(op, refs, attrs, "", None, out if many else (out,)) if refs else None
        return tuple([kind(o, node, i) for i, o in enumerate(out)]) if many else kind(out, node)

    return path


def refuse_stale(view):
    """Raise if an array's memory was since written through an alias inside `record()`."""
    if view.base[0].node is not view.base[1] or hasattr(view.node, "snapshot"):
        hooks.follow(view)
    root, node = view.base
    # The last write may have gone through a view of `root`.
    writers = [(root, node)] if root.base is None else [(root, node), root.base]
    for array, before in writers:
        place = array.node
        if array is view or place is None or place is before or not place.inputs:
            continue
        if view.node is None or array is not root:
            raise HybridError(
                "an array shares memory with another one that was written inside "
                "autograd.record() since, so its gradient would be lost; index, reshape or detach "
                "the written array again"
            )


def refs_of(inputs):
    """Return the inputs' tape references, with constants for arrays that have none.

    Empty if no input is on the tape.
    Raises:  HybridError for a view of an array that was since written under `record()`.
    """
    refs = []
    for v in inputs:
        if v.base is not None:
            refuse_stale(v)
        if v.node is not None:
            refs.append((v.node, v.index))
    if 0 < len(refs) < len(inputs):
        refs = [(v.node, v.index) if v.node else (Constant(v.data, v), 0) for v in inputs]
    return tuple(refs)


class NDArray(Value):
    """An array on which operators run eagerly.

    data:    the elements: contiguous memory that can be written, but is never replaced.
    node, index: the tape entry that computed it, if any.
    base:    of a view: (the array that owns the memory, its `node` when the view was made).
    snapshot: weak reference to the `Snapshot` that the tape's constants share.
    """

    __slots__ = ("data", "node", "index", "base", "snapshot", "__weakref__")

    def __init__(self, data, node=None, index=0):
        self.data, self.node, self.index = data, node, index  # at most four targets avoid a tuple
        self.base = self.snapshot = None

    @classmethod
    def interpret(cls, op, inputs, attrs, name=None):
        """Run an operator; while recording, also append it to the tape."""
        try:
            datas = [v.data for v in inputs]
        except AttributeError:
            raise op.missing(inputs, attrs) from None
        specs = specs_of(datas)
        signature = (specs, *attrs.values())
        if signature in op.checked:
            return cls._computed(op, inputs, attrs, datas, specs)
        inferred = op.specs_of(specs, attrs)[1]  # first, for its better error messages
        out = cls._computed(op, inputs, attrs, datas, specs)
        _refuse_other_specs(op, inferred, out if isinstance(out, tuple) else (out,))
        op.checked.put(signature)
        return out

    @classmethod
    def _computed(cls, op, inputs, attrs, datas, specs):
        if op.is_made(specs, attrs):
            return cls.composed(op, specs, inputs, attrs)
        run, key = op.eager, {"key": STREAM.take(1)} if op.random else {}
        if {*map(type, datas)} != HERE and (context := _elsewhere(op, datas, attrs)):
            from minihybrid.runtime.device_eager import run_on_device

            run = partial(run_on_device, context, op)  # or no inputs, but a context
        return path_of(cls.kind, op, attrs, partial(run, **attrs, **key))(inputs, datas)

    @classmethod
    def composed(cls, op, specs, inputs, attrs):
        """Run a composite operator by its decomposition into nd operators."""
        out = op.expanded(specs, [v._twin(NDArray) for v in inputs], attrs, STATE.training)
        out = _write_states(op, inputs, attrs, out) if op.aux else out
        unaliased = partial(_apart, inputs=inputs, kind=cls.kind)  # an output may alias an input
        return tuple(map(unaliased, out)) if isinstance(out, tuple) else unaliased(out)

    @classmethod
    def path(cls, op, datas, attrs):
        """Return the dispatch-cache function for equal calls: (inputs, ndarrays) -> outputs."""
        steps, outs = steps_of(op, specs_of(datas), attrs)
        if not steps:
            return lambda inputs, _: cls.interpret(op, [*inputs[: len(datas)]], attrs)
        (first, *more), n = steps, len(datas)
        if not (more or first.op.view) and (first.places, first.outs) == ([*range(n)], outs):
            return path_of(cls.kind, first.op, first.attrs, specialize(first))
        return at_once(cls.kind, op, attrs, steps, outs, n, STATE, refs_of)

    def lines_up(self, other):
        """Return whether an elementwise operator needs no broadcasting."""
        return other.level > 0 or self.data.shape == other.data.shape

    def convert(self, other, op):
        """Convert a NumPy operand to an NDArray of this array's dtype."""
        if isinstance(other, np.ndarray):
            return NDArray(copy_to(to_numpy(op, other, self.data.dtype), self.context))
        raise AttrError(
            f"{op}: an NDArray and {described(other)} do not "
            "combine; make an array of it with nd.array(...)"
        )

    # -- properties and conversion
    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return self.data.shape

    @property
    def dtype(self):
        """The NumPy type of the elements."""
        return self.data.dtype.type

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.data.size

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.data.ndim

    @property
    def context(self):
        """The device that holds the array."""
        return context_of(self.data)

    ctx = device = context
    stype = "default"

    @partial(naming, "tostype")
    def tostype(self, stype) -> "NDArray":
        """Return this array; storage is always dense ("default")."""
        dense(stype)
        return self

    def asnumpy(self) -> np.ndarray:
        """Return a copy as a NumPy array; one of size 1 also converts by `float()`."""
        return of_one(np.array(self.data))

    def asscalar(self):
        """Return the element of an array of size 1 as a NumPy scalar."""
        if self.data.size != 1:
            raise ShapeError(
                f"asscalar: the array has shape {self.shape}, but one element is needed; reduce "
                "it first, for example with mean()"
            )
        return np.asarray(self.data).reshape(())[()]

    @partial(naming, "item")
    def item(self):
        """Return the element of an array of size 1 as a Python scalar."""
        return self.asscalar().item()

    __float__ = naming("float", lambda self: float(self.asscalar()))
    __int__ = __index__ = naming("int", lambda self: int(self.asscalar()))

    def __bool__(self):
        if self.data.size != 1:
            raise ShapeError(
                f"bool: an array of shape {self.shape} is neither true nor false; reduce it "
                "first, for example with (x > 0).sum(); for max(x, 0) write nd.maximum(x, 0), "
                "and for min, and, or: nd.minimum, nd.logical_and, nd.logical_or"
            )
        return bool(self.asscalar())

    def __len__(self):
        return self.data.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __array__(self, dtype=None, copy=None):
        return np.array(self.data, dtype=dtype)

    def __repr__(self):
        shape = "x".join(map(str, self.shape))
        return f"\n{np.asarray(self.data)}\n<NDArray {shape} @{self.context}>"

    def wait_to_read(self):
        """Block until the elements are computed; on the CPU they always are."""
        if not isinstance(self.data, np.ndarray):
            self.data.device.synchronize()

    # -- indexing
    def _warn_of_mask(self, key):
        from minihybrid.mxnet.nd_extras import warn_of_mask

        warn_of_mask(key)

    def __getitem__(self, key) -> "NDArray":
        """Index with integers, slices, `...`, and arrays or lists of indices or booleans.

        Under `record()` every form has a gradient: what cannot be sliced is gathered.
        """
        if isinstance(key, NDArray) and key.data.dtype.kind == "f" and key.shape == self.shape:
            self._warn_of_mask(key)
        key = places(key)
        taped = STATE.recording and self.node is not None
        part = None if taped else look_up(self.data, key)
        if part is not None:
            return self._view(part.reshape(part.shape or (1,)), NDArray)
        if is_basic(key):
            return self._derived(self.part(key, self.shape))
        flat = look_up(np.arange(self.size).reshape(self.shape), key)
        flat = NDArray(copy_to(flat.reshape(flat.shape or (1,)), self.context))
        return OPS["take"](self.reshape((-1,)), flat)

    def __setitem__(self, key, value):
        if STATE.recording or self.base is not None:
            self._writable("x[...] = y")
        if isinstance(key, NDArray) and key.data.dtype.kind == "f" and key.shape == self.shape:
            self._warn_of_mask(key)
        if type(key) is not slice:
            key = places(key)
        source, value = value, value.data if isinstance(value, NDArray) else value
        kind, dtype = type(value), self.data.dtype
        if not issubclass(kind, Elsewhere) and not (
            kind is float
            and dtype.kind == "f"
            or kind is np.ndarray
            and value.dtype is dtype
            or fits(value, dtype)
        ):
            if getattr(value, "level", 0):
                value.refuse_written()
            refuse_followed("x[...] = y", value)
            value = to_numpy("x[...] = y", value, dtype)
        if type(self.data) is np.ndarray and issubclass(kind, Elsewhere):
            value = np.asarray(value)
        if isinstance(value, np.ndarray) and value.size == 1:
            value = value.item()  # a (1,) array acts as a scalar, like x[0, 0]
        saved = self.node or self.base or self.snapshot
        inputs = self._write_inputs(key, source) if STATE.recording else saved and self._preserve()
        try:
            self.data[key] = value
        except (IndexError, ValueError) as error:
            raise _no_place("x[...] = y", error, key, self.shape, np.shape(value)) from None
        self._written(inputs and Node(SET_ITEM, inputs, {"key": key}, values=(self.data,)))

    # -- views
    def _view(self, data, kind=None) -> "NDArray":
        """Return `data` as a view of this array; on a device, a copy."""
        view = (kind or self.kind)(data)
        return view if type(data) is ndarray and data.base is None else self._derived(view)

    def reshape(self, *shape, **kwargs) -> "NDArray":
        """Return a view of another shape: `reshape(2, 3)`, `reshape((2, 3))`, MXNet's codes.

        Under `record()`, an array on the tape is copied; MXNet's `nd.reshape` always copies.
        """
        if STATE.recording and self.node is not None:
            return self._derived(Value.reshape(self, *shape, **kwargs))
        lengths = shape[0] if len(shape) == 1 and type(shape[0]) is tuple else shape
        key = self.data.shape, lengths, *map(type, lengths)
        try:
            new = None if kwargs or not shape else RESHAPED.get(key)
        except TypeError:  # lists aren't hashable
            new = None
        if new is None:
            new = super().reshape(*shape, **kwargs).shape
            if not kwargs and all(type(n) is int for n in lengths):
                RESHAPED.put(key, new)
        return self._view(self.data.reshape(new))

    def _derived(self, array):
        """Mark `array` as a view of this array, or as its copy on the tape (not writable)."""
        root = self if self.base is None else self.base[0]
        array.base = (root, root.node) if root.node is self.node else self.base
        return array

    # -- writes and the tape
    def _writable(self, what):
        """Raise for a write that the tape can't record, or that would miss the viewed array."""
        root = self if self.base is None else self.base[0]
        if STATE.recording and any(a.node is not None and a.node.op is None for a in (self, root)):
            raise HybridError(
                f"{what} inside autograd.record(): x is a variable, whose gradient belongs to "
                "its old values; create a new array, as in x = x + y, or write outside of record()"
            )
        of_taped = root.node is not self.node and root.node is not None and root.node.inputs
        if of_taped and (STATE.recording or not _share(self, root)):
            raise HybridError(
                f"{what}: x was indexed or reshaped inside autograd.record() from an array on the "
                "tape; write into that array itself, as in y[i] = ..., or into x.copy()"
            )

    def _write_inputs(self, key, value):
        """Return the tape inputs of a write, or `None` if all are constants."""
        refs = refs_of([value]) if isinstance(value, NDArray) else ()
        self._preserve()
        if not refs and self.node is None:
            return None
        if refs and not is_basic(key):
            refuse_duplicates(key, self.shape)
        old = (Constant(self.data), 0)  # its values are not needed
        if self.node is not None and self.node.inputs is not None and not is_whole(key):
            old = (self.node, self.index)
        of_array = isinstance(value, NDArray)
        new = refs or [
            (Constant(value.data, value) if of_array else Constant(np.asarray(value)), 0)
        ]
        return old, *new

    def _preserve(self):
        """Before a write: keep a copy of the old values for what the tape computed from them."""
        root = self if self.base is None else self.base[0]
        snapshot = root.snapshot and root.snapshot()
        if snapshot:
            snapshot.values, root.snapshot = root.data.copy(), None
        if not STATE.recording or self.node and self.node.op is None:
            return (self.node or root.node) and hooks.renew(self, root)
        node, i = self.node, self.index
        if node is not None and node.values and node.values[i] is self.data:
            node.values = (*node.values[:i], self.data.copy(), *node.values[i + 1 :])

    def _written(self, node, index=0):
        """Record a write: `node` becomes this array's tape entry, if it is given."""
        if node is not None:
            self.node, self.index = node, index
            root = self if self.base is None else self.base[0]
            if root.data is self.data:  # an nd and an np array of the same memory
                root.node, root.index = node, index
            else:
                root.base = self, None  # the owner is stale until it is indexed again
        elif self.node is not None and self.node.op is not None and self.node.inputs is None:
            self.node = None  # its tape was freed: now a constant

    def copy_from(self, other) -> "NDArray":
        """Overwrite the elements with another array's."""
        self[...] = other
        return self

    def __iadd__(self, other):
        return self._in_place("x += y", operator.add, other)

    def __isub__(self, other):
        return self._in_place("x -= y", operator.sub, other)

    def __imul__(self, other):
        return self._in_place("x *= y", operator.mul, other)

    def __itruediv__(self, other):
        return self._in_place("x /= y", operator.truediv, other)

    def __imod__(self, other):
        return self._in_place("x %= y", operator.mod, other)

    def __ipow__(self, other):
        return self._in_place("x **= y", operator.pow, other)

    def _check_result(self, what, result):
        if result.shape != self.shape:
            raise ShapeError(
                f"{what}: the result has shape {result.shape}, which does "
                f"not fit into x of shape {self.shape}; write x = x + y"
            )

    def _in_place(self, what, function, other):
        if STATE.recording or self.base is not None:
            self._writable(what)
        result = function(self, other)
        self._check_result(what, result)
        if STATE.recording and result.node is not None and result.dtype != self.dtype:
            result = result.astype(self.dtype)
        self._preserve()
        self.data[...] = result.data
        self._written(result.node, result.index)
        return self

    # -- copies
    def __reduce__(self):
        """Pickle and copy the elements, off the tape, with a variable's gradient and
        `grad_req`.
        """
        leaf = self.node.info if self.node is not None else None
        grad = leaf and (leaf.req, leaf.fresh, leaf._grad)
        return restored, (type(self), np.array(self.data), self.context, grad)

    @partial(naming, "copyto")
    def copyto(self, other) -> "NDArray":
        """Copy into another array, or into a new one on a device."""
        if isinstance(other, NDArray):
            return other.copy_from(self)
        return self.interpret(COPY_TO, [self], {"context": check_context(other)})

    @partial(naming, "as_in_context")
    def as_in_context(self, context) -> "NDArray":
        """Return this array if it is on the device, else a copy there.

        Under `record()`, the copy propagates gradients back to this device.
        """
        context = check_context(context)
        return self if context == self.context else self.copyto(context)

    as_in_ctx = to_device = as_in_context

    def as_np_ndarray(self):
        """Return the np.ndarray with the same memory and tape entry."""
        from minihybrid.np.array import ndarray

        return self._twin(ndarray)

    def _twin(self, kind):
        """Return this array as another class, with the same memory and tape entry."""
        if self.kind is kind:
            return self
        return self._derived(kind(self.data, self.node, self.index))

    @partial(naming, "save")
    def save(self, fname):
        """Save this array to a file."""
        write_whole(fname, params.pack_arrays([np.asarray(self.data)]))

    # -- zero-copy exchange with other libraries
    def __dlpack_device__(self):
        """Return the device in DLPack's terms: (type, number)."""
        return self.data.__dlpack_device__()

    def __dlpack__(self, stream=None, max_version=None, dl_device=None, copy=None):
        """Return the memory, or a copy if copy=True, as a DLPack capsule.

        stream:  the consumer's; unless it is -1, this synchronizes first.
        Raises:  BufferError if `dl_device` isn't the array's device.
        """
        from minihybrid.runtime.interop import capsule

        return capsule(self, stream, max_version, dl_device, copy)

    def to_dlpack_for_read(self):
        """Return a DLPack capsule of the memory, to read."""
        return self.__dlpack__()

    def to_dlpack_for_write(self):
        """Return a DLPack capsule of the memory, to write."""
        return self.__dlpack__(max_version=(1, 0))

    @property
    def __cuda_array_interface__(self):
        """The memory's address for CUDA libraries; on real GPUs only."""
        if type(self.data) is not np.ndarray:
            return self.data.__cuda_array_interface__
        raise AttributeError(f"__cuda_array_interface__: the array is on {CPU}, not on a GPU")

    # -- gradients
    def attach_grad(self, grad_req="write", stype=None):
        """Make this array a variable, whose gradient `backward` writes to `.grad`."""
        leaf = Leaf(self.data, checked("attach_grad", "grad_req", grad_req, GRAD_REQ))
        self.node, self.index = Node(None, values=(self.data,), info=leaf), 0
        self.base and hooks.share(self)

    @property
    def grad(self) -> "NDArray":
        """The gradient buffer; `None` without `attach_grad`."""
        leaf = self.node.info if self.node is not None else None
        return leaf.grad if leaf else None

    def backward(self, out_grad=None, retain_graph=False, train_mode=True):
        """Write the gradient of this array's sum into `.grad` of the variables it depends on."""
        from minihybrid.core.tape import backward

        backward(self, out_grad, retain_graph, train_mode)

    def detach(self) -> "NDArray":
        """Return an alias that isn't on the tape."""
        return self._derived(self.kind(self.data))


NDArray.kind = NDArray  # the class of results: nd's or np's


def restored(kind, numbers, context, leaf=None):
    """Rebuild an array from `__reduce__`."""
    array = kind(copy_to(numbers, context))
    if leaf:
        array.attach_grad(leaf[0])
        array.node.info.fresh, array.node.info._grad = leaf[1:]
    return array


COPY_TO = Op(
    name="_copyto",
    anywhere=True,
    any_dtype=True,
    doc="The numbers in new memory on a device.",
    infer=lambda ins, context: (ins, ins),
    eager=lambda data, context: copy_to(data, context),
    grad=lambda g, out, x, context: [g.as_in_context(x.context)],
)


def is_followed(value):
    """Return whether a value is a symbol, or an array on the tape inside `record()`."""
    return isinstance(value, Value) and (
        value.level > 0 or STATE.recording and value.node is not None
    )


def refuse_followed(owner, values):
    """Raise if a list contains such values, whose gradient an array of them would lose."""
    if is_followed(values):
        raise AttrError(
            f"{owner}: a list has arrays in it that are traced, or on the tape, whose gradient "
            "would be lost; join them by stack, or detach() them"
        )
    if isinstance(values, (list, tuple)):
        numbers = values and not isinstance(values[0], (Value, list, tuple))
        for value in () if numbers and not STATE.recording else values:
            refuse_followed(owner, value)


def arrays(owner, values):
    """Return one or several arrays as a list.

    Raises:  AttrError unless all are NDArrays.
    """
    listed = list(values) if isinstance(values, (list, tuple)) else [values]
    for value in listed:
        if not isinstance(value, NDArray):
            raise unfit(owner, "", value, "an NDArray is needed; make one with nd.array(...)")
    return listed


def _share(a, b):
    """Return whether two arrays may share memory."""
    if isinstance(a.data, np.ndarray):
        return np.may_share_memory(a.data, b.data)
    return a.data.owner is getattr(b.data, "owner", None)


def _apart(out, inputs, kind):
    """Return an output as `kind`, copied if it shares memory with an input."""
    return (OPS["_copy"](out) if any(_share(out, v) for v in inputs) else out)._twin(kind)


def _refuse_other_specs(op, inferred, outs):
    """Raise if an eager result differs in shape or dtype from the shape rule."""
    for spec, out in zip(inferred, outs, strict=False):
        actual = Spec(out.data.shape, out.data.dtype)
        if spec.known and spec != actual:
            raise HybridError(
                f"{op.name}: its eager function gave {actual}, but its infer says {spec}, which "
                "hybridized code relies on; correct one of the two"
            )


def _elsewhere(op, datas, attrs):
    """Return the device that runs an operator on these inputs; `None` for NumPy, or if
    the operator runs anywhere.

    Among CPU contexts, which share memory, the first input decides.
    Raises:  HybridError if the inputs are on several devices.
    """
    if op.anywhere:
        return None
    context = context_of(datas[0]) if datas else check_context(None)
    others = [i for i, data in enumerate(datas) if not context.meets(context_of(data))]
    if others:
        names, other = op.input_names(attrs, len(datas)), context_of(datas[others[0]])
        to = other if context is CPU else context
        raise HybridError(
            f"{op.name}: its input '{names[0]}' is on {context}, but '{names[others[0]]}' is on "
            f"{other}; bring both to one device, for example by x.as_in_context({to})"
        )
    return None if context is CPU and not datas else context


def places(key):
    """Return an index with NumPy arrays in place of NDArrays; floats are truncated."""
    if isinstance(key, NDArray):
        index = np.asarray(key.data)
        return index if index.dtype.kind == "b" else index.astype(np.int64)
    return tuple(map(places, key)) if isinstance(key, tuple) else key


def look_up(data, key):
    """Return `data[key]`, contiguous; `None` for a DeviceArray that needs a gather.

    Raises:  ShapeError for an index out of range.
    """
    try:
        if type(data) is not np.ndarray:
            return data.part(key)
        part = data[key]
        if type(part) is not ndarray:  # a scalar; an ellipsis makes it a view
            part = data[(*key, ...) if isinstance(key, tuple) else (key, ...)]
    except (IndexError, ValueError) as error:
        raise _no_place("x[...]", error, key, data.shape) from None
    return part if part.flags.c_contiguous else part.copy()


def _no_place(what, error, key, shape, value=()):
    """Return the error for an invalid or out-of-range index, or for a value's shape."""
    kind, reason = PlaceError, f"{error}; the array has shape {shape}"
    if "slice step" in reason:
        kind, what = ShapeError, f"x[{_index_text(key)}]"
        reason = "a step of 0 leads nowhere; write another step, or 0 for the first element"
    elif reason.startswith("only integers") or "inhomogeneous" in reason:
        reason = (
            f"{_index_text(key)} is no index; needed: whole numbers, slices, ..., None, or arrays "
            f"of whole numbers or of booleans; the array has shape {shape}"
        )
    elif "broadcast" in reason or "a sequence" in reason:
        shapes = f"{value} does not broadcast to {np.empty(shape)[key].shape}"
        kind, reason = ShapeError, f"shape {shapes}"
    return kind(f"{what}: {reason}")


def _index_text(key):
    """Return an index roughly as written in the source."""
    if isinstance(key, tuple):
        return ", ".join(map(_index_text, key))
    if isinstance(key, slice):
        ends = ":".join("" if v is None else repr(v) for v in (key.start, key.stop))
        return ends + f":{key.step}" * (key.step is not None)
    return "..." if key is Ellipsis else " ".join(repr(key).split())[:60]


def dense(stype):
    """Raise unless the storage type is the default."""
    if stype is not None and not (isinstance(stype, str) and stype == "default"):
        raise HybridError(
            f"storage type '{stype}' (sparse) is not supported; every "
            "array is dense, which stype='default' says"
        )


def _write_states(op, inputs, attrs, outs):
    """Store the new states that an operator returned after its outputs."""
    outs, n = outs if isinstance(outs, tuple) else (outs,), op.count_outputs(attrs)
    for place, new in zip(op.states(attrs), outs[n:], strict=False):
        inputs[place].data[...] = new.data
    return outs[0] if n == 1 else outs[:n]
