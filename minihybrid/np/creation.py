"""The functions of `mx.np` that create arrays.

Defines: `Creation` and `Random`: for arrays, and for symbols as `F.np` in a trace.

The default dtype is float32, even for lists of integers. A NumPy array keeps its dtype.
Not supported: distributions that Gluon's tutorials don't use.
"""

from functools import partial

import numpy as onp

from minihybrid.core.array import NDArray, is_followed, refuse_followed
from minihybrid.core.context import CPU, check_context
from minihybrid.core.convert import dtype_of, to_numpy
from minihybrid.core.op import AttrError, HybridError, ShapeError
from minihybrid.core.placement import copy_to
from minihybrid.core.tracing import is_direct
from minihybrid.np.array import _Symbol, ndarray
from minihybrid.np.operands import BOOLS
from minihybrid.np.public import FUNCTIONS, guarded, lengths, on_tape, opened, row_major
from minihybrid.ops import OPS
from minihybrid.ops.infix import Unknown, Value, is_number, put
from minihybrid.ops.np.names import filling
from minihybrid.ops.random import seed

FLOAT = onp.dtype("float32")


def reader():
    """Return the interpreter of operators without inputs: symbols while `forward` is traced."""
    return _Symbol if is_direct() else ndarray


def array(object, dtype=None, ctx=None):
    """Create an array of the given elements, float32 unless the source has a dtype.

    While a `forward` is traced, it's a constant of the graph.

    >>> array([1, 2])
    array([1., 2.])
    """
    context = check_context(ctx)
    if is_followed(object):
        out = OPS["_np_copy"](object.as_np_ndarray())  # differentiable
        out = out if dtype is None else out.astype(dtype)
        return out if ctx is None or out.level else out.as_in_context(context)
    refuse_followed("np.array", object)
    if isinstance(object, NDArray):
        object = onp.asarray(object.data)
    elif isinstance(object, (list, tuple)):
        object = opened(object)
    kind = getattr(object, "dtype", FLOAT)
    default = kind if onp.dtype(kind).kind in "biufV" else FLOAT
    values = to_numpy("np.array", object, default if dtype is None else dtype)
    values = onp.asarray(values, order="C")
    return _Symbol.constant(values.copy()) if is_direct() else ndarray(copy_to(values, context))


class Creation:
    """`zeros`, `ones`, `arange`, ... `reader()` decides what they create."""

    def __init__(self, reader):
        self._reader = reader

    def _make(self, op, ctx, **attrs):
        attrs = {k: v for k, v in attrs.items() if v is not None}
        with check_context(ctx):
            return self._reader().interpret(OPS[op], [], OPS[op].normalize(attrs))

    def zeros(self, shape, dtype=None, order="C", ctx=None):
        """Return zeros."""
        row_major("zeros", order)
        return self._make("_npi_zeros", ctx, shape=shape, dtype=dtype)

    def empty(self, shape, dtype=None, order="C", ctx=None):
        """Return zeros, for an array that will be overwritten."""
        return self.zeros(shape, dtype, order, ctx)

    def ones(self, shape, dtype=None, order="C", ctx=None):
        """Return ones."""
        row_major("ones", order)
        return self._make("_npi_ones", ctx, shape=shape, dtype=dtype)

    def full(self, shape, fill_value, dtype=None, order="C", ctx=None, out=None):
        """Return an array filled with one value."""
        row_major("full", order)
        if isinstance(fill_value, BOOLS) and dtype is None:
            dtype = bool
        if is_number(fill_value):
            filling("full", fill_value, dtype_of("np.full", dtype))
        result = self._make("_full", ctx, shape=shape, value=fill_value, dtype=dtype)
        return put("np.full", result, out)

    def arange(self, start, stop=None, step=1, dtype=None, ctx=None):
        """Return start, start + step, ... below stop. A single argument is the stop."""
        return self._make("_npi_arange", ctx, start=start, stop=stop, step=step, dtype=dtype)

    def indices(self, dimensions, dtype="int32", ctx=None):
        """Return the coordinates of all positions of a shape, one array per axis."""
        return self._converted(onp.indices(dimensions), dtype, ctx)

    def linspace(
        self, start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, ctx=None
    ):
        """Return `num` evenly spaced values from start to stop."""
        _only_axis("linspace", axis)
        samples = self._make(
            "_linspace", ctx, start=start, stop=stop, num=num, endpoint=endpoint, dtype=dtype
        )
        step = onp.linspace(start, stop, num, endpoint, True)[1]
        return (samples, step) if retstep else samples

    def logspace(self, start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0, ctx=None):
        """Return `num` powers of a base with evenly spaced exponents."""
        _only_axis("logspace", axis)
        return self._converted(onp.logspace(start, stop, num, endpoint, base), dtype, ctx)

    def eye(self, N, M=None, k=0, dtype=None, ctx=None):
        """Return ones on a diagonal, zeros elsewhere."""
        return self._make("_npi_eye", ctx, N=N, M=M, k=k, dtype=dtype)

    def identity(self, n, dtype=None, ctx=None):
        """Return the identity matrix."""
        return self._make("_npi_identity", ctx, shape=(n, n), dtype=dtype)

    def _converted(self, values, dtype, ctx):
        """Convert NumPy data to an array or to a constant of the graph."""
        context, reader = check_context(ctx), self._reader()
        data = onp.asarray(values, dtype or FLOAT, order="C")
        return reader.constant(data) if reader is _Symbol else ndarray(copy_to(data, context))


