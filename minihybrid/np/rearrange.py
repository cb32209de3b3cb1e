"""The functions of `mx.np` for shapes, joining and selecting.

They are registered in the same table as those of `minihybrid.np.functions`.
Not supported: lists of symbols as indices.
"""

import numpy as onp

from minihybrid.core.op import AttrError, ShapeError, checked, integer, length
from minihybrid.np.functions import broadcast_to
from minihybrid.np.operands import BOOLS, beside, promote
from minihybrid.np.public import FUNCTIONS, kind_of, lengths, public, publish, row_major
from minihybrid.ops import OPS
from minihybrid.ops.infix import Value, is_number
from minihybrid.ops.np.names import fitting
from minihybrid.ops.np.shapes import at_least
from minihybrid.ops.shapes import axis_of


# -- shapes ----------------------------------------------------------------------------
def reshape(a, newshape, reverse=False, order="C"):
    """Return the same elements with another shape; one length may be -1.

    order:   "F" means column-major.
    """
    if reverse:
        raise AttrError("reshape: reverse=True belongs to npx.reshape; call that")
    op = OPS["_np_reshape"]
    if order != "F":
        return op(a, newshape=newshape, order="C" if order in ("A", "K") else order)
    newshape = newshape[::-1] if isinstance(newshape, (tuple, list)) else newshape
    return transpose(op(transpose(a), newshape=newshape))


def ravel(a, order="C"):
    """Flatten to one axis, in column-major order for order="F"."""
    return reshape(a, -1, order=order)


def transpose(a, axes=None):
    """Permute the axes, by default in reverse."""
    return OPS["_np_transpose"](a, axes=axes)


def swapaxes(a, axis1, axis2):
    """Exchange two axes."""
    return OPS["SwapAxis"](a, dim1=axis1, dim2=axis2)


def moveaxis(a, source, destination):
    """Move axes to other positions. The others keep their order."""
    return OPS["_np_moveaxis"](a, source=source, destination=destination)


def squeeze(a, axis=None):
    """Remove axes of length 1, by default all."""
    return OPS["_np_squeeze"](a, axis=axis)


def expand_dims(a, axis):
    """Insert an axis of length 1."""
    return OPS["expand_dims"](a, axis=axis)


def _at_least_of(n):
    def call(*arys):
        arys = _all_arrays(f"atleast_{n}d", arys)
        out = [reshape(a, at_least(n, lengths(a))) for a in arys]
        return out[0] if len(out) == 1 else out

    public(call, f"atleast_{n}d", f"Copies of the arrays with at least {n} axes.")


for _n in (1, 2, 3):
    _at_least_of(_n)


# -- joining and splitting -------------------------------------------------------------
def _all_arrays(owner, seq):
    """Return the arrays of a sequence, with NumPy arrays converted to ours.

    Raises:  AttrError for other objects.
    """
    if isinstance(seq, Value):
        seq = list(seq)
    if seq and all([isinstance(v, Value) for v in seq]):
        return seq
    if not isinstance(seq, (list, tuple)):
        raise AttrError(f"{owner}: a list or a tuple of arrays is needed, found {seq!r:.60}")
    like = next((v for v in seq if isinstance(v, Value)), None)
    if like is None:
        raise AttrError(f"{owner}: {seq!r:.60} has no np.ndarray; make them by np.array(...)")
    return [v if isinstance(v, Value) else like.convert(v, owner) for v in seq]


def concatenate(seq, axis=0):
    """Concatenate arrays along an axis. `None` flattens them first."""
    return OPS["_npi_concatenate"](*_all_arrays("concatenate", seq), axis=axis)


def append(arr, values, axis=None):
    """Append the second array to the first."""
    return OPS["_npi_concatenate"](*_all_arrays("append", (arr, values)), axis=axis)


def stack(arrays, axis=0):
    """Join arrays along a new axis."""
    return OPS["_npi_stack"](*_all_arrays("stack", arrays), axis=axis)


def _stacking(name, doc):
    def call(arrays):
        return OPS[f"_npi_{name}"](*_all_arrays(name, arrays))

    public(call, name, doc)


for _name in ("vstack", "hstack", "dstack", "column_stack"):
    _stacking(_name, OPS[f"_npi_{_name}"].doc)


