"""Chapter 12. What arrays and symbols have in common: infix signs and methods.

Takes:   the records.
Gives:   `Value`, the parent of NDArray and Symbol; its methods are made of the records,
         so whatever an array can do, a symbol can do.

What is left out: comparison chains such as `a < b < c`, which Python decides by bool().
"""

import builtins
import math
import operator
import re
from functools import cache, partial, wraps
from importlib.machinery import ModuleSpec
from numbers import Integral, Number

from minihybrid.core import hooks
from minihybrid.core.attribute import KNOWN, AttrScope
from minihybrid.core.context import check_context
from minihybrid.core.hooks import FACES, own_names
from minihybrid.core.op import AttrError, HybridError, PlaceError, ShapeError, described
from minihybrid.ops.registry import OPS, is_own
from minihybrid.ops.signatures import Called
from minihybrid.ops.tiling import split_v2

PRINTED = {"nd": "minihybrid.ndarray", "sym": "minihybrid.symbol"}  # as in MXNet
NOTHING = {}  # the attributes of what has none
USUAL = {float, int}  # numbers that are known at once


def said_by(name, error):
    """Let an error begin with the name that the caller wrote, not with that of an operator
    inside."""
    text = str(error.args[0]) if error.args else ""
    head, _, rest = text.partition(": ")
    inner = rest and re.fullmatch(r"[\w.]+|x\W+y?", head)
    text = f"{name}: {rest if inner else text}"
    if name.startswith(("np", "ndarray")):
        text = text.replace("an NDArray", "an np.ndarray").replace("nd.array(", "np.array(")
        text = re.sub(
            r"call it as nd\.\w+ or .*", "pass an array, as np.array(...) makes one", text
        )
    error.args = (text,)


def naming(name, function):
    """The function with errors that begin with the name that the caller wrote."""

    @wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except HybridError as error:
            said_by(name, error)
            raise
        except TypeError:
            from minihybrid.core.call_errors import misfit

            if (message := misfit(name, function, args, kwargs)) is None:
                raise
        raise AttrError(message)

    return call


def _infix(sign, name, elemwise, scalar, rscalar=None):
    """The method of one infix sign; `rscalar` serves `2 - x`."""
    same, stretch = OPS[elemwise], OPS["broadcast_" + name]
    by_scalar, from_scalar = OPS[scalar], OPS[rscalar or scalar]

    def apply(self, other):
        try:
            if not isinstance(other, Value):
                if is_number(other):
                    return by_scalar.applied((self,), {"scalar": other})
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


def is_number(value):
    """Whether a Python or NumPy scalar stands beside an array."""
    return type(value) in USUAL or isinstance(value, Number) or getattr(value, "shape", None) == ()


def absent(self, name):
    """The `__getattr__` of a class: a name that PyTorch has gets a sentence.

    Only names that are missing get here, so the others cost nothing.
    Raises:  AttributeError; a property's own, where it is the property that raised one.
    """
    # Operators look whether an argument has `data`, which symbols lack: no sentence then.
    is_public = name != "data" and not name.startswith("_")
    if is_public and (message := hooks.instead(self, name)):
        raise AttributeError(message)
    return object.__getattribute__(self, name)


