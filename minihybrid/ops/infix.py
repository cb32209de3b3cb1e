"""Chapter 12. Python operators and methods shared by arrays and symbols.

Defines: `Value`, the base class of NDArray and Symbol. Its methods are generated from the
         operator definitions, so a symbol has every method of an array.

Not supported: chained comparisons such as `a < b < c`, which Python evaluates by bool().
"""

import builtins
import math
import operator
import re
from functools import cache, partial
from importlib.machinery import ModuleSpec
from numbers import Integral, Number
from types import TracebackType

import numpy as np

from minihybrid.core import hooks
from minihybrid.core.attribute import KNOWN, AttrScope
from minihybrid.core.checked_call import naming
from minihybrid.core.context import check_context
from minihybrid.core.hooks import FACES, own_names
from minihybrid.core.op import (
    AttrError,
    HybridError,
    PlaceError,
    ShapeError,
    boolean,
    checked,
    described,
)
from minihybrid.core.source_lines import is_ours
from minihybrid.ops.registry import OPS, is_own
from minihybrid.ops.signatures import Called
from minihybrid.ops.tiling import split_v2

PRINTED = {"nd": "minihybrid.ndarray", "sym": "minihybrid.symbol"}  # as in MXNet
NOTHING = {}  # no attributes
SIGNS = {}  # operator -> its infix form, as in x + y
USUAL = {float, int}  # scalar types that need no further check


def said_by(name, error):
    """Make an error message start with the name that the caller used, not an inner
    operator's, and show no frames of the engine but the outermost and the innermost.
    """
    text = str(error.args[0]) if error.args else ""
    head, _, rest = text.partition(": ")
    inner = rest and re.fullmatch(rf"[\w.]+|{SIGN}", head)
    text = f"{name}: {rest if inner else text}"
    if name.startswith(("np", "ndarray")):
        text = text.replace("an NDArray", "an np.ndarray").replace("nd.array(", "np.array(")
    error.args = (text,)
    shorten(error)


def shorten(error):
    """Leave the frames of user code in a traceback, and the engine's first and last."""
    outer = place = error.__traceback__
    users = []
    while place and place.tb_next:
        place = place.tb_next
        users += [place] if not is_ours(place.tb_frame) or not place.tb_next else []
    inner = None
    for place in reversed([outer, *users] if outer else []):
        inner = TracebackType(inner, place.tb_frame, place.tb_lasti, place.tb_lineno)
    error.__traceback__ = inner


SIGN = r"x\W+y?"  # as in x + y


def _infix(sign, name, elemwise, scalar, rscalar=None):
    """Return the methods of one infix operator; `rscalar` implements `2 - x`."""
    same, stretch = OPS[elemwise], OPS["broadcast_" + name]
    by_scalar, from_scalar = OPS[scalar], OPS[rscalar or scalar]
    SIGNS.update(dict.fromkeys((elemwise, scalar, rscalar or scalar), sign))

    def apply(self, other):
        try:
            if not isinstance(other, Value):
                if is_number(other):
                    return by_scalar.applied((self,), {"scalar": other})
                refuse_parameter(other, sign)
                other = self.convert(other, sign)
            return (same if self.lines_up(other) else stretch).applied((self, other), NOTHING)
        except HybridError as error:
            said_by(sign, error)
            raise

    def apply_reversed(self, other):
        if is_number(other):
            try:
                return from_scalar.applied((self,), {"scalar": other})
            except HybridError as error:
                said_by(sign, error)
                raise
        return apply(self.convert(other, sign), self)

    return apply, apply_reversed


def refuse_parameter(value, sign):
    """Raise AttrError for a Parameter as an operand."""
    if hasattr(value, "list_data"):
        raise AttrError(
            f"{sign}: the Parameter '{value.name}' is no array; write param.data(), or take it as "
            "an argument of hybrid_forward, under its attribute's name"
        )


def is_number(value):
    """Return whether an operand is a Python or NumPy scalar."""
    if type(value) in USUAL:
        return True
    is_real = isinstance(value, Number) and not isinstance(value, complex)
    return is_real or getattr(value, "shape", None) == ()


def absent(self, name):
    """Implement `__getattr__` of a class: explain PyTorch's names for things.

    Only missing names get here, so existing ones cost nothing.
    Raises:  AttributeError; the original one if a property raised it.
    """
    # Operators test whether an argument has `data`, which symbols lack.
    is_public = name != "data" and not name.startswith("_")
    if is_public and (message := hooks.instead(self, name)):
        raise AttributeError(message)
    return object.__getattribute__(self, name)


