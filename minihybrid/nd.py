"""Chapter 07. NDArray: the eager reading of an operator, on NumPy.

Takes:   NumPy arrays, lists and numbers.
Gives:   `NDArray`; the functions of `nd`, one for every operator; and the flag that
         tells whether to keep the tape (the tape itself is read in `autograd`).

What is left out: sparse storage and asynchronous execution (`waitall` has nothing to
do).
"""

import threading
from numbers import Integral
from types import SimpleNamespace

import numpy as np

from minihybrid.context import CPU, check_context
from minihybrid.op import (
    OPS,
    UNEXPECTED,
    AttrError,
    HybridError,
    Node,
    ShapeError,
    Spec,
)
from minihybrid.ops.infix import FUNCTIONS, Part, Value, namespace
from minihybrid.ops.random import STREAM, seed


class State(threading.local):
    """What holds for this thread: is the tape kept, is the mode training."""

    recording = False
    training = False


class Checked(set):
    """Calls whose shapes were found to fit; starts anew when it has grown large."""

    def add(self, signature):
        """Remember a call: its operator, specs and attributes."""
        if len(self) >= 10_000:
            self.clear()
        super().add(signature)


STATE, CHECKED = State(), Checked()


def aligned(shape, dtype, raw=None):
    """Uninitialised memory whose first byte lies at a multiple of 64, a cache line.

    A vector load that crosses two cache lines costs two; weights are read only so.

    raw:     bytes to use, 64 more than needed; new ones if not given.
    """
    dtype = np.dtype(dtype)
    nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = np.empty(nbytes + 64, np.uint8) if raw is None else raw
    start = -raw.ctypes.data % 64
    return raw[start:start + nbytes].view(dtype).reshape(shape)


# -- the array -------------------------------------------------------------------------
class Leaf:
    """Where a variable's gradient goes: a buffer, and write, add or null.

    The buffer is made when it is first asked for: who only predicts needs no memory for
    it. `fresh` says whether a backward wrote it since the last step of a Trainer.
    """

    def __init__(self, like, req, grad=None):
        self.like, self.req, self.fresh = like, req, False
        self._grad = grad

    @property
    def grad(self):
        """The buffer, of zeros at first; `None` if the gradient goes nowhere."""
        if self._grad is None and self.req != "null":
            self._grad = NDArray(np.zeros(self.like.shape, self.like.dtype))
        return self._grad


