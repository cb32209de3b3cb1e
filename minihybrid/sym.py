"""Chapter 06. Symbol: the same operators write a graph down instead of computing.

Takes:   names of inputs, and the Python code that would compute on arrays.
Gives:   `var`, `Group`, every operator, shape inference, and `trace`, which runs a
         Python function once on placeholders and keeps what it did.

What is left out: Python's own branches and loops over values; they happen while tracing
and leave no trace.
"""

import sys
import threading
from contextlib import contextmanager

import numpy as np

from minihybrid.graph import Graph, auxiliary, infer, refine, shown_attrs, topological
from minihybrid.nd import Random
from minihybrid.op import OPS, UNKNOWN, AttrError, HybridError, Node, Spec
from minihybrid.ops.infix import FUNCTIONS, Part, Value, namespace


class TraceError(HybridError, TypeError):
    """Python asked a symbol for something that only an array has."""


# -- names -----------------------------------------------------------------------------
class NameManager:
    """Gives each unnamed symbol a name that counts up: `relu0`, `relu1`, ...

    >>> with NameManager() as names:
    ...     names.get(None, "relu"), names.get(None, "relu"), names.get("mine", "relu")
    ('relu0', 'relu1', 'mine')
    """

    _stack = threading.local()

    def __init__(self, prefix=""):
        self.prefix, self.counts = prefix, {}

    @classmethod
    def current(cls):
        """The name manager in force in this thread."""
        if not hasattr(cls._stack, "managers"):
            cls._stack.managers = [cls()]
        return cls._stack.managers[-1]

    def get(self, name, hint):
        """The given name, or the next one of its kind; under the prefix."""
        if name is None:
            count = self.counts.get(hint, 0)
            self.counts[hint] = count + 1
            name = f"{hint}{count}"
        return self.prefix + name

    def __enter__(self):
        NameManager.current()
        self._stack.managers.append(self)
        return self

    def __exit__(self, *_):
        self._stack.managers.pop()


INFIX_HINTS = {
    "elemwise_add": "_plus",
    "elemwise_sub": "_minus",
    "elemwise_mul": "_mul",
    "elemwise_div": "_div",
}


def hint(op):
    """What unnamed nodes of an operator are called: `_plus_scalar` -> `_plusscalar`."""
    name = INFIX_HINTS.get(op.name, op.name.lower())
    if name.startswith("_np"):  # _npi_add, _np_sum, _npx_relu -> add, sum, relu
        return name[1:].partition("_")[2]
    return "_" + name.replace("_", "") if name.startswith("_") else name


# -- the trace in progress -------------------------------------------------------------
class Trace:
    """The nodes that Python's operators append while a function is traced.

    With `lower`, operators made of simpler ones are replaced by those at once.
    """

    def __init__(self, lower=False, training=False):
        self.nodes, self.known, self.named = [], set(), {}
        self.lower, self.training, self.n_streams = lower, training, 0

    def add(self, node):
        """Append a node and find its specs, as far as its inputs' are known."""
        if node.op is not None:
            for source, _ in node.inputs:
                if source not in self.known:
                    raise TraceError(f"{node.op.name}: '{source.name}' was made "
                                     f"outside of the function that is being "
                                     f"traced{user_line()}; pass it in as an argument")
            ins = [n.specs[i] if n.specs else UNKNOWN for n, i in node.inputs]
            new_ins, outs = node.op.infer(ins, **node.attrs)
            for (source, _), spec in zip(node.inputs, new_ins, strict=True):
                if source.op is None and source.values is None:
                    source.specs = (refine(source.name, source.specs[0], spec),)
            node.specs = tuple(outs)
        self.nodes.append(node)
        self.known.add(node)


class _Current(threading.local):
    trace = None
    direct = False   # whether a plain `forward` is running on symbols


_CURRENT = _Current()


@contextmanager
def tracing(trace):
    """Append what symbols do inside this `with` block to the trace."""
    before, _CURRENT.trace = _CURRENT.trace, trace
    try:
        yield trace
    finally:
        _CURRENT.trace = before


