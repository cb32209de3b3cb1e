"""Chapter 12. Operator definitions, and the graph node that applies one.

Defines: `Op` (the definition of one operator), `Node` (one application of an operator),
         `Spec` (shape and dtype), the error classes.

An operator knows no value type. Applying it dispatches on its arguments: an array
computes the result, a symbol records the application in a graph.

Operators are pure. One with state, such as BatchNorm's running mean, returns the new
values as extra outputs, and the caller stores them.
Not supported: sparse storage.
"""

import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from types import TracebackType
from typing import NamedTuple
from weakref import ref

import numpy as np

from minihybrid.core.pytree import EXACT, SLOT, reader

MAX_ELEMENTS = 2**60  # elements of an array, so that its size in bytes fits 64 bits
DEEPEST = 32  # axes of an array


def legible(text, most=200):
    r"""Return untrusted text in a form that is safe to print on one line.

    Names in files can contain anything: cursor codes, bidirectional marks and newlines
    are escaped, and long text is shortened in the middle.

    >>> legible("a\x1b[2J\nb\u202ec"), legible("x" * 1000, 9)
    ('a\\x1b[2J\\nb\\u202ec', 'xxx...xxx')
    """
    if len(text) > most:
        half = (most - 3) // 2
        text = f"{text[:half]}...{text[-half:]}"
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class HybridError(RuntimeError):
    """Base class of every error that minihybrid raises on purpose; prints as one line."""

    def __init__(self, *args):
        super().__init__(*(legible(a, 2000) if isinstance(a, str) else a for a in args))

    def __str__(self):  # one line, even if the message contains an array
        return re.sub(r"\s*\n\s*", " ", super().__str__())

    def _render_traceback_(self):
        """Return the traceback that IPython prints: user frames only, none of the engine's."""
        filtered, calls = None, []
        while call := calls[-1].tb_next if calls else self.__traceback__:
            calls.append(call)
        for call in reversed(calls):
            if not re.match(r"minihybrid(_course)?\.", call.tb_frame.f_globals.get("__name__", "")):
                filtered = TracebackType(filtered, call.tb_frame, call.tb_lasti, call.tb_lineno)
        shell = sys.modules["IPython"].get_ipython()
        return shell.InteractiveTB.structured_traceback(type(self), self, filtered)


class ShapeError(HybridError, ValueError):
    """An operator got incompatible shapes."""


class DTypeError(HybridError, TypeError):
    """An operator got incompatible dtypes."""


class AttrError(HybridError, TypeError):
    """An unknown, missing or malformed operator argument."""


class NumberError(HybridError, OverflowError, ValueError):
    """A number that a dtype cannot hold."""


class PlaceError(ShapeError, IndexError):
    """An index is out of range."""


class Spec(NamedTuple):
    """An abstract value: what is known of a value's shape and dtype before it is computed.

    `None` means unknown; so does -1 inside a shape.

    >>> Spec((2, 3), np.dtype("float32")).nbytes
    24
    """

    shape: tuple | None
    dtype: np.dtype | None

    @property
    def size(self):
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self):
        """The size of the elements in bytes."""
        return self.size * self.dtype.itemsize

    @property
    def known(self):
        """Whether both the shape and the dtype are fully known."""
        return self.shape is not None and self.dtype is not None and -1 not in self.shape

    def possible(self, owner="shape"):
        """Return self if an array can have this shape, as far as it is known.

        Raises:  ShapeError if the array could not be addressed.
        """
        shape = self.shape or ()
        if math.prod(n for n in shape if n > 0) > MAX_ELEMENTS or len(shape) > DEEPEST:
            raise ShapeError(
                f"{owner}: an array of shape {_short(shape)} is too large; at most {MAX_ELEMENTS} "
                f"elements and {DEEPEST} axes are possible"
            )
        return self

    def __str__(self):
        lengths = [*map(str, self.shape or ())]
        by = " x " if any("len_" in n for n in lengths) else "x"  # symbolic lengths need spaces
        shape = "?" if self.shape is None else by.join(lengths) or "()"
        return f"{self.dtype or '?'}[{shape}]"