class NDArray(Value):
    """An array whose operators compute at once.

    Its memory is contiguous and never exchanged, only written; `node` and `index` say
    which entry of the tape it came from, if any.
    """

    __slots__ = ("data", "node", "index", "__weakref__")
    level = 0

    def __init__(self, data, node=None, index=0):
        self.data, self.node, self.index = data, node, index

    @staticmethod
    def interpret(op, inputs, attrs, name=None):
        """Compute; when recording, also keep what was applied to what."""
        for i, value in enumerate(inputs):
            if value is None:
                raise AttrError(f"{op.name}: the input "
                                f"'{op.input_names(attrs)[i]}' is missing")
        specs = tuple([Spec(v.data.shape, v.data.dtype) for v in inputs])
        signature = (op, specs, *attrs.values())
        if signature not in CHECKED:  # the shape rule has the better error messages
            op.specs_of(specs, attrs)
            CHECKED.add(signature)
        key = {"key": STREAM.take(1)} if op.random else {}
        try:
            if op.eager is None:
                mode = {"training": STATE.training} if op.modal else {}
                out = op.expand(specs, *inputs, **attrs, **mode)
                return _write_states(op, inputs, attrs, out) if op.aux else out
            with np.errstate(all="ignore"):
                out = op.eager(*(v.data for v in inputs), **attrs, **key)
        except HybridError:
            raise
        except UNEXPECTED as error:
            raise op.sentence(HybridError, specs, attrs, error) from None
        outs = tuple(map(_own, out if isinstance(out, tuple) else (out,)))
        node = None
        if STATE.recording and op.grad and any(v.node is not None for v in inputs):
            refs = tuple(
                (v.node or Node(None, values=(v.data,)), v.index) for v in inputs
            )
            node = Node(op, refs, attrs, values=outs)
        arrays = tuple(NDArray(o, node, i) for i, o in enumerate(outs))
        return arrays if isinstance(out, tuple) else arrays[0]

    def lines_up(self, other):
        """Whether an elementwise operator fits without broadcasting."""
        return other.level > 0 or self.data.shape == other.data.shape

    def convert(self, other, op):
        """A NumPy array beside an NDArray becomes one, in this array's dtype."""
        if isinstance(other, np.ndarray):
            return array(other, dtype=self.data.dtype)
        raise AttrError(f"{op}: an NDArray and a {type(other).__name__} do not "
                        "combine; make an array of it with nd.array(...)")

    # -- looking at it
    @property
    def shape(self):
        """The length of each axis."""
        return self.data.shape

    @property
    def dtype(self):
        """The NumPy type of the elements."""
        return self.data.dtype.type

    @property
    def size(self):
        """The number of elements."""
        return self.data.size

    @property
    def ndim(self):
        """The number of axes."""
        return self.data.ndim

    @property
    def context(self):
        """The device that holds the array."""
        return CPU

    ctx = device = context
    stype = "default"

    def tostype(self, stype):
        """This array; there is no storage but the default, which is dense."""
        _dense(stype)
        return self

    def asnumpy(self):
        """The numbers in a NumPy array of their own."""
        return self.data.copy()

    def asscalar(self):
        """The one number of an array of size 1."""
        if self.data.size != 1:
            raise ShapeError(f"asscalar: the array has shape {self.shape}, but one "
                             "element is needed; reduce it first, for example with "
                             "mean()")
        return self.data.reshape(())[()]

    def item(self):
        """The one number of an array of size 1, as a Python number."""
        return self.asscalar().item()

    def __float__(self):
        return float(self.asscalar())

    def __int__(self):
        return int(self.asscalar())

    __index__ = __int__

    def __bool__(self):
        if self.data.size != 1:
            raise ShapeError(f"bool: an array of shape {self.shape} is neither true "
                             "nor false; reduce it first, for example with (x > "
                             "0).sum()")
        return bool(self.asscalar())

    def __len__(self):
        return self.data.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __array__(self, dtype=None, copy=None):
        return np.array(self.data, dtype=dtype)

    def __repr__(self):
        shape = "x".join(map(str, self.shape))
        return f"\n{self.data}\n<NDArray {shape} @{self.context}>"

    def wait_to_read(self):
        """Return when the numbers are there; here they always are."""

    # -- indexing
    def __getitem__(self, key):
        """A part: numbers, slices, `...`, and arrays or lists of places or of booleans.

        Under `record()` every form has a gradient: what cannot be sliced is taken.
        """
        key = _places(key)
        taped = STATE.recording and self.node is not None
        if taped and _is_basic(key):
            return self.part(key, self.shape)
        try:  # on the tape, look the places up as the numbers would be
            part = (np.arange(self.size).reshape(self.shape) if taped else
                    self.data)[key]
        except IndexError as error:
            raise ShapeError(f"x[...]: {error}; the array has shape "
                             f"{self.shape}") from None
        part = np.asarray(part).reshape(np.shape(part) or (1,))
        part = NDArray(part if part.flags.c_contiguous else part.copy())
        return OPS["take"](self.reshape((-1,)), part) if taped else part

    def __setitem__(self, key, value):
        self._writable("x[...] = y")
        key = _places(key)
        value = value.data if isinstance(value, NDArray) else value
        if isinstance(value, np.ndarray) and value.size == 1:
            value = value.item()  # a (1,) array is a number, as x[0, 0] gives it
        try:
            self.data[key] = value
        except (ValueError, IndexError) as error:
            raise ShapeError(f"x[...] = y: {error}") from None

    def _writable(self, what):
        if STATE.recording and self.node is not None:
            raise HybridError(
                f"{what} inside autograd.record(): the tape still needs the numbers "
                "that would be overwritten; make a new array, as in x = x + y, or "
                "write outside of record()")

    def copy_from(self, other):
        """Overwrite the numbers by another array's."""
        self[:] = other
        return self

    def __iadd__(self, other):
        return self._in_place("x += y", self + other)

    def __isub__(self, other):
        return self._in_place("x -= y", self - other)

    def __imul__(self, other):
        return self._in_place("x *= y", self * other)

    def __itruediv__(self, other):
        return self._in_place("x /= y", self / other)

    def _in_place(self, what, result):
        self._writable(what)
        if result.shape != self.shape:
            raise ShapeError(f"{what}: the result has shape {result.shape}, which does "
                             f"not fit into x of shape {self.shape}; write x = x + y")
        self.data[...] = result.data
        return self

    # -- copies
    def copy(self):
        """The same numbers in memory of their own."""
        return OPS["_copy"](self)

    def copyto(self, other):
        """Write the numbers into another array, or onto a device."""
        return other.copy_from(self) if isinstance(other, NDArray) else \
            (check_context(other), self.copy())[1]

    def as_in_context(self, context):
        """This array, if it is on the device already; else a copy there."""
        check_context(context)
        return self

    as_in_ctx = as_in_context

    # -- gradients
    def attach_grad(self, grad_req="write", stype=None):
        """Make this array a variable: `backward` will write its gradient to `.grad`."""
        if grad_req not in ("write", "add", "null"):
            raise AttrError(f"attach_grad: grad_req='{grad_req}' is unknown; needed: "
                            "write, add or null")
        self.node = Node(None, values=(self.data,), info=Leaf(self.data, grad_req))
        self.index = 0

    @property
    def grad(self):
        """The gradient's buffer; `None` without `attach_grad`."""
        leaf = self.node.info if self.node is not None else None
        return leaf.grad if leaf else None

    def detach(self):
        """The same memory, cut off from the tape."""
        return NDArray(self.data)