@contextmanager
def direct(active=True):
    """Inside this `with` block, a `forward` without F runs on symbols.

    The plan is for one signature, so symbols tell the shapes that are known, and
    parameters and new arrays are symbols.
    """
    before, _CURRENT.direct = _CURRENT.direct, active
    try:
        yield
    finally:
        _CURRENT.direct = before


def is_direct():
    """Whether a `forward` without F is running on symbols."""
    return _CURRENT.direct


def is_tracing():
    """Whether a function is being traced in this thread."""
    return _CURRENT.trace is not None


def trace(function, inputs, training=False):
    """Run a function once on placeholders and keep the graph of what it did.

    inputs:  name -> Spec, the placeholders that `function` is called with, in order.
    Returns: (graph, the function's result with symbols in it).
    Raises:  TraceError or ShapeError, from the line of the user's code at fault.
    """
    with tracing(Trace(training=training)) as current, NameManager():
        result = opened(function(*(var(n, spec=spec) for n, spec in inputs.items())))
        heads = [ref for s in symbols_in(result) for ref in s.refs]
    return Graph(current.nodes, heads), result


def opened(result):
    """The result with a tuple in place of each symbol of several outputs."""
    if isinstance(result, Symbol) and len(result.refs) > 1:
        return tuple(type(result)([ref]) for ref in result.refs)
    if isinstance(result, (list, tuple)):
        return type(result)(map(opened, result))
    return result


def symbols_in(result):
    """The symbols of a nested result, in order."""
    if isinstance(result, Symbol):
        return [result]
    if isinstance(result, (list, tuple)):
        return [s for part in result for s in symbols_in(part)]
    raise TraceError(f"a traced function returned {result!r} (a "
                     f"{type(result).__name__}); it must return what its operators "
                     "gave, or a list or tuple of that")


def replay(refs, values):
    """Apply the operators behind `refs` again, to other values (symbols or arrays).

    values:  variable node -> the value that takes its place.
    """
    done = {}
    for node in topological(refs):
        if node in values:
            done[node] = (values[node],)
        elif node.op is None:
            raise AttrError(f"no value is given for the variable '{node.name}'")
        else:
            ins = [done[n][i] for n, i in node.inputs]
            reader = max(ins or values.values(), key=lambda v: v.level, default=Symbol)
            out = reader.interpret(node.op, ins, node.attrs, node.name)
            done[node] = tuple(out) if node.n_outputs > 1 else (out,)
    return [done[n][i] for n, i in refs]


def user_line():
    """Where in the user's own code we are: ` (file.py, line 3)`."""
    frame = sys._getframe(1)
    package = __name__.partition(".")[0]
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame = frame.f_back
    return f" ({file_of(frame)}, line {frame.f_lineno})" if frame else ""


def file_of(frame):
    """The file of a frame's code; `Cell In[3]` in a notebook."""
    file, shell = frame.f_code.co_filename, frame.f_globals.get("get_ipython")
    known_cell = getattr(shell and shell().compile, "format_code_name", lambda _: None)
    return " ".join(known_cell(file) or [file])


# -- the symbol ------------------------------------------------------------------------
def _refuse(what, why, instead):
    def method(self, *_, **__):
        raise TraceError(f"{what} on the Symbol '{self.name}'{user_line()}: {why}; "
                         f"{instead}")
    return method


NOT_YET = "a symbol stands for numbers that are not there yet"
IMPERATIVE = "or leave this block imperative, without hybridize()"


