"""Chapter 13. Symbol: the same operators record a graph instead of computing.

Defines: `var`, `Group`, every operator, shape inference, and `trace`, which runs a
         Python function once on placeholders and records its operations.

Limits: Python's own branches and loops run while tracing and aren't recorded.
"""

import numpy as onp  # `sym.np` is our own

from minihybrid.core import hooks, pytree
from minihybrid.core.attribute import TYPE_FLAGS, AttrScope, as_text, with_short_names
from minihybrid.core.files import read_whole, write_whole
from minihybrid.core.graph import Graph, auxiliary, shown_attrs, topological
from minihybrid.core.name import NameManager, hint
from minihybrid.core.op import UNKNOWN, AttrError, Node, PlaceError, Spec, described, legible
from minihybrid.core.serial import missing_of, refs_of_json, tojson
from minihybrid.core.switches import shown_shape, told_shape
from minihybrid.core.tracing import (
    CURRENT,
    IMPERATIVE,
    Trace,
    TraceError,
    is_direct,
    tracing,
    user_line,
)
from minihybrid.ops.distributions import Random
from minihybrid.ops.errors import BLOCKS
from minihybrid.ops.infix import Part, Value, face, public_names


def trace(function, inputs, training=False, arranged=iter):
    """Run a function once on placeholders and return the recorded graph.

    inputs:  name -> Spec of the placeholders, in the order of the arguments.
    arranged: placeholders -> all arguments, if the call has others as well.
    Returns: (graph, the function's result, which contains symbols).
    Raises:  TraceError or ShapeError, naming the line of user code at fault.
    """
    with tracing(Trace(training=training)) as current, NameManager():
        result = opened(function(*arranged([var(n, spec=s) for n, s in inputs.items()])))
        heads = [ref for s in symbols_in(result) for ref in s.refs]
    if not heads:
        raise _no_symbols(result)
    return Graph(current.nodes, heads, places=current.places), result


def opened(result):
    """Return the result with each multi-output symbol replaced by a tuple."""
    if isinstance(result, Symbol):
        return (
            result if len(result.refs) == 1 else tuple(type(result)([ref]) for ref in result.refs)
        )
    parts = pytree.flatten(result)
    return result if parts is None else pytree.unflatten(result, map(opened, parts))


def symbols_in(result):
    """Return the symbols of a nested result, in order; `None` entries are skipped."""
    if isinstance(result, Symbol):
        return [result]
    parts = [] if result is None else pytree.flatten(result)
    if parts is not None:
        return [s for part in parts for s in symbols_in(part)]
    raise _no_symbols(result)


def _no_symbols(result):
    return TraceError(
        f"a traced function returned {described(result)}; it must return "
        "results of operators, or lists, tuples and dicts of these and None"
    )


def replay(refs, values, like=()):
    """Reapply the operators that compute `refs` to other values (symbols or arrays).

    values:  variable node -> its replacement.
    like:    more values of their kind, which operators without inputs get.
    """
    done, like = {}, (*values.values(), *like)
    for node in topological(refs):
        if node in values:
            done[node] = (values[node],)
        elif node.op is None:
            raise AttrError(f"no value is given for the variable '{node.name}'")
        else:
            ins = [done[n][i] for n, i in node.inputs]
            reader = max(ins or like, key=lambda v: v.level, default=Symbol)
            with AttrScope(**(node.info or {})):
                out = reader.interpret(node.op, ins, node.attrs, node.name)
            done[node] = tuple(out) if node.n_outputs > 1 else (out,)
    return [done[n][i] for n, i in refs]


# -- the symbol ------------------------------------------------------------------------
def _refuse(what, why, instead):
    def method(self, *_, **__):
        raise TraceError(f"{what} on the Symbol '{self._label}'{user_line()}: {why}; {instead}")

    return method


NOT_YET = "a symbol has no values yet"


def _no_number(what):
    return _refuse(what, NOT_YET, f"return x from the block and convert the result, {IMPERATIVE}")


def _no_numpy(what):
    return _refuse(what, NOT_YET, f"use F's operators instead of NumPy's, {IMPERATIVE}")


