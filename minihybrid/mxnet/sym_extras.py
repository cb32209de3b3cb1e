"""Functions of MXNet's `sym` that aren't operators.

Defines: `sym.zeros`, `sym.arange`, ..., `sym.histogram`, registered in `hooks.FACES`;
         `composed`, which implements calls of symbols; and `inferred`, shape inference.

Not supported: sparse storage.
"""

from minihybrid.core import sym
from minihybrid.core.checked_call import signed
from minihybrid.core.convert import dtype_of
from minihybrid.core.graph import Graph, infer
from minihybrid.core.hooks import FACES
from minihybrid.core.name import NameManager
from minihybrid.core.op import AttrError, Spec, described, unknown_argument
from minihybrid.core.switches import is_np_shape, told_shape
from minihybrid.core.sym import Group, Symbol, replay
from minihybrid.ops import OPS


def _created(name, /, **attrs):
    op = OPS[name]
    attrs = {k: v for k, v in attrs.items() if v is not None}
    label = attrs.pop("name", None)
    return Symbol.interpret(op, [], op.normalize(attrs), label)


@signed
def zeros(shape, dtype=None, name=None, ctx=None, stype=None):
    """Return a symbol for an array of zeros."""
    return _created("_zeros", shape=shape, dtype=dtype, name=name)


@signed
def ones(shape, dtype=None, name=None, ctx=None, stype=None):
    """Return a symbol for an array of ones."""
    return _created("_ones", shape=shape, dtype=dtype, name=name)


@signed
def full(shape, val, dtype=None, name=None, ctx=None, stype=None):
    """Return a symbol for an array filled with a value."""
    return _created("_full", shape=shape, value=val, dtype=dtype, name=name)


@signed
def arange(start, stop=None, step=1.0, repeat=1, dtype=None, name=None):
    """Return a symbol for start, start + step, ... below stop."""
    return _created(
        "_arange", start=start, stop=stop, step=step, repeat=repeat, dtype=dtype, name=name
    )


@signed
def linspace(start, stop, num, endpoint=True, dtype=None, name=None):
    """Return a symbol for `num` evenly spaced values from start to stop."""
    return _created(
        "_linspace", start=start, stop=stop, num=num, endpoint=endpoint, dtype=dtype, name=name
    )


@signed
def eye(N, M=0, k=0, dtype=None, name=None, ctx=None, stype=None):
    """Return a symbol for an N x M array with ones on diagonal k."""
    return _created("_eye", N=N, M=M, k=k, dtype=dtype, name=name)


def histogram(a, bins=10, range=None, name=None):
    """Return symbols for the counts of elements per bin, and for the bin edges.

    bins:    a number of equal bins within `range`, or a symbol of edges.
    """
    if isinstance(bins, Symbol):
        return OPS["_histogram"](a, bins, name=name)
    return OPS["_histogram"](a, bin_cnt=bins, range=range, name=name)


FACES["sym"].update(
    symbol=sym,
    zeros=zeros,
    ones=ones,
    full=full,
    arange=arange,
    linspace=linspace,
    eye=eye,
    histogram=histogram,
)


def composed(symbol, args, name, kwargs):
    """Return the graph with other symbols substituted for its variables."""
    nodes = [n for part in symbol._variables() for n in part]
    names = list(dict.fromkeys(n.name for n in nodes))
    if len(args) > len(names):
        raise AttrError(
            f"compose: {len(args)} symbols are given, but there are {len(names)} "
            f"variables{': ' * bool(names)}{', '.join(names)}"
        )
    substitutes = dict(zip(names, args, strict=False)) | kwargs
    for key, value in substitutes.items():
        if key not in names:
            raise AttrError(
                f"compose: there is no variable {key}; there are {', '.join(names) or 'none'}"
            )
        if not isinstance(value, Symbol):
            raise AttrError(f"compose: {key} is {described(value)}, but a Symbol is needed")
    values = {n: substitutes.get(n.name, Symbol([(n, 0)])) for n in nodes}
    with NameManager():
        result = Group(replay(symbol.refs, values))
    if name and result.name and result.refs[0][0].op:
        result.refs[0][0].name = NameManager.current().get(name, None)
    return result


def inferred(symbol, who, args, kwargs):
    """Infer the specs of (arguments, outputs, states), as far as possible.

    who:     the caller: "infer_shape", with shapes as arguments, or "infer_type", with dtypes.
    Raises:  AttrError for an unknown or repeated argument.
    """
    spec_of = {"infer_shape": _of_shape, "infer_type": _of_dtype}[who]
    arguments, states = symbol._variables()
    names = [n.name for n in arguments]
    if len(args) > len(names):
        raise AttrError(
            f"{who}: {len(args)} values are given, but there are {len(names)} arguments: "
            f"{', '.join(names)}"
        )
    values, inputs = dict(zip(names, args, strict=False)) | kwargs, symbol.list_inputs()
    if unknown := sorted(values.keys() - set(inputs)):
        raise AttrError(unknown_argument(who, unknown, inputs))
    specs = infer(Graph.of(symbol), {k: spec_of(v) for k, v in values.items() if v is not None})
    return (
        [specs[n][0] for n in arguments],
        [specs[n][i] for n, i in symbol.refs],
        [specs[n][0] for n in states],
    )


def _of_shape(shape):
    if not isinstance(shape, (tuple, list)):
        raise AttrError(f"infer_shape: a shape is {described(shape)}, but a tuple is needed")
    is_known = len(shape) > 0 or is_np_shape()  # otherwise, () means an unknown shape
    return Spec(told_shape(shape) if is_known else None, None)


def _of_dtype(dtype):
    return Spec(None, dtype_of("infer_type", dtype))