class Symbol(Value):
    """A placeholder for one or more outputs of a graph.

    >>> x = var("data"); (x + 1).list_arguments()
    ['data']
    """

    __slots__ = ("refs",)
    level = 1

    def __init__(self, refs):
        self.refs = tuple(refs)

    @staticmethod
    def interpret(op, inputs, attrs, name=None):
        """Write the application down; missing inputs become variables."""
        current = _CURRENT.trace
        for i, value in enumerate(inputs):
            if value is not None and value.level == 0:
                raise TraceError(
                    f"{op.name}: its input '{op.input_names(attrs, len(inputs))[i]}' "
                    f"is an NDArray, but others are symbols{user_line()}; hand arrays "
                    "to a hybrid block as parameters or constants "
                    "(params.get_constant)")
        if current and current.lower and op.eager is None:
            specs = [v.spec for v in inputs]
            mode = {"training": current.training} if op.modal else {}
            return _as_symbol(op.expand(specs, *inputs, **attrs, **mode))
        name = NameManager.current().get(name, hint(op))
        if any(v is None for v in inputs):
            names = op.input_names(attrs)
            inputs = [v if v is not None else var(f"{name}_{n}")
                      for v, n in zip(inputs, names, strict=True)]
        if op.variadic:
            refs = tuple(ref for v in inputs for ref in v.refs)
        else:
            refs = tuple(v.one_ref(op) for v in inputs)
        if current and op.random:
            attrs = {**attrs, "stream": current.n_streams}
            current.n_streams += 1
        node = Node(op, refs, attrs, name)
        if current:
            current.add(node)
        return Symbol((node, i) for i in range(node.n_outputs))

    def one_ref(self, op):
        """The single output that this symbol must have to be an input."""
        if len(self.refs) != 1:
            raise TraceError(f"{op.name}: an input is a group of {len(self.refs)} "
                             f"symbols{user_line()}; choose one, as in s[0]")
        return self.refs[0]

    @property
    def spec(self):
        """What the trace knows of shape and dtype."""
        node, i = self.refs[0]
        return node.specs[i] if node.specs else UNKNOWN

    def lines_up(self, other):
        """Whether elementwise fits: in a trace, shapes decide; else it is assumed."""
        if not (_CURRENT.trace and getattr(other, "refs", None)):
            return True
        mine, its = self.spec, other.spec
        return not (mine.known and its.known) or mine.shape == its.shape

    def convert(self, other, op):
        """Refuse: a symbol combines with symbols and numbers only."""
        raise TraceError(f"{op}: a Symbol and a {type(other).__name__} do not combine"
                         f"{user_line()}; hand arrays to a hybrid block as parameters "
                         "or constants (params.get_constant)")

    # -- what only arrays can do
    __bool__ = _refuse("bool(x)", f"{NOT_YET}, so Python cannot choose a branch",
                       f"write F.where(condition, a, b), {IMPERATIVE}")
    __float__ = __int__ = __index__ = asscalar = item = _refuse(
        "float(x)", NOT_YET,
        f"return x from the block and convert the result, {IMPERATIVE}")
    asnumpy = tolist = __array__ = _refuse(
        "x.asnumpy()", NOT_YET, f"use F's operators instead of NumPy's, {IMPERATIVE}")
    _refuse_shape = _refuse(
        "x.shape", f"{NOT_YET}, and the graph must do for other shapes, too",
        f"use the codes of reshape (0 keeps an axis, -1 infers one) or operators "
        f"that take the shape from an array, such as F.zeros_like and "
        f"F.broadcast_like, {IMPERATIVE}")
    shape = property(lambda self: self._told().shape)
    size = property(lambda self: self._told().size)
    ndim = property(lambda self: len(self._told().shape))
    dtype = property(lambda self: self._told().dtype)
    context = ctx = property(_refuse_shape)

    def _told(self):
        """The spec, where a `forward` without F may ask for it."""
        return self.spec if is_direct() and self.spec.known else self._refuse_shape()

    __iadd__ = __isub__ = __imul__ = __itruediv__ = _refuse(
        "x += y", "a graph has no memory to overwrite", "write x = x + y")
    __setitem__ = _refuse("x[...] = y", "a graph has no memory to overwrite",
                          "build a new value with F.where, F.concat or F.slice")
    attach_grad = backward = _refuse("x.backward()", NOT_YET,
                                     "call it on the array that the block returns")
    _refuse_rows = _refuse(
        "len(x) or a loop over x",
        "it would count outputs, not rows",
        "use F.split, F.slice_axis or x[0]",
    )

    # -- outputs
    @property
    def name(self):
        """The name of the node, or of the group's members."""
        if len({n for n, _ in self.refs}) == 1:
            return self.refs[0][0].name
        return f"group [{', '.join(n.name for n, _ in self.refs)}]"

    def __repr__(self):
        return f"<Symbol {self.name}>"

    def __len__(self):
        if _CURRENT.trace and len(self.refs) == 1:
            self._refuse_rows()
        return len(self.refs)

    def __iter__(self):
        return (type(self)([self.refs[i]]) for i in range(len(self)))

    def __getitem__(self, key):
        if isinstance(key, str):
            names = self.list_outputs()
            if names.count(key) != 1:
                raise AttrError(f"symbol['{key}']: {names.count(key)} outputs are "
                                f"called so; there are {', '.join(names)}")
            return type(self)([self.refs[names.index(key)]])
        if len(self.refs) == 1 and _CURRENT.trace:
            return self.part(key, self.spec.shape)
        if isinstance(key, slice):
            found = [type(self)([ref]) for ref in self.refs[key]]
            return tuple(found) if _CURRENT.trace else Group(found)
        if not isinstance(key, int):
            raise TraceError(f"symbol[{key!r}]{user_line()}: outside of a traced "
                             "function the number of an output is needed; use slice or "
                             "slice_axis")
        if not -len(self.refs) <= key < len(self.refs):
            raise IndexError(f"symbol[{key}]: there are {len(self.refs)} outputs")
        return type(self)([self.refs[key]])

    # -- what it needs and gives
    def list_arguments(self):
        """The names of the inputs, in the order in which they are first needed."""
        return [n.name for n in self._variables()[0]]

    def list_auxiliary_states(self):
        """The names of inputs that are states, such as running means."""
        return [n.name for n in self._variables()[1]]

    def _variables(self):
        """(arguments, states) as nodes, in the order in which they are first needed."""
        nodes = topological(self.refs)
        states, found = auxiliary(nodes), ([], [])
        for node in nodes:
            if node.op is None:
                found[node in states].append(node)
        return found

    def list_inputs(self):
        """The names of all inputs."""
        return self.list_arguments() + self.list_auxiliary_states()

    def list_outputs(self):
        """The names of the outputs: `relu0_output`, or `split0_output1` of several."""
        return [n.name if n.op is None else
                f"{n.name}_output{i if n.n_outputs > 1 else ''}" for n, i in self.refs]

    def get_internals(self):
        """A group of every output of every node behind this symbol."""
        return Symbol(
            (n, i) for n in topological(self.refs) for i in range(n.n_outputs)
        )

    def get_children(self):
        """The inputs of this symbol's node, or `None` for a variable."""
        refs = [ref for n, _ in self.refs for ref in n.inputs]
        return Symbol(refs) if refs else None

    def attr(self, key):
        """One attribute of this symbol's own node, as text; `None` if it has none."""
        return self.list_attr().get(key)

    def list_attr(self):
        """The attributes of this symbol's node that differ from defaults, as text."""
        node = self.refs[0][0]
        given = shown_attrs(node) if node.op else {}
        return {**{k: str(v) for k, v in given.items()}, **(node.info or {})}

    def attr_dict(self):
        """node name -> its attributes as text, for all nodes that have some."""
        found = {n.name: Symbol([(n, 0)]).list_attr() for n in topological(self.refs)}
        return {name: attrs for name, attrs in found.items() if attrs}

    def __call__(self, *args, name=None, **kwargs):
        """Compose: the same graph with other symbols in place of its variables."""
        variables = {n.name: n for part in self._variables() for n in part}
        if args and len(args) > len(variables):
            raise AttrError(f"compose: {len(args)} symbols for {len(variables)} "
                            "variables")
        given = dict(zip(variables, args, strict=False)) | kwargs
        unknown = given.keys() - variables.keys()
        if unknown:
            raise AttrError(f"compose: there is no variable "
                            f"{', '.join(sorted(unknown))}; there are "
                            f"{', '.join(variables)}")
        values = {n: given.get(key, Symbol([(n, 0)])) for key, n in variables.items()}
        with NameManager(prefix=f"{name}_" if name else ""):
            return Group(replay(self.refs, values))

    # -- shapes
    def _infer(self, shapes, dtypes):
        graph = Graph.of(self)
        names = {n.name for n in graph.variables}
        for given in (shapes, dtypes):
            if given.keys() - names:
                raise AttrError(f"infer: there is no argument "
                                f"{', '.join(sorted(given.keys() - names))}; there are "
                                f"{', '.join(n.name for n in graph.variables)}")
        known = {name: Spec(unknown_lengths(shapes.get(name)), dtypes.get(name))
                 for name in {**shapes, **dtypes}}
        return graph, infer(graph, known)

    def infer_shape_partial(self, *args, **kwargs):
        """(argument, output, auxiliary) shapes as far as known; 0 is unknown."""
        shapes = dict(zip(self.list_arguments(), args, strict=False)) | kwargs
        graph, specs = self._infer(
            {k: v for k, v in shapes.items() if v is not None}, {}
        )

        def shape(spec):
            return () if spec.shape is None else tuple(max(n, 0) for n in spec.shape)

        arguments, states = self._variables()
        return ([shape(specs[n][0]) for n in arguments],
                [shape(specs[n][i]) for n, i in self.refs],
                [shape(specs[n][0]) for n in states])

    def infer_shape(self, *args, **kwargs):
        """(argument, output, auxiliary) shapes; three `None` if they do not all follow.

        >>> (var("a") + var("b")).infer_shape(a=(2, 3))
        ([(2, 3), (2, 3)], [(2, 3)], [])
        """
        found = self.infer_shape_partial(*args, **kwargs)
        complete = all(s and 0 not in s for group in found for s in group)
        return found if complete else (None, None, None)

    def infer_type_partial(self, *args, **kwargs):
        """(argument, output, auxiliary) dtypes as far as known; `None` is unknown."""
        given = dict(zip(self.list_arguments(), args, strict=False)) | kwargs
        _, specs = self._infer({}, {k: np.dtype(v) for k, v in given.items()
                                    if v is not None})

        def dtype(spec):
            return spec.dtype and spec.dtype.type

        arguments, states = self._variables()
        return ([dtype(specs[n][0]) for n in arguments],
                [dtype(specs[n][i]) for n, i in self.refs],
                [dtype(specs[n][0]) for n in states])

    def infer_type(self, *args, **kwargs):
        """(argument, output, auxiliary) dtypes; three `None` if they do not all follow.

        >>> var("x").astype("float16").infer_type(x="float32")[1]
        [<class 'numpy.float16'>]
        """
        found = self.infer_type_partial(*args, **kwargs)
        complete = all(t is not None for group in found for t in group)
        return found if complete else (None, None, None)

    def debug_str(self):
        """The nodes as text, in the form of MXNet."""
        lines = ["Symbol Outputs:"]
        lines += [f"\toutput[{k}]={n.name}({i})" for k, (n, i) in enumerate(self.refs)]
        for node in topological(self.refs):
            if node.op is None:
                lines.append(f"Variable:{node.name}")
                continue
            lines += ["-" * 20, f"Op:{node.op.name}, Name={node.name}", "Inputs:"]
            lines += [f"\targ[{k}]={n.name}({i})" + " version=0" * (n.op is None)
                      for k, (n, i) in enumerate(node.inputs)]
            attrs = Symbol([(node, 0)]).list_attr()
            lines += ["Attrs:"] * bool(attrs)
            lines += [f"\t{key}={value}" for key, value in sorted(attrs.items())]
        return "\n".join(lines) + "\n"


