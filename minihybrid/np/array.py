"""np.ndarray: an NDArray with NumPy's semantics, and its symbol.

Defines: `ndarray` and `_Symbol`, with np's infix operators, methods and indexing.

Operators don't depend on np: an operator is dispatched on the class of its first input and
returns results of that class. `as_nd_ndarray` and `as_np_ndarray` convert between the two
classes; the results share memory and the node on the tape.
Not supported: NumPy's own functions on these arrays (`__array_function__`).
"""

import re
from functools import partial
from types import FunctionType

import numpy as onp

from minihybrid.core.array import STATE, NDArray, look_up, places
from minihybrid.core.checked_call import naming, signed
from minihybrid.core.convert import dtype_of, to_numpy
from minihybrid.core.op import AttrError, DTypeError, PlaceError, ShapeError, described
from minihybrid.core.placement import copy_to
from minihybrid.core.sym import Symbol, constant
from minihybrid.np.operands import pair
from minihybrid.np.public import as_method, guarded, kind_of, refuse_narrower, row_major
from minihybrid.np.rearrange import FUNCTIONS
from minihybrid.ops import OPS

METHODS = """sum prod mean max min any all var std argmax argmin dot copy expand_dims squeeze
    swapaxes repeat take sort argsort cumsum round flip tile diag diagonal trace
    broadcast_to""".split()


class Numpy:
    """The base class of np's arrays and symbols."""

    is_np = True
    __slots__ = ()

    __add__, __radd__ = pair("add", "x + y")
    __sub__, __rsub__ = pair("subtract", "x - y")
    __mul__, __rmul__ = pair("multiply", "x * y")
    __truediv__, __rtruediv__ = pair("true_divide", "x / y")
    __mod__, __rmod__ = pair("mod", "x % y")
    __pow__, __rpow__ = pair("power", "x ** y")
    __and__, __rand__ = pair("bitwise_and", "x & y")
    __or__, __ror__ = pair("bitwise_or", "x | y")
    __xor__, __rxor__ = pair("bitwise_xor", "x ^ y")
    __eq__ = pair("equal", "x == y")[0]
    __ne__ = pair("not_equal", "x != y")[0]
    __gt__ = pair("greater", "x > y")[0]
    __ge__ = pair("greater_equal", "x >= y")[0]
    __lt__ = pair("less", "x < y")[0]
    __le__ = pair("less_equal", "x <= y")[0]

    def __hash__(self):
        return id(self)

    def __neg__(self):
        kind = kind_of(self)
        if kind is not None and kind.kind == "u":  # which can't represent -1 and wraps around
            return FUNCTIONS["negative"](self)
        return self * -1  # as MXNet writes it into files

    def __abs__(self):
        return FUNCTIONS["absolute"](self)

    @partial(naming, "x @ y")
    def __matmul__(self, other):
        return FUNCTIONS["matmul"](self, other)

    def __invert__(self):
        return FUNCTIONS["logical_not"](self)

    def reshape(self, *shape, order="C"):
        """Return the same elements with another shape; one length may be -1."""
        shape = shape[0] if len(shape) == 1 else shape
        if order == "F":
            return FUNCTIONS["reshape"](self, shape, order=order)
        return OPS["_np_reshape"].applied((self, shape, order), {})

    def flatten(self, order="C"):
        """Flatten to one axis, in column-major order for order="F"."""
        return FUNCTIONS["ravel"](self, order)

    ravel = flatten

    def transpose(self, *axes):
        """Permute the axes, by default in reverse."""
        axes = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return OPS["_np_transpose"](self, axes=axes or None)

    @property
    def T(self):
        """The transpose: the axes reversed."""
        return OPS["_np_transpose"](self)

    def astype(self, dtype, order="K", casting="unsafe", subok=True, copy=True):
        """Convert to a dtype. With copy=False, return this array if it has that dtype.

        Raises:  DTypeError for a dtype that `casting` doesn't allow.
        """
        row_major("astype", order)
        dtype, kind = dtype_of("astype", dtype), kind_of(self)
        if kind is not None and not onp.can_cast(kind, dtype, casting):
            raise DTypeError(
                f"astype: {kind} does not become {dtype} with casting={casting!r}; "
                "casting='unsafe' allows it"
            )
        return self if not copy and kind == dtype else OPS["Cast"](self, dtype=dtype)

    def clip(self, min=None, max=None, out=None):
        """Clip the elements to [min, max]."""
        return FUNCTIONS["clip"](self, min, max, out=out)

    def nonzero(self):
        """Return the indices of nonzero elements: one array per axis."""
        return FUNCTIONS["nonzero"](self)

    def part(self, key, shape):
        """Return `x[key]`, built of operators, with np's shapes and index arrays."""
        keys = key if isinstance(key, tuple) else (key,)
        plain = tuple(map(places, keys))
        try:
            out_shape = onp.broadcast_to(onp.int8(0), shape)[plain].shape
        except IndexError as error:
            raise ShapeError(f"x[...]: {error}; the array has shape {shape}") from None
        if any(isinstance(k, (onp.ndarray, list, bool)) for k in plain):
            flat = onp.arange(onp.prod(shape, dtype=int)).reshape(shape)[plain]
            flat = self.on_device(flat.ravel())
            return OPS["take"](self.reshape(-1), flat).reshape(out_shape)
        basic = tuple(k for k in plain if k is not None)
        result = super().part(basic, shape) if basic else self
        return result.reshape(out_shape)