def _no_spec(what):
    kinds = {"dtype": "dtypes", "context": "devices", "ctx": "devices"}.get(what, "shapes")
    codes = "the codes of reshape (0 keeps an axis, -1 infers one) or " * (kinds == "shapes")
    why = f"{NOT_YET}, and the graph must also work for other {kinds}"
    instead = f"{codes}operators that take these from an array, such as F.zeros_like"
    return _refuse(f"x.{what}", why, f"use {instead} and F.broadcast_like, {IMPERATIVE}")


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
        """Record the application as a node; missing inputs become variables."""
        current = CURRENT.trace
        for i, value in enumerate(inputs):
            if value is not None and value.level == 0:
                raise TraceError(
                    f"{op.name}: its input '{op.input_names(attrs, len(inputs))[i]}' is an "
                    f"NDArray, but others are symbols{user_line()}; pass arrays to a hybrid block "
                    "as parameters or constants (params.get_constant)"
                )
        specs = [v.spec for v in inputs] if current and current.lower else []
        if current and current.lower and op.is_made(specs, attrs):
            return as_symbol(op.expanded(specs, inputs, attrs, current.training))
        names = NameManager.current()
        name = names.get(name, hint(op))
        if any(v is None for v in inputs):
            if current:
                raise op.missing(inputs, attrs)
            inputs = [
                v if v is not None else var(f"{name}_{n}")
                for v, n in zip(inputs, op.input_names(attrs), strict=True)
            ]
        if op.variadic:
            refs = tuple(ref for v in inputs for ref in v.refs)
        else:
            refs = tuple(v.one_ref(op) for v in inputs)
        if current and op.random:
            attrs = {**attrs, "stream": current.n_streams}
            current.n_streams += 1
        node = Node(op, refs, attrs, name, info=AttrScope.current().attrs or None)
        if current:
            current.add(node)
        elif names.block:
            BLOCKS[node] = names.block
        return Symbol((node, i) for i in range(node.n_outputs))

    def one_ref(self, op):
        """Return this symbol's only output; raise TraceError if it has several."""
        if len(self.refs) != 1:
            raise TraceError(
                f"{op.name}: an input is a group of {len(self.refs)} "
                f"symbols{user_line()}; choose one, as in s[0]"
            )
        return self.refs[0]

    @property
    def spec(self):
        """The shape and dtype, as far as the trace knows them."""
        node, i = self.refs[0]
        return node.specs[i] if node.specs else UNKNOWN

    def lines_up(self, other):
        """Return whether an elementwise operator needs no broadcasting; assumed outside a trace."""
        if not (CURRENT.trace and getattr(other, "refs", None)):
            return True
        mine, its = self.spec, other.spec
        return not (mine.known and its.known) or mine.shape == its.shape

    def convert(self, other, op):
        """Raise: a symbol combines only with symbols and Python scalars."""
        raise TraceError(
            f"{op}: a Symbol and {described(other)} do not combine{user_line()}; hand "
            "arrays to a hybrid block as parameters or constants (params.get_constant)"
        )

    # -- methods that need values
    __bool__ = _refuse(
        "bool(x)",
        f"{NOT_YET}, so Python cannot choose a branch",
        f"write F.where(condition, a, b), F.maximum(x, 0) for max(x, 0), {IMPERATIVE}",
    )
    __float__, __int__, __index__, asscalar, item = map(
        _no_number, ("float(x)", "int(x)", "x as a whole number", "x.asscalar()", "x.item()")
    )
    asnumpy, tolist, __array__ = map(_no_numpy, ("x.asnumpy()", "x.tolist()", "x as NumPy's array"))
    shape = property(lambda self: self._readable_spec("shape").shape)
    size = property(lambda self: self._readable_spec("size").size)
    ndim = property(lambda self: len(self._readable_spec("ndim").shape))
    dtype = property(lambda self: self._readable_spec("dtype").dtype)
    context, ctx = property(_no_spec("context")), property(_no_spec("ctx"))

    def _readable_spec(self, what):
        """Return the spec, which only a `forward` without F may read."""
        return self.spec if is_direct() and self.spec.known else _no_spec(what)(self)

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __imod__ = __ipow__ = _refuse(
        "x += y", "a graph has no memory to overwrite", "write x = x + y"
    )
    __setitem__ = copy_from = _refuse(
        "x[...] = y",
        "a graph has no memory to overwrite",
        "build a new value with F.where, F.concat or F.slice",
    )
    refuse_written = _refuse(
        "x[...] = y, where y is traced,",
        NOT_YET,
        "build a new value with F.where, F.concat or F.slice",
    )
    copyto = _no_number("x.copyto(y)")
    attach_grad = _refuse("x.attach_grad()", NOT_YET, "call it on the block's input, before")
    backward = _refuse("x.backward()", NOT_YET, "call it on the array that the block returns")
    as_in_context = as_in_ctx = _no_number("x.as_in_context()")
    _refuse_rows = _refuse(
        "len(x) or a loop over x",
        "it would count outputs, not rows",
        "use F.split, F.slice_axis or x[0]",
    )

    # -- outputs
    @property
    def name(self):
        """The name of the node; `None` for a group."""
        nodes = {n for n, _ in self.refs}
        return self.refs[0][0].name if len(nodes) == 1 else None

    @property
    def _label(self):
        return legible(self.name or f"group [{', '.join(n.name for n, _ in self.refs)}]")

    def __repr__(self):
        return f"<{'_' * self.is_np}Symbol {self._label}>"

    def __copy__(self):
        return type(self)(self.refs)

    def __deepcopy__(self, _):
        return type(self)(self.refs)  # nodes are immutable

    def __len__(self):
        if CURRENT.trace and len(self.refs) == 1:
            self._refuse_rows()
        return len(self.refs)

    def __iter__(self):
        return (type(self)([self.refs[i]]) for i in range(len(self)))

    def __getitem__(self, key):
        if isinstance(key, str):
            names = self.list_outputs()
            if names.count(key) != 1:
                raise AttrError(
                    f"symbol['{key}']: {names.count(key)} outputs are "
                    f"called so; there are {', '.join(names)}"
                )
            return type(self)([self.refs[names.index(key)]])
        if len(self.refs) == 1 and (CURRENT.trace or isinstance(key, Symbol)):
            return self.part(key, self.spec.shape)
        if isinstance(key, slice):
            outputs = [type(self)([ref]) for ref in self.refs[key]]
            return tuple(outputs) if CURRENT.trace else Group(outputs)
        if not isinstance(key, int):
            raise TraceError(
                f"symbol[{key!r}]{user_line()}: outside of a traced function the number of an "
                "output is needed; use slice or slice_axis"
            )
        if not -len(self.refs) <= key < len(self.refs):
            raise PlaceError(f"symbol[{key}]: there are {len(self.refs)} outputs")
        return type(self)([self.refs[key]])

    # -- inputs and outputs
    def list_arguments(self):
        """The names of the inputs, in the order in which they are first needed."""
        return [n.name for n in self._variables()[0]]

    def list_auxiliary_states(self):
        """The names of inputs that are states, such as running means."""
        return [n.name for n in self._variables()[1]]

    def _variables(self):
        """(arguments, states) as nodes, in the order in which they are first needed."""
        nodes = topological(self.refs)
        states, variables = auxiliary(nodes), [n for n in nodes if n.op is None]
        return [n for n in variables if n not in states], [n for n in variables if n in states]

    def list_inputs(self):
        """The names of all inputs."""
        return self.list_arguments() + self.list_auxiliary_states()

    def list_outputs(self):
        """The names of the outputs: `relu0_output`, or `split0_output1` of several."""
        return [
            n.name if n.op is None else f"{n.name}_output{i if n.n_outputs > 1 else ''}"
            for n, i in self.refs
        ]

    def get_internals(self):
        """A group of every output of every node that this symbol depends on."""
        return Symbol((n, i) for n in topological(self.refs) for i in range(n.n_outputs))

    def get_children(self):
        """The inputs of this symbol's node, or `None` for a variable."""
        refs = [ref for n, _ in self.refs for ref in n.inputs]
        return Symbol(refs) if refs else None

    def attr(self, key):
        """One attribute of this symbol's own node, as text; `None` if it has none."""
        return self.list_attr().get(key)

    def list_attr(self):
        """The attributes of this symbol's node, as text: of the operator, those that
        differ from defaults, then the user's; `lr_mult` and such under both names.
        """
        node = self.refs[0][0]
        attrs = shown_attrs(node) if node.op else {}
        return {**{k: str(v) for k, v in attrs.items()}, **with_short_names(node.info or {})}

    def attr_dict(self):
        """node name -> its attributes as text, for all nodes that have some."""
        attrs_of = {n.name: Symbol([(n, 0)]).list_attr() for n in topological(self.refs)}
        return {name: attrs for name, attrs in attrs_of.items() if attrs}

    def __call__(self, *args, name=None, **kwargs):
        """Compose: the same graph with other symbols in place of its variables.

        name:    of the new symbol's own node.
        """
        from minihybrid.mxnet.sym_extras import composed

        return composed(self, args, name, kwargs)

    # -- shapes and dtypes
    def infer_shape_partial(self, *args, **kwargs):
        """(argument, output, auxiliary) shapes as far as known; 0 and () are unknown,
        under `np_shape` -1 and `None`.
        """
        from minihybrid.mxnet.sym_extras import inferred

        specs = inferred(self, "infer_shape", args, kwargs)
        return tuple([shown_shape(spec.shape) for spec in group] for group in specs)

    def infer_shape(self, *args, **kwargs):
        """(argument, output, auxiliary) shapes; three `None` if some can't be inferred.

        >>> (var("a") + var("b")).infer_shape(a=(2, 3))
        ([(2, 3), (2, 3)], [(2, 3)], [])
        """
        from minihybrid.mxnet.sym_extras import inferred

        specs = inferred(self, "infer_shape", args, kwargs)
        if any(s.shape is None or -1 in s.shape for group in specs for s in group):
            for node in missing_of(topological(self.refs)):
                node.op.expand()  # raises: it says why
            return None, None, None
        return tuple([spec.shape for spec in group] for group in specs)

    def infer_type_partial(self, *args, **kwargs):
        """(argument, output, auxiliary) dtypes as far as known; `None` is unknown."""
        from minihybrid.mxnet.sym_extras import inferred

        specs = inferred(self, "infer_type", args, kwargs)
        return tuple([spec.dtype and spec.dtype.type for spec in group] for group in specs)

    def infer_type(self, *args, **kwargs):
        """(argument, output, auxiliary) dtypes; three `None` if some can't be inferred.

        >>> var("x").astype("float16").infer_type(x="float32")[1]
        [<class 'numpy.float16'>]
        """
        dtypes = self.infer_type_partial(*args, **kwargs)
        complete = all(t is not None for group in dtypes for t in group)
        return dtypes if complete else (None, None, None)

    # -- files
    def tojson(self):
        """The graph as JSON text in MXNet's form."""
        return tojson(self)

    def save(self, fname, remove_amp_cast=True):
        """Write the graph to a JSON file."""
        write_whole(fname, tojson(self).encode())

    def __reduce__(self):
        return fromjson, (tojson(self),)

    # -- running
    def bind(
        self,
        ctx,
        args,
        args_grad=None,
        grad_req="write",
        aux_states=None,
        group2ctx=None,
        shared_exec=None,
    ):
        """Return an Executor of this symbol on your own arrays.

        args, args_grad, aux_states: lists in the order of `list_arguments()` and
                 `list_auxiliary_states()`, or dicts by name; an argument without a
                 buffer in `args_grad` gets no gradient.
        grad_req: write, add or null, for all, as a list, or as a dict (default null).
        group2ctx, shared_exec: accepted as in MXNet and ignored: there is one device, and
                 each executor plans its own memory.

        >>> from minihybrid import cpu
        >>> from minihybrid.core import nd, sym
        >>> a, g = nd.array([3]), nd.zeros((1,))
        >>> e = (sym.var("a") ** 2).bind(cpu(), [a], [g])
        >>> _ = e.forward(is_train=True); e.backward(nd.ones((1,))); g.item()
        6.0
        """
        from minihybrid.mxnet.executor import bind

        return bind(self, ctx, args, args_grad, grad_req, aux_states)

    def simple_bind(
        self,
        ctx,
        grad_req="write",
        type_dict=None,
        stype_dict=None,
        group2ctx=None,
        shared_arg_names=None,
        shared_exec=None,
        shared_buffer=None,
        **kwargs,
    ):
        """Return an Executor of this symbol on new arrays of zeros with inferred shapes.

        kwargs:  argument name -> shape.
        type_dict: argument name -> dtype; default float32.
        shared_arg_names: arguments whose arrays are those of `shared_exec`.
        stype_dict, group2ctx, shared_buffer: accepted as in MXNet and ignored: storage is
                 dense, and each executor plans its own memory.
        Raises:  ShapeError naming the arguments whose shapes can't be inferred.

        >>> from minihybrid import cpu
        >>> from minihybrid.core import sym
        >>> net = sym.FullyConnected(sym.var("data"), num_hidden=3, name="fc")
        >>> net.simple_bind(cpu(), data=(2, 5)).arg_dict["fc_weight"].shape
        (3, 5)
        """
        from minihybrid.mxnet.executor import simple_bind

        return simple_bind(self, ctx, grad_req, type_dict, shared_arg_names, shared_exec, kwargs)

    def eval(self, ctx=None, **kwargs):
        """The outputs for arrays given by name; binds and runs once, where they are.

        >>> from minihybrid.core import nd, sym
        >>> a, b = nd.array([1]), nd.array([2])
        >>> (sym.var("a") + sym.var("b")).eval(a=a, b=b)[0].item()
        3.0
        """
        if ctx is None:
            ctx = next((a.context for a in kwargs.values() if hasattr(a, "context")), None)
        return self.bind(ctx, kwargs, aux_states=kwargs).forward()

    def as_np_ndarray(self):
        """Return the np symbol of the same value."""
        from minihybrid.np.array import _Symbol

        return _Symbol(self.refs)

    def debug_str(self):
        """Return the nodes as text in MXNet's format."""
        from minihybrid.view.text import text

        return text(self)