def _as_symbol(result):
    return Group(list(result)) if isinstance(result, tuple) else result


def unknown_lengths(shape):
    """A shape in which the user's 0 for "unknown" is written -1."""
    return (
        None
        if shape is None
        else tuple(-1 if n in (0, None) else int(n) for n in shape)
    )


def var(name, attr=None, shape=None, lr_mult=None, wd_mult=None, dtype=None, init=None,
        stype=None, spec=None, **kwargs):
    """A named input; shape and dtype may be told now, or later, or inferred.

    >>> var("data")
    <Symbol data>
    """
    if not isinstance(name, str):
        raise AttrError(f"var: the name is {name!r}, but a string is needed")
    told = {
        "__shape__": shape and tuple(shape),
        "__dtype__": dtype and np.dtype(dtype).name,
        "__lr_mult__": lr_mult,
        "__wd_mult__": wd_mult,
        "__init__": init if init is None or isinstance(init, str) else repr(init),
        **{f"__{k.strip('_')}__": v for k, v in kwargs.items()},
    }
    info = {**(attr or {}), **{k: str(v) for k, v in told.items() if v is not None}}
    spec = spec or Spec(unknown_lengths(shape), np.dtype(dtype) if dtype else None)
    node = Node(None, name=name, specs=(spec,), info=info or None)
    if _CURRENT.trace:
        _CURRENT.trace.add(node)
    return Symbol([(node, 0)])