def _only_axis(name, axis):
    """Reject any axis except 0."""
    if axis not in (0, -1):
        raise AttrError(f"{name}: axis={axis}; between two numbers there is axis 0 only")


class Random:
    """The functions of `np.random`. Parameters may be arrays, which broadcast.

    Draws are differentiable with respect to location and scale, as in MXNet: a sample is the
    location plus the scale times a standard sample (reparameterization).
    """

    seed = staticmethod(seed)

    def __init__(self, reader):
        self._reader = reader

    def __getattr__(self, name):
        raise AttributeError(Unknown(name, "np.random", vars(Random)))

    def _draw(self, op, size, dtype, ctx, out, **attrs):
        size = out.shape if out is not None else () if size is None else size
        attrs["size" if "size" in OPS[op].attrs else "shape"] = size
        if dtype is not None:
            attrs["dtype"] = dtype
        with check_context(ctx):
            result = self._reader().interpret(OPS[op], [], OPS[op].normalize(attrs))
        return put(op.rpartition("_")[2], result, out)

    def _size(self, name, size, *params):
        """Return the shape of a draw with array parameters, or `None` if all are scalars.

        Raises:  ShapeError for a size that they don't broadcast to.
        """
        if not any(isinstance(p, Value) for p in params):
            return None
        shapes = [lengths(p) if isinstance(p, Value) else onp.shape(p) for p in params]
        size = () if size is None else (size,) if isinstance(size, int) else tuple(size)
        try:
            shape = onp.broadcast_shapes(*shapes)
            fits = not size or onp.broadcast_shapes(size, shape) == size
        except ValueError:
            fits = False
        if not fits:
            raise ShapeError(
                f"{name}: parameters of shapes {' and '.join(map(str, shapes))} don't broadcast "
                f"to size={size or None}"
            )
        return size or shape

    def _spread(self, name, draw, place, scale, size, dtype, ctx, out):
        """Return location plus scale times standard samples; both are arrays."""
        size = out.shape if out is not None else size
        arrays = [p for p in (place, scale) if isinstance(p, Value)]
        ctx = arrays[0].context if ctx is None and not arrays[0].level else ctx
        draws = place + scale * draw(size=size, dtype=dtype, ctx=ctx)
        draws = draws if dtype is None else draws.astype(dtype)
        return put(name, draws, out)

    def uniform(self, low=0.0, high=1.0, size=None, dtype=None, ctx=None, out=None):
        """Draw from the uniform distribution over [low, high)."""
        if (shape := self._size("uniform", size, low, high)) is not None:
            return self._spread("uniform", self.uniform, low, high - low, shape, dtype, ctx, out)
        return self._draw("_npi_uniform", size, dtype, ctx, out, low=low, high=high)

    def normal(self, loc=0.0, scale=1.0, size=None, dtype=None, ctx=None, out=None):
        """Draw from the normal distribution."""
        if (shape := self._size("normal", size, loc, scale)) is not None:
            return self._spread("normal", self.normal, loc, scale, shape, dtype, ctx, out)
        return self._draw("_npi_normal", size, dtype, ctx, out, loc=loc, scale=scale)

    def rand(self, *size, dtype=None, ctx=None):
        """Draw uniformly from [0, 1); the lengths are separate arguments."""
        return self.uniform(0.0, 1.0, size, dtype, ctx)

    def randn(self, *size, dtype=None, ctx=None):
        """Draw from the standard normal; the lengths are separate arguments."""
        return self.normal(0.0, 1.0, size, dtype, ctx)

    def randint(self, low, high=None, size=None, dtype="int64", ctx=None, out=None):
        """Draw integers uniformly from [low, high), or from [0, low)."""
        low, high = (0, low) if high is None else (low, high)
        return self._draw("_random_randint", size, dtype, ctx, out, low=low, high=high)

    def choice(self, a, size=None, replace=True, p=None, ctx=None, out=None):
        """Draw elements of an array, or of 0 to a - 1, with probabilities `p`.

        Raises:  ShapeError if there aren't enough elements to draw without replacement.
        """
        if self._reader() is _Symbol:
            raise HybridError(
                "np.random.choice inside a hybridized block: it draws once, now, not in every "
                "call; draw outside and pass the array in, or use uniform or normal"
            )
        n = a if isinstance(a, int) else len(a)
        if p is not None and len(p) != n:
            raise ShapeError(f"choice: {len(p)} probabilities are given for {n} elements")
        shape = () if size is None else (size,) if isinstance(size, int) else size
        count = int(onp.prod(shape, dtype=int))
        if not replace and count > n:
            raise ShapeError(
                f"random.choice: {count} different elements of {n} are requested; use replace=True"
            )
        if replace:
            weights = onp.ones(n) / n if p is None else onp.asarray(p, float)
            draws = Random(lambda: ndarray).uniform(size=count, dtype="float64", ctx=CPU).data
            places = onp.searchsorted(onp.cumsum(weights) / onp.sum(weights), draws, side="right")
        else:  # the smallest of independent exponential variables with rates p
            draws = Random(lambda: ndarray).uniform(size=n, dtype="float64", ctx=CPU).data
            rates = onp.ones(n) if p is None else onp.asarray(p, float)
            with onp.errstate(divide="ignore"):
                places = onp.argsort(-onp.log1p(-draws) / rates)[:count]
        context = a.context if isinstance(a, NDArray) else check_context(ctx)
        result = ndarray(copy_to(places.astype(onp.int64).reshape(shape), context))
        result = result if isinstance(a, int) else a[result]
        return result if out is None else out.copy_from(result)

    def permutation(self, x):
        """Return a random permutation of an array's rows, or of 0 to x - 1."""
        n = x if isinstance(x, int) else len(x)
        order = self.choice(n, size=n, replace=False)
        return order if isinstance(x, int) else x[order]

    def shuffle(self, x):
        """Shuffle the rows of an array in place."""
        x[:] = self.permutation(x)

    def multinomial(self, n, pvals, size=None):
        """Return the count of each outcome in n draws with probabilities `pvals`."""
        weights = onp.asarray(pvals, float)
        shape = () if size is None else (size,) if isinstance(size, int) else size
        draws = self.choice(len(weights), size=(*shape, n), p=weights, ctx=CPU).data
        counts = (draws[..., None] == onp.arange(len(weights))).sum(-2)
        counts = onp.asarray(counts, onp.int64, order="C")
        return ndarray(copy_to(counts, check_context(None)))

    def gamma(self, shape, scale=1.0, size=None, dtype=None, ctx=None, out=None):
        """Draw from the gamma distribution.

        Raises:  HybridError if the shape is a symbol or on the tape, because it has no gradient.
        """
        if (size_ := self._size("gamma", size, shape, scale)) is not None:
            return self._gammas(shape, scale, size_, dtype, ctx, out)
        return self._draw("_random_gamma", size, dtype, ctx, out, alpha=shape, beta=scale)

    def exponential(self, scale=1.0, size=None, ctx=None, out=None):
        """Draw from the exponential distribution with mean `scale`."""
        if (shape := self._size("exponential", size, scale)) is not None:
            return self._spread("exponential", self.exponential, 0, scale, shape, None, ctx, out)
        return self._draw("_random_exponential", size, None, ctx, out, lam=1 / scale)

    def _gammas(self, shape, scale, size, dtype, ctx, out):
        if not isinstance(shape, Value):
            return self._spread(
                "gamma", partial(self.gamma, shape), 0, scale, size, dtype, ctx, out
            )
        if shape.level or on_tape(shape):
            raise HybridError(
                "gamma: an array of shapes has no gradient, so it can't be traced or on the "
                "tape; detach() it, and draw outside of hybridized blocks"
            )
        shapes = FUNCTIONS["broadcast_to"](shape, size)
        draws = OPS["_draw_gamma"](shapes, FUNCTIONS["ones_like"](shapes), dtype=dtype or FLOAT)
        return put("gamma", draws * scale, out)


def _guard_all(kind, prefix):
    """Make a class's functions start their errors with the namespace."""
    for name, function in list(vars(kind).items()):
        if not name.startswith("_"):
            is_method = not isinstance(function, staticmethod)
            wrapped = guarded(f"{prefix}.{name}", function, is_method)
            setattr(kind, name, wrapped if is_method else staticmethod(wrapped))


array = guarded("np.array", array)
_guard_all(Creation, "np")
_guard_all(Random, "np.random")