class Value:
    """What NDArray and Symbol share; each brings `interpret`, `convert`, `lines_up`."""

    level = 0  # the highest level among an operator's inputs interprets it
    is_np = False  # whether it keeps np's rules
    __array_priority__ = 1000.0  # numpy_array + value asks the value
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
        """The legacy form of this value, which here is itself."""
        return self

    def __neg__(self):
        return OPS["negative"](self)

    def __abs__(self):
        return OPS["abs"](self)

    @partial(naming, "reshape")
    def reshape(self, *shape, **kwargs):
        """The same numbers under another shape: `reshape(2, 3)`, `reshape((2, 3))`."""
        shape = (shape,) if len(shape) > 1 else shape
        return OPS["Reshape"].applied((self, *shape), kwargs)

    def transpose(self, *axes, **kwargs):
        """The axes in another order, reversed unless given."""
        if axes:
            kwargs["axes"] = axes[0] if len(axes) == 1 and axes[0] is not None else axes
        return OPS["transpose"](self, **{k: v for k, v in kwargs.items() if v is not None})

    @partial(naming, "astype")
    def astype(self, dtype, copy=True):
        """The same numbers in a dtype; with copy=False this array, if it has that dtype."""
        if not copy and self.level == 0 and self.data.dtype == dtype:
            return self
        return OPS["Cast"](self, dtype=dtype)

    def copy(self):
        """The same elements in memory of their own."""
        return OPS["_copy"](self)

    def part(self, key, shape):
        """`x[key]` by operators, so that it can be traced and has a gradient.

        Raises:  AttrError for keys other than whole numbers, slices and `...`.
        """
        keys = key if isinstance(key, tuple) else (key,)
        ellipses = [i for i, k in enumerate(keys) if k is Ellipsis]  # `in` would compare
        if ellipses:
            at = ellipses[0]
            keys = keys[:at] + (slice(None),) * (len(shape) - len(keys) + 1) + keys[at + 1 :]
        if any(hasattr(k, "level") for k in keys):
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
        kept = [len(range(*r.indices(n))) for r, n in zip(ranges, shape, strict=False)]
        part = OPS["slice"](
            self,
            begin=tuple(r.start for r in ranges),
            end=tuple(r.stop for r in ranges),
            step=tuple(r.step for r in ranges),
        )
        if not any(isinstance(k, Integral) for k in keys):
            return part
        kept = [n for n, k in zip(kept, keys, strict=True) if isinstance(k, slice)]
        return part.reshape((*kept, *shape[len(keys) :]) or (1,))

    def __format__(self, form):
        return format(self.asscalar(), form) if form else str(self)

    def detach(self):
        """The same numbers, through which no gradient passes."""
        return OPS["_detach"](self)

    # MXNet's arrays can share memory with the result (inplace); here none does.
    def expand_dims(self, axis, inplace=False):
        """One axis more, of length 1; the result has memory of its own."""
        return OPS["expand_dims"](self, axis=axis)

    def squeeze(self, axis=None, inplace=False):
        """Without axes of length 1; the result has memory of its own."""
        return OPS["squeeze"](self, axis=axis)

    def flatten(self, inplace=False):
        """(N, a, b, ...) -> (N, a * b * ...); the result has memory of its own."""
        return OPS["Flatten"](self)

    def split_v2(self, indices_or_sections, axis=0, squeeze_axis=False):
        """Parts of equal length (a number), or between places (a tuple)."""
        return split_v2(self, indices_or_sections, axis, squeeze_axis)

    @property
    def T(self):
        """The axes reversed."""
        return OPS["transpose"](self)


def _no_sign(sign, cure):
    def method(self, *_):
        raise AttrError(f"{sign}: arrays know no such sign here; write {cure}")

    return method


# Signs of Python that MXNet's legacy arrays do not have; those of mx.np know more.
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
):
    for _name in _names.split():
        setattr(Value, f"__{_name}__", _no_sign(_sign, _cure))


def _method(name, op):
    def method(self, *args, **kwargs):
        try:
            return op.applied((self, *args), kwargs)
        except HybridError as error:
            said_by(name, error)
            raise

    method.__name__ = name
    method.__doc__ = op.doc
    method.__wrapped__ = Called(op, method=True)
    return method


for _name, _op in OPS.items():
    if _op.inputs and _name.islower() and not _name.startswith("_") and not hasattr(Value, _name):
        setattr(Value, _name, _method(_name, _op))