class Value:
    """Base class of NDArray and Symbol, which implement `interpret`, `convert`, `lines_up`."""

    level = 0  # dispatch level: an operator's highest input interprets it
    is_np = False  # whether it follows np's semantics
    __array_priority__ = 1000.0  # numpy_array + value calls value.__radd__
    __slots__ = ()

    __getattr__ = absent
    __add__, __radd__ = _infix("x + y", "add", "elemwise_add", "_plus_scalar")
    __sub__, __rsub__ = _infix("x - y", "sub", "elemwise_sub", "_minus_scalar", "_rminus_scalar")
    __mul__, __rmul__ = _infix("x * y", "mul", "elemwise_mul", "_mul_scalar")
    __truediv__, __rtruediv__ = _infix(
        "x / y", "div", "elemwise_div", "_div_scalar", "_rdiv_scalar"
    )
    __mod__, __rmod__ = _infix("x % y", "mod", "_mod", "_mod_scalar", "_rmod_scalar")
    __pow__, __rpow__ = _infix("x ** y", "power", "_power", "_power_scalar", "_rpower_scalar")
    __eq__, _ = _infix("x == y", "equal", "_equal", "_equal_scalar")
    __ne__, _ = _infix("x != y", "not_equal", "_not_equal", "_not_equal_scalar")
    __gt__, _ = _infix("x > y", "greater", "_greater", "_greater_scalar")
    __ge__, _ = _infix("x >= y", "greater_equal", "_greater_equal", "_greater_equal_scalar")
    __lt__, _ = _infix("x < y", "lesser", "_lesser", "_lesser_scalar")
    __le__, _ = _infix("x <= y", "lesser_equal", "_lesser_equal", "_lesser_equal_scalar")
    del _

    def __hash__(self):
        return id(self)

    def as_nd_ndarray(self):
        """Return this value as an nd array or symbol, which it is."""
        return self

    def __neg__(self):
        return OPS["negative"](self)

    def __abs__(self):
        return OPS["abs"](self)

    @partial(naming, "reshape")
    def reshape(self, *shape, **kwargs):
        """Return the elements in another shape: `reshape(2, 3)`, `reshape((2, 3))`."""
        shape = (shape,) if len(shape) > 1 else shape
        return OPS["Reshape"].applied((self, *shape), kwargs)

    def transpose(self, *axes, **kwargs):
        """Permute the axes; by default, reverse them."""
        if axes:
            kwargs["axes"] = axes[0] if len(axes) == 1 and axes[0] is not None else axes
        return OPS["transpose"](self, **{k: v for k, v in kwargs.items() if v is not None})

    @partial(naming, "astype")
    def astype(self, dtype, copy=True):
        """Convert to a dtype; with copy=False, return this array if it has that dtype."""
        if copy is not True and not checked("astype", "copy", copy, boolean):
            copy = self.level or self.data.dtype != dtype
        if not copy:
            return self
        return OPS["Cast"](self, dtype=dtype)

    def copy(self):
        """Return a copy."""
        return OPS["_copy"](self)

    def part(self, key, shape):
        """Compute `x[key]` with operators, so that it can be traced and differentiated.

        Raises:  AttrError for keys other than integers, slices and `...`.
        """
        keys = key if isinstance(key, tuple) else (key,)
        ellipses = [i for i, k in enumerate(keys) if k is Ellipsis]  # `in` would compare arrays
        if ellipses:
            at = ellipses[0]
            keys = keys[:at] + (slice(None),) * (len(shape) - len(keys) + 1) + keys[at + 1 :]
        if any(isinstance(k, Value) for k in keys):
            raise AttrError(
                f"x[{' '.join(repr(key).split())[:60]}]: a condition keeps as many elements as it "
                "likes, which no graph can "
                "plan for; write F.where(condition, x, F.zeros_like(x)), or F.take(x, places)"
            )
        if shape is None or not all(isinstance(k, (Integral, slice)) for k in keys):
            raise AttrError(
                f"x[{key!r}]: only whole numbers, slices and ... can be "
                "traced and have a gradient; use slice, pick or one_hot"
            )
        if len(keys) > len(shape) or any(
            isinstance(k, Integral) and not -n <= k < n for k, n in zip(keys, shape, strict=False)
        ):
            raise PlaceError(f"x[{key!r}]: outside of shape {shape}")
        if any(isinstance(k, slice) and k.step == 0 for k in keys):
            raise ShapeError(
                f"x[{key!r}]: a step of 0 leads nowhere; write another "
                "step, or 0 for the first element"
            )
        ranges = [slice(k, k + 1 or None) if isinstance(k, Integral) else k for k in keys]
        lengths = [len(range(*r.indices(n))) for r, n in zip(ranges, shape, strict=False)]
        part = OPS["slice"](
            self,
            begin=tuple(r.start for r in ranges),
            end=tuple(r.stop for r in ranges),
            step=tuple(r.step for r in ranges),
        )
        if not any(isinstance(k, Integral) for k in keys):
            return part
        lengths = [n for n, k in zip(lengths, keys, strict=True) if isinstance(k, slice)]
        return part.reshape((*lengths, *shape[len(keys) :]) or (1,))

    def __format__(self, form):
        return format(self.asscalar(), form) if form else str(self)

    def detach(self):
        """Return the same values without gradient."""
        return OPS["_detach"](self)

    # In MXNet, `inplace` results share memory; here, they never do.
    def expand_dims(self, axis, inplace=False):
        """Insert an axis of length 1; the result is a copy."""
        return OPS["expand_dims"](self, axis=axis)

    def squeeze(self, axis=None, inplace=False):
        """Remove axes of length 1; the result is a copy."""
        return OPS["squeeze"](self, axis=axis)

    def flatten(self, inplace=False):
        """Flatten (N, a, b, ...) to (N, a * b * ...); the result is a copy."""
        return OPS["Flatten"](self)

    @partial(naming, "split_v2")
    def split_v2(self, indices_or_sections, axis=0, squeeze_axis=False):
        """Split into equal parts (an integer), or at indices (a tuple)."""
        return split_v2(self, indices_or_sections, axis, squeeze_axis)

    @property
    def T(self):
        """The array with reversed axes."""
        return OPS["transpose"](self)


