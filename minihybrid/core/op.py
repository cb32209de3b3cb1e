"""Chapter 12. One record per operator, and the node that says it was applied.

Takes:   nothing; this is the first module.
Gives:   `Op` (all that is known of one operator), `Node` (one application of an
         operator), `Spec` (shape and dtype), the errors.

An operator knows no value type. Applying it asks the arguments who reads it: an array
computes, a symbol writes the application down.

An operator never writes: one with states, such as BatchNorm's running mean, gives their
new values, and who applied it puts them into place.
What is left out: sparse storage.
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

LARGEST = 2**60  # elements of an array: its bytes still have a number of 64 bits
DEEPEST = 32  # its axes


def legible(text, most=200):
    r"""A text from anywhere, as it may stand in a line on somebody's screen.

    Names in files are anything: here codes that move the cursor, signs that turn the
    order of letters round, and new lines are written out, and a long text is cut.

    >>> legible("a\x1b[2J\nb\u202ec"), legible("x" * 1000, 9)
    ('a\\x1b[2J\\nb\\u202ec', 'xxx...xxx')
    """
    if len(text) > most:
        half = (most - 3) // 2
        text = f"{text[:half]}...{text[-half:]}"
    return (
        text
        if text.isprintable()
        else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    )


class HybridError(RuntimeError):
    """The parent of every error that minihybrid raises on purpose: one line."""

    def __init__(self, *args):
        super().__init__(*(legible(a, 2000) if isinstance(a, str) else a for a in args))

    def __str__(self):  # a sentence is one line, also with an array's text in it
        return re.sub(r"\s*\n\s*", " ", super().__str__())

    def _render_traceback_(self):
        """What IPython shows of it: the lines of those who use the engine, not the engine's."""
        own, calls = None, []
        while call := calls[-1].tb_next if calls else self.__traceback__:
            calls.append(call)
        for call in reversed(calls):
            if not call.tb_frame.f_globals.get("__name__", "").startswith("minihybrid."):
                own = TracebackType(own, call.tb_frame, call.tb_lasti, call.tb_lineno)
        shell = sys.modules["IPython"].get_ipython()
        return shell.InteractiveTB.structured_traceback(type(self), self, own)


class ShapeError(HybridError, ValueError):
    """Shapes that an operator cannot combine."""


class DTypeError(HybridError, TypeError):
    """Element types that an operator cannot combine."""


class AttrError(HybridError, TypeError):
    """An unknown, missing or malformed operator argument."""


class NumberError(HybridError, OverflowError, ValueError):
    """A number that a dtype cannot hold."""


class PlaceError(ShapeError, IndexError):
    """An index outside of an array."""


class Spec(NamedTuple):
    """What is known of a value before it exists: its shape and its dtype.

    `None` stands for unknown; inside a shape, -1 does.

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
        """The number of bytes that the elements take."""
        return self.size * self.dtype.itemsize

    @property
    def known(self):
        """Whether both the shape and the dtype are fully known."""
        return self.shape is not None and self.dtype is not None and -1 not in self.shape

    def possible(self, owner="shape"):
        """Itself, if an array can have this shape, as far as it is known.

        Raises:  ShapeError if no memory holds it.
        """
        shape = self.shape or ()
        if math.prod(n for n in shape if n > 0) > LARGEST or len(shape) > DEEPEST:
            raise ShapeError(
                f"{owner}: an array of shape {_short(shape)} is too large; at most {LARGEST} "
                f"elements and {DEEPEST} axes are possible"
            )
        return self

    def __str__(self):
        lengths = [*map(str, self.shape or ())]
        by = " x " if any("len_" in n for n in lengths) else "x"  # symbols need room
        shape = "?" if self.shape is None else by.join(lengths) or "()"
        return f"{self.dtype or '?'}[{shape}]"


UNKNOWN = Spec(None, None)
UNEXPECTED = (ArithmeticError, LookupError, MemoryError, TypeError, ValueError)
REQUIRED = object()  # the default of an attribute that must be given


# -- attribute kinds: each brings a value into one form, or raises ValueError ----------
# A text is a number, a word, or a tuple of them, at most two deep. No parser of Python
# sees it: a hundred thousand brackets would exhaust one.
_ATOM = (
    r"(?:None|True|False|true|false|nan|[+-]?(?:inf|(?:0|[1-9][0-9]{0,39})L?"
    r"|(?:[0-9]{1,40}\.[0-9]{0,40}|\.[0-9]{1,40}|[0-9]{1,40}(?=[eE]))"
    r"(?:[eE][+-]?[0-9]{1,3})?))"
)


def _tuple_of(item):
    inside = rf" *(?:{item} *, *)*(?:{item} *)?"
    return rf"(?:\({inside}\)|\[{inside}\])"


_ITEM = rf"(?:{_ATOM}|{_tuple_of(_ATOM)})"
_LITERAL = rf"{_ITEM}|{_tuple_of(_ITEM)}"  # re compiles it when a text is first read
_ITEMS = r"\([^()]*\)|\[[^\[\]]*\]|[^ ,]+"  # of a text that fits
_WORDS = {"None": None, "True": True, "False": False, "true": True, "false": False}
LONGEST = 2**16  # characters of an attribute's text
MOST = 2**12  # outputs of one node


def parsed(value):
    """The value that an attribute's text stands for; others are left as they are.

    Raises:  ValueError for a text that is no number, word, or tuple of these.

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
    """What an attribute's text in a file stands for; a name such as `relu` is itself."""
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
        return int(text.rstrip("L"))  # 2L: MXNet's, from Python 2
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
    """A reader of values that must also fit."""

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
    if isinstance(value, str):
        raise ValueError  # its letters are no values
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
        return None  # `==` would not do: np.dtype("float64") == None is true
    if isinstance(value, str) and not re.fullmatch(r"[<=|]?[A-Za-z]\w{0,15}", value):
        raise ValueError  # NumPy would parse a list of types, or Python
    np_dtype = np.dtype(value)
    if np_dtype.kind not in "biuf" or np_dtype.itemsize > 8 or not np_dtype.isnative:
        raise ValueError  # an array of objects, texts or records is not for operators
    return np_dtype