Variable = var


def constant(values, name="constant"):
    """Numbers that are part of the graph, as a symbol."""
    node = Node(None, name=name, values=(values,),
                specs=(Spec(values.shape, values.dtype),))
    if _CURRENT.trace:
        _CURRENT.trace.add(node)
    return Symbol([(node, 0)])


def parameter(name, spec, info):
    """A variable that stands for a parameter; within a trace always the same."""
    named = _CURRENT.trace.named if _CURRENT.trace else {}
    if name not in named:
        symbol = var(name, spec=spec)
        symbol.refs[0][0].info = info
        named[name] = symbol
    return named[name]


def Group(symbols):
    """One symbol with the outputs of several."""
    symbols = list(symbols)
    if not symbols or not all(isinstance(s, Symbol) for s in symbols):
        raise AttrError(f"Group: a list of symbols is needed, found {symbols!r}")
    return (
        symbols[0] if len(symbols) == 1 else Symbol(r for s in symbols for r in s.refs)
    )


def _created(name, /, **attrs):
    op = OPS[name]
    attrs = {k: v for k, v in attrs.items() if v is not None}
    label = attrs.pop("name", None)
    return Symbol.interpret(op, [], op.normalize(attrs), label)


def zeros(shape, dtype=None, name=None, **_):
    """A symbol for an array of zeros."""
    return _created("_zeros", shape=shape, dtype=dtype, name=name)