def _extreme(name, of_numbers):
    """A function of two values, such as `maximum`, where either may be a number."""
    apply, apply_reversed = _infix(name, name, f"_{name}", f"_{name}_scalar")

    def call(lhs, rhs):
        if isinstance(lhs, Value):
            return apply(lhs, rhs)
        return apply_reversed(rhs, lhs) if isinstance(rhs, Value) else of_numbers(lhs, rhs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = OPS[f"_{name}"].doc
    return call


# Functions of two values that broadcast, for those who prefer `add(a, b)` to `a + b`.
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
    """The sentence that a namespace lacks a name, made when it is read: `hasattr` only asks."""

    def __init__(self, name, module, names=OPS):
        self.name, self.module, self.names = name, module, names

    def __str__(self):
        from difflib import get_close_matches  # only who errs waits for it

        module, public = self.module, [n for n in self.names if not n.startswith("_")]
        if message := hooks.instead(module, self.name):
            return message
        near = [f" (did you mean '{n}'?)" for n in get_close_matches(self.name, public, 1, 0.8)]
        return f"{module} has no function '{self.name}'{''.join(near)}; dir({module}) lists all"

    __repr__ = __str__


def namespace(name, base, module, title=None):
    """What `nd.name` or `sym.name` is: the operator, read by `base`, with few others.

    title:   what its errors begin with, if not with its name.
    Raises:  AttributeError naming the module, if nothing has the name.
    """
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    if name in FACES.get(module, ()):  # before an operator: `sym.full` has `val`
        return FACES[module][name]
    op = OPS.get(name)
    if op is None or name.startswith("__"):
        raise AttributeError(Unknown(name, module))
    return reading(op, name, base, title or name)


def face(names, base, module):
    """The `__getattr__` of `nd` or `sym`, whose `globals()` are `names`.

    From here on the module prints as the one that programs know it by: so does F.
    """
    public = ModuleSpec(PRINTED[module], names["__loader__"], origin=names["__file__"])
    public.has_location, names["__spec__"] = True, public

    def __getattr__(name):
        value = namespace(name, base, module)
        if is_own(name) and not hasattr(builtins, name):  # the module needs its own `slice`
            names[name] = value  # later look-ups skip __getattr__
        return value

    return __getattr__


def public_names(names, *more):
    """What `dir()` of a namespace shows: its own names, and all operators of one."""
    operators = (name for name in (*OPS, *more, *FUNCTIONS) if not name.startswith("_"))
    return own_names(names, "contrib", "linalg", "random", *operators)


def writable(owner, out):
    """The array that a result goes to.

    Raises:  AttrError for what is none.
    """
    if not hasattr(out, "copy_from"):
        raise AttrError(
            f"{owner}: out= must be an NDArray, found {described(out)}; make one with nd.array(...)"
        )
    return out


def put(owner, result, out):
    """A result, or the array `out` with its numbers, if one is given."""
    return result if out is None else writable(owner, out).copy_from(result)


@cache
def reading(op, name, base, title):
    """The operator as a function, which `base` reads where no input does.

    title:   what its errors begin with.
    """

    def call(*args, name=None, out=None, ctx=None, attr=None, **kwargs):
        if attr or kwargs and not KNOWN.isdisjoint(kwargs):
            own = {k: kwargs.pop(k) for k in KNOWN & kwargs.keys()} | (attr or {})
            with AttrScope(**{k: str(v) for k, v in own.items()}):
                return call(*args, name=name, out=out, ctx=ctx, **kwargs)
        if ctx is not None:
            with check_context(ctx):
                return call(*args, name=name, out=out, **kwargs)
        try:
            result = op.applied(args, kwargs, name, base)
        except HybridError as error:
            said_by(title, error)
            raise
        return result if out is None else put(title, result, out)

    call.__name__ = call.__qualname__ = name
    attrs = ", ".join(f"{k}=..." for k in op.attrs)
    call.__doc__ = f"{op.doc}\n\nArguments: {attrs or 'none'}."
    call.__wrapped__ = Called(op, symbolic=base.level > 0)
    return call


class Part:
    """A part of a namespace: `nd.linalg.det` is the operator `_linalg_det`."""

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