def optional(kind):
    """The same kind, with `None` allowed."""

    def parse(value):
        return None if value in (None, "None") else kind(value)

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


def unknown_argument(name, given, known):
    """The sentence that a call has arguments which nobody knows.

    >>> unknown_argument("Conv2D", ["stride"], ["channels", "strides"])
    "Conv2D: no argument is called 'stride' (did you mean 'strides'?); it takes \
channels, strides"
    """
    from difflib import get_close_matches  # only who errs waits for it

    initials = {"".join(part[:1] for part in k.split("_")): k for k in known}
    near = [
        m
        for word in map(str, given)
        for m in (
            [initials[word]]
            if len(word) > 1 and word in initials  # lr
            else get_close_matches(word, known, 1)
        )
    ]
    meant = f" (did you mean {', '.join(map(repr, near))}?)" if near else ""
    return (
        f"{name}: no argument is called {', '.join(map(repr, given))}{meant}; it "
        f"takes {', '.join(known) or 'none'}"
    )


# -- the record ------------------------------------------------------------------------
class Checked(dict):
    """Signatures of calls that were found to fit; starts anew when it has grown large."""

    def put(self, signature, path=None):
        """Remember a call, and what calls like it may run at once, without a check."""
        if len(self) >= 1_000:
            self.clear()
        self[signature] = path