def _no_sign(sign, cure):
    def method(self, *_):
        raise AttrError(f"{sign}: arrays know no such sign here; write {cure}")

    return method


# Python operators that MXNet's nd arrays lack; mx.np arrays have more.
for _names, _sign, _cure in (
    ("matmul rmatmul", "x @ y", "dot(x, y), or batch_dot(x, y) for batches"),
    ("floordiv rfloordiv", "x // y", "floor(x / y)"),
    ("divmod rdivmod", "divmod(x, y)", "floor(x / y) and x % y"),
    ("and rand", "x & y", "logical_and(x, y)"),
    ("or ror", "x | y", "logical_or(x, y)"),
    ("xor rxor", "x ^ y", "logical_xor(x, y)"),
    ("invert", "~x", "logical_not(x)"),
    ("lshift rlshift", "x << y", "x * 2 ** y"),
    ("rshift rrshift", "x >> y", "floor(x / 2 ** y)"),
    ("round", "round(x)", "x.round()"),
    ("pos", "+x", "x"),
):
    for _name in _names.split():
        setattr(Value, f"__{_name}__", _no_sign(_sign, _cure))


def _method(name, op):
    def method(self, *args, **kwargs):
        try:
            return op.applied((self, *args), kwargs)
        except HybridError as error:
            said_by(name, error)
            if kwargs.get("out", self) is None:  # np.mean(x) calls x.mean like this
                error.args = (f"np.{name}: NumPy's function got our array; write x.{name}()",)
            raise

    method.__name__ = name
    method.__doc__ = op.doc
    method.__wrapped__ = Called(op, method=True)
    return method


for _name, _op in OPS.items():
    if _op.inputs and _name.islower() and not _name.startswith("_") and not hasattr(Value, _name):
        setattr(Value, _name, _method(_name, _op))


def _extreme(name, of_numbers):
    """Return a binary function, such as `maximum`, that accepts scalars."""
    apply, apply_reversed = _infix(name, name, f"_{name}", f"_{name}_scalar")

    def call(lhs, rhs):
        if isinstance(lhs, Value):
            return apply(lhs, rhs)
        return apply_reversed(rhs, lhs) if isinstance(rhs, Value) else of_numbers(lhs, rhs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = OPS[f"_{name}"].doc
    return call


# Broadcasting binary functions: `add(a, b)` for `a + b`.
FUNCTIONS = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "true_divide": operator.truediv,
    "modulo": operator.mod,
    "power": operator.pow,
    "pow": operator.pow,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "lesser": operator.lt,
    "lesser_equal": operator.le,
    "maximum": _extreme("maximum", max),
    "minimum": _extreme("minimum", min),
    "hypot": _extreme("hypot", math.hypot),
    "logical_and": _extreme("logical_and", lambda a, b: float(bool(a and b))),
    "logical_or": _extreme("logical_or", lambda a, b: float(bool(a or b))),
    "logical_xor": _extreme("logical_xor", lambda a, b: float(bool(a) != bool(b))),
    "split_v2": split_v2,
}
FUNCTIONS = {name: naming(name, function) for name, function in FUNCTIONS.items()}


class Unknown:
    """A lazily computed error message for a missing name, because `hasattr` discards it."""

    def __init__(self, name, module, names=OPS):
        self.name, self.module, self.names = name, module, names
        from minihybrid.core.tracing import is_tracing

        self.message = hooks.instead(module, name) if is_tracing() else None

    def __str__(self):
        from difflib import get_close_matches  # slow to import, needed only for errors

        module, public = self.module, [n for n in self.names if not n.startswith("_")]
        if message := self.message or hooks.instead(module, self.name):
            return message
        near = [f" (did you mean '{n}'?)" for n in get_close_matches(self.name, public, 1, 0.8)]
        return f"{module} has no function '{self.name}'{''.join(near)}; dir({module}) lists all"

    __repr__ = __str__