def as_symbol(result):
    """Return the result of a decomposition as one symbol, grouped if it has several outputs."""
    return Group(list(result)) if isinstance(result, tuple) else result


def var(
    name,
    attr=None,
    shape=None,
    lr_mult=None,
    wd_mult=None,
    dtype=None,
    init=None,
    stype=None,
    spec=None,
    **kwargs,
):
    """Create a named input; its shape and dtype may be given now or inferred later.

    attr, kwargs: attributes of your own, as text; keywords are written `__mine__`.

    >>> var("data")
    <Symbol data>
    """
    if not isinstance(name, str):
        raise AttrError(f"var: the name is {name!r}, but a string is needed")
    for key in kwargs:
        if not (key.startswith("__") and key.endswith("__")):
            raise AttrError(
                f"var: no argument is called '{key}'; attributes of your own are written __{key}__"
            )
    declared = {
        "__dtype__": dtype and TYPE_FLAGS.get(onp.dtype(dtype).name),
        "__init__": init.dumps() if hasattr(init, "dumps") else init,
        "__lr_mult__": lr_mult,
        "__shape__": shape and tuple(shape),
        "__storage_type__": None if stype is None else 0,
        "__wd_mult__": wd_mult,
        **kwargs,
    }
    info = AttrScope.current().get(as_text("var", attr or {})) | {
        key: str(v) for key, v in declared.items() if v is not None
    }
    shape, dtype = spec or (told_shape(shape), dtype)
    spec = Spec(shape, onp.dtype(dtype) if dtype else None)
    node = Node(None, name=name, specs=(spec,), info=info or None)
    if CURRENT.trace:
        CURRENT.trace.add(node)
    return Symbol([(node, 0)])