ndarray = np.ndarray  # found faster so
CONSTANT = (float, tuple, np.generic, np.dtype)  # beside EXACT: what cannot change its value


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Op:
    """All that is known of one operator; each field has its readers.

    >>> from minihybrid.ops import OPS
    >>> OPS["relu"].expr
    'T(0) if {a} <= 0 else {a}'
    """

    name: str  # the name in files
    inputs: tuple | Callable  # argument names, or attrs -> argument names
    infer: Callable  # (specs, **attrs) -> completed specs, output specs
    doc: str
    eager: Callable | None = None  # NumPy arrays -> NumPy array(s)
    settled: Callable | None = None  # (*input specs, **attrs) -> what `eager` comes to
    # for these, with its choices made; or `None`
    grad: Callable | None = None  # (g, out, *inputs, **attrs) -> input grads, or what
    # computes one of them
    attrs: dict = field(default_factory=dict)  # name -> (kind, default)
    expr: str | Callable | None = None  # elementwise: one scalar of the output
    int_expr: str | Callable | None = None  # the same of whole numbers, if it is
    # another; a function is given their dtype, too
    mxnet_name: tuple | None = None  # (name, attributes) in files, if MXNet's operator
    # that does this is called otherwise
    reduce: tuple | None = None  # many numbers to one, as `ops.reduce.Steps` says
    strides: Callable | None = None  # (shape, **attrs) -> offset, strides of the reads
    cpu: Callable | None = None  # loops, where the three above are not enough:
    # a function (`ops.loops`), or what writes its text
    scratch: Callable | None = None  # (input specs, output specs, **attrs) -> how many
    # numbers these loops need beside, as `work`
    stores: bool | Callable = False  # or attrs -> bool: whether these loops end each
    # element of the only output, once, by `k.store`, which
    # then computes there what follows, too
    gpu: Callable | None = None  # threads, where the loops of `cpu` are no good ones
    gpu_scratch: Callable | None = None  # what these need beside, as `scratch` says
    binary_form: tuple | None = None  # of an operator with `scalar`: the name of that with an
    # array in its place, and whether that array comes first
    numpy: str | Callable | None = None  # a NumPy statement over {a}, {b} and {out}
    expand: Callable | None = None  # (specs, *inputs, **attrs) -> simpler operators
    lower: Callable | None = None  # the same, of operators that share loops; used only
    # for compiled loops: eager and grad are its own
    lower_if: Callable | None = None  # (operator of the first input, those that read) ->
    # whether `lower` is worth it; else it always is
    contiguous_concat: Callable | None = None  # (input specs, **attrs) -> whether the inputs lie
    # one after another in the output, each in one piece
    adds_rows: Callable | None = None  # attrs -> whether the output is a sum over the first
    # axis of all inputs: of longer ones, it is the sum of what their parts give
    view: bool = False  # the output is the input's memory under a new shape
    grad_barrier: bool = False  # the gradient from above counts for nothing: two such
    # nodes stay two
    padded_slice: Callable | None = None  # (output shape, **attrs) -> (axis, begin, end, operator,
    # attrs): zeros but for the input between these places, and what joins such inputs
    is_identity: Callable | None = None  # attrs -> whether each number stays what it is
    rises: bool = False  # a larger first number never gives a smaller result, nor
    # does rounding
    peak: Callable | None = None  # of the largest numbers of windows: (the node
    # before, own attrs) -> (operator, attrs) of both in one,
    # or `None`
    from_nothing: Callable | None = None  # output spec -> (operator, attrs) that gives
    # the same and reads no input
    n_outputs: int | Callable = 1  # or attrs -> number
    variadic: bool = False  # takes any number of inputs, all called "data"
    aux: tuple = ()  # inputs that are states: `expand` gives, after the
    # outputs, their new values; whoever reads writes them
    random: bool = False  # reads the random stream: `key` is passed to `eager`
    modal: bool = False  # depends on `training`, which is passed to `expand`
    gives_own: bool = False  # `eager` gives memory that is contiguous and nobody else's
    anywhere: bool = False  # `eager` takes arrays of any device: a plan, a copy
    checked: Checked = field(default_factory=Checked, init=False)  # here, not in one
    # table of all: what knows a net must go with it
    readers: dict = field(default_factory=dict, init=False)  # form of a call -> `reader`'s

    def __init__(self, name, inputs, infer, doc, **more):
        if more.keys() - (known := self.__dataclass_fields__.keys()):
            raise AttrError(unknown_argument(name, more.keys() - known, known))
        own = {"attrs": {}, "checked": Checked(), "readers": {}} | more
        # What is not given stays the class's.
        vars(self).update(own, name=name, inputs=inputs, infer=infer, doc=doc)

    def __repr__(self):
        return f"<Op {self.name}>"

    def __call__(self, *args, name=None, **kwargs):
        """Apply the operator to inputs and attributes."""
        return self.applied(args, kwargs, name)

    def applied(self, args, kwargs, name=None, base=None):
        """Apply the operator: the highest level among the inputs interprets it.

        base:    who does where there is no input.
        """
        values = (*args, *kwargs.values()) if kwargs else args
        form = (len(args), *kwargs) if kwargs else len(args)
        try:  # the usual case: calls like this one were checked
            signature, datas = self.readers[form](values, form)
            path = self.checked[signature]
        except (LookupError, TypeError, ValueError, AttributeError):
            path = None
        if path:
            return path(values, datas)
        inputs, attrs = self.bind(args, kwargs)
        given = (v for v in inputs if v is not None)
        above = max(given, key=attrgetter("level"), default=base)  # of equal ones the first
        if above is None:
            raise AttrError(
                f"{self.name}: no input was given; call it as nd.{self.name} or sym.{self.name}, "
                "which know what to make"
            )
        result = above.interpret(self, inputs, attrs, name)
        if above.level == 0:
            self._remember(values, form, inputs, above, attrs)
        return result

    def _remember(self, values, form, inputs, above, attrs):
        """Let the second call like this one be the last that is checked."""
        slots = [SLOT if hasattr(type(v), "level") else None for v in values]
        plain = [v for v, slot in zip(values, slots, strict=True) if slot is None]
        if not all(type(v) in EXACT or isinstance(v, CONSTANT) for v in plain):
            return
        self.readers[form] = read = reader((tuple, False, *slots), "type({})")[0]
        try:
            signature, datas = read(values, form)
            known = signature in self.checked  # for a single call no path is made
        except (TypeError, AttributeError):  # no part of a key, or a symbol that is not read
            return
        own = [*map(id, inputs)] == [*map(id, values[: len(datas)])]
        if datas and own and {*map(type, datas)} == {ndarray}:
            self.checked.put(signature, known and above.path(self, datas, attrs))

    def dependencies(self, index, inputs):
        """Those of a node's inputs from which its output `index` is computed: all."""
        return inputs

    def bind(self, args, kwargs):
        """Sort a call's arguments into inputs (in order) and complete attributes."""
        if self.variadic:
            if len(args) == 1 and isinstance(args[0], (list, tuple)):
                args = tuple(args[0])
            inputs = [v for v in args if hasattr(v, "level")]
            rest = [v for v in args if not hasattr(v, "level")]
            kwargs.pop("num_args", None)
            names = ()
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
        if own := callable(self.inputs) and self.inputs(attrs):
            inputs = [v for v, n in zip(inputs, names, strict=True) if n in own or v is not None]
            inputs = inputs[: len(own)]
        for i, value in enumerate(inputs):
            if value is not None and not hasattr(value, "level"):
                raise AttrError(
                    f"{self.name}: input '{(own or names)[i]}' is {described(value)}, but an "
                    f"NDArray or a Symbol is needed; wrap it in nd.array(...)"
                )
        return inputs, attrs

    def normalize(self, given):
        """Complete attributes by their defaults and bring each into its one form."""
        attrs = {}
        for key, (kind, default) in self.attrs.items():
            value = given.pop(key, default)
            if value is REQUIRED:
                raise AttrError(
                    f"{self.name}: the argument '{key}' is missing; needed: {described_kind(kind)}"
                )
            try:
                attrs[key] = value if value is default else kind(value)
            except (ValueError, TypeError, KeyError, OverflowError):
                raise _wrong_kind(self.name, key, value, kind) from None
        if given:
            known = self.attrs if callable(self.inputs) else (*self.inputs, *self.attrs)
            raise AttrError(unknown_argument(self.name, given, known))
        if not 1 <= self.count_outputs(attrs) <= MOST:
            raise AttrError(
                f"{self.name}: {self.count_outputs(attrs)} outputs were "
                f"asked for; 1 to {MOST} are possible"
            )
        return attrs

    def read(self, texts):
        """Complete attributes by their texts in a file, such as "(2, 3)"."""
        return self.normalize({key: _meant(text) for key, text in texts.items()})

    def specs_of(self, ins, attrs):
        """What the shape rule says: completed specs of the inputs, and of the outputs.

        Raises:  ShapeError also for what the rule does not expect, and for arrays that
                 no memory holds.
        """
        try:
            ins, outs = self.infer([s.possible(self.name) for s in ins], **attrs)
            return list(ins), [s.possible(self.name) for s in outs]
        except HybridError:
            raise
        except (*UNEXPECTED, AttributeError) as error:
            raise self.sentence(ShapeError, ins, attrs, error) from error

    def expanded(self, specs, inputs, attrs, training):
        """What the simpler operators give that this one is made of."""
        mode = {"training": training} if self.modal else {}
        return self.expand(specs, *inputs, **attrs, **mode)

    def sentence(self, kind, ins, attrs, error):
        """What Python or NumPy said of inputs and attributes, as an error of `kind`."""
        given = [*map(str, ins), *(f"{k}={_short(v)}" for k, v in attrs.items())]
        if isinstance(error, MemoryError):
            return kind(f"{self.name}: {', '.join(given)} needs more memory than there is")
        return kind(
            f"{self.name}: {', '.join(given)} do not go together "
            f"({type(error).__name__}: {_short(str(error))})"
        )

    def input_names(self, attrs, count=None):
        """The argument names under these attributes, in order."""
        if self.variadic:
            return tuple(f"data{i}" for i in range(count))
        return self.inputs if isinstance(self.inputs, tuple) else self.inputs(attrs)

    def states(self, attrs):
        """The places of the inputs that are states."""
        names = self.input_names(attrs) if self.aux else ()
        return [names.index(name) for name in self.aux if name in names]

    def count_outputs(self, attrs):
        """How many values one application gives."""
        return self.n_outputs if isinstance(self.n_outputs, int) else self.n_outputs(attrs)

    def may_be_followed(self, attrs):
        """Whether its loops compute what follows, too."""
        return self.stores(**attrs) if callable(self.stores) else self.stores

    def scalar(self, attrs, dtype=None):
        """The scalar expression under these attributes, or `None`.

        dtype:   of the output: whole numbers may have an expression of their own.
        """
        if self.is_apart(dtype):
            return self.int_expr(dtype, **attrs) if callable(self.int_expr) else self.int_expr
        return self.expr(**attrs) if callable(self.expr) else self.expr

    def is_apart(self, dtype):
        """Whether numbers of a dtype are computed in another way than floats."""
        return self.int_expr is not None and dtype is not None and dtype.kind != "f"