def namespace(name, base, module, title=None):
    """Return `nd.name` or `sym.name`: an operator's function, or one of a few other names.

    title:   start of its error messages, if not its name.
    Raises:  AttributeError naming the module, if nothing has the name.
    """
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    if name in FACES.get(module, ()):  # takes precedence over an operator: `sym.full` has `val`
        return FACES[module][name]
    op = OPS.get(name)
    if op is None or name.startswith("__"):
        raise AttributeError(Unknown(name, module))
    return reading(op, name, base, title or name)


def face(names, base, module):
    """Return the `__getattr__` of `nd` or `sym`, whose `globals()` are `names`.

    It also renames the module, so that it prints under its public name, as F does.
    """
    public = ModuleSpec(PRINTED[module], names["__loader__"], origin=names["__file__"])
    public.has_location, names["__spec__"] = True, public

    def __getattr__(name):
        value = namespace(name, base, module)
        if is_own(name) and not hasattr(builtins, name):  # don't shadow builtins such as `slice`
            names[name] = value  # later lookups skip __getattr__
        return value

    return __getattr__


def public_names(names, *more):
    """Return the names for `dir()` of a namespace: its own and all operators."""
    operators = (name for name in (*OPS, *more, *FUNCTIONS) if not name.startswith("_"))
    return own_names(names, "contrib", "linalg", "random", *operators)()


def writable(owner, out):
    """Check an `out` argument.

    Raises:  AttrError unless it is an array.
    """
    if not isinstance(out, Value):
        raise AttrError(
            f"{owner}: out= must be an NDArray, found {described(out)}; make one with nd.array(...)"
        )
    return out


def _broadcasts(result, out):
    """Return whether NumPy would broadcast a result into `out`."""
    try:
        return out.is_np and np.broadcast_shapes(result.shape, out.shape) == out.shape
    except ValueError:
        return False


def put(owner, result, out):
    """Return a result, stored in the array `out` if one is given.

    Raises:  ShapeError if `out` has another shape; np broadcasts to it.
    """
    if out is None:
        return result
    results = result if isinstance(result, (list, tuple)) else (result,)
    is_array = not (writable(owner, out).level or results[0].level)
    if (
        is_array
        and [r.shape for r in results] != [out.shape]
        and (results[1:] or not _broadcasts(*results, out))
    ):
        raise ShapeError(
            f"{owner}: out= has shape {out.shape}, but the result has shape "
            f"{' and '.join(str(r.shape) for r in results)}"
        )
    return out.copy_from(results[0])


@cache
def reading(op, name, base, title):
    """Return an operator's function; `base` interprets it if it has no inputs.

    title:   start of its error messages.
    """

    def call(*args, name=None, out=None, ctx=None, attr=None, **kwargs):
        if attr or kwargs and not KNOWN.isdisjoint(kwargs):
            node_attrs = {k: kwargs.pop(k) for k in KNOWN & kwargs.keys()} | (attr or {})
            with AttrScope(**{k: str(v) for k, v in node_attrs.items()}):
                return call(*args, name=name, out=out, ctx=ctx, **kwargs)
        try:
            if ctx is not None:
                with check_context(ctx):
                    return call(*args, name=name, out=out, **kwargs)
            result = op.applied(args, kwargs, name, base)
            return result if out is None else put(title, result, out)
        except HybridError as error:
            said_by(title, error)
            raise

    call.__name__ = call.__qualname__ = name
    attrs = ", ".join(f"{k}=..." for k in op.attrs)
    call.__doc__ = f"{op.doc}\n\nArguments: {attrs or 'none'}."
    call.__wrapped__ = Called(op, symbolic=base.level > 0)
    return call


class Part:
    """A sub-namespace: `nd.linalg.det` is the operator `_linalg_det`."""

    def __init__(self, prefix, base, module):
        self._prefix, self._base, self._module = prefix, base, module

    def __getattr__(self, name):
        if name in FACES.get(self._module, ()):
            return FACES[self._module][name]
        title = f"{self._module.rpartition('.')[2]}.{name}" if len(self._prefix) > 1 else name
        try:
            return namespace(self._prefix + name, self._base, self._module, title)
        except AttributeError:
            raise AttributeError(Unknown(name, self._module, dir(self))) from None

    def __dir__(self):
        names = {key.removeprefix(self._prefix) for key in OPS if key.startswith(self._prefix)}
        return sorted({*names, *FACES.get(self._module, ())})