def ones(shape, dtype=None, name=None, **_):
    """A symbol for an array of ones."""
    return _created("_ones", shape=shape, dtype=dtype, name=name)


def full(shape, val, dtype=None, name=None, **_):
    """A symbol for an array of one value."""
    return _created("_full", shape=shape, value=val, dtype=dtype, name=name)


def arange(start, stop=None, step=1.0, repeat=1, dtype=None, name=None):
    """A symbol for start, start + step, ... below stop."""
    return _created("_arange", start=start, stop=stop, step=step, repeat=repeat,
                    dtype=dtype, name=name)


def linspace(start, stop, num, endpoint=True, dtype=None, name=None):
    """A symbol for `num` numbers at equal distances, from start to stop."""
    return _created("_linspace", start=start, stop=stop, num=num, endpoint=endpoint,
                    dtype=dtype, name=name)


def eye(N, M=0, k=0, dtype=None, name=None, **_):
    """A symbol for an N x M array with ones on the diagonal k."""
    return _created("_eye", N=N, M=M, k=k, dtype=dtype, name=name)


def histogram(a, bins=10, range=None, name=None):
    """Symbols for how many numbers lie in each bin, and for the bins' edges.

    bins:    a number of equal bins within `range`, or a symbol of edges.
    """
    if isinstance(bins, Symbol):
        return OPS["_histogram"](a, bins, name=name)
    return OPS["_histogram"](a, bin_cnt=bins, range=range, name=name)


random = Random(Symbol.interpret)
linalg = Part("_linalg_", Symbol, "sym.linalg")
contrib = Part("_contrib_", Symbol, "sym.contrib")
_internal = Part("", Symbol, "sym._internal")


def __getattr__(name):
    return namespace(name, Symbol, "sym")


def __dir__():
    return sorted({*globals(), *OPS, *FUNCTIONS})