class Node:
    """One application of an operator; a variable is a node whose `op` is `None`.

    A symbol graph is made of nodes with `specs`; the tape is made of nodes with
    `values`.
    """

    __slots__ = ("op", "name", "inputs", "attrs", "specs", "values", "info", "__weakref__")

    def __init__(self, op, inputs=(), attrs=None, name="", specs=None, values=None, info=None):
        self.op = op
        self.name = name
        self.inputs = inputs  # tuple of (node, output index)
        self.attrs = attrs or {}
        self.specs = specs  # tuple of Spec, one an output; None while unknown
        self.values = values  # tuple of ndarray, on the tape only
        self.info = info  # a variable's user attributes, as in files

    @property
    def n_outputs(self):
        """How many values this node gives."""
        return 1 if self.op is None else self.op.count_outputs(self.attrs)

    def reading(self, inputs):
        """This node, if it reads these inputs; else another one like it that does."""
        other = self.op, inputs, self.attrs, self.name, self.specs
        return self if inputs == self.inputs else Node(*other)

    def __repr__(self):
        return f"<Node {self.name or '-'}: {getattr(self.op, 'name', self.op) or 'variable'}>"


class Snapshot:
    """What constants on the tape share of an array: its values, once it is overwritten."""

    __slots__ = ("values", "__weakref__")

    def __init__(self):
        self.values = None