UNKNOWN = Spec(None, None)
UNEXPECTED = (ArithmeticError, LookupError, MemoryError, TypeError, ValueError)
REQUIRED = object()  # the default of a required attribute


# -- attribute kinds: each normalizes a value, or raises ValueError --------------------
# Attribute text is a number, a keyword or a tuple of them, nested at most twice. It is
# never given to Python's parser, which a hundred thousand brackets would exhaust.
_ATOM = (
    r"(?:None|True|False|true|false|nan|[+-]?(?:inf|(?:0|[1-9][0-9]{0,39})L?"
    r"|(?:[0-9]{1,40}\.[0-9]{0,40}|\.[0-9]{1,40}|[0-9]{1,40}(?=[eE]))"
    r"(?:[eE][+-]?[0-9]{1,3})?))"
)


def _tuple_of(item):
    inside = rf" *(?:{item} *, *)*(?:{item} *)?"
    return rf"(?:\({inside}\)|\[{inside}\])"


_ITEM = rf"(?:{_ATOM}|{_tuple_of(_ATOM)})"
_LITERAL = rf"{_ITEM}|{_tuple_of(_ITEM)}"  # compiled at first use
_ITEMS = r"\([^()]*\)|\[[^\[\]]*\]|[^ ,]+"  # of text that matches _LITERAL
_WORDS = {"None": None, "True": True, "False": False, "true": True, "false": False}
LONGEST = 2**16  # characters of an attribute's text
MAX_OUTPUTS = 2**12  # outputs of one node


def parsed(value):
    """Return the value that an attribute's text denotes; other values are unchanged.

    Raises:  ValueError unless the text is a number, a keyword, or a tuple of these.

    >>> parsed("(2, 3)"), parsed("1e-05"), parsed("nan")
    ((2, 3), 1e-05, nan)
    """
    if not isinstance(value, str):
        return value
    text = value.strip(" ")
    if len(text) > LONGEST or not re.fullmatch(_LITERAL, text):
        raise ValueError
    return _value(text)


def _meant(text):
    """Return the value of an attribute's text in a file; a name such as `relu` stays text."""
    try:
        return parsed(text)
    except ValueError:
        return text


def _value(text):
    if text[0] in "([":
        return tuple(map(_value, re.findall(_ITEMS, text[1:-1])))
    if text in _WORDS:
        return _WORDS[text]
    if text[-1] not in "nf" and not set(text) & set(".eE"):
        return int(text.rstrip("L"))  # MXNet wrote 2L under Python 2
    value = float(text)
    if abs(value) == np.inf and text[-1] != "f":
        raise ValueError  # 1e400
    return value


def integer(value):
    """A whole number of 64 bits."""
    if isinstance(value, (bool, np.bool_)) or int(value) != value:
        raise ValueError
    if not -(2**63) <= value < 2**63:
        raise ValueError
    return value if isinstance(value, int) else int(value)


def number(value):
    """A real number; `inf` and `nan` are allowed."""
    if isinstance(value, str) or hasattr(value, "level"):
        raise ValueError
    return getattr(value, "ratio", value if hasattr(value, "symbols") else None) or float(value)


def _such(read, fits, words):
    """Return the kind `read` restricted to values for which `fits` is true."""

    def parse(value):
        value = read(value)
        if not fits(value):
            raise ValueError
        return value

    parse.__doc__ = words
    return parse


finite = _such(number, math.isfinite, "A number that is neither infinite nor nan.")
positive = _such(finite, lambda x: x > 0, "A number above 0.")
not_negative = _such(finite, lambda x: x >= 0, "A number of at least 0.")
share = _such(not_negative, lambda x: x <= 1, "A number from 0 to 1.")
rate = _such(share, lambda x: x != 1, "A probability in [0, 1).")
chance = _such(share, lambda x: x != 0, "A probability in (0, 1].")
length = _such(integer, lambda n: n >= 0, "A whole number of at least 0.")
count = _such(integer, lambda n: n >= 1, "A whole number of at least 1.")


def boolean(value):
    """`True` or `False`; files also write 1 and 0."""
    if value not in (0, 1):
        raise ValueError
    return bool(value)