for _name in METHODS:
    setattr(Numpy, _name, as_method(_name))

for _name, _method in list(vars(Numpy).items()):
    if isinstance(_method, FunctionType) and not _name.startswith("_") and _name not in METHODS:
        _title = "x[...]" if _name == "part" else f"ndarray.{_name}"
        setattr(Numpy, _name, guarded(_title, _method, is_method=True))


class ndarray(Numpy, NDArray):
    """An array with np's semantics. Create it with `mx.np.array`.

    >>> from minihybrid import np
    >>> np.array([[1, 2], [3, 4]]).mean(axis=0)
    array([2., 3.])
    """

    __slots__ = ()

    @classmethod
    def composed(cls, op, specs, inputs, attrs):
        """Compute a composite operator on nd arrays, and return np arrays."""
        out = super().composed(op, specs, [v.as_nd_ndarray() for v in inputs], attrs)
        if isinstance(out, tuple):
            return tuple(v.as_np_ndarray() for v in out)
        return out.as_np_ndarray()

    def as_np_ndarray(self):
        """Return this array."""
        return self

    def as_nd_ndarray(self):
        """Return an nd array with the same memory and node on the tape."""
        return self._twin(NDArray)

    @staticmethod
    def constant(values):
        """Return a constant as an array of this class."""
        return ndarray(onp.asarray(values, order="C"))

    def on_device(self, values):
        """Return a constant as an array on this array's device."""
        return ndarray(copy_to(values, self.context))

    def convert(self, other, op):
        """Convert a NumPy operand to an np.ndarray."""
        if isinstance(other, onp.ndarray):
            kind = other.dtype if other.dtype.kind in "biufV" else "float32"
            return self.on_device(to_numpy(op, other, kind))
        raise AttrError(
            f"{op}: an np.ndarray and {described(other)} do not "
            "combine; make an array of it with np.array(...)"
        )

    def __len__(self):
        if not self.data.shape:
            raise AttrError(
                "len: the array has no axes, so it has no length; its value is x.item(), and "
                "x.reshape(1) has one axis"
            )
        return self.data.shape[0]

    def __repr__(self):
        text, kind = repr(onp.asarray(self.data)), self.data.dtype
        if kind == onp.float32:
            return re.sub(r",\s+dtype=float32", "", text)
        if kind.kind != "b" and "dtype=" not in text:
            return f"{text[:-1]}, dtype={kind})"
        return text

    def __str__(self):
        return str(onp.asarray(self.data))

    @property
    def dtype(self):
        """The elements' dtype."""
        return self.data.dtype

    def item(self, *args):
        """Return one element as a Python scalar; a one-element array needs no index."""
        if not args:
            return super().item()
        try:
            return onp.asarray(self.data).item(*args)
        except (IndexError, OverflowError, TypeError, ValueError):
            place = ", ".join(map(repr, args))
            raise PlaceError(
                f"ndarray.item: ({place:.60}) names no element of an array of shape {self.shape}"
            ) from None

    def tolist(self):
        """Return the elements as nested lists."""
        return onp.asarray(self.data).tolist()

    def __getitem__(self, key):
        taped = STATE.recording and self.node is not None
        part = None if taped else look_up(self.data, places(key))
        return self._derived(self.part(key, self.shape)) if part is None else self._view(part)

    def __setitem__(self, key, value):
        super().__setitem__(places(key), value)

    def _check_result(self, what, result):
        refuse_narrower(what, result, self)
        super()._check_result(what, result)

    @property
    def grad(self):
        """The gradient buffer, or `None` without `attach_grad`."""
        buffer = super().grad
        return buffer if buffer is None else buffer.as_np_ndarray()


ndarray.kind = ndarray
for _name, _method in {**vars(NDArray), **vars(ndarray)}.items():
    is_open = isinstance(_method, FunctionType) and not _name.startswith("_")
    if is_open and _name not in {*dir(Numpy), "as_nd_ndarray", "as_np_ndarray"}:
        setattr(ndarray, _name, signed(_method))  # each operator calls those two


class _Symbol(Numpy, Symbol):
    """The symbol of an np.ndarray."""

    __slots__ = ()

    @staticmethod
    def interpret(op, inputs, attrs, name=None):
        """Record the application and return np's symbols.

        Raises:  AttrError for a missing input, because np's functions don't create variables.
        """
        if op.name.startswith("_np") and not op.name.startswith("_npx"):
            for place, value in enumerate(inputs):
                if value is None:
                    missing = op.input_names(attrs)[place]
                    raise AttrError(f"{op.name}: the input '{missing}' is missing")
        return _Symbol(Symbol.interpret(op, inputs, attrs, name).refs)

    def as_np_ndarray(self):
        """Return this symbol."""
        return self

    def as_nd_ndarray(self):
        """Return the nd symbol of the same value."""
        return Symbol(self.refs)

    @staticmethod
    def constant(values):
        """Return a constant of the graph being traced."""
        return _Symbol(constant(values).refs)

    beside = constant

    def on_device(self, values):
        """Return a constant of the graph being traced."""
        return self.constant(values)