class Constant(Node):
    """The tape entry of an array that was not recorded; cheap to create.

    snapshot: of the array that owns the memory, for writes inside `record()`.
    """

    __slots__ = ("snapshot",)
    op, name, inputs, attrs, specs, info = None, "", (), {}, None, None

    def __init__(self, data, array=None):
        self.values, self.snapshot = (data,), None
        if array is not None:
            root = array if array.base is None else array.base[0]
            snapshot = root.snapshot and root.snapshot()
            if not snapshot or snapshot.values is not None:
                snapshot = Snapshot()
                root.snapshot = ref(snapshot)
            self.snapshot = snapshot


def checked(owner, name, value, kind):
    """A setting in the one form of its kind.

    Raises:  AttrError saying what was found and what is needed.

    >>> checked("Dropout", "rate", 0.5, rate)
    0.5
    """
    try:
        return kind(value)
    except (ValueError, TypeError, KeyError, OverflowError):
        raise _wrong_kind(owner, name, value, kind) from None


def _wrong_kind(owner, name, value, kind):
    return AttrError(
        f"{owner}: {name}={_short(value)} does not fit; needed: {described_kind(kind)}"
    )


def _short(value):
    text = " ".join(repr(value).split())  # an array's takes several lines
    return text if len(text) < 60 else text[:57] + "..."


def described(value):
    """A value and its type, in one line of an error."""
    kind = "class" if isinstance(value, type) else type(value).__name__
    return f"{_short(value)} ({'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind})"


def _words(kind):
    """What a kind takes, in words; `python -OO` leaves only its name."""
    return kind.__doc__ or kind.__name__.replace("_", " ").capitalize()


def described_kind(kind):
    """What an attribute takes, as part of a sentence."""
    return _words(kind)[0].lower() + _words(kind)[1:].rstrip(".")
