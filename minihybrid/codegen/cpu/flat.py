"""Chapter 17. Flat arrays in kernels: a typed pointer.

Defines: `kernel`, the decorator of generated kernels; `Flat`, the Numba type of such an
         array, with `a[i]`, `a[i] = x` and `a[i:]`.

Numba passes a NumPy array with shape and strides, and checks each index for being
negative. Generated code has known lengths and no negative indices, so a pointer is enough:
kernels compile in half the time and are called with plain integers.
Limits: indices aren't checked.
"""

import operator

from numba import njit, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_model

from minihybrid.codegen.cpu.scalar import OPTIONS


def kernel(*arguments):
    """Decorate a kernel `def k(a0, out): ...` with the types of its arguments.

    Called from Python, it takes one-dimensional NumPy arrays and is compiled by Numba; a
    plan compiles it for addresses.

    >>> from numba import float32
    >>> @kernel(float32[::1], float32[::1])
    ... def double(a0, out):
    ...     for i in range(3):
    ...         out[i] = a0[i] + a0[i]
    >>> import numpy as np
    >>> out = np.empty(3, np.float32)
    >>> double(np.arange(3, dtype=np.float32), out)
    >>> out.tolist()
    [0.0, 2.0, 4.0]
    """

    def mark(function):
        compiled = njit(**OPTIONS)(function)
        compiled.arguments = arguments
        return compiled

    return mark


class Flat(types.Type):
    """The Numba type of a pointer to contiguous elements."""

    def __init__(self, dtype):
        self.dtype = dtype
        super().__init__(name=f"Flat({dtype})")


@register_model(Flat)
class _FlatModel(models.PrimitiveModel):
    def __init__(self, manager, flat):
        number = manager.lookup(flat.dtype).get_data_type()
        super().__init__(manager, flat, number.as_pointer())


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):
    def generic(self, args, kws):
        array, index = args
        if isinstance(array, Flat) and isinstance(index, types.Integer):
            return signature(array.dtype, array, types.intp)
        if isinstance(array, Flat) and isinstance(index, types.SliceType):
            return signature(array, array, index)
        return None


@infer_global(operator.setitem)
class _SetItem(AbstractTemplate):
    def generic(self, args, kws):
        array, index, _ = args
        if isinstance(array, Flat) and isinstance(index, types.Integer):
            return signature(types.void, array, types.intp, array.dtype)
        return None


@lower_builtin(operator.getitem, Flat, types.Integer)
def _get_item(context, builder, signature, args):
    where = builder.gep(args[0], [args[1]], inbounds=True)
    return context.unpack_value(builder, signature.args[0].dtype, where)


@lower_builtin(operator.getitem, Flat, types.SliceType)
def _get_rest(context, builder, signature, args):
    part = context.make_helper(builder, signature.args[1], args[1])
    return builder.gep(args[0], [part.start], inbounds=True)


@lower_builtin(operator.setitem, Flat, types.Integer, types.Any)
def _set_item(context, builder, signature, args):
    where = builder.gep(args[0], [args[1]], inbounds=True)
    context.pack_value(builder, signature.args[0].dtype, args[2], where)
    return context.get_dummy_value()