Variable = var


def constant(values, name="constant"):
    """Return a constant of the graph as a symbol."""
    node = Node(None, name=name, values=(values,), specs=(Spec(values.shape, values.dtype),))
    if CURRENT.trace:
        CURRENT.trace.add(node)
    return Symbol([(node, 0)])


def parameter(name, **declared):
    """Return the variable of a parameter, always the same within a trace."""
    params = CURRENT.trace.params if CURRENT.trace else {}
    if name not in params:
        params[name] = var(name, **declared)
    return params[name]


def Group(symbols):
    """Return one symbol with the outputs of several."""
    symbols = list(symbols)
    if not symbols or not all(isinstance(s, Symbol) for s in symbols):
        raise AttrError(f"Group: a list of symbols is needed, found {symbols!r}")
    return symbols[0] if len(symbols) == 1 else Symbol(r for s in symbols for r in s.refs)


def fromjson(text, source="the JSON text"):
    """Parse a symbol from JSON text.

    Raises:  FileError naming the invalid node and the reason.
    """
    return Symbol(refs_of_json(text, source))


load_json = fromjson


def load(fname):
    """Load a symbol from a JSON file."""
    return fromjson(read_whole(fname), fname)


random = Random(Symbol.interpret)
linalg = Part("_linalg_", Symbol, "sym.linalg")
contrib = Part("_contrib_", Symbol, "sym.contrib")
_internal = Part("", Symbol, "sym._internal")


__getattr__ = face(globals(), Symbol, "sym")


def __dir__():
    return public_names(globals(), *hooks.FACES["sym"])