def _parts(name, ary, indices_or_sections, axis, equal):
    """Split an axis into a number of parts, or at the given indices."""
    axis = axis_of(name, axis, len(lengths(ary)))
    n = lengths(ary)[axis]
    if isinstance(indices_or_sections, int):
        parts = checked(name, "indices_or_sections", indices_or_sections, integer)
        if parts < 1 or equal and n % parts:
            raise ShapeError(
                f"{name}: an axis of length {n} does not divide into {parts} "
                "equal parts; array_split makes unequal ones"
            )
        ends = [i * (n // parts) + min(i, n % parts) for i in range(1, parts)]
    else:
        ends = [slice(0, i).indices(n)[1] for i in indices_or_sections]
    cuts = zip([0, *ends], [*ends, n], strict=True)
    return [OPS["slice_axis"](ary, axis=axis, begin=a, end=max(a, b)) for a, b in cuts]


def split(ary, indices_or_sections, axis=0):
    """Split into equal parts, or at the given indices."""
    return _parts("split", ary, indices_or_sections, axis, True)


def array_split(ary, indices_or_sections, axis=0):
    """Like split, but the first parts may be longer by one."""
    return _parts("array_split", ary, indices_or_sections, axis, False)


def vsplit(ary, indices_or_sections):
    """Split along the first axis."""
    return split(ary, indices_or_sections, 0)


def hsplit(ary, indices_or_sections):
    """Split along the second axis, or a vector along its only axis."""
    return split(ary, indices_or_sections, min(len(lengths(ary)) - 1, 1))


# -- selecting -------------------------------------------------------------------------
def where(condition, x=None, y=None):
    """Select x where the condition isn't 0, else y. Each may be a scalar.

    Two scalars give float32, as everywhere in `mx.np`. True and False give bool. With the
    condition alone, return the indices of its nonzero elements, like `nonzero`.
    """
    if (x is None) != (y is None):
        raise AttrError("where: only one of x and y is given, but both are needed, or neither")
    if x is None:
        return FUNCTIONS["nonzero"](condition)
    like = next((v for v in (x, y, condition) if isinstance(v, Value)), None)
    if like is None:
        return onp.where(condition, x, y)
    if not isinstance(condition, Value):
        one = is_number(condition)
        condition = (
            full_like(like, bool(condition), "bool") if one else like.convert(condition, "where")
        )
    x, y = (v if isinstance(v, Value) or is_number(v) else like.convert(v, "where") for v in (x, y))
    like = next((v for v in (x, y) if isinstance(v, Value)), None)
    if like is None:
        kind = "bool" if isinstance(x, BOOLS) and isinstance(y, BOOLS) else "float32"
        x, y = (full_like(condition, v, kind) for v in (x, y))
    x, y = (v if isinstance(v, Value) else beside(like, v, "where") for v in (x, y))
    return OPS["_npi_where"](condition, x, y)


def clip(a, a_min=None, a_max=None):
    """Clip a to [a_min, a_max]. `None` means no limit.

    Integers with float limits become float32.
    """
    bounds = [v for v in (a_min, a_max) if is_number(v) and not isinstance(v, Value)]
    a = promote(a, *bounds)
    if (kind := kind_of(a)) is not None:  # in uint8, a_min=300 and a_max=-1 don't fit
        for number, is_out in ((a_min, onp.greater), (a_max, onp.less)):
            if is_number(number) and is_out(number, 0):
                fitting("clip", number, kind)
    low = -onp.inf if a_min is None else a_min
    return OPS["clip"](a, a_min=low, a_max=onp.inf if a_max is None else a_max)


def zeros_like(a, dtype=None, order="C", ctx=None):
    """Return zeros with the shape of a."""
    return full_like(a, 0, dtype, order, ctx)


def ones_like(a, dtype=None, order="C", ctx=None):
    """Return ones with the shape of a."""
    return full_like(a, 1, dtype, order, ctx)


def full_like(a, fill_value=0, dtype=None, order="C", ctx=None):
    """Return a constant with the shape of a and, by default, its dtype."""
    row_major("full_like", order)
    out = OPS["_npi_full_like"](a, fill_value=fill_value, dtype=dtype)
    return out if ctx is None or a.level else out.as_in_context(ctx)


def copy(a, order="C"):
    """Return a copy."""
    row_major("copy", order)
    return OPS["_np_copy"](a)


def shape(a):
    """Return the length of each axis."""
    return a.shape


def ndim(a):
    """Return the number of axes."""
    return a.ndim


def size(a):
    """Return the number of elements."""
    return a.size


# -- indexing and sorting --------------------------------------------------------------
def take(a, indices, axis=None, mode="raise"):
    """Select elements at indices along an axis, by default of the flattened array."""
    if not isinstance(indices, Value):
        indices = a.convert(indices, "take")
    if axis is None:
        a, axis = OPS["_np_reshape"](a, newshape=(-1,)), 0
    return OPS["take"](a, indices, axis=axis, mode=mode)


def _sorting(name, kind, order):
    """Reject unsupported arguments of NumPy's sorting. All kinds have the same result."""
    if kind not in (None, "quicksort", "mergesort", "heapsort", "stable"):
        raise AttrError(f"{name}: kind={kind!r}; there are quicksort, mergesort, heapsort, stable")
    if order is not None:
        raise AttrError(f"{name}: order={order!r} names fields, which these arrays do not have")


def sort(a, axis=-1, kind=None, order=None):
    """Sort along an axis. `axis=None` flattens first."""
    _sorting("sort", kind, order)
    return OPS["sort"](a, axis=axis)


def argsort(a, axis=-1, kind=None, order=None):
    """Return the indices that would sort along an axis, int64."""
    _sorting("argsort", kind, order)
    return OPS["argsort"](a, axis=axis, dtype="int64")


def flip(m, axis=None):
    """Reverse axes, by default all."""
    return OPS["_npi_flip"](m, axis=axis)


def flipud(m):
    """Reverse the first axis."""
    return flip(m, 0)


def fliplr(m):
    """Reverse the second axis."""
    return flip(m, 1)


def roll(a, shift, axis=None):
    """Shift the elements cyclically by `shift`."""
    return OPS["_np_roll"](a, shift=shift, axis=axis)


def repeat(a, repeats, axis=None):
    """Repeat each element along an axis, by default of the flattened array."""
    return OPS["repeat"](a, repeats=repeats, axis=axis)


def tile(A, reps):
    """Tile the array along each axis."""
    return OPS["tile"](A, reps=reps)


def diag(v, k=0):
    """Return the diagonal k of a matrix, or a matrix with a vector on its diagonal k."""
    return OPS["_np_diag"](v, k=k)


def diagonal(a, offset=0, axis1=0, axis2=1):
    """Return the diagonal over two axes, as the last axis."""
    return OPS["_np_diagonal"](a, offset=offset, axis1=axis1, axis2=axis2)


def trace(a, offset=0, axis1=0, axis2=1):
    """Return the sum of a diagonal."""
    return FUNCTIONS["sum"](diagonal(a, offset, axis1, axis2), axis=-1)


def tril(m, k=0):
    """Return the lower triangle, with zeros elsewhere."""
    return OPS["_npi_tril"](m, k=k)


def triu(m, k=0):
    """Return the upper triangle, with zeros elsewhere."""
    return swapaxes(tril(swapaxes(m, -1, -2), -k), -1, -2)  # MXNet's files have only tril


def pad(x, pad_width, mode="constant", constant_values=0):
    """Pad the ends of axes with a constant, the edge or a reflection."""
    n = len(lengths(x))
    if isinstance(pad_width, int):
        pad_width = ((pad_width, pad_width),) * n
    elif isinstance(pad_width[0], int):
        pad_width = (tuple(pad_width),) * n
    pad_width = pad_width * n if len(pad_width) == 1 else pad_width
    return OPS["_npi_pad"](x, pad_width=pad_width, mode=mode, constant_value=constant_values)


def meshgrid(*xi, indexing="xy"):
    """Return the coordinate arrays of a grid, one per vector, all of the same shape."""
    n = len(xi)
    if n < 2:
        return list(xi)
    order = [1, 0, *range(2, n)] if indexing == "xy" else list(range(n))
    sizes = [lengths(x)[0] for x in xi]
    shape = tuple(sizes[i] for i in order)
    stood = [x.reshape(*(-1 if order[k] == i else 1 for k in range(n))) for i, x in enumerate(xi)]
    return [broadcast_to(x, shape) for x in stood]


def diff(a, n=1, axis=-1):
    """Return the n-th difference of adjacent elements."""
    n = checked("np.diff", "n", n, length)
    for _ in range(n):
        before = OPS["slice_axis"](a, axis=axis, begin=0, end=-1)
        a = OPS["slice_axis"](a, axis=axis, begin=1, end=None) - before
        if a.level == 0 and not a.shape[axis]:
            break  # as all further differences
    return a if n else OPS["_np_copy"](a)


publish(globals())