def _places(key):
    """An index in which NumPy arrays stand for NDArrays; their fractions are cut."""
    if isinstance(key, NDArray):
        return key.data if key.data.dtype.kind == "b" else key.data.astype(np.int64)
    return tuple(map(_places, key)) if isinstance(key, tuple) else key


def _is_basic(key):
    keys = key if isinstance(key, tuple) else (key,)
    return all(isinstance(k, (Integral, slice)) or k is Ellipsis for k in keys)


def _dense(stype):
    if stype not in (None, "default"):
        raise HybridError(f"storage type '{stype}' (sparse) is not supported; every "
                          "array is dense, which stype='default' says")


def _write_states(op, inputs, attrs, outs):
    """Overwrite the operator's states by what it gave after its outputs."""
    outs, n = outs if isinstance(outs, tuple) else (outs,), op.count_outputs(attrs)
    for place, new in zip(op.states(attrs), outs[n:], strict=False):
        inputs[place].data[...] = new.data
    return outs[0] if n == 1 else outs[:n]


def _own(out):
    """Memory that is contiguous and belongs to nobody else."""
    out = np.asarray(out)
    if out.base is not None:
        return out.copy()
    return out if out.flags.c_contiguous else np.ascontiguousarray(out)


# -- making arrays ---------------------------------------------------------------------
def array(source_array, ctx=None, dtype=None):
    """An array of given numbers; float32 unless the source has a dtype of its own.

    Shapes:  those of the source; a single number becomes (1,).

    >>> array([[1, 2, 3]]).shape
    (1, 3)
    """
    check_context(ctx)
    if dtype is None:
        dtype = source_array.dtype if isinstance(source_array, NDArray) else np.float32
    if isinstance(source_array, NDArray):
        source_array = source_array.data
    elif isinstance(source_array, (list, tuple)) and source_array and \
            all(isinstance(v, NDArray) for v in source_array):
        source_array = [v.data for v in source_array]
    try:
        source = np.asarray(source_array, dtype)
    except (ValueError, TypeError) as error:
        raise AttrError(f"nd.array: {error}") from None
    out = aligned(source.shape or (1,), source.dtype)
    out[...] = source
    return NDArray(out)


def empty(shape, ctx=None, dtype="float32"):
    """An array whose numbers nobody has set yet."""
    check_context(ctx)
    return NDArray(
        aligned(shape if np.iterable(shape) else (shape,), dtype or "float32")
    )