def items(value):
    """The values in a tuple, a list or an array; a single value in a tuple."""
    if isinstance(value, (str, bytes, set, dict)):
        raise ValueError  # not a sequence of numbers
    return value if np.iterable(value) else (value,)


def shape(value):
    """A whole number or a tuple of whole numbers."""
    return tuple([integer(v) for v in items(value)])


def axes(value):
    """A whole number, a tuple of whole numbers, or `None` for all axes."""
    if value is None:
        return None
    return shape(value) or None if np.iterable(value) else integer(value)


def bounds(value):
    """A tuple of whole numbers in which `None` means "from the edge"."""
    return tuple(None if v is None else integer(v) for v in items(value))


def dtype(value):
    """A NumPy element type of numbers, or its name."""
    if value is None or isinstance(value, str) and value == "None":
        return None  # not `==`: np.dtype("float64") == None is true
    if isinstance(value, str) and not re.fullmatch(r"[<=|]?[A-Za-z]\w{0,15}", value):
        raise ValueError  # NumPy would parse a structured dtype
    if isinstance(value, str) and value == "bfloat16":
        from minihybrid.ops.bfloat16 import bfloat16

        return bfloat16()
    np_dtype = np.dtype(value)
    if np_dtype.name == "bfloat16":
        return np_dtype
    if np_dtype.kind not in "biuf" or np_dtype.itemsize > 8 or not np_dtype.isnative:
        raise ValueError  # objects, strings, records: no operator takes these
    return np_dtype


def optional(kind):
    """The same kind, with `None` allowed."""

    def parse(value):
        is_none = value is None or isinstance(value, str) and value == "None"
        return None if is_none else kind(value)  # `==` as in `dtype`

    parse.__doc__ = f"{_words(kind).rstrip('.')}, or `None`."
    return parse


def choice(*names):
    """One of the given names."""

    def parse(value):
        if value not in names:
            raise ValueError
        return str(value)

    parse.__doc__ = f"One of {', '.join(names)}."
    return parse


def unknown_argument(name, unknown, accepted):
    """Return the error message for a call with unknown arguments.

    >>> unknown_argument("Conv2D", ["stride"], ["channels", "strides"])
    "Conv2D: no argument is called 'stride' (did you mean 'strides'?); it takes \
channels, strides"
    """
    from difflib import get_close_matches  # slow to import, needed only for errors

    initials = {"".join(part[:1] for part in k.split("_")): k for k in accepted}
    near = [
        m
        for word in map(str, unknown)
        for m in (
            [initials[word]]
            if len(word) > 1 and word in initials  # lr
            else get_close_matches(word, accepted, 1)
        )
    ]
    meant = f" (did you mean {', '.join(map(repr, near))}?)" if near else ""
    return (
        f"{name}: no argument is called {', '.join(map(repr, unknown))}{meant}; it "
        f"takes {', '.join(accepted) or 'none'}"
    )


# -- the operator definition -----------------------------------------------------------
class Checked(dict):
    """The dispatch cache of an operator: signatures of valid calls; cleared when it is full."""

    def put(self, signature, path=None):
        """Record a valid call, and the function that equal calls may run without checks."""
        if len(self) >= 1_000:
            self.clear()
        self[signature] = path


