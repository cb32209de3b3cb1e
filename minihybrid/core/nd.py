"""Chapter 11. `nd`: functions that create arrays, and one function per operator.

Defines: `array`, `zeros`, `arange`, ..., `random`, and the functions of all operators;
         `save` and `load`; later modules add names through `hooks.FACES`.

Not supported: sparse storage.
"""

import numpy as onp  # `nd.np` is our own

from minihybrid.core.array import NDArray, dense, is_followed, refuse_followed
from minihybrid.core.checked_call import signed
from minihybrid.core.context import check_context
from minihybrid.core.convert import to_numpy
from minihybrid.core.files import write_whole
from minihybrid.core.hooks import FACES
from minihybrid.core.op import unfit
from minihybrid.core.params import pack_arrays, read_arrays, unpack_arrays
from minihybrid.core.placement import DEVICES, copy_to, new_array
from minihybrid.core.switches import is_np_shape
from minihybrid.ops.distributions import Random
from minihybrid.ops.infix import Part, face, public_names, put
from minihybrid.ops.registry import OPS

FLOAT = onp.dtype("float32")


# -- creating arrays -------------------------------------------------------------------
@signed
def array(source_array, ctx=None, dtype=None):
    """Create an array of given elements; float32 unless the source has a dtype.

    A copy of an array on the tape is on the tape; a copy of a symbol is a symbol.
    Shapes:  that of the source; a scalar becomes (1,).
    Raises:  AttrError for a list of arrays on the tape, which would lose their gradient.

    >>> array([[1, 2, 3]]).shape
    (1, 3)
    """
    context = check_context(ctx)
    if is_followed(source_array):
        out = source_array.as_nd_ndarray().copy()
        out = out if dtype is None else out.astype(dtype)
        return out if ctx is None or out.level else out.as_in_context(context)
    refuse_followed("nd.array", source_array)
    if dtype is None:
        dtype = source_array.dtype if isinstance(source_array, NDArray) else FLOAT
    if isinstance(source_array, NDArray):
        source_array = source_array.data
    elif (
        isinstance(source_array, (list, tuple))
        and source_array
        and all(isinstance(v, NDArray) for v in source_array)
    ):
        source_array = [onp.asarray(v.data) for v in source_array]
    source = to_numpy("nd.array", source_array, dtype)
    return NDArray(copy_to(source.reshape(source.shape or (1,)), context))


@signed
def empty(shape, ctx=None, dtype="float32"):
    """Create an uninitialized array."""
    attrs = OPS["_zeros"].normalize({"shape": shape, "dtype": FLOAT if dtype is None else dtype})
    OPS["_zeros"].specs_of((), attrs)  # raises for an invalid shape
    return NDArray(new_array(attrs["shape"], attrs["dtype"], check_context(ctx)))


def _created(op, ctx, stype=None, **attrs):
    dense(stype)
    with check_context(ctx):
        return NDArray.interpret(OPS[op], [], OPS[op].normalize(attrs))


@signed
def zeros(shape, ctx=None, dtype="float32", stype=None, out=None):
    """Create an array of zeros."""
    result = _created("_zeros", ctx, stype, shape=shape, dtype=dtype)
    return put("nd.zeros", result, out)


@signed
def ones(shape, ctx=None, dtype="float32", stype=None, out=None):
    """Create an array of ones."""
    result = _created("_ones", ctx, stype, shape=shape, dtype=dtype)
    return put("nd.ones", result, out)


@signed
def full(shape, val, ctx=None, dtype="float32", out=None):
    """Create an array filled with one value."""
    result = _created("_full", ctx, shape=shape, value=val, dtype=dtype)
    return put("nd.full", result, out)


@signed
def arange(start, stop=None, step=1.0, repeat=1, ctx=None, dtype="float32"):
    """Create the array start, start + step, ... below stop; a single argument is the stop."""
    return _created("_arange", ctx, start=start, stop=stop, step=step, repeat=repeat, dtype=dtype)


@signed
def linspace(start, stop, num, endpoint=True, ctx=None, dtype="float32"):
    """Create an array of `num` evenly spaced values from start to stop."""
    return _created(
        "_linspace", ctx, start=start, stop=stop, num=num, endpoint=endpoint, dtype=dtype
    )


@signed
def eye(N, M=0, k=0, ctx=None, dtype="float32"):
    """Create an N x M array (N x N for M=0) with ones on the diagonal k.

    >>> eye(2, 3, 1).asnumpy().tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    return _created("_eye", ctx, N=N, M=M, k=k, dtype=FLOAT if dtype is None else dtype)


# -- files ----------------------------------------------------------------------------
@signed
def save(fname, data):
    """Save an array, a list of arrays, or a dict of names and arrays to a file."""
    write_whole(fname, _packed(data))


def _packed(data):
    """Return the bytes that `save` writes."""
    data = [data] if isinstance(data, NDArray) else data
    names, arrays = ([*data], [*data.values()]) if isinstance(data, dict) else ((), data)
    if not (isinstance(arrays, (list, tuple)) and all(isinstance(a, NDArray) for a in arrays)):
        raise unfit("save", "", data, "an NDArray, or a list or dict of NDArrays is needed")
    return pack_arrays([onp.asarray(a.data) for a in arrays], names)


@signed
def load(fname):
    """Load the arrays of a file: a dict if they have names, else a list."""
    return _wrapped(*read_arrays(fname))


def load_frombuffer(buf, source="the buffer"):
    """Load the arrays from a file's bytes: a dict if they have names, else a list."""
    if not isinstance(buf, (bytes, bytearray, memoryview)):
        raise unfit("load_frombuffer", "", buf, "the bytes of a file are needed")
    return _wrapped(*unpack_arrays(bytes(buf), source))


def _wrapped(arrays, names):
    context = check_context(None)
    wrapped = [NDArray(copy_to(a if is_np_shape() else onp.atleast_1d(a), context)) for a in arrays]
    return dict(zip(names, wrapped, strict=True)) if names else wrapped


def waitall():
    """Block until all devices have finished; the CPU always has."""
    for device in DEVICES.values():
        device.synchronize()


random = Random(NDArray.interpret)
linalg = Part("_linalg_", NDArray, "nd.linalg")
contrib = Part("_contrib_", NDArray, "nd.contrib")
_internal = Part("", NDArray, "nd._internal")


__getattr__ = face(globals(), NDArray, "nd")


def __dir__():
    return public_names(globals(), "NDArray", *FACES["nd"])