class CSRNDArray(NDArray):
    """MXNet's array of compressed sparse rows, of which there are none here.

    Programs ask `isinstance(x, nd.sparse.CSRNDArray)`; the answer is no.
    """

    def __init__(self, *_, **__):
        _dense("csr")


sparse = SimpleNamespace(CSRNDArray=CSRNDArray, csr_matrix=CSRNDArray)


def from_numpy(ndarray, zero_copy=True):
    """An array over NumPy's own memory, or with zero_copy=False over a copy of it."""
    if zero_copy and not ndarray.flags.c_contiguous:
        raise AttrError("nd.from_numpy: the memory has gaps; pass zero_copy=False")
    return NDArray(ndarray if zero_copy else ndarray.copy())


def _created(op, ctx, stype=None, **attrs):
    check_context(ctx)
    _dense(stype)
    return NDArray.interpret(OPS[op], [], OPS[op].normalize(attrs))


def zeros(shape, ctx=None, dtype="float32", stype=None, out=None, **_):
    """An array of zeros."""
    result = _created("_zeros", ctx, stype, shape=shape, dtype=dtype)
    return result if out is None else out.copy_from(result)


def ones(shape, ctx=None, dtype="float32", stype=None, out=None, **_):
    """An array of ones."""
    result = _created("_ones", ctx, stype, shape=shape, dtype=dtype)
    return result if out is None else out.copy_from(result)


def full(shape, val, ctx=None, dtype="float32", out=None):
    """An array of one value."""
    result = _created("_full", ctx, shape=shape, value=val, dtype=dtype)
    return result if out is None else out.copy_from(result)


def arange(start, stop=None, step=1.0, repeat=1, ctx=None, dtype="float32"):
    """start, start + step, ... below stop; one number alone is the stop."""
    return _created("_arange", ctx, start=start, stop=stop, step=step, repeat=repeat,
                    dtype=dtype)


def linspace(start, stop, num, endpoint=True, ctx=None, dtype="float32"):
    """`num` numbers at equal distances, from start to stop."""
    return _created("_linspace", ctx, start=start, stop=stop, num=num,
                    endpoint=endpoint, dtype=dtype)