ndarray = np.ndarray  # one attribute lookup less
CONSTANT = (float, tuple, np.generic, np.dtype)  # beside EXACT: immutable types


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Op:
    """The definition of one operator: everything the engine knows about it.

    >>> from minihybrid.ops import OPS
    >>> OPS["relu"].expr
    'T(0) if {a} <= 0 else {a}'
    """

    name: str  # the name in files
    inputs: tuple | Callable = ("data",)  # argument names, or attrs -> argument names
    infer: Callable  # (specs, **attrs) -> completed specs, output specs
    doc: str
    eager: Callable | None = None  # NumPy arrays -> NumPy array(s)
    settled: Callable | None = None  # (*input specs, **attrs) -> `eager` specialized
    # for these specs, or `None`
    grad: Callable | None = None  # (g, out, *inputs, **attrs) -> gradients of the inputs,
    # each a value or a function that computes it
    attrs: dict = field(default_factory=dict)  # name -> (kind, default)
    expr: str | Callable | None = None  # elementwise: the scalar expression
    int_expr: str | Callable | None = None  # the same for integers, where it differs;
    # a function also takes the dtype
    mxnet_name: tuple | None = None  # (name, attributes) in files, if MXNet names
    # this operator differently
    reduce: tuple | None = None  # a reduction, described by `ops.reduce.Steps`
    strides: Callable | None = None  # (shape, **attrs) -> offset and strides of the loads
    cpu: Callable | None = None  # loops, where the three above do not suffice:
    # a function (`ops.loops`), or a generator of its source
    scratch: Callable | None = None  # (input specs, output specs, **attrs) -> elements
    # of scratch memory that these loops need, as `work`
    stores: bool | Callable = False  # or attrs -> bool: whether these loops store each
    # element of the only output exactly once, by `k.store`,
    # so that an elementwise epilogue can be fused there
    gpu: Callable | None = None  # a GPU kernel, where the loops of `cpu` are unsuitable
    gpu_scratch: Callable | None = None  # its scratch memory, as in `scratch`
    binary_form: tuple | None = None  # for an operator with a `scalar`: the name of the one with
    # an array in its place, and whether the array comes first
    numpy: str | Callable | None = None  # a NumPy statement over {a}, {b} and {out}
    expand: Callable | None = None  # (specs, *inputs, **attrs) -> simpler operators
    lower: Callable | None = None  # the same, into operators that fuse; used only for
    # compiled loops, beside `eager` and `grad`
    lower_if: Callable | None = None  # (operator of the first input, users) -> whether
    # to `lower`; without it, always
    contiguous_concat: Callable | None = None  # (input specs, **attrs) -> whether the inputs are
    # contiguous and consecutive in the output
    adds_rows: Callable | None = None  # attrs -> whether the output is a sum over the first
    # axis of all inputs, so that partial sums of slices add up to it
    view: bool = False  # the output aliases the input, under a new shape
    grad_barrier: bool = False  # ignores the incoming gradient, so common-subexpression
    # elimination must not merge two such nodes
    padded_slice: Callable | None = None  # (output shape, **attrs) -> (axis, begin, end, operator,
    # attrs): zero outside of begin:end, and the operator that joins such outputs
    is_identity: Callable | None = None  # attrs -> whether the output equals the input
    monotone: bool = False  # in the first operand, rounding included
    peak: Callable | None = None  # max pooling: (preceding node, own attrs) ->
    # (operator, attrs) of both combined, or `None`
    from_nothing: Callable | None = None  # output spec -> (operator, attrs) that produces
    # the same without inputs
    n_outputs: int | Callable = 1  # or attrs -> number
    variadic: bool = False  # takes any number of inputs, all called "data"
    aux: tuple = ()  # inputs that are states: `expand` returns their new
    # values after the outputs, and the caller stores them
    random: bool = False  # draws random numbers: `eager` takes `key`
    modal: bool = False  # differs while training: `expand` takes `training`
    gives_own: bool = False  # `eager` returns fresh, contiguous memory
    anywhere: bool = False  # `eager` takes arrays of any device
    any_dtype: bool = False  # takes bfloat16 as it is, as views and `strides` do; the
    # others compute in float32 and round the results (ops/bfloat16.py)
    checked: Checked = field(default_factory=Checked, init=False)  # per operator,
    # not global, so that it is freed with its net
    readers: dict = field(default_factory=dict, init=False)  # call form -> its `reader`

    def __init__(self, name, infer, doc, **more):
        if more.keys() - (declared := self.__dataclass_fields__.keys()):
            raise AttrError(unknown_argument(name, more.keys() - declared, declared))
        values = {"attrs": {}, "checked": Checked(), "readers": {}} | more
        # Other fields keep the class's default.
        vars(self).update(values, name=name, infer=infer, doc=doc)

    def __repr__(self):
        return f"<Op {self.name}>"

    def __call__(self, *args, name=None, **kwargs):
        """Apply the operator to inputs and attributes."""
        return self.applied(args, kwargs, name)

    def applied(self, args, kwargs, name=None, base=None):
        """Apply the operator: the input of the highest dispatch level interprets it.

        base:    interprets it if there are no inputs.
        """
        values = (*args, *kwargs.values()) if kwargs else args
        form = (len(args), *kwargs) if kwargs else len(args)
        try:  # fast path: an equal call was checked before
            signature, datas = self.readers[form](values, form)
            path = self.checked[signature]
        except (LookupError, TypeError, ValueError, AttributeError):
            path = None
        if path:
            return path(values, datas)
        inputs, attrs = self.bind(args, kwargs)
        present = (v for v in inputs if v is not None)
        above = max(present, key=attrgetter("level"), default=base)  # ties: the first
        if above is None:
            raise AttrError(f"{self.name}: no input was given; pass an array: nd.array(...)")
        result = above.interpret(self, inputs, attrs, name)
        if above.level == 0:
            self._remember(values, form, inputs, above, attrs)
        return result

    def _remember(self, values, form, inputs, above, attrs):
        """Enter a checked call into the dispatch cache; its second occurrence gets a path."""
        slots = [SLOT if hasattr(type(v), "level") else None for v in values]
        plain = [v for v, slot in zip(values, slots, strict=True) if slot is None]
        if not all(type(v) in EXACT or isinstance(v, CONSTANT) for v in plain):
            return
        self.readers[form] = read = reader((tuple, False, *slots), "type({})")[0]
        try:
            signature, datas = read(values, form)
            repeated = signature in self.checked  # one call alone gets no path
        except (TypeError, AttributeError):  # unhashable, or a symbol
            return
        in_order = [*map(id, inputs)] == [*map(id, values[: len(datas)])]
        if datas and in_order and {*map(type, datas)} == {ndarray}:
            self.checked.put(signature, repeated and above.path(self, datas, attrs))

    def dependencies(self, index, inputs):
        """Return the inputs of a node on which its output `index` depends: all of them."""
        return inputs

    def bind(self, args, kwargs):
        """Split a call's arguments into inputs, in order, and attributes with defaults."""
        if self.variadic:
            if len(args) == 1 and isinstance(args[0], (list, tuple)):
                args = tuple(args[0])
            inputs = [v for v in args if hasattr(type(v), "level")]
            if not inputs:
                raise AttrError(f"{self.name}: no input was given; pass an array: nd.array(...)")
            names, rest = (), [v for v in args if not hasattr(type(v), "level")]
            kwargs.pop("num_args", None)
        else:
            names = self.inputs if isinstance(self.inputs, tuple) else self.inputs(None)
            inputs = [*args[: len(names)], *(kwargs.pop(n, None) for n in names[len(args) :])]
            rest = args[len(names) :]
        if len(rest) > len(self.attrs):
            raise AttrError(
                f"{self.name}: takes {len(names) + len(self.attrs)} "
                f"arguments at most, got {len(names) + len(rest)}"
            )
        flags = {f"use_{n}": True for n, v in zip(names, inputs, strict=False) if v is not None}
        flags = {k: v for k, v in flags.items() if self.attrs.get(k, ())[1:] == (None,)}
        attrs = self.normalize(flags | kwargs | dict(zip(self.attrs, rest, strict=False)))
        if used := callable(self.inputs) and self.inputs(attrs):
            inputs = [v for v, n in zip(inputs, names, strict=True) if n in used or v is not None]
            inputs = inputs[: len(used)]
        for i, value in enumerate(inputs):
            if value is not None and not hasattr(type(value), "level"):
                raise AttrError(
                    f"{self.name}: input '{(used or names)[i]}' is {described(value)}, but an "
                    f"NDArray or a Symbol is needed; wrap it in nd.array(...)"
                )
        return inputs, attrs

    def missing(self, inputs, attrs):
        """Return the error for a missing input."""
        name = self.input_names(attrs)[[v is None for v in inputs].index(True)]
        return AttrError(f"{self.name}: the input '{name}' is missing")

    def normalize(self, kwargs):
        """Add defaults to attributes and normalize each value."""
        attrs = {}
        for key, (kind, default) in self.attrs.items():
            value = kwargs.pop(key, default)
            if value is REQUIRED:
                raise AttrError(
                    f"{self.name}: the argument '{key}' is missing; needed: {described_kind(kind)}"
                )
            attrs[key] = value if value is default else checked(self.name, key, value, kind)
        if kwargs:
            accepted = self.attrs if callable(self.inputs) else (*self.inputs, *self.attrs)
            raise AttrError(unknown_argument(self.name, kwargs, accepted))
        if not 1 <= self.count_outputs(attrs) <= MAX_OUTPUTS:
            raise AttrError(
                f"{self.name}: {self.count_outputs(attrs)} outputs were "
                f"asked for; 1 to {MAX_OUTPUTS} are possible"
            )
        return attrs

    def read(self, texts):
        """Return attributes from their texts in a file, such as "(2, 3)", with defaults."""
        return self.normalize({key: _meant(text) for key, text in texts.items()})

    def specs_of(self, ins, attrs):
        """Apply the shape rule: return completed specs of the inputs, and of the outputs.

        Raises:  ShapeError, also where the rule itself fails or an array would be too large.
        """
        if self.widens(ins, attrs):
            from minihybrid.ops.bfloat16 import specs_of

            return specs_of(self, ins, attrs)
        try:
            ins, outs = self.infer([s.possible(self.name) for s in ins], **attrs)
            return list(ins), [s.possible(self.name) for s in outs]
        except HybridError:
            raise
        except (*UNEXPECTED, AttributeError) as error:
            raise self.sentence(ShapeError, ins, attrs, error) from error

    def widens(self, specs, attrs):
        """Whether a dtype is bfloat16, which the operator computes in float32."""
        if self.any_dtype or self.view or self.strides or not specs:
            return False
        dtypes = [s.dtype for s in specs] + [v for v in attrs.values() if isinstance(v, np.dtype)]
        return any(dtype is not None and dtype.kind == "V" for dtype in dtypes)

    def is_made(self, specs, attrs):
        """Whether the operator is decomposed into simpler ones."""
        return self.eager is None or self.widens(specs, attrs)

    def expanded(self, specs, inputs, attrs, training):
        """Return the outputs of this operator's decomposition into simpler operators."""
        if self.widens(specs, attrs):
            from minihybrid.ops.bfloat16 import in_float32

            return in_float32(self, specs, inputs, attrs, training)
        mode = {"training": training} if self.modal else {}
        try:
            return self.expand(specs, *inputs, **attrs, **mode)
        except (HybridError, *UNEXPECTED) as error:
            from minihybrid.ops.errors import said_by_op

            raise said_by_op(self, specs, attrs, error) from None

    def sentence(self, kind, ins, attrs, error):
        """Return an error of `kind` for an exception of Python or NumPy."""
        args = [*map(str, ins), *(f"{k}={_short(v)}" for k, v in attrs.items())]
        if isinstance(error, MemoryError):
            return kind(f"{self.name}: {', '.join(args)} needs more memory than there is")
        return kind(
            f"{self.name}: {', '.join(args)} do not go together "
            f"({type(error).__name__}: {_short(str(error))})"
        )

    def input_names(self, attrs, count=None):
        """Return the names of the inputs for these attributes, in order."""
        if self.variadic:
            return tuple(f"data{i}" for i in range(count))
        return self.inputs if isinstance(self.inputs, tuple) else self.inputs(attrs)

    def states(self, attrs):
        """Return the positions of the inputs that are states."""
        names = self.input_names(attrs) if self.aux else ()
        return [names.index(name) for name in self.aux if name in names]

    def count_outputs(self, attrs):
        """Return the number of outputs for these attributes."""
        return self.n_outputs if isinstance(self.n_outputs, int) else self.n_outputs(attrs)

    def may_be_followed(self, attrs):
        """Return whether its loops accept a fused epilogue."""
        return self.stores(**attrs) if callable(self.stores) else self.stores

    def scalar(self, attrs, dtype=None):
        """Return the scalar expression for these attributes, or `None`.

        dtype:   of the output; integers may have a separate expression.
        """
        if self.is_apart(dtype):
            return self.int_expr(dtype, **attrs) if callable(self.int_expr) else self.int_expr
        return self.expr(**attrs) if callable(self.expr) else self.expr

    def is_apart(self, dtype):
        """Return whether a dtype uses `int_expr`."""
        return self.int_expr is not None and dtype is not None and dtype.kind != "f"


