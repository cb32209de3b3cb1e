"""Chapter 10. Several numbers in one register, for the loops that decide the speed.

Takes:   flat arrays and places in them.
Gives:   Numba functions over vectors: `load`, `store`, `splat`, `fma`, `total`,
         `transpose`.

The compiler turns a simple loop into vector instructions by itself. A product of
matrices wants more: some twenty sums that stay in registers while one loop feeds them
all. Written with these functions, the text says which.
What is left out: masks; lengths are rounded up where vectors are used.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from minihybrid.codegen.flat import Flat
from minihybrid.machine import width


class Vector(types.Type):
    """The Numba type of one register full of numbers."""

    def __init__(self, dtype):
        self.dtype, self.lanes = dtype, width(dtype.bitwidth // 8)
        super().__init__(name=f"Vector({dtype} x {self.lanes})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, vector):
        number = manager.lookup(vector.dtype).get_value_type()
        super().__init__(manager, vector, ir.VectorType(number, vector.lanes))


def _lanes(numbers):
    """A constant that tells a shuffle which numbers to take."""
    return ir.Constant(ir.VectorType(ir.IntType(32), len(numbers)), numbers)


def _place(context, builder, array_type, array, index, kind):
    """Where a vector lies in an array; kernels get addresses, Python arrays."""
    data = array if isinstance(array_type, Flat) else \
        context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), kind.as_pointer())


def _splat(builder, number, kind):
    nothing = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, nothing, _lanes([0] * kind.count))


@intrinsic
def load(typing, array, index):
    """The numbers of an array from an index on."""
    vector = Vector(array.dtype)

    def codegen(context, builder, signature, args):
        kind = context.get_value_type(vector)
        place = _place(context, builder, array, *args, kind)
        return builder.load(place, align=array.dtype.bitwidth // 8)
    return vector(array, types.intp), codegen


@intrinsic
def store(typing, array, index, vector):
    """Write a vector's numbers into an array from an index on."""
    def codegen(context, builder, signature, args):
        place = _place(context, builder, array, *args[:2], args[2].type)
        builder.store(args[2], place, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()
    return types.void(array, types.intp, vector), codegen


@intrinsic
def splat(typing, number):
    """One number in every place of a vector."""
    vector = Vector(number)

    def codegen(context, builder, signature, args):
        return _splat(builder, args[0], context.get_value_type(vector))
    return vector(number), codegen


@intrinsic
def fma(typing, a, b, c):
    """a * b + c, in one instruction where the machine has it."""
    def codegen(context, builder, signature, args):
        kind = args[2].type
        if isinstance(a.dtype, types.Integer):
            return builder.add(builder.mul(*args[:2]), args[2])
        name = f"llvm.fmuladd.v{a.lanes}f{a.dtype.bitwidth}"
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(kind, [kind] * 3), name)
        return builder.call(function, args)
    return c(a, b, c), codegen


@intrinsic
def total(typing, a):
    """The sum of a vector's numbers: halves are added until one number is left."""
    def codegen(context, builder, signature, args):
        add = builder.add if isinstance(a.dtype, types.Integer) else builder.fadd
        rest, n = args[0], a.lanes
        while n > 1:
            n //= 2
            halves = [builder.shuffle_vector(rest, rest, _lanes([*range(i, i + n)]))
                      for i in (0, n)]
            rest = add(*halves)
        return builder.extract_element(rest, ir.Constant(ir.IntType(32), 0))
    return a.dtype(a), codegen


@intrinsic
def transpose(typing, source, start, step, target, place, stride):
    """Columns become rows: a square block, as high and wide as a vector is long.

    start, step:    where the block's rows lie in the source.
    place, stride:  where its columns go to in the target.

    Each round riffles the first half of the rows with the second, as one does cards;
    after log2(lanes) rounds all rows are columns.
    """
    vector = Vector(source.dtype)

    def codegen(context, builder, signature, args):
        n, kind = vector.lanes, context.get_value_type(vector)
        from_, at, step, to, put, stride = args
        align = source.dtype.bitwidth // 8
        rows = []
        for i in range(n):
            where = builder.add(at, builder.mul(step, at.type(i)))
            rows.append(builder.load(
                _place(context, builder, source, from_, where, kind), align=align))
        halves = [_lanes([j for i in range(first, first + n // 2) for j in (i, n + i)])
                  for first in (0, n // 2)]
        for _ in range(n.bit_length() - 1):
            rows = [builder.shuffle_vector(rows[i], rows[i + n // 2], half)
                    for i in range(n // 2) for half in halves]
        for i, row in enumerate(rows):
            where = builder.add(put, builder.mul(stride, put.type(i)))
            builder.store(row, _place(context, builder, target, to, where, kind),
                          align=align)
        return context.get_dummy_value()
    place_ = types.intp
    return types.void(source, place_, place_, target, place_, place_), codegen