def eye(N, M=0, k=0, ctx=None, dtype="float32", **_):
    """An N x M array (N x N for M=0) with ones on the diagonal k.

    >>> eye(2, 3, 1).asnumpy().tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    return _created("_eye", ctx, N=N, M=M, k=k, dtype=dtype or "float32")


def concatenate(arrays, axis=0, always_copy=True):
    """Join arrays along an axis; a single one is copied unless told not to."""
    if len(arrays) == 1 and not always_copy:
        return arrays[0]
    return OPS["Concat"](*arrays, dim=axis)


def histogram(a, bins=10, range=None):
    """How many numbers lie in each bin, and the bins' edges.

    bins:    a number of equal bins within `range` (by default, of all numbers), or
             an NDArray of edges.
    Returns: (counts, int64; edges); the last edge belongs to the last bin.

    >>> histogram(array([0, 1, 2, 2, 3]), bins=3, range=(0, 3))[0].asnumpy()
    array([1, 1, 3])
    """
    if isinstance(bins, NDArray):
        return OPS["_histogram"](a, bins)
    if range is None:
        low, high = a.min().item(), a.max().item()
        range = (low, high) if low < high else (low - 0.5, high + 0.5)
    return OPS["_histogram"](a, bin_cnt=bins, range=range)


def onehot_encode(indices, out):
    """Write a one-hot line for each index into the rows of `out`."""
    return out.copy_from(OPS["one_hot"](indices, depth=out.shape[1], dtype=out.dtype))


def reset_arrays(*arrays, num_arrays=None):
    """Write zeros into arrays."""
    for each in arrays:
        each[...] = 0


def waitall():
    """Return when all work is done; eager work is done when the call returns."""


class Random:
    """The functions of `random`: distributions, choices, `seed`.

    A parameter may be an array: then each of its elements gets a block of `shape`.
    """

    seed = staticmethod(seed)

    def __init__(self, interpret):
        self._interpret = interpret

    def _draw(self, name, params, shape, dtype, ctx, out):
        check_context(ctx)
        shape = out.shape if out is not None and shape is None else shape
        attrs = {k: v for k, v in (("shape", shape), ("dtype", dtype)) if v is not None}
        if any(hasattr(v, "level") for v in params.values()):
            if not all(hasattr(v, "level") for v in params.values()):
                raise AttrError(f"random.{name}: {', '.join(params)} must all be "
                                "arrays or all be numbers")
            result = OPS[f"_sample_{name}"](*params.values(), **attrs)
        else:
            op = OPS[f"_random_{name}"]
            result = self._interpret(op, [], op.normalize(params | attrs))
        return result if out is None else out.copy_from(result)

    def uniform(self, low=0.0, high=1.0, shape=None, dtype=None, ctx=None, out=None):
        """Numbers that are equally likely anywhere in [low, high)."""
        return self._draw("uniform", {"low": low, "high": high}, shape, dtype, ctx, out)

    def normal(self, loc=0.0, scale=1.0, shape=None, dtype=None, ctx=None, out=None):
        """Numbers with the normal distribution around loc."""
        return self._draw("normal", {"loc": loc, "scale": scale}, shape, dtype, ctx,
                          out)

    def randn(self, *shape, loc=0.0, scale=1.0, dtype=None, ctx=None):
        """Numbers with the normal distribution, the shape given as numbers."""
        return self.normal(loc, scale, shape or None, dtype, ctx)

    def randint(self, low, high, shape=None, dtype=None, ctx=None, out=None):
        """Whole numbers that are equally likely in [low, high)."""
        return self._draw("randint", {"low": low, "high": high}, shape, dtype, ctx, out)

    def exponential(self, scale=1.0, shape=None, dtype=None, ctx=None, out=None):
        """Waiting times with the mean `scale`."""
        return self._draw("exponential", {"lam": 1.0 / scale}, shape, dtype, ctx, out)

    def gamma(self, alpha=1.0, beta=1.0, shape=None, dtype=None, ctx=None, out=None):
        """Numbers with the gamma distribution of shape alpha and scale beta."""
        return self._draw("gamma", {"alpha": alpha, "beta": beta}, shape, dtype, ctx,
                          out)

    def poisson(self, lam=1.0, shape=None, dtype=None, ctx=None, out=None):
        """Counts of events of which lam are expected, as float32 unless told."""
        return self._draw("poisson", {"lam": lam}, shape, dtype, ctx, out)

    def negative_binomial(self, k=1, p=1, shape=None, dtype=None, ctx=None, out=None):
        """Failures before success number k, of probability p each."""
        return self._draw("negative_binomial", {"k": k, "p": p}, shape, dtype, ctx, out)

    def generalized_negative_binomial(self, mu=1, alpha=1, shape=None, dtype=None,
                                      ctx=None, out=None):
        """Counts with mean mu and variance mu + alpha mu^2."""
        return self._draw("generalized_negative_binomial", {"mu": mu, "alpha": alpha},
                          shape, dtype, ctx, out)

    def multinomial(self, data, shape=(), get_prob=False, out=None, dtype="int32"):
        """Places drawn with the probabilities in each row of the data.

        Shapes:  (K,) or (N, K) -> the shape, for each row; one number if it is ().
        """
        result = OPS["_sample_multinomial"](data, shape=shape, get_prob=get_prob,
                                            dtype=dtype)
        return result if out is None else out.copy_from(result)

    def shuffle(self, data, out=None):
        """The rows (axis 0) in random order, as a new array."""
        result = OPS["_shuffle"](data)
        return result if out is None else out.copy_from(result)

    def __getattr__(self, name):
        """`uniform_like(data, low, high)` and the other forms that take a shape."""
        if name.endswith("_like") and f"_random_{name}" in OPS:
            return OPS[f"_random_{name}"]
        raise AttributeError(f"random has no function '{name}'")


random = Random(NDArray.interpret)
linalg = Part("_linalg_", NDArray, "nd.linalg")
contrib = Part("_contrib_", NDArray, "nd.contrib")
_internal = Part("", NDArray, "nd._internal")


def __getattr__(name):
    return namespace(name, NDArray, "nd")


def __dir__():
    return sorted({*globals(), *OPS, *FUNCTIONS})