class Node:
    """One application of an operator; a variable is a node whose `op` is `None`.

    Nodes of a symbol graph have `specs`; nodes of the tape have `values`.
    """

    __slots__ = ("op", "name", "inputs", "attrs", "specs", "values", "info", "__weakref__")

    def __init__(self, op, inputs=(), attrs=None, name="", specs=None, values=None, info=None):
        self.op = op
        self.name = name
        self.inputs = inputs  # tuple of (node, output index)
        self.attrs = attrs or {}
        self.specs = specs  # tuple of Spec, one per output; None while unknown
        self.values = values  # tuple of ndarray, on the tape only
        self.info = info  # a variable's user attributes, saved in files

    @property
    def n_outputs(self):
        """The number of outputs."""
        return 1 if self.op is None else self.op.count_outputs(self.attrs)

    def reading(self, inputs):
        """Return this node if it has these inputs, else a copy that has."""
        other = self.op, inputs, self.attrs, self.name, self.specs
        return self if inputs == self.inputs else Node(*other)

    def __repr__(self):
        return f"<Node {self.name or '-'}: {getattr(self.op, 'name', self.op) or 'variable'}>"


class Snapshot:
    """The old values of an array's memory, shared by the tape's entries once it is written.

    memory:  the array itself, of which a place may have a part.
    """

    __slots__ = ("memory", "values", "__weakref__")

    def __init__(self, memory):
        self.memory, self.values = memory, None


class Constant(Node):
    """The tape entry of an array that was not computed on the tape; cheap to create.

    snapshot: shared with the array that owns the memory; filled by a write in `record()`.
    """

    __slots__ = ("snapshot",)
    op, name, inputs, attrs, specs, info = None, "", (), {}, None, None

    def __init__(self, data, array=None):
        self.values, self.snapshot = (data,), None
        if array is not None:
            root = array if array.base is None else array.base[0]
            snapshot = root.snapshot and root.snapshot()
            if not snapshot or snapshot.values is not None:
                snapshot = Snapshot(root.data)
                root.snapshot = ref(snapshot)
            self.snapshot = snapshot


def checked(owner, name, value, kind):
    """Return a setting, normalized by its kind.

    Raises:  AttrError naming the value and the kind.

    >>> checked("Dropout", "rate", 0.5, rate)
    0.5
    """
    try:
        return kind(value)
    except (ValueError, TypeError, KeyError, OverflowError):
        raise AttrError(
            f"{owner}: {name}={_short(value)} does not fit; needed: {described_kind(kind)}"
        ) from None


def _short(value):
    text = " ".join(repr(value).split())  # an array prints on several lines
    return text if len(text) < 60 else text[:57] + "..."


def described(value):
    """Return a value and its type as text for an error message."""
    return f"{_short(value)} ({described_type(value)})"


def described_type(value):
    """Return a value's type with its article.

    >>> described_type([]), described_type(1)
    ('a list', 'an int')
    """
    kind = "class" if isinstance(value, type) else type(value).__name__
    return f"{'an' if re.match('[aeio]|nd', kind, re.I) else 'a'} {kind}"


def unfit(owner, name, value, need):
    """Return the error for an argument, or for the only one if `name` is empty, of a wrong type.

    >>> unfit("Trainer", "params", 3, "a ParameterDict is needed")
    AttrError('Trainer: params=3 (an int), but a ParameterDict is needed')
    """
    given = f"{name}={described(value)}" if name else f"{described(value)} is given"
    return AttrError(f"{owner}: {given}, but {need}")


def _words(kind):
    """Return a kind's description; `python -OO` leaves only its name."""
    return kind.__doc__ or kind.__name__.replace("_", " ").capitalize()


def described_kind(kind):
    """Return a kind's description as part of a sentence."""
    return _words(kind)[0].lower() + _words(kind)[1:].rstrip(".")
